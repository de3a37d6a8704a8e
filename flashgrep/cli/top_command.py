"""``fgrep top``: what the daemon is doing now, until interrupted."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from flashgrep.base.paths import as_latin1
from flashgrep.base.program_name import tell
from flashgrep.cli.daemon_client import (
    MIB,
    NOT_RUNNING,
    PATIENCE_SECONDS,
    ask_running,
    failing_cleanly,
    find_user_paths,
)
from flashgrep.methods.text import escape_controls
from flashgrep.rpc.connect import send_request, try_connect

LOOK_SECONDS = 1.0
NOT_STARTED = "fgrep: fgrep daemon start starts the daemon\n"
CLOSED = "closed"
RESTING = frozenset({CLOSED, "ready", "failed"})
"""Stages in which nothing is being indexed."""


def top() -> None:
    """Show the daemon's memory, clients and projects, and how far each index is, until interrupted."""
    console = Console()
    with failing_cleanly():
        tables = _follow()
        table = next(tables, None)
        if table is None:
            sys.stdout.write("not running\n")
            tell(NOT_STARTED)
            raise SystemExit(NOT_RUNNING)
        if not console.is_terminal:
            console.print(table)
            return
        # Not "with": interrupted while it starts, it would leave the cursor hidden.
        live = Live(table, console=console, auto_refresh=False)
        try:
            live.start()
            for table in tables:
                live.update(table, refresh=True)
        except KeyboardInterrupt:
            return
        finally:
            live.stop()


def _follow() -> Iterator[Table]:
    """Yield the daemon's state repeatedly, until it ends."""
    while (status := ask_running("$/status")) is not None:
        yield _draw(status)
        time.sleep(LOOK_SECONDS)


def _draw(status: dict[str, Any]) -> Table:
    memory = f"{status['memory_bytes'] / MIB:.0f} MiB"
    title = f"process {status['pid']}, {memory}, {status['clients']} clients"
    table = Table(title=title, title_justify="left", box=None)
    for heading in ("project", "stage", "indexed", "files", "folder"):
        table.add_column(heading, overflow="fold")
    for project in status["projects"]:
        if project["stage"] != CLOSED:
            # Names of folders: neither markup nor control characters mean anything.
            table.add_row(*map(_quote, describe_project(project)))
    return table


def _quote(text: str) -> Text:
    return Text(escape_controls(text).encode(errors="replace").decode())


def describe_project(project: Mapping[str, str]) -> tuple[str, ...]:
    """Return the row of a project that is open."""
    stage = project["stage"]
    share = files = ""
    # One at rest is not asked about: that would open what has just been closed.
    if stage not in RESTING and (state := _ask_indexing(project["root"])):
        stage = state["stage"]
        share = f"{state['share']:.0%}"
        files = f"{state['files']:,}"
    return (project["name"], stage, share, files, project["root"])


def _ask_indexing(root: str) -> Mapping[str, Any] | None:
    """Return how far a project's index is; None: it, or the daemon, has gone since the status was asked."""
    connection = try_connect(find_user_paths().socket)
    if connection is None:
        return None
    with connection:
        connection.settimeout(PATIENCE_SECONDS)
        answer = send_request(connection, "$/indexing", {"root": as_latin1(root)})
    state: Mapping[str, Any] | None = answer.get("result")
    return state
