"""Tables of symbols by text: one packed row per text, and an index of the names that each text defines.

Uses of a name are not indexed: grams propose the files, and their packed rows say what each occurrence is. A text
without symbols has an empty row; one that could not be parsed has a row of ``!`` and the reason.
"""

import sqlite3
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, Protocol

import orjson

from flashgrep.base.checkpoint import checkpoint
from flashgrep.index.schema import SYMBOL_TABLES, StageBacklog, create_tables
from flashgrep.index.stage import RowsKey, StageRows, Transactions

LONGEST_NAME: Final = 200
"""Bytes; longer names (headings, generated names) are not indexed, but their text is still found."""
FETCHED: Final = 1_000
"""Rows read between two checkpoints, in about 1 ms."""
_PRIVATE: Final = 0xE000
_ENCODE: Final = {
    code: _PRIVATE + code
    for code in range(128)
    if not (chr(code).isalnum() or chr(code) == "_") and code
} | {0: _PRIVATE}
_DECODE: Final = {private: code for code, private in _ENCODE.items()}
"""Punctuation in names (``operator+=``, ``empty?``) becomes private-use characters, so that FTS5 keeps names whole."""
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class Declined(Exception):
    """A text could not be parsed, and parsing it again would not help."""


class StoredSymbols(NamedTuple):
    """A text's symbols, as packed by the parser."""

    text_id: int
    packed: bytes
    names: Sequence[bytes]


def put(connection: sqlite3.Connection, rows: Iterable[StoredSymbols]) -> None:
    """Store symbols of texts not stored yet; call it inside a transaction."""
    for row in rows:
        # If a text's symbols arrive twice, the first row stays, and its names must not
        # be indexed again.
        cursor = connection.execute(
            "INSERT OR IGNORE INTO symbol VALUES (?, ?)", [row.text_id, row.packed]
        )
        if cursor.rowcount and row.names:
            names = [name for name in row.names if len(name) <= LONGEST_NAME]
            terms = (joined := b" ".join(names)).decode("utf-8", "replace")
            # Names of letters, digits and ``_`` need no encoding. Most texts have only
            # those; check all names at once.
            if (
                joined.count(b" ") >= len(names)
                or not joined.translate(None, b"_ ").isalnum()
            ):
                terms = " ".join(
                    _term(name.decode("utf-8", "replace")) for name in names
                )
            connection.execute(
                "INSERT INTO symbol_name (rowid, names) VALUES (?, ?)",
                [row.text_id, terms],
            )


def put_without_symbols(
    connection: sqlite3.Connection, text_id: int, reason: str
) -> None:
    """Record that a text has no symbols, and why (empty: its language has none)."""
    connection.execute(
        "INSERT OR IGNORE INTO symbol VALUES (?, ?)",
        [text_id, f"!{reason}".encode() if reason else b""],
    )


def drop_dead(connection: sqlite3.Connection) -> bool:
    """Delete rows whose text no longer exists; return False, since others stay."""
    connection.execute("DELETE FROM symbol WHERE text_id NOT IN (SELECT id FROM text)")
    return False


