"""Structural types: types that satisfy an interface without declaring it, in Go, TypeScript and Python's protocols."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.navigation.resolution.ecma_signatures import may_implement
from flashgrep.parts.navigation.resolution.go_signatures import implements_method
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.symbol_graph import Definition, Resolution
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.model import NAME_END, TYPE_KINDS

_PROTOCOL: Final = re.compile(rb"\s*\([^)]*\bProtocol\b")
"""What follows a protocol's name in Python."""
MOST_TYPES: Final = 2_000
"""Most types whose members are compared with one interface, starting with those that define most of its names."""
_OPTIONAL: Final = b"?"
_COMPARED: Final = Resolution(0.95, "has its methods")
_ALIKE: Final = Resolution(0.5, "has its methods")
"""Parameter and result types are not compared in Python."""


def is_interface(one: Definition) -> bool:
    """Whether a type is structural: any type with its members conforms to it."""
    if one.language == "python":
        return (
            one.kind == "class"
            and _PROTOCOL.match(one.symbols.data, one.symbols.row(one.index)[NAME_END])
            is not None
        )
    return one.kind == "interface" and (one.language == "go" or one.language in ECMA)


def conforms(names: Names, owner: Definition, interface: Definition) -> bool:
    """Whether a type has everything an interface requires: by signatures, in Python only by name."""
    if (
        owner.key == interface.key
        or owner.language != interface.language
        or not is_interface(interface)
    ):
        return False
    compare = partial(_compare_members, names, owner, interface)
    return names.remember(("conforms", owner.key, interface.key), compare) is not None


def _compare_members(
    names: Names, owner: Definition, interface: Definition
) -> tuple[()] | None:
    """Return an empty tuple if a type has each member that an interface requires, else None."""
    members = list(_list_members(names, interface, set()))
    # An interface without methods describes data, not calls.
    if not any(definition.kind == "method" for definition in members):
        return None
    for definition in members:
        checkpoint()
        own = [
            value.definition
            for value in names.member(owner, definition.name)
            if value.definition is not None
        ]
        if definition.language == "go":
            own = [
                other
                for other in own
                if implements_method(names, definition, other, owner, interface)
            ]
        elif definition.kind == "method" and definition.language in ECMA:
            own = [other for other in own if may_implement(other, definition)]
        if not own:
            return None
    return ()


def resolve_conforming(
    names: Names, owner: Definition, interface: Definition
) -> Resolution | None:
    """Return the confidence that a type satisfies an interface; None: it does not."""
    if not conforms(names, owner, interface):
        return None
    return _ALIKE if owner.language == "python" else _COMPARED


def _group_by_type(
    names: Names, members: Iterable[str], language: str
) -> list[tuple[Definition, set[str]]]:
    """Return for each type that defines some of these members one of them, and the names that it defines.

    The types are not looked up.
    """
    owned: dict[tuple[object, ...], tuple[Definition, set[str]]] = {}
    for name in sorted(members):
        for definition in names.definitions(name):
            checkpoint()
            if definition.language != language:
                continue
            around = definition.symbols.parent(definition.index)
            if around >= 0:
                key: tuple[object, ...] = (definition.path, around)
            elif definition.owner:
                key = (definition.path.rpartition(b"/")[0], definition.owner)
            else:
                continue
            _, defined = owned.setdefault(key, (definition, set()))
            defined.add(definition.name)
    return list(owned.values())


def find_conforming(
    names: Names, interface: Definition
) -> tuple[list[tuple[Definition, Resolution]], int]:
    """Return the types that satisfy an interface, and how many types were not checked.

    Types that inherit all of it are subtypes of these and not included.
    """
    if not is_interface(interface):
        return [], 0
    matching_names = {
        member.name
        for member in _list_members(names, interface, set())
        if member.kind == "method"
    }
    owned = _group_by_type(names, matching_names, interface.language)
    conforming = list[tuple[Definition, Resolution]]()
    looked_at = 0
    left_out = 0
    for method, has in sorted(owned, key=lambda pair: -len(pair[1])):
        checkpoint()
        owner = names.owner_of(method)
        if (
            owner is None
            or owner.kind not in TYPE_KINDS | {"type"}
            or is_interface(owner)
        ):
            continue
        # In Go a type without bases has no other methods; elsewhere they may be
        # assigned.
        if (
            len(has) < len(matching_names)
            and owner.language == "go"
            and not any(owner.symbols.bases(owner.index))
        ):
            continue
        if looked_at >= MOST_TYPES:
            left_out += 1
            continue
        looked_at += 1
        if (how := resolve_conforming(names, owner, interface)) is not None:
            conforming.append((owner, how))
    return conforming, left_out


def _list_members(
    names: Names, interface: Definition, seen: set[tuple[bytes, int]]
) -> Iterator[Definition]:
    """Yield the members required by an interface and those it extends."""
    seen.add(interface.key)
    symbols = interface.symbols
    for index in range(interface.index + 1, symbols.count):
        end = symbols.row(index)[NAME_END]
        if (
            symbols.parent(index) == interface.index
            and symbols.data[end : end + 1] != _OPTIONAL
        ):
            yield Definition(interface.path, symbols, index)
    for base in names.bases(interface)[0]:
        if base.key not in seen:
            yield from _list_members(names, base, seen)
