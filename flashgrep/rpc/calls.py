"""The calls of one connection, both ways: the client's that are pending, and ours that await its reply."""

import itertools
import secrets
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from flashgrep.errors import DeadlineExceeded, Unavailable
from flashgrep.rpc.context import Peer
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import Faulty, JsonId, Message, Reply, Request, error_line, request_line
from flashgrep.rpc.wire import WriteQueue

CANCELLING = {"$/cancelRequest": ("id", False), "notifications/cancelled": ("requestId", True)}
"""Notifications that end a call: the parameter naming it, and whether it then goes unanswered."""

Job: TypeAlias = Pending | Faulty


class Calls:
    """Runs a client's requests, at most ``in_flight`` at once."""

    def __init__(self, dispatcher: Dispatcher, peer: Peer) -> None:
        self._dispatcher = dispatcher
        self._peer = peer
        self._slots = anyio.Semaphore(dispatcher.limits.in_flight, fast_acquire=True)
        self._pending: dict[JsonId, list[Pending]] = {}
        self._latest: dict[str, Pending] = {}
        """Of requests of which the next one ends the one before (``Request.replaces``)."""

    @property
    def are_several(self) -> bool:
        """Whether more than one request awaits its answer."""
        return len(self._pending) > 1

    def admit(self, message: Message) -> list[Job]:
        """Return what has to run for a message.

        Its calls are pending before any of them runs, so that a cancellation finds them in whatever order they run.
        """
        jobs: list[Job] = []
        for item in message.items:
            if isinstance(item, Faulty):
                jobs.append(item)
            elif isinstance(item, Request) and item.method in CANCELLING and not item.wants_answer:
                name, silent = CANCELLING[item.method]
                request_id = item.params.get(name) if isinstance(item.params, dict) else next(iter(item.params), None)
                # Anything else is no id, and may not be hashable.
                if request_id is None or isinstance(request_id, (str, int, float)):
                    for pending in self._pending.get(request_id, []):
                        pending.cancel(silent=silent)
            elif isinstance(item, Request):
                pending = Pending(item)
                if item.wants_answer:
                    self._pending.setdefault(item.id, []).append(pending)
                    if item.replaces is not None:
                        if (before := self._latest.get(item.replaces)) is not None:
                            # It is answered as cancelled: its client still waits for it.
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
            # A batch is answered as a whole, so cancelling one of its calls must not end the wait for the others.
            if len(jobs) > 1 or isinstance(first, Faulty):
                await self._slots.acquire()
            else:
                # A call that is cancelled while it waits needs no slot to say so.
                has_slot = False
                with first.scope:
                    await self._slots.acquire()
                    has_slot = True
                    first.scope = anyio.CancelScope()  # a scope serves once, and the call itself needs one
        try:
            return await (self._answer_batch(jobs) if is_batch else self._answer_one(jobs[0]))
        finally:
            if has_slot:
                self._slots.release()

    async def _answer_one(self, job: Job) -> bytes | None:
        if isinstance(job, Faulty):
            return error_line(job.id, job.error)
        # A client may use an id twice at once. Each call is forgotten by itself, and cancelling ends all of the id.
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
        """Run the jobs in the slot we have and in any that come free; answer all in one array, in their order."""
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
            # The batch has one slot of its own, so it goes on even if every other slot is taken by single calls.
            recruiting = anyio.CancelScope()
            workers.start_soon(recruit)
            await work()
            recruiting.cancel()  # every job has begun: no more slots are needed
        wanted = [answer for answer in answers if answer is not None]
        return b"[" + b",".join(wanted) + b"]" if wanted else None


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
        # A host that outlives its daemon may reply to a request of the last one; no two have the same id.
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
            await self._queue.put(request_line(request_id, method, params))
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
        """Hand the replies in a message to those who wait for them; a reply that nobody waits for is dropped."""
        for reply in message.items:
            if isinstance(reply, Reply) and reply.id in self._awaited:
                self._awaited[reply.id].reply = reply
                self._awaited[reply.id].replied.set()
