"""Finding symbols by name: definitions first, sources before tests, each place told by what it is.

Files come from a ``SymbolSource``; whether their symbols were stored or are parsed now makes no difference.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Literal

from rapidfuzz import fuzz, process

from flashgrep.checkpoint import Expired, checkpoint, expiring
from flashgrep.index.table import tier_of
from flashgrep.ingest.parse.lookup import (
    ROLES,
    FileSymbols,
    Occurrence,
    Role,
    matches_qualifiers,
    split_name,
)
from flashgrep.ingest.parse.model import KIND, KINDS
from flashgrep.model import Skipped
from flashgrep.search.snapshot import SearchStats
from flashgrep.search.symbol_source import SymbolSource

Match = Literal["exact", "prefix", "fuzzy"]
RANK: Final = {role: rank for rank, role in enumerate(ROLES)}
FUZZY_CUTOFF: Final = 70.0
"""A name one letter off in five still counts."""
FUZZY_LIMIT: Final = 10
HELD: Final = 100
"""Files kept open between finding places and showing them: a page is rarely about more."""
FUZZY_NAMES: Final = 200_000
"""Names compared at most (about 60 ms)."""
SHOWING_SECONDS: Final = 0.2
"""What was found when the deadline came may take so much longer to be shown."""
NEAR_NAMES: Final = 5_000
SUGGESTED: Final = 5
_DEFINES: Final = frozenset({"definition", "declaration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolQuestion:
    """Which occurrences are wanted."""

    name: str
    match: Match = "exact"
    fold: bool = False
    kinds: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    keep: Callable[[bytes], bool] | None = None
    limit: int = 50
    after: int = 0
    """Occurrences passed over: those of the pages before."""
    deadline: float | None = None
    """On the clock of time.monotonic()."""


@dataclass(frozen=True, slots=True)
class Found:
    """One occurrence with its file, and what the file says about it."""

    path: bytes
    language: str
    occurrence: Occurrence
    signature: str
    doc: str


@dataclass(slots=True)
class SymbolAnswer(SearchStats):
    """One page of occurrences, how many there are, and what was looked at."""

    results: list[Found] = field(default_factory=list)
    total: int = 0
    suggestions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where an occurrence stands in the answer; the rest is read when its page is shown."""

    rank: int
    tier: int
    unlike: float
    path: bytes
    offset: int
    size: int


