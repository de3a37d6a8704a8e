"""Noticing changes that make no event in a project's tree: mounts, and changes to rules files outside it.

Mounting and unmounting make no event in a watched folder. Polling the kernel's mount table reports them, in 1 µs. Some
file systems send no change events at all (``SILENT``).

Rules files outside a project are above its root, in git's folders, in the user's settings. A project five folders below
the top has more than 30 such files, most of them missing, and checking each one took longer than the search. One
inotify queue serves all projects of a process. No thread waits for it: a question reads it until it is empty, which is
a barrier (as in ``files/watch.py``). After any event the files are checked again. Files that inotify cannot cover are
checked by every question.
"""

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

SILENT = frozenset({
    "9p",  # Windows drives under WSL 2
    "afs",
    "ceph",
    "cifs",
    "drvfs",  # Windows drives under WSL 1
    "fuse",
    "fuseblk",  # exFAT and NTFS by programs: no event for a name in other letters
    "glusterfs",
    "lustre",
    "nfs",
    "nfs4",
    "prl_fs",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
})  # fmt: skip
"""Types of file systems whose files can change on another machine or system without an event here."""

_MOUNTS = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    """What identifies a mount, and the type of its file system if that sends no change events."""

    identity: tuple[bytes, ...]
    silent: str


def find_mounts(root: bytes, mounts: Path = _MOUNTS) -> dict[bytes, Mount]:
    """Return the mounts of a tree by relative path: the one its root is on, as ``b""``, and those below the root."""
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        return {}  # not Linux: watchdog handles other systems
    path = os.path.realpath(root).rstrip(b"/")
    outer = b""
    found_mounts = dict[bytes, Mount]()
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        parts = fields.split(b" ")
        point = parts[4]
        for code in (
            b" ",
            b"\t",
            b"\n",
            b"\\",
        ):  # mountinfo writes these as octal escapes
            point = point.replace(b"\\%03o" % code[0], code)
        name = rest.split(b" ")[0].decode("ascii", "replace")
        mount = Mount(
            tuple(parts[:4]), name if name.partition(".")[0] in SILENT else ""
        )
        point = point.rstrip(b"/")
        # A path is on its innermost mount point. Of two mounts at one point, the later
        # one hides the earlier.
        if point.startswith(path + b"/"):
            found_mounts[point[len(path) + 1 :]] = mount
        elif (path == point or path.startswith(point + b"/")) and len(point) >= len(
            outer
        ):
            outer, found_mounts[b""] = point, mount
    return found_mounts


def find_silent_type(root: bytes, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system ``root`` is on if it sends no change events, else an empty string."""
    return _silent_at(b"", find_mounts(root, mounts))


def _silent_at(folder: bytes, mounts: Mapping[bytes, Mount]) -> str:
    mount = mounts.get(folder)
    if mount is None:
        return ""
    return mount.silent


class Mounts:
    """The mounts of one tree, kept up to date."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._table = -1
        self._poll = select.poll()
        try:
            self._table = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no /proc, or out of descriptors: later mounts are not noticed
            pass
        else:
            self._poll.register(self._table, select.POLLPRI)
        self._known = find_mounts(root)

    def has_changed(self) -> bool:
        """Return whether a file system was mounted or unmounted in the tree since the last call."""
        if self._table < 0 or not self._poll.poll(0):
            return False
        # Mounts elsewhere, such as those of every container that starts, do not concern
        # the tree.
        mounts = self._known
        self._known = find_mounts(self._root)
        return mounts != self._known

    def silent_at(self, folder: bytes) -> str:
        """Return the type of the file system mounted at a folder if it sends no change events."""
        return _silent_at(folder, self._known)

    def close(self) -> None:
        """Close the mount table."""
        if self._table >= 0:
            os.close(self._table)
            self._table = -1


_CREATE = 0x100
_DELETE = 0x200
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_DELETE_SELF = 0x400
_MOVE_SELF = 0x800
_MODIFY = 0x2
_ATTRIB = 0x4
_ONLYDIR = 0x1000000
_MASK_ADD = 0x20000000
_OF_FOLDERS = (
    _CREATE
    | _DELETE
    | _MOVED_FROM
    | _MOVED_TO
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLYDIR
    | _MASK_ADD
)
_OF_FILES = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF | _MASK_ADD
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})
READ_BYTES = 1 << 14
"""Bytes read from the queue at once. If more is waiting, checking the files costs less than reading the events."""
MOST_WATCHES = 4_096
"""Above this, all watches are set up again: projects come and go, but a watch lasts as long as its folder."""


class Folder(NamedTuple):
    """A folder on the way to a file, and which of its changes make events."""

    device: int
    is_there: bool
    has_watched_path: bool
    """Whether there is an event when its path leads to another folder."""
    has_watched_entries: bool
    """Whether there are events for its entries."""


TOP = Folder(-1, is_there=True, has_watched_path=True, has_watched_entries=True)

Rules = Mapping[bytes, bool]
"""Files by path; True: only their presence counts."""
States = dict[bytes, tuple[int, int]]
"""Files by path, with their times in nanoseconds and sizes; (-1, -1) if missing."""


def stat_files(files: Rules, only: Iterable[bytes]) -> States:
    """Return the present states of files."""
    states: States = {}
    for path in only:
        try:
            state = os.stat(path)
        except OSError:
            states[path] = -1, -1
        else:
            if files[path]:
                states[path] = (0, 0)
            else:
                states[path] = (state.st_mtime_ns, state.st_size)
    return states


