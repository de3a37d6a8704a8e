"""What the interpreter keeps of a load's small values, and does not use, goes back to the system."""

import gc
import json
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from flashgrep.base.config import Settings
from flashgrep.base.registry import Call, Session
from flashgrep.base.unused_pools import (
    BLOCK,
    BLOCKS,
    HEADER,
    POOL,
    UnusedPools,
    find_pools,
)
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.project import catalogue as module
from flashgrep.project.catalogue import Catalogue
from scripts.benchmarks.private import PAGE
from tests.conftest import BOUND

LOAD = """
import gc, json, os, sys
from flashgrep.base.unused_pools import UnusedPools

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

def load():
    values = [(number, str(number), [number]) for number in range(200_000)]
    return values[::4001]  # in nearly each arena some stay

unused = UnusedPools()
first = resident()
left = load()
gc.collect()
"""
TWICE = """
before = resident()
while unused.take():
    pass
rested = resident()
again = load()
assert [number for number, _, _ in left + again] == [*range(0, 200_000, 4001)] * 2
assert [text for _, text, _ in left + again] == [*map(str, range(0, 200_000, 4001))] * 2
worked = resident()
while unused.give_back():
    pass
assert not unused.give_back()
del again
gc.collect()
while unused.take():
    pass
print(json.dumps([first, before, rested, worked, resident()]))
"""
OTHER = """
print(json.dumps([unused.take(), unused.give_back()]))
"""


def run(program: str, allocator: str = "pymalloc") -> list[int]:
    """Return what a program prints as JSON, run with an allocator of small values."""
    output = subprocess.run(
        [sys.executable, "-c", LOAD + program],
        check=True,
        capture_output=True,
        timeout=BOUND,
        env={"PYTHONMALLOC": allocator},
    ).stdout
    figures: list[int] = json.loads(output)
    return figures


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
def test_most_of_a_load_goes_back_and_does_so_again_after_another() -> None:
    first, before, rested, worked, at_last = run(TWICE)
    load = before - first
    assert load * PAGE > 20 << 20
    assert rested - first < load / 2
    # The second load takes what was given back, and not as much again.
    assert worked - first < load * 1.5
    assert at_last - first < load / 2 + (4 << 20) / PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
@pytest.mark.parametrize("allocator", ["malloc", "debug", "malloc_debug"])
def test_nothing_is_taken_from_another_allocator(allocator: str) -> None:
    assert run(OTHER, allocator) == [False, False]


def lay(first: int, count: int, distance: int = BLOCK) -> list[int]:
    """Return the addresses of blocks."""
    return [first + number * distance for number in range(count)]


@pytest.mark.parametrize(
    ("blocks", "pools"),
    [
        (lay(5 * POOL + HEADER, BLOCKS), [5 * POOL]),
        (lay(5 * POOL + HEADER, BLOCKS)[::-1], [5 * POOL]),
        (
            lay(7 * POOL + HEADER, BLOCKS) + lay(2 * POOL + HEADER, BLOCKS),
            [2 * POOL, 7 * POOL],
        ),
        (lay(5 * POOL + HEADER, BLOCKS - 1), []),
        (lay(5 * POOL + HEADER + BLOCK, BLOCKS - 1), []),
        (lay(5 * POOL, BLOCKS), []),
        (lay(5 * POOL, BLOCKS + 1), []),
        (lay(5 * POOL + HEADER, BLOCKS, BLOCK + 16), []),
        ([], []),
    ],
)
def test_a_pool_counts_only_if_all_its_blocks_were_taken(
    blocks: list[int], pools: list[int]
) -> None:
    assert find_pools(array("Q", blocks)) == pools


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the steps of a catalogue, as they are taken."""
    noted: list[str] = []

    class Noted(UnusedPools):
        def take(self) -> bool:
            noted.append("take")
            return super().take()

        def give_back(self) -> bool:
            noted.append("give back")
            return super().give_back()

    monkeypatch.setattr(module, "UnusedPools", Noted)
    return noted


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Open a project, and yield what asks it."""
    root = folder / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    async with Catalogue(
        parts=BUILT_IN, state_dir=folder / "state", settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        method = REGISTRY.get("get_symbol")
        call = Call(catalogue, Session(projects=(str(root),)))
        yield partial(method.call, call, {"symbol_name": "weave"})


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
async def test_pools_are_taken_after_a_minute_without_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    async with asking(tmp_path) as ask:
        for _ in range(2):
            steps.clear()
            await ask()
            with anyio.fail_after(BOUND):
                while "take" not in steps:
                    await checkpoint()
            assert "give back" not in steps


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
async def test_pools_are_taken_and_given_back_while_questions_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    monkeypatch.setattr(module, "COLLECT_SECONDS", 0.02)
    async with asking(tmp_path) as ask:
        with anyio.fail_after(BOUND):
            while "take" not in steps or steps[-1] != "give back":
                await ask()


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
async def test_pools_are_left_to_the_minute_of_rest_where_one_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[str]
) -> None:
    monkeypatch.setattr(module, "COLLECT_SECONDS", 0.02)
    monkeypatch.setattr(module, "RECOVERY_SECONDS", 0.0)
    monkeypatch.setattr(gc, "collect", lambda: steps.append("collect"))
    monkeypatch.setattr(module, "release_memory", lambda: steps.append("release"))
    async with asking(tmp_path) as ask:
        with anyio.fail_after(BOUND):
            while "collect" not in steps or steps[-1] != "release":
                await ask()
                # What was done during the question was not done at rest.
                steps.clear()
                with anyio.move_on_after(1):
                    while "collect" not in steps or steps[-1] != "release":
                        await checkpoint()
        assert "take" not in steps
