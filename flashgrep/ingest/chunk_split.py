"""Where to cut: at the best places first, then again in what is still too large; small neighbours stay together.

Cuts of one rank part siblings (definitions of one class, statements of one body). Siblings that fit are gathered in
order up to the goal; one that does not is cut at its own best places, and its parts join no sibling but when tiny.
"""

from typing import Final

import numpy as np

from flashgrep.ingest.chunk_lines import STEP, Ints, Units

FULL: Final = 1_500
"""Most bytes gathered from several siblings."""
HARD: Final = 2_000
"""Most bytes of a chunk: a function that holds no other may be as large."""
_GOAL: Final = 1_200
_TINY: Final = 200
"""A smaller chunk says too little for a vector of its own: it joins the neighbour it is closer to."""


def pieces_of(units: Units, ranks: Ints) -> list[tuple[int, int]]:
    """Return consecutive ranges of units, each at most ``HARD`` bytes."""
    starts, last = units.starts.tolist(), units.last.tolist()
    pieces: list[tuple[int, int]] = []
    todo = [(0, len(starts))]
    while todo:
        first, end = todo.pop()
        size = last[end - 1] - starts[first]
        if end - first <= 1 or size <= FULL or (size <= HARD and _is_even(ranks[first + 1 : end])):
            pieces.append((first, end))
        else:
            todo.extend(reversed(_siblings(starts, last, ranks, first, end)))
    return _without_tiny(pieces, starts, last, ranks)


def _is_even(inner: Ints) -> bool:
    """Whether cuts are all in one definition, or all between paragraphs: none is clearly better than another."""
    return bool(inner.max() // STEP == inner.min() // STEP)


def _siblings(starts: list[int], last: list[int], ranks: Ints, first: int, end: int) -> list[tuple[int, int]]:
    """Return the range cut at its best places, small neighbours gathered."""
    inner = ranks[first + 1 : end]
    cuts = (np.flatnonzero(inner == inner.min()) + first + 1).tolist()
    total = last[end - 1] - starts[first]
    goal = total / max(2, round(total / _GOAL))
    groups: list[tuple[int, int]] = []
    opened, closed = first, cuts[0]
    for begin, after in zip(cuts, [*cuts[1:], end], strict=True):
        gathered = last[closed - 1] - starts[opened]
        if last[after - 1] - starts[opened] > FULL or gathered + (last[after - 1] - starts[begin]) / 2 > goal:
            groups.append((opened, closed))
            opened = begin
        closed = after
    groups.append((opened, closed))
    return groups


def _without_tiny(
    pieces: list[tuple[int, int]], starts: list[int], last: list[int], ranks: Ints
) -> list[tuple[int, int]]:
    """Return the pieces with the tiny ones joined to the neighbour a worse cut parts them from, where that fits."""
    joined: list[tuple[int, int]] = []
    pulled = False
    for number, (first, end) in enumerate(pieces):
        fits = bool(joined) and last[end - 1] - starts[joined[-1][0]] <= HARD
        tiny = last[end - 1] - starts[first] < _TINY
        closer = tiny and (end == len(starts) or number == 0 or bool(ranks[first] >= ranks[end]))
        if fits and (pulled or closer):
            joined[-1] = (joined[-1][0], end)
            pulled = pulled and last[end - 1] - starts[joined[-1][0]] < _TINY
        else:
            joined.append((first, end))
            pulled = tiny
    return joined
