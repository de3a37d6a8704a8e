"""`engine: "backtracking"`: look-around and back-references by Python's `re`, in a child process that can be killed.

Such patterns can take exponential time, and `re` can neither be interrupted nor bounded, so each query has a worker of
its own and a time limit over all its files. The dialect is that of `re` on text, not ripgrep's.
A message is eight bytes of length, big-endian, and that many bytes; the worker answers each with one.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any, Self

from flashgrep.errors import BadPattern, DeadlineExceeded
from flashgrep.pattern import LineMatch, Pattern
from flashgrep.scheduler import blocking, stop_if_over

_CHUNK = 1 << 16
_LOOK_SECONDS = 0.1
"""How often a thread that waits for its worker looks whether anybody still waits for the answer."""


class Backtracker:
    """A matcher in a child process; a context manager, for one thread at a time.

    Raises:
        BadPattern: from the constructor, if `re` refuses the pattern.
        DeadlineExceeded: from any call, once `seconds` are over since the start; the worker is gone then.
    """

    def __init__(self, pattern: Pattern, *, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._seconds = seconds
        command = [sys.executable, "-m", "flashgrep.pattern.backtracking_worker", str(int(seconds) + 2)]
        self._worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            refusal = json.loads(self._ask(json.dumps(asdict(pattern)).encode()))
        except BaseException:
            self.close()
            raise
        if refusal:
            self.close()
            raise BadPattern(f"{refusal['message']} (backtracking engine)", at=refusal["at"], construct="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def search(self, data: bytes) -> bool:
        """Tell whether any line matches."""
        return bool(self.lines(data, limit=1))

    def lines(self, data: bytes, *, all_spans: bool = False, limit: int | None = None) -> list[LineMatch]:
        """Return what `Matcher.lines` would yield."""
        options = json.dumps({"all_spans": all_spans, "limit": limit}).encode()
        answer: list[Any] = json.loads(self._ask(options + b"\n" + data))
        return [
            LineMatch(number, last, start, end, tuple((first, stop) for first, stop in spans))
            for number, last, start, end, spans in answer
        ]

    def close(self) -> None:
        """End the worker, at once and whatever it is doing."""
        self._worker.kill()
        self._worker.wait()
        for pipe in (self._worker.stdin, self._worker.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, message: bytes) -> bytes:
        self._send(len(message).to_bytes(8, "big") + message)
        return self._receive(int.from_bytes(self._receive(8), "big"))

    def _send(self, message: bytes) -> None:
        pipe = self._worker.stdin
        assert pipe is not None  # noqa: S101 # asked for above; a hint to the type checker
        os.set_blocking(pipe.fileno(), False)
        view = memoryview(message)
        while view:
            self._await(pipe.fileno(), selectors.EVENT_WRITE)
            view = view[os.write(pipe.fileno(), view[:_CHUNK]) :]

    def _receive(self, size: int) -> bytes:
        pipe = self._worker.stdout
        assert pipe is not None  # noqa: S101 # as above
        parts = bytearray()
        while len(parts) < size:
            self._await(pipe.fileno(), selectors.EVENT_READ)
            part = os.read(pipe.fileno(), min(_CHUNK, size - len(parts)))
            if not part:
                raise self._late()
            parts += part
        return bytes(parts)

    def _await(self, descriptor: int, event: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if selector.select(0):
                return
            with blocking():
                while not selector.select(min(_LOOK_SECONDS, max(0.0, self._ends - time.monotonic()))):
                    if time.monotonic() >= self._ends:
                        self.close()
                        raise self._late()
                    stop_if_over()

    def _late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"the backtracking engine did not finish within {self._seconds:g} s")
