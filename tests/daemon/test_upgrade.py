"""A newer client replaces an older daemon, an older one leaves a newer daemon alone, and no call in flight is cut."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import flashgrep
from flashgrep.daemon import lifecycle
from flashgrep.rpc import connect
from tests.conftest import BOUND, DaemonAtHand, MakeProject
from tests.support.mcp_clients import INITIALIZE, LineTransport, McpClient, shim_wire

PACKAGE = Path(flashgrep.__file__).parent
OURS = flashgrep.__version__


@dataclass(frozen=True, slots=True)
class Installation:
    """Another installation of the package, for the same user."""

    package: Path
    environ: dict[str, str]

    def start(self, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
        """Start a command of it."""
        command = [sys.executable, "-P", "-m", "flashgrep", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=self.environ, cwd=cwd, stdout=pipe, stderr=pipe, text=True
        )

    def run(self, *arguments: str, cwd: Path) -> tuple[str, str]:
        """Run a command of it; return what it says on standard output and standard error."""
        return self.start(*arguments, cwd=cwd).communicate(timeout=BOUND)


@pytest.fixture
def install(tmp_path: Path, cold_daemon: DaemonAtHand) -> Callable[[str], Installation]:
    """Return a function that installs the package as another version."""

    def make(version: str) -> Installation:
        package = tmp_path / version / "flashgrep"
        shutil.copytree(
            PACKAGE,
            package,
            copy_function=os.symlink,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        (package / "__init__.py").unlink()
        (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
        return Installation(
            package, {**cold_daemon.environ, "PYTHONPATH": str(package.parent)}
        )

    return make


def test_of_many_newer_clients_one_replaces_it_and_an_older_one_leaves_it_alone(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    older, newer = install("0.0.9"), install("99.1")
    found = "a.py:1:needle = 1\n"
    assert older.run("query", "needle", cwd=root) == (found, "")
    assert cold_daemon.status()["version"] == "0.0.9"
    clients = [newer.start("query", "needle", cwd=root) for _ in range(3)]
    said = [client.communicate(timeout=BOUND) for client in clients]
    assert [out for out, _ in said] == [found] * 3
    assert (
        "".join(err for _, err in said)
        == "flashgrep: the daemon runs older code: replaced by 99.1\n"
    )
    pid = lifecycle.find_holder(cold_daemon.paths)
    assert older.run("query", "needle", cwd=root) == (found, "")
    assert cold_daemon.run("query", "needle", cwd=root).stderr == ""
    assert lifecycle.find_holder(cold_daemon.paths) == pid


def test_clients_that_ask_at_once_hear_the_same(cold_daemon: DaemonAtHand) -> None:
    connect.start_daemon(
        cold_daemon.paths, cold_daemon.environ
    )  # nobody has asked it yet
    with closing(cold_daemon.wire("unix")) as wire:
        wire.send(
            b"".join(
                b'{"jsonrpc":"2.0","id":%d,"method":"$/version"}\n' % number
                for number in range(20)
            )
        )
        assert not any(wire.receive()["result"]["changed"] for _ in range(20))


def test_a_look_at_the_version_does_not_keep_an_older_daemon(
    cold_daemon: DaemonAtHand,
) -> None:
    connect.start_daemon(cold_daemon.paths, cold_daemon.environ)
    with closing(cold_daemon.wire("unix")) as wire:
        asked = [
            b'{"jsonrpc":"2.0","id":%d,"method":"$/version"}\n' % number
            for number in range(20)
        ]
        wire.send(
            b"".join([*asked, b'{"jsonrpc":"2.0","id":20,"method":"$/retire"}\n'])
        )
        answers = {
            answer["id"]: answer["result"]
            for answer in (wire.receive() for _ in range(21))
        }
    assert answers[20] == {"ending": True, "calls": 0}
    assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)


def test_calls_in_flight_are_not_cut(
    cold_daemon: DaemonAtHand,
    project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    root = project({"a.py": "needle = 1\n"})
    with closing(shim_wire(cold_daemon, cwd="/")) as wire:
        client = McpClient(LineTransport(wire), "legacy")
        client.request("initialize", **{**INITIALIZE, "capabilities": {"roots": {}}})
        call = {"name": "query", "arguments": {"text": "needle"}}
        wire.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})
        asked = wire.receive()
        assert (
            asked["method"] == "roots/list"
        )  # the call waits until the host has said where it is
        pid = lifecycle.find_holder(cold_daemon.paths)
        monkeypatch.setattr(connect, "__version__", "99.1")
        connect.connect(cold_daemon.paths, cold_daemon.environ).close()
        busy = "flashgrep: the daemon runs older code: still busy; it exits when its calls are done\n"
        assert capfd.readouterr().err == busy
        assert lifecycle.find_holder(cold_daemon.paths) == pid
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": asked["id"],
                "result": {"roots": [{"uri": root.as_uri()}]},
            }
        )
        assert wire.receive()["result"]["structuredContent"]["total"] == 1
        assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)


def test_a_daemon_whose_files_have_changed_is_replaced_and_sessions_go_on(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    same = install(OURS)
    same.run("daemon", "start", cwd=root)
    with closing(shim_wire(cold_daemon, "--project", str(root))) as shim:
        client = McpClient(LineTransport(shim), "legacy")
        client.start()
        assert same.run("query", "needle", cwd=root)[1] == ""
        (same.package / "fresh.py").touch()
        assert (
            cold_daemon.run("query", "needle", cwd=root).stderr == ""
        )  # those files are not its own
        until = time.monotonic() + BOUND
        while not (told := same.run("query", "needle", cwd=root)[1]):
            assert time.monotonic() < until
        assert told == f"flashgrep: the daemon runs older code: replaced by {OURS}\n"
        result = client.call("query", text="needle")
        assert not result["isError"] or "try again" in result["content"][0]["text"]
        assert client.call("query", text="needle")["structuredContent"]["total"] == 1


def test_of_two_installations_of_one_version_the_one_with_newer_code_answers_and_they_do_not_take_turns(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    found = "a.py:1:needle = 1\n"
    assert cold_daemon.run("query", "needle", cwd=root).stdout == found
    newer = install(OURS)
    clients = [newer.start("query", "needle", cwd=root) for _ in range(2)]
    said = [client.communicate(timeout=BOUND) for client in clients]
    assert [out for out, _ in said] == [found] * 2
    assert (
        "".join(err for _, err in said)
        == f"flashgrep: the daemon runs older code: replaced by {OURS}\n"
    )
    pid = lifecycle.find_holder(cold_daemon.paths)
    assert cold_daemon.run("query", "needle", cwd=root).stderr == ""
    assert newer.run("query", "needle", cwd=root) == (found, "")
    assert lifecycle.find_holder(cold_daemon.paths) == pid


def test_the_extras_that_count_are_those_of_the_daemons_environment_which_is_named(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    other = install(OURS)
    # An environment without ast-grep, and with newer code: it keeps the daemon.
    matcher = other.package / "parts" / "structural" / "structural_matcher.py"
    text = matcher.read_text()
    without = text.replace('find_spec("ast_grep_py") is not None', "False")
    assert without != text
    matcher.unlink()  # a link to ours
    matcher.write_text(without)
    other.run("daemon", "start", cwd=root)
    refused = cold_daemon.run("structural", "needle = $A", cwd=root)
    assert refused.returncode == 2
    assert f"not installed in {sys.prefix}, where the daemon is from" in refused.stderr
    told = cold_daemon.run("doctor", cwd=root).stdout
    assert f"of the installation {other.package}, whose extras" in " ".join(
        told.split()
    )
    cold_daemon.run("daemon", "restart", cwd=root)
    assert "of the installation" not in cold_daemon.run("doctor", cwd=root).stdout
    answer = cold_daemon.run("structural", "needle = $A", cwd=root)
    assert "a.py" in answer.stdout


def test_a_file_or_folder_of_the_package_that_vanishes_during_the_look_is_passed_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "kept.py").touch()
    (tmp_path / ".#kept.py").symlink_to(
        "nobody@nowhere"
    )  # the lock of an editor: it is listed, but has no file
    newest = (tmp_path / "kept.py").stat().st_mtime_ns
    assert connect.find_newest_source(str(tmp_path)) == (newest, 1)
    assert connect.find_newest_source(str(tmp_path / "uninstalled")) == (0, 0)


def test_a_daemon_whose_package_was_removed_is_replaced_by_a_client_of_another_installation(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    removed = install(OURS)
    assert removed.run("query", "needle", cwd=root) == ("a.py:1:needle = 1\n", "")
    shutil.rmtree(removed.package)
    answer = cold_daemon.run("query", "needle", cwd=root)
    assert answer.stdout == "a.py:1:needle = 1\n"
    assert answer.stderr == f"fgrep: the daemon runs older code: replaced by {OURS}\n"


def test_a_daemon_from_before_it_could_be_asked_is_replaced_when_nobody_else_is_there(
    cold_daemon: DaemonAtHand,
    install: Callable[[str], Installation],
    project: MakeProject,
) -> None:
    root = project({"a.py": "needle = 1\n"})
    older = install("0.0.1")
    server = older.package / "daemon" / "control.py"
    text = server.read_text()
    server.unlink()
    without = re.sub(r'.*"\$/(version|retire)": .*\n', "", text)
    assert text.count("\n") - without.count("\n") == 2
    server.write_text(without)
    older.run("daemon", "start", cwd=root)
    with closing(cold_daemon.wire("unix")):
        assert "still busy" in cold_daemon.run("query", "needle", cwd=root).stderr
    assert "replaced by" in cold_daemon.run("query", "needle", cwd=root).stderr
    assert cold_daemon.status()["version"] == OURS
