"""What was read out of texts for look-ups lately, by content: unpacked symbols, imports, scopes with their trees.

A file is still read for every answer; what its text means is worked out once. A text is its own key, so nothing here
can be out of date.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from flashgrep.ingest.parse.imports import FileImports, read_imports
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import ParsedFile, packed_language
from flashgrep.ingest.parse.scoping import FileScopes, read_scopes

ValueT = TypeVar("ValueT")
_MOST_SYMBOLS: Final = 16 << 20
_MOST_IMPORTS: Final = 4 << 20
_MOST_SCOPES: Final = 1 << 20
"""Bytes of text; unpacked symbols take about twice as much, imports as much again, scopes with a tree 30 times."""
_LARGEST: Final = 1 << 18
"""A larger text would put too many others out."""


class _Kept(Generic[ValueT]):
    """Values by key, the one used longest ago leaves first; threads share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._held: OrderedDict[Hashable, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> ValueT | None:
        """Return the value of a key, if it is known."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def find_or_make(self, key: Hashable, size: int, make: Callable[[], ValueT]) -> ValueT:
        """Return the value of a key; two threads may both make it. None is not kept: there was no time for it."""
        if (known := self.find(key)) is not None:
            return known
        value = make()
        if size <= _LARGEST and value is not None:
            with self._lock:
                self._size += size - self._held.pop(key, (value, 0))[1]
                self._held[key] = value, size
                while self._size > self._most:
                    self._size -= self._held.popitem(last=False)[1][1]
        return value

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._size = 0


_symbols = _Kept[FileSymbols](_MOST_SYMBOLS)
_imports = _Kept[FileImports](_MOST_IMPORTS)
_scopes = _Kept[FileScopes | None](_MOST_SCOPES)


def find_symbols(language: str, data: bytes) -> FileSymbols | None:
    """Return a text with its symbols, if they are known."""
    return _symbols.find((language, data))


def keep_symbols(given: bytes | ParsedFile, data: bytes) -> FileSymbols:
    """Return a text with its symbols, packed or parsed."""
    language = packed_language(given) if isinstance(given, bytes) else given.language
    return _symbols.find_or_make((language, data), len(data), lambda: FileSymbols(given, data))


def imports_of(symbols: FileSymbols) -> FileImports:
    """Return what a text imports and exports; not to be changed."""
    return _imports.find_or_make((symbols.language, symbols.data), len(symbols.data), lambda: read_imports(symbols))


def scopes_of(path: bytes, symbols: FileSymbols) -> FileScopes | None:
    """Return the scopes of a file in one of the languages ``SCOPED``; None where it cannot be parsed in time."""
    language, data = symbols.language, symbols.data
    found = _scopes.find_or_make((language, data), len(data), lambda: read_scopes(path, language, data))
    return found if found is None or found.path == path else found.at(path)


def forget_texts() -> None:
    """Let go of all of it."""
    for kept in (_symbols, _imports, _scopes):
        kept.clear()
