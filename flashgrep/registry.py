"""What a method is: declared once, projected to JSON-RPC, MCP, the command line and the reference.

This module imports neither a wire nor an index, and declaring a method changes nothing global.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from rapidfuzz import fuzz, process

from flashgrep.errors import InvalidParams, MethodNotFound, clip
from flashgrep.path_map import PathMap
from flashgrep.vocabulary import NEAR_ENOUGH, VERBATIM, FieldProblem, Vocabulary

Safety = Literal["reads", "changes_index", "writes", "destructive"]
"""What a method may do. ``changes_index``: it changes our own state (an index, a watch) and no file of the project.
Clients are told that it is not read-only; a read-only connection may call it, for that is about files."""
Toolset = Literal["core", "research", "collections", "knowledge", "specs", "fs", "structural", "admin", "editors"]
HostT = TypeVar("HostT")
MOST_PROBLEMS = 10
"""Problems of one call's parameters that an error lists; a caller corrects the first ones and calls again."""
FIELD_PROBLEM: Final = "field_problem"
MOST_NAME = 100
MOST_SHOWN = 400
"""Characters of a caller's own text that an error repeats: of a name, of a message."""
Progress = Callable[[float, float | None, str], None]
"""Called with (done, total or None, message) while a long call runs."""
Renderer = Callable[[Any, Any], Iterator[str]]
"""Called with a result and the style that is wanted; yields the lines of its text."""


# Bounds of what callers send: every text, list and number of a method's parameters has a maximum. What a call may cost
# is decided before it runs, so a bound is generous to any real use and far below what would hold the daemon up.

MOST_PATTERN = 64 * 1024
"""Characters over all texts of a pattern."""
MOST_GLOBS = 1000
MOST_LANGUAGES = 200
"""We know fewer."""

MOST_PROJECTS = 100
"""In one question."""
MOST_PATH = 32 * 1024
MOST_GLOB = 4096


def limit_length(most: int) -> AfterValidator:
    """Return a bound on a text's characters.

    pydantic's own max_length refuses the lone surrogates by which a command line carries names that are not UTF-8.
    """

    def check(text: str) -> str:
        if len(text) > most:
            raise ValueError(f"at most {most} characters")
        return text

    return AfterValidator(check)


PathText: TypeAlias = Annotated[str, limit_length(MOST_PATH), Field(json_schema_extra={"maxLength": MOST_PATH})]
"""A path, or a project by name or root. A path has at most 4 KiB on Linux; the system says so where one is too long."""
PathBase64: TypeAlias = Annotated[str, Field(max_length=44 * 1024)]
"""A path's bytes in base64."""
GlobText: TypeAlias = Annotated[str, limit_length(MOST_GLOB), Field(json_schema_extra={"maxLength": MOST_GLOB})]
Globs: TypeAlias = Annotated[list[GlobText], Field(max_length=MOST_GLOBS)]
Languages: TypeAlias = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=MOST_LANGUAGES)]
PatternText: TypeAlias = Annotated[str, Field(max_length=MOST_PATTERN)]
NameText: TypeAlias = Annotated[str, Field(max_length=1000)]
"""A name the caller or a repository gave: of a symbol, a specification, an operation, a folder's collection."""
RevisionText: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
"""A revision's name, or two."""
SymbolName: TypeAlias = Annotated[NameText, Field(min_length=1, pattern=r"\S")]
"""A name with something in it: blanks alone would be compared with every name there is."""
CursorText: TypeAlias = Annotated[str, Field(max_length=16 * 1024)]
"""A cursor holds a path, escaped and in base64."""
FileText: TypeAlias = Annotated[str, VERBATIM, Field(max_length=64 * 1024 * 1024)]
"""Text of a file: as long as the largest `write.max_bytes`; the setting and the length of a line bound it further."""
LineNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
ByteCount: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""Bytes; up to where a JSON number is exact in every client."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How a field of a method's parameters is offered, besides what its type says: ``Annotated[int, Usage("-l")]``."""

    short: str = ""
    """Its letter on the command line, with the dash."""
    shortcuts: Mapping[str, Any] = field(default_factory=dict)
    """Flags of the command line, as grep does, that each stand for a value of the field."""
    words: bool = False
    """On the command line it takes all words that are left, as one text with blanks between them."""
    rare: bool = False
    """Not listed to models, whose contexts hold the schemas of all tools; taken all the same."""
    needed: bool = False
    """Required, though a rarer field may be in its place (a path's bytes): listed as required."""


