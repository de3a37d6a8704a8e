"""Bytes as text and back without loss: byte order marks, encodings and line ends.

A line ends at LF, as grep, git and every hit count them; a CR before it belongs to the line's end, a CR elsewhere is a
character.
"""

import codecs
from dataclasses import dataclass
from typing import Literal

from flashgrep.errors import InvalidParams

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"]
LineEnding = Literal["lf", "crlf", "cr", "mixed", "none"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LONGEST_MARK = 3


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text and how it stands in bytes: ``bom + text.encode(encoding)`` are exactly the file's bytes."""

    text: str
    encoding: Encoding = "utf-8"
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        """Return another text as a file of the same kind."""
        return self.bom + encoded(text, self.encoding)


def mark_of(head: bytes) -> tuple[bytes, Encoding]:
    """Return the byte order mark a file starts with (or none) and the encoding it means."""
    if head.startswith(codecs.BOM_UTF32_LE):  # begins like UTF-16's mark, and is no text we know
        return b"", "latin-1"
    return next((pair for pair in _MARKS if head.startswith(pair[0])), (b"", "utf-8"))


def decode(data: bytes) -> Text:
    """Return a file's text; bytes that are not what they claim to be are shown as latin-1, mark and all."""
    bom, encoding = mark_of(data)
    try:
        return Text(data[len(bom) :].decode(encoding), encoding, bom)
    except UnicodeDecodeError:
        return Text(data.decode("latin-1"), "latin-1")


def encoded(text: str, encoding: Encoding) -> bytes:
    """Return the text's bytes, or raise InvalidParams naming the first character the encoding lacks."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        at = f"U+{ord(text[error.start]):04X}"
        message = f"the file is {encoding} and cannot hold {at}; write ASCII, or convert the file with fs_write first"
        raise InvalidParams(message, reason="encoding", encoding=encoding, character=at) from None


def line_ending(text: str) -> LineEnding:
    """Tell how the lines of a text end; a file without LF but with CR is one line to us, and said to be "cr"."""
    if "\r" not in text:  # the usual case, without counting
        return "lf" if "\n" in text else "none"
    lf = text.count("\n")
    crlf = text.count("\r\n")
    if lf == 0:
        return "cr"
    if crlf == 0:
        return "lf"
    return "crlf" if crlf == lf else "mixed"


def usual_ending(text: str) -> str:
    """Return the line end new lines get: the commoner one, LF where there is none."""
    if "\r" not in text:
        return "\n"
    lf = text.count("\n")
    if lf == 0:
        return "\r"
    return "\r\n" if text.count("\r\n") * 2 > lf else "\n"


def with_ending(text: str, ending: str) -> str:
    """Return the text with its line ends, LF and CRLF alike, written as ``ending``."""
    plain = text.replace("\r\n", "\n")
    return plain if ending == "\n" else plain.replace("\n", ending)


def without_end(line: str) -> str:
    """Return a line without its end."""
    return line.removesuffix("\n").removesuffix("\r")
