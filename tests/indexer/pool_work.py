"""Work for a pool of processes; a module of its own, since each process imports it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.index.schema import StageBacklog
from flashgrep.indexer.project_work import ProjectWork

SEMAPHORES = "/sem.mp-"
"""How the names of the standard library's begin."""
NOISE = b"a library's warning\n"


def list_semaphores(_number: int) -> tuple[int, list[str]]:
    """Return this process's number, and the semaphores with names that it has."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    return os.getpid(), [line for line in maps.splitlines() if SEMAPHORES in line]


def die(survivor: int) -> int:
    """End this process as a lack of memory does, unless it is the survivor."""
    if os.getpid() != survivor:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def fail(kind: str) -> None:
    """Fail as an embedder does, or as a bug does."""
    if kind == "ours":
        raise ProviderUnavailable("no answer")
    raise LookupError(kind)


def tell_and_wait() -> None:
    """Print this process's number, and work until killed."""
    os.write(1, b"%d\n" % os.getpid())
    signal.pause()


def print_noise(_number: int) -> int:
    """Print in a worker, as C code does, and return its number."""
    os.write(1, NOISE)
    print("a warning of Python", flush=True)  # noqa: T201 - what a library does
    return os.getpid()


def run_noisy_stage(work: ProjectWork, _embedding: str) -> Iterator[StageBacklog]:
    """Yield the number of a worker, and that of the indexer, in place of a backlog."""
    for pid in work.pool.map(print_noise, [(0,)], spread=True):
        yield StageBacklog(pid, print_noise(0))
    work.pool.stop()
