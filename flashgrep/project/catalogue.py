"""All projects of one user: which are known, which are open, and which one a call is about."""

import contextlib
import gc
import json
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from weakref import WeakSet, WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from flashgrep.api.host import ProjectInfo
from flashgrep.api.part import Part, make_registry
from flashgrep.api.searchers import Searchers
from flashgrep.api.service import HostService, ServedAnswer, ServiceKey, Services
from flashgrep.base.config import Embedding, Loaded, Settings
from flashgrep.base.cores import count_cores
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.base.failures import FailureLog
from flashgrep.base.machine import release_memory
from flashgrep.base.model import path_to_text
from flashgrep.base.own_folders import (
    INDEX,
    PrivateFolders,
    identify,
    library_owner,
    remove_former,
    store_folder,
    writes_folder,
)
from flashgrep.base.paths import CACHE_FOLDER, private_folders
from flashgrep.base.plain_files import read_plain_file, replace_plain_file
from flashgrep.base.registry import Call, Session
from flashgrep.base.scheduler import Scheduler
from flashgrep.base.unused_pools import UnusedPools
from flashgrep.files import attributes, owners
from flashgrep.files.buffers import Buffers
from flashgrep.files.editor import Limits
from flashgrep.files.outside import OutsideWatch
from flashgrep.files.repositories import is_bare
from flashgrep.files.scopes import WalkOptions
from flashgrep.files.subtrees import Subtrees
from flashgrep.pattern import forget_patterns
from flashgrep.project import Workspace, WorkspaceOptions
from flashgrep.project.lookup_workers import LookupWorkers
from flashgrep.project.project import (
    MOST_OPEN,
    LibraryFolder,
    find_idle,
    order_for_closing,
)
from flashgrep.project.stores import Stores, find_gone
from flashgrep.search.ripgrep import ripgrep_of

log = FailureLog()

PROJECTS_FILE = "projects.json"
ServiceT = TypeVar("ServiceT")
IDLE_SECONDS = 60.0
"""Seconds after which unused models are unloaded; loading them again takes 0.1 s."""
FLOOD_SECONDS = 2.0
"""Total seconds of lookups after which memory may be worth giving back: a compiled pattern has up to 100 MB, and 64 of
them are kept."""
RECOVERY_SECONDS = 5.0
"""Seconds without a lookup after which it is given back."""

TIDY_SECONDS = 3600.0
"""Seconds between two looks at what parts have stored that nobody uses any more."""
COLLECT_SECONDS = 60.0
"""Seconds of work without such a rest after which garbage is collected all the same: a busy daemon never rests."""

VISITED = "the folder is no project: it is read and searched, not indexed; index_codebase makes it one"
LARGE = "too large to be indexed: each question reads its files"
ALONE = "nothing is indexed: no daemon runs"
HOW_TO_GET_A_PROJECT = (
    "start the client in a project's folder, pass `project` (a name or an absolute path), "
    "or call index_codebase with the absolute path of a folder"
)


