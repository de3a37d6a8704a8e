"""What a person types first, and second, and by mistake; each message read as that person reads it."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import FGREP, DaemonAtHand, MakeProject


@pytest.mark.parametrize("group", ["daemon", "projects", "config"])
def test_a_group_without_a_command_shows_its_help_once(daemon: DaemonAtHand, group: str) -> None:
    found = daemon.run(group)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.count("Usage:") == 1
    assert "Commands:" in found.stderr


def test_a_reader_that_has_enough_ends_a_long_answer_quietly(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project({"many.txt": "needle in a long line of hay\n" * 20_000})
    command = [FGREP, "query", "needle", "--limit", "10000", "--max-bytes", "3000000", "--max-tokens", "1000000"]
    process = subprocess.Popen(command, cwd=root, env=daemon.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == b"many.txt:1:1:needle in a long line of hay\n"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.wait(30) in {0, 141}


def test_names_that_are_not_text_go_through_a_pipe_and_back(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project()
    name = b"new\nline \xff.txt"
    Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"needle\n")
    found = subprocess.run([FGREP, "files"], cwd=root, env=daemon.environ, capture_output=True, check=True)
    assert found.stdout == name + b"\n"
    sliced = subprocess.run(
        [FGREP.encode(), b"slice", name, b"1", b"1"], cwd=root, env=daemon.environ, capture_output=True, check=True
    )
    assert sliced.stdout == b"needle\n"


def test_uninstalled_nothing_is_left(cold_daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project({"a.txt": "needle"})
    config = Path(cold_daemon.environ["XDG_CONFIG_HOME"], "flashgrep", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("read_only = true\n")
    cold_daemon.run("index", cwd=root)
    pid = cold_daemon.status()["pid"]
    gone = cold_daemon.run("uninstall", "--yes")
    assert (gone.returncode, gone.stderr.splitlines()[-1][:6]) == (0, "clean:")
    with contextlib.suppress(FileNotFoundError):  # a process that has ended may wait for its parent to take note
        assert Path("/proc", str(pid), "cmdline").read_bytes() == b""
    assert not Path(cold_daemon.places.state).exists()
    assert not config.parent.exists()
    assert sorted(path.name for path in root.iterdir()) == [".git", "a.txt"]
