"""A worker process that can be killed, forked from a server that has already imported its modules."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from flashgrep.parts.team.jobs import Team
from tests.team.conftest import Rig

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.team.worker_process"])


def work(dsn: str, cache: Path) -> None:
    """Run all due jobs, like ``fgrep team sync``."""
    Team(dsn, cache, os.environ, 1).work(lambda _what: None)


@contextmanager
def worker(rig: Rig) -> Iterator[BaseProcess]:
    """Start a worker of a store, and stop it afterwards."""
    process = FORKS.Process(target=work, args=(rig.dsn, rig.team.cache))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
