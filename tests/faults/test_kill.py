"""Indexers, their workers and whole daemons killed at random moments of a changing tree: no answer is ever wrong."""

import os
import random
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from flashgrep.base.paths import project_socket
from flashgrep.indexer.progress import WITH_ALL_GRAMS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.faults.harness import (
    PATTERNS,
    agree,
    changing,
    fill,
    indexed,
    integrity,
    kill,
    truth,
)
from tests.support.workspace import BOUND, index_of, opened, put

SEEDS = (1, 2)


def descendants(pid: int) -> set[int]:
    found = set()
    with suppress(OSError):  # it ends meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found |= {int(child)} | descendants(int(child))
    return found


async def catch(workspace: Workspace, root: Path) -> tuple[int, set[int]]:
    """Return an indexer at work, and its workers; there is more to do where all was done before we looked."""
    given = 0
    with anyio.fail_after(BOUND):
        while True:
            if (
                workspace.progress.stage in WITH_ALL_GRAMS
                and not workspace.tree.pending
            ):
                given += 1
                put(
                    root,
                    {
                        f"big{given}.{at}.txt": os.urandom(600_000).hex().encode()
                        + b" needle\n"
                        for at in range(8)
                    },
                )
                await workspace.refresh()
            await checkpoint()  # the scheduler starts the indexer meanwhile
            pid = workspace.facts()["indexer_pid"]
            if pid and (workers := descendants(pid)):
                return pid, workers


def wait_gone(pids: set[int]) -> set[int]:
    """Return those that still run when the bound is reached."""
    until = time.monotonic() + 10
    left = pids
    while left and time.monotonic() < until:
        left = {pid for pid in left if alive(pid)}
    return left


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state != b"Z"


async def some_questions(workspace: Workspace, rng: random.Random) -> None:
    """Ask a random number of questions: the clock by which the moments are random. None may fail."""
    for _ in range(rng.randrange(1, 25)):
        mode, text = rng.choice(PATTERNS)
        pattern = Pattern(
            texts=(text,),
            mode="literal" if mode == "literal" else "regex",
            case="sensitive",
        )
        await workspace.refresh()
        assert (
            await workspace.search(Question(pattern=pattern, limit=10_000))
        ).complete


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_indexer_killed_at_random_moments_of_a_changing_tree_costs_no_hit(
    seed: int, root: Path
) -> None:
    rng = random.Random(seed)
    fill(root, rng, 300)
    async with opened(root) as workspace:
        with changing(root, seed):
            for _ in range(6):
                await some_questions(workspace, rng)
                kill(workspace.facts()["indexer_pid"])
        await agree(workspace, root)
        await indexed(workspace)
        await agree(workspace, root)
    assert integrity(index_of(root)) == "ok"


async def test_the_workers_of_a_killed_indexer_end_with_it(root: Path) -> None:
    async with opened(root) as workspace:
        pid, workers = await catch(workspace, root)
        kill(pid)
        assert not wait_gone(workers)
        await indexed(workspace)


async def test_one_failure_that_the_next_attempt_mends_is_not_reported(
    root: Path,
) -> None:
    async with opened(root) as workspace:
        pid, _ = await catch(workspace, root)
        kill(pid)
        with anyio.fail_after(BOUND):
            await workspace.wait_indexed()
        assert workspace.progress.stage != "failed"
        assert not workspace.tree.pending


async def test_a_worker_of_the_indexer_that_is_killed_is_done_without(
    root: Path,
) -> None:
    async with opened(root) as workspace:
        _, workers = await catch(workspace, root)
        kill(max(workers))
        await indexed(workspace)
        await agree(workspace, root)


def hits(wire: Wire, mode: str, text: str) -> set[tuple[bytes, int]]:
    answer = wire.call(
        "query",
        text=text,
        mode=mode,
        case="sensitive",
        limit=10_000,
        max_tokens=1_000_000,
    )
    assert answer["coverage"]["complete"]
    assert answer["coverage"]["fresh"]
    return {
        (os.fsencode(hit["file_path"]), hit["start_line"]) for hit in answer["results"]
    }


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_daemon_killed_while_the_tree_changes_comes_back_right(
    seed: int, cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root, rng = project(), random.Random(seed)
    fill(root, rng, 300)
    cold_daemon.start()
    cold_daemon.add(root)
    for turn in range(2):
        with changing(root, seed + turn):
            wire = cold_daemon.wire("unix", root)
            for _ in range(rng.randrange(1, 40)):
                wire.call("query", text=rng.choice(PATTERNS)[1], limit=100)
            left = descendants(cold_daemon.status()["pid"])
            kill(cold_daemon.status()["pid"])
            wire.close()
            cold_daemon.start()
        assert not wait_gone(left)
        wire = cold_daemon.wire("unix", root)
        for (mode, text), wanted in truth(root).items():
            assert hits(wire, mode, text) == wanted, (mode, text)
        wire.close()
    assert cold_daemon.run("index", str(root)).returncode == 0
    wire = cold_daemon.wire("unix", root)
    for (mode, text), wanted in truth(root).items():
        assert hits(wire, mode, text) == wanted, (mode, text)
    wire.close()
    cold_daemon.stop()
    assert integrity(cold_daemon.index(root)) == "ok"
    assert Path(project_socket(str(root))).parent.is_dir()
