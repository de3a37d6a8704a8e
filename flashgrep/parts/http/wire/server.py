"""The application, and the server that runs it in the daemon's event loop."""

import logging
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from flashgrep.mcp.service import Service
from flashgrep.parts.http.site import LinkSignIn, Site, Visitors
from flashgrep.parts.http.wire.admission import App, Guard
from flashgrep.parts.http.wire.endpoint import Endpoint, make_server
from flashgrep.parts.http.wire.routes import Routes, Sessions

MOST_CONNECTIONS: Final = 1024
HEAD_SECONDS: Final = 15.0
"""Time for a connection to send a request's head before it is closed; browsers and agents need milliseconds."""
MOST_SILENT: Final = 32
"""Most connections without a complete head; above it the oldest is closed."""
GRACE_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The daemon's options for its HTTP wire."""

    port: int
    token: Callable[[], str] | None
    max_body: int
    may_write: bool
    speaks_mcp: bool
    seen: Callable[[], None]


def application(service: Service, options: Options) -> Guard:
    """Return the guarded application."""
    sessions = Sessions(service.catalogue, options.may_write)
    plain = Routes(service.dispatcher, sessions)
    visitors = Visitors()
    methods = [
        name
        for one in service.dispatcher.registry
        if one.safety == "reads"
        for name in (one.name, *one.aliases)
    ]
    site = Site({"sign_in": "link", "is_team": False, "methods": methods})
    routes: list[Any] = [
        *plain.all(),
        *site.routes(),
        *LinkSignIn(visitors, options.port).routes(),
    ]
    manager = None
    if options.speaks_mcp:
        # Stateless for every revision: a restart of the daemon loses no session, and
        # none can leak.
        manager = StreamableHTTPSessionManager(
            make_server(service, sessions),
            stateless=True,
            max_request_body_size=options.max_body,
        )
        routes.append(
            Route(
                "/mcp",
                Endpoint(manager, service.dispatcher.reader),
                methods=["POST", "GET", "DELETE"],
            )
        )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if manager is None:
            yield
            return
        async with manager.run():
            yield

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={Exception: plain.answer_fault},
    )
    return Guard(
        app, options.port, options.token, options.max_body, options.seen, visitors
    )


class Server(uvicorn.Server):
    """uvicorn inside the daemon: it leaves signals alone, and ``stop`` finishes requests in flight."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()
        self._stopping = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and set ``ready``."""
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait until told to stop; uvicorn's own loop would wake an idle daemon ten times a second for the date."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Accept no further requests; ``serve`` returns when those in flight are answered, or after the grace."""
        self.should_exit = True
        self._stopping.set()


class Config(uvicorn.Config):
    """State shared by a server's connections: those without a complete head, the oldest first."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.silent: dict[Protocol, None] = {}


class Protocol(H11Protocol):
    """HTTP/1.1 with bounds on the time and number of incomplete heads: any user of the machine can connect."""

    config: Config

    def connection_made(self, transport: Any) -> None:
        """Start the client's timeout; if too many connections are silent, close the oldest."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close_if_silent)
        silent = self.config.silent
        if len(silent) >= MOST_SILENT:
            # Not one with unread input: a client that sent a request must not lose to a
            # later flood.
            oldest = next(
                (other for other in silent if not other.has_input()), next(iter(silent))
            )
            del silent[oldest]
            oldest.transport.close()
        silent[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the connection's state."""
        self._head_timer.cancel()
        self.config.silent.pop(self, None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle input, and note when the head is complete."""
        super().handle_events()
        if self.cycle is not None:
            self.config.silent.pop(self, None)

    def has_input(self) -> bool:
        """Return whether there is unread input."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def is_internal(record: logging.LogRecord) -> bool:
    """Return whether a message of uvicorn tells of an internal failure.

    Its warnings are about single requests, which anybody may send: they would fill the disk with ``crash.log``.
    """
    return record.levelno >= logging.ERROR


def server(app: App) -> Server:
    """Return a server for the application; run it with ``serve(sockets=[…])``."""
    logging.getLogger("uvicorn.error").addFilter(is_internal)
    config = Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # the guard adds it; uvicorn's needs a timer that keeps it current
        lifespan="on",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Server(config)


def listen(port: int) -> socket.socket:
    """Return a socket that listens on the loopback port.

    Raises:
        OSError: the port is taken.

    """
    listener = socket.socket()
    try:
        # So that connections of an earlier daemon in TIME_WAIT do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener
