"""The mean of several trained tables: their errors on rare words differ, and partly cancel.

Separately trained tables may differ by a rotation, so each is rotated onto the first (orthogonal Procrustes;
Schoenemann, 1966) before rows are averaged ("model soups": Wortsman et al., 2022).
"""

from collections.abc import Sequence

import numpy as np

from scripts.train_embedder.export import Floats, Model


def blend(models: Sequence[Model]) -> Model:
    """Return the mean of tables over the words of the first; words may be missing in others."""
    first = models[0]
    rows = np.zeros_like(first.table)
    sides = np.zeros((2, len(first.words)), np.float32)
    seen = np.zeros(len(first.words), np.float32)
    for model in models:
        numbers = {word: number for number, word in enumerate(model.words)}
        places = np.array(
            [place for place, word in enumerate(first.words) if word in numbers]
        )
        own = np.array([numbers[first.words[place]] for place in places])
        rows[places] += model.table[own] @ _turn(model.table[own], first.table[places])
        for side, weights in zip(
            sides, (model.code_weights, model.query_weights), strict=True
        ):
            side[places] += np.log(np.maximum(weights[own] / np.median(weights), 1e-4))
        seen[places] += 1
    lengths = np.linalg.norm(rows, axis=1)
    code, query = np.exp(sides / seen) * lengths / seen
    return Model(first.words, rows / np.maximum(lengths, 1e-9)[:, None], code, query)


def _turn(rows: Floats, onto: Floats) -> Floats:
    left, _, right = np.linalg.svd(rows.T @ onto)
    turn: Floats = left @ right
    return turn
