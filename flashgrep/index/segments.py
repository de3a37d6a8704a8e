"""Segments of postings: of grams by text, and of words by chunk.

A segment covers consecutive documents. Each batch writes a small one; segments are merged later, which drops documents
that are gone. A block (see ``postings``) has the row id (segment << 32) | first key covered.
"""

import sqlite3
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.damage import Damaged
from flashgrep.index.postings import LAST_KEY, Block, OpenBlock, join, open_block
from flashgrep.index.schema import take_numbers

SLICE_BYTES: Final = 4 << 20
"""A merge processes the keys in slices of this many bytes of postings; each takes about 100 MB of memory."""

MOST_SEGMENTS: Final = 6
"""Beyond this many, segments are merged: each one costs every lookup about 0.1 ms."""

MERGE_RATIO: Final = 2
"""A segment is merged with all newer ones once it is at most this many times their total size. So each posting is
rewritten only a few times, and saving a file does not rewrite the index of a large project."""


class Kind(IntEnum):
    """What the keys and documents of a segment are."""

    GRAMS = 0
    """Grams by text."""
    WORDS = 1
    """Words by chunk (``parts.meaning.index.word_impacts``)."""


class SegmentRow(NamedTuple):
    """A segment of postings for documents ``first`` to ``last``; ``kind``: see ``Kind``; ``bytes``: of its blocks."""

    id: int
    kind: int
    first: int
    last: int
    bytes: int


def segments(connection: sqlite3.Connection, kind: Kind) -> list[SegmentRow]:
    """Return the segments of a kind, by their first document.

    Raises:
        Damaged: the list is not as written; a missing segment would silently hide files.

    """
    rows = _all(connection)
    kept_row = connection.execute(
        "SELECT value FROM meta WHERE key = 'segments'"
    ).fetchone()
    if kept_row is None or kept_row[0] != _checksum(rows):
        raise Damaged("list of segments: checksum")
    return [row for row in rows if row.kind == kind]


def _all(connection: sqlite3.Connection) -> list[SegmentRow]:
    rows = connection.execute(
        "SELECT id, kind, first, last, bytes FROM segment ORDER BY kind, first"
    )
    return [SegmentRow(*row) for row in rows]


def _checksum(rows: list[SegmentRow]) -> int:
    return zlib.crc32(b"".join(b"%d %d %d %d %d\n" % row for row in rows))


def _seal(connection: sqlite3.Connection) -> None:
    """Store the checksum of the list of segments, after a change to it."""
    # One checksum for the whole list, since a lost row would lose its own checksum too.
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('segments', ?)",
        [_checksum(_all(connection))],
    )


def put(
    connection: sqlite3.Connection, row: SegmentRow, blocks: Iterable[Block]
) -> None:
    """Store a segment and count its ``bytes``; call it inside a transaction."""
    row = row._replace(bytes=_put_blocks(connection, row.id, blocks))
    connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?)", row)
    _seal(connection)


def _put_blocks(
    connection: sqlite3.Connection, segment: int, blocks: Iterable[Block]
) -> int:
    """Store blocks of a segment and return their size in bytes."""
    rows = [(segment << 32 | block.first, block.data) for block in blocks]
    connection.executemany("INSERT INTO posting_block VALUES (?, ?)", rows)
    return sum(len(data) for _, data in rows)


def drop(connection: sqlite3.Connection, rows: Iterable[SegmentRow]) -> None:
    """Delete segments; call it inside a transaction."""
    for row in rows:
        base = row.id << 32
        connection.execute(
            "DELETE FROM posting_block WHERE id BETWEEN ? AND ?",
            [base, base | LAST_KEY],
        )
        connection.execute("DELETE FROM segment WHERE id = ?", [row.id])
    _seal(connection)


