"""Keeping one project's index up to date in the background: grams, symbols, chunks, vectors, in this order."""

import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import anyio
import anyio.to_thread

from flashgrep.damage import Damaged
from flashgrep.errors import Busy
from flashgrep.index import schema
from flashgrep.index.project_index import ProjectIndex
from flashgrep.index.schema import LATE_STAGES, LateStage, Left
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.indexer.child import IndexerChild, IndexerFailed
from flashgrep.indexer.job import IndexJob
from flashgrep.machine import release_memory

QUIET_SECONDS = 0.1
"""Changes are handed to the indexer once none has come for so long: an editor's save is several events."""

BURST_SECONDS = 2.0
"""But at the latest after so long: a build that writes without end is indexed as it goes."""

INDEXER_IDLE_SECONDS = 20.0

FIRST_RETRY_SECONDS = 0.5
RETRY_SECONDS = 30.0
"""After a failure the indexer is tried again: soon first (it was killed, say), then twice as late each time up to this
(a full disk, say); answers come from scans meanwhile."""

EMBEDDER_RETRY_SECONDS = 60.0
"""An embedder that does not answer is asked again after so long, then after twice as long each time, up to an hour."""
_HOUR = 3600.0

Stage = Literal["listing", "indexing", "symbols", "chunks", "vectors", "ready", "failed"]
WITH_ALL_GRAMS: frozenset[Stage] = frozenset({*LATE_STAGES, "ready"})
"""Stages in which every text has its grams."""

GRAM_COST: Final = 0.15
COSTS: Final[Mapping[LateStage, float]] = {"symbols": 0.45, "chunks": 0.22, "vectors": 0.18}
"""Shares of the processor time that everything takes (measured on Linux)."""


@dataclass(slots=True)
class Progress:
    """How far indexing is, as live figures; a run begins when there is something to do, and ends with ``ready``."""

    stage: Stage = "listing"
    detail: str = ""
    since: float = field(default_factory=time.time)
    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    started: float = field(default_factory=time.monotonic)
    left: dict[str, int] = field(default_factory=dict)
    """Texts that a stage has not reached yet, by stage; -1: not known."""
    problem: str = ""
    """Why there are no vectors, while their provider does not answer."""
    updated: float = 0.0
    """When the index last changed, in seconds since 1970."""
    _shares: dict[LateStage, float] = field(default_factory=dict)
    _totals: dict[LateStage, int] = field(default_factory=dict)

    def enter(self, stage: Stage, detail: str = "") -> None:
        """Note a new stage and when it began."""
        if (stage, detail) != (self.stage, self.detail):
            self.stage, self.detail, self.since = stage, detail, time.time()

    def start(self) -> None:
        """Begin a run."""
        self.files_done = self.files_total = self.bytes_done = self.bytes_total = 0
        self._shares.clear()
        self._totals.clear()
        self.started = time.monotonic()

    def begin(self, files: int, size: int) -> None:
        """Note that so many more files of so many bytes are to be indexed."""
        self.enter("indexing")
        self.files_total += files
        self.bytes_total += size

    def advance(self, files: int, size: int) -> None:
        """Note that so many more of them are."""
        self.files_done += files
        self.bytes_done += size
        self.updated = time.time()

    def reach(self, stage: LateStage, left: Left) -> None:
        """Note how much a late stage has left."""
        total = self._totals[stage] = max(left.bytes, self._totals.get(stage, 0))
        self._shares[stage] = 1 - left.bytes / total if total else 1.0
        self.left[stage] = left.texts

    def share(self) -> float:
        """Return how much of the run's work is done, 0 to 1, all stages together."""
        if self.stage == "ready":
            return 1.0
        grams = min(1.0, self.bytes_done / self.bytes_total) if self.bytes_total else float(self.stage in LATE_STAGES)
        return GRAM_COST * grams + sum(cost * self._shares.get(stage, 0.0) for stage, cost in COSTS.items())

    def eta_seconds(self) -> float | None:
        """Return the seconds the run still needs at the pace so far, where that can be told."""
        share = self.share()
        if not 0 < share < 1 or self.stage in {"listing", "failed"}:
            return None
        return (time.monotonic() - self.started) / share * (1 - share)


