"""Segments of postings: of grams by text, and of words by chunk.

A segment covers consecutive documents. Each batch makes a small one; they are merged later, and documents that are gone
are left out then. Its blocks (see ``postings``) have the numbers (segment << 32) | first key covered.
"""

import sqlite3
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.damage import Damaged
from flashgrep.index.postings import LAST_KEY, Block, OpenBlock, join, open_block
from flashgrep.index.schema import take_numbers

SLICE_BYTES: Final = 4 << 20
"""A merge works through the keys in slices of this many bytes of postings: about 100 MB of memory for each."""

MOST_SEGMENTS: Final = 6
"""More are merged: each costs a lookup about 0.1 ms."""

MERGE_RATIO: Final = 2
"""A segment is merged with all that are newer once it is at most so many times as large as they are together: a posting
is written again a few times at most, and saves do not rewrite the index of a large project."""


class Kind(IntEnum):
    """What a segment's keys and documents are."""

    GRAMS = 0
    """Grams by text."""
    WORDS = 1
    """Words by chunk (``index.words``)."""


class SegmentRow(NamedTuple):
    """A segment of postings: documents ``first`` to ``last``; ``kind``: see ``Kind``; ``bytes`` of its blocks."""

    id: int
    kind: int
    first: int
    last: int
    bytes: int


def segments(connection: sqlite3.Connection, kind: Kind) -> list[SegmentRow]:
    """Return the segments of a kind, by their first document.

    Raises:
        Damaged: the list is not the one that was written; one segment less would hide files without a word.

    """
    rows = _all(connection)
    kept = connection.execute("SELECT value FROM meta WHERE key = 'segments'").fetchone()
    if kept is None or kept[0] != _checksum(rows):
        raise Damaged("the list of segments")
    return [row for row in rows if row.kind == kind]


def _all(connection: sqlite3.Connection) -> list[SegmentRow]:
    rows = connection.execute("SELECT id, kind, first, last, bytes FROM segment ORDER BY kind, first")
    return [SegmentRow(*row) for row in rows]


def _checksum(rows: list[SegmentRow]) -> int:
    return zlib.crc32(b"".join(b"%d %d %d %d %d\n" % row for row in rows))


def _seal(connection: sqlite3.Connection) -> None:
    """Store the checksum of the list of segments, after a change to it."""
    # Of the whole list: a row that got lost would take a checksum of its own with it.
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('segments', ?)", [_checksum(_all(connection))])


def put(connection: sqlite3.Connection, row: SegmentRow, blocks: Iterable[Block]) -> None:
    """Store a segment, whose ``bytes`` are counted here; call it inside a transaction."""
    row = row._replace(bytes=_put_blocks(connection, row.id, blocks))
    connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?)", row)
    _seal(connection)


def _put_blocks(connection: sqlite3.Connection, segment: int, blocks: Iterable[Block]) -> int:
    """Store blocks of a segment and return how many bytes they have."""
    rows = [(segment << 32 | block.first, block.data) for block in blocks]
    connection.executemany("INSERT INTO posting_block VALUES (?, ?)", rows)
    return sum(len(data) for _, data in rows)


def drop(connection: sqlite3.Connection, rows: Iterable[SegmentRow]) -> None:
    """Delete segments; call it inside a transaction."""
    for row in rows:
        base = row.id << 32
        connection.execute("DELETE FROM posting_block WHERE id BETWEEN ? AND ?", [base, base | LAST_KEY])
        connection.execute("DELETE FROM segment WHERE id = ?", [row.id])
    _seal(connection)


def block_of(connection: sqlite3.Connection, segment: int, key: int) -> OpenBlock:
    """Return the block of a segment that covers a key.

    Raises:
        Damaged: it is not what was written.

    """
    base = segment << 32
    found = connection.execute(
        # Only the last block that begins at the key or before it can cover it.
        "SELECT data FROM posting_block WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        [base, base | key],
    ).fetchone()
    if found is None:
        raise Damaged("a block of postings is missing")
    block = open_block(found[0], segment)
    if not block.first <= key <= block.last:
        raise Damaged("a key is in no block of postings")
    return block


def lists_of(connection: sqlite3.Connection, segment: int, first: int, last: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the keys from ``first`` to ``last`` that a segment has, each with its list, encoded; raises as above."""
    at = first
    while at <= last:
        block = block_of(connection, segment, at)
        for place in range(bisect_left(block.grams, first), bisect_left(block.grams, last + 1)):
            start = block.ends[place - 1] if place else 0
            yield block.grams[place], block.payload[start : block.ends[place]]
        at = block.last + 1


def worth_merging(rows: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
    """Return the newest segments, as many as are worth being made one; none where there are few."""
    if len(rows) <= MOST_SEGMENTS:
        return []
    newer = sum(row.bytes for row in rows)
    # The oldest that is not much larger than all after it, and these with it.
    for start, row in enumerate(rows[:-1]):
        newer -= row.bytes
        if row.bytes <= MERGE_RATIO * newer:
            return rows[start:]
    return []


def merge(
    connection: sqlite3.Connection, rows: Sequence[SegmentRow], alive: npt.NDArray[np.bool_] | None
) -> Iterator[float]:
    """Make one segment of neighbours, inside a transaction, yielding how much of the work is done, 0 to 1.

    ``alive``: of the documents from the first of the first segment on, which are kept; None: all.
    """
    target = take_numbers(connection, "next_segment")
    # Documents that are left out leave gaps: texts and chunks keep their numbers.
    numbers = None if alive is None else np.where(alive, np.arange(len(alive)), -1)

    # One slice of keys after the other, so that memory is bounded whatever the segments hold. A block at the edge of a
    # slice is read for both; each takes only the keys of its own.
    sizes: list[tuple[int, int]] = []
    for row in rows:
        base = row.id << 32
        sizes += connection.execute(
            "SELECT id & 0xFFFFFFFF, length(data) FROM posting_block WHERE id BETWEEN ? AND ?", [base, base | LAST_KEY]
        )
    size = 0
    for low, high in cut_keys(sizes):
        blocks: list[OpenBlock] = []
        offsets: list[int] = []
        for row in rows:
            base = row.id << 32
            found = connection.execute(
                # From the block that covers ``low``, which may begin before it.
                "SELECT data FROM posting_block WHERE id <= ? AND id >= "
                "(SELECT max(id) FROM posting_block WHERE id BETWEEN ? AND ?) ORDER BY id",
                [base | high, base, base | low],
            )
            blocks += (open_block(data, row.id) for (data,) in found)
            offsets += [row.first - rows[0].first] * (len(blocks) - len(offsets))
        size += _put_blocks(connection, target, join(blocks, offsets, target, (low, high), numbers))
        yield high / LAST_KEY
    merged = SegmentRow(target, rows[0].kind, rows[0].first, rows[-1].last, size)
    connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?)", merged)
    drop(connection, rows)


def cut_keys(sizes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut all keys into ranges (first, last) of about SLICE_BYTES of postings.

    ``sizes``: first key and bytes of each block.
    """
    cuts, weight = [0], 0
    for first, size in sorted(sizes):
        # Blocks of several segments may begin with one key; between these there is nothing to cut.
        if weight > SLICE_BYTES and first > cuts[-1]:
            cuts.append(first)
            weight = 0
        weight += size
    return [(low, high - 1) for low, high in zip(cuts, [*cuts[1:], LAST_KEY + 1], strict=True)]
