"""What a call in C# means: a member of its receiver's type, or a method that extends the type.

An extension is a static method whose first parameter is marked with ``this``; a file sees those of the namespaces that
it is in or uses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flashgrep.parts.navigation.resolution.call_meaning import (
    Fit,
    Meaning,
    Types,
    judge_fit,
)
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.overloads import list_accepting, read_list
from flashgrep.parts.navigation.resolution.sites import (
    UNKNOWN,
    Site,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import (
    is_type_parameter,
    read_bound,
    split_list,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, NAME, NAME_END
from flashgrep.parts.symbols.symbol_source import imports_of

_EXTENDED: Final = re.compile(
    rb"this\s+(?:(?:in|ref|readonly)\s+)*((?:[\w]+\s*(?:\.|::)\s*)*[A-Za-z_]\w*)"
)
_QUERIES: Final = frozenset(
    {"Aggregate", "All", "Any", "Append", "AsEnumerable", "Average", "Cast", "Concat", "Contains", "Count", "Distinct"}
    | {"ElementAt", "Except", "First", "FirstOrDefault", "GroupBy", "Intersect", "Join", "Last", "LastOrDefault", "Max"}
    | {"Min", "OfType", "OrderBy", "Reverse", "Select", "SelectMany", "Single", "SingleOrDefault", "Skip", "SkipWhile"}
    | {"Sum", "Take", "TakeWhile", "ThenBy", "ToArray", "ToDictionary", "ToList", "ToLookup", "Union", "Where", "Zip"}
)  # fmt: skip
"""The methods with which the library extends all sequences."""
_QUERIED: Final = "System.Linq"
_ANYTHING: Final = frozenset({"object", "dynamic", "Object"})


@dataclass
class CsharpCalls:
    """Finds what calls mean for one question."""

    types: Types

    def find_on(
        self,
        site: Site,
        name: str,
        receiver: Type,
    ) -> Meaning:
        """Return what a call on a receiver means."""
        end = site.offset + len(name.encode())
        has_property = False
        own = list[Definition]()
        if isinstance(receiver, Definition):
            members, _ = self.types.members(receiver, name)
            for member in members:
                is_called = member.kind in CALLABLE_KINDS
                has_property = has_property or not is_called
                if is_called:
                    own += find_overloads(member)
        # One that takes the arguments comes before what extends the type.
        accepting = list_accepting(own, site.symbols, end)
        if accepting:
            return Meaning(tuple(accepting), receiver, is_sure=True)
        # Of what is visible, what surely extends the type comes before what may.
        by_fit: dict[Fit, list[Definition]] = {fit: [] for fit in Fit}
        for extension in self._list_visible(site, name):
            fit = self._judge(extension, receiver)
            by_fit[fit].append(extension)
        fitting = by_fit[Fit.YES]
        fitting = list_accepting(fitting, site.symbols, end) or fitting
        if fitting and not has_property:
            return Meaning(tuple(fitting), receiver, is_sure=True)
        # Arguments that are not understood rule out no member.
        if own:
            return Meaning(tuple(own), receiver, is_sure=True)
        possible = fitting or by_fit[Fit.UNKNOWN]
        possible = list_accepting(possible, site.symbols, end)
        return Meaning(tuple(possible), receiver, is_sure=False, is_hidden=has_property)

    def _list_visible(
        self,
        site: Site,
        name: str,
    ) -> Iterator[Definition]:
        """Yield the methods of a name that extend a type and are visible at a place."""
        for family in self.types.names.definitions(name):
            if not self._is_visible(site, family):
                continue
            for definition in find_overloads(family):
                if read_extended_type(definition) is not None:
                    yield definition

    def _is_visible(
        self,
        site: Site,
        extension: Definition,
    ) -> bool:
        """Whether a file is in the namespace of an extension, or uses it or its class."""
        package = extension.package
        own = site.symbols.package
        # What is in no namespace is visible everywhere, and inner namespaces see what is in
        # outer ones.
        if not package or f"{own}.".startswith(f"{package}."):
            return True
        around = extension.full_name.rpartition(".")[0]
        modules = {star.module for star in imports_of(site.symbols).stars}
        return package in modules or around in modules

    def _judge(
        self,
        extension: Definition,
        receiver: Type,
    ) -> Fit:
        """Return whether a method extends the type of a receiver."""
        name, parts = read_extended_type(extension) or ("", [])
        symbols = extension.symbols
        if is_type_parameter(extension, name):
            # ``T This<T>(this T value) where T : Crane`` extends what is a Crane.
            bound = read_bound(extension, name)
            if bound is None:
                return Fit.YES
            name = bound[1]
            parts = []
        if name in _ANYTHING:
            return Fit.YES
        if receiver is UNKNOWN:
            return Fit.UNKNOWN
        site = Site(extension.path, symbols, symbols.row(extension.index)[NAME])
        extended = self.types.find_written(site, name, len(parts))
        return judge_fit(self.types, extended, receiver)


def may_be_query(
    symbols: FileSymbols,
    name: str,
) -> bool:
    """Whether a method called by name may be one of the library's on sequences."""
    modules = {star.module for star in imports_of(symbols).stars}
    return name in _QUERIES and _QUERIED in modules


def read_extended_type(definition: Definition) -> tuple[str, list[bytes]] | None:
    """Return the type that a method of C# extends, as it is written, and its arguments; None: it is no extension."""
    if definition.language != "csharp" or definition.kind not in CALLABLE_KINDS:
        return None
    symbols = definition.symbols
    row = symbols.row(definition.index)
    parameters = read_list(symbols.data, row[NAME_END])
    if not parameters:
        return None
    match = _EXTENDED.match(parameters[0])
    if match is None:
        return None
    return match[1].decode(), split_list(parameters[0], match.end(1))
