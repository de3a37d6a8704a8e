"""From a cosine to a confidence that means the same for every model.

Models differ in what a cosine says: 0.3 is close for one and noise for another. So a cosine is placed among those of
questions and texts that have nothing to do with each other: 0.5 is the cosine that one unrelated pair in ten reaches,
0.7 one in a hundred, 0.8 one in a thousand, 1.0 is identity; between those it grows evenly with the cosine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashgrep.embed.vectors import Vectors

Floats = npt.NDArray[np.float64]
Quantiles = Sequence[tuple[float, float]]
"""(probability, cosine not exceeded by that share of unrelated pairs), both ascending."""

ANCHORS = ((0.0, 0.0), (0.5, 0.25), (0.9, 0.5), (0.99, 0.7), (0.999, 0.8))
"""(share of unrelated pairs below, confidence)."""

TYPICAL: Quantiles = ((0.0, 0.0), (0.5, 0.3), (0.9, 0.42), (0.99, 0.55), (0.999, 0.65))
"""Assumed, not measured: where models for text in general have unrelated pairs. It serves until ``measured`` does."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A non-decreasing map from a cosine to 0-1."""

    cosines: tuple[float, ...]

    @classmethod
    def of(cls, quantiles: Quantiles) -> "Scale":
        """Read a scale off a model's quantiles."""
        table = np.asarray(quantiles, np.float64)
        return cls._at(np.interp([share for share, _ in ANCHORS], table[:, 0], table[:, 1]))

    @classmethod
    def measured(cls, cosines: npt.ArrayLike) -> "Scale":
        """Read a scale off the cosines of unrelated pairs; some thousand are needed to place the last anchors well."""
        return cls._at(np.quantile(np.asarray(cosines, np.float64), [share for share, _ in ANCHORS]))

    @classmethod
    def _at(cls, cosines: Floats) -> "Scale":
        return cls(tuple(np.maximum.accumulate(np.clip(cosines, -1.0, 1.0)).tolist()))

    def confidence(self, similarity: float) -> float:
        """Return 0-1 for a cosine; 1.0 at 1 and above."""
        levels = [level for _, level in ANCHORS]
        return float(np.interp(similarity, [*self.cosines, 1.0], [*levels, 1.0]))


ASSUMED = Scale.of(TYPICAL)


def unrelated(queries: Vectors, texts: Vectors) -> Floats:
    """Return the cosines of every question with every text that is not its own: row i of both belongs together."""
    cosines = (queries @ texts.T).astype(np.float64)
    rows, columns = np.indices(cosines.shape)
    apart: Floats = cosines[rows != columns]
    return apart
