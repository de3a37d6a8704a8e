"""What the daemon knows of one project's files, and which of them the index does not have as they are now."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from flashgrep.index.rows import FileRow
from flashgrep.index.table import FileTable
from flashgrep.ingest.walk import Entry, Walker
from flashgrep.ingest.watch import Change, Watcher
from flashgrep.search.exact import Mark


class Swept(NamedTuple):
    """What a walk of the whole tree found different from the table."""

    changed: list[Entry]
    missing: list[bytes]


class Work(NamedTuple):
    """What changes ask for that cannot be settled without reading folders."""

    sweep: bool
    folders: list[bytes]


class Tree:
    """The files of a project: as indexed (``table``), and those that changed since (``pending``).

    Only the event loop changes it, under the workspace's lock; ``sweep`` and ``list_folder`` read folders and may run
    in a thread while that lock is held.
    """

    def __init__(self, root: bytes, walker: Walker, watcher: Watcher) -> None:
        self.root = root
        self.table = FileTable()
        self.pending: dict[bytes, Mark] = {}
        self.gone = False
        self._walker = walker
        self._watcher = watcher
        self._sequence = 0
        self._counted: tuple[object, int] = (None, 0)
        self._outside: tuple[tuple[bytes, int, int], ...] = ()  # until a sweep, which every project begins with

    def count(self) -> int:
        """Return how many files the project has, as far as is known."""
        key = (self._sequence, len(self.pending), id(self.table))
        if self._counted[0] != key:
            more = 0
            for path, mark in self.pending.items():
                more += mark.ours - (self.table.find(path) is not None)
            self._counted = (key, len(self.table) + more)
        return self._counted[1]

    def skipped(self) -> dict[str, int]:
        """Return how many files are declined, by reason; a folder that cannot be read counts as one."""
        return self.with_unread(Counter(self.table.skipped.values()))

    def with_unread(self, skipped: Mapping[str, int]) -> dict[str, int]:
        """Return these counts with the folders that cannot be read among the unreadable."""
        unread = len(self._walker.unreadable)
        return {**skipped, "unreadable": skipped.get("unreadable", 0) + unread} if unread else dict(skipped)

    def mark(self, path: bytes, *, ours: bool, size: int = 0) -> None:
        """Note that a path is not what the index has."""
        if ours or path in self.pending or self.table.find(path) is not None:
            self._sequence += 1
            self.pending[path] = Mark(ours, self._sequence, size)

    def mark_changed(self, paths: Iterable[bytes]) -> None:
        """Look at paths that may have changed: a regular file that the rules accept is ours."""
        for path in paths:
            try:
                found = os.lstat(self.root + b"/" + path)
            except OSError:
                self.mark(path, ours=False)
            else:
                ours = stat.S_ISREG(found.st_mode) and self._walker.accepts(path)
                self.mark(path, ours=ours, size=found.st_size)
                if found.st_nlink > 1:
                    self._mark_twins(path, found.st_ino)

    def _mark_twins(self, path: bytes, inode: int) -> None:
        """Mark the other names of a file: an event tells only the name it was written by."""
        for twin in self.table.same_inode(inode):
            if twin != path:
                self.mark(twin, ours=self._walker.accepts(twin))

    def rules_changed(self) -> bool:
        """Return whether ignore rules outside the watched folders changed since the last call."""
        now = self._walker.outside_rules()
        changed, self._outside = now != self._outside, now
        return changed

    def take(self, changes: Iterable[Change]) -> Work:
        """Mark what changes say, and return what has to be read to know the rest."""
        sweep = False
        folders: list[bytes] = []
        for change in dict.fromkeys(changes):
            if change.kind == "file":
                sweep |= self._walker.is_rules_file(change.path.rpartition(b"/")[2])
                self.mark_changed([change.path])
            elif change.kind == "folder":
                folders.append(change.path)
            elif change.kind == "folder_gone":
                self._mark_below(change.path)
            elif change.kind == "root_gone":
                self.gone = True
            else:
                sweep = True
            sweep |= change.kind.startswith("folder") and change.path.rpartition(b"/")[2] == b".git"
        return Work(sweep, folders)

    def _mark_below(self, folder: bytes) -> None:
        below = folder + b"/"
        for path in [*self.table.below(folder), *(path for path in self.pending if path.startswith(below))]:
            self.mark(path, ours=False)

    def sweep(self) -> Swept:
        """Walk the whole tree, placing watches, and compare it with the table."""
        self._walker.forget()
        before = self._walker.outside_rules()
        entries = list(self._walker.walk(on_directory=self._watcher.add))
        changed, missing = self.table.compare([entry[0] for entry in entries], [entry[1:] for entry in entries])
        after = self._walker.outside_rules()
        # A nested repository met on the way adds its own rules; one that changed meanwhile means another sweep.
        self._outside = after if set(before) <= set(after) else before
        return Swept([entries[at] for at in changed], missing)

    def take_sweep(self, swept: Swept) -> None:
        """Mark what a sweep found; whatever was pending and was not seen is gone, or not ours any more."""
        found = {entry.path for entry in swept.changed}
        self.mark_changed([path for path in self.pending if path not in found])
        for path in swept.missing:
            self.mark(path, ours=False)
        for entry in swept.changed:
            self.mark(entry.path, ours=True, size=entry.size)

    def list_folder(self, folder: bytes) -> list[Entry]:
        """Walk one folder, placing watches."""
        if not self._walker.accepts(folder, is_dir=True):
            return []
        return list(self._walker.walk(folder, on_directory=self._watcher.add))

    def take_folder(self, folder: bytes, entries: Sequence[Entry]) -> None:
        """Mark the files of a folder that appeared."""
        self._mark_below(folder)
        for entry in entries:
            self.mark(entry.path, ours=True, size=entry.size)

    def stored(self, sent: dict[bytes, Mark], rows: Sequence[FileRow], gone: Sequence[bytes]) -> None:
        """Take what the indexer stored; paths marked again since they were sent stay pending."""
        self.table = self.table.with_changes(rows, gone)
        for path in (*(row.path for row in rows), *gone):
            mark = self.pending.get(path)
            if mark is not None and path in sent and mark.sequence == sent[path].sequence:
                del self.pending[path]

    def reset(self) -> None:
        """Forget what was indexed: the index is being built anew."""
        self.table = FileTable()
        self.pending = {}
