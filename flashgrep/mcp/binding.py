"""The state of one client: its protocol version, its toolsets, and its project.

The project is named by ``fgrep mcp`` (``$/bind``) or by the client's roots; else it is the one that contains the folder
in which the host started us.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
import anyio.to_thread

from flashgrep.base.errors import (
    DeadlineExceeded,
    Forbidden,
    InvalidParams,
    NotFound,
    Unavailable,
)
from flashgrep.base.path_map import DRIVE, PathMap, parse_path_map
from flashgrep.base.paths import as_latin1, from_latin1
from flashgrep.base.registry import Session
from flashgrep.mcp.tool_choice import ToolChoice, choose_tools
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import RequestContext

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions with a handshake."""
NOTE: Final = "mcp"
TEMPORARY: Final = (Path("/", "tmp"), Path("/", "var", "tmp"), Path("/", "dev", "shm"))
ROOTS_SECONDS = 5.0
"""Longest wait of a client's first call for the roots that the client announced."""
BIND_FIELDS = frozenset(
    {
        "project",
        "projects",
        "collections",
        "folder",
        "fallback",
        "toolsets",
        "read_only",
        "structured",
        "progress_token",
        "path_map",
        "_meta",
    }
)


@dataclass(slots=True)
class Client:
    """The state of a connection's client, kept in its session."""

    version: str = LEGACY[-1]
    capabilities: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    tools: ToolChoice = field(default_factory=ToolChoice)
    structured: bool = False
    """Whether the client is a program that wants JSON with schemas; a model reads text."""
    fallback: str | None = None
    """The folder in which the host started us: its project is used unless the client names roots."""
    to_choose: int = 0
    """Number of requests to choose the project by roots or ``fallback``; each change of roots is one."""
    chosen: int = 0
    """The last request that is done; one that arrives while a choice is made is done after it."""
    choosing: anyio.Lock = field(default_factory=anyio.Lock)


def client_of(session: Session) -> Client:
    """Return the state of the session's client."""
    client: Client = session.notes.setdefault(NOTE, Client())
    return client


class Binder:
    """Binds connections to projects; paths are sent as their bytes decoded as latin-1."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def bind(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Answer ``$/bind``, which a client sends before anything else.

        ``project``, ``projects``: names or paths. ``collections``: names. ``folder``: the host's project. ``fallback``: the
        folder in which the host started us. ``toolsets`` and ``read_only`` limit what is listed and allowed,
        ``structured`` asks for structured content. ``path_map``: pairs ``theirs=ours`` that map the client's folders to ours.
        """
        binding = check_binding(params)
        session = context.session
        client = client_of(context.session)
        session.drop_control()  # an agent's host speaks here from now on
        if binding.get("toolsets") is not None:
            client.tools = choose_tools(binding["toolsets"])
        if binding.get("read_only"):
            session.read_only = True
        if binding.get("path_map"):
            session.path_map = read_path_map(binding["path_map"])
        client.structured = bool(binding.get("structured"))
        # Bound by its socket, or by an earlier $/bind: an agent must not move from one
        # project to another.
        if session.projects and any(
            binding.get(name)
            for name in ("project", "projects", "collections", "folder")
        ):
            raise Forbidden(
                "the connection is already bound",
                reason="already_bound",
                projects=list(session.projects),
            )
        named = list(binding.get("projects") or ())
        if binding.get("project"):
            named.insert(0, binding["project"])
        if binding.get("collections"):
            session.collections = tuple(
                [await self._open(name) for name in binding["collections"]]
            )
            session.projects = session.collections
        elif named:
            roots = [await self._open(read_path(session, name)) for name in named]
            session.projects = session.collections = tuple(dict.fromkeys(roots))
        elif binding.get("folder") and (
            root := self._find_root(Path(read_path(session, binding["folder"])))
        ):
            session.projects = (await self._open(str(root)),)
        elif not session.projects:
            if binding.get("fallback") is not None:
                client.fallback = read_path(session, binding["fallback"])
            else:
                client.fallback = None
            client.to_choose += 1
        names = self._catalogue.list_bound(session)
        collections = names if session.collections else []
        paths = session.path_map
        shown = [
            as_latin1(root if paths is None else paths.to_theirs(root))
            for root in session.projects
        ]
        return {"projects": names, "roots": shown, "collections": collections}

    async def choose_again(self, context: RequestContext, _params: Any) -> None:
        """Choose again at the next call, unless the project was named explicitly."""
        client = client_of(context.session)
        if client.fallback is not None:
            context.session.projects = ()
            client.to_choose += 1

    async def settle(self, context: RequestContext, *, may_ask: bool) -> None:
        """Choose the project, unless done, before the first call that may need it.

        ``may_ask``: the client's revision allows the server to ask for its roots.
        """
        client = client_of(context.session)
        if client.chosen == client.to_choose:
            return
        async with client.choosing:
            # Under the lock: concurrent calls wait for the choice, and if this one is
            # cancelled, the next one makes it.
            while client.chosen != client.to_choose:
                choice = client.to_choose
                if may_ask and "roots" in client.capabilities:
                    roots = await self._ask_for_roots(context)
                else:
                    roots = []
                opened = []
                if not roots and client.fallback is not None:
                    folder = Path(client.fallback)
                    try:
                        roots = [self._catalogue.find_enclosing_root(folder)]
                    except NotFound:
                        await self._visit(context.session, folder)
                for root in roots:
                    with suppress(
                        NotFound, Forbidden
                    ):  # folders that cannot be projects are left out
                        opened.append(await self._open(str(root)))
                context.session.projects = tuple(opened)
                client.chosen = choice

    async def _open(self, project: str) -> str:
        """Open a project, so that it is indexed while the client gets ready, and return its root.

        Connections are bound to roots, not names: another project may take over a name.
        """
        return str((await self._catalogue.open(project)).path)

    async def _visit(self, session: Session, folder: Path) -> None:
        """Let calls that name no project mean the plain folder in which a host was started, unless it has everything.

        The connection stays unbound: the folder may be one around several projects.
        """
        root = await anyio.to_thread.run_sync(find_visitable, folder)
        if root is None:
            return
        try:
            workspace = await self._catalogue.visit(root)
        except (NotFound, Forbidden):  # the next call says that there is no project
            return
        own = str(workspace.path)
        session.indexed = tuple(dict.fromkeys([*session.indexed, own]))
        if self._catalogue.is_visited(own):
            session.visited = (own,)

    async def _ask_for_roots(self, context: RequestContext) -> list[Path]:
        try:
            with anyio.fail_after(ROOTS_SECONDS):
                answer = await context.peer.request("roots/list", {})
        except (TimeoutError, Unavailable, DeadlineExceeded):
            return []
        found: dict[Path, None] = {}
        # A client's answer is not trusted: items that are not file URIs are skipped.
        for item in answer.get("roots", []) if isinstance(answer, dict) else []:
            if isinstance(item, dict):
                uri = item.get("uri")
            else:
                uri = None
            if isinstance(uri, str):
                parts = urlsplit(uri)
            else:
                parts = None
            if (
                parts is not None
                and parts.scheme == "file"
                and parts.netloc in {"", "localhost"}
            ):
                path = os.fsdecode(unquote_to_bytes(parts.path))
                if context.session.path_map is not None:  # of Windows: /c:/folder
                    path = context.session.path_map.to_ours(
                        path[1:] if DRIVE.match(path, 1) else path
                    )
                root = self._find_root(Path(path))
                if root is not None:
                    found[root] = None
        return list(found)

    def _find_root(self, folder: Path) -> Path | None:
        """Return the project that contains the host's folder, else the folder itself, unless it contains everything."""
        try:
            return self._catalogue.find_enclosing_root(folder)
        except NotFound:
            if not os.path.isdir(folder):  # noqa: PTH112 - False for over-long names, where Path.is_dir raises
                return None
            # The home folder and its parents: a host started there is not about
            # everything below.
            return (
                None
                if Path.home().resolve().is_relative_to(folder.resolve())
                else folder
            )


