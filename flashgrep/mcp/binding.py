"""Which project, collections and tools a connection is about: named by the shim, by the client's roots, or not."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import anyio

from flashgrep.catalogue import Catalogue
from flashgrep.errors import DeadlineExceeded, Forbidden, InvalidParams, NotFound, Unavailable
from flashgrep.mcp.state import ClientState, state_of
from flashgrep.mcp.toolsets import named
from flashgrep.registry import Session
from flashgrep.rpc.context import RequestContext

ROOTS_SECONDS = 5.0
"""A client that announces roots and does not name them must not hold up its own first call for longer."""
FIELDS = frozenset({"project", "collections", "folder", "fallback", "toolsets", "read_only", "progress_token", "_meta"})
EnclosingRoot = Callable[[Path, Iterable[Path]], Path]


class Binder:
    """Binds connections to projects; paths travel as their bytes written as latin-1."""

    def __init__(self, catalogue: Catalogue, enclosing_root: EnclosingRoot) -> None:
        self._catalogue = catalogue
        self._enclosing_root = enclosing_root

    async def bind(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Answer ``$/bind``, which a client sends before anything else.

        ``project``: a name or path. ``collections``: names. ``folder``: the host's project. ``fallback``: the folder
        the host started us in. ``toolsets`` and ``read_only`` narrow what is shown and allowed.
        """
        given = _checked(params)
        session, state = context.session, state_of(context.session)
        session.drop_control()  # an agent's host speaks here from now on
        if given.get("toolsets") is not None:
            state.toolsets = named(given["toolsets"])
        if given.get("read_only"):
            session.read_only = True
        await self._choose(session, state, given)
        names = self._catalogue.names_of(session)
        return {"projects": names, "collections": names if session.collections else []}

    async def settle(self, context: RequestContext, *, may_ask: bool) -> None:
        """Choose the project, if that is still open, before the first call that may need it.

        ``may_ask``: the client's revision allows the server to ask for its roots.
        """
        state = state_of(context.session)
        if not state.unchosen:
            return
        async with state.choosing:
            # Done only when it is chosen: a call beside this one waits, and a cancelled one leaves it to the next.
            while state.unchosen:
                choice = state.to_choose
                named_roots = await self._by_roots(context, state) if may_ask else []
                context.session.projects = await self._opened(named_roots or self._by_fallback(state))
                state.chosen = choice

    async def _choose(self, session: Session, state: ClientState, given: Mapping[str, Any]) -> None:
        if session.projects and any(given.get(name) for name in ("project", "collections", "folder")):
            raise Forbidden("the connection is bound already", reason="already_bound", projects=list(session.projects))
        if given.get("collections"):
            session.collections = tuple([await self._open(name) for name in given["collections"]])
            session.projects = session.collections
        elif given.get("project"):
            session.projects = session.collections = (await self._open(_native(given["project"])),)
        elif given.get("folder") and (root := self._root(Path(_native(given["folder"])))):
            session.projects = (await self._open(str(root)),)
        elif not session.projects:
            state.fallback = given.get("fallback")
            state.to_choose += 1

    async def _open(self, project: str) -> str:
        """Return the root of a project, open from now on: its index is made while the client gets ready.

        A connection is bound to roots: another project may take the name of one that is removed.
        """
        return str((await self._catalogue.open(project)).path)

    async def _opened(self, roots: Iterable[Path]) -> tuple[str, ...]:
        """Open the projects a host has told of; a folder that can be none is left out."""
        found = []
        for root in roots:
            with suppress(NotFound, Forbidden):
                found.append(await self._open(str(root)))
        return tuple(found)

    async def _by_roots(self, context: RequestContext, state: ClientState) -> list[Path]:
        if "roots" not in state.capabilities:
            return []
        try:
            with anyio.fail_after(ROOTS_SECONDS):
                answer = await context.peer.request("roots/list", {})
        except (TimeoutError, Unavailable, DeadlineExceeded):
            return []
        items = answer.get("roots", []) if isinstance(answer, dict) else []
        found = [self._root(path) for item in items if (path := _path_of(item)) is not None]
        return list(dict.fromkeys(root for root in found if root is not None))

    def _by_fallback(self, state: ClientState) -> list[Path]:
        if state.fallback is None:
            return []
        try:
            return [self._enclosing_root(Path(_native(state.fallback)), self._known())]
        except NotFound:
            return []

    def _root(self, folder: Path) -> Path | None:
        """Return the project a folder named by the host lies in, else the folder, unless everything lies in it."""
        try:
            return self._enclosing_root(folder, self._known())
        except NotFound:
            if not os.path.isdir(folder):  # noqa: PTH112 - unlike Path's, it holds a name that is too long for none
                return None
            # The home folder and those above it: whoever opens a host there does not mean all that is below.
            return None if Path.home().resolve().is_relative_to(folder.resolve()) else folder

    def _known(self) -> list[Path]:
        return [info.root for info in self._catalogue.projects()]


def _checked(params: Any) -> Mapping[str, Any]:
    if not isinstance(params, dict):
        raise InvalidParams("$/bind: parameters by name are required")
    unknown = params.keys() - FIELDS
    if unknown:
        raise InvalidParams(f"$/bind: unknown: {', '.join(sorted(unknown))}", allowed=sorted(FIELDS))
    for name in ("project", "folder", "fallback"):
        if not isinstance(params.get(name), str | None):
            raise InvalidParams(f"$/bind: {name}: a string is required", field=name)
    for name in ("collections", "toolsets"):
        listed = params.get(name)
        if listed is not None and not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
            raise InvalidParams(f"$/bind: {name}: an array of strings is required", field=name)
    return params


def _path_of(root: Any) -> Path | None:
    """Return the folder a root's URI names, None when it is no file URI."""
    uri = root.get("uri") if isinstance(root, dict) else None
    parts = urlsplit(uri) if isinstance(uri, str) else None
    if parts is None or parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    return Path(os.fsdecode(unquote_to_bytes(parts.path)))


def _native(text: str) -> str:
    return os.fsdecode(text.encode("latin-1", "replace"))
