"""Which files define the word that is asked for: they are answered first, however many files use it.

What is said of a file depends on its text alone, whether its symbols are stored or are parsed now, so that the pages of
an answer fit together while files are being indexed.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Final

import numpy as np

from flashgrep.checkpoint import checkpoint
from flashgrep.index import symbols as table
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import DECLARES, KIND, KINDS, NAME, NAME_END
from flashgrep.model import Document
from flashgrep.pattern import Pattern
from flashgrep.search.snapshot import BLOB, Places, Snapshot
from flashgrep.search.symbol_source import parse_file

MOST_PARSED: Final = 16
"""Files without stored symbols that are read, and parsed if they have the word, to tell who defines it: 5 ms each."""
MOST_PARSED_BYTES: Final = 1 << 17
"""Larger ones are not parsed for a question: what was parsed is kept up to this size only."""
MOST_NAMES: Final = 8
_NAME: Final = re.compile(r"[^\W\d][\w$]*")


class Definition(IntEnum):
    """How surely a line defines a name, the best first."""

    DEFINED = 0
    VALUE = 1
    """A variable, a field, a constant: less often what is meant than a function or a type of that name."""
    DECLARED = 2
    """A prototype, an overload, an extension of what is defined elsewhere."""
    OTHER_CASE = 3
    """The name has other capital letters."""
    PERHAPS = 4
    """It looks so, or it is the heading of a text."""
    USED = 5


_BY_KIND: Final = {
    **dict.fromkeys(("variable", "field", "property", "constant", "enumerator", "event"), Definition.VALUE),
    "extension": Definition.DECLARED,
    "heading": Definition.PERHAPS,
}


class Definers:
    """Files that define one of some names, or are called so."""

    def __init__(self, snapshot: Snapshot, names: frozenset[bytes], defining: set[bytes], called: set[bytes]) -> None:
        self.defining = frozenset(defining)
        self.paths = frozenset(defining | called)
        self._snapshot = snapshot
        self._names = names
        self._known: dict[bytes, Mapping[int, Definition]] = {}

    def definitions(self, path: bytes, document: Document) -> Mapping[int, Definition]:
        """Return where the lines start by which a file defines one of the names, and how they do."""
        if path not in self._known:
            packed = None
            version, reader = self._snapshot.indexed_version(path), self._snapshot.reader
            if version is not None and reader is not None:
                with reader.transaction() as connection, suppress(table.Declined):
                    packed = table.packed(connection, version[0])
            symbols = FileSymbols(packed, document.data) if packed else parse_file(path, document.data)
            found: dict[int, Definition] = {}
            for at, how in find_definitions(symbols, self._names) if isinstance(symbols, FileSymbols) else ():
                start = document.data.rfind(b"\n", 0, at) + 1
                found[start] = min(how, found.get(start, how))
            self._known[path] = found
        return self._known[path]


def find_definers(snapshot: Snapshot, pattern: Pattern, places: Places, *, going_on: bool) -> Definers | None:
    """Return who of the files that may match defines the word asked for; None: that cannot be told.

    ``places``: of the table. ``going_on``: a page has been answered so; files that cannot be told about have changed
    since then, and count as using the word.
    """
    names = names_asked(pattern)
    if not names or snapshot.reader is None or not snapshot.parsed_to:
        return None
    asked = frozenset(name.encode() for name in names)
    with snapshot.reader.transaction() as connection:
        blobs = sorted({blob for name in names for blob in table.defining(connection, name)})
    paths, numbers = snapshot.table.paths, snapshot.table.columns[places, BLOB]
    changed = set(snapshot.changed_paths())
    is_stored = np.isin(numbers, np.array(blobs, np.int64)) & (numbers <= snapshot.parsed_to)
    defining = set(snapshot.unchanged_paths(places[is_stored].tolist()))

    # Files with one of the names, whatever their endings: many paths are searched as one text.
    joined = b"\0".join([b"", *(paths[at] for at in places.tolist()), *changed, b""])
    either = b"|".join(map(re.escape, asked))
    called = set()
    for match in re.finditer(rb"(?i)[/\0](?:%s)(?:\.[^/\0]*)?(?=\0)" % either, joined):
        path = joined[joined.rfind(b"\0", 0, match.start() + 1) + 1 : match.end()]
        if path in changed or path not in snapshot.pending:
            called.add(path)

    # Files without stored symbols are parsed if they have a name, and are few.
    unknown = changed.union(snapshot.unchanged_paths(places[numbers > snapshot.parsed_to].tolist()))
    if len(unknown) > MOST_PARSED:
        return Definers(snapshot, asked, defining, called) if going_on else None
    for path in unknown:
        checkpoint()
        document = snapshot.read(path)
        text = document.data.lower() if isinstance(document, Document) else b""
        if not isinstance(document, Document) or not any(name.lower() in text for name in asked):
            continue
        if len(text) <= MOST_PARSED_BYTES:
            symbols = parse_file(path, document.data)
            if isinstance(symbols, FileSymbols) and any(find_definitions(symbols, asked)):
                defining.add(path)
        elif not going_on:
            return None
    return Definers(snapshot, asked, defining, called)


def names_asked(pattern: Pattern) -> list[str]:
    """Return the names a literal pattern may be after: the last one of each text, as in ``def main``."""
    if pattern.mode != "literal" or pattern.multiline:
        return []
    each = (_NAME.findall(text[: table.LONGEST_NAME]) for text in pattern.texts[:MOST_NAMES])
    return list(dict.fromkeys(names[-1] for names in each if names))


def find_definitions(symbols: FileSymbols, names: frozenset[bytes]) -> Iterator[tuple[int, Definition]]:
    """Yield where a file defines the names, in any case, and how."""
    rows = symbols.parsed.definitions
    sizes = rows[:, NAME_END] - rows[:, NAME]
    folded = {name.lower() for name in names}
    for row in rows[np.isin(sizes, [len(name) for name in names])].tolist():
        name = symbols.data[row[NAME] : row[NAME_END]]
        if name.lower() in folded:
            how = _BY_KIND.get(KINDS[row[KIND]], Definition.DEFINED)
            how = max(how, Definition.DECLARED) if row[DECLARES] else how
            yield row[NAME], how if name in names else max(how, Definition.OTHER_CASE)
