"""What a worker of the indexer prints: it is no event, and no worker holds the pipe of the events open."""

import sys
from pathlib import Path

import anyio
import pytest

from flashgrep.files.openat import RootFolder
from flashgrep.indexer.child import IndexerChild
from flashgrep.indexer.job import IndexJob, ProjectJob
from tests.conftest import BOUND
from tests.indexer import pool_work

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_what_a_worker_prints_is_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    root = tmp_path / "tree"
    root.mkdir()
    stage = f"{pool_work.__name__}:{pool_work.run_noisy_stage.__name__}"
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
