"""Reads the index of one repository from PostgreSQL: postings, symbols, texts, and chunks by number."""

import threading
import time
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.lazy import LazyAttribute
from flashgrep.index.evaluate import evaluate, join_segments
from flashgrep.index.grams import GRAM, number
from flashgrep.index.postings import FORMAT
from flashgrep.index.segments import Kind
from flashgrep.index.stage import RowsKey, RowsT
from flashgrep.index.table import FileTable, TextIds
from flashgrep.parts.meaning.embed import Embedder
from flashgrep.parts.meaning.embed.providers import embedder_of
from flashgrep.parts.meaning.index.chunks import CHUNK_ROWS, StoredChunk, split_chunks
from flashgrep.parts.meaning.search.chunk_index import (
    AGAIN_SECONDS,
    QUESTION_SECONDS,
    ChunkState,
    ChunkView,
    Texts,
)
from flashgrep.parts.symbols.symbol_table import LONGEST_NAME, SYMBOL_ROWS
from flashgrep.parts.team.store_connection import OpenQuery
from flashgrep.parts.team.stored_chunks import SignCache, StoredChunks, StoredVectors
from flashgrep.parts.team.stored_segments import SELECT, Segment, fetch_lists
from flashgrep.pattern import ANYTHING, NOTHING, AllOf, AnyOf, Gram, GramExpr
from flashgrep.search.snapshot import Snapshot

MOST_REMEMBERED: Final = 10_000
REMEMBERED: Final = 64
MOST_GRAMS: Final = 8
"""Grams looked up per run of literals: each costs a row of every segment."""
KEPT_TEXTS: Final = 8
"""Cached ``Texts`` of recent revisions; making one takes 10 ms for 80,000 files."""


@dataclass
class IndexState:
    """The index of one generation of a repository; immutable but for its cache, shared by all questions about it."""

    repository: int
    generation: int
    parsed_to: int
    segments: list[Segment]
    """Segments of grams."""
    chunks: StoredChunks
    known: dict[GramExpr, TextIds | None] = field(default_factory=dict)
    """Cached candidates by expression, for the next page of a question."""

    @classmethod
    def load(
        cls, read: OpenQuery, repository: int, generation: int, parsed_to: int
    ) -> "IndexState":
        """Return the state of a generation."""
        with read() as reading:
            found_segments = list(map(Segment.of, reading.fetch(SELECT, [repository])))
            embedder = reading.fetch(
                "SELECT embedder FROM flashgrep.repository WHERE id = %s", [repository]
            )
        grams = [segment for segment in found_segments if segment.kind == Kind.GRAMS]
        # Segments of another format are ignored, as if their texts had no chunks yet: a
        # worker rebuilds them.
        words = [
            segment
            for segment in found_segments
            if segment.kind == Kind.WORDS and segment.format == FORMAT
        ]
        return cls(
            repository,
            generation,
            parsed_to,
            grams,
            StoredChunks(repository, words, embedder[0][0] if embedder else ""),
        )

    def shards_of(self, text_ids: Collection[int]) -> list[int]:
        """Return the shards that hold the given texts."""
        text_ids_known, shards = self._shard_of
        at = np.searchsorted(
            text_ids_known, np.fromiter(text_ids, np.int64, len(text_ids))
        )
        return sorted(
            {int(shard) for shard in np.unique(shards[at[at < len(text_ids_known)]])}
        )

    @LazyAttribute
    def _shard_of(self) -> tuple[TextIds, npt.NDArray[np.int16]]:
        """Return all texts, in ascending order, and the shard of each."""
        texts = np.concatenate(
            [np.empty(0, np.int64), *(segment.texts for segment in self.segments)]
        )
        shards = np.repeat(
            [segment.shard for segment in self.segments],
            [len(segment.texts) for segment in self.segments],
        )
        order = np.argsort(texts)
        return texts[order], shards[order].astype(np.int16)


