"""Bytes as text and back without loss: byte order marks, encodings, bytes that are no text, and line ends.

A line ends at LF, as grep, git and every hit count them; a CR before it belongs to the line's end, a CR elsewhere is a
character.
"""

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from flashgrep.errors import InvalidParams
from flashgrep.ingest.decoding import REPLACEMENT, is_latin1

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"]
LineEnding = Literal["lf", "crlf", "cr", "mixed", "none"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = frozenset(("utf-16-le", "utf-16-be"))
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text and how it stands in bytes: ``encode(kept)`` are exactly the file's bytes."""

    text: str
    """What is shown: bytes that are no text stand as U+FFFD."""
    kept: str
    """The same with each such byte, or half of a pair in UTF-16, as a lone surrogate; of the same length, and the very
    same object where there is none."""
    encoding: Encoding = "utf-8"
    bom: bytes = b""
    tail: bytes = b""
    """The last byte of UTF-16 with an odd number of them, which ``kept`` has as U+FFFD."""

    def encode(self, kept: str) -> bytes:
        """Return another text, its bad bytes kept likewise, as a file of the same kind."""
        if self.tail and kept.endswith(REPLACEMENT):
            return self.bom + encode_kept(kept[:-1], self.encoding) + self.tail
        return self.bom + encode_kept(kept, self.encoding)


def mark_of(head: bytes) -> tuple[bytes, Encoding]:
    """Return the byte order mark a file starts with (or none) and the encoding it means."""
    if head.startswith(codecs.BOM_UTF32_LE):  # begins like UTF-16's mark, and is no text we know
        return b"", "latin-1"
    return next((pair for pair in _MARKS if head.startswith(pair[0])), (b"", "utf-8"))


def encoding_of_start(head: bytes) -> tuple[bytes, Encoding]:
    """Return the mark and the encoding of a file too large to be read at once, by its first part."""
    bom, encoding = mark_of(head)
    if encoding == "utf-8" and not bom:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)  # the part may end inside a character
        except UnicodeDecodeError:
            return bom, "latin-1" if is_latin1(head) else encoding
    return bom, encoding


def decode(data: bytes) -> Text:
    """Return a file's text; latin-1 only where the file has no mark and is not UTF-8 by far."""
    bom, encoding = mark_of(data)
    body = data[len(bom) :]
    if encoding == "utf-8":
        try:
            text = body.decode()
        except UnicodeDecodeError:
            if not bom and is_latin1(body):
                encoding = "latin-1"
        else:
            return Text(text, text, encoding, bom)
    kept = decode_kept(body, encoding)
    odd = len(body) % 2 if encoding in _WIDE else 0
    return Text(show(kept), kept, encoding, bom, body[len(body) - odd :])


def decode_kept(data: bytes, encoding: Encoding) -> str:
    """Return bytes as text, what is no text as lone surrogates (and an odd byte that ends UTF-16 as U+FFFD)."""
    if encoding in _WIDE:
        odd = len(data) % 2
        return data[: len(data) - odd].decode(encoding, "surrogatepass") + REPLACEMENT * odd
    return data.decode(encoding, "surrogateescape")


def encode_kept(kept: str, encoding: Encoding) -> bytes:
    """Return the bytes of what ``decode_kept`` gave."""
    return kept.encode(encoding, "surrogatepass" if encoding in _WIDE else "surrogateescape")


def show(kept: str) -> str:
    """Return a text as it is shown: U+FFFD for each lone surrogate; the same object where there is none."""
    return _LONE.sub(REPLACEMENT, kept) if _LONE.search(kept) else kept


def count_lone(kept: str) -> int:
    """Return how many characters of a kept text stand for what is no text."""
    return len(_LONE.findall(kept))


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
