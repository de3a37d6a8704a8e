"""Sets of code points (or of bytes) as sorted, disjoint, inclusive ranges."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Range = tuple[int, int]

MAX_CODE_POINT = 0x10FFFF
LAST_ASCII = 0x7F


@dataclass(frozen=True, slots=True)
class CharSet:
    """An immutable set of numbers; build one with `CharSet.of`."""

    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, *ranges: Range) -> "CharSet":
        """Return the union of inclusive ranges given in any order."""
        merged: list[Range] = []
        for low, high in sorted(ranges):
            # Adjacent ranges are joined too, so that equal sets have equal ranges and can be compared by them.
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    @classmethod
    def chars(cls, text: Iterable[str]) -> "CharSet":
        """Return the set of these characters."""
        return cls.of(*((ord(char), ord(char)) for char in text))

    def __contains__(self, value: int) -> bool:
        return any(low <= value <= high for low, high in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for low, high in self.ranges:
            yield from range(low, high + 1)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def __or__(self, other: "CharSet") -> "CharSet":
        return CharSet.of(*self.ranges, *other.ranges)

    def __and__(self, other: "CharSet") -> "CharSet":
        found: list[Range] = []
        mine, yours = 0, 0
        while mine < len(self.ranges) and yours < len(other.ranges):
            low = max(self.ranges[mine][0], other.ranges[yours][0])
            high = min(self.ranges[mine][1], other.ranges[yours][1])
            if low <= high:
                found.append((low, high))
            if self.ranges[mine][1] < other.ranges[yours][1]:
                mine += 1
            else:
                yours += 1
        return CharSet(tuple(found))

    def __sub__(self, other: "CharSet") -> "CharSet":
        gaps: list[Range] = []
        start = 0
        for low, high in other.ranges:
            if start < low:
                gaps.append((start, low - 1))
            start = high + 1
        return self & CharSet((*gaps, (start, MAX_CODE_POINT)))

    def __xor__(self, other: "CharSet") -> "CharSet":
        return (self | other) - (self & other)

    def __le__(self, other: "CharSet") -> bool:
        return (self & other).ranges == self.ranges

    def is_ascii(self) -> bool:
        """Return whether no member is above 127."""
        return not self.ranges or self.ranges[-1][1] <= LAST_ASCII


ASCII = CharSet(((0, LAST_ASCII),))
ANY_BYTE = CharSet(((0, 0xFF),))
ANY_CHAR = CharSet(((0, 0xD7FF), (0xE000, MAX_CODE_POINT)))  # No text in UTF-8 holds a surrogate.
NEWLINE = CharSet(((10, 10),))
LINE_ENDS = CharSet.chars("\r\n")
ASCII_DIGIT = CharSet.of((0x30, 0x39))
ASCII_SPACE = CharSet.chars("\t\n\v\f\r ")
ASCII_WORD = CharSet.chars("0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
