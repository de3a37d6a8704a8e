"""Sifting many files at once: worker processes tell which of them match, and how often.

For what the index cannot narrow. Python's lock would let one thread work at a time; two processes read and match
78,000 files in half the time, and leave the daemon free to answer others. A worker is started when first needed and
ended when idle. Messages on its stdin and stdout are pickles with a length before them, ours at both ends.
"""

import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, NamedTuple

from flashgrep.ingest.extract import read_file
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.model import Skipped
from flashgrep.pattern import Matcher, Pattern
from flashgrep.scheduler import blocking, stop_if_over

CHUNK = 1024
"""Files in one message: about 20 ms of work."""

LOOK_SECONDS = 0.1
"""How often whoever waits for a worker looks whether it is to wait on."""

AHEAD = 2
"""Messages each worker has waiting, so that it never waits for us."""

NICE = 5
"""A scan takes all processors there are: short answers go first."""

_LENGTH = struct.Struct("!I")


class Task(NamedTuple):
    """What to look for in each file; ``counting``: all matching lines, else just whether there is one."""

    root: RootFolder
    pattern: Pattern
    max_size: int
    counting: bool


class Sifted(NamedTuple):
    """What a worker found in one chunk: (position, matching lines) of files that match, and why others were passed."""

    found: list[tuple[int, int]]
    skipped: list[str]
    read: int


def sift_chunk(task: Task, paths: Sequence[bytes]) -> Sifted:
    """Look into each file."""
    matcher = task.pattern.matcher()
    files = RootFiles(task.root)
    found: list[tuple[int, int]] = []
    skipped: list[str] = []
    read = 0
    for at, path in enumerate(paths):
        try:
            _, document = read_file(files, path, task.max_size)
        except (FileNotFoundError, NotADirectoryError):
            continue
        read += 1
        if isinstance(document, Skipped):
            skipped.append(document.reason)
            continue
        lines = _lines(matcher, document.data, counting=task.counting)
        if lines:
            found.append((at, lines))
    return Sifted(found, skipped, read)


def _lines(matcher: Matcher, data: bytes, *, counting: bool) -> int:
    return matcher.count_lines(data) if counting else int(matcher.search(data))


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "flashgrep.search.sift"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")

    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, task: Task, paths: Sequence[bytes]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened with PIPE
        _write(self._process.stdin, (task, paths))

    def answer(self) -> Sifted:
        """Return the oldest answer, looking now and then whether it is still wanted."""
        assert self._process.stdout is not None  # noqa: S101 - opened with PIPE
        if self._process.stdout.closed:  # it died while it had several chunks
            raise EOFError
        descriptor = self._process.stdout.fileno()
        with blocking():
            (size,) = _LENGTH.unpack(_received(descriptor, _LENGTH.size))
            found: Sifted = pickle.loads(_received(descriptor, size))  # noqa: S301 - from our own child
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Sieve:
    """Worker processes shared by all searches; one search has them at a time, others do without."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._workers: dict[int, _Worker] = {}
        self._lock = threading.Lock()
        self._used = 0.0

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            self._close()

    def close_idle(self, seconds: float) -> None:
        """End the workers if nobody has used them for so long."""
        if self._workers and time.monotonic() - self._used > seconds and self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        while self._workers:
            self._workers.popitem()[1].close()

    def sift(self, task: Task, paths: Iterable[bytes]) -> Iterator[tuple[Sequence[bytes], Sifted]]:
        """Yield each chunk of paths, in order, with what was found in it."""
        chunks = _chunks(iter(paths))
        if not self._lock.acquire(blocking=False):
            yield from ((chunk, sift_chunk(task, chunk)) for chunk in chunks)
            return
        try:
            yield from self._shared(task, chunks)
        finally:
            self._used = time.monotonic()
            self._lock.release()

    def _shared(self, task: Task, chunks: Iterator[list[bytes]]) -> Iterator[tuple[Sequence[bytes], Sifted]]:
        waiting: deque[tuple[_Worker | None, Sequence[bytes]]] = deque()
        try:
            for number, chunk in enumerate(chunks):
                waiting.append((self._asked(number % self._count, task, chunk), chunk))
                if len(waiting) >= self._count * AHEAD:
                    yield self._next(task, waiting)
            while waiting:
                yield self._next(task, waiting)
        finally:
            if waiting:  # the search ended early: what is still being looked for is not wanted
                self._close()

    def _asked(self, at: int, task: Task, chunk: Sequence[bytes]) -> _Worker | None:
        """Give a chunk to a worker, a new one where it died; None where no process can be had."""
        try:
            worker = self._workers.get(at)
            if worker is None or worker.ended():
                if worker is not None:
                    worker.close()
                worker = self._workers[at] = _Worker()
            worker.ask(task, chunk)
        except OSError:
            return None
        return worker

    def _next(
        self, task: Task, waiting: deque[tuple[_Worker | None, Sequence[bytes]]]
    ) -> tuple[Sequence[bytes], Sifted]:
        """Return the oldest chunk's answer; what a worker that died (of memory, say) had is done here."""
        worker, chunk = waiting.popleft()
        if worker is not None:
            try:
                return chunk, worker.answer()
            except (OSError, EOFError, pickle.UnpicklingError, struct.error):
                worker.close()
        return chunk, sift_chunk(task, chunk)


def _chunks(paths: Iterator[bytes]) -> Iterator[list[bytes]]:
    while chunk := list(islice(paths, CHUNK)):
        yield chunk


def _write(stream: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _received(descriptor: int, size: int) -> bytes:
    """Return so many bytes of a pipe, looking now and then whether to wait on; not by a buffer, which hides bytes."""
    data = bytearray()
    waiting = select.poll()  # select takes no descriptor over 1,023
    waiting.register(descriptor, select.POLLIN)
    while len(data) < size:
        while not waiting.poll(1000 * LOOK_SECONDS):
            stop_if_over()
        more = os.read(descriptor, size - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def main() -> None:
    """Serve the process that started us until it closes our stdin."""
    os.nice(NICE)
    out = os.fdopen(os.dup(1), "wb")
    source = sys.stdin.buffer
    while head := source.read(_LENGTH.size):
        (size,) = _LENGTH.unpack(head)
        task, paths = pickle.loads(source.read(size))  # noqa: S301 - from our own parent
        _write(out, sift_chunk(task, paths))


if __name__ == "__main__":
    # Pickles name a class by its module: here that is __main__, which the other end has not.
    from flashgrep.search.sift import main as serve

    serve()
