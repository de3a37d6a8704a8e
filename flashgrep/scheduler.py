"""Look-ups of many clients share one processor: start-time fair queueing over connections, by measured time.

Threads of one interpreter only take the processor from each other, so one look-up runs at a time and the others wait.
Whose connection has had the least time is next (start-time fair queueing: Goyal, Vin and Cheng, 1996); a connection's
own look-ups take turns. A look-up gives way at its next ``checkpoint`` once it has run for a quantum, and stops there
when nobody waits for its answer any more. One that reaches no checkpoint for long, or waits for something else
(``blocking``), is not waited for: others run beside it.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import anyio.to_thread

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

ResultT = TypeVar("ResultT")

FLOW: ContextVar[Hashable] = ContextVar("FLOW", default=None)
"""Whose look-ups they are: a connection."""


class Abandoned(Exception):
    """Nobody waits for the answer any more; raised in the thread that looks for it."""


class Expired(Exception):
    """The time for the answer is over: what has been found so far is to be given."""


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
    ready: anyio.Event = field(default_factory=anyio.Event)
    """Set when it may begin."""
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when it may go on; its thread waits here."""
    begun: bool = False
    threaded: bool = False
    runs: bool = False
    """Whether it is the one that runs; False too while others run beside it."""
    stopped: bool = False
    ended: bool = False
    since: float = 0.0


_CURRENT: ContextVar[_Task | None] = ContextVar("_CURRENT", default=None)


_DEADLINE: ContextVar[float | None] = ContextVar("_DEADLINE", default=None)


def checkpoint() -> None:
    """Give way to others, if they wait and this look-up has had its quantum; costs 0.2 µs otherwise.

    To be called every few milliseconds by whatever can take longer than that.

    Raises:
        Abandoned: nobody waits for the answer any more.
        Expired: the deadline that ``expiring`` has set is over.

    """
    stop_if_over()
    task = _CURRENT.get()
    if task is None:
        return
    if not task.runs or (task.scheduler.contended and time.monotonic() - task.since > QUANTUM):
        task.scheduler.requeue(task)


def stop_if_over() -> None:
    """Look whether the answer is still wanted, giving way to nobody: for waits within ``blocking``.

    Raises:
        Abandoned: nobody waits for the answer any more.
        Expired: the deadline that ``expiring`` has set is over.

    """
    task = _CURRENT.get()
    if task is not None and task.stopped:
        raise Abandoned
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() > deadline:
        raise Expired


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
    task = _CURRENT.get()
    if task is not None:
        task.scheduler.pause(task)
    yield
    if task is not None:
        task.scheduler.requeue(task)


class Scheduler:
    """Runs look-ups in threads, one at a time, in fair turns; for one event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows: dict[Hashable, _Flow] = {}
        self._running: _Task | None = None
        self._begun = 0
        self._now = 0.0
        self._limiter: anyio.CapacityLimiter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched = False
        self._used = anyio.Event()
        self._used_seconds = 0.0
        self._ended = 0.0
        self.contended = False
        """Whether anybody waits; read without the lock."""

    async def run(self, begin: Callable[[], Callable[[], ResultT]]) -> ResultT:
        """Call ``begin`` when its turn comes, and what that returns in a thread, to its result.

        Cancelled, it ends at its next checkpoint; nobody waits for that.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
            self._loop = asyncio.get_running_loop()
        task = self._enter(FLOW.get())
        try:
            await task.ready.wait()
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

    def _enter(self, key: Hashable) -> _Task:
        with self._lock:
            flow = self._flows.get(key)
            if flow is None:
                flow = self._flows[key] = _Flow(key, self._now)
            elif not flow.waiting and flow.begun == 0:
                flow.served = max(flow.served, self._now)
            task = _Task(flow, self)
            flow.members += 1
            self._used.set()
            flow.waiting.append(task)
            self._next()
        return task

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
            with contextlib.suppress(ValueError):
                task.flow.waiting.remove(task)
                task.gate.release()
            if not task.threaded:
                self._end(task)

    def _end(self, task: _Task) -> None:
        task.ended = True
        self._ended = time.monotonic()
        self._charge(task)
        flow = task.flow
        flow.members -= 1
        if task.begun:
            flow.begun -= 1
            self._begun -= 1
        if not flow.members:
            self._flows.pop(flow.key, None)
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
        """Let the next one run, unless one does; with the lock held."""
        if self._running is None:
            flow = min(filter(self._may_run, self._flows.values()), key=lambda flow: flow.served, default=None)
            if flow is not None:
                self._grant(flow)
        self.contended = any(flow.waiting for flow in self._flows.values())
        if self.contended and not self._watched and self._loop is not None:
            self._watched = True
            self._loop.call_soon_threadsafe(self._watch_later)

    def _may_run(self, flow: _Flow) -> bool:
        return bool(flow.waiting) and (self._may_begin(flow) or any(task.begun for task in flow.waiting))

    def _may_begin(self, flow: _Flow) -> bool:
        return flow.begun < (THREADS_PER_FLOW if self._begun < SPARE else 1) and self._begun < THREADS

    def _grant(self, flow: _Flow) -> None:
        may_begin = self._may_begin(flow)
        task = next(task for task in flow.waiting if task.begun or may_begin)
        flow.waiting.remove(task)
        self._now = max(self._now, flow.served)
        self._running, task.runs, task.since = task, True, time.monotonic()
        if task.threaded:
            task.gate.release()
        elif self._loop is not None:
            task.begun = True
            flow.begun += 1
            self._begun += 1
            self._loop.call_soon_threadsafe(task.ready.set)

    def _watch_later(self) -> None:
        if self._loop is not None:
            self._loop.call_later(PATIENCE, self._watch)

    def _watch(self) -> None:
        """Wait no longer for a look-up that reaches no checkpoint; on the event loop, while anybody waits."""
        with self._lock:
            task = self._running
            if task is not None and task.threaded and time.monotonic() - task.since > PATIENCE:
                self._charge(task)
                self._next()
            self._watched = self.contended
            if self._watched:
                self._watch_later()
