"""Which tools a client is shown, and which of them may write: by the toolsets it named, else few."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, get_args

from flashgrep.base.errors import InvalidParams
from flashgrep.base.registry import Handler, Toolset

TOOLSETS: Final[tuple[Toolset, ...]] = get_args(Toolset)
NOT_FOR_AGENTS: Final = frozenset({"editors"})
"""Toolsets that ``all`` leaves out: they need positions, and an agent has names and better tools for these."""
USUAL: Final[tuple[Toolset, ...]] = ("core", "research")
"""The toolsets of the default list, and all of ``compat``."""
GROUPS: Final = ("default", "compat", "all")
"""Names that stand for several toolsets."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The toolsets that a client named; by default it named none."""

    names: tuple[str, ...] = ("default",)
    """In the client's words, each once."""
    usable: frozenset[Toolset] = frozenset(USUAL)
    """Those whose methods may write."""
    complete: frozenset[Toolset] = frozenset()
    """Those of which every method is listed."""

    def shows(self, handler: Handler, *, has_project: bool) -> bool:
        """Return whether a method is listed."""
        if handler.toolset in self.complete:
            return True
        if handler.toolset not in self.usable:
            return False
        if handler.listing == "without_project":
            return not has_project
        return handler.listing == "by_default"


def choose_tools(given: Iterable[str]) -> ToolChoice:
    """Return the choice of these names; none: the default.

    ``default``: few tools, with which a model chooses well. ``compat``: all of core and research. ``all``: all that
    agents can use.

    Raises:
        InvalidParams: a name is unknown.

    """
    stripped = [name.strip() for name in given]
    names = tuple(dict.fromkeys(name for name in stripped if name))
    unknown = [name for name in names if name not in {*GROUPS, *TOOLSETS}]
    if unknown:
        raise InvalidParams(
            f"toolsets: unknown: {', '.join(unknown)}",
            field="toolsets",
            allowed=[*GROUPS, *TOOLSETS],
        )
    if not names:
        return ToolChoice()
    complete = {toolset for toolset in TOOLSETS if toolset in names}
    if "compat" in names:
        complete.update(USUAL)
    if "all" in names:
        complete.update(set(TOOLSETS) - NOT_FOR_AGENTS)
    usable = set(complete)
    if "default" in names:
        usable.update(USUAL)
    return ToolChoice(names, frozenset(usable), frozenset(complete))
