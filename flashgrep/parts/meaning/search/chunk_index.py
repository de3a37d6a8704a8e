"""The index of chunks, kept ready in memory, and the candidates found in it by BM25 and by vectors."""

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.base.config import Embedding
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.files.globs import PathFilter
from flashgrep.index.schema import find_project
from flashgrep.index.table import FileTable
from flashgrep.parts.meaning.embed import Embedder
from flashgrep.parts.meaning.embed.providers import embedder_of
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index.chunks import ChunkMap, VectorSet
from flashgrep.parts.meaning.index.vectors import (
    Nearest,
    Order,
    Vectors,
    VectorsDamaged,
)
from flashgrep.parts.meaning.index.word_impacts import (
    Family,
    WordLists,
    WordScores,
    find_words,
    numbers_in,
    score,
)
from flashgrep.parts.meaning.search.fusion import Candidate, Rules
from flashgrep.search.snapshot import TEXT_ID, Snapshot

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_PLACE_BITS: Final = 32
"""Of a number that identifies a chunk: the lowest are its position in its text, the others its text."""

ENOUGH = 0.9
"""Vectors of a new embedder are used once there are this many as of the old one, or once they are complete."""

WITHIN = frozenset({"static", "minilm"})
"""Providers that use nothing outside the installation."""

AGAIN_SECONDS = 30.0
"""How long an embedder that did not answer is not used: each further question would wait for it too."""


QUESTION_SECONDS = 3.0
"""How long a question waits for an embedder before words answer it: other questions of the project wait meanwhile."""


class VectorRows(Protocol):
    """Vectors by row, wherever they are kept; implemented by ``parts.meaning.index.vectors.Vectors``."""

    def nearest(
        self, question: Floats, limit: int, order: Order, among: Bools | None = None
    ) -> Nearest:
        """Return the rows nearest to a unit vector; ``among``: whether each row counts; rows beyond its end do not."""

    def similarity(self, question: Floats, rows: Ints) -> Floats:
        """Return the cosine of a unit vector and each row."""

    def sums(self, spans: Sequence[tuple[int, int]]) -> Floats:
        """Return, for each span of rows (first, count), the sum of its vectors."""


class ChunkState(NamedTuple):
    """A state of the chunks: chunks by number, vectors by row, and the embedder that made them (if it answers)."""

    chunks: ChunkMap
    rows: ChunkMap
    vectors: VectorRows | None
    embedder: Embedder | None
    problem: str
    damaged: bool = False
    """Whether there is an embedder but its vectors are missing or unreadable: they are to be made."""


class Texts(NamedTuple):
    """The texts of the project's files, ascending, and which of them are not completely indexed."""

    there: Ints
    some_dead: bool
    """Whether other texts are stored too, old versions and other projects': they must not displace candidates."""
    unchunked: Ints
    unembedded: Ints
    chunks: int
    """The number of chunks of the files' texts."""
    places: Ints
    """By text: the position of its first file, which unlike the text's number does not depend on when it was stored."""

    @classmethod
    def of(cls, known: ChunkState, files: FileTable) -> "Texts":
        """Compare the texts of files with the indexed ones."""
        there = files.texts()
        there = there[there > 0]
        text_ids = files.columns[::-1, TEXT_ID]
        places = np.full(int(text_ids.max(initial=0)) + 1, len(text_ids), np.int64)
        places[text_ids] = np.arange(len(text_ids))[::-1]
        chunks = known.chunks
        alive = np.isin(chunks.text_id, there)
        unembedded = np.sort(
            chunks.text_id[
                alive & (chunks.size > 0) & ~np.isin(chunks.text_id, known.rows.text_id)
            ]
        )
        unchunked = there[~np.isin(there, chunks.text_id)]
        return cls(
            there,
            not alive.all(),
            unchunked,
            unembedded,
            int(chunks.size[alive].sum()),
            places,
        )


class ChunkView(NamedTuple):
    """The chunks of a project as one question sees them."""

    known: ChunkState
    texts: Texts
    find_words: Callable[[Sequence[str]], dict[str, WordLists]]


class ChunkIndex(Protocol):
    """What a question by meaning needs from an index, wherever that is kept."""

    def open(self, snapshot: Snapshot) -> AbstractContextManager[ChunkView | None]:
        """Lend one state of the chunks while a question looks for candidates; None: there are none."""

    def fail(self, known: ChunkState, problem: str, *, damaged: bool = False) -> None:
        """Answer by words only for a while: the embedder did not answer, or the vectors cannot be read."""


CHUNKS: Final = ServiceKey[ChunkIndex]("chunks")


