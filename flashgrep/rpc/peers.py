"""Which user's connection a loopback client's is: asked of the kernel for one socket, in constant time (Linux).

Reading the tables of all sockets takes longer the more connections there are, and any user can open thousands.
"""

import socket
import struct
import sys

SOCK_DIAG = 4
BY_FAMILY = 20
"""The type of a question about one socket, and of its answer."""
IS_REQUEST = 1
ALL_STATES = 0xFFFFFFFF
ANY_COOKIE = (0xFFFFFFFF, 0xFFFFFFFF)
TIME_WAIT = 6
HEADER = struct.Struct("=IHHII")
"""Length, type, flags, number and sender of a message."""
QUESTION = struct.Struct("=BBBBI")
"""Family, protocol, extensions, padding and states; the socket's ends follow."""
ENDS = struct.Struct("!HH16s16s")
REST_OF_ENDS = struct.Struct("=III")
"""The interface, and the cookie."""
ANSWER = struct.Struct("=BBBB48xIIIII")
"""Family, state, timer and retransmissions; then, after the ends: expiry, two queues, user and inode."""
MOST_ANSWER = 8192

Address = tuple[str, int]
"""An IPv4 address and a port."""


class PeerQuestions:
    """Asks the kernel's socket diagnosis about one socket at a time."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._number = 0
        self.is_proven = False
        """Whether it has ever found a socket: where it cannot be asked, its answers look like "there is none"."""

    def find_uid(self, local: Address, remote: Address) -> int | None:
        """Return the user owning the connected socket that is ``local`` at its own end; None: there is none."""
        try:
            answer = self._ask(local, remote)
        except (OSError, ValueError):
            self.close()
            return None
        if answer is None:
            return None
        _family, state, _timer, _retries, _expiry, _received, _sent, uid, inode = answer
        self.is_proven = True
        # No process holds it any more, and the kernel may then show root as its user.
        if state == TIME_WAIT or not inode:
            return None
        return int(uid)

    def close(self) -> None:
        """Close the socket; the next question opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, local: Address, remote: Address) -> tuple[int, ...] | None:
        if self._socket is None:
            self._socket = self._open()
        self._number = (self._number + 1) & 0x7FFFFFFF
        ends = ENDS.pack(local[1], remote[1], _pack_host(local), _pack_host(remote))
        body = (
            QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ALL_STATES) + ends
        )
        body += REST_OF_ENDS.pack(0, *ANY_COOKIE)
        self._socket.send(
            HEADER.pack(HEADER.size + len(body), BY_FAMILY, IS_REQUEST, self._number, 0)
            + body
        )
        # The kernel answers within the call that asks, so nothing waits here.
        answer = self._socket.recv(MOST_ANSWER)
        _length, kind, _flags, number, _sender = HEADER.unpack_from(answer)
        if number != self._number:
            raise ValueError("an answer to another question")
        if kind != BY_FAMILY or len(answer) < HEADER.size + ANSWER.size:
            return None
        return ANSWER.unpack_from(answer, HEADER.size)

    @staticmethod
    def _open() -> socket.socket:
        if sys.platform != "linux":
            raise OSError("no socket diagnosis")
        return socket.socket(
            socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, SOCK_DIAG
        )


def _pack_host(address: Address) -> bytes:
    return socket.inet_aton(address[0]) + bytes(12)
