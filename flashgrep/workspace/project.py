"""A project open in the daemon: its files, its index, its watch; every question goes through here."""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from flashgrep.edit.editor import Editor
from flashgrep.edit.journal import recover
from flashgrep.edit.limits import Limits
from flashgrep.edit.root import Root
from flashgrep.errors import Busy
from flashgrep.index import schema
from flashgrep.index.reader import Reader
from flashgrep.index.rows import IndexSize
from flashgrep.index.table import FileTable
from flashgrep.ingest.walk import Walker
from flashgrep.ingest.watch import watch
from flashgrep.memory import give_back
from flashgrep.search.exact import Answer, Question, Search, View
from flashgrep.search.sift import Sieve
from flashgrep.search.symbol_source import ViewSource
from flashgrep.search.symbols import SymbolQuestion, SymbolSearch
from flashgrep.search.words import search_words
from flashgrep.specs.vectors import SpecVectors
from flashgrep.workspace.indexing import IndexerChild, IndexerFailed, Indexing
from flashgrep.workspace.progress import Progress
from flashgrep.workspace.state import state_folder
from flashgrep.workspace.tree import Tree

QUIET_SECONDS = 0.1
"""Changes are handed to the indexer once none has come for so long: an editor's save is several events."""

BURST_SECONDS = 2.0
"""But at the latest after so long: a build that writes without end is indexed as it goes."""

INDEXER_IDLE_SECONDS = 20.0
EVENT_PAUSE = 0.05
"""Events wake the daemon at most so often; a question reads them itself, without waiting for this."""
SWEEP_SHARE = 50
"""Where nothing can be watched, the daemon rests so many times as long as its last look at the whole tree took."""

END_SECONDS = 5.0
"""Background work ends at its next wait, well within this."""

FIRST_RETRY_SECONDS = 0.5
RETRY_SECONDS = 30.0
"""After a failure the indexer is tried again: soon first (it was killed, say), then twice as late each time up to this
(a full disk, say); answers come from scans meanwhile."""

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

