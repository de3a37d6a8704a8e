"""The names of chunks.

In code: the definition that a chunk mostly contains or is a part of, and the signatures around it.
In Markdown: the path of headings that a chunk is under.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from flashgrep.base.lazy import LazyAttribute
from flashgrep.files.columns import Lines
from flashgrep.parts.meaning.chunk_cuts import STEP, Ints, Units
from flashgrep.parts.symbols.parse.describe import signature
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    KIND,
    KIND_ID,
    KINDS,
    NAME,
    NAME_END,
    QUALIFIER,
    QUALIFIER_END,
    START,
    TYPE_KINDS,
    ParsedFile,
)

HEADER_BYTES: Final = 200
"""Maximum number of bytes of the signatures that go with a part of a definition."""
_NAME_BYTES: Final = 200
"""Bytes used of a name; people do not write longer ones."""
_NAME_PARTS: Final = 12
_EXTENSION: Final = KIND_ID["extension"]
NAMED_KINDS: Final = tuple(
    KIND_ID[kind] for kind in sorted(TYPE_KINDS | CALLABLE_KINDS - {"macro"})
)
"""Kinds preferred for a chunk's name; a macro is more often a constant than a function."""
_HEADING: Final = KIND_ID["heading"]
_NAMED: Final = frozenset(NAMED_KINDS) | {_HEADING}
_CALLABLE: Final = frozenset(KIND_ID[kind] for kind in CALLABLE_KINDS)
_TYPE: Final = frozenset(KIND_ID[kind] for kind in TYPE_KINDS)
_SCOPES: Final = _NAMED | {KIND_ID["macro"], KIND_ID["module"], KIND_ID["namespace"]}
_PACKAGE: Final = KIND_ID["package"]
"""A package clause is in each of its files, so it distinguishes none of them."""
_GENERICS: Final = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|[*&\s]")
_PARTS: Final = re.compile(r"::|[.#/\\:]|->")

# Markdown

_SEPARATOR: Final = " > "
_TITLE_CHARS: Final = 120
_LEVELS: Final = 6
_TEXT: Final = STEP
"""Rank added to a cut that is not before a heading."""
_FENCED: Final = 2 * STEP
"""Rank added to a cut in a fence, or between a heading and its text."""
_MARKS: Final = np.frombuffer(b"#=-`~", np.uint8)
"""First letters of the lines that may make or fence off a heading."""


def _take_usable(table: Ints, size: int) -> Ints:
    """Return the rows within the text, sorted by start, the outer one first.

    A table may belong to another version of the file, and then has any numbers.
    """
    start = table[:, START]
    end = table[:, END]
    name = table[:, NAME]
    kind = table[:, KIND]
    is_usable = (start >= 0) & (start < size)
    is_usable &= end <= size
    is_usable &= (start <= name) & (name < end)
    is_usable &= name < table[:, NAME_END]
    is_usable &= (kind >= 0) & (kind < len(KINDS))
    is_usable &= kind != _PACKAGE
    is_usable &= table[:, QUALIFIER] >= 0
    is_usable &= table[:, QUALIFIER_END] >= 0
    table = table[is_usable]
    order = np.lexsort((-table[:, END], table[:, START]))
    return table[order]


