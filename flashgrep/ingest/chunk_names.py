"""What a chunk of code is called: the definition it mostly holds or is a part of, and the signatures around it."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np

from flashgrep.ingest.parse.describe import Lines, signature
from flashgrep.ingest.parse.model import (
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
    Ints,
    ParsedFile,
)
from flashgrep.lazy import LazyAttribute

HEADER_BYTES: Final = 200
"""Most bytes of the signatures that go with a part of a definition."""
_NAME_BYTES: Final = 200
"""A longer name is not one a person wrote."""
_NAME_PARTS: Final = 12
_EXTENSION: Final = KIND_ID["extension"]
NAMED_KINDS: Final = tuple(KIND_ID[kind] for kind in sorted(TYPE_KINDS | CALLABLE_KINDS - {"macro"}))
"""What gives a chunk its name first; a macro is a constant more often than a function."""
_NAMED: Final = frozenset(NAMED_KINDS)
_CALLABLE: Final = frozenset(KIND_ID[kind] for kind in CALLABLE_KINDS)
_TYPE: Final = frozenset(KIND_ID[kind] for kind in TYPE_KINDS)
_SCOPES: Final = _NAMED | {KIND_ID["macro"], KIND_ID["module"], KIND_ID["namespace"]}
_NAMELESS: Final = (KIND_ID["package"], KIND_ID["heading"])
"""A package's clause is in each of its files and tells none of them apart; headings are for Markdown."""
_GENERICS: Final = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|[*&\s]")
_PARTS: Final = re.compile(r"::|[.#/\\:]|->")


class Outline:
    """The definitions of a file, nested by their spans."""

    def __init__(self, data: bytes, parsed: ParsedFile | None, size: int) -> None:
        self._data = data
        table = _sound(parsed.definitions, size) if parsed is not None else np.zeros((0, START + END), np.int64)
        self.spans: Ints = table[:, (START, END)]
        """Start and end of each definition, ordered by start, the outer one first."""
        self._rows: list[list[int]] = table.tolist()
        self._starts: list[int] = table[:, START].tolist()
        self._above = _parents(self._rows)
        self._signatures: dict[int, str] = {}

    def name(self, start: int, end: int) -> tuple[str, str]:
        """Return the kind and the qualified name of what a chunk is about, two empty texts for nothing."""
        around = next(self._around(start, end), -1)
        if around >= 0 and self._rows[around][KIND] in _CALLABLE:
            return self._called(around)
        first, after = bisect_left(self._starts, start), bisect_left(self._starts, end)
        main = self._main(first, after, start, end)
        if main < 0 and around >= 0 and self._rows[around][KIND] not in _SCOPES - _TYPE:
            main = around
        if main < 0 and first < after:
            main = first
        return self._called(main) if main >= 0 else ("", "")

    def header(self, start: int, end: int) -> str:
        """Return the signatures of the functions and types a chunk is a part of, the outermost first."""
        found: list[str] = []
        room = HEADER_BYTES
        for index in self._around(start, end):
            if self._rows[index][KIND] in _SCOPES:
                text = _cut(self._signature(index), room)
                room -= len(text.encode()) + 1
                found.append(text)
                if room <= 0:
                    break
        return "\n".join(text for text in reversed(found) if text)

    def _around(self, start: int, end: int) -> Iterator[int]:
        """Yield the definitions around a chunk that begin before it, the innermost first.

        What ends in the chunk's second half counts: only the brackets that close the scopes above may follow.
        """
        index = bisect_left(self._starts, start) - 1
        while index >= 0:
            if 2 * self._rows[index][END] >= start + end:
                yield index
            index = self._above[index]

    def _main(self, first: int, after: int, start: int, end: int) -> int:
        """Return the function or type that makes up half of a chunk, else the first that begins in it, or -1."""
        passed, found = 0, -1
        for index in range(first, after):
            row = self._rows[index]
            if row[START] < passed or row[KIND] not in _NAMED:
                continue
            passed = row[END]
            if 2 * (min(end, passed) - row[START]) >= end - start:
                return index
            found = index if found < 0 else found
        return found

    def _called(self, index: int) -> tuple[str, str]:
        return KINDS[self._rows[index][KIND]], self._qualified(index)

    def _qualified(self, index: int) -> str:
        """Return a definition's name after those of the scopes around; a qualifier stands in for the type around."""
        parts: list[str] = []
        while index >= 0 and len(parts) < _NAME_PARTS:
            row, above = self._rows[index], self._scope(index)
            name = self._text(row[NAME], row[NAME_END])
            parts.append(_GENERICS.sub("", name) if row[KIND] == _EXTENSION else name)
            own = self._qualifier(row)
            if own:
                parts.append(own)
                above = -1 if above >= 0 and self._rows[above][KIND] in _TYPE else above
            index = above
        return ".".join(reversed(parts))

    def _qualifier(self, row: list[int]) -> str:
        text = _GENERICS.sub("", self._text(row[QUALIFIER], row[QUALIFIER_END]))
        return ".".join(filter(None, _PARTS.split(text)))

    def _scope(self, index: int) -> int:
        """Return the innermost scope around a definition that spans more than it, or -1."""
        row, above = self._rows[index], self._above[index]
        while above >= 0:
            other = self._rows[above]
            if other[KIND] in _SCOPES and (other[START], other[END]) != (row[START], row[END]):
                break
            above = self._above[above]
        return above

    def _text(self, start: int, end: int) -> str:
        return self._data[start : min(end, start + _NAME_BYTES)].decode("utf-8", "replace")

    @LazyAttribute
    def _lines(self) -> Lines:
        return Lines(self._data)

    def _signature(self, index: int) -> str:
        found = self._signatures.get(index)
        if found is None:
            row = self._rows[index]
            found = self._signatures[index] = signature(self._lines, row[NAME], row[START], row[END])
        return found


def _sound(table: Ints, size: int) -> Ints:
    """Return the rows that lie in the text, in order: a table may be of another version of the file."""
    start, end, name, kind = table[:, START], table[:, END], table[:, NAME], table[:, KIND]
    good = (start >= 0) & (start <= name) & (name < table[:, NAME_END]) & (name < end) & (start < size)
    good &= (end <= size) & (kind >= 0) & (kind < len(KINDS)) & ~np.isin(kind, _NAMELESS)
    good &= (table[:, QUALIFIER] >= 0) & (table[:, QUALIFIER_END] >= 0)
    rows = table[good]
    ordered: Ints = rows[np.lexsort((-rows[:, END], rows[:, START]))]
    return ordered


def _parents(rows: list[list[int]]) -> list[int]:
    """Return the innermost row around each, -1 for none."""
    above: list[int] = []
    open_rows: list[int] = []
    for index, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]][END] < row[END]:
            open_rows.pop()
        above.append(open_rows[-1] if open_rows else -1)
        open_rows.append(index)
    return above


def _cut(text: str, room: int) -> str:
    """Return what fits of a text into so many bytes."""
    return text.encode()[: max(0, room)].decode("utf-8", "ignore")