class Catalogue:
    """Projects by name and root, opened on first use."""

    def __init__(  # noqa: PLR0913 - all by name, from the one assembler
        self,
        *,
        state_dir: Path,
        cache_dir: Path | None = None,
        settings: Settings,
        parts: Sequence[Part],
        settings_for: Callable[[Path], Loaded] | None = None,
        on_open: Callable[[Path], None] | None = None,
        on_forget: Callable[[Path], None] | None = None,
        environ: Mapping[str, str] | None = None,
        indexes: bool = True,
        most_open: int = MOST_OPEN,
    ) -> None:
        """Create a catalogue; with ``indexes`` False it only scans. ``most_open``: projects that are open at once.

        ``cache_dir``: the folder of indexes, by default below the state folder. ``environ`` has the keys of embedding
        providers and names flashgrep's own folders. ``settings_for`` returns the settings of the project at a root; it
        is called in a thread, since it reads a file of the project. ``on_open`` is called for each project being
        opened, ``on_forget`` for each removed one.
        """
        self.environ = environ or {}
        self.buffers = WeakSet[Buffers]()
        """Of all connections."""
        self.settings = settings
        self.parts = parts
        self.registry = make_registry(parts)
        """The methods of the parts."""
        self.searchers = Searchers.join(part.searchers for part in parts)
        """Questions that parts answer."""
        self._settings_for = settings_for or (lambda _root: Loaded(settings, {}))
        self._on_open = on_open or (lambda _root: None)
        self._on_forget = on_forget or (lambda _root: None)
        self._indexes = indexes
        self._most_open = most_open
        self._starting = 0
        """Projects that are being opened, which takes seconds each."""
        self.state_dir = state_dir
        self.cache_dir = cache_dir or state_dir / CACHE_FOLDER
        self._private = PrivateFolders(
            [str(state_dir), str(self.cache_dir), *private_folders(self.environ)]
        )
        self._file = state_dir / PROJECTS_FILE
        self._roots: dict[str, Path] = self._load()
        self._visited: dict[str, Path] = {}
        """By name: folders that a host was started in and that are no projects; read, and neither indexed nor listed.
        Lost with the daemon."""
        self._libraries: dict[Path, LibraryFolder] = {}
        """The folders of libraries among them."""
        self._subtrees: dict[Path, Subtrees] = {}
        """What is walked of those that have more than projects use."""
        self._open: dict[str, Workspace] = {}
        self._opening: set[str] = set()
        self._locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()
        self._ripgrep = ripgrep_of(self.environ)
        self._workers = LookupWorkers(count_cores())
        self._scheduler = Scheduler(self._workers)
        self._stores = Stores([stage for part in parts for stage in part.stages])
        self._outside = OutsideWatch()
        self._former: set[Path] = set()
        """Roots of projects whose index from an earlier version was removed."""
        self._services = Services[HostService].make(
            (part.host_services for part in parts), self
        )
        self._unused_pools = UnusedPools()
        self._pools_move = anyio.Lock()
        """Held while they are taken or given back."""
        self._tasks: TaskGroup | None = None
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._exit.enter_async_context(anyio.create_task_group())
        self._workers.open(self._tasks)
        self._former.update(
            await anyio.to_thread.run_sync(remove_former, self.cache_dir)
        )
        self._tasks.start_soon(self._release_models)
        self._tasks.start_soon(self._release_caches)
        self._tasks.start_soon(self._collect_while_working)
        return self

    async def __aexit__(self, *failure: object) -> None:
        # All at once: an indexer at work takes half a second to end, and as one ends
        # another's turn comes.
        async with anyio.create_task_group() as closing:
            for workspace in list(self._open.values()):
                closing.start_soon(workspace.close)
        self._workers.close()
        for service in self._services:
            service.close()
        assert self._tasks is not None  # noqa: S101 - set on entry
        self._tasks.cancel_scope.cancel()
        await self._exit.aclose()

    async def _release_caches(self) -> None:
        """Give back memory once lookups are over; after many of them, caches as well."""
        used = 0.0
        while True:
            used += await self._scheduler.wait_for_rest(RECOVERY_SECONDS)
            if used >= FLOOD_SECONDS:
                used = 0.0
                self._drop_caches()
                await self._give_pools_back()
            release_memory()  # an answer of 10,000 hits left 40 MB on the heap

    async def _collect_while_working(self) -> None:
        """Every minute with lookups, free garbage and idle connections, whether or not there is ever a rest."""
        collected_at = anyio.current_time()
        while True:
            await anyio.sleep(COLLECT_SECONDS)
            ended_at = self._scheduler.ended_at
            if ended_at is None or ended_at > collected_at:
                gc.collect()
                self._close_idle_connections()
                await self._give_pools_back()
                # After a minute of rest they are taken anyway.
                if not self._is_resting():
                    await self._return_unused_pools()
                release_memory()
                collected_at = anyio.current_time()

    def _is_resting(self) -> bool:
        """Return whether the last lookup ended some time ago."""
        ended_at = self._scheduler.ended_at
        if ended_at is None:
            return False
        return anyio.current_time() - ended_at > RECOVERY_SECONDS

    async def _take_unused_pools(self) -> None:
        """Let the system have what the interpreter does not use, an arena a step, until the next lookup."""
        async with self._pools_move:
            while self._scheduler.ended_at is not None and self._unused_pools.take():
                await checkpoint()

    async def _return_unused_pools(self) -> None:
        """Let the system have the pages of what the interpreter does not use, which it may use again at once."""
        async with self._pools_move:
            while self._unused_pools.take():
                await checkpoint()
        await self._give_pools_back()

    async def _give_pools_back(self) -> None:
        """Let the interpreter use them again, so that arenas that become empty can be returned."""
        async with self._pools_move:
            while self._unused_pools.give_back():
                await checkpoint()

    def _drop_caches(self) -> None:
        """Drop the caches that speed up lookups, and what garbage is left in cycles."""
        forget_patterns()
        owners.COMPILED.clear()
        attributes.PARSED.clear()
        self.forget_caches()
        self._close_idle_connections()
        gc.collect()  # all threads wait, 60 to 80 ms

    def _close_idle_connections(self) -> None:
        """Close what the most lookups at once took: each connection keeps up to 4 MB of pages."""
        for workspace in self._open.values():
            reader = workspace.index.reader
            if reader is not None:
                reader.shrink()

    def _choose_pause(self) -> float:
        """Return the seconds before the next look at what nobody uses: until a minute after the last lookup, if later."""
        ended_at = self._scheduler.ended_at
        if ended_at is None:  # one is running
            return IDLE_SECONDS
        pause = ended_at + IDLE_SECONDS - anyio.current_time()
        # Once that moment has passed, there is nothing to free before the next lookup.
        if pause <= 0:
            return IDLE_SECONDS
        return pause

    async def _release_models(self) -> None:
        if self._indexes:
            await self.tidy()
        forgotten_at = 0.0
        tidied_at = anyio.current_time()
        while True:
            await anyio.sleep(self._choose_pause())
            if anyio.current_time() - tidied_at >= TIDY_SECONDS:
                tidied_at = anyio.current_time()
                await self._drop_leftovers()
            is_lost = False
            for workspace in self._open.values():
                is_lost |= workspace.is_lost()
            if is_lost or find_idle(self._open.values()):
                await self.tidy()
            for service in self._services:
                service.rest()
            rested = False
            for workspace in self._open.values():
                rested |= workspace.rest(IDLE_SECONDS)
            # A few questions can leave as much: ten about callers in 15,000 C files
            # left 60 MB.
            ended_at = self._scheduler.ended_at or 0
            rested_since = anyio.current_time() - IDLE_SECONDS
            is_over = forgotten_at < ended_at <= rested_since
            if is_over:
                self._drop_caches()
                forgotten_at = anyio.current_time()
                await self._take_unused_pools()
            if rested:
                for service in self._services:
                    service.forget_models()
            if rested or is_over:
                release_memory()

    def note_answer(self, answer: ServedAnswer) -> None:
        """Tell the parts of an answer that a model was given."""
        for service in self._services:
            service.note_answer(answer)

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for all projects; raises Unavailable if the part is left out."""
        return self._services.find(key)

    def forget_caches(self) -> None:
        """Drop what parts derived from texts and indexes."""
        for service in self._services:
            service.forget_caches()

    def is_known(self, project: str) -> bool:
        """Return whether it is the name of a project, or a path."""
        return self._find_root(project) is not None

    def list_projects(self) -> list[ProjectInfo]:
        """Return the known projects, by name."""
        return [
            ProjectInfo(name, root, name in self._open)
            for name, root in sorted(self._roots.items())
        ]

    def find_enclosing_root(self, folder: Path) -> Path:
        """Return the nearest enclosing folder that is a known project or the top of a git work tree.

        No other folder becomes a project unasked: a query typed at home must not index the home folder.

        Raises:
            NotFound: there is none.

        """
        roots = set(self._roots.values())
        for candidate in (folder, *folder.parents):
            is_top = os.path.exists(candidate / ".git") or is_bare(candidate)  # noqa: PTH110 - a name too long is none
            if candidate in roots or is_top:
                return candidate
        raise NotFound(
            f"no project here: {folder} is in no known project and no git work tree",
            reason="project_not_found",
            suggestion="make the folder a project with: fgrep index; fgrep rg searches any folder",
        )

    def list_open(self) -> list[Workspace]:
        """Return the projects that are open."""
        return list(self._open.values())

    def is_listed(self, root: str) -> bool:
        """Return whether the project at a root is open, and its files are known."""
        return any(
            str(current_workspace.path) == root
            and current_workspace.tree.listed_since is not None
            for current_workspace in self._open.values()
        )

    def list_bound(self, session: Session) -> list[str]:
        """Return the names of the projects a connection is bound to, in its order; none for an unbound one."""
        names = {str(root): name for name, root in self._roots.items()}
        bound: list[str] = []
        for project in session.projects:
            # Mostly they are resolved roots: resolving them again costs 50 µs each.
            name = names.get(project) or names.get(str(self._find_root(project)))
            if name is not None:
                bound.append(name)
        return bound

    def list_reachable(self, session: Session) -> list[str]:
        """Return the names of the projects a connection may name: those it is bound to, else all known ones."""
        if session.projects:
            return self.list_bound(session)
        return sorted(self._roots)

    def find_roots(
        self, session: Session, projects: Sequence[str] | Literal["*"]
    ) -> list[str]:
        """Return the roots of the projects a call names, in order and without duplicates; ``*``: of all it may name.

        Unknown names are returned unchanged.
        """
        named = projects
        if projects == "*":
            named = self.list_reachable(session)
        known = set(
            map(str, self._roots.values())
        )  # these are resolved already: resolving one takes 50 µs
        return list(
            dict.fromkeys(
                one if one in known else str(self._find_root(one) or one)
                for one in named
            )
        )

    def _check_reachable(self, session: Session, project: str) -> None:
        """Refuse a project that is unknown, or that the connection may not reach."""
        root = self._find_root(project)
        # By root: a name may move to another project while the connection lives.
        bound = [self._find_root(name) for name in session.projects]
        if root is None or (bound and root not in bound):
            raise NotFound(
                f"no such project: {project}",
                reason="project_not_found",
                known=self.list_bound(session),
            )

    def find_file(self, session: Session, project: str | None, path: bytes) -> bytes:
        """Return the resolved path of a file that a call names; it need not exist. Call it in a thread.

        A path relative to the root needs a project: the one named, or the connection's own.

        Raises:
            Forbidden: outside_root, it is in no project the connection may reach; protected_path.
            NotFound: project_not_found.
            InvalidParams: not a possible path of a file.

        """
        text = path_to_text(path)
        own = [*(session.projects or session.indexed)]
        if project is not None:
            self._check_reachable(session, project)
            own = [project]
        roots = [os.fsencode(root) for root in filter(None, map(self._find_root, own))]
        if not path or b"\0" in path or (not path.startswith(b"/") and len(roots) != 1):
            raise InvalidParams(
                f"path: not a file of one project: {text!r}",
                field="path",
                target_path=text,
            )
        if not own:
            roots = [os.fsencode(root) for root in self._roots.values()]
        # Resolve links before comparing: one inside a project may lead outside of all
        # projects.
        real = os.path.realpath(
            path if path.startswith(b"/") else roots[0] + b"/" + path
        )
        self._check_file(real, text, roots)
        return real

    def _check_file(self, real: bytes, text: str, roots: Iterable[bytes]) -> None:
        """Refuse a path, given as ``text``, that is in none of the roots, is ours, or is that of no file."""
        if not any(real.startswith(root.rstrip(b"/") + b"/") for root in roots):
            raise Forbidden(
                f"outside of every project: {text}",
                reason="outside_root",
                target_path=text,
            )
        if self._private.contain(real):
            raise Forbidden(
                f"flashgrep's own folder: {text}",
                reason="protected_path",
                target_path=text,
            )
        if os.path.lexists(real) and not os.path.isfile(real):  # noqa: PTH113 - a name too long is none
            raise InvalidParams(
                f"not a file: {text}",
                reason="not_a_file",
                field="path",
                target_path=text,
            )

    def is_visited(self, root: str) -> bool:
        """Return whether the folder at a root is only visited: it is no project."""
        return Path(root) in self._visited.values()

    async def visit(self, root: Path) -> Workspace:
        """Open a folder, by its resolved path, that is no project, to be read but not indexed, written to or listed.

        Raises:
            NotFound: it does not exist.
            Forbidden: it is one of flashgrep's own folders.

        """
        if root not in {*self._roots.values(), *self._visited.values()}:
            self._visited[self._choose_name(root)] = root
        return await self.open(str(root), adopt=False)

    async def visit_library(
        self, root: Path, library: LibraryFolder, call: object
    ) -> Workspace:
        """Open a folder of libraries for a call, indexed in the store of all libraries; raises as ``visit``.

        Nothing is watched, so that each question lists its files.
        """
        former = self._libraries.get(root, library)
        # Opened again, but not under another's question.
        if former.is_indexed != library.is_indexed:
            if self._is_in_use(root):
                library = replace(library, is_indexed=former.is_indexed)
            else:
                await self._leave(root)
        self._libraries[root] = library
        self._choose_subtrees(root, library.folders)
        workspace = await self.visit(root)
        # Another question may have chosen its own while this one waited.
        self._choose_subtrees(root, library.folders)
        workspace.calls.add(call)
        # A library may also be a project, as one that is being worked on.
        if self.is_visited(str(root)):
            # After an update the same folder has another version.
            workspace.label = library.label
            await workspace.freshness.switch(on=False)
        return workspace

    def _is_in_use(self, root: Path) -> bool:
        """Return whether a call is about the folder at a root."""
        workspace = self._find_open(str(root))
        return workspace is not None and workspace.is_in_use

    def _choose_subtrees(self, root: Path, folders: frozenset[bytes] | None) -> None:
        """Let these folders of a library's be walked, and those that calls in flight are about."""
        if folders is None:
            return
        # Walkers of the folder, one perhaps at work, share it.
        subtrees = self._subtrees.setdefault(root, Subtrees())
        # What projects use was read before this question's turn came.
        if self._is_in_use(root):
            folders |= subtrees.folders
        if folders != subtrees.folders:
            subtrees.replace(folders)

    async def _leave(self, root: Path) -> None:
        """Close a folder that was only visited."""
        for name, visited in list(self._visited.items()):
            if visited == root:
                del self._visited[name]
                workspace = self._open.pop(name, None)
                if workspace is not None:
                    await workspace.close()

    async def adopt(self, root: Path) -> Workspace:
        """Return the project at a root; a folder that was only visited becomes one."""
        await self._leave(root)
        return await self.open(str(root))

    async def open(self, root_or_name: str, *, adopt: bool = True) -> Workspace:
        """Return a project by name or absolute path; ``adopt``: make any other folder a project.

        Raises:
            NotFound: no project has the name, or the folder does not exist.
            Forbidden: it is one of flashgrep's own folders, or the whole file system.

        """
        found_workspace = self._find_open(root_or_name)
        if found_workspace is not None:
            found_workspace.asked_at = anyio.current_time()
            return found_workspace
        root = self._find_root(root_or_name)
        if root is not None and await anyio.to_thread.run_sync(
            self._private.contain, os.fsencode(root)
        ):
            raise Forbidden(
                f"flashgrep's own folder cannot be a project: {root_or_name}",
                reason="outside_root",
            )
        # Two calls for one project open it once: the second finds it open once it has
        # the lock.
        async with self._lock_project(root_or_name, make=adopt) as name:
            if name in self._open and self._open[name].is_lost():
                await self._open.pop(name).close()
            if name not in self._open:
                self._starting += 1
                try:
                    await self._make_room()
                    self._open[name] = await self._open_project(name)
                finally:
                    self._starting -= 1
            return self._open[name]

    async def _make_room(self) -> None:
        """Close projects that nobody uses until those being opened fit; if all are used, they are opened all the same."""
        if len(self._open) + self._starting <= self._most_open:
            return
        for workspace in order_for_closing(self._open.values()):
            lock = self._locks.setdefault(workspace.path, anyio.Lock())
            # One that is just being opened or closed is left alone: waiting for its
            # lock while holding another could be a deadlock.
            with contextlib.suppress(anyio.WouldBlock):
                lock.acquire_nowait()
                try:
                    if self._open.get(workspace.name) is workspace:
                        del self._open[workspace.name]
                        with anyio.CancelScope(shield=True):
                            await workspace.close()
                finally:
                    lock.release()
            if len(self._open) + self._starting <= self._most_open:
                return

    def open_later(self, root: str) -> None:
        """Start opening a project in the background. If that fails, the next call about it reports why."""

        async def open_quietly() -> None:
            try:
                await self.open(root)
            except Exception:
                log.exception("opening a project in the background")
            finally:
                self._opening.discard(root)

        if root not in self._opening:
            assert self._tasks is not None  # noqa: S101 - set on entry
            self._opening.add(root)
            self._tasks.start_soon(open_quietly)

    async def workspace(self, call: Call[Any], project: str | None) -> Workspace:
        """Return the project a call is about: the one it names, else the one its connection is bound to.

        Raises:
            NotFound: project_not_found, there is no project of that name, or the call has none.
            InvalidParams: project_required, the connection has several and the call names none.
            Forbidden: outside_root, the connection is bound to others.

        """
        session = call.session
        if project is None:
            own = session.projects or session.indexed
            if not own:
                raise NotFound(
                    "this connection has no project",
                    reason="project_not_found",
                    suggestion=HOW_TO_GET_A_PROJECT,
                )
            if len(own) > 1:
                names = [
                    name
                    for name, root in self._roots.items()
                    if str(root) in own or name in own
                ]
                message = f"the connection has several projects: pass `project`, one of {', '.join(names)}"
                advice = "methods that search also take `projects`, a list or `*`"
                raise InvalidParams(
                    message,
                    reason="project_required",
                    field="project",
                    allowed=names,
                    suggestion=advice,
                )
            return await self._open_for(call, own[0], adopt=False)
        if session.projects and self._find_root(project) not in {
            self._find_root(current_project) for current_project in session.projects
        }:
            raise Forbidden(
                f"the connection is bound to another project: {project}",
                reason="outside_root",
                suggestion="leave out `project`; to ask another project, start the client in it or with --project",
                bound_to=self.list_bound(session),
            )
        return await self._open_for(
            call, project, adopt=not session.capabilities.only_reads
        )

    async def open_bound(self, call: Call[Any]) -> list[Workspace]:
        """Return the projects that a call's connection is bound to, in its order; raises as ``open``."""
        return [
            await self._open_for(call, project, adopt=False)
            for project in call.session.projects
        ]

    async def _open_for(
        self, call: Call[Any], root_or_name: str, *, adopt: bool
    ) -> Workspace:
        """Return a project that stays open while the call lives."""
        workspace = await self.open(root_or_name, adopt=adopt)
        workspace.calls.add(call)
        return workspace

    async def remove(self, name: str) -> Path:
        """Remove a project, given by name or root, with its index, and return its root; its files stay."""
        async with self._lock_project(name, make=False) as known:
            workspace = self._open.pop(known, None)
            if workspace is not None:
                await workspace.close()
            root = self._roots[known]
            file = (
                store_folder(self.cache_dir, os.fsencode(root)) / INDEX
                if workspace is None
                else workspace.store.file
            )
            # Before the name is removed: if this fails, the project is still listed and
            # can be removed again.
            await self._stores.forget(file, [os.fsencode(root)])
            await self._forget(known)
            for service in self._services:
                service.forget_project(os.fsencode(root))
        await self._drop_leftovers()
        return root

    async def _close_idle(self) -> None:
        """Close projects that are gone or no longer used."""
        unused = find_idle(self._open.values())
        # Nobody watches these, and what is open is never dropped from a store.
        for name in self._visited.keys() & self._open.keys():
            if self._open[name].is_idle():
                unused.append(self._open[name])
        for name, workspace in list(self._open.items()):
            if workspace.is_lost() or workspace in unused:
                with contextlib.suppress(NotFound):  # removed meanwhile
                    # A visited folder is no project that could be named.
                    place = str(self._visited.get(name, name))
                    async with self._lock_project(place, make=False) as known:
                        # It may have been closed and reopened, or used, while we waited
                        # for the lock.
                        if self._open.get(known) is workspace and (
                            workspace.is_lost() or workspace.is_idle()
                        ):
                            await self._open.pop(known).close()

    async def tidy(self, *, stores: bool = False) -> list[Path]:
        """Close projects that are gone or no longer used, and drop removed work trees; return their roots.

        ``stores``: also delete what is stored of repositories and folders that are gone.
        """
        await self._close_idle()
        gone = await anyio.to_thread.run_sync(
            partial(find_gone, self.cache_dir, stores=stores)
        )
        for file, roots in gone.items():
            await self._stores.forget(file, roots)
        await self._drop_leftovers()
        forgotten = {
            Path(os.fsdecode(root)) for roots in gone.values() for root in roots
        }
        for name in [name for name, root in self._roots.items() if root in forgotten]:
            with contextlib.suppress(NotFound):
                async with self._lock_project(name, make=False) as known:
                    # Not a folder that was created again meanwhile.
                    if known not in self._open and not identify(
                        str(self._roots[known])
                    ):
                        await self._forget(known)
        return sorted(forgotten)

    async def _drop_leftovers(self) -> None:
        """Drop what parts stored and nobody uses any more, unless it is open."""
        for service in self._services:
            unused = await anyio.to_thread.run_sync(service.find_leftovers)
            for file, roots in unused.items():
                for root in roots:
                    # Nothing of an open folder is dropped, so it is closed first.
                    workspace = self._find_open(os.fsdecode(root))
                    if workspace is not None and not workspace.is_in_use:
                        await self._leave(workspace.path)
                await self._stores.forget(file, roots)

    async def _forget(self, name: str) -> None:
        """Remove a project from the list, with its unfinished writes."""
        root = self._roots.pop(name)
        self._save()
        self._on_forget(root)
        writes = writes_folder(self.state_dir, os.fsencode(root))
        await anyio.to_thread.run_sync(
            partial(shutil.rmtree, writes, ignore_errors=True)
        )

    @contextlib.asynccontextmanager
    async def _lock_project(
        self, root_or_name: str, *, make: bool
    ) -> AsyncIterator[str]:
        """Hold a project's lock and yield its name.

        Each project has its own lock, since opening one may take long. The lock belongs to the root: a name can move to
        another folder while we wait for it.
        """
        while True:
            root = self._root_of(self._find_name(root_or_name, make=make))
            lock = self._locks.setdefault(root, anyio.Lock())
            async with lock:
                name = self._find_name(root_or_name, make=make)
                if self._root_of(name) == root:
                    yield name
                    return

    def _find_open(self, root_or_name: str) -> Workspace | None:
        """Return a project if it is open, without its lock: a call must not wait while it is being reopened."""
        found_workspace = self._open.get(root_or_name)
        if (
            found_workspace is None
        ):  # bindings are resolved roots: resolving them again would cost each call 50 µs
            found_workspace = next(
                (
                    current_workspace
                    for current_workspace in self._open.values()
                    if str(current_workspace.path) == root_or_name
                ),
                None,
            )
        if found_workspace is not None and not found_workspace.is_lost():
            return found_workspace
        root = self._find_root(root_or_name)
        return next(
            (
                current_workspace
                for current_workspace in self._open.values()
                if current_workspace.path == root and not current_workspace.is_lost()
            ),
            None,
        )

    async def _open_project(self, name: str) -> Workspace:
        root = self._root_of(name)
        is_visited = name in self._visited
        unindexed = ALONE
        if is_visited:
            unindexed = VISITED
        if not root.is_dir():
            gone = NotFound(
                f"no such folder: {root}",
                reason="directory_not_found",
                target_path=str(root),
            )
            if not is_visited:
                forgetting = f"fgrep projects remove {shlex.quote(name)}"
                gone.data["suggestion"] = f"{forgetting} forgets the project"
            raise gone
        # A folder that is only visited gets nothing of ours, not even a socket.
        library = None
        if is_visited:
            library = self._libraries.get(root)
        else:
            self._on_open(root)
        if library is None:
            loaded = await anyio.to_thread.run_sync(self._settings_for, root)
        else:  # what settings a library may bring are not the user's
            loaded = Loaded(self.settings, {})
        settings = loaded.settings
        options = WorkspaceOptions(
            state_dir=self.state_dir,
            cache_dir=self.cache_dir,
            private=self._private,
            max_file_size=settings.index.max_file_size,
            kept_bytes=settings.index.revision_bytes,
            kept_days=settings.index.revision_days,
            workers=settings.index.workers or count_cores(),
            read_only=settings.read_only or is_visited,
            spec_folders=tuple(settings.specs.folders),
            embedding=settings.embedding.model_dump_json(),
            environ=self.environ,
            indexes=self._indexes and not is_visited,
            unindexed=unindexed,
            settings_warnings=loaded.warnings,
            limits=Limits(
                read_bytes=settings.read.max_bytes, write_bytes=settings.write.max_bytes
            ),
        )
        if library is not None:
            options = self._change_for_library(options, root, library)
        workspace = Workspace(
            name,
            os.fsencode(root),
            options,
            ripgrep=self._ripgrep,
            scheduler=self._scheduler,
            workers=self._workers,
            stores=self._stores,
            outside=self._outside,
            parts=self.parts,
            host=self,
        )
        if root in self._former:
            workspace.progress.detail = (
                "reindexed: the index of an earlier version is not used"
            )
        assert self._tasks is not None  # noqa: S101 - set on entry
        try:
            await workspace.open(self._tasks)
        except BaseException:  # the caller hung up: close what was opened for it
            with anyio.CancelScope(shield=True):
                await workspace.close()
            raise
        return workspace

    def _change_for_library(
        self, options: WorkspaceOptions, root: Path, library: LibraryFolder
    ) -> WorkspaceOptions:
        """Return the options of a project, changed for a folder of libraries."""
        # A project ignores its environment, and packages their own builds.
        walk = WalkOptions(
            ignore=False,
            flashgrep_ignore=False,
            subtrees=self._subtrees.get(root),
        )
        # An embedder elsewhere would cost the user money for code that is not theirs.
        embedding = Embedding().model_dump_json()
        return replace(
            options,
            indexes=self._indexes and library.is_indexed,
            unindexed=ALONE if library.is_indexed else LARGE,
            embedding=embedding,
            walk=walk,
            owner=library_owner(self.cache_dir),
        )

    def _find_root(self, root_or_name: str) -> Path | None:
        if root_or_name.startswith("/") and "\0" not in root_or_name:
            return Path(root_or_name).resolve()
        return self._roots.get(root_or_name)

    def _find_name(self, root_or_name: str, *, make: bool) -> str:
        """Return a project's name; ``make``: choose one for a folder that is not a project yet.

        Raises:
            NotFound: no such project, or no such folder.
            Forbidden: the whole file system.

        """
        if root_or_name in self._roots:
            return root_or_name
        root = self._find_root(root_or_name)
        for name, path in (*self._roots.items(), *self._visited.items()):
            if path == root:
                return name
        if root is None or not make:
            raise NotFound(
                f"no such project: {root_or_name}",
                reason="project_not_found",
                known=sorted(self._roots),
            )
        if not os.path.isdir(root):  # noqa: PTH112 - False for over-long names, where Path.is_dir raises
            message = f"no such folder: {root}"
            with contextlib.suppress(OSError):  # the name is too long
                if root.is_file():
                    message = f"a file: {root}; name its folder"
            raise NotFound(
                message,
                reason="directory_not_found",
                target_path=str(root),
            )
        if root == Path(root.anchor):
            raise Forbidden(
                "the whole file system cannot be a project: name a folder in it",
                reason="outside_root",
            )
        name = self._choose_name(root)
        self._roots[name] = root
        self._save()
        return name

    def _root_of(self, name: str) -> Path:
        """Return the root of a project or a visited folder by its name."""
        visited = self._visited.get(name)
        if visited is not None:
            return visited
        return self._roots[name]

    def _choose_name(self, root: Path, stem: str = "") -> str:
        """Return a name for a folder: its own; folders of the same name, such as two clones, get a number."""
        own = os.fsencode(root.name).decode("utf-8", "replace")
        name = stem = stem or own or "root"
        number = 1
        while name in self._roots or name in self._visited:
            number += 1
            name = f"{stem}-{number}"
        return name

    def _load(self) -> dict[str, Path]:
        """Read the list of projects. If unreadable it is empty, and projects come back when they are named."""
        try:
            found: dict[str, Any] = json.loads(read_plain_file(self._file))
            # Latin-1 carries any bytes of a path through JSON.
            roots = {
                name: Path(os.fsdecode(root.encode("latin-1")))
                for name, root in found["projects"].items()
            }
            return {
                name: root
                for name, root in roots.items()
                if not self._private.contain(os.fsencode(root))
            }
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return {}

    def _save(self) -> None:
        projects = {
            name: os.fsencode(root).decode("latin-1")
            for name, root in self._roots.items()
        }
        with contextlib.suppress(OSError):
            text = json.dumps({"projects": projects}, indent=1)
            replace_plain_file(self._file, text)
