"""The indexer's last stages: the chunks of texts with their words, and vectors of the chunks."""

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.daemon.prepare import read_text
from flashgrep.daemon.workers import Workers
from flashgrep.embed import Embedder
from flashgrep.index import chunks as table
from flashgrep.index import vectors
from flashgrep.index.chunks import ChunkedText, PackedChunks, ToRead, VectorSet
from flashgrep.index.writer import Writer
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.ingest.parse.model import ParsedFile, unpack
from flashgrep.memory import give_back
from flashgrep.search.meaning_index import embedder_of
from flashgrep.search.pieces import chunked_text, embedding_text

BATCH = 64
BATCH_BYTES = 1 << 20
"""Text in one batch: its words and vectors take about as much again, several times over while they are made."""

FEW = 4 * BATCH
"""Texts that are not worth starting processes for: half a second's work."""

ROUND = 16
"""So many batches are stored before the next command is looked at: about two seconds."""


class Embedded(NamedTuple):
    """Vectors of a batch: texts as (number, chunks) in the order of their rows."""

    blobs: list[tuple[int, int]]
    rows: npt.NDArray[np.void]


class Meaning:
    """Stores chunks and vectors, a round at a time."""

    def __init__(self, root: RootFolder, index: Path, max_size: int, writer: Writer, workers: Workers) -> None:
        self._root = root
        self._index = index
        self._max_size = max_size
        self._writer = writer
        self._workers = workers

    def chunks(self) -> int:
        """Store chunks of about two seconds' worth of parsed texts; return how many texts are left."""
        connection = self._writer.connection
        spread = self._workers.running or table.unchunked_count(connection) > FEW
        done = list(self._workers.each(chunked_texts, self._unchunked(), spread=spread))
        with self._writer.transaction():
            table.put(connection, done)
        left = table.unchunked_count(connection)
        if not left:
            self._writer.merge()
        return left

    def _unchunked(self) -> Iterator[tuple[RootFolder, list[ToRead], int]]:
        after = 0
        for _ in range(ROUND):
            texts = table.unchunked(self._writer.connection, BATCH, BATCH_BYTES, after)
            if not texts:
                return
            after = texts[-1][0]
            yield self._root, texts, self._max_size

    def vectors(self, settings: str) -> int:
        """Store vectors of about two seconds' worth of chunked texts; return how many texts are left.

        Raises:
            ProviderUnavailable: the embedder of the settings (``Embedding`` as JSON) does not answer.

        """
        embedder = _embedder(settings)
        of = self._vector_set(embedder)
        left = table.unembedded_count(self._writer.connection, of.id)
        spread = self._workers.running or left > FEW
        try:
            for done in self._workers.each(embedded, self._unembedded(of, settings), spread=spread):
                of = self._store(of, done)
        except vectors.VectorsDamaged:
            of = self._vector_set(embedder)
        left = table.unembedded_count(self._writer.connection, of.id)
        if not left:
            self._drop_others(of, settings)
            self._workers.stop()
        return left

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

    def _unembedded(self, of: VectorSet, settings: str) -> Iterator[tuple[RootFolder, list[ToRead], int, str]]:
        after = 0
        for _ in range(ROUND):
            texts = table.unembedded(self._writer.connection, of.id, BATCH, BATCH_BYTES, after)
            if not texts:
                return
            after = texts[-1][0]
            yield self._root, texts, self._max_size, settings

    def _store(self, of: VectorSet, done: Embedded) -> VectorSet:
        if not len(done.rows):
            return of
        vectors.append(self._index.with_name(of.file), of.rows, done.rows)
        with self._writer.transaction() as connection:
            table.put_embedded(connection, of, done.blobs)
        return of._replace(rows=of.rows + len(done.rows))

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


def chunked_texts(root: RootFolder, texts: Sequence[ToRead], max_size: int) -> PackedChunks:
    """Read texts, given with their packed symbols, and return their chunks; one that has changed is left out."""
    give_back()
    done: list[ChunkedText] = []
    files = RootFiles(root)
    for blob, text_hash, path, packed in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            done.append(chunked_text(blob, path, data, _parsed(packed)))
    return table.pack(done)


def _parsed(packed: bytes) -> ParsedFile | None:
    return unpack(packed) if packed and packed[:1] != b"!" else None


def embedded(root: RootFolder, texts: Sequence[ToRead], max_size: int, settings: str) -> Embedded:
    """Read texts, given with their packed chunks, and return vectors of these; one that has changed is left out."""
    give_back()
    blobs: list[tuple[int, int]] = []
    spelled: list[str] = []
    files = RootFiles(root)
    for blob, text_hash, path, packed in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            found = table.unpack(packed)
            blobs.append((blob, len(found)))
            spelled.extend(embedding_text(path, data, chunk) for chunk in found)
    embedder = _embedder(settings)
    return Embedded(blobs, vectors.quantised(embedder.embed_code(spelled)))