class OutsideWatch:
    """Reports whether rules files outside may have changed; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._names: set[bytes] = set()
        """Names of watched files, and of the folders on the way to them."""
        self._numbers: set[int] = set()
        self._queue = self._mounts = -1
        self._poll = select.poll()

    def __del__(self) -> None:
        self._close()

    def version(self) -> int:
        """Return a number that changes whenever a watched file may have changed."""
        with self._lock:
            happened = False
            for number, _ in self._poll.poll(0) if self._queue >= 0 else ():
                happened |= number == self._mounts or self._drain()
            self._version += happened
            return self._version

    def watch(self, files: Rules) -> list[bytes]:
        """Watch files, and the folders on the way to them; return those whose changes may make no event."""
        with self._lock:
            if len(self._numbers) > MOST_WATCHES:
                self._close()
                self._version += 1
            if self._queue < 0 and not self._open():
                return list(files)
            folders: dict[bytes, Folder] = {}
            return [
                path
                for path, only in files.items()
                if not self._watch_file(path, folders, by_presence=only)
            ]

    def _open(self) -> bool:
        if sys.platform == "linux":
            self._queue = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            return False
        try:
            # Mounting over a folder makes no event in it.
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._close()
            return False
        self._poll.register(self._queue, select.POLLIN)
        self._poll.register(self._mounts, select.POLLPRI)
        return True

    def _close(self) -> None:
        for number in (self._queue, self._mounts):
            if number >= 0:
                os.close(number)
        self._queue = self._mounts = -1
        self._poll = select.poll()
        self._numbers.clear()
        self._names.clear()

    def _drain(self) -> bool:
        """Read the queue until it is empty; return whether an event was about a watched name."""
        happened = False
        while True:
            try:
                data = os.read(self._queue, READ_BYTES)
            except BlockingIOError:
                return happened
            at = 0
            happened |= len(data) > READ_BYTES // 2
            while at < len(data) and not happened:
                _, _, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                # Events without a name: a file's own, a folder that is gone, an
                # overflow of the queue.
                name = data[at - size : at].rstrip(b"\0")
                happened = not size or name in self._names

    def _watch_file(
        self, path: bytes, folders: dict[bytes, Folder], *, by_presence: bool
    ) -> bool:
        """Watch a file; return whether every change of what its path leads to makes an event."""
        above, _, name = path.rpartition(b"/")
        self._names.add(name)
        folder = self._watch_folder(above + b"/", folders)
        is_link = False
        is_plain = True
        try:
            if folder.is_there:
                # First: of a link that leads nowhere the watch says only that it is
                # missing.
                is_link = stat.S_ISLNK(os.lstat(path).st_mode)
                is_plain = not is_link
            if folder.is_there and not by_presence:
                self._add_watch(path, _OF_FILES)
        except OSError as error:
            is_plain = not is_link and error.errno in _MISSING
        is_watched = folder.has_watched_path and folder.has_watched_entries
        return is_watched and is_plain and os.path.normpath(path) == path

    def _watch_folder(self, path: bytes, folders: dict[bytes, Folder]) -> Folder:
        """Watch a folder, given with a trailing slash, and all folders above it."""
        # A loop, since a pointer may name a path of 2,000 folders.
        folder = TOP
        end = 0
        while end := path.find(b"/", end) + 1:
            here = path[:end]
            if here not in folders:
                folders[here] = self._watch_inside(here, folder)
            folder = folders[here]
        return folder

    def _watch_inside(self, path: bytes, outer: Folder) -> Folder:
        """Watch a folder, given with a trailing slash, in ``outer``, the state of the one it is in."""
        self._names.add(path[:-1].rpartition(b"/")[2])
        is_watched = outer.has_watched_path and outer.has_watched_entries
        if not outer.is_there:
            return outer
        try:
            state = os.lstat(path[:-1] or b"/")
            # The target of a link may move with a folder that is not on this path.
            silent = stat.S_ISLNK(state.st_mode) or (
                state.st_dev != outer.device and bool(find_silent_type(path))
            )
            self._add_watch(path, _OF_FOLDERS)
        except OSError as error:
            is_missing = error.errno in _MISSING
            return Folder(
                outer.device, not is_missing, is_watched, is_watched and is_missing
            )
        # Its own watch reports it if it is moved or replaced.
        return Folder(state.st_dev, True, outer.has_watched_path and not silent, True)

    def _add_watch(self, path: bytes, mask: int) -> None:
        number = _LIBC.inotify_add_watch(self._queue, path, mask)
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._numbers.add(number)


class OutsideRules:
    """A project's rules files outside its tree, and their states when last checked."""

    def __init__(self, find: Callable[[], Rules], watch: OutsideWatch) -> None:
        """``find`` returns their paths: more as repositories are found inside the project."""
        self._find = find
        self._watch = watch
        self._states: States = {}  # until the sweep that every project begins with
        self._version = -1
        self._unwatched: Collection[bytes] = ()

    def look(self) -> States:
        """Return the files' present states."""
        files = self._find()
        return stat_files(files, list(files))

    def look_again(self) -> bool:
        """Check the files that may have changed; return whether one has since it was last checked."""
        version = self._watch.version()
        files = self._find()
        if version != self._version or len(files) != len(self._states):
            states = self._watch_and_look(version)
        elif self._unwatched:
            states = self._states | stat_files(files, self._unwatched)
        else:
            return False
        has_changed = states != self._states
        self._states = states
        return has_changed

    def note(self, before: States) -> None:
        """Record that the rules have been read; ``before``: the states at that time of the files known by then."""
        states = self._watch_and_look(self._watch.version())
        # Nested repositories found meanwhile add files. If a file has changed, the next
        # question notices.
        if before.items() <= states.items():
            self._states = states
        else:
            self._states = before
            self._version = -1

    def _watch_and_look(self, version: int) -> States:
        """Watch all files, then check them: any later change makes another version."""
        files = dict(self._find())
        self._unwatched = self._watch.watch(files)
        self._version = version
        return stat_files(files, files)
