"""What is about folders: the daemon's searches as commands for an editor's own code, and how far an index is.

A command takes the question and, if wanted, an object of the method's own parameters (``skills/reference.md``).
"""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from flashgrep.lsp.convert import find_path, uri_of
from flashgrep.lsp.daemon_link import DaemonEnded, DaemonError
from flashgrep.lsp.folders import Folder, OutsideProjects

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server

INVALID_PARAMS: Final = -32602
PROGRESS: Final = "progress"
LOOK_SECONDS: Final = 1.0
READY: Final = frozenset({"ready", "failed"})
COMMANDS: Final = {"flashgrep.search": "query", "flashgrep.searchByMeaning": "search_code"}
"""By name, with the method that each is."""


async def run_command(server: "Server", method: str, arguments: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return each folder's answer as the daemon gives it, with the folder's URI, and the file's URI in each result.

    Raises:
        JsonRpcException: the arguments are others.

    """
    question, options, *rest = (*arguments, None, None)
    if not isinstance(question, str) or not isinstance(options, dict | None) or any(rest):
        raise JsonRpcException("flashgrep: a command takes a question and, if wanted, parameters", INVALID_PARAMS)

    async def ask(folder: Folder) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = await folder.ask(method, {**(options or {}), "query": question})
        except OutsideProjects:
            return None
        for hit in answer["results"]:
            hit["uri"] = uri_of(find_path(folder.root or "", hit))
        return {"folder": uri_of(folder.path), **answer}

    answers = await asyncio.gather(*map(ask, server.folders))
    return [answer for answer in answers if answer is not None]


async def report_indexing(server: "Server", folder: Folder) -> None:
    """Connect to a folder's project, and report until its index is made; nothing, if it is."""
    token, progress, has_begun = f"flashgrep-{secrets.token_hex(4)}", server.work_done_progress, False
    try:
        while (stats := await folder.ask("stats", {})).get("stage") not in READY:
            state: dict[str, Any] = {"message": stats["stage"], "percentage": int(100 * stats["indexing"]["share"])}
            if not has_begun:
                await progress.create_async(token)
                title = f"flashgrep: indexing {stats['project']}"
                progress.begin(token, types.WorkDoneProgressBegin(title=title, **state))
                has_begun = True
            else:
                progress.report(token, types.WorkDoneProgressReport(**state))
            await asyncio.sleep(LOOK_SECONDS)
    except (OutsideProjects, DaemonError, DaemonEnded, JsonRpcException):
        pass  # the next question tells, if there is one
    finally:
        if has_begun:
            progress.end(token, types.WorkDoneProgressEnd())
