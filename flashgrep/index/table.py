"""All files of one project in memory: an immutable snapshot that queries read while the next one is made."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.path_text import Mask, PathText

Columns = npt.NDArray[np.int64]
TextIds = npt.NDArray[np.int64]
_WIDTH = 6  # text_id, size, mtime_ns, ctime_ns, inode, tier
_STAT = slice(1, 5)
_INODE = 4

# Tiers: how near to the heart of a project a file is, by its path: sources, then tests, generated and vendored files.

TIERS = 4
SOURCE, TEST, GENERATED, VENDORED = range(TIERS)

_FOLDERS = (
    (VENDORED, rb"vendor|third[_-]?party|node_modules|bower_components|site-packages|external"),
    (GENERATED, rb"dist|build|gen|generated|__generated__"),
    (TEST, rb"tests?|testing|testdata|specs?|__tests__|selftests?|fixtures?|mocks?|e2e|examples?|benchmarks?"),
    (TEST, rb"[^/]*(?:[._-]tests?|(?-i:[a-zA-Z]Tests?))"),  # Acme.Json.Tests (.NET), AcmeUITests (Xcode), unit-tests
)
_FOLDER_TIERS = [(tier, re.compile(rb"(?:^|/)(?:%s)(?:/|\Z)" % names, re.IGNORECASE)) for tier, names in _FOLDERS]
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
"""Files compared at once: what is made for each stays in memory for as long, and its pages for good."""
MANY_TEXTS = 1000
"""More are looked for by one pass over the whole table, which takes 2 ns a file."""


class FileRow(NamedTuple):
    """A file as indexed: text_id 0 and a reason in ``skip`` where it was declined."""

    path: bytes
    text_id: int
    skip: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Mark(NamedTuple):
    """A path that is not as the table has it: whether it is a file of the project, when it was marked, its size.

    ``sequence`` grows with each mark; a size that is not known is 0.
    """

    ours: bool
    sequence: int
    size: int


@dataclass(slots=True, weakref_slot=True)
class FileTable:
    """Files by path, ascending, with what tells their versions apart: about 150 bytes a file."""

    paths: list[bytes] = field(default_factory=list)
    columns: Columns = field(default_factory=lambda: np.empty((0, _WIDTH), np.int64))
    skipped: dict[bytes, str] = field(default_factory=dict)
    by_paths: dict[Hashable, Any] = field(default_factory=dict)
    """What lookups worked out of which files there are; whoever adds to it bounds it. Threads share it."""
    _by_text_id: tuple[Columns, Columns] | None = None
    _text: PathText | None = None

    @classmethod
    def of(cls, rows: Iterable[FileRow]) -> "FileTable":
        """Return the table of rows, which come in the order of their paths."""
        # One after the other: 78,000 rows at once left 30 MB of holes among what stays.
        paths, columns, skipped = list[bytes](), array("q"), dict[bytes, str]()
        for row in rows:
            paths.append(row.path)
            columns.extend(_column(row))
            if row.skip:
                skipped[row.path] = row.skip
        return cls(paths, np.array(columns, np.int64).reshape(-1, _WIDTH), skipped)

    def __len__(self) -> int:
        return len(self.paths)

    def find(self, path: bytes) -> int | None:
        """Return the path's place, or None."""
        at = bisect_left(self.paths, path)
        return at if at < len(self.paths) and self.paths[at] == path else None

    def below(self, folder: bytes) -> list[bytes]:
        """Return the files below a folder; all of them below ``b""``."""
        if not folder:
            return self.paths
        # "0" follows "/" among the bytes, so between the two stands all that is below the folder.
        return self.paths[bisect_left(self.paths, folder + b"/") : bisect_left(self.paths, folder + b"0")]

    def text(self) -> PathText:
        """Return the paths as one text, made when first asked for (5 ms for 80,000 files)."""
        # Read once: another thread may let go of it in ``rest``.
        text = self._text
        if text is None:
            text = self._text = PathText(self.paths)
        return text

    def rest(self) -> None:
        """Let go of what is made when asked for."""
        self._text = self._by_text_id = None
        self.by_paths.clear()

    def same_inode(self, inode: int) -> list[bytes]:
        """Return the files with an inode."""
        return [self.paths[at] for at in np.flatnonzero(self.columns[:, _INODE] == inode)]

    def compare(self, files: Iterable[tuple[bytes, int, int, int, int]]) -> tuple[dict[bytes, int], list[bytes]]:
        """Compare with files as they are, each (path, size, mtime_ns, ctime_ns, inode).

        Returns the sizes of those that are new or differ, by path, and the paths of ours that are not among them.
        """
        places = {path: at for at, path in enumerate(self.paths)}
        changed, missing = dict[bytes, int](), np.ones(len(places), bool)
        files = iter(files)
        while batch := list(islice(files, COMPARED)):
            at = np.array([places.get(file[0], -1) for file in batch], np.int64)
            now = np.array([file[1:] for file in batch], np.int64)
            known = np.flatnonzero(at >= 0)
            same = np.zeros(len(batch), bool)
            same[known] = (self.columns[at[known], _STAT] == now[known]).all(axis=1)
            missing[at[known]] = False
            changed.update((batch[place][0], batch[place][1]) for place in np.flatnonzero(~same).tolist())
        return changed, [self.paths[place] for place in np.flatnonzero(missing).tolist()]

    def texts(self, places: Mask | slice = slice(None)) -> Columns:
        """Return the numbers of the texts of these files, ascending (numpy's unique takes a hundred times as long)."""
        text_ids = self.columns[places, 0]
        there = np.zeros(int(text_ids.max(initial=0)) + 1, bool)
        there[text_ids] = True
        return np.flatnonzero(there)

    def places(self, text_ids: TextIds) -> Columns:
        """Return the places of all files that have one of these texts, ascending."""
        # Many are found by one pass over the table, few by searching its order by text.
        if len(text_ids) > MANY_TEXTS:
            marked = np.zeros(int(max(text_ids[-1], self.columns[:, 0].max(initial=0))) + 1, bool)
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
        at = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
        return np.sort(order[at])

    def with_changes(self, rows: Iterable[FileRow], gone: Iterable[bytes]) -> "FileTable":
        """Return the next snapshot: these rows put in or replaced, those paths left out."""
        fresh = {row.path: row for row in rows}
        left = [at for at in map(self.find, gone) if at is not None]
        # A copy: questions under way go on with the table they began with.
        columns = self.columns.copy()
        added = []
        for path, row in fresh.items():
            at = self.find(path)
            if at is None:
                added.append(row)
            else:
                columns[at] = _column(row)
        skipped = {path: why for path, why in self.skipped.items() if path not in fresh}
        skipped.update((path, row.skip) for path, row in fresh.items() if row.skip)
        for at in left:
            skipped.pop(self.paths[at], None)
        paths = self.paths
        if left:
            keep = np.ones(len(paths), bool)
            keep[left] = False
            columns = columns[keep]
            paths = [path for path, kept in zip(paths, keep.tolist(), strict=True) if kept]
        if added:
            added.sort()
            places = [bisect_left(paths, row.path) for row in added]
            columns = np.insert(columns, places, np.array([_column(row) for row in added], np.int64), axis=0)
            paths = sorted([*paths, *(row.path for row in added)])
        return FileTable(paths, columns, skipped, self.by_paths if paths is self.paths else {})


def _column(row: FileRow) -> tuple[int, ...]:
    return (row.text_id, row.size, row.mtime_ns, row.ctime_ns, row.inode, tier_of(row.path))


def tier_of(path: bytes) -> int:
    """Return SOURCE, TEST, GENERATED or VENDORED, the best first."""
    folder, _, name = path.rpartition(b"/")
    tier = _tier_of_folder(folder)
    if tier >= GENERATED:
        return tier
    if _GENERATED.search(name):
        return GENERATED
    return TEST if tier or _TEST.search(name) else SOURCE


@lru_cache(maxsize=16)  # a project's paths come sorted
def _tier_of_folder(folder: bytes) -> int:
    return next((tier for tier, names in _FOLDER_TIERS if names.search(folder)), SOURCE)
