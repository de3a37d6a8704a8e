"""Callers, callees and base types of the definition at a position: one step up or down."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.navigation.navigation import Navigation, Navigator, Place, place_of
from flashgrep.parts.navigation.references import (
    LEAST,
    ReferenceQuestion,
    ReferenceSearch,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.name_at_position import NameAtPosition
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, START, TYPE_KINDS
from flashgrep.parts.symbols.symbol_source import SymbolSource

MOST_CALLS: Final = 2_000
"""Most calls examined, in a definition or of one."""
MODULE: Final = "module"
"""The kind of a file, in the place of a definition."""


@dataclass(slots=True)
class Step:
    """A definition one step away, and the uses that lead there: byte offsets in the using file."""

    place: Place
    user: FileSymbols
    uses: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Hierarchy(Navigation):
    """A result with the step that leads to each of its places, in the same order."""

    steps: list[Step] = field(default_factory=list)


def find_callers(source: SymbolSource, named: NameAtPosition) -> Hierarchy:
    """Return the definitions that call the one at a position; a call outside any definition counts for its file."""
    reference_question = ReferenceQuestion(limit=MOST_CALLS, include_declaration=False)
    navigation = ReferenceSearch(source, reference_question).run(named)
    steps: dict[tuple[bytes, int], Step] = {}
    for use in navigation.places:
        checkpoint()
        if use.role != "call":
            continue
        around = _callable_around(use.symbols, use.start)
        key = (use.path, around)
        if key not in steps:
            caller = Place(use.path, use.symbols, 0, 0, use.resolution, kind=MODULE)
            if around >= 0:
                caller = place_of(
                    Definition(use.path, use.symbols, around), use.resolution
                )
            steps[key] = Step(caller, use.symbols)
        steps[key].uses.append((use.start, use.end))
    return _make_hierarchy(navigation, steps.values())


def find_callees(source: SymbolSource, named: NameAtPosition) -> Hierarchy:
    """Return the definitions that the one at a position calls, each with its confidence."""
    navigator = Navigator(source)
    definitions = navigator.find_definitions(named)
    marked = (
        (place, use)
        for place in definitions.places[:1]
        for use in _find_marks(place, "call")
    )
    # Calls in nested functions belong to those.
    uses = (
        use
        for place, use in marked
        if _callable_around(place.symbols, use.start, place.index) == place.index
    )
    return _make_hierarchy(definitions, _follow(navigator, uses, definitions))


def find_supertypes(source: SymbolSource, named: NameAtPosition) -> Hierarchy:
    """Return the base types that the type at a position names."""
    navigator = Navigator(source)
    definitions = navigator.find_definitions(named)
    uses = (
        use for place in definitions.places[:1] for use in _find_marks(place, "base")
    )
    steps = [
        step
        for step in _follow(navigator, uses, definitions)
        if step.place.kind in {*TYPE_KINDS, "type"}
    ]
    return _make_hierarchy(definitions, steps)


def _follow(
    navigator: Navigator, uses: Iterable[NameAtPosition], found: Navigation
) -> list[Step]:
    """Return the definitions that names refer to, without duplicates; uncertain names are counted."""
    steps: dict[tuple[bytes, int], Step] = {}
    for use in uses:
        checkpoint()
        for place in navigator.find_definitions(use).places[:1]:
            if place.resolution.confidence < LEAST:
                found.unsure += 1
            elif place.index >= 0:
                step = steps.setdefault(
                    (place.path, place.start), Step(place, use.symbols)
                )
                step.uses.append((use.start, use.end))
    return list(steps.values())


def _find_marks(place: Place, mark: str) -> Iterator[NameAtPosition]:
    """Yield the names in a definition that are called, or named as base types."""
    if place.index < 0:
        return
    symbols = place.symbols
    row = place.symbols.row(place.index)
    offsets = symbols.parsed.marked(mark)
    for offset in offsets[(offsets >= row[START]) & (offsets < row[END])].tolist()[
        :MOST_CALLS
    ]:
        if mark == "call" or symbols.enclosing(offset) == place.index:
            size = len(symbols.word_at(offset).encode())
            yield NameAtPosition(place.path, symbols, offset, offset + size)


def _callable_around(symbols: FileSymbols, offset: int, but: int = -1) -> int:
    """Return the innermost function around an offset, or ``but`` if that is nearer; -1: none."""
    around = symbols.enclosing(offset)
    while around >= 0 and around != but and symbols.kind(around) not in CALLABLE_KINDS:
        around = symbols.parent(around)
    return around


def _make_hierarchy(found: Navigation, steps: Iterable[Step]) -> Hierarchy:
    ordered = sorted(steps, key=lambda step: (step.place.path, step.place.start))
    return Hierarchy(
        places=[step.place for step in ordered],
        no_result=found.no_result,
        unsure=found.unsure,
        files_read=found.files_read,
        complete=found.complete and not found.has_more,
        skipped=found.skipped,
        steps=ordered,
    )
