"""Search for symbols by name: definitions first, sources before tests.

Files come from a ``SymbolSource``; it makes no difference whether their symbols were stored or are parsed now.
"""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice, pairwise
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from rapidfuzz import fuzz, process

from flashgrep.api.searchers import BestDefinition, Holds
from flashgrep.api.view import View
from flashgrep.base.checkpoint import Expired, checkpoint, expiring
from flashgrep.base.errors import NotFound
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.lazy import LazyAttribute
from flashgrep.base.model import Skipped, path_to_text
from flashgrep.files.columns import Columns, PositionEncoding
from flashgrep.files.globs import PathFilter
from flashgrep.index.table import tier_of
from flashgrep.parts.symbols.parse.lookup import (
    ROLES,
    FileSymbols,
    Occurrence,
    Role,
    matches_qualifiers,
    split_name,
)
from flashgrep.parts.symbols.parse.model import NAME, TYPE_KINDS
from flashgrep.parts.symbols.qualified_names import (
    QualifiedName,
    ResolveName,
    find_resolution,
)
from flashgrep.parts.symbols.signatures import find_code
from flashgrep.parts.symbols.symbol_source import NOT_HELD, SnapshotSource, SymbolSource
from flashgrep.search.snapshot import SearchStats

Match = Literal["exact", "prefix", "fuzzy"]
RANK: Final = {role: rank for rank, role in enumerate(ROLES)}
MOST_OPENED: Final = 500
"""Files opened for a page (0.15 s). If more may have the name, they are searched in groups of this size, uncounted."""
OPENED_TOGETHER: Final = 50
"""Files opened together for names with a common prefix (30 ms)."""
FUZZY_CUTOFF: Final = 70.0
"""Lowest similarity, 0 to 100: a name with one letter in five wrong still counts."""
FUZZY_LIMIT: Final = 10
HELD: Final = 100
"""Files kept open between finding and describing occurrences: a page seldom covers more."""
FUZZY_NAMES: Final = 200_000
"""Most names compared (about 60 ms)."""
SHOWING_SECONDS: Final = 0.2
"""Extra time after the deadline for describing what was found."""
COMPARED: Final = 5_000
"""Names, or places, compared between two checkpoints, in 1 to 4 ms."""
NEAR_NAMES: Final = 5_000
SIGNATURE_RANK: Final = 2
"""Of overloads without code among definitions of one name: the one with the code comes before them."""
HEADING_RANK: Final = 3
"""Of headings: they stand for text about what has the name."""
MOST_ALIKE: Final = 20
"""Most definitions of one name that are compared to find the best; each is read."""
SUGGESTED: Final = 5
CLAUSES: Final = frozenset({"elixir", "erlang", "haskell"})
"""Languages in which a function is written in several definitions."""
_DEFINES: Final = frozenset({"definition", "declaration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolQuestion:
    """Selects occurrences."""

    name: str
    match: Match = "exact"
    fold: bool = False
    kinds: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    keep: Callable[[bytes], bool] | None = None
    limit: int = 50
    after: int = 0
    """Occurrences to skip: those on earlier pages."""
    deadline: float | None = None
    """On the clock of time.monotonic()."""
    body_chars: int = 0
    """Most characters of a definition's text to return, in whole lines."""
    encoding: PositionEncoding | None = None
    """Unit of the columns where the name begins and ends, if they are wanted."""
    resolve: ResolveName | None = None
    """Finds what a qualified name means; None: its text is compared."""


@dataclass(frozen=True, slots=True)
class FoundSymbol:
    """One occurrence in its file, with its description."""

    path: bytes
    language: str
    occurrence: Occurrence
    signature: str
    doc: str
    order: tuple[int, int, int, float, int]
    """Its sort key before path and position: ``_Place``'s window, role, tier and dissimilarity of the name."""
    body: str = ""
    columns: tuple[int, int] | None = None
    """The columns where the name begins and ends, if the question asks for them."""


@dataclass(slots=True)
class SymbolAnswer(SearchStats):
    """One page of occurrences and their total; None: more than the page, in too many files to open."""

    results: list[FoundSymbol] = field(default_factory=list)
    total: int | None = 0
    suggestions: list[str] = field(default_factory=list)
    namesakes: int = 0
    """Number of definitions whose uses are reported together because they share only the name; 0: at most one."""
    as_text: int = 0
    """Least number of times a name without occurrences is a word in comments, strings or files not parsed."""
    unsure: int = 0
    """Omitted uses of a qualified name's last part that may refer to it: the types of their receivers are unknown."""


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """The position of an occurrence in the answer; the rest is read when its page is shown."""

    window: int
    """Number of its group of files: defining files and the best others, up to MOST_OPENED, then further groups."""
    rank: int
    tier: int
    unlike: float
    kind_rank: int
    """Types before what has their name, such as a method, then overloads without code, and headings last."""
    path: bytes
    offset: int
    size: int


class _NameWindow(NamedTuple):
    """Files searched together for names with a common prefix."""

    paths: list[bytes]
    names: frozenset[bytes] | None = None
    """The names to find in them, ASCII letters folded; None: all."""
    known: frozenset[bytes] | None = None
    """All indexed names; None: not listed yet."""


def find_best_definition(
    source: SymbolSource,
    name: str,
    under: bytes = b"",
    resolve: ResolveName | None = None,
    holds: Holds | None = None,
) -> BestDefinition:
    """Return the best definition of a name, which may be qualified.

    ``under``: only in this file or below this folder. ``holds``: only in files of which it is true. Among equally
    ranked ones, a definition without a container comes first: callers who mean a method with a common name qualify it.

    Raises:
        NotFound: no definition exists; the error has ``near`` names, or locations outside ``under``.

    """
    if under or holds is not None:
        keep = PathFilter((), (), under=under, owned=holds)
    else:
        keep = None
    question = SymbolQuestion(
        name=name,
        roles=frozenset({"definition"}),
        limit=MOST_ALIKE,
        keep=keep,
        resolve=resolve,
    )
    answer = SymbolSearch(source, question).run()
    for best in sorted(
        answer.results,
        key=lambda found: (found.order, bool(found.occurrence.container)),
    ):
        clauses = find_clauses(source, best, answer.results)
        alike = [
            found_symbol
            for found_symbol in answer.results
            if found_symbol not in clauses and found_symbol.occurrence.kind != "heading"
        ]
        others = [
            f"{path_to_text(definition.path)}:{definition.occurrence.start_line}"
            for definition in alike[:SUGGESTED]
        ]
        last = clauses[-1].occurrence.end_line
        return BestDefinition(best.path, best.occurrence.start_line, last, others)
    if under:
        elsewhere = SymbolSearch(source, replace(question, keep=None)).run().results
    else:
        elsewhere = []
    near = [
        f"{path_to_text(found_symbol.path)}:{found_symbol.occurrence.start_line}"
        for found_symbol in elsewhere
    ] or answer.suggestions
    message = f"symbol not found{f' in {path_to_text(under)}' if under else ''}: {name}"
    message += f"; near: {', '.join(near)}" if near else ""
    raise NotFound(
        message,
        reason="symbol_not_found",
        symbol_name=name,
        near=near,
    )


def find_clauses(
    source: SymbolSource, best: FoundSymbol, results: Iterable[FoundSymbol]
) -> list[FoundSymbol]:
    """Return a definition and the further clauses of the same function that follow it with nothing but comments between."""
    clauses = [best]
    if best.language not in CLAUSES:
        return clauses
    symbols = source.open(best.path)
    if not isinstance(symbols, FileSymbols):
        return clauses
    signs = LANGUAGES[best.language].comments
    for following in sorted(results, key=lambda found: found.occurrence.offset):
        is_beside = following.path == best.path
        last = clauses[-1].occurrence
        start = following.occurrence.start_line
        if not is_beside or start <= last.end_line:
            continue
        # A nested function may have the name, too.
        if following.occurrence.container != last.container:
            continue
        for number in range(last.end_line + 1, start):
            line = symbols.lines.text(number).strip().encode()
            if line and not line.startswith(signs):
                return clauses
        clauses.append(following)
    return clauses


async def find_definition(
    view: View, name: str, under: bytes = b"", holds: Holds | None = None
) -> BestDefinition:
    """Return the best definition of a name in a view; raises as ``find_best_definition``."""
    resolve = find_resolution(view)
    return await view.in_thread(
        lambda snapshot: find_best_definition(
            SnapshotSource(snapshot), name, under, resolve, holds
        )
    )


def find_near_names(
    source: SymbolSource, name: str, resolve: ResolveName | None = None
) -> list[str]:
    """Return similar names if a name has no definition; otherwise none."""
    question = SymbolQuestion(
        name=name,
        roles=_DEFINES,
        limit=1,
        resolve=resolve,
    )
    return SymbolSearch(source, question).run().suggestions


async def suggest_names(view: View, name: str) -> list[str]:
    """Return similar names in a view, as ``find_near_names``."""
    resolve = find_resolution(view)
    return await view.in_thread(
        lambda snapshot: find_near_names(SnapshotSource(snapshot), name, resolve)
    )


class SymbolSearch:
    """Answers one question; runs in a thread."""

    def __init__(self, source: SymbolSource, question: SymbolQuestion) -> None:
        self._source = source
        self._question = question
        self._qualifiers, self._name = split_name(question.name)
        if not self._name:
            self._qualifiers = []
            self._name = question.name
        self.answer = SymbolAnswer()
        self._found: set[_Place] = set()
        self._is_counted = True
        self._held: dict[bytes, FileSymbols] = {}

    def run(self) -> SymbolAnswer:
        """Answer the question; after a deadline, return what was found so far with ``complete`` False."""
        question = self._question
        places = self._found
        try:
            with expiring(question.deadline):
                for place in self._places():
                    places.add(place)
        except Expired:
            self.answer.complete = False
        if self._is_counted:
            self.answer.total = len(places)
        else:
            self.answer.total = None
        defined = sum(
            place.rank == RANK["definition"] and place.kind_rank < SIGNATURE_RANK
            for place in places
        )
        if (
            question.match == "exact"
            and not self._qualifiers
            and 1 < defined < len(places)
        ):
            self.answer.namesakes = defined
        # A heap the size of one page: a common name has hundreds of thousands of
        # occurrences.
        first = heapq.nsmallest(
            question.after + question.limit,
            in_turns(places),
            key=attrgetter(*_Place.__slots__),
        )
        try:
            # The deadline may have passed during the search; results are useful only if
            # they are described.
            with expiring(
                None
                if question.deadline is None
                else question.deadline + SHOWING_SECONDS
            ):
                for place in first[question.after :]:
                    found_symbol = self._describe(place)
                    if found_symbol is not None:
                        self.answer.results.append(found_symbol)
        except Expired:
            self.answer.complete = False
        # After a deadline the name may still exist.
        if not places and self.answer.complete:
            self.answer.suggestions = self._near_names()
            if question.match == "exact" and not question.roles and not question.kinds:
                paths = self._source.candidates(self._name, fold=question.fold)
                kept = (
                    path
                    for path in paths
                    if question.keep is None or question.keep(path)
                )
                if question.deadline is None:
                    until = None
                else:
                    until = question.deadline + SHOWING_SECONDS
                with suppress(Expired), expiring(until):
                    for text in filter(
                        None, map(self._source.read, islice(kept, MOST_OPENED))
                    ):
                        checkpoint()
                        self.answer.as_text += count_words(
                            text, self._name, fold=question.fold
                        )
        return self.answer

    def _near_names(self) -> list[str]:
        """Return names similar to the missing one, spelled as in their definitions.

        If the last part of a qualified name is defined elsewhere, return that with its container.
        """
        known = self._source.names(self._name[:2], NEAR_NAMES) or self._source.names(
            self._name[:1], NEAR_NAMES
        )
        spelled = []
        for name, _ in near_names(
            self._name, known, SUGGESTED
        ):  # stored in small letters
            place = next(self._find_by_name(name, 0.0, fold=True), None)
            if (
                place is not None
                and (found_symbol := self._describe(place)) is not None
            ):
                spelled.append(found_symbol.occurrence.name)
        if self._qualifiers and not spelled:
            bare = SymbolSearch(
                self._source,
                replace(
                    self._question,
                    name=self._name,
                    after=0,
                    limit=SUGGESTED,
                ),
            ).run()
            defined = [
                current_found_symbol.occurrence
                for current_found_symbol in bare.results
                if current_found_symbol.occurrence.kind
            ]
            spelled = [
                f"{occurrence.container}.{occurrence.name}".removeprefix(".")
                for occurrence in defined
            ] or bare.suggestions
        return list(dict.fromkeys(spelled))

    def _places(self) -> Iterator[_Place]:
        name = self._name
        fold = self._question.fold
        source = self._source
        match self._question.match:
            case "exact":
                yield from self._find_by_name(name, 0.0, fold=fold)
            case "prefix":
                yield from self._find_by_prefix(name, fold=fold)
            case "fuzzy":
                # Only names with the same first or second letter are compared: typing
                # errors seldom affect both. If not all symbols are stored, the files
                # are parsed now.
                starts = sorted(set(name.lower()[:2]))
                if source.defining(name, prefix=False) is None:
                    names: set[str] = set()
                    for _, symbols in self._open_files(source.paths(), lambda _: True):
                        names.update(
                            symbols.name(index).lower()
                            for index in range(symbols.count)
                        )
                    known = sorted(
                        known_name for known_name in names if known_name[0] in starts
                    )
                else:
                    known = [
                        known_name
                        for start in starts
                        for known_name in source.names(start, FUZZY_NAMES)
                    ]
                for near, score in near_names(name, known, FUZZY_LIMIT):
                    yield from self._find_by_name(near, 100.0 - score, fold=True)

    def _find_by_name(
        self, name: str, unlike: float, *, fold: bool
    ) -> Iterator[_Place]:
        size = len(name.encode())
        # The window is the first part of the order, so a page that a window fills does
        # not depend on later windows.
        for window, paths in enumerate(self._windows(name, fold=fold)):
            if (
                window
                and len(self._found) > self._question.after + self._question.limit
            ):
                self._is_counted = False
                return
            for path, symbols in self._open_files(paths, _holder(name, fold=fold)):
                tier = tier_of(path)
                for offset, role in symbols.places(name, fold=fold):
                    checkpoint()
                    if self._is_wanted(symbols, offset, role) and self._is_meant(
                        path, symbols, offset, role, size
                    ):
                        # Only the position is kept; signatures are read for the page
                        # that is shown.
                        yield _Place(
                            window,
                            RANK[role],
                            tier,
                            unlike,
                            rank_kind(symbols, offset),
                            path,
                            offset,
                            size,
                        )

    @LazyAttribute
    def _meaning(self) -> QualifiedName | None:
        """Return what a qualified name means; None: nothing in the project, or only its text is compared."""
        resolve = self._question.resolve
        if resolve is None:
            return None
        return resolve(self._source, self._qualifiers, self._name)

    def _is_meant(
        self, path: bytes, symbols: FileSymbols, offset: int, role: Role, size: int
    ) -> bool:
        """Whether an occurrence of a qualified name's last part refers to what the whole name means."""
        if not self._qualifiers:
            return True
        meaning = self._meaning
        if meaning is not None and symbols.index_at(offset) < 0:
            is_meant = meaning.is_meant(path, symbols, offset)
            self.answer.unsure += is_meant is None
            return bool(is_meant)
        if meaning is not None and meaning.is_definition(path, offset):
            return True
        # Outside the project, only the text can be compared.
        return matches_qualifiers(
            symbols.occurrence(offset, role, size), self._qualifiers
        )

    def _windows(self, name: str, *, fold: bool) -> Iterator[list[bytes]]:
        """Yield the files that may have a name: all together, or in groups of MOST_OPENED, defining files first."""
        roles = self._question.roles
        source = self._source
        if (
            roles
            and roles <= _DEFINES
            and (defining := source.defining(name, prefix=False)) is not None
        ):
            yield defining
            return
        paths = source.candidates(name, fold=fold, whole=True)
        if len(paths) > MOST_OPENED:
            defining = source.defining(name, prefix=False)
        else:
            defining = None
        if defining is None:
            yield paths
            return
        # Defining files come first, so that the first page has the definitions whatever
        # is left for later pages.
        leading = frozenset(defining)
        paths = sorted(
            paths, key=lambda path: (path not in leading, tier_of(path), path)
        )
        first = max(MOST_OPENED, len(leading))
        for start, end in pairwise(
            [0, *range(first, len(paths), MOST_OPENED), len(paths)]
        ):
            yield sorted(paths[start:end])

    def _find_by_prefix(self, start: str, *, fold: bool) -> Iterator[_Place]:
        """Yield definitions whose names begin with a prefix, shortest first."""
        windows = self._name_windows(start, fold=fold)
        looked_at: set[bytes] = set()
        for number in count():
            if (
                number
                and len(self._found) > self._question.after + self._question.limit
            ):
                self._is_counted = False
                return
            window = next(windows, None)
            if window is None:
                return
            for path, symbols in self._open_files(
                window.paths, _holder(start, fold=fold)
            ):
                for index, name in symbols.beginning(start, fold=fold):
                    checkpoint()
                    # A name that is in no table yet is reported when its changed file
                    # is first opened.
                    own = name.lower()
                    known = window.known
                    is_new = (
                        known is not None and own not in known and path not in looked_at
                    )
                    if (
                        window.names is not None
                        and own not in window.names
                        and not is_new
                    ):
                        continue
                    role = symbols.defined_role(index)
                    size = len(name)
                    at = symbols.row(index)[NAME]
                    if self._is_wanted(symbols, at, role) and self._is_meant(
                        path, symbols, at, role, size
                    ):
                        yield _Place(
                            number,
                            RANK[role],
                            tier_of(path),
                            float(len(name.decode())),
                            rank_kind(symbols, at),
                            path,
                            at,
                            size,
                        )
                if window.known is not None:
                    looked_at.add(path)
            if window.names is None:
                return

    def _name_windows(self, start: str, *, fold: bool) -> Iterator[_NameWindow]:
        """Yield names with a prefix in small groups, with their defining files; if these are few, all together.

        The prefix itself, as a name, comes first, before the others are listed: in a large tree it often fills a page.
        """
        source = self._source
        every = source.defining(start, prefix=True)
        # Too few files for groups.
        if every is None or len(every) <= 2 * OPENED_TOGETHER:
            yield _NameWindow(
                source.candidates(start, fold=fold) if every is None else every
            )
            return

        def cut(
            paths: set[bytes], names: set[bytes], known: frozenset[bytes] | None
        ) -> Iterator[_NameWindow]:
            ordered = sorted(paths, key=lambda path: (tier_of(path), path))
            for at in range(0, len(ordered), OPENED_TOGETHER):
                yield _NameWindow(
                    sorted(ordered[at : at + OPENED_TOGETHER]), frozenset(names), known
                )

        itself = start.encode().lower()
        yield from cut(set(source.defining(start, prefix=False) or ()), {itself}, None)
        listed = source.names(start, FUZZY_NAMES)
        # Names from files changed since are in no table; comparing with these finds
        # them.
        known = frozenset(name.encode().lower() for name in listed)
        names: set[bytes] = set()
        paths: set[bytes] = set()
        # Shorter names are nearer to what was typed.
        for name in sorted(listed, key=lambda name: (len(name), name)):
            if (own := name.encode().lower()) != itself:
                names.add(own)
                paths.update(source.defining(name, prefix=False) or ())
            if len(paths) >= OPENED_TOGETHER:
                yield from cut(paths, names, known)
                names = set()
                paths = set()
        yield from cut(paths, names, known)

    def _open_files(
        self, paths: Iterable[bytes], holds: Callable[[bytes], bool]
    ) -> Iterator[tuple[bytes, FileSymbols]]:
        """Yield the files in the question's scope whose text contains the name."""
        keep = self._question.keep
        answer = self.answer
        for path in paths:
            if keep is not None and not keep(path):
                continue
            opened = self._source.open(path, holds)
            if opened is NOT_HELD:
                answer.files_read += 1
            elif isinstance(opened, Skipped):
                answer.count_skips(opened.reason)
            elif opened is not None:
                answer.files_read += 1
                # The first ones are kept: a page shows the best, and these were opened
                # first.
                if len(self._held) < HELD:
                    self._held[path] = opened
                yield path, opened

    def _is_wanted(self, symbols: FileSymbols, offset: int, role: Role) -> bool:
        question = self._question
        if question.roles and role not in question.roles:
            return False
        if question.kinds:
            index = symbols.index_at(offset)
            if index < 0 or symbols.kind(index) not in question.kinds:
                return False
        return True

    def _describe(self, place: _Place) -> FoundSymbol | None:
        """Return an occurrence in its file: with a definition's signature, or the line that uses the name."""
        checkpoint()
        path = place.path
        symbols = self._held.get(path) or self._source.open(path)
        if symbols is None or isinstance(symbols, Skipped):
            return None
        occurrence = symbols.occurrence(place.offset, ROLES[place.rank], place.size)
        index = symbols.index_at(place.offset)
        order = (
            place.window,
            place.rank,
            place.tier,
            place.unlike,
            place.kind_rank,
        )
        columns: tuple[int, int] | None = None
        if self._question.encoding is not None:
            counted = Columns(symbols.lines, self._question.encoding)
            columns = (
                counted.place(place.offset)[1],
                counted.place(place.offset + place.size)[1],
            )
        if index < 0:
            line = symbols.lines.text(occurrence.line).strip()[:200]
            return FoundSymbol(
                path, symbols.language, occurrence, line, "", order, columns=columns
            )
        signature = symbols.signature(index)
        doc = symbols.documentation(index)
        body: list[str] = []
        room = self._question.body_chars if occurrence.role == "definition" else 0
        for number in range(
            occurrence.start_line, occurrence.end_line + 1 if room else 0
        ):
            text = symbols.lines.text(number)
            room -= len(text) + 1
            if room < 0:
                body.append(
                    f"… {occurrence.end_line + 1 - number} more lines, from {number}"
                )
                break
            body.append(text)
        return FoundSymbol(
            path,
            symbols.language,
            occurrence,
            signature,
            doc,
            order,
            "\n".join(body),
            columns,
        )


def rank_kind(symbols: FileSymbols, offset: int) -> int:
    """Return where the kind of a name's definition puts it among those of one name; of a use 0."""
    index = symbols.index_at(offset)
    if index < 0:
        return 0
    kind = symbols.kind(index)
    if kind == "heading":
        return HEADING_RANK
    if kind in TYPE_KINDS or kind == "type":
        return 0
    if find_code(symbols, index) != index:
        return SIGNATURE_RANK
    return 1


def _holder(name: str, *, fold: bool) -> Callable[[bytes], bool]:
    """Return a function that checks whether a text contains a name."""
    # Searching bytes is far cheaper than opening the symbols of a file without the
    # name.
    if fold:
        wanted = name.encode().lower()
    else:
        wanted = name.encode()
    return lambda data: wanted in (data.lower() if fold else data)


def count_words(text: bytes, name: str, *, fold: bool) -> int:
    """Return how often a name occurs as a word in a text, in any role."""
    checkpoint()
    word = re.compile(
        rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)",
        re.IGNORECASE if fold else re.NOFLAG,
    )
    return len(word.findall(text))


def in_turns(places: Iterable[_Place]) -> Iterator[_Place]:
    """Yield places with checkpoints between them."""
    for number, place in enumerate(places):
        if not number % COMPARED:
            checkpoint()
        yield place


def near_names(name: str, known: Sequence[str], limit: int) -> list[tuple[str, float]]:
    """Return the names most similar to one, with their similarity, 0 to 100."""
    near: list[tuple[str, float]] = []
    for start in range(0, len(known), COMPARED):
        checkpoint()  # comparing holds the interpreter's lock
        among = known[start : start + COMPARED]
        found = process.extract(
            name.lower(),
            among,
            scorer=fuzz.ratio,
            limit=limit,
            score_cutoff=FUZZY_CUTOFF,
        )
        near += [(known_name, score) for known_name, score, _ in found]
    return sorted(near, key=lambda found: -found[1])[
        :limit
    ]  # those alike in their order
