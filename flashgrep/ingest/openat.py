"""Opening what lies below a root: from the root's descriptor, through no link on the way.

A path that was listed may lead elsewhere when it is opened: somebody put a link in a folder's place meanwhile. So
folders are opened with Linux's openat2, which refuses every link; if there is none (another system, an old kernel,
a sandbox) folder by folder, each from the one before it. What is in a folder is opened by its name alone.
"""

import ctypes
import errno
import os
import sys
import threading
from functools import cache
from typing import Self

# O_PATH needs no permission to list the folder and makes no event for watchers; macOS has none.
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe that took the file's name meanwhile must not block us.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

NAMES = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
"""How os.scandir of a descriptor decodes names: ``entry.name.encode(*NAMES)`` is half the time of os.fsencode."""

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The process has no more descriptors, or no memory: an error that says nothing about the file."""

_OPENAT2 = 437  # on every architecture that has had it from the start: all but alpha
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08

_NO_FOLDER = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EXDEV})

Identity = tuple[int, int]
"""Device and inode of a folder."""


class Descriptor:
    """An open descriptor, closed at the end of a ``with`` block (twice as fast as a generator by contextlib)."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> int:
        return self._number

    def __exit__(self, *_error: object) -> None:
        os.close(self._number)


class RootFolder:
    """A root folder, held open; safe to use from several threads, and in the processes it is sent to.

    It stays the folder that was there when it was first used (with an ``identity``: that folder or none), whatever
    takes its path later.
    """

    def __init__(self, path: bytes, identity: Identity | None = None) -> None:
        self.path = path
        self._expected = identity
        self._descriptor = -1
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Self], tuple[bytes, Identity | None]]:
        # A process that gets it opens the path again, and refuses another folder than the one that is open here.
        return type(self), (self.path, self._expected if self._descriptor < 0 else self.identity())

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
        """Return the root's descriptor, which is open as long as this object lives.

        Raises:
            FileNotFoundError: another folder is there.
            OSError: it cannot be opened.

        """
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    # The root's own path may lead through links: the user named it.
                    descriptor = os.open(self.path, FOLDER & ~os.O_NOFOLLOW)
                    if self._expected is not None and _identity(descriptor) != self._expected:
                        os.close(descriptor)
                        raise FileNotFoundError(errno.ENOENT, "another folder took its place", os.fsdecode(self.path))
                    self._descriptor = descriptor
        return self._descriptor

    def open(self, path: bytes, flags: int = FOLDER) -> int:
        """Return a new descriptor of what is at a path from the root (empty: of the root itself).

        Raises:
            FileNotFoundError: nothing is there, or, where a folder is wanted, a link is at its end or on the way.
            OSError: it cannot be opened; a link at the end counts as such, and may do so on the way.

        """
        root = self.descriptor()
        try:
            if not path:
                return os.open(b".", flags, dir_fd=root)
            return _openat2(root, path, flags) if _has_openat2() else _step_by_step(root, path, flags)
        except OSError as error:
            if error.errno in _NO_FOLDER and (flags & os.O_DIRECTORY or error.errno != errno.ELOOP):
                raise FileNotFoundError(errno.ENOENT, "no folder", os.fsdecode(path)) from error
            raise


class _Held:
    """A folder that is kept open as long as this object lives."""

    __slots__ = ("descriptor", "path")

    def __init__(self, path: bytes | None, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class RootFiles:
    """The files below a root, for one question or batch.

    They come in the order of their paths mostly, so a folder is kept open from its second file on (in any order that
    would cost more than it spares). Safe to use from several threads: whoever uses a folder holds it.
    """

    def __init__(self, root: RootFolder) -> None:
        self.root = root
        self._held = _Held(None, -1)
        self._last: bytes | None = None

    def open(self, path: bytes) -> int:
        """Return a descriptor of what is at a path, for reading; never of what a link leads to.

        Raises:
            FileNotFoundError: nothing is there.
            OSError: it cannot be opened; a link at the end or on the way counts as such.

        """
        folder, _, name = path.rpartition(b"/")
        # Taken once: another thread may hold another folder in between.
        held = self._held
        if held.path != folder:
            if self._last != folder:
                self._last = folder
                return self.root.open(path, FILE)
            held = self._hold(folder)
        return os.open(name, FILE, dir_fd=held.descriptor)

    def lstat(self, path: bytes) -> os.stat_result:
        """Return the state of what is at a path, a link as itself.

        Raises:
            FileNotFoundError: nothing is there, or a link is on the way.
            OSError: it cannot be told.

        """
        folder, _, name = path.rpartition(b"/")
        held = self._held
        if held.path != folder:
            held = self._hold(folder)
        return os.stat(name, dir_fd=held.descriptor, follow_symlinks=False)

    def _hold(self, folder: bytes) -> _Held:
        self._held = held = _Held(folder, self.root.open(folder))
        return held


class _How(ctypes.Structure):
    """The kernel's struct open_how."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = {flags: _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS) for flags in (FOLDER, LISTING, FILE)}
_HOW_SIZE = ctypes.sizeof(_How)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_LIBC.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)


@cache
def _has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    try:
        with Descriptor(os.open(b"/", FOLDER)) as root:
            os.close(_openat2(root, b".", FOLDER))
    except OSError:  # ENOSYS before Linux 5.6; EPERM where a sandbox forbids what it does not know
        return False
    return True


def _openat2(folder: int, path: bytes, flags: int) -> int:
    found: int = _LIBC.syscall(_OPENAT2, folder, path, _HOW[flags], _HOW_SIZE)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(path))
    return found


def _step_by_step(folder: int, path: bytes, flags: int) -> int:
    *steps, last = path.split(b"/")
    if b".." in {*steps, last}:
        raise FileNotFoundError(errno.ENOENT, "not below the root", os.fsdecode(path))
    # A copy, so that each step can close what it came from.
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
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