class MeaningIndex(ProjectService):
    """Keeps a ``ChunkState`` up to date with the index; thread-safe."""

    def __init__(
        self, folder: Path, root: bytes, embedding: str, environ: Mapping[str, str]
    ) -> None:
        """``folder``: the store's; ``root``: the project's."""
        self._folder = folder
        self._root = root
        self._embedding = embedding
        self._configured = {embedding}
        self._environ = environ
        self._embedders: dict[str, Embedder] = {}
        self._lock = threading.Lock()
        self._known: ChunkState | None = None
        self._round = -1
        self._used = 0.0
        self._again = 0.0
        self._texts: tuple[FileTable, ChunkState, Texts] | None = None
        self._file = ""
        self._vectors: Vectors | None = None

    @contextmanager
    def open(self, snapshot: Snapshot) -> Iterator[ChunkView | None]:
        """Lend the chunks in one transaction, so that words, chunks and rows of vectors belong to one state."""
        if snapshot.own_index is None:
            yield None
            return
        with snapshot.own_index.transaction() as connection:
            state = self.at(connection)
            yield ChunkView(
                state,
                self.texts(state, snapshot.table),
                partial(find_words, connection),
            )

    def at(self, connection: sqlite3.Connection) -> ChunkState:
        """Return the state as this transaction sees it; costs one lookup if nothing has changed."""
        with self._lock:
            self._used = time.monotonic()
            # One number of the database shows whether anything has changed since it was
            # loaded.
            now = table.round_of(connection)
            state = self._known
            if (
                state is None
                or now != self._round
                or (state.problem and time.monotonic() > self._again)
            ):
                self._known = state = self._load(connection)
                self._round = now
                self._again = time.monotonic() + AGAIN_SECONDS
            return state

    def texts(self, known: ChunkState, files: FileTable) -> Texts:
        """Return the texts of files, as far as the index of chunks knows them."""
        with self._lock:
            if (
                self._texts is None
                or self._texts[0] is not files
                or self._texts[1] is not known
            ):
                self._texts = files, known, Texts.of(known, files)
            return self._texts[2]

    def fail(self, known: ChunkState, problem: str, *, damaged: bool = False) -> None:
        """Answer by words only for a while: the embedder did not answer, or the vectors cannot be read."""
        with self._lock:
            # Another thread may have loaded a newer state, to which this does not
            # apply.
            if self._known is known:
                # The chunks stay: words answer meanwhile.
                self._known = known._replace(
                    vectors=None,
                    embedder=None,
                    problem=problem,
                    damaged=damaged,
                )
                self._again = time.monotonic() + AGAIN_SECONDS
            if damaged:
                self._vectors = None

    def change_embedding(self, embedding: str) -> None:
        """Use the vectors of the new settings as soon as there are enough."""
        with self._lock:
            self._embedding = embedding
            self._known = None
            self._configured.add(embedding)

    def forget_index(self) -> None:
        """Release everything: the index was deleted."""
        with self._lock:
            self._known = None
            self._vectors = None
            self._file = ""
            self._texts = None

    def rest(self, seconds: float) -> bool:
        """Release what is quick to load again, if nobody has asked for this long; return whether it was released."""
        with self._lock:
            idle = self._known is not None and time.monotonic() > self._used + seconds
        if idle:
            self.forget_index()
            self._embedders.clear()
            # A module-wide cache for all projects; it refills on use.
            table.SPLIT_TEXTS.clear()
        return idle

    def _load(self, connection: sqlite3.Connection) -> ChunkState:
        chunks = table.chunk_map(connection)
        embedder, of, problem = self._choose_vectors(connection)
        if of is None or (not of.rows and chunks.size.any()):
            missing = not problem and bool(chunks.size.any())
            return ChunkState(
                chunks,
                table.row_map(connection, 0),
                None,
                None,
                problem,
                damaged=missing,
            )
        # Files of vectors only grow, so only the new rows are loaded.
        if of.file != self._file or self._vectors is None:
            self._file, self._vectors = (
                of.file,
                Vectors(self._folder / of.file, of.dims),
            )
        try:
            self._vectors.grow(of.rows)
        except VectorsDamaged as damage:
            self._vectors = None
            return ChunkState(
                chunks,
                table.row_map(connection, 0),
                None,
                None,
                str(damage),
                damaged=True,
            )
        return ChunkState(
            chunks, table.row_map(connection, of.id), self._vectors, embedder, problem
        )

    def _choose_vectors(
        self, connection: sqlite3.Connection
    ) -> tuple[Embedder | None, VectorSet | None, str]:
        """Choose a set of vectors: that of the settings, or an older one while that is being made."""
        sets = {
            current_vector_set.name: current_vector_set
            for current_vector_set in table.vector_sets(connection)
        }
        before = table.settings_of(connection, find_project(connection, self._root))
        most = max(
            (current_vector_set.rows for current_vector_set in sets.values()), default=0
        )
        try:
            embedder = self._embedder(self._embedding)
        except ProviderUnavailable as error:
            problem = str(error)
            vector_set = None
        else:
            problem = ""
            vector_set = sets.get(embedder.name)
            # The same name with another dimension is another model.
            is_same = vector_set is not None and vector_set.dims == embedder.dims
            if (
                vector_set is not None
                and is_same
                and (before == self._embedding or vector_set.rows >= ENOUGH * most)
            ):
                return embedder, vector_set, ""
        # While the new vectors are made, the old ones answer better than words alone.
        if before != self._embedding and self._may_ask(before):
            try:
                old = self._embedder(before)
            except ProviderUnavailable:
                return None, None, problem
            if old.name in sets and sets[old.name].dims == old.dims:
                return old, sets[old.name], problem
        return None, None, problem

    def _may_ask(self, settings: str) -> bool:
        """Return whether an embedder that only the index names may be used: it would see questions.

        It may if it was configured since the daemon started, or needs neither a server nor a folder.
        """
        if settings in self._configured:
            return True
        try:
            return Embedding.model_validate_json(settings).provider in WITHIN
        except ValidationError:
            return False

    def _embedder(self, settings: str) -> Embedder:
        if settings not in self._embedders:
            self._embedders[settings] = embedder_of(
                settings, self._environ, QUESTION_SECONDS
            )
        return self._embedders[settings]


