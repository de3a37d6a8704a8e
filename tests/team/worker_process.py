"""A worker as a process of its own that can be killed; forked from a server that has imported it already."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from flashgrep.team.jobs import Team
from tests.team.conftest import Rig

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.team.worker_process"])


def work(dsn: str, cache: Path) -> None:
    """Do what is due, as ``fgrep team sync`` does."""
    Team(dsn, cache, os.environ, 1).work(lambda _what: None)


@contextmanager
def worker(rig: Rig) -> Iterator[BaseProcess]:
    """Start a worker of a store; it is gone afterwards."""
    process = FORKS.Process(target=work, args=(rig.dsn, rig.team.cache))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
