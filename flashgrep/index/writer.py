"""Writing the index: one process, one transaction a batch, each leaving an index that is whole."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashgrep.damage import Damaged
from flashgrep.index import chunks, schema, symbols
from flashgrep.index.postings import LAST_GRAM, Block, DamagedBlock, OpenBlock, Pairs, decode_pairs, encode, open_block
from flashgrep.index.rows import FileRow, SegmentRow

SLICE_BYTES = 4 << 20
"""A merge works through the grams in slices of so many bytes of postings: about 100 MB of memory for each."""

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
            return Reserved(self._advance("next_segment", 1), self._advance("next_blob", documents))

    def _advance(self, key: str, by: int) -> int:
        value = int(self.connection.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()[0])
        self.connection.execute("UPDATE meta SET value = ? WHERE key = ?", [value + by, key])
        return value

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
                self._put_segment(reserved, max(text.blob for text in fresh), blocks)
            rows = [self._put_file(row, text_hash) for row, text_hash in files]
            connection.executemany("DELETE FROM path WHERE path = ?", [[path] for path in gone])
            self._advance("generation", 1)
            generation = int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])
        return generation, rows

    def _put_text(self, text: Text) -> bool:
        done = self.connection.execute(
            "INSERT OR IGNORE INTO blob (id, hash, size, lines) VALUES (?, ?, ?, ?)",
            [text.blob, text.hash, text.size, text.lines],
        )
        return bool(done.rowcount)

    def _put_segment(self, reserved: Reserved, last: int, blocks: Sequence[Block]) -> None:
        self.connection.execute(
            "INSERT INTO segment VALUES (?, ?, ?, ?)",
            [reserved.segment, reserved.first, last, sum(len(block.data) for block in blocks)],
        )
        schema.seal_segments(self.connection)
        self._put_blocks(reserved.segment, blocks)

    def _put_blocks(self, segment: int, blocks: Iterable[Block]) -> None:
        rows = ((segment << 32 | block.first, block.data) for block in blocks)
        self.connection.executemany("INSERT INTO gram_block VALUES (?, ?)", rows)

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

    def unparsed(self, limit: int) -> list[tuple[int, bytes, bytes]]:
        """Return (blob, hash, one path) of texts whose symbols are not stored yet, oldest first."""
        return symbols.unparsed(self.connection, limit)

    def unparsed_count(self) -> int:
        """Return how many texts have no symbols stored yet."""
        return symbols.unparsed_count(self.connection)

    def put_symbols(self, rows: Sequence[symbols.StoredSymbols], declined: Sequence[tuple[int, str]]) -> None:
        """Store symbols of texts, and of others why they have none."""
        with self.transaction() as connection:
            symbols.put(connection, rows)
            for blob, reason in declined:
                symbols.put_declined(connection, blob, reason)

    def segments(self) -> list[SegmentRow]:
        """Return the segments, by their first document."""
        return schema.segments(self.connection)

    def merge(self, segments: Sequence[SegmentRow]) -> None:
        """Make one segment of several neighbours, leaving out documents that no file has any more."""
        with self.transaction() as connection:
            target = self._advance("next_segment", 1)
            first, last = min(row.first for row in segments), max(row.last for row in segments)
            self._drop_dead(first, last)
            alive = self._alive(first, last)
            total = 0
            for low, high in self._slices(segments):
                blocks = list(encode(self._slice(segments, low, high, first, alive), target, (low, high)))
                total += sum(len(block.data) for block in blocks)
                self._put_blocks(target, blocks)
            for row in segments:
                base = row.id << 32
                connection.execute("DELETE FROM gram_block WHERE id BETWEEN ? AND ?", [base, base | LAST_GRAM])
                connection.execute("DELETE FROM segment WHERE id = ?", [row.id])
            connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?)", [target, first, last, total])
            schema.seal_segments(connection)
        while self.connection.execute("PRAGMA freelist_count").fetchone()[0]:
            self.connection.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")

    def _slices(self, segments: Sequence[SegmentRow]) -> list[tuple[int, int]]:
        """Cut all grams into ranges of about SLICE_BYTES of postings each."""
        sizes: list[tuple[int, int]] = []
        for row in segments:
            base = row.id << 32
            found = self.connection.execute(
                "SELECT id & 0xFFFFFFFF, length(data) FROM gram_block WHERE id BETWEEN ? AND ?",
                [base, base | LAST_GRAM],
            )
            sizes.extend(found)
        sizes.sort()
        cuts, weight = [0], 0
        for first, size in sizes:
            if weight > SLICE_BYTES and first > cuts[-1]:
                cuts.append(first)
                weight = 0
            weight += size
        return [(low, high - 1) for low, high in zip(cuts, [*cuts[1:], LAST_GRAM + 1], strict=True)]

    def _alive(self, first: int, last: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        alive = np.zeros(last - first + 1, bool)
        rows = self.connection.execute("SELECT id FROM blob WHERE id BETWEEN ? AND ?", [first, last])
        alive[[row[0] - first for row in rows]] = True
        return alive

    def _drop_dead(self, first: int, last: int) -> None:
        """Forget texts no file has, when they are many; fewer are kept, so that switching back costs nothing."""
        dead = "FROM blob WHERE id BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM path WHERE path.blob = blob.id)"
        many = self.connection.execute(f"SELECT count(*) {dead}", [first, last]).fetchone()[0]
        total = self.connection.execute("SELECT count(*) FROM blob WHERE id BETWEEN ? AND ?", [first, last]).fetchone()
        if many > total[0] * DEAD_SHARE:
            self.connection.execute(f"DELETE {dead}", [first, last])
            symbols.drop_dead(self.connection)
            chunks.drop_dead(self.connection)

    def _slice(
        self,
        segments: Sequence[SegmentRow],
        low: int,
        high: int,
        first: int,
        alive: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> Pairs:
        """Return the pairs of grams low..high of several segments, numbered from ``first``, of documents alive."""
        parts = []
        for row in segments:
            for block in self._blocks(row.id, low, high):
                pairs = decode_pairs(block)
                left = np.searchsorted(pairs, np.uint64(low << 32), "left")
                right = np.searchsorted(pairs, np.uint64(high << 32 | LAST_GRAM), "right")
                parts.append(pairs[left:right] + np.uint64(row.first - first))
        pairs = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        pairs = pairs[alive[(pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)]]
        pairs.sort(kind="stable")
        return pairs

    def _blocks(self, segment: int, low: int, high: int) -> Iterator[OpenBlock]:
        base = segment << 32
        rows = self.connection.execute(
            "SELECT data FROM gram_block WHERE id <= ? AND id >= "
            "(SELECT max(id) FROM gram_block WHERE id BETWEEN ? AND ?) ORDER BY id",
            [base | high, base, base | low],
        )
        try:
            for (data,) in rows:
                yield open_block(data, segment)
        except DamagedBlock as error:
            raise Damaged(f"postings: {error}") from error
