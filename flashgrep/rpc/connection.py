"""One client: lines in, calls out to their tasks, answers back in whatever order they are ready."""

import itertools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import ByteStream, TaskGroup

from flashgrep.errors import DeadlineExceeded, FlashgrepError, TooLarge, Unavailable
from flashgrep.registry import Session
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import (
    Faulty,
    Item,
    JsonId,
    Reply,
    Request,
    error_line,
    notification_line,
    read_message,
    request_line,
)
from flashgrep.rpc.room import Room
from flashgrep.rpc.wire import LineReader, Outbox, Oversized

CANCELLING = {"$/cancelRequest": ("id", False), "notifications/cancelled": ("requestId", True)}
"""Notifications that end a call: the parameter naming it, and whether it then goes unanswered."""
HANG_UP_POLL = 0.25  # seconds between looks whether a client that ended its input is still there

HungUp = Callable[[], Awaitable[bool]]
Job = Pending | Faulty


async def _never() -> bool:
    """Take the end of input for a client that still listens."""
    return False


async def serve_connection(
    stream: ByteStream, session: Session, dispatcher: Dispatcher, *, guarded: bool = False, hung_up: HungUp = _never
) -> None:
    """Answer one client until it hangs up; closes the stream.

    ``guarded``: close without a word unless a first line comes in time and begins as JSON does.
    ``hung_up``: tells, after the end of input, a client that is gone from one that awaits its answers.
    """
    await Connection(stream, session, dispatcher, hung_up).serve(guarded=guarded)


@dataclass(slots=True, eq=False)
class _Asked:
    """A request of ours awaiting the client's reply."""

    done: anyio.Event
    reply: Reply | None = None


