"""A match in a file's bytes, made into what a caller reads: lines, columns, context, a window of a very long line."""

from typing import Any

from flashgrep.ingest.decoding import SHOWN
from flashgrep.model import Document, path_to_json
from flashgrep.pattern import LineMatch

LONG_LINE = 1_000
"""Bytes; of a longer line only the surroundings of the match are shown."""

WINDOW = 200
"""Bytes shown on either side of a match in a long line."""


def decode_span(document: Document, start: int, end: int) -> str:
    """Return a stretch of the document as text; a byte that is no UTF-8 stands as U+FFFD."""
    encoding = "latin-1" if document.encoding == "latin-1" else "utf-8"
    return document.data[start:end].decode(encoding, SHOWN)


def make_hit(path: bytes, document: Document, match: LineMatch, before: int = 0, after: int = 0) -> dict[str, Any]:
    """Return the hit for one match, with lines of context where asked for."""
    start, end = match.spans[0] if match.spans else (match.start, match.start)
    found: dict[str, Any] = path_to_json(path)
    found["start_line"] = match.number
    found["end_line"] = match.end_number
    found["column"] = byte_column = start - match.start + 1
    if match.end - match.start <= LONG_LINE:
        text = decode_span(document, match.start, match.end)
        plain = len(text) == match.end - match.start
    else:
        text, plain = "", False
    if not plain:
        found["column"] = len(decode_span(document, match.start, start)) + 1
        if found["column"] != byte_column:
            found["byte_column"] = byte_column
    found["text"] = text.removesuffix("\r")
    if match.end - match.start > LONG_LINE:
        _put_window(found, document, match, (start, end))
    if before:
        found["before"] = lines_before(document, match.start, before)
    if after:
        found["after"] = lines_after(document, match.end, after)
    return found


def _put_window(found: dict[str, Any], document: Document, match: LineMatch, span: tuple[int, int]) -> None:
    """Show the surroundings of the match in a long line, and where in the line they stand."""
    low = _boundary(document.data, max(match.start, span[0] - WINDOW))
    high = _boundary(document.data, min(match.end, max(span[0], min(span[1], span[0] + LONG_LINE)) + WINDOW))
    found["text"] = decode_span(document, low, high)
    found["text_column"] = len(decode_span(document, match.start, low)) + 1
    found["cut"] = True


def _boundary(data: bytes, at: int) -> int:
    """Return the nearest start of a UTF-8 character at or before ``at``; at most three steps."""
    for back in range(4):
        if at - back <= 0 or at >= len(data) or data[at - back] & 0xC0 != 0x80:  # noqa: PLR2004 - a continuation byte
            return max(0, at - back)
    return at


def lines_before(document: Document, start: int, count: int) -> list[str]:
    """Return up to ``count`` lines before the line that starts at ``start``, in order."""
    found: list[str] = []
    while start > 0 and len(found) < count:
        line = document.data.rfind(b"\n", 0, start - 1) + 1
        found.append(_short(document, line, start - 1))
        start = line
    return found[::-1]


def lines_after(document: Document, end: int, count: int) -> list[str]:
    """Return up to ``count`` lines after the line that ends at ``end`` (where its line feed stands)."""
    found: list[str] = []
    size = len(document.data)
    while end + 1 < size and len(found) < count:
        stop = document.data.find(b"\n", end + 1)
        stop = size if stop < 0 else stop
        found.append(_short(document, end + 1, stop))
        end = stop
    return found


def _short(document: Document, start: int, end: int) -> str:
    if end - start > LONG_LINE:
        return decode_span(document, start, _boundary(document.data, start + LONG_LINE)) + "…"
    return decode_span(document, start, end).removesuffix("\r")
