"""A small model file of the embedded default's layout, made by the tests."""

from pathlib import Path
from typing import Any

import numpy as np

WORDS = [
    *(
        "get",
        "http",
        "response",
        "parse",
        "config",
        "file",
        "user",
        "name",
        "read",
        "write",
        "token",
        "con",
        "fig",
    ),
    *(
        "re",
        "ad",
        "er",
        "ing",
        "pars",
        "the",
        "of",
        "where",
        "is",
        "v",
        "2",
        "42",
        "x",
        "un",
        "known",
        "data",
        "base",
    ),
]
DIMS = 16
QUANTILES = [
    (0.0, -0.4),
    (0.5, 0.05),
    (0.9, 0.2),
    (0.99, 0.4),
    (0.999, 0.55),
    (1.0, 0.7),
]


def write_model(path: Path, **changed: object) -> Path:
    """Write a model of random rows; ``changed`` replaces arrays of the file, ``None`` leaves one out."""
    rng = np.random.default_rng(7)
    arrays: dict[str, object] = {
        "tokens": np.frombuffer("\n".join(WORDS).encode(), np.uint8),
        "table": rng.integers(-127, 128, (len(WORDS), DIMS)).astype(np.int8),
        "scale": rng.uniform(0.001, 0.02, len(WORDS)).astype(np.float16),
        "qscale": rng.uniform(0.001, 0.02, len(WORDS)).astype(np.float16),
        "quantiles": np.array(QUANTILES, np.float32),
        "format": np.int64(1),
    }
    arrays.update(changed)
    kept: dict[str, Any] = {
        name: np.asarray(array) for name, array in arrays.items() if array is not None
    }
    np.savez_compressed(path, **kept)
    return path
