"""The daemon's own methods for its own clients: status, shutdown, a folder's project. Not part of the registry.

So are subscriptions: notifications about the state of a project.
"""

import os
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync

import flashgrep
from flashgrep import __version__
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound, Unavailable
from flashgrep.base.paths import as_latin1, from_latin1
from flashgrep.daemon.listeners import Listeners
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.project.stores import describe_stores
from flashgrep.rpc.connect import find_newest_source
from flashgrep.rpc.context import Extension, RequestContext

KIB = 1024
PROGRESS = (
    "stage",
    "detail",
    "files_done",
    "files_total",
    "bytes_done",
    "bytes_total",
    "left",
    "problem",
)
LOOK_SECONDS = 1.0
"""One check of the package's files, a millisecond or two, serves all clients that come within this time."""
POLL_SECONDS = 0.05
MOMENT = 0.5
"""Calls that take longer keep a daemon from retiring."""
PACKAGE = str(Path(flashgrep.__file__).parent)
PAUSE: Final = 0.1
"""Seconds between two notifications: changes in between are combined."""


@dataclass(slots=True)
class Control:
    """Answers questions about the daemon itself."""

    listeners: Listeners
    catalogue: Catalogue
    stopping: anyio.Event
    started: float
    _loaded: tuple[int, int] = field(
        default_factory=lambda: find_newest_source(PACKAGE)
    )
    _is_changed: bool = False
    _looked: float = float("-inf")
    _is_retiring: bool = False

    def extensions(self) -> Mapping[str, Extension]:
        """Return the methods of the control socket by name."""
        return {
            "$/shutdown": self.shutdown,
            "$/open": self.open,
            "$/indexing": self.describe_indexing,
            "$/remove": self.remove,
            "$/clean": self.clean,
            "$/stores": self.list_stores,
            "$/version": self.describe_version,
            "$/retire": self.retire,
        }

    async def describe(self, context: RequestContext, _params: Any) -> dict[str, Any]:
        """Answer ``$/status``: what runs since when, where it listens, what it serves and what went wrong.

        It covers all projects, so it is only for the control socket, and for unbound connections that have shown the
        token.

        Raises:
            Forbidden: auth_required.

        """
        session = context.session
        if not session.capabilities.control and (
            session.projects or not session.has_token
        ):
            raise Forbidden(
                "this needs the control socket or the token, and a connection bound to no project",
                reason="auth_required",
                suggestion="run fgrep daemon status, or call auth",
            )
        opened = {workspace.name: workspace for workspace in self.catalogue.list_open()}
        projects = []
        for info in self.catalogue.list_projects():
            stage = "closed"
            problem = ""
            warnings = list[str]()
            if info.name in opened:
                workspace = opened[info.name]
                stage = workspace.progress.stage
                problem = workspace.progress.detail
                warnings = list(workspace.options.settings_warnings)
            project = {
                "name": info.name,
                "root": str(info.root),
                "stage": stage,
                "problem": problem,
            }
            projects.append({**project, "warnings": warnings})
        return {
            "version": __version__,
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "folder": PACKAGE,
            "uptime_seconds": round(time.time() - self.started, 3),
            "clients": self.listeners.clients,
            "memory_bytes": measure_memory(),
            "state_dir": self.listeners.paths.state,
            "socket": self.listeners.paths.socket,
            "tcp": self.listeners.tcp,
            "idle_exit_minutes": self.listeners.settings.idle_exit_minutes,
            "projects": projects,
            "problems": self.listeners.problems,
        }

    async def shutdown(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """End the daemon, after this answer."""
        self.stopping.set()
        return {"stopping": True}

    async def open(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Return the socket of the project around ``folder``; ``adopt``: if there is none, make the folder a project.

        Where there is no socket the caller continues over this connection, which is a client's from then on: bound to
        the project, if there is one, and without the daemon's own methods.
        """
        folder = Path(read_path(params, "folder"))
        try:
            root = self.catalogue.find_enclosing_root(folder)
        except NotFound:
            if not params.get("adopt"):
                context.session.drop_control()
                return {"root": None, "socket": None}
            root = folder
        workspace = await self.catalogue.open(str(root))
        root = workspace.path
        try:
            socket = as_latin1(await self.listeners.open_project(root))
        except (
            Unavailable
        ):  # a read-only folder: the caller continues over this connection
            socket = None
            context.session.drop_control()
            context.session.projects = (str(root),)
        return {"root": as_latin1(str(root)), "name": workspace.name, "socket": socket}

    async def describe_indexing(
        self, _context: RequestContext, params: Any
    ) -> dict[str, Any]:
        """Return how far the index of the project at ``root`` is; ``done`` when nothing is left to do or it failed.

        Raises:
            NotFound: it is no project any more; who asks again and again must not make it one.

        """
        root = read_path(params, "root")
        workspace = await self.catalogue.open(root, adopt=False)
        progress = workspace.progress
        is_done = progress.stage == "failed" or (
            progress.stage == "ready" and not workspace.tree.pending
        )
        return {
            **{name: getattr(progress, name) for name in PROGRESS},
            "share": progress.share(),
            "eta_seconds": progress.eta_seconds(),
            "files": workspace.tree.count(),
            "done": is_done,
        }

    async def remove(self, _context: RequestContext, params: Any) -> dict[str, Any]:
        """Forget a project, by name or root, and close its socket."""
        root = await self.catalogue.remove(read_path(params, "name"))
        return {"removed": [as_latin1(str(root))]}

    async def list_stores(
        self, _context: RequestContext, _params: Any
    ) -> dict[str, Any]:
        """Return what is stored, and of which projects."""
        return {
            "stores": await run_sync(describe_stores, Path(self.listeners.paths.cache))
        }

    async def clean(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """Forget what is stored of folders that are gone; return their roots."""
        return {
            "removed": [
                as_latin1(str(root)) for root in await self.catalogue.tidy(stores=True)
            ]
        }

    async def describe_version(
        self, _context: RequestContext, _params: Any
    ) -> dict[str, Any]:
        """Return the version, the package's folder, and whether the files in it have changed since the start.

        ``changed`` tells of upgrades that keep the version: a reinstallation, a pull into an editable installation.
        ``newest_source`` (nanoseconds) and ``source_files`` order this code against another installation's.
        """
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now  # clients that come before this check is done get the previous result
            self._is_changed = (
                await run_sync(find_newest_source, PACKAGE) != self._loaded
            )
        newest, files = self._loaded
        version = {
            "version": __version__,
            "folder": PACKAGE,
            "changed": self._is_changed,
        }
        return {**version, "newest_source": newest, "source_files": files}

    async def retire(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """Retire for a newer daemon: exit if no other call is in flight.

        Returns whether that is now, and how many others there are.
        """
        # A call whose answer is on its way, or another client's version check, is over
        # in a moment.
        with anyio.move_on_after(MOMENT):
            while self.listeners.dispatcher.running > 1:  # noqa: ASYNC110 - as below
                await anyio.sleep(POLL_SECONDS)
        others = self.listeners.dispatcher.running - 1
        if not others:
            self.stopping.set()
        elif not self._is_retiring:
            self._is_retiring = True
            self.listeners.tasks.start_soon(self._end_when_idle)
        return {"ending": not others, "calls": others}

    async def _end_when_idle(self) -> None:
        # Polled, since calls end thousands of times a second, and this is rare.
        while self.listeners.dispatcher.running:  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)
        self.stopping.set()


def read_path(params: Any, name: str) -> str:
    """Return a path or name that a client has sent as its bytes in latin-1.

    Raises:
        InvalidParams: it is missing.

    """
    if isinstance(params, dict):
        param = params.get(name)
    else:
        param = None
    if not isinstance(param, str):
        raise InvalidParams(f"{name}: a string is required", field=name)
    return from_latin1(param, "replace")


def measure_memory() -> int:
    """Return the memory in use now in bytes (Linux), else the most there ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if sys.platform == "darwin":
            return peak
        return peak * KIB
    return pages * resource.getpagesize()


@dataclass(slots=True)
class Subscriptions:
    """Answers ``$/subscribe`` and ``$/unsubscribe``; a subscription ends with its connection, or with the project."""

    catalogue: Catalogue

    def extensions(self) -> Mapping[str, Extension]:
        """Return the two methods by name."""
        return {"$/subscribe": self.subscribe, "$/unsubscribe": self.unsubscribe}

    async def subscribe(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Return a project's state; a notification ``status`` with the same members follows each change of it.

        Raises:
            NotFound, Forbidden, InvalidParams: as ``Catalogue.workspace``.
            Unavailable: no_notifications, the wire cannot send any (HTTP).

        """
        workspace = await self._find(context, params)
        state = describe_state(workspace)
        if not context.peer.follow(
            _key_of(workspace), partial(_tell, context, workspace, state)
        ):
            raise Unavailable(
                "this wire cannot send notifications", reason="no_notifications"
            )
        return _translate(context, state)

    async def unsubscribe(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """End a subscription; return whether there was one. Raises as ``Catalogue.workspace``."""
        return {
            "ended": context.peer.unfollow(_key_of(await self._find(context, params)))
        }

    async def _find(self, context: RequestContext, params: Any) -> Workspace:
        if isinstance(params, dict):
            project = params.get("project")
        else:
            project = None
        if not isinstance(params, dict) or not (
            project is None or isinstance(project, str)
        ):
            raise InvalidParams("project: a name or a root", field="project")
        if project is not None and context.session.path_map is not None:
            project = context.session.path_map.to_ours(project)
        return await self.catalogue.workspace(context.call, project)


def describe_state(workspace: Workspace) -> dict[str, Any]:
    """Return the state sent to subscribers: the stage of indexing, its progress, and the project's figures.

    ``changes`` grows with each file that was found changed, new or gone; ``generation`` with each batch indexed.
    """
    progress = workspace.progress
    eta = progress.eta_seconds()
    return {
        "project": workspace.name,
        "root": str(workspace.path),
        "stage": "closed" if workspace.is_closed else progress.stage,
        "share": round(progress.share(), 3),
        "eta_seconds": None if eta is None else round(eta),
        "files": workspace.tree.count(),
        "changes": workspace.tree.changes,
        "generation": workspace.generation,
        "detail": "; ".join(filter(None, (progress.detail, progress.problem))),
    }


async def _tell(
    context: RequestContext, workspace: Workspace, sent: dict[str, Any]
) -> None:
    """Notify of each change until the project is closed; a slow client gets only the latest state."""
    workspace.subscribers += 1
    try:
        while sent["stage"] != "closed":
            change = workspace.progress.changed.next
            state = describe_state(workspace)
            if state == sent:
                await change.wait()
            elif context.notify("status", _translate(context, state)):
                sent = state
            await anyio.sleep(PAUSE)
    finally:
        workspace.subscribers -= 1


def _key_of(workspace: Workspace) -> str:
    return f"status of {workspace.path}"


def _translate(context: RequestContext, state: dict[str, Any]) -> dict[str, Any]:
    paths = context.session.path_map
    if paths is None:
        return state
    return dict(paths.translate_result(state))
