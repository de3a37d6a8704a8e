"""Specifications by meaning: purposes, requirements and scenarios near to a question, by vectors and by words.

Vectors find the same in other words, words find names; a passage's score is both mixed, each from 0 to 1. A question's
words count by their rarity (BM25's idf), as a share of all there are in it: unlike BM25's own sum, that has a meaning
by itself, so it can be compared with a threshold.
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

from flashgrep.embed.interface import Embedder
from flashgrep.index.word_impacts import parts
from flashgrep.specs.spec import Requirement, Scenario
from flashgrep.specs.spec_repository import ProjectSpec

MEANING: Final = 0.6
"""Share of the vectors in a score; the words have the rest."""
SATURATION: Final = 1.2
LENGTH: Final = 0.5
"""BM25's k1 and b; long passages are scenarios spelled out, which deserve less of a penalty than 0.75."""
SHORTEST_STEM: Final = 3
SNIPPET: Final = 240
"""Characters of a passage that are shown."""

_WORD = re.compile(r"\w+")
_ENDINGS = ("s", "ing", "ed", "e")

Kind = Literal["purpose", "requirement", "scenario"]
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a specification that can be found by itself."""

    kind: Kind
    spec: ProjectSpec
    requirement: Requirement | None
    scenario: Scenario | None
    text: str

    @property
    def line(self) -> int:
        """Where it begins."""
        part = self.scenario or self.requirement
        return self.spec.spec.purpose_line if part is None else part.line


@dataclass(frozen=True, slots=True)
class SpecMatch:
    """A requirement that answers a question, and the passage that says so; ``score`` from 0 to 1."""

    passage: Passage
    requirement: Requirement | None
    score: float
    snippet: str


class SpecVectors:
    """The vectors of the texts asked for last, by model and content; safe from any thread.

    A text is embedded once, and its vector is dropped when it is asked for no more.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, bytes], NDArray[np.float32]] = {}
        self._open: tuple[str, Embedder] | None = None

    def embedder(self, settings: str, open_embedder: Callable[[str], Embedder]) -> Embedder:
        """Return the embedder of these settings, opened only if it is not the last one: some ask a server first."""
        if self._open is None or self._open[0] != settings:
            self._open = (settings, open_embedder(settings))
        return self._open[1]

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Rows:
        """Return a row for each text, embedding only those that are new."""
        if not texts:
            return np.zeros((0, embedder.dims), np.float32)
        keys = [(embedder.name, hashlib.blake2b(text.encode(), digest_size=16).digest()) for text in texts]
        rows = self._rows
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        fresh = dict(zip(missing, embedder.embed_code(list(missing.values())), strict=True)) if missing else {}
        # Only what is asked for now is kept: texts that were edited are never asked for again.
        rows = {key: fresh[key] if key in fresh else rows[key] for key in keys}
        self._rows = rows  # at once, as a whole: another thread reads either the old rows or these
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
    """Return the requirements nearest to a question, best first, each with its best passage.

    A purpose that fits stands for its specification: it is shown with the requirement there that fits best. Without
    an embedder, words alone decide.

    Raises:
        ProviderUnavailable: the embedder is not at hand.

    """
    passages = [passage for spec in specs for passage in split_passages(spec)]
    wanted = Counter(split_words(query))
    scores = score_words(wanted, [split_words(passage.text) for passage in passages])
    if embedder is not None and passages:
        rows = vectors.embed(embedder, [passage.text for passage in passages])
        near = [embedder.confidence(float(cosine)) for cosine in rows @ embedder.embed_queries([query])[0]]
        scores = [MEANING * one + (1 - MEANING) * other for one, other in zip(near, scores, strict=True)]
    best = _pick_best(zip(passages, scores, strict=True))
    best.sort(key=lambda one: (-one[2], one[0].spec.id, one[0].line))
    return [
        SpecMatch(passage, requirement, round(score, 4), make_snippet(passage.text, wanted))
        for passage, requirement, score in best[:limit]
        if round(score, 4) >= threshold
    ]


def split_passages(spec: ProjectSpec) -> Iterator[Passage]:
    """Yield what of a specification can be found; a name is before what it names."""
    purpose = spec.spec.purpose or ""
    if spec.spec.title or purpose:
        yield Passage("purpose", spec, None, None, f"{spec.title}\n{purpose}".strip())
    for requirement in spec.spec.requirements:
        renamed = f"\n{requirement.renamed_from}" if requirement.renamed_from else ""
        text = f"{requirement.name}{renamed}\n{requirement.text}".strip()
        yield Passage("requirement", spec, requirement, None, text)
        for scenario in requirement.scenarios:
            steps = "\n".join(f"{step.keyword} {step.text}" for step in scenario.steps)
            text = f"{requirement.name}: {scenario.name}\n{steps}\n{scenario.text}".strip()
            yield Passage("scenario", spec, requirement, scenario, text)


def split_words(text: str) -> list[str]:
    """Return a text's words as they are compared: in lower case, without endings, names whole and in parts."""
    words: list[str] = []
    for whole in _WORD.findall(text):
        pieces = [part.decode() for part in parts(whole.encode())] if whole.isascii() else [whole.casefold()]
        for word in pieces:
            stem = word  # without a plural's or verb's ending: files, filed and filing are as file
            for ending in _ENDINGS:
                if stem.endswith(ending) and len(stem) - len(ending) >= SHORTEST_STEM:
                    stem = stem[: -len(ending)]
            words.append(stem)
    return words


def score_words(wanted: Counter[str], texts: Sequence[list[str]]) -> list[float]:
    """Return for each text how much it has of what is wanted, from 0 to 1."""
    counts = [Counter(text) for text in texts]
    average = sum(len(text) for text in texts) / len(texts) if texts else 1.0
    weights = {}
    for word in wanted:
        having = sum(word in text for text in counts)
        # BM25's, over the passages of this project alone.
        weights[word] = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    total = sum(weights.values()) or 1.0
    scores = []
    for text, words in zip(counts, texts, strict=True):
        damping = SATURATION * (1 - LENGTH + LENGTH * len(words) / (average or 1.0))
        shares = (min(1.0, text[word] * (SATURATION + 1) / (text[word] + damping)) for word in weights)
        scores.append(sum(weight * share for weight, share in zip(weights.values(), shares, strict=True)) / total)
    return scores


def make_snippet(text: str, wanted: Iterable[str]) -> str:
    """Return the part of a passage that has most of what is wanted, on one line."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    whole = " ".join(lines)
    if len(whole) <= SNIPPET:
        return whole
    words = set(wanted)
    # Of lines that have as many words the first.
    best = max(range(len(lines)), key=lambda at: (len(words.intersection(split_words(lines[at]))), -at))
    part = " ".join(lines[best:])
    return part if len(part) <= SNIPPET else part[:SNIPPET].rsplit(" ", 1)[0] + " …"


def _pick_best(scores: Iterable[tuple[Passage, float]]) -> list[tuple[Passage, Requirement | None, float]]:
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
    for key, one in best.items():
        if key[0] not in tops or one[2] > best[tops[key[0]]][2]:
            tops[key[0]] = key
    for passage, score in purposes:
        top = tops.get(passage.spec.id, (passage.spec.id, 0))
        if top not in best:
            best[top] = (passage, None, score)
        elif score > best[top][2]:
            best[top] = (passage, best[top][1], score)
    return list(best.values())
