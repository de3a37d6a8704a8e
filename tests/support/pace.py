"""Bounds on processor time that hold on a slow or busy machine, too: they grow with what a fixed loop costs there."""

import time
from statistics import median

ADDITIONS = 200_000
USUAL_SECONDS = 0.009
"""What the loop costs on the machine on which the bounds were set, otherwise idle."""


def paced(seconds: float) -> float:
    """Return a bound for this machine now; never a smaller one."""
    slowness = median(_measure_seconds() for _ in range(5)) / USUAL_SECONDS
    return seconds * max(1.0, slowness)


def _measure_seconds() -> float:
    begun = time.thread_time()
    number = 0
    while number < ADDITIONS:
        number += 1
    return time.thread_time() - begun
