"""Outlines of the definitions in files.

Files come from a ``SymbolSource``; it makes no difference whether their symbols were stored or are parsed now.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import clip
from flashgrep.base.model import Skipped
from flashgrep.index.table import tier_of
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, KIND, KINDS, START, TYPE_KINDS
from flashgrep.parts.symbols.symbol_source import SymbolSource
from flashgrep.search.snapshot import SearchStats

SHOWN_KINDS: Final = frozenset(KINDS) - {
    "field",
    "enumerator",
    "property",
    "package",
    "variable",
}
"""Kinds an outline shows by default."""
MOST_SIGNATURE, MOST_VALUE = 100, 50
"""Most characters of an outline's line; fewer for a constant, whose value is seldom needed."""
LONG_FUNCTION = 200
"""From this many lines on, a function counts as a module of its own (a factory), and its functions are shown."""
_BROUGHT: Final = re.compile(rb"[^=]*=\s*(?:await\s+)?(?:require|import)\(")
"""A value that is an imported module: a definition only in form."""
_FUNCTIONS: Final = frozenset({"function", "method", "constructor"})
_VALUES: Final = frozenset({"constant", "variable", "field", "property"})
_DEEP_KINDS: Final = frozenset(KINDS) - {"package"}
LEAST_SHARE: Final = 200
"""Least characters for a file in a folder's outline; with too many files the last ones get none."""
ENTRY_OVERHEAD: Final = 12
"""Characters around a signature: its line numbers and its indentation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an outline: a symbol and its nesting depth."""

    path: bytes
    line: int
    end_line: int
    depth: int
    kind: str
    signature: str

    @property
    def size(self) -> int:
        """Return its approximate number of characters."""
        return len(self.signature) + ENTRY_OVERHEAD + 2 * self.depth


@dataclass(slots=True)
class Outline(SearchStats):
    """Entries in order, and how many did not fit; for a map, how many files are not in it, by folder of the root."""

    entries: list[Entry] = field(default_factory=list)
    left_out: int = 0
    unmapped: Counter[bytes] = field(default_factory=Counter)


def outline(
    source: SymbolSource,
    paths: Sequence[bytes],
    *,
    max_chars: int,
    everything: bool = False,
) -> Outline:
    """Return the symbols of files as a tree, sources before tests, by path and position, within a budget.

    If not all fit, inner levels are left out in all files alike. On the first level that does not fit, each source gets
    a share, each test one of what remains, and within a file types come first.
    """
    new_outline = Outline()
    files: list[list[Entry]] = []
    needed = 0  # for the least share of every file
    for path, symbols in open_all(source, sorted(paths, key=tier_of), new_outline):
        if needed > max_chars:  # stop early: making signatures is the slow part
            new_outline.left_out += len(symbols.parsed.definitions)
            continue
        entries = list(read_entries(path, symbols, everything=everything))
        files.append(entries)
        needed += min(LEAST_SHARE, size_of_level(entries, 0))
    checkpoint()
    level, room = count_whole_levels(files, max_chars)
    checkpoint()
    shown = {
        entry for entries in files for entry in entries if entry.depth < level
    } | choose_of_level(files, level, room)
    for entries in files:
        of_file = [entry for entry in entries if entry in shown]
        new_outline.entries += of_file
        new_outline.left_out += len(entries) - len(of_file)
    return new_outline


def size_of_level(entries: Iterable[Entry], level: int) -> int:
    """Return how many characters a level of nesting takes, without the names of files."""
    return sum(entry.size for entry in entries if entry.depth == level)


def count_whole_levels(
    files: Sequence[Sequence[Entry]], max_chars: int
) -> tuple[int, int]:
    """Return how many levels fit as a whole, from the outermost, and how many characters are left then."""
    levels = 1 + max(
        (entry.depth for entries in files for entry in entries), default=-1
    )
    room = max_chars
    for level in range(levels):
        size = sum(size_of_level(entries, level) for entries in files)
        if level == 0:
            size += sum(len(entries[0].path) + 1 for entries in files if entries)
        if size > room:
            return level, room
        room -= size
        checkpoint()
    return levels, room


def choose_of_level(
    files: Sequence[Sequence[Entry]], level: int, max_chars: int
) -> set[Entry]:
    """Return what is shown of the first level that does not fit: of each source a share, of each test one of what remains."""
    chosen: set[Entry] = set()
    room = max_chars
    cut = [
        entries for entries in files if any(entry.depth == level for entry in entries)
    ]
    for _, group in groupby(cut, key=lambda entries: tier_of(entries[0].path)):
        of_tier = list(group)
        share = max(LEAST_SHARE, room // len(of_tier))
        for entries in of_tier:
            checkpoint()
            # Of a file that no whole level shows, the name is to come.
            if level == 0:
                room -= len(entries[0].path) + 1
            of_file = min(share, room)
            for entry in sorted(entries, key=lambda one: one.kind not in TYPE_KINDS):
                if entry.depth == level and entry.size <= of_file:
                    of_file -= entry.size
                    room -= entry.size
                    chosen.add(entry)
    return chosen


def read_entries(
    path: bytes, symbols: FileSymbols, *, everything: bool
) -> Iterator[Entry]:
    """Yield what a file defines, in order of position."""
    previous: Entry | None = None
    for index, depth in nest(symbols, everything=everything):
        span = symbols.defined(index)
        kind = symbols.kind(index)
        head = symbols.signature(index)
        limit = MOST_SIGNATURE
        if kind in _VALUES:
            limit = MOST_VALUE
            place = symbols.row(index)
            is_brought = _BROUGHT.match(symbols.data, place[START], place[END])
            if is_brought and not everything:
                continue
        signature = clip(head, limit)
        entry = Entry(path, span.start_line, span.end_line, depth, kind, signature)
        # One statement may define several names.
        if entry != previous:
            yield entry
        previous = entry


def nest(symbols: FileSymbols, *, everything: bool) -> Iterator[tuple[int, int]]:
    """Yield the definitions of a file that an outline shows, in order of position, each with its nesting depth."""
    kinds = _DEEP_KINDS if everything else SHOWN_KINDS
    ends: list[int] = []  # of the enclosing definitions
    previous = (-1, -1)
    helpers_to = 0  # end of the short function whose nested functions are shown only with ``everything``
    for index, row in enumerate(symbols.rows):
        checkpoint()
        while ends and ends[-1] <= row[START]:
            ends.pop()
        kind = KINDS[row[KIND]]
        if kind not in kinds or (kind == "variable" and ends):
            continue
        if row[START] < helpers_to and not everything:
            continue
        if kind in _FUNCTIONS and not everything:
            size = symbols.lines.line(
                max(row[START], row[END] - 1)
            ) - symbols.lines.line(row[START])
            if size < LONG_FUNCTION:
                helpers_to = row[END]
        span = (row[START], row[END])
        # Names of one statement stand beside each other.
        depth = len(ends) - (span == previous)
        yield index, depth
        if span != previous:
            ends.append(row[END])
        previous = span


def open_all(
    source: SymbolSource, paths: Iterable[bytes], made: Outline
) -> Iterator[tuple[bytes, FileSymbols]]:
    """Yield the files that have symbols; the outline counts why others have none."""
    for path in paths:
        opened = source.open(path)
        if isinstance(opened, Skipped):
            made.count_skips(opened.reason)
        elif opened is not None:
            made.files_read += 1
            yield path, opened
