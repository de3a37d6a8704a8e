"""The application and the server that runs it inside the daemon's own event loop."""

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
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from flashgrep.errors import FlashgrepError, TooLarge
from flashgrep.mcp.http.guard import Guard
from flashgrep.mcp.http.protocol import Answers
from flashgrep.mcp.http.routes import Routes
from flashgrep.mcp.http.sessions import Sessions
from flashgrep.mcp.service import Service
from flashgrep.rpc.message import LONG, Faulty, MessageReader, error_line

MOST_CONNECTIONS: Final = 1024
HEAD_SECONDS: Final = 15.0
"""A connection that has not sent a whole head by then is closed; a browser or an agent needs milliseconds."""
MOST_SILENT: Final = 32
"""Connections that have not sent a whole head; past it the oldest is closed."""
GRACE_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the daemon decides about its HTTP wire."""

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
    routes: list[Any] = plain.all()
    manager = None
    if options.speaks_mcp:
        # Stateless for every revision: a daemon that restarts loses no session, and none can be left behind.
        manager = StreamableHTTPSessionManager(
            Answers(service, sessions).server(), stateless=True, max_request_body_size=options.max_body
        )
        routes.append(Route("/mcp", _Endpoint(manager, service.dispatcher.reader), methods=["POST", "GET", "DELETE"]))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if manager is None:
            yield
            return
        async with manager.run():
            yield

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={Exception: plain.broken})
    return Guard(app, options.port, options.token, options.max_body, options.seen)


class _Endpoint:
    """The SDK's manager as an application of its own, which a route then leaves alone.

    The SDK parses a body on the event loop, whatever is in it; so a long one is looked at here first.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, reader: MessageReader) -> None:
        self._manager = manager
        self._reader = reader

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":  # no stream to listen on and no session to end: there is no state
            await send({"type": "http.response.start", "status": 405, "headers": [(b"allow", b"POST")]})
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            receiving = await self._checked(receive)
        except FlashgrepError as error:
            status = 413 if isinstance(error, TooLarge) else 400
            await Response(error_line(None, error), status, media_type="application/json")(scope, receive, send)
            return
        await self._manager.handle_request(scope, receiving, send)

    async def _checked(self, receive: Any) -> Any:
        """Take the body in, check it, and return a ``receive`` that hands it on.

        Raises:
            FlashgrepError: it is too long for what it calls, or no message.

        """
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # gone, or longer than is taken: the SDK is told
                return _Replayed(message, receive)
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        if len(body) > LONG:
            found = await self._reader.read(body)
            for item in found.items:
                if isinstance(item, Faulty):
                    raise item.error
        return _Replayed({"type": "http.request", "body": body, "more_body": False}, receive)


class _Replayed:
    """Receives one event again, then what comes after it."""

    def __init__(self, event: Any, receive: Any) -> None:
        self._event = event
        self._receive = receive

    async def __call__(self) -> Any:
        event, self._event = self._event, None
        return event if event is not None else await self._receive()


class Server(uvicorn.Server):
    """uvicorn as a guest: signals stay the daemon's, and ``stop`` finishes what is in flight."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()
        self._told_to_stop = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait until told to stop; uvicorn's own loop would wake an idle daemon ten times a second for the date."""
        await self._told_to_stop.wait()

    def stop(self) -> None:
        """Take no further request; ``serve`` returns when those in flight are answered, or after the grace."""
        self.should_exit = True
        self._told_to_stop.set()


class Config(uvicorn.Config):
    """What the connections of one server share: those that have not sent a head, the oldest first."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.silent: dict[Protocol, None] = {}


class Protocol(H11Protocol):
    """HTTP/1.1 that does not wait for a head for ever, nor for many at once: any user of the machine can connect."""

    config: Config

    def connection_made(self, transport: Any) -> None:
        """Give the client its time; where too many say nothing, the oldest of them gives way."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._hang_up_unless_heard)
        silent = self.config.silent
        if len(silent) >= MOST_SILENT:
            # What it sent may be here and unread: who connects and asks must not lose to a crowd that came after.
            oldest = next((other for other in silent if not other.has_input()), next(iter(silent)))
            del silent[oldest]
            oldest.transport.close()
        silent[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._head_timer.cancel()
        self.config.silent.pop(self, None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Answer what came, and note that the client has said what it wants."""
        super().handle_events()
        if self.cycle is not None:
            self.config.silent.pop(self, None)

    def has_input(self) -> bool:
        """Tell whether something has come that was not received yet."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    def _hang_up_unless_heard(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def server(app: Guard) -> Server:
    """Return a server for the application; run it with ``serve(sockets=[…])``."""
    config = Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # the guard's is of the moment, without a loop that keeps it so
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
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener
