"""Where symbol lookups get their files: from a snapshot, with its index where that helps, otherwise from disk."""

import weakref
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
from tree_sitter import Node

from flashgrep.api.libraries import LibraryLookup
from flashgrep.api.service import HostService, ProjectService, ServiceKey
from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.languages import LANGUAGES, SCRIPTS, WORDS, language_of
from flashgrep.base.lazy import LazyAttribute
from flashgrep.base.model import FileStat, Skipped, SkipReason
from flashgrep.files.buffers import UnsavedText
from flashgrep.parts.symbols import symbol_table as table
from flashgrep.parts.symbols.other_sources import OtherSources, SourceChain
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.embedded import read_scripts
from flashgrep.parts.symbols.parse.grammar import NoGrammar, ParseTimeout, grammar_of
from flashgrep.parts.symbols.parse.imports import FileImports, read_imports
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import packed_language, unpacked_size
from flashgrep.parts.symbols.parse.repair import parse_and_repair
from flashgrep.parts.symbols.parse.scoping import MAX_SECONDS, FileScopes, read_scopes
from flashgrep.pattern import Pattern
from flashgrep.search.snapshot import TEXT_ID, Snapshot

ReadResult = FileSymbols | Skipped | None
ValueT = TypeVar("ValueT")
NOTHING_UNSAVED: Final[Mapping[bytes, UnsavedText]] = {}
NOT_HELD: Final = Skipped("unparsed", "its text has not what is looked for")
READ_AHEAD: Final = 64
"""Files whose stored symbols are read together: a transaction per file takes as long as reading a small file."""
_MOST_ROWS: Final = 2_000
"""Most stored symbol rows kept for one question, some kilobytes each: resolving returns to files often."""
_MOST_PARSED: Final = 16 << 20
"""Bytes of files parsed and kept because the index lacks them; repeating a lookup that needs all of them is then quick.
"""

_MOST_COMPARED: Final = 100
"""Most pending files that are checked on disk for having been added or removed."""
_MOST_SYMBOLS: Final = 48 << 20
"""Bytes of texts and the columns of their symbols."""
_MOST_LATEST: Final = 4_000
"""Files that were opened last; most of a large question's are not saved soon."""
_MOST_IMPORTS: Final = 4 << 20
_MOST_SCOPES: Final = 1 << 20
"""Bytes of text; imports take about as much again, scopes with a tree 30 times."""
_LARGEST: Final = 1 << 18
"""A larger text would displace too many others."""
_LARGEST_PARSED: Final = 1 << 20
"""So would a text whose columns make it larger than this."""


class SymbolSource(Protocol):
    """Files with their symbols, as lookups need them."""

    @property
    def imported(self) -> OtherSources | None:
        """SCIP indexes of the project, and language servers; None: neither."""

    @property
    def libraries(self) -> LibraryLookup | None:
        """The libraries that the project uses, whose files have absolute paths; None: the question is not about them."""

    def paths(self) -> list[bytes]:
        """Return all files, by path."""

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:
        """Return the files that may contain a text, by path: a superset; ``whole``: as a whole name."""

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define a name; None if not all files have been parsed."""

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names with a prefix, folded, as far as they are known without parsing."""

    def open(
        self, path: bytes, holds: Callable[[bytes], bool] | None = None, /
    ) -> ReadResult:
        """Return a file with its symbols, why it has none, or None if it is gone or in no language.

        ``holds``: a text for which it returns False need not be parsed; ``NOT_HELD`` may be returned instead.
        """

    def read(self, path: bytes) -> bytes | None:
        """Return a file's text, in any language; None if it has none or is gone."""

    def has(self, path: bytes) -> bool:
        """Whether the project has a file."""

    def version(self, path: bytes) -> Hashable:
        """Return an identifier of a file's text, unique over time; None: known only after reading the file."""

    @property
    def by_paths(self) -> dict[Hashable, Any]:
        """Results that depend only on the set of files; kept until a file is added or removed."""


