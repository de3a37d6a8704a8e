"""One body for every wire: the protocol as its specification has it, and as hostile clients have it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.rpc.harness import LIMITS, WIRES, Client, Connect, make_dispatcher

pytestmark = pytest.mark.anyio

PARSE, INVALID, NOT_FOUND, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
TOO_LARGE, CANCELLED, DEADLINE = -32003, -32800, -32004


def failed(code: int, request_id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code}, "id": request_id}


def answered(result: Any, request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": result, "id": request_id}


# Each example of section 7 of the specification: its title, what the client sends, what
# comes back.
SPECIFICATION: list[tuple[str, str, Any]] = [
    (
        "positional parameters",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        answered(19, 1),
    ),
    (
        "positional parameters, the other way round",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        answered(-19, 2),
    ),
    (
        "named parameters",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        answered(19, 3),
    ),
    (
        "named parameters, in another order",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        answered(19, 4),
    ),
    (
        "a notification",
        '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}',
        None,
    ),
    ("a notification of no method", '{"jsonrpc": "2.0", "method": "foobar"}', None),
    (
        "a call of no method",
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        failed(NOT_FOUND, "1"),
    ),
    (
        "invalid JSON",
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        failed(PARSE),
    ),
    (
        "an invalid request object",
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        failed(INVALID),
    ),
    (
        "a batch of invalid JSON",
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]',
        failed(PARSE),
    ),
    ("an empty array", "[]", failed(INVALID)),
    ("a batch that is invalid, but not empty", "[1]", [failed(INVALID)]),
    ("an invalid batch", "[1,2,3]", [failed(INVALID)] * 3),
    (
        "a batch of everything",
        """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]""",
        [
            answered(7, "1"),
            answered(19, "2"),
            failed(INVALID),
            failed(NOT_FOUND, "5"),
            answered(["hello", 5], "9"),
        ],
    ),
    (
        "a batch of notifications",
        (
            '[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},'
            ' {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]'
        ),
        None,
    ),
]
IDS = [
    "1",
    '"one"',
    '""',
    "0",
    "-1",
    "1.5",
    "1.0",
    "null",
    "9007199254740993",
    "18446744073709551617",
    "-1" + "0" * 40,
]
BROKEN = [
    (b"[" * 100_000, PARSE),
    (b"[" * 100_000 + b"]" * 100_000, PARSE),
    (b'{"a":' * 40_000 + b"1" + b"}" * 40_000, PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":["\\ud800"],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":["\\udc00\\ud800"],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":["\xff"],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":["\xed\xa0\x80"],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":[NaN],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":[Infinity],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":[1e999],"id":1}', PARSE),
    (b'{"jsonrpc":"2.0","method":"echo","params":[1],"id":' + b"9" * 400 + b"}", PARSE),
    (
        b'{"jsonrpc":"2.0","id":'
        + b"9" * 30
        + b',"params":'
        + b"[" * 1000
        + b"]" * 1000
        + b"}",
        PARSE,
    ),
    (b'{"jsonrpc":"2.0","method":"echo","params":[1],"id":1}}', PARSE),
    (b'{"jsonrpc":"1.0","method":"echo","params":[1]}', INVALID),
    (b'{"method":"echo","params":[1]}', INVALID),
    (b'{"jsonrpc":"2.0","method":"echo","params":3}', INVALID),
    (b'{"jsonrpc":"2.0","params":[3]}', INVALID),
    (b'{"jsonrpc":"2.0","method":null}', INVALID),
    (b"{}", INVALID),
]
MESSAGES = {
    PARSE: "Parse error",
    INVALID: "Invalid Request",
    NOT_FOUND: "Method not found",
}


@pytest.fixture(params=list(WIRES))
async def connect(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Connect]:
    assert anyio_backend
    async with WIRES[request.param](make_dispatcher(), tmp_path) as connect:
        yield connect


@pytest.fixture
async def client(connect: Connect) -> AsyncIterator[Client]:
    client = await connect()
    yield client
    await client.stream.aclose()


def request(method: str, params: Any, request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}


def notification(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def without_detail(answer: Any) -> Any:
    """Leave of an error what the specification's examples show, checking its message and that it has a reason."""
    if isinstance(answer, list):
        return [without_detail(item) for item in answer]
    if "error" in answer:
        error = answer["error"]
        assert error["message"] == MESSAGES[error["code"]]
        assert error["data"]["reason"]
        return {**answer, "error": {"code": error["code"]}}
    return answer


