"""Measures finding functions by documentation sentences in held-out packages: BM25, the model, and both."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.parts.meaning.embed.interface import Embedder

BEST: Final = 10
LEXICAL, DENSE = 0.4, 0.6
"""Weights of the mix; each side is divided by its largest score."""
K1, B = 1.2, 0.75
MOST_QUESTIONS: Final = 300
"""Most questions per package, evenly spread."""

Scores = npt.NDArray[np.float32]


class Held(NamedTuple):
    """The functions of a held-out package; some of their sentences are the questions."""

    name: str
    language: str
    code: list[str]
    questions: list[str]
    targets: list[int]


class Figures(NamedTuple):
    """NDCG@10 of one package, with one right answer per question."""

    name: str
    language: str
    functions: int
    questions: int
    lexical: float
    dense: float
    hybrid: float


def held_rows(path: Path) -> Held:
    """Return a package's functions; a name at the start of a question, as in Go, is removed."""
    rows = [row for row in map(json.loads, path.open()) if row["sort"] != "window"]
    asked = [
        number
        for number, row in enumerate(rows)
        if row["q"] and len(_question(row).split()) > 2  # noqa: PLR2004
    ]
    once = Counter(_question(rows[number]) for number in asked)
    targets = [number for number in asked if once[_question(rows[number])] == 1]
    targets = targets[:: max(1, math.ceil(len(targets) / MOST_QUESTIONS))]
    language = Counter(row["language"] for row in rows).most_common(1)[0][0]
    return Held(
        path.stem,
        language,
        [row["c"] for row in rows],
        [_question(rows[n]) for n in targets],
        targets,
    )


def _question(row: dict[str, str]) -> str:
    name = row["n"] + " "
    question: str = row["q"]
    return question.removeprefix(name) if len(name) > 1 else question


def measure(held: Held, embedder: Embedder) -> Figures:
    """Return a package's figures."""
    lexical = bm25(held.code, held.questions)
    dense = np.maximum(
        embedder.embed_queries(held.questions) @ embedder.embed_code(held.code).T, 0
    )
    mixed = LEXICAL * _scaled(lexical) + DENSE * _scaled(dense)
    told = _told(held)
    figures = (
        ndcg(np.where(told, -1, scores), held.targets)
        for scores in (lexical, dense, mixed)
    )
    return Figures(
        held.name, held.language, len(held.code), len(held.questions), *figures
    )


def _told(held: Held) -> npt.NDArray[np.bool_]:
    """Return which code contains a question verbatim: a class with its methods counts neither as right nor as wrong."""
    code = [f" {each} " for each in held.code]
    told = np.array(
        [[f" {question} " in each for each in code] for question in held.questions]
    )
    told[np.arange(len(held.targets)), held.targets] = False
    return told


def _scaled(scores: Scores) -> Scores:
    scaled: Scores = scores / np.maximum(scores.max(1, keepdims=True), 1e-9)
    return scaled


def ndcg(scores: Scores, targets: list[int]) -> float:
    """Return the mean of 1 / log2(1 + rank) of the right answers among the first ten; ties count as worse ranks."""
    own = scores[np.arange(len(targets)), targets]
    ranks = (scores >= own[:, None]).sum(1)
    return float(np.where(ranks <= BEST, 1 / np.log2(1 + ranks), 0).mean())


def bm25(texts: list[str], questions: list[str]) -> Scores:
    """Return the score of every text for every question; both are sub-words joined by spaces."""
    counts = [Counter(text.split()) for text in texts]
    lengths = np.array([count.total() for count in counts], np.float32)
    shorten = K1 * (1 - B + B * lengths / lengths.mean())
    asked = {word for question in questions for word in question.split()}
    found = {word: _postings(counts, word) for word in asked}
    scores = np.zeros((len(questions), len(texts)), np.float32)
    for row, question in enumerate(questions):
        for word in set(question.split()):
            places, often = found[word]
            rarity = math.log(
                1 + (len(texts) - len(places) + 0.5) / (len(places) + 0.5)
            )
            scores[row, places] += rarity * often * (K1 + 1) / (often + shorten[places])
    return scores


def _postings(
    counts: list[Counter[str]], word: str
) -> tuple[npt.NDArray[np.int64], Scores]:
    places = [number for number, count in enumerate(counts) if word in count]
    return np.array(places, np.int64), np.array(
        [counts[place][word] for place in places], np.float32
    )


def report(figures: list[Figures]) -> Iterator[str]:
    """Yield a Markdown table: a line per package, and the mean over languages."""
    yield "| package | language | functions | questions | BM25 | model | hybrid |"
    yield "|---|---|---|---|---|---|---|"
    for each in sorted(figures, key=lambda each: (each.language, each.name)):
        yield _line(
            each.name, each.language, str(each.functions), str(each.questions), each[4:]
        )
    languages = sorted({each.language for each in figures})
    means = [
        np.mean([each[4:] for each in figures if each.language == language], axis=0)
        for language in languages
    ]
    yield _line(
        "mean of languages",
        str(len(languages)),
        "",
        "",
        tuple(np.mean(means, axis=0).tolist()),
    )


def _line(
    name: str, language: str, functions: str, questions: str, values: tuple[float, ...]
) -> str:
    return (
        f"| {name} | {language} | {functions} | {questions} | "
        + " | ".join(f"{v:.3f}" for v in values)
        + " |"
    )
