"""Segments in the store: the texts of each, its blocks in a shard; and the deletion of unused rows in shards.

A segment's postings number its texts, or their chunks, from 0, in the order of the text numbers in its row, where 0
marks a deleted text. So any segments of a shard can be merged, whatever numbers their texts have. Merging and dropping
contents that no branch has any more are atomic; the old rows are deleted later.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Conflict
from flashgrep.index.postings import (
    FORMAT,
    LAST_KEY,
    Block,
    OpenBlock,
    join,
    open_block,
)
from flashgrep.index.segments import Kind, SegmentRow, cut_keys, worth_merging
from flashgrep.parts.team.store_connection import OpenQuery
from flashgrep.parts.team.tree_listing import read_text_ids

if TYPE_CHECKING:
    from psycopg import Connection, Cursor


Spans = Sequence[tuple[int, int]]
"""Ranges of keys to look up: first and last."""
PLACES: Final = 4096
"""A chunk's number is its text's number times this, plus its place in the text; no text has that many chunks."""
GRACE_SECONDS: Final = 900
"""Replaced rows stay this long for running questions; a slower one finds them missing and starts again."""
OF_TEXTS: Final = ("text", "symbol", "symbol_name", "chunk", "vector")
OF_SEGMENTS: Final = ("block", "signs")
_CONDITIONS: Final = {
    "text": "id = ANY(%(texts)s)",
    "symbol": "text = ANY(%(texts)s)",
    "symbol_name": "text = ANY(%(texts)s)",
    "chunk": "text = ANY(%(texts)s)",
    # With the bounds PostgreSQL can use the primary key; the texts of a batch have
    # neighbouring numbers.
    "vector": f"chunk BETWEEN %(low)s AND %(high)s AND chunk / {PLACES} = ANY(%(texts)s)",
    "block": "segment = ANY(%(segments)s)",
    "signs": "segment = ANY(%(segments)s)",
}
SELECT: Final = (
    "SELECT id, kind, shard, bytes, keys, texts, counts, format FROM flashgrep.segment "
    "WHERE repository = %s ORDER BY id"
)

_NO_COUNTS: Final = np.empty(0, np.int64)
DEAD_SHARE: Final = 0.3
"""A segment is rewritten without its deleted texts once they exceed this share of it."""


class Segment(NamedTuple):
    """A segment: its shard, the first key of each of its blocks, in ascending order, and its texts."""

    id: int
    kind: int
    shard: int
    bytes: int
    keys: npt.NDArray[np.uint32]
    texts: npt.NDArray[np.int64]
    """0: a deleted text."""
    counts: npt.NDArray[np.int64]
    """In segments of words: the number of chunks of each text."""
    format: int = FORMAT
    """Format of its postings; only the current one is read."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Segment":
        """Return the segment of a row of ``SELECT``."""
        number, kind, shard, size, keys, texts, counts, written = row
        named = np.frombuffer(texts, ">i8").astype(np.int64)
        chunks = np.frombuffer(counts, ">i4").astype(np.int64)
        return cls(
            number,
            kind,
            shard,
            size,
            np.frombuffer(keys, "<u4"),
            named,
            chunks,
            written,
        )

    @classmethod
    def of_blocks(
        cls, number: int, kind: Kind, shard: int, blocks: Sequence[Block], texts: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64] = _NO_COUNTS,
    ) -> "Segment":  # fmt: skip
        """Return a new segment with these blocks."""
        keys = np.array([block.first for block in blocks], "<u4")
        return cls(
            number,
            kind,
            shard,
            sum(len(block.data) for block in blocks),
            keys,
            texts,
            counts,
        )

    @property
    def documents(self) -> int:
        """The number of texts, or chunks, in its postings."""
        if self.kind == Kind.WORDS:
            return int(self.counts.sum())
        return len(self.texts)

    @property
    def row(self) -> SegmentRow:
        """The segment in the form that ``index`` uses."""
        return SegmentRow(self.id, self.kind, 0, self.documents - 1, self.bytes)

    def block_keys(self, first: int, last: int) -> list[int]:
        """Return the keys of the blocks that cover a range of keys."""
        low = int(np.searchsorted(self.keys, first, "right")) - 1
        high = int(np.searchsorted(self.keys, last, "right"))
        return [int(key) for key in self.keys[max(0, low) : high]]


def read_segments(connection: "Connection[Any]", repository: int) -> list[Segment]:
    """Return a repository's segments, in the order of their creation."""
    return list(
        map(
            Segment.of,
            connection.execute(SELECT.encode(), [repository], binary=True).fetchall(),
        )
    )


def reserve_segments(connection: "Connection[Any]", repository: int, count: int) -> int:
    """Reserve segment numbers, which are never reused, and return the first."""
    row = connection.execute(
        "UPDATE flashgrep.repository SET next_segment = next_segment + %s WHERE id = %s RETURNING next_segment",
        [count, repository],
    ).fetchone()
    if row is None:
        raise LookupError(repository)
    return int(row[0]) - count


@contextmanager
def write_rows(
    connection: "Connection[Any]",
    repository: int,
    tables: Sequence[str],
    texts: Sequence[int],
    segments: Sequence[int],
) -> "Iterator[Cursor[Any]]":
    """Run a block in one transaction that writes rows of these texts and segments into shards.

    The rows are recorded as leftovers first: a shard on another server commits separately, so its rows would stay
    behind if this transaction failed.

    Raises:
        Conflict: another worker took this one for dead and deletes the rows.

    """
    row = connection.execute(
        "INSERT INTO flashgrep.leftover (repository, tables, texts, segments) VALUES (%s, %s, %s, %s) RETURNING id",
        [repository, list(tables), list(texts), list(segments)],
    ).fetchone()
    # The record above is committed separately: it must survive a failed transaction.
    with connection.transaction(), connection.cursor() as cursor:
        # First, so that the record is locked until the commit.
        cursor.execute("DELETE FROM flashgrep.leftover WHERE id = %s", row)
        if not cursor.rowcount:
            raise Conflict(
                "another worker is at the repository", reason="generation_changed"
            )
        yield cursor


def put_blocks(
    cursor: "Cursor[Any]",
    repository: int,
    shard: int,
    segment: int,
    blocks: Sequence[Block],
) -> None:
    """Store blocks of a segment in its shard."""
    with cursor.copy(
        "COPY flashgrep.block (repository, shard, segment, key, data) FROM STDIN (FORMAT BINARY)"
    ) as copy:
        copy.set_types(["int4", "int2", "int8", "int8", "bytea"])
        for block in blocks:
            copy.write_row([repository, shard, segment, block.first, block.data])


def put_segment(cursor: "Cursor[Any]", repository: int, segment: Segment) -> None:
    """Store a segment's row, which makes its blocks visible to readers."""
    cursor.execute(
        "INSERT INTO flashgrep.segment (repository, id, kind, shard, bytes, keys, texts, counts, format) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [
            repository, segment.id, segment.kind, segment.shard, segment.bytes, segment.keys.tobytes(),
            segment.texts.astype(">i8").tobytes(), segment.counts.astype(">i4").tobytes(), segment.format,
        ],
    )  # fmt: skip


def put_signs(
    cursor: "Cursor[Any]", repository: int, shard: int, segment: int, data: bytes
) -> None:
    """Store the signs of the vectors of a segment's chunks."""
    cursor.execute(
        "INSERT INTO flashgrep.signs VALUES (%s, %s, %s, %s)",
        [repository, shard, segment, data],
    )


def start_generation(cursor: "Cursor[Any]", repository: int) -> None:
    """Start a new generation, so that readers load the changes."""
    cursor.execute(
        "UPDATE flashgrep.repository SET generation = generation + 1 WHERE id = %s",
        [repository],
    )


def record_leftovers(
    cursor: "Cursor[Any]", repository: int, tables: Sequence[str], texts: Sequence[int], segments: Sequence[int],
    seconds: int,
) -> None:  # fmt: skip
    """Record rows in shards that are no longer referenced, to be deleted after ``seconds``."""
    cursor.execute(
        "INSERT INTO flashgrep.leftover (repository, due, tables, texts, segments) "
        "VALUES (%s, now() + make_interval(secs => %s), %s, %s, %s)",
        [repository, seconds, list(tables), list(texts), list(segments)],
    )


def delete_leftovers(connection: "Connection[Any]", repository: int) -> None:
    """Delete leftover rows in shards: those of dead workers, and replaced ones whose grace period is over."""
    query = (
        "DELETE FROM flashgrep.leftover WHERE id = (SELECT id FROM flashgrep.leftover WHERE repository = %s "
        "AND due <= now() LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING tables, texts, segments"
    )
    while True:
        with connection.transaction():
            row = connection.execute(query, [repository]).fetchone()
            if row is None:
                return
            tables, texts, segments = row
            # SKIP LOCKED above: a record locked by a living worker is no leftover yet.
            low = min(texts, default=0) * PLACES
            high = (max(texts, default=0) + 1) * PLACES
            values = {
                "repository": repository,
                "texts": texts,
                "segments": segments,
                "low": low,
                "high": high,
            }
            for table in tables:
                statement = f"DELETE FROM flashgrep.{table} WHERE repository = %(repository)s AND {_CONDITIONS[table]}"
                connection.execute(statement.encode(), values)


