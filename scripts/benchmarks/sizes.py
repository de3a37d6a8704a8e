"""Measures ``fgrep rg`` against ripgrep on parts of a tree, before, during and after indexing.

In turns, and by processor time: the command's with its children's, and the daemon's. What the command takes to start is
measured in the same turns, by a search of no file, and left out of the comparison.
"""

import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.changes import GRAM_STAGES
from scripts.benchmarks.peers import copy_files, list_files
from scripts.benchmarks.private import (
    FGREP,
    Client,
    Private,
    adopt,
    private_daemon,
    wait_until,
)
from scripts.benchmarks.rows import Bar, Row
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import Times, children_cpu

SIZES = (50, 500, 5_000, 20_000)
"""Files of the parts; the whole tree is measured, too."""
MOST_RUNS, LEAST_RUNS = 9, 3
FILES_RUN = 100_000
"""Files that all runs of a question search together, within these bounds."""
MOST_TIMES = 1.05
"""Of ripgrep's processor time, the start apart."""
LEAST_MS = 3.0
"""What is less differs as much between two runs of ripgrep."""
HELD_AT = 0.3
"""The share of files indexed at which the indexer is held for the questions, where it is not done before."""
SMALL = 5_000
"""Files of a tree whose indexer is held at its beginning: its first transaction is its last."""
LOOK_SECONDS = 0.005
INDEXER = b"flashgrep.indexer"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a tree, and how often each question is asked of it."""

    tree: Path
    files: int
    rg: Path
    targets: Targets

    @property
    def runs(self) -> int:
        """Runs of a question, by each command."""
        return min(max(FILES_RUN // self.files, LEAST_RUNS), MOST_RUNS)

    def compare(
        self, state: str, environ: Mapping[str, str], daemon: int | None
    ) -> Iterator[Row]:
        """Yield the rows of a state; ``daemon``: the process id of the one that is asked."""
        start: list[str | Path] = [FGREP, "rg", "-F", self.targets.miss, os.devnull]
        for question, words in _questions(self.targets).items():
            commands: dict[str, list[str | Path]] = {
                "rg": [self.rg, "--no-config", "-n", *words],
                "ours": [FGREP, "rg", "-n", *words],
                "start": start,
            }
            times: dict[str, list[Times]] = {name: [] for name in commands}
            for _ in range(self.runs):
                for name, command in commands.items():
                    times[name].append(_run(command, self.tree, environ, daemon))
            starting = _choose_middle(times["start"]).cpu
            yield Row(
                f"{self.files} files, {state}: {question}",
                _choose_middle(times["ours"]),
                _choose_middle(times["rg"]),
                note=f"start {starting:.0f} ms",
                bars=[make_bar(starting)],
            )


def measure(base: Path, root: Path, rg: Path, targets: Targets) -> Iterator[Row]:
    """Yield the rows of all parts and states; ``base``: the folder for copies."""
    files = list_files(root, rg)
    counts = [size for size in SIZES if size < len(files)]
    for count in [*counts, len(files)]:
        chosen = [files[at * len(files) // count] for at in range(count)]
        part = Part(base / f"{count}" / "tree", count, rg, targets)
        copy_files(root, part.tree, chosen)
        # No daemon runs in this state: the first question to one starts the indexing.
        environ = {**os.environ, "FLASHGREP_STATE_DIR": str(base / "none")}
        yield from part.compare("before", environ, None)
        with private_daemon(base / f"{count}" / "state") as daemon:
            yield from _index(daemon, part)


def _index(daemon: Private, part: Part) -> Iterator[Row]:
    """Yield the rows of the states in which a daemon has the tree."""
    adopt(daemon, part.tree)
    client = daemon.client()
    try:
        if part.files > SMALL:
            _wait_for_share(client, part.files)
        _signal_indexer(daemon, signal.SIGSTOP)
        client.call("query", text=part.targets.miss, mode="literal")
        if client.call("stats")["stage"] in GRAM_STAGES:
            yield from part.compare("during", daemon.environ, daemon.pid)
        _signal_indexer(daemon, signal.SIGCONT)
        wait_until(client, GRAM_STAGES)
        _signal_indexer(daemon, signal.SIGSTOP)
        yield from part.compare("after", daemon.environ, daemon.pid)
    finally:
        client.close()
        _signal_indexer(daemon, signal.SIGCONT)


def _wait_for_share(client: Client, count: int) -> None:
    """Wait until enough of so many files are indexed, or all."""
    stats = client.call("stats")
    while stats["stage"] == "listing" or stats["files_pending"] > (1 - HELD_AT) * count:
        time.sleep(LOOK_SECONDS)
        stats = client.call("stats")


def _signal_indexer(daemon: Private, number: signal.Signals) -> None:
    """Hold the indexer, for which its processes then wait, or have it go on: its time is not the questions'."""
    for pid in daemon.processes():
        with suppress(OSError):  # it has ended
            if INDEXER in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, number)


def _questions(targets: Targets) -> dict[str, list[str]]:
    """Return ripgrep's words for each row."""
    return {
        "rare literal": ["-F", targets.rare],
        "common literal": ["-F", targets.many],
        "whole word": ["-w", targets.word],
        "wide regex": ["-e", targets.wide],
        "no gram": ["-e", targets.sparse_scan],
        "insensitive": ["-i", "-F", targets.insensitive],
    }


def _run(
    command: Sequence[str | Path],
    folder: Path,
    environ: Mapping[str, str],
    daemon: int | None,
) -> Times:
    """Run a command once."""
    before = children_cpu() + _count_seconds(daemon)
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    wall = (time.perf_counter() - started) * 1000
    spent = children_cpu() + _count_seconds(daemon) - before
    return Times(wall, wall, spent * 1000, 1, done.stdout.count(b"\n"))


def _count_seconds(pid: int | None) -> float:
    """Return the processor seconds of a process's threads, to the nanosecond: those of ``stat`` come in hundredths."""
    if pid is None:
        return 0.0
    spent = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            spent += int((task / "schedstat").read_bytes().split()[0])
    return spent / 1e9


def _choose_middle(times: Sequence[Times]) -> Times:
    """Return the medians."""
    walls = [run.p50 for run in times]
    return Times(
        statistics.median(walls),
        max(walls),
        statistics.median(run.cpu for run in times),
        len(times),
        times[0].hits,
    )


def make_bar(start: float) -> Bar:
    """Return the bar of a question; ``start``: what our command takes where nothing is searched, in ms."""

    def holds(row: Row) -> bool:
        if row.ours is None or row.rg is None:
            return False
        return row.ours.cpu - start <= MOST_TIMES * row.rg.cpu + LEAST_MS

    return Bar(f"<= {MOST_TIMES:g}x rg's processor time, start apart", holds)