class Outline:
    """The definitions of a file, nested by their spans."""

    def __init__(self, data: bytes, parsed: ParsedFile | None, size: int) -> None:
        self._data = data
        table = np.zeros((0, START + END), np.int64)
        # The headings of Markdown are found below, and its examples name nothing.
        if parsed is not None and parsed.language != "markdown":
            table = _take_usable(parsed.definitions, size)
        self.spans: Ints = table[:, (START, END)]
        """Start and end of each definition, sorted by start, the outer one first."""
        self._rows: list[list[int]] = table.tolist()
        self._starts: list[int] = table[:, START].tolist()
        self._above: list[int] = []
        """The innermost definition around each, -1 for none."""
        open_rows: list[int] = []
        for index, row in enumerate(self._rows):
            # Rows are sorted by where they begin: one that ends before this row does
            # not contain it.
            while open_rows and self._rows[open_rows[-1]][END] < row[END]:
                open_rows.pop()
            above = -1
            if open_rows:
                above = open_rows[-1]
            self._above.append(above)
            open_rows.append(index)
        self._signatures: dict[int, str] = {}

    def name(self, start: int, end: int) -> tuple[str, str]:
        """Return the kind and the qualified name of what a chunk is about, or two empty strings."""
        around = next(self._find_around(start, end), -1)
        kind_around = -1
        if around >= 0:
            kind_around = self._rows[around][KIND]
        if kind_around in _CALLABLE:
            return self._describe(around)
        main = self._find_main(start, end)
        is_scope = kind_around in _SCOPES - _TYPE
        if main < 0 and not is_scope:
            main = around
        if main < 0:
            first = bisect_left(self._starts, start)
            if first < bisect_left(self._starts, end):
                main = first
        if main >= 0:
            return self._describe(main)
        return ("", "")

    def _find_main(self, start: int, end: int) -> int:
        """Return the function or type that makes up half of a chunk, else the first that begins in it; -1: none."""
        first = bisect_left(self._starts, start)
        after = bisect_left(self._starts, end)
        main = -1
        passed = 0
        for index in range(first, after):
            row = self._rows[index]
            if row[START] < passed or row[KIND] not in _NAMED:
                continue
            passed = row[END]
            size = min(end, passed) - row[START]
            # Half of the chunk: the rest is in it because it was small.
            if 2 * size >= end - start:
                return index
            if main < 0:
                main = index
        return main

    def header(self, start: int, end: int) -> str:
        """Return the signatures of the functions and types a chunk is a part of, the outermost first."""
        names: list[str] = []
        room = HEADER_BYTES
        for index in self._find_around(start, end):
            row = self._rows[index]
            if row[KIND] not in _SCOPES:
                continue
            if index not in self._signatures:
                self._signatures[index] = signature(
                    self._lines, row[NAME], row[START], row[END]
                )
            text = self._signatures[index].encode()[:room].decode("utf-8", "ignore")
            room -= len(text.encode()) + 1
            names.append(text)
            if room <= 0:
                break
        return "\n".join(text for text in reversed(names) if text)

    def _find_around(self, start: int, end: int) -> Iterator[int]:
        """Yield the definitions around a chunk that begin before it, the innermost first.

        A definition that ends in the chunk's second half counts: only closing brackets of outer scopes may follow.
        """
        index = bisect_left(self._starts, start) - 1
        while index >= 0:
            if 2 * self._rows[index][END] >= start + end:
                yield index
            index = self._above[index]

    def _describe(self, index: int) -> tuple[str, str]:
        """Return a definition's kind and its qualified name.

        A qualifier (``Stack::push``) takes the place of the type around.
        """
        parts: list[str] = []
        at = index
        while at >= 0 and len(parts) < _NAME_PARTS:
            row = self._rows[at]
            name = self._text(row[NAME], row[NAME_END])
            if row[KIND] == _EXTENSION:
                name = _GENERICS.sub("", name)
            parts.append(name)
            qualifier = self._read_qualifier(row)
            at = self._find_scope(at)
            if not qualifier:
                continue
            parts.append(qualifier)
            if at >= 0 and self._rows[at][KIND] in _TYPE:
                at = -1
        parts.reverse()
        return KINDS[self._rows[index][KIND]], ".".join(parts)

    def _find_scope(self, index: int) -> int:
        """Return the innermost scope that spans more than a definition itself; -1: none."""
        row = self._rows[index]
        above = self._above[index]
        while above >= 0:
            scope = self._rows[above]
            is_larger = scope[START] != row[START] or scope[END] != row[END]
            if is_larger and scope[KIND] in _SCOPES:
                break
            above = self._above[above]
        return above

    def _read_qualifier(self, row: list[int]) -> str:
        """Return the qualifier of a definition with dots between its parts; empty: it has none."""
        written = self._text(row[QUALIFIER], row[QUALIFIER_END])
        parts = _PARTS.split(_GENERICS.sub("", written))
        return ".".join(filter(None, parts))

    def _text(self, start: int, end: int) -> str:
        end = min(end, start + _NAME_BYTES)
        return self._data[start:end].decode("utf-8", "replace")

    @LazyAttribute
    def _lines(self) -> Lines:
        return Lines(self._data)


