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


async def peer_uid(local: Address, remote: Address) -> int | None:
    """Return the user owning the connected socket that is ``local`` at its own end; None where that is not known.

    Read from Linux's tables of TCP sockets. A table is not read in one piece, so a row may be missed once.
    """
    if sys.platform != "linux":
        return None
    for pause in (0.0, 0.005, 0.02):
        await anyio.sleep(pause)
        uid = await anyio.to_thread.run_sync(_look_up, local, remote)
        if uid is not None:
            return uid
    return None


def same_user(uid: int | None) -> bool:
    """Tell whether ``uid`` is the user we run as."""
    return uid is not None and uid == os.geteuid()


def _look_up(local: Address, remote: Address) -> int | None:
    for table, mapped in zip(_TABLES, (False, True), strict=True):
        ends = f" {_end(local, mapped=mapped)} {_end(remote, mapped=mapped)} ".encode()
        try:
            rows = table.read_bytes()
        except OSError:
            continue
        found = rows.find(ends)
        if found >= 0:
            return _owner(rows[found + len(ends) :].split(maxsplit=7))
    return None


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
