"""The tables of the index database, opening it, telling damage from our own mistakes, and setting it aside."""

import contextlib
import errno
import logging
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from flashgrep.base.damage import Damaged
from flashgrep.base.own_folders import clear_place

FORMAT = 10
"""Raised when the same tables get another meaning; a change of the tables themselves is detected without it."""

APPLICATION_ID = (
    0x666C6772  # "flgr": tells our database from a foreign one with the same file name
)

PAGE_SIZE = 8192
"""Two blocks of postings fit a page."""

BUSY_MS = 10_000
"""How long the writer waits for a lock."""

LOG_BYTES = 8 << 20
"""The write-ahead log is cut to this size after a long transaction: what short ones need between two checkpoints."""

READER_BUSY_MS = 500
"""WAL readers block only on an exclusive lock. If it is held for longer, the caller scans instead of waiting."""

LONGEST_VALUE = 64 << 20
"""The largest value a reader accepts, in bytes: the packed symbols of the largest text take a few megabytes."""

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    blob BLOB,
    name_class TEXT NOT NULL DEFAULT ''
);
CREATE TABLE project (
    id INTEGER PRIMARY KEY,
    root BLOB NOT NULL UNIQUE,
    embedding TEXT NOT NULL,
    vector_set INTEGER NOT NULL
);
CREATE TABLE path (
    project INTEGER NOT NULL,
    path BLOB NOT NULL,
    text_id INTEGER NOT NULL,
    skip TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (project, path)
) WITHOUT ROWID;
CREATE INDEX path_text_id ON path (project, text_id);
CREATE TABLE kept (
    blob BLOB NOT NULL,
    name_class TEXT NOT NULL,
    text_id INTEGER NOT NULL,
    skip TEXT NOT NULL,
    until INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (blob, name_class)
) WITHOUT ROWID;
CREATE TABLE segment (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE TABLE posting_block (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""
# text: one row per distinct text and name class of its files, which determines the
# language; hash covers both; blob: git's object id (SHA-1) of a file with this text, if
# known. project: a root; the settings of the embedder that last made all its vectors,
# and their set ("" and 0: none). path: one row per file of a project; text_id 0 and a
# reason in skip: declined. kept: one row per content of a searched revision, see
# ``kept``; text_id 0 and a reason in skip: declined. segment: see
# ``segments.SegmentRow``; posting_block: (segment << 32) | first key covered, see
# ``postings``.

SYMBOL_TABLES = """
CREATE TABLE symbol (text_id INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE VIRTUAL TABLE symbol_name USING fts5(
    names, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'"
);
CREATE VIRTUAL TABLE symbol_term USING fts5vocab('symbol_name', 'instance');
"""
# symbol_name: rowid = text_id. SQLite 3.40 cannot delete rows of dropped texts here;
# lookups skip them.

_CHUNK_TABLES = """
CREATE TABLE chunked (
    text_id INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, path BLOB NOT NULL,
    packed BLOB NOT NULL, seal INTEGER, words BLOB
);
CREATE INDEX chunked_words ON chunked (text_id, first, count, seal) WHERE seal IS NOT NULL;
CREATE INDEX chunked_filters ON chunked (text_id) WHERE words IS NOT NULL;
CREATE TABLE vector_set (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dims INTEGER NOT NULL, file TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE TABLE embedded (
    vector_set INTEGER NOT NULL, text_id INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (vector_set, text_id)
) WITHOUT ROWID;
"""
# chunked: a text has the chunks first..first+count-1; their words are postings
# (``words``); seal, words: see ``sieve``; path: the file whose name they contain. A
# negative text_id marks chunks of a text that has been chunked again since. vector_set:
# one embedder's vectors; embedded: a text's vectors are the rows row..row+count-1 of
# the set's file.

_COUNTERS = {
    "next_project": 1,
    "next_text_id": 1,
    "next_segment": 1,
    "next_chunk": 1,
    "generation": 0,
    "chunk_round": 0,
}
"""Counters whose numbers are never reused: projects, texts, segments, chunks, batches, and changes of chunks."""

LateStage = Literal["symbols", "chunks", "vectors"]
LATE_STAGES: Final[tuple[LateStage, ...]] = ("symbols", "chunks", "vectors")
"""Indexing stages after the grams, each built on the previous one."""

VECTOR_FILE: Final = re.compile(r"vectors-[0-9a-f]{16}\.bin")
"""Names of the files next to a database that hold the vectors of its chunks."""


def list_vector_files(folder: Path) -> list[Path]:
    """Return all vector files in a store's folder."""
    return [
        file
        for file in folder.glob("vectors-*.bin")
        if VECTOR_FILE.fullmatch(file.name)
    ]


class StageBacklog(NamedTuple):
    """Texts that a stage has not reached yet; -1: unknown."""

    texts: int
    bytes: int


MISREAD = (ValueError, TypeError, IndexError, OverflowError)
"""What damaged rows, or undecodable messages of SQLite, raise when they are processed."""


def row_checksum(
    project: int, path: bytes, text_id: int, size: int, mtime_ns: int, ctime_ns: int
) -> int:
    """Return the checksum stored in a path's row, so that a flipped bit cannot hide a file."""
    return zlib.crc32(
        b"%d %d %d %d %d " % (project, text_id, size, mtime_ns, ctime_ns) + path
    )


def find_project(connection: sqlite3.Connection, root: bytes) -> int:
    """Return a project's number; 0, which no row has, if nothing is stored for it."""
    row = connection.execute("SELECT id FROM project WHERE root = ?", [root]).fetchone()
    if row is None:
        return 0
    return int(row[0])


def connect(file: Path, *, writer: bool = False) -> sqlite3.Connection:
    """Open the database; a writer may create the file, a reader may not write.

    Raises:
        Damaged: not a database, a foreign one, or one of another format.
        FileNotFoundError: a reader finds it still empty.

    """
    for name in (file, *_companions(file)):
        # A link may come from a repository, and SQLite would write to its target.
        if os.path.lexists(name) and not stat.S_ISREG(name.lstat().st_mode):
            raise Damaged(f"{name.name} is not a file")
    if writer:
        mode = "rwc"
    else:
        mode = "rw"
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=(BUSY_MS if writer else READER_BUSY_MS) / 1000,
    )
    try:
        connection.execute("PRAGMA trusted_schema=0")
        connection.execute("PRAGMA cell_size_check=1")
        if writer:
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
            connection.execute("PRAGMA cache_size=-32768")
        else:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            connection.execute("PRAGMA query_only=1")
            connection.execute("PRAGMA cache_size=-4096")
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            if not writer:  # another project's indexer is creating it
                connection.close()
                raise FileNotFoundError(errno.ENOENT, "empty database", str(file))
            _create(connection)
        _check(connection)
    except (sqlite3.DatabaseError, Damaged, *MISREAD) as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and not is_damage(error):
            raise
        raise Damaged(str(error)) from error
    return connection


def _create(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for tables in (_TABLES, SYMBOL_TABLES, _CHUNK_TABLES):
            create_tables(connection, tables)
        empty = {
            "format": FORMAT,
            "segments": zlib.crc32(b""),
        }  # the checksum of no segments, see ``segments``
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [*empty.items(), *_COUNTERS.items()]
        )
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")


def create_tables(connection: sqlite3.Connection, tables: str) -> None:
    """Create tables, inside the open transaction if there is one."""
    for statement in tables.strip().rstrip(";").split(";\n"):
        connection.execute(statement)


def take_numbers(connection: sqlite3.Connection, name: str, count: int = 1) -> int:
    """Take ``count`` numbers from a counter and return the first; call it inside a transaction."""
    first = int(
        connection.execute("SELECT value FROM meta WHERE key = ?", [name]).fetchone()[0]
    )
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", [first + count, name])
    return first


def _check(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise Damaged("not a flashgrep index")
    # Reading a view in place of a table might never end, and a trigger could do
    # anything.
    if _read_schema(connection) != _make_schema():
        raise Damaged("unexpected tables")
    row = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    if not row or row[0] != FORMAT:
        raise Damaged(f"format {row and row[0]}, expected {FORMAT}")


def _read_schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"
    ).fetchall()
    return sorted(rows)


@cache
def _make_schema() -> list[tuple[str, ...]]:
    """Return the schema of a new database; takes 1 ms, once per process."""
    with contextlib.closing(
        sqlite3.connect(":memory:", isolation_level=None)
    ) as connection:
        _create(connection)
        return _read_schema(connection)


MOST_UNREADABLE = 3
"""After this many attempts that met invalid rows the index is rebuilt, once: damage that no check detects would mean
scans forever. If the cause is a bug of ours, the rebuilt index meets it, too, and is kept."""


class Unreadable(sqlite3.OperationalError):
    """Rows made no sense although the database is sound: most likely our own mistake. The index is kept."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite reports a broken file, as opposed to a lock, a full disk or a wrong statement."""
    code = (
        getattr(error, "sqlite_errorcode", 0) & 0xFF
    )  # the upper bits of an extended code give details
    # Text that is not UTF-8 is reported by Python, without a code.
    return code in {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    } or "not decode" in str(error)


_DOUBTFUL = frozenset({
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_INTERRUPT,  # a lookup took too long
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
})  # fmt: skip
"""Errors that a broken file may cause, but our own mistakes too."""


def judge(
    connection: sqlite3.Connection, error: Exception, *, sound: bool = False
) -> Exception:
    """Return what to raise for an error inside a transaction: ``Damaged`` only if damage is proven.

    An index deleted for our own mistake would be rebuilt, meet the mistake and be deleted again. Looking for damage
    takes about 1 s for 500 MB; ``sound`` says that it was done before. Call this after the transaction has ended.
    """
    if (
        isinstance(error, sqlite3.Error)
        and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DOUBTFUL
    ):
        if is_damage(error):
            return Damaged(str(error))
        return error
    if not sound:
        try:
            problem = _find_damage(connection)
        except sqlite3.Error as other:
            if is_damage(other):
                return Damaged(str(other))
            return other
        if problem:
            return Damaged(f"{problem} ({error})")
        logging.getLogger(__name__).error(
            "a sound index could not be read", exc_info=error
        )
    return Unreadable(f"{type(error).__name__}: {error}")


def _find_damage(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a database, or an empty string; other damage is found by checksums on reading."""
    connection.set_progress_handler(None, 0)
    try:
        _check(connection)
    except Damaged as damage:
        return str(damage)
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        return verdict
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '% VIRTUAL %'"
    )
    for (table,) in tables.fetchall():
        if not table.startswith(
            "symbol_"
        ):  # FTS5's own tables; quick_check covers them
            columns = connection.execute(
                "SELECT name, lower(type) FROM pragma_table_info(?)", [table]
            ).fetchall()
            odd = " OR ".join(
                f"typeof({name}) NOT IN ('{kind}', 'null') OR length({name}) > {LONGEST_VALUE}"
                for name, kind in columns
                if kind
            )
            if connection.execute(
                f"SELECT 1 FROM {table} WHERE {odd} LIMIT 1"  # noqa: S608 - our own names
            ).fetchone():
                return f"a row of {table}"
    numbers = dict.fromkeys(_COUNTERS) | dict(
        connection.execute("SELECT key, value FROM meta").fetchall()
    )
    row = connection.execute(
        "SELECT (SELECT max(id) FROM project), (SELECT max(id) FROM text), (SELECT max(id) FROM segment), "
        "(SELECT max(first + count - 1) FROM chunked), -1, -1"
    ).fetchone()
    for name, most in zip(_COUNTERS, row, strict=True):
        number = numbers[name]
        if not isinstance(number, int) or number <= (most or 0):
            return f"reused numbers: {name}"
    return ""


@contextlib.contextmanager
def transaction(
    connection: sqlite3.Connection, kind: str = "IMMEDIATE"
) -> Iterator[None]:
    """Run a block in one transaction: either all of it is stored or nothing."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def set_aside(file: Path) -> Path | None:
    """Move a damaged database out of the way and return its new path; only the latest one is kept for study."""
    for companion in _companions(file):
        clear_place(companion)
    if file.is_symlink() or not file.is_file():
        clear_place(file)
        return None
    aside = _aside(file)
    clear_place(aside)
    file.replace(aside)
    return aside


def drop_aside(file: Path) -> None:
    """Remove the database that was set aside, once the new index is complete."""
    clear_place(_aside(file))


def _companions(file: Path) -> list[Path]:
    """Return the files SQLite keeps alongside a database."""
    return [
        file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal")
    ]


def _aside(file: Path) -> Path:
    return file.with_name(f"{file.name}.damaged")
