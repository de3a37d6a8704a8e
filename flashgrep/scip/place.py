"""Where in a text the occurrences of a SCIP document stand, in bytes; a text that they do not fit has none.

Whoever edits a file after it was indexed shifts what follows. Then an occurrence cuts through a word, or what is
defined there is called otherwise, and nothing of the document is believed.
"""

import hashlib
import re
from typing import Any, Final

import numpy as np

from flashgrep.index.scip import DEFINES, Rows
from flashgrep.ingest.columns import PositionEncoding, find_column
from flashgrep.ingest.parse.describe import Lines
from flashgrep.scip.decode import ScipDocument, read_name

_GUESSES: Final[tuple[PositionEncoding, ...]] = ("utf-16", "utf-32", "utf-8")
_PLAIN: Final = re.compile(r"[^\W\d]\w*\Z")
_NAMING: Final = ("#", ".", ")", "]")
"""What stands behind the name of a type, a term or a method, a parameter: it is the word that stands for them.

Not of modules, which have several, and of anonymous types' members, whose names are counted up.
"""
_WORD: Final = np.zeros(256, np.bool_)
_WORD[[*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", *range(128, 256)]] = True


def place_occurrences(document: ScipDocument, data: bytes) -> Rows | None:
    """Return a document's occurrences in a text, by place, or None: it was made of another text."""
    if document.text is not None and document.text.removeprefix(b"\xef\xbb\xbf") != data:
        return None
    for encoding in (document.encoding,) if document.encoding else _GUESSES:
        spans = measure_spans(document, data, encoding)
        if spans is not None and fit_text(spans, document, data):
            return number_occurrences(spans, document, data)
    return None


def measure_spans(document: ScipDocument, data: bytes, encoding: PositionEncoding) -> Rows | None:
    """Return the bytes at which occurrences begin and end; None where the text has no such line or column."""
    places = np.array(document.places, np.int64).reshape(-1, 4)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    starts = np.concatenate(([0], ends + 1))
    lengths = np.concatenate((ends, [len(data)])) - starts
    lines, columns = places[:, [0, 2]], places[:, [1, 3]]
    if (lines >= len(starts)).any():
        return None
    spans: Rows
    if encoding == "utf-8" or data.isascii():
        spans = starts[lines] + columns
        return None if (columns > lengths[lines]).any() else spans
    pairs = [(line, column) for (line, column) in np.stack((lines, columns), -1).reshape(-1, 2).tolist()]
    known: dict[tuple[int, int], int] = {}
    for line, column in {*pairs}:
        start = int(starts[line])
        within = find_column(data[start : start + int(lengths[line])], column + 1, encoding)
        if within is None:
            return None
        known[line, column] = start + within
    return np.array([known[one] for one in pairs], np.int64).reshape(-1, 2)


def fit_text(spans: Rows, document: ScipDocument, data: bytes) -> bool:
    """Return whether no occurrence cuts through a word, and what is defined has its name there."""
    if (spans[:, 0] > spans[:, 1]).any():
        return False
    is_word = np.concatenate(([False], _WORD[np.frombuffer(data, np.uint8)], [False]))
    filled = spans[spans[:, 0] < spans[:, 1]].ravel()
    if (is_word[filled] & is_word[filled + 1]).any():
        return False
    return not any(
        roles & DEFINES and start < end and (name := _read_plain_name(symbol)) and data[start:end] != name
        for (start, end), symbol, roles in zip(spans.tolist(), document.symbols, document.roles, strict=True)
    )


def _read_plain_name(symbol: str) -> bytes:
    """Return the word that stands for a symbol wherever it has no alias, if there is one."""
    name = read_name(symbol) if symbol.endswith(_NAMING) else ""
    return name.encode("utf-8", "surrogateescape") if _PLAIN.match(name) else b""


def number_occurrences(spans: Rows, document: ScipDocument, data: bytes) -> Rows:
    """Return the table of a document's occurrences, each narrowed to the name in it: ``A as B``, ``"a"``.

    Those of another name are left out: aliases, which flashgrep resolves itself, and mistakes (scip-python 0.6.6 takes
    what is called on a module with star imports for the first name that they bring).
    """
    rows: list[tuple[int, int, int, int]] = []
    lines, own = Lines(data), dict[str, int]()
    for (first, last), symbol, roles in zip(spans.tolist(), document.symbols, document.roles, strict=True):
        start, end = first, last
        if start == end and not (roles & DEFINES and lines.line(start) == 1):  # a file begins at its first line
            continue
        is_own = symbol.startswith("local ")
        number = -1 - own.setdefault(symbol, len(own)) if is_own else number_symbol(symbol)
        name = _read_plain_name(symbol)
        if start < end and name and data[start:end] != name:
            found = re.search(rb"(?<!\w)%b(?!\w)" % re.escape(name), data[start:end])
            if found is None:
                continue
            start, end = start + found.start(), start + found.end()
        rows.append((start, end, roles, number))
    return np.array(sorted(set(rows)), np.int64).reshape(-1, 4)


def number_symbol(symbol: str) -> int:
    """Return a symbol's number, which is told by its name alone; those that only one document has are negative."""
    digest: Any = hashlib.blake2b(symbol.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
