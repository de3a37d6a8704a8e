"""Parsing in a separate process: a file that crashes or hangs a grammar is skipped with a reason, the rest is parsed.

This module is also that process's program: it reads batches from stdin, and writes one answer per file to stdout, in
order. A batch is a frame (``child_process``), ``[[language, size], …]``, followed by the texts. An answer is a frame,
``[packed size, [name size, …]]`` or ``[reason, detail]``, followed by the bytes it announces. If a file crashes a
grammar, the process ends, and the indexer sees which answer is missing.
"""

import gc
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

import orjson

from flashgrep.base.child_process import (
    end_child,
    limit_memory,
    make_frame,
    read_frame,
)
from flashgrep.base.frames import LENGTH, measure
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.machine import release_memory
from flashgrep.base.model import Skipped
from flashgrep.parts.symbols.parse import ParsedFile, pack, parse_symbols
from flashgrep.parts.symbols.parse.grammar import unpack_grammars

COMMAND = (sys.executable, "-P", "-m", "flashgrep.parts.symbols.parse.isolate")
STOPPED_SECONDS = 120.0
"""A worker ends after ``FILE_SECONDS`` of processor time for a file; this bound is for one that gets no such time."""
BATCH_BYTES = 4_000_000
MEMORY_BYTES = 3 << 30
"""Address space; the largest file accepted needs about 200 MB, and the interpreter and grammars map 600 MB."""
FILE_SECONDS = 15.0
"""The parser itself gives up on a file after 5 s; at three times that, it hangs where it does not check the clock."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's symbols, ready to be stored: packed, and the distinct names it defines."""

    packed: bytes
    names: tuple[bytes, ...]


class _WorkerGoneError(Exception):
    """The worker ended, or had to be ended, before it answered; the message says how."""


class IsolatedParser:
    """A parsing process, started when first needed and again after a file ended it; only for one thread at a time."""

    def __init__(
        self, command: Sequence[str] = COMMAND, seconds: float = STOPPED_SECONDS
    ) -> None:
        self._command = tuple(command)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def parse(self, files: Sequence[tuple[str, bytes]]) -> Iterator[Parsed | Skipped]:
        """Yield the symbols of each (language, text), in order; blocks while the worker parses."""
        at = 0
        while at < len(files):
            end = at + 1
            size = len(files[at][1])
            while end < len(files) and size + len(files[end][1]) <= BATCH_BYTES:
                size += len(files[end][1])
                end += 1
            try:
                self._send(files[at:end])
                while at < end:
                    answer = self._receive()
                    at += 1
                    yield answer
            except (
                _WorkerGoneError,
                OSError,
            ) as gone:  # because of the file without an answer
                self.close()
                at += 1
                yield Skipped("unparsed", f"symbols: {gone}")

    def close(self) -> None:
        """End the process, if one runs."""
        process = self._process
        self._process = None
        self._buffer.clear()
        if process is not None:
            end_child(process)

    def _send(self, batch: Sequence[tuple[str, bytes]]) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        stdin = self._process.stdin
        if stdin is None:
            raise _WorkerGoneError("the parser has no input")
        head = make_frame([(language, len(data)) for language, data in batch])
        texts = [data for _, data in batch]
        stdin.write(b"".join([head, *texts]))
        stdin.flush()

    def _receive(self) -> Parsed | Skipped:
        deadline = time.monotonic() + self._seconds
        length = measure(self._read(LENGTH, deadline))
        head = orjson.loads(self._read(length, deadline))
        if isinstance(head[0], str):
            return Skipped(head[0], head[1])  # type: ignore[arg-type] # the worker sends the reasons of Skipped
        size, lengths = head
        body = self._read(sum(lengths) + size, deadline)
        ends = list(accumulate(lengths, initial=0))
        return Parsed(
            body[ends[-1] :], tuple(body[start:end] for start, end in pairwise(ends))
        )

    def _read(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size:
            if self._process is None or self._process.stdout is None:
                raise _WorkerGoneError("the parser was closed")
            descriptor = self._process.stdout.fileno()
            if not select.select(
                [descriptor], [], [], max(0.0, deadline - time.monotonic())
            )[0]:
                raise _WorkerGoneError(f"not finished after {self._seconds:g} s")
            if not (more := os.read(descriptor, 1 << 16)):
                status = self._process.wait(self._seconds)
                if status == -signal.SIGPROF:
                    raise _WorkerGoneError(
                        f"not finished after {FILE_SECONDS:g} s of processor time"
                    )
                raise _WorkerGoneError(f"the grammar crashed (status {status})")
            self._buffer += more
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


def answer(language: str, data: bytes) -> bytes:
    """Parse one file and return its answer."""
    parsed = parse_symbols(language, data)
    if not isinstance(parsed, ParsedFile):
        return make_frame([parsed.reason, parsed.detail])
    names = parsed.names(data)
    packed = pack(parsed)
    return make_frame([len(packed), [len(name) for name in names]]) + b"".join(
        [*names, packed]
    )


def has_reader(descriptor: int) -> bool:
    """Return whether the other end of a pipe that is written to is still open."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return not poll.poll(0)


def main() -> None:
    """Answer batches until stdin ends."""
    limit_memory(MEMORY_BYTES)
    os.nice(5)
    # Parsing makes many objects but no cycles: garbage collection took a tenth of the
    # time.
    gc.freeze()
    gc.disable()
    stdin = sys.stdin.buffer
    stdout = sys.stdout.buffer
    unpacked: set[str] = set()
    while (batch := read_frame(stdin)) is not None:
        texts = [(language, stdin.read(size)) for language, size in batch]
        grammars = {LANGUAGES[language].symbols for language, _ in batch}
        unpack_grammars(grammars - unpacked)
        unpacked |= grammars
        # Loading a grammar unpacks it once more if it is missing: after an uninstall
        # that would bring the state folder back.
        if not has_reader(stdout.fileno()):
            os._exit(1)
        for language, data in texts:
            # Processor time, since a loaded machine is not the file's fault. The signal
            # ends this process.
            signal.setitimer(signal.ITIMER_PROF, FILE_SECONDS)
            answered = answer(language, data)
            signal.setitimer(signal.ITIMER_PROF, 0)
            try:
                stdout.write(answered)
                stdout.flush()
            except BrokenPipeError:  # the indexer was killed
                os._exit(1)
        gc.collect()
        release_memory()  # large trees fragment the heap: a worker kept 500 MB otherwise


if __name__ == "__main__":
    main()
