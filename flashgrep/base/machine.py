"""The machine we run on: its cores, and giving memory back."""

import ctypes
import os
import sys


def count_cores() -> int:
    """Return how many cores this process may use; on macOS, how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def release_memory() -> None:
    """Return free heap pages to the system (about 1 ms); glibc keeps them otherwise."""
    if sys.platform == "linux":
        trim = getattr(
            ctypes.CDLL(None), "malloc_trim", None
        )  # other C libraries have no such call
        if trim is not None:
            trim(0)
