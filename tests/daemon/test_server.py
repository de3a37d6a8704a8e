"""A daemon within the test's own process: what happens to calls in flight when it is told to end, and its log."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from flashgrep.base.config import Loaded, Settings, Tcp
from flashgrep.base.paths import Paths
from flashgrep.daemon import server
from flashgrep.daemon.log import Log
from flashgrep.daemon.server import Daemon
from flashgrep.daemon.token import read_token
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.rpc.context import RequestContext
from tests.conftest import BOUND, short_folder

IMPORTS = "from flashgrep.base.paths import Paths; from flashgrep.daemon.token import read_token"


class Running:
    """A daemon in this process, with a ``$/cli`` that takes as long as the test wants."""

    def __init__(self, state: Path) -> None:
        self.paths = Paths(str(state))
        self.entered = anyio.Event()
        self.release = anyio.Event()
        log = Log(Path(self.paths.log), level="info", max_bytes=100_000)
        settings = Settings(tcp=Tcp(enabled=False))
        self.daemon = Daemon(
            self.paths,
            settings,
            log,
            self._slow,
            BUILT_IN,
            lambda _root: Loaded(settings, {}),
        )

    async def _slow(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        self.entered.set()
        await self.release.wait()
        return {"done": True}

    async def connect(self) -> ByteStream:
        return await anyio.connect_unix(self.paths.socket)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run it until it ends by itself."""
        ready = anyio.Event()
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.daemon.run, ready.set)
                await ready.wait()
                yield


@pytest.fixture
def running() -> Iterator[Running]:
    folder = short_folder()
    hang_up = signal.getsignal(signal.SIGHUP)
    yield Running(folder)
    signal.signal(signal.SIGHUP, hang_up)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


async def ask(stream: ByteStream, method: str) -> None:
    await stream.send(
        orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
        + b"\n"
    )


async def answer(stream: ByteStream) -> Any:
    return orjson.loads(
        await BufferedByteReceiveStream(stream).receive_until(b"\n", 1_000_000)
    )


async def test_a_call_in_flight_is_answered_before_the_daemon_ends(
    running: Running,
) -> None:
    async with running.serving():
        stream = await running.connect()
        await ask(stream, "$/cli")
        await running.entered.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        running.release.set()
        assert (await answer(stream))["result"] == {"done": True}
        await stream.aclose()


async def test_a_call_that_never_ends_does_not_hold_up_the_end(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 0.2)

    async with running.serving():
        stream = await running.connect()
        await ask(stream, "$/cli")
        await running.entered.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        with contextlib.suppress(
            anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError
        ):
            assert "error" in await answer(stream)
        await stream.aclose()


async def test_shutdown_is_answered_first(running: Running) -> None:
    async with running.serving():
        stream = await running.connect()
        await ask(stream, "$/shutdown")
        assert (await answer(stream))["result"] == {"stopping": True}
        await stream.aclose()
    assert not Path(running.paths.socket).exists()


