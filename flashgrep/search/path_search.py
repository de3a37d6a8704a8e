"""Search for files by remembered parts of their paths, best first.

The terms are those of fzf (https://github.com/junegunn/fzf#search-syntax), separated by blanks. All must match, in any
order and case: ``'exact``, ``^start``, ``end$``, ``!not``. Plain terms are first matched as they are. Only if no path
has all terms, their letters may be scattered ("webres" finds "web_response.py") or mistyped, or abbreviate a word ("cmd"
finds "commands.py").
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
LEAST_ABBREVIATED: Final = 3
"""Letters that stand for a word; two would for too many."""
_WHOLE: Final = 20
"""Score above ``NEAR_ENOUGH`` of a term that abbreviates nothing away: a word with a letter less stays before it."""
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
        if self.at_start and self.at_end:
            is_match = path == self.text
        elif self.at_start:
            is_match = path.startswith(self.text)
        elif self.at_end:
            is_match = path.endswith(self.text)
        else:
            is_match = self.text in path
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
        part = _fold(rest)
        terms.append(Term(part, at_start, at_end, negated, exact))
    return terms


def _fold(text: str) -> bytes:
    """Return the bytes of a typed text, its ASCII letters in lower case."""
    return text.encode(errors="surrogateescape").lower()


def _filter(terms: Sequence[Term], paths: Iterable[bytes]) -> list[bytes]:
    """Return the paths that meet all conditions."""
    matching: list[bytes] = []
    for path in paths:
        lower = path.lower()
        if all(term.matches(lower) for term in terms):
            matching.append(path)
    return matching


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
    # The longest term is usually the rarest: the index of paths narrows by it, and the
    # others filter the rest.
    texts = [term.text for term in terms if not term.negated]
    rarest = max(texts, key=len, default=b"")
    paths = paths_with(rarest.decode(errors="surrogateescape"))
    if len(terms) > 1 or not terms[0].is_plain:
        paths = _filter(terms, paths)
    if paths or len(text) > LONGEST:
        return rank_paths(paths, text, recent), False
    return near_paths(text, paths_with(""), MOST_NEAR, recent), True


def rank_paths(
    paths: Sequence[bytes], text: str, recent: Collection[bytes] = ()
) -> list[bytes]:
    """Return paths that have all terms: best positions of the terms first, then shortest first."""
    # Too many to rank one by one: apart from whole names, the order of paths is kept.
    if len(paths) > MOST_RANKED:
        name = b"/" + _fold(text)
        named: list[bytes] = []
        others: list[bytes] = []
        for path in paths:
            place = b"/" + path.lower()
            if place.endswith(name):
                named.append(path)
            else:
                others.append(path)
        return sorted(named, key=len) + others
    return sorted(paths, key=make_rank_key(text, recent))


def make_rank_key(
    text: str, recent: Collection[bytes] = ()
) -> Callable[[bytes], tuple[int, int, int, bytes]]:
    """Return a sort key for paths that have all terms, best first; a recent path gains one step."""
    whole = _fold(text)
    terms = [term for term in parse_terms(text) if not term.negated]

    def worth(path: bytes) -> tuple[int, int, int, bytes]:
        lower = path.lower()
        base = lower.rpartition(b"/")[2]
        rank = 0
        for term in terms:
            rank += _place_of(term.text, path, lower, base)
        if path in recent:
            rank -= 1
        if len(terms) > 1 and whole in lower:
            rank -= 3
        return rank, len(base), len(path), path

    return worth


def _place_of(text: bytes, path: bytes, lower: bytes, base: bytes) -> int:
    """Return the rank of a text's best position in a path, from 0, the whole file name, to 9, any position."""
    if text == base:
        return 0
    if base.startswith(text):
        ending = base.removeprefix(text)
        if ending.startswith(b"."):
            return 1
        return 3
    if text in base:
        name_start = len(path) - len(base)
        at = lower.find(text, name_start)
        if _is_boundary(path, at):
            return 4
        return 6
    if b"/" in text and lower.endswith(text):
        return 1
    rooted = b"/" + lower
    if b"/%b/" % text in rooted:
        return 5
    at = lower.find(text)
    if _is_boundary(path, at):
        return 7
    return 9


