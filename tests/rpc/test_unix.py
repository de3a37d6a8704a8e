"""The Unix socket's file: whose it is, where it may be, and when it goes."""

import os
import socket
import stat
from functools import partial
from pathlib import Path

import anyio
import pytest

from flashgrep.base.errors import Conflict, Forbidden
from flashgrep.base.registry import Session
from flashgrep.rpc.connect import connect_unix
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.longpath import LONGEST, _by_link, bind_unix
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.unix import serve_unix
from tests.rpc.harness import BOUND, Client, make_dispatcher, unix

pytestmark = pytest.mark.anyio


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


async def answers_at(path: Path) -> bool:
    client = Client(SocketStream(connect_unix(os.fsencode(path), BOUND)))
    try:
        return bool(await client.result("echo", {"value": True}))
    finally:
        await client.stream.aclose()


async def serve_and_ask(dispatcher: Dispatcher, path: Path) -> bool:
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_unix, path, dispatcher, Session)
        answered = await answers_at(path)
        await dispatcher.shutdown(0)
    return answered


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    folder = tmp_path.joinpath(*["folder with a long name " + "x" * 20] * 5)
    folder.mkdir(parents=True, mode=0o700)
    assert len(os.fsencode(folder)) > LONGEST
    return folder


async def test_the_socket_is_its_owners_only_and_goes_at_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mcp.sock"
    before = os.umask(0)
    try:
        async with unix(make_dispatcher(), tmp_path) as connect:
            client = await connect()
            assert stat.S_IMODE(os.lstat(path).st_mode) == 0o600
            await client.stream.aclose()
    finally:
        os.umask(before)
    assert names(tmp_path) == []


async def test_a_path_longer_than_an_address_works(long_folder: Path) -> None:
    assert await serve_and_ask(make_dispatcher(), long_folder / "mcp.sock")
    assert names(long_folder) == []


def test_a_path_longer_than_an_address_works_without_the_process_table(
    long_folder: Path,
) -> None:
    path = os.fsencode(long_folder / "mcp.sock")
    with (
        socket.socket(socket.AF_UNIX) as listening,
        socket.socket(socket.AF_UNIX) as client,
    ):
        _by_link(path, listening.bind)
        listening.listen()
        _by_link(path, client.connect)
        accepted, _ = listening.accept()
        accepted.close()


async def test_a_path_that_is_not_utf8_works(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir(mode=0o700)
    assert await serve_and_ask(make_dispatcher(), folder / "mcp.sock")


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        bind_unix(dead, str(path))
    assert await serve_and_ask(make_dispatcher(), path)


async def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    path.write_text("precious")
    with pytest.raises(Conflict):
        await serve_unix(path, make_dispatcher(), Session)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
async def test_a_folder_others_may_write_to_is_refused(
    tmp_path: Path, mode: int
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(Forbidden) as caught:
        await serve_unix(folder / "mcp.sock", make_dispatcher(), Session)
    assert caught.value.reason == "unsafe_folder"
    assert names(folder) == []


async def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = Path("/")
    if not os.geteuid():
        folder = tmp_path / "foreign"
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
    with pytest.raises(Forbidden) as caught:
        await serve_unix(folder / "mcp.sock", make_dispatcher(), Session)
    assert caught.value.reason == "unsafe_folder"


async def test_a_successors_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    old, new = make_dispatcher(), make_dispatcher()
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_unix, path, old, Session)
        await tasks.start(partial(serve_unix, path, new, Session))
        await old.shutdown(0)
        assert await answers_at(path)
        await new.shutdown(0)
    assert not path.exists()


async def test_nothing_to_connect_to_is_an_error_of_the_system(
    tmp_path: Path, long_folder: Path
) -> None:
    before = len(names(Path("/dev/fd")))
    for folder in (tmp_path, long_folder, tmp_path / "none"):
        with pytest.raises(FileNotFoundError):
            connect_unix(str(folder / ("x" * 60) / "mcp.sock"))
    assert len(names(Path("/dev/fd"))) == before
