"""Questions by meaning over the store: the chunks of a repository as ``search.meaning`` asks for them."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from flashgrep.embed import Embedder
from flashgrep.embed.providers import embedder_of
from flashgrep.errors import ProviderUnavailable
from flashgrep.index.table import FileTable
from flashgrep.search.meaning_index import AGAIN_SECONDS, QUESTION_SECONDS, Known, Opened, Texts
from flashgrep.search.snapshot import Snapshot
from flashgrep.team.stored_chunks import KeptSigns, StoredChunks, StoredVectors
from flashgrep.team.text_reader import TextReader

KEPT_TEXTS: Final = 8
"""Revisions asked last whose texts stay compared with those that have chunks: 10 ms each for 80,000 files."""


class TeamMeaning:
    """Asks the chunks of any repository; a ``ChunkIndex``, safe from any thread."""

    def __init__(self, embedding: str, environ: Mapping[str, str]) -> None:
        """``embedding``: settings as JSON; they are to be those of the workers."""
        self._embedding = embedding
        self._environ = environ
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._problem = ""
        self._again = 0.0
        self._signs = KeptSigns()
        self._texts: list[tuple[FileTable, StoredChunks, Texts]] = []

    @contextmanager
    def open(self, snapshot: Snapshot) -> Iterator[Opened | None]:
        """Lend the chunks of the revision's generation, which never changes."""
        reader = snapshot.reader
        if not isinstance(reader, TextReader):
            yield None
            return
        chunks = reader.state.chunks
        embedder, problem = self.find_embedder() if chunks.embedder else (None, "")
        if embedder is not None and embedder.name != chunks.embedder:
            problem = f"the vectors are of {chunks.embedder}, and this server asks by {embedder.name}"
            embedder = None
        vectors = None if embedder is None else StoredVectors(chunks, reader.read, self._signs, embedder.dims)
        known = Known(chunks.map, chunks.map, vectors, embedder, problem)
        yield Opened(known, self.compare(known, chunks, snapshot.table), partial(chunks.find_words, reader.read))

    def fail(self, known: Known, problem: str, *, damaged: bool = False) -> None:  # noqa: ARG002 - as every ChunkIndex
        """Answer by words alone for a while."""
        with self._lock:
            self._problem, self._again = problem, time.monotonic() + AGAIN_SECONDS

    def find_embedder(self) -> tuple[Embedder | None, str]:
        """Return the embedder, or why there is none."""
        with self._lock:
            if self._problem and time.monotonic() < self._again:
                return None, self._problem
            self._problem = ""
            if self._embedder is None:
                try:
                    self._embedder = embedder_of(self._embedding, self._environ, QUESTION_SECONDS)
                except ProviderUnavailable as error:
                    self._problem, self._again = str(error), time.monotonic() + AGAIN_SECONDS
            return self._embedder, self._problem

    def compare(self, known: Known, chunks: StoredChunks, table: FileTable) -> Texts:
        """Return which texts of a revision's files have chunks."""
        with self._lock:
            for of, by, texts in self._texts:
                if of is table and by is chunks:
                    return texts
        texts = Texts.of(known, table)
        with self._lock:
            self._texts = [(table, chunks, texts), *self._texts[: KEPT_TEXTS - 1]]
        return texts
