"""Look-ups of many clients share the processors: start-time fair queueing over connections, by measured time.

Threads of one interpreter only take the processor from each other, so one look-up runs here at a time and the others
wait, for their turn here or for a worker process that can run them. Whose connection has had the least time is next
(start-time fair queueing: Goyal, Vin and Cheng, 1996); a connection's own look-ups take turns. A look-up gives way at
its next ``checkpoint`` once it has run for a quantum, and stops there when nobody waits for its answer any more. One
that reaches no checkpoint for long, or waits for something else (``blocking``), is not waited for: others run beside
it, and so they do when every worker is busy with a long one.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from flashgrep.portable import Portable, Worker, Workers

QUANTUM = 0.005
"""Seconds a look-up runs before it gives way to another: most end sooner; changing threads costs 0.1 ms."""
PATIENCE = 0.02
"""A look-up that has reached no checkpoint for so many seconds is not waited for any more."""
THREADS_PER_FLOW = 4
"""Look-ups of one connection that have begun and not ended; the others of it wait without a thread."""
THREADS = 256
"""Look-ups begun in all; a thread that waits costs about 100 KB."""
SPARE = 32
"""Once so many have begun, only connections that have none may begin one."""
LOOK_SECONDS = 0.01
"""How often a worker process looks whether its answer is still wanted."""

ResultT = TypeVar("ResultT")


def count_cores() -> int:
    """Return how many processor cores this process may use; macOS tells only how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


FLOW: ContextVar[Hashable] = ContextVar("FLOW", default=None)
"""Whose look-ups they are: a connection."""


class Abandoned(Exception):
    """Nobody waits for the answer any more; raised in the thread that looks for it."""


class Expired(Exception):
    """The time for the answer is over: what has been found so far is to be given."""


class _Turn(Protocol):
    """What checkpoints of a look-up ask."""

    @property
    def stopped(self) -> bool:
        """Whether nobody waits for the answer any more."""

    def give_way(self) -> None:
        """Let others run, if it is their turn."""

    def pause(self) -> None:
        """Let others run until ``resume``."""

    def resume(self) -> None:
        """Wait for the next turn."""


