"""The indexer's last stages: the chunks of texts with their words, and vectors of the chunks."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.machine import release_memory
from flashgrep.files.openat import RootFiles, RootFolder
from flashgrep.index.schema import StageBacklog, list_vector_files
from flashgrep.indexer.project_work import ProjectWork
from flashgrep.indexer.workers import read_text
from flashgrep.parts.meaning.chunking import chunk_text, embedding_text
from flashgrep.parts.meaning.embed import Embedder
from flashgrep.parts.meaning.embed.providers import embedder_of, is_embedded
from flashgrep.parts.meaning.embed.static import StaticEmbedder
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index import vectors
from flashgrep.parts.meaning.index.chunks import (
    ChunkedText,
    PackedChunks,
    ToRead,
    VectorSet,
)
from flashgrep.parts.meaning.index.sieve import make_filter
from flashgrep.parts.meaning.index.word_impacts import choose_for_vectors, count_fields
from flashgrep.parts.symbols.parse.model import unpack

BATCH = 64
BATCH_BYTES = 1 << 20
"""Text in one batch: its words and vectors take about as much again, several times over while they are made."""

FEW = 4 * BATCH
"""Not worth starting processes for less text than this: half a second's work."""

FLUSH_PAIRS = 2 << 20
"""Postings of words stored at once, as one segment: those of about 30 MB of text, made in five seconds."""

ENDING_SHARE = 0.1
"""Merging the words of all chunks and freeing pages, as a share of the time for making them."""

FLUSH_ROWS = 8192
"""Vectors stored at once: 2 MB."""


def store_chunks(work: ProjectWork, settings: str) -> Iterator[StageBacklog]:
    """Store the chunks of a project's parsed texts, see ``MeaningStages.store_chunks``."""
    return MeaningStages(work).store_chunks(settings)


def store_vectors(work: ProjectWork, settings: str) -> Iterator[StageBacklog]:
    """Store vectors of a project's chunked texts, see ``MeaningStages.store_vectors``."""
    return MeaningStages(work).store_vectors(settings)


