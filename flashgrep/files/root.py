"""Confinement to the project: every path is walked from the descriptor of the project's root.

Each folder is opened from the one before it without following links. A link's target is walked by hand in the same way,
so a name that is swapped between check and use is taken as it is then, and ``..`` goes back along the open descriptors,
never by name. Linux's openat2 does this with RESOLVE_BENEATH, which the standard library does not offer; unlike it, an
absolute target inside the root is followed. Two things are not detected: a hard link to a file outside (it *is* that
file: reading shows what the user may read anyway), and a folder moved out of the root while it is open. Writing never
changes a file's bytes in place: a new file takes its name, so a hard link elsewhere, protected or not, keeps its
content.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from flashgrep.base.errors import Busy, Forbidden, InvalidParams
from flashgrep.base.own_folders import NO_FOLDERS, PrivateFolders
from flashgrep.base.paths import check_private, make_private
from flashgrep.files.openat import FILE, FOLDER, LISTING, Descriptor
from flashgrep.files.system import (
    format_path,
    missing,
    not_a_file,
    protected_path,
    translate_error,
    translate_errors,
)

_GIT_NAMES = frozenset({".git", "git~1"})  # what an 8.3 file system may call it, too
PROTECTED = _GIT_NAMES | {".flashgrep", "flashg~1"}
"""Names that are never written: git's own folder and ours."""
# Code points HFS+ drops from a name, so that ".g<200c>it" opens ".git"; the list is
# git's (utf8.c, next_hfs_char).
_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_MOST_LINKS = 40  # as Linux
_MOST_RETRIES = 8  # each needs a swap of the name within microseconds


@dataclass(slots=True)
class Place:
    """The end of a path: an open folder inside the root, and the last name in it (``.`` for the root itself)."""

    folder: int
    name: bytes
    path: bytes
    """Relative to the root, links resolved; empty for the root."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        os.close(self.folder)

    def lstat(self, name: bytes | None = None) -> os.stat_result | None:
        """Return the present state of the name, or of another in the same folder; a link as itself, None if missing."""
        try:
            return os.stat(
                self.name if name is None else name,
                dir_fd=self.folder,
                follow_symlinks=False,
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate_error(error, self.path, "path") from error

    def rename(self, temporary: bytes) -> None:
        """Rename the file of a temporary name in the same folder to this name."""
        os.rename(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def sync(self) -> None:
        """Make the folder's names durable."""
        with Descriptor(os.open(b".", LISTING, dir_fd=self.folder)) as descriptor:
            os.fsync(descriptor)

    def key(self) -> tuple[int, int, bytes]:
        """Return a key of this directory entry, whatever path was used: its folder's device and inode, its name."""
        folder = os.fstat(self.folder)
        return (folder.st_dev, folder.st_ino, self.name)


