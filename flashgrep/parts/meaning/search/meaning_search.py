"""Search by meaning: chunks found by words and vectors, merged into one order, and read from disk as they are now."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, islice
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.model import Document
from flashgrep.files.columns import SHOWN
from flashgrep.files.globs import PathFilter
from flashgrep.index.table import tier_of
from flashgrep.parts.meaning.chunking import embedding_text
from flashgrep.parts.meaning.embed.models import Reranker
from flashgrep.parts.meaning.index.chunks import CHUNK_ROWS, ChunkedText, StoredChunk
from flashgrep.parts.meaning.index.vectors import VectorsDamaged
from flashgrep.parts.meaning.index.word_impacts import Family, impacts_of, scores_of
from flashgrep.parts.meaning.search.chunk_index import (
    CandidateSearch,
    ChunkIndex,
    ChunkState,
    Floats,
    Ints,
    Texts,
    find_allowed_texts,
    weigh_words,
    whole_similarity,
)
from flashgrep.parts.meaning.search.current_chunks import (
    FoundChunk,
    FoundFile,
    cut_chunks,
)
from flashgrep.parts.meaning.search.functions import (
    PLACES_OF_SYMBOL,
    FoundFunction,
    QuestionWords,
    choose_places,
    find_functions,
    find_implementation,
)
from flashgrep.parts.meaning.search.fusion import (
    RULES,
    AnalyzedQuery,
    Candidate,
    FunctionOrder,
    RankedFile,
    Rules,
    analyze_query,
    apply_rules,
    mix_scores,
    query_words,
    rank_files,
    semantic_share,
    sort_files,
    weigh_file,
)
from flashgrep.parts.meaning.search.passages import Passage, Span, find_passage
from flashgrep.parts.meaning.search.word_pairs import WordPairs
from flashgrep.parts.meaning.search.word_search import (
    WordCover,
    forms_of,
    rank_by_words,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import TYPE_KINDS
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.search.declared_kinds import read_kinds
from flashgrep.search.snapshot import TEXT_ID, Snapshot

MOST_CHANGED = 64
"""Most recently changed files that are cut, counted and embedded for a question: about 0.1 s."""

MOST_LOOKED_UP = 200
"""Candidates whose file and names are looked up, the best by words and vectors alone: about 3 ms."""

MOST_HAVING = 10
"""Files with the only word of a question up to which it is rare: an answer has room for all of them, and they come before
all others, whatever is more like the word. Of forty words drawn from fourteen repositories, in 1 to 8 files each, all
files with the word are then first for 38 (14 before), at a tenth more tokens."""

PROSE = PathFilter(
    (),
    (),
    languages=[
        name for name, language in LANGUAGES.items() if language.nature == "prose"
    ],
)
"""The files that are prose by their names: among candidates, and in a table."""
MOST_PROSE = 0.8
"""Share of prose among the candidates from which code is looked for by itself: prose counts 0.4, but a manual in thirty
languages would leave no code to weigh it against."""

MOST_OPENED = 16
"""Candidate files that are opened to see whether they define a type that the question names."""

MOST_PAIRED = 12
"""Best files whose chunks are compared with the pairs of a question's words: more change nothing."""

NAMED_KINDS = TYPE_KINDS - {"extension"} | {"type", "module"}
"""Kinds of definitions by which a question may name a file: an extension adds to a type of another file."""

NEAR_FILE, LIKELY_FILE = 0.6, 0.45
"""Shares of the best file's score: from the first a model is told of a file and its functions, from the second of its
path."""

CHUNKS_OF_NEAR, CHUNKS_OF_FILE = 12, 3
"""Chunks of a file whose functions are compared: of one with at least that score, and of others."""

