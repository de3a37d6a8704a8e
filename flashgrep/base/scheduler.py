"""Sharing the processors among the lookups of many clients: start-time fair queueing over connections.

Threads of one interpreter only compete for the processor, so one lookup runs here at a time and the others wait for
their turn here or for a worker process. The connection that has had the least time is next (start-time fair queueing:
Goyal, Vin and Cheng, 1996); a connection's own lookups take turns. A lookup yields at its next ``checkpoint`` once it
has run for a quantum, and stops there if nobody waits for its answer any more. The scheduler does not wait for one that
reaches no checkpoint for long, or that waits for something else (``blocking``): others run alongside it, as they do
while every worker is busy with a long one.

The state is shared by the event loop and the threads of the lookups, and changes only with the lock held. Workers are
called only on the event loop, except for ``serving``.
"""

import asyncio
import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from flashgrep.base.checkpoint import CURRENT_TURN, Abandoned
from flashgrep.base.shared_turn import SHARED_TURN

QUANTUM = 0.005
"""Seconds a lookup runs before it yields to another: most end sooner; switching threads costs 0.1 ms."""
PATIENCE = 0.02
"""Seconds without a checkpoint after which others run alongside a lookup: it is in a library, or in a system call."""
THREADS_PER_FLOW = 4
"""Most started lookups of one connection; its others wait without a thread."""
THREADS = 256
"""Most started lookups in all; a waiting thread costs about 100 KB."""
SPARE = 32
"""Once this many have started, only connections without one may start another."""
BESIDE_SECONDS = 1.0
"""Connections whose lookups met count as beside each other for this long."""
HOLD_SECONDS = 0.1
"""Beside others, a connection that workers serve starts nothing here unless they take longer than this."""

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


FLOW: ContextVar[Hashable] = ContextVar("FLOW", default=None)
"""The owner of lookups: a connection."""
PACE: ContextVar[AbstractAsyncContextManager[None] | None] = ContextVar(
    "PACE", default=None
)
"""Entered around each lookup of a client: it waits while the client does not read the answers to those before."""


class Worker(Protocol):
    """A process that runs one lookup at a time."""

    def ask(
        self, request: bytes, limit: float, reply: Callable[[bytes | None], None]
    ) -> None:
        """Run a lookup; ``reply`` is called once, on the event loop, with None if there is no answer.

        ``limit``: on the clock of time.monotonic(); a worker that exceeds it by far counts as hung.
        """

    def cancel(self) -> None:
        """Cancel the lookup: nobody waits for its answer any more."""


class Workers(Protocol):
    """The worker processes of a daemon; used on its event loop, except for ``serving``."""

    freed: Callable[[], None]
    """Set by the scheduler; called when a worker has nothing to do."""

    @property
    def serving(self) -> Collection[Hashable]:
        """Places whose lookups should wait for a worker: one has them loaded and is not busy with a long lookup."""

    @property
    def has_idle(self) -> bool:
        """Whether a worker has nothing to do."""

    def free(self, place: Hashable) -> Worker | None:
        """Return a worker that has nothing to do and can answer about a place."""

    def want(self, place: Hashable, waiting: int) -> None:
        """Report that this many lookups of a place are waiting."""


class Portable(Protocol[ResultT_co]):
    """A lookup that a worker can also run."""

    @property
    def place(self) -> Hashable:
        """What it is about, which a worker must have loaded."""

    @property
    def limit(self) -> float:
        """When a worker still running it counts as hung, on the clock of time.monotonic()."""

    def request(self, worker: Any) -> bytes | None:
        """Return what to ask a worker now; None if it must be answered here."""

    def result(self, reply: bytes) -> ResultT_co:
        """Return what a worker has answered."""


@dataclass(slots=True, eq=False)
class _Flow:
    """The lookups of one connection that have not ended."""

    key: Hashable
    served: float
    """Virtual time in seconds: the service received, raised to that of the others after idleness."""
    members: int = 0
    begun: int = 0
    waiting: "deque[_Task]" = field(default_factory=deque)
    elsewhere: "list[_Task]" = field(default_factory=list)
    """Those that workers run."""
    latest: float = 0.0
    """Seconds that the last of its lookups in a worker took."""


