"""The heap of a daemon gives back what its threads have freed."""

import json
import subprocess
import sys

import pytest

from scripts.benchmarks.private import PAGE

PROGRAM = """
import json, sys, threading
from flashgrep.base.machine import bound_heap, release_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

if sys.argv[1] == "bound":
    bound_heap()
large = bytearray(20 << 20)
del large  # from now on glibc keeps 40 MB free at the end of each heap
before = resident()
barrier = threading.Barrier(16)

def work():
    blocks = [bytes([1]) * 50_000 for _ in range(150)]
    barrier.wait()
    blocks.clear()

threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
release_memory()
print(json.dumps([before, resident()]))
"""
MOST_LEFT = 16 << 20
"""Of 120 MB: what the threads themselves have left."""


def measure(heap: str) -> int:
    """Return by how many bytes a process is larger after its threads have freed what they took."""
    command = [sys.executable, "-c", PROGRAM, heap]
    output = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    before: int
    after: int
    before, after = json.loads(output)
    return (after - before) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")
def test_what_threads_have_freed_goes_back_to_the_system() -> None:
    assert measure("bound") < MOST_LEFT
