"""Child processes for work that may crash, hang or grow: communicating with them, ending and bounding them.

A message is a frame (``base.frames``), mostly of JSON.
"""

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from flashgrep.base.checkpoint import blocking, stop_if_over
from flashgrep.base.frames import LENGTH, frame, measure

CHUNK: Final = 1 << 16
LOOK_SECONDS: Final = 0.1
"""Seconds between a waiting thread's checks whether its call is over."""
PIPE_SECONDS: Final = 1.0
"""After so long without output it is looked whether a child waits at a pipe."""
_AT_PIPES: Final = frozenset({b"wait_for_partner", b"pipe_read", b"anon_pipe_read"})
"""Where Linux lets a process sleep that opens or reads a pipe (proc_pid_wchan(5))."""


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

    def read_message(self, ends: float) -> bytes:
        """Return the message of a frame; raises as ``write``."""
        return self.read(measure(self.read(LENGTH, ends)), ends)


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


class Ended(NamedTuple):
    """A child's exit status, and the beginnings of what it printed."""

    status: int
    out: bytes
    errors: bytes


def run_child(
    command: Sequence[bytes | str],
    *,
    seconds: float,
    memory: int,
    most: int,
    environ: Mapping[str, str] | None = None,
    is_alone: bool = False,
) -> Ended:
    """Run a command without input; it and its children are killed when the time is up.

    Of each of its streams ``most`` bytes are kept. ``is_alone``: it needs no other process, so a pipe that it waits at
    without a child is one that a settings file names, and it is killed at once.

    Raises:
        OSError: it cannot be started.
        ChildEnded: it was killed.

    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environ, start_new_session=True, bufsize=0,
    )  # fmt: skip
    with process, selectors.DefaultSelector() as selector:
        try:
            limit_data(process.pid, memory)
            texts = (bytearray(), bytearray())
            for stream, text in zip(
                (process.stdout, process.stderr), texts, strict=True
            ):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ, text)
            _collect(
                selector,
                process.pid,
                most,
                time.monotonic() + seconds,
                is_alone=is_alone,
            )
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ChildEnded from None
        finally:
            # Not yet reaped if anything failed, so the number is still its own.
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    return Ended(status, bytes(texts[0]), bytes(texts[1]))


def _collect(
    selector: selectors.BaseSelector,
    pid: int,
    most: int,
    ends: float,
    *,
    is_alone: bool,
) -> None:
    """Read the streams of ``run_child`` to their ends; raises ChildEnded."""
    since = time.monotonic()
    while selector.get_map():
        for key, _ in selector.select(LOOK_SECONDS):
            part = os.read(key.fd, CHUNK)
            since = time.monotonic()
            key.data.extend(part[: most - len(key.data)])
            if not part:
                selector.unregister(key.fileobj)
        now = time.monotonic()
        is_stuck = is_alone and now - since > PIPE_SECONDS and waits_at_pipe(pid)
        if now > ends or is_stuck:
            raise ChildEnded


def waits_at_pipe(pid: int) -> bool:
    """Return whether a process sleeps at a pipe and has no child; False where the system does not tell.

    Only Linux does. One with a child, as a git that is a script has them, waits for what the child prints.
    """
    process = Path(f"/proc/{pid}")
    try:
        place = (process / "wchan").read_bytes()
        children = (process / "task" / str(pid) / "children").read_bytes()
    except OSError:
        return False
    return place in _AT_PIPES and not children


def limit_data(pid: int, size: int) -> None:
    """Limit what a child, and the children it will have, may allocate (RLIMIT_DATA; Linux only)."""
    if sys.platform == "linux":
        # It may have ended already, or have a lower limit that cannot be raised.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (size, size))


def make_frame(value: Any) -> bytes:
    """Return a frame of JSON."""
    return frame(orjson.dumps(value))


# In the child


def read_message(stream: BinaryIO) -> bytes | None:
    """Return the next frame's message, or None at the end."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    return stream.read(measure(head))


def read_frame(stream: BinaryIO) -> Any:
    """Return the next frame's JSON, or None at the end."""
    message = read_message(stream)
    if message is None:
        return None
    return orjson.loads(message)


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
