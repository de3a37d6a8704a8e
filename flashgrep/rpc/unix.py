"""The Unix socket: reachable by its owner only, from the first moment on."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from flashgrep.errors import Conflict, Forbidden
from flashgrep.registry import Session
from flashgrep.rpc.admission import Door
from flashgrep.rpc.connection import serve_connection
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.longpath import bind_unix
from flashgrep.rpc.sockets import BACKLOG, Listener, SocketStream


async def serve_unix(
    path: Path,
    dispatcher: Dispatcher,
    session: Callable[[], Session],
    *,
    task_status: TaskStatus[Path] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients of a socket at ``path`` until the dispatcher shuts down; started once it can be connected to.

    A socket left there by a dead process is replaced: the caller holds the lock that says it is dead.

    Raises:
        Forbidden: the folder is not ours alone to write to.
        Conflict: something that is no socket has the name.

    """
    door = Door(dispatcher)

    async def handle(stream: SocketStream) -> None:
        async def hung_up() -> bool:
            return stream.hung_up()

        await serve_connection(stream, session(), dispatcher, hung_up=hung_up)

    with _listening(path) as listening:
        task_status.started(path)
        await Listener(listening, dispatcher.openings, dispatcher.log).run(door.guard(handle))


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    _check_folder(path.parent)
    _remove_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.setblocking(False)
        bind_unix(listening, os.fsencode(path))
        ours = _identity(path)
        try:
            # Nobody can connect before listen, so the mode is right before the socket can be reached.
            path.chmod(0o600)
            listening.listen(BACKLOG)
            yield listening
        finally:
            if _identity(path) == ours:
                path.unlink()


def _check_folder(folder: Path) -> None:
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{folder} must belong to this user and be writable by nobody else"
        raise Forbidden(message, reason="unsafe_folder", path=str(folder))


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Conflict(f"{path} exists and is no socket", reason="destination_exists", path=str(path))
    path.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
