"""Where symbol lookups get their files: a snapshot, its index where that helps, the disk for everything else."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
from tree_sitter import Node

from flashgrep.bounded_cache import BoundedCache
from flashgrep.index import symbols as table
from flashgrep.index.scip import ScipTable
from flashgrep.ingest.buffers import UnsavedText
from flashgrep.ingest.parse import ParsedFile, parse_symbols
from flashgrep.ingest.parse.embedded import read_scripts
from flashgrep.ingest.parse.grammar import NoGrammar, ParseTimeout, grammar_of
from flashgrep.ingest.parse.imports import FileImports, read_imports
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import packed_language
from flashgrep.ingest.parse.repair import parse_and_repair
from flashgrep.ingest.parse.scoping import MAX_SECONDS, FileScopes, read_scopes
from flashgrep.languages import LANGUAGES, SCRIPTS, WORDS, language_of
from flashgrep.lazy import LazyAttribute
from flashgrep.model import FileStat, Skipped, SkipReason
from flashgrep.pattern import Pattern
from flashgrep.search.language_server_source import Served
from flashgrep.search.other_sources import FirstToKnow, Imported, OtherSources
from flashgrep.search.snapshot import TEXT_ID, Snapshot

ReadResult = FileSymbols | Skipped | None
ValueT = TypeVar("ValueT")
NOTHING_UNSAVED: Final[Mapping[bytes, UnsavedText]] = {}
NOT_HELD: Final = Skipped("unparsed", "its text has not what is looked for")
READ_AHEAD: Final = 64
"""Files whose symbols are read together: a transaction for each takes as long as reading a small file."""
_MOST_ROWS: Final = 2_000
"""Stored symbols of texts kept for one question, some kilobytes each: resolving goes to and fro between files."""
_KEPT_BYTES: Final = 1 << 17
_KEPT_FILES: Final = 256
"""Files parsed because the table has them not; a lookup of a name met in all of them stays quick the second time."""

_MOST_COMPARED: Final = 100
"""Pending files that are looked for on disk, to tell whether any came or went."""
_MOST_SYMBOLS: Final = 16 << 20
_MOST_IMPORTS: Final = 4 << 20
_MOST_SCOPES: Final = 1 << 20
"""Bytes of text; unpacked symbols take about twice as much, imports as much again, scopes with a tree 30 times."""
_LARGEST: Final = 1 << 18
"""A larger text would put too many others out."""


class SymbolSource(Protocol):
    """Files with their symbols, as a lookup needs them."""

    @property
    def imported(self) -> OtherSources | None:
        """What was imported of the project, and language servers; None: neither."""

    def paths(self) -> list[bytes]:
        """Return all files, by path."""

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:
        """Return the files that may hold the text, by path: a superset of those that do; ``whole``: as a name."""

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define the name; None where not all files have been parsed."""

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names that begin so, folded, as far as they are known without parsing."""

    def open(self, path: bytes, holds: Callable[[bytes], bool] | None = None, /) -> ReadResult:
        """Return a file's text and symbols, why it has none, or None where it is gone or in no language.

        ``holds``: a text that it says no of need not be parsed; ``NOT_HELD`` may stand for it.
        """

    def read(self, path: bytes) -> bytes | None:
        """Return a file's text, in whatever language; None where it has none, or is gone."""

    def has(self, path: bytes) -> bool:
        """Whether the project has a file."""

    def version(self, path: bytes) -> Hashable:
        """Return what tells a file's text from all others it had or will have; None: only reading it tells."""

    @property
    def by_paths(self) -> dict[Hashable, Any]:
        """What was worked out of which files there are: kept for as long as none comes or goes."""


