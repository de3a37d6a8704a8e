"""The shipped form of the trained table: int8 rows, a float16 scale per row and side, no pickle."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.parts.meaning.embed.static import FORMAT, StaticEmbedder, load

Floats = npt.NDArray[np.float32]

PROBABILITIES: Final = (
    0.0,
    0.01,
    0.05,
    *np.arange(0.1, 0.9, 0.1).tolist(),
    0.9,
    0.95,
    0.98,
    0.99,
    0.995,
    0.998,
    0.999,
)
"""The shipped quantiles of unrelated pairs."""
MOST_BYTES: Final = 12_000_000


class Model(NamedTuple):
    """A table and its weights, as trained."""

    words: list[str]
    table: Floats
    code_weights: Floats
    query_weights: Floats

    def save(self, path: Path) -> None:
        """Save it in full precision."""
        np.savez(
            path,
            words=np.array(self.words),
            **{name: getattr(self, name) for name in self._fields[1:]},
        )

    @classmethod
    def read(cls, path: Path) -> "Model":
        """Load a saved model."""
        with np.load(path) as data:
            return cls(
                data["words"].tolist(), *(data[name] for name in cls._fields[1:])
            )

    @classmethod
    def shipped(cls, path: Path) -> "Model":
        """Return the table of a shipped file, with unit rows."""
        embedder = load(path)
        table = embedder.table.astype(np.float32)
        lengths = np.maximum(np.linalg.norm(table, axis=1), 1e-9)
        words = [word.decode() for word in embedder.vocabulary.known]
        sides = (
            weights * lengths
            for weights in (embedder.code_weights, embedder.query_weights)
        )
        return cls(words, table / lengths[:, None], *sides)


def write(model: Model, quantiles: Floats, path: Path) -> None:
    """Write the shipped layout, described in ``flashgrep.parts.meaning.embed.static``.

    Raises:
        ValueError: the file is too large for a wheel.

    """
    largest = np.maximum(np.abs(model.table).max(1), 1e-12)
    rounded = np.clip(np.rint(model.table / largest[:, None] * 127), -127, 127).astype(
        np.int8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        format=np.int32(FORMAT),
        tokens=np.frombuffer("\n".join(model.words).encode(), np.uint8),
        table=rounded,
        scale=(largest / 127 * model.code_weights).astype(np.float16),
        qscale=(largest / 127 * model.query_weights).astype(np.float16),
        quantiles=quantiles.astype(np.float32),
    )
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes")


def calibrated(
    model: Model, questions: list[str], code: list[str], path: Path
) -> StaticEmbedder:
    """Write a model with the quantiles of unrelated pairs: question i and code j, for i other than j."""
    write(model, np.array([(0.0, 0.0), (1.0, 1.0)], np.float32), path)
    load.cache_clear()
    embedder = load(path)
    cosines = embedder.embed_queries(questions) @ embedder.embed_code(code).T
    apart = cosines[~np.eye(*cosines.shape, dtype=np.bool_)]
    quantiles = np.stack(
        [np.array(PROBABILITIES), np.quantile(apart, PROBABILITIES)], axis=1
    )
    write(model, quantiles.astype(np.float32), path)
    load.cache_clear()
    return load(path)
