"""A mutation test by samples: which small faults in the central code go unnoticed by the tests.

The mutations are mutmut's, but not its runner: that enables a fault only in the test process, not in processes that
tests start. Here each fault is written into a copy of the checkout.

Mutations of prose (strings with a space) are skipped: messages are for people; code uses error codes. The exit status
is 1 if more than 15 % of a target's mutants survive.
"""

import argparse
import difflib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal

import libcst
from mutmut.mutation.file_mutation import Mutation, create_mutations

ROOT: Final = Path(__file__).resolve().parents[2]
MOST_SURVIVORS: Final = 0.15
SLOWER: Final = 5
"""A mutant counts as noticed if it makes the tests this many times slower."""

Outcome = Literal["killed", "timeout", "survived"]


@dataclass(frozen=True, slots=True)
class Target:
    """The modules to mutate, and the tests that should notice, the fastest first; both as path patterns."""

    name: str
    modules: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one fault."""

    module: str
    code: str
    diff: str


TARGETS: Final = (
    Target("pattern", "flashgrep/pattern/*.py", ("tests/pattern/test_*.py",)),
    Target("rpc", "flashgrep/rpc/dispatch.py", ("tests/rpc/test_dispatch.py",)),
    Target(
        "edit",
        "flashgrep/parts/edit/write.py",
        ("tests/edit/test_write_results.py", "tests/edit/test_writing.py"),
    ),
)


def main() -> int:
    """Check the requested targets, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/mutate", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="; ".join(found.name for found in TARGETS),
    )
    parser.add_argument(
        "--sample", type=int, default=60, help="number of faults to try per target"
    )
    parser.add_argument("--seed", type=int, default=8, help="seed of the sample")
    parser.add_argument(
        "--workers", type=int, default=2, help="number of faults tried at a time"
    )
    wanted = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    if unknown := set(wanted.targets) - known.keys():
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    chosen = [known[name] for name in wanted.targets or known]
    return int(not all([_passes(target, wanted) for target in chosen]))  # noqa: C419 - all are run, even after a failure


def _passes(target: Target, wanted: argparse.Namespace) -> bool:
    faults = list(_faults(target))
    drawn = random.Random(wanted.seed).sample(faults, min(wanted.sample, len(faults)))  # noqa: S311 - to be repeatable
    mutants = [_mutant(*fault) for fault in drawn]
    with tempfile.TemporaryDirectory(prefix="fgmut", dir="/tmp") as folder:
        outcomes = _tried(target, mutants, Path(folder), wanted.workers)
    counts = {said: outcomes.count(said) for said in ("killed", "timeout", "survived")}
    share = counts["survived"] / max(1, len(mutants))
    told = ", ".join(f"{count} {said}" for said, count in counts.items())
    print(
        f"{target.name}: {len(mutants)} of {len(faults)} faults tried: {told}: {share:.0%} pass unnoticed",
        flush=True,
    )
    for mutant, outcome in zip(mutants, outcomes, strict=True):
        if outcome == "survived":
            print(mutant.diff)
    return share <= MOST_SURVIVORS


def _faults(target: Target) -> Iterator[tuple[str, libcst.Module, Mutation]]:
    for path in sorted(ROOT.glob(target.modules)):
        module = str(path.relative_to(ROOT))
        tree, mutations, _, _ = create_mutations(
            module, path.read_text(encoding="utf-8")
        )
        for mutation in mutations:
            if mutation.contained_by_top_level_function is not None and not _is_prose(
                mutation
            ):
                yield module, tree, mutation


def _mutant(module: str, tree: libcst.Module, mutation: Mutation) -> Mutant:
    changed = tree.deep_replace(mutation.original_node, mutation.mutated_node)
    assert isinstance(changed, libcst.Module)  # noqa: S101 - a node of it was replaced, not itself
    return Mutant(module, changed.code, _diff(module, tree.code, changed.code))


def _is_prose(mutation: Mutation) -> bool:
    node = mutation.original_node
    return isinstance(node, libcst.SimpleString) and " " in node.value


def _diff(module: str, before: str, after: str) -> str:
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    )[2:]
    at = re.findall(r"\d+", lines[0])[0]
    return "\n".join(
        [
            f"  {module}:{at}",
            *(f"    {line}" for line in lines if not line.startswith("@@")),
        ]
    )


def _tried(
    target: Target, mutants: Sequence[Mutant], folder: Path, workers: int
) -> list[Outcome]:
    """Return the outcome of each mutant; several run at a time, each in its own copy of the checkout."""
    copies: SimpleQueue[Path] = SimpleQueue()
    for at in range(workers):
        copies.put(_copy(folder / str(at)))
    tests = [
        str(path.relative_to(ROOT))
        for pattern in target.tests
        for path in sorted(ROOT.glob(pattern))
    ]
    seconds = _seconds_alone(copies, tests) * SLOWER + 10

    def attempt(mutant: Mutant) -> Outcome:
        copy = copies.get()
        module = copy / mutant.module
        sound = module.read_bytes()
        try:
            module.write_text(mutant.code, encoding="utf-8")
            return _outcome(_status(copy, tests, seconds))
        finally:
            module.write_bytes(sound)
            copies.put(copy)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(attempt, mutants))


def _copy(place: Path) -> Path:
    for part in ("flashgrep", "tests"):
        shutil.copytree(
            ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def _seconds_alone(copies: "SimpleQueue[Path]", tests: Sequence[str]) -> float:
    copy = copies.get()
    begun = time.monotonic()
    if _status(copy, tests, 600.0) != 0:
        sys.exit("error: the tests fail without any fault")
    copies.put(copy)
    return time.monotonic() - begun


def _outcome(status: int | None) -> Outcome:
    if status is None:
        return "timeout"
    return "killed" if status else "survived"


def _status(copy: Path, tests: Sequence[str], seconds: float) -> int | None:
    """Run tests until one fails; return pytest's status, or None on timeout."""
    plain = (
        "-x",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "--hypothesis-seed=0",
    )
    # Sources change within a second and keep their length, so stale byte code would be
    # taken for current.
    environ = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *plain, *tests],
        cwd=copy,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(
                ProcessLookupError
            ):  # processes that the tests left behind are in the group
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
