"""``fgrep uninstall``: end the daemon and remove all that flashgrep ever wrote, and look whether anything is left."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.cli.ask import fail, places
from flashgrep.cli.daemon_commands import stop_daemon
from flashgrep.cli.uninstall_hosts import installed, take_out
from flashgrep.daemon import lifecycle
from flashgrep.errors import InvalidParams
from flashgrep.places import PROJECT_FOLDER, config_file

MINE = frozenset({"daemon.sock", "daemon.lock", "start.lock", "token", "daemon.log", "daemon.log.1", "crash.log"})
PROJECTS_FILE = "projects.json"
FALLBACK_FOLDER = "projects"


def uninstall(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only list what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End the daemon and remove its state, your settings and every project's .flashgrep folder; sources stay.

    What `fgrep install` added to the settings of agents and editors is taken out again.
    The program itself is removed as it was installed: pipx uninstall flashgrep, uv tool uninstall flashgrep, or pip.
    """
    found = list(leftovers())
    folders = sorted({Path.cwd(), *_roots(Path(places().state))})
    hosts = list(installed(folders, Path.home()))
    pid = lifecycle.holder(places())
    for line in [f"stop the daemon (process {pid})"] if pid else []:
        typer.echo(line)
    for entry in hosts:
        typer.echo(f"take flashgrep out of {entry.path}")
    for path in found:
        typer.echo(f"remove {path}")
    if dry_run or not (found or hosts or pid):
        typer.echo(
            "nothing to remove" if not (found or hosts or pid) else "nothing was removed: this was a dry run", err=True
        )
        return
    if not yes and not sys.stdin.isatty():
        fail("nothing was removed: standard input is no terminal to ask on; say --yes")
    if not yes and not typer.confirm("Go on?"):
        raise typer.Exit(1)
    stop_daemon()
    for entry in hosts:
        with suppress(InvalidParams, OSError):  # what is left is told below
            take_out(entry)
    for path in found:
        _remove(path)
    left = [*(entry.path for entry in installed(folders, Path.home())), *leftovers()]
    if left:
        fail("could not be removed: " + ", ".join(map(str, left)))
    sys.stderr.write("clean: no process, no state, no settings, no .flashgrep folder is left\n")


def leftovers() -> Iterator[Path]:
    """Yield every file and folder of ours that exists: projects' folders first, for the state names them."""
    state = Path(places().state)
    yield from (folder for root in _roots(state) if (folder := root / PROJECT_FOLDER).is_dir())
    settings = Path(config_file(os.environ))
    if settings.exists():
        yield settings
    if state.is_dir():
        yield state


def clear_project(root: Path) -> None:
    """Remove the folder of ours in a project."""
    _remove(root / PROJECT_FOLDER)


def _roots(state: Path) -> list[Path]:
    try:
        found = json.loads((state / PROJECTS_FILE).read_bytes())["projects"].values()
        return [Path(os.fsdecode(root.encode("latin-1"))) for root in found]
    except (OSError, ValueError, KeyError, AttributeError):
        return []


def _remove(path: Path) -> None:
    """Remove a file, or a folder; of a state folder the user named, only what is ours, for it may hold other things."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        if path == Path(config_file(os.environ)):
            with suppress(OSError):  # something else lies in it
                path.parent.rmdir()
        return
    if path == Path(places().state):
        for name in (*MINE, PROJECTS_FILE):
            (path / name).unlink(missing_ok=True)
        shutil.rmtree(path / FALLBACK_FOLDER, ignore_errors=True)
        if not any(path.iterdir()):
            path.rmdir()
        return
    shutil.rmtree(path, ignore_errors=True)