def _is_boundary(path: bytes, at: int) -> bool:
    """Return whether a word begins at an offset: after a separator, or at a capital after a lower-case letter."""
    if at <= 0 or path[at - 1] in _BOUNDARY:
        return True
    before = path[at - 1 : at]
    letter = path[at : at + 1]
    return letter.isupper() and not before.isupper()


def _add_likeness(texts: Iterable[bytes], paths: Sequence[bytes]) -> dict[int, float]:
    """Return by place the paths similar to every text, with the sum of their scores."""
    likeness = [score_likeness(text, paths) for text in texts]
    if not likeness:
        return {}
    total: dict[int, float] = {}
    for at in set.intersection(*map(set, likeness)):
        total[at] = sum(scores[at] for scores in likeness)
    return total


def near_paths(
    text: str, paths: Sequence[bytes], limit: int, recent: Collection[bytes] = ()
) -> list[bytes]:
    """Return paths similar to the typed text, nearest first: with its letters in order, or nearly all of them."""
    if len(text) > LONGEST:
        return []
    terms = parse_terms(text)
    fixed = [term for term in terms if not term.is_plain]
    if fixed:
        paths = _filter(fixed, paths)
    plain = [term.text for term in terms if term.is_plain]
    ranked: list[tuple[float, int, bytes]] = []
    for at, score in _add_likeness(plain, paths).items():
        path = paths[at]
        bonus = 0.0
        if path in recent:
            bonus = _RECENT
        ranked.append((-score - bonus, len(path), path))
    return [path for _, _, path in nsmallest(limit, ranked)]


def search_near(path: str, files: Sequence[bytes], limit: int = 3) -> list[bytes]:
    """Return the files and folders most similar to a missing path; those with exactly its name come first."""
    folders: set[bytes] = set()
    above = _list_folders(files)
    # Upwards, visiting each folder once, however many files it has.
    while above:
        folders |= above
        above = _list_folders(above) - folders
    paths = [*files, *sorted(folders)]
    name = path.strip("/").rpartition("/")[2].encode(errors="surrogateescape")
    named = [entry for entry in paths if entry.rpartition(b"/")[2] == name]
    named.sort(key=len)
    near = named[:limit] + near_paths(path, paths, limit)
    distinct = list(dict.fromkeys(near))
    return distinct[:limit]