class SnapshotSource:
    """A project's current state: the index proposes files and keeps symbols, the text always comes from disk."""

    def __init__(
        self,
        snapshot: Snapshot,
        asked: bytes | None = None,
        libraries: LibraryLookup | None = None,
    ) -> None:
        """``asked``: the file with the position asked about, whose syntax tree is kept with its symbols."""
        self._snapshot = snapshot
        self._asked = asked
        self.libraries = libraries
        self._proposed: list[bytes] = []
        self.read_files: dict[bytes, FileStat | None] = {}
        """The version of each file that was read; None: it did not exist."""
        self._rows: dict[int, bytes | None] = {}
        """Stored symbols by text: of recently opened files, and of files proposed after them."""

    @LazyAttribute
    def imported(self) -> OtherSources | None:
        """Return the imported indexes of the project and its language servers; None: neither."""
        opened = [open_source(self._snapshot) for open_source in self._snapshot.sources]
        sources: list[OtherSources] = [
            source for source in opened if source is not None
        ]
        if not sources:
            return None
        return SourceChain(tuple(sources))

    def paths(self) -> list[bytes]:
        """Return all files, by path."""
        return self._add_changes(range(len(self._snapshot.table)))

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:
        """Return the files that may contain a text, by path; ``whole``: as a whole name."""
        pattern = Pattern(
            texts=(name,), mode="literal", case="insensitive" if fold else "sensitive"
        )
        reader = self._snapshot.reader
        files = self._snapshot.table
        if reader:
            text_ids = reader.candidates(pattern.grams())
        else:
            text_ids = None
        if reader is None or text_ids is None:
            return self.paths()
        if whole:
            text_ids = reader.with_words(text_ids, name.encode())
        self._proposed = self._add_changes(files.places(text_ids))
        return self._proposed

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define a name; None if not all files have been parsed."""
        if not self._snapshot.parsed or self._snapshot.reader is None:
            return None
        text_ids = self._snapshot.reader.rows(table.SYMBOL_ROWS).defining(
            name, prefix=prefix
        )
        changes = self._add_changes(
            self._snapshot.table.places(np.array(text_ids, np.int64))
        )
        # Both lists: files opened next may come from either.
        self._proposed = sorted({*self._proposed, *changes})
        return changes

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names with a prefix, folded, as far as they are known without parsing."""
        own = set(
            self._snapshot.table.texts().tolist()
        )  # a store also has names of other projects
        reader = self._snapshot.reader
        if reader:
            found_names = reader.rows(table.SYMBOL_ROWS).defined_names(
                own, start, limit
            )
        else:
            found_names = []
        for path in self._snapshot.unsaved:  # a name being typed is not saved yet
            if path in self._snapshot.pending:
                symbols = self.open(path)
            else:
                symbols = None
            if isinstance(symbols, FileSymbols):
                names = (symbols.name(index).lower() for index in range(symbols.count))
                found_names = [
                    *found_names,
                    *(name for name in names if name.startswith(start.lower())),
                ]
        if self._snapshot.unsaved:
            return list(dict.fromkeys(found_names))
        return found_names

    def open(
        self, path: bytes, holds: Callable[[bytes], bool] | None = None, /
    ) -> ReadResult:
        """Return a file with its symbols; stored ones only if the file is unchanged since it was indexed."""
        snapshot = self._snapshot
        if path.startswith(b"/"):
            return self._open_library(path, holds)
        stat, document = snapshot.read_with_stat(path)
        self.read_files[path] = stat
        if document is None or isinstance(document, Skipped):
            return document
        data = document.data
        version = snapshot.indexed_version(path)
        is_same = (
            version is not None
            and stat is not None
            and version[1:] == (stat.size, stat.mtime_ns)
        )
        if version and is_same:
            row = self._stored_row(path, version[0])
        else:
            row = None
        try:
            row = table.read_row(row)
        except (
            table.Declined
        ) as declined:  # a grammar that crashed or hung must not run here again
            return Skipped(cast("SkipReason", str(declined)), "symbols: not parsed")
        if holds is not None and not holds(
            data
        ):  # parsing takes 100 times as long as this check
            # A row makes detection unnecessary: to tell C from C++, a header is read to
            # its end.
            return NOT_HELD if row or language_of(path, data).symbols else None
        if row:
            symbols: ReadResult = keep_symbols(row, data)
        else:
            with_tree = path == self._asked
            symbols = parse_file(path, data, snapshot.unsaved, with_tree=with_tree)
        # An unsaved text has what is kept of it, and the saved one stays.
        if isinstance(symbols, FileSymbols) and symbols.kept is None:
            forget_former((snapshot.root.path, path), symbols)
        return symbols

    def read_ahead(self, paths: Sequence[bytes]) -> None:
        """Read the stored symbols of files that are opened next, in any order: all at once takes as long as one."""
        versions = map(self._snapshot.indexed_version, paths)
        self._read_rows({version[0] for version in versions if version is not None})

    def read(self, path: bytes) -> bytes | None:
        """Return a file's text, in any language; None if it has none or is gone."""
        if path.startswith(b"/"):
            return self._read_library(path)
        if not self.has(path):
            return None
        self.read_files[path], document = self._snapshot.read_with_stat(path)
        return (
            None if document is None or isinstance(document, Skipped) else document.data
        )

    def has(self, path: bytes) -> bool:
        """Whether the project has a file."""
        return not path.startswith(b"/") and self._snapshot.has(path)

    def version(self, path: bytes) -> Hashable:
        """Return an identifier of a file's text, unique over time; None: known only after reading the file."""
        return self._snapshot.stored_version(path)

    @LazyAttribute
    def by_paths(self) -> dict[Hashable, Any]:
        """Return the cache of results that depend only on the set of files."""
        table = self._snapshot.table
        pending = self._snapshot.pending
        is_as_stored = len(pending) <= _MOST_COMPARED and all(
            self._snapshot.has(path) == (table.find(path) is not None)
            for path in pending
        )
        if is_as_stored:
            return table.by_paths
        return {}

    def _open_library(
        self, path: bytes, holds: Callable[[bytes], bool] | None
    ) -> ReadResult:
        """Return a library's file with its symbols, which are kept by its text for all projects."""
        document = None
        if self.libraries is not None:
            document = self.libraries.read(path)
        if document is None or isinstance(document, Skipped):
            return document
        if holds is not None and not holds(document.data):
            return NOT_HELD
        return parse_file(path, document.data)

    def _read_library(self, path: bytes) -> bytes | None:
        document = None
        if self.libraries is not None:
            document = self.libraries.read(path)
        if document is None or isinstance(document, Skipped):
            return None
        return document.data

    def _add_changes(self, places: Iterable[int]) -> list[bytes]:
        """Return the unchanged files at these positions of the table and all changed files, by path."""
        unchanged = list(self._snapshot.unchanged_paths(places))
        if self._snapshot.pending:
            return sorted([*unchanged, *self._snapshot.changed_paths()])
        return unchanged

    def _stored_row(self, path: bytes, text_id: int) -> bytes | None:
        """Return the stored symbols of a text; those of the files proposed next are read with them."""
        if text_id not in self._rows:
            files = self._snapshot.table
            first = bisect_left(self._proposed, path)
            # Lookups open files in the order proposed, so the next ones are needed
            # soon, but not if this one was not proposed.
            is_proposed = False
            if first < len(self._proposed):
                is_proposed = self._proposed[first] == path
            ahead = [
                files.find(path_ahead)
                for path_ahead in self._proposed[
                    first : first + READ_AHEAD * is_proposed
                ]
            ]
            self._read_rows(
                {
                    text_id,
                    *(
                        int(files.columns[at, TEXT_ID])
                        for at in ahead
                        if at is not None
                    ),
                }
            )
        return self._rows[text_id]

    def _read_rows(self, text_ids: Collection[int]) -> None:
        """Read the stored symbols of texts."""
        rows: Mapping[int, bytes] = {}
        reader = self._snapshot.reader
        if reader:
            rows = reader.rows(table.SYMBOL_ROWS).packed_symbols(text_ids)
        # All at once: a question goes through its files in order and rarely
        # returns.
        if len(self._rows) > _MOST_ROWS:
            self._rows.clear()
        self._rows |= {**dict.fromkeys(text_ids), **rows}


