"""A part: a feature beside the core, declared as one value, as a method is.

The core imports no part. What a part adds is collected from its ``Part`` by the programs that put everything together:
the daemon, the command line's generator, a team's server.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from flashgrep.api.searchers import Searchers
from flashgrep.api.service import MakeHostService, MakeProjectService, ServiceKey
from flashgrep.base.registry import Handler, Registry
from flashgrep.index.stage import Stage


class ClientCall(Protocol):
    """Answers a call of the command line that is no method."""

    def __call__(
        self, context: Any, folder: str, params: Mapping[str, Any], /
    ) -> Awaitable[dict[str, Any] | None]:
        """Return the answer, or None if the method of that name answers; in ``params``, bytes are latin-1 text."""


class ExtendRegistry(Protocol):
    """Adds methods that depend on settings, or answers some elsewhere."""

    def __call__(
        self, registry: Registry, settings: Any, environ: Mapping[str, str], /
    ) -> Registry:
        """Return the registry that a daemon with these settings and this environment serves."""


class CheckResult(NamedTuple):
    """The outcome of one check."""

    state: Literal["ok", "warn", "bad"]
    check: str
    text: str
    remedy: str = ""
    """Our command that mends it, as it is typed; empty: it is well, or no command of ours can."""


Check = Callable[[], Iterator[CheckResult]]
"""Checks one thing of an installation."""


class StdioProtocol(NamedTuple):
    """A command that speaks a protocol over standard input and output, in the client's process."""

    module: str
    """Its ``main`` gets the arguments, and returns the exit status."""
    summary: str
    """One sentence for the list of commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A feature beside the core: what it adds, and which other parts it builds on."""

    name: str
    """Its folder below ``flashgrep/parts``, or a name of a third party's own."""
    summary: str
    """One sentence for people."""
    requires: tuple[str, ...] = ()
    """Names of the parts it imports; without one of them it is left out as well."""
    handlers: tuple[Handler, ...] = ()
    """Its methods, in the order in which they are listed."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Its commands that are no methods: ``module:function`` or ``module:typer_group`` by the command's name."""
    protocols: Mapping[str, StdioProtocol] = field(default_factory=dict)
    """Its commands that speak a protocol over standard input and output."""
    http_module: str = ""
    """The module that serves HTTP on request: ``listen``, ``application`` and ``server``."""
    client_calls: Mapping[str, ClientCall] = field(default_factory=dict)
    """Answers calls of the command line that are no methods, by the command's first word."""
    extend_registry: ExtendRegistry | None = None
    """Changes the registry of a daemon."""
    checks: Sequence[Check] = ()
    """What ``fgrep doctor`` checks of it."""
    searchers: Searchers = field(default_factory=Searchers)
    """Questions about a view that the core asks and this part answers."""
    project_services: Mapping[ServiceKey[Any], MakeProjectService] = field(
        default_factory=dict
    )
    """Makes what it keeps for a project, when that is opened."""
    host_services: Mapping[ServiceKey[Any], MakeHostService] = field(
        default_factory=dict
    )
    """Makes what it keeps for all projects of a host, when that starts."""
    stages: Sequence[Stage] = ()
    """The late stages whose rows it makes and reads, in their order."""
    indexer_functions: Mapping[str, str] = field(default_factory=dict)
    """What the process of an indexer does for it: ``module:function`` by the command, a late stage or ``keep``.

    The function gets a ``indexer.project_work.ProjectWork``. Its module is imported there, when it is first needed.
    """


def make_registry(parts: Iterable[Part]) -> Registry:
    """Return the registry of the parts' methods, in this order.

    Raises:
        ValueError: two methods have the same name.

    """
    handlers: list[Handler] = []
    for part in parts:
        handlers += part.handlers
    return Registry(handlers)


def without(parts: Iterable[Part], name: str) -> tuple[Part, ...]:
    """Return the parts that remain when one is left out: those that build on it, directly or not, go with it."""
    gone = {name}
    remaining: list[Part] = []
    # Parts are listed after those they require, so that one pass finds all that depend
    # on it.
    for part in parts:
        if gone.intersection(part.requires):
            gone.add(part.name)
        if part.name not in gone:
            remaining.append(part)
    return tuple(remaining)
