"""Opening files below a root, starting at the root's descriptor and following no links.

A path may lead elsewhere by the time it is opened, if a folder has been replaced by a link. So folders are opened with
Linux's openat2, which refuses links. Where that is missing (another system, an old kernel, a sandbox), they are opened
step by step, each relative to the one before. A file is opened by name, relative to its folder.
"""

import ctypes
import errno
import os
import sys
import threading
from functools import cache
from typing import Self

# O_PATH needs no permission to list the folder and triggers no event for watchers;
# macOS lacks it.
FOLDER = (
    getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
)
LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe that has taken the file's name must not block us.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

NAMES = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
"""How os.scandir of a descriptor decodes names; ``entry.name.encode(*NAMES)`` takes half the time of os.fsencode."""

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The process is out of descriptors or memory: an error that says nothing about the file."""

_OPENAT2 = 437  # on every architecture but alpha
_NO_MAGICLINKS = 0x02
_NO_SYMLINKS = 0x04
_BENEATH = 0x08

_NO_FOLDER = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EXDEV})

Identity = tuple[int, int]
"""Device and inode of a folder."""


class Descriptor:
    """An open descriptor, closed at the end of a ``with`` block; twice as fast as contextlib's generators."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> int:
        return self._number

    def __exit__(self, *_error: object) -> None:
        os.close(self._number)


class RootFolder:
    """A root folder, held open; safe to use from several threads and to send to other processes.

    It remains the folder that was there at its first use, whatever takes its path later. With an ``identity``, any
    other folder is an error.
    """

    def __init__(self, path: bytes, identity: Identity | None = None) -> None:
        self.path = path
        self._expected = identity
        self._descriptor = -1
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Self], tuple[bytes, Identity | None]]:
        # The receiving process opens the path again, and refuses any folder but the one
        # that is open here.
        return type(self), (
            self.path,
            self._expected if self._descriptor < 0 else self.identity(),
        )

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def identity(self) -> Identity:
        """Return which folder this is.

        Raises:
            OSError: it cannot be opened.

        """
        return _identity(self.descriptor())

    def descriptor(self) -> int:
        """Return the root's descriptor, which stays open as long as this object lives.

        Raises:
            FileNotFoundError: another folder has taken the path.
            OSError: it cannot be opened.

        """
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    # The root's own path may lead through links: the user named it.
                    descriptor = os.open(self.path, FOLDER & ~os.O_NOFOLLOW)
                    if (
                        self._expected is not None
                        and _identity(descriptor) != self._expected
                    ):
                        os.close(descriptor)
                        raise FileNotFoundError(
                            errno.ENOENT,
                            "replaced by another folder",
                            os.fsdecode(self.path),
                        )
                    self._descriptor = descriptor
        return self._descriptor

    def open(self, path: bytes, flags: int = FOLDER) -> int:
        """Return a new descriptor for a path below the root (empty: the root itself).

        Raises:
            FileNotFoundError: nothing is there, or a folder was requested and there is a link at or above the path.
            OSError: it cannot be opened. A link at the path causes this, too, and one above it may.

        """
        root = self.descriptor()
        try:
            if not path:
                return os.open(b".", flags, dir_fd=root)
            if _has_openat2():
                return _openat2(root, path, flags)
            return _step_by_step(root, path, flags)
        except OSError as error:
            if error.errno in _NO_FOLDER and (
                flags & os.O_DIRECTORY or error.errno != errno.ELOOP
            ):
                raise FileNotFoundError(
                    errno.ENOENT, "not a folder", os.fsdecode(path)
                ) from error
            raise


class _OpenFolder:
    """A folder that stays open as long as this object lives."""

    __slots__ = ("descriptor", "path")

    def __init__(self, path: bytes | None, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class RootFiles:
    """The files below a root, as one question or batch opens them.

    Paths mostly come sorted, so a folder is kept open from its second file on; in random order, keeping folders open
    would cost more than it saves. Safe to use from several threads: each keeps a reference to the folder it uses.
    """

    def __init__(self, root: RootFolder) -> None:
        self.root = root
        self._current = _OpenFolder(None, -1)
        self._last: bytes | None = None

    def open(self, path: bytes) -> int:
        """Return a descriptor for reading the file at a path, following no links.

        Raises:
            FileNotFoundError: nothing is there.
            OSError: it cannot be opened, or there is a link at or above the path.

        """
        folder, _, name = path.rpartition(b"/")
        # Read once: another thread may replace it at any time.
        current = self._current
        if current.path != folder:
            if self._last != folder:
                self._last = folder
                return self.root.open(path, FILE)
            current = self._enter(folder)
        return os.open(name, FILE, dir_fd=current.descriptor)

    def lstat(self, path: bytes) -> os.stat_result:
        """Return the stat of a path; for a link, its own.

        Raises:
            FileNotFoundError: nothing is there, or there is a link above the path.
            OSError: it cannot be read.

        """
        folder, _, name = path.rpartition(b"/")
        current = self._current
        if current.path != folder:
            current = self._enter(folder)
        return os.stat(name, dir_fd=current.descriptor, follow_symlinks=False)

    def close(self) -> None:
        """Let go of the folder held open: it is closed once no other thread opens a file in it. Opening continues."""
        self._current = _OpenFolder(None, -1)
        self._last = None

    def _enter(self, folder: bytes) -> _OpenFolder:
        self._current = current = _OpenFolder(folder, self.root.open(folder))
        return current


class _How(ctypes.Structure):
    """The kernel's struct open_how."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_HOW = {
    flags: _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    for flags in (FOLDER, LISTING, FILE)
}
_HOW_SIZE = ctypes.sizeof(_How)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_LIBC.syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(_How),
    ctypes.c_size_t,
)


@cache
def _has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    try:
        with Descriptor(os.open(b"/", FOLDER)) as root:
            os.close(_openat2(root, b".", FOLDER))
    except (
        OSError
    ):  # ENOSYS before Linux 5.6; EPERM in a sandbox that forbids unknown calls
        return False
    return True


def _openat2(folder: int, path: bytes, flags: int) -> int:
    descriptor: int = _LIBC.syscall(_OPENAT2, folder, path, _HOW[flags], _HOW_SIZE)
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(path))
    return descriptor


def _step_by_step(folder: int, path: bytes, flags: int) -> int:
    *steps, last = path.split(b"/")
    if b".." in {*steps, last}:
        raise FileNotFoundError(errno.ENOENT, "not below the root", os.fsdecode(path))
    # A duplicate, so that each step can close the descriptor before it.
    here = os.dup(folder)
    try:
        for step in steps:
            below = os.open(step, FOLDER, dir_fd=here)
            os.close(here)
            here = below
        return os.open(last, flags, dir_fd=here)
    finally:
        os.close(here)


def _identity(descriptor: int) -> Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
