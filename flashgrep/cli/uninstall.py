"""``fgrep uninstall``: end the daemon, remove everything flashgrep ever wrote, and check that nothing is left."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.cli.daemon_client import fail, find_user_paths
from flashgrep.cli.daemon_commands import stop_daemon
from flashgrep.cli.host_settings import NOTES, take_back
from flashgrep.cli.install_command import find_own_changes, plan_removal
from flashgrep.connect import from_latin1
from flashgrep.daemon import lifecycle
from flashgrep.errors import InvalidParams
from flashgrep.own_folders import PROJECTS, STORES, list_former_files
from flashgrep.paths import CACHE_FOLDER, GRAMMARS_FOLDER, PROJECT_FOLDER, config_file, project_socket

MINE = frozenset({"daemon.sock", "daemon.lock", "start.lock", "token", "daemon.log", "daemon.log.1", "crash.log"})
PROJECTS_FILE = "projects.json"
IGNORE_ALL = "*\n"
"""What our .gitignore in a project's folder says."""


def uninstall(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only list what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End the daemon and remove its state, every index, your settings and its files in projects; sources stay.

    A project's .flashgrep/config.toml is kept: it may belong to the repository.
    What `fgrep install` added to the settings of agents and editors is removed again.
    Remove the program itself the way it was installed: pipx uninstall flashgrep, uv tool uninstall flashgrep, or pip.
    """
    # Read before the state folder goes: it alone knows where projects are.
    folders = sorted({Path.cwd(), *_read_roots()})
    hosts, files = list(find_own_changes(folders)), list(find_leftovers())
    pid = lifecycle.find_holder(find_user_paths())
    steps = [f"stop the daemon (process {pid})"] if pid else []
    steps += [f"take flashgrep out of {entry.path}" for entry in hosts] + [f"remove {path}" for path in files]
    if not steps:
        typer.echo("nothing to remove", err=True)
        return
    typer.echo("\n".join(steps))
    if dry_run:
        typer.echo("nothing was removed: this was a dry run", err=True)
        return
    if not yes and not sys.stdin.isatty():
        fail("nothing was removed: standard input is not a terminal, so nobody can confirm; pass --yes")
    if not yes and not typer.confirm("Go on?"):
        raise typer.Exit(1)
    # First: a running daemon would write its files again.
    stop_daemon()
    left: list[str] = []
    for entry in hosts:
        try:
            take_back(plan_removal(entry), Path(find_user_paths().state))
        except InvalidParams as error:
            left.append(error.message)
        except OSError as error:
            left.append(f"{entry.path}: {error.strerror}")
    for path in files:
        remove(path)
    # Look again instead of trusting that every removal worked.
    left += map(str, find_leftovers())
    if left:
        fail("could not be removed: " + ", ".join(left))
    sys.stderr.write("clean: no process, no index, no state, no settings is left\n")


def find_leftovers() -> Iterator[Path]:
    """Yield every file and folder of ours that exists: projects' folders first, since the state lists them."""
    paths = find_user_paths()
    state, cache, settings = Path(paths.state), Path(paths.cache), Path(config_file(os.environ))
    yield from (root / PROJECT_FOLDER for root in _read_roots() if _find_ours(root))
    if settings.exists():
        yield settings
    if cache.is_dir() and cache.parent != state:
        yield cache
    if state.is_dir():
        yield state


def clear_project(root: Path) -> None:
    """Remove what is ours in a project's folder, by its name, and the folder if nothing else is in it."""
    folder = root / PROJECT_FOLDER
    for path in _find_ours(root):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    if not folder.is_symlink():
        with suppress(OSError):  # it holds settings, or what is not ours
            folder.rmdir()


def _find_ours(root: Path) -> list[Path]:
    """Return what is ours in a project's folder; nothing is ours where a link has the folder's name."""
    folder = root / PROJECT_FOLDER
    if folder.is_symlink():
        return []
    found = list_former_files(root)
    if Path(project_socket(str(root))).is_socket():
        found.append(Path(project_socket(str(root))))
    with suppress(OSError, ValueError):
        ignore = folder / ".gitignore"
        if not ignore.is_symlink() and ignore.stat().st_size == len(IGNORE_ALL) and ignore.read_text() == IGNORE_ALL:
            found.append(ignore)
    return found


def _read_roots() -> list[Path]:
    """Return the roots of all known projects."""
    try:
        roots = json.loads(Path(find_user_paths().state, PROJECTS_FILE).read_bytes())["projects"].values()
        return [Path(from_latin1(root)) for root in roots]
    except (OSError, ValueError, KeyError, AttributeError):
        return []


def remove(path: Path) -> None:
    """Remove a file, or a folder; of a folder the user named, only what is ours, for it may hold other things."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        if path == Path(config_file(os.environ)):
            with suppress(OSError):  # something else lies in it
                path.parent.rmdir()
        return
    if path.name == PROJECT_FOLDER:
        clear_project(path.parent)
        return
    folders = [path]
    if path == Path(find_user_paths().state):
        for name in (*MINE, PROJECTS_FILE):
            (path / name).unlink(missing_ok=True)
        for name in (GRAMMARS_FOLDER, NOTES):
            shutil.rmtree(path / name, ignore_errors=True)
        # A cache below a state folder that was named for itself (FLASHGREP_STATE_DIR).
        folders = [path / CACHE_FOLDER, path]
    for folder in folders:
        for name in (STORES, PROJECTS):
            shutil.rmtree(folder / name, ignore_errors=True)
        with suppress(OSError):  # something else is in it
            folder.rmdir()
