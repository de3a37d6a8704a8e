"""The daemon's own methods, for its own clients: status, shutdown, a folder's project. Not part of the registry."""

import os
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from flashgrep import __version__
from flashgrep.catalogue import Catalogue, ProjectInfo
from flashgrep.daemon.wires import Wires
from flashgrep.errors import Forbidden, InvalidParams, NotFound, Unavailable
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.workspace import Workspace

KIB = 1024
PROGRESS = ("stage", "detail", "files_done", "files_total", "bytes_done", "bytes_total", "left", "problem")


@dataclass(slots=True)
class Control:
    """Answers what only the daemon itself knows."""

    wires: Wires
    catalogue: Catalogue
    stopping: anyio.Event
    started: float

    def extensions(self) -> Mapping[str, Extension]:
        """Return the methods of the control socket by name."""
        return {
            "$/shutdown": self.shutdown,
            "$/open": self.open,
            "$/indexing": self.indexing,
            "$/remove": self.remove,
        }

    async def status(self, context: RequestContext, _params: Any) -> dict[str, Any]:
        """Return what runs since when, where it listens, what it serves and what went wrong.

        It tells of every project: for the control socket, and whoever has shown the token and is bound to none.

        Raises:
            Forbidden: auth_required.

        """
        session = context.session
        if not session.capabilities.control and (session.projects or not session.has_token):
            raise Forbidden(
                "this needs the control socket or the token, and a connection that is bound to no project",
                reason="auth_required",
                suggestion="run fgrep daemon status, or call auth",
            )
        return {
            "version": __version__,
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "uptime_seconds": round(time.time() - self.started, 3),
            "clients": self.wires.clients,
            "memory_bytes": _resident(),
            "state_dir": self.wires.paths.state,
            "socket": self.wires.paths.socket,
            "tcp": self.wires.tcp,
            "idle_exit_minutes": self.wires.settings.idle_exit_minutes,
            "projects": self._projects(),
            "problems": self.wires.problems,
        }

    async def shutdown(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """End the daemon, after this answer."""
        self.stopping.set()
        return {"stopping": True}

    async def open(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Return the socket of the project ``folder`` lies in; ``adopt`` makes the folder one if it lies in none.

        Where there is no socket the caller goes on over this connection, which is a client's from then on: bound to the
        project, if there is one, and without the daemon's own methods.
        """
        folder = Path(_native(params, "folder"))
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
            socket = _as_latin1(await self.wires.open_project(root))
        except Unavailable:  # a read-only folder: the caller goes on over this connection
            socket = None
            context.session.drop_control()
            context.session.projects = (str(root),)
        return {"root": _as_latin1(str(root)), "name": workspace.name, "socket": socket}

    async def indexing(self, _context: RequestContext, params: Any) -> dict[str, Any]:
        """Return how far the index of the project at ``root`` is; ``done`` when nothing is left to do or it failed."""
        workspace = await self.catalogue.open(_native(params, "root"))
        progress = workspace.progress
        done = progress.stage == "failed" or (progress.stage == "ready" and not workspace.tree.pending)
        return {
            **{name: getattr(progress, name) for name in PROGRESS},
            "share": progress.share(),
            "eta_seconds": progress.eta_seconds(),
            "files": workspace.tree.count(),
            "done": done,
        }

    async def remove(self, _context: RequestContext, params: Any) -> dict[str, Any]:
        """Forget a project, by name or root, and close its socket."""
        root = await self.catalogue.remove(_native(params, "name"))
        self.wires.close_project(root)
        return {"removed": [_as_latin1(str(root))]}

    def _projects(self) -> list[dict[str, Any]]:
        opened = {workspace.name: workspace for workspace in self.catalogue.list_open()}
        return [_told(info, opened.get(info.name)) for info in self.catalogue.list_projects()]


def _told(info: ProjectInfo, workspace: Workspace | None) -> dict[str, Any]:
    stage, problem, warnings = "closed", "", list[str]()
    if workspace is not None:
        warnings = list(workspace.options.settings_warnings)
        stage, problem = workspace.progress.stage, workspace.progress.detail
    return {"name": info.name, "root": str(info.root), "stage": stage, "problem": problem, "warnings": warnings}


def _native(params: Any, name: str) -> str:
    found = params.get(name) if isinstance(params, dict) else None
    if not isinstance(found, str):
        raise InvalidParams(f"{name}: a string is required", field=name)
    return os.fsdecode(found.encode("latin-1", "replace"))


def _as_latin1(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _resident() -> int:
    """Return the memory in use now in bytes (Linux), else the most there ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * KIB
    return pages * resource.getpagesize()
