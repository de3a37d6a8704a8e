"""A real daemon's life: one per user, started by whoever comes first, ended cleanly, surviving what goes wrong."""

import fcntl
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from flashgrep.cli import daemon_commands
from flashgrep.cli.stopping import stop_daemon
from flashgrep.daemon import lifecycle
from flashgrep.rpc.connect import StartFailed, start_daemon, try_connect
from flashgrep.rpc.connect import connect as connect_to_daemon
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject


def pid_of(daemon: DaemonAtHand) -> int:
    pid = lifecycle.find_holder(daemon.paths)
    assert pid is not None
    return pid


def wait_until_gone(pid: int) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        assert select.select([process], [], [], BOUND)[0], f"process {pid} lives on"
        os.close(process)


def test_twenty_cold_clients_at_once_give_one_daemon(cold_daemon: DaemonAtHand) -> None:
    clients = [
        subprocess.Popen(
            [FGREP, "rpc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=cold_daemon.environ,
            cwd="/",
        )
        for _ in range(20)
    ]
    request = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "stats"}).encode() + b"\n"
    )
    answers = [client.communicate(request, timeout=60)[0] for client in clients]
    assert {json.loads(answer)["result"]["pid"] for answer in answers} == {
        pid_of(cold_daemon)
    }


def test_a_second_start_joins_the_first_and_a_second_daemon_ends_at_once(
    daemon: DaemonAtHand,
) -> None:
    pid = pid_of(daemon)
    daemon.start()
    assert pid_of(daemon) == pid
    with pytest.raises(Exception, match=f"runs already .process {pid}"):
        lifecycle.hold_lock(daemon.paths, 0)


def test_a_killed_daemon_leaves_a_stale_socket_that_the_next_one_replaces(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.start()
    first = pid_of(cold_daemon)
    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)
    assert Path(cold_daemon.paths.socket).is_socket()
    assert cold_daemon.run("daemon", "status").returncode == 1
    cold_daemon.start()
    assert pid_of(cold_daemon) != first
    assert cold_daemon.status()["pid"] == pid_of(cold_daemon)


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_and_its_sockets(
    cold_daemon: DaemonAtHand, project: MakeProject, asked: int
) -> None:
    root = project({"a.py": "x = 1\n"})
    assert cold_daemon.run("projects", "add", str(root)).returncode == 0
    assert (root / ".flashgrep" / "mcp.sock").is_socket()
    os.kill(pid_of(cold_daemon), asked)
    assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)
    assert not Path(cold_daemon.paths.socket).exists()
    assert not (root / ".flashgrep" / "mcp.sock").exists()


def test_a_hang_up_of_the_terminal_does_not_end_the_daemon(
    daemon: DaemonAtHand,
) -> None:
    pid = pid_of(daemon)
    os.kill(pid, signal.SIGHUP)
    assert daemon.status()["pid"] == pid


