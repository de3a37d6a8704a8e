"""A project open in the daemon: its files, its index, its watch; every question goes through it."""

import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from flashgrep.base.errors import Busy
from flashgrep.base.own_folders import PrivateFolders, writes_folder
from flashgrep.base.scheduler import Scheduler
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.globs import PathFilter
from flashgrep.files.openat import RootFolder
from flashgrep.files.outside import OutsideWatch
from flashgrep.files.read import SliceQuery, SliceResult, read_slice
from flashgrep.files.root import Root
from flashgrep.files.walk import Walker, WalkOptions
from flashgrep.files.watch import watch
from flashgrep.index.project_index import ProjectIndex
from flashgrep.index.reader import IndexSize, Reader
from flashgrep.index.schema import LATE_STAGES
from flashgrep.indexer.index_scheduler import ProjectIndexing
from flashgrep.indexer.job import ProjectJob, stage_versions
from flashgrep.indexer.progress import WITH_ALL_GRAMS, Progress
from flashgrep.parts.edit.journal import recover
from flashgrep.parts.git.repository import is_bare
from flashgrep.parts.git.revisions import Revisions
from flashgrep.parts.meaning.search.chunk_index import MeaningIndex
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer, MeaningQuestion, MeaningSearch
from flashgrep.parts.meaning.search.word_search import search_words, show_best_lines
from flashgrep.parts.navigation.scip import scip_store as scip
from flashgrep.parts.navigation.servers.pool import ServerPool
from flashgrep.parts.specs.search import SpecVectors
from flashgrep.parts.symbols.symbol_search import BestDefinition, find_best_definition
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project.file_tree import Tree
from flashgrep.project.freshness import EVENT_PAUSE, Freshness, SwitchableWatcher
from flashgrep.project.lookup_workers import LookupWorkers
from flashgrep.project.lookups import Lookups
from flashgrep.project.stores import Stores
from flashgrep.search.exact import Answer, Question
from flashgrep.search.ripgrep import Ripgrep
from flashgrep.search.snapshot import Snapshot

MOST_UNASKED = 32
"""At most this many stay open: each holds an inotify queue, of which Linux allows 128 per user, editors included."""
UNASKED_SECONDS = 1800.0
"""Above that number, projects without a question for this long are closed. Reopening one lists its files again."""

END_SECONDS = 5.0
"""Time for background work to end, which it does at its next wait."""

ResultT = TypeVar("ResultT")

Prepare = Callable[[Snapshot], Snapshot]
"""Derives the snapshot of a view from the project's."""


def _leave(snapshot: Snapshot) -> Snapshot:
    """Return the project's own."""
    return snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceOptions:
    """The settings of one project."""

    state_dir: Path
    """The user's state folder, with the journals of the project's writes."""
    cache_dir: Path
    """The user's cache folder, with the project's index."""
    max_file_size: int = 64 << 20
    kept_bytes: int = 512 << 20
    """Most bytes of texts stored only for questions about revisions; 0: none."""
    kept_days: int = 30
    """How long they are kept if nobody asks."""
    workers: int = 2
    read_only: bool = False
    limits: Limits = field(default_factory=Limits)
    settings_warnings: tuple[str, ...] = ()
    """Warnings about the project's own settings that are not used."""
    spec_folders: tuple[str, ...] = ()
    """Folders of specifications, relative to the root; `*` in a name stands for any text."""
    private: PrivateFolders = field(default_factory=PrivateFolders)
    """Folders that are never read, listed or written through the project, even if inside it."""
    native_watch: bool = True
    stages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the code for the late stages' rows; none: those of this installation."""
    embedding: str = "{}"
    """The settings of the embedder, as JSON."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Holds the keys of embedding providers."""
    indexes: bool = True
    """Whether an index is built and kept up to date; without one everything is found by scanning."""


