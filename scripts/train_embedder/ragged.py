"""Lists of lists of numbers as two arrays, so that millions fit into memory and can be sampled at once."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Ragged(NamedTuple):
    """Row ``i`` is ``values[bounds[i]:bounds[i + 1]]``."""

    values: npt.NDArray[np.int32]
    bounds: Ints

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> Self:
        """Collect lists."""
        kept = [np.fromiter(row, np.int32) for row in rows]
        bounds = np.zeros(len(kept) + 1, np.int64)
        np.cumsum([len(row) for row in kept], out=bounds[1:])
        return cls(np.concatenate([*kept, np.empty(0, np.int32)]), bounds)

    @property
    def lengths(self) -> Ints:
        """The length of each row."""
        return np.diff(self.bounds)

    def places(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the positions of the values of some rows, row by row, and the place in ``rows`` of each."""
        lengths = self.bounds[rows + 1] - self.bounds[rows]
        owners = np.repeat(np.arange(len(rows)), lengths)
        starts = self.bounds[rows] - np.concatenate(
            [[0], np.cumsum(lengths)[:-1]]
        ).astype(np.int64)
        return np.arange(len(owners)) + starts[owners], owners

    def take(self, rows: Ints) -> Self:
        """Return some rows, in their order."""
        places, _ = self.places(rows)
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.lengths[rows], out=bounds[1:])
        return type(self)(self.values[places], bounds)
