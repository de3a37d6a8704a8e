"""Who writes the store, or keeps it, is killed at every step: no answer is torn, nothing is lost, jobs go on."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

from flashgrep.base.errors import NotFound, Unavailable
from flashgrep.index.segments import MOST_SEGMENTS, SegmentRow
from flashgrep.parts.team import store_connection
from flashgrep.parts.team import stored_segments as merging
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.migrations import SHARDED
from flashgrep.parts.team.stored_segments import read_segments
from tests.support.postgres import Server, run_server
from tests.support.truth import Found, ripgrep
from tests.support.workspace import BOUND, ask, opened
from tests.team.conftest import Asked, Rig
from tests.team.test_jobs import count
from tests.team.test_store import draw_files, find_all
from tests.team.worker_process import worker

pytestmark = pytest.mark.slow

PATTERNS = ["alpha", "gamma_delta", "(?i)beta$", "spin.*x"]
LOADING = [
    "text",
    "segment",
    "content",
    "listing",
    "branch",
    "symbol_name",
    "signs",
    "chunk",
]
"""Tables that a worker writes, in this order: held at one, it has written those before it, in the same step or not. At
the last one it deletes what the one before has left."""
PUBLISHED = {"symbol_name", "signs"}
"""Held at these, a worker has made the new state of the branches that which is asked."""
MERGING = ["block", "signs"]


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for what another process brings about."""
    ends = time.monotonic() + BOUND
    while not happened():
        assert time.monotonic() < ends
        os.sched_yield()


@contextmanager
def held_at(rig: Rig, table: str) -> Iterator[Callable[[], None]]:
    """Have whoever would write a table wait for the end of the block, and yield what waits for somebody to do so."""
    query = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
    )
    with (
        closing(connect(rig.dsn)) as looking,
        closing(connect(rig.dsn, autocommit=False)) as holding,
    ):
        holding.execute(f"LOCK TABLE flashgrep.{table} IN SHARE MODE".encode())

        def is_held() -> bool:
            row = looking.execute(query, [f"flashgrep.{table}"]).fetchone()
            return row is not None and row[0] > 0

        yield partial(wait_until, is_held)


@contextmanager
def worker_killed_at(rig: Rig, table: str) -> Iterator[None]:
    """Run a block while a worker would write a table, then kill it, and wait until its repository is free."""
    with held_at(rig, table) as wait, worker(rig):
        wait()
        yield
    with closing(connect(rig.dsn)) as looking:
        free = "SELECT repository FROM flashgrep.turn FOR UPDATE SKIP LOCKED"
        wait_until(
            lambda: len(looking.execute(free).fetchall()) == count(rig, "repository")
        )


def push_change(rig: Rig, root: Path, number: int) -> None:
    """Commit a few changes, and ask for a sync."""
    old = f"new/{number - 2}.py"
    if (root / old).exists():
        (root / old).unlink()
    rig.write(
        root,
        {
            f"new/{number}.py": f"def alpha_{number}():\n    return gamma_delta({number})\n"
        },
    )
    rig.push(root)
    rig.team.request()


def read_truth(root: Path) -> list[Found]:
    """Return what ripgrep finds in the work tree."""
    return [ripgrep(root, pattern) for pattern in PATTERNS]


async def check(asked: Asked, truth: list[Found]) -> None:
    """Hold all answers against one state of the branch."""
    assert [await find_all(asked.call, pattern) for pattern in PATTERNS] == truth
    page = await asked.call("search_code", query="alpha", limit=5)
    assert page["results"]
    assert page["coverage"]["complete"], page["coverage"]


async def check_store(rig: Rig, root: Path) -> None:
    """Bring a store up to date, and see that it is what one is that nothing happened to."""
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.job SET due = now()")
        connection.execute("UPDATE flashgrep.leftover SET due = now()")
    rig.sync()
    with closing(connect(rig.dsn)) as connection:  # what the merge has just replaced
        connection.execute("UPDATE flashgrep.leftover SET due = now()")
    rig.sync()
    assert (count(rig, "job"), count(rig, "leftover")) == (0, 0)
    with closing(connect(rig.dsn)) as connection:
        segments = read_segments(connection, 1)
    named = [one.texts[one.texts > 0].tolist() for one in segments if one.kind == 0]
    texts = sum(map(len, named))
    assert {count(rig, table) for table in ("text", "symbol", "chunk")} == {texts}
    assert count(rig, "block") == sum(len(one.keys) for one in segments)
    assert count(rig, "signs") == sum(one.kind == 1 for one in segments)
    await check(rig.ask_as("ann"), read_truth(root))


