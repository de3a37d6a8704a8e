"""Search for files by remembered parts of their paths, best first.

The terms are those of fzf (https://github.com/junegunn/fzf#search-syntax), separated by blanks. All must match, in any
order and case: ``'exact``, ``^start``, ``end$``, ``!not``. Plain terms are first matched as they are. Only if no path
has all terms, their letters may be scattered ("webres" finds "web_response.py") or mistyped.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

from flashgrep.base.checkpoint import checkpoint

NEAR_ENOUGH: Final = 60
"""Lowest similarity, of 100; below it, matches are noise."""
LONGEST: Final = 200
"""Most characters; nobody types a longer path by heart, and comparing takes time by length."""
MOST_NEAR: Final = 50
"""Most similar paths returned if none has the terms as they are."""
MOST_RANKED: Final = 2_000
"""Most paths that are ranked, about 6 µs each; with more, the terms are so common that only whole names stand out."""
MOST_ALIGNED: Final = 150
"""Most paths with scattered letters that are aligned, about 150 µs each: those with the shortest spans."""
_STEPS: Final = 512
"""Paths processed between two checkpoints, about 0.5 ms."""
_BOUNDARY: Final = frozenset(b"/_-. ")
_RECENT: Final = 2.0
"""Bonus, of 100, for a file that was changed or opened recently."""
_APART: Final = 0.6
"""Penalty for a letter that does not follow the previous one: `paseUtil` is not `packages/src/enumUtil.ts`."""
_IN_NAME: Final = 0.5
"""Bonus for a letter in the file's name: `strsta` finds `stringifyStatic.ts` before `transforms/cacheStatic.ts`.

`scripts/eval_paths` over six repositories: of 165 prefixes 137 find their file first; with 0.25 and no penalty, 130.
"""


class Term(NamedTuple):
    """One condition on a path; its ASCII letters are lower case, as in the paths it is compared with."""

    text: bytes
    at_start: bool = False
    at_end: bool = False
    negated: bool = False
    exact: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether its letters may be scattered or mistyped."""
        return not (self.at_start or self.at_end or self.negated or self.exact)

    def matches(self, path: bytes) -> bool:
        """Return whether a lower-case path meets the condition exactly."""
        is_match = self.text in path
        if self.at_start:
            is_match = path.startswith(self.text)
        if self.at_end:
            is_match = path.endswith(self.text) and (
                not self.at_start or path == self.text
            )
        return is_match != self.negated


def parse_terms(text: str) -> list[Term]:
    """Return the terms of the typed text; an operator by itself is plain text."""
    terms = []
    for word in text.split():
        rest = word
        negated = rest.startswith("!") and len(rest) > 1
        rest = rest[negated:]
        exact = rest.startswith("'") and len(rest) > 1
        rest = rest[exact:]
        at_start = rest.startswith("^") and len(rest) > 1
        rest = rest[at_start:]
        at_end = rest.endswith("$") and len(rest) > 1
        rest = rest[: len(rest) - at_end]
        terms.append(
            Term(
                rest.encode(errors="surrogateescape").lower(),
                at_start,
                at_end,
                negated,
                exact,
            )
        )
    return terms


def search_paths(
    text: str, paths_with: Callable[[str], list[bytes]], recent: Collection[bytes] = ()
) -> tuple[list[bytes], bool]:
    """Return the paths that have all terms, best first, and False; or at most ``MOST_NEAR`` similar ones, and True.

    ``paths_with`` returns the sorted paths that contain a text, ignoring ASCII case. Paths in ``recent`` rank slightly
    higher.
    """
    terms = parse_terms(text)
    if not terms:
        return paths_with(""), False
    wanted_terms = [term for term in terms if not term.negated]
    # The longest term is usually the rarest: the index of paths narrows by it, and the
    # others filter the rest.
    if wanted_terms:
        rarest = max(wanted_terms, key=lambda term: len(term.text)).text.decode(
            errors="surrogateescape"
        )
    else:
        rarest = ""
    paths = paths_with(rarest)
    if len(terms) > 1 or not terms[0].is_plain:
        paths = [
            path for path in paths if all(term.matches(path.lower()) for term in terms)
        ]
    if paths or len(text) > LONGEST:
        return rank_paths(paths, text, recent), False
    return near_paths(text, paths_with(""), MOST_NEAR, recent), True