def parse_file(
    path: bytes,
    data: bytes,
    unsaved: Mapping[bytes, UnsavedText] = NOTHING_UNSAVED,
    *,
    with_tree: bool = False,
) -> ReadResult:
    """Parse a file now; a recent result for the same text is reused, and an unsaved text keeps its own.

    ``with_tree``: an unsaved text's tree is kept, too. It takes 15 times the text; parsing again takes half the time.
    """
    language = language_of(path, data)
    if not language.symbols:
        return None
    text = unsaved.get(path)
    if (
        text is not None
    ):  # every key typed makes another text, and the previous one is not needed again
        if text.parsed is None or text.parsed[0] != (language.name, data):
            own: dict[object, Any] = {}
            keep_tree = None
            if with_tree:
                keep_tree = partial(own.__setitem__, _trees)
            parsed = parse_symbols(language.name, data, keep_tree=keep_tree)
            symbols = (
                parsed
                if isinstance(parsed, Skipped)
                else FileSymbols(parsed, data, own)
            )
            text.parsed = (language.name, data), symbols
        return text.parsed[1]
    parsed = parse_and_keep(language.name, data)
    if isinstance(parsed, Skipped):
        return parsed
    return keep_symbols(parsed, data)


def parse_and_keep(language: str, data: bytes) -> ParsedFile | Skipped:
    """Parse a text, or return its recent result."""
    key = language, data
    parsed = PARSED_TEXTS.find(key)
    if parsed is None:
        parsed = parse_symbols(language, data)
        size = len(data)
        if isinstance(parsed, ParsedFile):
            size += parsed.size
        PARSED_TEXTS.put(key, size, parsed)
    return parsed


