"""HTTP/1.1 connections, with bounds on what strangers cost: any user of the machine, or of the network, can connect.

A connection is *silent* until a head is complete. The guard then says of each request whether its sender is known (by a
token, or as a signed-in browser) or a stranger. There may be few silent connections and few of strangers; for a further
one the oldest is closed. Strangers' requests have a rate, and every part of a request and of its answer has a deadline.

A request that two servers could read differently is refused, since a proxy in front would let its second half in as
another client's request. Nothing is read after a body in chunks, for the same reason.
"""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from flashgrep.parts.http.wire.admission import ADMITTED
from flashgrep.rpc.connect import has_input
from flashgrep.rpc.sockets import UnknownConnections

MOST_CONNECTIONS: Final = 1024
MOST_SILENT: Final = 32
"""Most connections without a complete head; above it the oldest is closed."""
MOST_STRANGERS: Final = 64
"""Most connections that a stranger's answer is sent on; above it the oldest is closed."""
REQUESTS_A_SECOND: Final = 50
"""Of all strangers together, in the long run."""
BURST: Final = 100
"""Strangers' requests at once; a page in a browser needs forty at its first visit, then three."""
MOST_HEAD: Final = 64 * 1024
ACCEPTED_AT_ONCE: Final = 16
"""Connections accepted in one turn of the event loop: a crowd at the door must not take turns from others."""
BACKLOG: Final = 1024
GRACE_SECONDS: Final = 5
END_OF_HEAD: Final = re.compile(rb"\n\r?\n")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for the parts of a request; browsers and agents need milliseconds."""

    head: float = 15.0
    body: float = 60.0
    unread: float = 60.0
    """Without progress while an answer is sent; a stranger's whole answer has the time of a head."""


