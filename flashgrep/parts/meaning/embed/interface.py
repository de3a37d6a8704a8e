"""The interface of embedders: texts to unit vectors, and a scale that turns cosines into confidences."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""(n, dims); rows of unit length, or zero for a text without known words."""

Table = npt.NDArray[Any]
"""Rows of any length."""

Role = Literal["query", "document"]

Quantiles = Sequence[tuple[float, float]]
"""(probability, cosine not exceeded by that share of unrelated pairs), both ascending."""

ANCHORS = ((0.0, 0.0), (0.5, 0.25), (0.9, 0.5), (0.99, 0.7), (0.999, 0.8))
"""(share of unrelated pairs below, confidence)."""


class Embedder(Protocol):
    """One model of one provider. Vectors of different names must never be compared."""

    @property
    def name(self) -> str:
        """Provider and model, such as ``ollama:nomic-embed-text``; only vectors of the same name are comparable."""

    @property
    def dims(self) -> int:
        """Width of a vector."""

    @property
    def batch(self) -> int:
        """How many texts to pass in one call."""

    @property
    def max_chars(self) -> int:
        """Longer texts are cut to this many characters."""

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each piece of code or prose to be searched.

        Raises:
            ProviderUnavailable: the provider does not respond, or not correctly.
        """

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each query; raises as ``embed_code``."""

    def confidence(self, similarity: float) -> float:
        """Map the cosine of a query and a text to 0-1, as ``Scale`` describes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A non-decreasing map from a cosine to a confidence in 0-1 that means the same for every model.

    Cosines of different models are not comparable: 0.3 is close for one and noise for another. So confidence is defined
    by the cosines of unrelated queries and texts: 0.5 is the cosine that one unrelated pair in ten reaches, 0.7 one in
    a hundred, 0.8 one in a thousand, and 1.0 is identity, with linear interpolation between them.
    """

    cosines: tuple[float, ...]

    @classmethod
    def of(cls, quantiles: Quantiles) -> "Scale":
        """Return the scale for a model's quantiles."""
        table = np.asarray(quantiles, np.float64)
        anchors = [share for share, _ in ANCHORS]
        shares, quantile_cosines = table.T
        cosines = np.interp(anchors, shares, quantile_cosines)
        cosines = np.clip(cosines, -1.0, 1.0)
        rising = np.maximum.accumulate(cosines)
        return cls(tuple(rising.tolist()))

    def confidence(self, similarity: float) -> float:
        """Return 0-1 for a cosine; 1.0 at 1 and above."""
        levels = [level for _, level in ANCHORS]
        levels.append(1.0)
        cosines = (*self.cosines, 1.0)
        return float(np.interp(similarity, cosines, levels))


ASSUMED = Scale.of(((0.0, 0.0), (0.5, 0.3), (0.9, 0.42), (0.99, 0.55), (0.999, 0.65)))
"""An assumption, not measured: the cosines of unrelated pairs in general text models."""


def normalize(table: Table) -> Vectors:
    """Return rows scaled to unit length; rows of zeros are unchanged."""
    table = table.astype(np.float64)
    largest = np.abs(table).max(
        axis=1, keepdims=True, initial=0
    )  # scale by it first, so that squares stay finite
    table = _divide(table, largest)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    rows: Vectors = _divide(table, lengths).astype(np.float32)
    return rows


def _divide(table: Table, by: Table) -> Table:
    """Return rows divided by a number each; where that is not positive, zeros."""
    quotients = np.zeros_like(table)
    is_divisor = by > 0
    np.divide(table, by, out=quotients, where=is_divisor)
    return quotients


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEmbedder:
    """An embedder made from a function that encodes batches of texts, locally or through an API. Thread-safe."""

    name: str
    dims: int
    encode: Callable[[Sequence[str], Role], Table]
    """Returns a row of any length for each text."""
    batch: int
    """The most texts per call of ``encode``."""
    max_chars: int = 8000
    """Always below the 8,192 tokens that services accept; sentence models use only the first 512 words."""
    batch_chars: int = sys.maxsize
    """The most characters per call of ``encode``, unless a single text has more."""
    scale: Scale = ASSUMED

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        return self._embed(texts, "document")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each query."""
        return self._embed(texts, "query")

    def confidence(self, similarity: float) -> float:
        """Map a cosine to 0-1; most models use the assumed scale."""
        return self.scale.confidence(similarity)

    def _embed(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.zeros(
            (len(texts), self.dims), np.float32
        )  # Blank texts keep a row of zeros.
        for part in self._cut_batches(texts):
            encoded = self.encode(list(part.values()), role)
            places = list(part)
            rows[places] = normalize(encoded)
        return rows

    def _cut_batches(self, texts: Sequence[str]) -> Iterator[dict[int, str]]:
        """Yield the texts that are not blank by their places, as many at a time as one call may have."""
        part: dict[int, str] = {}
        chars = 0
        for place, whole in enumerate(texts):
            text = whole[: self.max_chars]
            if not text.strip():
                continue
            size = chars + len(text)
            is_full = len(part) == self.batch
            if part and size > self.batch_chars:
                is_full = True
            if is_full:
                yield part
                part = {}
                chars = 0
            part[place] = text
            chars += len(text)
        if part:
            yield part
