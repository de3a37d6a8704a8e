"""Another user of the machine, and a web page: they get no answer, no file and no foothold."""

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flashgrep.base.paths import make_private
from tests.conftest import BOUND, DaemonAtHand, MakeProject

NOBODY = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can act as another user"
)


def as_nobody(attempt: Callable[[], str]) -> str:
    """Run this in a child process of another user and return what it says, or the error it ran into."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = attempt()
        except OSError as error:
            said = type(error).__name__
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def first_line(port: int, sent: bytes) -> str:
    with (
        socket.socket() as connection
    ):  # create_connection would import a codec, which another user may not read
        connection.settimeout(BOUND)
        connection.connect(("127.0.0.1", port))
        connection.sendall(sent)
        return connection.recv(65536).decode()


def request(method: str, **params: object) -> bytes:
    return (
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ).encode()
        + b"\n"
    )


@as_root
@pytest.mark.parametrize(
    "method",
    ["query", "stats", "fs_read", "$/status", "$/cli", "$/shutdown", "initialize"],
)
def test_another_user_has_to_show_the_token(daemon: DaemonAtHand, method: str) -> None:
    port = daemon.status()["tcp"]["port"]
    error = json.loads(as_nobody(lambda: first_line(port, request(method, text="x"))))[
        "error"
    ]
    assert error["data"]["reason"] == "auth_required"


@as_root
def test_another_user_reaches_no_file_and_no_socket_of_ours(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    for folder in (root.parent, Path(daemon.paths.state).parent):
        folder.chmod(0o755)
    daemon.run("index", cwd=root)
    state = Path(daemon.paths.state)

    def connect() -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        return "connected"

    for path in (state / "token", state / "projects.json", daemon.index(root)):
        assert path.exists()
        assert as_nobody(path.read_text) == "PermissionError"
    for path in (Path(daemon.paths.socket), root / ".flashgrep" / "mcp.sock"):
        assert path.is_socket()
        assert as_nobody(connect) == "PermissionError"


@pytest.fixture
def planted() -> Iterator[Path]:
    folder = Path("/var/tmp") / f"fg-planted-{os.getpid()}"  # noqa: S108 - where others may write is what is tried
    yield folder
    if folder.is_dir():
        shutil.rmtree(folder)


@as_root
def test_a_state_folder_planted_by_another_user_is_refused(
    planted: Path, tmp_path: Path
) -> None:
    planted.symlink_to(tmp_path)
    os.lchown(planted, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="belongs to user 65534"):
        make_private(str(planted))
    planted.unlink()
    planted.mkdir(0o777)
    os.chown(planted, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="belongs to user 65534"):
        make_private(str(planted))


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n"
        + request("stats"),
        b'GET /?{"jsonrpc":"2.0"} HTTP/1.1\r\nHost: rebound.example\r\n\r\n'
        + request("stats"),
        b"\x16\x03\x01\x02\x00\x01\n" + request("stats"),
        b"\x00\n" + request("stats"),
    ],
)
def test_what_does_not_begin_as_json_is_hung_up_on(
    daemon: DaemonAtHand, sent: bytes
) -> None:
    assert first_line(daemon.status()["tcp"]["port"], sent) == ""


@as_root
def test_a_thousand_silent_connections_of_another_user_keep_nobody_waiting(
    daemon: DaemonAtHand,
) -> None:
    port, count = daemon.status()["tcp"]["port"], 1000

    def ask() -> float:
        started = time.monotonic()
        assert "result" in json.loads(first_line(port, request("stats")))
        return time.monotonic() - started

    def crowd() -> str:
        """Keep that many connections open, silent and not, until told to end; those closed on us are opened again."""
        crowding = []
        for at in range(count):
            one = socket.socket()
            one.connect(("127.0.0.1", port))
            if at % 4 == 0:
                one.sendall(b'{"jsonrpc":')
            crowding.append(one)
        os.write(begun_writer, b"x")
        os.read(end_reader, 1)
        return str(len(crowding))

    begun_reader, begun_writer = os.pipe()
    end_reader, end_writer = os.pipe()
    alone = sorted(ask() for _ in range(30))
    crowding = threading.Thread(target=as_nobody, args=[crowd])
    crowding.start()
    try:
        assert os.read(begun_reader, 1) == b"x"
        tries = [
            sorted(ask() for _ in range(30))[-2] for _ in range(3)
        ]  # others use the machine too
        assert min(tries) < 3 * alone[-2] + 0.1, (alone, tries)
    finally:
        os.write(end_writer, b"x")
        crowding.join()
        for end in (begun_reader, begun_writer, end_reader, end_writer):
            os.close(end)


def test_hundreds_of_half_lines_keep_nobody_waiting(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    port = daemon.status()["tcp"]["port"]
    halves = []
    try:
        for _ in range(300):
            halves.append(socket.create_connection(("127.0.0.1", port), BOUND))
            halves[-1].sendall(b'{"jsonrpc":')
        found = daemon.run("query", "needle", cwd=root)
        assert found.stdout == "a.txt:1:needle\n"
    finally:
        for half in halves:
            half.close()
