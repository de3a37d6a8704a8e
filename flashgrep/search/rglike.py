"""What the index proves of single files: which of them cannot match, so that a search file by file may skip them."""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from flashgrep.ingest.extract import BLOCK
from flashgrep.pattern import Pattern
from flashgrep.search.exact import View

_PROVEN = frozenset({"binary"})
"""Why a file may be declined and still have no match, as ripgrep declines it too."""


class Cover:
    """A project's files as indexed and as changed since, and which of them may match a pattern."""

    def __init__(self, view: View, pattern: Pattern | None) -> None:
        self._view = view
        self._likely = None if pattern is None else _likely(view, pattern)

    def below(self, folder: bytes) -> Iterator[bytes]:
        """Yield our files below a folder (``b""``: all), in no order."""
        pending = self._view.pending
        for path in self._view.table.below(folder):
            if path not in pending:
                yield path
        lead = folder + b"/" if folder else b""
        for path, mark in pending.items():
            if mark.ours and path.startswith(lead):
                yield path

    def likely(self, folder: bytes) -> list[bytes] | None:
        """Return our files below a folder that may match, in no order; None where the index rules none out."""
        if self._likely is None:
            return None
        lead = folder + b"/" if folder else b""
        pending = self._view.pending
        changed = [path for path, mark in pending.items() if mark.ours and path.startswith(lead)]
        return [*changed, *(path for path in self._likely if path.startswith(lead) and path not in pending)]

    def totals(self, folder: bytes) -> tuple[int, int]:
        """Return how many files below a folder the index rules out, and their bytes, of which binary ones have none."""
        table = self._view.table
        low = bisect_left(table.paths, folder + b"/") if folder else 0
        high = bisect_left(table.paths, folder + b"0") if folder else len(table)
        lead = folder + b"/" if folder else b""
        asked = {path for path in (*(self._likely or ()), *self._view.pending) if path.startswith(lead)}
        read = [at for at in map(table.find, asked) if at is not None]
        others = (table.find(path) for path in table.skipped if path.startswith(lead) and path not in asked)
        binary = [at for at in others if at is not None]
        size = int(table.columns[low:high, 1].sum()) - int(table.columns[read, 1].sum())
        return high - low - len(read), size - int(table.columns[binary, 1].sum())

    def ruled_out(self, path: bytes) -> int | None:
        """Return the size of a file that cannot match, 0 of a binary one; None where it has to be read.

        The index speaks only of what it has as it is now.
        """
        if self._likely is None or path in self._likely or path in self._view.pending:
            return None
        table = self._view.table
        at = table.find(path)
        if at is None:
            return None
        return 0 if path in table.skipped else int(table.columns[at, 1])


def _likely(view: View, pattern: Pattern) -> set[bytes] | None:
    """Return the indexed files that may match, or None for all of them."""
    table = view.table
    blobs = view.reader.candidates(pattern.grams()) if view.reader else None
    if blobs is None:
        return None
    found = {table.paths[at] for at in table.places(blobs)}
    found.update(path for path, why in table.skipped.items() if why not in _PROVEN)
    if pattern.matcher().crosses_lines:
        # These are searched beyond a NUL byte behind their first block, where their index ends.
        found.update(table.paths[at] for at in np.flatnonzero(table.columns[:, 1] > BLOCK))
    return found
