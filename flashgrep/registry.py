"""What a method is: declared once, projected to JSON-RPC, MCP, the command line and the reference.

This module imports neither a wire nor an index, and declaring a method changes nothing global.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from flashgrep.errors import InvalidParams, MethodNotFound

Safety = Literal["reads", "writes", "destructive"]
Toolset = Literal["core", "research", "collections", "knowledge", "specs", "fs", "admin"]
HostT = TypeVar("HostT")
Progress = Callable[[float, float | None, str], None]
"""Called with (done, total or None, message) while a long call runs."""


class Params(BaseModel):
    """Base of every method's parameters: an unknown field is an error, and names the field."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(slots=True)
class Session:
    """What one connection is bound to and may do; made by the wire, never shared between connections."""

    projects: tuple[str, ...] = ()
    """Names or roots the connection is bound to; empty: any, the only or first one by default."""
    collections: tuple[str, ...] = ()
    """Collections named at initialization; the collection methods refuse to run without."""
    may_write: bool = True
    """False over TCP until the token was shown, and in read-only mode."""
    authenticated: bool = True
    """False on a TCP connection that has to show the token first."""
    wire: str = "memory"
    notes: dict[str, Any] = field(default_factory=dict)
    """Per-connection facts of single methods, by method (whether the skill was injected already)."""


def _no_progress(_done: float, _total: float | None, _message: str) -> None:
    """Drop progress nobody asked for."""


@dataclass(slots=True)
class Call(Generic[HostT]):
    """One call in flight: who asks (session), whom (host: the catalogue of projects), until when."""

    host: HostT
    session: Session
    deadline: float | None = None
    """On the clock of time.monotonic(), in seconds; None: no limit."""
    progress: Progress = _no_progress
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A method: its name, its shapes, what it may do, and the coroutine that answers."""

    name: str
    aliases: tuple[str, ...]
    title: str
    doc: str
    safety: Safety
    idempotent: bool
    toolset: Toolset
    params: type[Params]
    result: Any
    run: Callable[[Any, Any], Awaitable[Any]]

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return self.doc.partition("\n")[0]

    @property
    def writes(self) -> bool:
        """Whether the method may change files."""
        return self.safety != "reads"

    def params_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters."""
        return self.params.model_json_schema()

    def result_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the result, itself an object."""
        return TypeAdapter(self.result).json_schema()

    async def call(self, call: Call[Any], raw: Mapping[str, Any]) -> Any:
        """Validate ``raw`` and answer; the result is JSON-ready.

        Raises:
            InvalidParams: a field is missing, unknown or out of bounds.

        """
        return await self.run(call, self.validate(raw))

    def validate(self, raw: Mapping[str, Any]) -> Params:
        """Return the parameters as their model, or raise InvalidParams naming the field and what is allowed."""
        try:
            return self.params.model_validate(raw)
        except ValidationError as error:
            raise _invalid(self.name, error) from None


def _invalid(method: str, error: ValidationError) -> InvalidParams:
    problems = [
        {"field": ".".join(str(part) for part in item["loc"]), "problem": item["msg"]} for item in error.errors()
    ]
    first = problems[0]
    message = f"{method}: {first['field'] or 'parameters'}: {first['problem']}"
    return InvalidParams(message, field=first["field"], problems=problems)


def handler(
    name: str,
    *,
    aliases: tuple[str, ...] = (),
    title: str = "",
    safety: Safety = "reads",
    idempotent: bool | None = None,
    toolset: Toolset = "core",
) -> Callable[[Callable[[Any, Any], Awaitable[Any]]], Handler]:
    """Declare a method: shapes come from the hints of ``params`` and the return, prose from the docstring."""

    def declare(run: Callable[[Any, Any], Awaitable[Any]]) -> Handler:
        hints = get_type_hints(run)
        return Handler(
            name=name,
            aliases=aliases,
            title=title or name.replace("_", " "),
            doc=inspect.getdoc(run) or "",
            safety=safety,
            idempotent=safety == "reads" if idempotent is None else idempotent,
            toolset=toolset,
            params=hints["params"],
            result=hints["return"],
            run=run,
        )

    return declare


class Registry:
    """Methods in a stable order, found by name or alias; a name taken twice fails at once."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers = tuple(handlers)
        self._by_name: dict[str, Handler] = {}
        for declared in self._handlers:
            for name in (declared.name, *declared.aliases):
                if name in self._by_name:
                    raise ValueError(f"method name taken twice: {name}")
                self._by_name[name] = declared

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def names(self) -> list[str]:
        """Return every name and alias, in the order of declaration."""
        return list(self._by_name)

    def get(self, name: str) -> Handler:
        """Return the method of this name or alias, or raise MethodNotFound."""
        try:
            return self._by_name[name]
        except KeyError:
            raise MethodNotFound(f"method not found: {name}", method=name) from None
