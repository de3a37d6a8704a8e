"""One client: its lines become calls in tasks, answers are sent as they are ready; and our requests to it."""

import itertools
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import anyio
from anyio.abc import ByteStream, TaskGroup

from flashgrep.base.errors import (
    DeadlineExceeded,
    FlashgrepError,
    TooLarge,
    Unavailable,
)
from flashgrep.base.registry import Session
from flashgrep.base.scheduler import FLOW, PACE
from flashgrep.rpc import message as messages
from flashgrep.rpc.context import Peer
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import (
    InvalidItem,
    JsonId,
    Message,
    Reply,
    Request,
    error_line,
)
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.wire import (
    BackpressureLimiter,
    LineReader,
    Oversized,
    Pace,
    WriteQueue,
)

HANG_UP_POLL = (
    0.25  # seconds between checks whether a client that ended its input is still there
)
CANCELLING = {
    "$/cancelRequest": ("id", False),
    "notifications/cancelled": ("requestId", True),
}
"""Notifications that end a call: the parameter naming it, and whether it then goes unanswered."""

HungUp: TypeAlias = Callable[[], Awaitable[bool]]
"""Returns whether nobody is left to read the answers."""
Admit: TypeAlias = Callable[[], Awaitable[None]]
"""Finds out who the client is, and sets the rights of its session."""
Job: TypeAlias = Pending | InvalidItem


async def _never() -> bool:
    """Assume that a client that has ended its input still listens."""
    return False


