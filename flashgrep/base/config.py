"""Every setting: its type, default, description, who may set it, and whether a change forces a rebuild.

Sources are merged field by field, later over earlier: defaults, the user's config.toml, the environment
(``FLASHGREP_TCP_PORT`` for ``tcp.port``), flags. The origin of every value is kept. A project's own file
(``project_settings``) may only tighten settings marked ``project`` below. Secrets are never settings: the token has its
own file.
"""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from rapidfuzz import process

from flashgrep.base.errors import BadSetting
from flashgrep.base.paths import (
    PATH_MAP_VARIABLE,
    TEAM_DATABASE_VARIABLE,
    TEAM_TOKEN_VARIABLE,
)

ENV_PREFIX = "FLASHGREP_"
NOT_SETTINGS = frozenset(
    {
        "FLASHGREP_STATE_DIR",
        "FLASHGREP_CACHE_DIR",
        "FLASHGREP_TOKEN",
        "FLASHGREP_PYTHON",
        PATH_MAP_VARIABLE,
        TEAM_DATABASE_VARIABLE,
        TEAM_TOKEN_VARIABLE,
    }
)
"""Variables with our prefix that are not settings of the daemon: folders, a secret, the scripts' interpreter, and a
client's path map."""

PLAIN_PREFIX = "MCP_"
"""Variables of the section ``mcp`` are also read without our prefix, as hosts set them; FLASHGREP_MCP_… takes
precedence."""

MIB = 1024 * 1024
URL = r"^(https?://[^\s/?#@]+(/[^\s?#@]*)?)?$"
"""A base URL without credentials or query, or nothing; keys come only from the environment."""
TEAM_URL = r"^((https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?)/?)?$"
"""Like URL, but only an origin; a token is sent there."""
PROJECT: dict[str, Any] = {"project": True}
"""A repository's own file may tighten this."""
REBUILDS: dict[str, Any] = {"project": True, "rebuild": True}
"""Like PROJECT; a change reindexes the project."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Tcp(_Section):
    """The loopback TCP wire."""

    enabled: bool = Field(
        True, description="Listen on 127.0.0.1; the Unix sockets are always served."
    )
    port: int = Field(
        7777,
        ge=0,
        le=65535,
        description="Port to listen on; if taken, the next free one; 0: any free one.",
    )


class Http(_Section):
    """The HTTP wire."""

    enabled: bool = Field(
        False, description="Listen on HTTP; `fgrep serve` does so while it runs."
    )
    port: int = Field(
        7778, ge=0, le=65535, description="Port on 127.0.0.1; 0: any free one."
    )


class Mcp(_Section):
    """The Model Context Protocol."""

    enabled: bool = Field(
        True,
        description="Speak the Model Context Protocol; plain JSON-RPC is always available.",
    )
    transport: Literal["stdio", "http", "both"] = Field(
        "both",
        description="Transports: stdio and the sockets behind it, HTTP, or both.",
    )
    server_name: str = Field(
        "flashgrep",
        min_length=1,
        max_length=40,
        description="Server name reported to clients.",
    )
    server_version: str = Field(
        "", max_length=40, description="Version reported; empty: flashgrep's own."
    )
    structured: bool = Field(
        False,
        description="Answer every client with structured content and schemas, for programs; models read text.",
    )


class Index(_Section):
    """What is indexed, and by how many processes."""

    # ripgrep has no limit. A file is held in memory while it is indexed and matched: 64
    # MiB keeps the indexer within its 800 MB, and larger texts are dumps or logs, not
    # code. They are reported as skipped.
    max_file_size: int = Field(
        64 * MIB,
        ge=1024,
        le=1024 * MIB,
        description="Largest file searched, in bytes; larger ones are reported as skipped.",
        json_schema_extra=REBUILDS,
    )
    workers: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes that read files while an index is built; 0: one per core.",
    )
    revision_bytes: int = Field(
        512 * MIB,
        ge=0,
        le=1 << 40,
        description="Most bytes of text kept for searched revisions; 0: none.",
    )
    revision_days: int = Field(
        30, ge=1, le=3650, description="Days they are kept after their last use."
    )


class Query(_Section):
    """Defaults for the size of an answer."""

    default_limit: int = Field(
        10, ge=1, le=10_000, description="Hits in an answer if the call sets no limit."
    )
    max_tokens: int = Field(
        8000,
        ge=100,
        le=1_000_000,
        description="Size of an answer, in tokens of about 4 bytes, if the call sets no budget.",
    )


class Read(_Section):
    """Limits on reading."""

    max_bytes: int = Field(
        196_608,
        ge=1024,
        le=64 * MIB,
        description="Most bytes of text in one read.",
        json_schema_extra=PROJECT,
    )


class Write(_Section):
    """Limits on writing."""

    max_bytes: int = Field(
        131_072,
        ge=1024,
        le=64 * MIB,
        description="Most bytes in one replacement.",
        json_schema_extra=PROJECT,
    )


def split_list(given: Any) -> Any:
    """Split a text at commas; anything else is returned unchanged."""
    if isinstance(given, str):
        return [part.strip() for part in given.split(",") if part.strip()]
    return given


class Specs(_Section):
    """Where specifications are."""

    folders: list[str] = Field(
        ["specs", "openspec/specs", "openspec/changes/*/specs"],
        description="Folders below which every spec.md is a specification; * in a name matches any text.",
        json_schema_extra=PROJECT,
    )

    @field_validator("folders", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        """Split the text that an environment or a flag holds at its commas."""
        return split_list(given)


class Servers(_Section):
    """The user's language servers. A project cannot set these: servers run with the user's rights."""

    languages: list[
        Literal["c", "cpp", "go", "javascript", "python", "rust", "tsx", "typescript"]
    ] = Field(
        [],
        description="Languages whose server, if on PATH, is used to resolve names: c, cpp, go, javascript, python, "
        "rust, tsx, typescript. Some servers run code of the project: docs/servers.md.",
    )

    @field_validator("languages", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        """Split the text that an environment or a flag holds at its commas."""
        return split_list(given)


class Log(_Section):
    """The daemon's log."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )
    max_bytes: int = Field(
        5 * MIB,
        ge=10_000,
        le=1024 * MIB,
        description="Size at which the log is rotated; one older file is kept.",
    )


