"""Measures wall and processor time of functions and programs."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

FEWEST = 5
"""Fewest calls for a median."""


@dataclass(frozen=True, slots=True)
class Times:
    """Wall time and processor time per call, in ms."""

    p50: float
    p99: float
    cpu: float
    runs: int
    hits: int = -1


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def repeated(
    call: Callable[[], int],
    cpu: Callable[[], float],
    *,
    seconds: float = 3.0,
    most: int = 300,
) -> Times:
    """Call for ``seconds``, FEWEST to ``most`` times; ``cpu`` reads processor seconds."""
    call()
    walls: list[float] = []
    before, until, hits = cpu(), time.perf_counter() + seconds, 0
    while len(walls) < most and (len(walls) < FEWEST or time.perf_counter() < until):
        started = time.perf_counter()
        hits = call()
        walls.append((time.perf_counter() - started) * 1000)
    spent = (cpu() - before) * 1000 / len(walls)
    return Times(
        statistics.median(walls), percentile(walls, 0.99), spent, len(walls), hits
    )


def children_cpu() -> float:
    """Return the processor seconds of this process's ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def program(
    command: Sequence[str | Path],
    folder: Path,
    *,
    most: int = 7,
    env: dict[str, str] | None = None,
) -> Times:
    """Run a program several times; ``hits`` are the lines it prints."""

    def once() -> int:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, check=False
        )
        return done.stdout.count(b"\n")

    return repeated(once, children_cpu, seconds=4.0, most=most)