MOST_ROUNDS = 50
"""A barrier follows a tree that changes while it is read so many times; then the answer says that it is not fresh."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceOptions:
    """What the settings say about one project."""

    fallback_state: Path
    """Where the state of a project goes whose own folder cannot be written."""
    max_file_size: int = 64 << 20
    workers: int = 2
    read_only: bool = False
    limits: Limits = field(default_factory=Limits)
    spec_folders: tuple[str, ...] = ()
    """Folders of specifications, relative to the root; `*` in a name stands for any text."""
    native_watch: bool = True


class Workspace:
    """One project, from the moment it is opened."""

    def __init__(self, name: str, root: bytes, options: WorkspaceOptions, sieve: Sieve | None = None) -> None:
        self.name = name
        self.root = root
        self.path = Path(os.fsdecode(root))
        self.options = options
        self.sieve = sieve
        self.read_only = options.read_only
        self.progress = Progress()
        self.generation = 0
        self.swept_because = ""
        self.state_dir = state_folder(root, options.fallback_state)
        self._index = Path(os.fsdecode(self.state_dir)) / "index.db"
        self._watcher = watch(root, native=options.native_watch)
        self.walker = Walker(root)
        self.tree = Tree(root, self.walker, self._watcher)
        self._reader: Reader | None = None
        self._lock = anyio.Lock()
        self._work = anyio.Event()
        self._idle = anyio.Event()
        self._batch = 0
        self._failures = 0
        self._folder = _identity(self.path)
        self._child: IndexerChild | None = None
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._listed = False
        self._size: tuple[object, IndexSize | None] | None = None
        self._unfinished = False
        self._parsed = False
        self.spec_vectors = SpecVectors()
        self.editor = Editor(Root(root, self.state_dir), options.limits)

    # Opening and closing

    async def open(self, tasks: TaskGroup) -> None:
        """Load what is indexed, start watching, and keep the index up to date in the background."""
        await anyio.to_thread.run_sync(self._load)
        tasks.start_soon(self._run)

    async def close(self) -> None:
        """Stop watching and indexing; what is stored stays."""
        self._scope.cancel()
        with anyio.move_on_after(END_SECONDS, shield=True):
            await self._ended.wait()
        if self._child is not None:
            await self._child.close()
            self._child = None
        self._watcher.close()
        self.editor.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def lost(self) -> bool:
        """Return whether the root is not the folder that was opened: moved, deleted, replaced or unmounted."""
        return _identity(self.path) != self._folder

    def _load(self) -> None:
        """Settle writes a killed daemon left half done; open the index, or set a broken one aside."""
        recover(self.editor.root)
        try:
            reader = Reader(self._index)
            try:
                self.tree.table = FileTable.of(reader.files())
            except schema.Damaged:
                reader.close()
                raise
            self._reader = reader
            size = reader.size()
            self.generation = size.generation
            unparsed = reader.unparsed()
            self._parsed = not unparsed
            self._unfinished = size.words < size.blobs or bool(unparsed)
            self.progress.updated = self._index.stat().st_mtime
        except schema.Damaged as damage:
            self._set_aside(str(damage))
        except (OSError, sqlite3.Error) as error:
            if self._index.exists():
                self.progress.detail = f"the index cannot be opened: {error}"

    def _set_aside(self, why: str) -> None:
        with contextlib.suppress(OSError):
            schema.set_aside(self._index)
        self.progress.detail = f"index set aside: {why}"

    async def _run(self) -> None:
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._follow)
                    tasks.start_soon(self._keep_indexed)
        finally:
            self._ended.set()

    # Freshness

    async def refresh(self) -> bool:
        """Take in all that was saved before this call; True: what is answered now is the disk as it is."""
        async with self._lock:
            if not self._listed:
                await self._sweep()
                self._listed = True
                if not self.tree.pending and not self._unfinished and self._reader is not None:
                    self.progress.enter("ready")
            fresh = await self._settle()
            if self.tree.pending or self._unfinished:
                self._unfinished = False
                self._work.set()
        return fresh

    async def _settle(self) -> bool:
        if self._watcher.failed:
            self.swept_because = self._watcher.failed
            await self._sweep()
            return True
        if self._watcher.fileno() is None and not await anyio.to_thread.run_sync(self._watcher.settle, 0.25):
            await self._sweep()
        for _ in range(MOST_ROUNDS):
            changes = self._watcher.drain()
            if self.tree.rules_changed():
                await self._sweep()
            elif not changes:
                return True
            work = self.tree.take(changes)
            if work.sweep:
                await self._sweep()
                continue
            for folder in work.folders:
                entries = await anyio.to_thread.run_sync(self.tree.list_folder, folder)
                self.tree.take_folder(folder, entries)
        return False

    async def _sweep(self) -> None:
        self.tree.take_sweep(await anyio.to_thread.run_sync(self.tree.sweep))

    async def _follow(self) -> None:
        """Read events as they come, so that the queue does not overflow and the index follows."""
        took = await self._timed_refresh()
        number = self._watcher.fileno()
        while True:
            if number is not None:
                await anyio.wait_readable(number)
            pause = EVENT_PAUSE if number is not None else 1
            await anyio.sleep(max(pause, SWEEP_SHARE * took) if self._watcher.failed else pause)
            took = await self._timed_refresh()

    async def _timed_refresh(self) -> float:
        begun = anyio.current_time()
        await self.refresh()
        return anyio.current_time() - begun

    def mark_changed(self, paths: Sequence[bytes]) -> None:
        """Take note of paths written by ourselves: the next question reads them from disk."""
        self.tree.mark_changed(paths)
        self._work.set()

    # Questions

    def view(self) -> View:
        """Return the project as it is known now."""
        tree = self.tree
        return View(
            self.root,
            tree.table,
            self._reader,
            dict(tree.pending),
            self.options.max_file_size,
            self.sieve,
            worded=self.progress.stage in {"symbols", "ready"},
            parsed=self._parsed,
        )

    def paths(self) -> list[bytes]:
        """Return all files as known now, by path."""
        pending = self.tree.pending
        settled = [path for path in self.tree.table.paths if path not in pending] if pending else self.tree.table.paths
        return sorted([*settled, *(path for path, mark in pending.items() if mark.ours)]) if pending else settled

    async def search(self, question: Question, *, max_file_size: int | None = None) -> Answer:
        """Answer an exact question about the project as known now (``refresh`` first, unless stale will do).

        ``max_file_size``: larger files than the setting allows are looked at too, or smaller ones declined.
        """
        stop: list[bool] = []
        asked = _stoppable(question, stop)

        def ask(view: View) -> Answer:
            seen = view if max_file_size is None else view.with_size(max_file_size)
            return Search(seen, asked).run()

        try:
            return await self.in_thread(ask)
        finally:
            stop.append(True)

    async def find_definition(self, name: str) -> tuple[bytes, int, int] | None:
        """Return the path and lines of the best definition of a name, which may be qualified; None without one."""
        question = SymbolQuestion(name=name, roles=frozenset({"definition"}), limit=1)
        answer = await self.in_thread(lambda view: SymbolSearch(ViewSource(view), question).run())
        if not answer.results:
            return None
        found = answer.results[0]
        return found.path, found.occurrence.start_line, found.occurrence.end_line

    async def words(self, text: str, limit: int, keep: Callable[[bytes], bool] | None) -> Answer:
        """Return the best texts for words."""
        return await self.in_thread(lambda view: search_words(view, text, limit, keep))

    async def in_thread(self, ask: Callable[[View], ResultT]) -> ResultT:
        """Run a look-up in a thread; an index found damaged is set aside, and the look-up done without it."""
        try:
            return await anyio.to_thread.run_sync(ask, self.view(), abandon_on_cancel=True)
        except schema.Damaged as damage:
            await self._start_anew(str(damage))
        except sqlite3.OperationalError as error:  # somebody has it locked, or it cannot be opened just now
            self.progress.detail = f"the index cannot be read: {error}"
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise Busy(f"out of resources: {error.strerror}") from error
            raise
        return await anyio.to_thread.run_sync(ask, replace(self.view(), reader=None), abandon_on_cancel=True)

    async def _start_anew(self, why: str) -> None:
        async with self._lock:
            if self._reader is None:
                return
            self._reader.close()
            self._reader = None
            if self._child is not None:
                await self._child.close()
                self._child = None
            self._set_aside(why)
            self.tree.reset()
            await self._sweep()
            self._work.set()

    async def size(self) -> IndexSize | None:
        """Return what the index holds; None without one. Counted again only when the index has changed."""
        if self._reader is None:
            return None
        key = (self.generation, self.progress.words_left, self.progress.stage)
        if self._size is None or self._size[0] != key:
            self._size = (key, await self.in_thread(lambda view: view.reader.size() if view.reader else None))
        return self._size[1]

    # Indexing

    async def wait_indexed(self) -> None:
        """Wait until the index has every text and its words (symbols may still be parsed), or indexing has failed."""
        await self.refresh()
        while self.tree.pending or self.progress.stage not in {"symbols", "ready", "failed"}:
            if self.progress.stage == "failed":
                return
            self._work.set()
            await self._idle.wait()

    async def wait_parsed(self) -> None:
        """Wait until every text's symbols are stored as well."""
        await self.wait_indexed()
        while not self._parsed and self.progress.stage != "failed":
            self._work.set()
            await self._idle.wait()

    async def rebuild(self) -> None:
        """Throw the index away and build it anew."""
        if self._reader is not None:
            await self._start_anew("rebuild was asked for")
        self.progress.enter("listing")
        self._work.set()

    async def _keep_indexed(self) -> None:
        while True:
            with anyio.move_on_after(INDEXER_IDLE_SECONDS) as patience:
                await self._work.wait()
            if patience.cancelled_caught:
                await self._drop_child()
                await self._work.wait()
            self._work = anyio.Event()
            await self._quiet()
            try:
                await self._index_all()
                self.progress.enter("ready", self.progress.detail if self._reader is None else "")
                schema.drop_aside(self._index)
                give_back()
                self._failures = 0
                self._tell_idle()
            except IndexerFailed as failure:
                await self._failed(failure)
            except schema.Damaged as damage:
                await self._failed(IndexerFailed("damaged", str(damage)))
            except (OSError, sqlite3.Error) as error:  # no process or descriptor to be had, a locked database
                await self._failed(IndexerFailed("error", str(error)))

    def _tell_idle(self) -> None:
        self._idle.set()
        self._idle = anyio.Event()

    async def _failed(self, failure: IndexerFailed) -> None:
        await self._drop_child()
        if failure.reason == "damaged":
            await self._start_anew(failure.detail)
            self._set_aside(failure.detail)
        else:
            self.progress.enter("failed", f"{failure.reason}: {failure.detail}")
            self._tell_idle()
        await anyio.sleep(min(RETRY_SECONDS, FIRST_RETRY_SECONDS * 2**self._failures))
        self._failures += 1
        self._work.set()

    async def _drop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    async def _quiet(self) -> None:
        """Wait until changes pause."""
        until = time.monotonic() + BURST_SECONDS
        seen = -1
        while self._listed and time.monotonic() < until and len(self.tree.pending) != seen:
            seen = len(self.tree.pending)
            await anyio.sleep(QUIET_SECONDS)

    async def _index_all(self) -> None:
        """Have everything indexed: changed files first, then words, then merging, then symbols."""
        await self._index_texts()
        left, before = -1, 0
        while left and (left != before or self.tree.pending):  # texts that are gone from the disk cannot be parsed
            if self.tree.pending:
                await self._index_texts()
            before, left = left, await (await self._indexer()).symbols()
            self.progress.symbols_left = left
            if left:
                self.progress.enter("symbols")
                self._tell_idle()
        self._parsed = not left and not self.tree.pending

    async def _index_texts(self) -> None:
        """Have grams and words stored until nothing is pending."""
        words_left = 1
        while self.tree.pending or words_left:
            if self._reader is not None and self._reader.replaced():
                await self._start_anew("the database was deleted or replaced")
            child = await self._indexer()
            if self.tree.pending:
                self._parsed = False
                await self._update(child)
                words_left = max(words_left, 1)
            else:
                words_left = await child.words()
                self.progress.words_left = words_left
                if words_left:
                    self.progress.enter("words")
        await (await self._indexer()).merge()
        await self._open_reader()

    async def _open_reader(self) -> None:
        if self._reader is None:
            self._reader = await anyio.to_thread.run_sync(Reader, self._index)

    async def _indexer(self) -> IndexerChild:
        if self._child is not None:
            return self._child
        how = Indexing(self.root, str(self._index), self.options.max_file_size, self.options.workers)
        with anyio.CancelScope(shield=True):  # a process that nobody holds could not be ended
            self._child = child = await IndexerChild.start(how)
        return child

    async def _update(self, child: IndexerChild) -> None:
        sent = dict(self.tree.pending)
        self._batch += 1
        progress = self.progress
        progress.enter("indexing")
        progress.files_done, progress.files_total = 0, len(sent)
        progress.bytes_done, progress.bytes_total = 0, sum(mark.size for mark in sent.values())
        progress.started = time.monotonic()
        async for part in child.update(self._batch, sent):
            await self._open_reader()
            self.tree.stored(sent, part.rows, part.gone)
            self.generation = part.generation
            progress.files_done += len(part.rows) + len(part.gone)
            progress.bytes_done += part.bytes_read
            progress.updated = time.time()

    def facts(self) -> dict[str, Any]:
        """Return the state of watching and indexing, for people."""
        return {
            "watching": not self._watcher.failed,
            "watch_problem": self._watcher.failed,
            "pending": len(self.tree.pending),
            "indexer_pid": self._child.pid if self._child else None,
            "root_gone": self.tree.gone,
        }


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stoppable(question: Question, stop: list[bool]) -> Question:
    """Return the question with a look at ``stop``, which is filled when nobody waits for the answer any more."""
    fields = {name: getattr(question, name) for name in question.__slots__}
    return Question(**fields | {"stopped": lambda: bool(stop)})
