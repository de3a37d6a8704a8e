"""The hash that names a file's exact content."""

import hashlib
import os
import time

from flashgrep.errors import DeadlineExceeded

_BLOCK = 1 << 20


def digest(data: bytes) -> str:
    """Return the SHA-256 of the raw bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def digest_of(descriptor: int, deadline: float | None = None) -> str:
    """Return the SHA-256 of an open file, read block by block."""
    hashed, offset = hashlib.sha256(), 0
    while block := os.pread(descriptor, _BLOCK, offset):
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceeded("deadline passed while the file was hashed", hashed_bytes=offset)
        hashed.update(block)
        offset += len(block)
    return hashed.hexdigest()