def _list_folders(paths: Iterable[bytes]) -> set[bytes]:
    """Return the folders that these are in, without the root."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    return folders - {b""}


def score_likeness(term: bytes, paths: Sequence[bytes]) -> dict[int, float]:
    """Return the indexes of the paths similar to a term, with their similarity, of 100."""
    texts: list[str] = []
    # Compares whole paths, names, or names without endings, depending on the term.
    for path in paths:
        part = path
        if b"/" not in term:
            part = path.rpartition(b"/")[2]
            if b"." not in term:
                part = part.partition(b".")[0]
        texts.append(part.decode("utf-8", "replace").lower())
    checkpoint()
    alike = process.extract(
        term.decode("utf-8", "replace").lower(),
        texts,
        scorer=fuzz.ratio,
        limit=MOST_ALIGNED,
        score_cutoff=NEAR_ENOUGH,
    )
    scores = {at: float(score) for _, score, at in alike}
    for at, score in _score_abbreviations(term, paths).items():
        scores[at] = max(scores.get(at, 0.0), score)
    for at in _find_spans(term, paths):
        score = _align(term, paths[at])
        if score >= NEAR_ENOUGH:
            scores[at] = max(scores.get(at, 0.0), score)
    return scores


def _score_abbreviations(term: bytes, paths: Sequence[bytes]) -> dict[int, float]:
    """Return the indexes of paths with a word that a term abbreviates, with their scores; the shortest word counts.

    The term has the word's first letter and others of it, in order: "cmd" finds "command.py" before "commands.py".
    """
    if len(term) < LEAST_ABBREVIATED or not term.isalnum():
        return {}
    first, *following = map(chr, term)
    # Behind the letter, not before it: so the regex searches for the letter at once.
    regex = rf"{first}(?<![^\W_].)"
    for letter in following:
        regex += rf"[^\W_{letter}]*{letter}"
    regex += r"[^\W_]*"
    pattern = re.compile(regex.encode())
    scores: dict[int, float] = {}
    for at, word in _match_each(pattern, paths):
        share = len(term) / len(word)
        score = NEAR_ENOUGH + _WHOLE * share
        before = scores.get(at, 0.0)
        scores[at] = max(before, score)
    return scores


def _find_spans(term: bytes, paths: Sequence[bytes]) -> list[int]:
    """Return the indexes of paths with a term's letters in order, the shortest spans first."""
    # Each letter is searched after the previous one, without going back, so the time is
    # linear in the length of a path.
    first, *following = [re.escape(bytes([letter])) for letter in term]
    regex = first
    for letter in following:
        regex += b"[^%b\0]*%b" % (letter, letter)
    pattern = re.compile(regex)
    lengths: dict[int, int] = {}
    for at, span in _match_each(pattern, paths):
        # The first span is not always the best one, but seldom far from it.
        lengths.setdefault(at, len(span))
    spans = [(length, len(paths[at]), at) for at, length in lengths.items()]
    return [at for _, _, at in nsmallest(MOST_ALIGNED, spans)]


def _match_each(
    pattern: re.Pattern[bytes],
    paths: Sequence[bytes],
) -> Iterator[tuple[int, bytes]]:
    """Yield each match in the lower-case paths, with its path's index; a NUL, which stands between two, matches nothing."""
    for start in range(0, len(paths), _STEPS):
        checkpoint()
        step = paths[start : start + _STEPS]
        text = b"\0".join(step).lower()
        at = start
        end = 0
        for match in pattern.finditer(text):
            at += text.count(b"\0", end, match.start())
            end = match.start()
            yield at, match[0]


def _align(term: bytes, path: bytes) -> float:
    """Return how well a term's letters fit into a path, of 100, at their best positions.

    A letter scores 2 at the start of a word or directly after the previous letter, otherwise below 0; slightly more
    after a slash and in the file's name. Of two positions the nearer to the previous letter wins. The bonuses are like
    fzf's; computed by dynamic programming over letters and positions.
    """
    lower = path.lower()
    base = path.rfind(b"/") + 1
    nothing = float("-inf")
    before = [0.0] * len(path)
    """The best score of the letters so far, with the last one at this position."""
    for number, letter in enumerate(term):
        checkpoint()  # on the longest paths each letter takes milliseconds
        best = 0.0
        """Of the letters before this one, at a position not directly before it."""
        if number:
            best = nothing
        row = [nothing] * len(path)
        for at in range(len(path)):
            if lower[at] == letter:
                score = best
                if number:
                    score -= _APART
                score += _score_place(path, at)
                if number and at:
                    # Directly after the previous letter, which makes up for the place.
                    score = max(score, before[at - 1] + 2.0)
                if at >= base:
                    score += _IN_NAME
                row[at] = score
            if number:
                best = max(best - 0.01, before[at])
        before = row
    most = (2 + _IN_NAME) * len(term)
    share = 100 * max(before, default=0.0) / most
    return min(100.0, max(0.0, share))


def _score_place(path: bytes, at: int) -> float:
    """Return the score of a letter by its place: more where a word begins, and most after a slash."""
    # Inside a word a letter is more likely there by chance than typed: it costs.
    if not _is_boundary(path, at):
        return -1.0
    if path[at - 1 : at] in (b"/", b""):
        return 2.5
    return 2.0
