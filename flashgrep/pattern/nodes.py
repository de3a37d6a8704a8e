"""The parsed pattern: a small tree free of flags and of syntax.

Chars    one code point of a set, as UTF-8      Either   the first alternative that fits
Octet    one byte of a set                      Repeat   low..high times
Look     a condition that consumes nothing      Group    a capture
Concat   one after the other; no parts: the empty string
"""

from dataclasses import dataclass, field
from typing import Literal

from flashgrep.pattern.charset import CharSet

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
    """One code point of `set`, encoded in UTF-8; `at` is where the pattern says so."""

    set: CharSet
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Octet:
    """One byte of `set`, whatever stands around it."""

    set: CharSet
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on a position; `ascii` word conditions judge the neighbouring bytes, the others code points."""

    kind: LookKind
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Concat:
    """One part after the other."""

    parts: "tuple[Node, ...]" = ()


@dataclass(frozen=True, slots=True)
class Either:
    """The first alternative under which the whole matches."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times (None: no bound)."""

    node: "Node"
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """A capture; numbers start at 1 and run over all texts of a pattern."""

    node: "Node"
    index: int
    name: str | None = None


Node = Chars | Octet | Look | Concat | Either | Repeat | Group

EMPTY = Concat()
NEVER = Octet(CharSet())
