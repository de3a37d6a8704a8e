"""The optional models besides the embedder: a reranker, and a chat model that refines queries."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flashgrep.config import Settings
from flashgrep.embed.http_api import QUERY_ATTEMPTS, Endpoint, RetryPolicy, Service
from flashgrep.embed.rerank import Reranker, open_reranker
from flashgrep.errors import ProviderUnavailable

MAX_WORDS = 24
"""Words of a prompt added to a query; more would outweigh it."""

MAX_CHARS = 500
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
        messages = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": content}]
        body = {"model": self.model, "messages": messages, "temperature": 0, "stream": False}
        try:
            answer = self.endpoint.request("/chat/completions", body)
            # Reasoning models put their thoughts first.
            text = _THOUGHT.sub("", answer["choices"][0]["message"]["content"])
        except (ProviderUnavailable, KeyError, IndexError, TypeError):
            return add_words(query, prompt)
        lines = [line.strip().strip("`\"'").removeprefix("Query:").strip() for line in text.splitlines()]
        return next((line[:MAX_CHARS] for line in lines if line), "") or add_words(query, prompt)


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
    known = {word.lower() for word in _WORD.findall(query)}
    fresh = dict.fromkeys(
        word for word in _WORD.findall(prompt) if word.lower() not in known and word.lower() not in _STOP
    )
    once = {word.lower(): word for word in reversed(fresh)}
    added = [word for word in fresh if once[word.lower()] == word][:MAX_WORDS]
    return " ".join([query.strip(), *added]).strip()


class Models:
    """The configured reranker and refiner, opened on first use and kept; thread-safe."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._reranker: Reranker | None = None
        self._refiner: Refiner | None = None

    def reranker(self) -> Reranker | None:
        """Return the reranker, or None if none is configured.

        Raises:
            ProviderUnavailable: it is configured but not available.
        """
        with self._lock:
            # A failure is not cached, so that a server started later is found by the next query.
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
