"""A listing that has not ended is never taken for one: cancelled at each wait, asked in between, twice at once."""

import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.api.coverage import Coverage
from flashgrep.files.globs import PathFilter
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.project.project import UNLISTED
from flashgrep.search.exact import Question
from tests.conftest import DaemonAtHand, MakeProject
from tests.faults.harness import indexed, kill
from tests.support.truth import ripgrep
from tests.support.workspace import (
    ask,
    cancelled_at,
    files_with,
    index_of,
    opened,
    put,
    repository,
)

MOST_WAITS = 60
"""More than any of these coroutines waits."""

NEEDLE = Question(
    pattern=Pattern(texts=("needle",), mode="literal", case="sensitive"),
    limit=10_000,
    max_chars=10**9,
)


def some_files(root: Path) -> None:
    put(root, {f"d{at % 3}/f{at}.txt": b"needle %d\n" % at for at in range(20)})


async def right(workspace: Workspace, root: Path) -> None:
    """Have the answer equal ripgrep's, and the files known be those there are."""
    assert await ask(workspace, "literal", "needle") == ripgrep(root, "needle", "-F")
    listed = {path for path, _ in ripgrep(root, "")}
    assert set(workspace.paths()) == listed
    assert workspace.tree.count() == len(listed)


async def at_each_wait(
    workspace: Workspace, root: Path, body: Callable[[], Coroutine[Any, Any, object]]
) -> None:
    """Cancel at the first wait, the second, …, until it runs through; answers are right after each."""
    for number in range(1, MOST_WAITS):
        reached = await cancelled_at(number, body())
        await right(workspace, root)
        if not reached:
            return
    raise AssertionError("it waits too often")


async def test_files_are_filtered_as_one_by_one_while_they_change(root: Path) -> None:
    some_files(root)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        put(root, {"d0/new.txt": b"", "D1/F1.md": b"", "d1/f1.txt": b"changed"})
        (root / "d2/f2.txt").unlink()
        await workspace.refresh()
        assert len(workspace.paths()) == 21
        for keep in (
            None,
            PathFilter(["d1/*", "*.md"], ["f4.txt"]),
            PathFilter(["new.*"], []),
        ):
            for part in ("", "f1", "D1/F", "none"):
                wanted = [
                    path
                    for path in workspace.paths()
                    if part.lower().encode() in path.lower()
                ]
                assert workspace.paths(keep, part) == [
                    path for path in wanted if keep is None or keep(path)
                ]


async def test_a_rebuild_cancelled_at_any_wait_leaves_every_file(root: Path) -> None:
    some_files(root)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        await at_each_wait(workspace, root, workspace.rebuild)
        await workspace.wait_indexed()
        await right(workspace, root)


async def test_a_damaged_index_whose_healing_is_cancelled_at_any_wait_costs_no_hit(
    root: Path,
) -> None:
    some_files(root)
    async with opened(root) as workspace:
        for number in (2, 6, MOST_WAITS):
            await indexed(workspace)
            await workspace.store.scheduler.close()
            with closing(sqlite3.connect(index_of(root))) as connection, connection:
                connection.execute("UPDATE posting_block SET data = zeroblob(20)")
            reached = await cancelled_at(number, workspace.search(NEEDLE))
            await right(workspace, root)
            if not reached:
                return
        raise AssertionError("it waits too often")


def new_folder(root: Path, turn: int) -> None:
    put(
        root,
        {f"new{turn}/deep/er/a.txt": b"needle\n", f"other{turn}/b.txt": b"needle\n"},
    )


def moved_folder(root: Path, turn: int) -> None:
    (root / "d1").rename(root / f"moved{turn}")
    (root / f"moved{turn}").rename(root / "d1")
    (root / "d0").rename(root / "d9")
    (root / "d9").rename(root / "d0")
    put(root, {"d0/f0.txt": b"needle %d\n" % turn})


def new_rules(root: Path, turn: int) -> None:
    (root / ".gitignore").write_text(f"f{turn % 9}.txt\n")


