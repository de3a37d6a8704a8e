"""Converts a match in a file's bytes for callers: lines, columns, context, a window of a very long line."""

from collections.abc import Mapping
from typing import Any

from flashgrep.base.model import Document
from flashgrep.files.columns import SHOWN, Columns
from flashgrep.pattern import LineMatch
from flashgrep.pattern.unicode import CHARACTER_MASK, CHARACTER_REST

LONG_LINE = 1_000
"""Most bytes of a line; of a longer one only the part around the match is shown."""

WINDOW = 200
"""Bytes shown on each side of a match in a long line."""


def decode_span(document: Document, start: int, end: int) -> str:
    """Return a span of the document as text; bytes that are not UTF-8 become U+FFFD."""
    data = document.data[start:end]
    if document.encoding == "latin-1":
        return data.decode("latin-1")
    return data.decode("utf-8", SHOWN)


def make_hit(
    place: Mapping[str, str],
    document: Document,
    match: LineMatch,
    before: int = 0,
    after: int = 0,
) -> dict[str, Any]:
    """Return the hit for one match, with lines of context if requested; ``place``: its file's path, as shown."""
    number, end_number, line_start, line_end, spans = match
    start = end = line_start
    if spans:
        start, end = spans[0]
    byte_column = start - line_start + 1
    hit = {
        **place,
        "start_line": number,
        "end_line": end_number,
        "column": byte_column,
    }
    is_long = line_end - line_start > LONG_LINE
    if is_long:
        text = ""
    else:
        text = decode_span(document, line_start, line_end)
    if len(text) != line_end - line_start:
        hit["column"] = len(decode_span(document, line_start, start)) + 1
        if hit["column"] != byte_column:
            hit["byte_column"] = byte_column
    hit["text"] = text.removesuffix("\r")
    if is_long:  # the part around the match, and its position in the line
        low = _boundary(document.data, max(match.start, start - WINDOW))
        shown_to = max(start, min(end, start + LONG_LINE)) + WINDOW
        high = _boundary(document.data, min(match.end, shown_to))
        hit["text"] = decode_span(document, low, high)
        hit["text_column"] = len(decode_span(document, match.start, low)) + 1
        hit["cut"] = True
    if before:
        hit["before"] = lines_before(document, line_start, before)
    if after:
        hit["after"] = lines_after(document, line_end, after)
    return hit


def put_spans(
    found: dict[str, Any], columns: Columns | None, match: LineMatch, most: int
) -> int:
    """Add a match's spans, at most this many, and its column to its hit; return the number of spans.

    ``columns``: counts columns; None: adds nothing.
    """
    if columns is None:
        return 0
    if match.number == match.end_number:
        columns.enter(match.number, match.start, match.end)
    spans = [columns.range(start, end) for start, end in match.spans[:most]]
    if spans:
        found["column"] = spans[0]["start_column"]
    found["spans"] = spans
    if len(match.spans) > most:
        found["spans_left_out"] = len(match.spans) - most
    return len(spans)


def _boundary(data: bytes, at: int) -> int:
    """Return the start of the UTF-8 character at ``at``; at most three steps back."""
    if at >= len(data):
        return at
    for start in range(at, at - 4, -1):
        if start <= 0:
            return 0
        if data[start] & CHARACTER_MASK != CHARACTER_REST:
            return start
    return at


def lines_before(document: Document, start: int, count: int) -> list[str]:
    """Return up to ``count`` lines before the line that starts at ``start``, in order."""
    lines: list[str] = []
    for _ in range(count):
        if start <= 0:
            break
        line = document.data.rfind(b"\n", 0, start - 1) + 1
        shown = _short(document, line, start - 1)
        lines.append(shown)
        start = line
    return lines[::-1]


def lines_after(document: Document, end: int, count: int) -> list[str]:
    """Return up to ``count`` lines after the line that ends at ``end`` (the position of its line feed)."""
    lines: list[str] = []
    size = len(document.data)
    while end + 1 < size and len(lines) < count:
        stop = document.data.find(b"\n", end + 1)
        if stop < 0:
            stop = size
        lines.append(_short(document, end + 1, stop))
        end = stop
    return lines


def _short(document: Document, start: int, end: int) -> str:
    if end - start > LONG_LINE:
        cut = _boundary(document.data, start + LONG_LINE)
        return decode_span(document, start, cut) + "…"
    return decode_span(document, start, end).removesuffix("\r")