EmbeddingProvider = Literal[
    "static",
    "minilm",
    "local",
    "ollama",
    "openai",
    "voyage",
    "lmstudio",
    "vllm",
    "llamacpp",
    "mlx",
    "swift-embeddings",
]


class Embedding(_Section):
    """What turns text into vectors. A project cannot set these: a hostile one would send the code elsewhere."""

    provider: EmbeddingProvider = Field(
        "static",
        description="Embedding provider: static is built in and works offline; a change re-embeds everything.",
    )
    model: str = Field(
        "",
        max_length=1024,
        description="Model name, for local and mlx its folder; empty: the provider's default.",
    )
    url: str = Field(
        "",
        pattern=URL,
        description="Base URL of the provider's API; empty: its default.",
    )
    dims: int = Field(
        0,
        ge=0,
        le=65_536,
        description="Vector dimension, for models that can choose; 0: the model's default.",
    )
    batch: int = Field(
        0,
        ge=0,
        le=2048,
        description="Most texts in one request; 0: the provider's default.",
    )
    timeout_seconds: float = Field(
        60, gt=0, le=3600, description="Timeout of one request."
    )
    attempts: int = Field(
        4,
        ge=1,
        le=20,
        description="Attempts of a request if the provider is busy or unavailable.",
    )


class Reranking(_Section):
    """Reranking of the best results by a model that reads question and text together."""

    provider: Literal["none", "http", "tei", "jina", "cohere", "voyage", "local"] = (
        Field(
            "none",
            description="Reranker: http is any server with a Jina-style /rerank, local a folder.",
        )
    )
    model: str = Field(
        "",
        max_length=1024,
        description="Model name, for local its folder; empty: the provider's default.",
    )
    url: str = Field(
        "",
        pattern=URL,
        description="Base URL of the reranker's API; empty: its default.",
    )
    top: int = Field(50, ge=1, le=1000, description="Results to rerank.")
    timeout_seconds: float = Field(
        10, gt=0, le=600, description="Timeout of one request."
    )


class Refinement(_Section):
    """A chat model that turns a question and its prompt into a search."""

    provider: Literal["none", "openai", "ollama", "lmstudio", "vllm", "llamacpp"] = (
        Field(
            "none",
            description="Provider that refines a question; without one the prompt's words are added to it.",
        )
    )
    model: str = Field(
        "", max_length=1024, description="Model name; empty: the provider's default."
    )
    url: str = Field(
        "",
        pattern=URL,
        description="Base URL of the OpenAI-compatible API; empty: its default.",
    )
    timeout_seconds: float = Field(
        10, gt=0, le=600, description="Timeout of one request."
    )


