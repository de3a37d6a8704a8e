"""The daemon's listeners: the control socket, TCP, a socket in each project's folder, and HTTP on request."""

import errno
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypedDict

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from flashgrep.api.service import PART_LEFT_OUT
from flashgrep.base.config import Settings
from flashgrep.base.errors import FlashgrepError, InvalidParams, Unavailable
from flashgrep.base.own_folders import make_project_folder
from flashgrep.base.paths import Paths, describe_failure, project_socket
from flashgrep.base.registry import Capabilities, Session
from flashgrep.daemon.descriptors import Shares
from flashgrep.daemon.log import trim_crash_log
from flashgrep.mcp.service import Service
from flashgrep.rpc.connect import try_connect
from flashgrep.rpc.connection import Connection
from flashgrep.rpc.context import Peer, RequestContext
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.tcp import serve_tcp
from flashgrep.rpc.unix import serve_unix

HTTP_READY_SECONDS = 20.0
HIGHEST_PORT = 65_535
HOLD = "$/serve"
"""The key of the task that holds HTTP open for a connection: one for each, however often it asks."""


class TcpState(TypedDict):
    """Where TCP listens, besides where it was asked to; port None: nowhere, and ``problem`` says why."""

    wanted: int
    port: int | None
    problem: str


@dataclass(slots=True)
class Listeners:
    """Opens the sockets, and records the state of each and when a client last connected."""

    paths: Paths
    settings: Settings
    tasks: TaskGroup
    listens: bool = True
    """False if only one client, already connected, is served."""
    dispatcher: Dispatcher = field(init=False)
    """Set once it is made: it answers by methods that tell of the listeners."""
    last_client: float = field(default_factory=time.monotonic)
    tcp: TcpState | None = None
    problems: dict[str, str] = field(default_factory=dict)
    """Roots whose socket could not be opened, and why."""
    _projects: dict[Path, anyio.CancelScope] = field(default_factory=dict)
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def clients(self) -> int:
        """Connections open now."""
        return self.dispatcher.open_connections.clients

    def note_client(self) -> None:
        """Note that a client was here just now."""
        self.last_client = time.monotonic()
        trim_crash_log(self.paths.crash_log)

    async def open_control(self) -> None:
        """Listen on the user's control socket; a stale one is replaced, since we hold the lock."""
        path = Path(self.paths.socket)
        await self.tasks.start(
            serve_unix, path, self.dispatcher, lambda: self._make_session(control=True)
        )

    async def serve_control(self, connection: socket.socket) -> None:
        """Serve a connected client like one of the control socket until it hangs up."""
        stream = SocketStream(connection)
        await Connection(
            stream, self._make_session(control=True), self.dispatcher, stream.hung_up
        ).serve()

    async def open_tcp(self) -> None:
        """Listen on the loopback port, on the next free one, or on none; ``tcp`` says which."""
        if not self.settings.tcp.enabled:
            return
        port = self.settings.tcp.port
        self.tcp = {"wanted": port, "port": None, "problem": ""}
        try:
            serve = partial(serve_tcp, self.dispatcher, self._make_session, port=port)
            self.tcp["port"] = await self.tasks.start(serve)
        except (FlashgrepError, OSError) as error:
            self.tcp["problem"] = str(error)
            self.dispatcher.log.warning("no TCP", problem=str(error))

    async def open_project(self, root: Path) -> str:
        """Listen on a project's own socket and return its path.

        Raises:
            Unavailable: it cannot be opened; the project is still served on the other wires.

        """
        path = project_socket(str(root))
        if not self.listens:
            raise Unavailable(
                "no daemon listens", reason="socket_unavailable", path=path
            )
        async with self._opening:
            if self._has_socket(root):
                return path
            if len(self._projects) >= Shares.of_process().sockets:
                raise Unavailable(
                    f"too many projects have a socket: {len(self._projects)}",
                    reason="socket_unavailable",
                    path=path,
                )
            try:
                make_project_folder(str(root))
                # A socket that answers is left alone: it belongs to another user's
                # daemon, or one with another state folder.
                connection = try_connect(path)
                if connection is not None:
                    connection.close()
                    raise Unavailable(f"another daemon serves {path}")
                scope = anyio.CancelScope()
                await self.tasks.start(self._serve_project, root, Path(path), scope)
                self._projects[root] = scope
            except (FlashgrepError, OSError) as error:
                if (
                    not isinstance(error, OSError) or error.errno != errno.EROFS
                ):  # on a read-only mount none is missed
                    self.problems[str(root)] = describe_failure(error)
                    self.dispatcher.log.warning(
                        "no project socket", root=str(root), problem=str(error)
                    )
                reason = f"no socket for {root}: {error}"
                raise Unavailable(
                    reason, reason="socket_unavailable", path=path
                ) from None
            self.problems.pop(str(root), None)
        return path

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

    def _has_socket(self, root: Path) -> bool:
        """Whether a project is listened for; a folder that went and came again needs a new socket."""
        return root in self._projects and Path(project_socket(str(root))).is_socket()

    def _make_session(self, *projects: str, control: bool = False) -> Session:
        self.note_client()
        # The user's own commands, and hosts started by them; clients of a project's
        # socket stay in that project.
        writes: Literal["always", "never"] = (
            "never" if self.settings.read_only else "always"
        )
        capabilities = Capabilities(control=control, asks_team=control, writes=writes)
        return Session(projects=projects, capabilities=capabilities, wire="unix")

    async def _serve_project(
        self, root: Path, path: Path, scope: anyio.CancelScope, *, task_status: Any
    ) -> None:
        with scope:
            await serve_unix(
                path,
                self.dispatcher,
                lambda: self._make_session(str(root)),
                task_status=task_status,
            )


