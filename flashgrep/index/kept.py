"""Texts of searched revisions: kept for a time and up to a size, although no work tree has them.

A row maps a content, by its git object id and name class, to its text or to the reason why it has none. A content needs
no row if the column ``blob`` of a text names it and a file has that text.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from flashgrep.base.damage import Damaged

Name = tuple[bytes, str]
"""The git object id of a content (20 or 32 bytes), and the class of its file's name."""

_OF_A_FILE: Final = "SELECT 1 FROM project JOIN path ON path.project = project.id AND path.text_id = ? LIMIT 1"


class IndexedTexts(NamedTuple):
    """What a store knows about contents, by their git object ids."""

    text_ids: dict[Name, int]
    skips: dict[Name, str]
    """Why there is no text."""
    unparsed: set[int]
    """Texts that have not been parsed for symbols yet."""


def read_known(connection: sqlite3.Connection) -> IndexedTexts:
    """Return what is known about the contents of files and revisions.

    Raises:
        Damaged: a row is not as written; a wrong text would hide a file.

    """
    rows = connection.execute(
        "SELECT blob, name_class, id FROM text WHERE blob IS NOT NULL"
    )
    indexed_texts = IndexedTexts(
        {(blob, named): text_id for blob, named, text_id in rows}, {}, set()
    )
    for blob, named, text_id, skip, checksum in connection.execute(
        "SELECT blob, name_class, text_id, skip, checksum FROM kept"
    ):
        if checksum != _checksum((blob, named), text_id, skip):
            raise Damaged("row of a kept text: checksum")
        if skip:
            indexed_texts.skips[blob, named] = skip
        else:
            indexed_texts.text_ids[blob, named] = text_id
    rows = connection.execute(
        "SELECT id FROM text WHERE id NOT IN (SELECT text_id FROM symbol)"
    )
    indexed_texts.unparsed.update(row[0] for row in rows)
    return indexed_texts


def put(
    connection: sqlite3.Connection, rows: Iterable[tuple[Name, int, str]], until: int
) -> None:
    """Keep texts, or why there is none, until ``until``, in seconds since 1970; call it inside a transaction."""
    for name, text_id, skip in rows:
        row = [*name, text_id, skip, until, _checksum(name, text_id, skip)]
        connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?)", row)


def renew(
    connection: sqlite3.Connection, names: Sequence[Name], until: int
) -> list[Name]:
    """Keep known contents until ``until`` and return the unknown ones; call it inside a transaction."""
    text_ids = read_known(connection).text_ids
    unknown = []
    # An existing row is renewed; a content that a file has needs no row; one that only
    # its text knows gets a row.
    for name in names:
        update = (
            "UPDATE kept SET until = max(until, ?) WHERE blob = ? AND name_class = ?"
        )
        if connection.execute(update, [until, *name]).rowcount:
            continue
        if name not in text_ids:
            unknown.append(name)
        elif not connection.execute(_OF_A_FILE, [text_ids[name]]).fetchone():
            put(connection, [(name, text_ids[name], "")], until)
    return unknown


def has_expired(connection: sqlite3.Connection, now: int) -> bool:
    """Return whether any kept text has expired."""
    return bool(
        connection.execute(
            "SELECT EXISTS (SELECT 1 FROM kept WHERE until < ?)", [now]
        ).fetchone()[0]
    )


def drop(connection: sqlite3.Connection, now: int, most: int) -> None:
    """Drop expired rows, then the least recently used texts beyond ``most`` bytes."""
    connection.execute("DELETE FROM kept WHERE until < ?", [now])
    rows = connection.execute(
        "SELECT text.id, size FROM kept JOIN text ON text.id = kept.text_id "
        # Texts that a file has too would be stored anyway, so they do not count.
        "WHERE text.id NOT IN (SELECT text_id FROM path) GROUP BY text.id ORDER BY max(until) DESC, text.id"
    ).fetchall()
    for text_id, size in rows:
        most -= size
        if most < 0:
            connection.execute("DELETE FROM kept WHERE text_id = ?", [text_id])


def count(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many texts are kept only for revisions, and their bytes."""
    texts, size = connection.execute(
        "SELECT count(*), total(size) FROM text "
        "WHERE id IN (SELECT text_id FROM kept) AND id NOT IN (SELECT text_id FROM path)"
    ).fetchone()
    return int(texts), int(size)


def _checksum(name: Name, text_id: int, skip: str) -> int:
    blob, named = name
    return zlib.crc32(b"%d %s %s " % (text_id, skip.encode(), named.encode()) + blob)
