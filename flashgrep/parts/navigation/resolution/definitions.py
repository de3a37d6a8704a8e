"""The files opened by one question, and the definitions of names in them, each looked up once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import Skipped
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.lookup import (
    FileSymbols,
    Role,
    matches_place,
    matches_qualifiers,
)
from flashgrep.parts.symbols.parse.model import TYPE_KINDS
from flashgrep.parts.symbols.symbol_source import SymbolSource

_LAST: Final = frozenset({"heading", "package"})
"""Kinds that define a name only if no code does."""


class Definitions:
    """Finds definitions in a source; ``never``: kinds that are left out."""

    def __init__(
        self, source: SymbolSource, never: frozenset[str] = frozenset()
    ) -> None:
        self.source = source
        self.files: dict[bytes, FileSymbols | None] = {}
        self.declared: dict[str, list[Definition]] = {}
        """The declarations among the definitions of each name looked up."""
        self.merged: dict[str, list[Definition]] = {}
        """The definitions of each name looked up, overloads as one."""
        self.skipped: dict[str, int] = {}
        """Files that were declined, counted by reason."""
        self._never = never
        self._known: dict[str, list[Definition]] = {}

    def open(self, path: bytes) -> FileSymbols | None:
        """Return a file with its symbols; None if it has none or is gone."""
        if path not in self.files:
            opened = self.source.open(path)
            if isinstance(opened, Skipped):
                self.skipped[opened.reason] = self.skipped.get(opened.reason, 0) + 1
                opened = None
            self.files[path] = opened
        return self.files[path]

    def find(
        self,
        name: str,
        choose: Callable[[list[bytes]], Iterable[bytes]],
        *,
        fold: bool = False,
    ) -> list[Definition]:
        """Return the definitions of a name; declarations only if there is no definition.

        ``choose``: selects and orders the files that may define it. ``fold`` ignores case.
        """
        if not fold and name in self._known:
            return self._known[name]
        paths = self.source.defining(name, prefix=False)
        by_role: dict[Role, list[Definition]] = {}
        for path in choose(
            self.source.candidates(name, fold=fold) if paths is None else paths
        ):
            checkpoint()
            symbols = self.open(path)
            for index in (
                symbols.defining(name, fold=fold) if symbols is not None else ()
            ):
                if symbols is not None and symbols.kind(index) not in self._never:
                    by_role.setdefault(symbols.defined_role(index), []).append(
                        Definition(path, symbols, index)
                    )
        declared = by_role.get("declaration", [])
        chosen = by_role.get("definition") or declared
        chosen = [
            definition for definition in chosen if definition.kind not in _LAST
        ] or chosen
        if not fold:
            self._known[name], self.declared[name] = chosen, declared
        return chosen

    def find_everywhere(self, name: str) -> list[Definition]:
        """Return the definitions of a name in all files that may define it."""
        return self.find(name, list)

    def find_at_lines(self, path: bytes, first: int, last: int) -> list[Definition]:
        """Return the innermost definitions that contain lines of a file."""
        symbols = self.open(path)
        if symbols is None:
            return []
        starts = list[int]()
        for line in range(first, last + 1):
            checkpoint()
            starts.append(symbols.lines.start(line))
            if starts[-1] >= len(symbols.data):
                break
        texts = [
            symbols.data[at : symbols.lines.start(symbols.lines.line(at) + 1)]
            for at in starts
        ]
        # A line's indentation belongs to the enclosing definition.
        firsts = (
            at + len(text) - len(text.lstrip())
            for at, text in zip(starts, texts, strict=True)
            if text.strip()
        )
        indexes = dict.fromkeys(symbols.around(at) for at in firsts)
        return [Definition(path, symbols, index) for index in indexes if index >= 0]


FindAncestors = Callable[[str], frozenset[str]]
"""Returns the names of all direct and indirect bases of a type."""


class Ancestors:
    """Finds the names of all direct and indirect base types, by name; cached, since every method asks for them."""

    def __init__(self, define: Callable[[str], Sequence[Definition]]) -> None:
        self._define = define
        self._known: dict[str, frozenset[str]] = {}

    def find(self, name: str) -> frozenset[str]:
        """Return the names of all bases of the types with a name."""
        if name not in self._known:
            self._known[name] = frozenset()  # ends cycles
            near: set[str] = set()
            for definition in self._define(name) if name else ():
                if definition.kind in TYPE_KINDS:
                    near.update(
                        map(
                            definition.symbols.word_at,
                            definition.symbols.bases(definition.index),
                        )
                    )
            self._known[name] = frozenset(near.union(*map(self.find, near)) - {name})
        return self._known[name]


def find_in_modules(
    named: Sequence[Definition], qualifiers: Sequence[str]
) -> list[Definition]:
    """Return the definitions whose module and container end a qualified name; the longest such end counts."""
    # `shop.cart.Cart.add`: callers write any end of the module's path, so the longest
    # that fits a definition is meant.
    for start in range(len(qualifiers)):
        names = [*qualifiers[start:]]
        ending = list[Definition]()
        for definition in named:
            occurrence = definition.symbols.defined(definition.index)
            data = definition.symbols.data
            if matches_place(occurrence, definition.path, data, names) or (
                start and matches_qualifiers(occurrence, names)
            ):
                ending.append(definition)
        if ending:
            return ending
    return []


def find_in_bases(
    qualifiers: Sequence[str], name: str, names: Names, find_ancestors: FindAncestors
) -> list[Definition]:
    """Return the inherited members of the type that the qualifiers name; of several, the nearest."""
    ending = f".{'.'.join(qualifiers)}"
    types = [
        definition
        for definition in names.definitions(qualifiers[-1])
        if definition.kind in TYPE_KINDS
    ]
    types = [
        definition
        for definition in types
        if f".{definition.qualified}".endswith(ending)
    ]
    if not types:
        return []
    if above := frozenset().union(*map(names.ancestors, types)):
        owned = [
            (definition, owner)
            for definition in names.definitions(name)
            if (owner := names.owner_of(definition)) is not None
        ]
        owned = [
            (definition, owner) for definition, owner in owned if owner.key in above
        ]
        hidden = frozenset().union(*(names.ancestors(owner) for _, owner in owned))
        return [definition for definition, owner in owned if owner.key not in hidden]
    # If bases are not resolved in the language, only their names connect the types.
    named_above = frozenset[str]().union(
        *(find_ancestors(definition.name) for definition in types)
    )
    owners_defining = [
        definition
        for definition in names.definitions(name)
        if definition.owner in named_above
    ]
    named_hidden = frozenset[str]().union(
        *(find_ancestors(definition.owner) for definition in owners_defining)
    )
    return [
        definition
        for definition in owners_defining
        if definition.owner not in named_hidden
    ]
