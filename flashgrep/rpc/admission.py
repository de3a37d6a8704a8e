"""Who may come in: the bound on open connections, and whose the other end of a loopback connection is."""

import os
import struct
import sys
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.to_thread

from flashgrep.errors import Busy
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import error_line
from flashgrep.rpc.sockets import Handle, SocketStream

Address: TypeAlias = tuple[str, int]
"""An IPv4 address and a port."""
PeerUid: TypeAlias = Callable[[Address, Address], Awaitable[int | None]]
"""Tells the user of the socket that is ``local`` at its own end and talks to ``remote``; None: not known."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
TRIES = 3
"""Readings of the tables until a socket that is in none of them is given up."""
MOST_UNKNOWN = 32
"""Open connections whose user is not known to be ours: whoever is ours sends a line at once."""
_TIME_WAIT = b"06"
_ORPHAN = b"0"


class Door:
    """Counts the clients of one listener, and keeps a failing one from taking the others along."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._inside = 0

    def guard(self, handle: Handle) -> Handle:
        """Return ``handle`` for as many clients as may be open; further ones are told that we are busy."""

        async def guarded(stream: SocketStream) -> None:
            if self._inside >= self._dispatcher.limits.connections:
                await _turn_away(stream, self._dispatcher.limits.connections)
                return
            self._inside += 1
            try:
                await handle(stream)
            except Exception:  # a broken connection ends itself only
                self._dispatcher.log.exception("connection failed")
            finally:
                self._inside -= 1
                stream.socket.close()

        return guarded


class PeerTable:
    """Linux's tables of TCP sockets; one reading answers all who asked before it began.

    Reading takes milliseconds where thousands of connections are open, and whoever opens them decides that: so there is
    one reading at a time, in a thread of its own, and a pause as long as it took before the next.
    """

    def __init__(self) -> None:
        self._reading = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)
        self._begun = 0
        self._rows: dict[bytes, int] = {}
        self._rows_of = 0  # which reading the rows are of
        self._not_before = 0.0

    async def uid(self, local: Address, remote: Address) -> int | None:
        """Return the user owning the connected socket that is ``local`` at its own end; None: not known.

        A table is not read in one piece, so a row may be missed once.
        """
        if sys.platform != "linux":
            return None
        for _ in range(TRIES):
            rows = await self._read()
            for mapped in (False, True):
                uid = rows.get(f"{_end(local, mapped=mapped)} {_end(remote, mapped=mapped)}".encode())
                if uid is not None:
                    return uid
        return None

    async def _read(self) -> dict[bytes, int]:
        """Return the rows of a reading that began after now."""
        asked = self._begun
        async with self._reading:
            if self._rows_of <= asked:
                await anyio.sleep_until(self._not_before)
                self._begun += 1
                reading, started = self._begun, anyio.current_time()
                rows = await anyio.to_thread.run_sync(_read_tables, limiter=self._thread)
                ended = anyio.current_time()
                self._rows, self._rows_of = rows, reading
                self._not_before = ended + (ended - started)
        return self._rows


class Strangers:
    """Connections that have not shown who they are: few, and the oldest gives way, a silent one before all others."""

    def __init__(self, most: int = MOST_UNKNOWN) -> None:
        self._most = most
        self._open: dict[SocketStream, Callable[[], None]] = {}
        self._asking: set[SocketStream] = set()

    def enter(self, stream: SocketStream, close: Callable[[], None]) -> None:
        """Count a connection, and ``close`` another where there are too many; one being looked up is spared."""
        if len(self._open) - len(self._asking) >= self._most:
            waiting = [other for other in self._open if other not in self._asking]
            # What it sent may be here and unread: whoever connects and asks must not lose to a crowd that came after.
            silent = (other for other in waiting if not other.has_input())
            self._open.pop(next(silent, waiting[0]))()
        self._open[stream] = close

    def asking(self, stream: SocketStream) -> None:
        """Spare a connection from now on: it has begun to speak, and is being looked up."""
        self._asking.add(stream)

    def known(self, stream: SocketStream, *, ours: bool) -> None:
        """Note what looking up a connection said: ours is no stranger, another is one that can give way again."""
        self._asking.discard(stream)
        if ours:
            self._open.pop(stream, None)

    def leave(self, stream: SocketStream) -> None:
        """Forget a connection: it is closed, or has shown the token."""
        self._asking.discard(stream)
        self._open.pop(stream, None)


def same_user(uid: int | None) -> bool:
    """Tell whether ``uid`` is the user we run as."""
    return uid is not None and uid == os.geteuid()


def _read_tables() -> dict[bytes, int]:
    """Return the users of all connected sockets by both ends, as the tables write them."""
    found: dict[bytes, int] = {}
    for table in _TABLES:
        try:
            rows = table.read_bytes().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _number, local, remote, rest = row.split(maxsplit=3)
            uid = _owner(rest.split(maxsplit=7))
            if uid is not None:
                found[local + b" " + remote] = uid
    return found


def _owner(row: list[bytes]) -> int | None:
    """Return the user of a row from its state on: state, queues, timer, retransmissions, uid, timeout, inode.

    A socket no process holds any more has inode 0, and the kernel then may show root as its user.
    """
    state, _queues, _timer, _retransmissions, uid, _timeout, inode = row[:7]
    return None if state == _TIME_WAIT or inode == _ORPHAN else int(uid)


def _end(address: Address, *, mapped: bool) -> str:
    host, port = address
    words = struct.unpack("=I", IPv4Address(host).packed)
    prefix = "0000000000000000" + _hex_word(b"\x00\x00\xff\xff") if mapped else ""
    return f"{prefix}{words[0]:08X}:{port:04X}"


def _hex_word(packed: bytes) -> str:
    return f"{struct.unpack('=I', packed)[0]:08X}"


async def _turn_away(stream: SocketStream, limit: int) -> None:
    line = error_line(None, Busy("too many connections", limit_connections=limit)) + b"\n"
    try:
        with anyio.move_on_after(1):
            await stream.send(line)
            await stream.send_eof()
    except anyio.BrokenResourceError:
        pass  # gone already
    finally:
        await stream.aclose()
