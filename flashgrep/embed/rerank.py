"""Rerankers: models that read a question and a text together and say how well the text answers it.

Over HTTP they answer ``/rerank``: ``query`` and ``documents`` to ``results`` of ``index`` and ``relevance_score``, as
Jina, Cohere, llama.cpp's server, vLLM and Infinity do; Voyage says ``data``, Text Embeddings Inference ``texts`` and a
bare list of ``index`` and ``score``. A cross-encoder in a folder needs sentence-transformers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flashgrep.config import Reranking, Settings
from flashgrep.embed.endpoint import HURRIED, Endpoint, Home, Patience
from flashgrep.embed.local import fingerprint, library
from flashgrep.errors import ProviderUnavailable

MAX_CHARS = 4000  # of a text; rerankers read 512 to 8,192 tokens of question and text

Scores = npt.NDArray[np.float32]


class Reranker(Protocol):
    """One model; threads may share it."""

    @property
    def name(self) -> str:
        """Provider and model."""

    @property
    def top(self) -> int:
        """Texts worth passing."""

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return 0-1 for each text, in their order.

        Raises:
            ProviderUnavailable: the model does not answer, or not sensibly.

        """


class _Shape(NamedTuple):
    home: Home
    model: str
    body: Callable[[str, str, Sequence[str]], dict[str, Any]]
    results: Callable[[Any], list[tuple[int, float]]]


def _jina_body(model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
    return {**_cohere_body(model, query, documents), "return_documents": False}


def _cohere_body(model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
    return {**_named(model), "query": query, "documents": list(documents), "top_n": len(documents)}


def _voyage_body(model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
    return {**_named(model), "query": query, "documents": list(documents), "truncation": True}


def _tei_body(_model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
    return {"query": query, "texts": list(documents), "raw_scores": False, "truncate": True}


def _named(model: str) -> dict[str, str]:
    return {"model": model} if model else {}


def _results(answer: Any) -> list[tuple[int, float]]:
    return [(row["index"], float(row["relevance_score"])) for row in answer["results"]]


SHAPES: Final[Mapping[str, _Shape]] = {
    "http": _Shape(Home("", "RERANK_API_KEY"), "", _jina_body, _results),
    "jina": _Shape(Home("https://api.jina.ai/v1", "JINA_API_KEY"), "jina-reranker-v3", _jina_body, _results),
    "cohere": _Shape(Home("https://api.cohere.com/v2", "COHERE_API_KEY"), "rerank-v3.5", _cohere_body, _results),
    "voyage": _Shape(
        Home("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "rerank-2.5",
        _voyage_body,
        lambda answer: [(row["index"], float(row["relevance_score"])) for row in answer["data"]],
    ),
    "tei": _Shape(
        Home("", "RERANK_API_KEY"),
        "",
        _tei_body,
        lambda answer: [(row["index"], float(row["score"])) for row in answer],
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReranker:
    """A model behind an endpoint."""

    endpoint: Endpoint
    shape: _Shape
    model: str
    top: int

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.endpoint.provider}:{self.model or self.endpoint.url}"

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return 0-1 for each text; raises ProviderUnavailable."""
        if not documents:
            return np.zeros(0, np.float32)
        answer = self.endpoint.post(
            "/rerank", self.shape.body(self.model, query, [one[:MAX_CHARS] for one in documents])
        )
        try:
            found = dict(rows := self.shape.results(answer))
            scores = np.array([found[place] for place in range(len(documents))], np.float64)
        except (KeyError, TypeError, ValueError):
            raise self.endpoint.failure("its answer has not the shape of a ranking of all texts") from None
        if len(rows) != len(documents) or not np.isfinite(scores).all():
            raise self.endpoint.failure(f"{len(rows)} scores for {len(documents)} texts, or some that are not finite")
        return _levels(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """A model of sentence-transformers in this process."""

    name: str
    top: int
    predict: Callable[[list[tuple[str, str]]], Any]

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return 0-1 for each text."""
        if not documents:
            return np.zeros(0, np.float32)
        return _levels(np.asarray(self.predict([(query, one[:MAX_CHARS]) for one in documents]), np.float64).ravel())


def open_reranker(settings: Settings, environ: Mapping[str, str]) -> Reranker | None:
    """Open the configured reranker; None if there is none. Nothing is asked of a server yet.

    Raises:
        ProviderUnavailable: it lacks its key, its URL, its folder or its library.

    """
    section = settings.reranking
    if section.provider == "none":
        return None
    return _cross_encoder(section) if section.provider == "local" else _over_http(section, environ)


def _over_http(section: Reranking, environ: Mapping[str, str]) -> HttpReranker:
    shape = SHAPES[section.provider]
    patience = Patience(timeout=section.timeout_seconds, attempts=HURRIED)
    place = Endpoint.found(section.provider, shape.home, section.url, environ, patience)
    return HttpReranker(endpoint=place, shape=shape, model=section.model or shape.model, top=section.top)


def _cross_encoder(section: Reranking) -> CrossEncoder:
    folder = Path(section.model)
    if not (folder.is_absolute() and (folder / "config.json").is_file()):
        message = f"{section.model or 'reranking.model'}: not the absolute path of a folder with a cross-encoder"
        raise ProviderUnavailable(message, provider="local")
    transformers = library("sentence_transformers", "pip install sentence-transformers")
    model = transformers.CrossEncoder(str(folder), local_files_only=True, trust_remote_code=False)
    return CrossEncoder(name=f"local:{fingerprint(folder)}", top=section.top, predict=model.predict)


def _levels(scores: npt.NDArray[np.float64]) -> Scores:
    """Return scores as they are if they lie in 0-1, else (logits) by the logistic function."""
    if scores.min() < 0 or scores.max() > 1:
        scores = 1 / (1 + np.exp(-scores.clip(-50, 50)))
    return scores.astype(np.float32)
