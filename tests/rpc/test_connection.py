"""A connection's life: slow readers, clients that vanish, deadlines, shutting down, and calls from within."""

import json
import resource
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import (
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    MethodNotFound,
)
from flashgrep.base.registry import Registry, Session
from flashgrep.rpc.connect import connect_unix
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.unix import serve_unix
from flashgrep.rpc.wire import Limits
from tests.rpc.harness import (
    BOUND,
    HANDLERS,
    WIRES,
    Client,
    Gates,
    Notes,
    Serve,
    answer_once,
    dispatch_overhead,
    make_dispatcher,
    memory,
    tcp,
    twice,
    unix,
)

pytestmark = pytest.mark.anyio

SOCKETS: dict[str, Serve] = {"unix": unix, "tcp": tcp}


def call(method: str, params: object, request_id: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}


async def test_calls_end_when_their_client_is_gone(tmp_path: Path) -> None:
    for serve in (memory, unix, tcp):
        dispatcher = make_dispatcher()
        host = dispatcher._host
        async with serve(dispatcher, tmp_path) as connect:
            for reset in (False, True):
                client = await connect()
                await client.send(
                    call("hold", ["gate"], 1), [call("hold", ["gate"], 2)]
                )
                await client.send(call("until_running", [2], 3))
                assert (await client.receive())["id"] == 3
                if reset and isinstance(client.stream, SocketStream):
                    client.stream.socket.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                await client.stream.aclose()
                with anyio.fail_after(BOUND):
                    while host.running:
                        await host.changed.wait()


async def test_calls_end_when_their_client_is_gone_though_reading_has_paused(
    tmp_path: Path,
) -> None:
    for serve in (memory, unix, tcp):
        dispatcher = make_dispatcher(Limits(in_flight=2, waiting=0))
        host = dispatcher._host
        async with serve(dispatcher, tmp_path) as connect:
            client = await connect()
            await client.send(*(call("hold", ["gate"], n) for n in range(5)))
            with anyio.fail_after(BOUND):
                while host.running < 2:
                    await host.changed.wait()
            await client.stream.aclose()
            with anyio.fail_after(BOUND):
                while host.running:
                    await host.changed.wait()


@pytest.mark.parametrize("serve", SOCKETS.values(), ids=SOCKETS)
async def test_a_client_that_never_reads_is_hung_up_on_and_holds_up_nobody(
    serve: Serve, tmp_path: Path
) -> None:
    dispatcher = make_dispatcher(Limits(write_seconds=0.3, queued_bytes=1_000_000))
    async with serve(dispatcher, tmp_path) as connect:
        deaf, other = await connect(), await connect()
        await deaf.send(*(call("big", [4_000_000], n) for n in range(20)))
        assert await other.result("echo", {"value": 1}) == 1
        with anyio.fail_after(BOUND):
            while (
                len(dispatcher.open_connections) > 2
            ):  # the listener and the other client
                assert await other.result("echo", {"value": 2}) == 2
        for one in (deaf, other):
            await one.stream.aclose()


async def test_a_call_ends_at_the_hard_limit(tmp_path: Path) -> None:
    async with memory(make_dispatcher(Limits(call_seconds=0.05)), tmp_path) as connect:
        client = await connect()
        error = (await client.call("hold", ["gate"]))["error"]
        assert (error["code"], error["data"]["reason"]) == (-32004, "deadline_exceeded")
        assert error["data"]["limit_seconds"] == 0.05
        error = await client.call("ask", {})
        assert error["method"] == "roots/list"
        assert (await client.receive())["error"]["code"] == -32004
        await client.stream.aclose()


@pytest.mark.parametrize("wire", ["memory", "unix", "tcp"])
async def test_shutting_down_answers_what_is_in_flight_and_takes_nothing_more(
    wire: str, tmp_path: Path
) -> None:
    dispatcher = make_dispatcher()
    async with WIRES[wire](dispatcher, tmp_path) as connect:
        busy, idle = await connect(), await connect()
        assert await idle.result("echo", {"value": 1}) == 1
        await busy.send(call("hold", ["gate"], 1), call("until_running", [1], 2))
        assert (await busy.receive())["id"] == 2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispatcher.shutdown, BOUND)
            assert await idle.at_end()
            dispatcher._host.gates["gate"].set()
            assert await busy.receive() == {"jsonrpc": "2.0", "result": "gate", "id": 1}
            assert await busy.at_end()
        assert len(dispatcher.open_connections) == 0
        for one in (busy, idle):
            await one.stream.aclose()


