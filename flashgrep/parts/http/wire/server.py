"""The application, and the server that runs it in the daemon's event loop."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from flashgrep.mcp.service import Service
from flashgrep.parts.http.site import LinkSignIn, Site, Visitors
from flashgrep.parts.http.wire.admission import App, Guard
from flashgrep.parts.http.wire.endpoint import Endpoint, make_server
from flashgrep.parts.http.wire.protocol import Deadlines, Server
from flashgrep.parts.http.wire.protocol import make_server as make_http_server
from flashgrep.parts.http.wire.routes import Routes, Sessions


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
    sessions = Sessions(service.host, options.may_write)
    plain = Routes(service.dispatcher, sessions)
    visitors = Visitors()
    methods = [
        name
        for handler in service.dispatcher.registry
        if handler.safety == "reads"
        for name in (handler.name, *handler.aliases)
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


def server(app: App, deadlines: Deadlines | None = None) -> Server:
    """Return a server for the application; run it with ``serve(sockets=[…])``."""
    return make_http_server(app, deadlines or Deadlines())


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
