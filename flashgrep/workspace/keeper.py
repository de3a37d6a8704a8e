"""Keeping one project's index up to date in the background: grams, symbols, chunks, vectors, in this order."""

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import anyio

from flashgrep.damage import Damaged
from flashgrep.errors import Busy
from flashgrep.index import schema
from flashgrep.machine import release_memory
from flashgrep.workspace.indexing import IndexerChild, IndexerFailed, Indexing
from flashgrep.workspace.progress import LATE_STAGES, LateStage, Progress
from flashgrep.workspace.tree import Tree

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


class Host(Protocol):
    """Who owns the index: opens it for reading once it is there, and throws it away when it is damaged."""

    async def open_reader(self) -> None:
        """Open the index for reading, unless it is open."""

    async def start_anew(self, why: str) -> None:
        """Close the index and set it aside; every file is pending then."""

    def replaced(self) -> bool:
        """Return whether another file stands where the open index was."""

    def opened(self) -> bool:
        """Return whether the index is open."""

    def set_aside(self, why: str) -> None:
        """Move the index file away."""


class Keeper:
    """Has an indexer store what is pending, whenever there is something."""

    def __init__(self, how: Indexing, tree: Tree, progress: Progress, host: Host, embedding: str) -> None:
        """``embedding``: the settings of the embedder, as JSON."""
        self._how = how
        self.embedding = embedding
        self._tree = tree
        self._progress = progress
        self._host = host
        self._work = anyio.Event()
        self._idle = anyio.Event()
        self._child: IndexerChild | None = None
        self._starting = anyio.Lock()
        self._ended_by_us = False
        self._batch = 0
        self._failures = 0
        self._refusals = 0
        self.settled = False
        """Whether the project's files have been listed; before that nothing tells a burst of changes from its start."""
        self.generation = 0
        self.done: set[LateStage] = set()
        """Late stages that have reached every text."""
        self.parsed_to = 0
        """The texts of the table up to this number have their symbols; numbers grow while the index is the same."""

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

    def mark_parsed(self) -> None:
        """Take note of how far symbols are stored."""
        if "symbols" in self.done:
            self.parsed_to = int(self._tree.table.columns[:, 0].max(initial=0))

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

    async def run(self) -> None:
        """Index whatever comes, until cancelled."""
        while True:
            await self._wait_for_work()
            self._work = anyio.Event()
            await self._quiet()
            self._ended_by_us = False
            self._progress.start()
            try:
                await self._index_all()
                self._progress.enter("ready", "" if self._host.opened() else self._progress.detail)
                schema.drop_aside(Path(self._how.index))
                release_memory()
                self._failures = 0
                self._tell_idle()
            except IndexerFailed as failure:
                await self._failed(failure)
            except Damaged as damage:
                await self._failed(IndexerFailed("damaged", str(damage)))
            except (OSError, sqlite3.Error, Busy) as error:  # no process or descriptor to be had, a locked database
                await self._failed(IndexerFailed("error", str(error)))

    async def _wait_for_work(self) -> None:
        with anyio.move_on_after(INDEXER_IDLE_SECONDS) as patience:
            await self._work.wait()
        if patience.cancelled_caught:
            await self.close()
            refused = EMBEDDER_RETRY_SECONDS * 2 ** (self._refusals - 1) if self._refusals else float("inf")
            with anyio.move_on_after(min(refused, _HOUR) if self._refusals else refused):
                await self._work.wait()

    def _tell_idle(self) -> None:
        self._idle.set()
        self._idle = anyio.Event()

    async def _failed(self, failure: IndexerFailed) -> None:
        await self.close()
        if self._ended_by_us:  # in the middle of its work, which begins anew at once
            self._work.set()
            return
        if failure.reason == "damaged":
            with suppress(Busy):  # out of descriptors: the damage will be met again
                await self._host.start_anew(failure.detail)
                self._host.set_aside(failure.detail)
        elif self._failures:  # what the next attempt mends is nobody's concern
            self._progress.enter("failed", f"{failure.reason}: {failure.detail}")
            self._tell_idle()
        await anyio.sleep(min(RETRY_SECONDS, FIRST_RETRY_SECONDS * 2**self._failures))
        self._failures += 1
        self._work.set()

    async def _quiet(self) -> None:
        """Wait until changes pause."""
        until = time.monotonic() + BURST_SECONDS
        seen = -1
        while self.settled and time.monotonic() < until and len(self._tree.pending) != seen:
            seen = len(self._tree.pending)
            await anyio.sleep(QUIET_SECONDS)

    async def _index_all(self) -> None:
        """Have everything stored: changed files always first, then what makes answers better."""
        finished = False
        while not finished:
            await self._index_texts()
            finished = True
            for stage in LATE_STAGES:
                finished = finished and await self._finish(stage)

    async def _index_texts(self) -> None:
        """Have grams stored until nothing is pending."""
        if self._host.replaced():
            await self._host.start_anew("the database was deleted or replaced")
        while self._tree.pending:
            self.done.clear()
            if not self._host.opened():
                self.parsed_to = 0
            await self._update(await self._indexer())
        await (await self._indexer()).merge()
        await self._host.open_reader()

    async def _finish(self, stage: LateStage) -> bool:
        """Have one late stage reach every text; False: files have changed meanwhile, which goes first."""
        if self._tree.pending:
            return False
        self._progress.enter(stage)
        self._tell_idle()
        child, asked, stopped, left, problem = await self._indexer(), self.embedding, False, -1, ""
        async for report in child.finish(stage, asked):
            left = report.left.texts
            problem = report.problem
            self._progress.reach(stage, report.left)
            if not stopped and (self._tree.pending or asked != self.embedding):
                stopped = True
                await child.stop()
        if asked != self.embedding:  # vectors of an embedder that is not wanted any more
            return False
        if stage == "vectors":
            self._progress.problem = problem
            self._refusals = self._refusals + 1 if problem else 0
        if not left:
            self.done.add(stage)
            self.mark_parsed()
        return not self._tree.pending

    async def _indexer(self) -> IndexerChild:
        async with self._starting:
            if self._child is not None:
                return self._child
            with anyio.CancelScope(shield=True):  # a process that nobody holds could not be ended
                self._child = child = await IndexerChild.start(self._how)
            return child

    async def _update(self, child: IndexerChild) -> None:
        sent = dict(self._tree.pending)
        self._batch += 1
        progress = self._progress
        progress.begin(len(sent), sum(mark.size for mark in sent.values()))
        async for part in child.update(self._batch, sent):
            await self._host.open_reader()
            if self._child is not child:  # its numbers are of an index that was thrown away meanwhile
                raise IndexerFailed("died", "the index was replaced")
            self._tree.stored(sent, part.rows, part.gone, part.generation)
            self.generation = part.generation
            progress.advance(len(part.rows) + len(part.gone), part.bytes_read)
