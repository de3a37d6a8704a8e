"""The table before training: MiniLM's vectors of single words, with higher weights for rare words."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from scripts.train_embedder.minilm import MiniLM, Vectors
from scripts.train_embedder.ragged import Ints

DIMS: Final = 256
WORD_PIECES: Final = 16
RARITY: Final = 1e-4
"""Frequency at which a word's weight is half (smooth inverse frequency; Arora, Liang and Ma, 2017)."""
LIGHTEST: Final = 0.02


def word_vectors(work: Path, words: list[str]) -> Vectors:
    """Return MiniLM's vector of each word; those of an earlier vocabulary are cached."""
    memory = work / "word_vectors.npz"
    known: dict[str, npt.NDArray[np.float16]] = {}
    if memory.exists():
        with np.load(memory) as data:
            known = dict(zip(data["words"].tolist(), data["vectors"], strict=True))
    new = [word for word in words if word not in known]
    if new:
        known.update(
            zip(
                new,
                MiniLM(work, WORD_PIECES).encode(new).astype(np.float16),
                strict=True,
            )
        )
        np.savez(
            memory, words=np.array(list(known)), vectors=np.stack(list(known.values()))
        )
    return np.stack([known[word] for word in words]).astype(np.float32)


def principal(vectors: Vectors, dims: int = DIMS) -> Vectors:
    """Return the vectors projected onto their first principal axes, at unit length."""
    centred = vectors - vectors.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    turned = centred @ axes[:, ::-1][:, :dims]
    rows: Vectors = (
        turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-6)
    ).astype(np.float32)
    return rows


def rarity(rows: Ints) -> Vectors:
    """Return a weight for each word by the number of rows it is in."""
    share = (rows + 1) / (rows + 1).sum()
    weights: Vectors = np.maximum(RARITY / (RARITY + share), LIGHTEST).astype(
        np.float32
    )
    return weights


class Start(NamedTuple):
    """Unit rows, and the weights of both sides."""

    rows: Vectors
    code: Vectors
    query: Vectors


def fresh(vectors: Vectors, rows: Ints) -> Start:
    """Return the start from the teacher's word vectors and the number of rows of each word."""
    weights = rarity(rows)
    return Start(principal(vectors), weights, weights)
