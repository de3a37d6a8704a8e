"""The daemon's side of ``fgrep rg``: the project around the folder, a thread that searches, pieces to the client."""

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from flashgrep.cli.rg.args import Arguments, parse, usage
from flashgrep.cli.rg.run import FAILED, FOUND, Command, Gone, Place
from flashgrep.daemon.projects import bind
from flashgrep.errors import InvalidParams, NotFound
from flashgrep.rpc.context import RequestContext
from flashgrep.scheduler import blocking
from flashgrep.search.exact import View
from flashgrep.workspace import Workspace

STDOUT = "$/stdout"
"""What the client is asked to write, piece by piece, while the command runs: it answers when it has written."""


async def answer(context: RequestContext, argv: list[str], cwd: str, *, tty: bool, color: bool) -> dict[str, Any]:
    """Answer ``fgrep rg``: to ``{stdout, stderr, status}``, bytes as latin-1; long output goes ahead in pieces."""
    if {"-h", "--help"} & set(argv[: argv.index("--")] if "--" in argv else argv):
        return _said(usage(), "", FOUND)
    try:
        arguments = parse(argv)
    except InvalidParams as error:
        return _said(b"", f"fgrep rg: {error.message}\n", FAILED)
    run = _Run(context, arguments, os.fsencode(cwd), tty=tty, color=color)
    workspace = await _workspace(context, cwd)
    try:
        if workspace is None:
            return await anyio.to_thread.run_sync(run.plainly, abandon_on_cancel=True)
        await workspace.refresh()
        return await workspace.in_thread(lambda view: run.within(view, workspace))
    finally:
        run.stopped = True


class _Run:
    """One command in a thread; ``stopped`` ends it at the next file."""

    def __init__(self, context: RequestContext, arguments: Arguments, cwd: bytes, *, tty: bool, color: bool) -> None:
        self.stopped = False
        self._context = context
        self._arguments = arguments
        self._cwd = cwd
        self._tty = tty
        self._color = color

    def plainly(self) -> dict[str, Any]:
        """Run outside of every project."""
        return self._run(None, None)

    def within(self, view: View, workspace: Workspace) -> dict[str, Any]:
        """Run within a project."""
        return self._run(view, workspace)

    def _run(self, view: View | None, workspace: Workspace | None) -> dict[str, Any]:
        walker = workspace.walker if workspace else None
        place = Place(self._cwd, view, walker, tty=self._tty, color=self._color, stopped=lambda: self.stopped)
        command = Command(self._arguments, place, self._send)
        try:
            status = command.run()
        except Gone:
            status = FAILED
        return _said(command.out.take(), "".join(f"{line}\n" for line in command.errors), status)

    def _send(self, piece: bytes) -> None:
        if self.stopped:
            raise Gone
        params = {"stdout": piece.decode("latin-1")}
        with blocking():
            anyio.from_thread.run(self._context.peer.request, STDOUT, params)


async def _workspace(context: RequestContext, cwd: str) -> Workspace | None:
    """Return the project that ``cwd`` lies in, if it lies in one that can be opened."""
    try:
        await bind(context.call, Path(cwd), None)
        found = await context.call.host.workspace(context.call, None)
    except NotFound:
        return None
    return found if isinstance(found, Workspace) else None


def _said(stdout: bytes, stderr: str, status: int) -> dict[str, Any]:
    return {
        "stdout": stdout.decode("latin-1"),
        "stderr": os.fsencode(stderr).decode("latin-1"),
        "status": status,
    }
