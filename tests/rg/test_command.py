"""``fgrep rg`` as people run it: the client that becomes ripgrep, with a daemon and without one."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.base.paths import RIPGREP, bundled_ripgrep, find_ripgrep
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.rg_tree import (
    TIMES,
    Said,
    in_path_order,
    make_tree,
    ripgrep,
    run_to_end,
)

LINES = 60_000
COMMANDS = [
    *(
        "foo",
        "-n foo sub",
        "--json foo -g *.c",
        "-c foo",
        "--files -0",
        "-l foo ..",
        "zzz",
        "foo nope",
        "--nosuch foo",
    ),
    *(
        "-v foo",
        "-P foo(?=bar)",
        "-U foo\\nbar",
        "--passthru foo a.txt",
        "-z foo",
        "--pre cat foo",
        "--help",
        "-V",
        "",
    ),
    *(
        "--color always -C1 foo a.txt",
        "-r X$0 foo b.py",
        "--stats foo",
        "-uu foo .hid",
        "foo binary.bin",
        "foobar",
    ),
]


@pytest.fixture(scope="module")
def root(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("rg") / "tree"
    root.mkdir()
    make_tree(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    added = daemon.run("index", str(root))
    assert added.returncode == 0, added.stderr
    yield root
    assert daemon.run("projects", "remove", str(root)).returncode == 0


def fgrep_rg(daemon: DaemonAtHand, arguments: list[str], cwd: Path) -> Said:
    return run_to_end([FGREP, "rg", *arguments], cwd, daemon.environ)


def with_input(
    command: list[str], cwd: Path, daemon: DaemonAtHand, given: bytes
) -> Said:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=daemon.environ,
        input=given,
        capture_output=True,
        check=False,
        timeout=BOUND,
    )
    return Said(TIMES.sub(b"", done.stdout), done.stderr, done.returncode)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_ripgrep_to_whoever_calls_it(
    daemon: DaemonAtHand, root: Path, command: str
) -> None:
    arguments = in_path_order(command.split())
    assert fgrep_rg(daemon, arguments, root) == ripgrep(
        ["--no-config", *arguments], root
    )


def test_a_file_saved_just_now_is_found(daemon: DaemonAtHand, root: Path) -> None:
    (root / "sub" / "new.c").write_bytes(b"int just_saved;\n")
    assert fgrep_rg(daemon, ["-n", "just_saved"], root) == Said(
        b"sub/new.c:1:int just_saved;\n", b"", 0
    )
    (root / "sub" / "new.c").unlink()
    assert fgrep_rg(daemon, ["-n", "just_saved"], root) == Said(b"", b"", 1)


@pytest.mark.parametrize(
    "arguments", [["foo"], ["-c", "foo", "-"], ["foo", "a.txt"], ["-f", "-", "a.txt"]]
)
def test_standard_input_is_searched_as_ripgrep_does(
    daemon: DaemonAtHand, root: Path, arguments: list[str]
) -> None:
    given = b"foo\nfoo bar\n"
    ours = with_input([FGREP, "rg", *arguments], root, daemon, given)
    assert ours == with_input([str(bundled_ripgrep()), *arguments], root, daemon, given)
    assert ours.status == 0


def test_without_a_daemon_ripgrep_runs_and_none_is_started(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    tree = project({"a.txt": "needle\n"})
    assert fgrep_rg(cold_daemon, ["needle"], tree) == Said(b"a.txt:needle\n", b"", 0)
    assert not Path(cold_daemon.paths.state).exists()


def test_a_daemon_that_does_not_answer_is_not_waited_for(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    tree = project({"a.txt": "needle\n"})
    Path(cold_daemon.paths.state).mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(cold_daemon.paths.socket)
        silent.listen(1)
        assert fgrep_rg(cold_daemon, ["needle"], tree) == Said(
            b"a.txt:needle\n", b"", 0
        )


def test_a_folder_outside_of_every_project_is_searched_as_it_is(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    (tmp_path / "one.txt").write_bytes(b"foo\n")
    assert fgrep_rg(daemon, ["foo"], tmp_path) == Said(b"one.txt:foo\n", b"", 0)
    assert str(tmp_path) not in str(daemon.status()["projects"])


def test_a_repository_that_is_asked_about_becomes_known(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    tree = project({"a.txt": "needle\n"})
    assert fgrep_rg(daemon, ["needle"], tree) == Said(b"a.txt:needle\n", b"", 0)
    # In the background: the search does not wait for it.
    until = time.monotonic() + BOUND
    while str(tree) not in str(daemon.status()["projects"]):
        assert time.monotonic() < until


def test_a_reader_that_has_enough_ends_it_as_it_ends_ripgrep(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    (tmp_path / "big.txt").write_bytes(
        b"".join(b"%d %b\n" % (number, b"x" * 60) for number in range(LINES))
    )
    statuses = []
    for command in ([FGREP, "rg", "x", "./"], [str(bundled_ripgrep()), "x", "./"]):
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env=daemon.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"./big.txt:0 " + b"x" * 60 + b"\n"
            process.stdout.close()
            statuses.append(process.wait(BOUND))
    assert statuses[0] == statuses[1]


def test_a_signal_ends_it_as_it_ends_ripgrep(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        [FGREP, "rg", "--line-buffered", "x", "-"],
        stdin=reader,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=daemon.environ,
    ) as process:
        os.write(
            writer, b"x one\n"
        )  # three bytes at least: ripgrep looks for a byte order mark
        assert process.stdout is not None
        assert process.stdout.readline() == b"x one\n"  # by now it is ripgrep that runs
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == -signal.SIGTERM
    os.close(reader)
    os.close(writer)


def test_a_ripgrep_in_the_current_folder_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / RIPGREP
    planted.write_text("#!/bin/sh\nexit 0\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "elsewhere" / "python"))
    assert bundled_ripgrep() is None
    assert find_ripgrep({"PATH": f".:{os.pathsep}:relative"}) is None
    assert find_ripgrep({"PATH": f".{os.pathsep}{tmp_path}"}) == str(planted)