class Connection:
    """The state of one client's wire.

    ``hung_up``: returns, after the end of input, whether the client is gone rather than waiting for answers.
    """

    is_listener: ClassVar[bool] = False

    def __init__(
        self,
        stream: ByteStream,
        session: Session,
        dispatcher: Dispatcher,
        hung_up: HungUp = _never,
    ) -> None:
        self.session = session
        self._stream = stream
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._hung_up = hung_up
        self._queue = WriteQueue(
            self._limits.queued_bytes,
            self._limits.write_seconds,
            self._send_now,
            dispatcher.backlog,
        )
        self._backpressure = BackpressureLimiter(
            self._limits.in_flight + self._limits.waiting, self._limits.held_bytes
        )
        self._calls = Calls(dispatcher, self)
        self._requests = ClientRequests(self._queue, self._limits.call_seconds)
        self._authenticated: Callable[[], None] | None = None
        self._around: TaskGroup | None = None
        self._following: dict[str, anyio.CancelScope] = {}
        self._whole = anyio.CancelScope()  # cancelled to abort
        self._reading = anyio.CancelScope()  # cancelled to read no further

    def _send_now(self, data: bytes) -> int:
        """Send what can be sent without waiting, unless more answers are coming: those are sent together."""
        # With several calls pending the write queue joins their answers into one system
        # call.
        if self._calls.are_several or not isinstance(self._stream, SocketStream):
            return 0
        return self._stream.send_now(data)

    async def serve(
        self,
        *,
        admit: Admit | None = None,
        authenticated: Callable[[], None] | None = None,
    ) -> None:
        """Read until the end of input, finish the calls in flight, close the stream.

        ``admit``: close silently unless a first line comes in time and begins like JSON; it is awaited before the rest
        of that line is read, and sets the session's rights. ``authenticated`` is called when the token has been shown.
        """
        self._authenticated = authenticated
        PACE.set(Pace(self._queue, self._limits))
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
                        # Only after the end of input: while lines come, the client is
                        # there, and reading notices a reset.
                        around.start_soon(self._watch, watching)
                    # All calls are answered. What is queued is sent, however slow the
                    # client.
                    watching.cancel()
                    # From now on nothing new may be followed: it would keep the group
                    # from ending.
                    self._around = None
                    for following in self._following.values():
                        following.cancel()
                    self._queue.close()
        finally:
            with anyio.CancelScope(
                shield=True
            ):  # a cancelled connection holds a descriptor too
                await self._stream.aclose()
            self._queue.discard()
            self._dispatcher.open_connections.discard(self)
            self.session.notes.clear()  # a task that was begun for the client may outlive it, and knows the session

    def stop_reading(self) -> None:
        """Read no further line, finish the calls in flight, then close."""
        self._reading.cancel()

    def abort(self) -> None:
        """Cancel every call and close."""
        self._whole.cancel()

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; return whether it was sent."""
        return self._queue.put_nowait(messages.notification_line(method, params))

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result.

        Raises:
            Unavailable: the client answered with an error.
            DeadlineExceeded: it did not answer within the limit of a call.

        """
        return await self._requests.send(method, params)

    def follow(self, key: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Run a task until it or the connection ends, in place of the one with this key; return whether it started."""
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
        """Cancel the task with this key; return whether there was one."""
        scope = self._following.pop(key, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _read(self, tasks: TaskGroup, admit: Admit | None) -> None:
        reader = LineReader(self._stream, self._max_line())
        try:
            line = await (
                reader.receive_line()
                if admit is None
                else self._read_first(reader, admit)
            )
            while line is not None:
                await self._take(line, tasks)
                reader.max_line = (
                    self._max_line()
                )  # what was taken may have been the token
                line = await reader.receive_line()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.abort()

    def _max_line(self) -> int:
        if self.session.authenticated:
            return self._limits.max_line
        return self._limits.max_line_before_auth

    async def _read_first(
        self, reader: LineReader, admit: Admit
    ) -> bytes | Oversized | None:
        first = b""
        with anyio.move_on_after(self._limits.first_line_seconds):
            # Peek instead of reading: the client's user decides how long its first line
            # may be.
            first = await reader.peek_byte()
        if first not in {b"{", b"["}:
            return None
        await (
            admit()
        )  # not counted against the client: it depends on how many others came
        reader.max_line = self._max_line()
        with anyio.move_on_after(self._limits.first_line_seconds):
            return await reader.receive_line()
        return None

    async def _take(self, line: bytes | Oversized, tasks: TaskGroup) -> None:
        """Start the calls of a line once it fits."""
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
        # Replies and cancellations take effect before waiting for room, since they make
        # room.
        self._requests.resolve(message)
        jobs = self._calls.admit(message)
        if not jobs:
            return
        size = len(line)
        if not self._backpressure.has_room(size):
            # Nothing is read meanwhile, so only watching notices a client that gives
            # up.
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._watch, anyio.CancelScope())
                await self._backpressure.wait(size)
                waiting.cancel_scope.cancel()
        # Released by _answer, once the line is answered in full.
        self._backpressure.acquire(size)
        if self.session.authenticated:
            tasks.start_soon(self._answer, message, jobs, size)
        else:  # one line at a time: the token decides about what follows it
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
        except (
            TimeoutError,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ) as error:
            self._dispatcher.log.debug(
                "client lost", wire=self.session.wire, cause=type(error).__name__
            )
            self.abort()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Cancel everything once nobody is left to read the answers."""
        with scope:
            while not await self._hung_up():  # noqa: ASYNC110 - sockets have no event for this
                await anyio.sleep(HANG_UP_POLL)
            self.abort()


class Calls:
    """Runs a client's requests, at most ``in_flight`` at once."""

    def __init__(self, dispatcher: Dispatcher, peer: Peer) -> None:
        self._dispatcher = dispatcher
        self._peer = peer
        self._slots = anyio.Semaphore(dispatcher.limits.in_flight, fast_acquire=True)
        self._pending: dict[JsonId, list[Pending]] = {}
        self._latest: dict[str, Pending] = {}
        """Requests that replace each other (``Request.replaces``)."""

    @property
    def are_several(self) -> bool:
        """Whether more than one request awaits its answer."""
        return len(self._pending) > 1

    def admit(self, message: Message) -> list[Job]:
        """Return the jobs of a message.

        Its calls are registered before any of them runs, so that a cancellation finds them in whatever order they run.
        """
        jobs: list[Job] = []
        for item in message.items:
            if isinstance(item, InvalidItem):
                jobs.append(item)
            elif (
                isinstance(item, Request)
                and item.method in CANCELLING
                and not item.wants_answer
            ):
                name, silent = CANCELLING[item.method]
                if isinstance(item.params, dict):
                    request_id = item.params.get(name)
                else:
                    request_id = next(iter(item.params), None)
                # Anything else may not be hashable; null would name every request
                # without an id.
                if request_id is not None and messages.is_id(request_id):
                    for pending in self._pending.get(request_id, []):
                        pending.cancel(silent=silent)
            elif isinstance(item, Request):
                pending = Pending(item)
                if item.wants_answer:
                    self._pending.setdefault(item.id, []).append(pending)
                    if item.replaces is not None:
                        if (before := self._latest.get(item.replaces)) is not None:
                            # Answered as cancelled: its client still waits for it.
                            before.cancel(silent=False)
                        self._latest[item.replaces] = pending
                jobs.append(pending)
        return jobs

    async def answer(self, jobs: list[Job], *, is_batch: bool) -> bytes | None:
        """Run the jobs of a message, once there is a slot for them, and return the line that answers it, if any."""
        has_slot = True
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            first = jobs[0]
            # A batch is answered as a whole, so cancelling one call must not end the
            # wait for the others.
            if len(jobs) > 1 or isinstance(first, InvalidItem):
                await self._slots.acquire()
            else:
                # A call cancelled while waiting needs no slot to report that.
                has_slot = False
                with first.scope:
                    await self._slots.acquire()
                    has_slot = True
                    first.scope = (
                        anyio.CancelScope()
                    )  # a scope serves once, and the call itself needs one
        try:
            return await (
                self._answer_batch(jobs) if is_batch else self._answer_one(jobs[0])
            )
        finally:
            if has_slot:
                self._slots.release()

    async def _answer_one(self, job: Job) -> bytes | None:
        if isinstance(job, InvalidItem):
            return error_line(job.id, job.error)
        # A client may use an id twice at once. Each call is removed by itself, and
        # cancelling ends all with the id.
        try:
            return await self._dispatcher.answer(self._peer, job)
        finally:
            if job.request.wants_answer:
                same = self._pending[job.request.id]
                same.remove(job)
                if not same:
                    del self._pending[job.request.id]
                word = job.request.replaces
                if word is not None and self._latest.get(word) is job:
                    del self._latest[word]

    async def _answer_batch(self, jobs: list[Job]) -> bytes | None:
        """Run the jobs in our slot and in any that become free; answer all in one array, in order."""
        answers: list[bytes | None] = [None] * len(jobs)
        rest = iter(enumerate(jobs))  # shared by all workers: each takes the next

        async def work() -> None:
            for index, job in rest:
                answers[index] = await self._answer_one(job)

        async def work_and_release() -> None:
            try:
                await work()
            finally:
                self._slots.release()

        async def recruit() -> None:
            with recruiting:
                for _ in range(len(jobs) - 1):
                    await self._slots.acquire()
                    workers.start_soon(work_and_release)

        async with anyio.create_task_group() as workers:
            # The batch has its own slot, so it progresses even if single calls take all
            # others.
            recruiting = anyio.CancelScope()
            workers.start_soon(recruit)
            await work()
            recruiting.cancel()  # every job has begun: no more slots are needed
        wanted_answers = [answer for answer in answers if answer is not None]
        if wanted_answers:
            return b"[" + b",".join(wanted_answers) + b"]"
        return None


@dataclass(slots=True, eq=False)
class _Awaited:
    """A request of ours that awaits its reply."""

    replied: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None


class ClientRequests:
    """Our requests to one client, and its replies to them."""

    def __init__(self, queue: WriteQueue, seconds: float) -> None:
        self._queue = queue
        self._seconds = seconds
        self._awaited: dict[JsonId, _Awaited] = {}
        self._numbers = itertools.count(1)
        # A host that outlives its daemon may reply to a request of the previous one;
        # ids are never reused.
        self._name = f"flashgrep-{secrets.token_hex(4)}"

    async def send(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result.

        Raises:
            Unavailable: the client answered with an error.
            DeadlineExceeded: it did not answer within the limit of a call.

        """
        request_id = f"{self._name}-{next(self._numbers)}"
        awaited = self._awaited[request_id] = _Awaited()
        try:
            await self._queue.put(messages.request_line(request_id, method, params))
            with anyio.move_on_after(self._seconds):
                await awaited.replied.wait()
        finally:
            del self._awaited[request_id]
        if awaited.reply is None:
            raise DeadlineExceeded(f"the client did not answer {method}")
        if awaited.reply.error is not None:
            raise Unavailable(f"the client refused {method}", reason="client_refused")
        return awaited.reply.result

    def resolve(self, message: Message) -> None:
        """Pass the replies in a message to the waiting callers; unexpected replies are dropped."""
        for reply in message.items:
            if isinstance(reply, Reply) and reply.id in self._awaited:
                self._awaited[reply.id].reply = reply
                self._awaited[reply.id].replied.set()
