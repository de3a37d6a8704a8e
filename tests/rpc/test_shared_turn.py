"""Look-ups of one question share a turn, and none waits long for another, fails by it or is lost with it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.scheduler import FLOW, Scheduler
from flashgrep.base.shared_turn import SHARED_SECONDS, SHARED_TURN, SharedTurn
from tests.support.workspace import BOUND

pytestmark = pytest.mark.anyio
MANY = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Question:
    """A question to many projects: what each has answered, and in how many turns."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.answers: dict[int, Any] = {}
        self.turns = 0

    async def ask(self, works: list[Callable[[], Any]], seconds: float = BOUND) -> None:
        FLOW.set("client")

        async def ask_one(number: int, shared: SharedTurn) -> None:
            SHARED_TURN.set(shared)
            with anyio.move_on_after(seconds):
                try:
                    self.answers[number] = await self.scheduler.run(
                        lambda: works[number]
                    )
                except ValueError as error:
                    self.answers[number] = error

        async with anyio.create_task_group() as tasks:
            shared = SharedTurn(tasks)
            for number in range(len(works)):
                tasks.start_soon(ask_one, number, shared)


async def test_many_look_ups_run_in_one_thread_one_after_the_other() -> None:
    question, threads = Question(), list[int]()

    def work() -> int:
        threads.append(threading.get_ident())
        return len(threads)

    with anyio.fail_after(BOUND):
        await question.ask([work] * MANY)
    assert len(set(threads)) == 1
    assert sorted(question.answers.values()) == list(range(1, MANY + 1))
    assert SHARED_TURN.get() is None


async def test_a_failure_is_that_look_ups_own() -> None:
    question = Question()

    def fail() -> None:
        raise ValueError("of one project")

    with anyio.fail_after(BOUND):
        await question.ask([lambda: 1, fail, lambda: None])
    assert (question.answers[0], question.answers[2]) == (1, None)
    assert str(question.answers[1]) == "of one project"


async def test_what_cannot_begin_fails_alone() -> None:
    """A project may have been closed since the question was asked."""
    question, answers = Question(), dict[int, Any]()

    def refuse() -> Callable[[], Any]:
        raise ValueError("closed")

    begins: list[Callable[[], Callable[[], Any]]] = [
        lambda: lambda: 1,
        refuse,
        lambda: lambda: next(iter(())),
        lambda: lambda: 2,
    ]

    async def ask_one(number: int, shared: SharedTurn) -> None:
        SHARED_TURN.set(shared)
        try:
            answers[number] = await question.scheduler.run(begins[number])
        except (ValueError, RuntimeError) as error:
            answers[number] = type(error)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            shared = SharedTurn(tasks)
            for number in range(len(begins)):
                tasks.start_soon(ask_one, number, shared)
    assert answers == {0: 1, 1: ValueError, 2: RuntimeError, 3: 2}


async def test_none_waits_for_one_that_hangs() -> None:
    """It may be on a disk that does not answer. The others end beside it; it is given up at its deadline."""
    question, hung = Question(), threading.Event()
    others = threading.Semaphore(0)

    def hang() -> None:
        assert all(others.acquire(timeout=BOUND) for _ in range(MANY - 1))
        hung.wait(BOUND)

    try:
        with anyio.fail_after(BOUND):
            await question.ask(
                [hang] + [others.release] * (MANY - 1), seconds=20 * SHARED_SECONDS
            )
    finally:
        hung.set()
    assert sorted(question.answers) == list(range(1, MANY))


async def test_a_cancelled_question_ends_and_so_does_its_look_up() -> None:
    question, ended = Question(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                checkpoint()
                time.sleep(0)
        finally:
            ended.set()

    begun = threading.Event()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(question.ask, [endless] * MANY)
            assert await anyio.to_thread.run_sync(begun.wait, BOUND)
            tasks.cancel_scope.cancel()
    assert question.answers == {}
    assert ended.wait(BOUND)


@pytest.mark.parametrize("seconds", [0, 0.5 * SHARED_SECONDS, 2 * SHARED_SECONDS])
async def test_whenever_the_deadline_comes_each_has_one_answer_or_none(
    seconds: float,
) -> None:
    """Some have ended, one is running, some have not begun, some run by themselves."""
    question, runs = Question(), list[int]()

    def work_of(number: int) -> Callable[[], int]:
        def work() -> int:
            runs.append(number)
            end = time.monotonic() + SHARED_SECONDS / 4
            while time.monotonic() < end:
                checkpoint()
            return number

        return work

    with anyio.fail_after(BOUND):
        await question.ask([work_of(number) for number in range(MANY)], seconds=seconds)
        assert all(number == answer for number, answer in question.answers.items())
        assert len(runs) == len(set(runs))
        again = await question.scheduler.run(lambda: lambda: "free")
    assert again == "free"
