"""Which methods a client is shown; those that only read can be called all the same."""

from collections.abc import Iterable
from typing import Final, get_args

from flashgrep.errors import Forbidden, InvalidParams
from flashgrep.registry import Handler, Toolset

DEFAULT: Final[tuple[Toolset, ...]] = ("core", "research")
"""About as many tools as a model chooses well among."""
ALL: Final[tuple[Toolset, ...]] = get_args(Toolset)


def named(names: Iterable[str]) -> tuple[Toolset, ...]:
    """Return the toolsets of these names; ``all`` stands for every one.

    Raises:
        InvalidParams: there is none of a name.

    """
    given = [name.strip() for name in names if name.strip()]
    unknown = [name for name in given if name not in {*ALL, "all"}]
    if unknown:
        raise InvalidParams(f"toolsets: unknown: {', '.join(unknown)}", field="toolsets", allowed=["all", *ALL])
    if not given:
        return DEFAULT
    return tuple(toolset for toolset in ALL if toolset in given or "all" in given)


def check_asked_for(handler: Handler, toolsets: Iterable[Toolset]) -> None:
    """Refuse a method that writes unless its toolset was asked for: nobody has let a host's model use it.

    Raises:
        Forbidden: toolset_required.

    """
    if handler.writes and handler.toolset not in set(toolsets):
        raise Forbidden(
            f"{handler.name} writes, and its toolset was not asked for: {handler.toolset}",
            reason="toolset_required",
            suggestion=f"start the server with --toolsets {','.join([*toolsets, handler.toolset])}",
        )


def shown(handlers: Iterable[Handler], toolsets: Iterable[Toolset], *, may_write: bool) -> list[Handler]:
    """Return the methods of these toolsets in the registry's order, without those that write if the client may not."""
    wanted = set(toolsets)
    return [handler for handler in handlers if handler.toolset in wanted and (may_write or not handler.writes)]
