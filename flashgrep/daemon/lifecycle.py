"""One daemon per user: the lock that ensures it, and stopping its holder."""

import errno
import fcntl
import os
import signal
import time
from contextlib import suppress

from flashgrep.base.errors import Busy
from flashgrep.base.paths import Paths, make_private
from flashgrep.base.plain_files import open_plain_file

HANDOVER_SECONDS = 15.0
"""A stopping daemon gives its calls 5 s and its indexers as much; its successor waits longer than both together."""
STOP_SECONDS = 20.0
"""Seconds a stop waits for the lock before it kills."""
POLL_SECONDS = 0.02
"""flock has no timeout, so it is polled; a stop or a hand-over is noticed at most this late."""


def hold_lock(paths: Paths, wait_seconds: float = HANDOVER_SECONDS) -> None:
    """Take the daemon's lock and hold it until this process exits; the file names the holder.

    If the lock is free, no daemon is left, not even one that is shutting down.

    Raises:
        Busy: another daemon keeps holding it.

    """
    make_private(paths.state)
    descriptor = open_plain_file(paths.lock, os.O_RDWR | os.O_CREAT)
    until = time.monotonic() + wait_seconds
    while not _try_lock(descriptor):
        if time.monotonic() >= until:
            os.close(descriptor)
            pid = find_holder(paths)
            raise Busy(f"another daemon runs already (process {pid})", holder=pid)
        time.sleep(POLL_SECONDS)
    with suppress(
        OSError
    ):  # a full disk: the lock still holds, but its holder is unnamed
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def find_holder(paths: Paths) -> int | None:
    """Return the process id of the daemon that holds the lock now, or None."""
    try:
        descriptor = open_plain_file(paths.lock, os.O_RDWR)
    except OSError:
        return None
    try:
        if _try_lock(descriptor):
            return None
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace")
        if text.isdigit():
            return int(text)
        return None
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return False
        raise
    return True


def wait_until_free(paths: Paths, seconds: float) -> bool:
    """Wait until no daemon holds the lock; return whether that came true in time."""
    until = time.monotonic() + seconds
    while find_holder(paths) is not None:
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_SECONDS)
    return True


def terminate(paths: Paths) -> bool:
    """End the daemon that holds the lock by signals: asked first, killed after STOP_SECONDS; say whether it is gone."""
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5.0)):
        pid = find_holder(paths)
        if pid is None:
            return True
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_until_free(paths, seconds):
            return True
    return False
