"""Other sources of what names in a file mean, for one lookup: compilers know what flashgrep has to infer.

``Imported`` answers from indexes that the user has imported, ``language_server_source.Served`` from language servers.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from flashgrep.checkpoint import checkpoint
from flashgrep.damage import Damaged
from flashgrep.index.scip import DEFINES, END, IMPORTS, START, SYMBOL, Rows, ScipTable
from flashgrep.ingest.parse.lookup import FileSymbols, Role

HOW: Final = "scip"
"""By what such a place is told, in answers."""
Open = Callable[[bytes], FileSymbols | None]


@dataclass(frozen=True, slots=True)
class Told:
    """An occurrence of a symbol, in bytes."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    role: Role


class OtherSources(Protocol):
    """Others who know what names mean."""

    @property
    def problem(self) -> str:
        """Return why one of them did not answer, if a reader of the answer should know."""

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool) -> "Meaning | None":
        """Return what the name at some bytes of a file stands for, with the files that use it if ``uses``; or None."""


class OtherSource(OtherSources, Protocol):
    """One of them, who has told what a name stands for."""

    @property
    def how(self) -> str:
        """Return by what such a place is told, in answers."""

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return where the names begin of which it knows whether they mean what was asked for."""

    def find_occurrences(self, numbers: frozenset[int], path: bytes, open_file: Open) -> list[Told] | None:
        """Return where a file has some symbols, by place; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Symbols that a name stands for, by number, with their definitions, and the files that have them."""

    told_by: OtherSource
    numbers: frozenset[int]
    definitions: list[Told]
    files: list[bytes]
    """As indexed, by path; none of a symbol that only one file can have."""


@dataclass(frozen=True, slots=True)
class FirstToKnow:
    """Several sources; the first that knows a name answers."""

    sources: tuple[OtherSources, ...]

    @property
    def problem(self) -> str:
        """Return why some have not answered."""
        return "; ".join(filter(None, (one.problem for one in self.sources)))

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool) -> Meaning | None:
        """Return what the first says that knows the name; ``Meaning.told_by`` is asked for the rest."""
        answers = (one.find_meaning(path, span, open_file, uses=uses) for one in self.sources)
        return next((one for one in answers if one is not None), None)


class Imported:
    """Answers from imported indexes, about texts that have not changed since."""

    how = HOW
    problem = ""

    def __init__(self, table: ScipTable) -> None:
        self._table = table
        self._rows: dict[bytes, Rows | None] = {}

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool = True) -> Meaning | None:
        """Return what the name at some bytes of a file stands for.

        None where that is not known: nothing was imported of the file, or of one that defines it, as they are now.
        """
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        if rows is None:
            return None
        around = rows[(rows[:, START] <= span[0]) & (span[1] <= rows[:, END]) & (rows[:, START] < rows[:, END])]
        sizes = around[:, END] - around[:, START]
        numbers = frozenset(around[sizes == sizes.min(initial=sizes.max(initial=0)), SYMBOL].tolist())
        found: list[Told] = []
        for other in sorted({path, *self._find_files(numbers, defining=True)}):
            told = self.find_occurrences(numbers, other, open_file)
            if told is None:  # its definitions are elsewhere now
                return None
            found += [one for one in told if one.role == "definition"]
        files = self._find_files(numbers, defining=False) if uses else []
        return Meaning(self, numbers, found, files) if found else None

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return where the names begin of which something was imported, in a file with that text."""
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        return [] if rows is None else rows[:, START].tolist()

    def find_occurrences(self, numbers: frozenset[int], path: bytes, open_file: Open) -> list[Told] | None:
        """Return where a file has some symbols, by place; None where its text is not the one that was indexed."""
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        if rows is None or symbols is None:
            return None
        found: dict[int, Told] = {}
        for start, end, roles, number in rows.tolist():
            if number in numbers and start not in found:
                role: Role = "definition" if roles & DEFINES else "import" if roles & IMPORTS else "reference"
                if role == "reference" and start < end:
                    role = symbols.role(start) or role
                found[start] = Told(path, symbols, start, end, role)
        return list(found.values())

    def _find_files(self, numbers: frozenset[int], *, defining: bool) -> list[bytes]:
        try:
            return self._table.find((number for number in numbers if number >= 0), defining=defining)
        except sqlite3.Error:  # damaged: nothing is known
            return []

    def _find_rows(self, path: bytes, symbols: FileSymbols) -> Rows | None:
        if path not in self._rows:
            checkpoint()
            try:
                self._rows[path] = self._table.occurrences(path, symbols.data)
            except (sqlite3.Error, Damaged):
                self._rows[path] = None
        return self._rows[path]
