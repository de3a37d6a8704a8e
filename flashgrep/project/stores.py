"""The stores of open projects, which share their store's indexer and are all affected by its damage."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from flashgrep.base.damage import Damaged
from flashgrep.base.own_folders import (
    INDEX,
    find_owner,
    identify,
    list_stores,
    store_folder,
)
from flashgrep.index.project_index import (
    ProjectIndex,
    forget_projects,
    list_files,
    measure_revisions,
    set_aside,
)
from flashgrep.index.reader import Reader
from flashgrep.index.stage import Stage, name_rows
from flashgrep.indexer.index_scheduler import IndexScheduler, ProjectIndexing
from flashgrep.indexer.job import IndexJob
from flashgrep.indexer.turns import IndexerTurns
from flashgrep.project.file_tree import Tree
from flashgrep.project.freshness import Freshness


class Member(Protocol):
    """An open project of a store."""

    tree: Tree
    freshness: Freshness
    index: ProjectIndex
    indexing: ProjectIndexing

    def load(self) -> None:
        """Open its part of the index."""

    def drop_index(self, why: str) -> None:
        """Close the index; it is set aside."""


class Store:
    """One store; operations on its whole database are done for all its open projects in one step."""

    def __init__(
        self, job: IndexJob, changing: anyio.Lock, turns: IndexerTurns
    ) -> None:
        self.file = job.index
        self.scheduler = IndexScheduler(job, self, changing, turns)
        self._members: list[Member] = []

    async def join(self, member: Member, tasks: TaskGroup, *, indexes: bool) -> None:
        """Let a project load its part of the index, and keep it up to date if it ``indexes``."""
        # Nobody may drop projects from the store while this one reads its part.
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
        """Remove a closed project; what is stored stays."""
        if member in self._members:
            self._members.remove(member)
        await self.scheduler.remove(member.indexing)

    async def start_anew(self, why: str, damaged: Reader | None = None) -> None:
        """Discard the index (``damaged``: only if that one is still open), so that everything is reindexed."""
        async with self.scheduler.changing:
            readers = [member.index.reader for member in self._members]
            # Several questions meet the same damage; only the first one discards the
            # index.
            if any(reader is not None for reader in readers) and (
                damaged is None or damaged in readers
            ):
                await self._start_anew(why)

    async def _start_anew(self, why: str) -> None:
        """Discard the index for all projects.

        Their files are listed first, and everything based on the old index is replaced in one step without a wait: a
        cancellation before that changes nothing, and no question meets a project without files.
        """
        members = list(self._members)
        # All barriers are held, in one order: no question takes a table of files from
        # before together with an index from after.
        async with AsyncExitStack() as locks:
            for member in members:
                await locks.enter_async_context(member.freshness.lock)
            swept = [
                (
                    member,
                    await anyio.to_thread.run_sync(
                        partial(member.tree.sweep, anew=True)
                    ),
                )
                for member in members
            ]
            async with self.scheduler.without_indexer():
                self.set_aside(why)
                for member, sweep_result in swept:
                    member.tree.take_sweep(sweep_result)
                    member.indexing.done.clear()
        for member in members:
            member.indexing.poke()

    def set_aside(self, why: str) -> None:
        """Move the index aside for inspection."""
        for member in self._members:
            member.drop_index(why)
        set_aside(self.file)


class Stores:
    """The stores of one daemon, each as long as it has an open project."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        """``stages``: the late stages that parts make."""
        self.stages = stages
        # Weak: a store lives as long as an open project refers to it.
        self._stores: WeakValueDictionary[Path, Store] = WeakValueDictionary()
        self._locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()
        self._turns = IndexerTurns()

    def find(
        self,
        cache: Path,
        root: bytes,
        workers: int,
        versions: Mapping[str, str],
        functions: Mapping[str, str],
        owner: bytes = b"",
    ) -> Store:
        """Return the store of the project at a root; reads which repository the root belongs to.

        ``functions``: what parts do in its indexer, see ``IndexJob``. ``owner``: as for ``store_folder``.
        """
        owner = owner or find_owner(root)
        file = store_folder(cache, root, owner) / INDEX
        store = self._stores.get(file)
        if store is None:
            lock = self._locks.setdefault(file, anyio.Lock())
            rows = name_rows(self.stages)
            job = IndexJob(file, owner, workers, versions, functions, rows)
            store = self._stores[file] = Store(job, lock, self._turns)
        return store

    async def forget(self, file: Path, roots: Collection[bytes]) -> None:
        """Drop projects that are not open from a store, and the store if it has no others."""
        while True:
            # The lock outlives the store: a project that opens it meanwhile waits until
            # it is dropped.
            async with self._locks.setdefault(file, anyio.Lock()):
                store = self._stores.get(file)
                if store is None or not store.scheduler.is_busy:
                    if not await anyio.to_thread.run_sync(
                        forget_projects, file, roots, self.stages
                    ):
                        await anyio.to_thread.run_sync(
                            partial(rmtree, file.parent, ignore_errors=True)
                        )
                    return
            # Otherwise its last project was closed meanwhile, and the next round does
            # it here.
            if await store.scheduler.forget(roots):
                return


def describe_stores(cache: Path) -> list[dict[str, Any]]:
    """Return every store: its bytes, the folder it is named by, its projects with their files, texts of revisions."""
    described = []
    for folder, owner in list_stores(cache):
        projects = [
            {
                "root": root.decode("latin-1"),
                "files": files,
                "gone": identify(root) is None,
            }
            for root, files in list_files(folder / INDEX).items()
        ]
        texts, size = measure_revisions(folder / INDEX)
        described.append(
            {
                "revision_texts": texts,
                "revision_bytes": size,
                "owner": os.fsencode(owner or folder).decode("latin-1"),
                "gone": owner is None or identify(str(owner)) is None,
                "bytes": sum(
                    file.stat().st_size for file in folder.iterdir() if file.is_file()
                ),
                "projects": projects,
            }
        )
    return described


def find_gone(cache: Path, *, stores: bool) -> dict[Path, set[bytes]]:
    """Return the roots that are gone, by database: removed work trees.

    ``stores``: also all of a repository or folder that is gone, unless the folder above it is, too: the disk may not be
    there just now.
    """
    found: dict[Path, set[bytes]] = {}
    for folder, owner in list_stores(cache):
        if owner is None:
            continue
        roots = set(list_files(folder / INDEX))
        if identify(str(owner)):
            found[folder / INDEX] = {root for root in roots if not identify(root)}
        elif stores and (
            identify(str(owner.parent)) or identify(str(owner.parent.parent))
        ):
            found[folder / INDEX] = roots | {os.fsencode(owner)}
    return {file: roots for file, roots in found.items() if roots}