def forget_parsed_files() -> None:
    """Clear the files parsed for lookups, and everything else derived from texts."""
    for cache in _all_kept:
        cache.clear()


class ParsedFiles(HostService):
    """The files parsed for lookups: kept by all projects together."""

    def forget_caches(self) -> None:
        """Forget them."""
        forget_parsed_files()


class StoredSymbols(ProjectService):
    """The symbols stored in a project's index, of which parsed files keep a part by their text."""

    def forget_index(self) -> None:
        """Forget the parsed files: what was stored of them may be damaged."""
        forget_parsed_files()


STORED_SYMBOLS: Final = ServiceKey[StoredSymbols]("stored symbols")
PARSED_FILES: Final = ServiceKey[ParsedFiles]("parsed files")


_all_kept: Final[list["TextCache[Any]"]] = []


class TextCache(BoundedCache[Hashable, ValueT]):
    """A cache of values derived from texts, by content.

    A file is still read for every answer, but the values are computed once. The text is the key, so no entry can be out
    of date.
    """

    def __init__(self, most: int, largest: int = _LARGEST) -> None:
        super().__init__(most, largest)
        _all_kept.append(self)

    def find_or_make(
        self, key: Hashable, size: int, make: Callable[[], ValueT]
    ) -> ValueT:
        """Return a key's value; two threads may both compute it. None is not cached: time was too short for it."""
        if (value_kept := self.find(key)) is not None:
            return value_kept
        value = make()
        if value is not None:
            self.put(key, size, value)
        return value


PARSED_TEXTS: Final = TextCache[ParsedFile | Skipped](_MOST_PARSED, _LARGEST_PARSED)
_symbols = TextCache[FileSymbols](_MOST_SYMBOLS, _LARGEST_PARSED)
_latest = BoundedCache[tuple[bytes, bytes], weakref.ref[FileSymbols]](_MOST_LATEST)
"""By project and path, what a file was last opened as: each save makes another text."""
_imports = TextCache[FileImports](_MOST_IMPORTS)
_scopes = TextCache[FileScopes | None](_MOST_SCOPES)
_trees = TextCache[Node | None](_MOST_SCOPES)