async def test_a_worker_killed_at_any_step_tears_no_answer_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rig.make_repository("one", draw_files(4, 25))
    rig.sync()
    asked = rig.ask_as("ann")
    published = read_truth(root)
    for number, table in enumerate(LOADING):
        push_change(rig, root, number)
        with worker_killed_at(rig, table):
            if table in PUBLISHED:
                published = read_truth(root)
            await check(asked, published)
        await check(asked, published)
    with monkeypatch.context() as patched:
        patched.setattr(merging, "worth_merging", lambda _rows: [])
        for number in range(100, 101 + MOST_SEGMENTS):
            push_change(rig, root, number)
            rig.team.work(lambda _what: None)
    for table in MERGING:
        rig.team.request()
        with worker_killed_at(rig, table):
            await check(asked, read_truth(root))
        await check(asked, read_truth(root))
    await check_store(rig, root)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        assert [
            await ask(workspace, "regex", pattern) for pattern in PATTERNS
        ] == read_truth(root)


def merge_all(rows: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
    """Have segments merged as soon as there are two."""
    return rows if len(rows) > 1 else []


@pytest.mark.parametrize("place", ["content", "merge"])
async def test_a_server_killed_while_it_is_written_has_all_that_was_answered(
    rig: Rig, server: Server, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root = rig.make_repository("one", draw_files(5, 15))
    rig.sync()
    asked = rig.ask_as("ann")
    published = read_truth(root)
    push_change(rig, root, 1)
    if place == "merge":
        rig.team.work(lambda _what: None)
        published = read_truth(root)
        monkeypatch.setattr(merging, "worth_merging", merge_all)
        rig.team.request()
    with ThreadPoolExecutor(1) as thread:
        try:
            with (
                suppress(psycopg.OperationalError),
                held_at(rig, "signs" if place == "merge" else place) as wait,
            ):
                working = thread.submit(rig.team.work, lambda _what: None)
                wait()
                server.kill()
            with pytest.raises(Unavailable, match="database"):
                working.result(BOUND)
            with pytest.raises(Unavailable, match="database"):
                await asked.call("query", query="alpha")
        finally:
            server.start()
    await check(asked, published)
    await check_store(rig, root)


@pytest.fixture(scope="module")
def shards() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(run_server()) for _ in range(2)]


@contextmanager
def killed_in_its_commit(
    servers: Sequence[Server],
    addresses: Sequence[str],
    table: str,
    *,
    is_second: bool = True,
) -> Iterator[None]:
    """Kill a shard that commits what the block writes, the one before has done so if ``is_second``; it is back then."""
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    )
    with ExitStack() as stack:
        holding = [
            stack.enter_context(closing(connect(address))) for address in addresses
        ]
        for one in holding:
            one.execute(
                "CREATE OR REPLACE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END'"
            )
            one.execute(
                f"CREATE CONSTRAINT TRIGGER held AFTER INSERT OR DELETE ON flashgrep.{table} "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()".encode()
            )
            one.execute("SELECT pg_advisory_lock(1)")

        def find_held(among: Sequence[int]) -> int | None:
            counts = [
                (number, holding[number].execute(waiting).fetchone())
                for number in among
            ]
            return next(
                (number for number, row in counts if row is not None and row[0]), None
            )

        def kill() -> int:
            wait_until(lambda: find_held([0, 1]) is not None)
            number = find_held([0, 1]) or 0
            if is_second:
                holding[number].execute("SELECT pg_advisory_unlock(1)")
                number = 1 - number
                wait_until(lambda: find_held([number]) is not None)
            servers[number].kill()
            return number

        with ThreadPoolExecutor(1) as thread:
            killed = thread.submit(kill)
            yield
            servers[killed.result(BOUND)].start()
        for address in addresses:
            with closing(connect(address)) as connection:
                connection.execute(f"DROP TRIGGER held ON flashgrep.{table}".encode())


async def test_a_shard_killed_when_another_has_committed_tears_nothing(
    make_rig: Callable[..., Rig],
    dsn: str,
    shards: list[Server],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = [server.make_database("shard") for server in shards]
    rig = make_rig(dsn, {"a": addresses[0], "b": addresses[1]})
    root = rig.make_repository("one", draw_files(6, 25))
    rig.sync()
    published = read_truth(root)
    for table in ("text", "chunk"):
        rig.write(
            root,
            {
                f"{table}/{number}.py": f"{table} = alpha({number})\n"
                for number in range(9)
            },
        )
        rig.push(root)
        with killed_in_its_commit(shards, addresses, table):
            rig.sync()
        if table != "text":
            published = read_truth(root)
        monkeypatch.setattr(store_connection, "AVOID_SECONDS", 0.0)
        await check(rig.ask_as("ann"), published)
    with monkeypatch.context() as patched:
        patched.setattr(merging, "worth_merging", merge_all)
        with killed_in_its_commit(shards, addresses, "block", is_second=False):
            rig.sync()
    await check_store(rig, root)
    with killed_in_its_commit(shards, addresses, "text"), pytest.raises(Unavailable):
        rig.team.remove("one")
    with pytest.raises(NotFound):
        await rig.ask_as("ann").call("query", query="alpha")
    rig.team.remove("one")
    assert {count(rig, table) for table in (*SHARDED, "repository", "job")} == {0}