RARE, NEEDED = Usage(rare=True), Usage(needed=True)


def usage_of(declared: FieldInfo) -> Usage:
    """Return how a field is offered."""
    return next((mark for mark in declared.metadata if isinstance(mark, Usage)), Usage())


class Params(BaseModel):
    """Base of every method's parameters: fields are taken by other names too, and an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    _vocabulary: ClassVar[Vocabulary]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """Take the fields by all their names; of unknown ones one error tells, while pydantic would describe each."""
        if not isinstance(given, dict):
            return given
        try:
            return cls._vocabulary.read(given)
        except FieldProblem as error:
            context = {"name": clip(error.name, MOST_NAME), "problem": error.problem}
            raise PydanticCustomError(FIELD_PROBLEM, "{problem}", context) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_given: Any) -> None:
        """Note the names once: every call asks for them."""
        cls._vocabulary = Vocabulary.of(cls)

    @classmethod
    def field_names(cls) -> list[str]:
        """Return the names a caller may use, in the order of declaration."""
        return list(cls._vocabulary.fields)

    @classmethod
    def find_field(cls, other: str) -> str | None:
        """Return the field that another name stands for; None: it is a field's own, or stands for none."""
        return cls._vocabulary.names.get(other.replace("-", "_"))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a listener lets its connections do; set when one is accepted, and only narrowed after that.

    From most to least: the control socket (the user's own commands), whoever has shown the token, a project's socket
    (that project alone), a connection bound to no project (what its calls name), a page in a browser (``only_reads``).
    """

    control: bool = False
    """Whether the daemon's own methods are answered: ``$/cli``, ``$/open``, ``$/shutdown`` and the like."""
    asks_team: bool = False
    """Whether the team's server is asked about projects that nobody knows here, though the connection is bound."""
    writes: Literal["always", "with_token", "never"] = "always"
    """Whether files may be written; never: in read-only mode, whatever else is shown."""
    only_reads: bool = False
    """Whether nothing is answered but methods that read, of projects that are known: a page in a browser asks."""


@dataclass(slots=True)
class Session:
    """What one connection is bound to and may do; its wire makes it, and no two connections share one."""

    projects: tuple[str, ...] = ()
    """Roots or names of the projects the connection is bound to and reaches; empty: whichever a call names."""
    collections: tuple[str, ...] = ()
    """Roots or names of the collections named at initialization; the collection methods refuse to run without."""
    indexed: tuple[str, ...] = ()
    """Roots that a connection bound to no project has had indexed: a call that names no project means the only one."""
    capabilities: Capabilities = Capabilities()
    read_only: bool = False
    """The client itself asked for it, in a URL or by ``$/bind``; it cannot take that back."""
    authenticated: bool = True
    """False on a TCP connection that has to show the token first."""
    has_token: bool = False
    """Whether the token was shown."""
    path_map: PathMap | None = None
    """How the client calls our paths, where it sees others."""
    wire: str = "memory"
    notes: dict[str, Any] = field(default_factory=dict)
    """Per-connection facts of single methods, by method (whether the skill was injected already)."""

    @property
    def may_write(self) -> bool:
        """Whether methods that write run."""
        allowed = self.capabilities.writes
        return not self.read_only and (allowed == "always" or (allowed == "with_token" and self.has_token))

    @property
    def lacks_token(self) -> bool:
        """Whether the token is all that is missing for writing."""
        return not self.read_only and not self.has_token and self.capabilities.writes == "with_token"

    def drop_control(self) -> None:
        """Refuse the daemon's own methods from now on: somebody else, as an agent, speaks on the connection."""
        self.capabilities = replace(self.capabilities, control=False)


def _no_progress(_done: float, _total: float | None, _message: str) -> None:
    """Drop progress that nobody asked for."""


@dataclass(slots=True)
class Call(Generic[HostT]):
    """One call in flight: who asks (session), whom (host: the catalogue of projects), until when."""

    host: HostT
    session: Session
    deadline: float | None = None
    """On the clock of time.monotonic(), in seconds; None: no limit."""
    progress: Progress = _no_progress
    as_text: bool = False
    """The answer is sent as its renderer's text, which a budget is about then; else as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A method: its name, its shapes, what it may do, and the coroutine that answers."""

    name: str
    aliases: tuple[str, ...]
    command: str
    """Its name on the command line."""
    arguments: tuple[str, ...]
    """Fields that are given by position on the command line, in their order."""
    title: str
    doc: str
    safety: Safety
    idempotent: bool
    toolset: Toolset
    params: type[Params]
    result: Any
    run: Callable[[Any, Any], Awaitable[Any]]
    render: Renderer | None
    """Yields the lines of a result for a reader (``handlers.text.Style``); None: its text is its JSON."""

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
            for item in error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]:
                where = [clip(str(part), MOST_NAME) for part in item["loc"]]
                if item["type"] == FIELD_PROBLEM:
                    where.append(item["ctx"]["name"])
                problems.append({"field": ".".join(where), "problem": clip(item["msg"], MOST_SHOWN)})
            # The message is about the first one; ``problems`` has the others.
            first = problems[0]
            message = f"{self.name}: {first['field'] or 'parameters'}: {first['problem']}"
            raise InvalidParams(message, field=first["field"], problems=problems) from None


