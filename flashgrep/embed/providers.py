"""The embedding providers by name: what each needs, opening one, and telling which would work."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from flashgrep.config import Embedding, Settings
from flashgrep.embed import static
from flashgrep.embed.endpoint import LOCAL, Endpoint, Home, Patience
from flashgrep.embed.interface import Embedder
from flashgrep.embed.local import folder_opens, minilm_installed, mlx_opens, open_folder, open_minilm, open_mlx
from flashgrep.embed.remote import OLLAMA, OPENAI, VOYAGE, Dialect, RemoteEmbedder
from flashgrep.errors import ProviderUnavailable

PROBE_SECONDS = 0.25
"""To connect to a server on this machine; it answers in well under a millisecond or not at all."""

Environ = Mapping[str, str]


class Api(NamedTuple):
    """Where a provider's API is, and what it takes."""

    home: Home
    dialect: Dialect
    model: str = ""
    """Used when none is set; empty: the server is asked which it has."""
    batch: int = 32
    max_chars: int = 8000
    """Characters of a text: below the 8,192 tokens that the services take, however the text is written."""


APIS: Final[Mapping[str, Api]] = {
    "ollama": Api(Home("http://127.0.0.1:11434", "OLLAMA_API_KEY"), OLLAMA, "nomic-embed-text"),
    "openai": Api(Home("https://api.openai.com/v1", "OPENAI_API_KEY"), OPENAI, "text-embedding-3-small", 128),
    "voyage": Api(Home("https://api.voyageai.com/v1", "VOYAGE_API_KEY"), VOYAGE, "voyage-code-3", 128),
    "lmstudio": Api(Home("http://127.0.0.1:1234/v1", "LM_API_TOKEN"), OPENAI),
    "vllm": Api(Home("http://127.0.0.1:8000/v1", "VLLM_API_KEY"), OPENAI),
    "llamacpp": Api(Home("http://127.0.0.1:8080/v1", "LLAMA_API_KEY"), OPENAI),
}

ELSEWHERE: Final = frozenset({"openai", "voyage"})
"""Services on other machines: an agent that was talked into it must not be able to send code there by a call."""

GUESSED: Final = ("ollama", "lmstudio")
"""Servers looked for at their usual ports without being configured; on 8000 and 8080 anything may listen."""


def open_embedder(settings: Settings, environ: Environ, provider: str = "") -> Embedder:
    """Open the configured provider, or ``provider`` as it is without being configured. One over HTTP is asked once.

    Raises:
        ProviderUnavailable: it does not work here; ``data.available`` names those that would.

    """
    wanted = provider or settings.embedding.provider
    try:
        return _open(_section(settings, wanted), wanted, environ)
    except ProviderUnavailable as problem:
        others = [name for name in available(settings, environ) if name != wanted]
        raise ProviderUnavailable(problem.message, available=others, provider=wanted) from None


def available(settings: Settings, environ: Environ) -> list[str]:
    """Return the providers that would work now: no request is made, servers on this machine are connected to."""
    there = [name for name, opens in _HERE.items() if opens(_section(settings, name))]
    return there + [name for name in APIS if _reachable(name, settings, environ)]


def _section(settings: Settings, provider: str) -> Embedding:
    """Return the section as it is for its own provider, and with another's usual place and model for another."""
    section = settings.embedding
    if provider == section.provider:
        return section
    return section.model_copy(update={"provider": provider, "model": "", "url": "", "dims": 0, "batch": 0})


def _open(section: Embedding, provider: str, environ: Environ) -> Embedder:
    match provider:
        case "static":
            return static.load(static.DATA)
        case "minilm":
            return open_minilm(section.batch)
        case "local":
            return open_folder(section.model, section.batch)
        case "mlx":
            return open_mlx(section.model, section.batch)
        case "swift-embeddings":
            raise ProviderUnavailable("swift-embeddings is a library for Swift programs; flashgrep cannot load it")
        case _ if provider in APIS:
            return _open_api(APIS[provider], section, environ)
    raise ProviderUnavailable(f"no embedding provider is called {provider}")


def _open_api(api: Api, section: Embedding, environ: Environ) -> Embedder:
    patience = Patience(timeout=section.timeout_seconds, attempts=section.attempts)
    place = Endpoint.found(section.provider, api.home, section.url, environ, patience)
    place = replace(place, others=tuple(name for name in ("static", "minilm") if _HERE[name](section)))
    return RemoteEmbedder(
        endpoint=place,
        dialect=api.dialect,
        model=section.model or api.model or _only_model(place),
        dims=section.dims,
        asked_dims=section.dims,
        batch=section.batch or api.batch,
        max_chars=api.max_chars,
    ).probed()


def _only_model(place: Endpoint) -> str:
    """Return the model that a server has, or of several the only one for embedding by its name."""
    try:
        names = [str(model["id"]) for model in place.get("/models")["data"]]
    except (KeyError, TypeError):
        raise place.failure("it lists no models: set embedding.model") from None
    fitting = names if len(names) == 1 else [name for name in names if "embed" in name.lower()]
    if len(fitting) != 1:
        raise place.failure(f"set embedding.model to one of its models: {', '.join(names[:20]) or 'it has none'}")
    return fitting[0]


_HERE: Final[Mapping[str, Callable[[Embedding], bool]]] = {
    "static": lambda _: static.DATA.is_file(),
    "minilm": lambda _: minilm_installed(),
    "local": lambda section: folder_opens(section.model),
    "mlx": lambda section: mlx_opens(section.model),
}
"""Whether a provider that needs no server would open."""


def _reachable(name: str, settings: Settings, environ: Environ) -> bool:
    section = _section(settings, name)
    place = urlsplit(section.url or APIS[name].home.url)
    if place.hostname not in LOCAL:
        return bool(section.url or environ.get(APIS[name].home.key_name, "").strip())
    if name not in (*GUESSED, settings.embedding.provider):
        return False
    try:
        with socket.create_connection((place.hostname, place.port or 80), PROBE_SECONDS):
            return True
    except OSError:
        return False
