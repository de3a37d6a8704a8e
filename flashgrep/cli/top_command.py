"""``fgrep top``: what the daemon is doing now, until interrupted."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from flashgrep.cli.daemon_client import MIB, NOT_RUNNING, ask_running, failing_cleanly

LOOK_SECONDS = 1.0
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
            raise SystemExit(NOT_RUNNING)
        if not console.is_terminal:
            console.print(table)
            return
        try:
            with Live(table, console=console, auto_refresh=False) as live:
                for table in tables:
                    live.update(table, refresh=True)
        except KeyboardInterrupt:
            return


def _follow() -> Iterator[Table]:
    """Yield the daemon's state repeatedly, until it ends."""
    while (status := ask_running("$/status")) is not None:
        yield _draw(status)
        time.sleep(LOOK_SECONDS)


def _draw(status: dict[str, Any]) -> Table:
    title = f"process {status['pid']}, {status['memory_bytes'] / MIB:.0f} MiB, {status['clients']} clients"
    table = Table(title=title, title_justify="left", box=None)
    for heading in ("project", "stage", "indexed", "files", "folder"):
        table.add_column(heading)
    for project in status["projects"]:
        stage = project["stage"]
        # A project at rest is not asked: that would open one that is closed.
        if stage not in RESTING:
            table.add_row(*_describe_work(project))
        elif stage != CLOSED:
            table.add_row(project["name"], stage, "", "", project["root"])
    return table


def _describe_work(project: Mapping[str, str]) -> tuple[str, ...]:
    """Return the row of a project that is being indexed."""
    state = ask_running("$/indexing", root=project["root"])
    if state is None:
        return (project["name"], "", "", "", project["root"])
    share = f"{state['share']:.0%}"
    files = f"{state['files']:,}"
    return (project["name"], state["stage"], share, files, project["root"])
