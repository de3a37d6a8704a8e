"""TCP on the loopback address: for the same user, or for whoever shows the token."""

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import anyio
from anyio.abc import TaskStatus

from flashgrep.errors import Busy
from flashgrep.registry import Capabilities, Session
from flashgrep.rpc.admission import Door, PeerTable, PeerUid, Strangers, same_user
from flashgrep.rpc.connection import Connection
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.sockets import BACKLOG, Listener, SocketStream

HOST = "127.0.0.1"
PORT = 7777


async def serve_tcp(
    dispatcher: Dispatcher,
    session: Callable[[], Session],
    *,
    port: int = PORT,
    further_ports: int = 20,
    owner: PeerUid | None = None,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients of a loopback port until the dispatcher shuts down; started with the port bound.

    A port in use is passed over for the next free one of ``further_ports``; port 0 takes any. ``session`` makes the
    session of a client; its rights are narrowed here: another user's may call ``auth`` only, nobody may write without.

    Raises:
        Busy: no port is free.

    """
    door = Door(dispatcher)
    admission = _Admission(dispatcher, owner or PeerTable().uid, Strangers())

    async def handle(stream: SocketStream) -> None:
        await admission.serve(stream, session())

    with _listen(port, further_ports) as listening:
        task_status.started(listening.getsockname()[1])
        await Listener(listening, dispatcher.openings, dispatcher.log).run(door.guard(handle))


@dataclass(frozen=True, slots=True)
class _Admission:
    """Serves the clients of one port, each with the rights of who it is."""

    dispatcher: Dispatcher
    owner: PeerUid
    strangers: Strangers

    async def serve(self, stream: SocketStream, session: Session) -> None:
        """Serve a client; who it is is looked up once it has begun to speak."""
        try:
            stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ours, theirs = stream.socket.getsockname(), stream.socket.getpeername()
        except OSError:  # reset before we came to it
            return
        session.authenticated = False
        writes: Literal["with_token", "never"] = "never" if session.capabilities.writes == "never" else "with_token"
        session.capabilities = Capabilities(writes=writes)
        session.wire = "tcp"
        uid: int | None = None

        async def admit() -> None:
            nonlocal uid
            self.strangers.asking(stream)
            uid = await self.owner(theirs, ours)
            session.authenticated = same_user(uid)
            self.strangers.known(stream, ours=session.authenticated)

        async def hung_up() -> bool:
            return stream.hung_up() or (uid is not None and await self.owner(theirs, ours) is None)

        connection = Connection(stream, session, self.dispatcher, hung_up)
        self.strangers.enter(stream, connection.abort)
        try:
            await connection.serve(admit=admit, authenticated=lambda: self.strangers.leave(stream))
        finally:
            self.strangers.leave(stream)


def _listen(port: int, further: int) -> socket.socket:
    ports = range(port, port + further + 1) if port else range(1)
    for candidate in ports:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections just closed do not count
            listening.bind((HOST, candidate))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
        else:
            listening.setblocking(False)
            return listening
    raise Busy(f"no free port from {ports[0]} to {ports[-1]}", reason="port_in_use")
