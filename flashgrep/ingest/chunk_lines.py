"""The places a text may be cut at: its lines that say something, and how bad a cut before each of them is.

Blank bytes are those up to 0x20. A rank orders cuts, the lower the better: by how deep in definitions a line is, by
whether it hangs on the line before, by its indentation, by a blank line before it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flashgrep.languages import LANGUAGES, UNKNOWN

Ints = NDArray[np.int64]

WIDE: Final = 1_500
"""A line of more bytes is cut inside."""
_WINDOW: Final = 1_000
_REST: Final = 250
"""Least bytes left of a line after a cut inside it; keeps clear of its ``\\r\\n`` too."""
_MARGIN: Final = 200
"""Blanks at a line's beginning that may count as indentation."""
_BLANK: Final = 0x20
_NEWLINE: Final = 10
CHARACTER_MASK: Final = 0xC0
CHARACTER_REST: Final = 0x80
"""A byte of UTF-8 under the mask that does not begin a character; at most three follow one that does."""
STEP: Final = 1_000
"""Between the ranks of cuts through one more definition."""
_HANGS: Final = 500
_INDENT: Final = 10
_DEEPEST: Final = 40
"""Columns of indentation told apart; keeps the terms of a rank from running into each other."""
_NO_GAP: Final = 5
_NESTED: Final = 60
"""Definitions in definitions told apart; bounds how often a text is cut anew."""
_INSIDE: Final = 1 << 60
"""Rank of a cut inside a line: above any depth."""
_CLOSES: Final = np.isin(np.arange(256, dtype=np.uint8), np.frombuffer(b")]}", np.uint8))
"""By first byte: whether a line closes what is before."""
_GOES_ON: Final = tuple(
    int.from_bytes(word, "little") for word in b"else elif exce fina catc resc ensu then done esac".split()
)
"""First four letters of words that go on with the statement before."""
_END: Final = int.from_bytes(b"end", "little")
_LETTER: Final = np.array([chr(byte).isalnum() or byte == ord("_") for byte in range(256)])
_DECORATOR: Final = {"csharp": b"[", "rust": b"#[", "php": b"#[", "cpp": b"[["}


@dataclass(frozen=True, slots=True)
class Units:
    """Lines that are not blank, or windows of long lines; all columns are of one length."""

    starts: Ints
    """Offset each begins at."""
    first: Ints
    """Offset of its first byte that is not blank."""
    last: Ints
    """Offset after the last byte, in it or before it, that is not blank."""
    lines: Ints
    """Line number from 1."""
    whole: NDArray[np.bool_]
    """False where it goes on with a line begun before."""
    words: NDArray[np.uint32]
    """Its first four bytes from ``first`` on, little endian."""

    def at(self, offsets: Ints) -> Ints:
        """Return the unit each offset is in, -1 before the first."""
        found: Ints = np.searchsorted(self.starts, offsets, side="right") - 1
        return found

    def gaps(self) -> NDArray[np.bool_]:
        """Return whether a blank line stands before each."""
        return np.diff(self.lines, prepend=0) > 1


def units_of(data: bytes, size: int) -> Units:
    """Return the units of the first ``size`` bytes of a text."""
    text = np.frombuffer(data, np.uint8, count=size)
    ink = np.flatnonzero(text > _BLANK)
    breaks = np.flatnonzero(text == _NEWLINE) + 1
    starts = np.concatenate(([0], breaks))
    position = np.searchsorted(ink, np.concatenate((starts, [size])))
    said = np.flatnonzero(position[1:] > position[:-1])
    first, last = ink[position[said]], ink[position[said + 1] - 1] + 1
    begin = np.where(first - starts[said] > _MARGIN, first, starts[said])
    whole = np.ones(len(said), np.bool_)
    units = Units(begin, first, last, said + 1, whole, _words(text, first))
    wide = np.flatnonzero(last - begin > WIDE)
    return _windowed(text, ink, units, wide) if len(wide) else units


