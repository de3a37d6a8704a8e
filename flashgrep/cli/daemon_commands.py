"""``fgrep daemon``: start, stop, restart, status, logs, run."""

import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.cli.ask import ask_daemon, ask_running, fail, failing_cleanly, find_user_paths
from flashgrep.cli.status import print_status, show_status
from flashgrep.connect import start_daemon
from flashgrep.daemon import lifecycle
from flashgrep.errors import FlashgrepError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Start, stop and watch the background daemon.")


@app.command()
def start() -> None:
    """Start the daemon unless it runs; every other command does so by itself."""
    with failing_cleanly():
        start_daemon(find_user_paths(), os.environ)
        print_status(ask_daemon("$/status"))


@app.command()
def stop() -> None:
    """End the daemon: calls in flight are finished, then it goes."""
    if not stop_daemon():
        typer.echo("not running")


@app.command()
def restart() -> None:
    """End the daemon and start a new one."""
    stop_daemon()
    start()


@app.command()
def status(*, as_json: Annotated[bool, typer.Option("--json", help="Print the raw status as JSON.")] = False) -> None:
    """Show whether the daemon runs, where it listens and what it serves; exit status 1 when it does not run."""
    raise typer.Exit(show_status(as_json=as_json))


@app.command()
def logs(
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Lines to show, the newest last.")] = 50,
) -> None:
    """Show the end of the daemon's log, one JSON object a line, and where it is."""
    log = Path(find_user_paths().log)
    sys.stderr.write(f"{log}\n")
    if log.exists():
        typer.echo("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]))


@app.command()
def run(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port instead of the configured one.")] = None,
    idle_minutes: Annotated[float | None, typer.Option(min=0, help="Idle minutes before it ends; 0: never.")] = None,
) -> None:
    """Run the daemon in the foreground, for a service manager or to look at it; it logs to its file."""
    flags = {"tcp.port": port, "idle_exit_minutes": idle_minutes}
    given = {key: item for key, item in flags.items() if item is not None}
    try:
        # Everything the daemon stands on costs 0.5 s to import: only this command needs it.
        import_module("flashgrep.cli.run_daemon").run(os.environ, given, lambda said: typer.echo(said, err=True))
    except (FlashgrepError, OSError) as error:
        fail(str(error))


def stop_daemon() -> bool:
    """End the daemon, asked first, by signals if it does not answer; say whether one ran."""
    here = find_user_paths()
    if lifecycle.holder(here) is None:
        return False
    with failing_cleanly():
        with suppress(OSError):  # it is stuck, or went by itself; signals come next
            ask_running("$/shutdown")
        if not lifecycle.wait_until_free(here, lifecycle.STOP_SECONDS) and not lifecycle.terminate(here):
            fail(f"the daemon (process {lifecycle.holder(here)}) cannot be stopped")
    return True
