"""A socket as a byte stream, and the accept loop that TCP and Unix sockets share.

Not anyio's own streams: its accepted TCP stream lets the event loop read ahead without a bound, so a client could fill
the memory while its calls wait.
"""

import asyncio
import errno
import select
import socket
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream

from flashgrep.base.errors import Busy
from flashgrep.rpc.connect import has_input
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import error_line

BACKLOG = 1024  # a burst of clients waits here instead of in their retry loops
NO_MORE_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class SocketStream(ByteStream):
    """A connected, non-blocking socket: data not yet received stays in the kernel's bounded buffer."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.socket = connected
        self._is_empty = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that watches for input; it stays registered between waits, which saves two system calls."""
        self._waiter: asyncio.Future[None] | None = None

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return received data, at most ``max_bytes``."""
        if not self._is_empty:
            await (
                anyio.lowlevel.checkpoint()
            )  # else a client that never stops sending would starve the others
        while True:
            try:
                if self._is_empty:
                    self._is_empty = False
                    await self._wait_readable()
                data = self.socket.recv(max_bytes)
            except BlockingIOError:
                self._is_empty = True
            except OSError as error:
                raise anyio.BrokenResourceError from error
            else:
                if not data:
                    raise anyio.EndOfStream
                self._is_empty = (
                    len(data) < max_bytes
                )  # nearly always; another attempt would cost a system call
                return data

    def send_now(self, item: bytes) -> int:
        """Send what can be sent without waiting; return the number of bytes. Errors are left to ``send``."""
        try:
            return self.socket.send(item)
        except OSError:
            return 0

    async def send(self, item: bytes) -> None:
        """Send all of ``item``."""
        await (
            anyio.lowlevel.checkpoint()
        )  # notice a cancellation even if the buffer always has room
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)
            except OSError as error:
                raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """Tell the other end that nothing more will be sent."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Close; tasks waiting on the stream get an error."""
        if self.socket.fileno() >= 0:
            anyio.notify_closing(self.socket)
        self.close()
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close at once."""
        self._forget_reader()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(anyio.ClosedResourceError())
        self.socket.close()

    def has_input(self) -> bool:
        """Return whether something waits to be received, the end of input included."""
        return self.socket.fileno() >= 0 and has_input(self.socket)

    async def hung_up(self) -> bool:
        """Return whether the other end is closed both ways: at once for a Unix socket, after a reset for TCP."""
        poll = select.poll()
        # No events asked for: POLLHUP and POLLERR are reported always.
        poll.register(self.socket, 0)
        return any(
            event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0)
        )

    async def _wait_readable(self) -> None:
        if self._waiter is not None:
            # Two readers of one stream would each get parts of lines.
            raise anyio.BusyResourceError("receiving from")
        if self.socket.fileno() < 0:
            raise anyio.ClosedResourceError
        loop = asyncio.get_running_loop()
        if self._loop is None:
            # Registered once for many waits; ``_note_readable`` unregisters it when no
            # task waits.
            loop.add_reader(self.socket, self._note_readable)
            self._loop = loop
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _note_readable(self) -> None:
        if self._waiter is None:
            self._forget_reader()  # no task waits: the loop would report it again and again
        elif not self._waiter.done():
            self._waiter.set_result(None)

    def _forget_reader(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self.socket)
            self._loop = None


Serve: TypeAlias = Callable[[SocketStream], Coroutine[Any, Any, None]]
"""Serves one client."""


class Client(Protocol):
    """A connection whose input can be looked at."""

    def has_input(self) -> bool:
        """Return whether there is unread input."""


ClientT = TypeVar("ClientT", bound=Client)


class UnknownConnections(Generic[ClientT]):
    """Unidentified connections: few, and the oldest is closed for a new one, silent ones first."""

    def __init__(self, most: int) -> None:
        """``most``: open at once, beside those being looked up."""
        self._most = most
        self._open: dict[ClientT, Callable[[], None]] = {}
        self._in_lookup: set[ClientT] = set()

    def add(self, client: ClientT, close: Callable[[], None]) -> None:
        """Add a connection, and ``close`` another if there are too many; one being looked up is spared."""
        if len(self._open) - len(self._in_lookup) >= self._most:
            waiting = [other for other in self._open if other not in self._in_lookup]
            # A client whose request has arrived but is unread must not be closed for a
            # crowd that came later.
            silent = (other for other in waiting if not other.has_input())
            self._open.pop(next(silent, waiting[0]))()
        self._open[client] = close

    def begin_lookup(self, client: ClientT) -> None:
        """Spare a connection from now on: it has sent something and is being looked up."""
        self._in_lookup.add(client)

    def end_lookup(self, client: ClientT, *, is_ours: bool) -> None:
        """Record the result of a lookup: our own connection is identified, another may be closed again."""
        self._in_lookup.discard(client)
        if is_ours:
            self._open.pop(client, None)

    def discard(self, client: ClientT) -> None:
        """Remove a connection: it is closed, or has shown the token."""
        self._in_lookup.discard(client)
        self._open.pop(client, None)


class Listener:
    """Accepts clients until told to stop; each runs in its own task, and a failure affects only that client."""

    is_listener: ClassVar[bool] = True

    def __init__(self, listening: socket.socket, dispatcher: Dispatcher) -> None:
        self._socket = listening
        self._dispatcher = dispatcher
        self._clients = 0
        self._accepting = anyio.CancelScope()
        self._whole = anyio.CancelScope()

    async def run(self, serve: Serve) -> None:
        """Serve clients up to the limit, tell further ones that we are busy; return when stopped and done."""
        self._dispatcher.open_connections.add(self)
        try:
            with self._whole:
                async with anyio.create_task_group() as clients:
                    with self._accepting:
                        while True:
                            clients.start_soon(self._serve, serve, await self._accept())
                            # A crowd that connects faster than this keeps the queue
                            # full: without a pause nobody else would be served, and a
                            # task for each would be held.
                            await anyio.lowlevel.checkpoint()
                    self._socket.close()  # new clients are refused at once instead of waiting in vain
        finally:
            self._dispatcher.open_connections.discard(self)

    def stop_reading(self) -> None:
        """Accept no further client."""
        self._accepting.cancel()

    def abort(self) -> None:
        """Cancel every client."""
        self._whole.cancel()

    async def _accept(self) -> SocketStream:
        while True:
            try:
                return SocketStream(self._socket.accept()[0])
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except OSError as error:
                # A client that gave up while queued does not matter. Without free
                # descriptors, others must end first.
                if error.errno in NO_MORE_FILES:
                    self._dispatcher.log.warning("cannot accept", cause=error.strerror)
                    # accept(2) would fail again at once, and the loop would spin until
                    # a file is closed.
                    await anyio.sleep(0.1)
                else:
                    await anyio.lowlevel.checkpoint()

    async def _serve(self, serve: Serve, stream: SocketStream) -> None:
        limit = self._dispatcher.limits.connections
        if self._clients >= limit:
            line = (
                error_line(None, Busy("too many connections", limit_connections=limit))
                + b"\n"
            )
            try:
                with anyio.move_on_after(1):
                    await stream.send(line)
                    await stream.send_eof()
            except anyio.BrokenResourceError:
                pass  # gone already
            finally:
                await stream.aclose()
            return
        self._clients += 1
        try:
            await serve(stream)
        except Exception:
            self._dispatcher.log.exception("connection failed")
        finally:
            self._clients -= 1
            # A connection closes itself; this is for one that failed earlier or was
            # cancelled.
            stream.close()