@dataclass(slots=True, eq=False)
class _Flow:
    """The look-ups of one connection that have not ended."""

    key: Hashable
    served: float
    """Virtual time: seconds of service, raised to that of the others whenever it comes back from idleness."""
    members: int = 0
    begun: int = 0
    waiting: "deque[_Task]" = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Task:
    """One look-up."""

    flow: _Flow
    scheduler: "Scheduler"
    ready: asyncio.Future[None]
    """Done when it may begin here, or has been answered by a worker."""
    portable: Portable[object] | None = None
    """Set while a worker may run it."""
    place: Hashable = None
    """What it is about, if it was portable."""
    worker: Worker | None = None
    """Who runs it now, if a worker does."""
    reply: bytes | None = None
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when it may go on; its thread waits here."""
    begun: bool = False
    threaded: bool = False
    runs: bool = False
    """Whether it is the one that runs; False too while others run beside it."""
    stopped: bool = False
    ended: bool = False
    since: float = 0.0

    def give_way(self) -> None:
        if not self.runs or (self.scheduler.contended and time.monotonic() - self.since > QUANTUM):
            self.scheduler.requeue(self)

    def pause(self) -> None:
        self.scheduler.pause(self)

    def resume(self) -> None:
        self.scheduler.requeue(self)


@dataclass(slots=True)
class _Alone:
    """The only look-up of a process; ``is_over`` tells whether nobody waits for it any more."""

    is_over: Callable[[], bool]
    _look_at: float = 0.0

    @property
    def stopped(self) -> bool:
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        return self.is_over()

    def give_way(self) -> None:
        """Nobody else is here."""

    def pause(self) -> None:
        """Nobody else is here."""

    def resume(self) -> None:
        """Nobody else is here."""


_CURRENT: ContextVar[_Turn | None] = ContextVar("_CURRENT", default=None)
_DEADLINE: ContextVar[float | None] = ContextVar("_DEADLINE", default=None)


def checkpoint() -> None:
    """Give way to others, if they wait and this look-up has had its quantum; costs 0.2 µs otherwise.

    To be called every few milliseconds by whatever can take longer than that.

    Raises:
        Abandoned: nobody waits for the answer any more.
        Expired: the deadline that ``expiring`` has set is over.

    """
    stop_if_over()
    turn = _CURRENT.get()
    if turn is not None:
        turn.give_way()


def stop_if_over() -> None:
    """Look whether the answer is still wanted, giving way to nobody: for waits within ``blocking``.

    Raises:
        Abandoned: nobody waits for the answer any more.
        Expired: the deadline that ``expiring`` has set is over.

    """
    turn = _CURRENT.get()
    if turn is not None and turn.stopped:
        raise Abandoned
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() > deadline:
        raise Expired


@contextlib.contextmanager
def ending(is_over: Callable[[], bool]) -> Iterator[None]:
    """Have checkpoints within the block end it once ``is_over`` says so; for a process that runs one look-up."""
    token = _CURRENT.set(_Alone(is_over))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def expiring(deadline: float | None) -> Iterator[None]:
    """Have checkpoints within the block end it at ``deadline``, on the clock of time.monotonic(); None: never."""
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextlib.contextmanager
def blocking() -> Iterator[None]:
    """Let others run while this look-up waits for another process, a disk or a network.

    Raises:
        Abandoned: nobody waits for the answer any more.

    """
    turn = _CURRENT.get()
    if turn is not None:
        turn.pause()
    yield
    if turn is not None:
        turn.resume()


class Scheduler:
    """Runs look-ups in fair turns: one at a time in a thread here, and one in each worker; for one event loop."""

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers = workers
        if workers is not None:
            workers.freed = self._assign
        self._lock = threading.Lock()
        self._flows: dict[Hashable, _Flow] = {}
        self._running: _Task | None = None
        self._begun = 0
        self._now = 0.0
        self._limiter: anyio.CapacityLimiter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._watched = False
        self._used = anyio.Event()
        self._used_seconds = 0.0
        self._ended = 0.0
        self.contended = False
        """Whether anybody waits for a turn here; read without the lock."""

    async def run(
        self, begin: Callable[[], Callable[[], ResultT]], portable: Portable[ResultT] | None = None
    ) -> ResultT:
        """Call ``begin`` when its turn comes, and what that returns in a thread, to its result.

        ``portable``: the same for a worker, if one is there sooner. Cancelled, the look-up ends at its next
        checkpoint; nobody waits for that.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
            self._loop = asyncio.get_running_loop()
            self._loop_thread = threading.get_ident()
        task = self._enter(FLOW.get(), portable)
        try:
            await task.ready
            if portable is not None and task.reply is not None:
                return portable.result(task.reply)
            return await anyio.to_thread.run_sync(
                self._execute, task, begin(), abandon_on_cancel=True, limiter=self._limiter
            )
        finally:
            self._leave(task)

    async def wait_for_rest(self, seconds: float, least: float) -> None:
        """Wait until look-ups have run for ``least`` seconds since the last rest, and then none for ``seconds``."""
        while True:
            await self._used.wait()
            while self._flows or time.monotonic() - self._ended < seconds:  # noqa: ASYNC110 - a moment without any, not an event
                await anyio.sleep(seconds)
            self._used = anyio.Event()
            if self._used_seconds >= least:
                self._used_seconds = 0.0
                return

    def requeue(self, task: _Task) -> None:
        """Have a look-up wait in its thread until it is its turn again."""
        with self._lock:
            self._charge(task)
            task.flow.waiting.append(task)
            self._next()
        task.gate.acquire()
        if task.stopped:
            raise Abandoned

    def pause(self, task: _Task) -> None:
        """Have others run beside a look-up until it is queued again."""
        with self._lock:
            self._charge(task)
            self._next()

    def _enter(self, key: Hashable, portable: Portable[object] | None) -> _Task:
        with self._lock:
            flow = self._flows.get(key)
            if flow is None:
                flow = self._flows[key] = _Flow(key, self._now)
            elif not flow.waiting and flow.begun == 0:
                flow.served = max(flow.served, self._now)
            ready = asyncio.get_running_loop().create_future()
            task = _Task(flow, self, ready, portable, None if portable is None else portable.place)
            flow.members += 1
            self._used.set()
            flow.waiting.append(task)
        worker = self._workers.free(portable.place) if self._workers is not None and portable is not None else None
        if portable is not None and worker is not None:
            self._hand(task, portable, worker)
        elif not self._watched or not self._waits_for_worker(task):
            with self._lock:
                self._next()
        return task

    def _waits_for_worker(self, task: _Task) -> bool:
        """Return whether a look-up's turn is not here, as things are."""
        return task.portable is not None and self._workers is not None and task.place in self._workers.serving

    def _assign(self) -> None:
        """Give free workers the look-ups that are next for them; on the event loop."""
        while (found := self._next_for_workers()) is not None:
            self._hand(*found)

    def _next_for_workers(self) -> tuple[_Task, Portable[object], Worker] | None:
        """Return the look-up that is next of those that a free worker can run, and that worker."""
        found, served = None, 0.0
        free: dict[Hashable, Worker | None] = {}
        with self._lock:
            for flow in self._flows.values():
                if found is not None and flow.served >= served:
                    continue
                for task in flow.waiting:
                    if task.portable is None or self._workers is None:
                        continue
                    if task.place not in free:
                        free[task.place] = self._workers.free(task.place)
                    worker = free[task.place]
                    if worker is not None:
                        found, served = (task, task.portable, worker), flow.served
                        break
        return found

    def _hand(self, task: _Task, portable: Portable[object], worker: Worker) -> None:
        """Have a free worker run a look-up that waits, or have it wait for its turn here; on the event loop."""
        request = portable.request(worker)
        with self._lock:
            if request is None or task.begun:  # begun by a thread just now
                task.portable = None
                self._next()
                return
            task.flow.waiting.remove(task)
            self._now = max(self._now, task.flow.served)
            task.worker, task.since = worker, time.monotonic()
        worker.ask(request, portable.limit, partial(self._take_reply, task))

    def _take_reply(self, task: _Task, reply: bytes | None) -> None:
        with self._lock:
            task.worker = None
            task.flow.served += time.monotonic() - task.since
            if task.stopped:
                self._end(task)
            elif reply is None:
                task.portable = None
                task.flow.waiting.appendleft(task)
                self._next()
            else:
                task.reply = reply
                _begin(task)

    def _execute(self, task: _Task, work: Callable[[], ResultT]) -> ResultT:
        with self._lock:
            if task.stopped:  # cancelled between its turn and the start of this thread
                raise Abandoned
            task.threaded = True
            task.since = time.monotonic()
        token = _CURRENT.set(task)
        try:
            return work()
        finally:
            _CURRENT.reset(token)
            with self._lock:
                self._end(task)

    def _leave(self, task: _Task) -> None:
        """Have a look-up stop that nobody waits for any more; nothing where it has ended."""
        with self._lock:
            task.stopped = True
            if task.ended:
                return
            if task in task.flow.waiting:
                task.flow.waiting.remove(task)
                task.gate.release()
            if task.worker is not None:
                task.worker.cancel()  # it is not free before it replies
            elif not task.threaded:
                self._end(task)

    def _end(self, task: _Task) -> None:
        task.ended = True
        self._ended = time.monotonic()
        self._charge(task)
        flow = task.flow
        flow.members -= 1
        if not flow.members:
            self._flows.pop(flow.key, None)
        if task.begun:
            flow.begun -= 1
            self._begun -= 1
            self._next()

    def _charge(self, task: _Task) -> None:
        """Take the processor from a look-up, if it has it, and note how long it had it."""
        if task.runs:
            task.runs = False
            self._running = None
            took = time.monotonic() - task.since
            task.flow.served += took
            self._used_seconds += took

    def _next(self) -> None:
        """Let the next one run here, unless one does; with the lock held."""
        flows = [flow for flow in self._flows.values() if flow.waiting and self._first(flow) is not None]
        if self._running is None and flows:
            flow = min(flows, key=lambda flow: flow.served)
            self._grant(flow)
            if self._first(flow) is None:
                flows.remove(flow)
        self.contended = bool(flows)
        if not self._watched and self._loop is not None and any(flow.waiting for flow in self._flows.values()):
            self._watched = True
            self._loop.call_soon_threadsafe(self._watch_later)

    def _first(self, flow: _Flow) -> _Task | None:
        """Return the first of a connection's look-ups that may run here."""
        may_begin = flow.begun < (THREADS_PER_FLOW if self._begun < SPARE else 1) and self._begun < THREADS
        for task in flow.waiting:
            if task.begun or (may_begin and not self._waits_for_worker(task)):
                return task
        return None

    def _grant(self, flow: _Flow) -> None:
        task = self._first(flow)
        assert task is not None  # noqa: S101 - asked before
        flow.waiting.remove(task)
        self._now = max(self._now, flow.served)
        self._running, task.runs, task.since = task, True, time.monotonic()
        if task.threaded:
            task.gate.release()
        elif self._loop is not None:
            task.begun, task.portable = True, None
            flow.begun += 1
            self._begun += 1
            if threading.get_ident() == self._loop_thread:
                _begin(task)
            else:
                self._loop.call_soon_threadsafe(_begin, task)

    def _watch_later(self) -> None:
        if self._loop is not None:
            self._loop.call_later(PATIENCE, self._watch)

    def _watch(self) -> None:
        """Wait no longer for a look-up that reaches no checkpoint; on the event loop, while anybody waits."""
        with self._lock:
            task = self._running
            if task is not None and task.threaded and time.monotonic() - task.since > PATIENCE:
                self._charge(task)
            places = {task.place for flow in self._flows.values() for task in flow.waiting if task.place is not None}
        if self._workers is not None:
            for place in places:
                self._workers.want(place)
        with self._lock:
            self._watched = False
            self._next()


def _begin(task: _Task) -> None:
    if not task.ready.done():  # else it was cancelled
        task.ready.set_result(None)
