"""A project as one question sees it: its file table, its index, paths changed since, and its files on disk."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import Document, FileStat, Skipped
from flashgrep.files.extract import read_file
from flashgrep.files.openat import RootFiles, RootFolder
from flashgrep.index.reader import Reader, TextIndex
from flashgrep.index.table import FileTable, Mark
from flashgrep.search.ripgrep import Counts, Ripgrep

if TYPE_CHECKING:  # lookup workers do not use it, and start sooner without
    from flashgrep.files.buffers import UnsavedText

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Places = np.ndarray[Any, np.dtype[np.int64]]
"""Rows of the file table, ascending: files by path."""

TEXT_ID, SIZE, MTIME_NS, TIER = 0, 1, 2, 5
"""Columns of the file table: the number of a file's text (0: none), its size and time, its tier."""


ItemT = TypeVar("ItemT", bytes, tuple[int, bytes])
ResultT = TypeVar("ResultT")
_NO_FILES = RootFiles(RootFolder(b""))
"""Of a snapshot that is being made."""


@dataclass(slots=True)
class SearchStats:
    """What a search examined; the answer's coverage is made from it."""

    complete: bool = True
    files_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Declined files, counted by reason."""
    detail: str = ""
    """Anything else that a reader of the answer should know."""

    def count_skips(self, reason: str) -> None:
        """Count one more declined file."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A project at one moment. ``pending`` overrides the table: every question reads these paths from disk."""

    root: RootFolder
    table: FileTable
    reader: TextIndex | None
    pending: Mapping[bytes, Mark]
    max_size: int
    excluded: Mapping[bytes, bool] | None = None
    """Entries excluded by rules from the folders walked, each with whether it is a folder; None: unknown."""

    ripgrep: Ripgrep | None = None
    """Scans if no gram narrows the candidates; None: every candidate is read."""
    counts: Counts | None = None
    """What ripgrep has just counted."""
    parsed: bool = False
    """Whether all texts in the table have their symbols in the index."""
    parsed_to: int = 0
    """Texts of the table up to this number have their symbols in the index."""
    unsaved: Mapping[bytes, "UnsavedText"] = field(default_factory=dict)
    """Texts of the client's editor, by path; they replace the versions on disk."""
    sources: Sequence[Callable[["Snapshot"], Any]] = ()
    """Each returns what else knows the meaning of names (a ``SymbolSource``), or None."""
    files: RootFiles = field(default_factory=lambda: _NO_FILES)
    """Opens the project's files while the snapshot is in use; copies share it."""

    def __post_init__(self) -> None:
        # Frozen: this is the only attribute made here. Each question opens folders
        # itself, so none outlives it.
        if self.files.root is not self.root:
            object.__setattr__(self, "files", RootFiles(self.root))

    @property
    def own_index(self) -> Reader | None:
        """The index in this machine's own store, for answers that no other kind of store can give."""
        reader = self.reader
        if isinstance(reader, Reader):
            return reader
        return None

    def with_max_size(self, max_size: int) -> "Snapshot":
        """Return the snapshot with another limit on files.

        Files that were declined or indexed under the old limit become pending, so that they are looked at.
        """
        table = self.table
        # Its size is not known here: whoever reads it finds out.
        mark = Mark(ours=True, sequence=0, size=0)
        pending = dict[bytes, Mark]()
        # Either limit may be the larger one: some files are added, others removed.
        for path, reason in table.skipped.items():
            if reason == "too_large":
                pending[path] = mark
        is_over = table.columns[:, SIZE] > max_size
        for place in np.flatnonzero(is_over):
            pending[table.paths[place]] = mark
        # A path that is already pending keeps its mark, which knows more.
        pending.update(self.pending)
        return replace(self, max_size=max_size, pending=pending)

    def with_buffers(
        self, texts: Mapping[bytes, "UnsavedText"], accepts: Callable[[bytes], bool]
    ) -> "Snapshot":
        """Return the snapshot with these texts in place of the files, as if they were saved.

        Those that differ from their files are pending. ``accepts`` tells whether a file that is not there yet would be
        the project's.
        """
        pending = dict(self.pending)
        sequence = 0
        for mark in self.pending.values():
            sequence = max(sequence, mark.sequence)

        def edited_at(path: bytes) -> int:
            return texts[path].time_ns

        # In the order of editing, as files saved one after the other are marked.
        for path in sorted(texts, key=edited_at):
            text = texts[path]
            text.is_saved = self._is_saved(path, text)
            if text.is_saved:
                continue
            sequence += 1
            if self._is_ours(path) or accepts(path):
                size = len(text.data)
                pending[path] = Mark(ours=True, sequence=sequence, size=size)
        return replace(self, unsaved=texts, pending=pending)

    def _is_saved(self, path: bytes, text: "UnsavedText") -> bool:
        """Return whether an editor's text is the file's: it adds nothing then, and the index answers for it."""
        if path in self.pending:
            return False
        # A text of another size is another text: nothing is read for it.
        version = self._stat(path)
        if version is None or version.size != len(text.data):
            return False
        # The texts are compared once for each state of both.
        if text.compared is None or text.compared[0] != version:
            saved = self.read_with_stat(path)
            is_same = saved == (version, text.document)
            text.compared = (version, is_same)
        return text.compared[1]

    def _is_ours(self, path: bytes) -> bool:
        """Return whether a path is the project's by its mark, or else by the table."""
        mark = self.pending.get(path)
        if mark is not None:
            return mark.ours
        return self.table.find(path) is not None

    def _stat(self, path: bytes) -> FileStat | None:
        """Return a file's version from the table."""
        at = self.table.find(path)
        if at is None:
            return None
        columns = self.table.columns[at].tolist()
        return FileStat(*columns[SIZE : SIZE + 4])

    def compare_with_index(self, paths: Sequence[bytes]) -> Mask:
        """Return for each path whether the file there, not behind a link, is now the one that was indexed."""
        is_same: Mask = np.zeros(len(paths), bool)
        numbers: list[int] = []
        places: list[int] = []
        versions: list[FileStat] = []
        for number, path in enumerate(paths):
            # A file that is new has no row, and one that is gone no version.
            at = self.table.find(path)
            if at is None:
                continue
            version = self.stat(path)
            if version is not None:
                numbers.append(number)
                places.append(at)
                versions.append(version)
        if not numbers:
            return is_same
        # One comparison for all: for each by itself it takes as long as the system's
        # answer.
        stored = self.table.columns[places, SIZE:TIER]
        current = np.array(versions, np.int64)
        is_same[numbers] = (stored == current).all(axis=1)
        return is_same

    def has(self, path: bytes) -> bool:
        """Return whether a file belongs to the project."""
        if not self._is_ours(path):
            return False
        # A pending file may be gone; the table's are there, or would be pending.
        return path not in self.pending or self.version(path) is not None

    def changed_paths(self) -> list[bytes]:
        """Return the project's pending files, unordered."""
        return [path for path, mark in self.pending.items() if mark.ours]

    def unchanged_paths(self, places: Iterable[int]) -> Iterator[bytes]:
        """Yield the files in these rows of the table, except pending ones."""
        paths = self.table.paths
        pending = self.pending
        for place in places:
            path = paths[place]
            if path not in pending:
                yield path

    def paths_of_texts(self, text_ids: Collection[int]) -> dict[int, list[bytes]]:
        """Return the unchanged files with each of these texts."""
        paths_by_text: dict[int, list[bytes]] = {text_id: [] for text_id in text_ids}
        wanted_texts = np.array(sorted(paths_by_text), np.int64)
        places = self.table.places(wanted_texts)
        of_places = self.table.columns[places, TEXT_ID].tolist()
        for place, text_id in zip(places.tolist(), of_places, strict=True):
            path = self.table.paths[place]
            if path not in self.pending:
                paths_by_text[text_id].append(path)
        return paths_by_text

    def indexed_version(self, path: bytes) -> tuple[int, int, int] | None:
        """Return the number of a file's indexed text, with its size and time; None: pending, or not indexed."""
        at = self.table.find(path)
        if at is None or path in self.pending or self.reader is None:
            return None
        columns = self.table.columns[at].tolist()
        return columns[TEXT_ID], columns[SIZE], columns[MTIME_NS]

    def stored_version(self, path: bytes) -> tuple[object, ...] | None:
        """Return an identifier of a file's indexed version; None: pending, not indexed, or of a revision."""
        at = self.table.find(path)
        if at is None or path in self.pending:
            return None
        columns = self.table.columns[at, TEXT_ID:TIER].tolist()
        if not all(columns):
            return None
        return (path, *columns)

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's current size and time; None if they cannot be read."""
        if path in self.unsaved:
            stat = self.read_with_stat(path)[0]
        else:
            stat = self.stat(path)
        if stat is None:
            return None
        return (stat.size, stat.mtime_ns)

    def stat(self, path: bytes) -> FileStat | None:
        """Return an identifier of a file's version on disk; None if it cannot be read."""
        try:
            return FileStat.from_status(self.files.lstat(path))
        except OSError:
            return None

    def read(self, path: bytes) -> Document | Skipped | None:
        """Return a file's current text, or why it has none; None: it is gone."""
        return self.read_with_stat(path)[1]

    def read_with_stat(
        self, path: bytes
    ) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file with its size and time, so that it can be compared with the indexed version."""
        text = self.unsaved.get(path)
        if text is not None:
            checkpoint()
            # With the file's own size and time, since results cached by these are valid
            # for this text, too.
            stat = FileStat(len(text.data), text.time_ns, 0, 0)
            if path not in self.pending:
                stat = self._stat(path) or stat
            if stat.size > self.max_size:
                return stat, Skipped("too_large", f"{stat.size} bytes")
            return stat, text.document
        try:
            return read_file(self.files, path, self.max_size)
        except (FileNotFoundError, NotADirectoryError):
            return None, None


def merge_series(many: Iterable[ItemT], few: list[ItemT]) -> Iterator[ItemT]:
    """Merge two ascending series (in half the time of ``heapq.merge``)."""
    waiting = few[::-1]
    for item in many:
        while waiting and waiting[-1] < item:
            yield waiting.pop()
        yield item
    yield from reversed(waiting)


def ask_and_close(ask: Callable[[Snapshot], ResultT], snapshot: Snapshot) -> ResultT:
    """Return what ``ask`` returns for a snapshot; the folder that it holds open is closed, whatever happens."""
    try:
        return ask(snapshot)
    finally:
        snapshot.files.close()
