"""Where lines begin: in memory for small files, by a sparse index for large ones.

The index keeps one number a block (the LFs up to its end), so a terabyte needs 8 MB; a slice anywhere in an indexed
file reads one block.
"""

import os
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flashgrep.edit.hashing import digest
from flashgrep.edit.text import Encoding, LineEnding, decode, encoding_of_start, line_ending
from flashgrep.errors import DeadlineExceeded
from flashgrep.lazy import LazyAttribute
from flashgrep.scheduler import checkpoint

BLOCK = 1 << 20
_LF = 10
_SETTLED_NS = 100_000_000
"""A file changed this recently may change again within one tick of its time stamp (up to 10 ms): not kept."""
_MOST_INDEXES = 64
_KEPT_BYTES = 4 << 20
"""Of small files; their text is kept beside their bytes, so it costs about twice as much memory."""


class Source(Protocol):
    """A file as bytes with line starts; offsets are from the file's first byte."""

    size: int
    bom: bytes
    encoding: Encoding

    def start_of(self, line: int) -> int | None:
        """Return where a line (from 1) starts, or None past the last."""

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer only at the end of the file."""

    def total(self) -> int | None:
        """Return the number of lines where it is known without reading more."""

    def count(self) -> int:
        """Return the number of lines, reading what is needed."""


def ends_of(data: bytes | NDArray[np.uint8], encoding: Encoding) -> NDArray[Any]:
    """Return the offsets just past each LF; UTF-16 data must start at a code unit."""
    if encoding in {"utf-16-le", "utf-16-be"}:
        units = np.frombuffer(data, "<u2" if encoding == "utf-16-le" else ">u2", len(data) // 2)
        return (np.flatnonzero(units == _LF) + 1) * 2
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _LF) + 1


class Whole:
    """A small file, read at once."""

    def __init__(self, data: bytes) -> None:
        text = decode(data)
        self.text = text.text
        self.size = len(data)
        self.bom = text.bom
        self.encoding = text.encoding
        self._ends = ends_of(data, text.encoding)
        self._data = data

    @LazyAttribute
    def line_ending(self) -> LineEnding:
        """How the lines end."""
        return line_ending(self.text)

    @LazyAttribute
    def hash(self) -> str:
        """Return the hash of the raw bytes."""
        return digest(self._data)

    def start_of(self, line: int) -> int | None:
        """Return where a line starts, or None past the last."""
        if line == 1:
            return len(self.bom)
        if line - 1 > len(self._ends):
            return None
        start = int(self._ends[line - 2])
        return start if start < self.size else None

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer only at the end."""
        return self._data[offset : offset + length]

    def total(self) -> int | None:
        """Return the number of lines if it is known."""
        return self.count()

    def count(self) -> int:
        """Return the number of lines."""
        ended = int(self._ends[-1]) if len(self._ends) else len(self.bom)
        return len(self._ends) + (ended < self.size)


@dataclass(slots=True)
class LineIndex:
    """LFs counted up to the end of each block so far; shared by the readers of one version of a file."""

    size: int
    bom: bytes
    encoding: Encoding
    counts: "array[int]" = field(default_factory=lambda: array("q"))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def extend(self, descriptor: int, lines: int | None, deadline: float | None) -> None:
        """Count on until this many LFs are known, or all; what is counted stays, even past the deadline."""
        buffer = bytearray(BLOCK)
        block = np.frombuffer(buffer, np.uint8)
        with self.lock:
            while not self.done() and (lines is None or self.found() < lines):
                checkpoint()
                if deadline is not None and time.monotonic() > deadline:
                    at = len(self.counts) * BLOCK
                    raise DeadlineExceeded("deadline passed while lines were counted", counted_bytes=at)
                got = os.preadv(descriptor, [buffer], len(self.counts) * BLOCK)
                self.counts.append(self.found() + self._lfs(block[:got]))

    def done(self) -> bool:
        """Tell whether the entire file is counted."""
        return len(self.counts) * BLOCK >= self.size

    def found(self) -> int:
        """Return how many LFs are known."""
        return self.counts[-1] if self.counts else 0

    def _lfs(self, block: NDArray[np.uint8]) -> int:
        if self.encoding in {"utf-16-le", "utf-16-be"}:
            return len(ends_of(block, self.encoding))
        return int(np.count_nonzero(block == _LF))


class Large:
    """A file read block by block through its descriptor, in constant memory."""

    def __init__(self, descriptor: int, index: LineIndex, deadline: float | None) -> None:
        self._descriptor = descriptor
        self._index = index
        self._deadline = deadline
        self.size = index.size
        self.bom = index.bom
        self.encoding = index.encoding

    def start_of(self, line: int) -> int | None:
        """Return where a line starts, or None past the last."""
        if line == 1:
            return len(self.bom)
        wanted = line - 1
        self._index.extend(self._descriptor, wanted, self._deadline)
        if self._index.found() < wanted:
            return None
        block = bisect_left(self._index.counts, wanted)
        before = self._index.counts[block - 1] if block else 0
        ends = ends_of(self.read(block * BLOCK, BLOCK), self.encoding)
        if wanted - before > len(ends):  # the file was cut short under us
            return None
        start = block * BLOCK + int(ends[wanted - before - 1])
        return start if start < self.size else None

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, fewer only at the end."""
        return os.pread(self._descriptor, max(0, min(length, self.size - offset)), offset)

    def total(self) -> int | None:
        """Return the number of lines if it is known."""
        return self.count() if self._index.done() else None

    def count(self) -> int:
        """Return the number of lines."""
        self._index.extend(self._descriptor, None, self._deadline)
        unit = 2 if self.encoding in {"utf-16-le", "utf-16-be"} else 1
        tail = self.read(self.size - unit, unit)
        return self._index.found() + (len(ends_of(tail, self.encoding)) == 0)


class Wholes:
    """The small files read last, by version of the file: an agent reads one file piece by piece."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._room = most_bytes
        self._kept: OrderedDict[tuple[int, ...], Whole] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, status: os.stat_result, read: Callable[[], bytes]) -> Whole:
        """Return this very version of a file, reading it where it is not kept or too fresh to be told from the next."""
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
                return found
        found = Whole(read())
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS and found.size == status.st_size:
            with self._lock:
                self._keep(key, found)
        return found

    def _keep(self, key: tuple[int, ...], found: Whole) -> None:
        if key in self._kept:  # another thread read it too, at the same time
            return
        self._kept[key] = found
        self._room -= found.size
        while self._room < 0:
            _, dropped = self._kept.popitem(last=False)
            self._room += dropped.size


class LineIndexes:
    """The line indexes of the large files read last, by version of the file."""

    def __init__(self, most: int = _MOST_INDEXES) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[int, ...], LineIndex] = OrderedDict()
        self._lock = threading.Lock()

    def source(self, descriptor: int, status: os.stat_result, deadline: float | None) -> Large:
        """Return a large file, with the index of this very version where one is kept."""
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            index = self._kept.pop(key, None)
            if index is None:
                bom, encoding = encoding_of_start(os.pread(descriptor, BLOCK, 0))
                index = LineIndex(status.st_size, bom, encoding)
            if time.time_ns() - status.st_mtime_ns > _SETTLED_NS:
                self._kept[key] = index
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return Large(descriptor, index, deadline)
