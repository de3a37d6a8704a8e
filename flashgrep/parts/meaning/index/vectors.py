"""Vectors on disk: rows of int8 with a scale, append-only; and the search for those nearest to a query.

The search has two steps (binary quantisation with rescoring, Yamada et al. 2021): the signs of all rows are compared
bitwise, 250,000 rows of 256 dimensions in 3 ms, then the RESCORED best rows are read and compared in full. Rows are
read with ``pread``: truncating a mapped file would kill the daemon by SIGBUS.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.index.schema import VECTOR_FILE

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Signs = npt.NDArray[np.uint64]
"""Signs of vectors, 64 in a word; in arrays to be compared, each column is a row of the file."""

RESCORED: Final = 1500
"""Rows compared in full; for 99 of 100 queries they include the ten nearest of 250,000."""
READ_ROWS: Final = 16_384
"""Rows read at a time to extract their signs: about 4 MB."""
READ_GAP: Final = 16
"""Rows up to this far apart are read together: a call takes as long as copying so many. 1,500 rows take 6 MB at most."""
MOST_SUMS: Final = 2 << 20
"""Bytes of sums that are kept, of 2,000 texts: questions come back to the same files, and a sum takes 6 µs."""
BLOCK_ROWS: Final = 1 << 15
"""Rows compared at a time: 1 MB of signs, which fits the processor's cache."""
_PASSING: Final = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
    }
)
"""Errors that do not mean that the file is damaged."""


class VectorsDamaged(Exception):
    """A vector file is not as written: its set is unusable, but the rest of the index is sound."""


Order = Callable[[Ints], Ints]
"""Returns the sort key of rows that are equally similar; their numbers would depend on the order of indexing."""


class Nearest(NamedTuple):
    """Rows and their cosine similarity to the query, best first."""

    rows: Ints
    similarity: Floats


def new_name() -> str:
    """Return a new unique file name, so that rows of a deleted index are never taken for the new one's."""
    return f"vectors-{os.urandom(8).hex()}.bin"


def row_type(dims: int) -> np.dtype[np.void]:
    """Return the layout of a row on disk."""
    return np.dtype([("direction", "i1", (dims,)), ("scale", "<f4")])


def quantise(vectors: Floats) -> npt.NDArray[np.void]:
    """Return unit vectors as rows to store; the largest component of a row becomes 127."""
    rows = np.zeros(len(vectors), row_type(vectors.shape[1]))
    largest = np.abs(vectors).max(axis=1, initial=0)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    # One scale per row, so that each row uses the whole range of int8.
    rows["direction"] = np.rint(vectors / scale[:, None])
    rows["scale"] = np.where(largest > 0, scale, 0)
    return rows


@contextmanager
def _opened(file: Path, flags: int) -> Iterator[int]:
    if not VECTOR_FILE.fullmatch(file.name):
        raise VectorsDamaged(f"{file.name} is not a vector file")
    try:
        # O_NOFOLLOW: a symbolic link in the store's folder must not make the writer
        # overwrite another file.
        number = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _PASSING:
            raise
        raise VectorsDamaged(f"vectors: {error.strerror}") from error
    try:
        yield number
    finally:
        os.close(number)


def holds(file: Path, dims: int, rows: int) -> bool:
    """Return whether a file exists and is long enough for this many rows; for zero rows it may be missing."""
    try:
        with _opened(file, os.O_RDONLY) as number:
            return os.fstat(number).st_size >= rows * row_type(dims).itemsize
    except VectorsDamaged:
        return not rows and not os.path.lexists(file)


