"""A question and what else was said, made into words to search for: by a chat model if one is configured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flashgrep.config import Settings
from flashgrep.embed.endpoint import HURRIED, Endpoint, Home, Patience
from flashgrep.errors import ProviderUnavailable

MOST_WORDS = 24
"""Words of a prompt added to a question; more would drown it."""

MOST_CHARS = 500
"""Characters of a model's answer that are taken; a search is a line."""

TOLD = 20_000
"""Characters of question and prompt that a model is told."""

INSTRUCTION = (
    "Rewrite the user's request as one short query for a search engine over source code. Keep identifiers, file names "
    "and error messages exactly. Name the functions, types and concepts that the wanted code would contain. "
    "Answer with the query alone, on one line."
)

CHATS: Final[Mapping[str, tuple[Home, str]]] = {
    "openai": (Home("https://api.openai.com/v1", "OPENAI_API_KEY"), "gpt-4o-mini"),
    "ollama": (Home("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"), "llama3.2"),
    "lmstudio": (Home("http://127.0.0.1:1234/v1", "LM_API_TOKEN"), ""),
    "vllm": (Home("http://127.0.0.1:8000/v1", "VLLM_API_KEY"), ""),
    "llamacpp": (Home("http://127.0.0.1:8080/v1", "LLAMA_API_KEY"), ""),
}
"""Where a provider's chat API is, and its usual model; empty: the server has one loaded."""

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
    """Makes a search out of a question and a prompt; without an endpoint, or when it fails, by words alone."""

    endpoint: Endpoint | None = None
    model: str = ""

    def refine(self, query: str, prompt: str) -> str:
        """Return words to search for; never raises."""
        if not prompt.strip():
            return query
        return self._asked(query, prompt) or with_words(query, prompt)

    def _asked(self, query: str, prompt: str) -> str:
        if self.endpoint is None:
            return ""
        said = f"Query: {query}\n\nContext: {prompt}"[:TOLD]
        roles = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": said}]
        try:
            answer = self.endpoint.post(
                "/chat/completions", {"model": self.model, "messages": roles, "temperature": 0, "stream": False}
            )
            text = _THOUGHT.sub("", answer["choices"][0]["message"]["content"])
        except (ProviderUnavailable, KeyError, IndexError, TypeError):
            return ""
        lines = [line.strip().strip("`\"'").removeprefix("Query:").strip() for line in text.splitlines()]
        return next((line[:MOST_CHARS] for line in lines if line), "")


def open_refiner(settings: Settings, environ: Mapping[str, str]) -> Refiner:
    """Return the configured refiner; one by words alone if there is none.

    Raises:
        ProviderUnavailable: the provider lacks its key.

    """
    section = settings.refinement
    if section.provider == "none":
        return Refiner()
    home, model = CHATS[section.provider]
    patience = Patience(timeout=section.timeout_seconds, attempts=HURRIED)
    place = Endpoint.found(section.provider, home, section.url, environ, patience)
    return Refiner(endpoint=place, model=section.model or model)


def with_words(query: str, prompt: str) -> str:
    """Return the question and the words of the prompt that say something and are not in it, in their order."""
    known = {word.lower() for word in _WORD.findall(query)}
    fresh = dict.fromkeys(
        word for word in _WORD.findall(prompt) if word.lower() not in known and word.lower() not in _STOP
    )
    once = {word.lower(): word for word in reversed(fresh)}
    added = [word for word in fresh if once[word.lower()] == word][:MOST_WORDS]
    return " ".join([query.strip(), *added]).strip()
