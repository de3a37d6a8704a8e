"""What an imported index knows about the names in a file, for one lookup."""

import sqlite3
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.damage import Damaged
from flashgrep.parts.navigation.scip.scip_store import (
    DEFINES,
    END,
    IMPORTS,
    START,
    SYMBOL,
    Rows,
    ScipTable,
)
from flashgrep.parts.symbols.other_sources import Meaning, Open, SourceOccurrence
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role

HOW: Final = "scip"
"""The evidence given in answers for results of an imported index."""


class ScipSource:
    """Answers from imported indexes, for texts that have not changed since."""

    how = HOW
    problem = ""

    def __init__(self, table: ScipTable) -> None:
        self._table = table
        self._rows: dict[bytes, Rows | None] = {}

    def find_meaning(
        self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool = True
    ) -> Meaning | None:
        """Return what the name at a span of a file refers to.

        None: unknown, because no index describes the file, or a file that defines the name, in its current state.
        """
        symbols = open_file(path)
        if symbols is not None:
            rows = self._find_rows(path, symbols)
        else:
            rows = None
        if rows is None:
            return None
        around = rows[
            (rows[:, START] <= span[0])
            & (span[1] <= rows[:, END])
            & (rows[:, START] < rows[:, END])
        ]
        sizes = around[:, END] - around[:, START]
        numbers = frozenset(
            around[sizes == sizes.min(initial=sizes.max(initial=0)), SYMBOL].tolist()
        )
        definitions: list[SourceOccurrence] = []
        for other in sorted({path, *self._find_files(numbers, defining=True)}):
            occurrences = self.find_occurrences(numbers, other, open_file)
            if occurrences is None:  # its definitions have moved since
                return None
            definitions += [
                occurrence
                for occurrence in occurrences
                if occurrence.role == "definition"
            ]
        if uses:
            files = self._find_files(numbers, defining=False)
        else:
            files = []
        if definitions:
            return Meaning(self, numbers, definitions, files)
        return None

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return the offsets of the names that an index describes, if the file's text is the indexed one."""
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        return [] if rows is None else rows[:, START].tolist()

    def find_occurrences(
        self, numbers: frozenset[int], path: bytes, open_file: Open
    ) -> list[SourceOccurrence] | None:
        """Return the occurrences of symbols in a file, in order; None if its text is not the indexed one."""
        symbols = open_file(path)
        if symbols is not None:
            rows = self._find_rows(path, symbols)
        else:
            rows = None
        if rows is None or symbols is None:
            return None
        occurrences: dict[int, SourceOccurrence] = {}
        for start, end, roles, number in rows.tolist():
            if number in numbers and start not in occurrences:
                role: Role = (
                    "definition"
                    if roles & DEFINES
                    else "import"
                    if roles & IMPORTS
                    else "reference"
                )
                if role == "reference" and start < end:
                    role = symbols.role(start) or role
                occurrences[start] = SourceOccurrence(path, symbols, start, end, role)
        return list(occurrences.values())

    def _find_files(self, numbers: frozenset[int], *, defining: bool) -> list[bytes]:
        try:
            return self._table.find(
                (number for number in numbers if number >= 0), defining=defining
            )
        except sqlite3.Error:  # damaged: treated as unknown
            return []

    def _find_rows(self, path: bytes, symbols: FileSymbols) -> Rows | None:
        if path not in self._rows:
            checkpoint()
            try:
                self._rows[path] = self._table.occurrences(path, symbols.data)
            except (sqlite3.Error, Damaged):
                self._rows[path] = None
        return self._rows[path]
