"""Where symbol look-ups get their files: a snapshot, its index where that helps, the disk for everything else."""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, Protocol, TypeVar, cast

import numpy as np

from flashgrep.index import symbols as table
from flashgrep.ingest.extract import read_file
from flashgrep.ingest.openat import RootFiles
from flashgrep.ingest.parse import ParsedFile, parse_symbols
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.languages import language_of
from flashgrep.model import Skipped, SkipReason
from flashgrep.pattern import Pattern
from flashgrep.search.snapshot import Snapshot

ReadResult = FileSymbols | Skipped | None
ResultT = TypeVar("ResultT")
_STAT_END: Final = 3
"""The first columns of the table of files: text, size, time."""
_KEPT_BYTES: Final = 1 << 17
READ_AHEAD: Final = 64
"""Files whose symbols are read together: a transaction for each takes as long as reading a small file."""
_PARSED_KEPT: Final = 256
"""Files parsed because the table has them not; a lookup of a name met in all of them stays quick the second time."""


class SymbolSource(Protocol):
    """Files with their symbols, as a look-up needs them."""

    def paths(self) -> list[bytes]:
        """Return all files, by path."""

    def candidates(self, name: str, *, fold: bool) -> list[bytes]:
        """Return the files that may hold the text, by path: a superset of those that do."""

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define the name; None where not all files have been parsed."""

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names that begin so, folded, as far as they are known without parsing."""

    def open(self, path: bytes, holds: Callable[[bytes], bool] | None = None, /) -> ReadResult:
        """Return a file's text and symbols, why it has none, or None where it is gone or in no language.

        ``holds``: a text that it says no of need not be parsed, and may come without its symbols.
        """


class SnapshotSource:
    """A project as known now: the index proposes and remembers, each file answered about is read from disk."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._view = snapshot
        self._proposed: list[bytes] = []
        self._rows: dict[int, bytes | None] = {}
        """Stored symbols by text: of the file opened last, and of those proposed behind it."""

    def paths(self) -> list[bytes]:
        """Return all files, by path."""
        pending = self._view.pending
        settled = [path for path in self._view.table.paths if path not in pending]
        return sorted([*settled, *self._changed()]) if pending else settled

    def candidates(self, name: str, *, fold: bool) -> list[bytes]:
        """Return the files that may hold the text, by path."""
        pattern = Pattern(texts=(name,), mode="literal", case="insensitive" if fold else "sensitive")
        snapshot = self._view
        blobs = snapshot.reader.candidates(pattern.grams()) if snapshot.reader else None
        if blobs is None:
            return self.paths()
        return self._of_places(snapshot.table.places(blobs))

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return the files that may define the name; None where not all files have been parsed."""
        if not self._view.parsed or self._view.reader is None:
            return None
        with self._view.reader.transaction() as connection:
            blobs = table.defining(connection, name, prefix=prefix)
        return self._of_places(self._view.table.places(np.array(blobs, np.int64)))

    def names(self, start: str, limit: int) -> list[str]:
        """Return defined names that begin so, folded, as far as they are known without parsing."""
        none: list[tuple[str, int]] = []
        return [name for name, _ in self._ask(lambda one: table.defined_names(one, start, limit), missing=none)]

    def open(self, path: bytes, holds: Callable[[bytes], bool] | None = None, /) -> ReadResult:
        """Return a file's text and symbols; the table's symbols only where the file is as it was indexed."""
        stored, as_indexed = self._stored(path)
        if isinstance(stored, Skipped) and _stat_of(self._view.files, path) == as_indexed:
            return stored
        try:
            stat, document = read_file(self._view.files, path, self._view.max_size)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if isinstance(document, Skipped):
            return document
        if isinstance(stored, bytes) and stat is not None and (stat.size, stat.mtime_ns) == as_indexed:
            return FileSymbols(stored, document.data)
        if holds is not None and not holds(document.data):  # parsing takes 100 times as long as looking
            language = language_of(path, document.data)
            return FileSymbols(ParsedFile(language.name), document.data) if language.symbols else None
        return parsed_file(path, document.data)

    def _of_places(self, places: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[bytes]:
        paths, pending = self._view.table.paths, self._view.pending
        settled = [path for path in (paths[at] for at in places) if path not in pending]
        self._proposed = sorted([*settled, *self._changed()]) if pending else settled
        return self._proposed

    def _changed(self) -> Iterator[bytes]:
        return (path for path, mark in self._view.pending.items() if mark.ours)

    def _stored(self, path: bytes) -> tuple[bytes | Skipped | None, tuple[int, int]]:
        """Return the packed symbols of a file, or why it could not be parsed; and its size and time as indexed."""
        snapshot = self._view
        at = snapshot.table.find(path)
        if at is None or path in snapshot.pending or snapshot.reader is None:
            return None, (0, 0)
        blob, size, mtime_ns = snapshot.table.columns[at, :_STAT_END].tolist()
        if blob not in self._rows:
            first = bisect_left(self._proposed, path)
            ahead = [snapshot.table.find(one) for one in self._proposed[first : first + READ_AHEAD]]
            blobs = {blob, *(int(snapshot.table.columns[at, 0]) for at in ahead if at is not None)}
            none: dict[int, bytes] = {}
            rows = self._ask(lambda connection: table.packed_of(connection, blobs), missing=none)
            self._rows = {**dict.fromkeys(blobs), **rows}
        try:
            return table.accepted(self._rows[blob]) or None, (size, mtime_ns)
        except table.Declined as declined:  # a grammar that crashed or took for ever must not do so here
            return Skipped(cast("SkipReason", str(declined)), "symbols: not parsed"), (size, mtime_ns)

    def _ask(self, question: Callable[[sqlite3.Connection], ResultT], *, missing: ResultT) -> ResultT:
        """Ask the tables; ``missing``: the answer where an index has none yet."""
        if self._view.reader is None:
            return missing
        with self._view.reader.transaction() as connection:
            try:
                return question(connection)
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return missing
                raise


def _stat_of(files: RootFiles, path: bytes) -> tuple[int, int] | None:
    try:
        found = files.lstat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def parsed_file(path: bytes, data: bytes) -> ReadResult:
    """Parse a file now; one seen lately with the same text is remembered."""
    language = language_of(path, data)
    if not language.symbols:
        return None
    parsed = (_parsed if len(data) <= _KEPT_BYTES else parse_symbols)(language.name, data)
    return parsed if isinstance(parsed, Skipped) else FileSymbols(parsed, data)


@lru_cache(maxsize=_PARSED_KEPT)
def _parsed(language: str, data: bytes) -> ParsedFile | Skipped:
    return parse_symbols(language, data)


def forget_parsed() -> None:
    """Let go of the files parsed for look-ups."""
    _parsed.cache_clear()