def test_stop_ends_it_and_says_so_when_none_runs(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.start()
    pid = pid_of(cold_daemon)
    assert cold_daemon.run("daemon", "stop").returncode == 0
    wait_until_gone(pid)
    assert cold_daemon.run("daemon", "stop").stdout == "not running\n"


def test_a_relative_state_folder_is_the_callers(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    # In the form that a call from another folder would resolve to another place.
    cold_daemon.environ["FLASHGREP_STATE_DIR"] = os.path.relpath(
        cold_daemon.paths.state, tmp_path
    )
    started = cold_daemon.run("daemon", "start", cwd=tmp_path)
    assert (started.returncode, started.stderr) == (0, "")
    assert f"socket     {cold_daemon.paths.socket}\n" in started.stdout


def test_a_daemon_that_is_stuck_is_stopped_all_the_same(
    cold_daemon: DaemonAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold_daemon.start()
    pid = pid_of(cold_daemon)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setenv("FLASHGREP_STATE_DIR", cold_daemon.paths.state)
    monkeypatch.setattr("flashgrep.cli.daemon_client.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(lifecycle, "STOP_SECONDS", 0.1)
    assert stop_daemon()
    wait_until_gone(pid)


def test_whoever_serves_waits_for_a_daemon_that_somebody_starts(
    cold_daemon: DaemonAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHGREP_STATE_DIR", cold_daemon.paths.state)
    monkeypatch.setattr(daemon_commands, "RESTART_SECONDS", 0.1)
    Path(cold_daemon.paths.state).mkdir(mode=0o700)
    never, _told = socket.socketpair()
    with (
        never,
        _told,
        ThreadPoolExecutor() as threads,
        Path(cold_daemon.paths.start_lock).open("w") as starting,
    ):
        fcntl.flock(starting, fcntl.LOCK_EX)
        waiting = threads.submit(daemon_commands._wait_for_successor, 1, never)
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        starting.close()  # without a daemon
        with pytest.raises(SystemExit):
            waiting.result(BOUND)


def test_it_runs_in_the_foreground_for_a_service_manager(
    cold_daemon: DaemonAtHand,
) -> None:
    command = [FGREP, "daemon", "run", "--port", "0", "--idle-minutes", "0"]
    with subprocess.Popen(
        command, env=cold_daemon.environ, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "ready\n"
        assert cold_daemon.status()["idle_exit_minutes"] == 0
        running.send_signal(signal.SIGTERM)
        assert running.wait(BOUND) == 0


def test_it_ends_when_no_client_has_come_for_the_idle_time_unless_one_holds_a_connection(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.environ["FLASHGREP_IDLE_EXIT_MINUTES"] = "0.02"
    with connect_to_daemon(cold_daemon.paths, cold_daemon.environ):
        assert not lifecycle.wait_until_free(cold_daemon.paths, 2.0)
    assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)
    assert '"event":"idle"' in Path(cold_daemon.paths.log).read_text()


def test_a_taken_port_is_passed_over_and_status_says_so(
    cold_daemon: DaemonAtHand,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cold_daemon.environ["FLASHGREP_TCP_PORT"] = str(port)
        cold_daemon.start()
        tcp = json.loads(cold_daemon.run("daemon", "status", "--json").stdout)["tcp"]
        assert tcp["wanted"] == port
        assert tcp["port"] not in (None, port)
        assert f"(port {port} was taken)" in cold_daemon.run("daemon", "status").stdout


def test_tcp_can_be_off(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.environ["FLASHGREP_TCP_ENABLED"] = "false"
    cold_daemon.start()
    assert cold_daemon.status()["tcp"] is None


def test_it_is_detached_from_code_folder_terminal_and_descriptors_of_who_started_it(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    for name in ("json", "anyio", "flashgrep", "typing"):
        (tmp_path / f"{name}.py").write_text(
            "open('/tmp/fg-planted', 'w').close()\nraise SystemExit(7)\n"
        )
    reader, writer = os.pipe()
    subprocess.run(
        [FGREP, "daemon", "start"],
        env=cold_daemon.environ,
        cwd=tmp_path,
        pass_fds=[writer],
        check=True,
        stdout=-3,
    )
    os.close(writer)
    assert (
        os.read(reader, 1) == b""
    )  # the end of input: the daemon did not keep the other end
    os.close(reader)
    process = Path(f"/proc/{pid_of(cold_daemon)}")
    assert (process / "cwd").readlink() == Path("/")
    assert os.getsid(pid_of(cold_daemon)) != os.getsid(0)
    assert (process / "fd" / "0").readlink() == Path("/dev/null")
    assert (process / "fd" / "1").readlink() == Path(cold_daemon.paths.crash_log)
    assert not Path("/tmp/fg-planted").exists()  # noqa: S108 - written by nobody, that is the test


def test_a_wrong_setting_is_reported_to_the_client_that_starts_the_daemon(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.environ["FLASHGREP_TCP_PORT"] = "many"
    started = cold_daemon.run("daemon", "start")
    assert started.returncode == 2
    assert "environment: tcp.port: input should be a valid integer" in started.stderr


def test_a_state_folder_others_may_write_to_is_refused(
    cold_daemon: DaemonAtHand,
) -> None:
    state = Path(cold_daemon.paths.state)
    state.mkdir()
    state.chmod(0o777)
    with pytest.raises(PermissionError, match="is writable by others"):
        start_daemon(cold_daemon.paths, cold_daemon.environ)
    state.chmod(0o700)


def test_it_outlives_a_lack_of_descriptors(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.start()
    pid = pid_of(cold_daemon)
    open_now = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_now + 30, hard))
    clients = [cold_daemon.wire("unix") for _ in range(100)]
    until = time.monotonic() + BOUND
    while "cannot accept" not in Path(cold_daemon.paths.log).read_text():
        assert time.monotonic() < until
    for client in clients:
        client.close()
    assert cold_daemon.status()["pid"] == pid_of(cold_daemon)


def test_files_of_the_state_are_for_their_user_alone(daemon: DaemonAtHand) -> None:
    state = Path(daemon.paths.state)
    assert state.stat().st_mode & 0o777 == 0o700
    modes = {
        path.name: path.stat().st_mode & 0o777
        for path in state.iterdir()
        if not path.is_dir()
    }
    assert set(modes.values()) == {0o600}, modes


def test_a_daemon_whose_socket_was_removed_makes_way_for_one_that_can_be_reached(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle = 1\n"})
    cold_daemon.start()
    lost = pid_of(cold_daemon)
    Path(cold_daemon.paths.socket).unlink()  # as cleaners of temporary folders do
    answer = cold_daemon.run("query", "needle", cwd=root)
    assert (answer.stdout, answer.stderr) == ("a.py:1:needle = 1\n", "")
    wait_until_gone(lost)
    assert cold_daemon.status()["pid"] == pid_of(cold_daemon)


def test_an_emptied_token_lets_nobody_in(daemon: DaemonAtHand) -> None:
    Path(daemon.paths.token).write_text("")
    with closing(daemon.wire("tcp")) as wire:
        wire.send(
            {"jsonrpc": "2.0", "id": 1, "method": "auth", "params": {"token": ""}}
        )
        assert wire.receive()["error"]["data"]["reason"] == "auth_required"
        token = Path(daemon.paths.token).read_text().strip()
        assert wire.call("auth", token=token) == {
            "authenticated": True,
            "may_write": True,
        }


def test_a_log_that_cannot_be_written_does_not_end_it(
    cold_daemon: DaemonAtHand,
) -> None:
    state = Path(cold_daemon.paths.state)
    state.mkdir(mode=0o700)
    Path(cold_daemon.paths.log).symlink_to("/dev/full")
    cold_daemon.start()
    assert cold_daemon.status()["pid"] == pid_of(cold_daemon)


def test_a_folder_that_cannot_be_written_is_served_on_the_control_socket(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle = 1\n"})
    (root / ".flashgrep").write_text(
        "in the way"
    )  # root, as whom tests may run, can write to any folder
    added = daemon.run("projects", "add", str(root))
    assert added.returncode == 0, added.stderr
    assert str(root) in daemon.status()["problems"]
    found = daemon.run("query", "needle", cwd=root)
    assert found.stdout == "a.py:1:needle = 1\n"


def test_git_sees_nothing_of_ours_and_the_folder_is_private(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"})
    subprocess.run(["git", "-C", str(root), "add", "a.py"], check=True)
    assert daemon.run("index", str(root)).returncode == 0
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout == "A  a.py\n"
    assert (root / ".flashgrep").stat().st_mode & 0o777 == 0o700
    assert (root / ".flashgrep" / "mcp.sock").stat().st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_projects_folder_is_not_followed(
    daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.py": "x = 1\n"})
    (root / ".flashgrep").symlink_to(tmp_path)
    daemon.run("projects", "add", str(root))
    assert list(tmp_path.iterdir()) == []


def test_a_project_whose_path_is_longer_than_an_address_has_its_socket(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle = 1\n"}, name="n" * 200)
    assert daemon.run("projects", "add", str(root)).returncode == 0
    found = try_connect(str(root / ".flashgrep" / "mcp.sock"))
    assert found is not None
    found.close()


def test_a_removed_project_loses_its_socket_and_folder(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"}, name="gone")
    daemon.run("index", str(root))
    assert daemon.index(root).exists()
    assert daemon.run("projects", "remove", "gone").stdout == f"removed {root}\n"
    assert not (root / ".flashgrep").exists()
    assert not daemon.index(root).parent.exists()
    assert (root / "a.py").exists()
    assert str(root) not in daemon.run("projects", "list").stdout


def test_a_daemon_that_cannot_start_says_where_to_look(
    cold_daemon: DaemonAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "flashgrep.rpc.connect.DAEMON_MODULE", "flashgrep.no_such_module"
    )
    with pytest.raises(
        StartFailed, match=r"No module named flashgrep.no_such_module .see .*crash\.log"
    ):
        start_daemon(cold_daemon.paths, cold_daemon.environ)
    assert "no_such_module" in Path(cold_daemon.paths.crash_log).read_text()


def test_the_whole_product_tells_of_itself_on_every_wire(
    connect: Callable[[], object], daemon: DaemonAtHand
) -> None:
    assert connect().call("stats")["pid"] == pid_of(daemon)  # type: ignore[attr-defined] # conftest is no package


def test_python_m_flashgrep_is_the_command_line(daemon: DaemonAtHand) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "flashgrep", "version"],
        env=daemon.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith("flashgrep ")