class HttpListener:
    """Opens and closes the HTTP wire of one daemon.

    It is off until requested: its libraries take a second to import and 70 MB of memory.
    """

    def __init__(
        self,
        service: Service,
        listeners: Listeners,
        token: Callable[[], str],
        module: str,
    ) -> None:
        """Create it; ``module`` is the name of one that has ``listen``, ``application`` and ``server``, or empty."""
        self._module = module
        self._service = service
        self._listeners = listeners
        self._token = token
        self._server: Any = None
        self._app: Any = None
        self._ended = anyio.Event()
        self._lock = anyio.Lock()
        self._holders: dict[Peer, object] = {}
        """The connections that asked for it and are open, each with its hold; without any it is closed, unless the
        settings open it."""
        self.port: int | None = None

    async def open(self, port: int) -> int:
        """Listen on a loopback port (0: any free one), unless that is done already, and return it.

        Raises:
            Unavailable: the port is taken.

        """
        async with self._lock:
            if self.port is not None:
                return self.port
            if not self._module:
                raise Unavailable(
                    "no HTTP here: the part `http` is left out", reason=PART_LEFT_OUT
                )
            module: Any = await run_sync(import_module, self._module)
            try:
                listener = module.listen(port)
            except OSError as error:
                reason = f"no HTTP on port {port}: {error.strerror}"
                raise Unavailable(
                    reason,
                    reason="port_unavailable",
                    suggestion="name another with --port",
                ) from None
            self.port = int(listener.getsockname()[1])
            settings = self._listeners.settings
            options = module.Options(
                port=self.port,
                token=self._token,
                max_body=settings.max_line_bytes,
                may_write=not settings.read_only,
                speaks_mcp=settings.mcp.enabled
                and settings.mcp.transport in {"http", "both"},
                seen=self._listeners.note_client,
            )
            self._app = module.application(self._service, options)
            self._server = module.server(self._app)
            self._ended = anyio.Event()
            self._listeners.tasks.start_soon(self._serve, self._server, listener)
            with anyio.fail_after(HTTP_READY_SECONDS):
                await self._server.ready.wait()
            return self.port

    async def close(self) -> None:
        """Finish what is in flight and listen no more."""
        async with self._lock:
            if self.port is not None:
                self._server.stop()
                await self._ended.wait()  # uvicorn's own grace bounds this
                self.port = None

    async def close_unheld(self) -> None:
        """Close if no connection asks for it any more."""
        if not self._holders and not self._listeners.settings.http.enabled:
            await self.close()

    async def answer_serve(
        self, context: RequestContext, params: Any
    ) -> dict[str, Any]:
        """Answer ``$/serve``: ``{port}`` opens (default: the setting) until the connection ends or ``{stop: true}``.

        ``invite``, an address on the page, also gets a ``link`` to it that lets one browser in, once.

        Raises:
            InvalidParams: no such port.
            Unavailable: the port is taken, or the connection is ending.

        """
        request, settings = (
            params if isinstance(params, dict) else {},
            self._listeners.settings,
        )
        if request.get("stop"):
            self._release(context.peer)
            await self.close_unheld()
            return {"port": self.port}
        port = request.get("port", settings.http.port)
        if not isinstance(port, int) or not 0 <= port <= HIGHEST_PORT:
            raise InvalidParams("port: a number up to 65535 is required", field="port")
        peer = context.peer
        is_new = peer not in self._holders
        if is_new:
            # Before it opens, so that a client that ends meanwhile leaves nothing open.
            hold = object()
            if not peer.follow(HOLD, partial(self._keep_open, peer, hold)):
                raise Unavailable("the connection is ending", reason="no_notifications")
            self._holders[peer] = hold
        try:
            opened = await self.open(port)
        except Unavailable:
            if is_new:
                self._release(peer)
            raise
        invite = request.get("invite")
        return {
            "port": opened,
            **(
                {"link": self._app.visitors.invite(invite)}
                if isinstance(invite, str)
                else {}
            ),
        }

    def _release(self, peer: Peer) -> None:
        self._holders.pop(peer, None)
        peer.unfollow(HOLD)

    async def _keep_open(self, peer: Peer, hold: object) -> None:
        """Keep it open until the connection ends, in whatever way."""
        try:
            await anyio.sleep_forever()
        finally:
            # Released before, the connection may have another hold by now.
            if self._holders.get(peer) is hold:
                del self._holders[peer]
            self._listeners.tasks.start_soon(self.close_unheld)

    async def _serve(self, server: Any, listener: Any) -> None:
        try:
            await server.serve(sockets=[listener])
        finally:
            listener.close()
            self._ended.set()
