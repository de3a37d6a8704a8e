"""Other sources of what names in a file mean, for one lookup: compilers know what flashgrep can only infer.

``ScipSource`` reads indexes that the user imported, ``language_server_source`` asks language servers.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.damage import Damaged
from flashgrep.parts.navigation.scip.scip_store import DEFINES, END, IMPORTS, START, SYMBOL, Rows, ScipTable
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role

HOW: Final = "scip"
"""The evidence given in answers for results of an imported index."""
Open = Callable[[bytes], FileSymbols | None]


@dataclass(frozen=True, slots=True)
class SourceOccurrence:
    """An occurrence of a symbol, in bytes."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    role: Role


class OtherSources(Protocol):
    """Sources that know what names mean."""

    @property
    def problem(self) -> str:
        """Return why one of them did not answer, if the reader of the answer should know."""

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool) -> "Meaning | None":
        """Return what the name at a span of a file refers to, with the files that use it if ``uses``; None: unknown."""


class OtherSource(OtherSources, Protocol):
    """One source, which can also find the uses of a name."""

    @property
    def how(self) -> str:
        """Return the evidence given in answers for its results."""

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return the offsets of the names in a file whose meaning the source knows."""

    def find_occurrences(self, numbers: frozenset[int], path: bytes, open_file: Open) -> list[SourceOccurrence] | None:
        """Return the occurrences of symbols in a file, in order; None: unknown."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The symbols that a name refers to, by number, with their definitions and the files that use them."""

    source: OtherSource
    numbers: frozenset[int]
    definitions: list[SourceOccurrence]
    files: list[bytes]
    """As indexed, by path; empty for a symbol that is local to one file."""


@dataclass(frozen=True, slots=True)
class SourceChain:
    """Several sources; the first that knows a name answers."""

    sources: tuple[OtherSources, ...]

    @property
    def problem(self) -> str:
        """Return why some did not answer."""
        return "; ".join(filter(None, (one.problem for one in self.sources)))

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool) -> Meaning | None:
        """Return the first source's result that is known; ``Meaning.source`` answers further questions."""
        answers = (one.find_meaning(path, span, open_file, uses=uses) for one in self.sources)
        return next((one for one in answers if one is not None), None)


class ScipSource:
    """Answers from imported indexes, for texts that have not changed since."""

    how = HOW
    problem = ""

    def __init__(self, table: ScipTable) -> None:
        self._table = table
        self._rows: dict[bytes, Rows | None] = {}

    def find_meaning(self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool = True) -> Meaning | None:
        """Return what the name at a span of a file refers to.

        None: unknown, because no index describes the file, or a file that defines the name, in its current state.
        """
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        if rows is None:
            return None
        around = rows[(rows[:, START] <= span[0]) & (span[1] <= rows[:, END]) & (rows[:, START] < rows[:, END])]
        sizes = around[:, END] - around[:, START]
        numbers = frozenset(around[sizes == sizes.min(initial=sizes.max(initial=0)), SYMBOL].tolist())
        found: list[SourceOccurrence] = []
        for other in sorted({path, *self._find_files(numbers, defining=True)}):
            occurrences = self.find_occurrences(numbers, other, open_file)
            if occurrences is None:  # its definitions have moved since
                return None
            found += [one for one in occurrences if one.role == "definition"]
        files = self._find_files(numbers, defining=False) if uses else []
        return Meaning(self, numbers, found, files) if found else None

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return the offsets of the names that an index describes, if the file's text is the indexed one."""
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        return [] if rows is None else rows[:, START].tolist()

    def find_occurrences(self, numbers: frozenset[int], path: bytes, open_file: Open) -> list[SourceOccurrence] | None:
        """Return the occurrences of symbols in a file, in order; None if its text is not the indexed one."""
        symbols = open_file(path)
        rows = self._find_rows(path, symbols) if symbols is not None else None
        if rows is None or symbols is None:
            return None
        found: dict[int, SourceOccurrence] = {}
        for start, end, roles, number in rows.tolist():
            if number in numbers and start not in found:
                role: Role = "definition" if roles & DEFINES else "import" if roles & IMPORTS else "reference"
                if role == "reference" and start < end:
                    role = symbols.role(start) or role
                found[start] = SourceOccurrence(path, symbols, start, end, role)
        return list(found.values())

    def _find_files(self, numbers: frozenset[int], *, defining: bool) -> list[bytes]:
        try:
            return self._table.find((number for number in numbers if number >= 0), defining=defining)
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
