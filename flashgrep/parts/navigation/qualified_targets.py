"""What a qualified name means, for searches of symbols: definitions by type, base types, modules and containers."""

from collections.abc import Sequence
from dataclasses import dataclass

from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.navigation.resolution.definitions import find_in_modules
from flashgrep.parts.navigation.resolution.resolver import Use
from flashgrep.parts.navigation.resolution.symbol_graph import GUESS, Definition
from flashgrep.parts.symbols.parse.lookup import FileSymbols, matches_qualifiers
from flashgrep.parts.symbols.symbol_source import SymbolSource


@dataclass(frozen=True, slots=True)
class QualifiedTargets:
    """The definitions that a qualified name means; a ``QualifiedName``."""

    navigator: Navigator
    named: Sequence[Definition]
    """The definitions of its last name."""
    targets: Sequence[Definition]

    def is_definition(self, path: bytes, offset: int) -> bool:
        """Return whether a target is at an offset of a file."""
        return any((path, offset) == target.key for target in self.targets)

    def is_meant(self, path: bytes, symbols: FileSymbols, offset: int) -> bool | None:
        """Return whether a use refers to a target; None: it is not sure enough."""
        resolve = self.navigator.make_resolver(self.named).resolver_of(
            Use(path, symbols, offset)
        )
        # One sufficiently certain target is enough: a qualified name may have several
        # definitions.
        resolutions = filter(None, map(resolve, self.targets))
        sure = max((resolution.confidence for resolution in resolutions), default=None)
        if sure is None:
            return False
        return True if sure >= GUESS else None


def find_targets(
    source: SymbolSource, qualifiers: Sequence[str], name: str
) -> QualifiedTargets | None:
    """Return the definitions of a qualified name; if its type does not define it, the inherited ones."""
    # One navigator for the whole search: it keeps the files it has opened.
    navigator = Navigator(source)
    named = navigator.define(name)
    ending = "." + ".".join(qualifiers)
    own = [
        definition
        for definition in named
        if matches_qualifiers(
            definition.symbols.defined(definition.index), [*qualifiers]
        )
        or f".{definition.scope}".endswith(ending)
    ]
    targets = (
        own
        or navigator.find_in_bases(qualifiers, name)
        or find_in_modules(named, qualifiers)
    )
    if not targets:
        return None
    return QualifiedTargets(navigator, named, targets)
