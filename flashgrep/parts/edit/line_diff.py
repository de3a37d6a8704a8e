"""The unified diff of two texts."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import Match, SequenceMatcher
from io import StringIO
from typing import Final

_CONTEXT: Final = 3
"""Lines around a change."""
_MOST_COMPARED: Final = 4_000
"""Most lines on either side that are compared: this is quadratic at worst; more are shown as one replaced block."""
_MOST_IN_PIECE: Final = 500
"""The same of each piece of a longer text, of which there may be many."""
_NO_END: Final = "\n\\ No newline at end of file\n"


class _Matches(SequenceMatcher[str]):
    """Groups runs of equal lines that are known, as difflib groups its own."""

    def __init__(self, runs: list[Match]) -> None:
        super().__init__()
        self._runs = runs

    def get_matching_blocks(self) -> list[Match]:
        return self._runs


def format_diff(old: str, new: str, path: str, *, created: bool = False) -> str:
    """Return the unified diff of two texts, as ``git apply`` takes it; "" if they are equal."""
    if old == new:
        return ""
    # Which cuts at LF alone.
    before = list(StringIO(old))
    after = list(StringIO(new))
    runs = _match_lines(before, after)
    matches = _Matches(_join_runs(runs))
    source = f"a/{path}"
    if created:
        source = "/dev/null"
    parts = [f"--- {source}\n+++ b/{path}\n"]
    for group in matches.get_grouped_opcodes(_CONTEXT):
        first = group[0]
        last = group[-1]
        _, old_start, _, new_start, _ = first
        _, _, old_end, _, new_end = last
        old_extent = _format_extent(old_start, old_end)
        new_extent = _format_extent(new_start, new_end)
        parts.append(f"@@ -{old_extent} +{new_extent} @@\n")
        for name, old_start, old_end, new_start, new_end in group:
            removed = before[old_start:old_end]
            added = after[new_start:new_end]
            if name == "equal":
                parts += _sign_lines(" ", added)
                continue
            parts += _sign_lines("-", removed)
            parts += _sign_lines("+", added)
    return "".join(parts)


def _match_lines(before: list[str], after: list[str]) -> Iterator[Match]:
    """Yield runs of lines that two texts have alike, in order; the last is empty, at their ends."""
    head = _count_alike(before, after)
    yield Match(0, 0, head)
    # Compare only the part between the common prefix and the common suffix.
    old_rest = before[head:]
    new_rest = after[head:]
    tail = _count_alike(reversed(old_rest), reversed(new_rest))
    old_middle = old_rest[: len(old_rest) - tail]
    new_middle = new_rest[: len(new_rest) - tail]
    longest = max(len(old_middle), len(new_middle))
    if longest <= _MOST_COMPARED:
        middle = _compare(old_middle, new_middle)
    else:
        middle = _compare_pieces(old_middle, new_middle)
    for run in middle:
        yield _move(run, head, head)
    old_end = len(before)
    new_end = len(after)
    old_tail = old_end - tail
    new_tail = new_end - tail
    yield Match(old_tail, new_tail, tail)
    yield Match(old_end, new_end, 0)


def _compare(old: list[str], new: list[str]) -> Iterable[Match]:
    """Yield runs of equal lines, by difflib."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return matcher.get_matching_blocks()


def _compare_pieces(old: list[str], new: list[str]) -> Iterator[Match]:
    """Yield runs of equal lines in long texts, cut at lines that each of them has once.

    So two changes at the ends of a long file are not shown as a change of all that is between them.
    """
    old_start = 0
    new_start = 0
    ends = Match(len(old), len(new), 0)
    anchors = _find_anchors(old, new)
    anchors.append(ends)
    for anchor in anchors:
        old_end, new_end, size = anchor
        old_piece = old[old_start:old_end]
        new_piece = new[new_start:new_end]
        longest = max(len(old_piece), len(new_piece))
        if longest <= _MOST_IN_PIECE:
            runs = _compare(old_piece, new_piece)
            for run in runs:
                yield _move(run, old_start, new_start)
        yield anchor
        old_start = old_end + size
        new_start = new_end + size


def _find_anchors(old: list[str], new: list[str]) -> list[Match]:
    """Return the lines that both texts have once, as many as come in the same order."""
    places = _find_single_lines(new)
    pairs = list[Match]()
    for line, place in _find_single_lines(old).items():
        if line in places:
            pair = Match(place, places[line], 1)
            pairs.append(pair)
    # The longest rising sequence: for each length, the pair that ends it lowest.
    lowest = list[int]()
    last = list[int]()
    before = list[int]()
    for number, pair in enumerate(pairs):
        length = bisect_left(lowest, pair.b)
        previous = -1
        if length:
            previous = last[length - 1]
        before.append(previous)
        end = length + 1
        lowest[length:end] = [pair.b]
        last[length:end] = [number]
    anchors = list[Match]()
    number = -1
    if last:
        number = last[-1]
    while number >= 0:
        anchors.append(pairs[number])
        number = before[number]
    anchors.reverse()
    return anchors


def _find_single_lines(lines: list[str]) -> dict[str, int]:
    """Return the lines that a text has once, with their places."""
    counts = Counter(lines)
    places = dict[str, int]()
    for place, line in enumerate(lines):
        if counts[line] == 1:
            places[line] = place
    return places


def _move(run: Match, old_by: int, new_by: int) -> Match:
    """Return a run of parts of two texts as one of the texts."""
    old, new, size = run
    old += old_by
    new += new_by
    return Match(old, new, size)


def _join_runs(runs: Iterable[Match]) -> list[Match]:
    """Return runs, those that touch as one; else each would have context of its own."""
    joined = list[Match]()
    for run in runs:
        if not joined:
            joined.append(run)
            continue
        old, new, size = joined[-1]
        old_end = old + size
        new_end = new + size
        if run[:2] == (old_end, new_end):
            size += run.size
            joined[-1] = Match(old, new, size)
        else:
            joined.append(run)
    return joined


def _count_alike(left: Iterable[str], right: Iterable[str]) -> int:
    """Return how many lines two texts begin with alike."""
    count = 0
    for left_line, right_line in zip(left, right, strict=False):
        if left_line != right_line:
            break
        count += 1
    return count


def _format_extent(start: int, end: int) -> str:
    """Return a range as diff(1) counts: from 1, and an empty range names the line before it."""
    first = start + 1
    if end == start:
        first = start
    count = end - start
    return f"{first},{count}"


def _sign_lines(sign: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}"
        if not line.endswith("\n"):
            yield _NO_END