class Root:
    """A project's root folder, held open; a context manager."""

    def __init__(
        self, path: bytes, state_dir: bytes, private: PrivateFolders = NO_FOLDERS
    ) -> None:
        """``state_dir``: where unfinished writes are noted; it must not lie below ``path``, which others may fill.

        ``private`` folders are never entered, named or part of what is moved, should they lie below the root.
        """
        self.path = os.path.abspath(path)
        self.private = private
        self._state_dir = state_dir
        with translate_errors(self.path, "directory"):
            self.descriptor = os.open(self.path, LISTING & ~os.O_NOFOLLOW)
        self._former: list[int] = []
        self._prefixes = tuple(
            {root.rstrip(b"/") + b"/" for root in (self.path, os.path.realpath(path))}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the root."""
        for descriptor in (self.descriptor, *self._former):
            os.close(descriptor)
        self._former.clear()

    def current(self) -> int:
        """Return a new descriptor of the root; if another folder took its path, as a checkout does, of that one."""
        with translate_errors(self.path, "directory"):
            try:
                now = os.stat(self.path)
                same = os.path.samestat(now, os.fstat(self.descriptor))
            except (
                PermissionError
            ):  # a parent folder became inaccessible; ours is still open
                same = True
            if not same:
                self._former.append(
                    self.descriptor
                )  # another thread may be about to use it
                self.descriptor = os.open(self.path, LISTING & ~os.O_NOFOLLOW)
            return os.dup(self.descriptor)

    def place(
        self,
        path: bytes,
        *,
        follow: bool = True,
        write: bool = False,
        parents: bool = False,
    ) -> Place:
        """Walk to a path and return where it ends; the last name need not exist.

        ``follow`` resolves a link at the end too; ``write`` refuses protected names anywhere on the way, as ``.git``
        always is; ``parents`` makes missing folders.

        Raises:
            Forbidden: outside_root, protected_path, permission_denied.
            NotFound: a folder on the way is missing.
            InvalidParams: empty, or with a NUL byte.

        """
        if not path or b"\0" in path:
            if path:
                problem = "path contains a NUL byte"
            else:
                problem = "empty path"
            text = format_path(path)
            raise InvalidParams(
                f"{problem}: {text!r}", field="file_path", target_path=text
            )
        with _Walk(
            self, path, self.split(path, path), write=write, parents=parents
        ) as walk:
            return walk.run(follow=follow)

    def open_file(self, path: bytes) -> tuple[int, os.stat_result, bytes]:
        """Open a regular file for reading; returns its descriptor, its state and its path with links resolved."""
        for _ in range(_MOST_RETRIES):
            with self.place(path) as place:
                status = place.lstat()
                if status is None:
                    raise missing(place.path)
                # Opening a FIFO waits for a writer, and opening a device may act on it.
                if not (
                    stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
                ):  # never open a device
                    raise not_a_file(place.path)
                try:
                    descriptor = os.open(place.name, FILE, dir_fd=place.folder)
                except OSError as error:
                    # If a link took the name after the walk, walk again. Some systems
                    # say EMLINK, some ENOTDIR.
                    now = place.lstat()
                    if now is not None and stat.S_ISLNK(now.st_mode):
                        continue
                    raise translate_error(error, path) from error
                # Check what was opened, not what was looked up: the name may have been
                # swapped in between.
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode):
                    return descriptor, status, place.path
                os.close(descriptor)
                raise not_a_file(path)
        text = format_path(path)
        raise Busy(f"path keeps changing: {text}", target_path=text)

    def open_folder(self, path: bytes) -> tuple[int, bytes]:
        """Open a folder for listing; returns its descriptor and its path with links resolved."""
        with self.place(path) as place, translate_errors(path, "directory"):
            status = place.lstat()
            if status is None:
                raise missing(path, "directory")
            if not stat.S_ISDIR(status.st_mode):
                text = format_path(path)
                raise InvalidParams(
                    f"not a directory: {text}",
                    reason="not_a_directory",
                    target_path=text,
                )
            return os.open(place.name, LISTING, dir_fd=place.folder), place.path

    def open_state(self, name: bytes, *, make: bool = True) -> int:
        """Open (and make) a folder of the project's state, which lies with the user's.

        Raises:
            FlashgrepError: it is not there, or others than this user may write to it.

        """
        with translate_errors(self._state_dir, "directory"):
            if make:
                make_private(os.fsdecode(self._state_dir))
            else:
                check_private(os.fsdecode(self._state_dir))
            # LISTING does not follow a link, so a link put in the state folder's place
            # after the check is refused.
            with Descriptor(os.open(self._state_dir, LISTING)) as descriptor:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=descriptor)
                return os.open(name, LISTING, dir_fd=descriptor)

    def relative(self, path: bytes) -> bytes:
        """Return a path that a caller named, relative to the root; raises Forbidden where an absolute one is outside.

        Nothing is looked up: what is asked may have no file on disk.
        """
        return b"/".join(self.split(path, path))

    def split(self, path: bytes, asked: bytes) -> list[bytes]:
        """Return a path's names, relative to the root; an absolute path must begin with the root's.

        Raises:
            Forbidden: outside_root, naming the path that was asked for.

        """
        if path.startswith(b"/"):
            # Compared as text, and whole names at a time; the walk itself starts at the
            # root's descriptor all the same.
            prefix = next(
                (
                    current_prefix
                    for current_prefix in self._prefixes
                    if (path.rstrip(b"/") + b"/").startswith(current_prefix)
                ),
                None,
            )
            if prefix is None:
                raise outside_root(asked)
            path = path[len(prefix) :]
        return [name for name in path.split(b"/") if name not in {b"", b"."}]


class _Walk:
    """One walk: the folders entered so far, and the names still ahead (the next one last)."""

    def __init__(
        self,
        root: Root,
        asked: bytes,
        names: Sequence[bytes],
        *,
        write: bool,
        parents: bool,
    ) -> None:
        self._root = root
        self._asked = asked
        self._ahead = list(reversed(names))
        self._write = write
        self._parents = parents
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
                self._go_back()
                continue
            # Each name of the way, of links' targets too: a link "docs -> .git" must
            # not lead a call there.
            if self._write and is_protected(name):
                raise protected_path(self._asked)
            if is_git_name(name):
                raise git_path(self._asked)
            if self._ahead:
                self._enter(name)
                continue
            name = self._find_spelling(name)
            # O_NOFOLLOW refused a link, with an error that differs by system; readlink
            # tells for certain.
            if follow:
                target = self._read_link(name)
            else:
                target = None
            if target is None:
                return self._end(name)
            self._follow(target)
        if not self._names:
            return Place(self._folders.pop(), b".", b"")
        os.close(self._folders.pop())
        return self._end(self._names.pop())

    def _end(self, name: bytes) -> Place:
        # A name that does not exist yet is not protected; the caller finds out.
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
            check_not_private(self._root, status, self._asked)
        return Place(self._folders.pop(), name, b"/".join([*self._names, name]))

    def _go_back(self) -> None:
        if not self._names:
            raise outside_root(self._asked)
        self._names.pop()
        os.close(self._folders.pop())

    def _enter(self, name: bytes) -> None:
        try:
            below = os.open(name, FOLDER, dir_fd=self._folders[-1])
        except OSError as error:
            target = self._read_link(name)
            if target is not None:
                self._follow(target)
                return
            if not isinstance(error, FileNotFoundError):
                raise translate_error(error, self._asked) from error
            name = self._find_spelling(name)
            with translate_errors(self._asked):
                if self._parents:
                    with contextlib.suppress(FileExistsError):
                        make_folder(name, self._folders[-1])
                below = os.open(name, FOLDER, dir_fd=self._folders[-1])
        self._folders.append(below)
        self._names.append(name)
        check_not_private(self._root, os.fstat(below), self._asked)

    def _read_link(self, name: bytes) -> bytes | None:
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError:  # not a link, or missing: opening it will report why
            return None

    def _follow(self, target: bytes) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise missing(self._asked, "path")
        # An absolute target has to begin with the root's own path; any other leaves it.
        names = self._root.split(target, self._asked)
        if target.startswith(b"/"):
            while self._names:
                self._go_back()
        # The target's names come before what was left of the path; "..", too, is taken
        # on the open descriptors.
        self._ahead.extend(reversed(names))

    def _find_spelling(self, name: bytes) -> bytes:
        """Return the one name here that is shown like this; U+FFFD stands for bytes that are not UTF-8."""
        if "\ufffd".encode() not in name:
            return name
        here = self._folders[-1]
        with (
            translate_errors(self._asked),
            Descriptor(os.open(b".", LISTING, dir_fd=here)) as descriptor,
        ):
            names = [os.fsencode(entry) for entry in os.listdir(descriptor)]
        same = [
            current_name
            for current_name in names
            if format_path(current_name).encode() == name
        ]
        if len(same) == 1:
            return same[0]
        return name


def is_protected(name: bytes) -> bool:
    """Return whether a file system could take this name for one that is never written, as ``.git``."""
    return _fold(name) in PROTECTED


def is_git_name(name: bytes) -> bool:
    """Return whether a file system could take this name for ``.git``, which git alone reads."""
    return _fold(name) in _GIT_NAMES


def _fold(name: bytes) -> str:
    """Return the plain form of what may be a protected name: case, ignored characters; empty for most others."""
    # Most names have none of these first characters: the costly folding below is for
    # the few others.
    if not (name.startswith(b".") or b"~" in name or name[:1] >= b"\x80"):
        return ""
    # NTFS: what follows ":" names a stream of the same file, and dots and spaces at the
    # end are dropped.
    return (
        name.decode("utf-8", "replace")
        .translate(_IGNORED)
        .partition(":")[0]
        .rstrip(" .")
        .casefold()
    )


def outside_root(path: bytes) -> Forbidden:
    """Return the error for a path that leaves the root."""
    text = format_path(path)
    return Forbidden(f"path leaves the project: {text}", target_path=text)


def git_path(path: bytes) -> Forbidden:
    """Return the error for a path to what git stores: addresses in its settings may hold a password."""
    return protected_path(path, "read by git alone")


def check_not_private(root: Root, status: os.stat_result, path: bytes) -> None:
    """Refuse a folder that is flashgrep's own: the token, the settings and other projects' indexes lie there."""
    if root.private.includes(status):
        raise protected_path(path, "flashgrep's own folder")


def make_folder(name: bytes, folder: int) -> None:
    """Make a folder with the rights of the one it is in, but for writing by all; the process's umask is a daemon's."""
    os.mkdir(name, 0o700, dir_fd=folder)
    with Descriptor(os.open(name, LISTING, dir_fd=folder)) as descriptor:
        # Added to 0700, which mkdir made under the daemon's umask of 077.
        os.fchmod(
            descriptor,
            stat.S_IMODE(os.fstat(descriptor).st_mode)
            | (os.fstat(folder).st_mode & 0o775),
        )