async def test_every_example_of_the_specification_passes(client: Client) -> None:
    for title, sent, expected in SPECIFICATION:
        await client.send_raw(sent.replace("\n", " ").encode() + b"\n")
        # What answers the next call was not sent for this one: an example that wants no
        # answer got none.
        await client.send(request("echo", [title], title))
        got = [await client.receive() for _ in range(1 if expected is None else 2)]
        mark = answered(title, title)
        assert mark in got, title
        got.remove(mark)
        assert [without_detail(answer) for answer in got] == (
            [] if expected is None else [expected]
        ), title


async def test_an_id_comes_back_as_it_was_given(client: Client) -> None:
    for given in IDS:
        await client.send_raw(
            f'{{"jsonrpc":"2.0","method":"echo","params":[7],"id":{given}}}\n'.encode()
        )
        answer = await client.receive()
        assert answer["result"] == 7
        assert json.dumps(answer["id"]) == given


async def test_an_id_of_another_type_is_refused(client: Client) -> None:
    for given in ("true", "false", "[]", "{}", "[1]"):
        await client.send_raw(
            f'{{"jsonrpc":"2.0","method":"echo","params":[7],"id":{given}}}\n'.encode()
        )
        assert without_detail(await client.receive()) == failed(INVALID), given


async def test_a_broken_line_gets_an_error_and_the_next_line_works(
    client: Client,
) -> None:
    for line, code in BROKEN:
        await client.send_raw(line + b"\n")
        assert without_detail(await client.receive()) == failed(code), line[:80]
        assert await client.result("echo", {"value": "still here"}) == "still here", (
            line[:80]
        )


async def test_deep_and_wide_values_come_back_as_they_are(client: Client) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert await client.result("echo", {"value": deep}) == deep
    assert await client.result("echo", {"value": 2**64 - 1}) == 2**64 - 1
    assert await client.result("echo", {"value": -(2**63)}) == -(2**63)
    assert (
        await client.result("echo", {"value": "\0\u2028\U0001f600"})
        == "\0\u2028\U0001f600"
    )


async def test_blank_lines_and_carriage_returns_are_skipped(client: Client) -> None:
    line = json.dumps(request("echo", [1], 1)).encode()
    await client.send_raw(b"\n\r\n  \t\n" + line + b"\r\n\n" + line + b" \r\n")
    assert [await client.receive(), await client.receive()] == [answered(1, 1)] * 2


async def test_a_line_may_come_in_pieces(client: Client) -> None:
    line = (
        json.dumps(request("echo", ["äöü" * 1000], 1), ensure_ascii=False).encode()
        + b"\n"
    )
    for start in range(0, len(line), 999):
        await client.send_raw(line[start : start + 999])
    assert await client.receive() == answered("äöü" * 1000, 1)


async def test_a_last_line_without_its_end_is_answered(client: Client) -> None:
    await client.send_raw(json.dumps(request("echo", [1], 1)).encode())
    await client.send_eof()
    assert await client.receive() == answered(1, 1)
    assert await client.at_end()


async def test_calls_in_flight_at_the_end_of_input_are_answered(client: Client) -> None:
    await client.send(request("hold", ["gate"], 1), request("until_running", [1], 2))
    assert (await client.receive())["id"] == 2
    await client.send(notification("release", ["gate"]))
    await client.send_eof()
    assert await client.receive() == answered("gate", 1)
    assert await client.at_end()


