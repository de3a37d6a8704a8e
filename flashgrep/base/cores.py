"""How many cores there are for us; apart, since commands that must start at once ask, too."""

import os


def count_cores() -> int:
    """Return how many cores this process may use; on macOS, how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    if allowed:
        return len(allowed(0))
    return os.cpu_count() or 1