class WeighedWords(NamedTuple):
    """The words of a question with their forms, and which of them are looked up."""

    families: dict[str, Family]
    """By word: what the word and each of its forms add to a chunk's BM25."""
    used: dict[str, WordLists]


def weigh_words(
    forms: Mapping[str, Sequence[str]],
    found: Mapping[str, WordLists],
    known: ChunkState,
    texts: Texts,
    rules: Rules,
) -> WeighedWords:
    """Weigh words by their rarity in the files, and choose the rarest as far as ``rules.common_words`` allows.

    ``forms``: the words of the question, each with its other forms; ``found``: the lists of words that occur in chunks.
    """
    # Counted without decoding the lists. These contain dead chunks, which are
    # subtracted below: rarity and the choice of words must not depend on former
    # contents.
    having = {word: lists.chunks for word, lists in found.items()}
    if texts.some_dead:
        counting = mark_counting(known.chunks, texts.there)
        having = {
            word: int(counting[numbers_in(lists, len(counting))].sum())
            for word, lists in found.items()
        }
    families = dict[str, Family]()
    most = max(1, texts.chunks)
    for word, others in forms.items():
        # A form is as rare as all forms of the word together; the word itself loses
        # nothing.
        of_form = rules.form * idf(
            most, sum(having.get(form, 0) for form in (word, *others))
        )
        families[word] = {word: idf(most, having.get(word, 0))} | dict.fromkeys(
            others, of_form
        )
    used: dict[str, WordLists] = {}
    room = rules.common_words
    room_of_forms = rules.common_forms
    # The rarest words say most and cost least; the first is used however common it is.
    for word, chunks in sorted(having.items(), key=itemgetter(1)):
        if word not in forms:
            room_of_forms -= chunks
        elif used.keys() & forms.keys():
            room = room - chunks
        else:
            room = max(0, room - chunks)
        if (room if word in forms else room_of_forms) >= 0:
            used[word] = found[word]
    return WeighedWords(families, used)


