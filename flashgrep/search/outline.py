"""What is in a file, a folder or a project, at a glance and within a budget of characters."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flashgrep.checkpoint import checkpoint
from flashgrep.index.table import tier_of
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import KIND, KINDS
from flashgrep.model import Skipped
from flashgrep.search.snapshot import SearchStats
from flashgrep.search.symbol_source import SymbolSource

SHOWN_KINDS: Final = frozenset(KINDS) - {"field", "enumerator", "property", "package", "variable"}
"""Kinds an outline shows unless everything is asked for."""
_DEEP_KINDS: Final = frozenset(KINDS) - {"package"}
MAP_FILES: Final = 3_000
"""Files a map looks at: sources first, nearest to the root first."""
_COMMON: Final = 50
"""A name defined in so many files (``main``, ``init``) says little about who uses which."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an outline: a symbol, how deep it is nested, and how often its name is used elsewhere."""

    path: bytes
    line: int
    end_line: int
    depth: int
    kind: str
    signature: str
    uses: int = 0


@dataclass(slots=True)
class Outline(SearchStats):
    """Entries in order, and what did not fit."""

    entries: list[Entry] = field(default_factory=list)
    left_out: int = 0


def outline(source: SymbolSource, paths: Iterable[bytes], *, max_chars: int, everything: bool = False) -> Outline:
    """Return the symbols of files as a tree, by path and place, cut when the budget is spent."""
    made = Outline()
    spent = 0
    for path, symbols in _opened(source, paths, made):
        for entry in _entries(path, symbols, _DEEP_KINDS if everything else SHOWN_KINDS):
            spent += len(entry.signature) + 12 + 2 * entry.depth
            if spent > max_chars:
                made.left_out += 1
            else:
                made.entries.append(entry)
    return made


def repository_map(source: SymbolSource, *, max_chars: int) -> Outline:
    """Return the definitions other files use most, until the budget is spent: a first look at a project."""
    made = Outline()
    ranked = sorted((tier_of(path), path.count(b"/"), path) for path in source.paths())
    chosen = [path for tier, _, path in ranked if tier < 2][:MAP_FILES]  # noqa: PLR2004 - sources, then tests
    defined: dict[str, list[Entry]] = {}
    used: Counter[str] = Counter()
    for path, symbols in _opened(source, chosen, made):
        names = _take_definitions(path, symbols, defined)
        used.update(set(_used(symbols)) - names)
    entries = [
        Entry(one.path, one.line, one.end_line, one.depth, one.kind, one.signature, used[name])
        for name, entries in defined.items()
        for one in entries
        if len(entries) < _COMMON
    ]
    entries.sort(key=lambda entry: (tier_of(entry.path), -entry.uses, entry.path, entry.line))
    _cut(made, entries, max_chars)
    return made


def _cut(made: Outline, entries: list[Entry], max_chars: int) -> None:
    spent = 0
    seen: set[bytes] = set()
    for entry in entries:
        spent += len(entry.signature) + 14 + (0 if entry.path in seen else len(entry.path))
        seen.add(entry.path)
        if spent > max_chars:
            break
        made.entries.append(entry)
    made.left_out = len(entries) - len(made.entries)
    made.entries.sort(key=lambda entry: (entry.path, entry.line))


def _opened(source: SymbolSource, paths: Iterable[bytes], made: Outline) -> Iterator[tuple[bytes, FileSymbols]]:
    for path in paths:
        opened = source.open(path)
        if isinstance(opened, Skipped):
            made.count_skipped(opened.reason)
        elif opened is not None:
            made.files_read += 1
            yield path, opened


def _entries(path: bytes, symbols: FileSymbols, kinds: frozenset[str]) -> Iterator[Entry]:
    ends: list[int] = []
    for index, row in enumerate(symbols.rows):
        checkpoint()
        while ends and ends[-1] <= row[2]:
            ends.pop()
        kind = KINDS[row[KIND]]
        if kind in kinds and (kind != "variable" or not ends):
            found = symbols.defined(index)
            yield Entry(path, found.start_line, found.end_line, len(ends), kind, symbols.signature(index))
            ends.append(row[3])


def _take_definitions(path: bytes, symbols: FileSymbols, defined: dict[str, list[Entry]]) -> set[str]:
    names = set()
    for index in range(len(symbols.rows)):
        checkpoint()
        kind = symbols.kind(index)
        if kind in SHOWN_KINDS and kind not in {"heading", "extension"} and symbols.defined_role(index) == "definition":
            found = symbols.defined(index)
            names.add(found.name)
            depth = 1 if found.container else 0
            entry = Entry(path, found.start_line, found.end_line, depth, kind, symbols.signature(index))
            defined.setdefault(found.name, []).append(entry)
    return names


def _used(symbols: FileSymbols) -> Iterator[str]:
    for mark in ("call", "base", "import"):
        for offset in symbols.parsed.marked(mark).tolist():
            yield symbols.word_at(offset)
