"""Processes of lookup workers: forked from one that has imported everything, or started one by one.

What a start takes are imports, 0.13 s of a core that could answer meanwhile. So one process is started for several
workers: it imports, forks them, and reaps them; it ends with the last. It has one thread and no connection to an index,
so a child inherits nothing half done. That is for Linux, where a descriptor tells a process from a later one with its
id: these workers are not children of the daemon.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Protocol

from flashgrep import __version__

START_SECONDS = 30.0
"""Seconds after which a workers' parent that has not reported their ids counts as hung."""
MOST_BYTES = 1 << 10
"""Of what it says: ids."""
WRITTEN = b"\n"
"""Says that the project's table can be read."""

PROGRAM = (
    "import gc, os; gc.disable(); os.environ['OPENBLAS_NUM_THREADS'] = '1'; "
    "from flashgrep.search.lookup_worker import main; main()"
)
"""A worker's start is imports, and many wait for it: no garbage collection and no BLAS threads."""


class Process(Protocol):
    """What we need of a worker's process: a ``subprocess.Popen``, or the child of another worker process."""

    pid: int

    def kill(self) -> None:
        """Kill the process; no effect if it has exited."""

    def wait(self) -> object:
        """Wait until it has exited, and reap it."""


class _Forked:
    """A worker whose parent is ``parent``; ``siblings`` are those of its workers that nobody has waited for."""

    def __init__(
        self,
        pid: int,
        descriptor: int,
        parent: subprocess.Popen[bytes],
        siblings: "list[_Forked]",
    ) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._parent = parent
        self._siblings = siblings
        siblings.append(self)

    def kill(self) -> None:
        if self in self._siblings:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.poll()
        self._siblings.remove(self)
        os.close(self._descriptor)
        if not self._siblings:
            self._parent.wait()


def can_fork() -> bool:
    """Return whether workers can be forked: old kernels have no descriptors of processes, and sandboxes refuse them."""
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        return False
    try:
        descriptor = os.pidfd_open(os.getpid())
        try:
            signal.pidfd_send_signal(descriptor, 0)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def spawn() -> tuple[Process, socket.socket]:
    """Start one worker by itself, and return it with our end of its socket.

    Raises:
        OSError: There is no process or descriptor to be had.
    """
    connection, matching_connection = socket.socketpair()
    with matching_connection, ExitStack() as undone:
        undone.callback(connection.close)
        process = _start(matching_connection, [])
        undone.pop_all()
    return process, connection


def fork(
    count: int, load: object, started: Callable[[subprocess.Popen[bytes]], None]
) -> list[tuple[Process, socket.socket]]:
    """Fork ``count`` workers and return each with our end of its socket; blocks until their imports are done.

    ``load``: the request that all load first and reply to, in a file in memory: sent by a socket while the event loop
    is busy, each part of 200 KB waited for the interpreter's lock, 60 ms in all. ``started`` is called with the process
    that is waited for, so that it can be killed.

    Raises:
        OSError: There are no processes or descriptors left, or the process ended.
    """
    with ExitStack() as stack, ExitStack() as undone:
        sockets = []
        for _ in range(count):
            connection, matching_connection = socket.socketpair()
            stack.callback(matching_connection.close)
            undone.callback(connection.close)  # which makes running workers exit
            sockets.append((connection, matching_connection.fileno()))
        control, end = socket.socketpair()
        stack.callback(
            control.close
        )  # from then on the parent reaps workers, so that an id may be another's
        numbers = [number for _, number in sockets]
        table = os.memfd_create("flashgrep")
        stack.callback(os.close, table)
        with end:
            parent = _start(end, [table, *numbers])
        undone.callback(parent.wait)
        undone.callback(parent.kill)
        started(parent)
        control.settimeout(START_SECONDS)
        _write(table, load)  # while it imports
        control.sendall(WRITTEN)
        ids = control.recv(MOST_BYTES).split()
        if not ids:
            raise ChildProcessError("the parent of workers has ended")
        descriptors = list[int]()
        for pid in ids:
            descriptors.append(os.pidfd_open(int(pid)))
            undone.callback(os.close, descriptors[-1])
        undone.pop_all()
        siblings = list[_Forked]()
        forkeds = [
            _Forked(int(pid), descriptor, parent, siblings)
            for pid, descriptor in zip(ids, descriptors, strict=True)
        ]
        for connection, _ in sockets[len(forkeds) :]:
            connection.close()
        return [
            (process, known_connection)
            for process, (known_connection, _) in zip(forkeds, sockets, strict=False)
        ]


def _write(descriptor: int, value: object) -> None:
    """Write a value to an empty file, to be read from its beginning."""
    data = memoryview(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)


def _start(end: socket.socket, numbers: list[int]) -> subprocess.Popen[bytes]:
    """Start what serves a socket; or, with the number of a file, what forks a worker for each socket after it."""
    command = [sys.executable, "-P", "-c", PROGRAM, __version__, *map(str, numbers)]
    return subprocess.Popen(
        command,
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        cwd="/",
        pass_fds=numbers,
    )
