"""Where output goes: gathered into pieces, counted as ripgrep counts it, coloured by ripgrep's default colours."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

RESET = b"\x1b[0m"
PATH = RESET + b"\x1b[35m"
LINE = RESET + b"\x1b[32m"
COLUMN = RESET
MATCH = RESET + b"\x1b[1m\x1b[31m"
PIECE = 1 << 20
"""Bytes gathered before they are sent: most answers are one piece, and come with the end of the call."""


class Output:
    """Standard output: ``count`` is what was written since ``restart``, ``total`` in all; escapes do not count."""

    def __init__(self, send: Callable[[bytes], None], *, color: bool = False) -> None:
        self.color = color
        self.count = 0
        self.total = 0
        self._send = send
        self._parts: list[bytes] = []
        self._size = 0

    def restart(self) -> None:
        """Count from nothing again: a new file begins."""
        self.count = 0

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self._parts.append(data)
        size = len(data)
        self.count += size
        self.total += size
        self._size += size
        if self._size >= PIECE:
            self.flush()

    def escape(self, sequence: bytes) -> None:
        """Write a sequence for the terminal, if there are colours."""
        if self.color:
            self._parts.append(sequence)

    def paint(self, color: bytes, data: bytes) -> None:
        """Write bytes in a colour."""
        self.escape(color)
        self.write(data)
        self.escape(RESET)

    def flush(self) -> None:
        """Send what was gathered, waiting until it has been taken."""
        self._send(self.take())

    def take(self) -> bytes:
        """Return what was gathered and not sent yet."""
        data = b"".join(self._parts)
        self._parts = []
        self._size = 0
        return data


@dataclass(slots=True)
class Stats:
    """ripgrep's figures of one file or of all; time in nanoseconds."""

    elapsed: int = 0
    searches: int = 0
    searches_with_match: int = 0
    bytes_searched: int = 0
    bytes_printed: int = 0
    matched_lines: int = 0
    matches: int = 0
    began: int = field(default_factory=time.perf_counter_ns)

    def end(self, *, searched: int, printed: int, found: bool) -> None:
        """Note the end of a file's search."""
        self.elapsed = time.perf_counter_ns() - self.began
        self.searches = 1
        self.searches_with_match = int(found)
        self.bytes_searched = searched
        self.bytes_printed = printed

    def add(self, other: "Stats") -> None:
        """Add the figures of one file."""
        self.elapsed += other.elapsed
        self.searches += other.searches
        self.searches_with_match += other.searches_with_match
        self.bytes_searched += other.bytes_searched
        self.bytes_printed += other.bytes_printed
        self.matched_lines += other.matched_lines
        self.matches += other.matches

    def as_text(self) -> bytes:
        """Return the figures of all files as ``--stats`` prints them."""
        total = time.perf_counter_ns() - self.began
        return (
            f"\n{self.matches} matches\n{self.matched_lines} matched lines\n"
            f"{self.searches_with_match} files contained matches\n{self.searches} files searched\n"
            f"{self.bytes_printed} bytes printed\n{self.bytes_searched} bytes searched\n"
            f"{self.elapsed / 1e9:.6f} seconds spent searching\n{total / 1e9:.6f} seconds total\n"
        ).encode()
