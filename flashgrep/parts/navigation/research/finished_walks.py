"""Cache of recently finished research walks, for the next pages of their answers.

A cached walk is used only if repeating it would give the same result: no file was added, removed or marked as changed,
and each file that was read has the same size, times and inode.
"""

import weakref
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import FileStat
from flashgrep.files.buffers import UnsavedText
from flashgrep.index.table import FileTable, Mark
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.symbol_source import SnapshotSource, TextCache
from flashgrep.search.snapshot import Snapshot

_MOST_BYTES: Final = 16 << 20
_LARGEST: Final = 8 << 20
"""Most bytes of a cached walk; a larger one is repeated for each page."""
_TEXT_FACTOR: Final = 3
"""Memory of a text with its unpacked symbols, as a multiple of the text."""
_EACH: Final = 500
"""Bytes for a symbol or an edge in the graph, and for the version of a file that was read."""
_MOST_PENDING: Final = 1_000
"""Most changed files with which two states of a project are compared."""


@dataclass(slots=True)
class WalkState:
    """The state of the project that a walk read, over all hops."""

    files: dict[bytes, FileStat | None] = field(default_factory=dict)
    """The version of each file when it was read; None: it did not exist."""
    is_one_state: bool = True
    """Whether all hops saw one state of the project, and all files one version."""
    root: bytes = b""
    _table: weakref.ref[FileTable] | None = None
    """A weak reference: for a large project the table takes tens of megabytes."""
    _pending: Mapping[bytes, Mark] = field(default_factory=dict)
    _unsaved: Mapping[bytes, UnsavedText] = field(default_factory=dict)

    def advance(self, research: Research, snapshot: Snapshot) -> bool:
        """Make one hop; return whether there is more to follow."""
        if self._table is None:
            self.root = snapshot.root.path
            self._table = weakref.ref(snapshot.table)
            self._pending = snapshot.pending
            self._unsaved = snapshot.unsaved
        source = SnapshotSource(snapshot)
        more = research.advance(source)
        read = source.read_files
        is_same = all(
            self.files[path] == read[path] for path in self.files.keys() & read.keys()
        )
        self.is_one_state = self.is_one_state and is_same and self._is_of(snapshot)
        self.files |= read
        return more

    def _is_of(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot has the same files, as far as is known without accessing them."""
        return (
            self._table is not None
            and self._table() is snapshot.table
            and len(self._pending) <= _MOST_PENDING
            and self._pending == snapshot.pending
            and self._unsaved.keys() == snapshot.unsaved.keys()
            and all(
                text is snapshot.unsaved[path] for path, text in self._unsaved.items()
            )
        )

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether repeating the walk would give the same result."""
        if not self._is_of(snapshot):
            return False
        for path, stat in self.files.items():
            checkpoint()
            if path not in self._unsaved and snapshot.stat(path) != stat:
                return False
        return True


_walks: Final = TextCache[tuple[Research, WalkState]](_MOST_BYTES, _LARGEST)


def keep_walk(question: Hashable, research: Research, reading: WalkState) -> None:
    """Cache a finished walk; of the files it read, only those with symbols in the graph are kept."""
    if not reading.is_one_state:
        return
    research.release_files()
    graph = research.graph
    texts = {
        id(node.definition.symbols): len(node.definition.symbols.data)
        for node in graph.nodes.values()
    }
    size = _TEXT_FACTOR * sum(texts.values()) + _EACH * (
        len(graph.nodes) + len(graph.edges) + len(reading.files)
    )
    _walks.put((reading.root, question), size, (research, reading))


def find_walk(question: Hashable, snapshot: Snapshot) -> Research | None:
    """Return the cached walk of a question if it is still current; do not modify it."""
    walk = _walks.find((snapshot.root.path, question))
    if walk is not None and walk[1].is_current(snapshot):
        return walk[0]
    return None
