"""Frames between our processes: whole, bounded, and read one at a time."""

import os
import select
from collections.abc import Iterator
from io import BytesIO
from subprocess import PIPE

import anyio
import pytest

from flashgrep.base.child_process import read_frame, read_message
from flashgrep.base.frames import LENGTH, frame, measure, receive
from flashgrep.indexer.child import IndexerChild, IndexerFailed
from tests.conftest import BOUND

MOST = 1 << 20


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb"):
        yield reading, writing


def test_a_message_that_waits_behind_another_is_still_seen(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    os.write(writing, frame(b"first") + frame(b""))
    assert receive(reading, MOST) == bytearray(b"first")
    # So the indexer learns of a command while it carries out the one before.
    assert select.select([reading], [], [], 0)[0] == [reading]
    assert receive(reading, MOST) == bytearray()
    assert select.select([reading], [], [], 0)[0] == []


def test_a_message_cut_off_or_too_large_is_none(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.write(writing, frame(b"x" * 10))
    assert receive(reading, 9) is None
    stream = BytesIO(frame(b"[1]") + frame(b"[2]")[:LENGTH])
    assert read_frame(stream) == [1]
    assert read_message(stream) == b""
    assert read_message(stream) is None
    assert measure(frame(b"abc")) == len(b"abc")


def test_the_end_of_a_pipe_is_the_end_of_messages() -> None:
    reading, writing = os.pipe()
    os.write(writing, frame(b"whole")[:-1])
    os.close(writing)
    with os.fdopen(reading, "rb"):
        assert receive(reading, MOST) is None


async def test_what_a_library_prints_is_no_event_and_is_not_waited_for() -> None:
    process = await anyio.open_process(
        ["sh", "-c", "echo a warning; exec cat"], stdin=PIPE, stdout=PIPE, stderr=None
    )
    child = IndexerChild(process)
    try:
        with anyio.fail_after(BOUND), pytest.raises(IndexerFailed) as ended:
            await anext(child.merge())
        assert ended.value.reason == "died"
    finally:
        await child.close()
