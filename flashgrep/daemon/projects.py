"""Which project a folder belongs to, and the sockets of the projects."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from flashgrep.catalogue import Catalogue
from flashgrep.errors import NotFound
from flashgrep.registry import Call
from flashgrep.workspace import Workspace


async def bind(call: Call[Catalogue], cwd: Path, named: str | None) -> Path:
    """Bind the call, not its connection, to the project named, or the one ``cwd`` lies in, and return its root.

    ``named``: a project's name, or (with a slash in it, or a dot or two) a path that lies in one.

    Raises:
        NotFound: no project has the name, or the folder lies in no project and no git work tree.

    """
    known = [info.root for info in call.host.projects()]
    path = cwd / named if named and ("/" in named or named in {".", ".."}) else None
    wanted = named if named and path is None else str(enclosing_root((path or cwd).resolve(), known))
    root = root_of(await call.host.open(wanted))
    # Commands on one connection run side by side, each in its own folder.
    call.session = replace(call.session, projects=(str(root),))
    return root


def root_of(workspace: Workspace) -> Path:
    """Return the folder of an open project."""
    return Path(os.fsdecode(workspace.root))


def enclosing_root(folder: Path, known: Iterable[Path]) -> Path:
    """Return the nearest folder upwards that is a known project or the top of a git work tree.

    Any other folder is not made a project without being asked: a query typed at home must not index the home folder.

    Raises:
        NotFound: there is none.

    """
    roots = set(known)
    for candidate in (folder, *folder.parents):
        if candidate in roots or os.path.exists(candidate / ".git"):  # noqa: PTH110 - a name too long is none
            return candidate
    raise NotFound(
        f"no project here: {folder} lies in no known project and no git work tree",
        reason="project_not_found",
        suggestion="make the folder one with: fgrep index",
    )
