"""The file table of a project, in memory: an immutable value that queries read while the next one is being made."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.model import clamp
from flashgrep.base.path_text import Mask, PathText

Columns = npt.NDArray[np.int64]
TextIds = npt.NDArray[np.int64]
_WIDTH = 6  # text_id, size, mtime_ns, ctime_ns, inode, tier
_TEXT_ID = 0
_SIZE = 1
_STAT = slice(1, 5)
_INODE = 4

# Tiers rank files by path: sources first, then tests, generated and vendored files.

TIERS = 4
SOURCE, TEST, GENERATED, VENDORED = range(TIERS)

_FOLDERS = (
    (
        VENDORED,
        rb"vendor|third[_-]?party|node_modules|bower_components|site-packages|external",
    ),
    (GENERATED, rb"dist|build|gen|generated|__generated__"),
    (
        TEST,
        rb"tests?|testing|testdata|specs?|__tests__|selftests?|fixtures?|mocks?|e2e|examples?|benchmarks?",
    ),
    (
        TEST,
        rb"[^/]*(?:[._-]tests?|(?-i:[a-zA-Z]Tests?))",
    ),  # Acme.Json.Tests (.NET), AcmeUITests (Xcode), unit-tests
)
_FOLDER_TIERS = [
    (tier, re.compile(rb"(?:^|/)(?:%s)(?:/|\Z)" % names, re.IGNORECASE))
    for tier, names in _FOLDERS
]
_GENERATED = re.compile(
    rb"[._-](?:min|bundle|generated|gen|pb)\.[a-z]+$|_pb2(?:_grpc)?\.pyi?$|\.(?:lock|map|svg|snap)$"
    rb"|^(?:package-lock\.json|yarn\.lock|go\.sum)$",
    re.IGNORECASE,
)
_TEST = re.compile(
    rb"^test_|[._-](?:test|tests|unittest|spec|mock)\.[a-z]+$|(?-i:[a-z]Tests?)\.[a-z]+$|(?-i:^tests?\.[a-z]+|\.t)$",
    re.IGNORECASE,
)

COMPARED = 4096
"""Files compared at once. Their temporary objects live that long, and the memory pages they took are never returned."""
FEW_SHARE = 16
"""One path of so many files or fewer is looked up by bisection (1 µs); more are intersected with all (0.1 µs a file)."""
MANY_TEXTS = 1000
"""More than this many are found by one pass over the whole table, at 2 ns a file."""


class FileRow(NamedTuple):
    """A file as indexed. A declined file has text_id 0 and a reason in ``skip``."""

    path: bytes
    text_id: int
    skip: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Mark(NamedTuple):
    """A path that has changed since it was indexed: whether it is a file of the project, its order, its size.

    ``sequence`` grows with each mark; an unknown size is 0.
    """

    ours: bool
    sequence: int
    size: int


@dataclass(slots=True, weakref_slot=True)
class FileTable:
    """Files in the order of their paths, with the metadata that tells versions apart: about 150 bytes a file."""

    paths: list[bytes] = field(default_factory=list)
    columns: Columns = field(default_factory=lambda: np.empty((0, _WIDTH), np.int64))
    skipped: dict[bytes, str] = field(default_factory=dict)
    by_paths: dict[Hashable, Any] = field(default_factory=dict)
    """A cache of what lookups derived from the set of paths. Threads share it, and each user bounds its entries."""
    _by_text_id: tuple[Columns, Columns] | None = None
    _text: PathText | None = None

    @classmethod
    def of(cls, rows: Iterable[FileRow]) -> "FileTable":
        """Return the table of rows, which must be in the order of their paths."""
        # One row at a time: holding 78,000 rows at once fragmented the heap by 30 MB.
        paths = list[bytes]()
        columns = array("q")
        skipped = dict[bytes, str]()
        for row in rows:
            paths.append(row.path)
            columns.extend(_column(row))
            if row.skip:
                skipped[row.path] = row.skip
        return cls(paths, np.array(columns, np.int64).reshape(-1, _WIDTH), skipped)

    def __len__(self) -> int:
        return len(self.paths)

    def rows_below(self, folder: bytes) -> range:
        """Return the positions of the files below a folder; ``b""`` is the root."""
        if not folder:
            return range(len(self.paths))
        # "0" is the byte after "/", so the paths between the two are those below the
        # folder.
        start = bisect_left(self.paths, folder + b"/")
        return range(start, bisect_left(self.paths, folder + b"0"))

    def count_bytes(self, rows: range) -> int:
        """Return how many bytes files have, those that were declined left out."""
        columns = self.columns[rows.start : rows.stop]
        indexed = columns[:, _TEXT_ID] > 0
        return int(columns[indexed, _SIZE].sum())

    def find(self, path: bytes) -> int | None:
        """Return the path's position, or None."""
        at = bisect_left(self.paths, path)
        if at == len(self.paths) or self.paths[at] != path:
            return None
        return at

    def count_among(self, paths: Collection[bytes]) -> int:
        """Return how many of these paths, each given once, are in the table."""
        if len(paths) < len(self.paths) // FEW_SHARE:
            return sum(self.find(path) is not None for path in paths)
        return len(set(paths).intersection(self.paths))

    def below(self, folder: bytes) -> list[bytes]:
        """Return the files below a folder; ``b""`` is the root."""
        if not folder:
            return self.paths
        rows = self.rows_below(folder)
        return self.paths[rows.start : rows.stop]

    def text(self) -> PathText:
        """Return the paths as one text, made on first use (5 ms for 80,000 files)."""
        # Read the attribute once: another thread may clear it in ``rest``.
        text = self._text
        if text is None:
            text = self._text = PathText(self.paths)
        return text

    def rest(self) -> None:
        """Drop everything that is computed on demand."""
        self._text = self._by_text_id = None
        self.by_paths.clear()

    def same_inode(self, inode: int) -> list[bytes]:
        """Return the files with this inode."""
        return [
            self.paths[at] for at in np.flatnonzero(self.columns[:, _INODE] == inode)
        ]

    def compare(
        self, files: Iterable[tuple[bytes, int, int, int, int]]
    ) -> tuple[dict[bytes, int], list[bytes]]:
        """Compare with the files on disk, each (path, size, mtime_ns, ctime_ns, inode).

        Returns the sizes of new and changed files by path, and the paths in the table that are no longer on disk.
        """
        places = {path: at for at, path in enumerate(self.paths)}
        changed = dict[bytes, int]()
        missing = np.ones(len(places), bool)
        files = iter(files)
        while batch := list(islice(files, COMPARED)):
            positions = [places.get(file[0], -1) for file in batch]
            at = np.array(positions, np.int64)
            try:
                now = np.array([file[1:] for file in batch], np.int64)
            except OverflowError:
                now = np.array(
                    [[clamp(number) for number in file[1:]] for file in batch], np.int64
                )
            matched = np.flatnonzero(at >= 0)
            same = np.zeros(len(batch), bool)
            same[matched] = (self.columns[at[matched], _STAT] == now[matched]).all(
                axis=1
            )
            missing[at[matched]] = False
            changed.update(
                (batch[place][0], batch[place][1])
                for place in np.flatnonzero(~same).tolist()
            )
        return changed, [
            self.paths[place] for place in np.flatnonzero(missing).tolist()
        ]

    def texts(self, places: Mask | slice = slice(None)) -> Columns:
        """Return the numbers of these files' texts, ascending (``numpy.unique`` takes a hundred times as long)."""
        text_ids = self.columns[places, 0]
        there = np.zeros(int(text_ids.max(initial=0)) + 1, bool)
        there[text_ids] = True
        return np.flatnonzero(there)

    def places(self, text_ids: TextIds) -> Columns:
        """Return the positions of all files with one of these texts, ascending."""
        # Many texts are found by one pass over the table, few by binary search in its
        # order by text.
        if len(text_ids) > MANY_TEXTS:
            marked = np.zeros(
                int(max(text_ids[-1], self.columns[:, 0].max(initial=0))) + 1, bool
            )
            marked[text_ids] = True
            return np.flatnonzero(marked[self.columns[:, 0]])
        by_text_id = self._by_text_id
        if by_text_id is None:
            order = np.argsort(self.columns[:, 0], kind="stable")
            by_text_id = self._by_text_id = (order, self.columns[order, 0])
        order, numbers = by_text_id
        low = np.searchsorted(numbers, text_ids, "left")
        counts = np.searchsorted(numbers, text_ids, "right") - low
        total = int(counts.sum())
        if not total:
            return np.empty(0, np.int64)
        ends = np.cumsum(counts)
        at = (
            np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
        )
        return np.sort(order[at])

    def _skip_with(
        self, fresh: Mapping[bytes, FileRow], removed: Iterable[int]
    ) -> dict[bytes, str]:
        """Return why files have no text, with these rows added or replaced and those places removed."""
        skipped = dict(self.skipped)
        for path, row in fresh.items():
            # A file that was skipped before may have a text now.
            if row.skip:
                skipped[path] = row.skip
            else:
                skipped.pop(path, None)
        for at in removed:
            skipped.pop(self.paths[at], None)
        return skipped

    def with_changes(
        self, rows: Iterable[FileRow], gone: Iterable[bytes]
    ) -> "FileTable":
        """Return a new table with these rows added or replaced and the paths in ``gone`` removed."""
        fresh = {row.path: row for row in rows}
        left_places = [at for at in map(self.find, gone) if at is not None]
        # A copy: running queries keep using the table they started with.
        columns = self.columns.copy()
        added = []
        for path, row in fresh.items():
            at = self.find(path)
            if at is None:
                added.append(row)
            else:
                columns[at] = _column(row)
        skipped = self._skip_with(fresh, left_places)
        paths = self.paths
        if left_places:
            keep = np.ones(len(paths), bool)
            keep[left_places] = False
            columns = columns[keep]
            paths = list(compress(paths, keep.tolist()))
        if added:
            added.sort()
            places = [bisect_left(paths, row.path) for row in added]
            columns = np.insert(
                columns,
                places,
                np.array([_column(row) for row in added], np.int64),
                axis=0,
            )
            paths = sorted([*paths, *(row.path for row in added)])
        return FileTable(
            paths, columns, skipped, self.by_paths if paths is self.paths else {}
        )


def _column(row: FileRow) -> tuple[int, ...]:
    return (
        row.text_id,
        row.size,
        row.mtime_ns,
        row.ctime_ns,
        row.inode,
        tier_of(row.path),
    )


def tier_of(path: bytes) -> int:
    """Return the path's tier: SOURCE, TEST, GENERATED or VENDORED, in ascending order."""
    folder, _, name = path.rpartition(b"/")
    tier = _tier_of_folder(folder)
    if tier >= GENERATED:
        return tier
    if _GENERATED.search(name):
        return GENERATED
    return TEST if tier or _TEST.search(name) else SOURCE


@lru_cache(maxsize=16)  # small, since paths arrive sorted
def _tier_of_folder(folder: bytes) -> int:
    return next((tier for tier, names in _FOLDER_TIERS if names.search(folder)), SOURCE)
