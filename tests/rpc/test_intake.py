"""What a line may cost: its values are counted before it is parsed, and its length is bounded by what it calls."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import TooLarge
from flashgrep.base.model import Encoded
from flashgrep.rpc import message
from flashgrep.rpc.message import MAX_VALUES, decode, encode
from flashgrep.rpc.wire import MIB, Limits
from tests.rpc.harness import Connect, make_dispatcher, unix
from tests.support.pace import paced

pytestmark = pytest.mark.anyio
LONG = "x" * (MIB + 1)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.text(st.sampled_from('a,[]{}"\\:é\n'), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.sampled_from('a,"\\'), max_size=3), inner)
    ),
    max_leaves=20,
)


@pytest.fixture
async def connect(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Connect]:
    assert anyio_backend
    async with unix(make_dispatcher(Limits()), tmp_path) as connect:
        yield connect


def values_in(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(values_in, value.values()))
    return 1 + (sum(map(values_in, value)) if isinstance(value, list) else 0)


@pytest.mark.parametrize("value", ["[]", "{}", "1", '"a"', '"\\\\"', '{"a":[]}'])
def test_a_line_of_too_many_values_is_refused_unparsed(value: str) -> None:
    line = f"[{','.join([value] * 1_000_000)}]".encode()
    started = time.thread_time()
    with pytest.raises(TooLarge) as caught:
        decode(line)
    assert time.thread_time() - started < paced(0.2)
    assert caught.value.data["limit_values"] == MAX_VALUES


def test_a_long_text_full_of_marks_is_one_value() -> None:
    text = 'a,"b",[\\"{x}\\\\\n' * 400_000
    assert decode(json.dumps({"text": text}).encode()) == {"text": text}


@given(value=JSON, indent=st.sampled_from([None, 1]))
def test_values_are_counted_as_a_parser_counts_them(
    value: Any, indent: int | None
) -> None:
    line = json.dumps(value, indent=indent).encode()
    count, empty = values_in(value), line.count(b"[]") + line.count(b"{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            message, "MAX_VALUES", count + empty
        )  # an empty list counts as two
        assert decode(line) == value
        patch.setattr(message, "MAX_VALUES", count - 1)
        if count > 1:
            with pytest.raises(TooLarge):
                decode(line)


async def test_only_a_method_that_writes_takes_a_long_line(connect: Connect) -> None:
    client = await connect()
    error = (await client.call("echo", {"value": LONG}, request_id=7))["error"]
    assert error["data"]["limit_bytes"] == MIB
    assert await client.result("scribble", {"value": LONG}) == LONG
    assert await client.result("echo", {"value": LONG[: MIB // 2]}) == LONG[: MIB // 2]
    await client.stream.aclose()


async def test_a_batch_counts_as_a_whole(connect: Connect) -> None:
    client = await connect()
    write = {"jsonrpc": "2.0", "method": "scribble", "params": [LONG], "id": 1}
    read = {"jsonrpc": "2.0", "method": "echo", "params": [1], "id": 2}
    await client.send([write, read])
    answer = await client.receive()
    assert (answer["id"], answer["error"]["data"]["reason"]) == (
        None,
        "payload_too_large",
    )
    await client.send([write, write])
    assert [one["result"] == LONG for one in await client.receive()] == [True, True]
    await client.stream.aclose()


async def test_lines_keep_their_order_whatever_their_length(connect: Connect) -> None:
    client = await connect()
    texts = ["x" * (MIB // 4), "short", "y" * (MIB // 2), "last"]
    await client.send(
        *[
            {"jsonrpc": "2.0", "method": "echo", "params": [text], "id": text[:2]}
            for text in texts
        ]
    )
    answers = await client.receive_by_id(len(texts))
    assert [answers[text[:2]]["result"] for text in texts] == texts
    await client.stream.aclose()


@pytest.mark.parametrize(
    "value", [{"a": ["é", 1.5, None]}, {"a": "\ud800", "b": 2**70}]
)
@pytest.mark.parametrize("request_id", [1, 2**70])
def test_what_is_encoded_already_stands_in_an_answer_as_it_is(
    value: Any, request_id: int
) -> None:
    plain = {"id": request_id, "result": {"content": value}}
    assert encode(
        {"id": request_id, "result": {"content": Encoded(encode(value))}}
    ) == encode(plain)