class Rate:
    """Allows a number of events a second in the long run, and ``burst`` at once."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._available = float(burst)
        self._updated = time.monotonic()

    def take(self) -> bool:
        """Return whether one more is allowed now, and count it."""
        now = time.monotonic()
        gained = (now - self._updated) * self._per_second
        self._available = min(self._burst, self._available + gained)
        self._updated = now
        if self._available < 1:
            return False
        self._available -= 1
        return True


class StrictConnection(h11.Connection):
    """Refuses requests that h11 repairs, since another server may read them in another way."""

    def next_event(self) -> Any:
        """Return the next event; raises h11.RemoteProtocolError for an ambiguous head."""
        if self.their_state is h11.IDLE:
            data = self.trailing_data[0]
            end = END_OF_HEAD.search(data)
            if end is not None:
                judge_head(data[: end.end()])
        return super().next_event()


def judge_head(head: bytes) -> None:
    """Refuse the lines of a head, up to the empty one, that servers read differently.

    Raises:
        h11.RemoteProtocolError: a line ends or continues in an odd way, or the body's length is given twice.

    """
    request, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    lengths: list[bytes] = []
    has_encoding = False
    for line in (request, *lines):
        if b"\n" in line or b"\r" in line:
            raise h11.RemoteProtocolError("a line that does not end in CR LF")
    for line in lines:
        if line[:1] in {b" ", b"\t"}:
            raise h11.RemoteProtocolError("a folded header")
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name == b"content-length":
            lengths.append(value.strip())
        has_encoding |= name == b"transfer-encoding"
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise h11.RemoteProtocolError("more than one length, or none that is a number")
    if has_encoding and (lengths or not request.endswith(b"HTTP/1.1")):
        raise h11.RemoteProtocolError("a length and an encoding, or an old client's")


class Config(uvicorn.Config):
    """State shared by a server's connections, each kind with the oldest first."""

    def __init__(self, deadlines: Deadlines, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.deadlines = deadlines
        self.silent = UnknownConnections[Protocol](MOST_SILENT)
        self.strangers: dict[Protocol, None] = {}
        self.rate = Rate(REQUESTS_A_SECOND, BURST)


class Protocol(H11Protocol):
    """A connection; see above."""

    config: Config

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = StrictConnection(h11.SERVER, MOST_HEAD)
        self._part_read = ""
        """What is being received: ``head``, ``body``, or nothing that was begun."""
        self._reading: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the client's deadline; if too many connections are silent, close the oldest."""
        super().connection_made(transport)
        # An answer is two writes, of which the second would wait 40 ms for the client to acknowledge the first. The
        # loop does this only for sockets made with the protocol's number.
        connection = transport.get_extra_info("socket")
        with suppress(OSError):  # the client has hung up already
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch_reading()
        self.config.silent.add(self, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the connection's state."""
        for timer in (self._reading, self._sending):
            if timer is not None:
                timer.cancel()
        self.config.silent.discard(self)
        self.config.strangers.pop(self, None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle input, and note which part of a request is awaited."""
        super().handle_events()
        if self.cycle is not None:
            self.config.silent.discard(self)
            self.scope[ADMITTED] = self.admit  # type: ignore[typeddict-unknown-key]  # ours
            self._close_behind_chunks()
        self._watch_reading()

    def admit(self, *, is_known: bool) -> bool:
        """Count the request that is answered now; return whether it may be answered in full."""
        if is_known:
            return True
        strangers = self.config.strangers
        if self not in strangers:
            if len(strangers) >= MOST_STRANGERS:
                oldest = next(iter(strangers))
                del strangers[oldest]
                oldest.transport.abort()
            strangers[self] = None
            self._arm_sending(self.config.deadlines.head)
        return self.config.rate.take()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request; hang up if an answer was begun, since a second cannot be sent."""
        if self.cycle is not None:
            # Else the application's answer would fail, and its failure be logged.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        super().pause_writing()
        if self._sending is None:
            self._arm_sending(self.config.deadlines.unread)

    def resume_writing(self) -> None:
        """Note that the client reads; a stranger's deadline stays."""
        super().resume_writing()
        if self._sending is not None and self not in self.config.strangers:
            self._sending.cancel()
            self._sending = None

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, and what is unread on it."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def has_input(self) -> bool:
        """Return whether there is unread input."""
        return has_input(self.transport.get_extra_info("socket"))

    def _close_behind_chunks(self) -> None:
        headers = self.scope["headers"]
        if CLOSE_HEADER in headers:
            return
        for name, _value in headers:
            if name == b"transfer-encoding":
                # uvicorn closes behind the answer to a request that asks for it.
                self.headers.append(CLOSE_HEADER)
                return

    def _watch_reading(self) -> None:
        """Set the deadline of the part that is being received, if another one than before is."""
        part = self._find_part_read()
        if part == self._part_read:
            return
        self._part_read = part
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        seconds = {
            "head": self.config.deadlines.head,
            "body": self.config.deadlines.body,
        }.get(part)
        if seconds is not None:
            self._reading = self.loop.call_later(seconds, self.transport.abort)

    def _find_part_read(self) -> str:
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return "body"
        is_begun = state is h11.IDLE and bool(self.conn.trailing_data[0])
        if is_begun or self.cycle is None:
            return "head"
        return ""

    def _arm_sending(self, seconds: float) -> None:
        if self._sending is not None:
            self._sending.cancel()
        self._sending = self.loop.call_later(seconds, self.transport.abort)


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
        for listener in sockets or ():
            # The kernel may hold a longer queue than the loop takes from it in a turn.
            listener.listen(BACKLOG)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait until told to stop; uvicorn's own loop would wake an idle daemon ten times a second for the date."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Accept no further requests; ``serve`` returns when those in flight are answered, or after the grace."""
        self.should_exit = True
        self._stopping.set()


def make_server(app: Any, deadlines: Deadlines) -> Server:
    """Return a server for an application; run it with ``serve(sockets=[…])``."""
    logging.getLogger("uvicorn.error").addFilter(is_internal)
    config = Config(
        deadlines,
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
        backlog=ACCEPTED_AT_ONCE,
    )
    return Server(config)


def is_internal(record: logging.LogRecord) -> bool:
    """Return whether a message of uvicorn tells of an internal failure.

    Its warnings are about single requests, which anybody may send: they would fill the disk with ``crash.log``.
    """
    return record.levelno >= logging.ERROR