@dataclass(frozen=True, slots=True)
class Lists:
    """The posting lists of a segment, in fetched blocks."""

    segment: Segment
    blocks: Mapping[tuple[int, int], bytes]

    def find(self, gram: int) -> memoryview:
        """Return the list of a key; empty if no document has it."""
        (key,) = self.segment.block_keys(gram, gram)
        block = self._open(key)
        start, end = block.span(gram)
        return block.payload[start:end]

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        """Yield the lists of the keys from ``first`` to ``last``."""
        return (data for _, data in self.with_keys(first, last))

    def with_keys(self, first: int, last: int) -> Iterator[tuple[int, memoryview]]:
        """Yield the segment's keys from ``first`` to ``last``, each with its list."""
        for key in self.segment.block_keys(first, last):
            block = self._open(key)
            low, high = np.searchsorted(
                np.frombuffer(block.grams, "<u4"), [first, last + 1]
            )
            for place in range(int(low), int(high)):
                yield (
                    block.grams[place],
                    block.payload[
                        block.ends[place - 1] if place else 0 : block.ends[place]
                    ],
                )

    def _open(self, key: int) -> OpenBlock:
        """Return a block, after checking its checksum and its range of keys against the segment's row."""
        block = open_block(self.blocks[self.segment.id, key], self.segment.id)
        at = int(np.searchsorted(self.segment.keys, key))
        if at + 1 < len(self.segment.keys):
            last = int(self.segment.keys[at + 1]) - 1
        else:
            last = LAST_KEY
        if (block.first, block.last) != (key, last):
            raise Damaged("a key is in no block of postings")
        return block


def fetch_lists(
    read: OpenQuery, repository: int, segments: Sequence[Segment], spans: Spans
) -> list[Lists]:
    """Return the lists of ranges of keys, for each segment whose shard answers.

    Raises:
        Damaged: a block is missing.

    """
    keys_by_segment = {
        segment.id: {key for span in spans for key in segment.block_keys(*span)}
        for segment in segments
    }
    keys = sorted(
        {key for of_segment in keys_by_segment.values() for key in of_segment}
    )
    with read() as reading:
        rows = reading.fetch_shards(
            "SELECT segment, key, data FROM flashgrep.block WHERE repository = %s AND {shards} "
            "AND segment = ANY(%s) AND key = ANY(%s)",
            [repository, list(keys_by_segment), keys],
            sorted({segment.shard for segment in segments}),
        )
        missing = set(reading.missing)
    blocks = {(segment, key): data for segment, key, data in rows}
    answering = [segment for segment in segments if segment.shard not in missing]
    for current_segment in answering:
        if any(
            (current_segment.id, key) not in blocks
            for key in keys_by_segment[current_segment.id]
        ):
            raise Damaged("a block of postings is missing")
    return [Lists(segment, blocks) for segment in answering]


def drop_dead(connection: "Connection[Any]", repository: int) -> int:
    """Drop contents that no branch has any more, atomically, and return their number; their rows are deleted later."""
    alive: set[int] = set()
    with connection.transaction():
        rows = connection.execute(
            "SELECT files FROM flashgrep.listing WHERE repository = %s",
            [repository],
            binary=True,
        )
        for (files,) in rows:
            # From the listings themselves: a stored reference count could be wrong
            # after a crash.
            alive.update(read_text_ids(files))
        segments = read_segments(connection, repository)
        dead = (
            {
                text
                for current_segment in segments
                for text in current_segment.texts.tolist()
            }
            - alive
            - {0}
        )
        if not dead:
            return 0
        gone = np.array(sorted(dead), np.int64)
        with connection.cursor() as cursor:
            for segment in segments:
                is_gone = np.isin(segment.texts, gone)
                if is_gone.any():
                    # The postings stay; only the text's number in the segment's row is
                    # set to 0.
                    named = np.where(is_gone, 0, segment.texts).astype(">i8").tobytes()
                    values = [named, repository, segment.id]
                    query = "UPDATE flashgrep.segment SET texts = %s WHERE repository = %s AND id = %s"
                    if not cursor.execute(query, values).rowcount:
                        raise Conflict(
                            "another worker is at the repository",
                            reason="generation_changed",
                        )
            cursor.execute(
                "DELETE FROM flashgrep.content WHERE repository = %s AND text = ANY(%s)",
                [repository, gone.tolist()],
            )
            record_leftovers(
                cursor, repository, OF_TEXTS, gone.tolist(), (), GRACE_SECONDS
            )
            start_generation(cursor, repository)
    return len(dead)


