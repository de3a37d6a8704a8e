"""Numbers that are given once and never again: of texts, chunks, segments, and of changes."""

import sqlite3


def take(connection: sqlite3.Connection, name: str, count: int = 1) -> int:
    """Return the first of ``count`` numbers that are taken; call it inside a transaction."""
    first = int(connection.execute("SELECT value FROM meta WHERE key = ?", [name]).fetchone()[0])
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", [first + count, name])
    return first