class TextReader:
    """The index of one repository for one question; implements ``TextIndex``."""

    def __init__(self, state: IndexState, read: OpenQuery) -> None:
        self.state = state
        self.read = read

    @property
    def identity(self) -> object:
        """The repository and its generation."""
        return self.state.repository, self.state.generation

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the candidates, in ascending order; None: no text is excluded."""
        if expression == ANYTHING:
            return None
        if expression == NOTHING:
            return np.empty(0, np.int64)
        state = self.state
        if expression in state.known:
            return state.known[expression]
        segments = [segment for segment in state.segments if segment.format == FORMAT]
        # Cached under the whole expression; the one that is looked up may have fewer
        # grams.
        expression, whole = thin_out(expression), expression
        ranges = list(_ranges(expression))
        lists = fetch_lists(self.read, state.repository, segments, ranges)
        # A segment in another format cannot be read, so it excludes none of its texts.
        named: list[TextIds | None] = [
            segment.texts for segment in state.segments if segment.format != FORMAT
        ]
        for segment_lists in lists:
            places = evaluate(expression, segment_lists.segment.row, segment_lists)
            named.append(
                None if places is None else segment_lists.segment.texts[places]
            )
        found_segments = join_segments(named)
        found_segments = (
            None if found_segments is None else found_segments[found_segments > 0]
        )  # 0: a deleted text
        # An answer without some shards is not cached: they may be back for the next
        # page.
        missing = len(lists) < len(segments)
        if not missing and (
            found_segments is None or len(found_segments) <= MOST_REMEMBERED
        ):
            if len(state.known) >= REMEMBERED:
                state.known.clear()
            state.known[whole] = found_segments
        return found_segments

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:  # noqa: ARG002 - no words are stored here
        """Return the texts unchanged."""
        # Words are stored for ranking only; filtering by them would take another round
        # trip to each shard.
        return text_ids

    def rows(self, key: RowsKey[RowsT]) -> RowsT:
        """Return what reads the rows of a part: itself; it is a ``SymbolRows`` and a ``ChunkRows``."""
        readers: dict[str, Any] = {SYMBOL_ROWS.name: self, CHUNK_ROWS.name: self}
        reader: RowsT = readers[key.name]
        return reader

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts that define a name, or one that starts with it, ascending; ASCII case is ignored."""
        folded = _fold(name)
        condition = "name >= %s AND name < %s" if prefix else "name = %s"
        rows = self._fetch_rows(
            f"SELECT DISTINCT text FROM flashgrep.symbol_name WHERE repository = %s AND {{shards}} AND {condition}",
            [folded, _after(folded)] if prefix else [folded],
        )
        return sorted(row[0] for row in rows)

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return defined names that start with ``start``, from texts in ``among``, in lower case and sorted."""
        folded = _fold(start)
        rows = self._fetch_rows(
            "SELECT name, text FROM flashgrep.symbol_name WHERE repository = %s AND {shards} "
            "AND name >= %s AND name < %s ORDER BY name",
            [folded, _after(folded)],
        )
        names = (
            name
            for name, of_name in groupby(sorted(rows), key=lambda row: row[0])
            if any(row[1] in among for row in of_name)
        )
        return [
            bytes(name).decode("utf-8", "replace")
            for name, _ in zip(names, range(limit), strict=False)
        ]

    def packed_symbols(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return the packed symbols of texts, for ``symbol_table.read_row``; texts without a row are left out."""
        query = "SELECT text, packed FROM flashgrep.symbol WHERE repository = %s AND {shards} AND text = ANY(%s)"
        return dict(self._fetch_rows(query, [list(text_ids)], text_ids))

    def chunks_of_texts(
        self, text_ids: Collection[int]
    ) -> Mapping[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; texts without stored chunks are left out."""
        query = "SELECT text, packed FROM flashgrep.chunk WHERE repository = %s AND {shards} AND text = ANY(%s)"
        rows = dict(self._fetch_rows(query, [list(text_ids)], text_ids))
        numbers = np.array(sorted(rows), np.int64)
        places = self.state.chunks.map
        entries = places.entries(numbers)
        if len(places.size):
            sizes = places.size[entries].tolist()
        else:
            sizes = []
        # Not strict: ``sizes`` is empty if no text has chunks.
        chunk_rows = zip(numbers.tolist(), entries.tolist(), sizes, strict=False)
        return {
            number: split_chunks(rows[number], size)
            for number, entry, size in chunk_rows
            if entry >= 0
        }

    def find_cut(self) -> Collection[bytes]:
        """Return nothing: only walks of a local folder need it."""
        return ()

    def contents(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return contents as git stores them; those in shards that do not answer are left out."""
        query = "SELECT id, data FROM flashgrep.text WHERE repository = %s AND {shards} AND id = ANY(%s)"
        return dict(self._fetch_rows(query, [list(text_ids)], text_ids))

    def _fetch_rows(
        self,
        query: str,
        params: Sequence[object],
        text_ids: Collection[int] | None = None,
    ) -> list[tuple[Any, ...]]:
        if text_ids is None:
            shards = None
        else:
            shards = self.state.shards_of(text_ids)
        with self.read() as reading:
            return reading.fetch_shards(query, [self.state.repository, *params], shards)


def thin_out(expression: GramExpr) -> GramExpr:
    """Return a weaker expression with fewer grams: every text that satisfies the given one satisfies it too.

    Neighbouring grams overlap by three bytes, so a few of a long run exclude nearly as many texts.
    """
    if isinstance(expression, AnyOf):
        return AnyOf(tuple(map(thin_out, expression.parts)))
    if not isinstance(expression, AllOf):
        return expression
    grams = [part for part in expression.parts if isinstance(part, Gram)]
    others = [thin_out(part) for part in expression.parts if not isinstance(part, Gram)]
    if len(grams) > MOST_GRAMS:
        grams = [
            grams[at * (len(grams) - 1) // (MOST_GRAMS - 1)] for at in range(MOST_GRAMS)
        ]
    return AllOf((*grams, *others))


def _ranges(expression: GramExpr) -> Iterator[tuple[int, int]]:
    """Yield the first and last key of each gram of an expression; a shorter gram covers a range of keys."""
    if isinstance(expression, AllOf | AnyOf):
        for part in expression.parts:
            yield from _ranges(part)
    elif isinstance(expression, Gram):
        first = number(expression.value)
        missing = GRAM - len(expression.value)
        yield first, first + (1 << 8 * missing) - 1


def fold_name(name: bytes) -> bytes | None:
    """Return the lookup key of a defined name; None: it is too long to have one."""
    if len(name) <= LONGEST_NAME:
        return _fold(name.decode("utf-8", "replace"))
    return None


def _fold(name: str) -> bytes:
    return name.encode("utf-8", "replace").lower()


def _after(start: bytes) -> bytes:
    """Return a key after all names that start so."""
    return start + b"\xff" * 8


class TeamMeaning:
    """The chunks of any repository; implements ``ChunkIndex``, thread-safe."""

    def __init__(self, embedding: str, environ: Mapping[str, str]) -> None:
        """``embedding``: the embedder's settings as JSON; they must equal those of the workers."""
        self._embedding = embedding
        self._environ = environ
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._problem = ""
        self._again = 0.0
        self._signs = SignCache()
        self._texts: list[tuple[FileTable, StoredChunks, Texts]] = []

    @contextmanager
    def open(self, snapshot: Snapshot) -> Iterator[ChunkView | None]:
        """Give access to the chunks of the snapshot's generation, which is immutable."""
        reader = snapshot.reader
        if not isinstance(reader, TextReader):
            yield None
            return
        chunks = reader.state.chunks
        if chunks.embedder:
            embedder, problem = self.find_embedder()
        else:
            embedder = None
            problem = ""
        if embedder is not None and embedder.name != chunks.embedder:
            problem = f"the vectors are of {chunks.embedder}, but this server uses {embedder.name}"
            embedder = None
        if embedder is None:
            vectors = None
        else:
            vectors = StoredVectors(chunks, reader.read, self._signs, embedder.dims)
        chunk_state = ChunkState(chunks.map, chunks.map, vectors, embedder, problem)
        yield ChunkView(
            chunk_state,
            self.compare(chunk_state, chunks, snapshot.table),
            partial(chunks.find_words, reader.read),
        )

    def fail(self, known: ChunkState, problem: str, *, damaged: bool = False) -> None:  # noqa: ARG002 - as every ChunkIndex
        """Search by words alone until ``AGAIN_SECONDS`` have passed."""
        with self._lock:
            self._problem = problem
            self._again = time.monotonic() + AGAIN_SECONDS

    def find_embedder(self) -> tuple[Embedder | None, str]:
        """Return the embedder, or why there is none."""
        with self._lock:
            if self._problem and time.monotonic() < self._again:
                return None, self._problem
            self._problem = ""
            if self._embedder is None:
                try:
                    self._embedder = embedder_of(
                        self._embedding, self._environ, QUESTION_SECONDS
                    )
                except ProviderUnavailable as error:
                    self._problem = str(error)
                    self._again = time.monotonic() + AGAIN_SECONDS
            return self._embedder, self._problem

    def compare(
        self, known: ChunkState, chunks: StoredChunks, table: FileTable
    ) -> Texts:
        """Return which texts of a revision's files have chunks."""
        with self._lock:
            for of, by, texts in self._texts:
                if of is table and by is chunks:
                    return texts
        texts = Texts.of(known, table)
        with self._lock:
            newest = self._texts[: KEPT_TEXTS - 1]
            self._texts = [(table, chunks, texts), *newest]
        return texts
