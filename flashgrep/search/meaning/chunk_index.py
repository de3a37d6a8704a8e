"""What the index knows by meaning, kept ready in memory, and the candidates found in it: by BM25 and by vectors."""

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
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from flashgrep.config import Embedding
from flashgrep.embed import Embedder
from flashgrep.embed.providers import embedder_of
from flashgrep.errors import ProviderUnavailable
from flashgrep.index import chunks as table
from flashgrep.index.chunks import ChunkMap, VectorSet
from flashgrep.index.schema import find_project
from flashgrep.index.table import FileTable
from flashgrep.index.vectors import Nearest, Order, Vectors, VectorsDamaged
from flashgrep.index.word_impacts import Family, WordLists, find_words, numbers_in, score
from flashgrep.ingest.globs import PathFilter
from flashgrep.search.meaning.fusion import Candidate, Rules
from flashgrep.search.snapshot import TEXT_ID, Snapshot

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Key = tuple[int, int]
"""A chunk: its text and its place in it."""

ENOUGH = 0.9
"""A new embedder's vectors serve once there are this many as of the old one, or they are complete."""

WITHIN = frozenset({"static", "minilm"})
"""Providers that use nothing outside the installation."""

AGAIN_SECONDS = 30.0
"""An embedder that did not answer a question is left alone for so long: each further question would wait for it too."""


QUESTION_SECONDS = 3.0
"""An embedder has so long for a question, then words answer it: all other questions of the project wait meanwhile."""


class VectorRows(Protocol):
    """Vectors by row, wherever they are kept; ``index.vectors.Vectors``."""

    def nearest(self, question: Floats, limit: int, order: Order, among: Bools | None = None) -> Nearest:
        """Return the rows nearest to a unit vector; ``among``: whether each counts, later ones do not."""

    def similarity(self, question: Floats, rows: Ints) -> Floats:
        """Return the cosine of a unit vector and each row."""

    def sums(self, spans: Sequence[tuple[int, int]]) -> Floats:
        """Return, for each span of rows (first, count), the sum of its vectors."""


class Known(NamedTuple):
    """The state of one moment: chunks by number, vectors by row, and the embedder that made them (if it answers)."""

    chunks: ChunkMap
    rows: ChunkMap
    vectors: VectorRows | None
    embedder: Embedder | None
    problem: str
    damaged: bool = False
    """Whether the embedder is there and its vectors are not, or cannot be read: they are to be made."""

    def rows_of(self, text_ids: Ints, places: Ints) -> Ints:
        """Return the rows of chunks, given by text and place in it; -1 if there is none."""
        if not len(self.rows.text_id):
            return np.full(len(text_ids), -1, np.int64)
        entries = self.rows.entries(text_ids)
        found = (entries >= 0) & (places < self.rows.size[entries])
        return np.where(found, self.rows.first[entries] + places, -1)


class Texts(NamedTuple):
    """The texts that files have, ascending, and which of them are not ready to be found in every way."""

    there: Ints
    some_dead: bool
    """Whether others are stored too, old versions and other projects': they must not crowd out the rest."""
    unchunked: Ints
    unembedded: Ints
    chunks: int
    """How many chunks the texts of files have together."""
    places: Ints
    """By text: the place of its first file among all. Numbers tell when a text came, which must not decide anything."""

    @classmethod
    def of(cls, known: Known, files: FileTable) -> "Texts":
        """Compare the texts of files with those that are known."""
        there = files.texts()
        there = there[there > 0]
        text_ids = files.columns[::-1, TEXT_ID]
        places = np.full(int(text_ids.max(initial=0)) + 1, len(text_ids), np.int64)
        places[text_ids] = np.arange(len(text_ids))[::-1]
        chunks = known.chunks
        alive = np.isin(chunks.text_id, there)
        unembedded = np.sort(chunks.text_id[alive & (chunks.size > 0) & ~np.isin(chunks.text_id, known.rows.text_id)])
        unchunked = there[~np.isin(there, chunks.text_id)]
        return cls(there, not alive.all(), unchunked, unembedded, int(chunks.size[alive].sum()), places)


class Opened(NamedTuple):
    """The chunks of a project as one question sees them."""

    known: Known
    texts: Texts
    find_words: Callable[[Sequence[str]], dict[str, WordLists]]


