"""What a person types first, and second, and by mistake; each message read as that person reads it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.hosts.hosts import HOSTS, locate_folders
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.mcp_clients import token_of


def test_a_reader_that_has_enough_ends_a_long_answer_quietly(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"many.txt": "needle in a long line of hay\n" * 20_000})
    command = [
        FGREP,
        "query",
        "needle",
        "--limit",
        "10000",
        "--max-bytes",
        "3000000",
        "--max-tokens",
        "1000000",
    ]
    process = subprocess.Popen(
        command,
        cwd=root,
        env=daemon.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == b"many.txt:1:needle in a long line of hay\n"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.wait(30) in {0, 141}


PRINTING = (
    "symbol x",
    "projects list",
    "store list",
    "daemon status",
    "config",
    "completion man",
    "hook --explain ls",
    "install codex --print",
    "model list",
    "help all",
)


def write_to(
    descriptor: int, command: str, daemon: DaemonAtHand, root: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command whose output goes to a descriptor."""
    return subprocess.run(
        [FGREP, *command.split()],
        cwd=root,
        env=daemon.environ,
        stdout=descriptor,
        stderr=subprocess.PIPE,
        text=True,
        timeout=BOUND,
        check=False,
    )


def test_a_reader_that_is_gone_ends_every_command_quietly(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"})
    daemon.add(root)
    reader, writer = os.pipe()
    os.close(reader)
    for command in PRINTING:
        ended = write_to(writer, command, daemon, root)
        assert (ended.stderr, ended.returncode in {1, 141}) == ("", True), command
    os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_said_and_is_status_2(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"})
    daemon.add(root)
    full = os.open("/dev/full", os.O_WRONLY)
    for command in PRINTING:
        ended = write_to(full, command, daemon, root)
        assert ended.returncode == 2, command
        assert ended.stderr == "fgrep: No space left on device\n", command
    os.close(full)


def test_names_that_are_not_text_go_through_a_pipe_and_back(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project()
    name = b"new\nline \xff.txt"
    Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"needle\n")
    found = subprocess.run(
        [FGREP, "files"], cwd=root, env=daemon.environ, capture_output=True, check=True
    )
    assert found.stdout == name + b"\n"
    sliced = subprocess.run(
        [FGREP.encode(), b"slice", name, b"1", b"1"],
        cwd=root,
        env=daemon.environ,
        capture_output=True,
        check=True,
    )
    assert sliced.stdout == b"needle\n"


def test_uninstalled_no_host_starts_it_any_more(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root, elsewhere = project({"a.txt": "needle"}), project({"b.txt": "needle"})
    home = Path(cold_daemon.environ["HOME"])
    theirs = {
        "other": {"command": "other"},
        "flashgrep": {"command": "/somewhere/else/flashgrep", "args": ["mcp"]},
    }
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": theirs}))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('model = "o"\n')
    for host, where in (("cursor", root), ("opencode", root), ("zed", elsewhere)):
        assert cold_daemon.run("install", host, cwd=where).returncode == 0
    for host in ("codex", "vscode"):
        assert cold_daemon.run("install", host, "--global", cwd=root).returncode == 0
    cold_daemon.run("index", cwd=root)
    before = {
        path: path.read_bytes()
        for path in (
            *root.rglob("*.json"),
            *home.rglob("*.toml"),
            *home.rglob("*.json"),
        )
    }
    dry = cold_daemon.run("uninstall", "--dry-run", cwd=elsewhere)
    told = {
        line.split()[-1] for line in dry.stdout.splitlines() if line.startswith("take")
    }
    mine = {
        root / ".cursor/mcp.json",
        root / "opencode.json",
        elsewhere / ".zed/settings.json",
    }
    mine |= {
        home / ".codex/config.toml",
        HOSTS["vscode"].file(locate_folders(cold_daemon.environ, home), None),
    }
    assert told == set(map(str, mine))
    assert all(
        path.read_bytes() == text
        for path, text in before.items()
        if ".flashgrep" not in path.parts
    )
    gone = cold_daemon.run("uninstall", "--yes", cwd=elsewhere)
    assert (gone.returncode, gone.stderr.splitlines()[-1][:6]) == (0, "clean:")
    assert json.loads((root / ".mcp.json").read_bytes()) == {"mcpServers": theirs}
    assert (home / ".codex" / "config.toml").read_text() == 'model = "o"\n'
    assert sorted(path.name for path in root.iterdir()) == [
        ".git",
        ".mcp.json",
        "a.txt",
    ]
    assert sorted(path.name for path in elsewhere.iterdir()) == [".git", "b.txt"]
    assert [path.name for path in (home / ".codex").iterdir()] == ["config.toml"]


def test_a_path_after_the_text_narrows_the_search(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"src/a.txt": "needle", "b.txt": "needle"})
    below = daemon.run("query", "needle", "src/", cwd=root)
    assert below.stdout == "src/a.txt:1:needle\n"
    narrowed = daemon.run("query", "needle", "-g", "src/**", cwd=root)
    assert narrowed.stdout == "src/a.txt:1:needle\n"
    as_rg = daemon.run("rg", "needle", "src/", cwd=root)
    assert as_rg.stdout == "src/a.txt:needle\n"


@pytest.mark.parametrize("door", ["tcp", "token", "project", "stdio"])
def test_commands_of_the_terminal_run_on_the_control_socket_alone(
    daemon: DaemonAtHand, project: MakeProject, door: str
) -> None:
    root = project({"a.txt": "needle"})
    daemon.add(root)
    wire = (
        daemon.wire("unix", root)
        if door == "project"
        else daemon.wire("stdio" if door == "stdio" else "tcp")
    )
    if door == "token":
        wire.call("auth", token=token_of(daemon))
    given = {"cwd": str(root), "tty": False, "color": False, "width": 80}
    calls: dict[str, dict[str, Any]] = {
        "$/cli": {"argv": ["rg", "--no-config", "root", "/etc/passwd"], **given},
        "$/open": {"folder": str(root.parent), "adopt": True},
        "$/remove": {"name": root.name},
        "$/indexing": {"root": str(root)},
        "$/serve": {"port": 0},
        "$/shutdown": {},
    }
    for method, params in calls.items():
        error = wire.fail(method, **params)
        assert (error["code"], error["data"]["reason"]) == (-32006, "control_only"), (
            method
        )
    answer = wire.ask("$/status")
    assert (
        answer["result"]["pid"]
        if door == "token"
        else answer["error"]["data"]["reason"] == "auth_required"
    )
    wire.close()
    assert {path.name: path.read_text() for path in root.glob("*.txt")} == {
        "a.txt": "needle"
    }


def test_commands_on_files_take_paths_as_seen_from_the_current_folder(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"sub/a.txt": "one\n"})
    here = root / "sub"
    written = daemon.run("fs-write", "b.txt", "two", cwd=here).stdout.split()
    assert (written[0], written[2:]) == ("3", ["b.txt"])
    assert (
        daemon.run("fs-copy", "b.txt", "../c.txt", cwd=here).stdout
        == "copied b.txt to ../c.txt\n"
    )
    assert (
        daemon.run("fs-move", "a.txt", "d.txt", cwd=here).stdout
        == "moved a.txt to d.txt\n"
    )
    listed = daemon.run("fs-list", ".", "--limit", "1", cwd=here)
    assert listed.stdout.split()[2:] == ["b.txt"]
    assert listed.stderr == "fgrep: 1 of 2 shown; continue with --offset 1\n"
    assert daemon.run("fs-remove", "b.txt", cwd=here).stdout == "removed b.txt\n"
    assert daemon.run(
        "fs-remove", "b.txt", "--force", "--dry-run", cwd=here
    ).stdout == ("removed b.txt\nit was not there\ndry run: nothing is written\n")
    assert daemon.run("fs-read", "d.txt", cwd=here).stdout == "one\n"
    told = dict(
        line.split(maxsplit=1)
        for line in daemon.run("stats", cwd=here).stdout.splitlines()
    )
    assert told["project"].endswith(f" ({root})")
    assert told["files"] == "2"
    assert sorted(
        path.name for path in root.rglob("*.txt") if ".flashgrep" not in path.parts
    ) == ["c.txt", "d.txt"]
