"""Figures of a ranking, and means of many."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

DEPTH: Final = 10
BYTES_A_TOKEN: Final = 4
DRAWS: Final = 2000
"""Samples of the bootstrap: its bounds move by less than 0.002 from one seed to another."""


class Figures(NamedTuple):
    """The quality of a ranking: NDCG@10, reciprocal rank, recall@10, and tokens read until the first answer."""

    ndcg: float
    reciprocal: float
    recall: float
    tokens: float


def figures(ranking: Sequence[str], wanted: Collection[str], read: int = 0) -> Figures:
    """Judge a ranking of distinct names, best first; ``read``: bytes of answers up to the first wanted one."""
    places = [place for place, name in enumerate(ranking) if name in wanted]
    near = [place for place in places if place < DEPTH]
    ideal = sum(_gain(place) for place in range(min(DEPTH, len(wanted))))
    return Figures(
        ndcg=sum(map(_gain, near)) / ideal,
        reciprocal=1 / (places[0] + 1) if places else 0.0,
        recall=len(near) / len(wanted),
        tokens=read / BYTES_A_TOKEN,
    )


def mean(rows: Iterable[Figures]) -> Figures:
    """Return the mean of each figure."""
    columns = list(zip(*rows, strict=True))
    return Figures(*(sum(column) / len(column) for column in columns))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean (Efron's bootstrap, 1979).

    For the differences between two ways, by question, it shows whether one is significantly better.
    """
    draws = np.random.default_rng(1).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(
        np.array(values)[draws].mean(axis=1), (0.025, 0.975)
    ).tolist()
    return low, high


def distinct(names: Iterable[str]) -> list[str]:
    """Return names without duplicates, in order of first occurrence."""
    return list(dict.fromkeys(names))


def _gain(place: int) -> float:
    return 1 / math.log2(place + 2)