@pytest.mark.parametrize("wire", ["memory", "unix", "tcp"])
async def test_shutting_down_waits_no_longer_than_its_limit(
    wire: str, tmp_path: Path
) -> None:
    dispatcher = make_dispatcher()
    async with WIRES[wire](dispatcher, tmp_path) as connect:
        client = await connect()
        await client.send(call("hold", ["gate"], 1), call("until_running", [1], 2))
        assert (await client.receive())["id"] == 2
        with anyio.fail_after(BOUND):
            await dispatcher.shutdown(0.05)
        assert await client.at_end()
        await client.stream.aclose()


async def test_calls_from_within_give_results_and_raise_errors() -> None:
    notes = Notes()
    dispatcher = make_dispatcher(Limits(call_seconds=0.05), log=notes)
    session = Session()
    assert await dispatcher.call(session, "sum", [1, 2]) == 3
    assert await dispatcher.call(session, "answer", {"name": "model"}) == {
        "name": "x",
        "path": "a/b",
    }
    reports: list[tuple[float, float | None, str]] = []
    await dispatcher.call(
        session,
        "progress",
        {"steps": 2},
        progress=lambda *report: reports.append(report),
    )
    assert reports == [(0, 2, "step 0"), (1, 2, "step 1")]
    for name, params, error in (
        ("nothing", {}, MethodNotFound),
        ("sum", {"x": 1}, InvalidParams),
        ("hold", ["gate"], DeadlineExceeded),
    ):
        with pytest.raises(error):
            await dispatcher.call(session, name, params)
    with pytest.raises(FlashgrepError) as caught:
        await dispatcher.call(session, "fail", ["of somebody"])
    assert caught.value.data["id"] == notes.notes[-1][1]["id"]
    assert "of somebody" in notes.notes[-1][1]["trace"]
    with pytest.raises(Forbidden) as refused:
        await dispatcher.call(Session(read_only=True), "scribble", {})
    assert refused.value.reason == "read_only"


async def test_a_broken_connection_is_logged_and_leaves_the_others(
    tmp_path: Path,
) -> None:
    notes = Notes()
    dispatcher = make_dispatcher(log=notes)
    sessions = iter([None, Session()])

    def session() -> Session:
        found = next(sessions)
        if found is None:
            raise RuntimeError("no session for you")
        return found

    path = tmp_path / "mcp.sock"
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_unix, path, dispatcher, session)
        first, second = (
            Client(SocketStream(connect_unix(str(path), BOUND))) for _ in range(2)
        )
        assert await first.at_end()
        assert await second.result("echo", {"value": 1}) == 1
        await dispatcher.shutdown(0)
        for one in (first, second):
            await one.stream.aclose()
    assert notes.notes[0][0] == "connection failed"
    assert "no session for you" in notes.notes[0][1]["trace"]


async def test_one_message_is_answered_without_a_connection() -> None:
    dispatcher = make_dispatcher()
    session = Session()
    body = b'{\n "jsonrpc": "2.0",\r\n "method": "sum", "params": [1, 2], "id": 1 }\n'
    assert (
        await answer_once(dispatcher, session, body)
        == b'{"jsonrpc":"2.0","result":3,"id":1}'
    )
    batch = b'[{"jsonrpc":"2.0","method":"echo","params":[1],"id":1},\n{"jsonrpc":"2.0","method":"echo"}]'
    assert (
        await answer_once(dispatcher, session, batch)
        == b'[{"jsonrpc":"2.0","result":1,"id":1}]'
    )
    assert (
        await answer_once(dispatcher, session, b'{"jsonrpc":"2.0","method":"echo"}')
        is None
    )
    for sent, code in ((b"", -32700), (b"[]", -32600)):
        assert (
            json.loads(await answer_once(dispatcher, session, sent) or b"")["error"][
                "code"
            ]
            == code
        )
    asking = await answer_once(
        dispatcher, session, b'{"jsonrpc":"2.0","method":"ask","id":1}'
    )
    assert json.loads(asking or b"")["error"]["data"]["reason"] == "client_refused"
    progress = b'{"jsonrpc":"2.0","method":"progress","params":{"steps":2,"_meta":{"progressToken":0}},"id":1}'
    assert (
        json.loads(await answer_once(dispatcher, session, progress) or b"")["result"]
        == 2
    )


