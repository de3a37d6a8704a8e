"""The daemon's side of its lookup workers: started when lookups wait, ended when idle, killed when they hang.

Processes read and match in parallel what threads of one interpreter do one after the other. Only the daemon decides: it
waits for the barrier, chooses whose turn it is, and sends with each lookup what has changed since the worker got the
table of files. The daemon runs what a worker fails to answer.
"""

import asyncio
import subprocess
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol, runtime_checkable

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from flashgrep.base.frames import LENGTH, measure
from flashgrep.base.scheduler import PATIENCE
from flashgrep.index.reader import Identity
from flashgrep.project.worker_processes import Process, can_fork, fork, spawn
from flashgrep.search.lookup_worker import (
    EMPTY,
    MOST_BYTES,
    MOST_PROJECTS,
    LoadProject,
    pack,
)

MOST_WORKERS = 8
"""The daemon hands over about 1,000 lookups a second, which four workers answer; slower lookups take more of them."""
START_SECONDS = 0.1
"""Lookups wait for this long, some or other, before another worker is started, which takes 0.2 s of processor time."""
CROWD = 16
"""While this many wait at once, workers are started without delay: these take 30 ms, and as many are to come."""
GAP_SECONDS = 0.1
"""They count as waiting without a pause as long as none is longer than this."""
RETRY_SECONDS = 5.0
"""After one has died, or could not read an index, no other is started, or told to, for this long."""
IDLE_SECONDS = 5.0
"""A worker without a lookup for this long exits: it takes 50 MB."""
LOAD_SECONDS = 30.0
END_SECONDS = 1.0
"""A worker that says nothing for this long after its lookup's end, by deadline or cancelled, hangs."""
TEND_SECONDS = 1.0
LEAST_BUFFER = 1 << 16
"""Buffer for a reply; larger ones are read by their length."""

Reply = Callable[[bytes | None], None]


class Loaded(NamedTuple):
    """What a worker has of a project: the table of files at this generation of the database with these files."""

    identity: Identity
    generation: int


@runtime_checkable
class Place(Protocol):
    """A project, as workers load it."""

    def describe(self) -> tuple[LoadProject, Loaded] | None:
        """Return the request to load the project as it is now; None: there is no index."""

    def __hash__(self) -> int:
        """Return a key of the project."""