def block_of(connection: sqlite3.Connection, segment: int, key: int) -> OpenBlock:
    """Return the block of a segment that covers a key.

    Raises:
        Damaged: it is not as written.

    """
    base = segment << 32
    row = connection.execute(
        # Only the last block that begins at or before the key can cover it.
        "SELECT data FROM posting_block WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        [base, base | key],
    ).fetchone()
    if row is None:
        raise Damaged("postings: missing block")
    block = open_block(row[0], segment)
    if not block.first <= key <= block.last:
        raise Damaged("postings: no block covers the key")
    return block


def lists_of(
    connection: sqlite3.Connection, segment: int, first: int, last: int
) -> Iterator[tuple[int, memoryview]]:
    """Yield a segment's keys from ``first`` to ``last``, each with its encoded list; raises as ``block_of``."""
    at = first
    while at <= last:
        block = block_of(connection, segment, at)
        for place in range(
            bisect_left(block.grams, first), bisect_left(block.grams, last + 1)
        ):
            if place:
                start = block.ends[place - 1]
            else:
                start = 0
            yield block.grams[place], block.payload[start : block.ends[place]]
        at = block.last + 1


def worth_merging(rows: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
    """Return the newest segments that are worth merging; none if there are few."""
    if len(rows) <= MOST_SEGMENTS:
        return []
    newer = sum(row.bytes for row in rows)
    # Start at the oldest segment that is not much larger than all newer ones together.
    for start, row in enumerate(rows[:-1]):
        newer -= row.bytes
        if row.bytes <= MERGE_RATIO * newer:
            return rows[start:]
    return []


def merge(
    connection: sqlite3.Connection,
    rows: Sequence[SegmentRow],
    alive: npt.NDArray[np.bool_] | None,
) -> Iterator[float]:
    """Merge adjacent segments, inside a transaction, yielding the share of the work done, 0 to 1.

    ``alive``: which documents to keep, counted from the first one of the first segment; None: all.
    """
    target = take_numbers(connection, "next_segment")
    # Dropped documents leave gaps: texts and chunks keep their numbers.
    if alive is None:
        numbers = None
    else:
        numbers = np.where(alive, np.arange(len(alive)), -1)

    # Work slice by slice over the keys, so that memory is bounded whatever the size of
    # the segments. A block that spans two slices is read for both; each takes only its
    # own keys.
    sizes: list[tuple[int, int]] = []
    for row in rows:
        base = row.id << 32
        sizes += connection.execute(
            "SELECT id & 0xFFFFFFFF, length(data) FROM posting_block WHERE id BETWEEN ? AND ?",
            [base, base | LAST_KEY],
        )
    size = 0
    first_number = rows[0].first
    for low, high in cut_keys(sizes):
        blocks: list[OpenBlock] = []
        offsets: list[int] = []
        for row in rows:
            base = row.id << 32
            cursor = connection.execute(
                # Start at the block that covers ``low``; it may begin before ``low``.
                "SELECT data FROM posting_block WHERE id <= ? AND id >= "
                "(SELECT max(id) FROM posting_block WHERE id BETWEEN ? AND ?) ORDER BY id",
                [base | high, base, base | low],
            )
            blocks += (open_block(data, row.id) for (data,) in cursor)
            # Numbers in a block count from the first of its segment.
            count = len(blocks) - len(offsets)
            offsets += [row.first - first_number] * count
        size += _put_blocks(
            connection, target, join(blocks, offsets, target, (low, high), numbers)
        )
        yield high / LAST_KEY
    merged = SegmentRow(target, rows[0].kind, first_number, rows[-1].last, size)
    connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?)", merged)
    drop(connection, rows)


def cut_keys(sizes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut the key space into ranges (first, last) of about SLICE_BYTES of postings.

    ``sizes``: first key and size of each block.
    """
    cuts = [0]
    weight = 0
    for first, size in sorted(sizes):
        # Blocks of different segments may begin at the same key; do not cut between
        # those.
        if weight > SLICE_BYTES and first > cuts[-1]:
            cuts.append(first)
            weight = 0
        weight += size
    return [
        (low, high - 1)
        for low, high in zip(cuts, [*cuts[1:], LAST_KEY + 1], strict=True)
    ]
