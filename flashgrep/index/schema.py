"""Tables of the index database, their history, and how a database that cannot be trusted is set aside."""

import contextlib
import errno
import logging
import sqlite3
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from flashgrep.damage import Damaged

FORMAT = 9
"""Changed where the same tables mean something else; other tables are told by themselves."""

APPLICATION_ID = 0x666C6772  # "flgr": a foreign database under our name is told by it

PAGE_SIZE = 8192
"""Two blocks of postings to a page."""

BUSY_MS = 10_000
"""The writer waits this long for a lock."""

LOG_BYTES = 8 << 20
"""What stays of the write-ahead log after a long transaction: as much as short ones take between two checkpoints."""

READER_BUSY_MS = 500
"""Readers of a WAL database wait for nobody but who has it to himself; rather than for him they scan."""

LONGEST_VALUE = 64 << 20
"""Bytes a reader takes in one value: packed symbols of the largest text are some megabytes."""

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
# text: one row for each distinct text of any project and each class of names that its files have, which says in which
# language it is; hash: of both; blob: git's name (SHA-1) of a file with it, where it can be told.
# project: a root; the settings of the embedder that made all its vectors last, and the set of these ("" and 0: none).
# path: one row a file of a project; text_id 0 and a reason in skip: declined.
# kept: a content of a revision that was asked about, see ``kept``; text_id 0 and a reason in skip: declined.
# segment: see ``segments.SegmentRow``; posting_block: (segment << 32) | first key covered, see ``postings``.

SYMBOL_TABLES = """
CREATE TABLE symbol (text_id INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE VIRTUAL TABLE symbol_name USING fts5(
    names, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'"
);
CREATE VIRTUAL TABLE symbol_term USING fts5vocab('symbol_name', 'instance');
"""
# symbol_name: rowid = text_id; rows of vanished texts cannot be deleted by SQLite 3.40 and are passed over.

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
# chunked: chunks first..first+count-1 of a text; their words are postings (``words``); seal, words: see ``sieve``;
# path: the file they are named by. A number below zero stands for a text that has other chunks since.
# vector_set: one embedder's vectors; embedded: a text's vectors are the rows row..row+count-1 of the set's file.

_COUNTERS = {
    "next_project": 1,
    "next_text_id": 1,
    "next_segment": 1,
    "next_chunk": 1,
    "generation": 0,
    "chunk_round": 0,
}
"""Numbers that are given once and never again: of projects, texts, segments, chunks, batches, and changes of chunks."""

LateStage = Literal["symbols", "chunks", "vectors"]
LATE_STAGES: Final[tuple[LateStage, ...]] = ("symbols", "chunks", "vectors")
"""Stages of indexing after the grams, each built on the one before."""


class Left(NamedTuple):
    """Texts that a stage has not reached yet; -1: not known."""

    texts: int
    bytes: int


MISREAD = (ValueError, TypeError, IndexError, OverflowError)
"""What comes of working with rows, or messages of SQLite, that are not what was written."""


def row_checksum(project: int, path: bytes, text_id: int, size: int, mtime_ns: int, ctime_ns: int) -> int:
    """Return the checksum kept with a path's row, so that a flipped bit cannot hide a file."""
    return zlib.crc32(b"%d %d %d %d %d " % (project, text_id, size, mtime_ns, ctime_ns) + path)


def find_project(connection: sqlite3.Connection, root: bytes) -> int:
    """Return a project's number; 0: nothing is stored of it, as no row has this number."""
    found = connection.execute("SELECT id FROM project WHERE root = ?", [root]).fetchone()
    return 0 if found is None else int(found[0])


def connect(file: Path, *, writer: bool = False) -> sqlite3.Connection:
    """Open the database; a writer may create the file, a reader may not write.

    Raises:
        Damaged: it is no database, a foreign one, or of another format.
        FileNotFoundError: a reader finds nothing in it yet.

    """
    for name in (file, *_companions(file)):
        if name.is_symlink():  # a repository may have put it there; SQLite would write where it leads
            raise Damaged(f"{name.name} is a link")
    mode = "rwc" if writer else "rw"
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
            if not writer:  # an indexer of another project is making it
                connection.close()
                raise FileNotFoundError(errno.ENOENT, "an empty database", str(file))
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
        empty = {"format": FORMAT, "segments": zlib.crc32(b"")}  # the checksum of no segments, see ``segments``
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [*empty.items(), *_COUNTERS.items()])
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")


def create_tables(connection: sqlite3.Connection, tables: str) -> None:
    """Make tables, inside the transaction that is open, if one is."""
    for statement in tables.strip().rstrip(";").split(";\n"):
        connection.execute(statement)


