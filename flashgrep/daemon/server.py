"""The one assembler: settings, catalogue, dispatcher and wires made one running daemon."""

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from flashgrep import __version__
from flashgrep.catalogue import Catalogue
from flashgrep.config import Loaded, Settings
from flashgrep.daemon.control import Control
from flashgrep.daemon.handover import Handover
from flashgrep.daemon.log import Log
from flashgrep.daemon.web import Web
from flashgrep.daemon.wires import Wires
from flashgrep.errors import FlashgrepError
from flashgrep.handlers import REGISTRY
from flashgrep.mcp.adapter import Adapter
from flashgrep.mcp.binding import Binder
from flashgrep.mcp.service import Service
from flashgrep.paths import PRIVATE_FILE, Paths
from flashgrep.rpc.context import Extension
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.tcp import auth_extension
from flashgrep.rpc.wire import Limits

GRACE_SECONDS = 5.0
"""Calls in flight get this long when the daemon is told to end; what takes longer is cancelled."""
IDLE_LOOKS = 10
"""An idle daemon wakes so often within its idle time to see that it is idle: every three minutes by default."""


@dataclass(slots=True)
class Daemon:
    """One daemon, from start to end."""

    paths: Paths
    settings: Settings
    log: Log
    cli: Extension
    """Answers ``$/cli``; the command line stands above the daemon and is handed in."""
    settings_for: Callable[[Path], Loaded]
    """Settings as those of the project at a root leave them; called in threads."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Holds the keys of embedding providers."""
    started: float = field(default_factory=time.time)

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until told to stop; ``ready`` is called once every wire listens."""
        stopping = anyio.Event()
        async with anyio.create_task_group() as tasks:
            wires = Wires(self.paths, self.settings, tasks)
            catalogue = self._catalogue(wires, tasks)
            async with catalogue:
                web = self._dispatch(wires, catalogue, stopping)
                await self._serve(wires, catalogue, stopping, ready, web)
            tasks.cancel_scope.cancel()

    async def serve_alone(self, connection: socket.socket) -> None:
        """Serve one connected client until it hangs up; listen nowhere, index nothing."""
        async with anyio.create_task_group() as tasks:
            wires = Wires(self.paths, self.settings, tasks, listens=False)
            catalogue = self._catalogue(wires, tasks)
            async with catalogue:
                self._dispatch(wires, catalogue, anyio.Event())
                await wires.serve_control(connection)
            tasks.cancel_scope.cancel()

    async def _serve(
        self, wires: Wires, catalogue: Catalogue, stopping: anyio.Event, ready: Callable[[], None], web: Web
    ) -> None:
        await wires.tasks.start(_stop_on_signals, stopping)
        await self._open(wires, catalogue)
        if self.settings.http.enabled:
            await self._open_web(web)
        wires.tasks.start_soon(self._stop_when_idle, wires, stopping)
        self.log.info("started", version=__version__, pid=os.getpid(), tcp=wires.tcp)
        ready()
        await stopping.wait()
        self.log.info("stopping", clients=wires.clients)
        async with anyio.create_task_group() as ending:
            ending.start_soon(web.close)
            await wires.dispatcher.shutdown(GRACE_SECONDS)

    async def _open_web(self, web: Web) -> None:
        try:
            self.log.info("http", port=await web.open(self.settings.http.port))
        except FlashgrepError as error:  # the other wires serve
            self.log.warning("no HTTP", problem=error.message)

    def _catalogue(self, wires: Wires, tasks: anyio.abc.TaskGroup) -> Catalogue:
        def on_open(root: Path) -> None:
            """Open the socket of a project that is being opened, by whatever call."""
            tasks.start_soon(wires.offer_project, root)

        return Catalogue(
            state_dir=Path(self.paths.state),
            cache_dir=Path(self.paths.cache),
            settings=self.settings,
            settings_for=self.settings_for,
            on_open=on_open,
            environ=self.environ,
            indexes=wires.listens,
        )

    def _dispatch(self, wires: Wires, catalogue: Catalogue, stopping: anyio.Event) -> Web:
        mcp = self.settings.mcp
        server = {"name": mcp.server_name, "version": mcp.server_version or __version__}
        service = Service(catalogue, server)
        web = Web(service, self.settings, wires.tasks, token=lambda: token(self.paths), seen=wires.seen)
        daemon, handover = Control(wires, catalogue, stopping, self.started), Handover(stopping, wires.tasks)
        control = {"$/cli": self.cli, **daemon.extensions(), **handover.extensions(), "$/serve": web.serve}
        extensions = {"auth": auth_extension(lambda: token(self.paths)), "$/status": daemon.status}
        if mcp.enabled and mcp.transport in {"stdio", "both"}:
            extensions |= Adapter(service, Binder(catalogue)).extensions()
        limits = _limits(self.settings)
        wires.dispatcher = Dispatcher(
            REGISTRY, catalogue, log=self.log, limits=limits, extensions=extensions, control=control
        )
        service.dispatcher = handover.dispatcher = wires.dispatcher
        return web

    async def _open(self, wires: Wires, catalogue: Catalogue) -> None:
        token(self.paths)
        await wires.open_control()
        await wires.open_tcp()
        for info in catalogue.list_projects():
            await wires.offer_project(info.root)

    async def _stop_when_idle(self, wires: Wires, stopping: anyio.Event) -> None:
        limit = self.settings.idle_exit_minutes * 60
        while limit:
            await anyio.sleep(limit / IDLE_LOOKS)
            if wires.clients:
                wires.last_client = time.monotonic()
            elif time.monotonic() - wires.last_client >= limit:
                self.log.info("idle", minutes=self.settings.idle_exit_minutes)
                stopping.set()


def token(paths: Paths) -> str:
    """Return the secret that opens TCP to others and to writing; made at the first need, readable by its user only."""
    path = Path(paths.token)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    return path.read_text(encoding="ascii").strip()


def _limits(settings: Settings) -> Limits:
    return Limits(
        max_line=settings.max_line_bytes,
        in_flight=settings.calls_per_connection,
        call_seconds=settings.call_timeout_seconds,
        connections=settings.max_connections,
    )


async def _stop_on_signals(stopping: anyio.Event, *, task_status: Any) -> None:
    """Set the event on SIGTERM or SIGINT; SIGHUP means that a terminal went, which is not ours."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stopping.set()
