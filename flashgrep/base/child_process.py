"""Child processes for work that may crash, hang or grow: communicating with them, ending and bounding them.

A frame is four bytes of length (little-endian) and that much JSON.
"""

import contextlib
import os
import resource
import selectors
import subprocess
import time
from typing import Any, BinaryIO, Final

import orjson

from flashgrep.base.checkpoint import blocking, stop_if_over

LENGTH: Final = 4
"""Bytes of a frame's length."""
CHUNK: Final = 1 << 16
LOOK_SECONDS: Final = 0.1
"""Seconds between a waiting thread's checks whether its call is over."""


class ChildEnded(Exception):
    """A child process ended, or its time was up, before it answered."""


class ChildPipes:
    """A child's standard input and output, for a lookup's thread: it waits no longer than the lookup may run."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        """``process`` has pipes for both."""
        assert process.stdin is not None  # noqa: S101 # asked for by the caller; a hint to the type checker
        assert process.stdout is not None  # noqa: S101 # as above
        self._in = process.stdin.fileno()
        self._out = process.stdout.fileno()
        # A child that does not read must not block this thread: a blocking write has no
        # deadline.
        os.set_blocking(self._in, False)

    def write(self, message: bytes, ends: float) -> None:
        """Send bytes until ``ends``, on the clock of time.monotonic().

        Raises:
            ChildEnded: it has ended, or did not read them in time.
            Abandoned, Expired: the lookup is over.

        """
        view = memoryview(message)
        try:
            while view:
                _wait(self._in, selectors.EVENT_WRITE, ends)
                view = view[os.write(self._in, view[:CHUNK]) :]
        except BrokenPipeError:
            raise ChildEnded from None

    def read(self, size: int, ends: float) -> bytes:
        """Return ``count`` bytes; raises as ``write``."""
        parts = bytearray()
        while len(parts) < size:
            _wait(self._out, selectors.EVENT_READ, ends)
            part = os.read(self._out, min(CHUNK, size - len(parts)))
            if not part:
                raise ChildEnded
            parts += part
        return bytes(parts)

    def read_frame(self, ends: float) -> Any:
        """Return a frame's JSON; raises as ``write``."""
        return orjson.loads(
            self.read(int.from_bytes(self.read(LENGTH, ends), "little"), ends)
        )


def _wait(descriptor: int, event: int, ends: float) -> None:
    """Wait until a pipe can be read or written, while other lookups run."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        # Nearly always ready: yielding the turn costs more than polling first.
        if selector.select(0):
            return
        with blocking():
            while not selector.select(
                min(LOOK_SECONDS, max(0.0, ends - time.monotonic()))
            ):
                if time.monotonic() >= ends:
                    raise ChildEnded
                stop_if_over()


def end_child(process: "subprocess.Popen[bytes]") -> None:
    """Kill a child, and close its pipes."""
    process.kill()
    # Reaped here, or it would stay a zombie until the daemon exits.
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # what it did not read is lost
                pipe.close()


def make_frame(value: Any) -> bytes:
    """Return a frame of JSON."""
    body = orjson.dumps(value)
    return len(body).to_bytes(LENGTH, "little") + body


# In the child


def read_frame(stream: BinaryIO) -> Any:
    """Return the next frame's JSON, or None at the end."""
    head = stream.read(LENGTH)
    if len(head) == LENGTH:
        return orjson.loads(stream.read(int.from_bytes(head, "little")))
    return None


def limit_memory(size: int) -> None:
    """Limit the address space of this process to ``most`` bytes, or to its hard limit if that is lower."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(
        ValueError, OSError
    ):  # if the system refuses the limit, go without
        resource.setrlimit(
            resource.RLIMIT_AS,
            (size if hard == resource.RLIM_INFINITY else min(size, hard), hard),
        )
