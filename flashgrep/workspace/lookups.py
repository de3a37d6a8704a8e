"""The look-ups of one project: each in its turn, in a thread or in a worker process, despite a damaged index."""

import errno
import pickle
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from flashgrep.damage import Damaged
from flashgrep.errors import Busy
from flashgrep.index.reader import Reader
from flashgrep.indexer.index_scheduler import Progress
from flashgrep.scheduler import Scheduler
from flashgrep.search.lookup_worker import Ask, Load, packed
from flashgrep.search.snapshot import Snapshot
from flashgrep.workspace.lookup_workers import LookupWorker, LookupWorkers
from flashgrep.workspace.tree import Tree

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MOST_MARKS = 500
"""With more paths pending a look-up stays here: telling a worker takes 2 µs a path, and reading them is most of it."""
LOOK_UP_SECONDS = 60.0
"""What a look-up without a deadline may take in a worker before it is taken to hang."""

ResultT = TypeVar("ResultT")


class Host(Protocol):
    """The project."""

    tree: Tree
    progress: Progress

    def snapshot(self) -> Snapshot:
        """Return the project as it is known now."""

    async def start_anew(self, why: str, damaged: Reader | None = None) -> None:
        """Throw a damaged index away."""


class Lookups:
    """Runs look-ups of a project."""

    def __init__(self, host: Host, place: Load, scheduler: Scheduler, workers: LookupWorkers | None) -> None:
        self.host = host
        self.place = place
        self.workers = workers
        self._scheduler = scheduler

    def close(self) -> None:
        """Have workers let go of the project."""
        if self.workers is not None:
            self.workers.drop(self.place)

    async def run(
        self, ask: Callable[[Snapshot], ResultT], *, portable: bool = False, deadline: float | None = None
    ) -> ResultT:
        """Run a look-up; an index found damaged is set aside, and the look-up done without it.

        ``portable``: ``ask`` can be pickled, and a worker may do it, too. ``deadline``: until then it will have ended.
        """
        snapshot: Snapshot | None = None

        def begin() -> Callable[[], ResultT]:
            nonlocal snapshot
            snapshot = self.host.snapshot()  # as known now that its turn has come
            return partial(ask, snapshot)

        elsewhere = None
        if portable and self.workers is not None:
            elsewhere = _Portable(self.place, self, ask, deadline)
        try:
            return await self._scheduler.run(begin, elsewhere)
        except Damaged as damage:
            await self.host.start_anew(str(damage), None if snapshot is None else snapshot.reader)
        except sqlite3.OperationalError as error:  # somebody has it locked, or it cannot be opened just now
            self.host.progress.detail = f"the index cannot be read: {error}"
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise Busy(f"out of resources: {error.strerror}") from error
            raise
        return await self._scheduler.run(lambda: partial(ask, replace(self.host.snapshot(), reader=None)))


@dataclass(slots=True)
class _Portable(Generic[ResultT]):
    """A look-up as a worker takes it."""

    place: Load
    lookups: Lookups
    ask: Callable[[Snapshot], ResultT]
    deadline: float | None

    @property
    def limit(self) -> float:
        """When a worker that has it is taken to hang."""
        return time.monotonic() + LOOK_UP_SECONDS if self.deadline is None else self.deadline

    def request(self, worker: LookupWorker) -> bytes | None:
        """Return what to ask a worker, as things are now; None: to be answered here.

        A worker that read the index too long ago, or another one, is told to read it again.
        """
        host, loaded, workers = self.lookups.host, worker.loaded[self.place], self.lookups.workers
        snapshot = host.snapshot()
        if snapshot.reader is None or len(snapshot.pending) > MOST_MARKS:
            return None
        marks = host.tree.changed_since(loaded.generation)
        if marks is None or loaded.identity != snapshot.reader.identity:
            if workers is not None:
                workers.load(worker, self.place)
            return None
        facts = (snapshot.max_size, snapshot.ripgrep, snapshot.parsed, snapshot.parsed_to)
        try:
            return packed(Ask(self.place.number, self.ask, marks, *facts))
        except (pickle.PicklingError, AttributeError, TypeError):  # it holds what only this process has
            return None

    def result(self, reply: bytes) -> ResultT:
        """Return what a worker has answered."""
        found: ResultT = pickle.loads(reply)  # noqa: S301 - from our own child
        return found
