"""The daemon's open wires: the control socket, TCP, and one socket in each project's folder."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import anyio
from anyio.abc import TaskGroup

from flashgrep.config import Settings
from flashgrep.connect import try_connect
from flashgrep.errors import FlashgrepError, Unavailable
from flashgrep.paths import Paths, make_project_folder, project_socket
from flashgrep.registry import Capabilities, Session
from flashgrep.rpc.connection import Connection
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.tcp import serve_tcp
from flashgrep.rpc.unix import serve_unix


class TcpState(TypedDict):
    """Where TCP listens, beside where it was asked to; port None: nowhere, and ``problem`` says why."""

    wanted: int
    port: int | None
    problem: str


@dataclass(slots=True)
class Wires:
    """Opens the wires, remembers what became of each, and when a client last came."""

    paths: Paths
    settings: Settings
    tasks: TaskGroup
    listens: bool = True
    """False where one client is served that is connected already."""
    dispatcher: Dispatcher = field(init=False)
    """Set once it is made: it answers by methods that tell of the wires."""
    last_client: float = field(default_factory=time.monotonic)
    tcp: TcpState | None = None
    problems: dict[str, str] = field(default_factory=dict)
    """Roots whose socket could not be opened, and why."""
    _projects: dict[Path, anyio.CancelScope] = field(default_factory=dict)
    _listeners: int = 0
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def clients(self) -> int:
        """Connections open now."""
        return len(self.dispatcher.open_connections) - self._listeners

    def seen(self) -> None:
        """Note that a client was here just now."""
        self.last_client = time.monotonic()

    async def open_control(self) -> None:
        """Listen on the user's control socket; a stale one is replaced, for we hold the lock."""
        await self.tasks.start(self._unix, Path(self.paths.socket), lambda: self._session(control=True))

    async def serve_control(self, connection: socket.socket) -> None:
        """Serve a connected client as one of the control socket until it hangs up."""
        stream = SocketStream(connection)
        await Connection(stream, self._session(control=True), self.dispatcher, stream.hung_up).serve()

    async def open_tcp(self) -> None:
        """Listen on the loopback port, on the next free one, or on none; ``tcp`` says which."""
        if not self.settings.tcp.enabled:
            return
        wanted = self.settings.tcp.port
        self.tcp = {"wanted": wanted, "port": None, "problem": ""}
        try:
            self.tcp["port"] = await self.tasks.start(self._tcp, wanted)
        except (FlashgrepError, OSError) as error:
            self.tcp["problem"] = str(error)
            self.dispatcher.log.warning("no TCP", problem=str(error))

    async def open_project(self, root: Path) -> str:
        """Listen on a project's own socket and return its path.

        Raises:
            Unavailable: it cannot be opened; the project is served on the other wires all the same.

        """
        path = project_socket(str(root))
        if not self.listens:
            raise Unavailable("no daemon listens", reason="socket_unavailable", path=path)
        async with self._opening:
            # A folder that went and came again needs a new socket; clients of the old one stay.
            if root not in self._projects or not _is_there(path):
                await self._open_project(root, path)
        return path

    async def _open_project(self, root: Path, path: str) -> None:
        try:
            make_project_folder(str(root))
            _refuse_live(path)
            self._projects[root] = await self.tasks.start(self._project, root, Path(path))
        except (FlashgrepError, OSError) as error:
            self.problems[str(root)] = str(error)
            self.dispatcher.log.warning("no project socket", root=str(root), problem=str(error))
            raise Unavailable(f"no socket for {root}: {error}", reason="socket_unavailable", path=path) from None
        self.problems.pop(str(root), None)

    async def offer_project(self, root: Path) -> None:
        """Listen on a project's own socket if that can be; ``problems`` says why not."""
        with suppress(Unavailable):
            await self.open_project(root)

    def close_project(self, root: Path) -> None:
        """Close a project's socket and hang up on its clients."""
        self.problems.pop(str(root), None)
        scope = self._projects.pop(root, None)
        if scope is not None:
            scope.cancel()

    def _session(self, *projects: str, control: bool = False) -> Session:
        self.seen()
        may = Capabilities(control=control, writes="never" if self.settings.read_only else "always")
        return Session(projects=projects, capabilities=may, wire="unix")

    async def _unix(self, path: Path, session: Callable[[], Session], *, task_status: Any) -> None:
        await self._counted(serve_unix(path, self.dispatcher, session, task_status=task_status))

    async def _tcp(self, port: int, *, task_status: Any) -> None:
        await self._counted(serve_tcp(self.dispatcher, self._session, port=port, task_status=task_status))

    async def _counted(self, serving: Any) -> None:
        self._listeners += 1
        try:
            await serving
        finally:
            self._listeners -= 1

    async def _project(self, root: Path, path: Path, *, task_status: Any) -> None:
        with anyio.CancelScope() as scope:
            await self._unix(path, lambda: self._session(str(root)), task_status=_Started(task_status, scope))


@dataclass(slots=True)
class _Started:
    """Reports a listener as started with the scope that ends it."""

    status: Any
    scope: anyio.CancelScope

    def started(self, _path: Path) -> None:
        self.status.started(self.scope)


def _is_there(path: str) -> bool:
    return Path(path).is_socket()


def _refuse_live(path: str) -> None:
    """Leave alone a socket that answers: another user's daemon, or one with another state folder, serves it."""
    found = try_connect(path)
    if found is not None:
        found.close()
        raise Unavailable(f"another daemon serves {path}", reason="socket_unavailable", path=path)
