"""A project as one question sees it: its file table, its index, the paths that changed since, and its files on disk."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from flashgrep.checkpoint import checkpoint
from flashgrep.index.reader import Reader, TextIndex
from flashgrep.index.table import FileTable, Mark
from flashgrep.ingest.extract import read_file
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.model import Document, FileStat, Skipped
from flashgrep.search.ripgrep import Ripgrep

if TYPE_CHECKING:  # lookup workers have neither, and start sooner without
    from flashgrep.ingest.buffers import UnsavedText
    from flashgrep.servers.pool import ServerPool

Places = np.ndarray[Any, np.dtype[np.int64]]
"""Rows of the file table, ascending: files by path."""

TEXT_ID, SIZE, MTIME_NS, TIER = 0, 1, 2, 5
"""Columns of the file table: the number of a file's text (0: it has none), its size and time, its tier."""


ItemT = TypeVar("ItemT", bytes, tuple[int, bytes])


@dataclass(slots=True)
class SearchStats:
    """What a search looked at: the answer's coverage is made from it."""

    complete: bool = True
    files_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Files that were declined, counted by reason."""
    detail: str = ""
    """What else a reader of the answer should know."""

    def count_skips(self, reason: str) -> None:
        """Count one more file that was declined."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A project at one moment. ``pending`` overrules the table: those paths are read from disk by every question."""

    root: RootFolder
    table: FileTable
    reader: TextIndex | None
    pending: Mapping[bytes, Mark]
    max_size: int
    excluded: Mapping[bytes, bool] | None = None
    """Entries that rules take out of the folders walked, each with whether it is a folder; None: not known."""

    ripgrep: Ripgrep | None = None
    """Scans what no gram narrows; None: every candidate is read."""
    counts: Mapping[bytes, int] | None = None
    """How many lines match in each file, where ripgrep has counted them just now; a file it lacks is read."""
    parsed: bool = False
    """Whether every text of the table has its symbols in the index."""
    parsed_to: int = 0
    """The texts of the table up to this number have their symbols in the index."""
    unsaved: Mapping[bytes, "UnsavedText"] = field(default_factory=dict)
    """Texts of the asking client's editor, by path: they are in the place of what is on disk."""
    scip: Path | None = None
    """Where what the user has imported lies, if that is asked."""
    servers: "ServerPool | None" = None
    """The language servers that the user allows to be asked."""
    files: RootFiles = field(init=False)
    """Opens the project's files, as long as the snapshot is in use."""

    def __post_init__(self) -> None:
        # Frozen: the only attribute that is made here. Each snapshot opens folders for itself, so none outlives its
        # question.
        object.__setattr__(self, "files", RootFiles(self.root))

    @property
    def own_index(self) -> Reader | None:
        """The index of this machine's own store, for what no other kind of store answers."""
        return self.reader if isinstance(self.reader, Reader) else None

    def with_max_size(self, max_size: int) -> "Snapshot":
        """Return the snapshot with another limit on files.

        Files that were declined or indexed under the old limit become pending, so that they are looked at.
        """
        table = self.table
        # Both limits may be the larger one: some files come in, others have to go.
        large = [path for path, why in table.skipped.items() if why == "too_large"]
        over = [table.paths[at] for at in np.flatnonzero(table.columns[:, SIZE] > max_size)]
        marks = {path: Mark(ours=True, sequence=0, size=0) for path in (*large, *over)}
        # What is pending already keeps its own mark, which knows more.
        return replace(self, max_size=max_size, pending=marks | dict(self.pending))

    def with_buffers(self, texts: Mapping[bytes, "UnsavedText"], accepts: Callable[[bytes], bool]) -> "Snapshot":
        """Return the snapshot with these texts in the place of files, as if they were saved.

        Those that differ from their files are pending. ``accepts`` tells whether a file that is not there yet would be
        the project's.
        """
        snapshot = replace(self, unsaved=texts)
        pending, sequence = dict(self.pending), max((mark.sequence for mark in self.pending.values()), default=0)
        # In the order in which they were edited, as files that are saved one after the other are marked.
        for path, text in sorted(texts.items(), key=lambda one: one[1].time_ns):
            # A text that is as on disk adds nothing; the index answers for it.
            # Whether an unchanged file has this text is compared once for each state of both.
            version, is_same = self._stat(path), False
            if version is not None and version.size == len(text.data) and path not in self.pending:
                if text.compared is None or text.compared[0] != version:
                    text.compared = (version, self.read_with_stat(path) == (version, text.document))
                is_same = text.compared[1]
            text.is_saved = is_same
            if not text.is_saved:
                sequence += 1
                mark = pending.get(path)
                is_ours = self.table.find(path) is not None if mark is None else mark.ours
                if is_ours or accepts(path):
                    pending[path] = Mark(ours=True, sequence=sequence, size=len(text.data))
        return replace(snapshot, pending=pending)

    def _stat(self, path: bytes) -> FileStat | None:
        """Return what the table has of a file's version."""
        at = self.table.find(path)
        return None if at is None else FileStat(*self.table.columns[at, SIZE : SIZE + 4].tolist())

    def has(self, path: bytes) -> bool:
        """Return whether a file is the project's."""
        mark = self.pending.get(path)
        if mark is not None:
            return mark.ours and self.version(path) is not None
        return self.table.find(path) is not None

    def changed_paths(self) -> list[bytes]:
        """Return the project's pending files, in no order."""
        return [path for path, mark in self.pending.items() if mark.ours]

    def unchanged_paths(self, places: Iterable[int]) -> Iterator[bytes]:
        """Yield the files at these places of the table, without those that are pending."""
        paths, pending = self.table.paths, self.pending
        for at in places:
            if (path := paths[at]) not in pending:
                yield path

    def paths_of_texts(self, text_ids: Collection[int]) -> dict[int, list[bytes]]:
        """Return the unchanged files with each of these texts."""
        found: dict[int, list[bytes]] = {text_id: [] for text_id in text_ids}
        places = self.table.places(np.array(sorted(found), np.int64))
        for at, text_id in zip(places.tolist(), self.table.columns[places, TEXT_ID].tolist(), strict=True):
            if (path := self.table.paths[at]) not in self.pending:
                found[text_id].append(path)
        return found

    def indexed_version(self, path: bytes) -> tuple[int, int, int] | None:
        """Return the number of a file's indexed text, with the size and time it had; None: pending, or not indexed."""
        at = self.table.find(path)
        if at is None or path in self.pending or self.reader is None:
            return None
        text_id, size, mtime_ns = self.table.columns[at, [TEXT_ID, SIZE, MTIME_NS]].tolist()
        return text_id, size, mtime_ns

    def stored_version(self, path: bytes) -> tuple[object, ...] | None:
        """Return what tells a file as indexed from all others; None: pending, not indexed, or of a revision."""
        at = self.table.find(path)
        if at is None or path in self.pending:
            return None
        found = self.table.columns[at, TEXT_ID:TIER].tolist()
        return (path, *found) if all(found) else None

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's size and time as it is now; None where it cannot be told."""
        stat = self.read_with_stat(path)[0] if path in self.unsaved else self.stat(path)
        return None if stat is None else (stat.size, stat.mtime_ns)

    def stat(self, path: bytes) -> FileStat | None:
        """Return what tells a file's version apart, as it is on disk now; None where it cannot be told."""
        try:
            return FileStat.from_status(self.files.lstat(path))
        except OSError:
            return None

    def read(self, path: bytes) -> Document | Skipped | None:
        """Return a file's text as it is now, or why it has none; None: it is gone."""
        return self.read_with_stat(path)[1]

    def read_with_stat(self, path: bytes) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file, and tell its size and time, so that it can be compared with what was indexed."""
        text = self.unsaved.get(path)
        if text is not None:
            checkpoint()
            # With the file's own size and time, since what is cached by these holds for this text, too.
            saved = None if path in self.pending else self._stat(path)
            stat = saved or FileStat(len(text.data), text.time_ns, 0, 0)
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
