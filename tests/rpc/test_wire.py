"""Framing and JSON, against slow truths."""

import json
import math
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import Parse
from flashgrep.rpc.message import decode, encode
from flashgrep.rpc.wire import CHUNK, LineReader, Oversized, WriteQueue
from tests.rpc.harness import BOUND, MemoryStream

LIMIT = 10


class Chunks(MemoryStream):
    """A source that yields given chunks, then ends."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = [chunk for chunk in chunks if chunk]

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self._chunks:
            raise anyio.EndOfStream
        chunk = self._chunks[0][:max_bytes]
        self._chunks[0] = self._chunks[0][max_bytes:]
        if not self._chunks[0]:
            del self._chunks[0]
        return chunk


async def read_all(chunks: list[bytes], limit: int) -> list[bytes | Oversized]:
    reader = LineReader(Chunks(chunks), limit)
    lines = []
    while (line := await reader.receive_line()) is not None:
        lines.append(line)
    return lines


@given(st.lists(st.text(alphabet=" \r\n\tab", max_size=30).map(str.encode), max_size=8))
async def test_lines_are_those_of_the_whole_text_however_it_is_cut(
    chunks: list[bytes],
) -> None:
    whole = b"".join(chunks).split(b"\n")
    expected = [
        Oversized if len(line) > LIMIT else line
        for line in whole
        if len(line) > LIMIT or line.strip()
    ]
    lines = await read_all(chunks, LIMIT)
    assert [
        Oversized if isinstance(line, Oversized) else line for line in lines
    ] == expected


async def test_an_oversized_line_is_dropped_in_constant_memory() -> None:
    reader = LineReader(Chunks([b"x" * CHUNK] * 200 + [b"\nnext\n"]), 2 * CHUNK)
    first = await reader.receive_line()
    assert isinstance(first, Oversized)
    assert (first.observed, first.limit) == (3 * CHUNK, 2 * CHUNK)
    assert await reader.receive_line() == b"next"
    assert len(reader._held) < CHUNK
    assert await reader.receive_line() is None


async def test_the_first_byte_is_seen_without_being_taken() -> None:
    reader = LineReader(Chunks([b" \r\n", b"\n", b"\t{", b"}\n"]), LIMIT)
    assert await reader.peek_byte() == b"{"
    assert await reader.receive_line() == b"\t{}"
    assert await LineReader(Chunks([b" \n" * 1000]), LIMIT).peek_byte() == b""


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(), children, max_size=4)
    ),
    max_leaves=20,
)
WILD = st.recursive(
    st.floats() | st.text(alphabet=st.characters(codec=None)) | st.integers(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.text(alphabet=st.characters(codec=None)), children, max_size=4
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_json_comes_back_as_it_went(value: Any) -> None:
    line = encode(value)
    assert b"\n" not in line
    if not _has_wide(value):
        assert decode(line) == value


@given(WILD)
def test_any_string_and_number_has_a_line_that_strict_readers_take(value: Any) -> None:
    line = encode(value)
    json.loads(line, parse_constant=pytest.fail)
    assert "\n" not in line.decode()


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), {"deep": [object()]}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode(value)


@pytest.mark.slow
def test_what_is_too_deep_to_write_is_refused_cleanly() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        encode(deep)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nan",
        b"NaN",
        b"-Infinity",
        b"'a'",
        b"[1,]",
        b"01",
        b'"\\ud800"',
        b'"\x00"',
    ],
)
def test_only_json_is_json(line: bytes) -> None:
    with pytest.raises(Parse):
        decode(line)


def _has_wide(value: Any) -> bool:
    match value:
        case bool():
            return False
        case int():
            return not -(2**63) <= value < 2**64
        case dict():
            return any(map(_has_wide, value.values()))
        case list():
            return any(map(_has_wide, value))
    return False


class Sink(MemoryStream):
    """Takes chunks while its gate is open."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.gate = anyio.Event()

    async def send(self, item: bytes) -> None:
        await self.gate.wait()
        self.taken.append(item)


async def test_small_answers_are_sent_together_and_in_order() -> None:
    queue, sink = WriteQueue(1000, BOUND), Sink()
    sink.gate.set()
    for n in range(10):
        await queue.put(b"%d" % n)
    queue.close()
    await queue.run(sink)
    assert sink.taken == [b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"]


async def test_what_waits_for_a_slow_reader_is_bounded() -> None:
    queue, sink = WriteQueue(100, BOUND), Sink()
    put = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.run, sink)

        async def put_all() -> None:
            nonlocal put
            for _ in range(50):
                await queue.put(b"x" * 29)
                put += 1

        tasks.start_soon(put_all)
        await anyio.wait_all_tasks_blocked()
        assert put == 3
        assert not queue.put_nowait(b"x" * 29)
        sink.gate.set()
        with anyio.fail_after(BOUND):
            while put < 50:
                await anyio.lowlevel.checkpoint()
        assert queue.put_nowait(b"x")
        queue.close()
    assert sum(map(len, sink.taken)) == 50 * 30 + 2


async def test_a_line_larger_than_the_bound_goes_when_nothing_else_waits() -> None:
    queue, sink = WriteQueue(10, BOUND), Sink()
    sink.gate.set()
    await queue.put(b"x" * 100)
    queue.close()
    await queue.run(sink)
    assert sink.taken == [b"x" * 100 + b"\n"]


async def test_a_reader_that_takes_nothing_is_given_up() -> None:
    queue = WriteQueue(10, 0.01)
    await queue.put(b"x")
    with pytest.raises(TimeoutError):
        await queue.run(Sink())


def test_numbers_without_a_json_form_become_null() -> None:
    assert (
        encode([math.nan, math.inf, -math.inf, 2**70]) == b"[null,null,null,%d]" % 2**70
    )
