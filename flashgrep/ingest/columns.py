"""Lines of a text, and their columns as clients count them: bytes, UTF-16 units or characters, from 1.

A byte that belongs to no UTF-8 character is shown as one U+FFFD, as Go, Vim and Emacs count it: shown and kept text
have the same length, so that a place in the one is the same place in the other. It counts as one of each.
"""

import codecs
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from flashgrep.lazy import LazyAttribute

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
"""What a column counts, by the names that the Language Server Protocol has: bytes, UTF-16 units, characters."""
SHOWN: Final = "flashgrep.shown"
"""Name of the error handler for decoding UTF-8 that is to be shown."""
REPLACEMENT: Final = "\ufffd"
_BYTES_KEPT: Final = "surrogateescape"
"""Decodes a byte of no character to half of a surrogate pair, which no UTF-8 has, so that it can be encoded back."""
_NEWLINE: Final = 10
_LONGEST: Final = 4
"""Bytes of a character."""


def _replacements(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return REPLACEMENT * (error.end - error.start), error.end


codecs.register_error(SHOWN, _replacements)


class Range(TypedDict):
    """Lines and columns from 1; the end is the place after."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Lines:
    """Lines of a text, from 1."""

    data: bytes

    @LazyAttribute
    def _ends(self) -> NDArray[np.int64]:
        """Where lines end, after their line feeds; an array, since a list of a large file's takes as long again."""
        ends: NDArray[np.int64] = (np.frombuffer(self.data, np.uint8) == _NEWLINE).nonzero()[0] + 1
        return ends

    def start(self, line: int) -> int:
        """Return the offset at which a line begins; the text's end for the one after its last."""
        if line <= 1:
            return 0
        return int(self._ends[line - 2]) if line - 2 < len(self._ends) else len(self.data)

    def line(self, offset: int) -> int:
        """Return the line an offset is on."""
        return int(self._ends.searchsorted(offset, "right")) + 1

    def column(self, offset: int) -> int:
        """Return the column, in characters from 1, of an offset."""
        return len(self.data[self.data.rfind(b"\n", 0, offset) + 1 : offset].decode("utf-8", SHOWN)) + 1

    def text(self, line: int) -> str:
        """Return a line without its end."""
        end = int(self._ends[line - 1]) if line <= len(self._ends) else len(self.data)
        return self.data[self.start(line) : end].rstrip(b"\r\n").decode("utf-8", SHOWN)


def measure(text: bytes, encoding: PositionEncoding) -> int:
    """Return how many columns a piece of a line takes."""
    if encoding == "utf-8" or text.isascii():
        return len(text)
    shown = text.decode("utf-8", _BYTES_KEPT)
    return len(shown) if encoding == "utf-32" else len(shown.encode("utf-16-le", "surrogatepass")) // 2


def find_column(line: bytes, column: int, encoding: PositionEncoding) -> int | None:
    """Return the offset in a line of a column from 1: of one inside a character where that begins, None past the end.

    The column after the last character is the line's end.
    """
    units = column - 1
    if encoding == "utf-8" or line.isascii():
        for back in range(1, min(_LONGEST, units + 1)):
            start = units - back
            character = line[start : start + _LONGEST].decode("utf-8", _BYTES_KEPT)[:1]
            if len(character.encode("utf-8", _BYTES_KEPT)) > back:
                return start
        return units if units <= len(line) else None
    text = line.decode("utf-8", _BYTES_KEPT)
    if encoding == "utf-16":
        wide = text.encode("utf-16-le", "surrogatepass")
        if 2 * units > len(wide):
            return None
        head = wide[: 2 * units].decode("utf-16-le", "surrogatepass")
        if "\ud800" <= head[-1:] <= "\udbff":  # half of a character
            head = head[:-1]
    elif units > len(text):
        return None
    else:
        head = text[:units]
    return len(head.encode("utf-8", _BYTES_KEPT))


class Columns:
    """Lines and columns of a text's offsets; quick for offsets that ascend, however long a line is."""

    def __init__(self, lines: Lines, encoding: PositionEncoding) -> None:
        self._lines = lines
        self._encoding: PositionEncoding = encoding
        self._line, self._offset, self._column = 0, 0, 1
        self._next = 0
        """Where the line after that one begins."""

    def enter(self, line: int, start: int, end: int) -> None:
        """Take in which line begins and ends where, so that the lines before it need not be counted."""
        self._line, self._offset, self._next, self._column = line, start, end + 1, 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column, both from 1, of an offset at which a character begins."""
        if not self._offset <= offset < self._next:
            self._line = self._lines.line(offset)
            self._offset, self._next, self._column = self._lines.start(self._line), self._lines.start(self._line + 1), 1
        self._column += measure(self._lines.data[self._offset : offset], self._encoding)
        self._offset = offset
        return self._line, self._column

    def range(self, start: int, end: int) -> Range:
        """Return the range of some bytes."""
        first, last = self.place(start), self.place(end)
        return {"start_line": first[0], "start_column": first[1], "end_line": last[0], "end_column": last[1]}
