"""What the daemon knows of one project's files, and which of them the index does not have as they are now."""

import stat
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from flashgrep.errors import Busy
from flashgrep.index.rows import FileRow
from flashgrep.index.table import FileTable
from flashgrep.ingest.openat import EXHAUSTED, RootFiles, RootFolder
from flashgrep.ingest.walk import Entry, Walker
from flashgrep.ingest.watch import Change, Watcher
from flashgrep.search.exact import Mark


class Swept(NamedTuple):
    """What a walk of the whole tree found different from the table (``anew``: from an empty one)."""

    changed: list[Entry]
    missing: list[bytes]
    pending: list[bytes]
    """What was pending when the walk began."""
    anew: bool


class Tree:
    """The files of a project: as indexed (``table``), and those that changed since (``pending``).

    Only the event loop changes it, under the workspace's lock; ``sweep`` and ``list_folder`` read folders and may run
    in a thread while that lock is held. What has to be read is part of the state until it has been read and taken: a
    caller that is cancelled between the two leaves it to the next one.
    """

    def __init__(self, root: RootFolder, walker: Walker, watcher: Watcher) -> None:
        self._root = root
        self.table = FileTable()
        self.pending: dict[bytes, Mark] = {}
        self.gone = False
        self.listed_since: float | None = None
        """Since when a sweep has vouched for table and pending, on the clock of time.perf_counter(); None: none has
        ended since they were new, or since something happened that only a sweep can tell."""
        self.unread: dict[bytes, None] = {}
        """Folders that appeared and have not been listed yet, oldest first."""
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
        """Look at paths that may have changed: a regular file that the rules accept is ours.

        Raises:
            Busy: out of descriptors; not all have been looked at.

        """
        files = RootFiles(self._root)
        for path in paths:
            try:
                found = files.lstat(path)
            except OSError as error:
                if error.errno in EXHAUSTED:
                    raise Busy(f"out of resources: {error.strerror}") from error
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

    def _rules_changed(self) -> bool:
        """Return whether ignore rules outside the watched folders changed since the last call."""
        now = self._walker.outside_rules()
        changed, self._outside = now != self._outside, now
        return changed

    def take(self, changes: Iterable[Change]) -> None:
        """Mark what changes say; what takes reading folders is left in ``unread``, or to a sweep."""
        since, self.listed_since = self.listed_since, None  # should anything fail here, a sweep makes up for it
        sweep = False
        for change in dict.fromkeys(changes):
            if change.kind == "file":
                self.mark_changed([change.path])
            elif change.kind == "folder":
                self.unread[change.path] = None
            elif change.kind == "folder_gone":
                self._mark_below(change.path)
            elif change.kind == "root_gone":
                self.gone = True
            sweep |= self._needs_sweep(change)
        if not self._rules_changed() and not sweep:
            self.listed_since = since

    def _needs_sweep(self, change: Change) -> bool:
        name = change.path.rpartition(b"/")[2]
        if change.kind == "file":
            return self._walker.is_rules_file(name)
        return change.kind == "overflow" or (change.kind.startswith("folder") and name == b".git")

    def _mark_below(self, folder: bytes) -> None:
        below = folder + b"/"
        for path in [*self.table.below(folder), *(path for path in self.pending if path.startswith(below))]:
            self.mark(path, ours=False)

    def sweep(self, *, anew: bool = False) -> Swept:
        """Walk the whole tree, placing watches, and compare it with the table; ``anew``: with an empty one."""
        pending = list(self.pending)
        self._walker.forget()
        before = self._walker.outside_rules()
        entries = list(self._walker.walk(on_directory=self._watcher.add))
        table = FileTable() if anew else self.table
        changed, missing = table.compare([entry[0] for entry in entries], [entry[1:] for entry in entries])
        after = self._walker.outside_rules()
        # A nested repository met on the way adds its own rules; one that changed meanwhile means another sweep.
        self._outside = after if set(before) <= set(after) else before
        return Swept([entries[at] for at in changed], missing, pending, anew)

    def take_sweep(self, swept: Swept) -> None:
        """Mark what a sweep found; whatever was pending and was not seen is gone, or not ours any more.

        A sweep made anew takes the place of all that was known, in this one step: nobody meets a tree without files.
        """
        if swept.anew:
            self.table, self.pending = FileTable(), {}
        else:
            found = {entry.path for entry in swept.changed}
            # What was pending at the start may have been stored meanwhile, from before the walk.
            self.mark_changed([path for path in {**dict.fromkeys(swept.pending), **self.pending} if path not in found])
        for path in swept.missing:
            self.mark(path, ours=False)
        for entry in swept.changed:
            self.mark(entry.path, ours=True, size=entry.size)
        self.unread = {}
        if self.listed_since is None:
            self.listed_since = time.perf_counter()

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
        self.unread.pop(folder, None)

    def stored(self, sent: dict[bytes, Mark], rows: Sequence[FileRow], gone: Sequence[bytes]) -> None:
        """Take what the indexer stored; paths marked again since they were sent stay pending."""
        self.table = self.table.with_changes(rows, gone)
        for path in (*(row.path for row in rows), *gone):
            mark = self.pending.get(path)
            if mark is not None and path in sent and mark.sequence == sent[path].sequence:
                del self.pending[path]
