"""The embedding providers by name: opening one, listing those that would work, and embedders behind HTTP."""

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

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import static
from flashgrep.parts.meaning.embed.http_api import LOCAL, Endpoint, RetryPolicy, Service
from flashgrep.parts.meaning.embed.interface import Embedder, ModelEmbedder, Role
from flashgrep.parts.meaning.embed.local import (
    can_open_folder,
    can_open_minilm,
    can_open_mlx,
    open_folder,
    open_minilm,
    open_mlx,
)

if TYPE_CHECKING:
    from flashgrep.base.config import Embedding, Settings

REQUEST_CHARS = 200_000
"""Characters in one request. Voyage accepts 120,000 tokens, OpenAI 300,000; a token of code has 2 to 4 characters."""

PROBE_SECONDS = 0.25
"""Timeout for connecting to a server on this machine, which takes well under a millisecond."""

Environ = Mapping[str, str]


class Dialect(NamedTuple):
    """The format of an API's requests and responses."""

    path: str
    rows: Callable[[Any], list[tuple[int, Any]]]
    """Returns (index of the text in the request, its vector) from a response; KeyError or TypeError if malformed."""
    width: str = "dimensions"
    """The field that requests a width other than the model's default."""
    role: str = ""
    """The field that says whether the texts are queries; empty: there is none."""
    options: Mapping[str, Any] = {}


def _read_data(answer: Any) -> list[tuple[int, Any]]:
    return [(row["index"], row["embedding"]) for row in answer["data"]]


OPENAI = Dialect("/embeddings", _read_data, options={"encoding_format": "float"})
VOYAGE = Dialect(
    "/embeddings", _read_data, "output_dimension", "input_type", {"truncation": True}
)
OLLAMA = Dialect(
    "/api/embed",
    lambda answer: list(enumerate(answer["embeddings"])),
    options={"truncate": True},
)


class Api(NamedTuple):
    """A provider's API, and its defaults."""

    service: Service
    dialect: Dialect
    model: str = ""
    """The default model; empty: use the one that the server lists."""
    batch: int = 32