class Workspace:
    """One open project."""

    def __init__(  # noqa: PLR0913 - what is shared comes by name, from the one assembler
        self,
        name: str,
        root: bytes,
        options: WorkspaceOptions,
        *,
        ripgrep: Ripgrep | None = None,
        scheduler: Scheduler | None = None,
        workers: LookupWorkers | None = None,
        stores: Stores | None = None,
        outside: OutsideWatch | None = None,
        servers: ServerPool | None = None,
    ) -> None:
        """``ripgrep`` scans, if installed; the following arguments are shared by a daemon's projects."""
        self.name = name
        self.root = root
        self.path = Path(os.fsdecode(root))
        self.options = options
        self._ripgrep = ripgrep
        self._scheduler = scheduler or Scheduler()
        self.is_bare = is_bare(self.path)
        """Whether the root is a bare repository: questions are then about HEAD."""
        self.read_only = options.read_only or self.is_bare
        self.warned = False
        """Whether a command has shown the warnings about the project's settings."""
        self.progress = Progress()
        versions = options.stages or stage_versions()
        self.store = (stores or Stores()).find(options.cache_dir, root, options.workers, versions)
        self.index = ProjectIndex(self.store.file, root, versions)
        self._watcher = SwitchableWatcher(lambda: watch(root, native=options.native_watch))
        # Before anything below it is opened: a later folder at this path is another one.
        self._identity = _identity(self.path)
        self._folder = RootFolder(root, self._identity)
        walk = WalkOptions(private=options.private, nothing=self.is_bare)
        self.walker = Walker(root, walk, folder=self._folder)
        self.tree = Tree(self._folder, self.walker, self._watcher, outside)
        self.freshness = Freshness(self.tree, self._watcher)
        self.lookups = Lookups(self, self._folder, str(self.index.file), self._scheduler, workers)
        job = ProjectJob(self._folder, options.max_file_size, options.kept_bytes, options.kept_days)
        self.indexing = ProjectIndexing(
            job, self.index, self.tree, self.progress, options.embedding, self.store.scheduler
        )
        self.meaning = MeaningIndex(self.index.file.parent, root, options.embedding, options.environ)
        self.revisions = Revisions(self, self._folder, options.environ)
        self.asked_at = anyio.current_time()
        """When somebody last wanted the project."""
        self.subscribers = 0
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._size: tuple[object, IndexSize | None] | None = None
        self._unfinished = True
        self.spec_vectors = SpecVectors()
        own = writes_folder(options.state_dir, root)
        self._scip = own / scip.FILE
        self._servers = servers
        self.editor = Editor(Root(root, os.fsencode(own), options.private), options.limits)

    @property
    def generation(self) -> int:
        """The index's generation; grows with each stored batch."""
        return self.tree.generation

    @property
    def is_closed(self) -> bool:
        """Whether the project was closed, so that what is known becomes outdated."""
        return self._scope.cancel_called

    # Opening and closing

    async def open(self, tasks: TaskGroup) -> None:
        """Recover writes left unfinished by a killed daemon, load the index, watch, and keep the index up to date."""
        if not self.options.indexes:
            self.progress.enter("failed", "nothing is indexed: no daemon runs")
        try:
            await anyio.to_thread.run_sync(recover, self.editor.root)
            await self.store.join(self, tasks, indexes=self.options.indexes)
        except BaseException:
            self._ended.set()
            raise
        tasks.start_soon(self._run)

    async def close(self) -> None:
        """Stop watching and indexing; what is stored stays."""
        self._scope.cancel()
        # Tasks waiting for a change would otherwise wait for a closed project.
        self.progress.changed.fire()
        with anyio.move_on_after(END_SECONDS, shield=True):
            await self._ended.wait()
        await self.store.leave(self)
        if self._servers is not None:
            self._servers.end_servers(self.root)
        self.lookups.close()
        self.revisions.close()
        self._watcher.close()
        self.editor.close()
        self.index.close()

    def is_idle(self) -> bool:
        """Whether nobody has wanted it for long, waits for a change or for its index."""
        waited = anyio.current_time() - self.asked_at
        return waited > UNASKED_SECONDS and not self.subscribers and self.progress.stage in {"ready", "failed"}

    def is_lost(self) -> bool:
        """Return whether the root is not the folder that was opened: moved, deleted, replaced or unmounted."""
        return _identity(self.path) != self._identity

    def load(self) -> None:
        """Open what is indexed.

        Raises:
            Damaged: it is not what was written.

        """
        try:
            loaded = self.index.load(self.indexing.embedding)
        except FileNotFoundError:  # none yet
            return
        except (OSError, sqlite3.Error) as error:
            if not isinstance(error, sqlite3.Error) or self.index.file.exists():
                self.progress.detail = f"the index cannot be opened: {error}"
            return
        self.tree.table, self.tree.generation = loaded.table, loaded.generation
        self.indexing.done = loaded.done
        self.indexing.note_symbols()
        self._unfinished = len(loaded.done) < len(LATE_STAGES)
        self.progress.updated = loaded.updated

    def drop_index(self, why: str) -> None:
        """Close the index; it is set aside."""
        self.meaning.forget()
        self.index.close()
        self.progress.detail = f"index set aside: {why}"

    async def _run(self) -> None:
        try:
            with self._scope:
                await anyio.sleep(EVENT_PAUSE)  # usually a question has opened the project
                await self.lookups.wait_for_early_search()
                await self.freshness.follow(self.refresh)
        finally:
            self._ended.set()

    # Freshness

    async def refresh(self) -> bool:
        """Pick up everything saved before this call; True: answers now equal the current disk."""
        async with self.freshness.lock:
            changes = self.tree.changes
            fresh = await self.freshness.settle()
            # Notify subscribers now, not when it is indexed.
            if self.tree.changes != changes:
                self.progress.changed.fire()
            if not self.indexing.settled:
                self.indexing.settled = True
                self.lookups.give_up_walks()
                if not self.tree.pending and not self._unfinished and self.index.is_open:
                    self.progress.enter("ready")
            if self.tree.pending or self._unfinished:
                self._unfinished = False
                self.indexing.poke()
        return fresh

    def note_changes(self, paths: Sequence[bytes]) -> None:
        """Mark paths we wrote ourselves: the next question reads them from disk."""
        try:
            self.tree.note_changes(paths)
        except Busy:  # they are written; the next question finds them by a sweep
            # Without a time of listing, the next question sweeps the tree.
            self.tree.listed_since = None
        self.indexing.poke()

    # Questions

    def snapshot(self) -> Snapshot:
        """Return the project as it is known now."""
        tree = self.tree
        return Snapshot(
            self._folder,
            tree.table,
            self.index.reader,
            # A copy: marks change while the question runs, and it must see one state.
            dict(tree.pending),
            self.options.max_file_size,
            tree.excluded,
            self._ripgrep,
            parsed="symbols" in self.indexing.done,
            parsed_to=self.indexing.parsed_to,
            scip=self._scip,
            servers=self._servers,
        )

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files as known now, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        return self.tree.paths(keep, part)

    async def search(self, question: Question, *, max_file_size: int | None = None) -> Answer:
        """Answer an exact question about the project as known now (``refresh`` first unless stale data is acceptable).

        ``max_file_size``: overrides the setting.
        """
        return await self.lookups.search(question, max_file_size)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""
        return await self.in_turn(partial(read_slice, self.editor, path, query))

    async def find_definition(self, name: str, under: bytes = b"") -> BestDefinition:
        """Return the best definition of a name; raises as ``find_best_definition``."""
        return await self.in_thread(lambda snapshot: find_best_definition(SnapshotSource(snapshot), name, under))

    async def search_words(self, text: str, limit: int, keep: PathFilter | None, prepare: Prepare = _leave) -> Answer:
        """Return the best lines for words: of the best chunks once all texts have chunks."""
        if "chunks" not in self.indexing.done:
            return await self.in_thread(lambda snapshot: search_words(prepare(snapshot), text, limit, keep))
        found = await self.search_by_meaning(MeaningQuestion(text=text, limit=limit, keep=keep), prepare)
        return show_best_lines(found.results, text)

    async def search_by_meaning(self, question: MeaningQuestion, prepare: Prepare = _leave) -> MeaningAnswer:
        """Return the chunks that answer a question best; ``prepare``: returns the snapshot that is asked."""
        answer = await self.in_thread(lambda snapshot: MeaningSearch(prepare(snapshot), self.meaning, question).run())
        if answer.damaged:
            self.indexing.make_vectors_anew()
        return answer

    def rest(self, seconds: float) -> bool:
        """Free memory that no question has needed for this long; return whether there was any."""
        self.tree.table.rest()  # made again within 10 ms
        return self.revisions.rest(seconds) | self.meaning.rest(seconds)

    async def in_thread(self, ask: Callable[[Snapshot], ResultT]) -> ResultT:
        """Run a lookup in a thread; a damaged index is set aside, and the lookup repeated without it."""
        return await self.lookups.run(ask)

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something long that needs no snapshot in a thread, scheduled fairly with all lookups."""
        return await self._scheduler.run(lambda: work)

    async def start_anew(self, why: str, damaged: Reader | None = None) -> None:
        """Discard the index (``damaged``: only if that one is still open), so that everything is reindexed."""
        await self.store.start_anew(why, damaged)

    async def size(self) -> IndexSize | None:
        """Return what the index holds; None without one. Counted again only when the index has changed."""
        if self.index.reader is None:
            return None
        # Counting reads much of the database; these change whenever the figures do.
        key = (self.progress.updated, dict(self.progress.left), self.progress.stage)
        if self._size is None or self._size[0] != key:
            self._size = (
                key,
                await self.in_thread(lambda snapshot: snapshot.own_index.size() if snapshot.own_index else None),
            )
        return self._size[1]

    # Indexing

    def keep_texts(self, contents: Collection[tuple[bytes, bytes]], *, parse: bool) -> None:
        """Store contents of a revision, by blob id and a path; ``parse``: with their symbols."""
        if self.options.indexes and self.options.kept_bytes:
            self.indexing.keep(contents, parse=parse)

    async def wait_indexed(self) -> None:
        """Wait until the index has every text (symbols may still be parsed), or indexing has failed."""
        await self.refresh()
        while self.progress.stage != "failed" and (self.tree.pending or self.progress.stage not in WITH_ALL_GRAMS):
            await self.indexing.pause()

    async def wait_parsed(self) -> None:
        """Wait until every text's symbols are stored as well."""
        await self.wait_indexed()
        while self.progress.stage != "failed" and "symbols" not in self.indexing.done:
            await self.indexing.pause()

    async def wait_embedded(self) -> None:
        """Wait until every chunk has its vector, or the embedder turns out not to answer."""
        await self.wait_parsed()
        while self.progress.stage != "failed" and not self.progress.problem and "vectors" not in self.indexing.done:
            await self.indexing.pause()

    @property
    def embedding(self) -> str:
        """The settings of the embedder, as JSON."""
        return self.indexing.embedding

    def embed_by(self, embedding: str) -> None:
        """Create vectors with the embedder of other settings; the old ones serve until they are ready."""
        if embedding != self.embedding:
            self.meaning.embed_by(embedding)
            self.indexing.embed_by(embedding)

    async def rebuild(self) -> None:
        """Delete the index and rebuild it."""
        if self.index.is_open:
            await self.start_anew("rebuild was asked for")
        self.progress.enter("listing")
        self.indexing.poke()

    def facts(self) -> dict[str, Any]:
        """Return the state of watching and indexing, for people."""
        return {
            "watching": not self.freshness.watch_problem,
            "watch_problem": self.freshness.watch_problem,
            "pending": len(self.tree.pending),
            "indexer_pid": self.store.scheduler.pid,
            "root_gone": self.tree.gone,
        }


def find_idle(projects: Collection[Workspace]) -> list[Workspace]:
    """Return the open projects that are to be closed: asked for longest ago, and more than stay open."""
    unasked = sorted((one for one in projects if one.is_idle()), key=lambda one: one.asked_at)
    return unasked[: max(0, len(projects) - MOST_UNASKED)]


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
