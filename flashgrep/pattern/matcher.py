"""Matching the bytes of a file: which lines, which spans, how many; with ripgrep's line-oriented semantics.

A *finder* finds matches: `bytes.find` for a literal, RE2 for other patterns, the Pike VM for what RE2 cannot express.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import re2
from re2 import _re2

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import BadPattern
from flashgrep.pattern.pike_vm import PikeVm
from flashgrep.pattern.regex_tree import (
    ASCII_WORD,
    LAST_ASCII,
    Assertion,
    ByteSet,
    Chars,
    Concat,
    Node,
    find_required_bytes,
    plain_bytes,
    walk,
)
from flashgrep.pattern.translate import Kind, check_weight, translate
from flashgrep.pattern.unicode import word_after, word_before

Span = tuple[int, int]

NONE: Span = (-1, -1)
# RE2's limit for a compiled program and its automaton, in bytes; at the limit,
# searching gets slower, but never wrong.
MAX_MEM = 8 << 20
# The limit for patterns whose program alone exceeds MAX_MEM (`\w{50}` in Unicode).
LARGE_MEM = 96 << 20
STATE_BYTES = 16 << 20
"""The most states of a program times bytes in one call: about 0.2 s with RE2's slowest engine."""
LEAST_BYTES = 1024
MOST_LINES = 64
"""After this many lines in a row with the required bytes but no match, at 2 µs each, RE2 searches all lines at once."""
_WORD = frozenset(ASCII_WORD)
_NEITHER = ord("\n")
_UNANCHORED = re2._Anchor.UNANCHORED  # noqa: SLF001 # the wrapper's methods cost 2 µs a match, this one less than 1
MANY_BYTES: Final = 4096
LEAST_REQUIRED: Final = 3
"""Bytes; shorter strings occur in too many lines."""
_new_match = (
    tuple.__new__
)  # half of the time of LineMatch(...), which matters for ten thousand hits


class Finder(Protocol):
    """Finds the leftmost match between two offsets; (-1, -1) if there is none."""

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the first match in data[pos:end]; conditions see the bytes around that range."""
        ...


class LiteralFinder:
    """Finds a byte string."""

    __slots__ = ("_length", "_needle")

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._length = len(needle)

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next occurrence."""
        start = data.find(self._needle, pos, end)
        if start >= 0:
            return (start, start + self._length)
        return NONE


class WordFinder(LiteralFinder):
    """Finds a byte string with no word character on either side."""

    __slots__ = ()

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next occurrence that is a whole word."""
        start = data.find(self._needle, pos, end)
        while start >= 0:
            stop = start + self._length
            if start:
                before = data[start - 1]
            else:
                before = _NEITHER
            if stop < len(data):
                after = data[stop]
            else:
                after = _NEITHER
            if before <= LAST_ASCII and after <= LAST_ASCII:
                if before not in _WORD and after not in _WORD:
                    return start, stop
            elif word_before(data, start) is False and word_after(data, stop) is False:
                # Decode only next to bytes above 127. Invalid UTF-8 (None) is not a
                # boundary, as in Rust's regex.
                return start, stop
            # Advance by one byte: occurrences may overlap, and the next one may be a
            # whole word.
            start = data.find(self._needle, start + 1, end)
        return NONE


class Re2Finder:
    """A compiled RE2 program.

    RE2 cannot be interrupted, and once its cache of states is full, the time for a line is proportional to the size of
    the program: 28 ms for the largest. ``by_lines`` says that no match contains a line end, so the data can be searched
    a few lines at a time.
    """

    __slots__ = ("_match", "_most", "_program")

    def __init__(self, pattern: bytes, *, by_lines: bool = False) -> None:
        program = _re2.RE2(pattern, _options(MAX_MEM))
        if not program.ok() and b"too large" in program.error():
            program = _re2.RE2(pattern, _options(LARGE_MEM))
        if not program.ok():
            raise BadPattern(
                f"pattern cannot be compiled: {program.error().decode('latin-1')}",
                at=0,
                construct="",
            )
        self._program = program
        self._match = program.Match
        if by_lines:
            self._most = max(LEAST_BYTES, STATE_BYTES // program.ProgramSize())
        else:
            self._most = sys.maxsize

    def find(self, data: bytes, pos: int, end: int) -> Span:
        """Return the span of the next match."""
        while end - pos > self._most:
            # Split after a line end, so that no match is split.
            stop = data.find(b"\n", pos + self._most, end) + 1 or end
            part: Span = self._match(_UNANCHORED, data, pos, stop)[0]
            if part[0] >= 0:
                return part
            checkpoint()
            pos = stop
        span: Span = self._match(_UNANCHORED, data, pos, end)[0]
        return span


class RequiredFinder:
    """Finds matches within a line that must contain a byte string, by searching only the lines that have it.

    `bytes.find` reads 3 GB/s, RE2 only 0.3 GB/s if the pattern begins with a class.
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
            # Not before ``pos``: matches before it have been reported.
            start = max(pos, data.rfind(b"\n", pos, at) + 1)
            stop = data.find(b"\n", at, end)
            span = self._finder.find(data, start, end if stop < 0 else stop)
            if span[0] >= 0 or stop < 0:
                return span
            pos = stop + 1
        # Nearly every line here has the bytes, so looking for them costs more than it
        # saves.
        return self._finder.find(data, pos, end)


