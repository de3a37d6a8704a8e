"""The calls of one client: which are pending, how many run at once, and what a line of them answers."""

from collections.abc import Iterator
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from flashgrep.rpc.context import Peer
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import Faulty, JsonId, Message, Request, error_line

CANCELLING = {"$/cancelRequest": ("id", False), "notifications/cancelled": ("requestId", True)}
"""Notifications that end a call: the parameter naming it, and whether it then goes unanswered."""

Job: TypeAlias = Pending | Faulty
_Numbered: TypeAlias = Iterator[tuple[int, Job]]


class Calls:
    """Runs a client's requests, at most ``in_flight`` at once."""

    def __init__(self, dispatcher: Dispatcher, peer: Peer) -> None:
        self._dispatcher = dispatcher
        self._peer = peer
        self._slots = anyio.Semaphore(dispatcher.limits.in_flight, fast_acquire=True)
        self._pending: dict[JsonId, list[Pending]] = {}

    def admit(self, message: Message) -> list[Job]:
        """Return what has to run for a message.

        Its calls are pending before any of them runs, so that what cancels them finds them whatever the order.
        """
        jobs: list[Job] = []
        for item in message.items:
            if isinstance(item, Faulty):
                jobs.append(item)
            elif isinstance(item, Request):
                if item.method in CANCELLING and not item.wants_answer:
                    self._cancel_by(item)
                else:
                    jobs.append(self._note(item))
        return jobs

    async def answer(self, jobs: list[Job], *, is_batch: bool) -> bytes | None:
        """Run the jobs of a message, once there is a slot for them, and return the line that answers it, if any."""
        held = await self._slot(jobs)
        try:
            return await (self._batch(jobs) if is_batch else self._one(jobs[0]))
        finally:
            if held:
                self._slots.release()

    def cancel(self, request_id: JsonId, *, silent: bool) -> bool:
        """End the calls of this id; say whether there were any."""
        found = self._pending.get(request_id, [])
        for pending in found:
            pending.cancel(silent=silent)
        return bool(found)

    async def _slot(self, jobs: list[Job]) -> bool:
        """Wait for a slot; False where the one call that was to run in it has been cancelled meanwhile."""
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            first = jobs[0]
            if len(jobs) > 1 or isinstance(first, Faulty):
                await self._slots.acquire()
            else:
                with first.scope:
                    await self._slots.acquire()
                    first.scope = anyio.CancelScope()  # a scope serves once, and the call itself needs one
                    return True
                return False
        return True

    def _cancel_by(self, notification: Request) -> None:
        field, silent = CANCELLING[notification.method]
        params = notification.params
        request_id = params.get(field) if isinstance(params, dict) else next(iter(params), None)
        if request_id is None or isinstance(request_id, (str, int, float)):
            self.cancel(request_id, silent=silent)

    def _note(self, request: Request) -> Pending:
        pending = Pending(request)
        if request.wants_answer:
            self._pending.setdefault(request.id, []).append(pending)
        return pending

    def _forget(self, pending: Pending) -> None:
        if pending.request.wants_answer:
            same = self._pending[pending.request.id]
            same.remove(pending)
            if not same:
                del self._pending[pending.request.id]

    async def _one(self, job: Job) -> bytes | None:
        if isinstance(job, Faulty):
            return error_line(job.id, job.error)
        try:
            return await self._dispatcher.answer(self._peer, job)
        finally:
            self._forget(job)

    async def _batch(self, jobs: list[Job]) -> bytes | None:
        """Run the jobs in our slot and in as many more as come free; answer all in one array, in their order."""
        answers: list[bytes | None] = [None] * len(jobs)
        rest = iter(enumerate(jobs))
        async with anyio.create_task_group() as workers:
            recruiting = anyio.CancelScope()
            workers.start_soon(self._recruit, workers, recruiting, rest, answers)
            await self._work(rest, answers)
            recruiting.cancel()
        wanted = [answer for answer in answers if answer is not None]
        return b"[" + b",".join(wanted) + b"]" if wanted else None

    async def _recruit(
        self, workers: TaskGroup, recruiting: anyio.CancelScope, rest: _Numbered, answers: list[bytes | None]
    ) -> None:
        with recruiting:
            for _ in range(len(answers) - 1):
                await self._slots.acquire()
                workers.start_soon(self._help, rest, answers)

    async def _help(self, rest: _Numbered, answers: list[bytes | None]) -> None:
        try:
            await self._work(rest, answers)
        finally:
            self._slots.release()

    async def _work(self, rest: _Numbered, answers: list[bytes | None]) -> None:
        for index, job in rest:
            answers[index] = await self._one(job)
