"""The Unix socket: reachable only by its owner, from the first moment."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from flashgrep.base.errors import Conflict, Forbidden
from flashgrep.base.paths import check_private
from flashgrep.base.registry import Session
from flashgrep.rpc.connection import Connection
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

    A socket left by a dead process is replaced: the caller holds the lock that proves it is dead.

    Raises:
        Forbidden: others may write to the folder.
        Conflict: something that is not a socket has the name.

    """

    async def serve(stream: SocketStream) -> None:
        await Connection(stream, session(), dispatcher, stream.hung_up).serve()

    with _listen(path) as listening:
        task_status.started(path)
        await Listener(listening, dispatcher).run(serve)


def check_place(path: Path) -> None:
    """Refuse a place where no socket can be made: raises Forbidden and Conflict as ``serve_unix``."""
    try:
        check_private(str(path.parent))
    except PermissionError as error:
        raise Forbidden(
            str(error), reason="unsafe_folder", path=str(path.parent)
        ) from None
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise Conflict(
                f"{path} exists and is no socket",
                reason="destination_exists",
                path=str(path),
            )


@contextmanager
def _listen(path: Path) -> Iterator[socket.socket]:
    check_place(path)
    # A dead daemon's socket: the caller holds its lock, so nobody listens there.
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.setblocking(False)
        bind_unix(listening, os.fsencode(path))
        # By inode: at the end we may remove only our own socket.
        identity = _identify(path)
        try:
            # Nobody can connect before listen, so the mode is set before the socket can
            # be reached.
            path.chmod(0o600)
            listening.listen(BACKLOG)
            yield listening
        finally:
            if _identify(path) == identity:  # else another daemon listens there now
                path.unlink()


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