@dataclass(slots=True, eq=False)
class _Task:
    """One lookup."""

    flow: _Flow
    scheduler: "Scheduler"
    ready: asyncio.Future[None]
    """Done when it may start here, or a worker has answered it."""
    portable: Portable[object] | None = None
    """Set while a worker may run it."""
    place: Hashable = None
    """What it is about, if it was portable."""
    worker: Worker | None = None
    """Who runs it now, if a worker does."""
    reply: bytes | None = None
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when it may continue; its thread waits for it."""
    begun: bool = False
    """Whether it occupies one of the slots for lookups started here."""
    threaded: bool = False
    """Whether its thread runs or waits at the gate; before that, a cancellation ends it at once."""
    runs: bool = False
    """Whether it is the one that runs; False too while others run alongside it."""
    stopped: bool = False
    """Whether nobody waits for its answer any more."""
    ended: bool = False
    since: float = 0.0
    """When its turn, or its worker, began; on the clock of time.monotonic()."""
    used: float = 0.0
    """Processor time of its thread when last charged, by time.thread_time()."""

    def is_quick(self, now: float) -> bool:
        """Return whether a lookup in a worker is likely to end soon, by the one before it and its own time so far."""
        longest = max(self.flow.latest, now - self.since)
        return longest < QUANTUM

    def give_way(self) -> None:
        # By the clock, since others wait by the clock: by processor time, a turn was up
        # to four times as long on a busy machine, and a polite client waited three
        # times as long alongside a search of one big file.
        if not self.runs or (
            self.scheduler.contended and time.monotonic() - self.since > QUANTUM
        ):
            self.scheduler.requeue(self)

    def pause(self) -> None:
        self.scheduler.pause(self)

    def resume(self) -> None:
        self.scheduler.requeue(self)


class Scheduler:
    """Runs lookups in fair turns: one at a time in a thread here, and one in each worker; for one event loop."""

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers = workers
        if workers is not None:
            # Called on the event loop, the only place that talks to workers.
            workers.freed = self._assign_to_workers
        self._lock = threading.Lock()
        self._flows: dict[Hashable, _Flow] = {}
        self._for_workers: list[tuple[float, int, _Task]] = []
        """A heap of lookups that workers may run and that wait, or waited, by the time that their flows had had."""
        self._most_for_workers = SPARE
        self._numbers = count()
        self._running: _Task | None = None
        self._begun = 0
        self._now = 0.0
        """Virtual time: that of the lookup that began last, advanced by each connection's share of the service since.
        Otherwise a connection that returns at once would always precede one that yielded."""
        self._limiter: anyio.CapacityLimiter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._watched = False
        self._elsewhere: list[_Task] = []
        """Lookups that workers run."""
        self._met = -BESIDE_SECONDS
        """When a lookup came while another connection had some, on the clock of time.monotonic()."""
        self._used = anyio.Event()  # since the last rest
        self._used_seconds = 0.0
        self._ended = 0.0
        self.contended = False
        """Whether any lookup waits for a turn here; read without the lock."""

    async def run(
        self,
        begin: Callable[[], Callable[[], ResultT]],
        portable: Portable[ResultT] | None = None,
    ) -> ResultT:
        """Call ``begin`` when its turn comes, run what it returns in a thread, and return the result.

        ``portable``: the same for a worker, if one is there sooner. Cancelled, the lookup ends at its next
        checkpoint; nobody waits for that.
        """
        shared = SHARED_TURN.get()
        if shared is None:
            outcome = None
        else:
            outcome = await shared.run(begin, self._run_alone)
        if outcome is None:
            return await self._run_alone(begin, portable)
        result: ResultT = outcome[0]
        return result

    async def _run_alone(
        self,
        begin: Callable[[], Callable[[], ResultT]],
        portable: Portable[ResultT] | None = None,
    ) -> ResultT:
        pace = PACE.get()
        if pace is None:
            return await self._run_now(begin, portable)
        async with pace:
            return await self._run_now(begin, portable)

    async def _run_now(
        self,
        begin: Callable[[], Callable[[], ResultT]],
        portable: Portable[ResultT] | None,
    ) -> ResultT:
        if self._limiter is None:
            # At the first lookup, not in __init__: only now is there a loop.
            self._limiter = anyio.CapacityLimiter(THREADS)
            self._loop = asyncio.get_running_loop()
            self._loop_thread = threading.get_ident()
        task = self._enqueue(FLOW.get(), portable)
        try:
            # The only wait without a thread: for the lookups of a connection beyond its
            # share.
            await task.ready
            if portable is not None and task.reply is not None:
                return portable.result(task.reply)
            # ``begin`` is called here, on the loop, and takes the snapshot, so it sees
            # what was saved while the lookup waited. A cancelled lookup keeps its
            # thread until its next checkpoint.
            return await anyio.to_thread.run_sync(
                self._execute,
                task,
                begin(),
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        finally:
            self._leave(task)

    @property
    def is_shared(self) -> bool:
        """Whether several connections have lookups, or had some just now."""
        return time.monotonic() - self._met < BESIDE_SECONDS

    @property
    def ended_at(self) -> float | None:
        """When the last lookup ended, on the clock of time.monotonic(); None: one runs or waits."""
        if self._flows:
            return None
        return self._ended

    async def wait_for_rest(self, seconds: float) -> float:
        """Wait until lookups have run, and then none for ``seconds``; return how long they ran since the last rest."""
        await self._used.wait()
        # At least one such pause has passed since the last lookup when this ends.
        while self._flows or time.monotonic() - self._ended < seconds:  # noqa: ASYNC110 - a moment without any, not an event
            await anyio.sleep(seconds)
        self._used = anyio.Event()
        used = self._used_seconds
        self._used_seconds = 0.0
        return used

    def requeue(self, task: _Task) -> None:
        """Let a lookup wait in its thread until its next turn."""
        with self._lock:
            self._charge(task)
            task.flow.waiting.append(task)
            self._run_next()  # which may be this one: then the gate is open already
        task.gate.acquire()
        if task.stopped:
            raise Abandoned

    def pause(self, task: _Task) -> None:
        """Let others run alongside a lookup until it is queued again."""
        with self._lock:
            self._charge(task)
            self._run_next()

    def _enqueue(self, key: Hashable, portable: Portable[object] | None) -> _Task:
        with self._lock:
            flow = self._flows.get(key)
            if flow is None:
                flow = self._flows[key] = _Flow(key, self._now)
            elif not flow.waiting and flow.begun == 0:
                # Idle here, if only workers have its lookups: unused time is not saved
                # up.
                flow.served = max(flow.served, self._now)
            ready = asyncio.get_running_loop().create_future()
            task = _Task(
                flow,
                self,
                ready,
                portable,
                None if portable is None else portable.place,
            )
            flow.members += 1
            if len(self._flows) > 1:
                self._met = time.monotonic()
            self._used.set()
            flow.waiting.append(task)
        # Use a free worker without queueing: if one is free, no other lookup that could
        # use it waits.
        if self._workers is not None and portable is not None:
            worker = self._workers.free(portable.place)
        else:
            worker = None
        if portable is not None and worker is not None:
            self._hand(task, portable, worker)
        else:
            with self._lock:
                if portable is not None and self._workers is not None:
                    if (
                        len(self._for_workers) > self._most_for_workers
                    ):  # perhaps none was ever given to a worker
                        self._for_workers = [
                            current_worker
                            for current_worker in self._for_workers
                            if current_worker[2] in current_worker[2].flow.waiting
                        ]
                        heapq.heapify(self._for_workers)
                        self._most_for_workers = 2 * len(self._for_workers) + SPARE
                    # The number keeps equal times in order of arrival, and prevents
                    # comparing tasks.
                    heapq.heappush(
                        self._for_workers, (flow.served, next(self._numbers), task)
                    )
                # While the watch runs, one that a worker is going to take need not look
                # for a turn here: the watch does.
                if not self._watched or not self._waits_for_worker(task):
                    self._run_next()
        return task

    def _waits_for_worker(self, task: _Task) -> bool:
        """Return whether a worker is going to run a lookup, so that it takes no turn here.

        Not for long ones of connections with more lookups than its own: a quick one waited for up to 40 ms until one of
        two workers was free.
        """
        if task.portable is None or self._workers is None:
            return False
        is_served = task.place in self._workers.serving
        now = time.monotonic()
        own = task.flow.elsewhere
        if not own:
            # In a crowd each has as few as this one: threads here would slow all down.
            fewest = task.flow.members
            near = (
                other.flow.members <= fewest or other.is_quick(now)
                for other in self._elsewhere
            )
            return is_served and (not self._elsewhere or any(near))
        if is_served or not self.is_shared:
            return is_served
        # Workers give its connection its share: threads here are for the others.
        newest = max(other.since for other in own)
        is_held = now - newest < HOLD_SECONDS
        return is_held and any(other.place == task.place for other in own)

    def _assign_to_workers(self) -> None:
        """Give free workers the next lookups they can run; on the event loop."""
        if self._workers is None:
            return
        free: dict[Hashable, Worker | None] = {}
        passed: list[tuple[float, int, _Task]] = []
        while self._workers.has_idle:
            with self._lock:
                if not self._for_workers:
                    break
                served, number, task = heapq.heappop(self._for_workers)
                if task.portable is None or task.worker is not None or task.stopped:
                    continue  # it runs, or has run
                # Its flow has been served since then: push it back in its new position,
                # instead of keeping the heap in order all the time.
                if task.flow.served > served:
                    heapq.heappush(self._for_workers, (task.flow.served, number, task))
                    continue
                portable = task.portable
            if task.place not in free:
                free[task.place] = self._workers.free(task.place)
            # One lookup a worker: the next lookup of this place asks for another.
            worker = free.pop(task.place)
            if worker is None:
                free[task.place] = None
                # Put aside, so that a place without a worker does not block others.
                passed.append((served, number, task))
            else:
                self._hand(task, portable, worker)
        with self._lock:
            for entry in passed:
                heapq.heappush(self._for_workers, entry)

    def _hand(self, task: _Task, portable: Portable[object], worker: Worker) -> None:
        """Let a free worker run a waiting lookup, or let it wait for its turn here; on the event loop."""
        request = portable.request(worker)
        with self._lock:
            if request is None or task.begun:  # begun by a thread just now
                task.portable = None
                self._run_next()
                return
            task.flow.waiting.remove(task)
            self._now = max(self._now, task.flow.served)
            self._elsewhere.append(task)
            task.flow.elsewhere.append(task)
            task.worker = worker
            task.since = time.monotonic()
        worker.ask(request, portable.limit, partial(self._take_reply, task))

    def _take_reply(self, task: _Task, reply: bytes | None) -> None:
        with self._lock:
            task.worker = None
            self._elsewhere.remove(task)
            flow = task.flow
            flow.elsewhere.remove(task)
            took = time.monotonic() - task.since
            flow.latest = took
            self._serve(task.flow, took)
            self._used_seconds += took
            if task.stopped:
                self._end(task)
            elif reply is None:
                task.portable = None
                # The worker failed or ended: the lookup has already waited and comes
                # first here.
                task.flow.waiting.appendleft(task)
                self._run_next()
            else:
                task.reply = reply
                _set_ready(task)

    def _execute(self, task: _Task, work: Callable[[], ResultT]) -> ResultT:
        with self._lock:
            if task.stopped:  # cancelled between its turn and the start of this thread
                raise Abandoned
            task.threaded = True
            task.since = time.monotonic()
        task.used = time.thread_time()
        token = CURRENT_TURN.set(task)
        try:
            return work()
        finally:
            CURRENT_TURN.reset(token)
            with self._lock:
                self._end(task)

    def _leave(self, task: _Task) -> None:
        """Stop a lookup that nobody waits for any more; does nothing if it has ended."""
        with self._lock:
            task.stopped = True
            if task.ended:
                return
            if task in task.flow.waiting:
                task.flow.waiting.remove(task)
                task.gate.release()  # its thread, if it has one, continues and finds that it is stopped
            if task.worker is not None:
                task.worker.cancel()  # it is free only after it replies
            elif not task.threaded:
                # Without a thread nothing else calls _end. One with a thread ends in
                # _execute, at its next checkpoint.
                self._end(task)

    def _end(self, task: _Task) -> None:
        task.ended = True
        self._ended = time.monotonic()
        self._charge(task)
        flow = task.flow
        flow.members -= 1
        # Drop a connection without lookups, so that the table only has current ones.
        if not flow.members:
            self._flows.pop(flow.key, None)
        if task.begun:
            flow.begun -= 1
            self._begun -= 1
            self._run_next()

    def _charge(self, task: _Task) -> None:
        """End a lookup's turn, if it has one, and charge its processor time; in its thread, if any.

        Not the duration of its turn: on a busy machine other programs run for most of that, and a lookup they delayed
        for a second would wait until all others had a second, too.
        """
        self._end_turn(task)
        if task.threaded:
            before = task.used
            task.used = time.thread_time()
            self._serve(task.flow, task.used - before)
            self._used_seconds += task.used - before

    def _end_turn(self, task: _Task) -> None:
        if task.runs:
            task.runs = False
            self._running = None

    def _serve(self, flow: _Flow, seconds: float) -> None:
        flow.served += seconds
        self._now += seconds / len(self._flows)

    def _run_next(self) -> None:
        """Let the next one run here, unless one does; with the lock held."""
        # Each connection that has one that may run here, and that one.
        firsts = {
            flow: task
            for flow in self._flows.values()
            if flow.waiting and (task := self._first(flow)) is not None
        }
        if self._running is None and firsts:
            # Linear in the waiting connections; a heap would have to follow every
            # change of ``served``.
            flow = min(firsts, key=lambda flow: flow.served)
            task = firsts[flow]
            flow.waiting.remove(task)
            self._now = max(self._now, flow.served)
            self._running = task
            task.runs = True
            task.since = time.monotonic()
            if task.threaded:
                task.gate.release()
            elif self._loop is not None:
                task.begun = True
                task.portable = None
                flow.begun += 1
                self._begun += 1
                # call_soon_threadsafe writes to the loop's self-pipe, a system call
                # that the loop's own thread does not need.
                if threading.get_ident() == self._loop_thread:
                    _set_ready(task)
                else:
                    self._loop.call_soon_threadsafe(_set_ready, task)
            # Its other lookups may not run now, so it does not compete.
            if self._first(flow) is None:
                del firsts[flow]
        self.contended = bool(firsts)
        if (
            not self._watched
            and self._loop is not None
            and any(flow.waiting for flow in self._flows.values())
        ):
            self._watched = True
            self._loop.call_soon_threadsafe(
                self._loop.call_later, PATIENCE, self._watch
            )

    def _first(self, flow: _Flow) -> _Task | None:
        """Return the first of a connection's lookups that may run here."""
        # Started lookups always continue: their thread and memory are already in use.
        may_begin = (
            flow.begun < (THREADS_PER_FLOW if self._begun < SPARE else 1)
            and self._begun < THREADS
        )
        for task in flow.waiting:
            if task.begun or (may_begin and not self._waits_for_worker(task)):
                return task
        return None

    def _watch(self) -> None:
        """Stop waiting for a lookup that reaches no checkpoint; on the event loop, while any other waits."""
        with self._lock:
            task = self._running
            # It continues alongside the others; at its next checkpoint it queues like
            # them.
            if (
                task is not None
                and task.threaded
                and time.monotonic() - task.since > PATIENCE
            ):
                self._end_turn(task)
            # Tells the workers that lookups wait, so that more may be started.
            places = Counter(
                task.place for flow in self._flows.values() for task in flow.waiting
            )
        if self._workers is not None:
            for place, waiting in places.items():
                if place is not None:
                    self._workers.want(place, waiting)
        with self._lock:
            self._watched = False
            self._run_next()


def _set_ready(task: _Task) -> None:
    if not task.ready.done():  # else it was cancelled
        task.ready.set_result(None)
