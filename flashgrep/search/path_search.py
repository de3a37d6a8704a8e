"""Files by what somebody remembers of their paths, the best first.

The terms are those of fzf (https://github.com/junegunn/fzf#search-syntax): blanks part them, all have to match, in any
order and case; ``'exact``, ``^start``, ``end$``, ``!not``. A plain term is looked for as it is first. Only where no
path has all terms so, their letters may lie apart (``webres``: ``web_response.py``) or be mistyped.
"""

import re
from collections.abc import Callable, Collection, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

from flashgrep.checkpoint import checkpoint

NEAR_ENOUGH: Final = 60
"""Of 100; below it, what is said to be like a term is noise."""
LONGEST: Final = 200
"""Characters; nobody types a longer path by heart, and comparing takes time by length."""
MOST_NEAR: Final = 50
"""Paths that are told where none has the terms as they stand."""
MOST_RANKED: Final = 2_000
"""Paths put in order, about 6 µs each; more than that have so common a part that only whole names stand out."""
MOST_ALIGNED: Final = 150
"""Paths with a term's letters apart that are looked at closely, about 150 µs each: the shortest spans."""
_STEPS: Final = 512
"""Paths between two checkpoints, about 0.5 ms."""
_BOUNDARY: Final = frozenset(b"/_-. ")
_RECENT: Final = 2.0
"""Of 100: what a file that was changed or opened recently is worth more."""
_APART: Final = 0.6
"""What a letter loses that does not follow the one before it: `paseUtil` is not `packages/src/enumUtil.ts`."""
_IN_NAME: Final = 0.5
"""What a letter in the file's name is worth more: `strsta` is `stringifyStatic.ts` before `transforms/cacheStatic.ts`.

`scripts/eval_paths` over six repositories: of 165 prefixes 137 find their file first, with 0.25 and without a loss 130.
"""