class SnapshotSource:
    """A project as known now: the index proposes and remembers, each file answered about is read from disk."""

    def __init__(self, snapshot: Snapshot, asked: bytes | None = None) -> None:
        """``asked``: the file with the place that is asked about, whose syntax tree is wanted alongside its symbols."""
        self._snapshot, self._asked = snapshot, asked
        self._proposed: list[bytes] = []
        self.read_files: dict[bytes, FileStat | None] = {}
        """The version of each file that was read; None: it was not there."""
        self._rows: dict[int, bytes | None] = {}
        """Stored symbols by text: of files opened recently, and of those proposed after them."""

    @LazyAttribute
    def imported(self) -> OtherSources | None:
        """Return what was imported of the project, and language servers; None: neither."""
        table = None if self._snapshot.scip is None else ScipTable.open(self._snapshot.scip)
        # What was imported first: it was told by a compiler and costs no waiting.
        found: tuple[OtherSources, ...] = () if table is None else (Imported(table),)
        if self._snapshot.servers is not None:
            found = (*found, Served(self._snapshot.servers, self._snapshot))
        return FirstToKnow(found) if found else None

    def paths(self) -> list[bytes]:
        """Return all files, by path."""
        return self._add_changes(range(len(self._snapshot.table)))

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:
        """Return the files that may hold the text, by path; ``whole``: as a name."""
        pattern = Pattern(texts=(name,), mode="literal", case="insensitive" if fold else "sensitive")
        reader, files = self._snapshot.reader, self._snapshot.table
        text_ids = reader.candidates(pattern.grams()) if reader else None
        if reader is None or text_ids is None:
            return self.paths()
        if whole:
            text_ids = reader.with_words(text_ids, name.encode())
        self._proposed = self._add_changes(files.places(text_ids))
        return self._proposed

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define the name; None where not all files have been parsed."""
        if not self._snapshot.parsed or self._snapshot.reader is None:
            return None
        text_ids = self._snapshot.reader.defining(name, prefix=prefix)
        found = self._add_changes(self._snapshot.table.places(np.array(text_ids, np.int64)))
        # Both lists: what is opened next may be of either.
        self._proposed = sorted({*self._proposed, *found})
        return found

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names that begin so, folded, as far as they are known without parsing."""
        own = set(self._snapshot.table.texts().tolist())  # a store has other projects' names, too
        reader = self._snapshot.reader
        found = reader.defined_names(own, start, limit) if reader else []
        for path in self._snapshot.unsaved:  # who types a name has not saved it yet
            symbols = self.open(path) if path in self._snapshot.pending else None
            if isinstance(symbols, FileSymbols):
                names = (symbols.name(index).lower() for index in range(len(symbols.rows)))
                found = [*found, *(name for name in names if name.startswith(start.lower()))]
        return list(dict.fromkeys(found)) if self._snapshot.unsaved else found

    def open(self, path: bytes, holds: Callable[[bytes], bool] | None = None, /) -> ReadResult:
        """Return a file's text and symbols; the table's symbols only where the file is as it was indexed."""
        snapshot = self._snapshot
        stat, document = snapshot.read_with_stat(path)
        self.read_files[path] = stat
        if document is None or isinstance(document, Skipped):
            return document
        data, version = document.data, snapshot.indexed_version(path)
        is_same = version is not None and stat is not None and version[1:] == (stat.size, stat.mtime_ns)
        row = self._stored_row(path, version[0]) if version and is_same else None
        try:
            row = table.read_row(row)
        except table.Declined as declined:  # a grammar that crashed or took for ever must not do so here
            return Skipped(cast("SkipReason", str(declined)), "symbols: not parsed")
        if holds is not None and not holds(data):  # parsing takes 100 times as long as looking
            # Only without a row: to tell C from C++ a header is read to its end.
            return NOT_HELD if row or language_of(path, data).symbols else None
        if row:
            return keep_symbols(row, data)
        return parse_file(path, data, snapshot.unsaved, with_tree=path == self._asked)

    def read(self, path: bytes) -> bytes | None:
        """Return a file's text, in whatever language; None where it has none, or is gone."""
        if not self.has(path):
            return None
        self.read_files[path], document = self._snapshot.read_with_stat(path)
        return None if document is None or isinstance(document, Skipped) else document.data

    def has(self, path: bytes) -> bool:
        """Whether the project has a file."""
        return self._snapshot.has(path)

    def version(self, path: bytes) -> Hashable:
        """Return what tells a file's text from all others it had or will have; None: only reading it tells."""
        return self._snapshot.stored_version(path)

    @LazyAttribute
    def by_paths(self) -> dict[Hashable, Any]:
        """Return what was worked out of which files there are, to be added to."""
        table, pending = self._snapshot.table, self._snapshot.pending
        is_as_stored = len(pending) <= _MOST_COMPARED and all(
            self._snapshot.has(path) == (table.find(path) is not None) for path in pending
        )
        return table.by_paths if is_as_stored else {}

    def _add_changes(self, places: Iterable[int]) -> list[bytes]:
        """Return the unchanged files at these places of the table and all that changed, by path."""
        unchanged = list(self._snapshot.unchanged_paths(places))
        return sorted([*unchanged, *self._snapshot.changed_paths()]) if self._snapshot.pending else unchanged

    def _stored_row(self, path: bytes, text_id: int) -> bytes | None:
        """Return a text's row of the table of symbols, reading those of the files proposed next with it."""
        if text_id not in self._rows:
            files = self._snapshot.table
            first = bisect_left(self._proposed, path)
            # Lookups open files in the order proposed, so the next ones are wanted soon; after another they are not.
            is_proposed = first < len(self._proposed) and self._proposed[first] == path
            ahead = [files.find(one) for one in self._proposed[first : first + READ_AHEAD * is_proposed]]
            text_ids = {text_id, *(int(files.columns[at, TEXT_ID]) for at in ahead if at is not None)}
            rows = self._snapshot.reader.packed_symbols(text_ids) if self._snapshot.reader else {}
            # All at once: a question goes through its files in order and does not come back.
            if len(self._rows) > _MOST_ROWS:
                self._rows.clear()
            self._rows |= {**dict.fromkeys(text_ids), **rows}
        return self._rows[text_id]


