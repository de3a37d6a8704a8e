"""Types that have what an interface asks for, where none has to say so: in Go, TypeScript and Python's protocols."""

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from flashgrep.checkpoint import checkpoint
from flashgrep.ingest.parse.imports import ECMA
from flashgrep.ingest.parse.model import NAME_END, TYPE_KINDS
from flashgrep.search.inference import Names
from flashgrep.search.research_graph import Definition, Resolution

_PROTOCOL: Final = re.compile(rb"\s*\([^)]*\bProtocol\b")
"""What follows a protocol's name in Python."""
MOST_MEMBERS: Final = 2_000
"""Methods of the names asked for whose types are looked at."""
_OPTIONAL: Final = b"?"
_EXACT: Final = Resolution(0.9, "has its methods")
_ALIKE: Final = Resolution(0.5, "has its methods")
"""Elsewhere than in Go what is given and taken is not compared."""


def is_interface(one: Definition) -> bool:
    """Whether whatever has the members of a type is one of it."""
    if one.language == "python":
        return (
            one.kind == "class" and _PROTOCOL.match(one.symbols.data, one.symbols.row(one.index)[NAME_END]) is not None
        )
    return one.kind == "interface" and (one.language == "go" or one.language in ECMA)


def conforms(names: Names, owner: Definition, interface: Definition) -> bool:
    """Whether a type has all that an interface asks for: in Go with as many parameters, elsewhere by name alone."""

    def find() -> tuple[()] | None:
        asked = list(_list_members(names, interface, set()))
        # An interface without methods says how data look, which says nothing of calls.
        if not any(one.kind == "method" for one in asked):
            return None
        for one in asked:
            checkpoint()
            own = [value.definition for value in names.member(owner, one.name) if value.definition is not None]
            if not own:
                return None
            if one.language == "go" and _count_parameters(one) not in map(_count_parameters, own):
                return None
        return ()

    if owner.key == interface.key or owner.language != interface.language or not is_interface(interface):
        return False
    return names.remember(("conforms", owner.key, interface.key), find) is not None


def resolve_conforming(names: Names, owner: Definition, interface: Definition) -> Resolution | None:
    """Return how sure it is that a type is one of an interface; None: it lacks something."""
    if not conforms(names, owner, interface):
        return None
    return _EXACT if owner.language == "go" else _ALIKE


def find_conforming(names: Names, interface: Definition) -> Iterator[tuple[Definition, Resolution]]:
    """Yield the types that have all that an interface asks for, but for those that inherit all of it."""
    if not is_interface(interface):
        return
    defined = [names.definitions(one.name) for one in _list_members(names, interface, set()) if one.kind == "method"]
    # The names that fewest have come first: of a type that inherits one of them another may be its own.
    defined.sort(key=len)
    seen = set()
    for one in islice(chain.from_iterable(defined), MOST_MEMBERS):
        owner = names.owner_of(one)
        if owner is not None and owner.key not in seen and owner.kind in TYPE_KINDS | {"type"}:
            seen.add(owner.key)
            how = None if is_interface(owner) else resolve_conforming(names, owner, interface)
            if how is not None:
                yield owner, how


def _list_members(names: Names, interface: Definition, seen: set[tuple[bytes, int]]) -> Iterator[Definition]:
    """Yield the members that an interface, and those it builds upon, must have."""
    seen.add(interface.key)
    symbols = interface.symbols
    for index in range(interface.index + 1, len(symbols.rows)):
        end = symbols.row(index)[NAME_END]
        if symbols.parent(index) == interface.index and symbols.data[end : end + 1] != _OPTIONAL:
            yield Definition(interface.path, symbols, index)
    for base in names.bases(interface)[0]:
        if base.key not in seen:
            yield from _list_members(names, base, seen)


def _count_parameters(method: Definition) -> int:
    """Return how many parameters a method of Go has."""
    data, depth, commas, is_empty = method.symbols.data, 0, 0, True
    for at in range(method.symbols.row(method.index)[NAME_END], len(data)):
        sign = data[at : at + 1]
        depth += (sign in b"([{") - (sign in b")]}")
        if depth == 0:
            break
        commas += depth == 1 and sign == b","
        is_empty = is_empty and (sign.isspace() or sign == b"(")
    return 0 if is_empty else commas + 1
