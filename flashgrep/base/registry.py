"""Methods, declared once and projected to JSON-RPC, MCP, the command line and the reference.

This module imports neither a wire nor an index, and declaring a method changes nothing global.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from rapidfuzz import fuzz, process

from flashgrep.base.errors import InvalidParams, MethodNotFound, clip
from flashgrep.base.path_map import PathMap
from flashgrep.base.vocabulary import NEAR_ENOUGH, VERBATIM, FieldProblem, Vocabulary

Safety = Literal["reads", "changes_index", "writes", "destructive"]
"""What a method may do. ``changes_index``: it changes our own state (an index, a watch) and no file of the project.
It is reported to clients as not read-only, but a read-only connection may call it, since that is about files."""
Toolset = Literal[
    "core",
    "research",
    "collections",
    "knowledge",
    "specs",
    "fs",
    "structural",
    "editors",
]
"""Methods that are shown together. ``core``: what any task needs; ``research``: to understand code; ``structural``: by
syntax; ``fs``: files and folders; ``editors``: by position, for programs, left out of ``all``; ``collections``,
``knowledge`` and ``specs``: as other servers have them."""
Listing = Literal["by_default", "with_toolset", "without_project"]
"""Which lists of tools have a method. ``by_default``: every list, also of a client that named no toolset.
``with_toolset``: only where its toolset was named; it can be called all the same. ``without_project``: also by default,
as long as the connection has no project."""
HostT = TypeVar("HostT")
MOST_PROBLEMS = 10
"""Most problems of a call's parameters listed in an error; a caller corrects the first ones and calls again."""
FIELD_PROBLEM: Final = "field_problem"
MOST_NAME = 100
MOST_SHOWN = 400
"""Most characters of the caller's own text repeated in an error: of a name, of a message."""
Progress = Callable[[float, float | None, str], None]
"""Called with (done, total or None, message) while a long call runs."""
Renderer = Callable[[Any, Any], Iterator[str]]
"""Called with a result and the requested style; yields the lines of its text."""


# Every text, list and number of a method's parameters has a maximum. A call's cost is
# bounded before it runs, so the bounds are generous for any real use and far below what
# would stall the daemon.

MOST_PATTERN = 64 * 1024
"""Most characters over all texts of a pattern."""
MOST_GLOBS = 1000
MOST_LANGUAGES = 200
"""More than we know."""

MOST_PROJECTS = 100
"""Most projects of one question."""
MOST_PATH = 32 * 1024
MOST_GLOB = 4096


def limit_length(most: int) -> AfterValidator:
    """Return a validator that bounds a text's characters.

    pydantic's own max_length refuses lone surrogates, which stand for invalid UTF-8 in names from a command line.
    """

    def check(text: str) -> str:
        if len(text) > most:
            raise ValueError(f"at most {most} characters")
        return text

    return AfterValidator(check)


PathText: TypeAlias = Annotated[
    str, limit_length(MOST_PATH), Field(json_schema_extra={"maxLength": MOST_PATH})
]
"""A path, or a project by name or root. Linux limits a path to 4 KiB, and reports longer ones itself."""
PathBase64: TypeAlias = Annotated[str, Field(max_length=44 * 1024)]
"""A path's bytes in base64."""
GlobText: TypeAlias = Annotated[
    str, limit_length(MOST_GLOB), Field(json_schema_extra={"maxLength": MOST_GLOB})
]
Globs: TypeAlias = Annotated[list[GlobText], Field(max_length=MOST_GLOBS)]
Languages: TypeAlias = Annotated[
    list[Annotated[str, Field(max_length=100)]], Field(max_length=MOST_LANGUAGES)
]
PatternText: TypeAlias = Annotated[str, Field(max_length=MOST_PATTERN)]
NameText: TypeAlias = Annotated[str, Field(max_length=1000)]
"""A name given by the caller or a repository: of a symbol, a specification, an operation, a collection."""
RevisionText: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
"""The name of a revision, or a range."""
SymbolName: TypeAlias = Annotated[NameText, Field(min_length=1, pattern=r"\S")]
"""A non-blank name: blanks would be compared with every name there is."""
CursorText: TypeAlias = Annotated[str, Field(max_length=16 * 1024)]
"""A cursor contains a path, escaped or in base64."""
FileText: TypeAlias = Annotated[str, VERBATIM, Field(max_length=64 * 1024 * 1024)]
"""Text of a file: at most the largest possible `write.max_bytes`; the setting and the line length limit it further."""
LineNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
ByteCount: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""Bytes; up to the largest integer that is exact in every JSON client."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How a field of a method's parameters is presented, in addition to its type: ``Annotated[int, Usage("-l")]``."""

    short: str = ""
    """Its short option on the command line, with the dash."""
    shortcuts: Mapping[str, Any] = field(default_factory=dict)
    """Command line flags, like grep's, that each set the field to a value."""
    words: bool = False
    """On the command line it takes all remaining words, joined by blanks."""
    rare: bool = False
    """Accepted, but not listed for models, whose contexts hold the schemas of all tools."""
    needed: bool = False
    """Listed as required, though a rarer field may replace it (a path's bytes)."""


