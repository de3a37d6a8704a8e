"""Bytes to lines and lines to bytes: the read loop, the write queue and the bounds of every connection."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from flashgrep.base.scheduler import THREADS_PER_FLOW

PART = 256 * 1024
"""Of a long line: twenty waits for an answer of 10,000 hits took 3 ms of processor time."""
CHUNK = 64 * 1024  # the default size of a socket's buffer: larger reads gain nothing
BLANK = b" \t\r\n"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a daemon's connections; times in seconds, sizes in bytes."""

    max_line: int = 8 * MIB
    """Longer requests are refused without being held in memory."""
    max_line_reading: int = MIB
    """The same for requests that do not write: none needs more. A batch counts as a whole."""
    max_line_before_auth: int = 64 * 1024
    """The same before the token is shown, which is far shorter than this."""
    in_flight: int = 32
    """Calls running at once per connection."""
    waiting: int = 32
    """Lines read ahead while all slots are busy, so that a cancellation is seen; then reading pauses."""
    held_bytes: int = 16 * MIB
    """Bytes of lines read but not answered yet, per connection; beyond it reading also pauses."""
    batch_items: int = 1000
    """Eight million bytes could hold a batch of four million faulty items, each needing an answer."""
    call_seconds: float = 120.0
    """Hard limit of every call, whatever deadline its parameters set."""
    first_line_seconds: float = 30.0
    """A TCP connection that sends no complete line for this long is closed."""
    write_seconds: float = 30.0
    """A client that does not accept the next 64 KiB of its answers within this time is disconnected."""
    queued_bytes: int = 16 * MIB
    """Bytes of answers waiting for a slow reader; beyond it, its calls wait too."""
    unread_bytes: int = 2 * MIB
    """Bytes of unread answers above which none of a client's lookups begins: who does not read gets no work. Nearly two
    answers of 10,000 hits, so that the next one is computed while a client reads the last."""
    unread_bytes_of_all: int = 32 * MIB
    """The same for all connections together; above it, a client with any unread byte gets no more work."""
    connections: int = 1024
    """Most open connections per listener; further ones are told to try again."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line over the limit, and how much of it had arrived when it was given up."""

    observed: int
    limit: int


