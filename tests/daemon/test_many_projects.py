"""Many projects of one user: each answers right, and what they take of the machine is bounded."""

import gc
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from flashgrep.base.config import Settings
from flashgrep.base.registry import Call, Session
from flashgrep.daemon import lifecycle
from flashgrep.indexer.turns import MOST_AT_WORK, MOST_IDLE, IndexerTurns
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.project.catalogue import Catalogue
from flashgrep.project.project import MOST_OPEN
from tests.conftest import BOUND, DaemonAtHand
from tests.faults.harness import kill

PROJECTS = MOST_OPEN + 16
RESTARTED = 8
LOOK_SECONDS = 0.02


def make_projects(folder: Path, count: int) -> list[Path]:
    roots = []
    for number in range(count):
        root = folder / f"project{number}"
        (root / "sub").mkdir(parents=True)
        (root / "a.py").write_text(f"def weave_{number}():\n    return 1\n")
        (root / "sub" / "b.txt").write_text(f"loom {number}\n")
        roots.append(root)
    return roots


def list_descriptors(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found.append(str(entry.readlink()))
    return found


def count_children(pid: int) -> int:
    children = 0
    with suppress(OSError):  # a thread that has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += len((task / "children").read_text(encoding="ascii").split())
    return children


@contextmanager
def watching_children(pid: int) -> Iterator[list[int]]:
    """Yield a list of how many children a process has had, while the block runs."""
    counts = [0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(LOOK_SECONDS):
            counts.append(count_children(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_one_client_opens_more_projects_than_may_be_open_and_each_answers_right(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    pid = lifecycle.find_holder(daemon.paths)
    assert pid is not None
    roots = make_projects(tmp_path, PROJECTS)
    with (
        watching_children(pid) as children,
        closing(daemon.wire("unix")) as control,
    ):
        for number, root in enumerate(roots):
            answer = control.call(
                "query", query=f"def weave_{number}(", mode="literal", project=str(root)
            )
            assert answer["total"] == 1
            assert answer["coverage"]["fresh"]
        descriptors = list_descriptors(pid)
        queues = [one for one in descriptors if "inotify" in one]
        assert len(queues) <= MOST_OPEN + 1
        # Closed meanwhile, and changed.
        (roots[1] / "a.py").write_text("def unweave():\n    return 1\n")
        for name, total in (("weave_1(", 0), ("unweave(", 1)):
            answer = control.call(
                "query", query=f"def {name}", mode="literal", project=str(roots[1])
            )
            assert answer["total"] == total
    # One of them may be ending while another starts.
    assert max(children) <= 2 * (MOST_AT_WORK + MOST_IDLE)


@pytest.mark.slow
def test_a_daemon_started_again_opens_no_project_before_it_is_asked_for(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    roots = make_projects(tmp_path, RESTARTED)

    def ask(number: int, text: str) -> int:
        with closing(cold_daemon.wire("unix")) as control:
            answer = control.call(
                "query", query=text, mode="literal", project=str(roots[number])
            )
        assert answer["coverage"]["fresh"]
        return int(answer["total"])

    cold_daemon.start()
    assert [ask(at, f"def weave_{at}(") for at in range(RESTARTED)] == [1] * RESTARTED
    kill(lifecycle.find_holder(cold_daemon.paths))
    (roots[0] / "a.py").write_text("def unweave():\n    return 1\n")
    cold_daemon.start()
    pid = lifecycle.find_holder(cold_daemon.paths)
    assert pid is not None
    assert sum("inotify" in name for name in list_descriptors(pid)) <= 1
    assert count_children(pid) == 0
    assert ask(0, "def weave_0(") == 0
    assert ask(0, "def unweave(") == 1
    for number in range(1, RESTARTED):
        assert ask(number, f"def weave_{number}(") == 1


async def test_a_project_that_a_call_or_a_subscriber_has_is_not_closed_for_another(
    tmp_path: Path,
) -> None:
    called, subscribed, unused, last = make_projects(tmp_path, 4)
    async with Catalogue(
        parts=BUILT_IN,
        state_dir=tmp_path / "state",
        settings=Settings(),
        indexes=False,
        most_open=2,
    ) as catalogue:
        await catalogue.open(str(called))
        call = Call(catalogue, Session(projects=(str(called),)))
        in_use = await catalogue.workspace(call, None)
        followed = await catalogue.open(str(subscribed))
        followed.subscribers = 1
        closed = await catalogue.open(str(unused))
        assert not in_use.is_closed
        assert not followed.is_closed
        await catalogue.open(str(last))
        assert closed.is_closed
        assert not in_use.is_closed
        assert not followed.is_closed
        del call
        await catalogue.open(str(unused))
        assert in_use.is_closed


async def test_projects_opened_at_once_make_room_for_each_other(tmp_path: Path) -> None:
    roots = make_projects(tmp_path, 8)
    async with Catalogue(
        parts=BUILT_IN,
        state_dir=tmp_path / "state",
        settings=Settings(),
        indexes=False,
        most_open=2,
    ) as catalogue:
        for root in roots[:2]:
            await catalogue.open(str(root))
        async with anyio.create_task_group() as tasks:
            for root in roots[2:4]:
                tasks.start_soon(catalogue.open, str(root))
        assert len(catalogue.list_open()) == 2


async def test_a_question_to_all_projects_reaches_those_that_are_closed_for_others(
    tmp_path: Path,
) -> None:
    roots = make_projects(tmp_path, 7)
    async with Catalogue(
        parts=BUILT_IN,
        state_dir=tmp_path / "state",
        settings=Settings(),
        indexes=False,
        most_open=2,
    ) as catalogue:
        for root in roots:
            await catalogue.open(str(root))
        assert len(catalogue.list_open()) == 2
        call = Call(catalogue, Session())
        answer = await REGISTRY.get("query").call(
            call, {"query": "loom", "mode": "literal", "projects": "*"}
        )
        assert answer["total"] == 7
        gc.collect()
        roots_open = {workspace.path for workspace in catalogue.list_open()}
        await catalogue.open(
            str(next(root for root in roots if root not in roots_open))
        )
        assert len(catalogue.list_open()) == 2


class Owner:
    """Has an indexer."""

    def __init__(self) -> None:
        self.ended = False

    async def end_idle(self) -> None:
        self.ended = True


async def test_few_indexers_work_at_once_and_those_idle_for_longest_end() -> None:
    turns = IndexerTurns(most=2, most_idle=1)
    owners = [Owner() for _ in range(4)]
    at_work = 0
    most_at_work = 0
    let_go = anyio.Event()

    async def work(owner: Owner) -> None:
        nonlocal at_work, most_at_work
        async with turns.take(owner):
            at_work += 1
            most_at_work = max(most_at_work, at_work)
            await let_go.wait()
            at_work -= 1

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for owner in owners:
                tasks.start_soon(work, owner)
            await anyio.wait_all_tasks_blocked()
            assert turns.are_taken
            assert at_work == 2
            let_go.set()
    assert most_at_work == 2
    assert not turns.are_taken
    assert sum(owner.ended for owner in owners) == 3


async def test_one_that_is_cancelled_while_it_waits_or_works_leaves_its_turn_to_others() -> (
    None
):
    turns = IndexerTurns(most=1)

    async def work(scope: anyio.CancelScope) -> None:
        with scope:
            async with turns.take(Owner()):
                await anyio.sleep_forever()

    scopes = [anyio.CancelScope(), anyio.CancelScope()]
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(work, scope)
                await anyio.wait_all_tasks_blocked()
            for scope in reversed(scopes):
                scope.cancel()
        async with turns.take(Owner()):
            assert turns.are_taken
