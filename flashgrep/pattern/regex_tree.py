"""The syntax tree of a pattern, independent of flags and notation, and properties derived from it.

CharSet  code points or bytes, as sorted, disjoint, inclusive ranges

Chars    one code point of a set, as UTF-8      Either   the first alternative that matches
Octet    one byte of a set                      Repeat   low..high times
Look     a condition that consumes nothing      Group    a capture
Concat   a sequence; without parts, the empty string
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

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
            # Adjacent ranges are merged too, so that sets are equal if and only if
            # their ranges are.
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
        found_ranges: list[Range] = []
        mine = 0
        yours = 0
        while mine < len(self.ranges) and yours < len(other.ranges):
            low = max(self.ranges[mine][0], other.ranges[yours][0])
            high = min(self.ranges[mine][1], other.ranges[yours][1])
            if low <= high:
                found_ranges.append((low, high))
            if self.ranges[mine][1] < other.ranges[yours][1]:
                mine += 1
            else:
                yours += 1
        return CharSet(tuple(found_ranges))

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
ANY_CHAR = CharSet(((0, 0xD7FF), (0xE000, MAX_CODE_POINT)))  # UTF-8 has no surrogates.
NEWLINE = CharSet(((10, 10),))
LINE_ENDS = CharSet.chars("\r\n")
ASCII_DIGIT = CharSet.of((0x30, 0x39))
ASCII_SPACE = CharSet.chars("\t\n\v\f\r ")
ASCII_WORD = CharSet.chars(
    "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)


LookKind = Literal[
    "text_start",
    "text_end",
    "line_start",
    "line_end",
    "line_start_crlf",
    "line_end_crlf",
    "word",
    "not_word",
    "word_start",
    "word_end",
    "half_start",
    "half_end",
]


@dataclass(frozen=True, slots=True)
class Chars:
    """One code point of `set`, encoded in UTF-8; `at` is its offset in the pattern."""

    set: CharSet
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ByteSet:
    """One byte of `set`, whether or not it is part of a character."""

    set: CharSet
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a position; word conditions look at neighbouring bytes if `ascii`, otherwise at code points."""

    kind: LookKind
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Concat:
    """A sequence of parts."""

    parts: "tuple[Node, ...]" = ()


@dataclass(frozen=True, slots=True)
class Alternation:
    """Alternatives; the first one with which the whole pattern matches is chosen."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times (None: unbounded)."""

    node: "Node"
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """A capture. What it matched is never used, but a group is not merged into a class as its content might be."""

    node: "Node"


Node = Chars | ByteSet | Assertion | Concat | Alternation | Repeat | Group

NEVER = ByteSet(CharSet())
_ENOUGH = 64


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first and parts in order."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Concat | Alternation):
            stack.extend(reversed(node.parts))
        elif isinstance(node, Repeat | Group):
            stack.append(node.node)


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the node with `change` applied to its parts; one without parts is returned as it is."""
    match node:
        case Concat(parts):
            return Concat(tuple(map(change, parts)))
        case Alternation(parts):
            return Alternation(tuple(map(change, parts)))
        case Repeat(inner, low, high, greedy):
            return Repeat(change(inner), low, high, greedy)
        case Group(inner):
            return Group(change(inner))
        case _:
            return node


def plain_bytes(node: Node) -> bytes | None:
    """Return the bytes that `node` matches if it is a single string without conditions."""
    match node:
        case Chars(found) | ByteSet(found) if len(found) == 1:
            value = found.ranges[0][0]
            if isinstance(node, Chars):
                return chr(value).encode()
            return bytes((value,))
        case Concat(parts):
            found_parts = [plain_bytes(part) for part in parts]
            if None in found_parts:
                return None
            return b"".join(part for part in found_parts if part is not None)
        case Group(inner):
            return plain_bytes(inner)
        case _:
            return None


def find_required_bytes(node: Node) -> bytes:
    """Return a long byte string, of at most 64 bytes, that is in every match of `node`; empty if none is found."""
    match node:
        case Concat(parts):
            best = run = b""
            for part in parts:
                plain = plain_bytes(part)
                if plain is None:
                    run = b""
                else:
                    run = run + plain
                best = max(
                    best, find_required_bytes(part) if plain is None else run, key=len
                )
                if len(best) >= _ENOUGH:
                    return best[:_ENOUGH]
            return best
        # Repeated at least once, so the match needs what a copy needs.
        case Group(inner) | Repeat(inner, low=1):
            return find_required_bytes(inner)
        case _:
            return (plain_bytes(node) or b"")[:_ENOUGH]


class Edge(NamedTuple):
    """The characters (or bytes) that a match may begin or end with, and whether the match may be empty."""

    chars: CharSet
    empty: bool


def edge(node: Node, *, first: bool) -> Edge:
    """Return what the matches of `node` begin with (`first`) or end with."""
    match node:
        case Chars(found) | ByteSet(found):
            return Edge(found, empty=False)
        case Assertion():
            return Edge(CharSet(), empty=True)
        case Alternation(parts):
            edges = [edge(part, first=first) for part in parts]
            ranges = (
                item for current_edge in edges for item in current_edge.chars.ranges
            )
            return Edge(
                CharSet.of(*ranges),
                empty=any(current_edge.empty for current_edge in edges),
            )
        case Concat(parts):
            return edge_of(parts if first else parts[::-1], first=first)
        case Repeat(inner, low):
            once = edge(inner, first=first)
            return Edge(once.chars, empty=low == 0 or once.empty)
        case Group(inner):
            return edge(inner, first=first)


def edge_of(parts: tuple[Node, ...], *, first: bool) -> Edge:
    """Return what a sequence may begin with (`first`) or end with; ``parts`` are given from that end on."""
    ranges: list[Range] = []
    for part in parts:
        found_edge = edge(part, first=first)
        ranges += found_edge.chars.ranges
        # This part always consumes a character, so what follows cannot be at the edge.
        if not found_edge.empty:
            return Edge(CharSet.of(*ranges), empty=False)
    return Edge(CharSet.of(*ranges), empty=True)
