"""A project open in the daemon: its files, its index, its watch; every question goes through it."""

import os
import sqlite3
import time
from bisect import insort
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

import anyio
from anyio.abc import TaskGroup

from flashgrep.api.coverage import COUNT_UP_TO, Coverage, milliseconds_since
from flashgrep.api.part import Part
from flashgrep.api.service import ProjectService, ServiceKey, Services
from flashgrep.base.errors import Busy, NotFound, TooLarge
from flashgrep.base.model import path_from_json, path_to_text
from flashgrep.base.own_folders import PrivateFolders, writes_folder
from flashgrep.base.scheduler import Scheduler
from flashgrep.files.buffers import Buffer, Buffers, UnsavedText
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.finder import GlobPage, Window, find, folder_of, place_of
from flashgrep.files.globs import GlobOptions, PathFilter
from flashgrep.files.openat import Descriptor, RootFolder
from flashgrep.files.outside import OutsideWatch
from flashgrep.files.read import SliceQuery, SliceResult, read_slice, slice_content
from flashgrep.files.repositories import is_bare
from flashgrep.files.root import Root
from flashgrep.files.system import read_all
from flashgrep.files.walk import Walker, WalkOptions
from flashgrep.files.watch import watch
from flashgrep.index.project_index import ProjectIndex
from flashgrep.index.reader import IndexSize, Reader
from flashgrep.index.schema import LateStage
from flashgrep.indexer.index_scheduler import ProjectIndexing
from flashgrep.indexer.job import ProjectJob, name_versions, stage_versions
from flashgrep.indexer.progress import WITH_ALL_GRAMS, Progress
from flashgrep.project.file_tree import Tree
from flashgrep.project.freshness import EVENT_PAUSE, Freshness, SwitchableWatcher
from flashgrep.project.lookup_workers import LookupWorkers
from flashgrep.project.lookups import Lookups
from flashgrep.project.stores import Stores
from flashgrep.search.exact import Answer, Question
from flashgrep.search.ripgrep import Ripgrep
from flashgrep.search.snapshot import SearchStats, Snapshot

MOST_UNASKED = 32
"""At most this many stay open: each holds an inotify queue, of which Linux allows 128 per user, editors included."""
UNASKED_SECONDS = 1800.0
"""Above that number, projects without a question for this long are closed. Reopening one lists its files again."""
MOST_OPEN = 64
"""For one more, the project asked for longest ago is closed at once, unless a call or a subscriber has it. Beyond that
nothing would be watched: this is half of the queues, and editors have the others."""

END_SECONDS = 5.0
"""Time for background work to end, which it does at its next wait."""

COUNT_PAUSES: Final = 30
"""While a stage is made, what the index holds is counted again after this many times as long as the count took: whoever
watches progress would slow it down (a count takes 70 ms for 80,000 files)."""
MOST_STALE_SECONDS: Final = 5.0

UNLISTED: Final = "the project's files have not all been listed yet"
BARE: Final = "a bare repository has no work tree; query, get_symbol, read_code and file lists answer about HEAD"

MOST_NAMED: Final = 10
"""Maximum number of files named in a detail."""

