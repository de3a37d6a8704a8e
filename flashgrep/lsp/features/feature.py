"""What a feature of the protocol is here, and how one asks the daemon."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lsprotocol import types

from flashgrep.lsp.convert import path_of
from flashgrep.lsp.folders import Folder, OutsideProjects

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server

Answer: TypeAlias = "Callable[[Server, Any], Awaitable[Any]]"


@dataclass(frozen=True, slots=True)
class Feature:
    """One method of the protocol, and the coroutine that answers it."""

    name: str
    """By this it is switched off; several methods may be one feature."""
    method: str
    run: Answer
    options: Any = None


def find_file(server: "Server", uri: str) -> tuple[Folder, str]:
    """Return the folder a file lies in, and its path.

    Raises:
        OutsideProjects: it lies in none.

    """
    path = path_of(uri)
    folder = server.find_folder(path) if path is not None else None
    if path is None or folder is None:
        raise OutsideProjects(uri)
    return folder, path


async def ask_about(
    server: "Server", method: str, uri: str, position: types.Position, **more: Any
) -> tuple[Folder, dict[str, Any]]:
    """Ask a method about a place in a file; return the answer and the folder that gave it."""
    folder, path = find_file(server, uri)
    place = {"line": position.line + 1, "column": position.character + 1, "position_encoding": server.encoding}
    return folder, await folder.ask(method, {**place, **more}, path)
