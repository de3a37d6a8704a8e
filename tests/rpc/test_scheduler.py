"""Look-ups of connections get equal time, give way at checkpoints, and stop when nobody waits for them."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import SimpleNamespace

import anyio
import pytest

from flashgrep.base.checkpoint import Abandoned, blocking, checkpoint
from flashgrep.base.scheduler import (
    FLOW,
    PATIENCE,
    QUANTUM,
    SPARE,
    THREADS_PER_FLOW,
    Scheduler,
)
from tests.support.workspace import BOUND

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def spin(seconds: float) -> None:
    """Compute for so many seconds of this thread's own processor time, with checkpoints."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        checkpoint()


async def ask(scheduler: Scheduler, flow: str, work: Callable[[], object]) -> None:
    FLOW.set(flow)
    await scheduler.run(lambda: work)


async def test_one_runs_at_a_time() -> None:
    scheduler, running, most = Scheduler(), [0], [0]

    def work() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0)
        running[0] -= 1

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(ask, scheduler, str(number % 5), work)
    assert most == [1]


async def test_a_quick_one_of_another_connection_goes_before_the_backlog_of_a_greedy_one() -> (
    None
):
    scheduler, ended, begun = Scheduler(), list[str](), anyio.Event()

    def long() -> None:
        anyio.from_thread.run_sync(begun.set)
        spin(10 * QUANTUM)
        ended.append("greedy")

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask, scheduler, "greedy", long)
            await begun.wait()
            for _ in range(3):
                await ask(scheduler, "polite", lambda: ended.append("polite"))
            assert ended.count("greedy") <= 1
    assert len(ended) == 11


async def test_connections_get_the_same_time_whatever_number_of_calls_they_have() -> (
    None
):
    scheduler, spent, until = (
        Scheduler(),
        {"one": 0.0, "many": 0.0},
        time.monotonic() + 0.6,
    )

    def work(flow: str) -> None:
        while time.monotonic() < until:
            before = time.monotonic()
            while time.monotonic() - before < QUANTUM / 5:
                pass
            spent[flow] += time.monotonic() - before
            checkpoint()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask, scheduler, "many", lambda: work("many"))
            tasks.start_soon(ask, scheduler, "one", lambda: work("one"))
    assert spent["one"] / sum(spent.values()) > 0.3


async def test_one_that_gave_way_has_its_share_beside_connections_that_come_back_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler, ended, asked, most = Scheduler(), threading.Event(), [0], 2_000
    # Clocks that only look-ups move: how busy the machine is changes nothing.
    now, used = [0.0], dict[int, float]()
    clocks = SimpleNamespace(
        monotonic=lambda: now[0],
        thread_time=lambda: used.get(threading.get_ident(), 0.0),
    )
    monkeypatch.setattr("flashgrep.base.scheduler.time", clocks)

    def work() -> None:
        now[0] += QUANTUM / 5
        used[threading.get_ident()] = clocks.thread_time() + QUANTUM / 5
        checkpoint()

    def long() -> None:
        for _ in range(25):
            work()
        ended.set()

    async def come_back(flow: str) -> None:
        while not ended.is_set() and asked[0] < most:
            await ask(scheduler, flow, work)
            asked[0] += 1

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, scheduler, "long", long)
            for number in range(12):
                tasks.start_soon(come_back, str(number))
    assert asked[0] < most / 2  # an equal share of the time is 300


async def test_one_without_checkpoints_is_waited_for_no_longer_than_patience() -> None:
    scheduler, end = Scheduler(), threading.Event()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, scheduler, "stuck", lambda: end.wait(BOUND))
            await anyio.sleep(PATIENCE / 2)
            await ask(scheduler, "polite", lambda: None)
            assert not end.is_set()
            end.set()


async def test_others_run_while_one_waits_for_something_else() -> None:
    scheduler, end, begun = Scheduler(), threading.Event(), anyio.Event()

    def wait() -> None:
        with blocking():
            anyio.from_thread.run_sync(begun.set)
            assert end.wait(BOUND)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, scheduler, "waiting", wait)
            await begun.wait()
            await ask(scheduler, "waiting", lambda: None)
            await ask(scheduler, "polite", lambda: None)
            end.set()


@pytest.mark.parametrize("state", ["queued", "running", "giving way"])
async def test_a_cancelled_one_ends_and_holds_up_nobody(state: str) -> None:
    scheduler, stopped, begun, free = (
        Scheduler(),
        threading.Event(),
        anyio.Event(),
        threading.Event(),
    )

    def endless() -> None:
        anyio.from_thread.run_sync(begun.set)
        try:
            while True:
                checkpoint()
        except Abandoned:
            stopped.set()
            raise

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as others:
            if state == "queued":
                others.start_soon(ask, scheduler, "first", lambda: free.wait(BOUND))
                await anyio.lowlevel.checkpoint()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, scheduler, "cancelled", endless)
                if state == "queued":
                    await anyio.lowlevel.checkpoint()
                else:
                    await begun.wait()
                if state == "giving way":
                    others.start_soon(ask, scheduler, "other", lambda: free.wait(BOUND))
                    await anyio.sleep(4 * QUANTUM)
                tasks.cancel_scope.cancel()
            free.set()
            await ask(scheduler, "next", lambda: None)
        if state != "queued":
            assert await anyio.to_thread.run_sync(stopped.wait, BOUND)
    assert not scheduler.contended


