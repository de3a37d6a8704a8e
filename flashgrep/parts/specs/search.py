"""Searching specifications by meaning: purposes, requirements and scenarios near to a query, by vectors and words.

Vectors find paraphrases, words find names. The score of a passage is a weighted mean of both, each from 0 to 1. The
words of a query are weighted by rarity (BM25's idf), and the word score is the share of the total weight that the
passage has. Unlike BM25's sum it is absolute, so it can be compared with a threshold.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.parts.meaning.embed.interface import Embedder
from flashgrep.parts.meaning.index.word_impacts import parts
from flashgrep.parts.specs.spec import Requirement, Scenario
from flashgrep.parts.specs.spec_repository import ProjectSpec

MEANING: Final = 0.6
"""Weight of the vectors in a score; the words have the rest."""
SATURATION: Final = 1.2
LENGTH: Final = 0.5
"""BM25's k1 and b. Long passages are detailed scenarios, which deserve a smaller penalty than with b = 0.75."""
SHORTEST_STEM: Final = 3
SNIPPET: Final = 240
"""Most characters of a snippet."""

_WORD = re.compile(r"\w+")
_ENDINGS = ("s", "ing", "ed", "e")

Kind = Literal["purpose", "requirement", "scenario"]
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a specification that can be found on its own."""

    kind: Kind
    spec: ProjectSpec
    requirement: Requirement | None
    scenario: Scenario | None
    text: str

    @property
    def line(self) -> int:
        """Its first line."""
        part = self.scenario or self.requirement
        if part is None:
            return self.spec.spec.purpose_line
        return part.line


@dataclass(frozen=True, slots=True)
class SpecMatch:
    """A requirement that matches a query, and the matching passage; ``score`` from 0 to 1."""

    passage: Passage
    requirement: Requirement | None
    score: float
    snippet: str


class Candidate(NamedTuple):
    """A passage with its score, and the requirement that it is shown with."""

    passage: Passage
    requirement: Requirement | None
    score: float


SPEC_VECTORS: Final = ServiceKey["SpecVectors"]("specification vectors")


Row = NDArray[np.float32]
Key = tuple[str, bytes]
"""A model's name, and the digest of a text."""


class SpecVectors(ProjectService):
    """A cache of the vectors of the last search's texts, by model and content; thread-safe.

    A text is embedded once; its vector is dropped when a search no longer has that text.
    """

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._open: tuple[str, Embedder] | None = None

    def embedder(
        self, settings: str, open_embedder: Callable[[str], Embedder]
    ) -> Embedder:
        """Return the embedder of these settings; the last one is kept open, since opening may need a request."""
        if self._open is not None:
            opened, embedder = self._open
            if opened == settings:
                return embedder
        embedder = open_embedder(settings)
        self._open = (settings, embedder)
        return embedder

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Rows:
        """Return a row for each text, embedding only new texts."""
        if not texts:
            return np.zeros((0, embedder.dims), np.float32)
        earlier = self._rows
        keys: list[Key] = []
        missing: dict[Key, str] = {}
        for text in texts:
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            key = (embedder.name, digest)
            keys.append(key)
            if key not in earlier:
                missing[key] = text
        # Only the rows of these texts: old versions of edited texts are never needed
        # again.
        rows = {key: earlier[key] for key in keys if key in earlier}
        if missing:
            fresh = embedder.embed_code(list(missing.values()))
            rows.update(zip(missing, fresh, strict=True))
        self._rows = rows  # atomic: another thread reads either the old rows or these
        return np.stack([rows[key] for key in keys])


def search(
    specs: Sequence[ProjectSpec],
    query: str,
    *,
    embedder: Embedder | None,
    vectors: SpecVectors,
    limit: int,
    threshold: float,
) -> list[SpecMatch]:
    """Return the requirements nearest to a query, best first, each with its best passage.

    A matching purpose is returned with the best requirement of its specification. Without an embedder, only words
    count.

    Raises:
        ProviderUnavailable: the embedder does not respond.

    """
    passages: list[Passage] = []
    for spec in specs:
        passages += split_passages(spec)
    texts = [passage.text for passage in passages]
    counter = Counter(split_words(query))
    scores = score_words(counter, list(map(split_words, texts)))
    if embedder is not None and passages:
        rows = vectors.embed(embedder, texts)
        (question,) = embedder.embed_queries([query])
        cosines = rows @ question
        for at, cosine in enumerate(cosines):
            by_meaning = embedder.confidence(float(cosine))
            by_words = scores[at]
            scores[at] = MEANING * by_meaning + (1 - MEANING) * by_words
    best = _pick_best(zip(passages, scores, strict=True))
    best.sort(key=_order_of)
    matches: list[SpecMatch] = []
    for passage, requirement, exact_score in best[:limit]:
        score = round(exact_score, 4)
        if score >= threshold:
            snippet = make_snippet(passage.text, counter)
            matches.append(SpecMatch(passage, requirement, score, snippet))
    return matches