class ChunkIndex(Protocol):
    """What a question by meaning asks of an index, wherever that is kept."""

    def open(self, snapshot: Snapshot) -> AbstractContextManager[Opened | None]:
        """Lend the chunks in one state while a question looks for candidates; None: there are none."""

    def fail(self, known: Known, problem: str, *, damaged: bool = False) -> None:
        """Answer by words only for a while: the embedder did not answer, or the vectors cannot be read."""


class MeaningIndex:
    """Keeps ``Known`` up to date with the index; thread-safe."""

    def __init__(self, folder: Path, root: bytes, embedding: str, environ: Mapping[str, str]) -> None:
        """``folder``: of the store; ``root``: the project's."""
        self._folder = folder
        self._root = root
        self._embedding = embedding
        self._configured = {embedding}
        self._environ = environ
        self._embedders: dict[str, Embedder] = {}
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._round = -1
        self._used = 0.0
        self._again = 0.0
        self._texts: tuple[FileTable, Known, Texts] | None = None
        self._file = ""
        self._vectors: Vectors | None = None

    @contextmanager
    def open(self, snapshot: Snapshot) -> Iterator[Opened | None]:
        """Lend the chunks in one transaction, so that words, chunks and rows of vectors are of one state."""
        if snapshot.own_index is None:
            yield None
            return
        with snapshot.own_index.transaction() as connection:
            known = self.at(connection)
            yield Opened(known, self.texts(known, snapshot.table), partial(find_words, connection))

    def at(self, connection: sqlite3.Connection) -> Known:
        """Return what the index knows as this transaction sees it; costs a lookup where nothing has changed."""
        with self._lock:
            self._used = time.monotonic()
            # One number of the database shows whether anything has changed since it was loaded.
            now = table.round_of(connection)
            known = self._known
            if known is None or now != self._round or (known.problem and time.monotonic() > self._again):
                self._known = known = self._load(connection)
                self._round = now
                self._again = time.monotonic() + AGAIN_SECONDS
            return known

    def texts(self, known: Known, files: FileTable) -> Texts:
        """Return which texts files have, as far as they are known by meaning."""
        with self._lock:
            if self._texts is None or self._texts[0] is not files or self._texts[1] is not known:
                self._texts = files, known, Texts.of(known, files)
            return self._texts[2]

    def fail(self, known: Known, problem: str, *, damaged: bool = False) -> None:
        """Answer by words only for a while: the embedder did not answer, or the vectors cannot be read."""
        with self._lock:
            # Another thread may have loaded a newer state, to which this does not apply.
            if self._known is known:
                # The chunks stay: words answer meanwhile.
                self._known = known._replace(vectors=None, embedder=None, problem=problem, damaged=damaged)
                self._again = time.monotonic() + AGAIN_SECONDS
            if damaged:
                self._vectors = None

    def embed_by(self, embedding: str) -> None:
        """Serve the vectors of other settings as soon as there are enough."""
        with self._lock:
            self._embedding, self._known = embedding, None
            self._configured.add(embedding)

    def forget(self) -> None:
        """Let go of everything: the index was thrown away."""
        with self._lock:
            self._known, self._vectors, self._file, self._texts = None, None, "", None

    def rest(self, seconds: float) -> bool:
        """Let go of everything that is quick to load again, if nobody has asked for so long; return whether it was."""
        with self._lock:
            idle = self._known is not None and time.monotonic() > self._used + seconds
        if idle:
            self.forget()
            self._embedders.clear()
            # A module-wide cache for all projects; it refills on use.
            table.split_chunks.cache_clear()
        return idle

    def _load(self, connection: sqlite3.Connection) -> Known:
        chunks = table.chunk_map(connection)
        embedder, of, problem = self._choose_vectors(connection)
        if of is None or (not of.rows and chunks.size.any()):
            missing = not problem and bool(chunks.size.any())
            return Known(chunks, table.row_map(connection, 0), None, None, problem, damaged=missing)
        # Rows are only ever appended to a file, so the same file needs its new rows alone.
        if of.file != self._file or self._vectors is None:
            self._file, self._vectors = of.file, Vectors(self._folder / of.file, of.dims)
        try:
            self._vectors.grow(of.rows)
        except VectorsDamaged as damage:
            self._vectors = None
            return Known(chunks, table.row_map(connection, 0), None, None, str(damage), damaged=True)
        return Known(chunks, table.row_map(connection, of.id), self._vectors, embedder, problem)

    def _choose_vectors(self, connection: sqlite3.Connection) -> tuple[Embedder | None, VectorSet | None, str]:
        """Choose among the sets: the one of the settings, or an older one while that is being made."""
        sets = {one.name: one for one in table.vector_sets(connection)}
        before = table.settings_of(connection, find_project(connection, self._root))
        most = max((one.rows for one in sets.values()), default=0)
        try:
            wanted = self._embedder(self._embedding)
        except ProviderUnavailable as error:
            problem, found = str(error), None
        else:
            problem, found = "", sets.get(wanted.name)
            # Another length under the same name is another model.
            is_same = found is not None and found.dims == wanted.dims
            if found is not None and is_same and (before == self._embedding or found.rows >= ENOUGH * most):
                return wanted, found, ""
        # While the new vectors are made, the old ones answer better than only words.
        if before != self._embedding and self._may_ask(before):
            try:
                old = self._embedder(before)
            except ProviderUnavailable:
                return None, None, problem
            if old.name in sets and sets[old.name].dims == old.dims:
                return old, sets[old.name], problem
        return None, None, problem

    def _may_ask(self, settings: str) -> bool:
        """Return whether an embedder that the index alone names may be asked: it sees questions.

        What was configured since the daemon started may, and what needs neither a server nor a folder.
        """
        if settings in self._configured:
            return True
        try:
            return Embedding.model_validate_json(settings).provider in WITHIN
        except ValidationError:
            return False

    def _embedder(self, settings: str) -> Embedder:
        if settings not in self._embedders:
            self._embedders[settings] = embedder_of(settings, self._environ, QUESTION_SECONDS)
        return self._embedders[settings]


