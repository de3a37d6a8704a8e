"""Which definition a caller means: by a name in any spelling, or by a place as it is printed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from flashgrep.api.view import View
from flashgrep.base.errors import Conflict, InvalidParams, NotFound
from flashgrep.base.model import path_to_text
from flashgrep.base.places import SYMBOL_OF_FILE, find_places
from flashgrep.files.globs import PathFilter
from flashgrep.parts.navigation.navigation import Navigator, Place
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.refactoring.families import FamilySearch
from flashgrep.parts.refactoring.renaming import place_text
from flashgrep.parts.symbols.name_at_position import (
    NameAtPosition,
    find_name_at,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import NAME_END
from flashgrep.parts.symbols.qualified_names import ResolveName, find_resolution
from flashgrep.parts.symbols.symbol_search import (
    MOST_ALIKE,
    FoundSymbol,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import SymbolSource

_DEFINES: Final = frozenset({"definition", "declaration"})
_NO_SYMBOLS: Final = frozenset({"heading", "package"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a caller named: a line and perhaps a column of a file, or a name, perhaps below a folder or in a file."""

    spelled: str
    name: str = ""
    under: bytes = b""
    path: bytes = b""
    line: int = 0
    column: int | None = None
    resolve: ResolveName | None = None
    """Finds what a qualified name means; None: its text is compared."""

    def find(self, source: SymbolSource, *, is_one: bool = False) -> NameAtPosition:
        """Return the name; ``is_one``: overrides and overloads of it are other symbols.

        Raises:
            NotFound: nothing defines it.
            Conflict: several symbols have it.
            InvalidParams: there is no name at the place.

        """
        if not self.line:
            return self._find_by_name(source, is_one=is_one)
        column = self.column
        if column is None:
            column = _find_column(source, self.path, self.line)
        named = find_name_at(source, self.path, self.line, column or 1, "utf-32")
        if isinstance(named, NameAtPosition):
            return named
        raise InvalidParams(
            f"{self.spelled}: {named.detail or named.reason}; give FILE:LINE:COLUMN of a name",
            field="symbol_name",
        )

    def find_definition(self, source: SymbolSource) -> Place:
        """Return the one definition that is meant; raises as ``find``."""
        named = self.find(source, is_one=True)
        places = [
            place
            for place in Navigator(source).find_definitions(named).places
            if place.index >= 0
        ]
        if len(places) == 1:
            return places[0]
        if not places:
            message = f"{self.spelled}: no function, type or other definition"
            raise NotFound(message, reason="symbol_not_found")
        texts = [place_text(place) for place in places]
        message = f"{self.spelled} may be any of {', '.join(texts)}"
        raise Conflict(message, reason="ambiguous", places=texts)

    def _find_by_name(self, source: SymbolSource, *, is_one: bool) -> NameAtPosition:
        if self.under:
            keep = PathFilter((), (), under=self.under)
        else:
            keep = None
        question = SymbolQuestion(
            name=self.name,
            roles=_DEFINES,
            limit=MOST_ALIKE,
            keep=keep,
            resolve=self.resolve,
        )
        answer = SymbolSearch(source, question).run()
        symbols = [
            symbol
            for symbol in answer.results
            if symbol.occurrence.kind not in _NO_SYMBOLS
        ]
        if not symbols:
            near = answer.suggestions
            message = f"symbol not found: {self.spelled}"
            if near:
                message += f"; near: {', '.join(near)}"
            raise NotFound(message, reason="symbol_not_found", near=near)
        # A prototype is found with the definition, which has the code.
        defined = [
            symbol for symbol in symbols if symbol.occurrence.role == "definition"
        ]
        symbols = defined or symbols
        first = symbols[0]
        check_unique(source, self.spelled, symbols, is_one=is_one)
        opened = source.open(first.path)
        if not isinstance(opened, FileSymbols):
            raise NotFound(f"symbol not found: {self.spelled}")
        index = opened.index_at(first.occurrence.offset)
        end = opened.row(index)[NAME_END]
        return NameAtPosition(first.path, opened, first.occurrence.offset, end)


async def find_target(view: View, spelled: str, under: str | None) -> Target:
    """Return what a caller named."""
    # A name may look like a place, and a place like a name: the file must be there.
    for place in find_places(spelled):
        with suppress(NotFound):
            path = await view.resolve(place.path)
            return Target(
                spelled,
                path=path,
                line=place.first,
                column=place.column,
            )
    name = spelled
    resolve = find_resolution(view)
    match = SYMBOL_OF_FILE.fullmatch(spelled)
    if match is not None and not under:
        with suppress(NotFound):
            path = await view.resolve(match["path"])
            return Target(spelled, match["symbol"], path, resolve=resolve)
    if under:
        folder = await view.resolve(under)
    else:
        folder = b""
    return Target(spelled, name, folder, resolve=resolve)


def check_unique(
    source: SymbolSource,
    spelled: str,
    symbols: Sequence[FoundSymbol],
    *,
    is_one: bool,
) -> None:
    """Refuse a name that several symbols have.

    Raises:
        Conflict: they do; the error has their places.

    """
    if len(symbols) == 1:
        return
    navigator = Navigator(source)
    first = symbols[0]
    opened = navigator.open(first.path)
    if opened is None:
        return
    definition = Definition(
        first.path, opened, opened.index_at(first.occurrence.offset)
    )
    keys = {member.key for member in FamilySearch(navigator).run(definition)}
    if not is_one and all(
        (symbol.path, symbol.occurrence.offset) in keys for symbol in symbols
    ):
        return
    places = []
    for symbol in symbols:
        occurrence = symbol.occurrence
        name = f"{occurrence.container}.{occurrence.name}".removeprefix(".")
        place = f"{path_to_text(symbol.path)}:{occurrence.line}:{occurrence.column}"
        places.append(f"{place} {occurrence.kind} {name}")
    raise Conflict(
        f"{spelled} has {len(places)} definitions; give one by its place: {'; '.join(places)}",
        reason="ambiguous",
        places=places,
    )


def _find_column(source: SymbolSource, path: bytes, line: int) -> int | None:
    """Return the column of the name of the definition that begins in a line, or whose name is there."""
    symbols = source.open(path)
    if not isinstance(symbols, FileSymbols):
        return None
    for index in range(symbols.count):
        occurrence = symbols.defined(index)
        if occurrence.line == line and occurrence.kind not in _NO_SYMBOLS:
            return occurrence.column
    return None
