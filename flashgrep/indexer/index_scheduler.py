"""Keeps a store up to date in the background for its open projects: grams, symbols, chunks, vectors, in this order.

One indexer writes a store, one command after the other. Changed files go first, starting with the project with the
fewest; then one stage after the other, each project by project.
"""

import sqlite3
import time
from collections.abc import (
    AsyncIterator,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import anyio
import anyio.to_thread
import numpy as np
from anyio.abc import TaskGroup

from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Busy
from flashgrep.base.failures import FailureLog
from flashgrep.base.machine import release_memory
from flashgrep.index import schema
from flashgrep.index.project_index import ProjectIndex
from flashgrep.index.schema import LateStage
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.indexer.child import (
    Content,
    IndexerChild,
    IndexerFailed,
    RootLost,
    StoredPart,
)
from flashgrep.indexer.job import IndexJob, ProjectJob
from flashgrep.indexer.progress import Progress
from flashgrep.indexer.turns import IndexerTurns

log = FailureLog()

QUIET_SECONDS = 0.1
"""Changes are handed to the indexer once none has come for this long: an editor's save is several events."""

BURST_SECONDS = 2.0
"""Maximum delay: an endless build is indexed as it goes."""

INDEXER_IDLE_SECONDS = 20.0
END_SECONDS = 5.0
"""Background work ends at its next wait, well within this."""

FIRST_RETRY_SECONDS = 0.5
RETRY_SECONDS = 30.0
"""After a failure the indexer is started again: soon at first (it may have been killed), then after delays that double,
up to this one (the disk may be full). Meanwhile answers come from scans."""

QUEUED = "waits until other projects are indexed; files are read from disk until then"

MOST_REQUESTED = 200_000
"""Most contents of revisions waiting to be stored for a project; the oldest requests are dropped."""

EMBEDDER_RETRY_SECONDS = 60.0
"""Delay before an embedder that did not answer is tried again; it doubles each time, up to an hour."""
_HOUR = 3600.0


def wait_before_retry(first: float, most: float, failures: int) -> float:
    """Return the seconds until the next attempt: ``first``, then doubled each time, up to ``most``."""
    return min(
        most, first * 2.0 ** min(failures, 100)
    )  # a float overflows after 1,023 doublings


class PendingFiles(Protocol):
    """A project's table of files, and the pending files that override it."""

    @property
    def pending(self) -> Mapping[bytes, Mark]:
        """The paths that differ from the table."""

    @property
    def table(self) -> FileTable:
        """The files as indexed."""

    def take_update(
        self,
        sent: Mapping[bytes, Mark],
        rows: Sequence[FileRow],
        gone: Sequence[bytes],
        generation: int,
    ) -> None:
        """Apply what the indexer stored; paths marked again since they were sent stay pending."""


class Host(Protocol):
    """The store whose index is kept up to date."""

    async def start_anew(self, why: str) -> None:
        """Close the index and set it aside; every file of every open project becomes pending."""

    def set_aside(self, why: str) -> None:
        """Move the index away."""


class ProjectIndexing:
    """A scheduler's state of one project: what is pending, and the progress of its stages."""

    def __init__(
        self,
        job: ProjectJob,
        index: ProjectIndex,
        files: PendingFiles,
        progress: Progress,
        embedding: str,
        scheduler: "IndexScheduler",
    ) -> None:
        """``embedding``: the settings of the embedder, as JSON."""
        self.job = job
        self.index = index
        self.files = files
        self.progress = progress
        self.embedding = embedding
        self.scheduler = scheduler
        self.settled = False
        """Whether the project's files have been listed; before that, changes cannot be told from the first listing."""
        self.done: set[LateStage] = set()
        """Late stages that have reached every text."""
        self.parsed_to = 0
        """Texts of the table with numbers up to this one have their symbols."""
        self.wanted = False
        """Whether there may be something to do."""
        self.refusals = 0
        """How many times in a row the embedder did not answer."""
        self.requested: dict[Content, bool] = {}
        """Contents of revisions that were asked about and are to be stored, with whether to parse them."""
        self._lost = False

    def poke(self) -> None:
        """Signal that there may be something to do."""
        self.wanted, self._lost = True, False
        self.scheduler.wake()

    @property
    def has_files_to_store(self) -> bool:
        """Whether files are to be stored."""
        return bool(self.files.pending) and not self._lost

    def keep(self, contents: Iterable[Content], *, parse: bool) -> None:
        """Store texts of a revision that was asked about; ``parse``: with their symbols."""
        for content in contents:
            self.requested[content] = parse or self.requested.get(content, False)
        for content in list(self.requested)[:-MOST_REQUESTED]:
            del self.requested[content]
        self.scheduler.wake()

    def lose(self, why: str) -> None:
        """Pause a project whose root is missing, until the next question about it."""
        self._lost, self.wanted = True, False
        self.requested.clear()
        self.progress.enter("failed", why)

    def embed_by(self, embedding: str) -> None:
        """Create vectors with another embedder."""
        self.embedding = embedding
        self.done.discard("vectors")
        self.progress.problem = ""
        self.poke()

    def make_vectors_anew(self) -> None:
        """Create the vectors again: the file was damaged, or the model has changed."""
        if "vectors" in self.done:
            self.done.discard("vectors")
            self.poke()

    def note_symbols(self) -> None:
        """Record up to where symbols are stored."""
        if "symbols" in self.done:
            self.parsed_to = int(self.files.table.columns[:, 0].max(initial=0))

    def take(self, sent: Mapping[bytes, Mark], part: StoredPart) -> None:
        """Apply what was stored."""
        # A text that was stored for another project has a low number, and perhaps no
        # symbols yet.
        text_ids = [
            row.text_id for row in part.rows if 0 < row.text_id <= self.parsed_to
        ]
        if text_ids:
            fresh = np.setdiff1d(
                np.array(text_ids, np.int64), self.files.table.columns[:, 0]
            )
            if len(fresh):
                self.parsed_to = int(fresh[0]) - 1
        self.files.take_update(sent, part.rows, part.gone, part.generation)
        self.progress.advance(len(part.rows) + len(part.gone), part.bytes_read)

    async def pause(self) -> None:
        """Wait until a stage is finished or has failed."""
        self.poke()
        await self.scheduler.wait_idle()


class IndexScheduler:
    """Makes an indexer store what is pending, and drives the late stages."""

    def __init__(
        self, job: IndexJob, host: Host, changing: anyio.Lock, turns: IndexerTurns
    ) -> None:
        """Make one; ``turns``: those of all stores."""
        self.changing = changing
        """Held while a project reads its part of the index, and while projects are dropped."""
        self._job = job
        self._host = host
        self._projects: list[ProjectIndexing] = []
        self._work = anyio.Event()
        self._idle = anyio.Event()
        self._child: IndexerChild | None = None
        self._served: ProjectIndexing | None = None
        # Two tasks may need an indexer at once; a second one would be a second writer.
        self._starting = anyio.Lock()
        self._ended_by_us = False
        self._turns = turns
        self._is_working = False
        self._forgotten: set[bytes] = set()
        self._tidy = False
        self._batch = 0
        self._failures = 0
        self._running: tuple[anyio.CancelScope, anyio.Event] | None = None
        """While it runs: its scope, and an event set when it has ended."""

    @property
    def stages(self) -> Sequence[LateStage]:
        """The late stages, in order."""
        return self._job.stages

    @property
    def pid(self) -> int | None:
        """The indexer's process number, while there is one."""
        return self._child.pid if self._child else None

    @property
    def is_busy(self) -> bool:
        """Whether it keeps any project up to date: then nothing else may write to the store."""
        return bool(self._projects)

    def wake(self) -> None:
        """Signal that there may be something to do."""
        self._work.set()

    async def wait_idle(self) -> None:
        """Wait until a stage is finished or has failed."""
        await self._idle.wait()

    def add(self, project: ProjectIndexing, tasks: TaskGroup) -> None:
        """Keep a project up to date, in these tasks if it is the first."""
        # One task serves all projects of a store. It belongs to the task group of
        # whichever came first, and ends with the last.
        self._projects.append(project)
        if self._running is None:
            self._running = anyio.CancelScope(), anyio.Event()
            tasks.start_soon(self.run, *self._running)

    async def remove(self, project: ProjectIndexing) -> None:
        """Remove a project; the indexer is ended if it is working for it, or has no other."""
        if project in self._projects:
            self._projects.remove(project)
        if not self._projects:
            running, self._running = self._running, None
            if running is not None:
                running[0].cancel()
                with anyio.move_on_after(END_SECONDS, shield=True):
                    await running[1].wait()
            await self.close()
            self._forgotten.clear()
            self._tell_idle()
        elif self._served is project:
            self._ended_by_us = True
            await self.close()

    async def forget(self, roots: Collection[bytes]) -> bool:
        """Drop projects that are not open from the store, unless the indexer fails; return whether others are open."""
        self._forgotten.update(roots)
        # The flag is cleared by success and by failure alike, so this ends either way.
        while not self._forgotten.isdisjoint(roots) and self._projects:
            self._work.set()
            await self._idle.wait()
        return self.is_busy

    async def end_idle(self) -> None:
        """End the indexer, unless there is work for it again."""
        async with self._starting:
            if not self._is_working:
                await self.close()

    async def close(self) -> None:
        """End the indexer."""
        self._turns.leave(self)
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    @asynccontextmanager
    async def without_indexer(self) -> AsyncIterator[None]:
        """End the indexer and prevent another one inside the block: the index is being replaced."""
        async with self._starting:
            self._ended_by_us = True
            await self.close()
            yield

    async def run(self, scope: anyio.CancelScope, ended: anyio.Event) -> None:
        """Index whatever comes, until cancelled."""
        try:
            with scope:
                while True:
                    await self._wait_for_work()
                    working: dict[ProjectIndexing, None] = {}
                    failure = await self._work_in_turn(working)
                    if failure is not None:
                        await self._recover(failure, working)
        finally:
            ended.set()

    async def _work_in_turn(
        self, working: dict[ProjectIndexing, None]
    ) -> IndexerFailed | None:
        """Do all pending work once it is our turn, and return why it failed, if it did."""
        if self._turns.are_taken:
            for project in self._projects:
                if project.wanted or project.has_files_to_store:
                    project.progress.enter(project.progress.stage, QUEUED)
        self._is_working = True
        try:
            async with self._turns.take(self):
                self._ended_by_us = False
                try:
                    await self._work_off(working)
                except IndexerFailed as failure:
                    if not self._ended_by_us:
                        log.exception("indexing")
                    return failure
                except Damaged as damage:
                    log.exception("reading an index")
                    return IndexerFailed("damaged", str(damage))
                except (OSError, sqlite3.Error, Busy) as error:
                    # Out of resources, or a locked database.
                    log.exception("indexing")
                    return IndexerFailed("error", str(error))
                # After an upgrade the indexer may be newer than we are. Raised, this
                # would end the daemon.
                except (
                    ArithmeticError,
                    LookupError,
                    TypeError,
                    ValueError,
                    anyio.DelimiterNotFound,
                ) as error:
                    log.exception("indexing")
                    why = f"the indexer is not understood: {error!r}"
                    return IndexerFailed("error", why)
        finally:
            self._is_working = False
        return None

    async def _work_off(self, working: dict[ProjectIndexing, None]) -> None:
        """Do all pending work; ``working`` receives the projects that are worked on."""
        # Changed files first, including those that change meanwhile; then what improves
        # answers.
        finished = False
        while not finished:
            # Before anything is stored: rows sent to a deleted file would be lost
            # without an error.
            if any(project.index.is_replaced() for project in self._projects):
                await self._host.start_anew("the database was deleted or replaced")
            for project in self._projects:
                if (
                    project.wanted or project.has_files_to_store
                ) and project not in working:
                    project.progress.start()
                    working[project] = None
                project.wanted = False
            # A save in a small project must not wait for the initial indexing of a
            # large one.
            turn = sorted(working, key=lambda project: len(project.files.pending))
            await self._forget()
            await self._store_changes(turn)
            for stage in self.stages:
                for project in turn:
                    if not self._is_urgent():
                        await self._serve(project, self._finish(project, stage))
            finished = not self._is_urgent()
        for project in working:
            if project.progress.stage != "failed":
                project.progress.enter(
                    "ready", "" if project.index.is_open else project.progress.detail
                )
        schema.drop_aside(self._job.index)
        release_memory()
        self._failures = 0
        self._tell_idle()

    async def _store_changes(self, projects: Sequence[ProjectIndexing]) -> None:
        """Store grams until nothing is pending in these projects, then those of revisions asked about."""
        for project in projects:
            await self._serve(project, self._store_pending(project))
        requesting = [project for project in self._projects if project.requested]
        for project in requesting:
            await self._serve(project, self._keep(project))
        if projects or requesting:
            # Exact search has all it needs: merging only speeds up its lookups, as do
            # the later stages.
            for project in projects:
                if (
                    not project.has_files_to_store
                    and project.progress.stage != "failed"
                ):
                    project.progress.begin_merging()
            self._tell_idle()
            async for merging in (await self._open_child()).merge():
                self._take_remade(remade=merging.remade)
                for project in projects:
                    project.progress.merge(merging.share)
        for project in projects:
            await self._open_index(project)

    def _is_urgent(self) -> bool:
        """Return whether something more urgent than late stages is waiting."""
        return bool(self._forgotten) or any(
            project.has_files_to_store or project.requested
            for project in self._projects
        )

    async def _serve(
        self, project: ProjectIndexing, work: Coroutine[None, None, None]
    ) -> None:
        """Work for a project, unless it is closed; one whose root is gone fails alone."""
        if project not in self._projects:
            work.close()
            return
        self._served = project
        try:
            await work
        except RootLost as lost:
            project.lose(str(lost))
            self._tell_idle()
        finally:
            self._served = None

    async def _wait_for_work(self) -> None:
        """Wait until there is something to do and changes pause; an indexer idle for long is ended."""
        # It is kept for a while for the next save; after that its memory is worth more.
        with anyio.move_on_after(INDEXER_IDLE_SECONDS) as patience:
            await self._work.wait()
        if patience.cancelled_caught:
            await self.close()
            refused = [project for project in self._projects if project.refusals]
            again = [
                wait_before_retry(
                    EMBEDDER_RETRY_SECONDS, _HOUR, project_indexing.refusals - 1
                )
                for project_indexing in refused
            ]
            with anyio.move_on_after(min(again, default=float("inf"))) as waiting:
                await self._work.wait()
            for project in refused if waiting.cancelled_caught else ():
                project.wanted = True
        # A new event before checking: whatever comes from now on sets it and is not
        # missed.
        self._work = anyio.Event()
        until = time.monotonic() + BURST_SECONDS
        seen = -1
        while time.monotonic() < until:
            projects = [
                project
                for project in self._projects
                if project.wanted or project.has_files_to_store
            ]
            pending = sum(len(project.files.pending) for project in projects)
            if pending == seen or not all(project.settled for project in projects):
                break
            seen = pending
            await anyio.sleep(QUIET_SECONDS)

    def _tell_idle(self) -> None:
        self._idle.set()
        self._idle = anyio.Event()

    async def _recover(
        self, failure: IndexerFailed, working: Iterable[ProjectIndexing]
    ) -> None:
        """Restart the work: at once if we ended the indexer, else after a while."""
        await self.close()
        for project in working:
            project.wanted = True
        if self._ended_by_us:
            self._work.set()
            return
        is_unreadable = (
            failure.reason == "unreadable"
            and self._failures == schema.MOST_UNREADABLE - 1
        )
        if failure.reason == "damaged" or is_unreadable:
            with suppress(Busy):  # out of descriptors: the damage will be met again
                await self._host.start_anew(failure.detail)
                self._host.set_aside(failure.detail)
        elif (
            self._failures
        ):  # a first failure is not reported: the next attempt may succeed
            self._forgotten.clear()
            for project in self._projects:
                project.requested.clear()  # answers come from git; the next question after a while asks again
            for project in working:
                project.progress.enter("failed", f"{failure.reason}: {failure.detail}")
            self._tell_idle()
        await anyio.sleep(
            wait_before_retry(FIRST_RETRY_SECONDS, RETRY_SECONDS, self._failures)
        )
        self._failures += 1
        self._work.set()

    async def _open_child(self) -> IndexerChild:
        async with self._starting:
            if self._child is not None:
                return self._child
            with anyio.CancelScope(
                shield=True
            ):  # if this were cancelled, nothing could end the process
                self._child = child = await IndexerChild.start(self._job)
            self._tidy = True
            return child

    async def _forget(self) -> None:
        """Drop projects from the store: removed ones, and after a start those whose root is gone."""
        if not self._projects:
            return
        child = await self._open_child()
        if self._tidy or self._forgotten:
            async with self.changing:
                paths = {project.job.root.path for project in self._projects}
                remade = await child.forget(self._forgotten - paths, paths)
                self._tidy = False
                self._forgotten.clear()
            self._take_remade(remade=remade)
            self._tell_idle()

    def _take_remade(self, *, remade: bool) -> None:
        """Make all projects rebuild their chunks and vectors: shared data was dropped."""
        if remade:
            for project in self._projects:
                project.done -= {"chunks", "vectors"}
                project.wanted = True
            self._work.set()

    async def _store_pending(self, project: ProjectIndexing) -> None:
        """Store grams until nothing is pending."""
        while project.has_files_to_store:
            project.done.clear()
            if not project.index.is_open:
                project.parsed_to = 0
            child = await self._open_child()
            sent = dict(project.files.pending)
            self._batch += 1
            size = sum(mark.size for mark in sent.values())
            project.progress.begin(len(sent), size)
            async for part in child.update(project.job, self._batch, sent):
                await self._open_index(project)
                if (
                    self._child is not child
                ):  # its numbers belong to an index discarded meanwhile
                    raise IndexerFailed("died", "the index was replaced")
                project.take(sent, part)

    async def _keep(self, project: ProjectIndexing) -> None:
        """Store texts of revisions until none is requested, or something more urgent waits."""
        while project.requested and not any(
            current_project.has_files_to_store for current_project in self._projects
        ):
            child, wanted, stopped, left = (
                await self._open_child(),
                dict(project.requested),
                False,
                0,
            )
            async for report in child.keep(project.job, wanted):
                left = report
                if not stopped and any(
                    current_project.has_files_to_store
                    for current_project in self._projects
                ):
                    stopped = True
                    # Batches in progress are finished and stored; a second "stop" could
                    # end the next command.
                    await child.stop()
            if not left:
                project.requested = {
                    one: parse
                    for one, parse in project.requested.items()
                    if wanted.get(one) != parse
                }
            project.progress.advance(0, 0)
            await self._open_index(project)

    async def _open_index(self, project: ProjectIndexing) -> None:
        if not project.index.is_open and project in self._projects:
            await anyio.to_thread.run_sync(project.index.open)

    async def _finish(self, project: ProjectIndexing, stage: LateStage) -> None:
        """Run one late stage over every text of a project, or until something urgent waits."""
        progress = project.progress
        progress.enter(stage)
        self._tell_idle()
        child, embedding, stopped, texts, problem = (
            await self._open_child(),
            project.embedding,
            False,
            -1,
            "",
        )
        async for report in child.finish(project.job, stage, embedding):
            texts, problem = report.left.texts, report.problem
            progress.reach(stage, report.left)
            self._take_remade(remade=report.remade)
            if not stopped and (self._is_urgent() or embedding != project.embedding):
                stopped = True
                await child.stop()
        if (
            embedding != project.embedding
        ):  # these vectors are of an embedder no longer wanted
            return
        if stage == "vectors":
            progress.problem = problem
            if problem:
                project.refusals = project.refusals + 1
            else:
                project.refusals = 0
        if not texts:
            project.done.add(stage)
            project.note_symbols()
