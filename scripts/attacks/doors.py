"""Requests for what each connection must refuse: control methods, other projects, the token, writing."""

import json
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from scripts.attacks.target import Outcome, Target, ask_once, tcp

Door = Literal["a project's socket", "TCP without the token"]
DOORS: tuple[Door, ...] = ("a project's socket", "TCP without the token")
CONTROL = frozenset({"$/cli", "$/shutdown", "$/remove", "$/open", "$/serve", "$/bind"})


def attack_doors(made: Target) -> Outcome:
    """Send every call that exceeds the rights of its connection."""
    outcome = Outcome()
    other = made.folder / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    content = f"needle {made.secret}\n"
    (other / "a.txt").write_text(content)
    made.daemon.run("projects", "add", str(other))
    for door in DOORS:
        for method, params in _calls(made, other, door):
            outcome.tried += 1
            line = (
                json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                ).encode()
                + b"\n"
            )
            try:
                answer = _send(made, door, line)
            except OSError:
                outcome.wrong.append(f"{door}: the daemon ended before {method}")
                made.daemon.start()
                continue
            if made.told_secrets(answer) or b'"result"' in answer:
                outcome.wrong.append(
                    f"{door} answered {line[:200]!r}: {answer[:200]!r}"
                )
            if (other / "a.txt").read_text() != content:
                outcome.wrong.append(f"{door}: {method} wrote into another project")
                (other / "a.txt").write_text(content)
    shutil.rmtree(other)
    return outcome


def _send(made: Target, door: Door, line: bytes) -> bytes:
    if door == "TCP without the token":
        with tcp(made) as connection:
            return ask_once(connection, line)
    with closing(made.connect()) as wire:
        return ask_once(wire.connection, line)


def _calls(made: Target, other: Path, door: Door) -> list[tuple[str, dict[str, Any]]]:
    """Return calls that must not get a result on this connection."""
    state = made.daemon.paths.state
    rg = {
        "argv": ["rg", "needle", str(other)],
        "cwd": str(other),
        "environ": {},
        "tty": False,
        "width": 80,
    }
    project = {"project": str(other)}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("$/cli", rg),
        ("$/shutdown", {}),
        ("$/remove", {"name": "other"}),
        ("$/open", {"folder": str(other), "adopt": True}),
        ("$/serve", {}),
        ("query", {"text": "needle"})
        if door != "a project's socket"
        else ("$/bind", project),
        ("fs_read", {"path": "token", "project": state}),
        ("fs_read", {"path": "state/token", "project": str(made.folder)}),
        (
            "write_code",
            {"file_path": "a.txt", "old_text": "needle", "new_text": "x", **project},
        ),
        ("fs_remove", {"path": "a.txt", **project}),
        ("auth", {"token": "guessed"}),
    ]
    if (
        door == "a project's socket"
    ):  # over TCP the user's programs may read any of the user's projects
        calls += [
            ("query", {"text": "needle", **project}),
            ("query", {"text": "needle", "project": "other"}),
            ("fs_read", {"path": "a.txt", **project}),
            ("index_codebase", {"path": str(other), "rebuild": True}),
            ("watch_codebase", {"path": str(other), "action": "stop"}),
        ]
    return calls