@dataclass(frozen=True, slots=True)
class Sections:
    """The headings of a text, in order."""

    offsets: list[int]
    paths: list[str]
    ranks: Ints

    def name(self, start: int, end: int) -> str:
        """Return the path of headings a chunk begins under, empty for none.

        A subheading in the chunk's first quarter counts instead: the text before it was an introduction.
        """
        index = max(0, bisect_right(self.offsets, start) - 1)
        if index >= len(self.offsets) or self.offsets[index] >= end:
            return ""
        first = self.paths[index]
        quarter = start + (end - start) // 4
        last = bisect_right(self.offsets, quarter) - 1
        later = self.paths[max(index, last)]
        if later.startswith(first + _SEPARATOR):
            return later
        return first


def find_sections(data: bytes, units: Units, ranks: Ints) -> Sections:
    """Return the headings, and the ranks with cuts before headings made the best."""
    headings, fenced = _find_headings(data, units)
    ranks = ranks + _TEXT
    for first, end in fenced:
        ranks[first + 1 : end] += _FENCED
    for unit, level, _ in headings:
        ranks[unit] = level
        ranks[unit + 1 : unit + 2] += _FENCED
    stack: list[tuple[int, str]] = []
    paths: list[str] = []
    for _, level, title in headings:
        stack = [*(above for above in stack if above[0] < level), (level, title)]
        paths.append(_SEPARATOR.join(text for _, text in stack))
    return Sections([int(units.starts[unit]) for unit, _, _ in headings], paths, ranks)


def _find_headings(
    data: bytes, units: Units
) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """Return (unit, level, title) of each heading, and the ranges of units in fences or front matter."""
    letters = (units.words & 0xFF).astype(np.uint8)
    headings: list[tuple[int, int, str]] = []
    fenced: list[tuple[int, int]] = []
    fence = b""
    opened = 0
    # Only lines that begin with a mark: a book has thousands of others.
    for unit in np.flatnonzero(np.isin(letters, _MARKS) & units.whole).tolist():
        line = data[int(units.first[unit]) : int(units.last[unit])]
        mark = line[:1] * (len(line) - len(line.lstrip(line[:1])))
        if fence:
            if line.startswith(fence) and not line.strip(fence[:1]):
                fenced.append((opened, unit + 1))
                fence = b""
        # Front matter, which only the first line can begin, is skipped like a fence.
        elif (mark[:1] in b"`~" and len(mark) >= len(b"```")) or (
            unit == 0 and line == b"---"
        ):
            fence = mark
            opened = unit
        elif mark[:1] == b"#":
            if len(mark) <= _LEVELS and line[len(mark) : len(mark) + 1] in b" \t":
                headings.append((unit, len(mark), _title(line)))
        elif mark == line and mark[:1] in b"=-" and _is_below_text(units, unit):
            above = data[int(units.first[unit - 1]) : int(units.last[unit - 1])]
            headings.append((unit - 1, 1 if mark[:1] == b"=" else 2, _title(above)))
    if fence:
        fenced.append((opened, len(units.starts)))
    return headings, fenced


def _is_below_text(units: Units, unit: int) -> bool:
    """Return whether the line right above may be a heading's text."""
    if (
        unit == 0
        or not units.whole[unit - 1]
        or units.lines[unit] != units.lines[unit - 1] + 1
    ):
        return False
    return chr(int(units.words[unit - 1]) & 0xFF) not in "#>-*+|`~="


def _title(line: bytes) -> str:
    text = line[: 4 * _TITLE_CHARS].decode("utf-8", "replace").strip()
    text = text.strip("#").strip() if text.startswith("#") else text
    return text[:_TITLE_CHARS]
