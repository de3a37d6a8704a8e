"""Parsing in a process of its own: a file that crashes or hangs a grammar is skipped with a reason, the rest parsed."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import orjson

from flashgrep.ingest.parse.worker import frame
from flashgrep.model import Skipped

COMMAND = (sys.executable, "-m", "flashgrep.ingest.parse.worker")
FILE_SECONDS = 15.0
"""The parser gives up on a file itself after 5 s; three times that means it hangs where it cannot look at the clock."""
BATCH_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's symbols, ready to be stored: packed, and the distinct names it defines."""

    packed: bytes
    names: tuple[bytes, ...]


class _WorkerGoneError(Exception):
    """The worker ended, or had to be ended, before it answered; says how."""


class IsolatedParser:
    """One parsing process, started when first needed and again after a file ended it; not for use by two threads."""

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = FILE_SECONDS) -> None:
        self._command = tuple(command)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def parse(self, files: Sequence[tuple[str, bytes]]) -> Iterator[Parsed | Skipped]:
        """Yield the symbols of each (language, text), in order; blocks while the worker parses."""
        at = 0
        while at < len(files):
            batch = _batch(files, at)
            for done in self._run(batch):
                at += 1
                yield done

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _run(self, batch: Sequence[tuple[str, bytes]]) -> Iterator[Parsed | Skipped]:
        """Yield answers up to and including the file that ended the worker, if one did."""
        try:
            self._send(batch)
            for _ in batch:
                yield self._receive()
        except (_WorkerGoneError, OSError) as gone:
            self.close()
            yield Skipped("unparsed", f"symbols: {gone}")

    def _send(self, batch: Sequence[tuple[str, bytes]]) -> None:
        process = self._process or self._start()
        if process.stdin is None:
            raise _WorkerGoneError("the parser has no input")
        head = frame([(language, len(data)) for language, data in batch])
        process.stdin.write(b"".join([head, *(data for _, data in batch)]))
        process.stdin.flush()

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        return self._process

    def _receive(self) -> Parsed | Skipped:
        deadline = time.monotonic() + self._seconds
        head = self._answer_head(deadline)
        if isinstance(head[0], str):
            return Skipped(head[0], head[1])  # type: ignore[arg-type] # the worker sends the reasons of Skipped
        size, lengths = head
        names = tuple(self._read(length, deadline) for length in lengths)
        return Parsed(self._read(size, deadline), names)

    def _answer_head(self, deadline: float) -> Any:
        length = int.from_bytes(self._read(4, deadline), "little")
        return orjson.loads(self._read(length, deadline))

    def _read(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size:
            self._buffer += self._more(deadline)
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _more(self, deadline: float) -> bytes:
        if self._process is None or self._process.stdout is None:
            raise _WorkerGoneError("the parser was closed")
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise _WorkerGoneError(f"no end after {self._seconds:g} s")
        if not (more := os.read(descriptor, 1 << 16)):
            raise _WorkerGoneError(f"the grammar crashed (status {self._process.wait(self._seconds)})")
        return more


def _batch(files: Sequence[tuple[str, bytes]], at: int) -> Sequence[tuple[str, bytes]]:
    """Return files from ``at`` on, at least one, of about ``BATCH_BYTES``."""
    size = 0
    for end in range(at, len(files)):
        size += len(files[end][1])
        if size > BATCH_BYTES and end > at:
            return files[at:end]
    return files[at:]
