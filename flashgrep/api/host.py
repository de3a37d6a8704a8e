"""A host: where a call finds the project it is about.

The daemon's catalogue and a team's server are hosts. Methods ask any of them by this protocol, and never which one it
is.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakSet

from flashgrep.api.searchers import Searchers
from flashgrep.api.service import ServedAnswer, ServiceKey
from flashgrep.api.view import Project
from flashgrep.base.config import Settings
from flashgrep.base.registry import Call, Registry, Session
from flashgrep.files.buffers import Buffers

ServiceT = TypeVar("ServiceT")


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A known project; its name is also the name of its collection."""

    name: str
    root: Path
    open: bool


class Host(Protocol):
    """All projects that calls may be about."""

    @property
    def settings(self) -> Settings:
        """The user's settings."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment: the keys of embedding providers."""

    @property
    def registry(self) -> Registry:
        """The methods that it has."""

    @property
    def searchers(self) -> Searchers:
        """Questions that parts answer."""

    @property
    def buffers(self) -> WeakSet[Buffers]:
        """The files open in editors, of all connections."""

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for all projects; raises Unavailable if the part is left out."""

    def workspace(self, call: Call[Any], project: str | None, /) -> Awaitable[Project]:
        """Return the project a call is about: the one it names, else the one its connection is bound to.

        Raises:
            NotFound: project_not_found, there is no such project, or the call has none.
            InvalidParams: project_required, there are several and the call names none.
            Forbidden: outside_root, the connection is bound to others.

        """

    def open_bound(self, call: Call[Any]) -> Awaitable[Sequence[Project]]:
        """Return the projects that a call's connection is bound to, in its order; raises as ``workspace``."""

    def list_open(self) -> Sequence[Project]:
        """Return the projects that are open."""

    def list_projects(self) -> Sequence[ProjectInfo]:
        """Return the known projects that have a root folder, by name."""

    def list_bound(self, session: Session) -> list[str]:
        """Return the names of the projects a connection is bound to, in its order; none for an unbound one."""

    def list_reachable(self, session: Session) -> list[str]:
        """Return the names of the projects a connection may name."""

    def is_listed(self, root: str) -> bool:
        """Return whether the files of the project at a root are known: no question waits for a listing."""

    def find_roots(
        self, session: Session, projects: Sequence[str] | Literal["*"]
    ) -> list[str]:
        """Return the roots of the projects a call names, without duplicates; ``*``: of all it may name.

        Unknown names are returned unchanged.
        """

    def find_file(self, session: Session, project: str | None, path: bytes) -> bytes:
        """Return the resolved path of a file that a call names; it need not exist. Call it in a thread.

        Raises:
            Forbidden: outside_root, it is in no project the connection may reach; protected_path.
            NotFound: project_not_found.
            InvalidParams: not a possible path of a file.

        """

    def note_answer(self, answer: ServedAnswer) -> None:
        """Tell the parts of an answer that a model was given."""
