"""``fgrep daemon status``, without typer: it is asked often, and its answer takes less time than typer's import."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from flashgrep.cli.ask import ask_running, failing_cleanly

NOT_RUNNING = 1
MIB = 1024 * 1024


def show_status(*, as_json: bool) -> int:
    """Print whether the daemon runs, where it listens and what it serves; the exit status is 1 if none runs."""
    with failing_cleanly():
        found = ask_running("$/status")
    if found is None:
        sys.stdout.write("not running\n")
        return NOT_RUNNING
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        print_status(found)
    return 0


def print_status(found: Mapping[str, Any]) -> None:
    """Print the daemon's status, a line a fact."""
    sys.stdout.write("".join(f"{name:<10} {text}\n" for name, text in status_rows(found)))


def status_rows(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of a status, each with its name."""
    rows = [
        ("running", f"process {found['pid']}, flashgrep {found['version']}, up {found['uptime_seconds']:.0f} s"),
        ("memory", f"{found['memory_bytes'] / MIB:.0f} MiB, {found['clients']} clients"),
        ("socket", found["socket"]),
        ("tcp", _tcp(found["tcp"])),
    ]
    rows += [("project", f"{project['name']}  {project['root']}") for project in found["projects"]]
    rows += [("warning", warning) for project in found["projects"] for warning in project.get("warnings", ())]
    return rows + [("problem", f"{root}: {problem}") for root, problem in found["problems"].items()]


def _tcp(tcp: Mapping[str, Any] | None) -> str:
    if tcp is None:
        return "off"
    if tcp["port"] is None:
        return f"none: {tcp['problem']}"
    moved = tcp["wanted"] not in (0, tcp["port"])
    return f"127.0.0.1:{tcp['port']}" + (f" (port {tcp['wanted']} was taken)" if moved else "")
