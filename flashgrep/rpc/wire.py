"""Bytes to lines and lines to bytes: the read loop, the write queue and the bounds of every connection."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

CHUNK = 64 * 1024  # the default size of a socket's buffer: larger reads bring nothing more
BLANK = b" \t\r\n"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the connections of one daemon may take; times in seconds, sizes in bytes."""

    max_line: int = 8 * MIB
    """A request longer than this is refused, without being held in memory."""
    max_line_reading: int = MIB
    """The same for a request that does not write: nothing it can ask needs more. A batch counts as a whole."""
    max_line_before_auth: int = 64 * 1024
    """The same before the token was shown; it is far shorter than this."""
    in_flight: int = 32
    """Calls running at once per connection."""
    waiting: int = 32
    """Lines read ahead while all run, so that a cancellation among them is seen; then reading pauses."""
    held_bytes: int = 16 * MIB
    """Bytes of lines read and not answered yet, per connection; past it reading pauses too."""
    batch_items: int = 1000
    """A batch of eight million bytes could hold four million faulty items, each costing an answer."""
    call_seconds: float = 120.0
    """The hard end of every call, whatever deadline its parameters name."""
    first_line_seconds: float = 30.0
    """A TCP connection that sends no whole line for this long is closed."""
    write_seconds: float = 30.0
    """A client that does not take the next 64 KiB of its answers in so long is hung up on."""
    queued_bytes: int = 16 * MIB
    """Answers waiting for a slow reader; past it, its calls wait too."""
    connections: int = 1024
    """Open connections per listener; further ones are told to try again."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line over the limit, and how much of it had come when it was given up."""

    observed: int
    limit: int


class LineReader:
    """Reads lines of a byte stream; the rest of a line over the limit is dropped as it comes."""

    def __init__(self, stream: ByteReceiveStream, max_line: int) -> None:
        self.max_line = max_line
        self._stream = stream
        self._held = bytearray()
        self._searched = 0  # no line end before here: a line of many chunks is searched once
        self._dropping = False
        self._ended = False

    async def receive_line(self) -> bytes | Oversized | None:
        """Return the next line that is not blank, without its end; None at the end of the stream.

        Raises:
            anyio.BrokenResourceError: the connection was reset.

        """
        while True:
            end = self._held.find(b"\n", self._searched)
            size = end if end >= 0 else len(self._held)
            if not self._dropping and size > self.max_line:
                self._dropping = True  # reported now: its end may never come
                self._searched = 0
                return Oversized(size, self.max_line)
            if end < 0 and not self._ended:
                if self._dropping:
                    self._held.clear()
                self._searched = len(self._held)
                await self._fill()
                continue
            # At the end of the stream what is left is a line too.
            line = b"" if self._dropping else bytes(self._held[:size])
            # A bytearray drops its front without moving the rest.
            del self._held[: size + 1]
            self._searched = 0
            self._dropping = False
            if line.strip(BLANK):
                return line
            if end < 0:
                return None

    async def peek_byte(self) -> bytes:
        """Return the first byte that is not white space, leaving it to be read; empty at the end of the stream."""
        while not (start := self._held.lstrip(BLANK)) and not self._ended:
            self._held.clear()
            await self._fill()
        return bytes(start[:1])

    async def _fill(self) -> None:
        try:
            self._held += await self._stream.receive(CHUNK)
        except anyio.EndOfStream:
            self._ended = True


class BackpressureLimiter:
    """A bound on the lines of one client that are read and not answered yet, by number and by size.

    One line always fits, whatever its size. While none fits, the client is not read from.
    """

    def __init__(self, max_lines: int, max_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._lines = 0
        self._bytes = 0
        self._freed: anyio.Event | None = None

    def has_room(self, size: int) -> bool:
        """Return whether a line of ``size`` bytes may be taken in now."""
        return not self._lines or (self._lines < self._max_lines and self._bytes + size <= self._max_bytes)

    async def wait(self, size: int) -> None:
        """Wait until a line of ``size`` bytes fits."""
        while not self.has_room(size):
            # Made only when somebody waits: most lines find room at once.
            self._freed = self._freed or anyio.Event()
            await self._freed.wait()

    def acquire(self, size: int) -> None:
        """Count a line."""
        self._lines += 1
        self._bytes += size

    def release(self, size: int) -> None:
        """Discount a line: it is answered."""
        self._lines -= 1
        self._bytes -= size
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class WriteQueue:
    """Lines on their way to one client: many tasks put them, one task sends them, and their bytes are bounded.

    What goes at once is sent by whoever puts it, since waking the sending task costs more than sending.
    """

    def __init__(
        self, max_bytes: int, stall_seconds: float, send_now: Callable[[bytes], int] = lambda _data: 0
    ) -> None:
        """``send_now`` sends what goes without waiting and returns how many bytes."""
        self._send_now = send_now
        self._max_bytes = max_bytes
        self._stall_seconds = stall_seconds
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._work = anyio.Event()
        self._freed = anyio.Event()

    async def put(self, line: bytes) -> None:
        """Queue a line, waiting while the client is behind; a line larger than the bound goes alone."""
        # An empty queue takes a line of any size; otherwise an answer over the bound could never be sent.
        while self._size and self._size + len(line) > self._max_bytes:
            await self._freed.wait()
        self._push(line)

    def put_nowait(self, line: bytes) -> bool:
        """Queue a line if there is room for it now, and return whether there was."""
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
                # Small lines are joined, so that a burst of answers costs one system call.
                chunk = [self._lines.popleft()]
                size = len(chunk[0])
                while self._lines and size + len(self._lines[0]) < CHUNK:
                    chunk.append(self._lines.popleft())
                    size += len(chunk[-1])
                data = b"".join(chunk)
                # A long line is sent in parts: the stall time is for each, since a slow client is not a gone one.
                for start in range(0, len(data), CHUNK):
                    with anyio.fail_after(self._stall_seconds):
                        await stream.send(data[start : start + CHUNK])
                # Only once all is sent: what is in ``stream.send`` is still held in memory.
                self._size -= len(data)
                self._freed.set()
                self._freed = anyio.Event()
            if self._closed:
                return
            self._work = anyio.Event()
            await self._work.wait()

    def _push(self, line: bytes) -> None:
        data = line + b"\n"
        # Never past what is queued: the order of lines is the client's only guarantee.
        sent = 0 if self._size or self._closed else self._send_now(data)
        if sent < len(data):
            self._lines.append(data[sent:])
            self._size += len(data) - sent
            self._work.set()
