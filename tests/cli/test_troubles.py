"""When something is wrong with the machine or the settings: what ``doctor``, ``config``, ``install`` and others say."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flashgrep.api.part import CheckResult
from flashgrep.base.errors import InvalidParams
from flashgrep.base.own_folders import INDEX, store_folder
from flashgrep.cli.daemon_client import status_rows
from flashgrep.cli.doctor import check_machine, check_project
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject


def checks(daemon: DaemonAtHand, status: int = 0) -> dict[str, str]:
    """Return what doctor says, by check."""
    found = daemon.run("doctor")
    assert found.returncode == status, found.stdout
    rows = [line.split(None, 2) for line in found.stdout.splitlines()]
    told = {
        check: f"{state} {text}" for state, check, text in rows if check != "project"
    }
    return told | {
        text.split()[0]: f"{state} {text}"
        for state, check, text in rows
        if check == "project"
    }


def test_settings_are_shown_one_a_line_with_their_origin(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(
        {".flashgrep/config.toml": "[index]\nmax_file_size = 2000\n", "sub/a": ""}
    )
    shown = cold_daemon.run("config", "show", str(root / "sub"))
    assert shown.returncode == 0, shown.stderr
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert rows["index.max_file_size"][0] == "2000"
    assert "project" in " ".join(rows["index.max_file_size"])
    assert rows["tcp.port"] == ["0", "environment"]
    assert (
        cold_daemon.run("config", "path").stdout
        == f"{cold_daemon.environ['XDG_CONFIG_HOME']}/flashgrep/config.toml\n"
    )


def test_a_wrong_setting_stops_those_that_need_the_settings(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.environ["FLASHGREP_LOG_LEVEL"] = "loud"
    for command in (["config", "show"], ["daemon", "run"]):
        said = cold_daemon.run(*command)
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.startswith("fgrep: environment: log.level: ")
    assert cold_daemon.run("daemon", "status").stdout == "not running\n"


def test_doctor_without_a_daemon_has_nothing_to_complain_of(
    cold_daemon: DaemonAtHand,
) -> None:
    told = checks(cold_daemon)
    assert told["daemon"] == "ok not running; the next command starts it"
    assert told["state"] == f"ok {cold_daemon.paths.state}"


def test_doctor_tells_a_state_folder_that_others_may_write(
    cold_daemon: DaemonAtHand,
) -> None:
    Path(cold_daemon.paths.state).mkdir(mode=0o700)
    Path(cold_daemon.paths.state).chmod(0o777)
    assert "is writable by others" in checks(cold_daemon, status=1)["state"]


def test_doctor_reports_an_index_being_created_as_not_indexed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHGREP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FLASHGREP_CACHE_DIR", str(tmp_path / "cache"))
    file = store_folder(tmp_path / "cache", os.fsencode(tmp_path)) / INDEX
    file.parent.mkdir(parents=True)
    file.touch()  # as the indexer leaves it until its first transaction
    found = check_project(
        {"name": "there", "root": str(tmp_path), "problem": "", "stage": "listing"}, {}
    )
    assert found == CheckResult(
        "ok", "project there", f"{tmp_path}: not indexed yet, stage listing"
    )


@pytest.mark.parametrize("full", ["cache", "state"])
def test_doctor_tells_the_fuller_of_the_disks_of_index_and_state(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cache", "state"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"FLASHGREP_{name.upper()}_DIR", str(tmp_path / name))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda folder: usage._replace(free=0 if folder.name == full else 10**12),
    )
    told = [(one.state, one.text) for one in check_machine() if one.check == "disk"]
    assert told == [("warn", f"0.0 GB free for {tmp_path / full}")]


def test_doctor_tells_which_fgrep_the_shell_finds(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    cold_daemon.environ["PATH"] = str(tmp_path)
    assert checks(cold_daemon)["PATH"] == "warn it has no fgrep"
    other = tmp_path / "fgrep"
    other.write_text("#!/bin/sh\nexec grep -F\n")
    other.chmod(0o755)
    assert (
        checks(cold_daemon)["PATH"]
        == f"warn fgrep is {other}, another program; use flashgrep"
    )
    other.write_text("#!/usr/bin/python\nfrom flashgrep.cli.client import main\n")
    assert checks(cold_daemon)["PATH"] == f"ok {other}"


@contextmanager
def taken_port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_doctor_and_status_tell_what_is_wrong_with_projects_and_ports(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    gone, blocked, whole = (
        project({}, name="gone"),
        project({}, name="blocked"),
        project({"a": "x\n"}, name="whole"),
    )
    with taken_port() as port:
        cold_daemon.environ["FLASHGREP_TCP_PORT"] = str(port)
        cold_daemon.start()
        for root in (gone, blocked, whole):
            assert cold_daemon.run("projects", "add", str(root)).returncode == 0
        assert (
            cold_daemon.run("index", str(whole)).returncode == 0
        )  # which waits until there is one
        cold_daemon.stop()
        shutil.rmtree(blocked / ".flashgrep")
        (blocked / ".flashgrep").write_text("in the way\n")
        shutil.rmtree(gone)
        shutil.rmtree(cold_daemon.index(whole).parent)
        cold_daemon.index(whole).parent.mkdir(0o700)
        cold_daemon.start()
        told = checks(cold_daemon)
        assert (
            f"port {port} is taken; listening on {cold_daemon.status()['tcp']['port']}"
            in told["tcp"]
        )
        assert told["gone"].startswith("warn ")
        assert f"{gone} is gone; fgrep projects remove gone" in told["gone"]
        assert told["blocked"].startswith("warn ")
        assert "no socket of its own" in told["blocked"]
        assert "not indexed yet" in told["whole"]
        assert told["daemon"].startswith("ok process ")
        cold_daemon.index(whole).write_bytes(
            b"no database, but longer than its header\n" * 100
        )
        assert "index damaged" in checks(cold_daemon)["whole"]
        rows = cold_daemon.run("daemon", "status").stdout
        assert f"(port {port} was taken)" in rows
        assert f"problem    {blocked}: " in rows


@pytest.mark.parametrize(
    ("tcp", "shown"),
    [
        (None, "off"),
        ({"port": None, "wanted": 7, "problem": "all taken"}, "none: all taken"),
        ({"port": 8, "wanted": 7, "problem": ""}, "127.0.0.1:8 (port 7 was taken)"),
        ({"port": 7, "wanted": 7, "problem": ""}, "127.0.0.1:7"),
        ({"port": 7, "wanted": 0, "problem": ""}, "127.0.0.1:7"),
    ],
)
def test_status_says_where_tcp_is(tcp: dict[str, Any] | None, shown: str) -> None:
    status = {
        "pid": 1,
        "version": "1",
        "uptime_seconds": 2.4,
        "memory_bytes": 3 << 20,
        "clients": 2,
        "socket": "/s",
    }
    rows = status_rows({**status, "tcp": tcp, "projects": [], "problems": {}})
    assert rows == [
        ("running", "process 1, flashgrep 1, up 2 s"),
        ("memory", "3 MiB"),
        ("clients", "2"),
        ("socket", "/s"),
        ("tcp", shown),
    ]


def test_install_leaves_settings_alone_that_it_cannot_read(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text('{"mcpServers": [}')
    refused = cold_daemon.run("install", "claude-code", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"fgrep: {file}")
    assert file.read_text() == '{"mcpServers": [}'
    file.unlink()
    file.mkdir()
    refused = cold_daemon.run("install", "claude-code", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"fgrep: {file}: not a file\n",
    )


def test_logs_say_where_they_are_even_when_there_are_none(
    cold_daemon: DaemonAtHand,
) -> None:
    said = cold_daemon.run("daemon", "logs")
    assert (said.returncode, said.stdout, said.stderr) == (
        0,
        "",
        f"{cold_daemon.paths.log}\n",
    )
    Path(cold_daemon.paths.state).mkdir(mode=0o700)
    Path(cold_daemon.paths.log).write_text("1\n2\n3\n")
    assert cold_daemon.run("daemon", "logs", "-n", "2").stdout == "2\n3\n"


@pytest.mark.slow
def test_what_only_the_entry_point_can_run_says_so() -> None:
    # Another program may call the application itself; these commands are the thin
    # client's.
    python = FGREP.removesuffix("fgrep") + "python"
    for arguments in (["rpc", "x"], ["mcp", "--project", "x"], ["rg"]):
        program = f"import sys; from flashgrep.cli.app import main; sys.exit(main({arguments!r}))"
        said = subprocess.run(
            [python, "-c", program],
            capture_output=True,
            text=True,
            env=dict(os.environ),
            check=False,
        )
        assert said.returncode == 2
        assert (
            f"run it by its entry point: flashgrep {' '.join(arguments)}" in said.stderr
        )


@pytest.mark.parametrize(
    ("argument", "says"),
    [("--nonsense", "usage: fgrep rpc [PATH]"), ("missing", "no such folder: ")],
)
def test_rpc_refuses_what_is_no_folder_of_a_project(
    daemon: DaemonAtHand, project: MakeProject, argument: str, says: str
) -> None:
    failed = daemon.run("rpc", argument, cwd=project({"a.py": "x = 1\n"}), stdin="")
    assert failed.returncode == 2
    assert says in failed.stderr


@pytest.mark.parametrize("sink", ["file", "null"])
def test_rpc_reads_a_file_and_writes_to_one(
    daemon: DaemonAtHand, tmp_path: Path, sink: str
) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "stats", "params": {}}
    (tmp_path / "requests").write_text(3 * f"{json.dumps(request)}\n")
    answers = tmp_path / "answers" if sink == "file" else Path(os.devnull)
    with (tmp_path / "requests").open("rb") as source, answers.open("wb") as output:
        done = subprocess.run(
            [FGREP, "rpc"],
            stdin=source,
            stdout=output,
            env=daemon.environ,
            cwd="/",
            timeout=BOUND,
            check=False,
        )
    assert done.returncode == 0
    if sink == "file":
        assert [
            json.loads(line)["id"] for line in answers.read_text().splitlines()
        ] == [1, 1, 1]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (
            "$/cli",
            {"argv": "query", "cwd": 1, "tty": False, "color": False, "width": 80},
        ),
        ("$/cli", {"argv": ["query", "x"]}),
        ("$/cli", {"argv": ["query", "x"], "cwd": "/", "width": "wide"}),
        ("$/open", {}),
        ("$/open", {"folder": 7}),
        ("$/remove", {"name": None}),
        ("$/indexing", {"root": ["x"]}),
    ],
)
def test_what_the_command_line_says_to_the_daemon_is_checked(
    daemon: DaemonAtHand, method: str, params: dict[str, Any]
) -> None:
    with closing(daemon.wire("unix")) as wire:
        error = wire.fail(method, **params)
        assert (error["code"], error["data"]["reason"]) == (
            InvalidParams.code,
            "invalid_params",
        )
        wire.send({"jsonrpc": "2.0", "id": 99, "method": method, "params": [1]})
        assert wire.receive()["error"]["code"] == InvalidParams.code
