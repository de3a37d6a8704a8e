"""The lookups of one project, each in its turn, in a thread or a worker process, even with a damaged index.

An exact search is more than one lookup where ripgrep walks the tree: here is what makes its counts ours, and what is
answered before the files have been listed.
"""

import itertools
import pickle
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

import anyio

from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Busy
from flashgrep.base.scheduler import Scheduler
from flashgrep.files.openat import EXHAUSTED, RootFolder
from flashgrep.files.walk import Walker
from flashgrep.index.reader import Reader
from flashgrep.index.schema import MOST_UNREADABLE, Unreadable
from flashgrep.indexer.progress import Progress
from flashgrep.project.file_tree import Tree
from flashgrep.project.freshness import Freshness
from flashgrep.project.lookup_workers import Loaded, LookupWorker, LookupWorkers
from flashgrep.search.exact import Answer, Question, search
from flashgrep.search.lookup_worker import LoadProject, RunLookup, pack
from flashgrep.search.ripgrep import Ripgrep
from flashgrep.search.ripgrep_walks import search_before_listing, search_or_count
from flashgrep.search.snapshot import Snapshot, ask_and_close

MOST_MARKS = 500
"""With more pending paths a lookup runs here: sending them to a worker takes 2 µs each, and reading them dominates."""
LOOK_UP_SECONDS = 60.0
"""Seconds after which a lookup without a deadline counts as hung in a worker."""
HEAD_START = 1.0
"""Seconds that a question may scan before the files are listed, and again once they are."""

_NUMBERS = itertools.count(1)
"""Of projects, for one daemon."""

ResultT = TypeVar("ResultT")


class Project(Protocol):
    """What lookups ask of their project."""

    tree: Tree
    walker: Walker
    progress: Progress
    freshness: Freshness

    async def refresh(self) -> bool:
        """Read all events of what was saved before this call."""

    def snapshot(self) -> Snapshot:
        """Return the project as it is known now."""

    async def start_anew(self, why: str, damaged: Reader | None = None) -> None:
        """Discard a damaged index."""


