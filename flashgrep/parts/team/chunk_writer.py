"""Chunks stored texts, with their words and vectors, using the local indexer's code."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.machine import release_memory
from flashgrep.base.model import Document
from flashgrep.files.extract import extract
from flashgrep.index.postings import FORMAT, encode
from flashgrep.index.segments import Kind
from flashgrep.indexer.job import stage_versions
from flashgrep.indexer.worker_pool import WorkerPool
from flashgrep.parts.meaning.chunking import chunk_text, embedding_text
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index.chunks import ChunkedText, PackedChunks
from flashgrep.parts.meaning.index.vectors import quantise, signs_of
from flashgrep.parts.meaning.meaning_stages import (
    BATCH,
    BATCH_BYTES,
    FLUSH_PAIRS,
    open_embedder,
)
from flashgrep.parts.symbols.parse.model import unpack
from flashgrep.parts.team.load import read_texts
from flashgrep.parts.team.stored_segments import (
    OF_SEGMENTS,
    PLACES,
    Segment,
    delete_leftovers,
    put_blocks,
    put_segment,
    put_signs,
    read_segments,
    record_leftovers,
    reserve_segments,
    start_generation,
    write_rows,
)

if TYPE_CHECKING:
    from psycopg import Connection

Source = tuple[int, bytes, bytes, bytes]
"""A text's number, path, content and packed symbols."""


class ChunkedBatch(NamedTuple):
    """Chunks, vectors and sums of one batch of texts."""

    packed: PackedChunks
    rows: npt.NDArray[np.void]
    """One vector per chunk."""
    wholes: list[bytes]
    """Per text, the sum of its vectors, as float16."""


def chunk_batch(texts: Sequence[Source], settings: str) -> ChunkedBatch:
    """Return the chunks of texts with their words and vectors; ``settings``: the embedder's settings as JSON."""
    release_memory()
    texts_chunked: list[ChunkedText] = []
    inputs: list[str] = []
    for number, path, content, packed in texts:
        document = extract(content)
        data = document.data if isinstance(document, Document) else b""
        if packed and packed[:1] != b"!":
            parsed = unpack(packed)
        else:
            parsed = None
        texts_chunked.append(chunk_text(number, path, data, parsed))
        inputs += [
            embedding_text(path, data, chunk) for chunk in texts_chunked[-1].chunks
        ]
    rows = quantise(open_embedder(settings).embed_code(inputs))
    wholes = []
    at = 0
    for text in texts_chunked:
        of_text = rows[at : at + len(text.chunks)]
        at = at + len(text.chunks)
        whole = of_text["scale"].astype(np.float32) @ of_text["direction"].astype(
            np.float32
        )
        # Half precision is enough to rank files and takes half the space.
        wholes.append(whole.astype("<f2").tobytes())
    return ChunkedBatch(table.pack(texts_chunked), rows, wholes)


