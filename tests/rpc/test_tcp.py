"""TCP on the loopback address: who is let in, and what a stranger can do."""

import errno
import os
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from flashgrep.base.errors import Busy
from flashgrep.base.registry import Session
from flashgrep.rpc import tcp as tcp_module
from flashgrep.rpc.peers import Address, PeerQuestions
from flashgrep.rpc.sockets import Listener, SocketStream
from flashgrep.rpc.tcp import MOST_UNKNOWN, PeerTable, serve_tcp
from flashgrep.rpc.wire import Limits
from tests.rpc.harness import (
    BOUND,
    LIMITS,
    TOKEN,
    Client,
    Connect,
    make_dispatcher,
    tcp,
)
from tests.support.pace import paced

pytestmark = pytest.mark.anyio

AUTH_REQUIRED = -32006


async def somebody_else(_local: Address, _remote: Address) -> int | None:
    return os.geteuid() + 1


async def nobody_known(_local: Address, _remote: Address) -> int | None:
    return None


@pytest.fixture(params=[somebody_else, nobody_known])
async def stranger(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Client]:
    assert anyio_backend
    async with tcp(make_dispatcher(), tmp_path, find_uid=request.param) as connect:
        client = await connect()
        yield client
        await client.stream.aclose()


@pytest.fixture
async def connect(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Connect]:
    assert anyio_backend
    async with tcp(make_dispatcher(), tmp_path) as connect:
        yield connect


async def test_a_stranger_may_do_nothing_before_it_shows_the_token(
    stranger: Client,
) -> None:
    for method in ("echo", "hold", "scribble", "twice", "nothing_of_that_name"):
        error = (await stranger.call(method, {"name": "gate"}))["error"]
        assert (error["code"], error["data"]["reason"]) == (
            AUTH_REQUIRED,
            "auth_required",
        )
    await stranger.send(
        [
            {"jsonrpc": "2.0", "method": "echo", "id": 1},
            {"jsonrpc": "2.0", "method": "echo"},
        ]
    )
    assert [answer["error"]["code"] for answer in await stranger.receive()] == [
        AUTH_REQUIRED
    ]


@pytest.mark.parametrize(
    "token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "\ud83d\ude00"]
)
async def test_a_wrong_token_changes_nothing(stranger: Client, token: str) -> None:
    assert (await stranger.call("auth", {"token": token}))["error"][
        "code"
    ] == AUTH_REQUIRED
    assert (await stranger.call("echo", [1]))["error"]["code"] == AUTH_REQUIRED


async def test_a_token_that_is_no_string_is_named(stranger: Client) -> None:
    for params in ({"token": 1}, {}, [], [None], {"token": None}):
        assert (await stranger.call("auth", params))["error"]["data"][
            "field"
        ] == "token"


async def test_the_token_opens_all_even_to_what_was_sent_with_it(
    stranger: Client,
) -> None:
    await stranger.send(
        {"jsonrpc": "2.0", "method": "auth", "params": {"token": TOKEN}, "id": 1},
        {"jsonrpc": "2.0", "method": "scribble", "params": ["x"], "id": 2},
        {
            "jsonrpc": "2.0",
            "method": "echo",
            "params": ["x" * LIMITS.max_line_before_auth],
            "id": 3,
        },
    )
    answers = await stranger.receive_by_id(3)
    assert answers[1]["result"] == {"authenticated": True, "may_write": True}
    assert answers[2]["result"] == "x"
    assert len(answers[3]["result"]) == LIMITS.max_line_before_auth


async def test_a_stranger_cannot_make_us_hold_long_lines(stranger: Client) -> None:
    await stranger.send_raw(b"[" + b" " * LIMITS.max_line_before_auth)
    error = (await stranger.receive())["error"]
    assert error["data"]["limit_bytes"] == LIMITS.max_line_before_auth