MOST_OF_FILE = 20
"""Functions that are returned of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningQuestion:
    """A question by meaning."""

    text: str
    limit: int
    semantic_weight: float | None = None
    """Share of similarity in the mix, 0 to 1; None: depends on the question."""
    keep: PathFilter | None = None
    """Which paths count."""
    wanted: Callable[[FoundChunk], bool] | None = None
    """Which chunks count."""
    passages: bool = False
    """Whether to return the functions around the chunks; each function is then returned once."""
    files: int = 0
    """Most files to return with their best functions, best first."""
    least_file: float = 0.0
    """Least score of such a file, as a share of the best file's."""
    threshold: float = 0.0
    """Minimum score of an answer."""
    rules: Rules = RULES
    reranker: Reranker | None = None
    """Reranks the best chunks; None: the order of the rules is final."""


@dataclass(slots=True)
class MeaningAnswer:
    """Chunks, best first, and how they were found."""

    results: list[FoundChunk] = field(default_factory=list)
    files: list[FoundFile] = field(default_factory=list)
    """The best files, in their order, which differs from that of their functions."""
    chunks: int = 0
    """Chunks that were searched."""
    ranked_by: str = "words"
    """``words and meaning`` once there are vectors."""
    problem: str = ""
    """Why there are no vectors, if the embedder does not answer."""
    embedding_ms: float = 0.0
    unseen: int = 0
    """Changed files that were too many to examine for this answer."""
    damaged: bool = False
    """Whether vectors should exist but cannot be read."""


class _UnstoredFile(NamedTuple):
    """A file whose current version is not stored."""

    path: bytes
    data: bytes
    text: ChunkedText


