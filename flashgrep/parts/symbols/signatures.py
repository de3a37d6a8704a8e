"""Overloads: signatures without code, before the definition that has the code of all of them."""

from typing import Final

from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, NAME

OVERLOADED: Final = frozenset({"typescript", "tsx"})
"""Languages in which overloads end without a body."""
MOST_BETWEEN: Final = 100
"""Definitions that are looked at for the code of a signature: between them are other overloads, and parameters."""


def find_code(symbols: FileSymbols, index: int) -> int:
    """Return the definition that has the code of an overload.

    It follows the overload in the same scope. Return what was given if that has code, or if nothing has it.
    """
    if not is_signature(symbols, index):
        return index
    scope = symbols.parent(index)
    name = symbols.name(index)
    last = min(symbols.count, index + MOST_BETWEEN)
    for other in range(index + 1, last):
        # Most have another name, which is found out at once.
        start = symbols.row(other)[NAME]
        if not symbols.data.startswith(name.encode(), start):
            continue
        if symbols.name(other) != name:
            continue
        if symbols.parent(other) != scope:
            continue
        if not is_signature(symbols, other):
            return other
    return index


def is_signature(symbols: FileSymbols, index: int) -> bool:
    """Return whether a function ends as an overload does: before its code."""
    if symbols.kind(index) not in CALLABLE_KINDS:
        return False
    end = symbols.row(index)[END]
    line = symbols.lines.line(end - 1)
    text = symbols.lines.text(line)
    text = text.rstrip("; \t\r")
    if symbols.language == "python":
        return text.endswith("...")
    if symbols.language in OVERLOADED:
        return not text.endswith("}")
    return False