class LookupWorker(asyncio.BufferedProtocol):
    """One worker process; its replies are read into a buffer that stays, as asyncio's own would be made for each."""

    def __init__(
        self,
        process: Process,
        freed: Callable[["LookupWorker"], None],
        ended: Callable[["LookupWorker"], None],
    ) -> None:
        self.process = process
        self.loaded: dict[Hashable, Loaded] = {}
        """Loaded projects, the longest loaded first."""
        self.since = time.monotonic()
        """When it became busy or idle."""
        self.limit = float("inf")
        """When it counts as hung if still busy."""
        self.unwanted = False
        """Whether we ended it."""
        self._freed = freed
        self._ended = ended
        self._reply: Reply | None = None
        self._held = bytearray(LEAST_BUFFER)
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._unsent = b""
        """What was asked before it was there."""

    @property
    def busy(self) -> bool:
        """Whether it is busy, or still starting."""
        return self._reply is not None or self._transport is None

    def ask(self, request: bytes, limit: float, reply: Reply) -> None:
        """Send the worker a request with ``limit`` (time.monotonic()); ``reply`` gets its answer, if any."""
        self._reply = reply
        self.limit = limit + END_SECONDS
        self.since = time.monotonic()
        if self._transport is None:
            self._unsent = request
        else:
            self._transport.write(request)

    def cancel(self) -> None:
        """Cancel the lookup: its answer is not needed any more."""
        self.limit = min(self.limit, time.monotonic() + END_SECONDS)
        if self._transport is not None:
            self._transport.write(EMPTY)

    def end(self) -> None:
        """End the process; the task that waits for its reply gets an error."""
        self.unwanted = True
        self.process.kill()  # it has no state to save
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport, and send what was queued."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream's
        self._transport = transport
        transport.write(self._unsent)
        self._unsent = b""

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Return where to read on: room for the rest of a reply."""
        if self._filled < LENGTH:
            size = LENGTH
        else:
            size = LENGTH + measure(self._held)
        if size > len(self._held):
            self._held += bytes(size - len(self._held))
        return memoryview(self._held)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        """Hand on a reply once it is whole."""
        self._filled += count
        if self._filled < LENGTH:
            return
        size = measure(self._held)
        if size > MOST_BYTES or self._reply is None:
            self.end()
        elif self._filled == LENGTH + size:
            body = bytes(memoryview(self._held)[LENGTH : self._filled])
            self._filled = 0
            if len(self._held) > LEAST_BUFFER:
                self._held = bytearray(LEAST_BUFFER)
            self._settle(body or None)

    def connection_lost(self, _error: Exception | None) -> None:
        """Mark the worker as ended."""
        self.process.kill()
        self._ended(self)
        if self._reply is not None:
            self._settle(None)

    def _settle(self, body: bytes | None) -> None:
        reply = self._reply
        self._reply = None
        self.since = time.monotonic()
        self.limit = float("inf")
        if reply is not None:
            reply(body)
            self._freed(self)


class LookupWorkers:
    """A daemon's workers: few, and none while nobody waits."""

    def __init__(self, most: int) -> None:
        self.serving: frozenset[Hashable] = frozenset()
        self.freed: Callable[[], None] = lambda: None
        if most > 1:
            self._most = min(most, MOST_WORKERS)
        else:
            self._most = 0
        self._workers: list[LookupWorker] = []
        self._tasks: TaskGroup | None = None
        self._starting = False
        self._parent: subprocess.Popen[bytes] | None = None
        """Of the workers that are forked just now."""
        self._closed = False
        self._not_before = 0.0
        self._waiting_since = 0.0
        self._wanted_at = 0.0

    def open(self, tasks: TaskGroup) -> None:
        """Start workers in these tasks, from now on."""
        self._tasks = tasks

    def close(self) -> None:
        """End all workers and start no more."""
        self._closed = True
        if self._parent is not None:
            self._parent.kill()
        for worker in list(self._workers):
            worker.end()
            worker.process.wait()

    def drop(self, place: Place) -> None:
        """End the workers that have a closed project loaded."""
        for worker in list(self._workers):
            if place in worker.loaded:
                worker.end()

    # What the scheduler asks

    @property
    def has_idle(self) -> bool:
        """Whether a worker has nothing to do."""
        return any(not worker.busy for worker in self._workers)

    def free(self, place: Hashable) -> LookupWorker | None:
        """Return the first idle worker that has a project loaded, so that others stay idle."""
        return next(
            (
                worker
                for worker in self._workers
                if not worker.busy and place in worker.loaded
            ),
            None,
        )

    def want(self, place: Hashable, waiting: int) -> None:
        """Let another worker load a project, or start one, if lookups have waited long or many wait."""
        assert isinstance(place, Place)  # noqa: S101 - as all places are
        now = time.monotonic()
        if now - self._wanted_at > GAP_SECONDS:
            self._waiting_since = now
        self._wanted_at = now
        self._find_serving()
        is_due = waiting >= CROWD or now - self._waiting_since >= START_SECONDS
        if not is_due or now < self._not_before or self._starting:
            return
        idle = next(
            (
                worker
                for worker in self._workers
                if not worker.busy and place not in worker.loaded
            ),
            None,
        )
        if idle is not None:
            self.load(idle, place)
        elif (
            len(self._workers) < self._most
            and self._tasks is not None
            and not self._closed
        ):
            self._waiting_since = now
            self._starting = True
            self._tasks.start_soon(self._start, place)

    def load(self, worker: LookupWorker, place: Place) -> None:
        """Make an idle worker load a project, again if what it has is outdated."""
        worker.loaded.pop(place, None)
        described = place.describe()
        if described is None:
            self._find_serving()
            return
        request, loaded = described
        while len(worker.loaded) >= MOST_PROJECTS:
            del worker.loaded[next(iter(worker.loaded))]
        self._find_serving()
        self._ask_to_load(worker, place, pack(request), loaded)

    def _ask_to_load(
        self, worker: LookupWorker, place: Place, request: bytes, loaded: Loaded
    ) -> None:
        def reply(body: bytes | None) -> None:
            if body is None:
                self._not_before = time.monotonic() + RETRY_SECONDS
            else:
                worker.loaded[place] = loaded

        worker.ask(request, time.monotonic() + LOAD_SECONDS, reply)

    def _find_serving(self) -> None:
        """Find the projects with a worker that is not busy with a long lookup."""
        now = time.monotonic()
        quick = (
            worker
            for worker in self._workers
            if not worker.busy or now - worker.since < PATIENCE
        )
        self.serving = frozenset(place for worker in quick for place in worker.loaded)

    # Their beginning and end

    async def _start(self, place: Place) -> None:
        """Start as many workers as there may be, or one where they cannot be forked, and have them load a project."""

        def note_parent(process: subprocess.Popen[bytes]) -> None:
            self._parent = process
            if self._closed:
                process.kill()

        try:
            described = place.describe()
            if described is None:
                return
            request, loaded = described
            forks = can_fork()
            with anyio.CancelScope(
                shield=True
            ):  # a process without a reference could not be ended
                if forks:
                    count = self._most - len(self._workers)
                    sync = await anyio.to_thread.run_sync(
                        fork, count, request, note_parent
                    )
                else:
                    sync = [await anyio.to_thread.run_sync(spawn)]
                self._parent = None
                for process, connection in sync:

                    def connect(process: Process = process) -> LookupWorker:
                        worker = LookupWorker(process, self._note_release, self._forget)
                        # The parent of forked ones was asked in their place.
                        self._ask_to_load(
                            worker, place, b"" if forks else pack(request), loaded
                        )
                        return worker

                    _, worker = await asyncio.get_running_loop().create_connection(
                        connect, sock=connection
                    )
                    self._workers.append(worker)
                    if self._closed:
                        worker.end()
                    elif len(self._workers) == 1 and self._tasks is not None:
                        self._tasks.start_soon(self._tend)
        except OSError:  # out of processes or descriptors
            self._not_before = time.monotonic() + RETRY_SECONDS
        finally:
            self._parent = None
            self._starting = False

    def _note_release(self, worker: LookupWorker) -> None:
        if not self.serving.issuperset(worker.loaded):
            self._find_serving()
        self.freed()

    def _forget(self, worker: LookupWorker) -> None:
        self._workers.remove(worker)
        self._find_serving()
        if not self._closed and self._tasks is not None:
            if not worker.unwanted:
                self._not_before = time.monotonic() + RETRY_SECONDS

            async def reap() -> None:
                await anyio.to_thread.run_sync(worker.process.wait)

            self._tasks.start_soon(reap)

    async def _tend(self) -> None:
        """End hung workers, and those unused for long, until there are none."""
        while self._workers:
            await anyio.sleep(TEND_SECONDS)
            now = time.monotonic()
            for worker in list(self._workers):
                if now > worker.limit or (
                    not worker.busy and now - worker.since > IDLE_SECONDS
                ):
                    worker.end()