async def test_the_same_user_may_read_at_once_and_write_with_the_token(
    connect: Connect,
) -> None:
    client = await connect()
    assert await client.result("echo", {"value": 1}) == 1
    refusal = (await client.call("scribble", [1]))["error"]
    assert (refusal["code"], refusal["data"]["reason"]) == (
        AUTH_REQUIRED,
        "auth_required",
    )
    assert (await client.result("auth", [TOKEN]))["may_write"]
    assert await client.result("scribble", [1]) == 1
    await client.stream.aclose()


@pytest.mark.parametrize(
    "sent",
    [
        b'POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n{"jsonrpc":"2.0","method":"release","params":["gate"]}\n',
        b'\r\n\r\nGET /?{"jsonrpc":"2.0","method":"release","params":["gate"]} HTTP/1.1\r\n\r\n',
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"release","params":["gate"],"id":1}\n',
        b'"a string"\n{"jsonrpc":"2.0","method":"release","params":["gate"],"id":1}\n',
        b"\x00" * 1000,
        b"P",
    ],
)
async def test_what_does_not_begin_as_json_is_closed_unanswered_and_runs_nothing(
    connect: Connect, sent: bytes
) -> None:
    browser, client = await connect(), await connect()
    await browser.send_raw(sent)
    assert await browser.at_end()
    await client.send({"jsonrpc": "2.0", "method": "hold", "params": ["gate"], "id": 1})
    assert (await client.result("until_running", {"size": 1}))["running"] == 1
    for one in (browser, client):
        await one.stream.aclose()


async def test_json_that_is_no_request_is_answered_and_the_next_line_works(
    connect: Connect,
) -> None:
    client = await connect()
    await client.send_raw(b'\n {"a":1}\n{\n')
    assert {(await client.receive())["error"]["code"] for _ in range(2)} == {
        -32600,
        -32700,
    }
    assert await client.result("echo", {"value": 1}) == 1
    await client.stream.aclose()


@pytest.mark.parametrize("sent", [b"", b"\n\n", b'{"jsonrpc":'])
async def test_a_connection_without_a_first_line_is_closed_in_time(
    tmp_path: Path, sent: bytes
) -> None:
    async with tcp(
        make_dispatcher(Limits(first_line_seconds=0.05)), tmp_path
    ) as connect:
        client = await connect()
        await client.send_raw(sent)
        assert await client.at_end()
        await client.stream.aclose()


async def test_a_connection_with_a_first_line_may_idle(tmp_path: Path) -> None:
    async with tcp(
        make_dispatcher(Limits(first_line_seconds=0.05)), tmp_path
    ) as connect:
        idle, late = await connect(), await connect()
        assert await idle.result("echo", {"value": 1}) == 1
        assert await late.at_end()
        assert await idle.result("echo", {"value": 2}) == 2
        for one in (idle, late):
            await one.stream.aclose()


async def test_connections_past_the_limit_get_an_error_that_says_try_again(
    tmp_path: Path,
) -> None:
    async with tcp(make_dispatcher(Limits(connections=2)), tmp_path) as connect:
        inside = [await connect() for _ in range(2)]
        for one in inside:
            assert await one.result("echo", {"value": 1}) == 1
        beyond = await connect()
        error = (await beyond.receive())["error"]
        assert (error["code"], error["data"]["reason"]) == (-32005, "busy")
        assert await beyond.at_end()
        await inside[0].stream.aclose()
        again = await connect_when_free(connect)
        for one in (beyond, inside[1], again):
            await one.stream.aclose()


async def connect_when_free(connect: Connect) -> Client:
    """Connect, trying again while the server has not noticed yet that a client left."""
    with anyio.fail_after(BOUND):
        while True:
            client = await connect()
            answer = await client.call("echo", [1])
            if "result" in answer:
                return client
            await client.stream.aclose()


@pytest.mark.slow
async def test_hundreds_of_half_open_connections_are_closed_in_time_and_others_get_in(
    tmp_path: Path,
) -> None:
    # 400, not a thousand: both ends are in this process, and many machines allow it
    # 1,024 descriptors.
    count = 400
    dispatcher = make_dispatcher(Limits(connections=count, first_line_seconds=0.5))
    async with tcp(dispatcher, tmp_path) as connect:
        half_open = []
        for n in range(count):
            half_open.append(await connect())
            if n % 2:
                await half_open[-1].send_raw(b'{"jsonrpc"')
        client = await connect_when_free(connect)
        assert await client.result("echo", {"value": 1}) == 1
        assert all([await one.at_end() for one in half_open])
        for one in (*half_open, client):
            await one.stream.aclose()


