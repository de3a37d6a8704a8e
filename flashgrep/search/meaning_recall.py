"""Candidates of the index: chunks with the question's words by BM25, and chunks with the nearest vectors."""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.index import chunks as table
from flashgrep.ingest.globs import PathFilter
from flashgrep.search.exact import View
from flashgrep.search.fusion import Candidate
from flashgrep.search.meaning_index import Known
from flashgrep.search.rules import Rules

FILTERED = 10
"""So many times more chunks are ranked by words where a filter will throw most of them away."""

NO_LIMIT = -1
ENOUGH = 3
"""All are ranked when fewer than one ``ENOUGH``-th of the candidates wanted are left of those."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Key = tuple[int, int]
"""A chunk: its text and its place in it."""


class Telling(NamedTuple):
    """Words of a question that some chunk has, with their idf, and those of them that are asked for."""

    weights: dict[str, float]
    used: list[str]


def telling(connection: sqlite3.Connection, words: Sequence[str], known: Known, rules: Rules) -> Telling:
    """Weigh words by how rare they are, and choose the rarest as far as ``rules.common_words`` goes."""
    everything = max(1, int(known.chunks.size.sum()))
    counts = table.chunks_with(connection, words)
    weights = {word: idf(everything, counts.get(word, 0)) for word in words}
    used: list[str] = []
    room = rules.common_words
    for word in sorted(counts, key=counts.__getitem__):
        room -= counts[word]
        if room < 0 and used:
            break
        used.append(word)
    return Telling(weights, used)


def idf(everything: int, having: int) -> float:
    """Return the inverse document frequency as FTS5 has it, kept above zero."""
    return math.log(1 + max(0.0, everything - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks one state of the index."""

    connection: sqlite3.Connection
    known: Known
    rules: Rules
    allowed: Ints | None
    """Texts that count, ascending; None: all."""

    def candidates(self, words: Sequence[str], question: Floats | None) -> list[Candidate]:
        """Return chunks found by either side, each with both values as far as they are known."""
        lexical = self._by_words(words)
        similar = self._by_vector(question) if question is not None else {}
        if question is not None:
            similar |= self._similarity(question, [key for key in lexical if key not in similar])
        return [Candidate(key, lexical.get(key, 0.0), similar.get(key, 0.0)) for key in lexical | similar]

    def _by_words(self, words: Sequence[str]) -> dict[Key, float]:
        if not words:
            return {}
        rules = self.rules
        match = " OR ".join(f'"{word}"' for word in words)
        found = self._ranked(match, rules.candidates * (1 if self.allowed is None else FILTERED))
        return found if found is not None else self._ranked(match, NO_LIMIT) or {}

    def _ranked(self, match: str, limit: int) -> dict[Key, float] | None:
        """Return the best ``candidates`` that count; None: too few of ``limit`` do, and there are more."""
        rules = self.rules
        weights = (rules.path_words, rules.name_words, rules.body_words)
        found = table.ranked(self.connection, match, weights, limit)
        blobs, places = self.known.chunks.locate(np.array([number for number, _ in found], np.int64))
        counts = blobs > 0 if self.allowed is None else np.isin(blobs, self.allowed) & (blobs > 0)
        best = np.flatnonzero(counts)[: rules.candidates]
        if len(found) == limit and len(best) < rules.candidates // ENOUGH:
            return None
        return {key: found[at][1] for key, at in zip(_keys(blobs[best], places[best]), best.tolist(), strict=True)}

    def _by_vector(self, question: Floats) -> dict[Key, float]:
        known = self.known
        if known.vectors is None:
            return {}
        near = known.vectors.nearest(question, self.rules.candidates, self._rows_allowed())
        keys = _keys(*known.rows.locate(near.rows))
        return {key: float(value) for key, value in zip(keys, near.similarity, strict=True) if key[0]}

    def _rows_allowed(self) -> Bools | None:
        if self.allowed is None:
            return None
        rows = self.known.rows
        kept = np.isin(rows.blob, self.allowed)
        edges = np.zeros(int((rows.first + rows.size).max(initial=0)) + 1, np.int32)
        np.add.at(edges, rows.first[kept], 1)
        np.add.at(edges, (rows.first + rows.size)[kept], -1)
        allowed: Bools = np.cumsum(edges)[:-1] > 0
        return allowed

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


def allowed_texts(view: View, keep: PathFilter) -> Ints:
    """Return the texts of unchanged files that count, ascending."""
    counts = keep.mask(view.table.text())
    counts[[at for at in map(view.table.find, view.pending) if at is not None]] = False
    return np.unique(view.table.columns[counts, 0])


def covered(words: Mapping[str, float], text: set[str]) -> float:
    """Return the share of the weight of words that a text has, 0 to 1."""
    total = sum(words.values())
    return sum(weight for word, weight in words.items() if word in text) / total if total > 0 else 0.0
