"""Frames: how our processes exchange messages. Four bytes of length (little-endian), then so many bytes.

What a message is, JSON or a pickle, its two ends agree on; both are of one version. Only an indexer's workers have the
standard library's connections, with a framing of its own.
"""

import os
from typing import Final

LENGTH: Final = 4
"""Bytes of a length."""


def frame(message: bytes) -> bytes:
    """Return a message as it is sent."""
    return len(message).to_bytes(LENGTH, "little") + message


def measure(data: bytes | bytearray) -> int:
    """Return the length of the message that a frame's first bytes announce."""
    return int.from_bytes(data[:LENGTH], "little")


def receive(descriptor: int, most: int) -> bytearray | None:
    """Return the next message, and read nothing beyond it; None at the end, or if it has more than ``most`` bytes."""
    # A length beyond the bound is no message of ours; nothing is allocated for it.
    head = _read(descriptor, LENGTH)
    if head is None or measure(head) > most:
        return None
    return _read(descriptor, measure(head))


def _read(descriptor: int, size: int) -> bytearray | None:
    # Filled in place: a table of 78,000 files takes 13 MB, which is not copied.
    data = bytearray(size)
    unread = memoryview(data)
    while unread:
        count = os.readv(descriptor, [unread])
        if not count:
            return None
        unread = unread[count:]
    return data
