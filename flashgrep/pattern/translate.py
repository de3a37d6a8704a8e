r"""Translating the tree to RE2's syntax, for bytes (RE2's Latin-1 mode: one byte is one character).

What RE2 can express depends on the text, so each program is made for a kind of text (`Kind`). For ASCII text a class
needs only its ASCII part, and RE2's `\b` is exact. For other text a Unicode `\b` has no counterpart, so the program
omits it; `exact` is then False: the matches are a superset, to be confirmed line by line.
"""

from dataclasses import dataclass
from typing import NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import BadPattern
from flashgrep.pattern.regex_tree import (
    ANY_BYTE,
    ASCII,
    ASCII_WORD,
    Alternation,
    Assertion,
    ByteSet,
    Chars,
    CharSet,
    Concat,
    Edge,
    Group,
    LookKind,
    Node,
    Repeat,
    edge_of,
)
from flashgrep.pattern.unicode import byte_classes, count_byte_classes

RE2_MAX_REPEAT = (
    1000  # RE2 rejects larger counts, and larger products of nested counts.
)
MAX_WEIGHT = 200_000  # Byte classes after unrolling; more would block the interpreter for 0.5 s and take 50 MB.
# Byte classes that unrolling may add for ASCII text. RE2's worst case is text times
# pattern, at about 5 ns a step, and it cannot be interrupted; with this limit it is 0.1
# ms per byte.
MAX_UNROLLED = 20_000
_NEVER = rb"[^\x00-\xff]"
_UNKNOWN = Edge(CharSet(), empty=True)
_PLAIN = frozenset(b"0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_COUNTS = {(0, None): b"*", (1, None): b"+", (0, 1): b"?"}
_ANCHORS: dict[LookKind, bytes] = {
    "text_start": rb"\A",
    "text_end": rb"\z",
    "line_start": b"(?m:^)",
    "line_end": b"(?m:$)",
    "line_start_crlf": b"(?m:^)",
    "line_end_crlf": b"(?m:$)",
}


class Kind(NamedTuple):
    """A kind of text: whether it is pure ASCII, and whether it has a carriage return."""

    ascii: bool
    carriage: bool


class Translation(NamedTuple):
    """RE2's pattern, and whether it matches exactly; otherwise it matches a superset."""

    pattern: bytes
    exact: bool


def translate(node: Node, kind: Kind) -> Translation:
    """Write `node` for RE2, without captures, which would make RE2 slower."""
    writer = _Writer(kind)
    pattern = writer.write(node)
    return Translation(pattern, writer.exact)


def check_weight(node: Node) -> None:
    """Reject a pattern that is too large for RE2.

    Raises:
        BadPattern: it unrolls to more byte classes than the limits allow.
    """
    # The first limit is for what repetitions add; what is written out is limited by
    # MAX_TEXT.
    added = _weight(node, plain=True, unrolled=True) - _weight(
        node, plain=True, unrolled=False
    )
    if added > MAX_UNROLLED or _weight(node, plain=False, unrolled=True) > MAX_WEIGHT:
        raise BadPattern(
            "pattern is too large once its repetitions are unrolled", at=0, construct=""
        )


def _weight(node: Node, *, plain: bool, unrolled: bool) -> int:
    """Return how many byte classes `node` needs, for ASCII text if `plain`, repetitions multiplied if `unrolled`."""
    checkpoint()
    match node:
        case Chars(found) if not plain and not found.is_ascii():
            return count_byte_classes(found)
        case Chars() | ByteSet() | Assertion():
            return 1
        case Concat(parts) | Alternation(parts):
            return 1 + sum(
                _weight(part, plain=plain, unrolled=unrolled) for part in parts
            )
        case Repeat(inner, low, high):
            if unrolled:
                times = max(low, high or 1, 1)
            else:
                times = 1
            return 1 + times * _weight(inner, plain=plain, unrolled=unrolled)
        case Group(inner):
            return _weight(inner, plain=plain, unrolled=unrolled)


def _repeat_product(node: Node) -> int:
    """Return the largest product of nested counts in `node`."""
    match node:
        case Repeat(inner, low, high):
            return max(low, high or 1, 1) * _repeat_product(inner)
        case Concat(parts) | Alternation(parts):
            return max(map(_repeat_product, parts), default=1)
        case Group(inner):
            return _repeat_product(inner)
        case _:
            return 1


@dataclass(slots=True)
class _Writer:
    kind: Kind
    exact: bool = True

    def write(self, node: Node) -> bytes:  # one case for each kind of node
        checkpoint()
        match node:
            case Chars(found):
                if self.kind.ascii:
                    return _byte_class(found & ASCII)
                return self.write(byte_classes(found))
            case ByteSet(found):
                return _byte_class(found)
            case Assertion():
                return self._look(node, _UNKNOWN, _UNKNOWN)
            case Concat(parts):
                written = []
                for at, part in enumerate(parts):
                    if isinstance(part, Assertion):
                        # A condition's translation depends on its neighbours, which are
                        # known only here.
                        before = edge_of(parts[:at][::-1], first=False)
                        after = edge_of(parts[at + 1 :], first=True)
                        written.append(self._look(part, before, after))
                    else:
                        written.append(self.write(part))
                return b"(?:" + b"".join(written) + b")"
            case Alternation(parts):
                return b"(?:" + b"|".join(map(self.write, parts)) + b")"
            case Repeat():
                return self._repeat(node)
            case Group(inner):
                return b"(?:" + self.write(inner) + b")"

    def _repeat(self, node: Repeat) -> bytes:
        low = node.low
        high = node.high
        lazy = b"" if node.greedy else b"?"
        copy = b"(?:" + self.write(node.node) + b")"
        if _repeat_product(node) <= RE2_MAX_REPEAT:
            if low == high:
                exactly = b"{%d}" % low
            else:
                exactly = b"{%d,%s}" % (low, b"" if high is None else b"%d" % high)
            return copy + _COUNTS.get((low, high), exactly) + lazy
        # More than RE2's limit: write out the required copies, then the optional ones,
        # each nested in the one before. x{1200,} is x 1200 times, then x*.
        if high is None:
            return copy * (low + 1) + b"*" + lazy
        if high - low > RE2_MAX_REPEAT:
            raise BadPattern(
                "counted repetition of more than 1000 optional parts",
                at=0,
                construct=f"{{{low},{high}}}",
            )
        return (
            copy * low + (b"(?:" + copy) * (high - low) + (b")?" + lazy) * (high - low)
        )

    def _look(self, look: Assertion, before: Edge, after: Edge) -> bytes:
        r"""Write a condition between two edges: as an anchor or by RE2's `\b` and `\B`; otherwise omit it."""
        kind = look.kind
        if kind in _ANCHORS:
            # RE2 has no CRLF anchors; if the text has no carriage return, the plain
            # ones mean the same.
            exact = not (kind.endswith("crlf") and self.kind.carriage)
            self.exact = self.exact and exact
            if exact:
                return _ANCHORS[kind]
            return b""
        # Only one side of a start or end boundary is inside the match; what it can be
        # decides how RE2 can express it.
        side = after if kind.endswith("start") else before
        seen = side.chars
        if self.kind.ascii:
            seen = side.chars & ASCII
        written: bytes | None = None
        if kind in {"word", "not_word"}:
            written = rb"\b" if kind == "word" else rb"\B"
        elif not side.empty and seen <= ASCII_WORD:
            written = rb"\b"
        elif not side.empty and not (seen & ASCII_WORD).ranges:
            # The neighbour is not a word character: a half boundary holds where \B
            # does, a whole one never.
            written = rb"\B" if kind.startswith("half") else _NEVER
        if written is not None and (look.ascii or self.kind.ascii):
            return written
        self.exact = False
        # Next to an ASCII word character, RE2's boundary holds wherever the Unicode one
        # does.
        sides = [side]
        if kind == "word":
            sides = [before, after]
        beside_word = any(not side.empty and side.chars <= ASCII_WORD for side in sides)
        if written == rb"\b" and beside_word:
            return rb"\b"
        return b""


def _byte_class(found: CharSet) -> bytes:
    if not found.ranges:
        return _NEVER
    if found == ANY_BYTE:
        return rb"[\x00-\xff]"
    if len(found) == 1:
        return _byte(found.ranges[0][0])
    ranges = (
        _byte(low) + (b"-" + _byte(high) if high > low else b"")
        for low, high in found.ranges
    )
    return b"[" + b"".join(ranges) + b"]"


def _byte(value: int) -> bytes:
    if value in _PLAIN:
        return bytes((value,))
    return b"\\x%02x" % value
