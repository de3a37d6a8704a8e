"""Assembles settings, catalogue, dispatcher and wires into one running daemon."""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from flashgrep import __version__
from flashgrep.api.part import Part
from flashgrep.base.config import Loaded, Settings
from flashgrep.base.errors import FlashgrepError, Unavailable
from flashgrep.base.own_folders import Identity, identify
from flashgrep.base.paths import Paths
from flashgrep.daemon.control import Control, Subscriptions
from flashgrep.daemon.descriptors import Shares
from flashgrep.daemon.listeners import HttpListener, Listeners
from flashgrep.daemon.log import Log
from flashgrep.daemon.token import read_token
from flashgrep.mcp.adapter import Adapter
from flashgrep.mcp.binding import Binder
from flashgrep.mcp.service import Service
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import Extension
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.tcp import auth_extension
from flashgrep.rpc.unix import check_place
from flashgrep.rpc.wire import Limits

GRACE_SECONDS = 5.0
"""Seconds that calls in flight get when the daemon is told to stop; longer ones are cancelled."""
IDLE_LOOKS = 10
"""Times that an idle daemon wakes within its idle time to check: every three minutes by default."""
LOST_LOOK_SECONDS = 5.0
"""Seconds between checks that clients can reach the control socket; a successor waits longer for the lock."""
PROGRAM = __file__
MOST_LOOKS_WITHOUT_PROGRAM = 12
"""For so many checks the program may be missing: an upgrade takes less than a minute."""


