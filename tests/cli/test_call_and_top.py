"""Commands for scripts and for watching: ``call``, ``top``, and ``index`` that is interrupted or waits for less."""

import json
import os
import pty
import signal
import subprocess
from contextlib import closing

import pytest

from flashgrep.base.paths import as_latin1
from flashgrep.cli.index_command import GOES_ON
from flashgrep.cli.top_command import describe_project
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.interrupts import allow_interrupts

MANY = 1_000


def test_a_call_by_name_gives_the_raw_answer(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle = 1\n"})
    params = json.dumps({"query": "needle"})
    for arguments, stdin in (((params,), None), (("-",), params)):
        answer = daemon.run("call", "query", *arguments, cwd=root, stdin=stdin)
        assert answer.returncode == 0, answer.stderr
        (hit,) = json.loads(answer.stdout)["results"]
        assert hit["file_path"] == "a.py"


def test_a_call_that_cannot_be_says_why(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle = 1\n"})
    for arguments, reason in (
        (("qeury",), "Method not found"),
        (("query", "[1]"), "JSON object"),
        (("query", "{"), "Expecting"),
        (("query", '{"quer": "x"}'), "quer"),
        (("query", '{"query":' + "[" * 100_000), "nested too deep"),
    ):
        answer = daemon.run("call", *arguments, cwd=root)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert reason in answer.stderr


def test_top_shows_what_is_open_and_opens_nothing(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    assert cold_daemon.run("top").stdout == "not running\n"
    root = project({"a.py": "needle = 1\n"})
    cold_daemon.run("index", ".", cwd=root)
    assert f" {root}" in cold_daemon.run("top").stdout
    cold_daemon.run("daemon", "restart")
    shown = cold_daemon.run("top")
    assert (shown.returncode, "MiB" in shown.stdout) == (0, True)
    assert str(root) not in shown.stdout


def test_top_shows_the_name_of_any_folder(
    daemon: DaemonAtHand,
    project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = project({"a.py": "x = 1\n"}, name="[bold]ž[red]\x1b[31m")
    daemon.run("index", ".", cwd=root)
    shown = daemon.run("top")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = "".join(line.strip() for line in shown.stdout.splitlines())
    assert "[bold]ž[red]\\x1b[31m" in lines
    for name, text in daemon.environ.items():
        monkeypatch.setenv(name, text)
    asked = {"name": "any", "stage": "symbols", "root": str(root)}
    assert describe_project(asked) == ("any", "ready", "100%", "1", str(root))


def test_asking_how_far_it_is_makes_nothing_a_project(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"})
    daemon.run("index", ".", cwd=root)
    daemon.run("projects", "remove", str(root))
    with closing(daemon.wire("unix")) as wire:
        error = wire.fail("$/indexing", root=as_latin1(str(root)))
    assert error["data"]["reason"] == "project_not_found"
    assert str(root) not in daemon.run("projects", "list").stdout


def test_top_on_a_terminal_ends_with_an_interrupt(daemon: DaemonAtHand) -> None:
    allow_interrupts()
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [FGREP, "top"],
            env={**daemon.environ, "TERM": "xterm"},
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        seen = b""
        while b"MiB" not in seen:
            seen += screen.read(65536)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=BOUND)
    assert (process.returncode, errors) == (0, b"")


def test_an_interrupted_index_says_that_it_goes_on(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({f"f{number}.py": f"x = {number}\n" for number in range(MANY)})
    allow_interrupts()
    process = subprocess.Popen(
        [FGREP, "index", "."],
        cwd=root,
        env=daemon.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=BOUND)
    # It may have been quicker than the signal.
    if process.returncode:
        assert (process.returncode, errors) == (130, GOES_ON)
    assert f"indexed: {MANY:,}" in daemon.run("index", ".", cwd=root).stderr


def test_an_index_may_be_waited_for_in_part(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def needle():\n    return 1\n"})
    for stage in ("text", "symbols", "all"):
        built = daemon.run("index", "--wait", stage, ".", cwd=root)
        assert (built.returncode, "indexed" in built.stderr) == (0, True)
    assert daemon.run("index", "--wait", "x", ".", cwd=root).returncode == 2