async def test_a_line_too_long_gets_one_error_and_the_next_line_works(
    client: Client,
) -> None:
    await client.send_raw(b'{"jsonrpc":"2.0","method":"echo","params":["')
    for _ in range(20):
        await client.send_raw(b"x" * (LIMITS.max_line // 4))
    await client.send_raw(b'"],"id":1}\n')
    error = (await client.receive())["error"]
    assert error["code"] == TOO_LARGE
    assert error["data"]["reason"] == "payload_too_large"
    assert error["data"]["limit_bytes"] == LIMITS.max_line
    assert error["data"]["observed_bytes"] > LIMITS.max_line
    assert error["data"]["guidance"]
    assert await client.result("echo", {"value": "still here"}) == "still here"


async def test_a_line_of_exactly_the_limit_is_taken(client: Client) -> None:
    empty = json.dumps(request("echo", [""], 1))
    fill = "x" * (LIMITS.max_line - len(empty))
    await client.send(request("echo", [fill], 1))
    assert await client.receive() == answered(fill, 1)
    await client.send(request("echo", [fill + "x"], 1))
    assert (await client.receive())["error"]["code"] == TOO_LARGE


async def test_a_batch_of_too_many_items_is_refused_before_any_runs(
    client: Client,
) -> None:
    batch = [request("release", ["gate"], n) for n in range(LIMITS.batch_items + 1)]
    await client.send(batch)
    error = (await client.receive())["error"]
    assert (error["code"], error["data"]["limit_items"]) == (
        TOO_LARGE,
        LIMITS.batch_items,
    )
    await client.send(request("hold", ["gate"], 1), request("until_running", [1], 2))
    assert (await client.receive())["id"] == 2


async def test_an_error_of_the_tree_crosses_the_wire_whole(client: Client) -> None:
    answer = await client.call("missing", {"value": "a.txt"})
    data = {"reason": "file_not_found", "path": "a.txt"}
    assert answer["error"] == {
        "code": -32001,
        "message": "no such file: a.txt",
        "data": data,
    }


async def test_what_has_no_name_is_an_internal_error_without_its_text(
    client: Client,
) -> None:
    answer = await client.call("fail", {"value": "of somebody"})
    assert "somebody" not in json.dumps(answer)
    assert answer["error"]["code"] == INTERNAL
    assert answer["error"]["message"] == "internal error"
    assert answer["error"]["data"]["reason"] == "internal_error"
    assert answer["error"]["data"]["id"]


async def test_a_result_without_a_json_form_is_an_internal_error(
    client: Client,
) -> None:
    answer = await client.call("answer", {"name": "set"}, request_id=5)
    assert (answer["id"], answer["error"]["code"]) == (5, INTERNAL)


async def test_results_that_are_not_plain_json_are_made_so(client: Client) -> None:
    assert await client.result("answer", {"name": "strings"}) == {
        "lone": "a\ufffdb",
        "pair": "\U0001f600",
        "key\ufffd": 1,
    }
    assert await client.result("answer", {"name": "numbers"}) == [None, None, 2**70]
    assert await client.result("answer", {"name": "model"}) == {
        "name": "x",
        "path": "a/b",
    }
    assert await client.result("answer", {"name": "models"}) == [
        2**70,
        {"name": "x", "path": "a/b"},
    ]


async def test_parameters_that_do_not_fit_are_named(client: Client) -> None:
    given: list[tuple[Any, str]] = [
        ({"a": 1, "d": 2}, "d"),
        ({"a": "many"}, "a"),
        (["x"], "a"),
        ([1, "y"], "b"),
    ]
    for params, field in given:
        error = (await client.call("sum", params))["error"]
        assert error["code"] == BAD_PARAMS
        assert (error["data"]["reason"], error["data"]["field"]) == (
            "invalid_params",
            field,
        )
    error = (await client.call("sum", [1, 2, 3, 4]))["error"]
    assert (error["code"], error["data"]["allowed"]) == (BAD_PARAMS, ["a", "b", "c"])


async def test_null_parameters_are_none(client: Client) -> None:
    await client.send({"jsonrpc": "2.0", "method": "get_data", "params": None, "id": 1})
    assert await client.receive() == answered(["hello", 5], 1)


async def test_a_slow_call_does_not_hold_up_a_fast_one(client: Client) -> None:
    await client.send(request("hold", ["gate"], "slow"), request("echo", [1], "fast"))
    assert await client.receive() == answered(1, "fast")
    await client.send(request("release", ["gate"], "opened"))
    answers = await client.receive_by_id(2)
    assert answers["slow"] == answered("gate", "slow")


async def test_calls_in_flight_are_bounded_and_all_are_answered(client: Client) -> None:
    bound = LIMITS.in_flight
    held = [request("hold", ["gate"], n) for n in range(bound + 3)]
    await client.send(
        *held,
        notification("$/cancelRequest", {"id": 0}),
        request("release", ["gate"], "open"),
    )
    answers = await client.receive_by_id(1)
    assert answers[0]["error"]["code"] == CANCELLED
    # Every slot is held by a call that waits for another: only cancelling makes room
    # for the one that opens the gate.
    await client.send(
        *(notification("$/cancelRequest", {"id": n}) for n in range(1, 5))
    )
    answers |= await client.receive_by_id(bound + 3)
    assert answers["open"]["result"] is True
    assert {n for n in range(bound + 3) if "error" in answers[n]} == set(range(5))
    assert (await client.result("until_running", {"size": 0}))["most"] == bound


async def test_reading_pauses_while_too_much_waits_and_goes_on_after(
    client: Client,
) -> None:
    count = LIMITS.in_flight + LIMITS.waiting + 50
    await client.send(
        request("hold", ["gate"], "held"),
        *(request("echo", [n], n) for n in range(count)),
    )
    answers = await client.receive_by_id(count)
    assert [answers[n]["result"] for n in range(count)] == list(range(count))
    await client.send(request("release", ["gate"], "open"))
    assert set(await client.receive_by_id(2)) == {"open", "held"}


async def test_a_call_can_be_cancelled(client: Client) -> None:
    await client.send(
        request("hold", ["gate"], 7), request("until_running", [1], "running")
    )
    assert (await client.receive())["id"] == "running"
    await client.send(notification("$/cancelRequest", {"id": 7}))
    answer = await client.receive()
    assert (answer["id"], answer["error"]["code"]) == (7, CANCELLED)
    assert answer["error"]["data"]["reason"] == "cancelled"
    assert (await client.result("until_running", {"size": 0}))["ended"] == ["gate"]


async def test_a_call_that_waits_for_its_turn_can_be_cancelled_at_once(
    client: Client,
) -> None:
    held = [request("hold", ["gate"], n) for n in range(LIMITS.in_flight)]
    await client.send(
        *held, request("echo", [1], "waits"), [request("echo", [1], "too")]
    )
    await client.send(
        notification("$/cancelRequest", {"id": "waits"}),
        notification("$/cancelRequest", ["too"]),
    )
    answers = [await client.receive(), await client.receive()]
    codes = [answer["error"]["code"] for answer in (answers[0], *answers[1])]
    assert codes == [CANCELLED, CANCELLED]
    await client.send([request("echo", [1], "a"), request("echo", [2], "b")])
    await client.send(
        *(notification("$/cancelRequest", {"id": n}) for n in range(LIMITS.in_flight))
    )
    last = [await client.receive() for _ in range(LIMITS.in_flight + 1)]
    assert [answered(1, "a"), answered(2, "b")] in last


async def test_a_cancelled_call_goes_unanswered_where_the_other_protocol_has_it_so(
    client: Client,
) -> None:
    await client.send(
        request("hold", ["gate"], "7"), request("until_running", [1], "running")
    )
    assert (await client.receive())["id"] == "running"
    await client.send(
        notification(
            "notifications/cancelled", {"requestId": "7", "reason": "no longer wanted"}
        )
    )
    assert (await client.result("until_running", {"size": 0}))["ended"] == ["gate"]


@pytest.mark.parametrize("where", ["among", "beside"])
async def test_a_request_ends_the_one_before_of_its_word(
    client: Client, where: str
) -> None:
    def ask(number: int, word: str = "live") -> dict[str, Any]:
        if where == "beside":
            return {**request("hold", {"name": "gate"}, number), "replace": word}
        return request("hold", {"name": "gate", "_meta": {"replace": word}}, number)

    await client.send(ask(99, "other"), *(ask(number) for number in range(20)))
    answers = await client.receive_by_id(19)
    assert {answer["error"]["code"] for answer in answers.values()} == {CANCELLED}
    assert set(answers) == set(range(19))
    await client.result("until_running", {"size": 2})
    await client.send(request("release", ["gate"], "open"))
    assert set(await client.receive_by_id(3)) == {"open", 19, 99}
    await client.send(ask(20))  # one that is answered is not ended any more
    assert await client.receive() == answered("gate", 20)


async def test_cancelling_what_does_not_run_does_nothing(client: Client) -> None:
    others: list[Any] = [
        {"id": 8},
        {"id": "7"},
        {"id": [7]},
        {"id": {}},
        {},
        [],
        {"requestId": 7},
    ]
    await client.send(
        request("hold", ["gate"], 7),
        *(notification("$/cancelRequest", params) for params in others),
    )
    await client.send(request("release", ["gate"], "open"))
    assert (await client.receive_by_id(2))[7] == answered("gate", 7)


async def test_neither_true_nor_null_names_a_call_to_be_cancelled(
    client: Client,
) -> None:
    named: list[Any] = [{"requestId": True}, {"requestId": None}, {}, [True]]
    await client.send(
        request("hold", ["gate"], 1),
        *(notification("notifications/cancelled", one) for one in named),
    )
    await client.send(request("release", ["gate"], "open"))
    assert (await client.receive_by_id(2))[1] == answered("gate", 1)


async def test_a_batch_runs_its_items_side_by_side_and_answers_in_their_order(
    client: Client,
) -> None:
    batch = [
        request("hold", ["gate"], 1),
        request("release", ["gate"], 2),
        notification("echo", [3]),
    ]
    await client.send([*batch, request("foo", [], 4), 5, request("echo", [6], 6)])
    answers = await client.receive()
    assert [answer["id"] for answer in answers] == [1, 2, 4, None, 6]
    assert answers[0] == answered("gate", 1)


async def test_a_batch_larger_than_the_bound_on_calls_is_answered(
    client: Client,
) -> None:
    count = LIMITS.batch_items
    await client.send([request("echo", [n], n) for n in range(count)])
    assert await client.receive() == [answered(n, n) for n in range(count)]
    batch = [request("hold", ["gate"], n) for n in range(count - 1)]
    await client.send(request("release", ["gate"], "open"), batch)
    answers = [await client.receive(), await client.receive()]
    assert sorted(len(answer) for answer in answers if isinstance(answer, list)) == [
        count - 1
    ]
    assert (await client.result("until_running", {"size": 0}))[
        "most"
    ] <= LIMITS.in_flight


async def test_an_item_of_a_batch_can_be_cancelled_even_from_within_it(
    client: Client,
) -> None:
    await client.send(
        [notification("$/cancelRequest", {"id": 2}), request("hold", ["gate"], 1)]
    )
    await client.send(
        [
            request("hold", ["a"], 2),
            notification("$/cancelRequest", {"id": 2}),
            request("echo", [3], 3),
        ]
    )
    answers = await client.receive()
    assert [answer.get("error", {}).get("code") for answer in answers] == [
        CANCELLED,
        None,
    ]
    await client.send(notification("$/cancelRequest", {"id": 1}))
    assert [answer["error"]["code"] for answer in await client.receive()] == [CANCELLED]


async def test_calls_of_one_id_are_all_answered_and_cancelled_together(
    client: Client,
) -> None:
    await client.send(
        request("hold", ["gate"], 1),
        request("hold", ["gate"], 1),
        request("until_running", [2], 2),
    )
    assert (await client.receive())["id"] == 2
    await client.send(notification("$/cancelRequest", [1]))
    assert [(await client.receive())["error"]["code"] for _ in range(2)] == [
        CANCELLED
    ] * 2


async def test_progress_is_reported_under_its_token_and_never_after_the_answer(
    client: Client,
) -> None:
    for token in (0, "", "token", 7):
        await client.send(
            request("progress", {"steps": 1000, "_meta": {"progressToken": token}}, 1)
        )
        first = await client.receive()
        assert first["method"] == "notifications/progress"
        assert first["params"] == {
            "progressToken": token,
            "progress": 0,
            "total": 1000,
            "message": "step 0",
        }
        reports = 1
        while "id" not in (line := await client.receive()):
            reports += 1
        assert line == answered(1000, 1)
        assert (
            reports < 20
        )  # a thousand reports take a few milliseconds, and one in fifty of those is sent


async def test_progress_may_be_asked_for_plainly_and_come_from_a_thread(
    client: Client,
) -> None:
    await client.send(
        {**request("progress", {"steps": 1, "thread": True}, 1), "progress_token": "t"}
    )
    assert (await client.receive())["params"]["progressToken"] == "t"
    assert await client.receive() == answered(1, 1)


async def test_progress_nobody_asked_for_is_not_sent(client: Client) -> None:
    metas: list[Any] = [
        {},
        {"progressToken": None},
        {"progressToken": True},
        {"progressToken": [1]},
        None,
    ]
    for meta in metas:
        await client.send(request("progress", {"steps": 3, "_meta": meta}, 1))
        assert await client.receive() == answered(3, 1)


async def test_an_extension_may_call_methods_notify_and_ask_back(
    client: Client,
) -> None:
    await client.send(request("twice", {"value": "x"}, 9))
    assert await client.receive() == {
        "jsonrpc": "2.0",
        "method": "note",
        "params": {"of": 9},
    }
    assert await client.receive() == answered(["x", "x"], 9)
    await client.send(request("ask", {"about": "roots"}, 10))
    question = await client.receive()
    assert (question["method"], question["params"]) == (
        "roots/list",
        {"about": "roots"},
    )
    await client.send({"jsonrpc": "2.0", "id": "nobody-asked", "result": 1})
    await client.send({"jsonrpc": "2.0", "id": question["id"], "result": ["/a"]})
    assert await client.receive() == answered({"client_said": ["/a"]}, 10)


async def test_a_client_that_refuses_a_question_is_an_error_of_the_call_that_asked(
    client: Client,
) -> None:
    await client.send(request("ask", {}, 1))
    question = await client.receive()
    error = {"code": -32601, "message": "Method not found"}
    await client.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
    assert (await client.receive())["error"]["data"]["reason"] == "client_refused"


async def test_a_big_answer_comes_whole(client: Client) -> None:
    await client.send(*(request("big", [1_000_000], n) for n in range(5)))
    answers = await client.receive_by_id(5)
    assert {len(answer["result"]) for answer in answers.values()} == {1_000_000}


async def test_half_a_line_held_open_does_not_hold_up_other_clients(
    connect: Connect,
) -> None:
    holding, other = await connect(), await connect()
    await holding.send_raw(b'{"jsonrpc":"2.0","method":"ec')
    assert await other.result("echo", {"value": 1}) == 1
    await holding.send_raw(b'ho","params":[2],"id":1}\n')
    assert await holding.receive() == answered(2, 1)
    for client in (holding, other):
        await client.stream.aclose()
