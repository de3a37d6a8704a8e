"""What reading and writing need of a project; the workspace is one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from flashgrep.edit.editor import Editor
from flashgrep.registry import Call

ResultT = TypeVar("ResultT")


class Project(Protocol):
    """One project, as the methods that read and write see it."""

    @property
    def editor(self) -> Editor:
        """The project's open root and bounds."""

    @property
    def read_only(self) -> bool:
        """Whether every write is refused."""

    def mark_changed(self, paths: Sequence[bytes], /) -> None:
        """Make the next query read these paths from disk."""

    def in_turn(self, work: Callable[[], ResultT], /) -> Awaitable[ResultT]:
        """Run what may take long in a thread, in fair turn with what others ask."""

    def find_definition(self, name: str, /) -> Awaitable[tuple[bytes, int, int] | None]:
        """Return the path and the lines of a symbol's definition."""


class Projects(Protocol):
    """Finds the project a call is about."""

    def workspace(self, call: Call[Any], name: str | None, /) -> Awaitable[Project]:
        """Return the project of this name, or the connection's own."""
