"""Standard input and output as a wire: for one client, the process that started us."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream

from flashgrep.registry import Session
from flashgrep.rpc.connection import serve_connection
from flashgrep.rpc.dispatch import Dispatcher

_ATOMIC = 4096  # a pipe that is ready takes this much without blocking, so its flags can stay as they were


class DescriptorStream(ByteStream):
    """Two file descriptors, of pipes, terminals, sockets or files, as one stream; closing it leaves them open."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return what has come, at most ``max_bytes``."""
        try:
            await anyio.wait_readable(self._source)
        except PermissionError:  # a regular file: always ready, and not to be waited for
            await anyio.lowlevel.checkpoint()
        try:
            data = os.read(self._source, max_bytes)
        except OSError as error:
            raise anyio.BrokenResourceError from error
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """Send all of ``item``."""
        rest = memoryview(item)
        while rest:
            try:
                await anyio.wait_writable(self._sink)
            except PermissionError:
                await anyio.lowlevel.checkpoint()
            try:
                rest = rest[os.write(self._sink, rest[:_ATOMIC]) :]
            except OSError as error:
                raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """Do nothing: the output ends with the process."""

    async def aclose(self) -> None:
        """Do nothing: the descriptors belong to the process."""

    async def hung_up(self) -> bool:
        """Tell whether nobody reads the output any more."""
        poll = select.poll()
        poll.register(self._sink, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


async def serve_stdio(dispatcher: Dispatcher, session: Session) -> None:
    """Serve standard input until it ends; meanwhile whatever is printed goes to standard error."""
    session.wire = "stdio"
    with _own_output() as sink:
        stream = DescriptorStream(sys.stdin.fileno(), sink)
        await serve_connection(stream, session, dispatcher, hung_up=stream.hung_up)


@contextmanager
def _own_output() -> Iterator[int]:
    """Give the wire standard output's descriptor, so that a stray print cannot break a line of the protocol."""
    sys.stdout.flush()
    sink = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield sink
    finally:
        sys.stdout.flush()
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
