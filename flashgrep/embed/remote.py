"""Embedders behind HTTP: Ollama's own API, and whatever speaks OpenAI's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from flashgrep.embed.endpoint import Endpoint
from flashgrep.embed.scale import ASSUMED, Scale
from flashgrep.embed.vectors import Role, Vectors, portions, prefix, unit

REQUEST_CHARS = 200_000
"""Characters in one request: Voyage takes 120,000 tokens, OpenAI 300,000, and a token of code has 2 to 4 characters."""


class Ask(NamedTuple):
    """What one request is about."""

    model: str
    texts: Sequence[str]
    role: Role
    dims: int
    """Width asked for; 0: the model's own."""


class Dialect(NamedTuple):
    """How an API wants to be asked and how it answers."""

    path: str
    body: Callable[[Ask], dict[str, Any]]
    rows: Callable[[Any], list[tuple[int, Any]]]
    """(place of the text in the request, its vector), from an answer; KeyError or TypeError for another shape."""


def _openai_body(ask: Ask) -> dict[str, Any]:
    width = {"dimensions": ask.dims} if ask.dims else {}
    return {"model": ask.model, "input": list(ask.texts), "encoding_format": "float", **width}


def _voyage_body(ask: Ask) -> dict[str, Any]:
    width = {"output_dimension": ask.dims} if ask.dims else {}
    return {"model": ask.model, "input": list(ask.texts), "input_type": ask.role, "truncation": True, **width}


def _ollama_body(ask: Ask) -> dict[str, Any]:
    width = {"dimensions": ask.dims} if ask.dims else {}
    return {"model": ask.model, "input": list(ask.texts), "truncate": True, **width}


def _openai_rows(answer: Any) -> list[tuple[int, Any]]:
    return [(row["index"], row["embedding"]) for row in answer["data"]]


OPENAI = Dialect("/embeddings", _openai_body, _openai_rows)
VOYAGE = Dialect("/embeddings", _voyage_body, _openai_rows)
OLLAMA = Dialect("/api/embed", _ollama_body, lambda answer: list(enumerate(answer["embeddings"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEmbedder:
    """A model behind an endpoint. Threads may share it."""

    endpoint: Endpoint
    dialect: Dialect
    model: str
    dims: int
    """Width of a vector; 0: not known before ``probed``."""
    asked_dims: int = 0
    batch: int = 32
    max_chars: int = 6000
    scale: Scale = ASSUMED

    @property
    def name(self) -> str:
        """Provider, model, and the width when it was asked for."""
        return f"{self.endpoint.provider}:{self.model}{f':{self.asked_dims}' if self.asked_dims else ''}"

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text; raises ProviderUnavailable."""
        return self._embed(texts, "document", self.endpoint)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question; raises ProviderUnavailable."""
        return self._embed(texts, "query", self.endpoint.hurried())

    def confidence(self, similarity: float) -> float:
        """Map a cosine to 0-1; by assumption until ``with_scale``."""
        return self.scale.confidence(similarity)

    def with_scale(self, scale: Scale) -> Self:
        """Return the same model with another scale."""
        return replace(self, scale=scale)

    def probed(self) -> Self:
        """Return the same model with the width that it answers with; raises ProviderUnavailable."""
        found = self._ask(["def probe(): pass"], "document", self.endpoint.hurried())
        return replace(self, dims=found.shape[1])

    def _embed(self, texts: Sequence[str], role: Role, place: Endpoint) -> Vectors:
        before = prefix(self.model, role)
        rows = np.zeros((len(texts), self.dims), np.float32)
        for part in portions([text[: self.max_chars] for text in texts], self.batch, REQUEST_CHARS):
            rows[list(part)] = self._ask([before + text for text in part.values()], role, place)
        return rows

    def _ask(self, texts: Sequence[str], role: Role, place: Endpoint) -> Vectors:
        answer = place.post(self.dialect.path, self.dialect.body(Ask(self.model, texts, role, self.asked_dims)))
        try:
            rows = self.dialect.rows(answer)
            table = np.array([row for _, row in sorted(rows, key=lambda row: row[0])], np.float64)
        except (KeyError, TypeError, ValueError):
            raise place.failure("its answer has not the shape of embeddings") from None
        if sorted(index for index, _ in rows) != list(range(len(texts))):
            raise place.failure(f"{len(rows)} vectors for {len(texts)} texts, or not one for each")
        if table.ndim != 2 or not table.shape[1]:  # noqa: PLR2004 - a table has rows and columns
            raise place.failure("its answer has not the shape of embeddings")
        wanted = self.dims or table.shape[1]
        if table.shape[1] != wanted:
            raise place.failure(f"vectors of {table.shape[1]} numbers instead of {wanted}")
        if not np.isfinite(table).all():
            raise place.failure("vectors with numbers that are not finite")
        return unit(table)