class WeighedWords(NamedTuple):
    """The words of a question with their forms, and which of them are asked for."""

    families: dict[str, Family]
    """By word: what the word and each of its forms add to a chunk's BM25."""
    used: dict[str, WordLists]


def weigh_words(
    forms: Mapping[str, Sequence[str]], found: Mapping[str, WordLists], known: Known, texts: Texts, rules: Rules
) -> WeighedWords:
    """Weigh words by how rare they are in the files, and choose the rarest as far as ``rules.common_words`` goes.

    ``forms``: the words of the question, each with its other forms; ``found``: the lists of what is in some chunk.
    """
    # Counted without decoding the lists; dead chunks are among them, and are counted out below: rarity and what is
    # asked for must not depend on what was there once.
    having = {word: lists.chunks for word, lists in found.items()}
    if texts.some_dead:
        counting = mark_counting(known.chunks, texts.there)
        having = {word: int(counting[numbers_in(lists, len(counting))].sum()) for word, lists in found.items()}
    families, most = dict[str, Family](), max(1, texts.chunks)
    for word, others in forms.items():
        # A form is as telling as all forms of the word together are rare; of the word itself nothing is taken.
        of_form = rules.form * idf(most, sum(having.get(one, 0) for one in (word, *others)))
        families[word] = {word: idf(most, having.get(word, 0))} | dict.fromkeys(others, of_form)
    used: dict[str, WordLists] = {}
    room, room_of_forms = rules.common_words, rules.common_forms
    # The rarest say most and cost least; the first word is used however common it is.
    for word, chunks in sorted(having.items(), key=itemgetter(1)):
        if word not in forms:
            room_of_forms -= chunks
        else:
            room = room - chunks if used.keys() & forms.keys() else max(0, room - chunks)
        if (room if word in forms else room_of_forms) >= 0:
            used[word] = found[word]
    return WeighedWords(families, used)


