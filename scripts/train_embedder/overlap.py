"""Rows of a file with overlapping code: a class and its method, a window and a function inside it.

Neighbours are the hard negatives of a batch, but overlapping pairs are no negatives, so they are removed from the loss.
"""

from typing import Final

import numpy as np

from scripts.train_embedder.clean import shingles
from scripts.train_embedder.ragged import Ints, Ragged

PROBES: Final = 8
"""Shingles of a row that are looked up in its neighbours."""
NEAR: Final = 512
"""Greatest distance of compared rows; the far ends of a longer file do not overlap."""
SHARED: Final = 0.3
"""Share of a row's probes that an overlapping neighbour has."""
COMMONEST: Final = 24
"""Shingles with more occurrences are ignored: licence headers, lists of imports."""


def overlapping(code: Ragged, known: int) -> Ints:
    """Return the pairs (row, row that contains much of its code)."""
    hashes, owners = shingles(code, known)
    order = np.argsort(hashes, kind="stable")
    ascending, holders = hashes[order], owners[order]
    probes, probed = _probes(owners)
    first = np.searchsorted(ascending, hashes[probes], "left")
    counts = np.searchsorted(ascending, hashes[probes], "right") - first
    telling = counts <= COMMONEST
    found = Ragged(np.empty(0, np.int32), np.stack([first, first + counts], 1).ravel())
    places, which = found.places(2 * np.flatnonzero(telling))
    pairs = np.stack([probed[telling][which], holders[places]], 1)
    return _frequent(pairs, np.bincount(probed, minlength=len(code.lengths)))


def _probes(owners: Ints) -> tuple[Ints, Ints]:
    """Return places of up to ``PROBES`` evenly spread shingles of each row, and their rows."""
    rows, starts, counts = np.unique(owners, return_index=True, return_counts=True)
    steps = np.arange(PROBES) / PROBES
    places = np.unique(
        (starts[:, None] + (counts[:, None] * steps).astype(np.int64)).ravel()
    )
    return places, np.repeat(rows, counts)[
        np.searchsorted(np.arange(len(owners)), places)
    ]


def _frequent(pairs: Ints, probes: Ints) -> Ints:
    apart = np.abs(pairs[:, 0] - pairs[:, 1])
    near = pairs[(apart > 0) & (apart < NEAR)]
    keys, shared = np.unique(near[:, 0] * len(probes) + near[:, 1], return_counts=True)
    kept = keys[shared >= np.maximum(1, SHARED * probes[keys // len(probes)])]
    return np.stack([kept // len(probes), kept % len(probes)], 1)
