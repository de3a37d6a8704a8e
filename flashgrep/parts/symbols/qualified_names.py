"""What a qualified name means, as the part ``navigation`` resolves it; without that part its text is compared."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.api.view import View
from flashgrep.base.errors import Unavailable
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import SymbolSource


class QualifiedName(Protocol):
    """The definitions that a qualified name means."""

    def is_definition(self, path: bytes, offset: int) -> bool:
        """Return whether one of them is at an offset of a file."""

    def is_meant(self, path: bytes, symbols: FileSymbols, offset: int) -> bool | None:
        """Return whether a use of the last name refers to one of them; None: it may, but nothing says so."""


ResolveName = Callable[[SymbolSource, Sequence[str], str], QualifiedName | None]
"""Called with the qualifiers and the name; None: the project does not define it."""


class NameResolution(ProjectService):
    """How a project's qualified names are resolved."""

    def __init__(self, resolve: ResolveName) -> None:
        self.resolve = resolve


NAME_RESOLUTION: Final = ServiceKey[NameResolution]("name resolution")


def find_resolution(view: View) -> ResolveName | None:
    """Return how a view's qualified names are resolved; None: the part that does it is left out."""
    # A team's repository and each project have it, so that a view never says which it
    # is of.
    try:
        return view.project.service(NAME_RESOLUTION).resolve
    except Unavailable:
        return None
