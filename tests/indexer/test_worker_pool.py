"""The processes of an indexer: started when needed, replaced when they die, and gone without a trace."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.indexer.worker_pool import WorkerPool
from tests.conftest import BOUND
from tests.indexer.pool_work import die, fail, list_semaphores


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_has_a_semaphore_that_outlives_it(pool: WorkerPool) -> None:
    calls = [(number,) for number in range(4)]
    processes = [list_semaphores(0), *pool.map(list_semaphores, calls, spread=True)]
    assert len({pid for pid, _ in processes}) > 1
    assert [names for _, names in processes if names] == []


def test_the_work_of_a_worker_that_dies_is_done_here(pool: WorkerPool) -> None:
    here = os.getpid()
    assert list(pool.map(die, [(here,)] * 5, spread=True)) == [here] * 5
    (parent,) = pool.map(os.getppid, [()], spread=True)
    assert parent == here


@pytest.mark.parametrize(
    ("kind", "error"), [("ours", ProviderUnavailable), ("a bug", LookupError)]
)
def test_an_error_in_a_worker_is_raised_here(
    kind: str, error: type[Exception], pool: WorkerPool
) -> None:
    with pytest.raises(error):
        list(pool.map(fail, [(kind,)], spread=True))


OWNER = """
from flashgrep.indexer.worker_pool import WorkerPool
from tests.indexer.pool_work import tell_and_wait
list(WorkerPool(2).map(tell_and_wait, [(), ()], spread=True))
"""


def test_workers_end_in_the_middle_of_their_work_with_the_process_that_started_them() -> (
    None
):
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        workers = {int(owner.stdout.readline()) for _ in range(2)}
        assert len(workers) == 2
        assert owner.pid not in workers
        owner.kill()
        # The workers have the pipe as well: it ends with the last of them.
        assert owner.stdout.read() == ""
        assert owner.wait(BOUND) == -signal.SIGKILL
