"""Specifications by meaning: purposes, requirements and scenarios near to a question, by vectors and by words.

Vectors find what is said in other words, words find names; a passage's score is both mixed, each from 0 to 1. A
question's words count by their rarity (BM25's idf), as a share of all there are in it: unlike BM25's own sum, that has
a meaning by itself, so a threshold can be told.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from flashgrep.embed.interface import Embedder
from flashgrep.index.words import parts
from flashgrep.specs.model import Requirement, Scenario
from flashgrep.specs.shelf import Shelved
from flashgrep.specs.vectors import SpecVectors

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


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a specification that can be found by itself."""

    kind: Kind
    spec: Shelved
    requirement: Requirement | None
    scenario: Scenario | None
    text: str

    @property
    def line(self) -> int:
        """Where it begins."""
        named = self.scenario or self.requirement
        return self.spec.spec.purpose_line if named is None else named.line


Scored = tuple[Passage, Requirement | None, float]


@dataclass(frozen=True, slots=True)
class Found:
    """A requirement that answers a question, and the passage that says so; ``score`` from 0 to 1."""

    passage: Passage
    requirement: Requirement | None
    score: float
    snippet: str


def search(
    specs: Sequence[Shelved],
    query: str,
    *,
    embedder: Embedder | None,
    vectors: SpecVectors,
    limit: int,
    threshold: float,
) -> list[Found]:
    """Return the requirements nearest to a question, best first, each with its best passage.

    A purpose that fits stands for its specification: it is shown with the requirement there that fits best. Without
    an embedder, words alone decide.

    Raises:
        ProviderUnavailable: the embedder is not at hand.

    """
    passages = [passage for spec in specs for passage in passages_of(spec)]
    wanted = Counter(words_of(query))
    scores = word_scores(wanted, [words_of(passage.text) for passage in passages])
    if embedder is not None:
        by_meaning = _meaning_scores(query, passages, embedder, vectors)
        scores = [MEANING * near + (1 - MEANING) * said for near, said in zip(by_meaning, scores, strict=True)]
    best = _best_of_each(zip(passages, scores, strict=True))
    best.sort(key=lambda one: (-one[2], one[0].spec.id, one[0].line))
    return [
        Found(passage, requirement, round(score, 4), snippet_of(passage.text, wanted))
        for passage, requirement, score in best[:limit]
        if round(score, 4) >= threshold
    ]


def passages_of(spec: Shelved) -> Iterator[Passage]:
    """Yield what of a specification can be found; a name stands before what it names."""
    purpose = spec.spec.purpose or ""
    if spec.spec.title or purpose:
        yield Passage("purpose", spec, None, None, f"{spec.title}\n{purpose}".strip())
    for requirement in spec.spec.requirements:
        renamed = f"\n{requirement.renamed_from}" if requirement.renamed_from else ""
        yield Passage(
            "requirement", spec, requirement, None, f"{requirement.name}{renamed}\n{requirement.text}".strip()
        )
        for scenario in requirement.scenarios:
            steps = "\n".join(f"{step.keyword} {step.text}" for step in scenario.steps)
            text = f"{requirement.name}: {scenario.name}\n{steps}\n{scenario.text}".strip()
            yield Passage("scenario", spec, requirement, scenario, text)


def words_of(text: str) -> list[str]:
    """Return a text's words as they are compared: in lower case, without endings, names whole and in parts."""
    found: list[str] = []
    for word in _WORD.findall(text):
        pieces = [part.decode() for part in parts(word.encode())] if word.isascii() else [word.casefold()]
        found += [_stem(piece) for piece in pieces]
    return found


def word_scores(wanted: Counter[str], texts: Sequence[list[str]]) -> list[float]:
    """Return for each text how much of what is wanted it says, from 0 to 1."""
    counted = [Counter(text) for text in texts]
    average = sum(len(text) for text in texts) / len(texts) if texts else 1.0
    weights = {word: _rarity(sum(word in text for text in counted), len(texts)) for word in wanted}
    total = sum(weights.values()) or 1.0
    return [
        _said(weights, text, len(words) / (average or 1.0)) / total for text, words in zip(counted, texts, strict=True)
    ]


def snippet_of(text: str, wanted: Iterable[str]) -> str:
    """Return the part of a passage that says most of what is wanted, on one line."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    whole = " ".join(lines)
    if len(whole) <= SNIPPET:
        return whole
    words = set(wanted)
    best = max(range(len(lines)), key=lambda at: (len(words.intersection(words_of(lines[at]))), -at))
    shown = " ".join(lines[best:])
    return shown if len(shown) <= SNIPPET else shown[:SNIPPET].rsplit(" ", 1)[0] + " …"


def _stem(word: str) -> str:
    """Return a word without a plural's or verb's ending: files, filed and filing are as file."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            word = word[: -len(ending)]
    return word


def _rarity(texts_with: int, texts: int) -> float:
    return math.log(1 + (texts - texts_with + 0.5) / (texts_with + 0.5))


def _said(weights: dict[str, float], text: Counter[str], length: float) -> float:
    damping = SATURATION * (1 - LENGTH + LENGTH * length)
    return sum(
        weight * min(1.0, text[word] * (SATURATION + 1) / (text[word] + damping)) for word, weight in weights.items()
    )


def _meaning_scores(query: str, passages: Sequence[Passage], embedder: Embedder, vectors: SpecVectors) -> list[float]:
    if not passages:
        return []
    rows = vectors.of(embedder, [passage.text for passage in passages])
    similar = rows @ embedder.embed_queries([query])[0]
    return [embedder.confidence(float(cosine)) for cosine in similar]


def _best_of_each(scored: Iterable[tuple[Passage, float]]) -> list[Scored]:
    """Keep the best passage of each requirement; a purpose goes with the best requirement of its specification."""
    best: dict[tuple[str, int], Scored] = {}
    purposes: list[tuple[Passage, float]] = []
    for passage, score in scored:
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
