"""A daemon whose clients never pause, for a short time: what it holds does not grow with the number of answers."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.benchmarks.fairness import make_tree
from scripts.benchmarks.private import Private, adopt, private_daemon, wait_until
from scripts.benchmarks.soak import (
    STAGES,
    Figures,
    Tally,
    figures,
    make_threads,
)

pytestmark = pytest.mark.slow

CLIENTS = 6
WARM_ANSWERS = 40
ANSWERS = 160
"""Each kind of question has been asked before the first count, and some ten times after it."""
SAMPLES = 8
"""For each count: the least of them is taken, since descriptors are open while answers are made."""
BOUND = 60.0
MOST_DESCRIPTORS, MOST_THREADS, MOST_MIB = 12, 12, 120.0
"""Growth from the first count to the last; folders left open came to one for each answer about symbols."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Private]:
    root = tmp_path / "project"
    make_tree(root, files=30, big_lines=2_000)
    with private_daemon(tmp_path / "state") as made:
        adopt(made, root)
        client = made.client()
        wait_until(client, STAGES)
        client.close()
        yield made


def wait_for_answers(daemon: Private, tally: Tally, answers: int) -> Figures:
    """Wait until that many answers have come, and return the least figures of the moments after that."""
    until = time.monotonic() + BOUND
    while tally.answers < answers:
        assert time.monotonic() < until, tally
        threading.Event().wait(0.1)
    seen: list[Figures] = []
    while len(seen) < SAMPLES:
        seen.append(figures(daemon.pid))
        threading.Event().wait(0.1)
    return Figures(
        min(one.memory_mib for one in seen),
        min(one.descriptors for one in seen),
        min(one.threads for one in seen),
    )


def test_clients_without_a_pause_leave_no_more_behind_after_many_answers_than_after_few(
    daemon: Private,
) -> None:
    tally = Tally()
    stop = threading.Event()
    threads = make_threads(daemon, CLIENTS, (), stop, tally)
    for thread in threads:
        thread.start()
    try:
        before = wait_for_answers(daemon, tally, WARM_ANSWERS)
        after = wait_for_answers(daemon, tally, WARM_ANSWERS + ANSWERS)
    finally:
        stop.set()
        for thread in threads:
            thread.join(BOUND)
    assert not tally.problems
    assert after.descriptors - before.descriptors < MOST_DESCRIPTORS, (before, after)
    assert after.threads - before.threads < MOST_THREADS, (before, after)
    assert after.memory_mib - before.memory_mib < MOST_MIB, (before, after)