def take_numbers(connection: sqlite3.Connection, name: str, count: int = 1) -> int:
    """Return the first of ``count`` numbers of a counter that are taken; call it inside a transaction."""
    first = int(connection.execute("SELECT value FROM meta WHERE key = ?", [name]).fetchone()[0])
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", [first + count, name])
    return first


def _check(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise Damaged("not an index of ours")
    # A view in place of a table may never end, a trigger may do anything.
    if _read_schema(connection) != _written_schema():
        raise Damaged("other tables than are written")
    found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    if not found or found[0] != FORMAT:
        raise Damaged(f"format {found and found[0]} where {FORMAT} is written")


def _read_schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema").fetchall()
    return sorted(rows)


@cache
def _written_schema() -> list[tuple[str, ...]]:
    """Return the schema of a new database; 1 ms, once in a process."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _create(connection)
        return _read_schema(connection)


class Unreadable(sqlite3.OperationalError):
    """Rows made no sense though nothing is wrong with the database: most likely a mistake of ours. The index stays."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite says that the file is broken: not busy, a full disk, nor a mistake in a statement."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of an extended code says where
    # What is not UTF-8 is told by Python, which gives no code.
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "not decode" in str(error)


_DOUBTFUL = frozenset({
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_INTERRUPT,  # a lookup took too long
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
})  # fmt: skip
"""Errors that a broken file may cause, and as well a mistake of ours."""


def judge(connection: sqlite3.Connection, error: Exception, *, sound: bool = False) -> Exception:
    """Return what to raise for an error inside a transaction: ``Damaged`` only where that is proven.

    An index that is thrown away for a mistake of ours is rebuilt, meets the mistake and is thrown away again. To look
    for damage takes about 1 s for 500 MB; ``sound``: it was done before. Call it after the transaction.
    """
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DOUBTFUL:
        return Damaged(str(error)) if is_damage(error) else error
    if not sound:
        try:
            problem = _find_damage(connection)
        except sqlite3.Error as other:
            return Damaged(str(other)) if is_damage(other) else other
        if problem:
            return Damaged(f"{problem} ({error})")
        logging.getLogger(__name__).error("a sound index could not be read", exc_info=error)
    return Unreadable(f"{type(error).__name__}: {error}")


def _find_damage(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a database, or an empty string; checksums tell the rest where they are read."""
    connection.set_progress_handler(None, 0)
    try:
        _check(connection)
    except Damaged as damage:
        return str(damage)
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        return verdict
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '% VIRTUAL %'")
    for (table,) in tables.fetchall():
        if not table.startswith("symbol_"):  # FTS5's own, which quick_check has looked at
            columns = connection.execute("SELECT name, lower(type) FROM pragma_table_info(?)", [table]).fetchall()
            odd = " OR ".join(
                f"typeof({name}) NOT IN ('{kind}', 'null') OR length({name}) > {LONGEST_VALUE}"
                for name, kind in columns
                if kind
            )
            if connection.execute(f"SELECT 1 FROM {table} WHERE {odd} LIMIT 1").fetchone():  # noqa: S608 - our own names
                return f"a row of {table}"
    numbers = dict.fromkeys(_COUNTERS) | dict(connection.execute("SELECT key, value FROM meta").fetchall())
    given = connection.execute(
        "SELECT (SELECT max(id) FROM project), (SELECT max(id) FROM text), (SELECT max(id) FROM segment), "
        "(SELECT max(first + count - 1) FROM chunked), -1, -1"
    ).fetchone()
    for name, most in zip(_COUNTERS, given, strict=True):
        number = numbers[name]
        if not isinstance(number, int) or number <= (most or 0):
            return f"numbers given again: {name}"
    return ""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run a block in one transaction: all of it is kept, or none."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def set_aside(file: Path) -> Path | None:
    """Move a damaged database out of the way, keeping the last one for study; return where it is now."""
    for companion in _companions(file):
        companion.unlink(missing_ok=True)
    if file.is_symlink():
        file.unlink()
    if not file.exists():
        return None
    aside = _aside(file)
    file.replace(aside)
    return aside


def drop_aside(file: Path) -> None:
    """Remove what was set aside: the new index is whole."""
    _aside(file).unlink(missing_ok=True)


def _companions(file: Path) -> list[Path]:
    """Return the files SQLite keeps alongside a database."""
    return [file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def _aside(file: Path) -> Path:
    return file.with_name(f"{file.name}.damaged")