def idf(everything: int, having: int) -> float:
    """Return the inverse document frequency of BM25, kept above zero."""
    return math.log(1 + max(0.0, everything - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """Looks up candidates in one state of the index."""

    known: ChunkState
    rules: Rules
    allowed: Ints | None
    """Texts that count, ascending; None: all."""
    places: Ints
    """As in ``Texts``."""

    def find_having(self, found: WeighedWords, word: str) -> set[tuple[int, int]]:
        """Return the keys of the chunks that have a word itself, not only a form of it."""
        if word not in found.used:
            return set()
        chunks = self.known.chunks
        counting = mark_counting(chunks, self.allowed)
        numbers = numbers_in(found.used[word], len(counting))
        text_ids, places = chunks.locate(numbers[counting[numbers]])
        return set(zip(text_ids.tolist(), places.tolist(), strict=True))

    def candidates(
        self, found: WeighedWords, question: Floats | None
    ) -> list[Candidate]:
        """Return chunks found by either side, each with both values if known, in the files' order."""
        state = self.known
        most = self.rules.candidates
        # By words: BM25 of all chunks at once; the best are kept.
        counting = mark_counting(state.chunks, self.allowed)
        families = []
        for family in found.families.values():
            lists = []
            for word, weight in family.items():
                if word in found.used:
                    lists.append((found.used[word], weight))
            families.append(lists)
        scored = score(families, len(counting))
        scores = scored.bm25
        numbers = np.flatnonzero((scores > 0) & counting)
        if len(numbers) > most:
            least = np.partition(scores[numbers], -most)[-most]
            better = numbers[scores[numbers] > least]
            equal = numbers[scores[numbers] == least]
            order = np.argsort(self._places_of(state.chunks, equal), kind="stable")
            numbers = np.concatenate([better, equal[order[: most - len(better)]]])
        by_words = _join_keys(*state.chunks.locate(numbers))
        if question is None or state.vectors is None:
            no_vectors = np.zeros(len(by_words), np.float32)
            return self._make_candidates(by_words, scores[numbers], no_vectors, scored)

        # By vectors: the nearest ones; a row whose text is gone has no key.
        if self.allowed is None and state.rows.is_dense:
            among = None
        else:
            among = mark_counting(state.rows, self.allowed)
        near = state.vectors.nearest(
            question, most, partial(self._places_of, state.rows), among
        )
        text_ids, places = state.rows.locate(near.rows)
        is_there = text_ids > 0
        by_vectors = _join_keys(text_ids[is_there], places[is_there])
        keys = np.union1d(by_words, by_vectors)
        lexical = np.zeros(len(keys), np.float32)
        lexical[keys.searchsorted(by_words)] = scores[numbers]
        similar = np.zeros(len(keys), np.float32)
        near_places = keys.searchsorted(by_vectors)
        similar[near_places] = near.similarity[is_there]

        # Chunks found by words alone have vectors, too: the mix compares both sides of
        # every candidate.
        is_other = np.ones(len(keys), np.bool_)
        is_other[near_places] = False
        others = np.flatnonzero(is_other)
        rows = state.rows.numbers(*_split_keys(keys[others]))
        others = others[rows >= 0]
        rows = rows[rows >= 0]
        if len(rows):
            similar[others] = state.vectors.similarity(question, rows)
        return self._make_candidates(keys, lexical, similar, scored)

    def _places_of(self, of: ChunkMap, numbers: Ints) -> Ints:
        return self.places[of.locate(numbers)[0]]

    def _make_candidates(
        self, keys: Ints, lexical: Floats, similar: Floats, scored: WordScores
    ) -> list[Candidate]:
        """Return candidates in the files' order."""
        text_ids, places = _split_keys(keys)
        order = np.lexsort((places, self.places[text_ids]))
        # What vectors alone have found has words, too.
        numbers = self.known.chunks.numbers(text_ids[order], places[order])
        rows = zip(
            text_ids[order].tolist(),
            places[order].tolist(),
            lexical[order].tolist(),
            similar[order].tolist(),
            scored.words_in(numbers),
            strict=True,
        )
        return [
            Candidate((text_id, place), by_words, by_vectors, words=words)
            for text_id, place, by_words, by_vectors, words in rows
        ]


def mark_counting(places: ChunkMap, allowed: Ints | None) -> Bools:
    """Return which of a map's numbers belong to a text that counts; ``allowed``: those texts, None: all."""
    is_counting = places.size > 0
    if allowed is not None:
        is_counting &= np.isin(places.text_id, allowed)
    # Numbers that no text has any more lie between those of two texts.
    gaps = np.diff(places.first, prepend=0)
    gaps[1:] -= places.size[:-1]
    runs = np.column_stack([np.zeros_like(is_counting), is_counting]).ravel()
    counting: Bools = np.repeat(runs, np.column_stack([gaps, places.size]).ravel())
    return counting


def whole_similarity(
    known: ChunkState, question: Floats, text_ids: AbstractSet[int]
) -> dict[int, float]:
    """Return the cosine of a question and the sum of each text's vectors; texts without vectors are left out."""
    entries = known.rows.entries(np.array(sorted(text_ids), np.int64))
    at = entries[entries >= 0]
    if known.vectors is None or not len(at):
        return {}
    spans = list(
        zip(known.rows.first[at].tolist(), known.rows.size[at].tolist(), strict=True)
    )
    sums = known.vectors.sums(spans)
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    cosines = np.divide(
        np.einsum("ij,j->i", sums, question),
        lengths,
        out=np.zeros_like(lengths),
        where=lengths > 0,
    )
    return dict(zip(known.rows.text_id[at].tolist(), cosines.tolist(), strict=True))


def _join_keys(text_ids: Ints, places: Ints) -> Ints:
    """Return a number for each chunk, so that both sides are compared at once."""
    keys: Ints = text_ids << _PLACE_BITS | places
    return keys


def _split_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Return the texts of chunks and their positions in these."""
    return keys >> _PLACE_BITS, keys & ((1 << _PLACE_BITS) - 1)


def find_allowed_texts(snapshot: Snapshot, keep: PathFilter) -> Ints:
    """Return the texts of unchanged files that count, ascending."""
    counts = keep.mask(snapshot.table.text())
    counts[
        [at for at in map(snapshot.table.find, snapshot.pending) if at is not None]
    ] = False
    return snapshot.table.texts(counts)
