"""TCP on the loopback address: for the same user, or for whoever shows the token.

Who is at the other end of a connection is read from the system's tables of sockets, once the client has begun to speak.
"""

import errno
import hmac
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from flashgrep.base.errors import Busy, Forbidden, InvalidParams
from flashgrep.base.registry import Capabilities, Session
from flashgrep.rpc.connection import Connection
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import Params
from flashgrep.rpc.peers import Address, PeerQuestions
from flashgrep.rpc.sockets import (
    BACKLOG,
    Listener,
    SocketStream,
    UnknownConnections,
)

HOST = "127.0.0.1"

FindUid: TypeAlias = Callable[[Address, Address], Awaitable[int | None]]
"""Finds the user of the socket bound to ``local`` and connected to ``remote``; None: not known."""

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
TRIES = 3
"""Number of readings after which a socket found in none of them counts as nobody's."""
MOST_UNKNOWN = 32
"""Most open connections whose user is unknown. Our own clients send a line at once, which identifies them."""
TIME_WAIT = b"06"
ORPHAN = b"0"
"""The inode shown for a socket no process holds any more; the kernel may then show root as its user."""


class AuthResult(TypedDict):
    """What the connection may do from now on."""

    authenticated: bool
    may_write: bool


def auth_extension(token: Callable[[], str]) -> Extension:
    """Return the ``auth`` method; ``token`` is read at each call. A read-only connection stays read-only."""

    async def auth(context: RequestContext, params: Params) -> AuthResult:
        if isinstance(params, dict):
            param = params.get("token")
        else:
            param = next(iter(params), None)
        if not isinstance(param, str):
            raise InvalidParams("auth: token: a string is required", field="token")
        # In constant time: how long it takes must not tell how much of a guess was
        # right.
        is_right = hmac.compare_digest(
            param.encode("utf-8", "replace"), token().encode()
        )
        if not param or not is_right:
            raise Forbidden("wrong token", reason="auth_required")
        session = context.session
        session.authenticated = session.has_token = True
        return {"authenticated": True, "may_write": session.may_write}

    return auth


