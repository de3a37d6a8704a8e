"""The stores that projects are open in: whose indexer they share, and whose damage concerns them all."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Protocol
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from flashgrep.damage import Damaged
from flashgrep.index.project_index import ProjectIndex, forget_project, set_aside
from flashgrep.index.reader import Reader
from flashgrep.indexer.index_scheduler import IndexScheduler, ProjectIndexing
from flashgrep.indexer.job import IndexJob
from flashgrep.own_folders import INDEX, find_owner, store_folder
from flashgrep.workspace.freshness import Freshness
from flashgrep.workspace.tree import Tree


class Member(Protocol):
    """A project that is open in a store."""

    tree: Tree
    freshness: Freshness
    index: ProjectIndex
    indexing: ProjectIndexing

    def load(self) -> None:
        """Open its part of the index."""

    def drop_index(self, why: str) -> None:
        """Let go of the index: it is set aside."""


class Store:
    """One store; what is done with its database as a whole is done for all its open projects in one step."""

    def __init__(self, job: IndexJob) -> None:
        self.file = job.index
        self.scheduler = IndexScheduler(job, self)
        self._members: list[Member] = []

    @property
    def is_open(self) -> bool:
        """Whether any project is open in it."""
        return bool(self._members)

    async def join(self, member: Member, tasks: TaskGroup, *, indexes: bool) -> None:
        """Have a project load what is indexed of it, and keep that up to date if it ``indexes``."""
        async with self.scheduler.changing:
            try:
                await anyio.to_thread.run_sync(member.load)
            except Damaged as damage:
                await self._start_anew(str(damage))
                member.drop_index(str(damage))
            self._members.append(member)
            if indexes:
                self.scheduler.add(member.indexing, tasks)

    async def leave(self, member: Member) -> None:
        """Let a project go that is closed; what is stored stays."""
        if member in self._members:
            self._members.remove(member)
        await self.scheduler.remove(member.indexing)

    async def start_anew(self, why: str, damaged: Reader | None = None) -> None:
        """Throw the index away (``damaged``: only if that one is still open), so that everything is indexed again."""
        async with self.scheduler.changing:
            readers = [member.index.reader for member in self._members]
            if any(reader is not None for reader in readers) and (damaged is None or damaged in readers):
                await self._start_anew(why)

    async def _start_anew(self, why: str) -> None:
        """Throw the index away for all projects.

        Their files are listed first, and all that hangs on the old index goes in one step without a wait: whoever is
        cancelled before leaves it as it was, and no question meets a project without files.
        """
        members = list(self._members)
        async with AsyncExitStack() as locks:
            for member in members:
                await locks.enter_async_context(member.freshness.lock)
            swept = [
                (member, await anyio.to_thread.run_sync(partial(member.tree.sweep, anew=True))) for member in members
            ]
            async with self.scheduler.without_indexer():
                self.set_aside(why)
                for member, found in swept:
                    member.tree.take_sweep(found)
                    member.indexing.done.clear()
        for member in members:
            member.indexing.poke()

    def set_aside(self, why: str) -> None:
        """Move the index away, for study."""
        for member in self._members:
            member.drop_index(why)
        set_aside(self.file)


class Stores:
    """The stores of one daemon, each while a project of it is there."""

    def __init__(self) -> None:
        self._stores: WeakValueDictionary[Path, Store] = WeakValueDictionary()

    def find(self, cache: Path, root: bytes, workers: int, versions: Mapping[str, str]) -> Store:
        """Return the store of the project at a root; reads which repository the root belongs to."""
        file = store_folder(cache, root) / INDEX
        store = self._stores.get(file)
        if store is None:
            store = self._stores[file] = Store(IndexJob(file, find_owner(root), workers, versions))
        return store

    async def forget(self, cache: Path, root: bytes) -> None:
        """Drop a project that is not open from its store, and the store if it has no other."""
        file = store_folder(cache, root) / INDEX
        store = self._stores.get(file)
        if store is not None and store.is_open:
            await store.scheduler.forget(root)
        elif not await anyio.to_thread.run_sync(forget_project, file, root):
            await anyio.to_thread.run_sync(partial(rmtree, file.parent, ignore_errors=True))