def rank_paths(
    paths: Sequence[bytes], text: str, recent: Collection[bytes] = ()
) -> list[bytes]:
    """Return paths that have all terms: best positions of the terms first, then shortest first."""
    # Too many to rank one by one: apart from whole names, the order of paths is kept.
    if len(paths) > MOST_RANKED:
        whole = text.encode(errors="surrogateescape").lower()
        named = {path for path in paths if (b"/" + path.lower()).endswith(b"/" + whole)}
        return [*sorted(named, key=len), *(path for path in paths if path not in named)]
    return sorted(paths, key=make_rank_key(text, recent))


def make_rank_key(
    text: str, recent: Collection[bytes] = ()
) -> Callable[[bytes], tuple[int, int, int, bytes]]:
    """Return a sort key for paths that have all terms, best first; a recent path gains one step."""
    whole = text.encode(errors="surrogateescape").lower()
    terms = [term for term in parse_terms(text) if not term.negated]

    def worth(path: bytes) -> tuple[int, int, int, bytes]:
        lower = path.lower()
        base = lower.rpartition(b"/")[2]
        places = sum(_place_of(term.text, path, lower, base) for term in terms)
        places -= path in recent
        return (
            places - 3 * (len(terms) > 1 and whole in lower),
            len(base),
            len(path),
            path,
        )

    return worth


def _place_of(text: bytes, path: bytes, lower: bytes, base: bytes) -> int:
    """Return the rank of a text's best position in a path, from 0, the whole file name, to 9, any position."""
    if text == base:
        return 0
    if base.startswith(text):
        if base[len(text) : len(text) + 1] == b".":
            return 1
        return 3
    if text in base:
        if _is_boundary(path, lower.find(text, len(path) - len(base))):
            return 4
        return 6
    if b"/" in text and lower.endswith(text):
        return 1
    if b"/%b/" % text in b"/" + lower:
        return 5
    if _is_boundary(path, lower.find(text)):
        return 7
    return 9


def _is_boundary(path: bytes, at: int) -> bool:
    """Return whether a word begins at an offset: after a separator, or at a capital after a lower-case letter."""
    if at <= 0 or path[at - 1] in _BOUNDARY:
        return True
    return path[at : at + 1].isupper() and not path[at - 1 : at].isupper()


def _add_likeness(texts: Iterable[bytes], paths: Sequence[bytes]) -> dict[int, float]:
    """Return by place the paths similar to every text, with the sum of their scores."""
    likeness = [score_likeness(text, paths) for text in texts]
    if not likeness:
        return {}
    common = set.intersection(*map(set, likeness))
    return {at: sum(scores[at] for scores in likeness) for at in common}


def near_paths(
    text: str, paths: Sequence[bytes], limit: int, recent: Collection[bytes] = ()
) -> list[bytes]:
    """Return paths similar to the typed text, nearest first: with its letters in order, or nearly all of them."""
    if len(text) > LONGEST:
        return []
    terms = parse_terms(text)
    fixed = [term for term in terms if not term.is_plain]
    if fixed:
        paths = [
            path for path in paths if all(term.matches(path.lower()) for term in fixed)
        ]
    scores = _add_likeness([term.text for term in terms if term.is_plain], paths)
    ahead = {
        at: score + _RECENT * (paths[at] in recent) for at, score in scores.items()
    }
    best = nsmallest(
        limit,
        ahead.items(),
        key=lambda item: (-item[1], len(paths[item[0]]), paths[item[0]]),
    )
    return [paths[at] for at, _ in best]


