"""Markdown's headings: which cut is best between sections, and the path of headings a place is under."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np

from flashgrep.ingest.chunk_lines import STEP, Ints, Units

_SEPARATOR: Final = " > "
_TITLE_CHARS: Final = 120
_LEVELS: Final = 6
_TEXT: Final = STEP
"""Rank added to a cut that is not before a heading."""
_FENCED: Final = 2 * STEP
"""Rank added to a cut in a fence, or between a heading and what is under it."""
_MARKS: Final = np.frombuffer(b"#=-`~", np.uint8)
"""First letters of the lines that may make or fence off a heading."""


@dataclass(frozen=True, slots=True)
class Sections:
    """The headings of a text, in order."""

    offsets: list[int]
    paths: list[str]
    ranks: Ints

    def name(self, start: int, end: int) -> str:
        """Return the path of headings a chunk begins under, empty for none.

        A heading in its first quarter counts when it is below that one: what stood between was an introduction.
        """
        index = max(0, bisect_right(self.offsets, start) - 1)
        if index >= len(self.offsets) or self.offsets[index] >= end:
            return ""
        first = self.paths[index]
        later = self.paths[max(index, bisect_right(self.offsets, start + (end - start) // 4) - 1)]
        return later if later.startswith(first + _SEPARATOR) else first


def sections_of(data: bytes, units: Units, ranks: Ints) -> Sections:
    """Return the headings, and the ranks given with cuts before headings made the best ones."""
    found, fenced = _headings(data, units)
    ranks = ranks + _TEXT
    for first, end in fenced:
        ranks[first + 1 : end] += _FENCED
    for unit, level, _ in found:
        ranks[unit] = level
        ranks[unit + 1 : unit + 2] += _FENCED
    stack: list[tuple[int, str]] = []
    paths: list[str] = []
    for _, level, title in found:
        stack = [*(above for above in stack if above[0] < level), (level, title)]
        paths.append(_SEPARATOR.join(text for _, text in stack))
    return Sections([int(units.starts[unit]) for unit, _, _ in found], paths, ranks)


def _headings(data: bytes, units: Units) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """Return (unit, level, title) of each heading, and the ranges of units in fences or front matter."""
    letters = (units.words & 0xFF).astype(np.uint8)
    found: list[tuple[int, int, str]] = []
    fenced: list[tuple[int, int]] = []
    fence, opened = b"", 0
    for unit in np.flatnonzero(np.isin(letters, _MARKS) & units.whole).tolist():
        line = data[int(units.first[unit]) : int(units.last[unit])]
        mark = line[:1] * (len(line) - len(line.lstrip(line[:1])))
        if fence:
            if line.startswith(fence) and not line.strip(fence[:1]):
                fenced.append((opened, unit + 1))
                fence = b""
        elif (mark[:1] in b"`~" and len(mark) >= len(b"```")) or (unit == 0 and line == b"---"):
            fence, opened = mark, unit
        elif mark[:1] == b"#":
            if len(mark) <= _LEVELS and line[len(mark) : len(mark) + 1] in b" \t":
                found.append((unit, len(mark), _title(line)))
        elif mark == line and _underlines(units, unit) and mark[:1] in b"=-":
            above = data[int(units.first[unit - 1]) : int(units.last[unit - 1])]
            found.append((unit - 1, 1 if mark[:1] == b"=" else 2, _title(above)))
    if fence:
        fenced.append((opened, len(units.starts)))
    return found, fenced


def _underlines(units: Units, unit: int) -> bool:
    """Whether the line right above may be a heading's text."""
    if unit == 0 or not units.whole[unit - 1] or units.lines[unit] != units.lines[unit - 1] + 1:
        return False
    return chr(int(units.words[unit - 1]) & 0xFF) not in "#>-*+|`~="


def _title(line: bytes) -> str:
    text = line[: 4 * _TITLE_CHARS].decode("utf-8", "replace").strip()
    text = text.strip("#").strip() if text.startswith("#") else text
    return text[:_TITLE_CHARS]
