"""A part: a feature beside the core, declared as one value, as a method is.

The core imports no part. What a part adds is collected from its ``Part`` by the programs that put everything together:
the daemon, the command line's generator, a team's server.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from flashgrep.base.registry import Handler, Registry


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


def make_registry(core: Iterable[Handler], parts: Iterable[Part]) -> Registry:
    """Return the registry of the core's methods and those of the parts, in this order.

    Raises:
        ValueError: two methods have the same name.

    """
    handlers = list(core)
    for part in parts:
        handlers += part.handlers
    return Registry(handlers)


def without(parts: Iterable[Part], name: str) -> tuple[Part, ...]:
    """Return the parts that remain when one is left out: those that build on it, directly or not, go with it."""
    gone = {name}
    remaining: list[Part] = []
    # Parts are listed after those they require, so that one pass finds all that depend on it.
    for part in parts:
        if part.name == name or gone.intersection(part.requires):
            gone.add(part.name)
        else:
            remaining.append(part)
    return tuple(remaining)
