"""The chunks of a repository, numbered by its segments: their words, and their vectors in the shards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.damage import Damaged
from flashgrep.base.lazy import LazyAttribute
from flashgrep.index.postings import count
from flashgrep.parts.meaning.index.chunks import ChunkMap
from flashgrep.parts.meaning.index.vectors import (
    RESCORED,
    Floats,
    Ints,
    Nearest,
    Order,
    Signs,
    compare,
    find_near,
    row_type,
    signs_of,
    take_nearest,
)
from flashgrep.parts.meaning.index.word_impacts import (
    LEVELS,
    WordList,
    WordLists,
    key_of,
)
from flashgrep.parts.meaning.search.chunk_index import Bools
from flashgrep.parts.team.store_connection import OpenQuery
from flashgrep.parts.team.stored_segments import PLACES, Segment, fetch_lists

KEPT_BYTES: Final = 256 << 20
"""Bound on cached signs of all repositories: eight million chunks."""
FETCHED_BYTES: Final = 16 << 20
"""Signs fetched at once."""


@dataclass
class StoredChunks:
    """The chunks of one generation of a repository, numbered in the order of its segments."""

    repository: int
    segments: list[Segment]
    """Segments of words."""
    embedder: str
    """Name of the embedder of the vectors; empty: there are none."""

    @LazyAttribute
    def map(self) -> ChunkMap:
        """Which text each chunk belongs to; 0: a deleted one."""
        sizes = np.concatenate(
            [np.empty(0, np.int64), *(segment.counts for segment in self.segments)]
        )
        texts = np.concatenate(
            [np.empty(0, np.int64), *(segment.texts for segment in self.segments)]
        )
        return ChunkMap.of(np.cumsum(sizes) - sizes, sizes, texts)

    def find_words(self, read: OpenQuery, words: Sequence[str]) -> dict[str, WordLists]:
        """Return the lists of each word, from the shards that answer; words in no chunk are left out."""
        keys = {word: key_of(word.encode()) for word in words}
        spans = [(key, key + LEVELS - 1) for key in keys.values()]
        lists: dict[str, list[WordList]] = {word: [] for word in words}
        # One fetch for all words: a round trip to a shard costs more than the data.
        answering = {
            list_.segment.id: list_
            for list_ in fetch_lists(read, self.repository, self.segments, spans)
        }
        first = 0
        for segment in self.segments:
            if segment.id in answering:
                for word, key in keys.items():
                    lists_found = answering[segment.id].with_keys(key, key + LEVELS - 1)
                    lists[word] += [
                        WordList(first, at - key, data) for at, data in lists_found
                    ]
            # Also counted for segments that do not answer: chunk numbers must match
            # those of the map.
            first += segment.documents
        return {
            word: WordLists(sum(count(word_list.data) for word_list in some), some)
            for word, some in lists.items()
            if some
        }


def split_segments(segments: Sequence[Segment], most: int) -> Iterator[list[Segment]]:
    """Yield runs of neighbouring segments, each ended by the one that takes it over ``most`` chunks."""
    group: list[Segment] = []
    for segment in segments:
        group.append(segment)
        if sum(current_segment.documents for current_segment in group) > most:
            yield group
            group = []
    if group:
        yield group


class SignCache(BoundedCache[tuple[int, int], Signs]):
    """A cache of signs by repository and segment."""

    def __init__(self) -> None:
        super().__init__(KEPT_BYTES)

    def read(
        self, read: OpenQuery, repository: int, segments: Sequence[Segment], far: Signs
    ) -> Iterator[Signs]:
        """Yield the signs of the chunks of each segment; if its shard does not answer, ``far`` for every chunk.

        Raises:
            Damaged: signs are missing, or there are too few or too many.

        """
        signs_by_segment = {
            current_segment.id: self.find((repository, current_segment.id))
            for current_segment in segments
        }
        segments_wanted = [
            current_segment
            for current_segment in segments
            if signs_by_segment[current_segment.id] is None
            and current_segment.documents
        ]
        if segments_wanted:
            with read() as reading:
                rows = reading.fetch_shards(
                    "SELECT segment, data FROM flashgrep.signs WHERE repository = %s AND {shards} "
                    "AND segment = ANY(%s)",
                    [
                        repository,
                        [current_segment.id for current_segment in segments_wanted],
                    ],
                    sorted(
                        {current_segment.shard for current_segment in segments_wanted}
                    ),
                )
                missing = set(reading.missing)
            for number, data in rows:
                # Stored by row, compared by column: transposed once here, not for every
                # question.
                signs_by_segment[number] = signs = np.ascontiguousarray(
                    np.frombuffer(data, "<u8").reshape(-1, len(far)).T
                )
                self.put((repository, number), signs.nbytes, signs)
            for segment in segments_wanted:
                found_signs = signs_by_segment[segment.id]
                # A shard that does not answer is no damage; one that answers with wrong
                # rows is.
                if segment.shard not in missing and (
                    found_signs is None or found_signs.shape[1] != segment.documents
                ):
                    raise Damaged("signs of vectors are missing")
        for segment in segments:
            found_signs = signs_by_segment[segment.id]
            yield (
                np.repeat(far, segment.documents, axis=1)
                if found_signs is None
                else found_signs
            )


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The vectors of a repository's chunks, by the chunk's number; ``chunk_index.VectorRows``.

    Vectors in shards that do not answer are never found.
    """

    chunks: StoredChunks
    read: OpenQuery
    kept: SignCache
    dims: int

    def nearest(
        self, question: Floats, limit: int, order: Order, among: Bools | None = None
    ) -> Nearest:
        """Return the rows nearest to a unit vector; ``among``: whether each row counts; rows beyond its end do not."""
        total = int(self.chunks.map.size.sum())
        # The opposite of the question: chunks in a shard that does not answer come
        # last.
        far = ~signs_of(question[None, :]).T
        # Signs take one bit per dimension: this is the number of chunks in
        # FETCHED_BYTES.
        groups = split_segments(self.chunks.segments, FETCHED_BYTES * 8 // self.dims)
        parts = (
            signs
            for group in groups
            for signs in self.kept.read(self.read, self.chunks.repository, group, far)
        )
        rows = find_near(parts, total, question, max(RESCORED, limit), order, among)
        rows_by_number = self._fetch(rows)
        # Without rows whose shard stopped answering between the two steps.
        rows = np.array(
            [row for row in rows.tolist() if row in rows_by_number], np.int64
        )
        return take_nearest(
            rows,
            self._compare(question, [rows_by_number[row] for row in rows.tolist()]),
            limit,
            order,
        )

    def similarity(self, question: Floats, rows: Ints) -> Floats:
        """Return the cosine of a unit vector and each row; 0 for rows in a shard that does not answer."""
        rows_by_number = self._fetch(rows)
        zero = bytes(row_type(self.dims).itemsize)
        return self._compare(
            question, [rows_by_number.get(row, zero) for row in rows.tolist()]
        )

    def sums(self, spans: Sequence[tuple[int, int]]) -> Floats:
        """Return, for each span of rows (first, count), the sum of its vectors; each span must be one text's chunks."""
        texts, _ = self.chunks.map.locate(
            np.array([first for first, _ in spans], np.int64)
        )
        with self.read() as reading:
            rows = reading.fetch_shards(
                "SELECT text, whole FROM flashgrep.chunk WHERE repository = %s AND {shards} AND text = ANY(%s)",
                [self.chunks.repository, texts.tolist()],
            )
        found_sums = np.zeros((len(spans), self.dims), np.float32)
        places = {text: at for at, text in enumerate(texts.tolist())}
        for text, whole in rows:
            found_sums[places[text]] = np.frombuffer(whole, "<f2", self.dims)
        return found_sums

    def _compare(self, question: Floats, rows: Sequence[bytes]) -> Floats:
        return compare(question, np.frombuffer(b"".join(rows), row_type(self.dims)))

    def _fetch(self, rows: Ints) -> dict[int, bytes]:
        """Return rows in their stored form, by number."""
        texts, places = self.chunks.map.locate(rows)
        numbers = dict(
            zip((texts * PLACES + places).tolist(), rows.tolist(), strict=True)
        )
        with self.read() as reading:
            shards = reading.fetch_shards(
                "SELECT chunk, components FROM flashgrep.vector WHERE repository = %s AND {shards} AND chunk = ANY(%s)",
                [self.chunks.repository, list(numbers)],
            )
            if len(shards) < len(numbers) and not reading.missing:
                raise Damaged("a vector is missing")
        return {numbers[chunk]: components for chunk, components in shards}
