"""What the daemon knows about one project's files, and which of them the index does not have in their current state."""

import contextlib
import os
import stat
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from flashgrep.base.errors import Busy
from flashgrep.base.model import clamp
from flashgrep.files.finder import PresentFiles
from flashgrep.files.globs import PathFilter
from flashgrep.files.letter_case import use_listed_names
from flashgrep.files.openat import EXHAUSTED, RootFiles, RootFolder
from flashgrep.files.outside import OutsideRules, OutsideWatch
from flashgrep.files.walk import MOST_EXCLUDED, Entry, Walker
from flashgrep.files.watch import Change, Watcher
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.search.snapshot import MTIME_NS, Snapshot

MOST_STORED = 16
"""Most paths stored since a lookup worker got its file table, which it takes for pending. With more, it gets a new
table."""


class Listing(NamedTuple):
    """A walk's files, and the excluded entries of its folders: by path, whether it is a folder."""

    entries: list[Entry]
    excluded: dict[bytes, bool]


class SweepResult(NamedTuple):
    """What a walk of the whole tree found different from the table (``anew``: from an empty one)."""

    marks: dict[bytes, Mark]
    pending: list[bytes]
    """What was pending when the walk began."""
    anew: bool
    excluded: dict[bytes, bool]


class Tree:
    """The files of a project: as indexed (``table``), and those that changed since (``pending``).

    Only the event loop changes it, under the workspace's lock; ``sweep`` and ``list_folder`` read folders and may run
    in a thread while that lock is held. What has to be read stays part of the state until it has been read and applied:
    a caller cancelled in between leaves it to the next one.
    """

    def __init__(
        self,
        root: RootFolder,
        walker: Walker,
        watcher: Watcher,
        outside: OutsideWatch | None = None,
    ) -> None:
        """``outside`` is shared by the daemon's projects."""
        self._root = root
        self.table = FileTable()
        self.generation = 0
        """The index's generation to which the table belongs."""
        self.pending: dict[bytes, Mark] = {}
        self.changes = 0
        """Number of files found changed, new or gone so far."""
        self.gone = False
        self.listed_since: float | None = None
        """When the sweep behind ``table`` and ``pending`` ended, by time.perf_counter(). None: there was none yet, or
        an event has happened since whose effect only a sweep can find."""
        self.unread: dict[bytes, None] = {}
        """New folders that have not been listed yet, oldest first."""
        self.excluded: Mapping[bytes, bool] | None = {}
        """Files and folders (True) that rules take out of the folders walked; None: too many to keep. It is replaced,
        never changed, because snapshots keep using the one they began with."""
        self._walker = walker
        self._watcher = watcher
        self._sequence = count(
            1
        )  # shared with the thread that sweeps: next() of a count is atomic
        self._count: int | None = None
        self._marked: list[set[bytes]] = []
        self._stored: dict[bytes, int] = {}
        """Paths stored recently, and in which generation of the index."""
        self._stored_from = 0
        """The generation after which all stored paths are among them."""
        self._outside = OutsideRules(walker.outside_rules, outside or OutsideWatch())

    def count(self) -> int:
        """Return how many files the project has, as far as is known."""
        if self._count is None:
            ours = sum(mark.ours for mark in self.pending.values())
            overridden = self.table.count_among(self.pending)
            self._count = len(self.table) + ours - overridden
        return self._count

    def has(self, path: bytes) -> bool:
        """Return whether a path is a file of the project, as far as is known."""
        mark = self.pending.get(path)
        if mark is None:
            return self.table.find(path) is not None
        return mark.ours

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files as known now, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        pending = dict(
            self.pending
        )  # before the table: what is stored meanwhile moves from one to the other
        table = self.table
        folded = part.encode(errors="surrogateescape").lower()
        settled = table.paths
        if folded:
            settled = [
                settled[at]
                for at in table.text().containing(folded, fold=True).tolist()
            ]
            settled = list(filter(keep, settled))
        elif keep is not None:
            settled = [
                settled[at] for at in np.flatnonzero(keep.mask(table.text())).tolist()
            ]
        if not pending:
            return settled
        changed = [
            path
            for path, mark in pending.items()
            if mark.ours and folded in path.lower()
        ]
        return sorted(
            [*filter(keep, changed), *(path for path in settled if path not in pending)]
        )

    def find_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return the files changed since a time; none if there are more than ``most``. For threads."""
        table = self.table
        pending = [path for path, mark in dict(self.pending).items() if mark.ours]
        places = np.flatnonzero(table.columns[:, MTIME_NS] > since_ns)
        if len(places) + len(pending) > most:
            return frozenset()
        files = RootFiles(self._root)
        recent = {table.paths[at] for at in places.tolist()}
        for path in pending:
            with contextlib.suppress(OSError):
                if files.lstat(path).st_mtime_ns > since_ns:
                    recent.add(path)
        return frozenset(recent)

    @property
    def is_watched(self) -> bool:
        """Whether the tree has been listed and every change since then is reported."""
        return self.listed_since is not None and not self._watcher.failed

    def known(self, snapshot: Snapshot) -> PresentFiles | None:
        """Return what is known of all files in the form for a search by name; None: too many are excluded."""
        if snapshot.excluded is None:
            return None
        overruled = [
            at for at in map(snapshot.table.find, snapshot.pending) if at is not None
        ]
        changed = [path for path, mark in snapshot.pending.items() if mark.ours]
        return PresentFiles(
            snapshot.table.text(),
            np.array(overruled, np.int64),
            changed,
            snapshot.excluded,
            list(self._walker.unreadable),
        )

    def count_skips(self) -> dict[str, int]:
        """Return how many files are declined, by reason; a folder that cannot be read counts as one."""
        counts: Counter[str] = Counter()
        for path, reason in self.table.skipped.items():
            # The index may have read a file that is not ours any more: its folder was
            # closed meanwhile.
            mark = self.pending.get(path)
            if mark is None or mark.ours:
                counts[reason] += 1
        return self.with_unread(counts)

    def with_unread(self, skipped: Mapping[str, int]) -> dict[str, int]:
        """Return these counts with the folders that cannot be read among the unreadable."""
        unread = len(self._walker.unreadable)
        if unread:
            return {**skipped, "unreadable": skipped.get("unreadable", 0) + unread}
        return dict(skipped)

    def mark(self, path: bytes, *, ours: bool, size: int = 0) -> None:
        """Mark a path as different from the index."""
        if ours or path in self.pending or self.table.find(path) is not None:
            self.pending[path] = Mark(ours, next(self._sequence), size)
            self.changes += 1
            self._count = None
            for marked in self._marked:
                marked.add(path)

    @contextlib.contextmanager
    def marks(self) -> Iterator[set[bytes]]:
        """Collect the paths that are marked within the block."""
        marked: set[bytes] = set()
        self._marked.append(marked)
        try:
            yield marked
        finally:
            self._marked = [other for other in self._marked if other is not marked]

    def note_changes(self, paths: Iterable[bytes]) -> None:
        """Check paths that may have changed: a regular file accepted by the rules is ours.

        Raises:
            Busy: out of descriptors; not all have been checked.

        """
        files = RootFiles(self._root)
        self._take_exclusions(
            {path: False if self._look(files, path) else None for path in paths}
        )

    def _look(self, files: RootFiles, path: bytes) -> bool:
        """Mark a path that may have changed; return whether it is a file that the rules exclude."""
        status, is_ours = self._mark_as_is(files, path)
        if status is None:
            return False
        if (
            status.st_nlink > 1
        ):  # an event has only the name by which a file was written
            if is_ours:
                self._watcher.add_file(path)
            for twin in self.table.same_inode(clamp(status.st_ino)):
                if twin != path:
                    self._mark_as_is(files, twin)
        is_excluded = stat.S_ISREG(status.st_mode) and not is_ours
        return is_excluded and self._walker.accepts(
            path.rpartition(b"/")[0], is_dir=True
        )

    def _mark_as_is(
        self, files: RootFiles, path: bytes
    ) -> tuple[os.stat_result | None, bool]:
        """Mark a path as it is on disk; return its status, and whether it is a file of the project."""
        try:
            status = files.lstat(path)
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise Busy(f"out of resources: {error.strerror}") from error
            self.mark(path, ours=False)
            return None, False
        listed = use_listed_names(self._root.path, path)
        if listed != path:
            # Where case is ignored, the old name of a file still leads to it.
            self.mark(path, ours=False)
            path = listed
        is_ours = stat.S_ISREG(status.st_mode) and self._walker.accepts(path)
        self.mark(path, ours=is_ours, size=status.st_size)
        return status, is_ours

    def _take_exclusions(
        self, found: Mapping[bytes, bool | None], gone: Iterable[bytes] = ()
    ) -> None:
        """Note what rules take out: a folder, a file (False), None: not this path; nothing in the folders ``gone``."""
        excluded = self.excluded
        prefixes = find_outermost(gone)
        if excluded and prefixes:
            excluded = self.excluded = {
                path: is_dir
                for path, is_dir in excluded.items()
                if not is_below(path + b"/", prefixes)
            }
        if excluded is not None and any(
            excluded.get(path) != is_dir for path, is_dir in found.items()
        ):
            merged = {**excluded, **found}
            kept_excluded = {
                path: is_dir for path, is_dir in merged.items() if is_dir is not None
            }
            if len(kept_excluded) <= MOST_EXCLUDED:
                self.excluded = kept_excluded
            else:
                self.excluded = None

    def take(self, changes: Iterable[Change]) -> None:
        """Mark what changes report; what requires reading folders is left in ``unread``, or to a sweep."""
        since, self.listed_since = (
            self.listed_since,
            None,
        )  # if anything fails here, a sweep makes up for it
        changes = dict.fromkeys(changes)
        # Folders that went come first, and all in one pass. What is there again by now
        # has a later event, and is looked at or listed below.
        gone = [change.path for change in changes if change.kind == "folder_gone"]
        self._mark_below(gone)
        self._walker.forget_unreadable(gone)
        sweep = False
        files = RootFiles(self._root)
        excluded: dict[bytes, bool | None] = {}
        for change in changes:
            name = change.path.rpartition(b"/")[2]
            if change.kind == "file":
                if self._look(files, change.path):
                    excluded[change.path] = False
                else:
                    excluded[change.path] = None
                sweep |= self._walker.is_rules_file(name)
            elif change.kind == "folder":
                self.unread[change.path] = None
            elif change.kind == "root_gone":
                self.gone = True
            sweep |= change.kind == "overflow" or (
                change.kind.startswith("folder") and name == b".git"
            )
        self._take_exclusions(excluded, gone)
        # A sweep, which is due anyhow before the first one, looks at the rules outside
        # itself, and in a thread: git may take seconds to tell where the user's are.
        if since is not None and not sweep and not self._outside.look_again():
            self.listed_since = since

    def _mark_below(self, folders: Iterable[bytes]) -> None:
        """Mark everything known below folders as gone."""
        prefixes = find_outermost(folders)
        if prefixes:
            below = [path for path in self.pending if is_below(path, prefixes)]
            for prefix in prefixes:
                below += self.table.below(prefix[:-1])
            for path in below:
                self.mark(path, ours=False)

    def sweep(self, *, anew: bool = False) -> SweepResult:
        """Walk the whole tree, placing watches, and compare it with the table; ``anew``: with an empty one."""
        pending = list(self.pending)
        self._walker.forget()
        before = self._outside.look()
        excluded: dict[bytes, bool] = {}
        if anew:
            table = FileTable()
        else:
            table = self.table
        walk = self._walker.walk(
            on_directory=self._watcher.add,
            on_linked=self._watcher.add_file,
            excluded=excluded,
        )
        changed, missing = table.compare(walk)
        self._outside.note(before)
        marks = {
            path: Mark(ours=False, sequence=next(self._sequence), size=0)
            for path in missing
        }
        for path, size in changed.items():
            marks[path] = Mark(ours=True, sequence=next(self._sequence), size=size)
        return SweepResult(marks, pending, anew, excluded)

    def take_sweep(self, swept: SweepResult) -> None:
        """Mark what a sweep found; whatever was pending and was not seen is gone, or not ours any more.

        A sweep rebuilt takes the place of all that was known, in this one step: nobody meets a tree without files.
        """
        if len(swept.excluded) <= MOST_EXCLUDED:
            self.excluded = swept.excluded
        else:
            self.excluded = None
        if swept.anew:
            self.table = FileTable()
            self.pending = {}
            self._stored, self._stored_from, self.generation = (
                {},
                0,
                0,
            )  # another index counts its generations again
        else:
            # What was pending at the start may have been stored meanwhile, from before
            # the walk.
            pending = {**dict.fromkeys(swept.pending), **self.pending}.keys()
            self.note_changes([path for path in pending if path not in swept.marks])
        self.pending.update(swept.marks)
        self.changes += len(swept.marks)
        self.unread = {}
        self._count = None
        if self.listed_since is None:
            self.listed_since = time.perf_counter()

    def list_folder(self, folder: bytes) -> Listing:
        """Walk one folder, placing watches."""
        if self._walker.accepts(folder, is_dir=True):
            excluded: dict[bytes, bool] = {}
            walk = self._walker.walk(
                folder,
                on_directory=self._watcher.add,
                on_linked=self._watcher.add_file,
                excluded=excluded,
            )
            return Listing(list(walk), excluded)
        if self._walker.is_out_of_reach(folder):
            return Listing([], {})
        # The rules exclude the folder: that is recorded when the one above it is
        # walked.
        within = self._walker.accepts(folder.rpartition(b"/")[0], is_dir=True)
        try:
            is_dir = within and stat.S_ISDIR(
                RootFiles(self._root).lstat(folder).st_mode
            )
        except OSError:  # gone already
            is_dir = False
        return Listing([], {folder: True} if is_dir else {})

    def take_folder(self, folder: bytes, listing: Listing) -> None:
        """Mark the files of a new folder."""
        # Another folder may have had this path before: files below it that are not
        # listed now are removed.
        self._mark_below([folder])
        self._take_exclusions(listing.excluded, [folder])
        for entry in listing.entries:
            self.mark(entry.path, ours=True, size=entry.size)
        self.unread.pop(folder, None)

    def changed_since(self, generation: int) -> dict[bytes, Mark] | None:
        """Return what overrides a table of this generation of the index or a later one; None: too much."""
        if generation < self._stored_from:
            return None
        changes = {
            path: Mark(self.table.find(path) is not None, 0, 0)
            for path, at in self._stored.items()
            if at > generation
        }
        changes.update(self.pending)
        return changes

    def take_update(
        self,
        sent: Mapping[bytes, Mark],
        rows: Sequence[FileRow],
        gone: Sequence[bytes],
        generation: int,
    ) -> None:
        """Apply what the indexer stored as this generation; paths marked again since they were sent stay pending."""
        self.table = self.table.with_changes(rows, gone)
        self.generation = generation
        self._count = None
        if len(self._stored) + len(rows) + len(gone) > MOST_STORED:
            self._stored = {}
            self._stored_from = generation
        for path in (*(row.path for row in rows), *gone):
            if self._stored_from < generation:
                self._stored[path] = generation
            # A path marked again after it was sent may have been read before that
            # change: it stays pending.
            mark = self.pending.get(path)
            if (
                mark is not None
                and path in sent
                and mark.sequence == sent[path].sequence
            ):
                del self.pending[path]


def find_outermost(folders: Iterable[bytes]) -> list[bytes]:
    """Return the folders that are not inside another of them, each with a trailing slash, in order."""
    outermost: list[bytes] = []
    for prefix in sorted(folder + b"/" for folder in folders):
        if not outermost or not prefix.startswith(outermost[-1]):
            outermost.append(prefix)
    return outermost


def is_below(path: bytes, prefixes: list[bytes]) -> bool:
    """Return whether a path begins with one of these sorted prefixes, none of which begins with another.

    Only the last one not after the path can be its prefix: anything between them in the order would have that prefix,
    too.
    """
    at = bisect_right(prefixes, path) - 1
    return at >= 0 and path.startswith(prefixes[at])