def ranks_of(units: Units, language: str | None, spans: Ints, skips: Ints) -> Ints:
    """Return how bad a cut before each unit is.

    ``spans``: definitions as (start, end); ``skips``: comments and string text as (start, end), ordered.
    """
    gaps = units.gaps()
    hangs = _hanging(units, language, gaps) | _within(units.starts, skips)
    indent = np.minimum(units.first - units.starts, _DEEPEST)
    ranks: Ints = _depth(units, spans) * STEP + hangs * _HANGS + indent * _INDENT + ~gaps * _NO_GAP
    ranks[~units.whole] = _INSIDE
    return ranks


def _words(text: NDArray[np.uint8], first: Ints) -> NDArray[np.uint32]:
    padded = np.concatenate((text, np.zeros(4, np.uint8))) if len(text) < 1 << 16 else text
    at = np.minimum(first, len(padded) - 4)
    words = np.zeros(len(first), np.uint32)
    for byte in range(4):
        words |= padded[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    words >>= ((first - at) * 8).astype(np.uint32)
    return words


def _windowed(text: NDArray[np.uint8], ink: Ints, units: Units, wide: Ints) -> Units:
    """Return the units with the long ones cut, between characters of UTF-8."""
    ends = units.last[wide].tolist()
    cuts = [
        np.arange(start + _WINDOW, end - _REST, _WINDOW)
        for start, end in zip(units.starts[wide].tolist(), ends, strict=True)
    ]
    inner = np.concatenate(cuts)
    for _ in range(3):
        inner = inner - ((text[inner] & CHARACTER_MASK) == CHARACTER_REST)
    owner = np.repeat(wide, [len(cut) for cut in cuts])
    order = np.argsort(np.concatenate((units.starts, inner)), kind="stable")
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


def _depth(units: Units, spans: Ints) -> Ints:
    """Return how many of the spans a cut before each unit would go through."""
    count = len(units.starts)
    first, final = units.at(spans[:, 0]) + 1, units.at(spans[:, 1] - 1) + 1
    steps = np.bincount(first, minlength=count + 1) - np.bincount(final, minlength=count + 1)
    # A span opens after its first line and closes after its last: the cut before the line that follows is free.
    depth: Ints = np.minimum(np.cumsum(steps)[:count], _NESTED)
    return depth


def _hanging(units: Units, language: str | None, gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether each unit closes or goes on with what is before, or is what a comment or a decorator is about."""
    letters = units.words & 0xFF
    closes = _CLOSES[letters]
    for word in _GOES_ON:
        closes = closes | (units.words == word)
    closes |= ((units.words & 0xFFFFFF) == _END) & ~_LETTER[units.words >> 24]
    about = np.zeros(len(letters), np.bool_)
    about[1:] = _introduces(units.words, language)[:-1] & ~gaps[1:]
    hangs: NDArray[np.bool_] = closes | about
    return hangs


def _introduces(words: NDArray[np.uint32], language: str | None) -> NDArray[np.bool_]:
    """Return whether each line is a comment or a decorator."""
    found: NDArray[np.bool_] = (words & 0xFF) == ord("@")
    markers = LANGUAGES.get(language or "", UNKNOWN).comments
    for marker in (*markers, *filter(None, (_DECORATOR.get(language or ""),))):
        mask = (1 << 8 * len(marker)) - 1
        found = found | ((words & mask) == int.from_bytes(marker, "little"))
    return found


def _within(offsets: Ints, spans: Ints) -> NDArray[np.bool_]:
    """Return whether each offset is inside a span, or at the quote that ends it."""
    if not len(spans):
        return np.zeros(len(offsets), np.bool_)
    before = np.searchsorted(spans[:, 0], offsets) - 1
    inside: NDArray[np.bool_] = (before >= 0) & (spans[before, 1] >= offsets)
    return inside
