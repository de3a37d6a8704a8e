"""Finds where lines begin: in memory for small files, with a sparse index for large ones.

The index keeps one number a block (the LFs up to its end), so a terabyte needs 8 MB; a slice anywhere in an indexed
file reads one block.
"""

import os
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import DeadlineExceeded
from flashgrep.base.lazy import LazyAttribute
from flashgrep.files.encoding import (
    UTF_16,
    Encoding,
    LineEnding,
    decode,
    detect_encoding,
    detect_line_ending,
)
from flashgrep.files.system import BLOCK, digest

_LF = 10
_SETTLED_NS = 100_000_000
"""A file changed this recently may change again within one tick of its time stamp (up to 10 ms): it is not kept."""
MOST_INDEXES = 64
MOST_KEPT_BYTES = 4 << 20
"""Of small files; their text is kept alongside their bytes, so it costs about twice as much memory."""


def find_line_ends(data: bytes | NDArray[np.uint8], encoding: Encoding) -> NDArray[Any]:
    """Return the offsets just past each LF; UTF-16 data must start at a code unit."""
    if encoding in UTF_16:
        units = np.frombuffer(
            data, "<u2" if encoding == "utf-16-le" else ">u2", len(data) // 2
        )
        return (np.flatnonzero(units == _LF) + 1) * 2
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _LF) + 1


class SmallFile:
    """A file read at once; offsets are from its first byte."""

    def __init__(self, data: bytes) -> None:
        text = decode(data)
        self.text = text.text
        self.size = len(data)
        self.bom = text.bom
        self.encoding = text.encoding
        self._ends = find_line_ends(data, text.encoding)
        self._data = data

    @LazyAttribute
    def line_ending(self) -> LineEnding:
        """How the lines end."""
        return detect_line_ending(self.text)

    @LazyAttribute
    def hash(self) -> str:
        """Return the hash of the raw bytes."""
        return digest(self._data)

    def start_of(self, line: int) -> int | None:
        """Return where a line (from 1) starts, or None past the last."""
        if line == 1:
            return len(self.bom)
        # Line n begins after LF n - 1. If nothing follows the last LF, there is no line
        # there.
        if line - 1 > len(self._ends):
            return None
        start = int(self._ends[line - 2])
        if start < self.size:
            return start
        return None

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer only at the end."""
        return self._data[offset : offset + length]

    def total(self) -> int | None:
        """Return the number of lines if it is known without reading more."""
        return self.count()

    def count(self) -> int:
        """Return the number of lines, reading what is needed."""
        if len(self._ends):
            last_end = int(self._ends[-1])
        else:
            last_end = len(self.bom)
        return len(self._ends) + (last_end < self.size)


@dataclass(slots=True)
class LineIndex:
    """Cumulative LF counts at the end of each block so far; shared by the readers of one version of a file."""

    size: int
    bom: bytes
    encoding: Encoding
    counts: "array[int]" = field(default_factory=lambda: array("q"))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def extend(
        self, descriptor: int, lines: int | None, deadline: float | None
    ) -> None:
        """Continue counting until this many LFs are known, or all; counts are kept even past the deadline."""
        buffer = bytearray(BLOCK)
        block = np.frombuffer(buffer, np.uint8)
        with self.lock:
            while not self.is_complete() and (lines is None or self.count() < lines):
                checkpoint()
                if deadline is not None and time.monotonic() > deadline:
                    at = len(self.counts) * BLOCK
                    raise DeadlineExceeded(
                        "deadline passed while lines were counted", counted_bytes=at
                    )
                # preadv neither uses nor moves the descriptor's offset, which a thread
                # that hashes the file may share.
                part = block[
                    : os.preadv(descriptor, [buffer], len(self.counts) * BLOCK)
                ]
                wide = self.encoding in UTF_16
                if wide:
                    lfs = len(find_line_ends(part, self.encoding))
                else:
                    lfs = int(np.count_nonzero(part == _LF))
                self.counts.append(self.count() + lfs)

    def is_complete(self) -> bool:
        """Return whether the entire file is counted."""
        return len(self.counts) * BLOCK >= self.size

    def count(self) -> int:
        """Return how many LFs are known."""
        if self.counts:
            return self.counts[-1]
        return 0


class LargeFile:
    """A file read block by block through its descriptor, in constant memory; offsets are from its first byte."""

    def __init__(
        self, descriptor: int, index: LineIndex, deadline: float | None
    ) -> None:
        self._descriptor = descriptor
        self._index = index
        self._deadline = deadline
        self.size = index.size
        self.bom = index.bom
        self.encoding = index.encoding

    def start_of(self, line: int) -> int | None:
        """Return where a line (from 1) starts, or None past the last."""
        if line == 1:
            return len(self.bom)
        line_index = line - 1
        self._index.extend(self._descriptor, line_index, self._deadline)
        if self._index.count() < line_index:
            return None
        # The LF before the line is in the first block up to whose end that many are
        # counted.
        block = bisect_left(self._index.counts, line_index)
        if block:
            before = self._index.counts[block - 1]
        else:
            before = 0
        ends = find_line_ends(self.read(block * BLOCK, BLOCK), self.encoding)
        if line_index - before > len(ends):  # the file was cut short under us
            return None
        start = block * BLOCK + int(ends[line_index - before - 1])
        if start < self.size:
            return start
        return None

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer only at the end."""
        return os.pread(
            self._descriptor, max(0, min(length, self.size - offset)), offset
        )

    def total(self) -> int | None:
        """Return the number of lines if it is known without reading more."""
        if self._index.is_complete():
            return self.count()
        return None

    def count(self) -> int:
        """Return the number of lines, reading what is needed."""
        self._index.extend(self._descriptor, None, self._deadline)
        if self.encoding in UTF_16:
            unit = 2
        else:
            unit = 1
        tail = self.read(self.size - unit, unit)
        return self._index.count() + (len(find_line_ends(tail, self.encoding)) == 0)


def make_index(descriptor: int, size: int) -> LineIndex:
    """Return the index of an open file, with nothing counted yet."""
    return LineIndex(size, *detect_encoding(os.pread(descriptor, BLOCK, 0)))


class _Version(Protocol):
    size: int


VersionT = TypeVar("VersionT", bound=_Version)


class VersionCache(Generic[VersionT]):
    """Cache for recently read file versions, since an agent reads a file in parts; thread-safe."""

    def __init__(self, most: int, cost: Callable[[VersionT], int]) -> None:
        """``most``: the maximum cost of all entries."""
        self._cost = cost
        self._kept = BoundedCache[tuple[int, ...], VersionT](most)

    def get(self, status: os.stat_result, make: Callable[[], VersionT]) -> VersionT:
        """Return the entry for exactly this version of a file; create it if it is not cached."""
        key = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        if (version := self._kept.find(key)) is not None:
            return version
        # Reading may take long, and two threads reading the same file do no harm.
        new_version = make()
        # A version that is too fresh cannot be told from the next one; one that grew
        # meanwhile is not this one.
        if (
            time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS
            and new_version.size == status.st_size
        ):
            self._kept.put(key, self._cost(new_version), new_version)
        return new_version
