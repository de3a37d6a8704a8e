"""Functions found by documentation: the first sentence of a function's comment must find its code."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from flashgrep.parts.meaning.embed import Embedder
from flashgrep.parts.meaning.index.word_impacts import (
    LEVELS,
    Fields,
    impacts_of,
    key_of,
    scores_of,
)
from flashgrep.parts.meaning.search.chunk_index import idf
from flashgrep.parts.meaning.search.fusion import RULES, query_words
from scripts.benchmarks.search.functions import Function, functions
from scripts.benchmarks.search.metrics import Figures, figures, mean
from scripts.benchmarks.search.packages import Package

MOST_FUNCTIONS: Final = 3_000
"""Functions searched per language, sampled with a fixed seed."""
MOST_QUERIES: Final = 400
CANDIDATES: Final = 100


class Sides(NamedTuple):
    """The figures of each side for one pool."""

    functions: int
    queries: int
    words: Figures
    meaning: Figures
    hybrid: Figures


def pool(packages: Iterable[tuple[Package, Path]]) -> list[Function]:
    """Return a sample of functions of packages of one language, identified by their places."""
    found = [
        function._replace(path=f"{package.repository}/{function.path}:{number}")
        for package, root in packages
        for number, function in enumerate(functions(root, package.language))
    ]
    random.Random(5).shuffle(found)  # noqa: S311 - a sample, the same every time
    return found[:MOST_FUNCTIONS]


def measured(found: Sequence[Function], embedder: Embedder) -> Sides:
    """Return the figures of BM25 alone, the model alone, and both mixed with the weight of questions in words."""
    asked = list(_asked(found))
    vectors = embedder.embed_code([function.code for function in found])
    questions = embedder.embed_queries([function.sentence for function in asked])
    index = _Words(found)
    sides: dict[str, list[Figures]] = defaultdict(list)
    for function, question in zip(asked, questions, strict=True):
        words, similar = index.scores(function.sentence), vectors @ question
        near = np.argsort(-similar, kind="stable")[:CANDIDATES].tolist()
        meaning = {found[at].path: max(0.0, float(similar[at])) for at in near}
        for side, scores in (
            ("words", words),
            ("meaning", meaning),
            ("hybrid", mixed(words, meaning)),
        ):
            ranking = [
                path
                for path, _ in sorted(scores.items(), key=lambda row: (-row[1], row[0]))
            ]
            sides[side].append(figures(ranking, [function.path]))
    return Sides(
        len(found),
        len(asked),
        mean(sides["words"]),
        mean(sides["meaning"]),
        mean(sides["hybrid"]),
    )


def mixed(words: dict[str, float], meaning: dict[str, float]) -> dict[str, float]:
    """Return the mix of both sides' scores, each divided by its maximum."""
    weight = RULES.semantic_weight
    most_words, most_meaning = (
        max(words.values(), default=0) or 1.0,
        max(meaning.values(), default=0) or 1.0,
    )
    return {
        path: (1 - weight) * words.get(path, 0) / most_words
        + weight * meaning.get(path, 0) / most_meaning
        for path in words | meaning
    }


def _asked(found: Sequence[Function]) -> Iterator[Function]:
    """Yield functions with a unique sentence, without the function's name if the sentence starts with it."""
    plain = [
        function._replace(sentence=_unnamed(function))
        for function in found
        if function.sentence
    ]
    counts = Counter(function.sentence for function in plain)
    alone = (function for function in plain if counts[function.sentence] == 1)
    yield from list(alone)[:MOST_QUERIES]


def _unnamed(function: Function) -> str:
    return re.sub(rf"^{re.escape(function.name)}(?:\(\))?\s+", "", function.sentence)


class _Words:
    """BM25 over the words of functions."""

    def __init__(self, found: Sequence[Function]) -> None:
        self._paths = [function.path for function in found]
        self._pairs = impacts_of(
            [Fields(b"", b"", function.code.encode()) for function in found]
        )

    def scores(self, sentence: str) -> dict[str, float]:
        weighed = [
            {word: idf(len(self._paths), self._count(word))}
            for word in query_words(sentence)
        ]
        scores = scores_of(self._pairs, weighed, len(self._paths)).bm25
        best = np.argsort(-scores, kind="stable")[:CANDIDATES]
        return {
            self._paths[at]: float(scores[at]) for at in best.tolist() if scores[at] > 0
        }

    def _count(self, word: str) -> int:
        key = key_of(word.encode())
        low, high = np.searchsorted(
            self._pairs, [np.uint64(key << 32), np.uint64((key + LEVELS) << 32)]
        )
        return int(high - low)
