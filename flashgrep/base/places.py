"""Places in files written as one text, as hits, URLs, editors and compilers write them.

``FILE:L``, ``FILE:L-M`` (lines), ``FILE:L:C`` (a line and a column), each perhaps followed by ``:`` and the line's
text, as a hit is printed; ``FILE:L:C-M:D`` (from one position to another), and ``FILE#L10-L20`` as in URLs. A number
after the second colon is a column, never a last line. A name may itself look like a place (``a:1``): an existing file
of that name is meant, so callers try the whole text as a name first, then ``find_places`` in order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MOST_READINGS = 8
"""Readings of one text: each costs its caller a look at the disk, and a text of 32 KiB may have thousands of colons."""
_NUMBER = r"[0-9]{1,9}"
_RANGE = re.compile(
    rf":(?P<first>{_NUMBER})"
    rf"(?:-(?P<last>{_NUMBER})|:(?P<column>{_NUMBER})(?:-(?:(?P<column_last>{_NUMBER}):)?{_NUMBER})?)?"
    rf"(?::.*)?",
    re.DOTALL,
)
_URL_RANGE = re.compile(
    rf"#L(?P<first>{_NUMBER})(?:C{_NUMBER})?(?:-L?(?P<last>{_NUMBER})(?:C{_NUMBER})?)?"
)
_START = re.compile(r":(?=[0-9])|#(?=L[0-9])")
"""Where the name of the file may end."""
SYMBOL_OF_FILE: Final = re.compile(
    r"(?P<path>[^:#]*[./][^:#]*)(?:::?|#)(?P<symbol>[^\d:].*)"
)
"""A symbol of a file, as ``src/a.py:Wheel.turn``."""


@dataclass(frozen=True, slots=True)
class LinesOfFile:
    """Lines of a file, both inclusive and counted from 1; ``column``: of the first line, None if the text has none."""

    path: str
    first: int
    last: int
    column: int | None = None


def find_places(text: str) -> Iterator[LinesOfFile]:
    """Yield the ways to read a text as a place, that of the shortest name first; none if it names no line.

    ``a:1:2`` is line 1, column 2 of ``a``, or else line 2 of ``a:1``.
    """
    readings = 0
    for start in _START.finditer(text, 1):
        form = _RANGE if start[0] == ":" else _URL_RANGE
        match = form.fullmatch(text, start.start())
        if match is None or not int(match["first"]):
            continue
        parts = match.groupdict()
        first = int(parts["first"])
        last = int(parts["last"] or parts.get("column_last") or first)
        column = parts.get("column")
        yield LinesOfFile(
            text[: start.start()], first, last, None if column is None else int(column)
        )
        readings += 1
        if readings == MOST_READINGS:
            return
