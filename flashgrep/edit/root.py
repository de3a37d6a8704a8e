"""Confinement, in this one place: every path is walked from the descriptor of the project's root.

Each folder is opened from the one before it without following links; a link's target is walked by hand the same way, so
what is swapped between check and use is met as it is then, and ``..`` goes back along the descriptors we hold, never by
name. This is what Linux's openat2 does with RESOLVE_BENEATH, which has no call in the standard library; unlike it, an
absolute target inside the root is followed. What this cannot see: a hard link to a file outside (it *is* that file:
reading shows what the user may read anyway), and a folder moved out of the root while we hold it. Writing never changes
a file's bytes in place: a new file takes its name, so a hard link elsewhere, protected or not, keeps its content.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from flashgrep.edit.faults import missing, named, not_a_file, outside, shown, telling
from flashgrep.edit.protect import is_protected
from flashgrep.errors import Busy, Forbidden, InvalidParams
from flashgrep.ingest.openat import FILE, FOLDER, LISTING
from flashgrep.places import check_private, make_private
from flashgrep.private import NO_FOLDERS, Identity, PrivateFolders

_MOST_LINKS = 40  # as Linux
_MOST_RETRIES = 8  # each needs a swap of the name within microseconds


@dataclass(slots=True)
class Place:
    """Where a path ends: an open folder inside the root, and the last name in it (``.`` for the root itself)."""

    folder: int
    name: bytes
    path: bytes
    """Relative to the root, links resolved; empty for the root."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.folder)

    def lstat(self) -> os.stat_result | None:
        """Return what the name is now, a link as itself, or None."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise named(error, self.path, "path") from error

    def sync(self) -> None:
        """Make the folder's names durable."""
        descriptor = os.open(b".", LISTING, dir_fd=self.folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def key(self) -> tuple[int, int, bytes]:
        """Return what tells this name from every other, whatever path led here."""
        folder = os.fstat(self.folder)
        return (folder.st_dev, folder.st_ino, self.name)


class Root:
    """A project's root folder, held open; a context manager."""

    def __init__(self, path: bytes, state_dir: bytes, private: PrivateFolders = NO_FOLDERS) -> None:
        """``state_dir``: where writes under way are noted; it must not lie below ``path``, which others may fill.

        ``private`` folders are never entered, named or part of what is moved, should they lie below the root.
        """
        self.path = os.path.abspath(path)
        self.private = private
        self._state_dir = state_dir
        with telling(self.path, "directory"):
            self.descriptor = os.open(self.path, LISTING & ~os.O_NOFOLLOW)
        self._former: list[int] = []
        self._prefixes = tuple({_as_folder(self.path), _as_folder(os.path.realpath(path))})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the root."""
        for descriptor in (self.descriptor, *self._former):
            os.close(descriptor)
        self._former.clear()

    def current(self) -> int:
        """Return a new descriptor of the root; if another folder took its path, as a checkout does, of that one."""
        with telling(self.path, "directory"):
            try:
                same = os.path.samestat(os.stat(self.path), os.fstat(self.descriptor))
            except PermissionError:  # a folder above was closed to us meanwhile; ours is open
                same = True
            if not same:
                self._former.append(self.descriptor)  # another thread may be about to use it
                self.descriptor = os.open(self.path, LISTING & ~os.O_NOFOLLOW)
            return os.dup(self.descriptor)

    def place(self, path: bytes, *, follow: bool = True, write: bool = False, parents: bool = False) -> Place:
        """Walk to a path and return where it ends; the last name need not exist.

        ``follow`` resolves a link at the end too; ``write`` refuses protected names anywhere on the way; ``parents``
        makes missing folders.

        Raises:
            Forbidden: outside_root, protected_path, permission_denied.
            NotFound: a folder on the way is missing.
            InvalidParams: empty, or with a NUL byte.

        """
        parts = self.parts(path)
        with _Walk(self, path, parts, write=write, parents=parents) as walk:
            return walk.run(follow=follow)

    def open_file(self, path: bytes) -> tuple[int, os.stat_result, bytes]:
        """Open a regular file for reading; returns its descriptor, its state and its path with links resolved."""
        for _ in range(_MOST_RETRIES):
            with self.place(path) as place:
                status = _regular(place)
                try:
                    descriptor = os.open(place.name, FILE, dir_fd=place.folder)
                except OSError as error:
                    # A link took the name after the walk: walk again. Some systems say EMLINK, some ENOTDIR.
                    if _is_link(place):
                        continue
                    raise named(error, path) from error
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode):
                    return descriptor, status, place.path
                os.close(descriptor)
                raise not_a_file(path)
        raise Busy(f"path keeps changing: {shown(path)}", target_path=shown(path))

    def open_folder(self, path: bytes) -> tuple[int, bytes]:
        """Open a folder for listing; returns its descriptor and its path with links resolved."""
        with self.place(path) as place, telling(path, "directory"):
            status = place.lstat()
            if status is None:
                raise missing(path, "directory")
            if not stat.S_ISDIR(status.st_mode):
                message = f"not a directory: {shown(path)}"
                raise InvalidParams(message, reason="not_a_directory", target_path=shown(path))
            return os.open(place.name, LISTING, dir_fd=place.folder), place.path

    def open_state(self, name: bytes, *, make: bool = True) -> int:
        """Open (and make) a folder of the project's state, which lies with the user's.

        Raises:
            FlashgrepError: it is not there, or it is not this user's alone.

        """
        with telling(self._state_dir, "directory"):
            if make:
                make_private(os.fsdecode(self._state_dir))
            else:
                check_private(os.fsdecode(self._state_dir))
            descriptor = os.open(self._state_dir, LISTING)
            try:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=descriptor)
                return os.open(name, LISTING, dir_fd=descriptor)
            finally:
                os.close(descriptor)

    def parts(self, path: bytes) -> list[bytes]:
        """Split a path into names, relative to the root; an absolute path inside the root is made relative."""
        if not path or b"\0" in path:
            problem = "empty path" if not path else "path contains a NUL byte"
            raise InvalidParams(f"{problem}: {shown(path)!r}", field="file_path", target_path=shown(path))
        return self._below(path, path)

    def _below(self, path: bytes, asked: bytes) -> list[bytes]:
        if path.startswith(b"/"):
            for prefix in self._prefixes:
                if _as_folder(path).startswith(prefix):
                    path = path[len(prefix) :]
                    break
            else:
                raise outside(asked)
        return [name for name in path.split(b"/") if name not in {b"", b"."}]


class _Walk:
    """One walk: the folders entered so far, and the names still ahead (the next one last)."""

    def __init__(self, root: Root, asked: bytes, parts: Sequence[bytes], *, write: bool, parents: bool) -> None:
        self._root = root
        self._asked = asked
        self._ahead = list(reversed(parts))
        self._write = write
        self._parents = parents
        self._private = root.private.identities()
        self._folders = [root.current()]
        self._names: list[bytes] = []
        self._links = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for descriptor in self._folders:
            os.close(descriptor)

    def run(self, *, follow: bool) -> Place:
        while self._ahead:
            name = self._ahead.pop()
            if name == b"..":
                self._back()
                continue
            self._guard(name)
            if self._ahead:
                self._enter(name)
                continue
            name = self._spelled(name)
            target = self._link(name) if follow else None
            if target is None:
                return self._place(name)
            self._follow(target)
        if not self._names:
            return Place(self._folders.pop(), b".", b"")
        os.close(self._folders.pop())
        return self._place(self._names.pop())

    def _place(self, name: bytes) -> Place:
        if self._private:
            with contextlib.suppress(OSError):
                found = os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
                refuse_private(found, self._private, self._asked)
        return Place(self._folders.pop(), name, b"/".join([*self._names, name]))

    def _guard(self, name: bytes) -> None:
        if self._write and is_protected(name):
            path = shown(self._asked)
            raise Forbidden(f"never written: {path}", reason="protected_path", target_path=path)

    def _back(self) -> None:
        if not self._names:
            raise outside(self._asked)
        self._names.pop()
        os.close(self._folders.pop())

    def _enter(self, name: bytes) -> None:
        folder = self._folders[-1]
        try:
            below = os.open(name, FOLDER, dir_fd=folder)
        except OSError as error:
            target = self._link(name)
            if target is not None:
                self._follow(target)
                return
            if not isinstance(error, FileNotFoundError):
                raise named(error, self._asked) from error
            name = self._spelled(name)
            below = self._open_missing(name)
        self._folders.append(below)
        self._names.append(name)
        if self._private:
            refuse_private(os.fstat(below), self._private, self._asked)

    def _open_missing(self, name: bytes) -> int:
        with telling(self._asked):
            if self._parents:
                with contextlib.suppress(FileExistsError):
                    make_folder(name, self._folders[-1])
            return os.open(name, FOLDER, dir_fd=self._folders[-1])

    def _link(self, name: bytes) -> bytes | None:
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError:  # not a link, or not there: whoever opens it next is told why
            return None

    def _follow(self, target: bytes) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise missing(self._asked, "path")
        parts = self._root._below(target, self._asked)  # noqa: SLF001 - the walk is the root's other half
        if target.startswith(b"/"):
            while self._names:
                self._back()
        self._ahead.extend(reversed(parts))

    def _spelled(self, name: bytes) -> bytes:
        """Return the one name that is shown like this; U+FFFD stands for bytes that are no UTF-8."""
        if "\ufffd".encode() not in name:
            return name
        with telling(self._asked), _Listing(self._folders[-1]) as names:
            same = [os.fsencode(each) for each in names if shown(os.fsencode(each)).encode() == name]
        return same[0] if len(same) == 1 else name


class _Listing:
    """The names of a folder, closed after use."""

    def __init__(self, folder: int) -> None:
        self._descriptor = os.open(b".", LISTING, dir_fd=folder)

    def __enter__(self) -> list[str]:
        return os.listdir(self._descriptor)

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)


def refuse_private(found: os.stat_result, private: frozenset[Identity], path: bytes) -> None:
    """Refuse a folder that is flashgrep's own: the token, the settings and other projects' indexes lie there."""
    if (found.st_dev, found.st_ino) in private:
        told = shown(path)
        raise Forbidden(f"flashgrep's own folder: {told}", reason="protected_path", target_path=told)


def make_folder(name: bytes, folder: int) -> None:
    """Make a folder with the rights of the one it is in, but for writing by all; the process's umask is a daemon's."""
    os.mkdir(name, 0o700, dir_fd=folder)
    descriptor = os.open(name, LISTING, dir_fd=folder)
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | (os.fstat(folder).st_mode & 0o775))
    finally:
        os.close(descriptor)


def _as_folder(path: bytes) -> bytes:
    return path if path.endswith(b"/") else path + b"/"


def _regular(place: Place) -> os.stat_result:
    """Return the state of a place that is a regular file: a device must not even be opened."""
    status = place.lstat()
    if status is None:
        raise missing(place.path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise not_a_file(place.path)
    return status


def _is_link(place: Place) -> bool:
    status = place.lstat()
    return status is not None and stat.S_ISLNK(status.st_mode)