def _order_of(candidate: Candidate) -> tuple[float, str, int]:
    """Return the sort key of a candidate: the best first, then by its place."""
    passage = candidate.passage
    return -candidate.score, passage.spec.id, passage.line


def split_passages(spec: ProjectSpec) -> Iterator[Passage]:
    """Yield the passages of a specification; each begins with its name."""
    purpose = spec.spec.purpose or ""
    if spec.spec.title or purpose:
        text = f"{spec.title}\n{purpose}".strip()
        yield Passage("purpose", spec, None, None, text)
    for requirement in spec.spec.requirements:
        text = requirement.name
        if requirement.renamed_from:
            text += f"\n{requirement.renamed_from}"
        text += f"\n{requirement.text}"
        text = text.strip()
        yield Passage("requirement", spec, requirement, None, text)
        for scenario in requirement.scenarios:
            name = f"{requirement.name}: {scenario.name}"
            steps = [f"{step.keyword} {step.text}" for step in scenario.steps]
            text = "\n".join((name, "\n".join(steps), scenario.text)).strip()
            yield Passage("scenario", spec, requirement, scenario, text)


def split_words(text: str) -> list[str]:
    """Return a text's words for comparison: in lower case, stemmed, identifiers whole and in parts."""
    words: list[str] = []
    for whole in _WORD.findall(text):
        if whole.isascii():
            for part in parts(whole.encode()):
                words.append(_stem(part.decode()))
        else:
            words.append(_stem(whole.casefold()))
    return words


def _stem(word: str) -> str:
    """Return a word without the endings of plurals and verbs: files, filed and filing equal file."""
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if len(stem) >= SHORTEST_STEM:
            word = stem
    return word


def score_words(wanted: Counter[str], texts: Sequence[list[str]]) -> list[float]:
    """Return the word score of each text, from 0 to 1."""
    if not texts:
        return []
    counts = list(map(Counter, texts))
    length = sum(map(len, texts))
    average = length / len(texts)
    if average == 0:
        average = 1.0
    weights = {}
    for word in wanted:
        having = sum(word in text for text in counts)
        lacking = len(texts) - having
        # BM25's idf, over the passages of this project only.
        ratio = (lacking + 0.5) / (having + 0.5)
        weights[word] = math.log(1 + ratio)
    total = sum(weights.values()) or 1.0
    scores = []
    for text, words in zip(counts, texts, strict=True):
        relative_length = len(words) / average
        damping = SATURATION * (1 - LENGTH + LENGTH * relative_length)
        score = 0.0
        for word, weight in weights.items():
            count = text[word]
            share = count * (SATURATION + 1) / (count + damping)
            score += weight * min(1.0, share)
        scores.append(score / total)
    return scores


def make_snippet(text: str, wanted: Iterable[str]) -> str:
    """Return the part of a passage with the most wanted words, on one line."""
    lines: list[str] = []
    for line in text.split("\n"):
        if shown := line.strip():
            lines.append(shown)
    whole = " ".join(lines)
    if len(whole) <= SNIPPET:
        return whole
    words = set(wanted)
    # Among lines with equally many words, the first.
    best = 0
    most = -1
    for at, line in enumerate(lines):
        count = len(words.intersection(split_words(line)))
        if count > most:
            best = at
            most = count
    part = " ".join(lines[best:])
    if len(part) <= SNIPPET:
        return part
    cut = part[:SNIPPET]
    return cut.rsplit(" ", 1)[0] + " …"


def _pick_best(scores: Iterable[tuple[Passage, float]]) -> list[Candidate]:
    """Keep the best passage of each requirement; a purpose goes with the best requirement of its specification."""
    best: dict[tuple[str, int], Candidate] = {}
    purposes: list[Candidate] = []
    for passage, score in scores:
        requirement = passage.requirement
        candidate = Candidate(passage, requirement, score)
        if requirement is None:
            purposes.append(candidate)
            continue
        key = (passage.spec.id, requirement.line)
        current = best.get(key)
        if current is None or score > current.score:
            best[key] = candidate
    tops: dict[str, tuple[str, int]] = {}
    for key, candidate in best.items():
        spec, _ = key
        top = tops.get(spec)
        if top is None or candidate.score > best[top].score:
            tops[spec] = key
    for purpose in purposes:
        spec = purpose.passage.spec.id
        top = tops.get(spec, (spec, 0))
        current = best.get(top)
        if current is None:
            best[top] = purpose
        elif purpose.score > current.score:
            best[top] = purpose._replace(requirement=current.requirement)
    return list(best.values())
