"""The embedding providers by name: opening one, telling which would work, and embedders behind HTTP."""

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.embed import static
from flashgrep.embed.http_api import LOCAL, Endpoint, RetryPolicy, Service
from flashgrep.embed.interface import Embedder, ModelEmbedder, Role
from flashgrep.embed.local import can_open_folder, can_open_minilm, can_open_mlx, open_folder, open_minilm, open_mlx
from flashgrep.errors import ProviderUnavailable

if TYPE_CHECKING:
    from flashgrep.config import Embedding, Settings

REQUEST_CHARS = 200_000
"""Characters in one request: Voyage takes 120,000 tokens, OpenAI 300,000, and a token of code has 2 to 4 characters."""

PROBE_SECONDS = 0.25
"""To connect to a server on this machine; it answers in well under a millisecond or not at all."""

Environ = Mapping[str, str]


class Dialect(NamedTuple):
    """The shape of an API's requests and answers."""

    path: str
    rows: Callable[[Any], list[tuple[int, Any]]]
    """(place of the text in the request, its vector), from an answer; KeyError or TypeError for another shape."""
    width: str = "dimensions"
    """The field that asks for vectors of another width than the model's own."""
    role: str = ""
    """The field that says whether the texts are questions; empty: there is none."""
    options: Mapping[str, Any] = {}


def _read_data(answer: Any) -> list[tuple[int, Any]]:
    return [(row["index"], row["embedding"]) for row in answer["data"]]


OPENAI = Dialect("/embeddings", _read_data, options={"encoding_format": "float"})
VOYAGE = Dialect("/embeddings", _read_data, "output_dimension", "input_type", {"truncation": True})
OLLAMA = Dialect("/api/embed", lambda answer: list(enumerate(answer["embeddings"])), options={"truncate": True})


class Api(NamedTuple):
    """Where a provider's API is, and what it takes."""

    service: Service
    dialect: Dialect
    model: str = ""
    """Used when none is set; empty: the server is asked which it has."""
    batch: int = 32


APIS: Final[Mapping[str, Api]] = {
    "ollama": Api(Service("http://127.0.0.1:11434", "OLLAMA_API_KEY"), OLLAMA, "nomic-embed-text"),
    "openai": Api(Service("https://api.openai.com/v1", "OPENAI_API_KEY"), OPENAI, "text-embedding-3-small", 128),
    "voyage": Api(Service("https://api.voyageai.com/v1", "VOYAGE_API_KEY"), VOYAGE, "voyage-code-3", 128),
    "lmstudio": Api(Service("http://127.0.0.1:1234/v1", "LM_API_TOKEN"), OPENAI),
    "vllm": Api(Service("http://127.0.0.1:8000/v1", "VLLM_API_KEY"), OPENAI),
    "llamacpp": Api(Service("http://127.0.0.1:8080/v1", "LLAMA_API_KEY"), OPENAI),
}

HOSTED: Final = frozenset({"openai", "voyage"})
"""Services on other machines: an agent that was talked into it must not be able to send code there by a call."""

PROBED: Final = ("ollama", "lmstudio")
"""Servers looked for at their usual ports without being configured; on 8000 and 8080 anything may listen."""

_CAN_OPEN: Final[Mapping[str, Callable[["Embedding"], bool]]] = {
    "static": lambda _: static.DATA.is_file(),
    "minilm": lambda _: can_open_minilm(),
    "local": lambda section: can_open_folder(section.model),
    "mlx": lambda section: can_open_mlx(section.model),
}
"""Whether a provider that needs no server would open."""


PREFIXES: Mapping[str, tuple[str, str]] = {
    "nomic-embed": ("search_query: ", "search_document: "),
    "mxbai-embed": ("Represent this sentence for searching relevant passages: ", ""),
    "snowflake-arctic-embed": ("Represent this sentence for searching relevant passages: ", ""),
    "e5-": ("query: ", "passage: "),
}
"""Models, by a part of their names, that were trained with words before a question and a text (as their cards say)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModel:
    """A model behind an endpoint. Threads may share it."""

    endpoint: Endpoint
    dialect: Dialect
    model: str
    dims: int = 0
    """Width asked for; 0: the model's own."""

    @property
    def name(self) -> str:
        """Provider, model, and the width when it was asked for."""
        return f"{self.endpoint.provider}:{self.model}{f':{self.dims}' if self.dims else ''}"

    def probe(self) -> int:
        """Return the width of the vectors that it answers with; raises ProviderUnavailable."""
        return int(self._request(self.endpoint.limit_attempts(), ["def probe(): pass"], "document").shape[1])

    def embedder(self, dims: int, **options: Any) -> ModelEmbedder:
        """Return the embedder by this model, whose vectors have ``dims`` numbers; ``options`` are its other fields."""

        def encode(texts: Sequence[str], role: Role) -> npt.NDArray[Any]:
            endpoint = self.endpoint.limit_attempts() if role == "query" else self.endpoint
            prefixes = next((pair for part, pair in PREFIXES.items() if part in self.model.lower()), ("", ""))
            table = self._request(endpoint, [prefixes[role == "document"] + text for text in texts], role)
            if table.shape[1] != dims:
                raise endpoint.failure(f"vectors of {table.shape[1]} numbers instead of {dims}")
            return table

        return ModelEmbedder(name=self.name, dims=dims, encode=encode, batch_chars=REQUEST_CHARS, **options)

    def _request(self, endpoint: Endpoint, texts: list[str], role: Role) -> npt.NDArray[Any]:
        body = {"model": self.model, "input": texts, **self.dialect.options}
        if self.dims:
            body[self.dialect.width] = self.dims
        if self.dialect.role:
            body[self.dialect.role] = role
        answer = endpoint.request(self.dialect.path, body)
        try:
            rows = self.dialect.rows(answer)
            table = np.array([row for _, row in sorted(rows, key=lambda row: row[0])], np.float64)
        except (KeyError, TypeError, ValueError):
            raise endpoint.failure("its answer does not have the shape of embeddings") from None
        # A vector of another text would be stored and never found out.
        if sorted(index for index, _ in rows) != list(range(len(texts))):
            raise endpoint.failure(f"{len(rows)} vectors for {len(texts)} texts, or not one for each")
        if table.ndim != 2 or not table.shape[1]:  # noqa: PLR2004 - a table has rows and columns
            raise endpoint.failure("its answer does not have the shape of embeddings")
        if not np.isfinite(table).all():
            raise endpoint.failure("vectors with numbers that are not finite")
        return table


