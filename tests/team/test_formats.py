"""Postings of an older format, or of a newer one: they exclude nothing, and the next worker makes them anew."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.errors import Conflict
from flashgrep.index import postings
from flashgrep.index.segments import Kind
from flashgrep.parts.team import load
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.load import Loader
from flashgrep.parts.team.stored_segments import read_segments, reserve_segments
from tests.support.truth import ripgrep
from tests.team.conftest import Asked, Rig
from tests.team.test_jobs import count
from tests.team.test_store import draw_files, find_all

pytestmark = pytest.mark.slow

PATTERNS = ["alpha", "gamma_delta", "(?i)beta$", "spin.*x"]
OLDER, NEWER = postings.FORMAT - 1, postings.FORMAT + 1


def age(rig: Rig, written: int = OLDER) -> None:
    """Have all postings be of another format, and say of no gram and no word that a text has it."""
    with closing(connect(rig.dsn)) as connection:
        empty = [
            (one.id, one.documents, postings.encode(postings.pairs_of([]), one.id))
            for one in segments(rig)
        ]
        connection.execute(
            "UPDATE flashgrep.segment SET format = %s, keys = '\\x00000000'", [written]
        )
        connection.execute("DELETE FROM flashgrep.block")
        rows = [
            (1, 0, number, block.first, block.data)
            for number, _, blocks in empty
            for block in blocks
        ]
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO flashgrep.block VALUES (%s, %s, %s, %s, %s)", rows
            )


def segments(rig: Rig) -> list[Any]:
    with closing(connect(rig.dsn)) as connection:
        return read_segments(connection, 1)


async def check(asked: Asked, root: Path) -> None:
    """Hold answers against ripgrep's."""
    for pattern in PATTERNS:
        assert await find_all(asked.call, pattern) == ripgrep(root, pattern), pattern


@pytest.fixture
def root(rig: Rig) -> Path:
    made = rig.make_repository("one", draw_files(2, 20))
    rig.sync()
    return made


async def test_older_postings_hide_nothing_and_the_next_sync_rebuilds_them(
    rig: Rig, root: Path
) -> None:
    age(rig)
    asked = rig.ask_as("ann")
    await check(asked, root)
    page = await asked.call("search_code", query="alpha beta", limit=5)
    assert page["coverage"]["complete"], "what has no chunks is cut by the question"
    ranked = [one["file_path"] for one in page["results"]]
    texts = sorted(
        text
        for one in segments(rig)
        for text in one.texts.tolist()
        if one.kind == Kind.GRAMS
    )
    rig.sync()
    assert {one.format for one in segments(rig)} == {postings.FORMAT}
    assert (
        sorted(
            text
            for one in segments(rig)
            for text in one.texts.tolist()
            if one.kind == Kind.GRAMS
        )
        == texts
    )
    await check(asked, root)
    page = await asked.call("search_code", query="alpha beta", limit=5)
    assert page["coverage"]["complete"]
    assert [one["file_path"] for one in page["results"]] == ranked
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.leftover SET due = now()")
    rig.sync()
    assert count(rig, "leftover") == 0
    await check(asked, root)


async def test_a_worker_of_older_code_may_go_on_writing_for_a_while(
    rig: Rig, root: Path
) -> None:
    rig.write(root, {"new/1.py": "def alpha_1():\n    return gamma_delta(1)\n"})
    rig.push(root)
    rig.sync()
    newest = max(one.id for one in segments(rig))
    with closing(connect(rig.dsn)) as connection:
        # It knows no such column, so its rows have what the table gives them.
        connection.execute(
            "UPDATE flashgrep.segment SET format = DEFAULT WHERE id = %s", [newest]
        )
    assert {one.format for one in segments(rig)} == {1, postings.FORMAT}
    await check(rig.ask_as("ann"), root)
    rig.sync()
    assert {one.format for one in segments(rig)} == {postings.FORMAT}
    await check(rig.ask_as("ann"), root)


async def test_newer_postings_hide_nothing_and_a_worker_leaves_them(
    rig: Rig, root: Path
) -> None:
    age(rig, NEWER)
    asked = rig.ask_as("ann")
    await check(asked, root)
    told: list[str] = []
    rig.team.request()
    rig.team.work(told.append)
    assert (
        "one: the store has postings of a newer flashgrep; install that version here"
        in told
    )
    assert {one.format for one in segments(rig)} == {NEWER}
    await check(asked, root)


@pytest.mark.parametrize("place", ["put_blocks", "start_generation"])
async def test_a_worker_that_dies_in_the_second_batch_keeps_the_first(
    rig: Rig, root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    age(rig)
    blocks, batches = count(rig, "block"), 0
    real: Callable[..., Any] = getattr(load, place)

    def die(*given: Any) -> Any:
        nonlocal batches
        batches += 1
        if batches > 1:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patched, closing(connect(rig.dsn)) as connection:
        patched.setattr(load, place, die)
        patched.setattr(load, "BATCH_TEXTS", 7)
        with pytest.raises(KeyboardInterrupt):
            list(Loader(connection, 1, 1).rebuild_segments())
    made = [one for one in segments(rig) if one.format == postings.FORMAT]
    assert [len(one.texts) for one in made] == [7]
    assert count(rig, "block") == blocks + len(made[0].keys)
    asked = rig.ask_as("ann")
    await check(asked, root)
    rig.sync()
    assert made[0].id in {one.id for one in segments(rig)}, (
        "what the dead one has done stays"
    )
    assert {one.format for one in segments(rig)} == {postings.FORMAT}
    await check(asked, root)


async def test_of_two_that_rebuild_at_once_one_wins(
    rig: Rig, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(rig)
    with closing(connect(rig.dsn)) as connection, closing(connect(rig.dsn)) as other:

        def be_overtaken(*given: Any) -> Any:
            monkeypatch.undo()
            assert sum(Loader(other, 1, 1).rebuild_segments()) > 0
            return reserve_segments(*given)

        monkeypatch.setattr(load, "reserve_segments", be_overtaken)
        with pytest.raises(Conflict):
            list(Loader(connection, 1, 1).rebuild_segments())
        assert list(Loader(connection, 1, 1).rebuild_segments()) == []
    texts = [
        text
        for one in segments(rig)
        for text in one.texts.tolist()
        if one.kind == Kind.GRAMS
    ]
    assert len(texts) == len(set(texts))
    rig.sync()
    assert count(rig, "leftover") == 1, (
        "the blocks that were replaced, for questions begun before"
    )
    await check(rig.ask_as("ann"), root)