def find_visitable(folder: Path) -> Path | None:
    """Return a folder's resolved path if a host started in it is about it: not if it is the home or a temporary folder.

    Nor if it contains one of these: hosts started from a menu are in ``/``.
    """
    try:
        resolved = folder.resolve(strict=True)
        if not resolved.is_dir():
            return None
        for outer in (Path.home(), Path(tempfile.gettempdir()), *TEMPORARY):
            if outer.resolve().is_relative_to(resolved):
                return None
    except (OSError, RuntimeError, ValueError):
        return None
    return resolved


def read_path_map(texts: Iterable[str]) -> PathMap | None:
    """Return the path map of these texts.

    Raises:
        InvalidParams: a text is not a path map.

    """
    try:
        return parse_path_map(texts)
    except ValueError as error:
        raise InvalidParams(f"path_map: {error}", field="path_map") from None


def read_path(session: Session, path: str) -> str:
    """Return a path that a client sent in latin-1, decoded and translated by the session's path map."""
    path = from_latin1(path, "replace")
    if session.path_map is None:
        return path
    return session.path_map.to_ours(path)


def check_binding(params: Any) -> Mapping[str, Any]:
    """Return the parameters of ``$/bind``.

    Raises:
        InvalidParams: a field is unknown or of another type.

    """
    if not isinstance(params, dict):
        raise InvalidParams("$/bind: parameters by name are required")
    unknown = params.keys() - BIND_FIELDS
    if unknown:
        raise InvalidParams(
            f"$/bind: unknown: {', '.join(sorted(unknown))}",
            allowed=sorted(BIND_FIELDS),
        )
    for name in ("project", "folder", "fallback"):
        if not isinstance(params.get(name), str | None):
            raise InvalidParams(f"$/bind: {name}: a string is required", field=name)
    for name in ("projects", "collections", "toolsets", "path_map"):
        items = params.get(name)
        if items is not None and not (
            isinstance(items, list) and all(isinstance(each, str) for each in items)
        ):
            raise InvalidParams(
                f"$/bind: {name}: an array of strings is required", field=name
            )
    return params