class LineMatch(NamedTuple):
    """A matching line, or the lines of touching matches: numbers from 1, byte offsets without the last line end."""

    number: int
    end_number: int
    start: int
    end: int
    spans: tuple[Span, ...]


def _find_literal(node: Node) -> Finder | None:
    """Return the finder for a pattern that is a fixed text, perhaps as a whole word."""
    match node:
        case Concat(
            (
                Concat((Assertion("half_start", False), inner)),
                Assertion("half_end", False),
            )
        ):
            # -w with a literal: bytes.find and a check of both neighbours are far
            # faster than RE2.
            word = plain_bytes(inner)
            if word:
                return WordFinder(word)
            return None
        case _:
            text = plain_bytes(node)
            if text:
                return LiteralFinder(text)
            return None


class Matcher:
    """A compiled pattern; thread-safe."""

    def __init__(
        self, node: Node, *, multiline: bool = False, crlf: bool = False
    ) -> None:
        looks = {part.kind for part in walk(node) if isinstance(part, Assertion)}
        self._node = node
        self._crlf = crlf
        self._sees_carriage = any(kind.endswith("crlf") for kind in looks)
        # Only these patterns match differently in multiline mode; all others are
        # searched by lines, which is faster.
        self.crosses_lines = multiline and (
            any(kind.startswith(("line", "text")) for kind in looks)
            or any(
                isinstance(part, Chars | ByteSet) and ord("\n") in part.set
                for part in walk(node)
            )
        )
        self._kinds: dict[Kind, tuple[Finder, bool]] = {}
        self._literal = _find_literal(node)
        self._required = b""
        if self._literal is None:
            check_weight(node)
            # If every match begins with fixed bytes, RE2 itself finds those just as
            # fast.
            begins_plain = (
                isinstance(node, Concat)
                and plain_bytes(Concat(node.parts[:LEAST_REQUIRED])) is not None
            )
            if not self.crosses_lines and not begins_plain:
                required = find_required_bytes(node)
                self._required = required if len(required) >= LEAST_REQUIRED else b""

    def search(self, data: bytes) -> bool:
        """Return whether any line matches."""
        if not self.crosses_lines:
            finder, exact = self._finder(data)
            start = finder.find(data, 0, len(data))[0]
            # An inexact finder may match too much but never too little, so "no match"
            # is certain. An empty match at the very end may be after the last line end,
            # on no line.
            if start < 0 or (exact and start < len(data)):
                return start >= 0
        return next(self.lines(data, limit=1), None) is not None

    def lines(
        self, data: bytes, *, all_spans: bool = False, limit: int | None = None
    ) -> Iterator[LineMatch]:
        """Yield at most `limit` matching lines in order, each with its first span or with all its spans."""
        matches = (self._line_blocks if self.crosses_lines else self._single_lines)(
            data, all_spans=all_spans
        )
        if limit is None:
            return matches
        return (line for _, line in zip(range(limit), matches, strict=False))

    def count_lines(self, data: bytes) -> int:
        """Return how many lines match; if matches may cross lines, how many lines they cover."""
        if self.crosses_lines:
            return sum(
                line.end_number - line.number + 1
                for line in self._line_blocks(data, all_spans=False)
            )
        finder, exact = self._finder(data)
        if not exact:
            return sum(1 for _ in self._single_lines(data, all_spans=False))
        find = finder.find
        pos = 0
        end = len(data)
        lines = 0
        while pos < end:
            checkpoint()
            start, stop = find(data, pos, end)
            if start < 0:
                break
            # Continue at the next line: a line counts once, however many matches it
            # has.
            pos = data.find(b"\n", stop) + 1 or end
            lines += start < end or data[end - 1] != ord("\n")
        return lines

    @cached_property
    def _pike_vm(self) -> PikeVm:
        return PikeVm(self._node)

    def _finder(self, data: bytes) -> tuple[Finder, bool]:
        """Return the finder for this kind of text, and whether its matches are exact."""
        if self._literal is not None:
            return self._literal, True
        kind = Kind(
            ascii=data.isascii(), carriage=self._sees_carriage and b"\r" in data
        )
        # At most four kinds. If two threads compile one at the same time, the second
        # replaces an equal one.
        found_kind = self._kinds.get(kind)
        if found_kind is None:
            translation = translate(self._node, kind)
            finder: Finder = Re2Finder(
                translation.pattern, by_lines=not self.crosses_lines
            )
            if self._required:
                finder = RequiredFinder(finder, self._required)
            found_kind = self._kinds[kind] = finder, translation.exact
        return found_kind

    def _single_lines(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        finder, exact = self._finder(data)
        pos = 0
        end = len(data)
        number = 1
        counted = 0
        while pos < end:
            checkpoint()
            start, stop = finder.find(data, pos, end)
            if start < 0:
                return
            line_start = data.rfind(b"\n", 0, start) + 1
            line_end = data.find(b"\n", stop)
            if line_end < 0:
                line_end = end
                if line_start == end:
                    return  # an empty match after the last line end is on no line
            pos = line_end + 1
            confirming = finder
            if not exact:
                # An exact finder for this line: RE2 if the line is simpler than the
                # file, otherwise the Pike VM.
                line_finder, line_exact = self._finder(data[line_start:line_end])
                confirming = line_finder if line_exact else self._pike_vm
                start, stop = confirming.find(data, line_start, line_end)
                if start < 0:
                    continue
            spans: tuple[Span, ...] = ((start, stop),)
            if all_spans:
                # Like ripgrep, report no span within a CRLF, and no empty one after the
                # last byte of the file.
                before_crlf = (
                    self._crlf and data[line_end - 1 : line_end + 1] == b"\r\n"
                )
                all_of_line = spans_between(
                    confirming, data, line_start, line_end - before_crlf
                )
                spans = tuple(span for span in all_of_line if span[0] < end)
            # Count line feeds from the previous hit on, so that the data is scanned
            # only once.
            number += count_line_ends(data, counted, line_start)
            counted = line_start
            yield _new_match(LineMatch, (number, number, line_start, line_end, spans))

    def _line_blocks(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        """Yield the lines of each match; matches on the same or on adjacent lines are combined."""
        finder, exact = self._finder(data)
        if not exact and finder.find(data, 0, len(data)) != NONE:
            finder = self._pike_vm  # A match from RE2 may be wrong, or end elsewhere.
        for block in find_blocks(finder, data):
            if all_spans:
                spans = tuple(span for span in block.spans if span[0] < len(data))
            else:
                spans = block.spans[:1]
            yield block._replace(spans=spans)


def count_line_ends(data: bytes, start: int, end: int) -> int:
    """Count line feeds between two offsets; numpy is three times as fast, but a call costs too much for short data."""
    if end - start < MANY_BYTES:
        return data.count(b"\n", start, end)
    return int(
        np.count_nonzero(np.frombuffer(data, np.uint8, end - start, start) == ord("\n"))
    )


def spans_between(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    """Yield all matches between two offsets."""
    return _drop_touching(_find_all(finder, data, pos, end))


def _find_all(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    while pos <= end:
        checkpoint()
        start, stop = finder.find(data, pos, end)
        if start < 0:
            return
        yield start, stop
        # Advance by one byte after an empty match, or the loop would not end.
        if start < stop:
            pos = stop
        else:
            pos = stop + 1


def _drop_touching(spans: Iterable[Span]) -> Iterator[Span]:
    """Leave out an empty match right after another match."""
    last = -1
    for start, stop in spans:
        if start < stop or stop != last:
            yield start, stop
        last = stop


def find_blocks(finder: Finder, data: bytes) -> Iterator[LineMatch]:
    """Yield the lines of all matches; matches on the same or on adjacent lines are combined."""
    number = 1
    counted = 0
    start, end = -1, -1  # Of the block, including its last line end.
    spans: list[Span] = []

    def block() -> LineMatch:
        if data[end - 1 : end] == b"\n":
            stop = end - 1
        else:
            stop = end
        return LineMatch(
            number,
            number + data.count(b"\n", start, stop),
            start,
            stop,
            tuple(_drop_touching(spans)),
        )

    for span in _find_all(finder, data, 0, len(data)):
        line_start = data.rfind(b"\n", 0, span[0]) + 1
        if line_start == len(data):
            break  # an empty match after the last line end is on no line
        ends_line = span[1] > line_start and data[span[1] - 1 : span[1]] == b"\n"
        if ends_line:
            line_end = span[1]
        else:
            line_end = data.find(b"\n", span[1]) + 1 or len(data)
        if spans and line_start > end:
            yield block()
            spans = []
        if not spans:
            start = line_start
            number += count_line_ends(data, counted, start)
            counted = start
        end = max(end, line_end)
        spans.append(span)
    if spans:
        yield block()


def _options(max_mem: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = max_mem
    # One byte is one character, so offsets count bytes, and files with invalid UTF-8
    # can be searched.
    options.encoding = re2.Options.Encoding.LATIN1
    # RE2 would write errors to stderr, which is the daemon's log.
    options.log_errors = False
    return options
