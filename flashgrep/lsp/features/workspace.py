"""What is about folders: the daemon's searches as commands for an editor's own code, and how far an index is.

A command takes the question and, if wanted, an object of the method's own parameters (``skills/reference.md``).
"""

import asyncio
import secrets
from contextlib import aclosing
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
ENDED: Final = frozenset({"ready", "failed", "closed"})
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
    """Report until the index of a folder's project is made; nothing, if it is."""
    token, progress = f"flashgrep-{secrets.token_hex(4)}", server.work_done_progress
    has_begun, last = False, dict[str, Any]()
    try:
        async with aclosing(folder.follow()) as states:
            async for state in states:
                if state["stage"] in ENDED:
                    return
                shown: dict[str, Any] = {"message": state["stage"], "percentage": int(100 * state["share"])}
                if not has_begun:
                    await progress.create_async(token)
                    title = f"flashgrep: indexing {state['project']}"
                    progress.begin(token, types.WorkDoneProgressBegin(title=title, **shown))
                    has_begun = True
                elif shown != last:
                    # States come more often than whole percents change.
                    progress.report(token, types.WorkDoneProgressReport(**shown))
                last = shown
    except (OutsideProjects, DaemonError, DaemonEnded, JsonRpcException):
        pass  # the next question tells, if there is one
    finally:
        if has_begun:
            progress.end(token, types.WorkDoneProgressEnd())
