"""Finding files by wildcards on their paths: among known files, and on disk, skipping folders that cannot match.

Patterns are those of all filters (``globs``), matched against the path from the folder searched.
"""

import contextlib
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.base.own_folders import (
    NO_FOLDERS,
    Identity,
    PrivateFolders,
    identify,
    is_below,
)
from flashgrep.base.path_text import Literals, PathText, Places
from flashgrep.files.globs import GlobOptions, GlobPatterns
from flashgrep.files.letter_case import use_listed_names
from flashgrep.files.openat import LISTING, NAMES, RootFiles, RootFolder
from flashgrep.files.root import git_path, is_git_name
from flashgrep.files.walk import Walker, WalkOptions

MAX_LINKS = 5
"""Links to folders along one path; ten folders that link to one another make 40,000 paths, without a bound millions."""
_CHECK_EVERY = 64  # folders between two checks of the deadline, about 2 ms
_STATE = b".flashgrep"
_HIDDEN_STEP = re.compile(rb"(?:^|/)\.")


class Key(NamedTuple):
    """What a file is sorted by: a value, then its path (relative to the folder searched)."""

    value: bytes | int
    path: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which part of the sorted files: after the key ``after`` if given, else from ``offset``."""

    offset: int = 0
    after: Key | None = None
    limit: int = 10_000


class FoundFile(NamedTuple):
    """A file: its index among all, its paths from the root and the folder searched, size in bytes, time in seconds."""

    at: int
    path: bytes
    relative_path: bytes
    size: int
    modified_unix: int
    key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobPage:
    """A part of the files found, in order, that ends before index ``end`` of ``total``, without files gone since."""

    files: list[FoundFile]
    end: int
    total: int
    seen: int
    unreadable: int
    complete: bool
    """False: the deadline passed before the walk ended."""


class PresentFiles(NamedTuple):
    """The present files of a watched tree; those that ignore rules exclude are separate."""

    settled: PathText
    overruled: Places
    """Indexes in ``settled`` of files that are gone, or among ``changed``."""
    changed: Collection[bytes]
    excluded: Mapping[bytes, bool]
    """Excluded files, and excluded folders (True), whose content is not known."""
    unreadable: Collection[bytes]


def find(
    root: bytes,
    options: GlobOptions,
    window: Window = Window(),
    *,
    deadline: float | None = None,
    known: PresentFiles | None = None,
    unsaved: Mapping[bytes, tuple[int, int]] = MappingProxyType({}),
) -> GlobPage:
    """Return the part ``window`` of the files that match; ``deadline`` is on the clock of time.monotonic().

    What is ``known`` is not read again, unless the options need more. ``unsaved``: sizes in bytes and times in
    nanoseconds that replace those on disk.

    Raises:
        InvalidParams: a bad glob; ``data`` names the field and the glob.
        NotFound: no such folder (``directory_not_found``).
        Forbidden: the folder lies outside the root.

    """
    search = _Search(root, options, deadline, unsaved)
    keys = list(search.run(known))
    at, end = _sort_and_cut(keys, options, window)
    files = [
        file
        for index in range(at, end)
        if (file := search.describe(index, keys[index])) is not None
    ]
    return GlobPage(
        files=files,
        end=end,
        total=len(keys),
        seen=search.seen,
        unreadable=search.unreadable,
        complete=search.complete,
    )


def _is_entered(path: bytes, patterns: GlobPatterns, options: GlobOptions) -> bool:
    """Return whether a walk with these options would come to a file."""
    folders = path.split(b"/")[:-1]
    if not options.include_hidden and _HIDDEN_STEP.search(path):
        return False
    if options.max_depth is not None and len(folders) > options.max_depth:
        return False
    for depth in range(1, len(folders) + 1):
        if patterns.prunes(b"/".join(folders[:depth])):
            return False
    return True


def find_among(
    paths: PathText,
    stat_file: Callable[[bytes], tuple[int, int]],
    options: GlobOptions,
    window: Window = Window(),
) -> GlobPage:
    """Return the part ``window`` of the given files that match, like ``find``, but without reading the disk.

    ``stat_file`` returns a file's size in bytes and its time in seconds.
    """
    patterns = GlobPatterns(options)
    lead = options.under and options.under + b"/"
    start = len(lead)

    def key_of(path: bytes) -> Key:
        if options.sort_by in {"path", "name"}:
            return Key(
                path if options.sort_by == "path" else path.rpartition(b"/")[2], path
            )
        return Key(stat_file(lead + path)[options.sort_by == "modified"], path)

    literals = [
        literal._replace(start=lead + literal.start) for literal in patterns.literals
    ]
    matching = paths.matching(
        literals, lambda path: path.startswith(lead) and patterns.includes(path[start:])
    )
    relative_paths = (paths[at][start:] for at in np.flatnonzero(matching).tolist())
    keys = [
        key_of(path)
        for path in relative_paths
        if patterns.is_allowed(path) and _is_entered(path, patterns, options)
    ]
    at, end = _sort_and_cut(keys, options, window)
    files = [
        FoundFile(index, lead + key.path, key.path, *stat_file(lead + key.path), key)
        for index, key in enumerate(keys[at:end], at)
    ]
    seen = len(paths.with_literals(Literals(start=lead)))
    return GlobPage(
        files=files,
        end=end,
        total=len(keys),
        seen=seen,
        unreadable=0,
        complete=True,
    )


def _sort_and_cut(
    keys: list[Key], options: GlobOptions, window: Window
) -> tuple[int, int]:
    """Sort the keys, and return where the window begins and ends."""
    keys.sort()
    if options.descending:
        # Files of equal value stay sorted by path.
        keys.sort(key=lambda key: key.path)
        keys.sort(key=lambda key: key.value, reverse=True)
    at = min(window.offset, len(keys))
    if (after := window.after) is not None:

        def is_behind(key: Key) -> bool:
            if key.value == after.value:
                return key.path > after.path
            return (key.value < after.value) is options.descending  # type: ignore[operator]  # all values of one sort are of one type

        at = next(
            (index for index, key in enumerate(keys) if is_behind(key)), len(keys)
        )
    return at, min(at + window.limit, len(keys))


def folder_of(root: bytes, path: str, private: PrivateFolders = NO_FOLDERS) -> bytes:
    """Return the folder a caller named, like ``place_of``; also raises NotFound if it is not a folder."""
    folder = place_of(root, path, private, reason="directory_not_found")
    if not os.path.isdir(os.path.join(root, folder)):
        raise NotFound(
            f"no such directory: {path}", reason="directory_not_found", path=path
        )
    return folder


def place_of(
    root: bytes,
    path: str,
    private: PrivateFolders = NO_FOLDERS,
    *,
    reason: str = "path_not_found",
) -> bytes:
    """Return the file or folder a caller named, relative to ``root``; absolute paths inside the root are accepted, too.

    Raises:
        NotFound: nothing is there.
        Forbidden: it is outside the root or in a private folder, or a link on the way leads there.

    """
    raw = path.encode("utf-8", "surrogateescape").replace(b"\\", b"/")
    if b"\0" in raw:
        raise InvalidParams("path: contains a NUL", field="path")
    real_root = os.path.realpath(root)
    full = os.path.normpath(os.path.join(root, raw))
    real = os.path.realpath(full)
    if not is_below(real, real_root) or not (
        is_below(full, os.path.normpath(root)) or is_below(full, real_root)
    ):
        raise Forbidden(
            f"outside the project: {path}", reason="outside_root", path=path
        )
    if private.contain(real):
        raise Forbidden(
            f"flashgrep's own folder: {path}", reason="protected_path", path=path
        )
    if _has_git_name(full, root) or _has_git_name(real, real_root):
        raise git_path(raw)
    if not os.path.exists(real):
        raise NotFound(f"no such file or folder: {path}", reason=reason, path=path)
    if is_below(full, os.path.normpath(root)):
        base = os.path.normpath(root)
    else:
        base = real_root
    if full != base:
        return use_listed_names(base, os.path.relpath(full, base))
    return b""


def _has_git_name(path: bytes, root: bytes) -> bool:
    """Return whether a path leads, below a root that it is inside of, to what git stores."""
    return any(map(is_git_name, os.path.relpath(path, root).split(b"/")))


@dataclass(frozen=True, slots=True)
class _Folder:
    path: bytes
    """From the folder searched; empty for that folder itself."""
    depth: int
    above: tuple[tuple[int, int], ...] = ()
    """Device and inode of the folders on the way, if links are followed."""
    links: int = 0


@dataclass(slots=True)
class _Search:
    root: bytes
    options: GlobOptions
    deadline: float | None
    unsaved: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)
    seen: int = 0
    unreadable: int = 0
    complete: bool = True
    _base: bytes = b""
    _real_root: bytes = b""
    _lead: bytes = b""
    """From the root to the folder searched, links resolved; unless links are followed, all its files are below that."""
    _files: RootFiles = field(init=False)
    _patterns: GlobPatterns = field(init=False)
    _private: frozenset[Identity] = field(init=False)
    _inodes: set[int] = field(init=False)
    _ignore: Walker | None = None
    _entered: dict[bytes, bool] = field(default_factory=lambda: {b"": True})

    def __post_init__(self) -> None:
        under = self.options.under
        self._base = self.root.rstrip(b"/") + b"/"
        if under:
            self._base += under + b"/"
        self._real_root = os.path.realpath(self.root)
        top = os.path.relpath(os.path.realpath(self._base), self._real_root)
        if top == b".":
            self._lead = b""
        else:
            self._lead = top + b"/"
        self._files = RootFiles(RootFolder(self._real_root))
        self._patterns = GlobPatterns(self.options)
        self._private = self.options.private.identities()
        self._inodes = {inode for _, inode in self._private}
        if self.options.respect_ignore:
            self._ignore = Walker(
                self.root, WalkOptions(hidden=self.options.include_hidden)
            )

    def run(self, known: PresentFiles | None) -> Iterable[Key]:
        options = self.options
        has_all = self._ignore is not None or b"/." not in b"/" + self._lead
        as_known = (
            not options.include_hidden and not options.follow_symlinks and has_all
        )
        if (
            known is not None
            and as_known
            and self._lead == (options.under and options.under + b"/")
        ):
            places = known.settled.with_literals(Literals(start=self._lead))
            places = places[~np.isin(places, known.overruled)]
            has_files = len(places) or any(
                path.startswith(self._lead) for path in known.changed
            )
            # A folder without any may be one that is excluded; the root is not.
            if has_files or not self._lead:
                return self._known(known, places)
        return itertools.chain(self._walk([_Folder(b"", 0)]), self._find_new())

    def _find_new(self) -> Iterator[Key]:
        """Yield the matching files that have an unsaved text and are not on disk."""
        for full in self.unsaved:
            path = full[len(self._lead) :]
            if not full.startswith(self._lead) or self._is_there(path, stat.S_ISREG):
                continue
            if self._in_scope(path) and self._is_ours(path, is_dir=False):
                self.seen += 1
                if self._patterns.includes(path):
                    yield self._key(path)

    def _known(self, known: PresentFiles, places: Places) -> Collection[Key]:
        """Return the files that match; ``places``: indexes of the settled files below the folder searched."""
        lead = len(self._lead)
        includes = self._patterns.includes
        keys: dict[bytes, Key] = {}

        def add(path: bytes) -> None:
            with contextlib.suppress(OSError):  # gone meanwhile
                keys[path] = self._key(path)

        globs = [
            literal._replace(start=self._lead + literal.start)
            for literal in self._patterns.literals
        ]
        matching = known.settled.matching(globs, lambda path: includes(path[lead:]))
        matching[known.overruled] = False
        for at in np.flatnonzero(matching).tolist():
            if self._in_scope(path := known.settled[at][lead:]):
                add(path)
        below = [path[lead:] for path in known.changed if path.startswith(self._lead)]
        if self.options.exclude or self.options.max_depth is not None:
            # 50 ms for 78,000 paths.
            paths = (known.settled[at][lead:] for at in places.tolist())
            self.seen += sum(map(self._is_entered, itertools.chain(paths, below)))
        else:
            self.seen += len(places) + len(below)
        for path in below:
            if self._in_scope(path) and includes(path):
                add(path)
        self.unreadable += sum(
            self._enters(path[lead:])
            for path in known.unreadable
            if (path + b"/").startswith(self._lead)
        )
        if self._ignore is None:
            starts: list[_Folder] = []
            for path, is_dir in known.excluded.items():
                if not path.startswith(self._lead):
                    continue
                relative_path = path[lead:]
                if is_dir and self._is_start(relative_path):
                    depth = relative_path.count(b"/") + 1
                    starts.append(_Folder(relative_path, depth))
                elif not is_dir and self._is_wanted(relative_path):
                    add(relative_path)
            for key in itertools.chain(self._walk(starts), self._find_new()):
                keys[key.path] = key
        return keys.values()

    def _is_wanted(self, path: bytes) -> bool:
        """Return whether an excluded file is asked for, and still there."""
        is_match = self._in_scope(path) and self._patterns.includes(path)
        return is_match and self._is_there(path, stat.S_ISREG)

    def _is_start(self, path: bytes) -> bool:
        """Return whether an excluded folder, still there, may hold what is asked for."""
        most = self.options.max_depth
        if most is not None and path.count(b"/") >= most:
            return False
        if not self._enters(path) or not self._is_there(path, stat.S_ISDIR):
            return False
        return identify(self._base + path) not in self._private

    def _is_entered(self, path: bytes) -> bool:
        """Return whether a walk would reach the file, judging by its path."""
        checkpoint()
        most = self.options.max_depth
        return (most is None or path.count(b"/") <= most) and self._enters(
            path.rpartition(b"/")[0]
        )

    def _in_scope(self, path: bytes) -> bool:
        """Return whether a file counts, provided that one of the patterns matches it."""
        is_seen = self._is_seen(path[path.rfind(b"/") + 1 :])
        return is_seen and self._is_entered(path) and self._patterns.is_allowed(path)

    def _is_seen(self, name: bytes) -> bool:
        """Return whether an entry of this name may count; where rules apply, they may bring hidden ones back."""
        is_hidden = (
            name[:1] == b"."
            and not self.options.include_hidden
            and self._ignore is None
        )
        return name != _STATE and not is_hidden and not is_git_name(name)

    def _enters(self, folder: bytes) -> bool:
        """Return whether a walk would enter the folder, judging by its path."""
        steps = []
        while folder not in self._entered:
            steps.append(folder)
            folder = folder.rpartition(b"/")[0]
        entered = self._entered[folder]
        for step in reversed(steps):
            name = step[step.rfind(b"/") + 1 :]
            entered = self._entered[step] = (
                entered and self._is_seen(name) and not self._patterns.prunes(step)
            )
        return entered

    def _is_there(self, path: bytes, kind: Callable[[int], bool]) -> bool:
        checkpoint()
        try:
            return kind(self._files.lstat(self._lead + path).st_mode)
        except OSError:
            return False

    def _walk(self, pending: list[_Folder]) -> Iterator[Key]:
        visited = 0
        while pending:
            visited += 1
            checkpoint()
            if (
                self.deadline is not None
                and visited % _CHECK_EVERY == 0
                and time.monotonic() > self.deadline
            ):
                self.complete = False
                return
            yield from self._visit(pending.pop(), pending)

    def describe(self, index: int, key: Key) -> FoundFile | None:
        checkpoint()
        try:
            size, time_ns = self._stat(key.path)
        except OSError:
            return None  # gone since it was listed
        under = self.options.under
        if under:
            path = under + b"/" + key.path
        else:
            path = key.path
        return FoundFile(index, path, key.path, size, time_ns // 1_000_000_000, key)

    def _stat(self, path: bytes) -> tuple[int, int]:
        """Return the size and time of a file below the folder searched."""
        unsaved = self.unsaved.get(self._lead + path)
        if unsaved is not None:
            return unsaved
        if self.options.follow_symlinks:
            status = os.stat(self._base + path)
        else:
            status = self._files.lstat(self._lead + path)
        return status.st_size, status.st_mtime_ns

    def _visit(self, folder: _Folder, pending: list[_Folder]) -> Iterator[Key]:
        opened = -1
        entries = list[os.DirEntry[str]]()
        if folder.path:
            lead = folder.path + b"/"
        else:
            lead = b""
        try:
            if self.options.follow_symlinks:
                opened = os.open(self._base + folder.path, LISTING & ~os.O_NOFOLLOW)
            else:
                opened = self._files.root.open(
                    (self._lead + folder.path).removesuffix(b"/"), LISTING
                )
            with os.scandir(opened) as listing:
                entries = list(listing)
        except (FileNotFoundError, NotADirectoryError):
            pass  # gone meanwhile
        except OSError:
            self.unreadable += 1
        try:
            for entry in entries:
                checkpoint()
                name = entry.name.encode(*NAMES)
                if not self._is_seen(name):
                    continue
                try:
                    key = self._take_entry(entry, lead + name, folder, pending)
                except OSError:
                    continue  # gone, or a dangling link
                if key is not None:
                    yield key
        finally:
            if opened >= 0:
                os.close(opened)

    def _take_entry(
        self,
        entry: os.DirEntry[str],
        path: bytes,
        folder: _Folder,
        pending: list[_Folder],
    ) -> Key | None:
        follow = self.options.follow_symlinks
        if follow and entry.is_symlink():
            # A link may lead anywhere in the project, except to the folder searched or
            # one above it.
            real = os.path.realpath(self._base + path)
            if not is_below(real, self._real_root) or is_below(
                os.path.realpath(self._base), real
            ):
                return None
            if _has_git_name(real, self._real_root):
                return None
        if entry.is_dir(follow_symlinks=follow):
            inner = self._enter_folder(entry, path, folder)
            if inner is not None:
                pending.append(inner)
        elif entry.is_file(follow_symlinks=follow):
            is_hidden = entry.name.startswith(".")
            if is_hidden and not self._is_ours(path, is_dir=False):
                return None
            self.seen += 1
            if self._patterns.wants(path) and (
                is_hidden or self._is_ours(path, is_dir=False)
            ):
                return self._key(path)
        return None

    def _enter_folder(
        self, entry: os.DirEntry[str], path: bytes, folder: _Folder
    ) -> _Folder | None:
        most = self.options.max_depth
        if (most is not None and folder.depth >= most) or self._patterns.prunes(path):
            return None
        if not self._is_ours(path, is_dir=True):
            return None
        if not self.options.follow_symlinks:
            if (
                entry.inode() in self._inodes
                and identify(self._base + path) in self._private
            ):
                return None
            return _Folder(path, folder.depth + 1)
        status = entry.stat(follow_symlinks=True)
        here = (status.st_dev, status.st_ino)
        links = folder.links + entry.is_symlink()
        if here in folder.above or links > MAX_LINKS or here in self._private:
            return None  # a loop, too many links, or one of flashgrep's own folders
        return _Folder(path, folder.depth + 1, (*folder.above, here), links)

    def _is_ours(self, path: bytes, *, is_dir: bool) -> bool:
        if self._ignore is None:
            return True
        under = self.options.under
        return self._ignore.accepts(
            under + b"/" + path if under else path, is_dir=is_dir
        )

    def _key(self, path: bytes) -> Key:
        if self.options.sort_by == "path":
            return Key(path, path)
        if self.options.sort_by == "name":
            return Key(path.rpartition(b"/")[2], path)
        size, time_ns = self._stat(path)
        if self.options.sort_by == "size":
            return Key(size, path)
        return Key(time_ns, path)