def search_near(path: str, files: Sequence[bytes], limit: int = 3) -> list[bytes]:
    """Return the files and folders most similar to a missing path; those with exactly its name come first."""
    folders: set[bytes] = set()
    below = {file.rpartition(b"/")[0] for file in files}
    # Upwards, visiting each folder once, however many files it has.
    while below := below - folders - {b""}:
        folders |= below
        below = {folder.rpartition(b"/")[0] for folder in below}
    paths = [*files, *sorted(folders)]
    name = b"/" + path.strip("/").rpartition("/")[2].encode(errors="surrogateescape")
    named = sorted(
        (path_near for path_near in paths if (b"/" + path_near).endswith(name)), key=len
    )
    return list(dict.fromkeys([*named[:limit], *near_paths(path, paths, limit)]))[
        :limit
    ]


def score_likeness(term: bytes, paths: Sequence[bytes]) -> dict[int, float]:
    """Return the indexes of the paths similar to a term, with their similarity, of 100."""
    # Compares whole paths, names, or names without endings, depending on the term.
    if b"/" in term:
        texts = [path.decode("utf-8", "replace").lower() for path in paths]
    else:
        names = (path.rpartition(b"/")[2] for path in paths)
        texts = [
            (name if b"." in term else name.partition(b".")[0])
            .decode("utf-8", "replace")
            .lower()
            for name in names
        ]
    checkpoint()
    text = term.decode("utf-8", "replace").lower()
    alike = process.extract(
        text,
        texts,
        scorer=fuzz.ratio,
        limit=MOST_ALIGNED,
        score_cutoff=NEAR_ENOUGH,
    )
    scores = {at: float(score) for _, score, at in alike}
    # Then paths with its letters scattered in order. Each is searched after the
    # previous one, so this is linear.
    letters = [re.escape(term[at : at + 1]) for at in range(len(term))]
    pattern = re.compile(
        b"".join(
            [letters[0], *(b"[^%b]*%b" % (letter, letter) for letter in letters[1:])]
        )
    )
    spans = []
    for at, path in enumerate(paths):
        if at % _STEPS == 0:
            checkpoint()
        if match := pattern.search(path.lower()):
            # The first span is not always the best one, but seldom far from it.
            spans.append((match.end() - match.start(), len(path), at))
    for _, _, at in nsmallest(MOST_ALIGNED, spans):
        score = _align(term, paths[at])
        if score >= NEAR_ENOUGH:
            scores[at] = max(scores.get(at, 0.0), score)
    return scores


def _align(term: bytes, path: bytes) -> float:
    """Return how well a term's letters fit into a path, of 100, at their best positions.

    A letter scores 2 at the start of a word or directly after the previous letter, otherwise below 0; slightly more
    after a slash and in the file's name. Of two positions the nearer to the previous letter wins. The bonuses are like
    fzf's; computed by dynamic programming over letters and positions.
    """
    lower = path.lower()
    base = len(path) - len(path.rpartition(b"/")[2])
    nothing = float("-inf")
    before = [0.0] * len(path)
    """The best score of the letters so far, with the last one at this position."""
    for number, letter in enumerate(term):
        checkpoint()  # on the longest paths each letter takes milliseconds
        best = nothing
        row = [nothing] * len(path)
        for at in range(len(path)):
            if lower[at] == letter:
                begins = 2.0 if _is_boundary(path, at) else 0.0
                begins += 0.5 if begins and path[at - 1 : at] in (b"/", b"") else 0.0
                apart = (
                    (0.0 if number == 0 else best - _APART)
                    + begins
                    - (0.0 if begins else 1.0)
                )
                if number and at:
                    joined = before[at - 1] + 2.0
                else:
                    joined = nothing
                row[at] = max(apart, joined) + (_IN_NAME if at >= base else 0.0)
            if number:
                best = max(best - 0.01, before[at])
        before = row
    return min(
        100.0, max(0.0, 100 * max(before, default=0.0) / ((2 + _IN_NAME) * len(term)))
    )