@pytest.mark.parametrize("change", ["removed", "replaced"])
async def test_a_daemon_that_no_client_can_reach_any_more_ends(
    running: Running, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(server, "LOST_LOOK_SECONDS", 0.05)
    path = Path(running.paths.socket)
    async with running.serving():
        path.unlink()
        if change == "replaced":
            path.touch()
    assert path.exists() == (change == "replaced")


async def test_a_daemon_ends_once_its_program_has_been_gone_for_longer_than_an_upgrade_takes(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "LOST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(server, "MOST_LOOKS_WITHOUT_PROGRAM", 1_000_000)
    async with running.serving():
        monkeypatch.setattr(server, "PROGRAM", str(tmp_path / "gone"))
        stream = await running.connect()
        await ask(stream, "$/status")
        assert "result" in await answer(stream)
        await stream.aclose()
        monkeypatch.setattr(server, "MOST_LOOKS_WITHOUT_PROGRAM", 1)
    assert not Path(running.paths.socket).exists()


def test_the_token_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    paths = Paths(str(tmp_path))
    first = read_token(paths)
    assert len(first) == 64
    assert read_token(paths) == first
    assert stat.S_IMODE(Path(paths.token).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"a1" * 20,
        bytes(64),
        b"g" * 64,
        b"\xff" * 64,
        b"a1" * 32 + b"\nmore",
    ],
)
def test_a_token_file_that_holds_no_token_is_made_anew(
    tmp_path: Path, content: bytes
) -> None:
    paths = Paths(str(tmp_path))
    Path(paths.token).write_bytes(content)
    Path(paths.token).chmod(0o644)
    token = read_token(paths)
    assert len(token) == 64
    assert read_token(paths) == token
    assert stat.S_IMODE(Path(paths.token).stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [Path(paths.token)]


def test_a_link_in_place_of_the_token_is_replaced_and_never_followed(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("a1" * 32 + "\n")
    state = tmp_path / "state"
    state.mkdir()
    for target in (outside, tmp_path / "nowhere"):
        Path(state / "token").unlink(missing_ok=True)
        Path(state / "token").symlink_to(target)
        assert read_token(Paths(str(state))) != "a1" * 32
        assert not Path(state / "token").is_symlink()
    assert outside.read_text() == "a1" * 32 + "\n"
    assert not Path(tmp_path / "nowhere").exists()


def test_a_pipe_in_place_of_the_token_is_replaced_and_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    paths = Paths(str(tmp_path))
    os.mkfifo(paths.token)
    token = read_token(paths)
    assert Path(paths.token).read_text() == token + "\n"


@pytest.mark.parametrize(
    "end", [signal.SIG_DFL, signal.SIG_IGN], ids=["killed", "disk full"]
)
def test_a_token_whose_writing_is_cut_off_is_no_token(
    tmp_path: Path, end: signal.Handlers
) -> None:
    paths = Paths(str(tmp_path))
    # The system ends the process, or refuses, at the first byte that is written to a
    # file.
    limit = f"signal.signal(signal.SIGXFSZ, {int(end)}); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    call = f"read_token(Paths({str(tmp_path)!r}))"
    program = f"import resource, signal\n{IMPORTS}\n{limit}\n{call}"
    writer = subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True,
        check=False,
        timeout=BOUND,
    )
    assert writer.returncode in {-signal.SIGXFSZ, 1}
    assert not Path(paths.token).exists()
    assert len(read_token(paths)) == 64
    assert list(tmp_path.iterdir()) == [Path(paths.token)]


@pytest.mark.parametrize("content", [None, ""], ids=["absent", "empty"])
def test_processes_that_need_a_token_at_once_get_the_same(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        Path(tmp_path / "token").write_text(content)
    program = f"{IMPORTS}\ninput()\nprint(read_token(Paths({str(tmp_path)!r})))"
    command = [sys.executable, "-B", "-c", program]
    pipe = subprocess.PIPE
    readers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(6)
    ]
    for reader in readers:
        assert reader.stdin is not None
        reader.stdin.write("go\n")
        reader.stdin.flush()
    tokens = [reader.communicate(timeout=BOUND)[0].strip() for reader in readers]
    assert tokens == [read_token(Paths(str(tmp_path)))] * 6


def test_the_log_is_json_lines_in_at_most_two_files_of_bounded_size(
    tmp_path: Path,
) -> None:
    path = tmp_path / "daemon.log"
    log = Log(path, level="info", max_bytes=2000)
    for number in range(200):
        log.info("event", number=number, path=Path("/x"))
        log.debug("never seen")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "daemon.log",
        "daemon.log.1",
    ]
    texts = [(tmp_path / file).read_text() for file in ("daemon.log.1", "daemon.log")]
    lines = [orjson.loads(line) for text in texts for line in text.splitlines()]
    assert lines[-1]["number"] == 199
    assert {line["event"] for line in lines} == {"event"}
    assert all(file.stat().st_size <= 2000 for file in tmp_path.iterdir())


def test_a_full_disk_or_a_lost_folder_loses_lines_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "full.log").symlink_to("/dev/full")
    for path in (tmp_path / "full.log", tmp_path / "gone" / "x.log"):
        Log(path, level="info", max_bytes=2000).error("event")


def test_a_log_removed_under_the_daemon_is_created_again(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.log", level="info", max_bytes=2000)
    log.info("first")
    (tmp_path / "x.log").unlink()
    log.info("second")
    assert orjson.loads((tmp_path / "x.log").read_text())["event"] == "second"


def test_what_has_no_utf_8_or_64_bits_is_logged_too(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.log", level="info", max_bytes=2000)
    log.info("event", path="\udcff", number=1 << 70)
    assert json.loads((tmp_path / "x.log").read_text())["path"] == "\udcff"


def test_an_exception_is_logged_with_its_trace_on_one_line(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.log", level="info", max_bytes=100_000)
    try:
        raise ValueError("a\nb")  # noqa: TRY301 - the log needs one to show
    except ValueError:
        log.exception("failed")
    (line,) = (tmp_path / "x.log").read_text().splitlines()
    assert "ValueError" in orjson.loads(line)["exception"]
