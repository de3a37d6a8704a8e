"""The interpreter's unused pools of small values: their pages go back to the system while nobody asks.

CPython takes memory for values of up to 512 bytes in arenas of 1 MiB, and divides these into pools of 16 KiB, each for
values of one size. An arena goes back to the system only when all 64 pools are unused, and after a load some small
value that stays is left in nearly every arena: of 93 arenas, 57 had come with the load, and 44 MB were unused pools.

The way back is that of a virtual machine's balloon: take the unused pools by the interpreter's own allocator, let go of
the pages that lie within what was taken, and keep the blocks. No page is let go of in which anything else lies. If small
values have another allocator, blocks do not lie as those of a pool do, and none are kept.
"""

import ctypes
import mmap
import sys
from array import array
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

PAGE: Final = 4096
POOL: Final = 1 << 14
HEADER: Final = 48
"""Bytes at the beginning of a pool that are the allocator's."""
BLOCK: Final = 512
"""The largest size that pools have; the fewest calls take a pool."""
BLOCKS: Final = (POOL - HEADER) // BLOCK
"""In a pool. The 464 bytes after the last of them belong to nobody."""
SPAN: Final = (BLOCKS - 1) * BLOCK
"""Bytes from the first block of a pool to its last."""
ARENA: Final = 1 << 20
STEP: Final = BLOCKS * ARENA // POOL
"""Blocks that are taken or given back at once: an arena of them, 1 to 2 ms."""
MOST_STEPS: Final = 1024
"""Arenas that are taken at most; a daemon whose small values need more has other worries."""
STATM: Final = Path("/proc/self/statm")
DONT_NEED: Final = 4
"""MADV_DONTNEED in Linux's mman.h."""
Addresses = npt.NDArray[np.uint64]


class UnusedPools:
    """The pools that nothing was in when they were taken; for one thread."""

    def __init__(self) -> None:
        self._steps: list[array[int]] = []
        """The addresses of the blocks, as they were taken."""
        self._is_possible = sys.platform == "linux" and mmap.PAGESIZE == PAGE
        if self._is_possible:
            size = ctypes.c_size_t
            interpreter = ctypes.pythonapi  # calls hold the interpreter's lock
            self._allocate = interpreter.PyObject_Malloc
            self._allocate.argtypes = (size,)
            self._allocate.restype = size
            self._free = interpreter.PyObject_Free
            self._free.argtypes = (size,)
            self._free.restype = None
            system = ctypes.CDLL(None)
            self._advise = system.madvise
            self._advise.argtypes = (size, size, ctypes.c_int)

    def take(self) -> bool:
        """Take an arena's worth of unused pools, and return whether there may be more."""
        if not self._is_possible or len(self._steps) >= MOST_STEPS:
            return False
        before = _mapped_bytes()
        blocks = array("Q")
        for _ in range(STEP):
            block = self._allocate(BLOCK)
            blocks.append(block)
        mapped = _mapped_bytes() - before
        # A new arena was mapped: no pool is unused any more. It goes at once.
        is_last = mapped >= ARENA
        pools = find_pools(blocks)
        if is_last or not pools:
            self._give_back(blocks)
            return False
        # Kept before the pages go: if advice fails, the blocks can still be given back.
        self._steps.append(blocks)
        for pool in pools:
            # The first page has the header and stays.
            self._advise(pool + PAGE, POOL - PAGE, DONT_NEED)
        return True

    def give_back(self) -> bool:
        """Give the interpreter an arena's worth of them back, and return whether there are more."""
        if self._steps:
            self._give_back(self._steps.pop())
        return bool(self._steps)

    def _give_back(self, blocks: "array[int]") -> None:
        for block in blocks:
            self._free(block)


def find_pools(blocks: "array[int]") -> list[int]:
    """Return the addresses of the pools of which these blocks are all there are, each where the allocator puts it."""
    unsorted: Addresses = np.frombuffer(blocks, np.uint64)
    addresses = np.sort(unsorted.astype(np.int64))
    pools = addresses - addresses % POOL
    firsts = np.flatnonzero(np.diff(pools, prepend=-1))
    counts = np.diff(firsts, append=len(pools))
    whole = firsts[counts == BLOCKS]
    # Of each pool that has as many of the blocks as fit into it: the first and the last one.
    begin = addresses[whole]
    end = addresses[whole + BLOCKS - 1]
    pool = pools[whole]
    # Blocks do not overlap: their number and the distance of first and last leave no room
    # for anything else.
    is_pool = end - begin == SPAN
    is_pool &= begin - pool == HEADER
    whole_pools: list[int] = pool[is_pool].tolist()
    return whole_pools


def _mapped_bytes() -> int:
    """Return the size of this process's address space."""
    sizes = STATM.read_bytes().split()
    return int(sizes[0]) * PAGE
