"""Measures many work trees of one repository in one store: scripts/bench_worktrees [TREE] [--trees N …] [--steps N].

TREE is copied and committed to a new repository. For each number of work trees: the time until the last one is ready
(`git worktree add` is timed separately), the store's size on disk, the memory of the daemon and its children, and the
time of a rare literal, against ripgrep and `git grep` in the same tree. Every work tree has one file that the others do
not have; an answer with another tree's file is a failure (status 1).

With --steps: this many random operations on several small work trees, with every answer compared with ripgrep's.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from flashgrep.base.config import Settings
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from scripts.benchmarks.private import (
    Client,
    Private,
    adopt,
    private_daemon,
    wait_until,
)
from scripts.benchmarks.targets import targets_for
from scripts.benchmarks.timing import program, repeated
from tests.support.worktrees import WorkTrees

MIB = 1 << 20
RG = Path(sys.executable).with_name("rg")
HERE = Path(__file__).parents[2]
SECOND = 2
REPORTED = 50
STAGES = {"listing", "indexing", "symbols", "chunks", "vectors"}


def main() -> int:
    """Measure or compare; return 1 if an answer has another work tree's file."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench_worktrees", description=__doc__
    )
    parser.add_argument(
        "tree",
        type=Path,
        nargs="?",
        default=HERE,
        help="tree to measure on; it is copied first",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=0,
        help="compare answers after this many operations instead",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 32),
        help="of the operations",
    )
    parser.add_argument(
        "--trees", type=int, nargs="+", default=[1, 3, 10], help="numbers of work trees"
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="folder for the copies (default: the system's temporary one)",
    )
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="fgtrees", dir=options.work))
    try:
        if options.steps:
            return anyio.run(compare, base, options.steps, options.seed)
        main_tree = make_repository(options.tree.resolve(), base / "tree0")
        with private_daemon(base / "state") as daemon:
            return measure(daemon, main_tree, sorted(options.trees))
    finally:
        shutil.rmtree(base, ignore_errors=True)


async def compare(base: Path, steps: int, seed: int) -> int:
    """Change work trees at random and compare every answer with ripgrep's; return 1 if one differs."""
    print(f"seed {seed}", flush=True)
    root = base / "main"
    git(base, "init", "-q", str(root))
    async with Catalogue(
        parts=BUILT_IN, state_dir=base / "state", settings=Settings()
    ) as projects:
        trees = WorkTrees(projects, root, base, random.Random(seed))  # noqa: S311 - a seed makes the case again
        trees.start()
        for step in range(1, steps + 1):
            trees.step()
            await trees.agree()
            if step % REPORTED == 0:
                print(f"{step} operations, no difference", flush=True)
    return 0


def make_repository(source: Path, target: Path) -> Path:
    """Copy a tree's files and commit them."""
    ignored = shutil.ignore_patterns(".git", ".flashgrep", ".venv", "__pycache__")
    shutil.copytree(source, target, symlinks=True, ignore=ignored)
    git(target, "init", "-q")
    git(target, "add", "-A")
    git(
        target,
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.org",
        "commit",
        "-qm",
        "all",
    )
    return target


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(
        ["git", "-C", folder, "-c", "gc.auto=0", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def measure(daemon: Private, first: Path, numbers: list[int]) -> int:
    """Print a row for each number of work trees."""
    rare, roots, wrong = targets_for(first, RG).rare, list[Path](), 0
    for number in range(1, max(numbers) + 1):
        root = first if number == 1 else first.with_name(f"tree{number}")
        started = time.perf_counter()
        if root != first:
            git(first, "worktree", "add", "-q", "--detach", str(root))
        (root / "own_file.py").write_text(f"def only_in_{number:03}():\n    pass\n")
        checkout, before = time.perf_counter() - started, daemon.cpu()
        adopt(daemon, root)
        client = daemon.client()
        exact = (
            wait_until(client, {"listing", "indexing"})
            and time.perf_counter() - started - checkout
        )
        found = wait_until(client, STAGES)
        ready = time.perf_counter() - started - checkout
        roots.append(root)
        if number in {SECOND, *numbers}:
            size = found["index_size_bytes"] / MIB
            print(
                f"{number:3} work trees: checkout {checkout:.2f} s, exact {exact:.2f} s and all {ready:.2f} s "
                f"({daemon.cpu() - before:.2f} s of processor); "
                f"store {size:.2f} MB, with its log {disk_use(daemon) / MIB:.1f} MB; "
                f"memory {daemon.resident() / MIB:.0f} MB; {found['shared_texts']} texts shared",
                flush=True,
            )
            ask(daemon, client, rare, root)
        client.close()
        wrong += not is_apart(daemon, roots)
    return int(wrong > 0)


def ask(daemon: Private, client: Client, rare: str, root: Path) -> None:
    """Print the time of a rare literal in a work tree."""
    ours = repeated(
        lambda: len(
            client.call("query", query=rare, mode="literal", limit=1000)["results"]
        ),
        daemon.cpu,
    )
    rg = program([RG, "--no-config", "-nF", rare], root)
    grep = program(["git", "grep", "-nF", rare], root)
    print(
        f"    {rare!r}: {ours.p50:.2f} ms p50, {ours.cpu:.2f} of processor ({ours.hits} hits); "
        f"rg {rg.p50:.0f} ms ({rg.hits}); git grep {grep.p50:.0f} ms ({grep.hits})",
        flush=True,
    )


def is_apart(daemon: Private, roots: list[Path]) -> bool:
    """Return whether the newest and the oldest work tree each show only their own file."""
    apart = True
    for number in {1, len(roots)}:
        adopt(daemon, roots[number - 1])
        client = daemon.client()
        hits = client.call("query", query="only_in_", mode="literal", limit=1000)[
            "results"
        ]
        own = [hit for hit in hits if f"only_in_{number:03}" in str(hit)]
        others = [
            hit for hit in hits if hit["file_path"] == "own_file.py" and hit not in own
        ]
        if len(own) != 1 or others:
            print(f"work tree {number} shows {hits}", flush=True)
            apart = False
        client.close()
    return apart


def disk_use(daemon: Private) -> int:
    """Return the size of all stores on disk."""
    return sum(
        file.stat().st_blocks * 512
        for file in Path(daemon.paths.cache).rglob("*")
        if file.is_file()
    )


if __name__ == "__main__":
    sys.exit(main())
