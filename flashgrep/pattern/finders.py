"""Finders of the next match in a buffer: `bytes.find` for a literal, RE2 for the rest."""

import sys
from typing import Protocol

import re2
from re2 import _re2

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import BadPattern
from flashgrep.pattern.charset import ASCII_WORD, LAST_ASCII
from flashgrep.pattern.unicode import word_after, word_before

Span = tuple[int, int]

NONE: Span = (-1, -1)
# RE2 keeps a compiled program and its growing automaton within this; past it the search gets slower, never wrong.
MAX_MEM = 8 << 20
# For patterns whose program alone is larger than the usual allowance (`\w{50}` in Unicode).
LARGE_MEM = 96 << 20
STATE_BYTES = 16 << 20
"""States of a program times bytes searched in one call: at most about 0.2 s with RE2's slowest engine."""
LEAST_BYTES = 1024
MOST_LINES = 64
"""Lines with the required bytes and no match, 2 µs each; behind so many in a row RE2 takes all lines at once."""
_WORD = frozenset(ASCII_WORD)
_NEITHER = ord("\n")
_UNANCHORED = re2._Anchor.UNANCHORED  # noqa: SLF001 # the wrapper's methods cost 2 µs a match, this one less than 1


class Finder(Protocol):
    """Finds the leftmost match between two offsets; (-1, -1) if there is none."""

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the first match in data[pos:end]; its conditions see the bytes around that part."""
        ...


class LiteralFinder:
    """One byte string, as it is."""

    __slots__ = ("_length", "_needle")

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._length = len(needle)

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next occurrence."""
        start = data.find(self._needle, pos, end)
        return (start, start + self._length) if start >= 0 else NONE


class WordFinder(LiteralFinder):
    """One byte string with no word character on either side."""

    __slots__ = ()

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next occurrence that is a word."""
        start = data.find(self._needle, pos, end)
        while start >= 0:
            stop = start + self._length
            before = data[start - 1] if start else _NEITHER
            after = data[stop] if stop < len(data) else _NEITHER
            if before <= LAST_ASCII and after <= LAST_ASCII:
                if before not in _WORD and after not in _WORD:
                    return start, stop
            elif word_before(data, start) is False and word_after(data, stop) is False:
                # Decoded only beside bytes above 127. Invalid UTF-8 (None) is no boundary, as in Rust's regex.
                return start, stop
            # By one byte: occurrences may overlap, and the next one may be a word where this was none.
            start = data.find(self._needle, start + 1, end)
        return NONE


class Re2Finder:
    """A compiled RE2 program.

    RE2 cannot be interrupted, and beyond its cache of states a line takes time in proportion to the program: 28 ms for
    the largest. ``by_lines`` says that no match contains a line end: the data is then searched some lines at a time.
    """

    __slots__ = ("_match", "_most", "_program")

    def __init__(self, pattern: bytes, *, by_lines: bool = False) -> None:
        program = _re2.RE2(pattern, _options(MAX_MEM))
        if not program.ok() and b"too large" in program.error():
            program = _re2.RE2(pattern, _options(LARGE_MEM))
        if not program.ok():
            raise BadPattern(f"pattern cannot be compiled: {program.error().decode('latin-1')}", at=0, construct="")
        self._program = program
        self._match = program.Match
        self._most = max(LEAST_BYTES, STATE_BYTES // program.ProgramSize()) if by_lines else sys.maxsize

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next match."""
        while end - pos > self._most:
            # Cut behind a line end, so no match within a line is cut.
            stop = data.find(b"\n", pos + self._most, end) + 1 or end
            part: Span = self._match(_UNANCHORED, data, pos, stop)[0]
            if part[0] >= 0:
                return part
            checkpoint()
            pos = stop
        found: Span = self._match(_UNANCHORED, data, pos, end)[0]
        return found


class RequiredFinder:
    """A finder of matches within a line that all contain one byte string: only lines that have it are searched.

    `bytes.find` reads 3 GB/s, RE2 0.3 where a pattern begins with a class.
    """

    __slots__ = ("_finder", "_needle")

    def __init__(self, finder: Finder, needle: bytes) -> None:
        self._finder = finder
        self._needle = needle

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next match."""
        for _ in range(MOST_LINES):
            checkpoint()
            at = data.find(self._needle, pos, end)
            if at < 0:
                return NONE
            # From ``pos`` at the earliest: what lies before it has been reported.
            start, stop = max(pos, data.rfind(b"\n", pos, at) + 1), data.find(b"\n", at, end)
            found = self._finder.find(data, start, end if stop < 0 else stop)
            if found[0] >= 0 or stop < 0:
                return found
            pos = stop + 1
        # The bytes are in nearly every line here: looking for them costs more than it spares.
        return self._finder.find(data, pos, end)


def _options(max_mem: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = max_mem
    # One byte, one character: offsets are bytes, and files with invalid UTF-8 can be searched.
    options.encoding = re2.Options.Encoding.LATIN1
    # RE2 would write to stderr, which belongs to the daemon's log.
    options.log_errors = False
    return options