def rules_outside(root: Path, turn: int) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(f"f{turn % 9}.txt\n" + "#" * turn)
    put(root, {"d1/saved.txt": b"needle %d\n" % turn})


@pytest.mark.filterwarnings(
    "ignore:Callback with id:RuntimeWarning"
)  # watchdog's, of folders made one in another
@pytest.mark.parametrize("change", [new_folder, moved_folder, new_rules, rules_outside])
@pytest.mark.parametrize("native", [True, False], ids=["inotify", "watchdog"])
async def test_what_a_cancelled_question_read_is_there_for_the_next(
    change: Callable[[Path, int], None],
    native: bool,  # noqa: FBT001 - a test's parameter,
    root: Path,
) -> None:
    some_files(root)
    async with opened(root, native_watch=native) as workspace:
        await workspace.wait_indexed()
        for number in range(1, MOST_WAITS):
            change(root, number)
            reached = await cancelled_at(number, workspace.refresh())
            await right(workspace, root)
            if not reached:
                return
        raise AssertionError("it waits too often")


async def test_changes_made_while_nothing_was_watched_survive_a_cancelled_look(
    root: Path,
) -> None:
    some_files(root)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        for number in range(1, MOST_WAITS):
            await workspace.freshness.switch(on=False)
            put(root, {f"unseen{number}.txt": b"needle\n"})
            (root / "d0" / "f0.txt").unlink(missing_ok=True)
            await workspace.freshness.switch(on=True)
            reached = await cancelled_at(number, workspace.refresh())
            await right(workspace, root)
            if not reached:
                return
        raise AssertionError("it waits too often")


async def test_questions_during_rebuilds_two_at_once_never_meet_a_project_without_files(
    root: Path,
) -> None:
    put(root, {f"d{at % 20}/f{at}.txt": b"needle\n" for at in range(600)})
    wanted = len(ripgrep(root, "needle"))
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        asked = 0

        async def asking(rebuilt: anyio.Event) -> None:
            nonlocal asked
            while not rebuilt.is_set():
                fresh = asked % 8 == 0 and await workspace.refresh()
                started = time.perf_counter()
                answer = await workspace.search(NEEDLE)
                coverage = workspace.coverage(answer, fresh=fresh, started=started)
                assert (answer.total, coverage["complete"]) == (wanted, True)
                asked += 1

        for _ in range(2):
            rebuilt = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asking, rebuilt)
                async with anyio.create_task_group() as both:
                    both.start_soon(workspace.rebuild)
                    both.start_soon(workspace.rebuild)
                rebuilt.set()
            await workspace.wait_indexed()
        assert asked
        await right(workspace, root)


async def test_rebuilds_at_any_moment_of_indexing_mix_no_numbers_of_two_indexes(
    root: Path,
) -> None:
    rng = random.Random(5)
    some_files(root)
    async with opened(root) as workspace:
        for turn in range(12):
            put(
                root,
                {
                    f"d{turn % 3}/f{turn}.txt": b"other words %d\n" % turn,
                    f"late{turn}.txt": b"needle\n",
                },
            )
            await workspace.refresh()
            for _ in range(rng.randrange(40)):
                await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(rng.random() * 0.2):
                await workspace.wait_indexed()
            await workspace.rebuild()
            await right(workspace, root)
        await workspace.wait_indexed()
        assert not workspace.tree.pending
        await right(workspace, root)


async def coverage(workspace: Workspace) -> Coverage:
    """Return what an answer says it covered that was not to wait for fresh files."""
    started = time.perf_counter()
    return workspace.coverage(
        await workspace.search(NEEDLE), fresh=False, started=started
    )


async def test_before_the_first_listing_has_ended_no_answer_is_complete(
    root: Path,
) -> None:
    some_files(root)
    async with opened(root) as workspace:
        found = await coverage(workspace)
        if workspace.tree.listed_since is None:
            assert (found["complete"], found["detail"]) == (False, UNLISTED)
        await workspace.refresh()
        assert (await coverage(workspace))["complete"]
        early = workspace.coverage(
            await workspace.search(NEEDLE), fresh=False, started=0.0
        )
        assert not early[
            "complete"
        ]  # the listing ended while that question was under way


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "write",
                "delete",
                "move folder",
                "rules",
                "rebuild",
                "ask",
                "cancel",
                "cancel rebuild",
            ]
        ),
        st.integers(0, 8),
        st.integers(0, 8),
    ),
    min_size=10,
    max_size=25,
)


