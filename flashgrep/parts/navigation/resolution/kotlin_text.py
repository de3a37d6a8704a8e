"""What Kotlin's declarations write: the type that a function extends, and whose members a lambda sees."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from flashgrep.parts.navigation.resolution.overloads import read_kotlin_parameters
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import is_type_parameter
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    END,
    NAME,
    NAME_END,
    QUALIFIER,
    QUALIFIER_END,
    START,
)


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Return a pattern in which PATH stands for the name of a type, and ARGUMENTS for those behind it."""
    pattern = pattern.replace(b"PATH", rb"([A-Za-z_][\w.]*)")
    pattern = pattern.replace(b"ARGUMENTS", rb"(?:<[^(){}]{0,200}>)?")
    return re.compile(pattern)


_PATH_BEFORE: Final = _compile(rb"PATH\Z")
_ON_RECEIVER: Final = _compile(
    rb"[:=(]\s*(?:suspend\s+)?\(?\s*(?:suspend\s+)?PATHARGUMENTS\.\s*\([^=]{0,500}->"
)
"""A function's type with a receiver, as a parameter or an alias writes it: ``Scope.(Int) -> Unit``."""
_DECLARED_LAMBDA: Final = _compile(
    rb"\b(?:val|var)\s+\w+\s*:\s*(?:suspend\s+)?\(?PATHARGUMENTS\.\s*\([^={}]*->[^={}]*=\s*\Z"
)
_NAMED: Final = _compile(rb":\s*(?:suspend\s+)?PATHARGUMENTS\??\s*(?:=[^>]*)?\Z")
"""A parameter with a plain type, which may be an alias."""
_ALIASED: Final = _compile(rb"\s*ARGUMENTS\s*=\s*PATHARGUMENTS\??\s*\Z")
_BODY: Final = re.compile(rb"[^={]*([={])")
_BRACES: Final = re.compile(rb"[{}]")
_BRACKETS: Final = re.compile(rb"[()]")
_PRIVATE: Final = re.compile(rb"\bprivate\b")
_MOST_BOUNDS: Final = 5
"""Most type parameters that are bound by one another."""
_MOST_DEPTH: Final = 200
"""Most blocks around a place."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a file: where they begin, in order, and for each the one around it, -1: none."""

    starts: list[int]
    ends: list[int]
    around: list[int]

    def list_around(self, offset: int) -> list[int]:
        """Return where the blocks around an offset begin, innermost first."""
        at = bisect_left(self.starts, offset) - 1
        while at >= 0 and self.ends[at] <= offset:
            at = self.around[at]
        blocks = list[int]()
        while at >= 0 and len(blocks) < _MOST_DEPTH:
            blocks.append(self.starts[at])
            at = self.around[at]
        return blocks


def read_blocks(symbols: FileSymbols) -> Blocks:
    """Return the blocks of a file."""
    blocks = Blocks([], [], [])
    opened = list[int]()
    for match in _BRACES.finditer(symbols.data):
        at = match.start()
        if symbols.is_text(at):
            continue
        # A string's template has braces of its own, which are balanced.
        if match[0] == b"{":
            blocks.around.append(opened[-1] if opened else -1)
            opened.append(len(blocks.starts))
            blocks.starts.append(at)
            # One that is never closed reaches to the end.
            blocks.ends.append(len(symbols.data))
        elif opened:
            blocks.ends[opened.pop()] = at
    return blocks


def is_extension(definition: Definition) -> bool:
    """Whether a function is written for a type that it is not in."""
    if definition.language != "kotlin" or definition.index < 0:
        return False
    row = definition.symbols.row(definition.index)
    return row[QUALIFIER_END] > row[QUALIFIER]


def is_private(definition: Definition) -> bool:
    """Whether a definition is visible in its own file alone."""
    row = definition.symbols.row(definition.index)
    head = definition.symbols.data[row[START] : row[NAME]]
    return _PRIVATE.search(head) is not None


def read_receiver_type(definition: Definition) -> str:
    """Return the type that a function extends, as it is written."""
    row = definition.symbols.row(definition.index)
    match = _PATH_BEFORE.search(definition.symbols.data, row[START], row[QUALIFIER_END])
    if match is None:
        return ""
    return match[1].decode()


def read_receiver_bound(definition: Definition) -> str:
    """Return the type that a function's receiver must be of, as it is written, also that of a type parameter."""
    row = definition.symbols.row(definition.index)
    head = definition.symbols.data[row[START] : row[NAME_END]]
    written = read_receiver_type(definition)
    # ``fun <T : Base, SelfT : T> SelfT.f()`` extends Base.
    for _ in range(_MOST_BOUNDS):
        if not is_type_parameter(definition, written):
            return written
        word = re.escape(written.encode())
        bound = _compile(rb"[<,]\s*(?:reified\s+)?%s\s*:\s*PATH" % word)
        match = bound.search(head)
        if match is None:
            return "Any"
        written = match[1].decode()
    return written


def read_lambda_receiver(before: bytes) -> str:
    """Return the receiver that a declaration writes of the lambda that is its value; empty: none.

    ``before``: the text before the lambda.
    """
    match = _DECLARED_LAMBDA.search(before)
    if match is None:
        return ""
    return match[1].decode()


def read_alias(definition: Definition) -> str:
    """Return the type that an alias names, as it is written; empty: it is no plain type."""
    row = definition.symbols.row(definition.index)
    match = _ALIASED.match(definition.symbols.data, row[NAME_END], row[END])
    if match is None:
        return ""
    return match[1].decode()


def read_alias_receiver(definition: Definition) -> str:
    """Return the receiver of the functions that an alias names, as it is written; empty: they have none."""
    row = definition.symbols.row(definition.index)
    match = _ON_RECEIVER.search(definition.symbols.data, row[NAME_END], row[END])
    if match is None:
        return ""
    return match[1].decode()


def read_last_parameter(definition: Definition) -> tuple[str, str]:
    """Return the receiver of the lambda that a function takes last, and its type if that is a name; else empty."""
    parameters = read_kotlin_parameters(definition)
    if not parameters:
        return "", ""
    # Only the last may stand behind the parentheses of a call.
    on_receiver = _ON_RECEIVER.search(parameters[-1])
    if on_receiver is not None:
        return on_receiver[1].decode(), ""
    named = _NAMED.search(parameters[-1])
    if named is not None:
        return "", named[1].decode()
    return "", ""


def begins_body(definition: Definition, block: int) -> bool:
    """Whether a block is the body of the definition around it, and no lambda in its head or of its value."""
    symbols = definition.symbols
    data = symbols.data
    row = symbols.row(definition.index)
    depth = 0
    # A lambda in the list of parameters is the first value of one.
    at = row[NAME_END]
    for match in _BRACKETS.finditer(data, at, block):
        if symbols.is_text(match.start()):
            continue
        depth += 1 if match[0] == b"(" else -1
        if not depth:
            at = match.end()
            break
    if depth:
        return False
    # ``fun f() = g { }`` has no block of its own, and neither has a property.
    if definition.kind in {"function", "method", "constructor"}:
        # What stands first, an equals sign or a brace, says what it has.
        body = _BODY.match(data, at, block + 1)
        if body is None:
            return False
        return body.start(1) == block
    return definition.kind not in {"field", "property", "variable", "constant"}