def drop_all(connection: sqlite3.Connection) -> None:
    """Drop all symbols; every text is parsed again."""
    # Drop and recreate the tables: FTS5 cannot delete from a contentless table.
    for table in ("symbol_term", "symbol_name", "symbol"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    create_tables(connection, SYMBOL_TABLES)


ROWS: Final = StageRows(drop_all=drop_all, drop_dead=drop_dead)


def choose_to_parse(
    connection: sqlite3.Connection,
    project: int,
    limit: int,
    most_bytes: int = 1 << 40,
    after: int = 0,
) -> list[tuple[int, bytes, bytes]]:
    """Return (text_id, hash, one path) of a project's texts without a row, with numbers above ``after``, ascending.

    At most ``limit`` texts and ``most_bytes`` in total, but always at least one text.
    """
    rows = connection.execute(
        "SELECT text.id, text.hash, min(path.path), text.size FROM path JOIN text ON text.id = path.text_id "
        "WHERE path.project = ? AND path.text_id > ? "
        "AND NOT EXISTS (SELECT 1 FROM symbol WHERE symbol.text_id = path.text_id) "
        "GROUP BY path.text_id ORDER BY path.text_id LIMIT ?",
        [project, after, limit],
    )
    return [row[:3] for row in take_bytes(rows, most_bytes)]


def take_bytes(
    rows: Iterable[tuple[Any, ...]], most_bytes: int
) -> Iterator[tuple[Any, ...]]:
    """Yield rows, whose last column is a size, up to ``most_bytes`` in total, but at least one."""
    for at, row in enumerate(rows):
        most_bytes -= row[-1]
        if most_bytes < 0 and at:
            return
        yield row


def count_to_parse(connection: sqlite3.Connection, project: int) -> StageBacklog:
    """Return how many texts of a project have no row yet."""
    query = (
        "SELECT count(*), total(size) FROM text WHERE id IN (SELECT text_id FROM path WHERE project = ?) "
        "AND NOT EXISTS (SELECT 1 FROM symbol WHERE symbol.text_id = text.id)"
    )
    return StageBacklog(*map(int, connection.execute(query, [project]).fetchone()))


def packed_of(
    connection: sqlite3.Connection, text_ids: Collection[int]
) -> dict[int, bytes]:
    """Return the stored rows of texts, for ``read_row``; texts without a row are left out."""
    query = "SELECT text_id, packed FROM symbol WHERE text_id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(query, [orjson.dumps(list(text_ids)).decode()]))


def read_row(row: bytes | None) -> bytes | None:
    """Return a row's packed symbols: empty if the text has none, None if it has not been parsed yet.

    Raises:
        Declined: the text could not be parsed, with the reason.

    """
    if row is not None and row[:1] == b"!":
        raise Declined(row[1:].decode())
    return row


def defining(
    connection: sqlite3.Connection, name: str, *, prefix: bool = False
) -> list[int]:
    """Return the texts that define a name, or one with this prefix, ignoring ASCII case, ascending."""
    match = f'"{_term(name)}"' + (" *" if prefix else "")
    rows = connection.execute(
        "SELECT rowid FROM symbol_name WHERE symbol_name MATCH ?", [match]
    )
    return [int(row[0]) for row in rows]


def defined_names(
    connection: sqlite3.Connection, among: Container[int], start: str, limit: int
) -> list[str]:
    """Return names with prefix ``start`` that texts in ``among`` define, in lower case and ascending order."""
    low = _term(start).translate(_LOWER)  # as folded by the ascii tokenizer
    rows = connection.execute(
        "SELECT term, doc FROM symbol_term WHERE term >= ? AND term < ?",
        [low, low + "\U0010ffff"],
    )

    def terms() -> Iterator[str]:
        while some := rows.fetchmany(FETCHED):
            checkpoint()
            yield from (term for term, text_id in some if text_id in among)

    names = (name for name, _ in groupby(terms()))
    return [
        name if name.isascii() else name.translate(_DECODE)
        for name in islice(names, limit)
    ]


def _term(name: str) -> str:
    return name.translate(_ENCODE)


class SymbolRows(Protocol):
    """Reads the symbols of one state of an index; thread-safe."""

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts that define a name, or one with this prefix, ignoring ASCII case, ascending."""

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names with prefix ``start`` that texts in ``among`` define, in lower case and ascending order."""

    def packed_symbols(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return the symbol rows of texts, for ``read_row``; texts without a row are left out."""


@dataclass(frozen=True, slots=True)
class LocalSymbolRows:
    """The symbols of a store on disk; implements ``SymbolRows``."""

    reader: Transactions

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts, of any project, that define a name, or one with this prefix, ignoring ASCII case."""
        with self.reader.transaction() as connection:
            return defining(connection, name, prefix=prefix)

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names with prefix ``start`` that texts in ``among`` define, in lower case and ascending order."""
        with self.reader.transaction() as connection:
            return defined_names(connection, among, start, limit)

    def packed_symbols(self, text_ids: Collection[int]) -> dict[int, bytes]:
        """Return the symbol rows of texts, for ``read_row``; texts without a row are left out."""
        with self.reader.transaction() as connection:
            return packed_of(connection, text_ids)


SYMBOL_ROWS: Final[RowsKey[SymbolRows]] = RowsKey("symbols", LocalSymbolRows)
