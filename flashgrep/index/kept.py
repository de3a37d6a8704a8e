"""Texts of revisions that somebody asked about: kept although no work tree has them, for a time and up to a size.

A row stands for a content, by git's name of it, under a class of names: its text, or why it has none. Contents whose
text is told by ``text.blob`` and is a file's have no row.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from flashgrep.damage import Damaged

Name = tuple[bytes, str]
"""git's name of a content (20 or 32 bytes), and the class of its file's name."""

_OF_A_FILE: Final = "SELECT 1 FROM project JOIN path ON path.project = project.id AND path.text_id = ? LIMIT 1"


class KnownTexts(NamedTuple):
    """What a store knows of contents by git's names of them."""

    text_ids: dict[Name, int]
    skips: dict[Name, str]
    """Why there is no text."""
    unparsed: set[int]
    """Texts without symbols so far."""


def read_known(connection: sqlite3.Connection) -> KnownTexts:
    """Return what is known of contents, of files and of revisions.

    Raises:
        Damaged: a row is not what was written; another text would hide a file.

    """
    rows = connection.execute("SELECT blob, name_class, id FROM text WHERE blob IS NOT NULL")
    known = KnownTexts({(blob, named): text_id for blob, named, text_id in rows}, {}, set())
    for blob, named, text_id, skip, checksum in connection.execute(
        "SELECT blob, name_class, text_id, skip, checksum FROM kept"
    ):
        if checksum != _checksum((blob, named), text_id, skip):
            raise Damaged("a row of a kept text")
        if skip:
            known.skips[blob, named] = skip
        else:
            known.text_ids[blob, named] = text_id
    rows = connection.execute("SELECT id FROM text WHERE id NOT IN (SELECT text_id FROM symbol)")
    known.unparsed.update(row[0] for row in rows)
    return known


def put(connection: sqlite3.Connection, rows: Iterable[tuple[Name, int, str]], until: int) -> None:
    """Keep texts, or why there is none, until a time in seconds since 1970; call it inside a transaction."""
    for name, text_id, skip in rows:
        row = [*name, text_id, skip, until, _checksum(name, text_id, skip)]
        connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?)", row)


def renew(connection: sqlite3.Connection, names: Sequence[Name], until: int) -> list[Name]:
    """Keep what is known of contents until then, and return those that are not; call it inside a transaction."""
    known = read_known(connection).text_ids
    unknown = []
    # One that has a row is renewed; one that a file has needs none; one that is known by its text alone gets one.
    for name in names:
        update = "UPDATE kept SET until = max(until, ?) WHERE blob = ? AND name_class = ?"
        if connection.execute(update, [until, *name]).rowcount:
            continue
        if name not in known:
            unknown.append(name)
        elif not connection.execute(_OF_A_FILE, [known[name]]).fetchone():
            put(connection, [(name, known[name], "")], until)
    return unknown


def has_expired(connection: sqlite3.Connection, now: int) -> bool:
    """Return whether there are texts that are not to be kept any longer."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM kept WHERE until < ?)", [now]).fetchone()[0])


def drop(connection: sqlite3.Connection, now: int, most: int) -> None:
    """Let go of what nobody asked for in time, then of texts beyond ``most`` bytes, those asked for least recently."""
    connection.execute("DELETE FROM kept WHERE until < ?", [now])
    rows = connection.execute(
        "SELECT text.id, size FROM kept JOIN text ON text.id = kept.text_id "
        # Texts that files have, too, take no room for revisions' sake, so they do not count.
        "WHERE text.id NOT IN (SELECT text_id FROM path) GROUP BY text.id ORDER BY max(until) DESC, text.id"
    ).fetchall()
    for text_id, size in rows:
        most -= size
        if most < 0:
            connection.execute("DELETE FROM kept WHERE text_id = ?", [text_id])


def count(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many texts are there for revisions alone, and their bytes."""
    texts, size = connection.execute(
        "SELECT count(*), total(size) FROM text "
        "WHERE id IN (SELECT text_id FROM kept) AND id NOT IN (SELECT text_id FROM path)"
    ).fetchone()
    return int(texts), int(size)


def _checksum(name: Name, text_id: int, skip: str) -> int:
    blob, named = name
    return zlib.crc32(b"%d %s %s " % (text_id, skip.encode(), named.encode()) + blob)