def open_embedder(settings: "Settings", environ: Environ, provider: str = "") -> Embedder:
    """Open the configured provider, or ``provider`` with its usual settings. One over HTTP gets one request.

    Raises:
        ProviderUnavailable: it does not work here; ``data.available`` names those that would.
    """
    wanted = provider or settings.embedding.provider
    try:
        return _open(_section(settings, wanted), environ)
    except ProviderUnavailable as problem:
        others = [name for name in available(settings, environ) if name != wanted]
        # Tried only now: whoever configured a provider does not want another one in its place without a word.
        raise ProviderUnavailable(problem.message, available=others, provider=wanted) from None


def is_embedded(settings: str) -> bool:
    """Return whether settings (``Embedding`` as JSON) ask for the embedded model."""
    return bool(orjson.loads(settings).get("provider", "static") == "static")


def embedder_of(settings: str, environ: Mapping[str, str], seconds: float | None = None) -> Embedder:
    """Open the embedder of these settings (``Embedding`` as JSON); with ``seconds`` it is asked once, and so long.

    Raises:
        ProviderUnavailable: there is none here, or it does not answer.

    """
    # The default needs none of what the settings module imports.
    if is_embedded(settings):
        with suppress(ProviderUnavailable):  # below it is told what would work
            return static.load(static.DATA)
    config = import_module("flashgrep.config")  # pydantic: 0.15 s and 15 MB that most indexers do without
    section = config.Embedding.model_validate_json(settings)
    if seconds is not None:
        # A question waits for this; indexing has time for retries.
        hurried = {"attempts": 1, "timeout_seconds": min(seconds, section.timeout_seconds)}
        section = section.model_copy(update=hurried)
    return open_embedder(config.Settings(embedding=section), environ)


def _section(settings: "Settings", provider: str) -> "Embedding":
    """Return the section as it is for its own provider, and with another's usual place and model for another."""
    section = settings.embedding
    if provider == section.provider:
        return section
    return section.model_copy(update={"provider": provider, "model": "", "url": "", "dims": 0, "batch": 0})


def _open(section: "Embedding", environ: Environ) -> Embedder:
    match section.provider:
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
        case _ if section.provider not in APIS:
            raise ProviderUnavailable(f"no embedding provider is called {section.provider}")
    api = APIS[section.provider]
    retries = RetryPolicy(timeout=section.timeout_seconds, attempts=section.attempts)
    endpoint = Endpoint.open(section.provider, api.service, section.url, environ, retries)
    endpoint = replace(endpoint, others=tuple(name for name in ("static", "minilm") if _CAN_OPEN[name](section)))
    model = section.model or api.model or _choose_model(endpoint)
    remote = RemoteModel(endpoint=endpoint, dialect=api.dialect, model=model, dims=section.dims)
    # One request tells the width, and that the key and the model are good, before anything is indexed.
    dims = remote.probe()
    if section.dims not in {0, dims}:
        raise endpoint.failure(f"vectors of {dims} numbers instead of {section.dims}")
    return remote.embedder(dims, batch=section.batch or api.batch)


def _choose_model(endpoint: Endpoint) -> str:
    """Return the model that a server has, or of several the only one for embedding by its name."""
    try:
        names = [str(model["id"]) for model in endpoint.request("/models")["data"]]
    except (KeyError, TypeError):
        raise endpoint.failure("it lists no models: set embedding.model") from None
    # Never a guess among several: vectors of a chat model are of no use.
    fitting = names if len(names) == 1 else [name for name in names if "embed" in name.lower()]
    if len(fitting) != 1:
        raise endpoint.failure(f"set embedding.model to one of its models: {', '.join(names[:20]) or 'it has none'}")
    return fitting[0]


def available(settings: "Settings", environ: Environ) -> list[str]:
    """Return the providers that would work now: no request is made, servers on this machine are connected to."""
    found = [name for name, can_open in _CAN_OPEN.items() if can_open(_section(settings, name))]
    for name, api in APIS.items():
        url = _section(settings, name).url
        place = urlsplit(url or api.service.url)
        if place.hostname not in LOCAL:
            if url or environ.get(api.service.key_name, "").strip():
                found.append(name)
        elif name in (*PROBED, settings.embedding.provider):
            try:
                socket.create_connection((place.hostname, place.port or 80), PROBE_SECONDS).close()
            except OSError:
                continue
            found.append(name)
    return found
