"""What the adapter remembers of one connection, kept in its session and dropped with it."""

from dataclasses import dataclass, field
from typing import Any

import anyio

from flashgrep.mcp.era import NEWEST_LEGACY
from flashgrep.mcp.toolsets import DEFAULT
from flashgrep.registry import Session, Toolset

NOTE = "mcp"


@dataclass(slots=True)
class ClientState:
    """One client: how it speaks, what it is shown, and where to look for its project."""

    version: str = NEWEST_LEGACY
    capabilities: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    toolsets: tuple[Toolset, ...] = DEFAULT
    fallback: str | None = None
    """The folder the host started us in: its project, unless the client names roots."""
    to_choose: int = 0
    """How often the project was left to be chosen, by the client's roots or the fallback; a change of roots counts."""
    chosen: int = 0
    """The last of these that is done; a change that comes while a choice is made is chosen after it."""
    choosing: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def unchosen(self) -> bool:
        """Whether the project is still to be chosen."""
        return self.chosen != self.to_choose


def state_of(session: Session) -> ClientState:
    """Return what is remembered of the session's client."""
    state: ClientState = session.notes.setdefault(NOTE, ClientState())
    return state
