"""What a worker of the indexer prints: it is no event, and no worker holds the pipe of the events open."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from flashgrep.files.openat import RootFolder
from flashgrep.index.schema import StageBacklog
from flashgrep.indexer.child import IndexerChild
from flashgrep.indexer.job import IndexJob, ProjectJob
from flashgrep.indexer.project_work import ProjectWork
from tests.conftest import BOUND

REPOSITORY = Path(__file__).parent.parent.parent
NOISE = b"a library's warning\n"


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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_what_a_worker_prints_is_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    root = tmp_path / "tree"
    root.mkdir()
    stage = f"{__name__}:{run_noisy_stage.__name__}"
    job = IndexJob(
        tmp_path / "store/index.db", bytes(root), 1, functions={"symbols": stage}
    )
    project = ProjectJob(RootFolder(bytes(root)), 1 << 20, 0, 1)
    child = await IndexerChild.start(job)
    try:
        with anyio.fail_after(BOUND):
            events = [event async for event in child.finish(project, "symbols", "{}")]
        worker, indexer = events[0].left
        assert indexer == child.pid != worker
        descriptors = Path(f"/proc/{child.pid}/fd")
        assert (descriptors / "1").readlink() == (descriptors / "2").readlink()
    finally:
        await child.close()