class Term(NamedTuple):
    """One condition on a path; its ASCII letters are small, as those of the paths it is held against."""

    text: bytes
    at_start: bool = False
    at_end: bool = False
    negated: bool = False
    exact: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether its letters may lie apart or be mistyped."""
        return not (self.at_start or self.at_end or self.negated or self.exact)

    def matches(self, path: bytes) -> bool:
        """Return whether a path in small letters meets the condition as it stands."""
        found = self.text in path
        if self.at_start:
            found = path.startswith(self.text)
        if self.at_end:
            found = path.endswith(self.text) and (not self.at_start or path == self.text)
        return found != self.negated


def parse_terms(text: str) -> list[Term]:
    """Return the terms of what was typed; a sign that is alone is text."""
    terms = []
    for word in text.split():
        left = word
        negated = left.startswith("!") and len(left) > 1
        left = left[negated:]
        exact = left.startswith("'") and len(left) > 1
        left = left[exact:]
        at_start = left.startswith("^") and len(left) > 1
        left = left[at_start:]
        at_end = left.endswith("$") and len(left) > 1
        left = left[: len(left) - at_end]
        terms.append(Term(left.encode(errors="surrogateescape").lower(), at_start, at_end, negated, exact))
    return terms


def search_paths(
    text: str, paths_with: Callable[[str], list[bytes]], recent: Collection[bytes] = ()
) -> tuple[list[bytes], bool]:
    """Return the paths that have all terms, the best first; else (True) at most ``MOST_NEAR`` that are like them.

    ``paths_with`` returns the sorted paths that contain a text in any case of ASCII letters. Those in ``recent`` are a
    little ahead.
    """
    terms = parse_terms(text)
    if not terms:
        return paths_with(""), False
    wanted = [term for term in terms if not term.negated]
    # The longest term is the rarest as a rule; the index of paths narrows by it, the others are tried on what is left.
    rarest = max(wanted, key=lambda term: len(term.text)).text.decode(errors="surrogateescape") if wanted else ""
    found = paths_with(rarest)
    if len(terms) > 1 or not terms[0].is_plain:
        found = [path for path in found if all(term.matches(path.lower()) for term in terms)]
    if found or len(text) > LONGEST:
        return rank_paths(found, text, recent), False
    return near_paths(text, paths_with(""), MOST_NEAR, recent), True


def rank_paths(paths: Sequence[bytes], text: str, recent: Collection[bytes] = ()) -> list[bytes]:
    """Return paths that have all terms, the best places of the terms first, then the shortest."""
    # Too many to be ranked one by one; the order of paths is kept for all others.
    if len(paths) > MOST_RANKED:
        whole = text.encode(errors="surrogateescape").lower()
        named = {path for path in paths if (b"/" + path.lower()).endswith(b"/" + whole)}
        return [*sorted(named, key=len), *(path for path in paths if path not in named)]
    return sorted(paths, key=make_worth(text, recent))


def make_worth(text: str, recent: Collection[bytes] = ()) -> Callable[[bytes], tuple[int, int, int, bytes]]:
    """Return what paths that have all terms of a text are sorted by, the best first; recent ones a place ahead."""
    whole = text.encode(errors="surrogateescape").lower()
    terms = [term for term in parse_terms(text) if not term.negated]

    def worth(path: bytes) -> tuple[int, int, int, bytes]:
        lower = path.lower()
        base = lower.rpartition(b"/")[2]
        places = sum(_place_of(term.text, path, lower, base) for term in terms)
        places -= path in recent
        return places - 3 * (len(terms) > 1 and whole in lower), len(base), len(path), path

    return worth


def _place_of(text: bytes, path: bytes, lower: bytes, base: bytes) -> int:
    """Return how telling the best place of a text in a path is: 0 is the name of the file, 9 any place."""
    if text == base:
        return 0
    if base.startswith(text):
        return 1 if base[len(text) : len(text) + 1] == b"." else 3
    if text in base:
        return 4 if _is_boundary(path, lower.find(text, len(path) - len(base))) else 6
    if b"/" in text and lower.endswith(text):
        return 1
    if b"/%b/" % text in b"/" + lower:
        return 5
    return 7 if _is_boundary(path, lower.find(text)) else 9


def _is_boundary(path: bytes, at: int) -> bool:
    """Return whether a word begins at a place of a path: after a separator, or as a capital after a small letter."""
    if at <= 0 or path[at - 1] in _BOUNDARY:
        return True
    return path[at : at + 1].isupper() and not path[at - 1 : at].isupper()


def near_paths(text: str, paths: Sequence[bytes], limit: int, recent: Collection[bytes] = ()) -> list[bytes]:
    """Return paths like what was typed, the nearest first: its letters in their order, or nearly all of them."""
    if len(text) > LONGEST:
        return []
    terms = parse_terms(text)
    wanted = [term.text for term in terms if term.is_plain]
    fixed = [term for term in terms if not term.is_plain]
    if fixed:
        paths = [path for path in paths if all(term.matches(path.lower()) for term in fixed)]
    scores: dict[int, float] = {}
    for number, term in enumerate(wanted):
        near = score_likeness(term, paths)
        # Every term has to be near: those are dropped that one of them did not find.
        scores = near if number == 0 else {at: scores[at] + score for at, score in near.items() if at in scores}
    ahead = {at: score + _RECENT * (paths[at] in recent) for at, score in scores.items()}
    best = nsmallest(limit, ahead.items(), key=lambda item: (-item[1], len(paths[item[0]]), paths[item[0]]))
    return [paths[at] for at, _ in best]


def search_near(path: str, files: Sequence[bytes], limit: int = 3) -> list[bytes]:
    """Return the files and folders most like a path that is not there, those of its very name first."""
    folders: set[bytes] = set()
    below = {file.rpartition(b"/")[0] for file in files}
    # Upwards, each folder once, however many files it has.
    while below := below - folders - {b""}:
        folders |= below
        below = {folder.rpartition(b"/")[0] for folder in below}
    known = [*files, *sorted(folders)]
    name = b"/" + path.strip("/").rpartition("/")[2].encode(errors="surrogateescape")
    named = sorted((one for one in known if (b"/" + one).endswith(name)), key=len)
    return list(dict.fromkeys([*named[:limit], *near_paths(path, known, limit)]))[:limit]


def score_likeness(term: bytes, paths: Sequence[bytes]) -> dict[int, float]:
    """Return the places of the paths that are like a term, with how like, of 100."""
    # Whole paths, names, or names without their endings, as far as the term says.
    if b"/" in term:
        texts = [path.decode("utf-8", "replace").lower() for path in paths]
    else:
        names = (path.rpartition(b"/")[2] for path in paths)
        texts = [
            (name if b"." in term else name.partition(b".")[0]).decode("utf-8", "replace").lower() for name in names
        ]
    checkpoint()
    shown = term.decode("utf-8", "replace").lower()
    alike = process.extract(shown, texts, scorer=fuzz.ratio, limit=MOST_ALIGNED, score_cutoff=NEAR_ENOUGH)
    scores = {at: float(score) for _, score, at in alike}
    # Then its letters in their order, apart: each is looked for from the last one's place on, so this is linear.
    letters = [re.escape(term[at : at + 1]) for at in range(len(term))]
    pattern = re.compile(b"".join([letters[0], *(b"[^%b]*%b" % (letter, letter) for letter in letters[1:])]))
    spans = []
    for at, path in enumerate(paths):
        if at % _STEPS == 0:
            checkpoint()
        if found := pattern.search(path.lower()):
            # The shortest span is not always the best place, but hardly ever far from it.
            spans.append((found.end() - found.start(), len(path), at))
    for _, _, at in nsmallest(MOST_ALIGNED, spans):
        score = _align(term, paths[at])
        if score >= NEAR_ENOUGH:
            scores[at] = max(scores.get(at, 0.0), score)
    return scores


def _align(term: bytes, path: bytes) -> float:
    """Return how well a term's letters fit into a path, of 100, at their best places.

    A letter is worth 2 where a word begins, in the file's name or else, a bit more after a slash, 2 right after the
    letter before it, else below 0; of two places the nearer to the letter before. As fzf's bonuses, by dynamic
    programming over letters and places.
    """
    lower = path.lower()
    base = len(path) - len(path.rpartition(b"/")[2])
    nothing = float("-inf")
    before = [0.0] * len(path)
    """The best worth of the letters so far, the last of them at this place."""
    for number, letter in enumerate(term):
        checkpoint()  # a long term takes milliseconds a letter on the longest paths
        best, row = nothing, [nothing] * len(path)
        for at in range(len(path)):
            if lower[at] == letter:
                begins = 2.0 if _is_boundary(path, at) else 0.0
                begins += 0.5 if begins and path[at - 1 : at] in (b"/", b"") else 0.0
                apart = (0.0 if number == 0 else best - _APART) + begins - (0.0 if begins else 1.0)
                joined = before[at - 1] + 2.0 if number and at else nothing
                row[at] = max(apart, joined) + (_IN_NAME if at >= base else 0.0)
            if number:
                best = max(best - 0.01, before[at])
        before = row
    return min(100.0, max(0.0, 100 * max(before, default=0.0) / ((2 + _IN_NAME) * len(term))))