class LineReader:
    """Reads lines of a byte stream; the rest of an oversized line is dropped as it arrives."""

    def __init__(self, stream: ByteReceiveStream, max_line: int) -> None:
        self.max_line = max_line
        self._stream = stream
        self._held = bytearray()
        self._searched = (
            0  # no line end before here: each byte of a long line is searched once
        )
        self._dropping = False
        self._ended = False

    async def receive_line(self) -> bytes | Oversized | None:
        """Return the next line that is not blank, without its end; None at the end of the stream.

        Raises:
            anyio.BrokenResourceError: the connection was reset.

        """
        while True:
            end = self._held.find(b"\n", self._searched)
            if end >= 0:
                size = end
            else:
                size = len(self._held)
            if not self._dropping and size > self.max_line:
                self._dropping = True  # reported now, since its end may never come
                self._searched = 0
                return Oversized(size, self.max_line)
            if end < 0 and not self._ended:
                if self._dropping:
                    self._held.clear()
                self._searched = len(self._held)
                await self._fill()
                continue
            # At the end of the stream the rest is a line too.
            if self._dropping:
                line = b""
            else:
                line = bytes(self._held[:size])
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
    """A bound on a client's lines that are read but not answered yet, by number and size.

    One line always fits, whatever its size. While none fits, the client is not read from.
    """

    def __init__(self, max_lines: int, max_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._lines = 0
        self._bytes = 0
        self._freed: anyio.Event | None = None

    def has_room(self, size: int) -> bool:
        """Return whether a line of ``size`` bytes fits now."""
        return not self._lines or (
            self._lines < self._max_lines and self._bytes + size <= self._max_bytes
        )

    async def wait(self, size: int) -> None:
        """Wait until a line of ``size`` bytes fits."""
        while not self.has_room(size):
            # Created only if somebody waits: most lines find room at once.
            self._freed = self._freed or anyio.Event()
            await self._freed.wait()

    def acquire(self, size: int) -> None:
        """Add a line."""
        self._lines += 1
        self._bytes += size

    def release(self, size: int) -> None:
        """Remove an answered line."""
        self._lines -= 1
        self._bytes -= size
        if self._freed is not None:
            self._freed.set()
            self._freed = None


@dataclass(slots=True)
class Backlog:
    """The bytes of answers that wait for their readers, over all connections."""

    size: int = 0


class WriteQueue:
    """A bounded queue of lines for one client: many tasks put them, one task sends them.

    What can be sent at once is sent by the task that puts it, since waking the sending task costs more.
    """

    def __init__(
        self,
        max_bytes: int,
        stall_seconds: float,
        send_now: Callable[[bytes], int] = lambda _data: 0,
        backlog: Backlog | None = None,
    ) -> None:
        """``send_now`` sends what it can without waiting and returns the number of bytes."""
        self.unread = 0
        """Bytes of answers that are not sent: those queued, and those that wait to be."""
        self.has_delivered = False
        """Whether the client has taken an answer."""
        self._backlog = backlog or Backlog()
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
        self._count(len(line))
        try:
            # An empty queue takes a line of any size; otherwise an answer over the
            # bound could never be sent.
            while self._size and self._size + len(line) > self._max_bytes:
                await self._freed.wait()
        finally:
            self._count(-len(line))
        self._push(line)

    def put_nowait(self, line: bytes) -> bool:
        """Queue a line if there is room for it now, and return whether there was."""
        if self._closed or self._size + len(line) > self._max_bytes:
            return False
        self._push(line)
        return True

    async def wait_for_reader(self, limits: Limits) -> None:
        """Wait while more is unread than allows new work."""
        while self.unread > limits.unread_bytes or (
            self.unread and self._backlog.size > limits.unread_bytes_of_all
        ):
            await self._freed.wait()

    def discard(self) -> None:
        """Forget what is unread: the client is gone."""
        self._count(-self.unread)
        self._lines.clear()

    def close(self) -> None:
        """Let ``run`` return once everything queued is sent."""
        self._closed = True
        self._work.set()

    async def run(self, stream: ByteSendStream) -> None:
        """Send what is queued, in order, until closed.

        Raises:
            TimeoutError: the client accepted no byte for the stall time.
            anyio.BrokenResourceError: the client is gone.

        """
        while True:
            while self._lines:
                # Join small lines, so that a burst of answers costs one system call.
                chunk = [self._lines.popleft()]
                size = len(chunk[0])
                while self._lines and size + len(self._lines[0]) < CHUNK:
                    chunk.append(self._lines.popleft())
                    size += len(chunk[-1])
                data = b"".join(chunk)
                # Send a long line in parts with a stall time for each: a slow client is
                # not a dead one.
                for start in range(0, len(data), PART):
                    with anyio.fail_after(self._stall_seconds):
                        await stream.send(data[start : start + PART])
                # Only once all is sent: what ``stream.send`` holds is still in memory.
                self._size -= len(data)
                self._count(-len(data))
                self.has_delivered = True
                self._freed.set()
                self._freed = anyio.Event()
            if self._closed:
                return
            self._work = anyio.Event()
            await self._work.wait()

    def _push(self, line: bytes) -> None:
        data = line + b"\n"
        # Never ahead of queued lines: their order is all a client can rely on.
        if self._size or self._closed:
            sent = 0
        else:
            sent = self._send_now(data)
        if sent == len(data):
            self.has_delivered = True
        else:
            self._lines.append(data[sent:])
            self._size += len(data) - sent
            self._count(len(data) - sent)
            self._work.set()

    def _count(self, size: int) -> None:
        self.unread += size
        self._backlog.size += size


class Pace:
    """Bounds the lookups of one client: few at once, and none begins while it does not read; a context manager.

    Without it, sixty clients that never read had 1,920 answers computed and held: 931 MB, and others waited 2 s. One at
    a time until the client has taken an answer: a crowd that will not read is served one answer each.
    """

    def __init__(self, queue: WriteQueue, limits: Limits) -> None:
        self._queue = queue
        self._limits = limits
        self._slots = anyio.Semaphore(1, fast_acquire=True)
        self._is_open = False

    async def __aenter__(self) -> None:
        """Wait for a slot, then for the client to read."""
        self._open()
        await self._slots.acquire()
        try:
            await self._queue.wait_for_reader(self._limits)
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, *failure: object) -> None:
        """Free the slot."""
        self._slots.release()
        self._open()

    def _open(self) -> None:
        if self._queue.has_delivered and not self._is_open:
            self._is_open = True
            for _ in range(THREADS_PER_FLOW - 1):
                self._slots.release()
