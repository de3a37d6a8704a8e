"""One client: lines in, calls out to their tasks, answers back in whatever order they are ready."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeAlias

import anyio
from anyio.abc import ByteStream, TaskGroup

from flashgrep.errors import FlashgrepError, TooLarge
from flashgrep.registry import Session
from flashgrep.rpc.calls import Calls, ClientRequests, Job
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import Message, error_line, notification_line
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.wire import BackpressureLimiter, LineReader, Oversized, WriteQueue
from flashgrep.scheduler import FLOW

HANG_UP_POLL = 0.25  # seconds between looks whether a client that ended its input is still there

HungUp: TypeAlias = Callable[[], Awaitable[bool]]
"""Tells whether nobody is left to read the answers."""
Admit: TypeAlias = Callable[[], Awaitable[None]]
"""Finds out who the client is, and sets the rights of its session."""


async def _never() -> bool:
    """Take a client that has ended its input for one that still listens."""
    return False


class Connection:
    """The state of one client's wire.

    ``hung_up``: tells, after the end of input, a client that is gone from one that awaits its answers.
    """

    is_listener: ClassVar[bool] = False

    def __init__(self, stream: ByteStream, session: Session, dispatcher: Dispatcher, hung_up: HungUp = _never) -> None:
        self.session = session
        self._stream = stream
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._hung_up = hung_up
        self._queue = WriteQueue(self._limits.queued_bytes, self._limits.write_seconds, self._send_now)
        self._backpressure = BackpressureLimiter(self._limits.in_flight + self._limits.waiting, self._limits.held_bytes)
        self._calls = Calls(dispatcher, self)
        self._requests = ClientRequests(self._queue, self._limits.call_seconds)
        self._authenticated: Callable[[], None] | None = None
        self._around: TaskGroup | None = None
        self._following: dict[str, anyio.CancelScope] = {}
        self._whole = anyio.CancelScope()  # cancelled to abort
        self._reading = anyio.CancelScope()  # cancelled to read no further

    def _send_now(self, data: bytes) -> int:
        """Send what goes without waiting, unless more answers are to come: those go together."""
        # With several calls pending the write queue joins their answers into one system call.
        if self._calls.are_several or not isinstance(self._stream, SocketStream):
            return 0
        return self._stream.send_now(data)

    async def serve(self, *, admit: Admit | None = None, authenticated: Callable[[], None] | None = None) -> None:
        """Read until the end of input, finish the calls in flight, close the stream.

        ``admit``: close without a word unless a first line comes in time and begins as JSON does; it is awaited before
        that line is read on, and sets the session's rights.
        ``authenticated`` is called when the token has been shown.
        """
        self._authenticated = authenticated
        FLOW.set(self)  # the tasks of all its calls begin below
        self._dispatcher.open_connections.add(self)
        try:
            with self._whole:
                async with anyio.create_task_group() as around:
                    self._around = around
                    around.start_soon(self._write)
                    watching = anyio.CancelScope()
                    async with anyio.create_task_group() as tasks:
                        with self._reading:
                            await self._read(tasks, admit)
                        # Only after the end of input: while lines come, the client is there, and reading notices a
                        # reset.
                        around.start_soon(self._watch, watching)
                    # All calls are answered. What is queued is sent, however long the client takes it.
                    watching.cancel()
                    # From now on nothing can be followed: it would keep the group from ending.
                    self._around = None
                    for following in self._following.values():
                        following.cancel()
                    self._queue.close()
        finally:
            with anyio.CancelScope(shield=True):  # a cancelled connection holds a descriptor too
                await self._stream.aclose()
            self._dispatcher.open_connections.discard(self)
            self.session.notes.clear()  # a task that was begun for the client may outlive it, and knows the session

    def stop_reading(self) -> None:
        """Take no further line, finish the calls in flight, then close."""
        self._reading.cancel()

    def abort(self) -> None:
        """Cancel every call and close."""
        self._whole.cancel()

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; say whether it was sent."""
        return self._queue.put_nowait(notification_line(method, params))

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result.

        Raises:
            Unavailable: the client answered with an error.
            DeadlineExceeded: it did not answer within the limit of a call.

        """
        return await self._requests.send(method, params)

    def follow(self, key: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Run something until it or the connection ends, in place of what runs by that key; say whether it is begun."""
        self.unfollow(key)
        if self._around is None:
            return False
        scope = self._following[key] = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await work()
            # Another may run by this key by now.
            if self._following.get(key) is scope:
                del self._following[key]

        self._around.start_soon(run)
        return True

    def unfollow(self, key: str) -> bool:
        """End what runs by a key; say whether anything did."""
        scope = self._following.pop(key, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _read(self, tasks: TaskGroup, admit: Admit | None) -> None:
        reader = LineReader(self._stream, self._max_line())
        try:
            line = await (reader.receive_line() if admit is None else self._read_first(reader, admit))
            while line is not None:
                await self._take(line, tasks)
                reader.max_line = self._max_line()  # what was taken may have been the token
                line = await reader.receive_line()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.abort()

    def _max_line(self) -> int:
        return self._limits.max_line if self.session.authenticated else self._limits.max_line_before_auth

    async def _read_first(self, reader: LineReader, admit: Admit) -> bytes | Oversized | None:
        first = b""
        with anyio.move_on_after(self._limits.first_line_seconds):
            # Peeked at, not read: which user the client is decides how long its first line may be.
            first = await reader.peek_byte()
        if first not in {b"{", b"["}:
            return None
        await admit()  # not in the client's time: how long it takes is up to how many others came
        reader.max_line = self._max_line()
        with anyio.move_on_after(self._limits.first_line_seconds):
            return await reader.receive_line()
        return None

    async def _take(self, line: bytes | Oversized, tasks: TaskGroup) -> None:
        """Begin the calls of a line, once it may be taken in."""
        try:
            if isinstance(line, Oversized):
                raise TooLarge(
                    "line too long",
                    limit_bytes=line.limit,
                    observed_bytes=line.observed,
                    guidance="send the request in parts, or a path instead of content; the rest of the line is ignored",
                )
            message = await self._dispatcher.reader.read(line)
        except FlashgrepError as error:
            # Without an id, as the specification has it for what could not be read.
            await self._queue.put(error_line(None, error))
            return
        # Replies and cancellations take effect before waiting for room: they are what makes room.
        self._requests.resolve(message)
        jobs = self._calls.admit(message)
        if not jobs:
            return
        size = len(line)
        if not self._backpressure.has_room(size):
            # Nothing is read meanwhile, so a client that gives up is noticed by watching alone.
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._watch, anyio.CancelScope())
                await self._backpressure.wait(size)
                waiting.cancel_scope.cancel()
        # Released by _answer, once the line is answered in full.
        self._backpressure.acquire(size)
        if self.session.authenticated:
            tasks.start_soon(self._answer, message, jobs, size)
        else:  # one line at a time: what follows the token is judged by it
            await self._answer(message, jobs, size)
            if self.session.authenticated and self._authenticated is not None:
                self._authenticated()

    async def _answer(self, message: Message, jobs: list[Job], size: int) -> None:
        try:
            answer = await self._calls.answer(jobs, is_batch=message.is_batch)
            if answer is not None:
                await self._queue.put(answer)
        finally:
            self._backpressure.release(size)

    async def _write(self) -> None:
        try:
            await self._queue.run(self._stream)
        except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._dispatcher.log.debug("client lost", wire=self.session.wire, cause=type(error).__name__)
            self.abort()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Cancel everything once nobody is left to read the answers."""
        with scope:
            while not await self._hung_up():  # noqa: ASYNC110 - sockets have no event for this
                await anyio.sleep(HANG_UP_POLL)
            self.abort()