class MeaningStages:
    """Stores chunks and vectors of one project's texts."""

    def __init__(self, work: ProjectWork) -> None:
        self._work = work
        self._writer = work.writer
        self._pool = work.pool
        self._number = work.add_project()

    def store_chunks(self, settings: str) -> Iterator[StageBacklog]:
        """Store the chunks of parsed texts, yielding after each batch how much is left.

        If these settings use the embedded model, vectors are stored, too: both are made from the same words.
        """
        connection = self._writer.connection
        embedder = open_embedded(settings)
        if embedder is None:
            vector_set = None
        else:
            vector_set = self._open_vector_set(embedder)
        stage_backlog = table.count_to_chunk(connection, self._number)
        # Merging what was stored counts as much as this many bytes of text.
        ending = stage_backlog.bytes * ENDING_SHARE
        yield StageBacklog(stage_backlog.texts, int(stage_backlog.bytes + ending))
        spread = self._pool.is_running or stage_backlog.texts > FEW
        texts = self._work.choose_batches(
            lambda after: table.choose_to_chunk(
                connection, self._number, BATCH, BATCH_BYTES, after
            )
        )
        calls = (
            (self._work.project.root, part, self._work.project.max_size, settings)
            for part in texts
        )
        waiting: list[ChunkedTexts] = []

        def flush() -> None:
            nonlocal vector_set
            if waiting:
                with self._writer.transaction() as connection:
                    table.put(
                        connection,
                        [matching_chunked.packed for matching_chunked in waiting],
                    )
                # Texts left without vectors, here or by a crash, get them in the next
                # stage.
                if vector_set is not None:
                    try:
                        vector_set = self._append(
                            vector_set,
                            [matching_chunked.embedded for matching_chunked in waiting],
                        )
                    except vectors.VectorsDamaged:
                        vector_set = None
                waiting.clear()

        for chunked in self._pool.map(cut_texts, calls, spread=spread):
            waiting.append(chunked)
            if (
                sum(len(current_chunked.packed.pairs) for current_chunked in waiting)
                > FLUSH_PAIRS
            ):
                flush()
            stage_backlog = StageBacklog(
                stage_backlog.texts - len(chunked.packed.texts),
                stage_backlog.bytes - chunked.embedded.bytes,
            )
            yield StageBacklog(stage_backlog.texts, int(stage_backlog.bytes + ending))
        flush()
        # Before free pages are returned, since a merge frees some.
        for share, remade in self._writer.merge():
            self._work.remade = remade
            yield StageBacklog(
                stage_backlog.texts, int(stage_backlog.bytes + ending * (1 - share / 2))
            )
        for share in self._writer.shrink():
            yield StageBacklog(
                stage_backlog.texts, int(stage_backlog.bytes + ending * (1 - share) / 2)
            )
        yield table.count_to_chunk(connection, self._number)

    def store_vectors(self, settings: str) -> Iterator[StageBacklog]:
        """Store vectors of chunked texts, yielding after each batch how much is left.

        Raises:
            ProviderUnavailable: the embedder of the settings (``Embedding`` as JSON) does not answer.

        """
        embedder = open_embedder(settings)
        vector_set = self._open_vector_set(embedder)
        connection = self._writer.connection
        stage_backlog = table.count_to_embed(connection, self._number, vector_set.id)
        yield stage_backlog
        spread = self._pool.is_running or stage_backlog.texts > FEW
        texts = self._work.choose_batches(
            lambda after: table.choose_to_embed(
                connection, self._number, vector_set.id, BATCH, BATCH_BYTES, after
            )
        )
        calls = (
            (self._work.project.root, part, self._work.project.max_size, settings)
            for part in texts
        )
        waiting: list[EmbeddedTexts] = []
        try:
            for embedded_texts in self._pool.map(embed_texts, calls, spread=spread):
                waiting.append(embedded_texts)
                if sum(len(part.rows) for part in waiting) > FLUSH_ROWS:
                    # The file first, then the rows that refer to it: a crash may leave
                    # unused bytes in the file, but never rows without vectors.
                    vector_set = self._append(vector_set, waiting)
                    waiting = []
                stage_backlog = StageBacklog(
                    stage_backlog.texts - len(embedded_texts.text_ids),
                    stage_backlog.bytes - embedded_texts.bytes,
                )
                yield stage_backlog
            vector_set = self._append(vector_set, waiting)
        # What was stored before is useless: with a new, empty set the count below
        # includes all texts.
        except vectors.VectorsDamaged:
            vector_set = self._open_vector_set(embedder)
        stage_backlog = table.count_to_embed(connection, self._number, vector_set.id)
        if not stage_backlog.texts:
            # The other sets served until this one was ready; the files are removed once
            # no row refers to them.
            with self._writer.transaction() as connection:
                table.note_settings(connection, self._number, settings, vector_set.id)
                used = {
                    drop_unused_set.file
                    for drop_unused_set in table.drop_unused_sets(connection)
                }
            for file in list_vector_files(self._work.job.index.parent):
                if file.name not in used:
                    file.unlink(missing_ok=True)
            self._pool.stop()
        yield stage_backlog

    def _open_vector_set(self, embedder: Embedder) -> VectorSet:
        """Return the embedder's set; a new one with its own file if its vectors are damaged."""
        for vector_set in table.vector_sets(self._writer.connection):
            is_same = (vector_set.name, vector_set.dims) == (
                embedder.name,
                embedder.dims,
            )
            if is_same and vectors.holds(
                self._work.job.index.with_name(vector_set.file),
                vector_set.dims,
                vector_set.rows,
            ):
                return vector_set
        with self._writer.transaction() as connection:
            for vector_set in table.vector_sets(connection):
                # Damaged, or of another length under the same name: both can only be
                # rebuilt.
                if vector_set.name == embedder.name:
                    table.drop_vector_set(connection, vector_set.id)
                    self._work.remade = True
            return table.add_vector_set(
                connection, embedder.name, embedder.dims, vectors.new_name()
            )

    def _append(
        self, vector_set: VectorSet, batches: Sequence["EmbeddedTexts"]
    ) -> VectorSet:
        """Append the vectors of batches to the set's file, then add their rows; return the changed set."""
        rows = [part.rows for part in batches if len(part.rows)]
        if not rows:
            return vector_set
        vectors.append(
            self._work.job.index.with_name(vector_set.file),
            vector_set.rows,
            np.concatenate(rows),
        )
        with self._writer.transaction() as connection:
            table.add_vectors(
                connection,
                vector_set,
                [text_id for part in batches for text_id in part.text_ids],
            )
        return vector_set._replace(rows=vector_set.rows + sum(map(len, rows)))