class Team(_Section):
    """A team's server, queried about projects that are not on this machine."""

    url: str = Field(
        "",
        pattern=TEAM_URL,
        description="Its address; https unless it is on this machine. Empty: none.",
    )
    token_file: str = Field(
        "",
        max_length=4096,
        description=f"File with your token; empty: taken from {TEAM_TOKEN_VARIABLE}.",
    )
    timeout_seconds: float = Field(
        10, gt=0, le=120, description="Timeout of one request."
    )


class Settings(_Section):
    """Every setting of the daemon."""

    idle_exit_minutes: float = Field(
        30,
        ge=0,
        le=525_600,
        description="Minutes without any connection after which the daemon exits; 0: never.",
    )
    read_only: bool = Field(
        False, description="Refuse all methods that write.", json_schema_extra=PROJECT
    )
    max_line_bytes: int = Field(
        8 * MIB,
        ge=4096,
        le=1024 * MIB,
        description="Longest request line, in bytes; longer ones are an error.",
    )
    max_connections: int = Field(
        1024,
        ge=1,
        le=65_536,
        description="Connections served at once; further ones wait.",
    )
    calls_per_connection: int = Field(
        32, ge=1, le=4096, description="Calls in flight per connection."
    )
    call_timeout_seconds: float = Field(
        120, gt=0, le=86_400, description="Default deadline of a call, in seconds."
    )
    tcp: Tcp = Field(default_factory=Tcp, description="The loopback TCP wire.")
    http: Http = Field(default_factory=Http, description="The HTTP wire.")
    mcp: Mcp = Field(default_factory=Mcp, description="The Model Context Protocol.")
    index: Index = Field(default_factory=Index, description="What is indexed.")
    query: Query = Field(default_factory=Query, description="Answers' defaults.")
    read: Read = Field(default_factory=Read, description="Limits on reading.")
    write: Write = Field(default_factory=Write, description="Limits on writing.")
    specs: Specs = Field(default_factory=Specs, description="Where specifications are.")
    embedding: Embedding = Field(
        default_factory=Embedding, description="What turns text into vectors."
    )
    reranking: Reranking = Field(
        default_factory=Reranking, description="Reranking of the best results."
    )
    refinement: Refinement = Field(
        default_factory=Refinement, description="A chat model that refines questions."
    )
    team: Team = Field(default_factory=Team, description="A team's server.")
    servers: Servers = Field(
        default_factory=Servers, description="The user's language servers."
    )
    log: Log = Field(default_factory=Log, description="The daemon's log.")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the source of each key's value."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    """What is not used of a project's own file, and why."""


def load(
    *,
    user_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Merge all sources; keys of ``flags`` are dotted, e.g. ``tcp.port``.

    Raises:
        BadSetting: an unknown key, a value of the wrong type or out of bounds.

    """
    sources: list[tuple[str, Mapping[str, Any]]] = [
        ("default", {key: field.default for key, field in list_settings()})
    ]
    if user_file is not None:
        sources.append((str(user_file), _read_file(user_file)))
    sources.append(("environment", _read_environment(environ or {})))
    sources.append(("flag", flags or {}))
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for source, table in sources:
        # Each source by itself first: from the merged settings one could not tell which
        # file is wrong.
        check_alone(source, table)
        values.update(table)
        origins.update(dict.fromkeys(table, source))
    return Loaded(Settings.model_validate(nest(values)), origins)


def list_settings() -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting's dotted key with its declaration, in order."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from walk(inner, f"{prefix}{name}.")
            else:
                yield prefix + name, field

    yield from walk(Settings, "")


def get_value(settings: Settings, key: str) -> Any:
    """Return the value of a dotted key."""
    setting: Any = settings
    for part in key.split("."):
        setting = getattr(setting, part)
    return setting


def format_example() -> str:
    """Return a commented config.toml with every setting at its default."""
    head = (
        "# flashgrep's settings at their defaults: copy what you change to config.toml in your configuration folder\n"
        "# (~/.config/flashgrep on Linux) or, for settings marked [project], to .flashgrep/config.toml of a project,\n"
        "# which can only tighten them.\n"
        "# The environment overrides the files: FLASHGREP_TCP_PORT=7000 sets tcp.port.\n"
    )
    lines = [head]
    section = ""
    for key, field in list_settings():
        name, _, leaf = key.rpartition(".")
        if name != section:
            lines.append(f"[{name}]\n")
            section = name
        sentence = field.description or ""
        for mark, words in (
            ("project", "[project]"),
            ("rebuild", "A change reindexes."),
        ):
            if has_mark(field, mark):
                sentence += f" {words}"
        lines.append(f"# {sentence}\n# {leaf} = {_format_toml(field.default)}\n")
    return "\n".join(lines)


