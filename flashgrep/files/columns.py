"""Lines of a text, and their columns as clients count them: bytes, UTF-16 units or characters, from 1.

Each byte that is not part of a UTF-8 character is shown as one U+FFFD, as in Go, Vim and Emacs. So shown and stored
text have the same length, and a position in one is the same position in the other. It counts as one of each unit.
"""

import codecs
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from flashgrep.base.lazy import LazyAttribute

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
"""The unit of a column, as the Language Server Protocol names it: bytes, UTF-16 units, characters."""
SHOWN: Final = "flashgrep.shown"
"""Name of the error handler for decoding UTF-8 for display."""
REPLACEMENT: Final = "\ufffd"
_BYTES_KEPT: Final = "surrogateescape"
"""Decodes a bad byte to a lone surrogate, which valid UTF-8 never has, so that it can be encoded back."""
_NEWLINE: Final = 10
_LONGEST: Final = 4
"""Bytes of the longest UTF-8 character."""


def _replacements(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return REPLACEMENT * (error.end - error.start), error.end


codecs.register_error(SHOWN, _replacements)


class Range(TypedDict):
    """Lines and columns from 1; the end is exclusive."""

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
        """Offsets after each line feed; an array, since a list doubles the time for a large file."""
        ends: NDArray[np.int64] = (
            np.frombuffer(self.data, np.uint8) == _NEWLINE
        ).nonzero()[0] + 1
        return ends

    def start(self, line: int) -> int:
        """Return the offset at which a line begins; for the line after the last, the end of the text."""
        if line <= 1:
            return 0
        if line - 2 < len(self._ends):
            return int(self._ends[line - 2])
        return len(self.data)

    def line(self, offset: int) -> int:
        """Return the line that contains an offset."""
        return int(self._ends.searchsorted(offset, "right")) + 1

    def column(self, offset: int) -> int:
        """Return the column of an offset, in characters from 1."""
        return (
            len(
                self.data[self.data.rfind(b"\n", 0, offset) + 1 : offset].decode(
                    "utf-8", SHOWN
                )
            )
            + 1
        )

    def text(self, line: int) -> str:
        """Return a line without its line ending."""
        if line <= len(self._ends):
            end = int(self._ends[line - 1])
        else:
            end = len(self.data)
        return self.data[self.start(line) : end].rstrip(b"\r\n").decode("utf-8", SHOWN)


def measure(text: bytes, encoding: PositionEncoding) -> int:
    """Return how many columns a part of a line takes."""
    if encoding == "utf-8" or text.isascii():
        return len(text)
    shown_text = text.decode("utf-8", _BYTES_KEPT)
    if encoding == "utf-32":
        return len(shown_text)
    return len(shown_text.encode("utf-16-le", "surrogatepass")) // 2


def find_column(line: bytes, column: int, encoding: PositionEncoding) -> int | None:
    """Return the offset of a column in a line; inside a character, where that begins; past the end, None.

    The column after the last character is the end of the line.
    """
    units = column - 1
    if encoding == "utf-8" or line.isascii():
        for back in range(1, min(_LONGEST, units + 1)):
            start = units - back
            character = line[start : start + _LONGEST].decode("utf-8", _BYTES_KEPT)[:1]
            if len(character.encode("utf-8", _BYTES_KEPT)) > back:
                return start
        if units <= len(line):
            return units
        return None
    text = line.decode("utf-8", _BYTES_KEPT)
    if encoding == "utf-16":
        wide = text.encode("utf-16-le", "surrogatepass")
        if 2 * units > len(wide):
            return None
        head = wide[: 2 * units].decode("utf-16-le", "surrogatepass")
        if "\ud800" <= head[-1:] <= "\udbff":  # the first half of a surrogate pair
            head = head[:-1]
    elif units > len(text):
        return None
    else:
        head = text[:units]
    return len(head.encode("utf-8", _BYTES_KEPT))


class Columns:
    """Lines and columns of offsets in a text; fast for ascending offsets, however long a line is."""

    def __init__(self, lines: Lines, encoding: PositionEncoding) -> None:
        self._lines = lines
        self._encoding: PositionEncoding = encoding
        self._line = 0
        self._offset = 0
        self._column = 1
        self._next = 0
        """Where the line after ``_line`` begins."""

    def enter(self, line: int, start: int, end: int) -> None:
        """Set the current line and its span, so that the lines before it need not be counted."""
        self._line = line
        self._offset = start
        self._next = end + 1
        self._column = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column, from 1, of an offset at which a character begins."""
        if not self._offset <= offset < self._next:
            self._line = self._lines.line(offset)
            self._offset, self._next, self._column = (
                self._lines.start(self._line),
                self._lines.start(self._line + 1),
                1,
            )
        self._column += measure(self._lines.data[self._offset : offset], self._encoding)
        self._offset = offset
        return self._line, self._column

    def range(self, start: int, end: int) -> Range:
        """Return the range of the bytes from ``start`` to ``end``."""
        first = self.place(start)
        last = self.place(end)
        return {
            "start_line": first[0],
            "start_column": first[1],
            "end_line": last[0],
            "end_column": last[1],
        }
