"""The SCIP data imported for one project: a SQLite file in the project's state folder, replaced as a whole.

An import writes a copy and renames it, so readers see either the old or the new data, and a killed import leaves the
old. Occurrences are packed per document; a table says which documents have a symbol.
"""

import fcntl
import hashlib
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.damage import Damaged, inflate

Rows = NDArray[np.int64]
START, END, ROLES, SYMBOL = range(4)
"""Columns of occurrences: byte offsets of start and end, SCIP's roles, the symbol's number."""
DEFINES, IMPORTS = 1, 2
"""Bits of SCIP's roles."""
FILE: Final = "scip.db"
_FRESH: Final = "scip.new"
_LOCK: Final = "scip.lock"
_MOST_INFLATED: Final = 256 << 20
_ROW: Final = 32
"""Bytes per occurrence."""
_VERSION: Final = 1
_SCHEMA: Final = f"""
PRAGMA user_version = {_VERSION};
CREATE TABLE source (file TEXT PRIMARY KEY, tool TEXT, imported REAL, stale INTEGER, missing INTEGER);
CREATE TABLE document (id INTEGER PRIMARY KEY, path BLOB UNIQUE, file TEXT, digest BLOB, occurrences BLOB);
CREATE TABLE place (symbol INTEGER, document INTEGER, defines INTEGER, PRIMARY KEY (symbol, document)) WITHOUT ROWID;
CREATE INDEX place_document ON place (document);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One imported file."""

    file: str
    tool: str
    imported: float
    """Time of the import, in seconds since 1970."""
    documents: int
    """How many files it covers."""
    stale: int
    """Documents left out because their file's text differs from the indexed one."""
    missing: int
    """Documents that match no file of the project."""


def hash_text(data: bytes) -> bytes:
    """Return the hash of a text."""
    return hashlib.blake2b(data, digest_size=16).digest()


class ScipWriter:
    """Writes the import of one SCIP file; made by ``change``."""

    def __init__(self, connection: sqlite3.Connection, file: str) -> None:
        self._connection = connection
        self._file = file

    def forget(self) -> None:
        """Drop everything imported from this file before."""
        self._drop("file = ?", self._file)
        self._connection.execute("DELETE FROM source WHERE file = ?", (self._file,))

    def add(self, path: bytes, data: bytes, rows: Rows) -> None:
        """Store a document, replacing what another file may have said about it."""
        self._drop("path = ?", path)
        packed = zlib.compress(np.ascontiguousarray(rows).tobytes(), 1)
        document = self._connection.execute(
            "INSERT INTO document (path, file, digest, occurrences) VALUES (?, ?, ?, ?)",
            (path, self._file, hash_text(data), packed),
        )
        shared = rows[rows[:, SYMBOL] >= 0]
        defined = {*shared[(shared[:, ROLES] & DEFINES) > 0, SYMBOL].tolist()}
        self._connection.executemany(
            "INSERT INTO place VALUES (?, ?, ?)",
            (
                (symbol, document.lastrowid, symbol in defined)
                for symbol in {*shared[:, SYMBOL].tolist()}
            ),
        )

    def record(self, tool: str, stale: int, missing: int) -> None:
        """Record the file as a source."""
        row = (self._file, tool, time.time(), stale, missing)
        self._connection.execute("INSERT INTO source VALUES (?, ?, ?, ?, ?)", row)

    def _drop(self, which: str, value: str | bytes) -> None:
        of = f"SELECT id FROM document WHERE {which}"  # noqa: S608 - the condition is one of two of ours
        self._connection.execute(
            f"DELETE FROM place WHERE document IN ({of})",  # noqa: S608 - as above
            (value,),
        )
        self._connection.execute(f"DELETE FROM document WHERE {which}", (value,))  # noqa: S608 - as above