def idf(everything: int, having: int) -> float:
    """Return the inverse document frequency of BM25, kept above zero."""
    return math.log(1 + max(0.0, everything - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks one state of the index."""

    known: Known
    rules: Rules
    allowed: Ints | None
    """Texts that count, ascending; None: all."""
    places: Ints
    """As ``Texts`` has them."""

    def candidates(self, found: WeighedWords, question: Floats | None) -> list[Candidate]:
        """Return chunks found by either side, each with both values as far as they are known, in the files' order."""
        known, most = self.known, self.rules.candidates
        # By words: BM25 of all chunks at once, of which the best are kept.
        counting = mark_counting(known.chunks, self.allowed)
        asked = ([(found.used[word], of[word]) for word in of if word in found.used] for of in found.families.values())
        scores = score(filter(None, asked), len(counting))
        numbers = np.flatnonzero((scores > 0) & counting)
        if len(numbers) > most:
            least = np.partition(scores[numbers], -most)[-most]
            better, equal = numbers[scores[numbers] > least], numbers[scores[numbers] == least]
            order = np.argsort(self._places_of(known.chunks, equal), kind="stable")
            numbers = np.concatenate([better, equal[order[: most - len(better)]]])
        lexical = dict(zip(_keys(*known.chunks.locate(numbers)), scores[numbers].tolist(), strict=True))
        if question is None or known.vectors is None:
            return self._sort([Candidate(key, value, 0.0) for key, value in lexical.items()])

        # By vectors: the nearest ones; a row whose text is gone has no key.
        among = None if self.allowed is None and known.rows.is_dense else mark_counting(known.rows, self.allowed)
        near = known.vectors.nearest(question, most, partial(self._places_of, known.rows), among)
        keys = _keys(*known.rows.locate(near.rows))
        similar = {key: float(value) for key, value in zip(keys, near.similarity, strict=True) if key[0]}

        # The chunks found by words alone have vectors, too: the mix compares both sides of every candidate.
        others = [key for key in lexical if key not in similar]
        wanted = np.array(others, np.int64).reshape(-1, 2)
        rows = known.rows_of(wanted[:, 0], wanted[:, 1])
        values = np.zeros(len(others), np.float32)
        if others:
            values[rows >= 0] = known.vectors.similarity(question, rows[rows >= 0])
        similar |= {key: float(value) for key, value in zip(others, values, strict=True)}
        return self._sort([Candidate(key, lexical.get(key, 0.0), similar[key]) for key in lexical | similar])

    def _places_of(self, of: ChunkMap, numbers: Ints) -> Ints:
        return self.places[of.locate(numbers)[0]]

    def _sort(self, candidates: list[Candidate]) -> list[Candidate]:
        text_ids = np.array([one.key[0] for one in candidates], np.int64)
        of_texts = dict(zip(text_ids.tolist(), self.places[text_ids].tolist(), strict=True))
        return sorted(candidates, key=lambda one: (of_texts[one.key[0]], one.key[1]))


def mark_counting(places: ChunkMap, allowed: Ints | None) -> Bools:
    """Return, of all numbers of a map, which belong to a text that counts; ``allowed``: those texts, None: all."""
    kept = places.size > 0
    if allowed is not None:
        kept &= np.isin(places.text_id, allowed)
    # Numbers that no text has any more lie between those of two texts.
    gaps = np.diff(places.first, prepend=0)
    gaps[1:] -= places.size[:-1]
    runs = np.column_stack([np.zeros_like(kept), kept]).ravel()
    counting: Bools = np.repeat(runs, np.column_stack([gaps, places.size]).ravel())
    return counting


def whole_similarity(known: Known, question: Floats, text_ids: AbstractSet[int]) -> dict[int, float]:
    """Return the cosine of a question and the sum of each text's vectors; texts without any are left out."""
    entries = known.rows.entries(np.array(sorted(text_ids), np.int64))
    at = entries[entries >= 0]
    if known.vectors is None or not len(at):
        return {}
    spans = list(zip(known.rows.first[at].tolist(), known.rows.size[at].tolist(), strict=True))
    sums = known.vectors.sums(spans)
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    cosines = np.divide(np.einsum("ij,j->i", sums, question), lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return dict(zip(known.rows.text_id[at].tolist(), cosines.tolist(), strict=True))


def _keys(text_ids: Ints, places: Ints) -> list[Key]:
    return list(zip(text_ids.tolist(), places.tolist(), strict=True))


def find_allowed_texts(snapshot: Snapshot, keep: PathFilter) -> Ints:
    """Return the texts of unchanged files that count, ascending."""
    counts = keep.mask(snapshot.table.text())
    counts[[at for at in map(snapshot.table.find, snapshot.pending) if at is not None]] = False
    return snapshot.table.texts(counts)
