"""Bytes to lines and lines to bytes: the one read loop and the one writer of every connection."""

from collections import deque
from dataclasses import dataclass

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

CHUNK = 64 * 1024  # the default size of a socket's buffer: larger reads bring nothing more
BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line over the limit: how much of it had been seen when it was given up, and the limit."""

    observed: int
    limit: int


class LineReader:
    """Lines of a byte stream; what is over the limit is dropped as it comes, the next line is whole again."""

    def __init__(self, stream: ByteReceiveStream, max_line: int) -> None:
        self.max_line = max_line
        self._stream = stream
        self._held = bytearray()
        self._searched = 0  # no line end before here: a line of many chunks is searched once
        self._dropping = False
        self._ended = False

    async def next(self) -> bytes | Oversized | None:
        """Return the next line that is not blank, without its end; None at the end of the stream.

        Raises:
            anyio.BrokenResourceError: the connection was reset.

        """
        while True:
            line = self._cut()
            if line is None:
                if self._ended:
                    return self._last()
                await self._fill()
            elif isinstance(line, Oversized) or line.strip(BLANK):
                return line

    async def first_byte(self) -> bytes:
        """Return the first byte that is not white space, leaving it to be read; empty at the end of the stream."""
        while not (start := self._held.lstrip(BLANK)) and not self._ended:
            self._held.clear()
            await self._fill()
        return bytes(start[:1])

    def _cut(self) -> bytes | Oversized | None:
        end = self._held.find(b"\n", self._searched)
        if self._dropping:
            return self._drop(end)
        size = end if end >= 0 else len(self._held)
        if size > self.max_line:
            self._dropping = True
            self._searched = 0
            return Oversized(size, self.max_line)
        if end < 0:
            self._searched = len(self._held)
            return None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        self._searched = 0
        return line

    def _drop(self, end: int) -> bytes | None:
        if end < 0:
            self._held.clear()
            return None
        del self._held[: end + 1]
        self._dropping = False
        return b""

    async def _fill(self) -> None:
        try:
            self._held += await self._stream.receive(CHUNK)
        except anyio.EndOfStream:
            self._ended = True

    def _last(self) -> bytes | None:
        line = bytes(self._held)
        self._held.clear()
        self._searched = 0
        return line if line.strip(BLANK) else None


class Outbox:
    """Answers on their way to one client: many tasks put, one task sends, and what waits is bounded."""

    def __init__(self, max_bytes: int, stall_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._stall_seconds = stall_seconds
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._work = anyio.Event()
        self._room = anyio.Event()

    async def put(self, line: bytes) -> None:
        """Queue a line, waiting while the client is behind; a line larger than the bound goes alone."""
        while self._size and self._size + len(line) > self._max_bytes:
            await self._room.wait()
        self._push(line)

    def offer(self, line: bytes) -> bool:
        """Queue a line if there is room for it now; say whether."""
        if self._closed or self._size + len(line) > self._max_bytes:
            return False
        self._push(line)
        return True

    def close(self) -> None:
        """Let ``run`` return once everything queued is sent."""
        self._closed = True
        self._work.set()

    async def run(self, stream: ByteSendStream) -> None:
        """Send what is queued, in order, until closed.

        Raises:
            TimeoutError: the client took no byte for the stall time.
            anyio.BrokenResourceError: the client is gone.

        """
        while True:
            while self._lines:
                await self._send(stream, self._take())
            if self._closed:
                return
            self._work = anyio.Event()
            await self._work.wait()

    def _push(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        self._work.set()

    def _take(self) -> bytes:
        """Join small lines into one chunk, so that a burst of answers costs one system call."""
        taken = [self._lines.popleft()]
        size = len(taken[0])
        while self._lines and size + len(self._lines[0]) < CHUNK:
            taken.append(self._lines.popleft())
            size += len(taken[-1])
        taken.append(b"")
        return b"\n".join(taken)

    async def _send(self, stream: ByteSendStream, data: bytes) -> None:
        for start in range(0, len(data), CHUNK):
            with anyio.fail_after(self._stall_seconds):
                await stream.send(data[start : start + CHUNK])
        self._size -= len(data)
        self._room.set()
        self._room = anyio.Event()
