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
from typing import Final, Literal

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


SPEC_VECTORS: Final = ServiceKey["SpecVectors"]("specification vectors")


class SpecVectors(ProjectService):
    """A cache of the vectors of the last search's texts, by model and content; thread-safe.

    A text is embedded once; its vector is dropped when a search no longer has that text.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, bytes], NDArray[np.float32]] = {}
        self._open: tuple[str, Embedder] | None = None

    def embedder(
        self, settings: str, open_embedder: Callable[[str], Embedder]
    ) -> Embedder:
        """Return the embedder of these settings; the last one is kept open, since opening may need a request."""
        if self._open is None or self._open[0] != settings:
            self._open = (settings, open_embedder(settings))
        return self._open[1]

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Rows:
        """Return a row for each text, embedding only new texts."""
        if not texts:
            return np.zeros((0, embedder.dims), np.float32)
        keys = [
            (embedder.name, hashlib.blake2b(text.encode(), digest_size=16).digest())
            for text in texts
        ]
        rows = self._rows
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in rows
        }
        if missing:
            fresh = dict(
                zip(missing, embedder.embed_code(list(missing.values())), strict=True)
            )
        else:
            fresh = {}
        # Keep only the rows of these texts: old versions of edited texts are never
        # needed again.
        rows = {key: fresh[key] if key in fresh else rows[key] for key in keys}
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
    passages = [passage for spec in specs for passage in split_passages(spec)]
    counter = Counter(split_words(query))
    scores = score_words(counter, [split_words(passage.text) for passage in passages])
    if embedder is not None and passages:
        rows = vectors.embed(embedder, [passage.text for passage in passages])
        near = [
            embedder.confidence(float(cosine))
            for cosine in rows @ embedder.embed_queries([query])[0]
        ]
        scores = [
            MEANING * by_meaning + (1 - MEANING) * other
            for by_meaning, other in zip(near, scores, strict=True)
        ]
    best = _pick_best(zip(passages, scores, strict=True))
    best.sort(key=lambda one: (-one[2], one[0].spec.id, one[0].line))
    return [
        SpecMatch(
            passage, requirement, round(score, 4), make_snippet(passage.text, counter)
        )
        for passage, requirement, score in best[:limit]
        if round(score, 4) >= threshold
    ]


def split_passages(spec: ProjectSpec) -> Iterator[Passage]:
    """Yield the passages of a specification; each begins with its name."""
    purpose = spec.spec.purpose or ""
    if spec.spec.title or purpose:
        yield Passage("purpose", spec, None, None, f"{spec.title}\n{purpose}".strip())
    for requirement in spec.spec.requirements:
        if requirement.renamed_from:
            renamed = f"\n{requirement.renamed_from}"
        else:
            renamed = ""
        text = f"{requirement.name}{renamed}\n{requirement.text}".strip()
        yield Passage("requirement", spec, requirement, None, text)
        for scenario in requirement.scenarios:
            steps = "\n".join(f"{step.keyword} {step.text}" for step in scenario.steps)
            text = (
                f"{requirement.name}: {scenario.name}\n{steps}\n{scenario.text}".strip()
            )
            yield Passage("scenario", spec, requirement, scenario, text)


def split_words(text: str) -> list[str]:
    """Return a text's words for comparison: in lower case, stemmed, identifiers whole and in parts."""
    words: list[str] = []
    for whole in _WORD.findall(text):
        if whole.isascii():
            pieces = [part.decode() for part in parts(whole.encode())]
        else:
            pieces = [whole.casefold()]
        for word in pieces:
            stem = word  # without the endings of plurals and verbs: files, filed and filing equal file
            for ending in _ENDINGS:
                if stem.endswith(ending) and len(stem) - len(ending) >= SHORTEST_STEM:
                    stem = stem[: -len(ending)]
            words.append(stem)
    return words


def score_words(wanted: Counter[str], texts: Sequence[list[str]]) -> list[float]:
    """Return the word score of each text, from 0 to 1."""
    counts = [Counter(text) for text in texts]
    if texts:
        average = sum(len(text) for text in texts) / len(texts)
    else:
        average = 1.0
    weights = {}
    for word in wanted:
        having = sum(word in text for text in counts)
        # BM25's idf, over the passages of this project only.
        weights[word] = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    total = sum(weights.values()) or 1.0
    scores = []
    for text, words in zip(counts, texts, strict=True):
        damping = SATURATION * (1 - LENGTH + LENGTH * len(words) / (average or 1.0))
        shares = (
            min(1.0, text[word] * (SATURATION + 1) / (text[word] + damping))
            for word in weights
        )
        scores.append(
            sum(
                weight * share
                for weight, share in zip(weights.values(), shares, strict=True)
            )
            / total
        )
    return scores


def make_snippet(text: str, wanted: Iterable[str]) -> str:
    """Return the part of a passage with the most wanted words, on one line."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    whole = " ".join(lines)
    if len(whole) <= SNIPPET:
        return whole
    words = set(wanted)
    # Among lines with equally many words, the first.
    best = max(
        range(len(lines)),
        key=lambda at: (len(words.intersection(split_words(lines[at]))), -at),
    )
    part = " ".join(lines[best:])
    if len(part) <= SNIPPET:
        return part
    return part[:SNIPPET].rsplit(" ", 1)[0] + " …"


def _pick_best(
    scores: Iterable[tuple[Passage, float]],
) -> list[tuple[Passage, Requirement | None, float]]:
    """Keep the best passage of each requirement; a purpose goes with the best requirement of its specification."""
    best: dict[tuple[str, int], tuple[Passage, Requirement | None, float]] = {}
    purposes: list[tuple[Passage, float]] = []
    for passage, score in scores:
        if passage.requirement is None:
            purposes.append((passage, score))
            continue
        key = (passage.spec.id, passage.requirement.line)
        if key not in best or score > best[key][2]:
            best[key] = (passage, passage.requirement, score)
    tops: dict[str, tuple[str, int]] = {}
    for key, best_of_file in best.items():
        if key[0] not in tops or best_of_file[2] > best[tops[key[0]]][2]:
            tops[key[0]] = key
    for passage, score in purposes:
        top = tops.get(passage.spec.id, (passage.spec.id, 0))
        if top not in best:
            best[top] = (passage, None, score)
        elif score > best[top][2]:
            best[top] = (passage, best[top][1], score)
    return list(best.values())
