"""Writing the index: one process, one transaction a batch, each leaving an index that is whole."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.damage import Damaged
from flashgrep.index import chunks, schema, segments, symbols
from flashgrep.index.counters import take
from flashgrep.index.postings import Block
from flashgrep.index.rows import FileRow, SegmentRow

VACUUM_PAGES = 4_000
"""Freed pages are given back so many at a time (0.3 s), so that others can write in between."""

DEAD_SHARE = 0.3
"""A merge drops documents that no file has any more once they are so large a share of all."""


class Text(NamedTuple):
    """A distinct text of a batch: its number, content hash, bytes and lines."""

    blob: int
    hash: bytes
    size: int
    lines: int


class Reserved(NamedTuple):
    """Numbers set aside for one batch: a segment, and its first document."""

    segment: int
    first: int


class Writer:
    """The one connection that writes an index database."""

    def __init__(self, file: Path) -> None:
        self.connection = schema.connect(file, writer=True)

    def close(self) -> None:
        """Close the database, folding its log back into the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block in one transaction: all of it is kept, or none."""
        try:
            with schema.transaction(self.connection):
                yield self.connection
        except sqlite3.DatabaseError as error:
            if schema.is_damage(error):
                raise Damaged(str(error)) from error
            raise
        except schema.MISREAD as error:
            raise Damaged(f"misread: {error}") from error

    def reserve(self, documents: int) -> Reserved:
        """Set aside numbers for a batch of at most so many documents; numbers are never used twice."""
        with self.transaction():
            return Reserved(take(self.connection, "next_segment"), take(self.connection, "next_blob", documents))

    def known(self, hashes: Iterable[bytes]) -> dict[bytes, int]:
        """Return the numbers of those texts that are here already."""
        one = self.connection.execute
        found = ((text, one("SELECT id FROM blob WHERE hash = ?", [text]).fetchone()) for text in hashes)
        return {text: int(row[0]) for text, row in found if row}

    def put(
        self,
        reserved: Reserved,
        texts: Sequence[Text],
        blocks: Sequence[Block],
        files: Sequence[tuple[FileRow, bytes]],
        gone: Sequence[bytes] = (),
    ) -> tuple[int, list[FileRow]]:
        """Store one batch; return the new generation and the files as stored.

        ``files``: each file's row, whose ``blob`` is settled here by the content hash beside it (empty: declined).
        """
        with self.transaction() as connection:
            fresh = [text for text in texts if self._put_text(text)]
            if fresh:
                last = max(text.blob for text in fresh)
                row = SegmentRow(reserved.segment, segments.Kind.GRAMS, reserved.first, last, 0)
                segments.put(connection, row, blocks)
            rows = [self._put_file(row, text_hash) for row, text_hash in files]
            connection.executemany("DELETE FROM path WHERE path = ?", [[path] for path in gone])
            generation = take(connection, "generation") + 1
        return generation, rows

    def _put_text(self, text: Text) -> bool:
        done = self.connection.execute(
            "INSERT OR IGNORE INTO blob (id, hash, size, lines) VALUES (?, ?, ?, ?)",
            [text.blob, text.hash, text.size, text.lines],
        )
        return bool(done.rowcount)

    def _put_file(self, row: FileRow, text_hash: bytes) -> FileRow:
        blob = 0
        if text_hash:
            found = self.connection.execute("SELECT id FROM blob WHERE hash = ?", [text_hash]).fetchone()
            if found is None:
                raise Damaged("a text that was here is gone, or its number was taken")
            blob = int(found[0])
        stored = row._replace(blob=blob)
        checksum = schema.row_checksum(row.path, blob, row.size, row.mtime_ns, row.ctime_ns)
        self.connection.execute("INSERT OR REPLACE INTO path VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [*stored, checksum])
        return stored

    def put_symbols(self, rows: Sequence[symbols.StoredSymbols], declined: Sequence[tuple[int, str]]) -> None:
        """Store symbols of texts, and of others why they have none."""
        with self.transaction() as connection:
            symbols.put(connection, rows)
            for blob, reason in declined:
                symbols.put_declined(connection, blob, reason)

    def merge(self) -> None:
        """Make one segment of those that are worth it, without documents that no file has any more."""
        with self.transaction() as connection:
            many = len(segments.segments(connection, segments.Kind.GRAMS)) > segments.MOST_SEGMENTS
            dropped = many and self._drop_dead()
            for kind in segments.Kind:
                rows = segments.segments(connection, kind)
                chosen = rows if dropped else segments.worth_merging(rows)
                if chosen:
                    segments.merge(connection, chosen, self._alive(kind, chosen[0].first, chosen[-1].last))
        while self.connection.execute("PRAGMA freelist_count").fetchone()[0]:
            self.connection.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")

    def _alive(self, kind: segments.Kind, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Return which documents of a range are still known."""
        alive = np.zeros(last - first + 1, bool)
        if kind == segments.Kind.GRAMS:
            rows = self.connection.execute("SELECT id FROM blob WHERE id BETWEEN ? AND ?", [first, last])
            alive[[row[0] - first for row in rows]] = True
        else:
            spans = self.connection.execute(
                "SELECT first, count FROM chunked WHERE first + count > ? AND first <= ?", [first, last]
            )
            for start, count in spans:
                alive[max(0, start - first) : start - first + count] = True
        return alive

    def _drop_dead(self) -> bool:
        """Forget texts no file has, when they are many; fewer are kept, so that switching back costs nothing."""
        one = self.connection.execute
        dead = "FROM blob WHERE NOT EXISTS (SELECT 1 FROM path WHERE path.blob = blob.id)"
        many = one(f"SELECT count(*) {dead}").fetchone()[0]
        if many <= one("SELECT count(*) FROM blob").fetchone()[0] * DEAD_SHARE:
            return False
        one(f"DELETE {dead}")
        symbols.drop_dead(self.connection)
        chunks.drop_dead(self.connection)
        return True
