"""Clients that ask for much and never read: others are answered as before, and what waits to be read is bounded."""

import statistics
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from flashgrep.daemon import lifecycle
from scripts.benchmarks.fairness import GREEDY, make_tree
from scripts.benchmarks.private import resident
from tests.conftest import BOUND, DaemonAtHand, Wire

pytestmark = pytest.mark.slow

CLIENTS = 30
CALLS = 32
MIB = 1 << 20
MOST_GROWTH = 150 * MIB
"""Without a bound each of 960 answers of 1.5 MB is held."""
MOST_LEFT = 60 * MIB
"""What may stay when they have hung up; with pages of objects instead of JSON it was 80 to 105 MB of 60 clients."""
SETTLED_SECONDS = 1.0
LOOK_SECONDS = 0.2
TIMES = 20
"""Most ratio of the median wait to that alone, while clients that read nothing are served no more."""


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, _module_folder: Path) -> Path:
    made = _module_folder / "project"
    make_tree(made, files=200, big_lines=60_000)
    assert daemon.run("index", str(made)).returncode == 0
    return made


def measure(wire: Wire, seconds: float) -> list[float]:
    waits = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        wire.call("query", text="process_value_77_7", mode="literal")
        waits.append(time.monotonic() - begun)
    return waits


def test_clients_that_never_read_take_no_memory_and_no_time_from_others(
    daemon: DaemonAtHand, root: Path
) -> None:
    pid = lifecycle.find_holder(daemon.paths)
    assert pid is not None
    method, params = GREEDY["large answers"]
    with closing(daemon.wire("unix", root)) as polite, ExitStack() as stack:
        alone = statistics.median(measure(polite, SETTLED_SECONDS))
        before = peak = resident(pid)
        for _ in range(CLIENTS):
            wire = stack.enter_context(closing(daemon.wire("unix", root)))
            for number in range(CALLS):
                wire.send(
                    {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                )
        beside, until = float("inf"), time.monotonic() + BOUND
        while beside > TIMES * alone:  # once each has got as much as it may
            assert time.monotonic() < until, (beside, alone)
            beside = statistics.median(measure(polite, SETTLED_SECONDS))
            peak = max(peak, resident(pid))
        assert peak - before < MOST_GROWTH, (before, peak)
        stack.close()
        until = time.monotonic() + BOUND
        while resident(pid) - before > MOST_LEFT:
            assert time.monotonic() < until, (before, peak, resident(pid))
            threading.Event().wait(LOOK_SECONDS)