def _touch(root: Path, kind: str, one: int, two: int) -> None:
    """Make one change."""
    folder, file = root / f"d{one % 4}", root / f"d{one % 4}" / f"f{two}.txt"
    if kind == "write":
        put(root, {str(file.relative_to(root)): b"needle %d\n" % two})
    elif kind == "delete":
        file.unlink(missing_ok=True)
    elif (
        kind == "move folder"
        and folder.is_dir()
        and not (root / f"m{two % 4}").exists()
    ):
        folder.rename(root / f"m{two % 4}")
    elif kind == "rules":
        (root / ".gitignore").write_text(f"f{one}.txt\nm{two % 4}/\n")


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(STEPS)
async def test_whatever_happens_in_whatever_order_answers_equal_a_scan(
    steps: list[tuple[str, int, int]],
) -> None:
    with repository() as root:
        some_files(root)
        async with opened(root) as workspace:
            doing: dict[str, Callable[[int], Awaitable[object]]] = {
                "rebuild": lambda _: workspace.rebuild(),
                "ask": lambda _: right(workspace, root),
                "cancel": lambda number: cancelled_at(number + 1, workspace.refresh()),
                "cancel rebuild": lambda number: cancelled_at(
                    number + 1, workspace.rebuild()
                ),
            }
            for kind, one, two in steps:
                if kind in doing:
                    await doing[kind](one)
                else:
                    _touch(root, kind, one, two)
            await right(workspace, root)
            await workspace.wait_indexed()
            await right(workspace, root)
            assert await files_with(workspace, "nowhere_at_all") == set()


def found_by(wire: Any) -> int:
    answer = wire.call(
        "query", text="needle", mode="literal", limit=1000, max_tokens=1_000_000
    )
    assert answer["coverage"]["complete"]
    assert answer["coverage"]["fresh"]
    return len(answer["results"])


REBUILD = {"jsonrpc": "2.0", "id": 99, "method": "index_codebase"}


def test_a_rebuild_whose_client_hangs_up_or_cancels_or_runs_out_of_time_leaves_every_file(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({f"d{at % 9}/f{at}.txt": "needle\n" for at in range(120)})
    assert daemon.run("index", str(root)).returncode == 0
    asking = daemon.wire("unix", root)
    for turn in range(6):
        wire = daemon.wire("unix", root)
        params = {"path": str(root), "rebuild": True} | (
            {"deadline_ms": 1} if turn % 3 == 2 else {}
        )
        wire.send(REBUILD | {"params": params})
        if turn % 3 == 1:
            wire.send(
                {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}
            )
        if turn % 3:
            assert wire.receive()["id"] == 99
        wire.close()
        assert found_by(asking) == 120
        (root / "d0" / "f0.txt").write_text(f"needle {turn}\n")
        assert found_by(asking) == 120
    asking.close()


def identity(file: Path) -> int | None:
    with suppress(FileNotFoundError):
        return file.stat().st_ino
    return None


def test_a_daemon_killed_in_the_middle_of_a_rebuild_comes_back_with_every_file(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({f"d{at % 9}/f{at}.txt": "needle\n" for at in range(120)})
    cold_daemon.start()
    assert cold_daemon.run("index", str(root)).returncode == 0
    wire = cold_daemon.wire("unix", root)
    index = cold_daemon.index(root)
    before = identity(index)
    assert before is not None
    wire.send(REBUILD | {"params": {"path": str(root), "rebuild": True}})
    until = time.monotonic() + 20
    while identity(index) == before:
        assert time.monotonic() < until
    kill(cold_daemon.status()["pid"])
    wire.close()
    cold_daemon.start()
    wire = cold_daemon.wire("unix", root)
    assert found_by(wire) == 120
    wire.close()
