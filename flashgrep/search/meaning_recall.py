"""Candidates of the index: chunks with the question's words by BM25, and chunks with the nearest vectors."""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.index.chunks import ChunkMap
from flashgrep.index.words import WordLists, find_words, score
from flashgrep.ingest.globs import PathFilter
from flashgrep.search.fusion import Candidate
from flashgrep.search.meaning_index import Known
from flashgrep.search.rules import Rules
from flashgrep.search.snapshot import Snapshot

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Key = tuple[int, int]
"""A chunk: its text and its place in it."""


class Telling(NamedTuple):
    """Words of a question that some chunk has, with their idf, and those of them that are asked for."""

    weights: dict[str, float]
    used: dict[str, WordLists]


def telling(connection: sqlite3.Connection, words: Sequence[str], known: Known, rules: Rules) -> Telling:
    """Weigh words by how rare they are, and choose the rarest as far as ``rules.common_words`` goes."""
    everything = max(1, int(known.chunks.size.sum()))
    found = find_words(connection, words)
    weights = {word: idf(everything, found[word].chunks if word in found else 0) for word in words}
    used: dict[str, WordLists] = {}
    room = rules.common_words
    for word, lists in sorted(found.items(), key=lambda item: item[1].chunks):
        room -= lists.chunks
        if room < 0 and used:
            break
        used[word] = lists
    return Telling(weights, used)


def idf(everything: int, having: int) -> float:
    """Return the inverse document frequency of BM25, kept above zero."""
    return math.log(1 + max(0.0, everything - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks one state of the index."""

    connection: sqlite3.Connection
    known: Known
    rules: Rules
    allowed: Ints | None
    """Texts that count, ascending; None: all."""

    def candidates(self, found: Telling, question: Floats | None) -> list[Candidate]:
        """Return chunks found by either side, each with both values as far as they are known."""
        lexical = self._by_words(found)
        similar = self._by_vector(question) if question is not None else {}
        if question is not None:
            similar |= self._similarity(question, [key for key in lexical if key not in similar])
        return [Candidate(key, lexical.get(key, 0.0), similar.get(key, 0.0)) for key in lexical | similar]

    def _by_words(self, found: Telling) -> dict[Key, float]:
        counts = self._counting(self.known.chunks)
        scores = score([(lists, found.weights[word]) for word, lists in found.used.items()], len(counts))
        numbers = np.flatnonzero(scores * counts)
        if len(numbers) > self.rules.candidates:
            numbers = numbers[np.argpartition(-scores[numbers], self.rules.candidates - 1)[: self.rules.candidates]]
        keys = _keys(*self.known.chunks.locate(numbers))
        return dict(zip(keys, scores[numbers].tolist(), strict=True))

    def _by_vector(self, question: Floats) -> dict[Key, float]:
        known = self.known
        if known.vectors is None:
            return {}
        among = None if self.allowed is None else self._counting(known.rows)
        near = known.vectors.nearest(question, self.rules.candidates, among)
        keys = _keys(*known.rows.locate(near.rows))
        return {key: float(value) for key, value in zip(keys, near.similarity, strict=True) if key[0]}

    def _counting(self, places: ChunkMap) -> Bools:
        """Return, of all numbers of a map, which belong to a text that counts."""
        kept = places.size > 0
        if self.allowed is not None:
            kept &= np.isin(places.blob, self.allowed)
        edges = np.zeros(int((places.first + places.size).max(initial=0)) + 1, np.int8)
        edges[places.first[kept]] = 1
        edges[(places.first + places.size)[kept]] -= 1
        counting: Bools = np.cumsum(edges, dtype=np.int8)[:-1] > 0
        return counting

    def _similarity(self, question: Floats, keys: Sequence[Key]) -> dict[Key, float]:
        if self.known.vectors is None or not keys:
            return {}
        wanted = np.array(keys, np.int64).reshape(-1, 2)
        rows = self.known.rows_of(wanted[:, 0], wanted[:, 1])
        there = rows >= 0
        values = np.zeros(len(keys), np.float32)
        values[there] = self.known.vectors.similarity(question, rows[there])
        return {key: float(value) for key, value in zip(keys, values, strict=True)}


def whole_similarity(known: Known, question: Floats, blobs: AbstractSet[int]) -> dict[int, float]:
    """Return the cosine of a question and the sum of each text's vectors; texts without any are left out."""
    entries = known.rows.entries(np.array(sorted(blobs), np.int64))
    at = entries[entries >= 0]
    if known.vectors is None or not len(at):
        return {}
    spans = list(zip(known.rows.first[at].tolist(), known.rows.size[at].tolist(), strict=True))
    sums = known.vectors.sums(spans)
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    cosines = np.divide(sums @ question, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return dict(zip(known.rows.blob[at].tolist(), cosines.tolist(), strict=True))


def _keys(blobs: Ints, places: Ints) -> list[Key]:
    return list(zip(blobs.tolist(), places.tolist(), strict=True))


def allowed_texts(snapshot: Snapshot, keep: PathFilter) -> Ints:
    """Return the texts of unchanged files that count, ascending."""
    counts = keep.mask(snapshot.table.text())
    counts[[at for at in map(snapshot.table.find, snapshot.pending) if at is not None]] = False
    return snapshot.table.texts(counts)


def covered(words: Mapping[str, float], text: set[str]) -> float:
    """Return the share of the weight of words that a text has, 0 to 1."""
    total = sum(words.values())
    return sum(weight for word, weight in words.items() if word in text) / total if total > 0 else 0.0