def parse_file(
    path: bytes, data: bytes, unsaved: Mapping[bytes, UnsavedText] = NOTHING_UNSAVED, *, with_tree: bool = False
) -> ReadResult:
    """Parse a file now; one seen recently with the same text is remembered, an unsaved text's symbols with that.

    ``with_tree``: an unsaved text's tree is kept, too: it takes 15 times the text, parsing it again half of the time.
    """
    language = language_of(path, data)
    if not language.symbols:
        return None
    text = unsaved.get(path)
    if text is not None:  # what is typed is another text with every key, and nobody asks for the last one
        if text.parsed is None or text.parsed[0] != (language.name, data):
            own: dict[object, Any] = {}
            keep_tree = partial(own.__setitem__, _trees) if with_tree else None
            parsed = parse_symbols(language.name, data, keep_tree=keep_tree)
            symbols = parsed if isinstance(parsed, Skipped) else FileSymbols(parsed, data, own)
            text.parsed = (language.name, data), symbols
        return text.parsed[1]
    parsed = (parse_and_keep if len(data) <= _KEPT_BYTES else parse_symbols)(language.name, data)
    return parsed if isinstance(parsed, Skipped) else keep_symbols(parsed, data)


@lru_cache(maxsize=_KEPT_FILES)
def parse_and_keep(language: str, data: bytes) -> ParsedFile | Skipped:
    """Parse a text, or return what it was parsed to recently."""
    return parse_symbols(language, data)


def forget_parsed_files() -> None:
    """Let go of the files parsed for lookups, and of what was read out of texts."""
    parse_and_keep.cache_clear()
    for kept in _all_kept:
        kept.clear()


_all_kept: Final[list["Kept[Any]"]] = []


class Kept(BoundedCache[Hashable, ValueT]):
    """What was read out of texts recently, by content.

    A file is still read for every answer; what its text means is worked out once. A text is its own key, so nothing
    here can be out of date.
    """

    def __init__(self, most: int, largest: int = _LARGEST) -> None:
        super().__init__(most, largest)
        _all_kept.append(self)

    def find_or_make(self, key: Hashable, size: int, make: Callable[[], ValueT]) -> ValueT:
        """Return the value of a key; two threads may both make it. None is not kept: there was no time for it."""
        if (known := self.find(key)) is not None:
            return known
        value = make()
        if value is not None:
            self.put(key, size, value)
        return value


_symbols = Kept[FileSymbols](_MOST_SYMBOLS)
_imports = Kept[FileImports](_MOST_IMPORTS)
_scopes = Kept[FileScopes | None](_MOST_SCOPES)
_trees = Kept[Node | None](_MOST_SCOPES)


def _read_once(kept: Kept[ValueT], symbols: FileSymbols, make: Callable[[], ValueT]) -> ValueT:
    """Return what was read out of a text; what is of an unsaved text is kept with that, and goes with it."""
    own = symbols.kept
    if own is None:
        return kept.find_or_make((symbols.language, symbols.data), len(symbols.data), make)
    if kept not in own:
        # In the text's own dictionary: it goes when the next key is typed, without counting anything.
        own[kept] = make()
    found: ValueT = own[kept]
    return found


def keep_symbols(given: bytes | ParsedFile, data: bytes) -> FileSymbols:
    """Return a text with its symbols, packed or parsed."""
    language = packed_language(given) if isinstance(given, bytes) else given.language
    # A row may turn out to be damaged when it is unpacked: what is parsed in its place must not meet it here.
    return _symbols.find_or_make((language, data, type(given)), len(data), lambda: FileSymbols(given, data))


def imports_of(symbols: FileSymbols) -> FileImports:
    """Return what a text imports and exports; not to be changed."""
    return _read_once(_imports, symbols, lambda: read_imports(symbols))


def scopes_of(path: bytes, symbols: FileSymbols) -> FileScopes | None:
    """Return the scopes of a file in one of the languages ``SCOPED``; None where it cannot be parsed in time."""
    language, data = symbols.language, symbols.data
    found = _read_once(_scopes, symbols, lambda: read_scopes(path, language, data))
    return found if found is None or found.path == path else found.at(path, data)


def scopes_of_part(path: bytes, symbols: FileSymbols, part: tuple[tuple[int, int], ...]) -> FileScopes | None:
    """Return the scopes of a part of a file, as ``scopes_of``; not of an unsaved text."""

    def read() -> FileScopes | None:
        found = read_scopes(path, symbols.language, symbols.data, part)
        return None if found is None else found.without_text()

    size = sum(end - start for start, end in part)
    kept = _scopes.find_or_make((symbols.language, symbols.digest, part), size, read)
    return None if kept is None else kept.at(path, symbols.data)


def tree_of(symbols: FileSymbols) -> Node | None:
    """Return the root of a text's syntax tree; None where no grammar reads it, or not in time."""

    def parse() -> Node | None:
        grammar, data = LANGUAGES[symbols.language].symbols, symbols.data
        if grammar == SCRIPTS:
            grammar, data = read_scripts(symbols.language, data)
        try:
            parsed_by = None if grammar == WORDS else grammar_of(grammar)
            return None if parsed_by is None else parse_and_repair(grammar, parsed_by, data, MAX_SECONDS).tree.root_node
        except (NoGrammar, ParseTimeout):
            return None

    return _read_once(_trees, symbols, parse)