class Chunker:
    """Stores the chunks of one repository over one connection."""

    def __init__(
        self, connection: "Connection[Any]", repository: int, settings: str
    ) -> None:
        """Take a repository's number and the embedder's settings as JSON."""
        self._connection = connection
        self._repository = repository
        self._settings = settings

    def run(self, workers: int) -> Iterator[int]:
        """Store chunks of parsed texts that have none; yield the number of texts done so far after each write.

        Raises:
            ProviderUnavailable: the embedder does not answer; earlier batches stay stored.

        """
        self.drop_old_chunks()
        count = 0
        pool = WorkerPool(workers)
        try:
            # Shard by shard, since a segment belongs to one shard.
            for shard, texts in sorted(self.find_texts().items()):
                waiting: list[ChunkedBatch] = []
                calls = (
                    (batch, self._settings) for batch in self.read_batches(shard, texts)
                )
                for cut in pool.map(chunk_batch, calls, spread=len(texts) > BATCH):
                    waiting.append(cut)
                    count += len(cut.wholes)
                    if sum(len(batch.packed.pairs) for batch in waiting) > FLUSH_PAIRS:
                        self.put(shard, waiting)
                        waiting = []
                        yield count
                if waiting:
                    self.put(shard, waiting)
                    yield count
        finally:
            pool.stop()

    def drop_old_chunks(self) -> None:
        """Drop all chunks if another version or embedder made them, and record the current ones."""
        versions = stage_versions()
        embedder = open_embedder(self._settings)
        version = versions["chunks"], embedder.name
        query = "SELECT cut_by, embedder FROM flashgrep.repository WHERE id = %s"
        old = [
            segment
            for segment in read_segments(self._connection, self._repository)
            if segment.kind == Kind.WORDS
        ]
        is_current = all(segment.format == FORMAT for segment in old)
        if (
            is_current
            and self._connection.execute(query, [self._repository]).fetchone()
            == version
        ):
            return
        texts = [text for segment in old for text in segment.texts.tolist() if text]
        with write_rows(self._connection, self._repository, (), (), ()) as cursor:
            # No grace period: a text has one row of chunks, and it is about to be
            # written again.
            record_leftovers(
                cursor,
                self._repository,
                ("chunk", "vector", *OF_SEGMENTS),
                texts,
                [segment.id for segment in old],
                0,
            )
            cursor.execute("DELETE FROM flashgrep.segment WHERE id = ANY(%s) AND repository = %s",
                           [[segment.id for segment in old], self._repository])  # fmt: skip
            cursor.execute(
                "UPDATE flashgrep.repository SET cut_by = %s, embedder = %s, generation = generation + 1 WHERE id = %s",
                [*version, self._repository],
            )
        delete_leftovers(self._connection, self._repository)

    def find_texts(self) -> dict[int, list[int]]:
        """Return the parsed texts without chunks, by shard, in ascending order."""
        row = self._connection.execute(
            "SELECT parsed_to FROM flashgrep.repository WHERE id = %s",
            [self._repository],
        ).fetchone()
        if row:
            parsed_to = row[0]
        else:
            parsed_to = 0
        texts: dict[int, set[int]] = {}
        # 0 marks a deleted text.
        cut: set[int] = {0}
        for segment in read_segments(self._connection, self._repository):
            if segment.kind == Kind.WORDS:
                cut.update(segment.texts.tolist())
            else:
                texts.setdefault(segment.shard, set()).update(
                    segment.texts[segment.texts <= parsed_to].tolist()
                )
        return {
            shard: sorted(numbers - cut)
            for shard, numbers in texts.items()
            if numbers - cut
        }

    def read_batches(self, shard: int, texts: Sequence[int]) -> Iterator[list[Source]]:
        """Yield batches of texts with their symbols, of bounded size."""
        where = f"repository = %s AND shard = {int(shard)} AND text = ANY(%s)"
        query = f"SELECT text, packed FROM flashgrep.symbol WHERE {where}"
        for rows in read_texts(
            self._connection, self._repository, shard, texts, BATCH, BATCH_BYTES
        ):
            numbers = [number for number, _, _ in rows]
            symbols = self._connection.execute(
                query.encode(), [self._repository, numbers], binary=True
            ).fetchall()
            packed = dict(symbols)
            yield [
                (number, path, data, packed.get(number, b""))
                for number, path, data in rows
            ]

    def put(self, shard: int, batches: Sequence[ChunkedBatch]) -> None:
        """Store chunks in a shard, and their words as one segment."""
        connection = self._connection
        repository = self._repository
        texts = [text for batch in batches for text in batch.packed.texts]
        wholes = [whole for batch in batches for whole in batch.wholes]
        rows = np.concatenate([batch.rows for batch in batches])
        numbers = np.array([text.text_id for text in texts], np.int64)
        counts = np.array([text.chunks for text in texts], np.int64)
        # A chunk's number is its text's number times PLACES, plus its place in the
        # text: one gives the other without a table.
        chunks = np.repeat(
            numbers * PLACES - (np.cumsum(counts) - counts), counts
        ) + np.arange(len(rows))
        firsts = np.cumsum([0, *(len(batch.rows) for batch in batches)])
        pairs = np.concatenate(
            [
                batch.packed.pairs + np.uint64(first)
                for batch, first in zip(batches, firsts.tolist(), strict=False)
            ]
        )
        pairs.sort()
        segment = reserve_segments(connection, repository, 1)
        blocks = list(encode(pairs, segment))
        tables = ("chunk", "vector", *OF_SEGMENTS)
        with write_rows(
            connection, repository, tables, numbers.tolist(), [segment]
        ) as cursor:
            with cursor.copy(
                "COPY flashgrep.chunk (repository, shard, text, packed, whole) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "int2", "int8", "bytea", "bytea"])
                for text, whole in zip(texts, wholes, strict=True):
                    copy.write_row(
                        [repository, shard, text.text_id, text.packed, whole]
                    )
            with cursor.copy(
                "COPY flashgrep.vector (repository, shard, chunk, components) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "int2", "int8", "bytea"])
                for chunk, row in zip(chunks.tolist(), rows, strict=True):
                    copy.write_row([repository, shard, chunk, row.tobytes()])
            put_signs(
                cursor,
                repository,
                shard,
                segment,
                signs_of(rows["direction"]).astype("<u8").tobytes(),
            )
            put_blocks(cursor, repository, shard, segment, blocks)
            put_segment(
                cursor,
                repository,
                Segment.of_blocks(segment, Kind.WORDS, shard, blocks, numbers, counts),
            )
            start_generation(cursor, repository)
