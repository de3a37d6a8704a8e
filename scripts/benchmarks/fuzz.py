"""Fuzzing for a given time: random patterns from real code, random trees, and faults at random moments."""

import argparse
import os
import random
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from hypothesis import seed
from hypothesis.errors import HypothesisException

from flashgrep.base.errors import FlashgrepError
from flashgrep.parts.hook.git_plan import Git
from scripts.benchmarks import rg_calls
from scripts.benchmarks.habits import make_shell
from scripts.benchmarks.private import Client, adopt, private_daemon, wait_until
from tests.faults import test_index, test_kill
from tests.hook import (
    test_drawn_lines,
    test_find_plan,
    test_git_plan,
    test_grep_plan,
)
from tests.search import test_truth
from tests.search.test_real_tree import (
    PACKAGES,
    STDLIB,
    copy_some,
    differences,
    draw,
    lines_of,
)
from tests.support.workspace import opened, repository

ROUND_SECONDS = 20.0
"""Time for queries on one tree; each round has its own seed."""
CALLS = 100
"""Calls of `fgrep rg` per round, which take about 20 s."""
_BODIES: dict[Any, Callable[..., Any]] = {}


def main() -> int:
    """Fuzz until the time is over; return 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument(
        "seconds",
        type=float,
        nargs="?",
        default=300.0,
        help="how long to go on (default: 300)",
    )
    parser.add_argument(
        "path",
        type=Path,
        nargs="?",
        help="code to take patterns from (default: Python's library)",
    )
    parser.add_argument(
        "--rg",
        type=int,
        default=0,
        metavar="CALLS",
        help="only compare this many calls of `fgrep rg`",
    )
    parser.add_argument(
        "--hook",
        type=int,
        default=0,
        metavar="CALLS",
        help="only compare this many calls of grep, find and git grep, as the hook plans them",
    )
    parser.add_argument(
        "--lines",
        type=int,
        default=0,
        help="only compare this many lines of shell, as the hook changes them",
    )
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # so that daemons are stopped and trees are removed
    until = time.monotonic() + options.seconds
    tried: Counter[str] = Counter()
    failed = 0
    if options.hook:
        return _hook_calls(random.SystemRandom().randrange(1 << 32), options.hook)
    if options.lines:
        return _hook_lines(random.SystemRandom().randrange(1 << 32), options.lines)
    if options.rg:
        failed = _ripgrep_calls(
            random.SystemRandom().randrange(1 << 32), options.rg, tried
        )
        print(f"tried {dict(tried)}, differences {failed}")
        return int(failed > 0)
    rounds: list[Callable[[int], int]] = [
        lambda number: _real_tree(number, options.path, tried, until),
        lambda number: _ripgrep_calls(number, CALLS, tried),
        lambda number: _guarded(_drawn_trees, number, tried),
        lambda number: _guarded(_flipped_bits, number, tried),
        lambda number: _guarded(_killed_indexers, number, tried),
    ]
    turn = 0
    while time.monotonic() < until:
        failed += rounds[turn % len(rounds)](random.SystemRandom().randrange(1 << 32))
        turn += 1
        print(f"tried {dict(tried)}, differences {failed}", flush=True)
    return int(failed > 0)


def _real_tree(
    number: int, path: Path | None, tried: Counter[str], until: float
) -> int:
    rng = _seeded(number)
    with repository() as root:
        _copy(rng, path, root)
        lines = lines_of(root, "*")
        return anyio.run(
            _ask, root, lines, rng, tried, min(until, time.monotonic() + ROUND_SECONDS)
        )


def _hook_calls(number: int, calls: int) -> int:
    """Compare drawn calls with the programs; the first difference raises AssertionError."""
    rng = _seeded(number)
    print(f"seed {number}")
    with tempfile.TemporaryDirectory(prefix="hook") as base:
        grep_tree = Path(base, "grep")
        git_tree = Path(base, "git")
        grep_tree.mkdir()
        git_tree.mkdir()
        git = Git(test_git_plan.GIT, base, "")
        with test_grep_plan.grep_project(grep_tree) as project:
            planned = test_grep_plan.compare_drawn(project, rng, calls // 3)
            planned += test_find_plan.compare_drawn(project, rng, calls // 3)
        with test_git_plan.git_project(git_tree) as project:
            planned += test_git_plan.compare_drawn(project, git, rng, calls // 3)
    print(f"{calls // 3 * 3} calls, {planned} planned, no difference", flush=True)
    return 0


def _hook_lines(number: int, lines: int) -> int:
    """Compare drawn lines of shell with what the hook makes of them; the first difference raises AssertionError."""
    print(f"seed {number}")
    with (
        tempfile.TemporaryDirectory(prefix="lines") as base,
        private_daemon(Path(base, "state")) as daemon,
    ):
        tree = Path(base, "tree")
        test_drawn_lines.make_lines_tree(tree)
        adopt(daemon, tree)
        client = Client(daemon.socket)
        wait_until(client, {"listing", "indexing"})
        client.close()
        shell = make_shell(tree, daemon.environ)
        rewritten = test_drawn_lines.compare_drawn(shell, _seeded(number), lines)
    print(f"{lines} lines, {rewritten} rewritten, no difference")
    return 0


def _ripgrep_calls(number: int, calls: int, tried: Counter[str]) -> int:
    print(f"calls of rg: seed {number}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fgcalls") as folder:
        return rg_calls.compare(_seeded(number), calls, Path(folder).resolve(), tried)


def _seeded(number: int) -> random.Random:
    return random.Random(number)  # noqa: S311 - a seed makes the case again


def _copy(rng: random.Random, path: Path | None, root: Path) -> None:
    if path is None:
        name, folders = rng.choice([("stdlib", STDLIB), ("purelib", PACKAGES)])
        copy_some(Path(sysconfig.get_path(name)), folders, root)
        return
    inside = sorted(
        each.relative_to(path)
        for each in path.rglob("*")
        if each.is_dir() and ".git" not in each.parts
    )
    some = rng.sample(inside, min(len(inside), 30)) or [Path()]
    copy_some(path, tuple(os.fspath(each) for each in some), root)


async def _ask(
    root: Path, lines: list[str], rng: random.Random, tried: Counter[str], until: float
) -> int:
    failed = 0
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        while time.monotonic() < until and lines:
            drawn = draw(rng, lines)
            tried["patterns of real code"] += 1
            try:
                found = await differences(workspace, root, drawn)
            except FlashgrepError as error:  # ripgrep accepts every generated pattern
                found = [f"{drawn}: {error}"]
            failed += len(found)
            for each in found:
                kept = shutil.copytree(
                    root,
                    root.with_name(f"{root.name}-kept"),
                    symlinks=True,
                    dirs_exist_ok=True,
                )
                print(f"DIFFERENCE in {kept}: {each}", flush=True)
    return failed


def _guarded(test: Callable[[int], None], number: int, tried: Counter[str]) -> int:
    name = test.__name__.strip("_").replace("_", " ")
    tried[name] += 1
    try:
        test(number)
    except (AssertionError, OSError, ExceptionGroup, HypothesisException) as error:
        print(f"DIFFERENCE in {name}, seed {number}:", flush=True)
        traceback.print_exception(error)
        return 1
    return 0


def _drawn_trees(number: int) -> None:
    test: Any = (
        test_truth.test_hits_equal_ripgreps_before_and_after_indexing_and_after_changes
    )  # hypothesis types no handle
    body = _BODIES.setdefault(
        test, test.hypothesis.inner_test
    )  # as pytest's plugins run coroutines
    test.hypothesis.inner_test = lambda **drawn: anyio.run(partial(body, **drawn))
    seed(number)(test)()


def _flipped_bits(number: int) -> None:
    with repository() as root:
        anyio.run(
            test_index.test_bits_flipped_at_drawn_offsets_never_cost_a_hit, number, root
        )


def _killed_indexers(number: int) -> None:
    with repository() as root:
        anyio.run(
            test_kill.test_an_indexer_killed_at_random_moments_of_a_changing_tree_costs_no_hit,
            number,
            root,
        )


if __name__ == "__main__":
    sys.exit(main())
