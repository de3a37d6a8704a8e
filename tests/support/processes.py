"""Processes that are to end."""

import os
import time

BOUND = 20.0


def has_ended(group: int) -> bool:
    """Wait until no process of a group is left; False if some still are after a while."""
    ends = time.monotonic() + BOUND
    while time.monotonic() < ends:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        os.sched_yield()
    return False