async def test_a_failure_is_the_callers_and_frees_the_turn() -> None:
    scheduler = Scheduler()

    def fail() -> None:
        raise ValueError("broken")

    with anyio.fail_after(BOUND):
        for _ in range(3):
            with pytest.raises(ValueError, match="broken"):
                await scheduler.run(lambda: fail)
        await ask(scheduler, "next", lambda: None)


async def test_a_connection_has_a_few_threads_however_much_it_asks() -> None:
    scheduler, threads, most = Scheduler(), set[int](), [0]
    full, end = threading.Event(), threading.Event()

    def hold() -> None:
        threads.add(threading.get_ident())
        most[0] = max(most[0], len(threads))
        if len(threads) == THREADS_PER_FLOW:
            full.set()
        end.wait(BOUND)
        threads.discard(threading.get_ident())

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(5 * THREADS_PER_FLOW):
                tasks.start_soon(ask, scheduler, "greedy", hold)
            assert await anyio.to_thread.run_sync(full.wait, BOUND)
            await ask(scheduler, "polite", lambda: None)
            end.set()
    assert most == [THREADS_PER_FLOW]


async def test_out_of_a_look_up_a_checkpoint_does_nothing() -> None:
    checkpoint()
    with blocking():
        pass


async def test_rest_comes_once_there_is_no_work_and_tells_how_much_there_was() -> None:
    scheduler, ended = Scheduler(), list[float]()

    def work() -> None:
        spin(0.05)
        ended.append(time.monotonic())

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as flood:
            for _ in range(4):
                flood.start_soon(ask, scheduler, "much", work)
        assert await scheduler.wait_for_rest(0.05) >= 0.2
        assert time.monotonic() - ended[-1] >= 0.05
        await ask(scheduler, "little", lambda: None)
        assert await scheduler.wait_for_rest(0.05) < 0.2


class QuickWorker:
    """A worker on this event loop: it answers, or fails, after a moment."""

    def __init__(self, crowd: "Crowd") -> None:
        self.crowd = crowd
        self.reply: Callable[[bytes | None], None] | None = None

    def ask(
        self, request: bytes, limit: float, reply: Callable[[bytes | None], None]
    ) -> None:
        assert self.reply is None
        assert request
        assert limit
        self.reply = reply
        asyncio.get_running_loop().call_later(
            self.crowd.draw([0, 0.001, PATIENCE]), self.end
        )

    def end(self) -> None:
        reply, self.reply = self.reply, None
        assert reply is not None
        reply(self.crowd.draw([b"answer", None]))
        self.crowd.freed()

    def cancel(self) -> None:
        """End in its own time, as a worker without checkpoints does."""


class Crowd:
    """Workers that serve, and do not serve, as the dice fall."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).choice
        self.workers = [QuickWorker(self) for _ in range(2)]
        self.serving = frozenset[Hashable]({"place"})
        self.freed: Callable[[], None] = lambda: None

    @property
    def has_idle(self) -> bool:
        return self.free("place") is not None

    def free(self, place: Hashable) -> QuickWorker | None:
        assert place == "place"
        return next((worker for worker in self.workers if worker.reply is None), None)

    def want(self, place: Hashable, waiting: int) -> None:
        assert waiting
        self.serving = frozenset(self.draw([[place], []]))


@dataclass
class Question:
    """A look-up of which every third cannot be asked elsewhere."""

    crowd: Crowd
    place: Hashable = "place"
    limit: float = BOUND

    def request(self, _worker: object) -> bytes | None:
        return self.crowd.draw([b"question", b"question", None])

    def result(self, reply: bytes) -> str:
        return reply.decode()


async def test_look_ups_that_no_worker_takes_leave_nothing_behind() -> None:
    crowd = Crowd(0)
    crowd.workers, crowd.serving = [], frozenset()
    scheduler = Scheduler(crowd)
    with anyio.fail_after(BOUND):
        for _ in range(10 * SPARE):
            await scheduler.run(lambda: lambda: "here", Question(crowd))
    assert len(scheduler._for_workers) <= SPARE + 1


async def test_what_workers_did_counts_as_work() -> None:
    crowd = Crowd(0)
    scheduler = Scheduler(crowd)
    with anyio.fail_after(BOUND):
        for _ in range(
            30
        ):  # every third of those that a worker takes keeps it for PATIENCE
            await scheduler.run(lambda: lambda: "here", Question(crowd))
        assert await scheduler.wait_for_rest(0.01) > 3 * PATIENCE


class LongWorker(QuickWorker):
    """A worker that answers when it is told to."""

    def end(self) -> None:
        reply, self.reply = self.reply, None
        assert reply is not None
        reply(b"answer")
        self.crowd.freed()

    def ask(
        self, request: bytes, limit: float, reply: Callable[[bytes | None], None]
    ) -> None:
        assert request
        assert limit
        self.reply = reply


class AlwaysServing(Crowd):
    """Workers that count as quick whatever they do."""

    def __init__(self) -> None:
        super().__init__(0)
        self.workers = [LongWorker(self) for _ in range(2)]

    def want(self, place: Hashable, waiting: int) -> None:
        assert place
        assert waiting


class PlainQuestion(Question):
    """A look-up that may always be asked elsewhere."""

    def request(self, _worker: object) -> bytes | None:
        return b"question"


async def test_a_quick_one_waits_for_no_worker_with_long_ones_of_another_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited until the workers counted as busy with long ones, 20 to 40 ms."""
    monkeypatch.setattr("flashgrep.base.scheduler.PATIENCE", BOUND)
    crowd = AlwaysServing()
    scheduler = Scheduler(crowd)

    async def be_greedy() -> None:
        FLOW.set("greedy")
        assert (
            await scheduler.run(lambda: lambda: "here", PlainQuestion(crowd))
            == "answer"
        )

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(be_greedy)
            # The first two end late, and more are as long as these.
            await anyio.sleep(2 * QUANTUM)
            for worker in crowd.workers:
                worker.end()
            FLOW.set("polite")
            for _ in range(3):
                assert not crowd.has_idle
                answer = await scheduler.run(
                    lambda: lambda: "here", PlainQuestion(crowd)
                )
                assert answer == "here"
            while len(scheduler._flows) > 0:
                for worker in crowd.workers:
                    if worker.reply is not None:
                        worker.end()
                await anyio.lowlevel.checkpoint()


