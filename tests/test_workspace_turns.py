"""Look-ups take turns while they are quick; a slow one holds nobody up for long."""

from functools import partial
from itertools import pairwise

import anyio
import pytest

from flashgrep.workspace.turns import PATIENCE, Turns
from tests.workspace_harness import BOUND

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_next_begins_when_the_one_before_has_ended_in_the_order_they_came() -> None:
    turns, running, order = Turns(), [0], list[int]()

    async def look_up(number: int) -> None:
        async with turns.turn():
            running[0] += 1
            assert running[0] == 1
            await anyio.lowlevel.checkpoint()
            order.append(number)
            running[0] -= 1

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(look_up, number)
    assert order == list(range(20))


async def test_a_slow_one_is_waited_for_no_longer_than_patience() -> None:
    turns, end, begun = Turns(), anyio.Event(), list[float]()

    async def slow() -> None:
        async with turns.turn():
            begun.append(anyio.current_time())
            if len(begun) == 4:  # else this waits for ever
                end.set()
            await end.wait()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(slow)
    assert all(after - before > PATIENCE * 0.9 for before, after in pairwise(begun))


async def test_whoever_gives_up_waiting_holds_up_nobody() -> None:
    turns, end = Turns(), anyio.Event()

    async def hold() -> None:
        async with turns.turn():
            await end.wait()

    async def impatient(scope: anyio.CancelScope) -> None:
        with scope:
            async with turns.turn():
                await end.wait()

    scopes = [anyio.CancelScope() for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        for scope in scopes:
            tasks.start_soon(partial(impatient, scope))
        await anyio.lowlevel.checkpoint()
        for scope in scopes:
            scope.cancel()
        async with turns.turn():
            end.set()


async def test_an_answer_that_fails_ends_its_turn() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="broken"):
        async with turns.turn():
            raise ValueError("broken")
    with anyio.fail_after(PATIENCE):
        async with turns.turn():
            pass