class Connection:
    """The state of one client's wire."""

    def __init__(self, stream: ByteStream, session: Session, dispatcher: Dispatcher, hung_up: HungUp = _never) -> None:
        self.session = session
        self._stream = stream
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._hung_up = hung_up
        self._outbox = Outbox(self._limits.queued_bytes, self._limits.write_seconds)
        self._slots = anyio.Semaphore(self._limits.in_flight, fast_acquire=True)
        self._room = Room(self._limits.in_flight + self._limits.waiting, self._limits.held_bytes)
        self._pending: dict[JsonId, list[Pending]] = {}
        self._asked: dict[JsonId, _Asked] = {}
        self._ask_ids = itertools.count(1)
        self._whole = anyio.CancelScope()
        self._reading = anyio.CancelScope()

    async def serve(self, *, guarded: bool) -> None:
        """Read until the end of input, finish the calls in flight, close the stream."""
        self._dispatcher.openings.add(self)
        try:
            with self._whole:
                async with anyio.create_task_group() as around:
                    around.start_soon(self._write)
                    await self._read_and_finish(around, guarded=guarded)
                    self._outbox.close()
        finally:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            self._dispatcher.openings.discard(self)

    def stop_reading(self) -> None:
        """Take no further line, finish the calls in flight, then close."""
        self._reading.cancel()

    def abort(self) -> None:
        """Cancel every call and close."""
        self._whole.cancel()

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; say whether it was sent."""
        return self._outbox.offer(notification_line(method, params))

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result.

        Raises:
            Unavailable: the client answered with an error.
            DeadlineExceeded: it did not answer within the limit of a call.

        """
        request_id = f"flashgrep-{next(self._ask_ids)}"
        asked = self._asked[request_id] = _Asked(anyio.Event())
        try:
            await self._outbox.put(request_line(request_id, method, params))
            with anyio.move_on_after(self._limits.call_seconds):
                await asked.done.wait()
        finally:
            del self._asked[request_id]
        if asked.reply is None:
            raise DeadlineExceeded(f"the client did not answer {method}")
        if asked.reply.error is not None:
            raise Unavailable(f"the client refused {method}", reason="client_refused")
        return asked.reply.result

    def cancel(self, request_id: JsonId, *, silent: bool = False) -> bool:
        """End a call in flight; say whether there was one."""
        found = self._pending.get(request_id, [])
        for pending in found:
            pending.cancel(silent=silent)
        return bool(found)

    # -- reading ---------------------------------------------------------------------------------------------------

    async def _read_and_finish(self, around: TaskGroup, *, guarded: bool) -> None:
        watching = anyio.CancelScope()
        async with anyio.create_task_group() as calls:
            with self._reading:
                await self._read(calls, guarded=guarded)
            around.start_soon(self._watch, watching)
        watching.cancel()

    async def _read(self, calls: TaskGroup, *, guarded: bool) -> None:
        reader = LineReader(self._stream, self._max_line())
        try:
            line = await (self._first(reader) if guarded else reader.next())
            while line is not None:
                await self._take(line, calls)
                reader.max_line = self._max_line()
                line = await reader.next()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.abort()

    def _max_line(self) -> int:
        return self._limits.max_line if self.session.authenticated else self._limits.max_line_before_auth

    async def _first(self, reader: LineReader) -> bytes | Oversized | None:
        with anyio.move_on_after(self._limits.first_line_seconds):
            if await reader.first_byte() in {b"{", b"["}:
                return await reader.next()
        return None

    async def _take(self, line: bytes | Oversized, calls: TaskGroup) -> None:
        if isinstance(line, Oversized):
            await self._outbox.put(error_line(None, _too_large(line)))
            return
        try:
            message = read_message(line, self._limits.batch_items)
        except FlashgrepError as error:
            await self._outbox.put(error_line(None, error))
            return
        jobs = [job for item in message.items if (job := self._admit(item)) is not None]
        if not jobs:
            return
        run = self._batch if message.is_batch else self._single
        await self._room_for(len(line))
        if self.session.authenticated:
            calls.start_soon(self._run, run, jobs, len(line))
        else:  # one line at a time: what follows the token is judged by it
            await self._run(run, jobs, len(line))

    def _admit(self, item: Item) -> Job | None:
        """Note a call as pending before any runs, so that what cancels it finds it whatever the order."""
        if isinstance(item, Faulty):
            return item
        if isinstance(item, Reply):
            self._settle(item)
            return None
        if item.method in CANCELLING and not item.wants_answer:
            self._cancel_by(item)
            return None
        pending = Pending(item)
        if item.wants_answer:
            self._pending.setdefault(item.id, []).append(pending)
        return pending

    def _settle(self, reply: Reply) -> None:
        asked = self._asked.get(reply.id)
        if asked is not None:
            asked.reply = reply
            asked.done.set()

    def _cancel_by(self, notification: Request) -> None:
        field, silent = CANCELLING[notification.method]
        params = notification.params
        request_id = params.get(field) if isinstance(params, dict) else next(iter(params), None)
        if request_id is None or isinstance(request_id, (str, int, float)):
            self.cancel(request_id, silent=silent)

    # -- answering -------------------------------------------------------------------------------------------------

    async def _room_for(self, size: int) -> None:
        """Wait until a line may be taken in, meanwhile noticing a client that gives up, and count it."""
        if not self._room.fits(size):
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._watch, anyio.CancelScope())
                await self._room.wait(size)
                waiting.cancel_scope.cancel()
        self._room.enter(size)

    async def _run(self, run: Callable[[list[Job]], Awaitable[None]], jobs: list[Job], size: int) -> None:
        try:
            async with self._slots:
                await run(jobs)
        finally:
            self._room.leave(size)

    async def _single(self, jobs: list[Job]) -> None:
        answer = await self._answer(jobs[0])
        if answer is not None:
            await self._outbox.put(answer)

    async def _batch(self, jobs: list[Job]) -> None:
        """Run the jobs in our slot and in as many more as come free, and answer all in one array, in their order."""
        answers: list[bytes | None] = [None] * len(jobs)
        rest = iter(enumerate(jobs))
        async with anyio.create_task_group() as workers:
            recruiting = anyio.CancelScope()
            workers.start_soon(self._recruit, workers, recruiting, rest, answers)
            await self._work(rest, answers)
            recruiting.cancel()
        wanted = [answer for answer in answers if answer is not None]
        if wanted:
            await self._outbox.put(b"[" + b",".join(wanted) + b"]")

    async def _recruit(
        self,
        workers: TaskGroup,
        recruiting: anyio.CancelScope,
        rest: Iterator[tuple[int, Job]],
        answers: list[bytes | None],
    ) -> None:
        with recruiting:
            for _ in range(len(answers) - 1):
                await self._slots.acquire()
                workers.start_soon(self._help, rest, answers)

    async def _help(self, rest: Iterator[tuple[int, Job]], answers: list[bytes | None]) -> None:
        try:
            await self._work(rest, answers)
        finally:
            self._slots.release()

    async def _work(self, rest: Iterator[tuple[int, Job]], answers: list[bytes | None]) -> None:
        for index, job in rest:
            answers[index] = await self._answer(job)

    async def _answer(self, job: Job) -> bytes | None:
        if isinstance(job, Faulty):
            return error_line(job.id, job.error)
        try:
            return await self._dispatcher.answer(self, job)
        finally:
            self._forget(job)

    def _forget(self, pending: Pending) -> None:
        if pending.request.wants_answer:
            same = self._pending[pending.request.id]
            same.remove(pending)
            if not same:
                del self._pending[pending.request.id]

    # -- writing and the end ---------------------------------------------------------------------------------------

    async def _write(self) -> None:
        try:
            await self._outbox.run(self._stream)
        except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._dispatcher.log.debug("client lost", wire=self.session.wire, cause=type(error).__name__)
            self.abort()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Cancel everything once nobody is left to read the answers."""
        with scope:
            while not await self._hung_up():  # noqa: ASYNC110 - sockets have no event for this
                await anyio.sleep(HANG_UP_POLL)
            self.abort()


def _too_large(line: Oversized) -> TooLarge:
    return TooLarge(
        "line too long",
        limit_bytes=line.limit,
        observed_bytes=line.observed,
        guidance="send the request in parts, or a path instead of content; the rest of the line is ignored",
    )