async def serve_tcp(
    dispatcher: Dispatcher,
    session: Callable[[], Session],
    *,
    port: int,
    further_ports: int = 20,
    find_uid: FindUid | None = None,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients of a loopback port until the dispatcher shuts down; started with the port bound.

    If the port is in use, the next free one of ``further_ports`` is taken; port 0 takes any. ``session`` makes a
    client's session; its rights are narrowed here: another user may only call ``auth``, and nobody may write without
    the token.

    Raises:
        Busy: no port is free.

    """
    lookup = PeerLookup()
    find = find_uid or lookup.find_uid
    unknown = UnknownConnections[SocketStream](MOST_UNKNOWN)

    async def serve(stream: SocketStream) -> None:
        await _serve_client(stream, session(), dispatcher, find, unknown)

    with closing(lookup), _listen(port, further_ports) as listening:
        task_status.started(listening.getsockname()[1])
        await Listener(listening, dispatcher).run(serve)


async def _serve_client(
    stream: SocketStream,
    session: Session,
    dispatcher: Dispatcher,
    find_uid: FindUid,
    unknown: UnknownConnections[SocketStream],
) -> None:
    try:
        stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own_address = stream.socket.getsockname()
        peer = stream.socket.getpeername()
    except OSError:  # reset before we came to it
        return
    # Until the lookup or the token says otherwise, a stranger may send no more than a
    # call of auth.
    session.authenticated = False
    writes: Literal["with_token", "never"] = (
        "never" if session.capabilities.writes == "never" else "with_token"
    )
    session.capabilities = Capabilities(writes=writes)
    session.wire = "tcp"
    uid: int | None = None

    async def admit() -> None:
        nonlocal uid
        # Only after its first byte, so that a flood of silent connections does not
        # cause readings of the tables.
        unknown.begin_lookup(stream)
        uid = await find_uid(peer, own_address)
        session.authenticated = uid is not None and uid == os.geteuid()
        unknown.end_lookup(stream, is_ours=session.authenticated)

    async def hung_up() -> bool:
        # A client that closed without a reset looks as if it still listens, but its
        # socket is gone from the tables. Without tables nobody was identified by them
        # either.
        return await stream.hung_up() or (
            uid is not None and await find_uid(peer, own_address) is None
        )

    connection = Connection(stream, session, dispatcher, hung_up)
    unknown.add(stream, connection.abort)
    try:
        await connection.serve(
            admit=admit, authenticated=lambda: unknown.discard(stream)
        )
    finally:
        unknown.discard(stream)


def _listen(port: int, further: int) -> socket.socket:
    if port:
        ports = range(port, port + further + 1)
    else:
        ports = range(1)
    for candidate in ports:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # connections just closed do not count
            listening.bind((HOST, candidate))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            # Another user's socket or a reserved range: the next port may do.
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
        else:
            listening.setblocking(False)
            return listening
    raise Busy(f"no free port from {ports[0]} to {ports[-1]}", reason="port_in_use")


class PeerLookup:
    """Asks the kernel about one socket; where it does not answer that, reads the tables of all."""

    def __init__(self) -> None:
        self._questions = PeerQuestions()
        self._table = PeerTable()

    async def find_uid(self, local: Address, remote: Address) -> int | None:
        """Return the user owning the connected socket that is ``local`` at its own end; None: not known."""
        uid = self._questions.find_uid(local, remote)
        # Strangers who hang up at once would make us read the tables for nothing.
        if uid is not None or self._questions.is_proven:
            return uid
        return await self._table.find_uid(local, remote)

    def close(self) -> None:
        """Ask no more."""
        self._questions.close()


class PeerTable:
    """Linux's tables of TCP sockets; one reading answers everyone who asked before it began.

    Reading takes milliseconds if thousands of connections are open, and any user can open them. So there is one reading
    at a time, in its own thread, followed by a pause as long as it took.
    """

    def __init__(self) -> None:
        self._reading = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)
        self._begun = 0
        self._rows: dict[bytes, int] = {}
        self._rows_of = 0  # which reading the rows are of
        self._not_before = 0.0

    async def find_uid(self, local: Address, remote: Address) -> int | None:
        """Return the user owning the connected socket that is ``local`` at its own end; None: not known."""
        if sys.platform != "linux":
            return None
        for _ in range(
            TRIES
        ):  # a table is not read atomically, so a row may be missed once
            rows = await self._read()
            for is_mapped in (False, True):
                ends = f"{_format_end(local, is_mapped=is_mapped)} {_format_end(remote, is_mapped=is_mapped)}"
                uid = rows.get(ends.encode())
                if uid is not None:
                    return uid
        return None

    async def _read(self) -> dict[bytes, int]:
        """Return the rows of a reading that began after now."""
        # A reading in progress may have passed our row before the client connected;
        # only a later one is certain.
        reading_before = self._begun
        async with self._reading:
            if (
                self._rows_of <= reading_before
            ):  # else somebody who waited for the lock before us has read since
                # At most half of a core goes into readings, however many connections
                # ask.
                await anyio.sleep_until(self._not_before)
                self._begun += 1
                reading = self._begun
                started = anyio.current_time()
                rows = await anyio.to_thread.run_sync(read_tables, limiter=self._thread)
                end = anyio.current_time()
                self._rows = rows
                self._rows_of = reading
                self._not_before = end + (end - started)
        return self._rows


def read_tables() -> dict[bytes, int]:
    """Return the users of all connected sockets by both ends, in the form of the tables."""
    found_rows: dict[bytes, int] = {}
    for table in TABLES:
        try:
            rows = table.read_bytes().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _number, local, remote, rest = row.split(maxsplit=3)
            state, _queues, _timer, _retransmissions, uid, _timeout, inode = rest.split(
                maxsplit=7
            )[:7]
            if state != TIME_WAIT and inode != ORPHAN:
                found_rows[local + b" " + remote] = int(uid)
    return found_rows


def _format_end(address: Address, *, is_mapped: bool) -> str:
    """Format an address as in the tables: each 32 bits in native byte order; mapped: as IPv6."""
    host, port = address
    if is_mapped:
        prefix = (
            f"0000000000000000{struct.unpack('=I', bytes([0, 0, 255, 255]))[0]:08X}"
        )
    else:
        prefix = ""
    return f"{prefix}{struct.unpack('=I', IPv4Address(host).packed)[0]:08X}:{port:04X}"
