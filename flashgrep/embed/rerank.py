"""Rerankers: models that read a query and a text together and score how well the text answers the query.

The HTTP API is ``/rerank``, from ``query`` and ``documents`` to ``results`` of ``index`` and ``relevance_score``, in
Jina, Cohere, llama.cpp's server, vLLM and Infinity. Voyage uses ``data`` instead of ``results``; Text Embeddings
Inference uses ``texts``, and returns a bare list of ``index`` and ``score``. A cross-encoder in a folder needs
sentence-transformers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flashgrep.config import Settings
from flashgrep.embed.http_api import QUERY_ATTEMPTS, Endpoint, RetryPolicy, Service
from flashgrep.embed.local import fingerprint, import_library
from flashgrep.errors import ProviderUnavailable

MAX_CHARS = 4000  # of a text; rerankers read 512 to 8,192 tokens of query and text

Scores = npt.NDArray[np.float32]


class Reranker(Protocol):
    """One model; thread-safe."""

    @property
    def name(self) -> str:
        """Provider and model."""

    @property
    def top(self) -> int:
        """How many texts to rerank."""

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return a score in 0-1 for each text, in the order of the texts.

        Raises:
            ProviderUnavailable: the model does not respond, or not correctly.
        """


Body = dict[str, Any]


class _Dialect(NamedTuple):
    service: Service
    model: str
    """The default model; empty: the server has one loaded."""
    body: Callable[[Body, str, list[str]], Body]
    """Returns a request, from the model's name (if there is one), the query and the texts."""
    results: str = "results"
    """The field of the response with the ranking; empty: the response is the ranking."""
    score: str = "relevance_score"


def _cohere_body(model: Body, query: str, texts: list[str]) -> Body:
    return {**model, "query": query, "documents": texts, "top_n": len(texts)}


def _jina_body(model: Body, query: str, texts: list[str]) -> Body:
    return {**_cohere_body(model, query, texts), "return_documents": False}


DIALECTS: Final[Mapping[str, _Dialect]] = {
    "http": _Dialect(Service("", "RERANK_API_KEY"), "", _jina_body),
    "jina": _Dialect(Service("https://api.jina.ai/v1", "JINA_API_KEY"), "jina-reranker-v3", _jina_body),
    "cohere": _Dialect(Service("https://api.cohere.com/v2", "COHERE_API_KEY"), "rerank-v3.5", _cohere_body),
    "voyage": _Dialect(
        Service("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "rerank-2.5",
        lambda model, query, texts: {**model, "query": query, "documents": texts, "truncation": True},
        results="data",
    ),
    "tei": _Dialect(
        Service("", "RERANK_API_KEY"),
        "",
        lambda _, query, texts: {"query": query, "texts": texts, "raw_scores": False, "truncate": True},
        results="",
        score="score",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReranker:
    """A model behind an endpoint."""

    endpoint: Endpoint
    dialect: _Dialect
    model: str
    top: int

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.endpoint.provider}:{self.model or self.endpoint.url}"

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return a score in 0-1 for each text; raises ProviderUnavailable."""
        if not documents:
            return np.zeros(0, np.float32)
        model = {"model": self.model} if self.model else {}
        answer = self.endpoint.request(
            "/rerank", self.dialect.body(model, query, [one[:MAX_CHARS] for one in documents])
        )
        try:
            ranking = answer[self.dialect.results] if self.dialect.results else answer
            found = dict(rows := [(row["index"], float(row[self.dialect.score])) for row in ranking])
            # By index, since a ranking is ordered by score; a missing index raises KeyError.
            scores = np.array([found[place] for place in range(len(documents))], np.float64)
        except (KeyError, TypeError, ValueError):
            raise self.endpoint.failure("the response is not a ranking of all texts") from None
        if len(rows) != len(documents) or not np.isfinite(scores).all():
            raise self.endpoint.failure(f"{len(rows)} scores for {len(documents)} texts, or some that are not finite")
        return _to_levels(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """A sentence-transformers model in this process."""

    name: str
    top: int
    predict: Callable[[list[tuple[str, str]]], Any]

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return a score in 0-1 for each text."""
        if not documents:
            return np.zeros(0, np.float32)
        return _to_levels(np.asarray(self.predict([(query, one[:MAX_CHARS]) for one in documents]), np.float64).ravel())


def open_reranker(settings: Settings, environ: Mapping[str, str]) -> Reranker | None:
    """Open the configured reranker; None if there is none. No request is made yet.

    Raises:
        ProviderUnavailable: it lacks its key, its URL, its folder or its library.
    """
    section = settings.reranking
    if section.provider == "none":
        return None
    if section.provider != "local":
        dialect = DIALECTS[section.provider]
        retries = RetryPolicy(timeout=section.timeout_seconds, attempts=QUERY_ATTEMPTS)
        endpoint = Endpoint.open(section.provider, dialect.service, section.url, environ, retries)
        model = section.model or dialect.model
        return HttpReranker(endpoint=endpoint, dialect=dialect, model=model, top=section.top)
    folder = Path(section.model)
    if not (folder.is_absolute() and (folder / "config.json").is_file()):
        message = f"{section.model or 'reranking.model'}: not the absolute path of a cross-encoder folder"
        raise ProviderUnavailable(message, provider="local")
    transformers = import_library("sentence_transformers", "pip install sentence-transformers")
    encoder = transformers.CrossEncoder(str(folder), local_files_only=True, trust_remote_code=False)
    return CrossEncoder(name=f"local:{fingerprint(folder)}", top=section.top, predict=encoder.predict)


def _to_levels(scores: npt.NDArray[np.float64]) -> Scores:
    """Return scores unchanged if they are in 0-1; otherwise they are logits, so apply the logistic function."""
    if scores.min() < 0 or scores.max() > 1:
        # Clipped so that exp does not overflow; beyond 50 the result is 0 or 1 anyway.
        scores = 1 / (1 + np.exp(-scores.clip(-50, 50)))
    return scores.astype(np.float32)