ResultT = TypeVar("ResultT")
ServiceT = TypeVar("ServiceT")


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
    unindexed: str = ""
    """Why nothing is indexed, if so."""
    walk: WalkOptions = field(default_factory=WalkOptions)
    """Which rules apply."""
    owner: bytes = b""
    """The folder that its store is named after, see ``store_folder``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFolder:
    """How a folder of libraries is opened."""

    label: str = ""
    """The name and version, if it is one library."""
    folders: frozenset[bytes] | None = None
    """What of it some project uses; None: everything."""
    is_indexed: bool = True


class _CountedSize(NamedTuple):
    """What an index held, and until when that is recent."""

    key: tuple[float, Mapping[str, int], str]
    """The figures of progress at that time; the last is the stage."""
    size: IndexSize | None
    recent_until: float
    """On the clock of ``time.monotonic``."""


class ServiceHost(Protocol):
    """What parts keep for all projects."""

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps; raises Unavailable if the part is left out."""

    def visit_library(
        self, root: Path, library: LibraryFolder, call: object, /
    ) -> Awaitable["Workspace"]:
        """Open a folder of libraries, to be read and searched for a call."""


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
        parts: Sequence[Part] = (),
        host: ServiceHost | None = None,
    ) -> None:
        """``ripgrep`` scans, if installed; the following arguments are shared by a daemon's projects."""
        self.name = name
        self.root = root
        self.host = host
        """What its parts keep for all projects; None: it is opened alone."""
        self.path = Path(os.fsdecode(root))
        self.options = options
        self._ripgrep = ripgrep
        self._scheduler = scheduler or Scheduler()
        self.is_bare = is_bare(self.path)
        """Whether the root is a bare repository: questions are then about HEAD."""
        self.read_only = options.read_only or self.is_bare
        self._has_warned = False
        self.progress = Progress()
        stages = tuple(stage for part in parts for stage in part.stages)
        versions = name_versions(options.stages or stage_versions(), stages)
        functions: dict[str, str] = {}
        for part in parts:
            functions.update(part.indexer_functions)
        self.store = (stores or Stores(stages)).find(
            options.cache_dir,
            root,
            options.workers,
            versions,
            functions,
            options.owner,
        )
        self.index = ProjectIndex(self.store.file, root, versions, stages)
        self._watcher = SwitchableWatcher(
            lambda: watch(root, native=options.native_watch)
        )
        # Before anything below it is opened: a later folder at this path is another
        # one.
        self._identity = _identity(self.path)
        self._folder = RootFolder(root, self._identity)
        walk = replace(options.walk, private=options.private, nothing=self.is_bare)
        self.walker = Walker(root, walk, folder=self._folder)
        self.tree = Tree(self._folder, self.walker, self._watcher, outside)
        self.freshness = Freshness(self.tree, self._watcher)
        self.lookups = Lookups(
            self, self._folder, str(self.index.file), self._scheduler, workers
        )
        job = ProjectJob(
            self._folder, options.max_file_size, options.kept_bytes, options.kept_days
        )
        self.indexing = ProjectIndexing(
            job,
            self.index,
            self.tree,
            self.progress,
            options.embedding,
            self.store.scheduler,
        )
        self.asked_at = anyio.current_time()
        """When somebody last wanted the project."""
        self.subscribers = 0
        self.calls = WeakSet[object]()
        """Calls in flight about it."""
        self.label = ""
        """What answers call it if it is no project: the name and version of a library."""
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._size: _CountedSize | None = None
        self._unfinished = True
        self.own_folder = writes_folder(options.state_dir, root)
        """Holds what is kept for the project besides its index: journals of writes, imported symbols."""
        self.editor = Editor(
            Root(root, os.fsencode(self.own_folder), options.private), options.limits
        )
        self._services = Services[ProjectService].make(
            (part.project_services for part in parts), self
        )

    @property
    def generation(self) -> int:
        """The index's generation; grows with each stored batch."""
        return self.tree.generation

    @property
    def folder(self) -> RootFolder:
        """The root as it was opened."""
        return self._folder

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for the project; raises Unavailable if the part is left out."""
        return self._services.find(key)

    @property
    def is_closed(self) -> bool:
        """Whether the project was closed, so that what is known becomes outdated."""
        return self._scope.cancel_called

    # Opening and closing

    async def open(self, tasks: TaskGroup) -> None:
        """Recover writes left unfinished by a killed daemon, load the index, watch, and keep the index up to date."""
        if not self.options.indexes:
            self.progress.enter("failed", self.options.unindexed)
        try:
            for service in self._services:
                await anyio.to_thread.run_sync(service.recover)
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
        self.lookups.close()
        for service in self._services:
            service.close()
        self._watcher.close()
        self.editor.close()
        self.index.close()

    def is_idle(self) -> bool:
        """Whether nobody has wanted it for long, waits for a change or for its index."""
        waited = anyio.current_time() - self.asked_at
        return waited > UNASKED_SECONDS and not self.is_in_use and self.is_up_to_date

    @property
    def is_in_use(self) -> bool:
        """Whether a call is about it, or a client waits for its changes."""
        return bool(self.subscribers or self.calls)

    @property
    def is_up_to_date(self) -> bool:
        """Whether nothing is left to index, or it has failed."""
        return self.progress.stage in {"ready", "failed"}

    def take_warnings(self) -> tuple[str, ...]:
        """Return what is wrong with the project's settings, for the first command that shows it; then nothing."""
        if self._has_warned:
            return ()
        self._has_warned = True
        return self.options.settings_warnings

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
        self._unfinished = not loaded.done.issuperset(self.store.scheduler.stages)
        self.progress.updated = loaded.updated

    def drop_index(self, why: str) -> None:
        """Close the index; it is set aside."""
        for service in self._services:
            service.forget_index()
        self.index.close()
        self.progress.detail = f"index set aside: {why}"

    async def _run(self) -> None:
        try:
            with self._scope:
                await anyio.sleep(
                    EVENT_PAUSE
                )  # usually a question has opened the project
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
                if (
                    not self.tree.pending
                    and not self._unfinished
                    and self.index.is_open
                ):
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

    @property
    def project(self) -> "Workspace":
        """The project that this view is of: itself."""
        return self

    @property
    def revision_id(self) -> None:
        """None: the files as they are now."""

    @property
    def is_on_disk(self) -> bool:
        """True: its texts are the files on disk."""
        return True

    @property
    def is_stored(self) -> bool:
        """False: it can be asked by meaning only once it is indexed."""
        return False

    @property
    def base(self) -> bytes:
        """The root: globs may begin with it."""
        return self.root

    @property
    def stages(self) -> Collection[str]:
        """The late stages of the index that have all texts."""
        return self.indexing.done

    def current(self, buffers: Buffers | None = None) -> "Workspace | UnsavedView":
        """Return its files as they are now, those open in a client's editor with their unsaved texts."""
        buffers_below: dict[bytes, Buffer] = {}
        if buffers:
            buffers_below = buffers.below(self.walker.root)
        if not buffers_below:
            return self
        texts = {path: buffer.text() for path, buffer in buffers_below.items()}
        behind = [path for path, buffer in buffers_below.items() if buffer.is_behind]
        return UnsavedView(self, texts, tuple(behind))

    def count_extra(self) -> int:
        """Return 0: no file is searched that is not on disk."""
        return 0

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
            sources=tuple(service.open_source for service in self._services),
        )

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files as known now, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        return self.tree.paths(keep, part)

    async def search(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer:
        """Answer an exact question about the project as known now (``refresh`` first unless stale data is acceptable).

        ``max_file_size``: overrides the setting.
        """
        return await self.lookups.search(question, max_file_size)

    async def search_fresh(
        self, question: Question, *, max_file_size: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer an exact question after a refresh; return also whether the answer equals the disk."""
        # Before the files are listed, ripgrep may answer from its own walk before a
        # listing would end.
        answer = await self.lookups.search_before_listing(
            question, max_file_size=max_file_size
        )
        if answer is not None:
            return answer, True
        fresh = await self.refresh()
        return await self.search(question, max_file_size=max_file_size), fresh

    async def resolve(self, path: str, *, folder: bool = False) -> bytes:
        """Return a file or folder that a caller named, relative to the root; raises NotFound, Forbidden."""
        if folder:
            find = folder_of
        else:
            find = place_of
        return await anyio.to_thread.run_sync(
            find, self.root, path, self.options.private
        )

    async def read(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes; raises as ``Root.open_file``, and TooLarge beyond ``most`` bytes."""

        def read_file() -> bytes:
            descriptor, status, _ = self.editor.root.open_file(path)
            with Descriptor(descriptor):
                if status.st_size > most:
                    message = f"too large to send: {path_to_text(path)}"
                    raise TooLarge(
                        message, observed_bytes=status.st_size, limit_bytes=most
                    )
                return read_all(descriptor, status.st_size)

        return await anyio.to_thread.run_sync(read_file)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""
        return await self.in_turn(partial(read_slice, self.editor, path, query))

    async def find_files(
        self, options: GlobOptions, window: Window, deadline: float | None
    ) -> GlobPage:
        """Return the files that match wildcards; ``deadline`` is on the clock of time.monotonic()."""
        is_known = self.tree.is_watched and await self.refresh()

        def look(snapshot: Snapshot) -> GlobPage:
            return self.find_in(snapshot, options, window, deadline, is_known=is_known)

        return await self.in_thread(look)

    def find_in(
        self,
        snapshot: Snapshot,
        options: GlobOptions,
        window: Window,
        deadline: float | None,
        *,
        is_known: bool,
        unsaved: Mapping[bytes, tuple[int, int]] = MappingProxyType({}),
    ) -> GlobPage:
        """Return the files of a snapshot that match wildcards; call it in a thread.

        ``is_known``: the tree is watched and listed, so that only files are looked at that match; else the folders are
        walked. ``unsaved``: sizes in bytes and times in nanoseconds that replace those on disk.
        """
        if is_known:
            present_files = self.tree.known(snapshot)
        else:
            present_files = None
        return find(
            self.root,
            options,
            window,
            deadline=deadline,
            known=present_files,
            unsaved=unsaved,
        )

    def list_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return the files changed since a time, at most so many."""
        return self.tree.find_recent(since_ns, most)

    def make_vectors_anew(self) -> None:
        """Make the vectors anew: those that are stored cannot be read."""
        self.indexing.make_vectors_anew()

    def coverage(
        self,
        stats: SearchStats,
        *,
        fresh: bool,
        started: float,
        keep: PathFilter | None = None,
    ) -> Coverage:
        """Return the coverage of an answer; ``started`` on the clock of time.perf_counter()."""
        return cover_tree(
            self,
            self,
            stats,
            fresh=fresh,
            started=started,
            keep=keep,
        )

    def rest(self, seconds: float) -> bool:
        """Free memory that no question has needed for this long; return whether there was any."""
        self.tree.table.rest()  # made again within 10 ms
        rested = [service.rest(seconds) for service in self._services]
        return any(rested)

    async def in_thread(
        self, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True
    ) -> ResultT:
        """Run a lookup in a thread; a damaged index is set aside, and the lookup repeated without it."""
        del symbols  # all texts are indexed with them
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
        if self._size is None or self._size.key != key:
            began = time.monotonic()
            size = await self.in_thread(
                lambda snapshot: (
                    snapshot.own_index.size() if snapshot.own_index else None
                )
            )
            now = time.monotonic()
            pause = min(MOST_STALE_SECONDS, COUNT_PAUSES * (now - began))
            self._size = _CountedSize(key, size, now + pause)
        return self._size.size

    async def recent_size(self) -> IndexSize | None:
        """Return what ``size`` does or, while a stage of the index is made, what it did a little earlier."""
        counted = self._size
        if counted is None or self.index.reader is None:
            return await self.size()
        stage = self.progress.stage
        is_current = time.monotonic() < counted.recent_until
        if stage == "ready" or stage != counted.key[-1]:
            is_current = False
        if counted.size is None or not is_current:
            return await self.size()
        return counted.size

    # Indexing

    def keep_texts(
        self, contents: Collection[tuple[bytes, bytes]], *, parse: bool
    ) -> None:
        """Store contents of a revision, by blob id and a path; ``parse``: with their symbols."""
        if self.options.indexes and self.options.kept_bytes:
            self.indexing.keep(contents, parse=parse)

    async def wait_indexed(self) -> None:
        """Wait until the index has every text (symbols may still be parsed), or indexing has failed."""
        await self.refresh()
        while self.progress.stage != "failed" and (
            self.tree.pending or self.progress.stage not in WITH_ALL_GRAMS
        ):
            await self.indexing.pause()

    async def wait_parsed(self) -> None:
        """Wait until every text's symbols are stored as well."""
        await self.wait_indexed()
        while self.progress.stage != "failed" and self._lacks("symbols"):
            await self.indexing.pause()

    async def wait_embedded(self) -> None:
        """Wait until every chunk has its vector, or the embedder turns out not to answer."""
        await self.wait_parsed()
        while (
            self.progress.stage != "failed"
            and not self.progress.problem
            and self._lacks("vectors")
        ):
            await self.indexing.pause()

    def _lacks(self, stage: LateStage) -> bool:
        """Return whether a late stage has not reached every text yet, and some part makes it."""
        return stage in self.store.scheduler.stages and stage not in self.indexing.done

    @property
    def embedding(self) -> str:
        """The settings of the embedder, as JSON."""
        return self.indexing.embedding

    def embed_by(self, embedding: str) -> None:
        """Create vectors with the embedder of other settings; the old ones serve until they are ready."""
        if embedding != self.embedding:
            for service in self._services:
                service.change_embedding(embedding)
            self.indexing.embed_by(embedding)

    async def rebuild(self) -> None:
        """Delete the index and rebuild it."""
        if self.index.is_open:
            await self.start_anew("rebuild was asked for")
        self.progress.enter("listing")
        self.indexing.poke()

    def find_problem(self) -> str:
        """Return what parts have to say to a reader of an answer; empty if nothing."""
        problems = dict.fromkeys(service.problem for service in self._services)
        return "; ".join(filter(None, problems))

    def facts(self) -> dict[str, Any]:
        """Return the state of watching and indexing, for people."""
        return {
            "watching": not self.freshness.watch_problem,
            "watch_problem": self.freshness.watch_problem,
            "pending": len(self.tree.pending),
            "indexer_pid": self.store.scheduler.pid,
            "root_gone": self.tree.gone,
        }


class TreeView(Protocol):
    """A view of a work tree: as it is on disk, or with unsaved texts."""

    def count_extra(self) -> int:
        """Return how many files are searched that are not on disk."""

    def paths(self, keep: PathFilter | None = None, part: str = "") -> Sequence[bytes]:
        """Return the files, by path."""


def cover_tree(
    project: Workspace,
    view: TreeView,
    stats: SearchStats,
    *,
    fresh: bool,
    started: float,
    keep: PathFilter | None,
) -> Coverage:
    """Return the coverage of an answer about a work tree; ``started`` on the clock of time.perf_counter()."""
    tree = project.tree
    since = tree.listed_since
    # Only an answer over a finished listing is complete.
    is_listed = fresh or (since is not None and since <= started)
    searched = stats.files_read
    if stats.complete and since is not None:
        declined = sum(stats.skipped.values())
        if keep is None:
            searched = tree.count() + view.count_extra() - declined
        elif len(tree.table) <= COUNT_UP_TO:
            # Beyond it the number of files read is reported, and the coverage's text
            # says so.
            searched = len(view.paths(keep)) - declined
    coverage: Coverage = {
        "complete": stats.complete and is_listed,
        "fresh": fresh,
        "files_searched": searched,
        "files_skipped": tree.with_unread(stats.skipped),
        "stage": project.progress.stage,
        "generation": project.generation,
        "took_ms": milliseconds_since(started),
    }
    details = [
        f"the library {project.label}" if project.label else "",
        BARE if project.is_bare else project.find_problem(),
        "" if is_listed else UNLISTED,
        stats.detail,
        "" if project.options.owner else project.freshness.swept_because,
        project.freshness.link_problem,
        project.progress.detail,
    ]
    unused = project.walker.unused_rules().encode("utf-8", "replace").decode()
    if unused:
        details.append(f"more files than ignore rules leave: {unused}")
    if any(details):
        coverage["detail"] = "; ".join(filter(None, details))
    return coverage


@dataclass(frozen=True, slots=True)
class UnsavedView:
    """A project with unsaved texts, as if they were saved; a ``View``.

    Ignore rules are those on disk: an ignore file's unsaved text is searched, but applies only once saved.
    """

    project: Workspace
    texts: Mapping[bytes, UnsavedText]
    """By path from the root."""
    behind: tuple[bytes, ...] = ()
    """Files with a refused edit: the client's text differs from ours."""

    @property
    def revision_id(self) -> None:
        """None: the files as they are now."""

    @property
    def is_on_disk(self) -> bool:
        """False: some texts are not saved."""
        return False

    @property
    def is_stored(self) -> bool:
        """False: it can be asked by meaning only once the project is indexed."""
        return False

    @property
    def base(self) -> bytes:
        """The root: globs may begin with it."""
        return self.project.root

    @property
    def stages(self) -> Collection[str]:
        """The late stages of the index that have all texts."""
        return self.project.stages

    async def refresh(self) -> bool:
        """Read all events of what was saved before this call."""
        return await self.project.refresh()

    def find_new(self) -> list[bytes]:
        """Return the files that exist only as unsaved texts."""
        # Excluded files are not searched, saved or not.
        tree = self.project.tree
        accepts = self.project.walker.accepts
        return sorted(
            path for path in self.texts if not tree.has(path) and accepts(path)
        )

    def count_extra(self) -> int:
        """Return how many files are searched that are not on disk."""
        return len(self.find_new())

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        paths = self.project.paths(keep, part)
        new = self.find_new()
        folded = part.encode(errors="surrogateescape").lower()
        new = [path for path in filter(keep, new) if folded in path.lower()]
        # Copy only if something is added: the list belongs to the table.
        if new:
            paths = [*paths]
        for path in new:
            insort(paths, path)
        return paths

    def prepare(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot of the project with the texts."""
        return snapshot.with_buffers(self.texts, self.project.walker.accepts)

    async def search(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer:
        """Answer an exact question; ``max_file_size``: other than the setting."""
        return await self.project.lookups.search(question, max_file_size, self.prepare)

    async def search_fresh(
        self, question: Question, *, max_file_size: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer an exact question after a refresh; return also whether the answer equals the disk."""
        fresh = await self.refresh()
        return await self.search(question, max_file_size=max_file_size), fresh

    async def find_files(
        self, options: GlobOptions, window: Window, deadline: float | None
    ) -> GlobPage:
        """Return the files that match wildcards, with the sizes and times of unsaved texts."""
        project = self.project
        is_known = project.tree.is_watched and await project.refresh()

        def look(snapshot: Snapshot) -> GlobPage:
            # Only now, since making the snapshot compares the texts with the disk.
            changed = {
                path: (len(text.data), text.time_ns)
                for path, text in self.texts.items()
                if not text.is_saved
            }
            return project.find_in(
                snapshot, options, window, deadline, is_known=is_known, unsaved=changed
            )

        return await self.in_thread(look)

    def list_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return the files changed since a time, at most so many, and those that are open."""
        return self.project.list_recent(since_ns, most).union(self.texts)

    async def resolve(self, path: str, *, folder: bool = False) -> bytes:
        """Return a file or folder that a caller named, relative to the root; raises NotFound, Forbidden."""
        try:
            return await self.project.resolve(path, folder=folder)
        except NotFound:
            # A new file, never saved: only the editor has it.
            if folder or not self.has(path):
                raise
            return self.locate(path_from_json(path))

    async def read(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes, unsaved or not; raises as ``Workspace.read``."""
        located = self.locate(path)
        if located not in self.texts:
            return await self.project.read(path, most)
        data = self.texts[located].data
        if len(data) > most:
            raise TooLarge(
                f"too large to send: {path_to_text(path)}",
                observed_bytes=len(data),
                limit_bytes=most,
            )
        return data

    def coverage(
        self,
        stats: SearchStats,
        *,
        fresh: bool,
        started: float,
        keep: PathFilter | None = None,
    ) -> Coverage:
        """Return the coverage of an answer; ``started`` on the clock of time.perf_counter()."""
        coverage = cover_tree(
            self.project,
            self,
            stats,
            fresh=fresh,
            started=started,
            keep=keep,
        )
        if self.behind:
            names = ", ".join(map(path_to_text, self.behind[:MOST_NAMED]))
            problem = f"an edit was refused, so the text before it is used; open again: {names}"
            coverage["detail"] = "; ".join(
                filter(None, (coverage.get("detail"), problem))
            )
        coverage["unsaved"] = sum(not text.is_saved for text in self.texts.values())
        return coverage

    async def in_thread(
        self, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True
    ) -> ResultT:
        """Run a lookup in a thread."""
        del symbols  # all texts are indexed with them
        return await self.project.in_thread(
            lambda snapshot: ask(self.prepare(snapshot))
        )

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something that needs no snapshot but may take long, in a thread."""
        return await self.project.in_turn(work)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""
        inside = self.locate(path)
        if inside not in self.texts:
            return await self.project.read_slice(path, query)
        text = self.texts[inside]
        return await self.in_turn(
            lambda: slice_content(self.project.editor, inside, text.data, query)
        )

    def locate(self, path: bytes) -> bytes:
        """Return a file's path relative to the root, with links resolved if it has an unsaved text.

        Raises:
            Forbidden: an absolute path is outside.

        """
        inside = self.project.editor.root.relative(path)
        if inside in self.texts or b"\0" in inside:  # what opens the latter refuses it
            return inside
        root = self.project.walker.root
        # Editors send the path that was opened, which may go through a link; texts are
        # kept by the real one.
        return os.path.relpath(os.path.realpath(root + b"/" + inside), root)

    def has(self, path: str) -> bool:
        """Return whether a file with an unsaved text is at a path, or below it."""
        inside = self.locate(path_from_json(path))
        return any(
            text == inside or text.startswith(inside + b"/") for text in self.texts
        )


def find_idle(projects: Collection[Workspace]) -> list[Workspace]:
    """Return the open projects that are to be closed: asked for longest ago, and more than stay open."""
    unasked = sorted(
        (project for project in projects if project.is_idle()),
        key=lambda one: one.asked_at,
    )
    return unasked[: max(0, len(projects) - MOST_UNASKED)]


def order_for_closing(projects: Collection[Workspace]) -> list[Workspace]:
    """Return the open projects that nobody uses now, those first that are cheapest to close and to open again.

    These are the indexed ones, then those that wait for an indexer: one at work has to be stopped, and its work is
    lost. Among them the one asked for longest ago comes first.
    """

    def weigh(workspace: Workspace) -> tuple[bool, bool, float]:
        has_indexer = workspace.store.scheduler.pid is not None
        return not workspace.is_up_to_date, has_indexer, workspace.asked_at

    return sorted(
        (workspace for workspace in projects if not workspace.is_in_use), key=weigh
    )


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