APIS: Final[Mapping[str, Api]] = {
    "ollama": Api(
        Service("http://127.0.0.1:11434", "OLLAMA_API_KEY"), OLLAMA, "nomic-embed-text"
    ),
    "openai": Api(
        Service("https://api.openai.com/v1", "OPENAI_API_KEY"),
        OPENAI,
        "text-embedding-3-small",
        128,
    ),
    "voyage": Api(
        Service("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        VOYAGE,
        "voyage-code-3",
        128,
    ),
    "lmstudio": Api(Service("http://127.0.0.1:1234/v1", "LM_API_TOKEN"), OPENAI),
    "vllm": Api(Service("http://127.0.0.1:8000/v1", "VLLM_API_KEY"), OPENAI),
    "llamacpp": Api(Service("http://127.0.0.1:8080/v1", "LLAMA_API_KEY"), OPENAI),
}

HOSTED: Final = frozenset({"openai", "voyage"})
"""Services on other machines. No call may select them, since a manipulated agent could send code there."""

PROBED: Final = ("ollama", "lmstudio")
"""Servers probed at their default ports even if not configured. On 8000 and 8080 anything may listen."""

_CAN_OPEN: Final[Mapping[str, Callable[["Embedding"], bool]]] = {
    "static": lambda _: static.DATA.is_file(),
    "minilm": lambda _: can_open_minilm(),
    "local": lambda section: can_open_folder(section.model),
    "mlx": lambda section: can_open_mlx(section.model),
}
"""For each provider without a server, whether it can be opened."""


PREFIXES: Mapping[str, tuple[str, str]] = {
    "nomic-embed": ("search_query: ", "search_document: "),
    "mxbai-embed": ("Represent this sentence for searching relevant passages: ", ""),
    "snowflake-arctic-embed": (
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
    "e5-": ("query: ", "passage: "),
}
"""Prefixes for queries and texts that models expect according to their model cards, by a part of the model's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModel:
    """A model behind an endpoint. Thread-safe."""

    endpoint: Endpoint
    dialect: Dialect
    model: str
    dims: int = 0
    """The requested width; 0: the model's default."""

    @property
    def name(self) -> str:
        """Provider, model, and the width if one was requested."""
        return f"{self.endpoint.provider}:{self.model}{f':{self.dims}' if self.dims else ''}"

    def probe(self) -> int:
        """Return the width of its vectors; raises ProviderUnavailable."""
        return int(
            self._request(
                self.endpoint.limit_attempts(), ["def probe(): pass"], "document"
            ).shape[1]
        )

    def embedder(self, dims: int, **options: Any) -> ModelEmbedder:
        """Return an embedder for this model, whose vectors have ``dims`` numbers; ``options``: its other fields."""

        def encode(texts: Sequence[str], role: Role) -> npt.NDArray[Any]:
            if role == "query":
                endpoint = self.endpoint.limit_attempts()
            else:
                endpoint = self.endpoint
            prefixes = next(
                (pair for part, pair in PREFIXES.items() if part in self.model.lower()),
                ("", ""),
            )
            table = self._request(
                endpoint, [prefixes[role == "document"] + text for text in texts], role
            )
            if table.shape[1] != dims:
                raise endpoint.failure(
                    f"its vectors have {table.shape[1]} dimensions instead of {dims}"
                )
            return table

        return ModelEmbedder(
            name=self.name,
            dims=dims,
            encode=encode,
            batch_chars=REQUEST_CHARS,
            **options,
        )

    def _request(
        self, endpoint: Endpoint, texts: list[str], role: Role
    ) -> npt.NDArray[Any]:
        body = {"model": self.model, "input": texts, **self.dialect.options}
        if self.dims:
            body[self.dialect.width] = self.dims
        if self.dialect.role:
            body[self.dialect.role] = role
        answer = endpoint.request(self.dialect.path, body)
        try:
            rows = self.dialect.rows(answer)
            table = np.array(
                [row for _, row in sorted(rows, key=lambda row: row[0])], np.float64
            )
        except (KeyError, TypeError, ValueError):
            raise endpoint.failure("the response is not a list of embeddings") from None
        # A vector assigned to the wrong text would be stored and never be noticed.
        if sorted(index for index, _ in rows) != list(range(len(texts))):
            raise endpoint.failure(
                f"{len(rows)} vectors for {len(texts)} texts, or not one for each text"
            )
        if table.ndim != 2 or not table.shape[1]:  # noqa: PLR2004 - a table has rows and columns
            raise endpoint.failure("the response is not a list of embeddings")
        if not np.isfinite(table).all():
            raise endpoint.failure("its vectors have values that are not finite")
        return table


def open_embedder(
    settings: "Settings", environ: Environ, provider: str = ""
) -> Embedder:
    """Open the configured provider, or ``provider`` with default settings. HTTP providers get one request.

    Raises:
        ProviderUnavailable: it does not work here; ``data.available`` lists those that would.
    """
    wanted_name = provider or settings.embedding.provider
    try:
        return _open(_section(settings, wanted_name), environ)
    except ProviderUnavailable as problem:
        others = [name for name in available(settings, environ) if name != wanted_name]
        # Others are only listed, never used instead: a configured provider must not be
        # replaced silently.
        raise ProviderUnavailable(
            problem.message, available=others, provider=wanted_name
        ) from None


def is_embedded(settings: str) -> bool:
    """Return whether settings (``Embedding`` as JSON) select the embedded model."""
    return bool(orjson.loads(settings).get("provider", "static") == "static")


def embedder_of(
    settings: str, environ: Mapping[str, str], seconds: float | None = None
) -> Embedder:
    """Open the embedder of these settings (``Embedding`` as JSON); ``seconds``: try once, with this timeout.

    Raises:
        ProviderUnavailable: it is not available here, or does not respond.

    """
    # The default does not need anything that the settings module imports.
    if is_embedded(settings):
        with suppress(ProviderUnavailable):  # the code below reports what would work
            return static.load(static.DATA)
    config = import_module(
        "flashgrep.base.config"
    )  # imports pydantic: 0.15 s and 15 MB that most indexers do not need
    section = config.Embedding.model_validate_json(settings)
    if seconds is not None:
        # A query waits for this, while indexing has time for retries.
        limits = {
            "attempts": 1,
            "timeout_seconds": min(seconds, section.timeout_seconds),
        }
        section = section.model_copy(update=limits)
    return open_embedder(config.Settings(embedding=section), environ)


def _section(settings: "Settings", provider: str) -> "Embedding":
    """Return the section unchanged for its own provider, with default URL and model for another one."""
    section = settings.embedding
    if provider == section.provider:
        return section
    return section.model_copy(
        update={"provider": provider, "model": "", "url": "", "dims": 0, "batch": 0}
    )


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
            raise ProviderUnavailable(
                "swift-embeddings is a library for Swift programs; flashgrep cannot load it"
            )
        case _ if section.provider not in APIS:
            raise ProviderUnavailable(f"unknown embedding provider: {section.provider}")
    api = APIS[section.provider]
    retries = RetryPolicy(timeout=section.timeout_seconds, attempts=section.attempts)
    endpoint = Endpoint.open(
        section.provider, api.service, section.url, environ, retries
    )
    endpoint = replace(
        endpoint,
        others=tuple(name for name in ("static", "minilm") if _CAN_OPEN[name](section)),
    )
    model = section.model or api.model or _choose_model(endpoint)
    remote = RemoteModel(
        endpoint=endpoint,
        dialect=api.dialect,
        model=model,
        dims=section.dims,
    )
    # One request, before anything is indexed, determines the width and checks the key
    # and the model.
    dims = remote.probe()
    if section.dims not in {0, dims}:
        raise endpoint.failure(
            f"its vectors have {dims} dimensions instead of {section.dims}"
        )
    return remote.embedder(dims, batch=section.batch or api.batch)


def _choose_model(endpoint: Endpoint) -> str:
    """Return the only model of a server, or the only one whose name says that it is for embedding."""
    try:
        names = [str(model["id"]) for model in endpoint.request("/models")["data"]]
    except (KeyError, TypeError):
        raise endpoint.failure("it lists no models: set embedding.model") from None
    # Never guess among several: vectors of a chat model are useless.
    if len(names) == 1:
        fitting = names
    else:
        fitting = [name for name in names if "embed" in name.lower()]
    if len(fitting) != 1:
        raise endpoint.failure(
            f"set embedding.model to one of its models: {', '.join(names[:20]) or '(none)'}"
        )
    return fitting[0]


def available(settings: "Settings", environ: Environ) -> list[str]:
    """Return the providers that would work now: connects to servers on this machine, but makes no request."""
    names = [
        name
        for name, can_open in _CAN_OPEN.items()
        if can_open(_section(settings, name))
    ]
    for name, api in APIS.items():
        url = _section(settings, name).url
        place = urlsplit(url or api.service.url)
        if place.hostname not in LOCAL:
            if url or environ.get(api.service.key_name, "").strip():
                names.append(name)
        elif name in (*PROBED, settings.embedding.provider):
            try:
                socket.create_connection(
                    (place.hostname, place.port or 80), PROBE_SECONDS
                ).close()
            except OSError:
                continue
            names.append(name)
    return names