async def test_of_those_who_say_nothing_the_oldest_gives_way_to_whoever_comes(
    connect: Connect,
) -> None:
    silent = [await connect() for _ in range(MOST_UNKNOWN)]
    spoken = await connect()
    assert await spoken.result("echo", {"value": 1}) == 1
    assert await silent[0].at_end()
    later = [await connect() for _ in range(MOST_UNKNOWN)]
    assert all([await one.at_end() for one in silent[1:]])
    for one in later:
        assert await one.result("echo", {"value": 1}) == 1
    assert await spoken.result("echo", {"value": 2}) == 2
    for one in (*silent, spoken, *later):
        await one.stream.aclose()


async def test_strangers_are_few_and_one_that_shows_the_token_is_none(
    tmp_path: Path, anyio_backend: str
) -> None:
    assert anyio_backend
    async with tcp(make_dispatcher(), tmp_path, find_uid=somebody_else) as connect:
        known = await connect()
        await known.result("auth", [TOKEN])
        strangers = []
        for _ in range(MOST_UNKNOWN + 8):
            strangers.append(await connect())
            assert "error" in await strangers[-1].call("echo", [1])
        assert all([await one.at_end() for one in strangers[:8]])
        for one in strangers[8:]:
            assert (await one.call("echo", [1]))["error"]["code"] == AUTH_REQUIRED
        assert await known.result("echo", {"value": 1}) == 1
        for one in (known, *strangers):
            await one.stream.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked by netlink")
@pytest.mark.parametrize(
    ("family", "host"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")],
)
async def test_the_kernel_tells_of_one_socket_what_the_tables_tell(
    family: int, host: str
) -> None:
    questions = PeerQuestions()
    client, server = connected_pair(family, host)
    ends = (server.getpeername()[:2], server.getsockname()[:2])
    local, remote = ((name.removeprefix("::ffff:"), port) for name, port in ends)
    assert (
        questions.find_uid(local, remote)
        == await PeerTable().find_uid(local, remote)
        == os.geteuid()
    )
    assert questions.is_proven
    assert questions.find_uid(("127.0.0.1", 1), remote) is None
    client.close()
    server.close()
    assert questions.find_uid(local, remote) is None
    questions.close()


async def test_a_crowd_at_the_door_leaves_others_their_turns() -> None:
    crowd, turns = 200, 0
    served: list[int] = []
    with socket.socket() as listening, ExitStack() as stack:
        listening.bind(("127.0.0.1", 0))
        listening.listen(crowd)
        listening.setblocking(False)
        for _ in range(crowd):
            stack.enter_context(
                socket.create_connection(listening.getsockname(), BOUND)
            )
        listener = Listener(listening, make_dispatcher())

        async def serve(stream: SocketStream) -> None:
            served.append(turns)
            await stream.aclose()
            if len(served) == crowd:
                listener.stop_reading()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.run, serve)
            while len(served) < crowd:
                turns += 1
                await anyio.lowlevel.checkpoint()
    assert served[-1] - served[0] > crowd / 2


async def test_one_reading_of_the_tables_answers_all_who_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings: list[int] = []
    read = tcp_module.read_tables

    def reading() -> dict[bytes, int]:
        readings.append(1)
        return read()

    monkeypatch.setattr(tcp_module, "read_tables", reading)
    pairs = [connected_pair(socket.AF_INET, "127.0.0.1") for _ in range(20)]
    table, found = PeerTable(), []

    async def ask(server: socket.socket) -> None:
        found.append(await table.find_uid(server.getpeername(), server.getsockname()))

    async with anyio.create_task_group() as tasks:
        for _, server in pairs:
            tasks.start_soon(ask, server)
    assert found == [os.geteuid()] * len(pairs)
    assert len(readings) <= 3
    for both in pairs:
        for one in both:
            one.close()


