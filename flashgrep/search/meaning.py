"""Search by meaning: chunks found by their words and by their vectors, in one order, read from disk as they are now."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.embed.rerank import Reranker
from flashgrep.errors import ProviderUnavailable
from flashgrep.index import chunks as table
from flashgrep.index.chunks import ChunkedText, StoredChunk
from flashgrep.index.table import tier_of
from flashgrep.index.vectors import VectorsDamaged
from flashgrep.index.words import impacts_of, scores_of, words_of
from flashgrep.indexer.chunking import chunk_text, embedding_text
from flashgrep.ingest.decoding import SHOWN
from flashgrep.ingest.extract import read_file
from flashgrep.ingest.globs import PathFilter
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.model import Document
from flashgrep.search.fusion import Asked, Candidate, asked, mix, weigh, weight_of, words_of_question
from flashgrep.search.meaning_index import Known, MeaningIndex
from flashgrep.search.meaning_recall import Recall, allowed_texts, covered, telling, whole_similarity
from flashgrep.search.rules import RULES, Rules
from flashgrep.search.snapshot import Snapshot
from flashgrep.search.symbol_source import parsed_file
from flashgrep.search.words import rank_files

MOST_CHANGED = 64
"""Files not stored yet as they are, the last ones, that are cut, counted and embedded for a question: about 0.1 s."""

MOST_LOOKED_UP = 200
"""Candidates whose file and names are looked up, the best by words and vectors alone: about 3 ms."""

_STAT = slice(1, 3)

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk in a file as it is now."""

    path: bytes
    chunk: StoredChunk
    text: str
    score: float = 0.0
    """How good an answer it is, 0 to 1: see ``MeaningSearch.relevance``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningQuestion:
    """What is asked."""

    text: str
    limit: int
    semantic_weight: float | None = None
    """Share of similarity in the mix, 0 to 1; None: by what the question looks like."""
    keep: PathFilter | None = None
    """Which paths count."""
    wanted: Callable[[Piece], bool] | None = None
    """Which pieces count."""
    threshold: float = 0.0
    """Least score of an answer."""
    rules: Rules = RULES
    reranker: Reranker | None = None
    """What puts the best pieces in their last order; without one the order of the rules stands."""


@dataclass(slots=True)
class MeaningAnswer:
    """Pieces, best first, and what they were found by."""

    results: list[Piece] = field(default_factory=list)
    chunks: int = 0
    """Chunks that were searched."""
    ranked_by: str = "words"
    """``words and meaning`` once there are vectors."""
    problem: str = ""
    """Why there are none, where the embedder does not answer."""
    embedding_ms: float = 0.0
    unseen: int = 0
    """Files not stored yet that were too many to be looked at for this answer."""
    damaged: bool = False
    """Whether there should be vectors, and are none that can be read."""


class _Changed(NamedTuple):
    """A file that is not stored as it is now."""

    path: bytes
    data: bytes
    text: ChunkedText


class MeaningSearch:
    """One question, asked of one project as it is now."""

    def __init__(self, snapshot: Snapshot, index: MeaningIndex, question: MeaningQuestion) -> None:
        self._view = snapshot
        self._index = index
        self._question = question
        self._changed: list[_Changed] = []
        self._chunks: dict[int, Sequence[StoredChunk]] = {}
        self._documents: dict[bytes, bytes | None] = {}
        self._known: Known | None = None
        self._vector: Floats | None = None
        self._unready = np.zeros(0, np.int64)
        self._asked: Asked = asked(question.text, {})
        self._weight = 0.0

    def run(self) -> MeaningAnswer:
        """Return the answer.

        Raises:
            Damaged: the index is not what was written.

        """
        answer = MeaningAnswer()
        candidates = self._stored(answer)
        self._changed = self._read_changed(answer)
        candidates += self._of_changed(answer)
        rules, weight = self._question.rules, self._question.semantic_weight
        weight = weight_of(self._asked.kind, rules) if weight is None else weight
        self._weight = mix(candidates, weight if self._vector is not None else 0.0)
        candidates = sorted((one for one in candidates if one.score > 0), key=lambda one: (-one.score, one.key))
        described = self._described(candidates)
        self._compare_whole(described, answer)
        rules = replace(rules, whole=rules.whole * self._weight)
        self._collect(weigh(described, self._asked, rules), answer)
        answer.chunks += sum(len(changed.text.chunks) for changed in self._changed)
        return answer

    # Candidates

    def _stored(self, answer: MeaningAnswer) -> list[Candidate]:
        words = words_of_question(self._question.text)
        if self._view.reader is None:
            self._asked = asked(self._question.text, dict.fromkeys(words, 1.0))
            self._unready = self._view.table.texts()
            return []
        with self._view.reader.transaction() as connection:
            known = self._known = self._index.at(connection)
            found = telling(connection, words, known, self._question.rules)
            self._asked = asked(self._question.text, found.weights)
            self._embed_question(known, answer)
            recall = Recall(connection, known, self._question.rules, self._allowed(known))
            try:
                candidates = recall.candidates(found, self._vector)
            except VectorsDamaged as damage:
                self._give_up_vectors(known, answer, str(damage), damaged=True)
                candidates = recall.candidates(found, None)
        answer.chunks = int(known.chunks.size.sum())
        return candidates

    def _allowed(self, known: Known) -> Ints | None:
        """Return the texts that are looked for in the index; None: all. Those that are not ready are read instead."""
        texts, keep = self._index.texts(known, self._view.table), self._question.keep
        there = allowed_texts(self._view, keep) if keep else texts.there
        few = self._vector is not None and len(texts.unembedded) <= MOST_CHANGED
        unembedded = texts.unembedded if few else texts.unembedded[:0]
        unready = np.sort(np.concatenate([texts.unchunked, unembedded]))
        self._unready = unready[np.isin(unready, there)] if len(unready) else unready
        if keep is None and not texts.some_dead and not len(unembedded):
            return None
        return there[~np.isin(there, self._unready)] if len(self._unready) else there

    def _embed_question(self, known: Known, answer: MeaningAnswer) -> None:
        answer.problem, answer.damaged = known.problem, known.damaged
        if known.embedder is None or known.vectors is None:
            return
        started = time.perf_counter()
        try:
            self._vector = known.embedder.embed_queries([self._question.text])[0]
        except ProviderUnavailable as error:
            self._give_up_vectors(known, answer, str(error))
        else:
            answer.ranked_by = "words and meaning"
            answer.embedding_ms = (time.perf_counter() - started) * 1000

    def _give_up_vectors(self, known: Known, answer: MeaningAnswer, problem: str, *, damaged: bool = False) -> None:
        """Have this answer, and those of the next seconds, made by words alone."""
        self._vector = None
        answer.ranked_by, answer.problem, answer.damaged = "words", problem, damaged
        self._index.fail(known, problem, damaged=damaged)

    # Files that are not stored as they are now

    def _read_changed(self, answer: MeaningAnswer) -> list[_Changed]:
        keep = self._question.keep or (lambda _: True)
        marks = {path: mark for path, mark in self._view.pending.items() if mark.ours and keep(path)}
        paths = sorted(marks, key=lambda path: (-marks[path].sequence, path))
        texts = self._unready[::-1].tolist()
        answer.unseen = max(0, len(paths) + len(texts) - MOST_CHANGED)
        if answer.unseen:  # not all can be cut now: first those with most of the question's words
            table, waiting = self._view.table, set(texts)
            ranked = rank_files(self._view, [word.encode() for word in words_of_question(self._question.text)])
            places = [at for path in ranked if path not in marks and (at := table.find(path)) is not None]
            likely = dict.fromkeys(blob for blob in table.columns[places, 0].tolist() if blob in waiting)
            stored = self._paths_of([*likely][:MOST_CHANGED]).values()
            paths = list(dict.fromkeys([*(path for path in ranked if path in marks), *stored, *paths]))
            texts = [blob for blob in texts if blob not in likely]
        paths = paths[:MOST_CHANGED]
        paths += self._paths_of(texts[: MOST_CHANGED - len(paths)]).values()
        found = []
        for path in paths:
            data = self._read(path, as_indexed=False)
            if data is not None:
                found.append(_Changed(path, data, chunked_now(path, data)))
        return found

    def _of_changed(self, answer: MeaningAnswer) -> list[Candidate]:
        fields = [fields for changed in self._changed for fields in changed.text.fields]
        scores = scores_of(impacts_of(fields), self._asked.words, len(fields)).tolist()
        places = [
            (-number, at) for number, changed in enumerate(self._changed, 1) for at in range(len(changed.text.fields))
        ]
        candidates = [Candidate(key, score, 0.0) for key, score in zip(places, scores, strict=True)]
        if self._vector is not None and candidates and self._known is not None and self._known.embedder is not None:
            embedder = self._known.embedder
            texts = [
                embedding_text(changed.path, changed.data, chunk)
                for changed in self._changed
                for chunk in changed.text.chunks
            ]
            try:
                similar = embedder.embed_code(texts[: embedder.batch]) @ self._vector  # one call: some take a second
            except ProviderUnavailable as error:
                self._give_up_vectors(self._known, answer, str(error))
                return candidates
            for one, value in zip(candidates, similar.tolist(), strict=False):
                one.similarity = value
        return candidates

    def _compare_whole(self, candidates: Sequence[Candidate], answer: MeaningAnswer) -> None:
        """Note how similar the whole of each candidate's file is; of a changed file its chunk's stands for it."""
        if self._vector is None or self._known is None or not self._weight:
            return
        try:
            wholes = whole_similarity(self._known, self._vector, {one.key[0] for one in candidates})
        except VectorsDamaged as damage:
            self._give_up_vectors(self._known, answer, str(damage), damaged=True)
            return
        for one in candidates:
            one.whole = wholes.get(one.key[0], one.similarity if one.key[0] < 0 else 0.0)

    # From candidates to answers

    def _described(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the best candidates with what stands in their files, without those whose text no file has now."""
        best = candidates[:MOST_LOOKED_UP]
        self._chunks = {-number: changed.text.chunks for number, changed in enumerate(self._changed, 1)}
        paths = {-number: changed.path for number, changed in enumerate(self._changed, 1)}
        stored = {one.key[0] for one in best if one.key[0] > 0}
        if stored and self._view.reader is not None:
            with self._view.reader.transaction() as connection:
                self._chunks |= table.chunks_of_texts(connection, stored)
            paths |= {blob: path for blob, path in self._paths_of(stored).items() if blob in self._chunks}
        described = []
        for one in best:
            blob, place = one.key
            if blob in paths and place < len(self._chunks[blob]):
                chunk = self._chunks[blob][place]
                one.path, one.name, one.defines, one.kind = paths[blob], chunk.name, chunk.defines, chunk.kind
                described.append(one)
        return described

    def _paths_of(self, blobs: Collection[int]) -> dict[int, bytes]:
        """Return the file to show for each text: of those that count the one nearest to the project's heart."""
        keep = self._question.keep or (lambda _: True)
        counting = {blob: list(filter(keep, paths)) for blob, paths in self._view.paths_of_texts(blobs).items()}
        return {
            blob: paths[0] if len(paths) == 1 else min(paths, key=lambda path: (tier_of(path), len(path), path))
            for blob, paths in counting.items()
            if paths
        }

    def _collect(self, ranked: list[Candidate], answer: MeaningAnswer) -> None:
        question, pieces = self._question, list[Piece]()
        most = question.limit if question.reranker is None else max(question.limit, question.reranker.top)
        for one in ranked:
            if len(pieces) == most:
                break
            piece = self._piece(one)
            if piece is not None and (question.reranker is not None or piece.score >= question.threshold):
                pieces.append(piece)
        pieces = [piece for piece in self._reranked(pieces, answer) if piece.score >= question.threshold]
        highest = 1.0
        for piece in pieces[: question.limit]:
            highest = min(highest, piece.score)
            answer.results.append(replace(piece, score=round(highest, 4)))

    def _reranked(self, pieces: list[Piece], answer: MeaningAnswer) -> list[Piece]:
        """Return pieces by a reranker's scores; as they are where there is none, or it does not answer."""
        reranker = self._question.reranker
        if reranker is None or not pieces:
            return pieces
        try:
            scores = reranker.scores(self._question.text, [piece.text for piece in pieces]).tolist()
        except ProviderUnavailable as error:
            answer.problem = "; ".join(part for part in (answer.problem, str(error)) if part)
            return pieces
        scored = [replace(piece, score=score) for piece, score in zip(pieces, scores, strict=True)]
        return sorted(scored, key=lambda piece: -piece.score)

    def _piece(self, one: Candidate) -> Piece | None:
        blob, place = one.key
        data = self._changed[-blob - 1].data if blob < 0 else self._read(one.path, as_indexed=True)
        if data is None:
            return None
        chunk = self._chunks[blob][place]
        text = data[chunk.start : chunk.end].decode("utf-8", SHOWN)
        piece = Piece(one.path, chunk, text)
        if self._question.wanted is not None and not self._question.wanted(piece):
            return None
        return replace(piece, score=round(self.relevance(one, piece), 4))

    def relevance(self, one: Candidate, piece: Piece) -> float:
        """Return how good an answer a chunk is by itself, 0 to 1, whatever else was found.

        The better of two: how sure the embedder is that question and chunk belong together (its ``confidence``), and
        the share of the question's words that the chunk has, each weighed by how rare it is. A side that the
        question's ``semantic_weight`` switches off does not count. A worse-placed chunk never shows a higher score.
        """
        meant = found = 0.0
        if self._weight > 0 and self._known is not None and self._known.embedder is not None:
            meant = self._known.embedder.confidence(one.similarity)
        if self._weight < 1:
            text = "\n".join([piece.text, one.path.decode("utf-8", "replace"), piece.chunk.name])
            found = covered(self._asked.words, words_of(text.encode()))
        return min(1.0, max(meant, found))

    def _read(self, path: bytes, *, as_indexed: bool) -> bytes | None:
        """Return a file's text; None where it has none any more, or not the one that was indexed."""
        if path not in self._documents:
            self._documents[path] = self._read_now(path, as_indexed=as_indexed)
        return self._documents[path]

    def _read_now(self, path: bytes, *, as_indexed: bool) -> bytes | None:
        try:
            stat, document = read_file(self._view.files, path, self._view.max_size)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not isinstance(document, Document) or stat is None:
            return None
        at = self._view.table.find(path)
        stored = None if at is None else tuple(self._view.table.columns[at, _STAT].tolist())
        return document.data if not as_indexed or stored == (stat.size, stat.mtime_ns) else None


def chunked_now(path: bytes, data: bytes) -> ChunkedText:
    """Return the chunks of a file that is not stored as it is."""
    found = parsed_file(path, data)
    return chunk_text(0, path, data, found.parsed if isinstance(found, FileSymbols) else None)