REQUEST_LIKE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2.0]),
        "method": st.sampled_from(
            ["echo", "sum", "fail", "$/cancelRequest", "nothing", "", 1, None]
        ),
        "params": st.none()
        | st.lists(st.integers(), max_size=4)
        | st.dictionaries(st.text(max_size=3), st.integers()),
        "id": st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        "result": st.none(),
        "progress_token": st.integers() | st.text(max_size=2) | st.booleans(),
    },
)


@given(
    st.one_of(REQUEST_LIKE, st.lists(REQUEST_LIKE, max_size=5))
    .map(json.dumps)
    .map(str.encode)
    | st.binary()
)
async def test_whatever_comes_the_answer_is_a_response_to_each_request_in_it(
    body: bytes,
) -> None:
    line = await answer_once(make_dispatcher(), Session(), body)
    answer = None if line is None else json.loads(line)
    answers = answer if isinstance(answer, list) else [] if answer is None else [answer]
    for one in answers:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)
    try:
        sent = json.loads(body)
    except ValueError:
        assert answers[0]["error"]["code"] == -32700
    else:
        items = sent if isinstance(sent, list) else [sent]
        wanted = [json.dumps(item["id"]) for item in items if is_call(item)]
        answered = [
            json.dumps(one["id"])
            for one in answers
            if one.get("error", {}).get("code") != -32600
        ]
        assert answered == wanted


def is_call(item: object) -> bool:
    """Tell whether the specification wants an answer by id to this: the slow truth, written out."""
    if (
        not isinstance(item, dict)
        or item.get("jsonrpc") != "2.0"
        or "id" not in item
        or isinstance(item["id"], bool)
    ):
        return False
    return isinstance(item.get("method"), str)


@pytest.mark.parametrize("serve", SOCKETS.values(), ids=SOCKETS)
async def test_while_shutting_down_nobody_new_gets_in(
    serve: Serve, tmp_path: Path
) -> None:
    dispatcher = make_dispatcher()
    async with serve(dispatcher, tmp_path) as connect:
        client = await connect()
        await client.send(call("hold", ["gate"], 1), call("until_running", [1], 2))
        assert (await client.receive())["id"] == 2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispatcher.shutdown, BOUND)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ConnectionRefusedError):
                await connect()
            dispatcher._host.gates["gate"].set()
        assert (await client.receive())["id"] == 1
        await client.stream.aclose()


async def test_a_client_that_always_has_more_to_read_and_to_take_does_not_keep_the_loop() -> (
    None
):
    near, far = socket.socketpair()
    streams = SocketStream(near), SocketStream(far)
    await streams[0].send(b"x" * 100)
    turns: list[str] = []

    async def take_turns(name: str, step: Callable[[], Awaitable[object]]) -> None:
        for _ in range(5):
            await step()
            turns.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns, "read", partial(streams[1].receive, 1))
        tasks.start_soon(take_turns, "write", partial(streams[0].send, b"x"))
        tasks.start_soon(take_turns, "other", anyio.lowlevel.checkpoint)
    assert sorted(turns[:6]) == ["other", "other", "read", "read", "write", "write"]
    for stream in streams:
        await stream.aclose()


async def test_running_out_of_descriptors_is_survived(tmp_path: Path) -> None:
    notes = Notes()
    dispatcher = make_dispatcher(log=notes)
    async with unix(dispatcher, tmp_path) as connect:
        inside = await connect()
        assert await inside.result("echo", {"value": 1}) == 1
        waiting = (
            await connect()
        )  # its connection is made by the kernel; accepting it needs a descriptor
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with anyio.fail_after(BOUND):
                while not notes.notes:
                    assert await inside.result("echo", {"value": 2}) == 2
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert notes.notes[0][0] == "cannot accept"
        assert await waiting.result("echo", {"value": 3}) == 3
        for one in (inside, waiting):
            await one.stream.aclose()


async def test_the_cost_of_dispatch_is_measured_and_bounded() -> None:
    cost = await dispatch_overhead(500)
    assert (
        0 < cost["plain_us"] < cost["jsonrpcserver_us"] < 1000
    )  # a hundred on an idle machine


def test_a_name_taken_twice_fails_at_once() -> None:
    with pytest.raises(ValueError, match="echo"):
        Dispatcher(Registry(HANDLERS), Gates(), log=Notes(), extensions={"echo": twice})
