"""One file's bytes as ripgrep's searcher sees them: decoded, cut at or cleared of NUL bytes, in its buffers.

Which of ripgrep's ways it is read by shows in the output: a memory map and a multi-line search have the whole file at
once; else a buffer is filled, searched and filled again, and a NUL byte is noticed when its buffer is filled.
"""

import codecs
import os
from dataclasses import dataclass
from stat import S_ISREG
from typing import Literal

from flashgrep.ingest.extract import BLOCK

OnNul = Literal["quit", "convert", "text"]
"""What a NUL byte does: end the search, count as a line end and hide what matches from then on, or nothing."""
MAX_SIZE = 1 << 30
"""Bytes of the largest file that is read: it is held in memory, and so are its text and the lines found."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FIRST_READ = 3
"""Bytes of ripgrep's first read, in which it looks for a byte order mark."""


class Declined(Exception):
    """A file that is not searched, and why."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """What is searched: ``nul`` is where reading met the first NUL byte of a buffered file, if it did."""

    data: bytes
    whole: bool
    on_nul: OnNul
    nul: int | None = None
    first_read: int = BLOCK
    """Bytes of the first read."""


class Fills:
    """The buffers a file is searched in: ``start`` to ``last`` is the one at hand, of which ``filled`` is read.

    A buffer starts with lines kept for context and the rest of the last line, and grows threefold when these fill it.
    """

    def __init__(self, haystack: Haystack) -> None:
        self.start = 0
        self.last = 0
        self._data = haystack.data
        self._filled = 0
        self._capacity = BLOCK
        self._first_read = haystack.first_read

    def holds(self, offset: int) -> bool:
        """Read on until the buffer holds a whole line or ``offset``, and return whether it holds ``offset``."""
        end, size = self._filled, len(self._data)
        while True:
            while end - self.start >= self._capacity:
                self._capacity *= 3
            filled = min(self.start + self._capacity if end else self._first_read, size)
            if offset < filled:
                return True
            last = self._data.rfind(b"\n", end, filled) + 1
            end = self._filled = filled
            if last:
                self.last = last
                return False

    def kept(self, lines: int) -> int:
        """Return where the last so many lines of the buffer start."""
        at = self.last
        for _ in range(lines):
            if at <= self.start:
                break
            at = max(self.start, self._data.rfind(b"\n", self.start, at - 1) + 1)
        return at

    def roll(self, start: int) -> None:
        """Drop what stands before ``start``."""
        self.start = start


def read(path: bytes, *, follow: bool) -> bytes:
    """Return a regular file's bytes; a FIFO or a device never blocks.

    Raises:
        OSError: it cannot be opened or read.
        Declined: it is no regular file, or larger than ``MAX_SIZE``.

    """
    handle = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    try:
        found = os.fstat(handle)
        if not S_ISREG(found.st_mode):
            raise Declined("not a regular file")
        if found.st_size > MAX_SIZE:
            raise Declined(f"larger than {MAX_SIZE >> 20} MiB")
        return _to_end(handle, found.st_size)
    finally:
        os.close(handle)


def _to_end(handle: int, size: int) -> bytes:
    raw = os.read(handle, size + 1)
    if len(raw) == size:
        return raw
    parts = [raw]
    while part := os.read(handle, BLOCK):
        parts.append(part)
    return b"".join(parts)


def haystack(raw: bytes, *, mapped: bool, multiline: bool, on_nul: OnNul) -> Haystack:
    """Return a file's bytes as they are searched; ``mapped``: ripgrep would map the file into memory."""
    data = _decoded(raw)
    if multiline or (mapped and data is raw):
        return Haystack(data, whole=True, on_nul=on_nul)
    nul = -1 if on_nul == "text" else data.find(0)
    if nul < 0:
        return Haystack(data, whole=False, on_nul=on_nul)
    if on_nul == "convert":
        data = data.replace(b"\0", b"\n")
    first_read = _FIRST_READ if len(data) == len(raw) else BLOCK
    return Haystack(data, whole=False, on_nul=on_nul, nul=nul, first_read=first_read)


def _decoded(raw: bytes) -> bytes:
    """Return the text of bytes with a byte order mark as UTF-8, other bytes as they are."""
    if raw.startswith(codecs.BOM_UTF8):
        return raw[len(codecs.BOM_UTF8) :]
    if raw.startswith(codecs.BOM_UTF16_LE):
        return raw[2:].decode("utf-16-le", "replace").encode()
    if raw.startswith(codecs.BOM_UTF16_BE):
        return raw[2:].decode("utf-16-be", "replace").encode()
    return raw