async def test_a_look_up_that_was_given_up_leaves_the_next_one_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, server = connected_pair(socket.AF_INET, "127.0.0.1")
    table, begun = PeerTable(), anyio.Event()
    read = tcp_module.read_tables

    def reading() -> dict[bytes, int]:
        anyio.from_thread.run_sync(begun.set)
        return read()

    monkeypatch.setattr(tcp_module, "read_tables", reading)
    with client, server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(table.find_uid, server.getpeername(), server.getsockname())
            await begun.wait()
            tasks.cancel_scope.cancel()
        begun = anyio.Event()
        assert (
            await table.find_uid(server.getpeername(), server.getsockname())
            == os.geteuid()
        )


@pytest.mark.slow
async def test_idle_connections_cost_little(tmp_path: Path) -> None:
    async with tcp(make_dispatcher(), tmp_path) as connect:
        idle = []
        for _ in range(300):
            idle.append(await connect())
            assert await idle[-1].result("echo", {"value": 1}) == 1
        await anyio.wait_all_tasks_blocked()
        before, started = time.process_time(), time.monotonic()
        # The loop wakes for nothing: what passes is the wait of this test alone.
        with anyio.move_on_after(0.3):
            await anyio.sleep_forever()
        assert time.process_time() - before < paced(0.1 * (time.monotonic() - started))
        for one in idle:
            await one.stream.aclose()


async def test_a_port_in_use_is_passed_over_for_the_next_free_one() -> None:
    first, second = make_dispatcher(), make_dispatcher()
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(partial(serve_tcp, first, Session, port=0))
        next_port = await tasks.start(partial(serve_tcp, second, Session, port=port))
        assert port < next_port <= port + 20
        with pytest.raises(Busy):
            await serve_tcp(make_dispatcher(), Session, port=port, further_ports=0)
        await first.shutdown(0)
        await second.shutdown(0)


async def test_only_the_loopback_address_is_bound() -> None:
    dispatcher = make_dispatcher()
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(partial(serve_tcp, dispatcher, Session, port=0))
        with socket.socket() as other:
            assert other.connect_ex(("127.0.0.2", port)) == errno.ECONNREFUSED
        await dispatcher.shutdown(0)


def connected_pair(family: int, host: str) -> tuple[socket.socket, socket.socket]:
    with socket.socket(socket.AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client = socket.socket(family)
        client.connect((host, listening.getsockname()[1]))
        return client, listening.accept()[0]


@pytest.mark.parametrize(
    ("family", "host"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")],
)
async def test_the_owner_of_the_other_end_is_found(family: int, host: str) -> None:
    client, server = connected_pair(family, host)
    with server:
        theirs, ours = server.getpeername(), server.getsockname()
        with client:
            assert await PeerTable().find_uid(theirs, ours) == os.geteuid()
            assert await PeerTable().find_uid((theirs[0], theirs[1] ^ 1), ours) is None
            client.shutdown(socket.SHUT_WR)
            assert await PeerTable().find_uid(theirs, ours) == os.geteuid()
        assert await PeerTable().find_uid(theirs, ours) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as somebody else")
async def test_another_users_connection_is_distinguished_from_ours() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        os.seteuid(65534)
        try:
            client = socket.socket()
        finally:
            os.seteuid(0)
        with client:
            client.connect(listening.getsockname())
            server, theirs = listening.accept()
            with server:
                assert await PeerTable().find_uid(theirs, server.getsockname()) == 65534


async def test_without_the_tables_nobody_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tcp_module, "TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    assert await PeerTable().find_uid(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


async def test_a_reset_at_once_troubles_nobody(connect: Connect) -> None:
    for _ in range(20):
        client = await connect()
        assert isinstance(client.stream, SocketStream)
        client.stream.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        await client.stream.aclose()
    client = await connect()
    assert await client.result("echo", {"value": 1}) == 1
    await client.stream.aclose()
