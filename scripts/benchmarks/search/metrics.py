"""Figures of one ranking, and means of many."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

DEPTH: Final = 10
BYTES_A_TOKEN: Final = 4


class Figures(NamedTuple):
    """How good a ranking is: NDCG@10, reciprocal rank, recall@10, and tokens read until the first answer."""

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


def distinct(names: Iterable[str]) -> list[str]:
    """Return names without repeats, in the order they came first."""
    return list(dict.fromkeys(names))


def _gain(place: int) -> float:
    return 1 / math.log2(place + 2)
