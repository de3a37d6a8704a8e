"""The optional models alongside the embedder: a reranker, and a chat model that refines queries.

A reranker reads a query and a text together and scores how well the text answers the query. The HTTP API is
``/rerank``, from ``query`` and ``documents`` to ``results`` of ``index`` and ``relevance_score``, in Jina, Cohere,
llama.cpp's server, vLLM and Infinity. Voyage uses ``data`` instead of ``results``; Text Embeddings Inference uses
``texts``, and returns a bare list of ``index`` and ``score``. A cross-encoder in a folder is run by onnxruntime, or by
sentence-transformers.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flashgrep.api.service import HostService, ServiceKey
from flashgrep.base.config import Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.installation import advise_install
from flashgrep.parts.meaning.embed.http_api import (
    QUERY_ATTEMPTS,
    Endpoint,
    RetryPolicy,
    Service,
)
from flashgrep.parts.meaning.embed.model_folder import fingerprint, read_model_folder
from flashgrep.parts.meaning.embed.onnx_model import import_library, open_pairs
from flashgrep.parts.meaning.embed.static import release

MAX_CHARS = 4000  # of a text; rerankers read 512 to 8,192 tokens of query and text

Scores = npt.NDArray[np.float32]
Body = dict[str, Any]
MAX_WORDS = 24
"""Words of a prompt added to a query; more would outweigh it."""
MAX_ANSWER = 500
"""Characters used of a model's answer; a query is one line."""
MAX_PROMPT = 20_000
"""Characters of query and prompt sent to a model."""
INSTRUCTION = (
    "Rewrite the user's request as one short query for a search engine over source code. Keep identifiers, file names "
    "and error messages exactly. Name the functions, types and concepts that the wanted code would contain. "
    "Answer with the query alone, on one line."
)
CHATS: Final[Mapping[str, tuple[Service, str]]] = {
    "openai": (Service("https://api.openai.com/v1", "OPENAI_API_KEY"), "gpt-4o-mini"),
    "ollama": (Service("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"), "llama3.2"),
    "lmstudio": (Service("http://127.0.0.1:1234/v1", "LM_API_TOKEN"), ""),
    "vllm": (Service("http://127.0.0.1:8000/v1", "VLLM_API_KEY"), ""),
    "llamacpp": (Service("http://127.0.0.1:8080/v1", "LLAMA_API_KEY"), ""),
}
"""A provider's chat API and its default model; empty: the server has one loaded."""
_WORD = re.compile(r"\w[\w.:/-]*\w|\w\w+")
_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_COMMON = """
    a about after all also an and any are as at be because been before but by can code could did do does each find for
    from get give had has have help how i if in into is it its just like look looking me more my need needs no not now
    of on only or our out please search see should show so some tell than that the their them then there these they
    this those to us use used using want wants was we were what when where which while who why will with would you your
"""
_STOP: Final = frozenset(_COMMON.split())


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
    "jina": _Dialect(
        Service("https://api.jina.ai/v1", "JINA_API_KEY"),
        "jina-reranker-v3",
        _jina_body,
    ),
    "cohere": _Dialect(
        Service("https://api.cohere.com/v2", "COHERE_API_KEY"),
        "rerank-v3.5",
        _cohere_body,
    ),
    "voyage": _Dialect(
        Service("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "rerank-2.5",
        lambda model, query, texts: {
            **model,
            "query": query,
            "documents": texts,
            "truncation": True,
        },
        results="data",
    ),
    "tei": _Dialect(
        Service("", "RERANK_API_KEY"),
        "",
        lambda _, query, texts: {
            "query": query,
            "texts": texts,
            "raw_scores": False,
            "truncate": True,
        },
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
        if self.model:
            model = {"model": self.model}
        else:
            model = {}
        answer = self.endpoint.request(
            "/rerank",
            self.dialect.body(
                model, query, [document[:MAX_CHARS] for document in documents]
            ),
        )
        try:
            if self.dialect.results:
                ranking = answer[self.dialect.results]
            else:
                ranking = answer
            score_of = dict(
                rows := [
                    (row["index"], float(row[self.dialect.score])) for row in ranking
                ]
            )
            # By index, since a ranking is ordered by score; a missing index raises
            # KeyError.
            scores = np.array(
                [score_of[place] for place in range(len(documents))], np.float64
            )
        except (KeyError, TypeError, ValueError):
            raise self.endpoint.failure(
                "the response is not a ranking of all texts"
            ) from None
        if len(rows) != len(documents) or not np.isfinite(scores).all():
            raise self.endpoint.failure(
                f"{len(rows)} scores for {len(documents)} texts, or some that are not finite"
            )
        return _to_levels(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """A cross-encoder in this process."""

    name: str
    top: int
    predict: Callable[[list[tuple[str, str]]], Any]

    def scores(self, query: str, documents: Sequence[str]) -> Scores:
        """Return a score in 0-1 for each text."""
        if not documents:
            return np.zeros(0, np.float32)
        return _to_levels(
            np.asarray(
                self.predict([(query, document[:MAX_CHARS]) for document in documents]),
                np.float64,
            ).ravel()
        )


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
        endpoint = Endpoint.open(
            section.provider, dialect.service, section.url, environ, retries
        )
        model = section.model or dialect.model
        return HttpReranker(
            endpoint=endpoint,
            dialect=dialect,
            model=model,
            top=section.top,
        )
    folder = Path(section.model)
    if not (folder.is_absolute() and (folder / "config.json").is_file()):
        message = f"{section.model or 'reranking.model'}: not the absolute path of a cross-encoder folder"
        raise ProviderUnavailable(message, provider="local")
    described = read_model_folder(folder)
    if described.kind == "cross-encoder":
        predict = open_pairs(described)
    else:
        transformers = import_library(
            "sentence_transformers", advise_install("sentence-transformers")
        )
        encoder = transformers.CrossEncoder(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        predict = encoder.predict
    return CrossEncoder(
        name=f"local:{fingerprint(folder)}", top=section.top, predict=predict
    )


def _to_levels(scores: npt.NDArray[np.float64]) -> Scores:
    """Return scores unchanged if they are in 0-1; otherwise they are logits, so apply the logistic function."""
    if scores.min() < 0 or scores.max() > 1:
        # Clipped so that exp does not overflow; beyond 50 the result is 0 or 1 anyway.
        scores = 1 / (1 + np.exp(-scores.clip(-50, 50)))
    return scores.astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refiner:
    """Makes one query from a query and a prompt; without an endpoint, or if it fails, by adding words."""

    endpoint: Endpoint | None = None
    model: str = ""

    def refine(self, query: str, prompt: str) -> str:
        """Return the refined query; never raises."""
        if not prompt.strip():
            return query
        if self.endpoint is None:
            return add_words(query, prompt)
        content = f"Query: {query}\n\nContext: {prompt}"[:MAX_PROMPT]
        # The caller's text is a user message, never part of the instruction.
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": content},
        ]
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": 0,
            "stream": False,
        }
        try:
            answer = self.endpoint.request("/chat/completions", body)
            # Reasoning models put their thoughts first.
            text = _THOUGHT.sub("", answer["choices"][0]["message"]["content"])
        except (ProviderUnavailable, KeyError, IndexError, TypeError):
            return add_words(query, prompt)
        lines = [
            line.strip().strip("`\"'").removeprefix("Query:").strip()
            for line in text.splitlines()
        ]
        return next((line[:MAX_ANSWER] for line in lines if line), "") or add_words(
            query, prompt
        )


def open_refiner(settings: Settings, environ: Mapping[str, str]) -> Refiner:
    """Return the configured refiner; without one, a refiner that only adds words.

    Raises:
        ProviderUnavailable: the provider lacks its key.
    """
    section = settings.refinement
    if section.provider == "none":
        return Refiner()
    service, model = CHATS[section.provider]
    retries = RetryPolicy(timeout=section.timeout_seconds, attempts=QUERY_ATTEMPTS)
    endpoint = Endpoint.open(section.provider, service, section.url, environ, retries)
    return Refiner(endpoint=endpoint, model=section.model or model)


def add_words(query: str, prompt: str) -> str:
    """Return the query followed by the prompt's meaningful words that it does not have, in their order."""
    words = {word.lower() for word in _WORD.findall(query)}
    fresh = dict.fromkeys(
        word
        for word in _WORD.findall(prompt)
        if word.lower() not in words and word.lower() not in _STOP
    )
    once = {word.lower(): word for word in reversed(fresh)}
    added = [word for word in fresh if once[word.lower()] == word][:MAX_WORDS]
    return " ".join([query.strip(), *added]).strip()


MODELS: Final = ServiceKey["Models"]("models")


class Models(HostService):
    """The configured reranker and refiner, opened on first use and kept; thread-safe."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._reranker: Reranker | None = None
        self._refiner: Refiner | None = None

    def forget_models(self) -> None:
        """Unload the embedder of questions; loading it again takes 0.1 s."""
        release()

    @property
    def has_reranker(self) -> bool:
        """Whether one is configured."""
        return self._settings.reranking.provider != "none"

    def reranker(self) -> Reranker | None:
        """Return the reranker, or None if none is configured.

        Raises:
            ProviderUnavailable: it is configured but not available.
        """
        with self._lock:
            # A failure is not cached, so that a server started later is found by the
            # next query.
            if self._reranker is None:
                self._reranker = open_reranker(self._settings, self._environ)
            return self._reranker

    def refiner(self) -> Refiner:
        """Return the refiner.

        Raises:
            ProviderUnavailable: it is configured but not available.
        """
        with self._lock:
            if self._refiner is None:
                self._refiner = open_refiner(self._settings, self._environ)
            return self._refiner