async def test_in_a_crowd_each_waits_for_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 clients with a question each were answered half as fast with threads beside the workers."""
    monkeypatch.setattr("flashgrep.base.scheduler.PATIENCE", BOUND)
    crowd = AlwaysServing()
    scheduler = Scheduler(crowd)
    where = list[str]()

    async def be_one_of_many(flow: str) -> None:
        FLOW.set(flow)
        where.append(await scheduler.run(lambda: lambda: "here", PlainQuestion(crowd)))

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for at in range(6):
                tasks.start_soon(be_one_of_many, str(at))
            while len(where) < 6:
                # All are long.
                await anyio.sleep(2 * QUANTUM)
                for worker in crowd.workers:
                    if worker.reply is not None:
                        worker.end()
    assert where == ["answer"] * 6


async def test_beside_others_a_connection_that_workers_serve_starts_nothing_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flashgrep.base.scheduler.HOLD_SECONDS", BOUND)
    monkeypatch.setattr("flashgrep.base.scheduler.BESIDE_SECONDS", BOUND)
    crowd = AlwaysServing()
    scheduler = Scheduler(crowd)
    here = list[str]()

    async def be_greedy() -> None:
        FLOW.set("greedy")
        where = await scheduler.run(lambda: lambda: "here", PlainQuestion(crowd))
        here.append(where)

    async def be_polite() -> None:
        """Ask what no worker can be asked, as most lookups."""
        FLOW.set("polite")
        await scheduler.run(lambda: lambda: None)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(be_greedy)
            await anyio.lowlevel.checkpoint()
            assert not crowd.has_idle
            await be_polite()
            # Now they count as busy with long ones: alone, it would go on here.
            crowd.serving = frozenset()
            for _ in range(3):
                await be_polite()
                await anyio.sleep(2 * PATIENCE)
            assert not here
            monkeypatch.setattr("flashgrep.base.scheduler.BESIDE_SECONDS", 0.0)
            while here.count("here") < 2:
                await anyio.lowlevel.checkpoint()
            for worker in crowd.workers:
                worker.end()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_whether_here_or_elsewhere_and_whenever_cancelled_none_is_lost(
    seed: int,
) -> None:
    """A look-up that had begun here and gave way was given to a worker once: its thread waited for ever."""
    crowd = Crowd(seed)
    scheduler = Scheduler(crowd)
    done = {"answer": 0, "here": 0, "cancelled": 0}

    async def client(number: int) -> None:
        FLOW.set(number % 10)
        seconds = crowd.draw([0.0001, QUANTUM / 2, 2 * QUANTUM])

        def work() -> str:
            spin(seconds)
            return "here"

        with anyio.move_on_after(crowd.draw([QUANTUM, 4 * QUANTUM, BOUND])) as scope:
            done[
                await scheduler.run(lambda: work, crowd.draw([None, Question(crowd)]))
            ] += 1
        done["cancelled"] += scope.cancelled_caught

    with anyio.fail_after(BOUND):
        for _ in range(2):
            async with anyio.create_task_group() as clients:
                for number in range(100):
                    clients.start_soon(client, number)
            await scheduler.wait_for_rest(0.01)  # every thread has ended
    assert sum(done.values()) == 200
    assert all(done.values())
    assert not scheduler._flows
    assert not scheduler._elsewhere
