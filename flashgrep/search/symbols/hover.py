"""A definition's signature and its documentation, as written."""

import inspect
import re
from dataclasses import dataclass
from typing import Final

from flashgrep.ingest.columns import SHOWN
from flashgrep.ingest.parse.describe import find_body
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import END, NAME, START
from flashgrep.search.symbols.navigation import Place

MOST_DOCUMENTATION: Final = 8_000
"""Bytes; who wants more reads the file."""
_MOST_PIECES: Final = 100
"""Comments of a line each that are one together, and annotations below them."""
_OPENS: Final = re.compile(
    r"^\s*(?://[/!]?|/\*+!?|\*+/|\*|#+[!:]?|--+\s?\|?|;+|%+|<!--|\(\*+|\{-+\s?\|?|\"\"\"|''')[ \t]?"
)
_CLOSES: Final = re.compile(r"\s*(?:\*+/|-->|\*+\)|-\})\s*$")
_ANNOTATIONS: Final = (b"@", b"#[", b"[")
_LEADS: Final = re.compile(rb"[\w\s:]*\Z")
"""Words like ``export default`` or ``static inline`` before what is defined."""


@dataclass(frozen=True, slots=True)
class Described:
    """What is written of a definition: its first line or lines as one, what is said of it, and in which language."""

    signature: str
    documentation: str
    language: str


def describe(place: Place) -> Described:
    """Return what is written of what is at a place."""
    symbols = place.symbols
    if place.index >= 0:
        signature, documentation = symbols.signature(place.index), read_documentation(symbols, place.index)
    else:
        line = symbols.lines.text(symbols.lines.line(place.start)).strip()
        signature, documentation = "" if place.kind == "module" else line[:MOST_DOCUMENTATION], ""
    return Described(signature, documentation, symbols.language)


def read_documentation(symbols: FileSymbols, index: int) -> str:
    """Return a definition's documentation without comment markers: Python's docstring, elsewhere the comment above."""
    data, row = symbols.data, symbols.row(index)
    if symbols.language == "python":
        head = row[NAME] + find_body(data[row[NAME] : row[END]], 0)
        skips = symbols.parsed.skips
        at = int(skips[:, 0].searchsorted(head))
        if at == len(skips) or data[head : int(skips[at, 0])].strip(b" \t\r\n:\"'rRuU"):
            return ""
        start, end = skips[at].tolist()
        return inspect.cleandoc(data[start : min(end, start + MOST_DOCUMENTATION)].decode("utf-8", SHOWN))
    start, end = _comment_above(symbols, row[START])
    lines = data[start : min(end, start + MOST_DOCUMENTATION)].decode("utf-8", SHOWN).splitlines()
    return inspect.cleandoc("\n".join(_CLOSES.sub("", _OPENS.sub("", line)).rstrip() for line in lines)).strip()


def _comment_above(symbols: FileSymbols, start: int) -> tuple[int, int]:
    """Return the bytes of the comments right above a definition, annotations between; of none where there are none."""
    data, lines, skips = symbols.data, symbols.lines, symbols.parsed.skips
    line = lines.line(start)
    if not _LEADS.match(data, lines.start(line), start):
        return start, start
    for _ in range(_MOST_PIECES):
        if line > 1 and data[lines.start(line - 1) : lines.start(line)].lstrip().startswith(_ANNOTATIONS):
            line -= 1
    first = end = lines.start(line)
    at = int(skips[:, 0].searchsorted(first)) - 1
    while at >= 0 and len(skips) and end - first < MOST_DOCUMENTATION:
        piece_start, piece_end = skips[at].tolist()
        between = data[piece_end:first]
        before = data[data.rfind(b"\n", 0, piece_start) + 1 : piece_start]
        if between.strip() or between.count(b"\n") > 1 or before.strip():
            break
        first, at = piece_start, at - 1
    return first, end
