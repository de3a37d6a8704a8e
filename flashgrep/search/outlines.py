"""Outlines of what files define.

Files come from a ``SymbolSource``; whether their symbols were stored or are parsed now makes no difference.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import clip
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import END, KIND, KINDS, START
from flashgrep.model import Skipped
from flashgrep.search.snapshot import SearchStats
from flashgrep.search.symbol_source import SymbolSource

SHOWN_KINDS: Final = frozenset(KINDS) - {"field", "enumerator", "property", "package", "variable"}
"""Kinds an outline shows unless everything is asked for."""
MOST_SIGNATURE, MOST_VALUE = 100, 50
"""Characters of a line of an outline; of a constant less, whose value is seldom what is looked for."""
LONG_FUNCTION = 200
"""Lines from which on a function is taken for a module of its own (a factory), whose functions an outline shows."""
_FUNCTIONS: Final = frozenset({"function", "method", "constructor"})
_VALUES: Final = frozenset({"constant", "variable", "field", "property"})
_DEEP_KINDS: Final = frozenset(KINDS) - {"package"}
ENTRY_OVERHEAD: Final = 12
"""Characters around a signature: its lines and its indentation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an outline: a symbol, and how deep it is nested."""

    path: bytes
    line: int
    end_line: int
    depth: int
    kind: str
    signature: str


@dataclass(slots=True)
class Outline(SearchStats):
    """Entries in order, and what did not fit."""

    entries: list[Entry] = field(default_factory=list)
    left_out: int = 0


def outline(source: SymbolSource, paths: Iterable[bytes], *, max_chars: int, everything: bool = False) -> Outline:
    """Return the symbols of files as a tree, by path and place, cut when the budget is spent."""
    made = Outline()
    kinds = _DEEP_KINDS if everything else SHOWN_KINDS
    for path, symbols in open_all(source, paths, made):
        ends: list[int] = []  # of the definitions around
        helpers_to = 0  # where the short function ends whose own functions are told with everything only
        for index, row in enumerate(symbols.rows):
            checkpoint()
            while ends and ends[-1] <= row[START]:
                ends.pop()
            kind = KINDS[row[KIND]]
            if kind not in kinds or (kind == "variable" and ends):
                continue
            if row[START] < helpers_to and not everything:
                continue
            found, most = symbols.defined(index), MOST_VALUE if kind in _VALUES else MOST_SIGNATURE
            signature = clip(symbols.signature(index), most)
            if kind in _FUNCTIONS and found.end_line - found.start_line < LONG_FUNCTION:
                helpers_to = row[END]
            max_chars -= len(signature) + ENTRY_OVERHEAD + 2 * len(ends)
            if max_chars < 0:
                made.left_out += 1
            else:
                made.entries.append(Entry(path, found.start_line, found.end_line, len(ends), kind, signature))
            ends.append(row[END])
    return made


def open_all(source: SymbolSource, paths: Iterable[bytes], made: Outline) -> Iterator[tuple[bytes, FileSymbols]]:
    """Yield the files that have symbols; of the others the outline says why not."""
    for path in paths:
        opened = source.open(path)
        if isinstance(opened, Skipped):
            made.count_skipped(opened.reason)
        elif opened is not None:
            made.files_read += 1
            yield path, opened