# What worker processes do


class EmbeddedTexts(NamedTuple):
    """Vectors of a batch: texts as (number, chunks) in the order of their rows."""

    text_ids: list[tuple[int, int]]
    rows: npt.NDArray[np.void]
    bytes: int


class ChunkedTexts(NamedTuple):
    """Chunks of a batch, and their vectors if these are made with them."""

    packed: PackedChunks
    embedded: EmbeddedTexts


def cut_texts(
    root: RootFolder, texts: Sequence[ToRead], max_size: int, settings: str
) -> ChunkedTexts:
    """Read texts, given with their packed symbols, and return their chunks, leaving out changed texts."""
    release_memory()
    texts_chunked: list[ChunkedText] = []
    files = RootFiles(root)
    size = 0
    for text_id, text_hash, path, packed, name in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            size += len(data)
            # "!": the text could not be parsed, and is cut only by its lines.
            if packed and packed[:1] != b"!":
                parsed = unpack(packed)
            else:
                parsed = None
            cut = chunk_text(text_id, name, data, parsed)
            texts_chunked.append(
                cut if cut.is_whole else cut._replace(words=make_filter(text_id, data))
            )
    counted = count_fields([fields for text in texts_chunked for fields in text.fields])
    embedder = open_embedded(settings)
    rows = np.empty(0, np.void)
    if embedder is not None:
        chunks = sum(len(text.chunks) for text in texts_chunked)
        rows = vectors.quantise(
            embedder.embed_identifiers(choose_for_vectors(counted), chunks)
        )
    # A text without chunks has no vectors.
    of_texts = [
        (text.text_id, len(text.chunks)) for text in texts_chunked if text.chunks
    ]
    return ChunkedTexts(
        table.pack(texts_chunked, counted), EmbeddedTexts(of_texts, rows, size)
    )


def embed_texts(
    root: RootFolder, texts: Sequence[ToRead], max_size: int, settings: str
) -> EmbeddedTexts:
    """Read texts, given with their packed chunks, and return the chunks' vectors, leaving out changed texts."""
    release_memory()
    text_ids: list[tuple[int, int]] = []
    inputs: list[str] = []
    files = RootFiles(root)
    size = 0
    for text_id, text_hash, path, packed, name in texts:
        data = read_text(files, path, text_hash, max_size)
        if data is not None:
            size += len(data)
            chunks = table.unpack(packed)
            text_ids.append((text_id, len(chunks)))
            inputs.extend(embedding_text(name, data, chunk) for chunk in chunks)
    return EmbeddedTexts(
        text_ids, vectors.quantise(open_embedder(settings).embed_code(inputs)), size
    )


@cache
def open_embedded(settings: str) -> StaticEmbedder | None:
    """Return the embedder of the settings if it is the embedded model: no other is used before chunks are stored."""
    if not is_embedded(settings):
        return None
    with suppress(ProviderUnavailable):  # the next stage says why
        embedder = open_embedder(settings)
        return embedder if isinstance(embedder, StaticEmbedder) else None
    return None


@cache
def open_embedder(settings: str) -> Embedder:
    """Return the embedder of settings (``Embedding`` as JSON), opened once in a process."""
    # The environment is inherited from the daemon: it has the keys of embedding
    # providers.
    return embedder_of(settings, os.environ)