def append(file: Path, at: int, rows: npt.NDArray[np.void]) -> None:
    """Write rows from row ``at`` on and sync them to disk; only then may the index refer to them.

    Raises:
        VectorsDamaged: rows before ``at`` are missing; the zeros in their place would be taken for vectors.

    """
    offset = at * rows.dtype.itemsize
    with _opened(file, os.O_WRONLY if at else os.O_WRONLY | os.O_CREAT) as number:
        if os.fstat(number).st_size < offset:
            raise VectorsDamaged("vectors are missing")
        data = memoryview(rows.tobytes())
        while data:
            written = os.pwrite(number, data, offset)
            data = data[written:]
            offset = offset + written
        os.fdatasync(number)


class Vectors:
    """The vectors of one set, up to the number that the index records; thread-safe."""

    def __init__(self, file: Path, dims: int) -> None:
        self._file = file
        self._dims = dims
        self._type = row_type(dims)
        self._signs = np.zeros((-(-dims // 64), 0), np.uint64)
        self._count = 0
        self._lock = threading.Lock()
        self._sums = BoundedCache[tuple[int, int], Floats](MOST_SUMS)
        """By span. Rows are never written again."""

    def grow(self, count: int) -> None:
        """Load the signs of rows up to ``count``: reads 0.3 KB and keeps 32 bytes per row."""
        with self._lock:
            if count <= self._count:
                return
            if count > self._signs.shape[1]:
                # A quarter more than needed, so that growing rarely copies. A new
                # array, since a lookup may be reading the old one.
                height = len(self._signs)
                width = count + count // 4
                wider = np.zeros((height, width), np.uint64)
                used = self._signs[:, : self._count]
                wider[:, : self._count] = used
                self._signs = wider
            with _opened(self._file, os.O_RDONLY) as number:
                for at in range(self._count, count, READ_ROWS):
                    rows = self._read(number, at, min(READ_ROWS, count - at))
                    self._signs[:, at : at + len(rows)] = signs_of(rows["direction"]).T
            self._count = count

    def _read(self, number: int, at: int, count: int) -> npt.NDArray[np.void]:
        size = count * self._type.itemsize
        data = os.pread(number, size, at * self._type.itemsize)
        if len(data) < size:
            raise VectorsDamaged("vectors are missing")
        return np.frombuffer(data, self._type)

    def nearest(
        self,
        question: Floats,
        limit: int,
        order: Order,
        among: npt.NDArray[np.bool_] | None = None,
    ) -> Nearest:
        """Return the ``limit`` rows nearest to a unit vector; ``among``: which rows count, those past its end not."""
        count = self._count  # read once and first: a concurrent ``grow`` replaces the signs before it sets the count
        signs = self._signs[:, :count]
        starts = range(0, count, BLOCK_ROWS)
        parts = (signs[:, start : start + BLOCK_ROWS] for start in starts)
        rows = find_near(parts, count, question, max(RESCORED, limit), order, among)
        return take_nearest(rows, self.similarity(question, rows), limit, order)

    def similarity(self, question: Floats, rows: Ints) -> Floats:
        """Return the cosine of a unit vector and each row."""
        if not len(rows):
            return np.zeros(0, np.float32)
        # Rows near each other are read with those between them.
        ascending = np.sort(rows)
        is_apart = np.diff(ascending) > READ_GAP
        is_first = np.append(True, is_apart)
        is_last = np.append(is_apart, True)
        firsts = ascending[is_first]
        counts = ascending[is_last] + 1
        counts -= firsts
        size = self._type.itemsize
        starts = (firsts * size).tolist()
        lengths = (counts * size).tolist()
        with _opened(self._file, os.O_RDONLY) as number:
            runs = [*map(os.pread, repeat(number), lengths, starts)]
        # Joined as bytes: numpy compares the fields of each array that it joins, 5 µs
        # a run.
        data = b"".join(runs)
        if len(data) < sum(lengths):
            raise VectorsDamaged("vectors are missing")
        read = np.frombuffer(data, self._type)
        # Where each run begins among all that was read, less its first row.
        # A row's place is its distance from the first row of its run, after all runs before.
        offsets = counts.cumsum()
        offsets -= counts
        offsets -= firsts
        run_of = firsts.searchsorted(rows, side="right") - 1
        places = rows + offsets[run_of]
        return compare(question, read[places])

    def sums(self, spans: Sequence[tuple[int, int]]) -> Floats:
        """Return, for each span of rows (first, count), the sum of its vectors."""
        sums = np.zeros((len(spans), self._dims), np.float32)
        missing = list[int]()
        for at, span in enumerate(spans):
            total = self._sums.find(span)
            if total is None:
                missing.append(at)
            else:
                sums[at] = total
        if not missing:
            return sums
        with _opened(self._file, os.O_RDONLY) as number:
            for at in missing:
                total = add_up(self._read(number, *spans[at]))
                self._sums.put(spans[at], total.nbytes, total)
                sums[at] = total
        return sums


def add_up(rows: npt.NDArray[np.void]) -> Floats:
    """Return the sum of vectors."""
    directions = rows["direction"].astype(np.float32)
    total: Floats = np.einsum("i,ij->j", rows["scale"], directions)
    return total


def compare(question: Floats, rows: npt.NDArray[np.void]) -> Floats:
    """Return the cosine of a unit vector and each row, independent of the row's position, to the last bit."""
    # By einsum, since BLAS sums in an order that depends on a row's position.
    directions = rows["direction"].astype(np.float32)
    cosines: Floats = np.einsum("ij,j->i", directions, question.astype(np.float32))
    cosines *= rows["scale"]
    return cosines


def take_nearest(rows: Ints, similarity: Floats, limit: int, order: Order) -> Nearest:
    """Return the ``limit`` most similar of these rows, which must be ascending."""
    if len(rows) > limit:
        # Only those that may be among them are put in order.
        least = np.partition(similarity, -limit)[-limit]
        is_likely = similarity >= least
        rows = rows[is_likely]
        similarity = similarity[is_likely]
    best = np.lexsort((order(rows), -similarity))[:limit]
    return Nearest(rows[best], similarity[best])


def find_near(
    parts: Iterable[Signs],
    count: int,
    question: Floats,
    most: int,
    order: Order,
    among: npt.NDArray[np.bool_] | None,
) -> Ints:
    """Return the ``most`` of ``count`` rows whose signs differ least from a vector's, ascending.

    Among equal rows, the first by ``order`` are taken. ``parts``: the signs of all rows, in consecutive blocks;
    ``among``: as for ``Vectors.nearest``.
    """
    # The number of differing signs estimates the angle between two vectors without any
    # multiplication.
    query_signs = signs_of(question[None, :])[0]
    bits = 64 * len(query_signs)
    if among is not None:
        among = np.pad(among[:count], (0, max(0, count - len(among))))
    apart = np.empty(count, np.uint16)
    histogram = np.zeros(bits + 2, np.int64)
    at = 0
    for signs in parts:
        checkpoint()
        block = slice(at, at + signs.shape[1])
        differing = np.zeros(signs.shape[1], np.uint16)
        for word, part in zip(signs, query_signs, strict=True):
            differing += np.bitwise_count(word ^ part)
        if among is not None:
            # One more than any real distance, so that these rows come last without
            # further checks.
            differing[~among[block]] = bits + 1
        apart[block] = differing
        histogram += np.bincount(differing, minlength=bits + 2)
        at = block.stop
    # Distances are small integers, so a histogram gives the threshold below which there
    # are enough rows.
    enough = min(bits, int(np.searchsorted(np.cumsum(histogram), most)))
    rows = np.flatnonzero(apart <= enough)
    if len(rows) > most:
        equal = np.flatnonzero(apart[rows] == enough)
        equal = equal[np.argsort(order(rows[equal]), kind="stable")]
        rows = np.delete(rows, equal[most - len(rows) :])
    return rows


def signs_of(vectors: npt.NDArray[np.int8] | Floats) -> Signs:
    """Return the signs of vectors, 64 in a word."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)
