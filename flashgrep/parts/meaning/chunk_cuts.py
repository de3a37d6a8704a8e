"""Where to cut a text into chunks: its non-blank lines, the cost of a cut before each, and the cuts chosen.

Blank bytes are those up to 0x20. A rank orders cuts, the lower the better: by how deep in definitions a line is, by
whether it continues the previous line, by its indentation, by a blank line before it. Cuts of one rank separate
siblings (definitions of one class, statements of one body). Siblings that fit are gathered in order up to the goal; one
that does not fit is cut at its own best places, and its parts join a sibling only if tiny.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.languages import LANGUAGES, UNKNOWN
from flashgrep.pattern.unicode import CHARACTER_MASK, CHARACTER_REST

Ints = NDArray[np.int64]
Range = tuple[int, int]
"""The first of consecutive units, and the one after the last."""

# Units

WIDE: Final = 1_500
"""A longer line, in bytes, is cut inside."""
_WINDOW: Final = 1_000
_REST: Final = 250
"""Minimum bytes left of a line after a cut inside it; this also keeps cuts away from its ``\\r\\n``."""
_MARGIN: Final = 200
"""Most blanks at a line's beginning that count as indentation."""
_BLANK: Final = 0x20
_NEWLINE: Final = 10

# Ranks

STEP: Final = 1_000
"""Difference in rank of a cut through one more definition."""
_HANGS: Final = 500
_INDENT: Final = 10
_DEEPEST: Final = 40
"""Most columns of indentation distinguished; keeps the terms of a rank from overlapping."""
_NO_GAP: Final = 5
_NESTED: Final = 60
"""Most levels of nested definitions distinguished; bounds how often a text is cut again."""
_INSIDE: Final = 1 << 60
"""Rank of a cut inside a line: above any depth."""
_CLOSES: Final = np.isin(
    np.arange(256, dtype=np.uint8), np.frombuffer(b")]}", np.uint8)
)
"""By first byte: whether a line begins by closing a bracket."""
_GOES_ON: Final = tuple(
    int.from_bytes(word, "little")
    for word in b"else elif exce fina catc resc ensu then done esac".split()
)
"""First four letters of words that continue the previous statement."""
_END: Final = int.from_bytes(b"end", "little")
_LETTER: Final = np.array(
    [chr(byte).isalnum() or byte == ord("_") for byte in range(256)]
)
_DECORATOR: Final = {"csharp": b"[", "rust": b"#[", "php": b"#[", "cpp": b"[["}

# Sizes of chunks

FULL: Final = 1_500
"""Maximum number of bytes gathered from several siblings."""
HARD: Final = 2_000
"""Maximum number of bytes of a chunk: a function that holds no other may be as large."""
_GOAL: Final = 1_200
_TINY: Final = 200
"""A smaller chunk has too little text for its own vector: it joins the closer neighbour."""


@dataclass(frozen=True, slots=True)
class Units:
    """Non-blank lines, or windows of long lines; all columns have the same length."""

    starts: Ints
    """Offset each begins at."""
    first: Ints
    """Offset of its first non-blank byte."""
    last: Ints
    """Offset after the last non-blank byte in it or before it."""
    lines: Ints
    """Line number from 1."""
    whole: NDArray[np.bool_]
    """False if it continues a line begun before."""
    words: NDArray[np.uint32]
    """Its first four bytes from ``first`` on, little endian."""

    def find(self, offsets: Ints) -> Ints:
        """Return the unit each offset is in, -1 before the first."""
        units: Ints = np.searchsorted(self.starts, offsets, side="right") - 1
        return units


