"""Shared by the local commands: calling the daemon, reporting errors, and ``fgrep daemon status``.

Without typer: the status is asked often, and its answer takes less time than typer's import.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socket import socket
from typing import Any, NoReturn, cast

from flashgrep.base.paths import Paths, cache_folder, describe_failure, state_folder
from flashgrep.base.program_name import tell
from flashgrep.rpc.connect import connect, send_request, try_connect

NOT_RUNNING = 1
ERROR = 2
MIB = 1024 * 1024
MOST_NAMES = 10
"""Of projects, in an error."""
PATIENCE_SECONDS = 5.0
"""A running daemon reports its status in milliseconds; one that is stopped or stuck never answers."""


CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160))}
"""How a terminal is shown the characters that it would obey."""


def show_name(name: str) -> str:
    """Return the name of a project or a folder for standard output: on a terminal with its control characters escaped."""
    if os.isatty(1):
        return name.translate(CONTROLS)
    return name


def find_user_paths() -> Paths:
    """Return the paths of this user's daemon."""
    return Paths(state_folder(os.environ), cache_folder(os.environ))


def call(connection: socket, method: str, params: dict[str, object]) -> Any:
    """Return the result of one of the daemon's methods, or end the command with its error."""
    answer = cast("dict[str, Any]", send_request(connection, method, params))
    if "error" in answer:
        message = answer["error"]["message"]
        advice = advise(answer["error"].get("data", {}))
        if advice:
            message += f"\nfgrep: {advice}"
        fail(message)
    return answer["result"]


def advise(data: Mapping[str, Any]) -> str:
    """Return what to do about an error, by its data; empty: nothing is known."""
    if data.get("suggestion"):
        return str(data["suggestion"])
    if data.get("reason") != "project_not_found":
        return ""
    # A command is bound to no project, and so is told of none by the method.
    names = ", ".join(data.get("known", [])[:MOST_NAMES])
    if not names:
        return "fgrep projects lists the projects"
    return f"fgrep projects lists the projects: {names}"


def ask_daemon(method: str, **params: object) -> Any:
    """Return the result of one of the daemon's methods, starting the daemon if needed."""
    with connect(find_user_paths(), os.environ) as connection:
        return call(connection, method, params)


def ask_running(method: str, **params: object) -> Any | None:
    """Return the result of one of the daemon's methods, or None when no daemon runs."""
    connection = try_connect(find_user_paths().socket)
    if connection is None:
        return None
    with connection:
        connection.settimeout(PATIENCE_SECONDS)
        return call(connection, method, params)


def fail(message: str) -> NoReturn:
    """End the command with a message on stderr and status 2."""
    tell(f"fgrep: {message}\n")
    raise SystemExit(ERROR)


@contextmanager
def failing_cleanly() -> Iterator[None]:
    """End the command with a readable error if the daemon cannot be reached or a folder cannot be used."""
    try:
        yield
    except BrokenPipeError:  # of standard output: its reader has had enough
        raise
    except (OSError, ValueError) as error:
        fail(describe_failure(error))


def show_status(*, as_json: bool) -> int:
    """Print whether the daemon runs, where it listens and what it serves; the exit status is 1 if none runs."""
    with failing_cleanly():
        status = ask_running("$/status")
    if status is None:
        sys.stdout.write("not running\n")
        return NOT_RUNNING
    if as_json:
        sys.stdout.write(json.dumps(status, indent=2) + "\n")
    else:
        print_status(status)
    return 0


def print_status(status: Mapping[str, Any]) -> None:
    """Print the daemon's status, one fact a line."""
    sys.stdout.write(
        "".join(f"{name:<10} {text}\n" for name, text in status_rows(status))
    )


def status_rows(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of a status, each with its name."""
    tcp = status["tcp"]
    projects = status["projects"]
    if tcp is None:
        listens = "off"
    elif tcp["port"] is None:
        listens = f"none: {tcp['problem']}"
    else:
        if tcp["wanted"] not in (0, tcp["port"]):
            moved = f" (port {tcp['wanted']} was taken)"
        else:
            moved = ""
        listens = f"127.0.0.1:{tcp['port']}{moved}"
    return [
        (
            "running",
            f"process {status['pid']}, flashgrep {status['version']}, up {status['uptime_seconds']:.0f} s",
        ),
        ("memory", f"{status['memory_bytes'] / MIB:.0f} MiB"),
        ("clients", str(status["clients"])),
        ("socket", status["socket"]),
        ("tcp", listens),
        *(
            ("project", show_name(f"{project['name']}  {project['root']}"))
            for project in projects
        ),
        *(
            ("warning", warning)
            for project in projects
            for warning in project.get("warnings", ())
        ),
        *(
            ("problem", show_name(f"{root}: {problem}"))
            for root, problem in status["problems"].items()
        ),
    ]