class Lookups:
    """Runs lookups of a project; for workers it is the place that these are about."""

    def __init__(
        self,
        project: Project,
        root: RootFolder,
        database: str,
        scheduler: Scheduler,
        workers: LookupWorkers | None,
    ) -> None:
        self.project = project
        self.number = next(_NUMBERS)
        self.workers = workers
        self._root = root
        self._database = database
        self._scheduler = scheduler
        self._unlisted: dict[anyio.CancelScope, anyio.Event] = {}
        """Questions being answered before the files are listed, each with an event for its end."""
        self._unreadable = 0

    def close(self) -> None:
        """Make workers unload the project."""
        if self.workers is not None:
            self.workers.drop(self)

    def share(self, ripgrep: Ripgrep | None) -> Ripgrep | None:
        """Return the ripgrep for a lookup that begins now."""
        if ripgrep is None or not self._scheduler.is_shared:
            return ripgrep
        return ripgrep._replace(is_shared=True)

    def describe(self) -> tuple[LoadProject, Loaded] | None:
        """Return the request to load the project as it is now; None: there is no index."""
        snapshot = self.project.snapshot()
        index = snapshot.own_index
        table = snapshot.table
        if index is None:
            return None
        paths = b"\0".join(table.paths)
        load = LoadProject(
            self.number,
            self._root,
            self._database,
            index.identity,
            index.stages,
            paths,
            table.columns,
            table.skipped,
        )
        return load, Loaded(index.identity, self.project.tree.generation)

    async def run(
        self,
        ask: Callable[[Snapshot], ResultT],
        *,
        portable: bool = False,
        deadline: float | None = None,
    ) -> ResultT:
        """Run a lookup; a damaged index is set aside, and the lookup repeated without it.

        ``portable``: ``ask`` can be pickled, and a worker may do it, too. ``deadline``: until then it will have ended.
        """
        snapshot: Snapshot | None = None

        def begin() -> Callable[[], ResultT]:
            nonlocal snapshot
            snapshot = self.project.snapshot()  # as known when its turn has come
            ripgrep = self.share(snapshot.ripgrep)
            if ripgrep is not snapshot.ripgrep:
                snapshot = replace(snapshot, ripgrep=ripgrep)
            return partial(ask_and_close, ask, snapshot)

        elsewhere = None
        if portable and self.workers is not None:
            elsewhere = PortableLookup(self, ask, deadline)
        try:
            return await self._scheduler.run(begin, elsewhere)
        except Damaged as damage:
            await self.project.start_anew(
                str(damage), None if snapshot is None else snapshot.own_index
            )
        except (
            sqlite3.OperationalError
        ) as error:  # it is locked, or cannot be opened just now
            self.project.progress.detail = f"the index cannot be read: {error}"
            # An interrupt means a long lookup, and nothing about the index.
            if isinstance(error, Unreadable) and "interrupted" not in str(error):
                self._unreadable += 1
                if self._unreadable == MOST_UNREADABLE:
                    await self.project.start_anew(
                        str(error), None if snapshot is None else snapshot.own_index
                    )
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise Busy(f"out of resources: {error.strerror}") from error
            raise
        return await self._scheduler.run(partial(self._begin_without_index, ask))

    def _begin_without_index(
        self, ask: Callable[[Snapshot], ResultT]
    ) -> Callable[[], ResultT]:
        return partial(
            ask_and_close, ask, replace(self.project.snapshot(), reader=None)
        )

    async def search(
        self,
        question: Question,
        max_size: int | None,
        prepare: Callable[[Snapshot], Snapshot] | None = None,
    ) -> Answer:
        """Answer an exact question about the files as known now; ``max_size``: other than the project's.

        ``prepare``: returns the snapshot that is asked; it needs what only this process has.
        """
        project = self.project
        tree = self.project.tree
        listed = tree.listed_since
        with tree.marks() as marked:
            walks = project.freshness.sees_events
            meets_all = project.walker.lies_within_ripgreps
            ask = partial(
                search_or_count,
                question=question,
                max_size=max_size,
                walks=walks,
                meets_all=meets_all,
            )
            if prepare is None:
                outcome = await self.run(
                    ask,
                    portable=question.engine == "linear",
                    deadline=question.deadline,
                )
            else:
                outcome = await self.run(lambda snapshot: ask(prepare(snapshot)))
            if isinstance(outcome, Answer):
                return outcome
            # ripgrep opens files by path: a folder may have been a link to elsewhere
            # for a moment. Its count is a file's own unless an event tells of the file
            # or of a folder above it, or events were lost.
            are_ours = await project.refresh() and tree.listed_since == listed
        outcome.forget(marked)

        def ask_again(snapshot: Snapshot) -> Answer:
            if prepare is not None:
                snapshot = prepare(snapshot)
            if max_size is not None:
                snapshot = snapshot.with_max_size(max_size)
            # For these ripgrep has counted what is on disk.
            outcome.forget(snapshot.unsaved)
            return search(
                replace(snapshot, counts=outcome if are_ours else None), question
            )

        return await self.run(ask_again)

    async def search_before_listing(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer | None:
        """Answer a project's first exact question about the disk as it is: ripgrep walks and searches at once.

        None: listed already, or a listing is required; call ``refresh`` and ``search`` instead.
        """
        project = self.project
        tree = self.project.tree
        if (
            tree.listed_since is not None
            or len(tree.table)
            or question.position is not None
            or project.walker.is_of_libraries
        ):
            return None
        walker = (
            project.walker.anew()
        )  # the project's own may have read rules that changed since
        ask = partial(
            search_before_listing,
            question=question,
            max_size=max_file_size,
            walker=walker,
        )
        with anyio.CancelScope() as scope:
            self._unlisted[scope] = anyio.Event()
            try:
                return await self.run(ask)
            finally:
                self._unlisted.pop(scope).set()
        return None

    def give_up_walks(self) -> None:
        """End such questions without an answer: the files are listed, and ripgrep may hang at a pipe."""
        for scope in self._unlisted:
            scope.deadline = anyio.current_time() + HEAD_START

    async def wait_for_early_search(self) -> None:
        """Wait while such a question is answered, at most a second: listing would compete for its processor."""
        with anyio.move_on_after(HEAD_START):
            for event in list(self._unlisted.values()):
                await event.wait()


@dataclass(slots=True)
class PortableLookup(Generic[ResultT]):
    """A lookup as a worker takes it."""

    place: Lookups
    ask: Callable[[Snapshot], ResultT]
    deadline: float | None

    @property
    def limit(self) -> float:
        """When a worker that has it is taken to hang."""
        if self.deadline is None:
            return time.monotonic() + LOOK_UP_SECONDS
        return self.deadline

    def request(self, worker: LookupWorker) -> bytes | None:
        """Return what to ask a worker, as things are now; None: to be answered here.

        A worker that was given the table too long ago, or that of another index, is given it again.
        """
        project = self.place.project
        loaded = worker.loaded[self.place]
        workers = self.place.workers
        snapshot = project.snapshot()
        if snapshot.reader is None or len(snapshot.pending) > MOST_MARKS:
            return None
        marks = project.tree.changed_since(loaded.generation)
        if marks is None or loaded.identity != snapshot.reader.identity:
            if workers is not None:
                workers.load(worker, self.place)
            return None
        facts = (
            snapshot.max_size,
            self.place.share(snapshot.ripgrep),
            snapshot.parsed,
            snapshot.parsed_to,
        )
        try:
            return pack(RunLookup(self.place.number, self.ask, marks, *facts))
        except (
            pickle.PicklingError,
            AttributeError,
            TypeError,
        ):  # it holds what only this process has
            return None

    def result(self, reply: bytes) -> ResultT:
        """Return what a worker has answered."""
        found_result: ResultT = pickle.loads(reply)  # noqa: S301 - from our own child
        return found_result