def _read_once(
    kept: TextCache[ValueT], symbols: FileSymbols, make: Callable[[], ValueT]
) -> ValueT:
    """Return a value derived from a text; values of an unsaved text are kept with the text and dropped with it."""
    own = symbols.kept
    if own is None:
        return kept.find_or_make(
            (symbols.language, symbols.data), len(symbols.data), make
        )
    if kept not in own:
        # In the text's own dictionary: it goes with the next key typed, so no size is
        # counted.
        own[kept] = make()
    value: ValueT = own[kept]
    return value


def keep_symbols(given: bytes | ParsedFile, data: bytes) -> FileSymbols:
    """Return a text with its symbols, packed or parsed."""
    if isinstance(given, bytes):
        language = packed_language(given)
        size = unpacked_size(given)
    else:
        language = given.language
        size = given.size

    def make() -> FileSymbols:
        if isinstance(given, bytes):
            # Stored now: what was parsed until then would only displace others.
            PARSED_TEXTS.remove((language, data))
            _symbols.remove((language, data, ParsedFile))
        return FileSymbols(given, data)

    # A row may turn out to be damaged when it is unpacked; the result of parsing must
    # not be mixed up with it.
    return _symbols.find_or_make((language, data, type(given)), len(data) + size, make)


def forget_former(place: tuple[bytes, bytes], symbols: FileSymbols) -> None:
    """Forget what is kept of the text that a file had before, in a project and by its path."""
    former = _latest.find(place)
    before = None if former is None else former()
    if before is symbols:
        return
    _latest.put(place, 1, weakref.ref(symbols))
    if before is not None and before.data != symbols.data:
        for kind in (bytes, ParsedFile):
            _symbols.remove((before.language, before.data, kind))
        PARSED_TEXTS.remove((before.language, before.data))


def imports_of(symbols: FileSymbols) -> FileImports:
    """Return the imports and exports of a text; do not modify them."""
    return _read_once(_imports, symbols, lambda: read_imports(symbols))


def scopes_of(path: bytes, symbols: FileSymbols) -> FileScopes | None:
    """Return the scopes of a file in one of the languages ``SCOPED``; None if it cannot be parsed in time."""
    language = symbols.language
    data = symbols.data
    file_scopes = _read_once(
        _scopes, symbols, lambda: read_scopes(path, language, data)
    )
    if file_scopes is None or file_scopes.path == path:
        return file_scopes
    return file_scopes.at(path, data)


def scopes_of_part(
    path: bytes, symbols: FileSymbols, part: tuple[tuple[int, int], ...]
) -> FileScopes | None:
    """Return the scopes of a part of a file, like ``scopes_of``; not for an unsaved text."""

    def read() -> FileScopes | None:
        scopes = read_scopes(path, symbols.language, symbols.data, part)
        if scopes is None:
            return None
        return scopes.without_text()

    size = sum(end - start for start, end in part)
    file_scopes = _scopes.find_or_make(
        (symbols.language, symbols.digest, part), size, read
    )
    if file_scopes is None:
        return None
    return file_scopes.at(path, symbols.data)


def tree_of(symbols: FileSymbols) -> Node | None:
    """Return the root of a text's syntax tree; None if no grammar can parse it, or not in time."""

    def parse() -> Node | None:
        grammar = LANGUAGES[symbols.language].symbols
        data = symbols.data
        if grammar == SCRIPTS:
            grammar, data = read_scripts(symbols.language, data)
        try:
            if grammar == WORDS:
                parsed_by = None
            else:
                parsed_by = grammar_of(grammar)
            if parsed_by is None:
                return None
            return parse_and_repair(
                grammar, parsed_by, data, MAX_SECONDS
            ).tree.root_node
        except (NoGrammar, ParseTimeout):
            return None

    return _read_once(_trees, symbols, parse)
