"""Which projects use which folders of libraries: what is stored of the others is dropped, and all of it is bounded."""

import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from flashgrep.api.service import HostService, ServiceKey
from flashgrep.base.own_folders import INDEX, identify, library_owner, store_folder
from flashgrep.base.paths import make_private
from flashgrep.base.plain_files import read_plain_file, replace_plain_file
from flashgrep.files.subtrees import Subtrees
from flashgrep.files.walk import Walker, WalkOptions
from flashgrep.index.project_index import list_files
from flashgrep.parts.libraries.library_files import LibraryRoot

UNUSED_DAYS: Final = 30
"""Days without a question after which a project counts as one that does not use a library."""
MOST_STORED: Final = 2 << 30
"""Bytes of the store of all libraries from which on those asked about longest ago are dropped, one a time."""
MOST_INDEXED: Final = 1 << 30
"""A folder with more bytes than these is not indexed: its part of the store alone could have as many."""
_DAY: Final = 86_400
_FILE: Final = "uses.json"
_FORMAT: Final = 1
"""Of the file."""


_MALFORMED: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)
"""What reading such a file may raise that is not as we write it."""

_Use: TypeAlias = tuple[int, list[str] | None]
"""When a project asked about a folder of libraries, in days since 1970, and what of it the project uses; None: all."""
_Uses: TypeAlias = dict[str, dict[str, _Use]]
"""The uses of each folder by project; bytes of paths that are no text are surrogates, here and in the file."""


class LibraryUses(HostService):
    """Remembers the uses, for all projects of a user; safe to use from several threads."""

    def __init__(self, cache: Path) -> None:
        self._owner = library_owner(cache)
        self._index = store_folder(cache, b"", self._owner) / INDEX
        self._file = Path(os.fsdecode(self._owner)) / _FILE
        self._lock = threading.Lock()
        self._uses: _Uses | None = None
        self._written = ""
        self._sizes: dict[bytes, tuple[int, frozenset[bytes] | None, int]] = {}
        """Bytes of each folder's files, counted until they are too many, with the day and the folders counted in."""

    def note(self, root: LibraryRoot, project: bytes) -> frozenset[bytes] | None:
        """Remember that a project asks about a folder; return all that projects use of it, None: everything."""
        today = _count_days()
        folders = None
        if root.folders is not None:
            folders = sorted(map(os.fsdecode, root.folders))
        with self._lock:
            uses = self._load().setdefault(os.fsdecode(root.path), {})
            name = os.fsdecode(project)
            # The day, not the second: the file is written once a day for each project.
            uses[name] = (today, folders)
            self._save()
            if root.folders is None:
                return None
            # A cache has versions of all projects: were only this one's kept, the others'
            # would be dropped from the index and made again at their next question.
            together = set[bytes]()
            for other, use in uses.items():
                if _is_alive(other, use):
                    together.update(map(os.fsencode, use[1] or ()))
        return frozenset(together)

    def forget_project(self, root: bytes) -> None:
        """Forget a project's uses: it was removed."""
        name = os.fsdecode(root)
        with self._lock:
            for uses in self._load().values():
                uses.pop(name, None)

    def is_small(self, path: bytes, folders: frozenset[bytes] | None) -> bool:
        """Return whether a folder of libraries is small enough to be indexed; it is measured once a day."""
        today = _count_days()
        measured = self._sizes.get(path)
        if measured is None or measured[:2] != (today, folders):
            subtrees = None
            if folders is not None:
                subtrees = Subtrees(folders)
            # Binaries count as well, though not a byte of them is indexed: whether a
            # file is one shows only when it is read.
            options = WalkOptions(ignore=False, subtrees=subtrees)
            size = 0
            for entry in Walker(path, options).walk():
                size += entry.size
                if size > MOST_INDEXED:
                    break
            measured = (today, folders, size)
            self._sizes[path] = measured
        return measured[2] <= MOST_INDEXED

    def find_leftovers(self) -> Mapping[Path, set[bytes]]:
        """Return the folders that are stored and that no project uses, by their store's database.

        If all together are too large, the one asked about longest ago is among them.
        """
        with self._lock:
            days_of_roots = self._find_alive()
        leftovers = set[bytes]()
        days: list[tuple[int, bytes]] = []
        for root in list_files(self._index):
            day = days_of_roots.get(os.fsdecode(root))
            # Not in the list: its project is gone, or the list was lost.
            if day is None:
                leftovers.add(root)
            else:
                days.append((day, root))
        size = _measure(self._index.parent)
        if days and size > MOST_STORED:
            # One only: what dropping it frees shows after the next merge.
            _, oldest = min(days)
            leftovers.add(oldest)
        if not leftovers:
            return {}
        return {self._index: leftovers}

    def _find_alive(self) -> dict[str, int]:
        """Forget uses of long ago, and of projects that are gone; return when each folder was asked about last."""
        days_of_roots: dict[str, int] = {}
        for root, uses in self._load().items():
            for project in list(uses):
                use = uses[project]
                if _is_alive(project, use):
                    latest = days_of_roots.get(root, 0)
                    days_of_roots[root] = max(use[0], latest)
                else:
                    del uses[project]
        self._save()
        return days_of_roots

    def _load(self) -> _Uses:
        """Return the uses; what cannot be read is made again by the next questions."""
        if self._uses is None:
            self._uses = {}
            with suppress(OSError, *_MALFORMED):
                self._uses = _parse_uses(read_plain_file(self._file))
        return self._uses

    def _save(self) -> None:
        uses = {root: uses for root, uses in self._load().items() if uses}
        # Nothing was ever remembered: no folder is made for it, least of all by a daemon
        # that ends while it is uninstalled.
        if not uses and not self._file.exists():
            return
        described = {"format": _FORMAT, "uses": uses}
        text = json.dumps(described)
        if text == self._written:
            return
        # On a full disk: what is not remembered is indexed again, no more.
        with suppress(OSError):
            make_private(os.fsdecode(self._owner))
            replace_plain_file(self._file, text)
            self._written = text


def open_uses(host: Any) -> LibraryUses:
    """Return the uses of libraries by a host's projects."""
    return LibraryUses(host.cache_dir)


def _parse_uses(text: bytes) -> _Uses:
    """Return the uses that a file describes; raises one of ``_MALFORMED``."""
    written = json.loads(text)
    parsed: _Uses = {}
    if written["format"] != _FORMAT:
        return parsed
    for root, uses in written["uses"].items():
        uses_of_root = parsed.setdefault(root, {})
        for project, (day, folders) in uses.items():
            for path in (root, project, *(folders or ())):
                os.fsencode(path)
            uses_of_root[project] = (int(day), folders)
    return parsed


def _count_days() -> int:
    """Return today, in days since 1970."""
    return int(time.time()) // _DAY


def _is_alive(project: str, use: _Use) -> bool:
    """Whether a project is still there and has asked lately."""
    oldest = _count_days() - UNUSED_DAYS
    is_recent = use[0] > oldest
    return is_recent and identify(project) is not None


def _measure(folder: Path) -> int:
    """Return the bytes of a store."""
    size = 0
    with suppress(OSError):
        for file in folder.iterdir():
            size += file.stat().st_size
    return size


LIBRARY_USES: Final = ServiceKey[LibraryUses]("library_uses")
