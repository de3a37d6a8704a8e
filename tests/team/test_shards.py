"""Texts in three other servers, by postgres_fdw: the same answers, and one that is down is named."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from flashgrep.parts.team import store_connection
from flashgrep.parts.team.database import connect
from tests.support.postgres import Server, run_server
from tests.support.truth import ripgrep
from tests.team.conftest import Rig
from tests.team.test_store import draw_files, find_all

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shards() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(run_server()) for _ in range(3)]


async def test_answers_are_the_same_and_a_shard_that_is_down_is_named(
    make_rig: Callable[..., Rig], dsn: str, shards: list[Server]
) -> None:
    named = {
        f"s{number}": server.make_database("shard")
        for number, server in enumerate(shards)
    }
    rig = make_rig(dsn, named)
    root = rig.make_repository("one", draw_files(3, 60))
    rig.sync()
    asked = rig.ask_as("ann")
    for pattern in ("alpha", "gamma_delta", "(?i)beta$", "spin.*x", "ab"):
        assert await find_all(asked.call, pattern) == ripgrep(root, pattern), pattern
    found = await asked.call("get_symbol", symbol_name="gamma_delta")
    assert {hit["file_path"] for hit in found["results"]} == {
        "src/one.py",
        "src/two.py",
        "copy.py",
    }

    shards[1].stop()
    try:
        for pattern in ("alpha", "gamma_delta"):
            other = rig.ask_as("ann")  # what was read before is not kept here
            started = time.monotonic()
            page = await other.call(
                "query",
                query=pattern,
                mode="regex",
                limit=2_000,
                max_tokens=1_000_000,
                case="sensitive",
            )
            took = time.monotonic() - started
            assert page["coverage"]["complete"] is False
            assert "s1" in page["coverage"]["detail"]
            hits = {
                (hit["file_path"].encode(), hit["start_line"])
                for hit in page["results"]
            }
            truth = ripgrep(root, pattern)
            assert set() < hits < truth
            assert took < 10
        page = await other.call("search_code", query="gamma_delta")
        assert page["coverage"]["complete"] is False
        assert "s1" in page["coverage"]["detail"]
        assert page["results"]
        page = await other.call("query", query="alpha", projects="*")
        assert page["coverage"]["complete"] is False
        assert "s1" in page["coverage"]["detail"]
    finally:
        shards[1].start()
    fresh = rig.ask_as("ann")
    assert await find_all(fresh.call, "alpha") == ripgrep(root, "alpha")


async def test_a_shard_that_hangs_is_named_soon_and_answers_again(
    make_rig: Callable[..., Rig],
    dsn: str,
    shards: list[Server],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = make_rig(
        dsn,
        {
            f"s{number}": server.make_database("shard")
            for number, server in enumerate(shards)
        },
    )
    root = rig.make_repository("one", draw_files(3, 60))
    rig.sync()
    asked = rig.ask_as("ann")
    assert await find_all(asked.call, "gamma_delta") == ripgrep(root, "gamma_delta")
    shards[1].freeze()
    try:
        # One connection to it is open and one is not: the one waits for rows, the other
        # for a greeting.
        for one in (asked, rig.ask_as("ann")):
            started = time.monotonic()
            page = await one.call(
                "query",
                query="alpha",
                mode="literal",
                limit=2_000,
                max_tokens=1_000_000,
            )
            assert time.monotonic() - started < 3 * store_connection.CUT_SECONDS
            assert page["coverage"]["complete"] is False
            assert "s1" in page["coverage"]["detail"]
            assert page["results"]
            started = time.monotonic()
            page = await one.call("search_code", query="gamma_delta")
            assert time.monotonic() - started < store_connection.CUT_SECONDS, (
                "it is left alone now"
            )
            assert "s1" in page["coverage"]["detail"]
        with (
            monkeypatch.context() as patched
        ):  # as if its time were over: who asks it now waits less
            patched.setattr(store_connection, "AVOID_SECONDS", 0.0)
            one.catalogue._store.avoid(1)
        started = time.monotonic()
        page = await one.call(
            "query",
            query="gamma_delta",
            mode="literal",
            limit=2_000,
            max_tokens=1_000_000,
        )
        assert time.monotonic() - started < 2 * store_connection.CUT_SECONDS
        assert "s1" in page["coverage"]["detail"]
        assert page["results"]
    finally:
        shards[1].thaw()
    monkeypatch.setattr(store_connection, "AVOID_SECONDS", 0.0)
    assert await find_all(rig.ask_as("ann").call, "alpha") == ripgrep(root, "alpha")


def test_a_connection_that_may_be_cut_is_read_as_before(dsn: str) -> None:
    with closing(connect(dsn)) as connection:
        is_blocking = os.get_blocking(connection.fileno())
        with store_connection.cut_after(connection, 60.0):
            assert os.get_blocking(connection.fileno()) is is_blocking
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert os.get_blocking(connection.fileno()) is is_blocking
        with (
            pytest.raises(psycopg.OperationalError),
            store_connection.cut_after(connection, 0.05),
        ):
            connection.execute("SELECT pg_sleep(30)")


def test_shards_are_given_once(make_rig: Callable[..., Rig], dsn: str) -> None:
    make_rig(dsn, {"a": None, "b": None})
    make_rig(dsn)
    with pytest.raises(Exception, match="texts are placed by hash"):
        make_rig(dsn, {"a": None})
