"""The indexer's last stages: the chunks of texts with their words, and vectors of the chunks."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.daemon.prepare import read_text
from flashgrep.daemon.workers import Workers
from flashgrep.embed import Embedder
from flashgrep.embed.providers import embedder_of
from flashgrep.index import chunks as table
from flashgrep.index import vectors
from flashgrep.index.chunks import ChunkedText, PackedChunks, ToRead, VectorSet
from flashgrep.index.rows import Left
from flashgrep.index.writer import Writer
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.ingest.parse.model import unpack
from flashgrep.machine import release_memory
from flashgrep.search.pieces import chunked_text, embedding_text

BATCH = 64
BATCH_BYTES = 1 << 20
"""Text in one batch: its words and vectors take about as much again, several times over while they are made."""

FEW = 4 * BATCH
"""Texts that are not worth starting processes for: half a second's work."""

FLUSH_PAIRS = 2 << 20
"""Postings of words stored at once, as one segment: those of about 30 MB of text, made in five seconds."""

FLUSH_ROWS = 8192
"""Vectors stored at once: 2 MB."""

Batches = Callable[[Callable[[int], list[ToRead]]], Iterator[list[ToRead]]]
"""Yields batches of texts, each chosen by the last number of the one before, until there are none or it is to stop."""


class Embedded(NamedTuple):
    """Vectors of a batch: texts as (number, chunks) in the order of their rows."""

    blobs: list[tuple[int, int]]
    rows: npt.NDArray[np.void]
    bytes: int


class Meaning:
    """Stores chunks and vectors."""

    def __init__(self, root: RootFolder, index: Path, max_size: int, writer: Writer, workers: Workers) -> None:
        self._root = root
        self._index = index
        self._max_size = max_size
        self._writer = writer
        self._workers = workers

    def chunks(self, batches: Batches) -> Iterator[Left]:
        """Store chunks of parsed texts, yielding after each batch how much is left."""
        connection = self._writer.connection
        left = table.unchunked_left(connection)
        yield left
        spread = self._workers.running or left.texts > FEW
        texts = batches(lambda after: table.unchunked(connection, BATCH, BATCH_BYTES, after))
        calls = ((self._root, part, self._max_size) for part in texts)
        held: list[PackedChunks] = []
        for done in self._workers.each(chunked_texts, calls, spread=spread):
            held.append(done.packed)
            if sum(len(part.pairs) for part in held) > FLUSH_PAIRS:
                self._put_chunks(held)
                held = []
            left = Left(left.texts - len(done.packed.texts), left.bytes - done.bytes)
            yield left
        self._put_chunks(held)
        self._writer.merge()
        yield table.unchunked_left(connection)

    def _put_chunks(self, batches: list[PackedChunks]) -> None:
        if batches:
            with self._writer.transaction() as connection:
                table.put(connection, batches)

    def vectors(self, batches: Batches, settings: str) -> Iterator[Left]:
        """Store vectors of chunked texts, yielding after each batch how much is left.

        Raises:
            ProviderUnavailable: the embedder of the settings (``Embedding`` as JSON) does not answer.

        """
        embedder = _embedder(settings)
        of = self._vector_set(embedder)
        connection = self._writer.connection
        left = table.unembedded_left(connection, of.id)
        yield left
        spread = self._workers.running or left.texts > FEW
        texts = batches(lambda after: table.unembedded(connection, of.id, BATCH, BATCH_BYTES, after))
        calls = ((self._root, part, self._max_size, settings) for part in texts)
        held: list[Embedded] = []
        try:
            for done in self._workers.each(embedded, calls, spread=spread):
                held.append(done)
                if sum(len(part.rows) for part in held) > FLUSH_ROWS:
                    of, held = self._store(of, held), []
                left = Left(left.texts - len(done.blobs), left.bytes - done.bytes)
                yield left
            of = self._store(of, held)
        except vectors.VectorsDamaged:
            of = self._vector_set(embedder)
        left = table.unembedded_left(connection, of.id)
        if not left.texts:
            self._drop_others(of, settings)
            self._workers.stop()
        yield left

    def _vector_set(self, embedder: Embedder) -> VectorSet:
        """Return the embedder's set; a new one, with a file of its own, where its vectors are not what was written."""
        for known in table.vector_sets(self._writer.connection):
            if (known.name, known.dims) == (embedder.name, embedder.dims) and self._whole(known):
                return known
        with self._writer.transaction() as connection:
            for known in table.vector_sets(connection):
                if known.name == embedder.name:
                    table.drop_vector_set(connection, known.id)
            return table.add_vector_set(connection, embedder.name, embedder.dims, vectors.new_name())

    def _whole(self, of: VectorSet) -> bool:
        return vectors.holds(self._index.with_name(of.file), of.dims, of.rows)

    def _store(self, of: VectorSet, batches: list[Embedded]) -> VectorSet:
        rows = [part.rows for part in batches if len(part.rows)]
        if not rows:
            return of
        vectors.append(self._index.with_name(of.file), of.rows, np.concatenate(rows))
        with self._writer.transaction() as connection:
            table.put_embedded(connection, of, [blob for part in batches for blob in part.blobs])
        return of._replace(rows=of.rows + sum(map(len, rows)))

    def _drop_others(self, kept: VectorSet, settings: str) -> None:
        """Remove what served while these were made."""
        with self._writer.transaction() as connection:
            table.note_settings(connection, settings)
            for other in table.vector_sets(connection):
                if other.id != kept.id:
                    table.drop_vector_set(connection, other.id)
        for file in vectors.vector_files(self._index.parent):
            if file.name != kept.file:
                file.unlink(missing_ok=True)


@cache
def _embedder(settings: str) -> Embedder:
    return embedder_of(settings, os.environ)


class Chunked(NamedTuple):
    """Chunks of a batch, and how many bytes its texts have."""

    packed: PackedChunks
    bytes: int


def chunked_texts(root: RootFolder, texts: Sequence[ToRead], max_size: int) -> Chunked:
    """Read texts, given with their packed symbols, and return their chunks; one that has changed is left out."""
    release_memory()
    done: list[ChunkedText] = []
    files, size = RootFiles(root), 0
    for blob, text_hash, path, packed in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            size += len(data)
            parsed = unpack(packed) if packed and packed[:1] != b"!" else None
            done.append(chunked_text(blob, path, data, parsed))
    return Chunked(table.pack(done), size)


def embedded(root: RootFolder, texts: Sequence[ToRead], max_size: int, settings: str) -> Embedded:
    """Read texts, given with their packed chunks, and return vectors of these; one that has changed is left out."""
    release_memory()
    blobs: list[tuple[int, int]] = []
    spelled: list[str] = []
    files, size = RootFiles(root), 0
    for blob, text_hash, path, packed in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            size += len(data)
            found = table.unpack(packed)
            blobs.append((blob, len(found)))
            spelled.extend(embedding_text(path, data, chunk) for chunk in found)
    embedder = _embedder(settings)
    return Embedded(blobs, vectors.quantised(embedder.embed_code(spelled)), size)