@contextmanager
def change(folder: Path, file: str) -> Iterator[ScipWriter]:
    """Change the imported data of a project, atomically; ``folder`` must exist.

    Concurrent imports wait for each other. Existing data that cannot be read is discarded.
    """
    fresh = folder / _FRESH
    old = folder / FILE
    with (folder / _LOCK).open("wb") as lock:
        # The lock file is never removed: a new file could be locked while another
        # process still waits on the old one.
        fcntl.flock(lock, fcntl.LOCK_EX)
        fresh.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(old, fresh)
            if not is_sound(fresh):
                fresh.unlink()
        try:
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.execute(
                    "PRAGMA journal_mode = OFF"
                )  # nothing reads it before it is complete
                if not connection.execute("PRAGMA user_version").fetchone()[0]:
                    connection.executescript(_SCHEMA)
                connection.execute("BEGIN")
                yield ScipWriter(connection, file)
                connection.execute("COMMIT")
                is_empty = connection.execute("SELECT 1 FROM source").fetchone() is None
                connection.execute("VACUUM")
            if is_empty:
                old.unlink(missing_ok=True)
            else:
                fresh.replace(old)
        finally:
            fresh.unlink(missing_ok=True)


def list_sources(folder: Path) -> list[Source]:
    """Return the files imported for a project; none if the imported data cannot be read."""
    table = ScipTable.open(folder / FILE)
    try:
        if table is None:
            return []
        return table.sources()
    except sqlite3.Error:
        return []


def is_sound(file: Path) -> bool:
    """Return whether a file is a sound database of the current version."""
    try:
        with closing(sqlite3.connect(file)) as connection:
            version, check = (
                connection.execute(f"PRAGMA {pragma}").fetchone()
                for pragma in ("user_version", "quick_check")
            )
    except sqlite3.Error:
        return False
    return (version, check) == ((_VERSION,), ("ok",))


class ScipTable:
    """The imported data of a project, as read by one lookup, in one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __del__(self) -> None:
        self._connection.close()

    @classmethod
    def open(cls, file: Path) -> Self | None:
        """Return the imported data; None if there is none or it cannot be read."""
        try:
            file.stat()
            # immutable: the file is only ever replaced by a rename, so SQLite need not
            # lock it or look for a journal.
            connection = sqlite3.connect(
                f"{file.as_uri()}?mode=ro&immutable=1",
                uri=True,
                check_same_thread=False,
            )
            if connection.execute("PRAGMA user_version").fetchone() == (_VERSION,):
                return cls(connection)
            connection.close()
        except (OSError, sqlite3.Error):
            pass
        return None

    def sources(self) -> list[Source]:
        """Return the imported files, by name."""
        query = (
            "SELECT file, tool, imported, stale, missing, (SELECT count(*) FROM document WHERE document.file = "
            "source.file) FROM source ORDER BY file"
        )
        return [
            Source(
                file=file,
                tool=tool,
                imported=imported,
                stale=stale,
                missing=missing,
                documents=documents,
            )
            for file, tool, imported, stale, missing, documents in self._connection.execute(
                query
            )
        ]

    def occurrences(self, path: bytes, data: bytes) -> Rows | None:
        """Return the occurrences in a file with this text, by position; None if this text was not imported.

        Raises:
            Damaged: they are not as written.

        """
        query = "SELECT digest, occurrences FROM document WHERE path = ?"
        row = self._connection.execute(query, (path,)).fetchone()
        # Occurrences of another text would point to wrong positions.
        if row is None or row[0] != hash_text(data):
            return None
        packed = inflate(row[1], _MOST_INFLATED)
        if len(packed) % _ROW:
            raise Damaged("occurrences: truncated")
        rows = np.frombuffer(packed, np.int64).reshape(-1, 4)
        if len(rows) and (rows[:, :2].min() < 0 or rows[:, :2].max() > len(data)):
            raise Damaged("occurrences: outside the text")
        return rows

    def find(self, symbols: Iterable[int], *, defining: bool) -> list[bytes]:
        """Return the paths of the files that have, or if ``defining`` define, any of these symbols."""
        query = "SELECT path FROM place JOIN document ON id = document WHERE symbol = ? AND defines >= ?"
        return sorted(
            {
                row[0]
                for symbol in symbols
                for row in self._connection.execute(query, (symbol, int(defining)))
            }
        )