class PendingFiles(Protocol):
    """The table of a project's files, and over it those that are pending."""

    @property
    def pending(self) -> Mapping[bytes, Mark]:
        """The paths that are not as the table has them."""

    @property
    def table(self) -> FileTable:
        """The files as indexed."""

    def take_stored(
        self, sent: Mapping[bytes, Mark], rows: Sequence[FileRow], gone: Sequence[bytes], generation: int
    ) -> None:
        """Take what the indexer stored; paths marked again since they were sent stay pending."""


class Host(Protocol):
    """The project whose index is kept up to date."""

    async def start_anew(self, why: str) -> None:
        """Close the index and set it aside; every file is pending then."""

    def set_aside(self, why: str) -> None:
        """Move the index away."""


class IndexScheduler:
    """Has an indexer store what is pending, whenever there is something, and drives the late stages."""

    def __init__(
        self, job: IndexJob, index: ProjectIndex, files: PendingFiles, progress: Progress, embedding: str
    ) -> None:
        """``embedding``: the settings of the embedder, as JSON."""
        self.embedding = embedding
        self.settled = False
        """Whether the project's files have been listed; before that nothing tells a burst of changes from its start."""
        self.generation = 0
        self.done: set[LateStage] = set()
        """Late stages that have reached every text."""
        self.parsed_to = 0
        """The texts of the table up to this number have their symbols; numbers grow while the index is the same."""
        self._job = job
        self._index = index
        self._files = files
        self._progress = progress
        self._work = anyio.Event()
        self._idle = anyio.Event()
        self._child: IndexerChild | None = None
        self._starting = anyio.Lock()
        self._ended_by_us = False
        self._batch = 0
        self._failures = 0
        self._refusals = 0

    @property
    def pid(self) -> int | None:
        """The indexer's process number, while there is one."""
        return self._child.pid if self._child else None

    def poke(self) -> None:
        """Say that there may be something to do."""
        self._work.set()

    def embed_by(self, embedding: str) -> None:
        """Have vectors made by another embedder."""
        self.embedding = embedding
        self.done.discard("vectors")
        self._progress.problem = ""
        self.poke()

    def make_vectors_anew(self) -> None:
        """Have vectors made that are thought to be there: the file was damaged, or the model is not the same."""
        if "vectors" in self.done:
            self.done.discard("vectors")
            self.poke()

    def note_parsed(self) -> None:
        """Take note of how far symbols are stored."""
        if "symbols" in self.done:
            self.parsed_to = int(self._files.table.columns[:, 0].max(initial=0))

    async def pause(self) -> None:
        """Wait until a stage is finished or has failed."""
        self._work.set()
        await self._idle.wait()

    async def close(self) -> None:
        """End the indexer."""
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    @asynccontextmanager
    async def without_indexer(self) -> AsyncIterator[None]:
        """End the indexer, and have none started inside the block: the index is being replaced."""
        async with self._starting:
            self._ended_by_us = True
            await self.close()
            yield

    async def run(self, host: Host) -> None:
        """Index whatever comes, until cancelled."""
        while True:
            await self._wait_for_work()
            self._ended_by_us = False
            self._progress.start()
            try:
                # Changed files always first, also those that change meanwhile; then what makes answers better.
                finished = False
                while not finished:
                    if self._index.is_replaced():
                        await host.start_anew("the database was deleted or replaced")
                    await self._store_pending()
                    finished = True
                    for stage in LATE_STAGES:
                        finished = finished and await self._finish(stage)
                self._progress.enter("ready", "" if self._index.is_open else self._progress.detail)
                schema.drop_aside(self._index.file)
                release_memory()
                self._failures = 0
                self._tell_idle()
            except IndexerFailed as failure:
                await self._recover(failure, host)
            except Damaged as damage:
                await self._recover(IndexerFailed("damaged", str(damage)), host)
            except (OSError, sqlite3.Error, Busy) as error:  # no process or descriptor to be had, a locked database
                await self._recover(IndexerFailed("error", str(error)), host)

    async def _wait_for_work(self) -> None:
        """Wait until there is something to do and changes pause; an indexer that waits for long is ended."""
        with anyio.move_on_after(INDEXER_IDLE_SECONDS) as patience:
            await self._work.wait()
        if patience.cancelled_caught:
            await self.close()
            refused = EMBEDDER_RETRY_SECONDS * 2 ** (self._refusals - 1) if self._refusals else float("inf")
            with anyio.move_on_after(min(refused, _HOUR) if self._refusals else refused):
                await self._work.wait()
        self._work = anyio.Event()
        until = time.monotonic() + BURST_SECONDS
        seen = -1
        while self.settled and time.monotonic() < until and len(self._files.pending) != seen:
            seen = len(self._files.pending)
            await anyio.sleep(QUIET_SECONDS)

    def _tell_idle(self) -> None:
        self._idle.set()
        self._idle = anyio.Event()

    async def _recover(self, failure: IndexerFailed, host: Host) -> None:
        """Have the work begun anew: at once where we ended the indexer, else after a while."""
        await self.close()
        if self._ended_by_us:
            self._work.set()
            return
        if failure.reason == "damaged":
            with suppress(Busy):  # out of descriptors: the damage will be met again
                await host.start_anew(failure.detail)
                host.set_aside(failure.detail)
        elif self._failures:  # what the next attempt mends is nobody's concern
            self._progress.enter("failed", f"{failure.reason}: {failure.detail}")
            self._tell_idle()
        await anyio.sleep(min(RETRY_SECONDS, FIRST_RETRY_SECONDS * 2**self._failures))
        self._failures += 1
        self._work.set()

    async def _open_child(self) -> IndexerChild:
        async with self._starting:
            if self._child is not None:
                return self._child
            with anyio.CancelScope(shield=True):  # a process that nobody holds could not be ended
                self._child = child = await IndexerChild.start(self._job)
            return child

    async def _store_pending(self) -> None:
        """Have grams stored until nothing is pending."""
        files, progress = self._files, self._progress
        while files.pending:
            self.done.clear()
            if not self._index.is_open:
                self.parsed_to = 0
            child = await self._open_child()
            sent = dict(files.pending)
            self._batch += 1
            progress.begin(len(sent), sum(mark.size for mark in sent.values()))
            async for part in child.update(self._batch, sent):
                await self._open_index()
                if self._child is not child:  # its numbers are of an index that was thrown away meanwhile
                    raise IndexerFailed("died", "the index was replaced")
                files.take_stored(sent, part.rows, part.gone, part.generation)
                self.generation = part.generation
                progress.advance(len(part.rows) + len(part.gone), part.bytes_read)
        await (await self._open_child()).merge()
        await self._open_index()

    async def _open_index(self) -> None:
        if not self._index.is_open:
            await anyio.to_thread.run_sync(self._index.open)

    async def _finish(self, stage: LateStage) -> bool:
        """Have one late stage reach every text; False: files have changed meanwhile, which goes first."""
        files, progress = self._files, self._progress
        if files.pending:
            return False
        progress.enter(stage)
        self._tell_idle()
        child, embedding, stopped, left, problem = await self._open_child(), self.embedding, False, -1, ""
        async for report in child.finish(stage, embedding):
            left, problem = report.left.texts, report.problem
            progress.reach(stage, report.left)
            if not stopped and (files.pending or embedding != self.embedding):
                stopped = True
                await child.stop()
        if embedding != self.embedding:  # vectors of an embedder that is not wanted any more
            return False
        if stage == "vectors":
            progress.problem = problem
            self._refusals = self._refusals + 1 if problem else 0
        if not left:
            self.done.add(stage)
            self.note_parsed()
        return not files.pending