def choose(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return the groups of segments to rewrite as one: the newest if there are many, else each with many dead texts."""
    rows = worth_merging([segment.row for segment in segments])
    if rows:
        return [list(segments[-len(rows) :])]
    return [
        [segment]
        for segment in segments
        if np.count_nonzero(segment.texts == 0) > len(segment.texts) * DEAD_SHARE
    ]


def merge(connection: "Connection[Any]", repository: int) -> Iterator[int]:
    """Merge segments where it pays, shard by shard, yielding after each merge how many segments it replaced."""
    # Segments of another format are rebuilt, not merged.
    current = (
        segment
        for segment in read_segments(connection, repository)
        if segment.format == FORMAT
    )
    ordered = sorted(current, key=lambda one: (one.shard, one.kind, one.id))
    for _, group in groupby(ordered, key=lambda one: (one.shard, one.kind)):
        for chosen in choose(list(group)):
            merge_segments(connection, repository, chosen)
            yield len(chosen)


def _read_signs(
    connection: "Connection[Any]", repository: int, old: Sequence[Segment]
) -> npt.NDArray[np.uint8]:
    """Return the signs of all chunks of segments of one shard, in their order."""
    numbers = [segment.id for segment in old]
    rows = connection.execute(
        "SELECT segment, data FROM flashgrep.signs WHERE repository = %s AND shard = %s AND segment = ANY(%s)",
        [repository, old[0].shard, numbers], binary=True,
    ).fetchall()  # fmt: skip
    data = dict(rows)
    return np.frombuffer(b"".join(data[number] for number in numbers), np.uint8)


def merge_segments(
    connection: "Connection[Any]", repository: int, old: Sequence[Segment]
) -> None:
    """Replace segments of one kind and shard by a single one without deleted texts, atomically.

    Raises:
        Conflict: another worker has changed them in the meantime.

    """
    number = reserve_segments(connection, repository, 1)
    kind = Kind(old[0].kind)
    shard = old[0].shard
    texts = np.concatenate([segment.texts for segment in old])
    counts = np.concatenate([segment.counts for segment in old])
    # In segments of words each chunk is a document: those of a deleted text go with it.
    if kind == Kind.GRAMS:
        alive = texts > 0
    else:
        alive = np.repeat(texts > 0, counts)
    # Documents are renumbered: the remaining ones close the gaps.
    places = None
    if not alive.all():
        places = np.where(alive, np.cumsum(alive) - 1, -1)
    numbers = [segment.id for segment in old]
    with write_rows(connection, repository, OF_SEGMENTS, (), [number]) as cursor:
        # Before the long work: a second worker waits here, then finds them gone.
        cursor.execute(
            "DELETE FROM flashgrep.segment WHERE repository = %s AND id = ANY(%s) RETURNING texts",
            [repository, numbers],
        )
        if {row[0] for row in cursor.fetchall()} != {
            segment.texts.astype(">i8").tobytes() for segment in old
        }:
            raise Conflict(
                "another worker is at the repository", reason="generation_changed"
            )
        blocks: list[Block] = []
        # Block sizes are not stored, so all blocks of a segment are assumed equal.
        sizes = (
            (int(key), segment.bytes // max(1, len(segment.keys)))
            for segment in old
            for key in segment.keys
        )
        for span in cut_keys(sizes):
            new_blocks = list(
                join(
                    *read_blocks(connection, repository, old, span),
                    number,
                    span,
                    places,
                )
            )
            put_blocks(cursor, repository, shard, number, new_blocks)
            # Afterwards only first keys and sizes are needed; zeros stand for the data,
            # which is already stored.
            blocks += [
                Block(block.first, b"\0" * len(block.data)) for block in new_blocks
            ]
        if kind == Kind.WORDS:
            signs = _read_signs(connection, repository, old)
            of_chunk = signs.reshape(len(alive), -1 if len(alive) else 0)
            put_signs(cursor, repository, shard, number, of_chunk[alive].tobytes())
        is_filled = texts > 0
        if is_filled.any():
            if len(counts):
                count = counts[is_filled]
            else:
                count = counts
            put_segment(
                cursor,
                repository,
                Segment.of_blocks(number, kind, shard, blocks, texts[is_filled], count),
            )
        else:
            record_leftovers(cursor, repository, OF_SEGMENTS, (), [number], 0)
        record_leftovers(cursor, repository, OF_SEGMENTS, (), numbers, GRACE_SECONDS)
        start_generation(cursor, repository)


def read_blocks(
    connection: "Connection[Any]",
    repository: int,
    old: Sequence[Segment],
    span: tuple[int, int],
) -> tuple[list[OpenBlock], list[int]]:
    """Return the blocks that cover a range of keys, each with the offset to add to its document numbers."""
    opened: list[OpenBlock] = []
    offsets: list[int] = []
    first = 0
    for segment in old:
        rows = connection.execute(
            "SELECT data FROM flashgrep.block WHERE repository = %s AND shard = %s AND segment = %s AND key = ANY(%s) "
            "ORDER BY key",
            [repository, segment.shard, segment.id, segment.block_keys(*span)], binary=True,
        ).fetchall()  # fmt: skip
        opened += [open_block(data, segment.id) for (data,) in rows]
        offsets += [first] * len(rows)
        first += segment.documents
    return opened, offsets