def has_mark(field: FieldInfo, mark: str) -> bool:
    """Return whether a setting is marked ``project`` or ``rebuild``."""
    return isinstance(field.json_schema_extra, dict) and mark in field.json_schema_extra


def _format_toml(plain: Any) -> str:
    if isinstance(plain, list):
        return f"[{','.join(_format_toml(item) for item in plain)}]"
    return (
        str(plain).lower()
        if isinstance(plain, bool)
        else f'"{plain}"'
        if isinstance(plain, str)
        else str(plain)
    )


def _read_file(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not (
            path.is_file() and path.stat().st_size <= MIB
        ):  # reading a pipe could block for ever
            raise BadSetting(
                f"{path}: not a file of at most 1 MiB", source=str(path), key=""
            )
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadSetting(
            f"{path}: cannot be read: {error.strerror}", source=str(path), key=""
        ) from None
    except (
        ValueError
    ) as error:  # not only tomllib's own: invalid UTF-8, a number of 5,000 digits
        raise BadSetting(
            f"{path}: not TOML: {error}", source=str(path), key=""
        ) from None
    return dict(_flatten(table, "", str(path)))


def _flatten(
    table: Mapping[str, Any], prefix: str, source: str
) -> Iterator[tuple[str, Any]]:
    keys = {key for key, _ in list_settings()}
    sections = {key.rpartition(".")[0] for key in keys} - {""}
    for name, item in table.items():
        key = prefix + name
        # Before sections: a list or a text may have any shape, and its own type
        # validates it.
        if key in keys:
            yield key, item
        elif key in sections and isinstance(item, dict):
            yield from _flatten(item, key + ".", source)
        elif key in sections:
            raise BadSetting(
                f"{source}: {key} is a section, write [{key}]", source=source, key=key
            )
        else:
            raise unknown_setting(source, key, sorted(keys))


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    names = {
        ENV_PREFIX + key.upper().replace(".", "_"): key for key, _ in list_settings()
    }
    overrides: dict[str, Any] = {}
    # Other programs use names like MCP_ENABLED too, so an invalid value is not meant
    # for us.
    for key in (key for key in names.values() if key.startswith("mcp.")):
        text = environ.get(PLAIN_PREFIX + key.removeprefix("mcp.").upper())
        if text is not None:
            with suppress(BadSetting):
                check_alone("environment", {key: text})
                overrides[key] = text
    for name, text in environ.items():
        if name in names:
            overrides[names[name]] = text
        elif name.startswith(ENV_PREFIX) and name not in NOT_SETTINGS:
            raise unknown_setting("environment", name, sorted(names))
    return overrides


def unknown_setting(source: str, key: str, known: list[str]) -> BadSetting:
    """Return the error for an unknown key, with the nearest known one."""
    close = process.extractOne(key, known, score_cutoff=60)
    if close:
        hint = f"; did you mean {close[0]}?"
    else:
        hint = f" (known: {', '.join(known)})"
    return BadSetting(
        f"{source}: unknown setting {key}{hint}",
        source=source,
        key=key,
        allowed=known,
    )


def check_alone(source: str, table: Mapping[str, Any]) -> None:
    """Validate one source by itself, so that an error names its file even if another source overrides it.

    Raises:
        BadSetting: a value of the wrong type or out of bounds; ``allowed`` has the bounds.

    """
    # In a file ``7000`` and ``"7000"`` differ, and only the first is a port.
    strict = source not in {
        "environment",
        "flag",
    }  # environment variables and flags only hold text
    try:
        Settings.model_validate(nest(table), strict=strict)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(
            part for part in problem["loc"] if isinstance(part, str)
        )  # a number: the index in a list
        signs = {"ge": "at least", "gt": "more than", "le": "at most"}
        rules = dict(list_settings())[key].metadata
        allowed = ", ".join(
            f"{sign} {getattr(rule, name)}"
            for rule in rules
            for name, sign in signs.items()
            if hasattr(rule, name)
        )
        message = f"{source}: {key}: {problem['msg'].lower()}"
        if allowed:
            message += f" ({allowed})"
        raise BadSetting(
            message,
            source=source,
            key=key,
            allowed=allowed,
        ) from None


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested tables."""
    tree: dict[str, Any] = {}
    for key, item in flat.items():
        *sections, leaf = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[leaf] = item
    return tree