class MeaningSearch:
    """One question to the current state of one project.

    A candidate's key is its text and its position in it. Texts of files whose current version is not stored have
    negative numbers: -1 is the first of ``_changed``.
    """

    def __init__(
        self, snapshot: Snapshot, index: ChunkIndex, question: MeaningQuestion
    ) -> None:
        self._snapshot = snapshot
        self._index = index
        self._question = question
        self._answer = MeaningAnswer()
        self._query: AnalyzedQuery = analyze_query(question.text, {})
        self._known: ChunkState | None = None
        self._families: Mapping[str, Family] = {}
        """The question's words, each with its forms and their weights."""
        self._words = QuestionWords({}, {})
        self._cover = WordCover([])
        self._having = set[tuple[int, int]]()
        """The chunks that have the only word of the question, if it has no other."""
        self._vector: Floats | None = None
        self._share = 0.0
        """Share of similarity in the scores."""
        self._unready = np.zeros(0, np.int64)
        """Texts that the index cannot find by words and vectors yet; their files are read instead."""
        self._changed: list[_UnstoredFile] = []
        self._chunks: dict[tuple[int, int], StoredChunk] = {}
        """The chunks of the candidates that were described."""
        self._read: dict[bytes, bytes | None] = {}
        self._opened: dict[bytes, FileSymbols | None] = {}
        self._found: dict[tuple[int, int], FoundChunk | None] = {}
        self._symbols = SnapshotSource(snapshot)

    def run(self) -> MeaningAnswer:
        """Return the answer.

        Raises:
            Damaged: the index is not as it was written.

        """
        rules = self._question.rules
        share = self._question.semantic_weight
        candidates = self._recall()
        self._cut_changes()
        candidates += self._score_changes()
        if share is None:
            share = semantic_share(self._query.kind, rules)
        self._share = mix_scores(candidates, share if self._vector is not None else 0.0)
        # Equal candidates keep the order of their files.
        candidates = [candidate for candidate in candidates if candidate.score > 0]
        self._mark_leading(candidates)
        candidates.sort(key=attrgetter("leads", "score"), reverse=True)
        # Files and names are looked up only for the best; then the rules reorder them.
        described = self._describe(candidates[:MOST_LOOKED_UP])
        self._compare_files(described)
        # The similarity of whole files counts no more than similarity does in the mix.
        rules = replace(rules, whole=rules.whole * self._share)
        # Words may be switched off.
        if self._share == 1:
            rules = replace(rules, said=0.0, side_by_side=0.0)
        types = self._find_named_types(described)
        if self._question.passages:
            files = rank_files(
                described, self._query, rules, types, read_kinds(self._snapshot)
            )
            # Nearly all functions are in these files.
            most = max(self._most, MOST_PAIRED)
            self._symbols.read_ahead([file.path for file in files[:most]])
            files = self._reward_pairs(files, rules)
            self._rerank(self._collect_functions(files, rules))
            self._collect_files(files)
        else:
            ranked = apply_rules(
                described,
                self._query,
                rules,
                types,
            )
            self._rerank(self._collect_chunks(ranked))
        self._answer.chunks += sum(
            len(changed.text.chunks) for changed in self._changed
        )
        return self._answer

    # Candidates of the index

    def _recall(self) -> list[Candidate]:
        answer = self._answer
        question = self._question
        forms = {word: forms_of(word) for word in query_words(question.text)}
        with self._index.open(self._snapshot) as opened:
            if opened is None:
                self._weigh(
                    {
                        word: {word: 1.0}
                        | dict.fromkeys(forms[word], question.rules.form)
                        for word in forms
                    }
                )
                self._unready = self._snapshot.table.texts()
                return []
            state = opened.known
            texts = opened.texts
            self._known = state
            forms_wanted = dict.fromkeys(chain(forms, *forms.values()))
            weighed = weigh_words(
                forms, opened.find_words([*forms_wanted]), state, texts, question.rules
            )
            self._weigh(weighed.families)
            answer.problem = state.problem
            answer.damaged = state.damaged
            if state.embedder is not None and state.vectors is not None:
                started = time.perf_counter()
                try:
                    self._vector = state.embedder.embed_queries([question.text])[0]
                except ProviderUnavailable as error:
                    self._give_up_vectors(state, str(error))
                else:
                    answer.ranked_by = "words and meaning"
                    answer.embedding_ms = (time.perf_counter() - started) * 1000
            recall = CandidateSearch(
                state, question.rules, self._choose_texts(texts), texts.places
            )
            if self._only_word:
                self._having = recall.find_having(weighed, self._only_word)
            try:
                candidates = recall.candidates(weighed, self._vector)
                if self._is_crowded(candidates):
                    code = replace(recall, allowed=self._leave_out_prose(recall))
                    further = code.candidates(weighed, self._vector)
                    candidates = join_candidates(candidates, further)
            except VectorsDamaged as damage:
                self._give_up_vectors(state, str(damage), damaged=True)
                candidates = recall.candidates(weighed, None)
        answer.chunks = texts.chunks
        return candidates

    def _is_crowded(self, candidates: Sequence[Candidate]) -> bool:
        """Return whether most candidates are prose, which counts little and leaves no room for code."""
        query = self._query
        # Then prose is what is looked for.
        if query.about_prose or query.kind == "path":
            return False
        paths = self._choose_paths({candidate.key[0] for candidate in candidates})
        prose = sum(PROSE(paths.get(candidate.key[0], b"")) for candidate in candidates)
        return prose > MOST_PROSE * len(candidates)

    def _leave_out_prose(self, recall: CandidateSearch) -> Ints:
        """Return the texts that count, without prose."""
        allowed = recall.allowed
        if allowed is None:
            allowed = self._snapshot.table.texts()
        return np.setdiff1d(allowed, find_allowed_texts(self._snapshot, PROSE))

    def _weigh(self, families: Mapping[str, Family]) -> None:
        self._families = families
        self._query = analyze_query(
            self._question.text, {word: families[word][word] for word in families}
        )
        self._words = QuestionWords(self._query.words, families)
        self._cover = WordCover(families.values())

    def _choose_texts(self, texts: Texts) -> Ints | None:
        """Return the texts to search in the index; None: all. Note those that are read instead."""
        keep = self._question.keep
        if keep:
            there = find_allowed_texts(self._snapshot, keep)
        else:
            there = texts.there
        # Texts without vectors would lose to texts with vectors, so a few are embedded
        # for this question.
        are_few = self._vector is not None and len(texts.unembedded) <= MOST_CHANGED
        if are_few:
            unembedded = texts.unembedded
        else:
            unembedded = texts.unembedded[:0]
        unready = np.sort(np.concatenate([texts.unchunked, unembedded]))
        if len(unready):
            self._unready = unready[np.isin(unready, there)]
        else:
            self._unready = unready
        # All may be searched if nothing else is stored: no filter, no old versions, and
        # no text to read instead.
        if keep is None and not texts.some_dead and not len(unembedded):
            return None
        if len(self._unready):
            return there[~np.isin(there, self._unready)]
        return there

    def _give_up_vectors(
        self, known: ChunkState, problem: str, *, damaged: bool = False
    ) -> None:
        """Answer this question, and those in the next seconds, by words only."""
        self._vector = None
        answer = self._answer
        answer.ranked_by = "words"
        answer.problem = problem
        answer.damaged = damaged
        self._index.fail(known, problem, damaged=damaged)

    # Files whose current version is not stored

    def _cut_changes(self) -> None:
        """Cut the most recently changed files or, if there are too many, those with most of the question's words."""
        snapshot = self._snapshot
        keep = self._question.keep or (lambda _: True)
        marks = {
            path: mark
            for path, mark in snapshot.pending.items()
            if mark.ours and keep(path)
        }
        paths = sorted(marks, key=lambda path: (-marks[path].sequence, path))
        texts = self._unready[::-1].tolist()
        self._answer.unseen = max(0, len(paths) + len(texts) - MOST_CHANGED)
        if self._answer.unseen:
            files = snapshot.table
            waiting = set(texts)
            ranked = rank_by_words(snapshot, self._question.text)
            places = [
                at
                for path in ranked
                if path not in marks and (at := files.find(path)) is not None
            ]
            likely = dict.fromkeys(
                text_id
                for text_id in files.columns[places, TEXT_ID].tolist()
                if text_id in waiting
            )
            stored = self._choose_paths([*likely][:MOST_CHANGED]).values()
            paths = list(
                dict.fromkeys(
                    [*(path for path in ranked if path in marks), *stored, *paths]
                )
            )
            texts = [text_id for text_id in texts if text_id not in likely]
        # Pending files come before texts that only wait for the index: they are being
        # edited.
        paths = paths[:MOST_CHANGED]
        paths += self._choose_paths(texts[: MOST_CHANGED - len(paths)]).values()
        for path in paths:
            document = snapshot.read(path)
            if isinstance(document, Document):
                text = cut_chunks(path, document.data, snapshot.unsaved)
                self._changed.append(_UnstoredFile(path, document.data, text))

    def _score_changes(self) -> list[Candidate]:
        if not self._changed:
            return []
        fields = [fields for changed in self._changed for fields in changed.text.fields]
        impacts = impacts_of(fields)
        scored = scores_of(impacts, self._families.values(), len(fields))
        scores = scored.bm25.tolist()
        words = scored.words_in(np.arange(len(fields)))
        keys = [
            (-number, at)
            for number, file in enumerate(self._changed, 1)
            for at in range(len(file.text.fields))
        ]
        if self._only_word:
            itself = scores_of(impacts, [{self._only_word: 1.0}], len(fields))
            self._having.update(compress(keys, itself.having[0]))
        candidates = [
            Candidate(key, score, 0.0, words=said)
            for key, score, said in zip(keys, scores, words, strict=True)
        ]
        if (
            self._vector is not None
            and candidates
            and self._known is not None
            and self._known.embedder is not None
        ):
            embedder = self._known.embedder
            inputs = [
                embedding_text(file.path, file.data, chunk)
                for file in self._changed
                for chunk in file.text.chunks
            ]
            try:
                similar = (
                    embedder.embed_code(inputs[: embedder.batch]) @ self._vector
                )  # one call: it may take a second
            except ProviderUnavailable as error:
                self._give_up_vectors(self._known, str(error))
                return candidates
            for candidate, similarity in zip(
                candidates, similar.tolist(), strict=False
            ):
                candidate.similarity = similarity
        return candidates

    # From candidates to answers

    @property
    def _only_word(self) -> str:
        """The word that the whole question is; empty if it has several, is a name, or asks for a weight."""
        if self._query.kind != "words" or len(self._families) != 1:
            return ""
        if self._question.semantic_weight is not None:
            return ""
        return next(iter(self._families))

    def _mark_leading(self, candidates: Sequence[Candidate]) -> None:
        """Note what has the only word of the question, if an answer has room for all files with it."""
        texts = {text_id for text_id, _ in self._having}
        if len(texts) > MOST_HAVING:
            return
        for candidate in candidates:
            candidate.leads = candidate.key in self._having

    def _describe(self, best: list[Candidate]) -> list[Candidate]:
        """Return the candidates with data from their files, without those whose text no file has now."""
        chunks: dict[int, Sequence[StoredChunk]] = {}
        paths: dict[int, bytes] = {}
        for number, changed in enumerate(self._changed, 1):
            chunks[-number] = changed.text.chunks
            paths[-number] = changed.path
        stored = set[int]()
        for candidate in best:
            text_id = candidate.key[0]
            if text_id > 0:
                stored.add(text_id)
        if stored and self._snapshot.reader is not None:
            chunks |= self._snapshot.reader.rows(CHUNK_ROWS).chunks_of_texts(stored)
            paths |= {
                text_id: path
                for text_id, path in self._choose_paths(stored).items()
                if text_id in chunks
            }
        described = []
        for candidate in best:
            text_id, place = candidate.key
            if text_id not in paths:
                continue
            try:
                chunk = chunks[text_id][place]
            except IndexError:
                # The text was cut again between the search and this lookup.
                continue
            self._chunks[candidate.key] = chunk
            candidate.path = paths[text_id]
            candidate.name = chunk.name
            candidate.defines = chunk.defines
            candidate.kind = chunk.kind
            described.append(candidate)
        return described

    def _choose_paths(self, text_ids: Collection[int]) -> dict[int, bytes]:
        """Return the file to show for each text: of those that count, the best tier, then the shortest path."""
        if not text_ids:
            return {}
        keep = self._question.keep
        chosen = dict[int, bytes]()
        for text_id, paths in self._snapshot.paths_of_texts(text_ids).items():
            counting = paths
            if keep is not None:
                counting = list(filter(keep, paths))
            if len(counting) > 1:
                counting.sort(key=_rank_path)
            if counting:
                chosen[text_id] = counting[0]
        return chosen

    def _compare_files(self, candidates: Sequence[Candidate]) -> None:
        """Note the similarity of each candidate's whole file; for a changed file its chunk stands in."""
        if self._vector is None or self._known is None or not self._share:
            return
        try:
            wholes = whole_similarity(
                self._known,
                self._vector,
                {current_candidate.key[0] for current_candidate in candidates},
            )
        except VectorsDamaged as damage:
            self._give_up_vectors(self._known, str(damage), damaged=True)
            return
        for candidate in candidates:
            candidate.whole = wholes.get(
                candidate.key[0], candidate.similarity if candidate.key[0] < 0 else 0.0
            )

    def _reward_pairs(self, files: list[RankedFile], rules: Rules) -> list[RankedFile]:
        """Return files in order, the best ones rewarded for adjacent words of the question that they have side by side."""
        if self._query.kind != "words" or not rules.side_by_side:
            return files
        pairs = WordPairs(self._families)
        kinds = read_kinds(self._snapshot)
        rewarded = [*files]
        for at, file in enumerate(files[:MOST_PAIRED]):
            share = 0.0
            for candidate in file.chunks:
                if not pairs.find_possible(candidate.words):
                    continue
                data = self._read_text(candidate) or b""
                chunk = self._chunks[candidate.key]
                text = data[chunk.start : chunk.end]
                share = max(share, pairs.share(candidate.words, text))
            factor = weigh_file(file.path, kinds, self._query, rules)
            score = file.score + rules.side_by_side * share * factor
            rewarded[at] = file._replace(score=score)
        return sort_files(rewarded)

    def _find_named_types(self, candidates: Sequence[Candidate]) -> dict[bytes, float]:
        """Return by file the share of the question's identifiers that it defines as types or modules."""
        names = self._query.identifiers
        counts = dict[bytes, int]()
        for name in names:
            defining = self._symbols.defining(name, prefix=False)
            among = None if defining is None else set(defining)
            # In the order of the candidates, which is that of their scores.
            paths = dict.fromkeys(
                candidate.path
                for candidate in candidates
                if (
                    name in candidate.defines
                    if among is None
                    else candidate.path in among
                )
            )
            for path in islice(paths, MOST_OPENED):
                if self._defines_type(path, name):
                    counts[path] = counts.get(path, 0) + 1
        return {path: count / len(names) for path, count in counts.items()}

    def _defines_type(self, path: bytes, name: str) -> bool:
        symbols = self._open(path)
        return symbols is not None and any(
            symbols.kind(index) in NAMED_KINDS for index in symbols.defining(name)
        )

    def _open(self, path: bytes) -> FileSymbols | None:
        """Return a file's symbols, read once for all its chunks; None: it has none."""
        if path not in self._opened:
            symbols = self._symbols.open(path)
            self._opened[path] = symbols if isinstance(symbols, FileSymbols) else None
        return self._opened[path]

    @property
    def _most(self) -> int:
        """Results to collect: a reranker chooses among more."""
        reranker = self._question.reranker
        if reranker is None:
            return self._question.limit
        return max(self._question.limit, reranker.top)

    def _collect_chunks(self, ranked: Sequence[Candidate]) -> list[FoundChunk]:
        """Return the best chunks that are still in their files."""
        chunks = list[FoundChunk]()
        for candidate in ranked:
            if len(chunks) == self._most:
                break
            chunk = self._score_chunk(candidate)
            if chunk is not None and self._counts(chunk):
                chunks.append(chunk)
        return chunks

    def _collect_functions(
        self, files: Sequence[RankedFile], rules: Rules
    ) -> list[FoundChunk]:
        """Return the best functions: each once, with its best chunk, and no file's alone."""
        order = FunctionOrder(files, rules, self._most // 2)
        best = max((file.chunks[0].strength for file in files), default=1.0)
        siblings = {file.path: file.chunks for file in files}
        chunks = list[FoundChunk]()
        places = dict[bytes, list[FoundChunk]]()
        while order and len(chunks) < self._most:
            candidate = order.next()
            chunk = self._read_chunk(candidate)
            same = places.setdefault(candidate.path, [])
            # Scored last: it takes half as long as reading, and what is repeated is not shown.
            if chunk is not None and not is_repeated(chunk, same):
                chunk = self._score_chunk(candidate)
            else:
                chunk = None
            is_shown = chunk is not None and self._counts(chunk)
            order.advance(is_shown=is_shown)
            if chunk is not None and is_shown:
                part = self._choose_part(candidate, chunk, siblings[candidate.path])
                chunk = replace(part, near=candidate.strength / best)
                same.append(chunk)
                chunks.append(chunk)
        return chunks

    def _choose_part(
        self, candidate: Candidate, found: FoundChunk, siblings: Sequence[Candidate]
    ) -> FoundChunk:
        """Return the chunk of a found one's function that has most of the question's words: the part that answers.

        The function was found by its best chunk, which is often the first one, since that has its name.
        """
        passage = found.passage
        if passage is None or passage.index < 0:
            return found
        first, last = passage.whole
        best = candidate
        most = self._query.weigh(candidate.words)
        for sibling in siblings:
            # Most have no word that the best one lacks.
            if not sibling.words & ~best.words:
                continue
            lines = self._chunks[sibling.key]
            if lines.start_line < first or last < lines.end_line:
                continue
            weight = self._query.weigh(sibling.words)
            if weight > most and self._is_of(sibling, passage):
                best = sibling
                most = weight
        part = None
        if best is not candidate:
            part = self._score_chunk(best)
        if part is None:
            return found
        return replace(part, score=max(part.score, found.score))

    def _is_of(self, candidate: Candidate, passage: Passage) -> bool:
        """Return whether a candidate is a part of a passage's function."""
        chunk = self._read_chunk(candidate)
        if chunk is None or chunk.passage is None:
            return False
        return chunk.passage.index == passage.index

    def _collect_files(self, files: Sequence[RankedFile]) -> None:
        """Add the best files to the answer, each with its best functions."""
        best = max((file.chunks[0].strength for file in files), default=1.0)
        for file in files:
            if len(self._answer.files) == self._question.files:
                break
            near = file.score / files[0].score
            if near < self._question.least_file:
                break
            count = CHUNKS_OF_NEAR if near >= NEAR_FILE else CHUNKS_OF_FILE
            functions = self._rank_functions(file.chunks[:count], best)
            if functions:
                self._answer.files.append(FoundFile(file.path, near, functions))

    def _rank_functions(
        self, chunks: Sequence[Candidate], best: float
    ) -> list[FoundFunction]:
        """Return the best functions of some chunks of a file; ``best``: the best chunk's score."""
        functions = dict[Span, FoundFunction]()
        for candidate in chunks:
            chunk = self._read_chunk(candidate)
            # A place shows no score.
            if chunk is not None and self._question.threshold > 0:
                chunk = self._score_chunk(candidate)
            if chunk is None or not self._counts(chunk):
                continue
            near = candidate.strength / best
            for function in map(find_implementation, chunk.functions):
                if function.lines not in functions:
                    scored = function._replace(score=near + function.relevance)
                    functions[function.lines] = scored
        ranked = sorted(functions.values(), key=attrgetter("score"), reverse=True)
        return choose_places(ranked, MOST_OF_FILE)

    def _counts(self, found: FoundChunk) -> bool:
        """Return whether a chunk is wanted and good enough; a reranker scores anew."""
        question = self._question
        if question.wanted is not None and not question.wanted(found):
            return False
        return question.reranker is not None or found.score >= question.threshold

    def _rerank(self, chunks: list[FoundChunk]) -> None:
        """Add the best chunks to the answer, in the order of the reranker if there is one."""
        question = self._question
        reranker = question.reranker
        if reranker is not None and chunks:
            try:
                scores = reranker.scores(
                    question.text, [chunk.text for chunk in chunks]
                ).tolist()
            except ProviderUnavailable as error:  # the order of the rules is final
                self._answer.problem = "; ".join(
                    part for part in (self._answer.problem, str(error)) if part
                )
            else:
                scored = [
                    replace(found_chunk, score=score)
                    for found_chunk, score in zip(chunks, scores, strict=True)
                ]
                chunks = sorted(scored, key=lambda found: -found.score)
        highest = 1.0
        for chunk in [chunk for chunk in chunks if chunk.score >= question.threshold][
            : question.limit
        ]:
            highest = min(
                highest, chunk.score
            )  # a worse-placed chunk never shows a higher score
            self._answer.results.append(replace(chunk, score=round(highest, 4)))

    def _read_chunk(self, candidate: Candidate) -> FoundChunk | None:
        """Return a candidate's chunk from its file, with the enclosing function if requested."""
        if candidate.key not in self._found:
            self._found[candidate.key] = self._find_chunk(candidate)
        return self._found[candidate.key]

    def _read_unchanged_text(self, path: bytes) -> bytes | None:
        """Return a file's text; None: it has changed since it was indexed, and no longer has its chunks."""
        if path not in self._read:
            symbols = self._open(path) if self._question.passages else None
            if symbols is not None:
                stat = self._symbols.read_files[path]
                data: bytes | None = symbols.data
            else:
                stat, document = self._snapshot.read_with_stat(path)
                data = document.data if isinstance(document, Document) else None
            version = self._snapshot.indexed_version(path)
            is_same = (
                stat is not None
                and version is not None
                and version[1:] == (stat.size, stat.mtime_ns)
            )
            self._read[path] = data if is_same else None
        return self._read[path]

    def _score_chunk(self, candidate: Candidate) -> FoundChunk | None:
        """Return a candidate's chunk with how good an answer it is by itself."""
        chunk = self._read_chunk(candidate)
        if chunk is None:
            return None
        return replace(chunk, score=round(self.relevance(candidate, chunk), 4))

    def _read_text(self, candidate: Candidate) -> bytes | None:
        """Return the text of a candidate's file; None: it no longer has its chunks."""
        text_id = candidate.key[0]
        if text_id < 0:
            return self._changed[-text_id - 1].data
        return self._read_unchanged_text(candidate.path)

    def _find_chunk(self, candidate: Candidate) -> FoundChunk | None:
        data = self._read_text(candidate)
        if data is None:
            return None
        chunk = self._chunks[candidate.key]
        passage = None
        functions: Sequence[FoundFunction] = ()
        if self._question.passages:
            symbols = self._open(candidate.path)
            if symbols is not None and symbols.data != data:
                symbols = None
            passage = find_passage(data, chunk, symbols)
            functions = find_functions(
                data,
                chunk,
                passage,
                symbols,
                self._words,
            )
        return FoundChunk(
            candidate.path,
            chunk,
            data[chunk.start : chunk.end].decode("utf-8", SHOWN),
            passage=passage,
            functions=functions,
        )

    def relevance(self, candidate: Candidate, found: FoundChunk) -> float:
        """Return how good an answer a chunk is by itself, 0 to 1, independent of other results.

        The better of two: the embedder's confidence that question and chunk belong together, and the share of the
        question's words in the chunk, weighted by rarity. A side that the question's ``semantic_weight`` switches off
        does not count.
        """
        by_meaning = by_words = 0.0
        if (
            self._share > 0
            and self._known is not None
            and self._known.embedder is not None
        ):
            by_meaning = self._known.embedder.confidence(candidate.similarity)
        if self._share < 1:
            text = "\n".join(
                [
                    found.text,
                    candidate.path.decode("utf-8", "replace"),
                    found.chunk.name,
                ]
            ).encode()
            by_words = self._cover.share(text)
        return min(1.0, max(by_meaning, by_words))


def join_candidates(
    candidates: Sequence[Candidate], further: Sequence[Candidate]
) -> list[Candidate]:
    """Return candidates, each once."""
    by_key = {candidate.key: candidate for candidate in (*candidates, *further)}
    return [*by_key.values()]


def _rank_path(path: bytes) -> tuple[int, int, bytes]:
    return tier_of(path), len(path), path


def is_repeated(found: FoundChunk, shown: Sequence[FoundChunk]) -> bool:
    """Return whether a chunk's function is among those already shown of its file, or its name as often as it may be."""
    passage = found.passage
    if passage is None:
        return False
    name = passage.name or found.chunk.name
    namesakes = 0
    for other in shown:
        if other.passage is None:
            continue
        is_same = bool(passage.name) and other.passage.whole == passage.whole
        if is_same or other.passage.covers(passage):
            return True
        namesakes += (other.passage.name or other.chunk.name) == name
    return bool(name) and namesakes >= PLACES_OF_SYMBOL