RARE, NEEDED = Usage(rare=True), Usage(needed=True)


def usage_of(declared: FieldInfo) -> Usage:
    """Return how a field is presented."""
    return next(
        (mark for mark in declared.metadata if isinstance(mark, Usage)), Usage()
    )


class Params(BaseModel):
    """Base of every method's parameters: alternative field names are accepted, unknown ones are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    _vocabulary: ClassVar[Vocabulary]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """Accept fields by all their names; unknown ones give one error, while pydantic would report each."""
        if not isinstance(given, dict):
            return given
        try:
            return cls._vocabulary.read(given)
        except FieldProblem as error:
            context = {"name": clip(error.name, MOST_NAME), "problem": error.problem}
            raise PydanticCustomError(FIELD_PROBLEM, "{problem}", context) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_given: Any) -> None:
        """Compute the names once: every call needs them."""
        cls._vocabulary = Vocabulary.of(cls)

    @classmethod
    def field_names(cls) -> list[str]:
        """Return the names a caller may use, in the order of declaration."""
        return list(cls._vocabulary.fields)

    @classmethod
    def other_names(cls) -> Mapping[str, str]:
        """Return the alternative names of fields, each with its field."""
        return cls._vocabulary.names

    @classmethod
    def find_field(cls, other: str) -> str | None:
        """Return the field with this alternative name; None: it is a field's own name, or unknown."""
        return cls._vocabulary.names.get(other.replace("-", "_"))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a listener allows its connections; set when one is accepted, and only narrowed after that.

    From most to least: the control socket (the user's own commands), clients that have shown the token, a project's
    socket (only that project), an unbound connection (the projects its calls name), a page in a browser
    (``only_reads``).
    """

    control: bool = False
    """Whether the daemon's own methods are answered: ``$/cli``, ``$/open``, ``$/shutdown`` and the like."""
    asks_team: bool = False
    """Whether the team's server is asked about projects unknown here, even though the connection is bound."""
    writes: Literal["always", "with_token", "never"] = "always"
    """Whether files may be written; never: in read-only mode, even with the token."""
    only_reads: bool = False
    """Whether only reading methods on known projects are answered, for a page in a browser."""


@dataclass(slots=True)
class Session:
    """What one connection is bound to and may do; created by its wire, and never shared."""

    projects: tuple[str, ...] = ()
    """Roots or names of the projects the connection is bound to; empty: whichever a call names."""
    collections: tuple[str, ...] = ()
    """Roots or names of the collections named at initialization; the collection methods refuse to run without."""
    indexed: tuple[str, ...] = ()
    """Roots indexed at an unbound connection's request: if there is one, calls that name no project mean it."""
    visited: tuple[str, ...] = ()
    """Those of ``indexed`` that are no projects: a host was started there, and its folder is read without an index."""
    capabilities: Capabilities = Capabilities()
    read_only: bool = False
    """Requested by the client itself, in a URL or by ``$/bind``; it cannot be undone."""
    authenticated: bool = True
    """False on a TCP connection that has to show the token first."""
    has_token: bool = False
    """Whether the token was shown."""
    path_map: PathMap | None = None
    """Translates paths for a client that sees other ones."""
    wire: str = "memory"
    notes: dict[str, Any] = field(default_factory=dict)
    """Per-connection state of single methods, by method (e.g. whether the skill was already sent)."""

    @property
    def is_bound(self) -> bool:
        """Whether the connection may reach nothing but its projects; the user's own commands reach everything."""
        return bool(self.projects) and not self.capabilities.control

    @property
    def may_write(self) -> bool:
        """Whether methods that write are allowed."""
        allowed = self.capabilities.writes
        return not self.read_only and (
            allowed == "always" or (allowed == "with_token" and self.has_token)
        )

    @property
    def lacks_token(self) -> bool:
        """Whether the token is all that is missing for writing."""
        return (
            not self.read_only
            and not self.has_token
            and self.capabilities.writes == "with_token"
        )

    def drop_control(self) -> None:
        """Refuse the daemon's own methods from now on, since another party, such as an agent, uses the connection."""
        self.capabilities = replace(self.capabilities, control=False)


def _no_progress(_done: float, _total: float | None, _message: str) -> None:
    """Drop progress that nobody requested."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Call(Generic[HostT]):
    """One call in flight: its session, its host (the catalogue of projects), and its deadline."""

    host: HostT
    session: Session
    deadline: float | None = None
    """On the clock of time.monotonic(), in seconds; None: no limit."""
    progress: Progress = _no_progress
    as_text: bool = False
    """The answer is sent as its renderer's text, to which budgets then apply; else as JSON."""
    for_person: bool = False
    """A person at a shell reads the answer: what can be said at once is better than an error by contract."""

    @property
    def is_rendered(self) -> bool:
        """Whether the answer becomes text here, so that its values are needed; else it is sent as it is."""
        return self.as_text or self.for_person


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A method: its name, its parameter and result types, what it may do, and the coroutine that answers."""

    name: str
    aliases: tuple[str, ...]
    command: str
    """Its name on the command line."""
    arguments: tuple[str, ...]
    """Positional arguments on the command line, in order."""
    title: str
    doc: str
    safety: Safety
    idempotent: bool
    toolset: Toolset
    listing: Listing
    params: type[Params]
    result: Any
    run: Callable[[Any, Any], Awaitable[Any]]
    render: Renderer | None
    """Yields the lines of a result for a reader (``methods.text.Style``); None: models get JSON."""

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return self.doc.partition("\n")[0]

    @property
    def writes(self) -> bool:
        """Whether the method may change the project's files."""
        return self.safety in {"writes", "destructive"}

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
            problems = []
            for item in error.errors(include_url=False, include_input=False)[
                :MOST_PROBLEMS
            ]:
                where = [clip(str(part), MOST_NAME) for part in item["loc"]]
                if item["type"] == FIELD_PROBLEM:
                    where.append(item["ctx"]["name"])
                problems.append(
                    {"field": ".".join(where), "problem": clip(item["msg"], MOST_SHOWN)}
                )
            # The message is about the first one; ``problems`` has the others.
            first = problems[0]
            message = (
                f"{self.name}: {first['field'] or 'parameters'}: {first['problem']}"
            )
            raise InvalidParams(
                message, field=first["field"], problems=problems
            ) from None


def handler(  # noqa: PLR0913 - what a method declares, each by its name
    name: str,
    *aliases: str,
    command: str = "",
    title: str = "",
    safety: Safety = "reads",
    idempotent: bool | None = None,
    toolset: Toolset = "core",
    listing: Listing = "with_toolset",
    render: Renderer | None = None,
) -> Callable[[Callable[[Any, Any], Awaitable[Any]]], Handler]:
    """Declare a method: types come from the annotations of ``params`` and the return value, prose from the docstring.

    ``command``: its name on the command line, then its positional fields. Default: the method's name with dashes, and
    its required fields. ``render``: renders its answer as text.
    """

    def declare(run: Callable[[Any, Any], Awaitable[Any]]) -> Handler:
        hints = get_type_hints(run)
        required = [
            each
            for each, declared in hints["params"].model_fields.items()
            if declared.is_required()
        ]
        command_name, *arguments = command.split() or [
            name.replace("_", "-"),
            *required,
        ]
        return Handler(
            name=name,
            aliases=aliases,
            command=command_name,
            arguments=tuple(arguments),
            title=title or name.replace("_", " "),
            doc=inspect.getdoc(run) or "",
            safety=safety,
            idempotent=safety == "reads" if idempotent is None else idempotent,
            toolset=toolset,
            listing=listing,
            params=hints["params"],
            result=hints["return"],
            run=run,
            render=render,
        )

    return declare


class Registry:
    """Methods in a stable order, found by name or alias; a name taken twice fails at once."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers = tuple(handlers)
        self._by_name: dict[str, Handler] = {}
        self._by_command = {declared.command: declared for declared in self._handlers}
        for declared in self._handlers:
            for name in (declared.name, *declared.aliases):
                # Check at declaration: a method that hides another would be noticed
                # much later.
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
            name = clip(name, MOST_NAME)
            near = process.extractOne(
                name, self.names(), scorer=fuzz.ratio, score_cutoff=NEAR_ENOUGH
            )
            advice = {"suggestion": f"did you mean {near[0]}?"} if near else {}
            raise MethodNotFound(
                f"method not found: {name}", method=name, **advice
            ) from None

    def name_commands(self, text: str) -> str:
        """Return a sentence with methods named by their commands: ``fgrep symbol`` for get_symbol."""
        # A name without "_" may be an ordinary word, and is also its command's name.
        commands = {
            current_handler.name: f"fgrep {current_handler.command}"
            for current_handler in self._handlers
            if "_" in current_handler.name
        }
        return re.sub(
            r"[a-z]+(?:_[a-z]+)+", lambda found: commands.get(found[0], found[0]), text
        )

    def find_command(self, command: str) -> Handler | None:
        """Return the method that has this name on the command line, or None."""
        return self._by_command.get(command)
