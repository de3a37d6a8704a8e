"""Segments made one, and contents that no branch has any more: both in one step, the old rows deleted later."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flashgrep.errors import Conflict
from flashgrep.index.postings import FORMAT, Block, OpenBlock, join, open_block
from flashgrep.index.segments import Kind, cut_keys, worth_merging
from flashgrep.team.listing import read_text_ids
from flashgrep.team.segments import (
    GRACE_SECONDS,
    OF_SEGMENTS,
    OF_TEXTS,
    Segment,
    advance,
    leave,
    put_blocks,
    put_segment,
    put_signs,
    read_segments,
    take_segments,
    write_rows,
)

if TYPE_CHECKING:
    from psycopg import Connection

DEAD_SHARE: Final = 0.3
"""A segment is written again, without the texts that are gone, once they are so large a share of it."""


def drop_dead(connection: "Connection[Any]", repository: int) -> int:
    """Forget contents that no branch has any more, in one step, and return how many; their rows go later."""
    alive: set[int] = set()
    with connection.transaction():
        rows = connection.execute(
            "SELECT files FROM flashgrep.listing WHERE repository = %s", [repository], binary=True
        )
        for (files,) in rows:
            # From the listings themselves: a count kept alongside them could be wrong after a crash.
            alive.update(read_text_ids(files))
        segments = read_segments(connection, repository)
        dead = {text for one in segments for text in one.texts.tolist()} - alive - {0}
        if not dead:
            return 0
        gone = np.array(sorted(dead), np.int64)
        with connection.cursor() as cursor:
            for one in segments:
                is_gone = np.isin(one.texts, gone)
                if is_gone.any():
                    # The postings stay as they are; only the name that leads from them to the text is taken away.
                    named = np.where(is_gone, 0, one.texts).astype(">i8").tobytes()
                    values = [named, repository, one.id]
                    query = "UPDATE flashgrep.segment SET texts = %s WHERE repository = %s AND id = %s"
                    if not cursor.execute(query, values).rowcount:
                        raise Conflict("another worker is at the repository", reason="generation_changed")
            cursor.execute(
                "DELETE FROM flashgrep.content WHERE repository = %s AND text = ANY(%s)", [repository, gone.tolist()]
            )
            leave(cursor, repository, OF_TEXTS, gone.tolist(), (), GRACE_SECONDS)
            advance(cursor, repository)
    return len(dead)


def choose(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return segments of one kind and shard that are to be one: the newest where they are many, or half dead ones."""
    rows = worth_merging([one.row for one in segments])
    if rows:
        return [list(segments[-len(rows) :])]
    return [[one] for one in segments if np.count_nonzero(one.texts == 0) > len(one.texts) * DEAD_SHARE]


def merge(connection: "Connection[Any]", repository: int) -> Iterator[int]:
    """Merge what is worth it, each shard's by itself, yielding after each step how many segments are one now."""
    # What is of another format is rebuilt, not read.
    current = (one for one in read_segments(connection, repository) if one.format == FORMAT)
    ordered = sorted(current, key=lambda one: (one.shard, one.kind, one.id))
    for _, group in groupby(ordered, key=lambda one: (one.shard, one.kind)):
        for chosen in choose(list(group)):
            merge_segments(connection, repository, chosen)
            yield len(chosen)


def merge_segments(connection: "Connection[Any]", repository: int, old: Sequence[Segment]) -> None:
    """Make one segment of some of one kind and shard, without texts that are gone; all of it is there then, or none.

    Raises:
        Conflict: another worker has changed them meanwhile.

    """
    number, kind, shard = take_segments(connection, repository, 1), Kind(old[0].kind), old[0].shard
    texts = np.concatenate([one.texts for one in old])
    counts = np.concatenate([one.counts for one in old])
    # Of words each chunk is a document: all of a text go with it.
    alive = texts > 0 if kind == Kind.GRAMS else np.repeat(texts > 0, counts)
    # Documents are counted again: what is left moves up.
    places = None if alive.all() else np.where(alive, np.cumsum(alive) - 1, -1)
    numbers = [one.id for one in old]
    with write_rows(connection, repository, OF_SEGMENTS, (), [number]) as cursor:
        # Before the long work: whoever comes second waits here, and finds them gone.
        cursor.execute(
            "DELETE FROM flashgrep.segment WHERE repository = %s AND id = ANY(%s) RETURNING texts",
            [repository, numbers],
        )
        if {row[0] for row in cursor.fetchall()} != {one.texts.astype(">i8").tobytes() for one in old}:
            raise Conflict("another worker is at the repository", reason="generation_changed")
        blocks: list[Block] = []
        # All blocks of a segment count as equally large: their sizes are not kept.
        sizes = ((int(key), one.bytes // max(1, len(one.keys))) for one in old for key in one.keys)
        for span in cut_keys(sizes):
            made = list(join(*read_blocks(connection, repository, old, span), number, span, places))
            put_blocks(cursor, repository, shard, number, made)
            # Only first keys and sizes are wanted afterwards, and the bytes are stored already; a run of zeros stands
            # for them.
            blocks += [Block(one.first, b"\0" * len(one.data)) for one in made]
        if kind == Kind.WORDS:
            rows = connection.execute(
                "SELECT segment, data FROM flashgrep.signs WHERE repository = %s AND shard = %s AND segment = ANY(%s)",
                [repository, shard, numbers], binary=True,
            ).fetchall()  # fmt: skip
            data = dict(rows)
            signs = b"".join(data[one.id] for one in old)
            of_chunk = np.frombuffer(signs, np.uint8).reshape(len(alive), -1 if len(alive) else 0)
            put_signs(cursor, repository, shard, number, of_chunk[alive].tobytes())
        left = texts > 0
        if left.any():
            kept = counts[left] if len(counts) else counts
            put_segment(cursor, repository, Segment.of_blocks(number, kind, shard, blocks, texts[left], kept))
        else:
            leave(cursor, repository, OF_SEGMENTS, (), [number], 0)
        leave(cursor, repository, OF_SEGMENTS, (), numbers, GRACE_SECONDS)
        advance(cursor, repository)


def read_blocks(
    connection: "Connection[Any]", repository: int, old: Sequence[Segment], span: tuple[int, int]
) -> tuple[list[OpenBlock], list[int]]:
    """Return the blocks of segments that have a range of keys, and what the numbers of their documents grow by."""
    opened: list[OpenBlock] = []
    offsets: list[int] = []
    first = 0
    for one in old:
        rows = connection.execute(
            "SELECT data FROM flashgrep.block WHERE repository = %s AND shard = %s AND segment = %s AND key = ANY(%s) "
            "ORDER BY key",
            [repository, one.shard, one.id, one.block_keys(*span)], binary=True,
        ).fetchall()  # fmt: skip
        opened += [open_block(data, one.id) for (data,) in rows]
        offsets += [first] * len(rows)
        first += one.documents
    return opened, offsets
