"""What the index knows by meaning, kept ready in memory: which chunk is whose, and the vectors' signs."""

import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.config import Embedding, Settings
from flashgrep.embed import Embedder, open_embedder
from flashgrep.errors import ProviderUnavailable
from flashgrep.index import chunks as table
from flashgrep.index.chunks import ChunkMap, VectorSet
from flashgrep.index.vectors import Vectors

Ints = npt.NDArray[np.int64]

ENOUGH = 0.9
"""A new embedder's vectors serve once there are so many as of the old one, or they are complete."""


class Known(NamedTuple):
    """The state of one moment: chunks by number, vectors by row, and the embedder that made them (if it answers)."""

    chunks: ChunkMap
    rows: ChunkMap
    vectors: Vectors | None
    embedder: Embedder | None
    problem: str

    def rows_of(self, blobs: Ints, places: Ints) -> Ints:
        """Return the rows of chunks, given by text and place in it; -1 where there is none."""
        order = np.argsort(self.rows.blob, kind="stable")
        known = self.rows.blob[order]
        at = np.minimum(np.searchsorted(known, blobs), max(0, len(known) - 1))
        if not len(known):
            return np.full(len(blobs), -1, np.int64)
        found = (known[at] == blobs) & (places < self.rows.size[order[at]])
        return np.where(found, self.rows.first[order[at]] + places, -1)


class MeaningIndex:
    """Keeps ``Known`` as new as the index; safe from any thread."""

    def __init__(self, folder: Path, embedding: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._embedding = embedding
        self._environ = environ
        self._embedders: dict[str, Embedder] = {}
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._round = -1
        self._file = ""
        self._vectors: Vectors | None = None

    def at(self, connection: sqlite3.Connection) -> Known:
        """Return what the index knows as this transaction sees it; costs a look-up where nothing has changed."""
        with self._lock:
            now = table.round_of(connection)
            if self._known is None or now != self._round:
                self._known = self._load(connection)
                self._round = now
            return self._known

    def embed_by(self, embedding: str) -> None:
        """Serve the vectors of other settings as soon as there are enough."""
        with self._lock:
            self._embedding, self._known = embedding, None

    def forget(self) -> None:
        """Let go of everything: the index was thrown away."""
        with self._lock:
            self._known, self._vectors, self._file = None, None, ""

    def _load(self, connection: sqlite3.Connection) -> Known:
        chunks = table.chunk_map(connection)
        embedder, of, problem = self._serving(connection)
        if of is None:
            return Known(chunks, table.row_map(connection, 0), None, embedder, problem)
        if of.file != self._file or self._vectors is None:
            self._file, self._vectors = of.file, Vectors(self._folder / of.file, of.dims)
        self._vectors.grow(of.rows)
        return Known(chunks, table.row_map(connection, of.id), self._vectors, embedder, problem)

    def _serving(self, connection: sqlite3.Connection) -> tuple[Embedder | None, VectorSet | None, str]:
        """Choose among the sets: the one of the settings, or an older one while that is being made."""
        sets = {one.name: one for one in table.vector_sets(connection)}
        most = max((one.rows for one in sets.values()), default=0)
        try:
            wanted = self._embedder(self._embedding)
        except ProviderUnavailable as error:
            problem, found = str(error), None
        else:
            problem, found = "", sets.get(wanted.name)
            if found is not None and found.rows >= ENOUGH * most:
                return wanted, found, ""
        before = table.settings_of(connection)
        if before and before != self._embedding:
            try:
                old = self._embedder(before)
            except ProviderUnavailable:
                return None, None, problem
            if old.name in sets:
                return old, sets[old.name], problem
        return None, None, problem

    def _embedder(self, settings: str) -> Embedder:
        if settings not in self._embedders:
            self._embedders[settings] = embedder_of(settings, self._environ)
        return self._embedders[settings]


def embedder_of(settings: str, environ: Mapping[str, str]) -> Embedder:
    """Open the embedder of these settings (``Embedding`` as JSON).

    Raises:
        ProviderUnavailable: there is none here, or it does not answer.

    """
    return open_embedder(Settings(embedding=Embedding.model_validate_json(settings)), environ)