class SymbolSearch:
    """One question being answered; runs in a thread."""

    def __init__(self, source: SymbolSource, question: SymbolQuestion) -> None:
        self._source = source
        self._question = question
        self._qualifiers, self._name = split_name(question.name)
        if not self._name:
            self._qualifiers, self._name = [], question.name
        self.answer = SymbolAnswer()
        self._held: dict[bytes, FileSymbols] = {}

    def run(self) -> SymbolAnswer:
        """Answer the question; a deadline leaves what was found so far, with ``complete`` False."""
        question = self._question
        found: set[_Place] = set()
        try:
            with expiring(question.deadline):
                found.update(self._places())
        except Expired:
            self.answer.complete = False
        self.answer.total = len(found)
        places = heapq.nsmallest(question.after + question.limit, found, key=attrgetter(*_Place.__slots__))
        try:
            with expiring(None if question.deadline is None else question.deadline + SHOWING_SECONDS):
                for place in places[question.after :]:
                    shown = self._found(place)
                    if shown is not None:
                        self.answer.results.append(shown)
        except Expired:
            self.answer.complete = False
        if not found and self.answer.complete:
            self.answer.suggestions = suggestions(self._source, self._name)
        return self.answer

    def _places(self) -> Iterator[_Place]:
        match self._question.match:
            case "exact":
                yield from self._named(self._name, 0.0)
            case "prefix":
                yield from self._prefixed()
            case "fuzzy":
                for name, unlike in self._alike():
                    yield from self._named(name, unlike)

    def _named(self, name: str, unlike: float) -> Iterator[_Place]:
        fold = self._question.fold or self._question.match == "fuzzy"
        size = len(name.encode())
        for path, symbols in self._files(self._paths(name, fold=fold), name, fold=fold):
            for offset, role in symbols.places(name, fold=fold):
                checkpoint()
                if self._wanted(symbols, offset, role, size):
                    yield _Place(RANK[role], tier_of(path), unlike, path, offset, size)

    def _prefixed(self) -> Iterator[_Place]:
        """Yield definitions whose name begins so."""
        fold = self._question.fold
        wanted = self._name.lower() if fold else self._name
        paths = self._source.defining(self._name, prefix=True)
        if paths is None:
            paths = self._source.candidates(self._name, fold=fold)
        for path, symbols in self._files(paths, self._name, fold=fold):
            for index, row in enumerate(symbols.rows):
                checkpoint()
                name = symbols.name(index)
                if (name.lower() if fold else name).startswith(wanted):
                    role, size = symbols.defined_role(index), len(name.encode())
                    if self._wanted(symbols, row[0], role, size):
                        yield _Place(RANK[role], tier_of(path), float(len(name)), path, row[0], size)

    def _alike(self) -> list[tuple[str, float]]:
        """Return the defined names most like the one asked for that begin with its first or second letter."""
        starts = sorted(set(self._name.lower()[:2]))
        if self._source.defining(self._name, prefix=False) is None:
            known = [name for name in self._names_now() if name[0] in starts]
        else:
            known = [name for start in starts for name in self._source.names(start, FUZZY_NAMES)]
        found = process.extract(
            self._name.lower(), known, scorer=fuzz.ratio, limit=FUZZY_LIMIT, score_cutoff=FUZZY_CUTOFF
        )
        return [(name, 100.0 - score) for name, score, _ in found]

    def _names_now(self) -> list[str]:
        """Return the names defined in all files, as far as the deadline lets them be parsed."""
        names: set[str] = set()
        for _, symbols in self._files(self._source.paths()):
            names.update(symbols.name(index).lower() for index in range(len(symbols.rows)))
        return sorted(names)

    def _paths(self, name: str, *, fold: bool) -> list[bytes]:
        """Return the files to look at: those that define the name where only definitions are asked for."""
        if self._question.roles and self._question.roles <= _DEFINES:
            defining = self._source.defining(name, prefix=False)
            if defining is not None:
                return defining
        return self._source.candidates(name, fold=fold)

    def _files(
        self, paths: Iterable[bytes], name: str = "", *, fold: bool = False
    ) -> Iterator[tuple[bytes, FileSymbols]]:
        """Yield the files asked about that have the name's letters."""
        question = self._question
        wanted = name.encode().lower() if fold else name.encode()

        def holds(data: bytes) -> bool:
            return wanted in (data.lower() if fold else data)

        for path in paths:
            if question.keep is not None and not question.keep(path):
                continue
            opened = self._source.open(path, holds)
            if isinstance(opened, Skipped):
                self.answer.count_skipped(opened.reason)
            elif opened is not None:
                self.answer.files_read += 1
                if not holds(opened.data):
                    continue
                if len(self._held) < HELD:
                    self._held[path] = opened
                yield path, opened

    def _wanted(self, symbols: FileSymbols, offset: int, role: Role, size: int) -> bool:
        question = self._question
        if question.roles and role not in question.roles:
            return False
        if question.kinds:
            index = symbols.index_at(offset)
            if index < 0 or KINDS[symbols.rows[index][KIND]] not in question.kinds:
                return False
        return not self._qualifiers or matches_qualifiers(symbols.occurrence(offset, role, size), self._qualifiers)

    def _found(self, place: _Place) -> Found | None:
        checkpoint()
        symbols = self._held.get(place.path) or self._source.open(place.path)
        if symbols is None or isinstance(symbols, Skipped):
            return None
        return found_at(place.path, symbols, symbols.occurrence(place.offset, ROLES[place.rank], place.size))


def found_at(path: bytes, symbols: FileSymbols, occurrence: Occurrence) -> Found:
    """Return an occurrence with its file: a definition's signature, or the line that uses the name."""
    index = symbols.index_at(occurrence.offset)
    if index < 0:
        return Found(path, symbols.language, occurrence, symbols.lines.text(occurrence.line).strip()[:200], "")
    return Found(path, symbols.language, occurrence, symbols.signature(index), symbols.documentation(index))


def suggestions(source: SymbolSource, name: str) -> list[str]:
    """Return names that are defined and nearly this one."""
    known = source.names(name[:2], NEAR_NAMES)
    found = process.extract(name.lower(), known, scorer=fuzz.ratio, limit=SUGGESTED, score_cutoff=FUZZY_CUTOFF)
    return [known_name for known_name, _, _ in found]
