"""Giving memory back to the machine we run on."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
"""Options of mallopt, from glibc's malloc.h."""
MAPPED_BYTES = 4 << 20
"""Blocks of this size are mapped by themselves."""
MOST_FREE_BYTES = 16 << 20
"""The end of the heap is returned once more than this is free there."""


def bound_heap() -> None:
    """Make glibc use one heap, and return large blocks at once; to be called before threads allocate.

    By default each thread gets a heap of its own. Only what lies above the last block in use leaves such a heap, and
    ``release_memory`` does not reach the end of any but the first: 16 threads kept 130 MB after a load. The
    interpreter's lock lets one thread allocate at a time anyway. And glibc raises the size from which a block is
    mapped by itself to that of any such block freed, up to 32 MB; smaller ones then stay in the heap.
    """
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_ARENA_MAX, 1)
            set_option(_M_MMAP_THRESHOLD, MAPPED_BYTES)
            set_option(_M_TRIM_THRESHOLD, MOST_FREE_BYTES)


def release_memory() -> None:
    """Return free heap pages to the system (about 1 ms); glibc keeps them otherwise."""
    if sys.platform == "linux":
        trim = getattr(
            ctypes.CDLL(None), "malloc_trim", None
        )  # other C libraries have no such call
        if trim is not None:
            trim(0)