@dataclass(slots=True)
class Daemon:
    """One daemon, from start to end."""

    paths: Paths
    settings: Settings
    log: Log
    cli: Extension
    """Answers ``$/cli``; the command line is above the daemon and is handed in."""
    parts: Sequence[Part]
    """The core and the parts that it serves."""
    settings_for: Callable[[Path], Loaded]
    """Returns the settings of the project at a root; called in threads."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Holds the keys of embedding providers."""
    started: float = field(default_factory=time.time)

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until told to stop; ``ready`` is called once everything listens."""
        stopping = anyio.Event()
        try:
            read_token(self.paths)  # made before anybody can ask for it
        except OSError as error:
            # The first file a daemon writes in earnest: a full disk is met here.
            reason = f"cannot write {self.paths.token}: {error.strerror}"
            raise Unavailable(reason) from error
        check_place(Path(self.paths.socket))
        async with anyio.create_task_group() as tasks:
            listeners = Listeners(self.paths, self.settings, tasks)
            async with self._make_catalogue(listeners) as catalogue:
                http = self._connect(listeners, catalogue, stopping)
                await tasks.start(_stop_on_signals, stopping)
                await listeners.open_control()
                tasks.start_soon(
                    self._stop_when_lost, identify(self.paths.socket), stopping
                )
                await listeners.open_tcp()
                for info in catalogue.list_projects():
                    await listeners.offer_project(info.root)
                if self.settings.http.enabled:
                    try:
                        self.log.info(
                            "http", port=await http.open(self.settings.http.port)
                        )
                    except FlashgrepError as error:  # the other wires serve
                        self.log.warning("no HTTP", problem=error.message)
                tasks.start_soon(self._stop_when_idle, listeners, stopping)
                self.log.info(
                    "started",
                    version=__version__,
                    pid=os.getpid(),
                    tcp=listeners.tcp,
                )
                ready()
                await stopping.wait()
                self.log.info("stopping", clients=listeners.clients)
                # Both at once, so that their grace periods overlap.
                async with anyio.create_task_group() as ending:
                    ending.start_soon(http.close)
                    await listeners.dispatcher.shutdown(GRACE_SECONDS)
            tasks.cancel_scope.cancel()

    async def serve_alone(self, connection: socket.socket) -> None:
        """Serve one connected client until it hangs up; listen nowhere, index nothing."""
        async with anyio.create_task_group() as tasks:
            listeners = Listeners(self.paths, self.settings, tasks, listens=False)
            async with self._make_catalogue(listeners) as catalogue:
                self._connect(listeners, catalogue, anyio.Event())
                await listeners.serve_control(connection)
            tasks.cancel_scope.cancel()

    def _make_catalogue(self, listeners: Listeners) -> Catalogue:
        def open_socket(root: Path) -> None:
            """Open the socket of a project that is being opened by any call."""
            listeners.tasks.start_soon(listeners.offer_project, root)

        return Catalogue(
            parts=self.parts,
            state_dir=Path(self.paths.state),
            cache_dir=Path(self.paths.cache),
            settings=self.settings,
            settings_for=self.settings_for,
            on_open=open_socket,
            on_forget=listeners.close_project,
            environ=self.environ,
            indexes=listeners.listens,
            most_open=Shares.of_process().projects,
        )

    def _connect(
        self, listeners: Listeners, catalogue: Catalogue, stopping: anyio.Event
    ) -> HttpListener:
        """Create the dispatcher, with everything that answers besides the registry's methods."""
        mcp, settings = self.settings.mcp, self.settings
        named = {"name": mcp.server_name, "version": mcp.server_version or __version__}
        service = Service(catalogue, named, structured=mcp.structured)
        modules = [part.http_module for part in self.parts if part.http_module]
        http = HttpListener(
            service,
            listeners,
            lambda: read_token(self.paths),
            modules[0] if modules else "",
        )
        control = Control(listeners, catalogue, stopping, self.started)
        extensions = {
            "auth": auth_extension(lambda: read_token(self.paths)),
            "$/status": control.describe,
        }
        extensions |= Subscriptions(catalogue).extensions()
        if mcp.enabled and mcp.transport in {"stdio", "both"}:
            extensions |= Adapter(service, Binder(catalogue)).extensions()
        registry = catalogue.registry
        for part in self.parts:
            if part.extend_registry is not None:
                registry = part.extend_registry(registry, settings, self.environ)
        dispatcher = Dispatcher(
            registry,
            catalogue,
            log=self.log,
            limits=Limits(
                max_line=settings.max_line_bytes,
                in_flight=settings.calls_per_connection,
                call_seconds=settings.call_timeout_seconds,
                connections=min(
                    settings.max_connections, Shares.of_process().connections
                ),
            ),
            extensions=extensions,
            control={
                "$/cli": self.cli,
                **control.extensions(),
                "$/serve": http.answer_serve,
            },
        )
        service.dispatcher = listeners.dispatcher = dispatcher
        return http

    async def _stop_when_lost(
        self, ours: Identity | None, stopping: anyio.Event
    ) -> None:
        """Stop once the control socket is gone or another's: no client would find us, and we hold the lock.

        A cleaner of temporary folders can remove it, or a user the state folder. Stop also once this program was
        uninstalled: nobody could stop us by a command, and what we had not imported is gone.
        """
        looks_without_program = 0
        while not stopping.is_set():
            with anyio.move_on_after(LOST_LOOK_SECONDS):
                await stopping.wait()
                return  # our own end removes the socket
            if identify(self.paths.socket) != ours:
                self.log.warning("socket lost", path=self.paths.socket)
                stopping.set()
            if identify(PROGRAM) is None:
                looks_without_program += 1
            else:
                looks_without_program = 0
            if looks_without_program > MOST_LOOKS_WITHOUT_PROGRAM:
                self.log.warning("uninstalled", path=PROGRAM)
                stopping.set()

    async def _stop_when_idle(
        self, listeners: Listeners, stopping: anyio.Event
    ) -> None:
        limit = self.settings.idle_exit_minutes * 60
        while limit:
            await anyio.sleep(limit / IDLE_LOOKS)
            if listeners.clients:
                listeners.note_client()
            # From the last client, not from the start: one that came and went in
            # between counts.
            elif time.monotonic() - listeners.last_client >= limit:
                self.log.info("idle", minutes=self.settings.idle_exit_minutes)
                stopping.set()


async def _stop_on_signals(stopping: anyio.Event, *, task_status: Any) -> None:
    """Set the event on SIGTERM or SIGINT; SIGHUP is about a terminal, which a daemon does not have."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stopping.set()
