"""Where a name is looked up, and what the type of an expression may be."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.lookup import FileSymbols


class Unsettled(Enum):
    """Why the type of an expression is no type of the project."""

    OUTSIDE = auto()
    """It is a type, but none of the project."""
    UNKNOWN = auto()


OUTSIDE: Final = Unsettled.OUTSIDE
UNKNOWN: Final = Unsettled.UNKNOWN


@dataclass(frozen=True, slots=True)
class Container:
    """A type of a library that holds another; ``key``: by what, if it is a map; ``name``: of the type."""

    held: "Type"
    key: "Type | None" = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values: an entry of a map, or a tuple."""

    first: "Type"
    second: "Type"


@dataclass(frozen=True, slots=True)
class LibraryType:
    """A type that is none of the project, by its name alone."""

    name: str


Type = Definition | Container | Pair | LibraryType | Unsettled


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a file at which names are looked up."""

    path: bytes
    symbols: FileSymbols
    offset: int