def handler(  # noqa: PLR0913 - what a method declares, each by its name
    name: str,
    *aliases: str,
    command: str = "",
    title: str = "",
    safety: Safety = "reads",
    idempotent: bool | None = None,
    toolset: Toolset = "core",
    render: Renderer | None = None,
) -> Callable[[Callable[[Any, Any], Awaitable[Any]]], Handler]:
    """Declare a method: shapes come from the hints of ``params`` and the return, prose from the docstring.

    ``command``: its name on the command line, then the fields that are given by position there. By default it is called
    like the method, with dashes, and takes the fields that the method requires. ``render``: how its answer reads.
    """

    def declare(run: Callable[[Any, Any], Awaitable[Any]]) -> Handler:
        hints = get_type_hints(run)
        required = [each for each, declared in hints["params"].model_fields.items() if declared.is_required()]
        command_name, *arguments = command.split() or [name.replace("_", "-"), *required]
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
                # At once when it is declared: a method that hides another would be found much later.
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
            near = process.extractOne(name, self.names(), scorer=fuzz.ratio, score_cutoff=NEAR_ENOUGH)
            advice = {"suggestion": f"did you mean {near[0]}?"} if near else {}
            raise MethodNotFound(f"method not found: {name}", method=name, **advice) from None

    def name_commands(self, text: str) -> str:
        """Return a sentence with methods as they are called on the command line: ``fgrep symbol`` for get_symbol."""
        # A name without "_" may be a word of the sentence, and is its command's as well.
        commands = {one.name: f"fgrep {one.command}" for one in self._handlers if "_" in one.name}
        return re.sub(r"[a-z]+(?:_[a-z]+)+", lambda found: commands.get(found[0], found[0]), text)

    def find_command(self, command: str) -> Handler | None:
        """Return the method that has this name on the command line, or None."""
        return self._by_command.get(command)