def find_units(data: bytes, size: int) -> Units:
    """Return the units of the first ``size`` bytes of a text."""
    text = np.frombuffer(data, np.uint8, count=size)
    ink = np.flatnonzero(text > _BLANK)
    starts = np.concatenate(([0], np.flatnonzero(text == _NEWLINE) + 1))
    position = np.searchsorted(ink, np.concatenate((starts, [size])))
    inked = np.flatnonzero(position[1:] > position[:-1])
    first = ink[position[inked]]
    last = ink[position[inked + 1] - 1] + 1
    begin = np.where(first - starts[inked] > _MARGIN, first, starts[inked])

    # A short text is padded, so that four bytes follow each place; in a long one the
    # last places are shifted instead, which saves a copy.
    if len(text) < 1 << 16:
        padded = np.concatenate((text, np.zeros(4, np.uint8)))
    else:
        padded = text
    at = np.minimum(first, len(padded) - 4)
    words = np.zeros(len(first), np.uint32)
    for byte in range(4):
        words |= padded[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    words >>= ((first - at) * 8).astype(np.uint32)

    units = Units(begin, first, last, inked + 1, np.ones(len(inked), np.bool_), words)
    wide = np.flatnonzero(last - begin > WIDE)
    if len(wide):
        return _cut_wide(text, ink, units, wide)
    return units


def _cut_wide(text: NDArray[np.uint8], ink: Ints, units: Units, wide: Ints) -> Units:
    """Return the units with the wide ones cut, between characters of UTF-8."""
    ends = units.last[wide].tolist()
    cuts = [
        np.arange(start + _WINDOW, end - _REST, _WINDOW)
        for start, end in zip(units.starts[wide].tolist(), ends, strict=True)
    ]
    inner = np.concatenate(cuts)
    # Back to the beginning of a character: at most three bytes follow the one that
    # begins it.
    for _ in range(3):
        inner = inner - ((text[inner] & CHARACTER_MASK) == CHARACTER_REST)
    owner = np.repeat(wide, [len(cut) for cut in cuts])
    order = np.argsort(np.concatenate((units.starts, inner)), kind="stable")
    # Stable: a unit's own beginning stays before the cuts inside it.
    starts = np.concatenate((units.starts, inner))[order]
    bounds = np.append(starts[1:], len(text))
    return Units(
        starts=starts,
        first=np.concatenate((units.first, inner))[order],
        last=ink[np.searchsorted(ink, bounds) - 1] + 1,
        lines=np.concatenate((units.lines, units.lines[owner]))[order],
        whole=np.concatenate((units.whole, np.zeros(len(inner), np.bool_)))[order],
        words=np.concatenate((units.words, np.zeros(len(inner), np.uint32)))[order],
    )


def rank_cuts(units: Units, language: str | None, spans: Ints, skips: Ints) -> Ints:
    """Return the cost of a cut before each unit.

    ``spans``: definitions as (start, end); ``skips``: comments and string text as (start, end), ordered.
    """
    after_gap = np.diff(units.lines, prepend=0) > 1
    # A definition opens after its first line and closes after its last: the cut before
    # the line that follows is free.
    first = units.find(spans[:, 0]) + 1
    final = units.find(spans[:, 1] - 1) + 1
    count = len(units.starts)
    # +1 where a definition opens, -1 where it closes; the running sum is the nesting
    # depth of each line.
    steps = np.bincount(first, minlength=count + 1) - np.bincount(
        final, minlength=count + 1
    )
    depth = np.minimum(np.cumsum(steps)[:count], _NESTED)

    # A unit belongs to the previous one if it closes or continues it, or if that is a
    # comment or a decorator about it.
    words = units.words
    hangs: NDArray[np.bool_] = _CLOSES[words & 0xFF] | (
        ((words & 0xFFFFFF) == _END) & ~_LETTER[words >> 24]
    )
    for word in _GOES_ON:
        hangs |= words == word
    introduces = (words & 0xFF) == ord("@")
    markers = LANGUAGES.get(language or "", UNKNOWN).comments
    for marker in (*markers, *filter(None, (_DECORATOR.get(language or ""),))):
        introduces |= (words & ((1 << 8 * len(marker)) - 1)) == int.from_bytes(
            marker, "little"
        )
    hangs[1:] |= introduces[:-1] & ~after_gap[1:]
    if len(skips):  # inside a comment or a string, or at the quote that ends it
        before = np.searchsorted(skips[:, 0], units.starts) - 1
        hangs |= (before >= 0) & (skips[before, 1] >= units.starts)

    indent = np.minimum(units.first - units.starts, _DEEPEST)
    ranks: Ints = (
        depth * STEP + hangs * _HANGS + indent * _INDENT + ~after_gap * _NO_GAP
    )
    # Only if nothing else is left to cut at.
    ranks[~units.whole] = _INSIDE
    return ranks


def choose_cuts(units: Units, ranks: Ints) -> list[Range]:
    """Return consecutive ranges of units, each at most ``HARD`` bytes: at the best cuts first."""
    chooser = _Chooser(units.starts.tolist(), units.last.tolist(), ranks)
    return chooser.join_tiny(chooser.cut_down())


@dataclass(frozen=True, slots=True)
class _Chooser:
    """The units of a text and the cost of a cut before each."""

    starts: list[int]
    last: list[int]
    """Offsets after the last non-blank byte of each unit."""
    ranks: Ints

    def measure(self, first: int, end: int) -> int:
        """Return the bytes of a range."""
        return self.last[end - 1] - self.starts[first]

    def cut_down(self) -> list[Range]:
        """Return ranges that need no further cut."""
        ranges: list[Range] = []
        # A stack instead of recursion: a text may be nested deeper than Python allows.
        todo = [(0, len(self.starts))]
        while todo:
            first, end = todo.pop()
            if self._is_small(first, end):
                ranges.append((first, end))
                continue
            siblings = self._gather_siblings(first, end)
            siblings.reverse()
            todo.extend(siblings)
        return ranges

    def _is_small(self, first: int, end: int) -> bool:
        if end - first <= 1:
            return True
        size = self.measure(first, end)
        if size <= FULL:
            return True
        if size > HARD:
            return False
        # Where all cuts are in one definition, or all between paragraphs, none is
        # clearly better than another.
        steps = self.ranks[first + 1 : end] // STEP
        return bool(steps.max() == steps.min())

    def _gather_siblings(self, first: int, end: int) -> list[Range]:
        """Return the range cut at its best places, small neighbours gathered."""
        inner = self.ranks[first + 1 : end]
        best = np.flatnonzero(inner == inner.min())
        cuts = (best + first + 1).tolist()
        # Parts of about one size: cutting at the goal itself would leave a small rest
        # each time.
        total = self.measure(first, end)
        parts = max(2, round(total / _GOAL))
        goal = total / parts
        groups: list[Range] = []
        opened = first
        closed = cuts[0]
        for begin, after in zip(cuts, [*cuts[1:], end], strict=True):
            added = self.measure(begin, after)
            is_near_goal = self.measure(opened, closed) + added / 2 > goal
            if is_near_goal or self.measure(opened, after) > FULL:
                groups.append((opened, closed))
                opened = begin
            closed = after
        groups.append((opened, closed))
        return groups

    def join_tiny(self, ranges: Sequence[Range]) -> list[Range]:
        """Return the ranges, a tiny one joined to the neighbour that a worse cut parts it from, where that fits."""
        joined: list[Range] = []
        joins_next = False
        for first, end in ranges:
            is_tiny = self.measure(first, end) < _TINY
            belongs = joins_next or (is_tiny and self._is_near_previous(first, end))
            opened = first
            if joined:
                opened = joined[-1][0]
            size = self.measure(opened, end)
            if not joined or not belongs or size > HARD:
                joined.append((first, end))
                joins_next = is_tiny
                continue
            joined[-1] = (opened, end)
            joins_next = joins_next and size < _TINY
        return joined

    def _is_near_previous(self, first: int, end: int) -> bool:
        """Return whether the cut before a range is no better than the one after it."""
        if first == 0 or end == len(self.starts):
            return True
        return bool(self.ranks[first] >= self.ranks[end])
