"""Changes that no event in a tree tells of: of mounts, and of rules that lie outside a project.

No folder hears that something is mounted over it, or taken away. To whoever polls the table of mounts the kernel says
that it has changed, in 1 µs. Some file systems tell of no changes at all (``SILENT``).

Rules outside of a project are above its root, in git's folders, in the user's settings. A project five folders below
the top has more than 30 such files, most of them missing, and looking at each took a question longer than its search.
One inotify queue serves all projects of a process. Nobody waits at it, so it wakes nobody: a question reads it until it
is empty, which is a barrier (as in ``ingest/watch.py``). Whatever it tells, files are looked at again; so are those
that it cannot tell of, by every question.
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
"""Types whose files can change on another machine, or in another system, without an event here."""

_MOUNTS = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    """What tells a mount from others, and its type if that is a silent one."""

    identity: tuple[bytes, ...]
    silent: str


def find_mounts(root: bytes, mounts: Path = _MOUNTS) -> dict[bytes, Mount]:
    """Return the mounts that a tree lies on: of its root, as ``b""``, and those below it, by their relative paths."""
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        return {}  # no Linux: watchdog knows its systems
    path = os.path.realpath(root).rstrip(b"/")
    outer, found = b"", dict[bytes, Mount]()
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        parts = fields.split(b" ")
        point = parts[4]
        for code in (b" ", b"\t", b"\n", b"\\"):  # mountinfo writes these as octal escapes
            point = point.replace(b"\\%03o" % code[0], code)
        name = rest.split(b" ")[0].decode("ascii", "replace")
        mount = Mount(tuple(parts[:4]), name if name.partition(".")[0] in SILENT else "")
        point = point.rstrip(b"/")
        # The innermost mount point holds the path; of two at one place the later one hides the other.
        if point.startswith(path + b"/"):
            found[point[len(path) + 1 :]] = mount
        elif (path == point or path.startswith(point + b"/")) and len(point) >= len(outer):
            outer, found[b""] = point, mount
    return found


def silent_type(root: bytes, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system ``root`` is on if it tells of no changes, else an empty string."""
    return _silent_at(b"", find_mounts(root, mounts))


def _silent_at(folder: bytes, mounts: Mapping[bytes, Mount]) -> str:
    mount = mounts.get(folder)
    return "" if mount is None else mount.silent


class Mounts:
    """The mounts of one tree, as they are followed."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._table = -1
        self._poll = select.poll()
        try:
            self._table = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no proc, or no descriptors: as before the first mount
            pass
        else:
            self._poll.register(self._table, select.POLLPRI)
        self._known = find_mounts(root)

    def has_changed(self) -> bool:
        """Return whether another file system lies in the tree since the last call, or one less."""
        if self._table < 0 or not self._poll.poll(0):
            return False
        # Mounts elsewhere, as each start of a container, are no reason to look at the tree.
        known, self._known = self._known, find_mounts(self._root)
        return known != self._known

    def silent_at(self, folder: bytes) -> str:
        """Return the type of the file system that is mounted at a folder, if it tells of no changes."""
        return _silent_at(folder, self._known)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._table >= 0:
            os.close(self._table)
            self._table = -1


_CREATE, _DELETE, _MOVED_FROM, _MOVED_TO, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x40, 0x80, 0x400, 0x800
_MODIFY, _ATTRIB, _ONLYDIR, _MASK_ADD = 0x2, 0x4, 0x1000000, 0x20000000
_OF_FOLDERS = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLYDIR | _MASK_ADD
_OF_FILES = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF | _MASK_ADD
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})
READ_BYTES = 1 << 14
"""Read from the queue at once. Where more waits, looking at the files costs less than reading what happened."""
MOST_WATCHES = 4_096
"""Then all begin again: projects come and go, and the kernel drops no watch of a folder that stays."""


class Folder(NamedTuple):
    """What is known of changes in a folder on the way to a file."""

    device: int
    is_there: bool
    is_told: bool
    """Whether it is told when its path leads to another folder."""
    tells: bool
    """Whether what happens to its entries is told."""


TOP = Folder(-1, is_there=True, is_told=True, tells=True)

Rules = Mapping[bytes, bool]
"""Files by path; True: only whether it is there counts."""
States = dict[bytes, tuple[int, int]]
"""Files by path, with their times in nanoseconds and sizes; -1, -1 if there is none."""


def look_at(files: Rules, only: Iterable[bytes]) -> States:
    """Return how files are now."""
    found: States = {}
    for path in only:
        try:
            state = os.stat(path)
        except OSError:
            found[path] = -1, -1
        else:
            found[path] = (0, 0) if files[path] else (state.st_mtime_ns, state.st_size)
    return found


class OutsideWatch:
    """Says whether anything may have happened to files outside; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._names: set[bytes] = set()
        """Of files that are watched, and of the folders on the way to them."""
        self._numbers: set[int] = set()
        self._queue = self._mounts = -1
        self._poll = select.poll()

    def __del__(self) -> None:
        self._close()

    def version(self) -> int:
        """Return a number that is another one whenever something may have happened to a file that is watched."""
        with self._lock:
            happened = False
            for number, _ in self._poll.poll(0) if self._queue >= 0 else ():
                happened |= number == self._mounts or self._drain()
            self._version += happened
            return self._version

    def watch(self, files: Rules) -> list[bytes]:
        """Watch files, and the folders on the way to them; return those that no event tells of."""
        with self._lock:
            if len(self._numbers) > MOST_WATCHES:
                self._close()
                self._version += 1
            if self._queue < 0 and not self._open():
                return list(files)
            folders: dict[bytes, Folder] = {}
            return [path for path, presence in files.items() if not self._tells_of(path, folders, by_presence=presence)]

    def _open(self) -> bool:
        if sys.platform == "linux":
            self._queue = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            return False
        try:
            # What is mounted over a folder makes no event in it.
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
        """Read the queue until it is empty; return whether it told of something that is watched."""
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
                # Without a name: a file's own event, a folder that is gone, a queue that has overflowed.
                happened = not size or data[at - size : at].rstrip(b"\0") in self._names

    def _tells_of(self, path: bytes, folders: dict[bytes, Folder], *, by_presence: bool) -> bool:
        """Watch a file; return whether every change of what its path leads to is told."""
        above, _, name = path.rpartition(b"/")
        self._names.add(name)
        folder = self._watch_folder(above + b"/", folders)
        try:
            if folder.is_there and not by_presence:
                self._add(path, _OF_FILES)
            is_plain = not folder.is_there or not stat.S_ISLNK(os.lstat(path).st_mode)
        except OSError as error:
            is_plain = error.errno in _MISSING
        return folder.is_told and folder.tells and is_plain and os.path.normpath(path) == path

    def _watch_folder(self, path: bytes, folders: dict[bytes, Folder]) -> Folder:
        """Watch a folder, given with a trailing slash, and those above it."""
        if path in folders:
            return folders[path]
        above, _, name = path[:-1].rpartition(b"/")
        self._names.add(name)
        outer = self._watch_folder(above + b"/", folders) if name else TOP
        is_told = outer.is_told and outer.tells
        try:
            if not outer.is_there:
                found = outer
            else:
                state = os.lstat(path[:-1] or b"/")
                # What a link leads to may be moved with a folder that is not on the way to it by this name.
                silent = stat.S_ISLNK(state.st_mode) or (state.st_dev != outer.device and bool(silent_type(path)))
                self._add(path, _OF_FOLDERS)
                # Its own watch tells if it is moved, or another takes its place.
                found = Folder(state.st_dev, True, outer.is_told and not silent, True)
        except OSError as error:
            found = Folder(outer.device, error.errno not in _MISSING, is_told, is_told and error.errno in _MISSING)
        folders[path] = found
        return found

    def _add(self, path: bytes, mask: int) -> None:
        number = _LIBC.inotify_add_watch(self._queue, path, mask)
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._numbers.add(number)


class OutsideRules:
    """A project's rules files outside its tree, as they were when they were last looked at."""

    def __init__(self, find: Callable[[], Rules], watch: OutsideWatch) -> None:
        """``find`` returns which there are: more as folders of the project are met that have a repository's own."""
        self._find = find
        self._watch = watch
        self._states: States = {}  # until a sweep, which every project begins with
        self._version = -1
        self._untold: Collection[bytes] = ()

    def look(self) -> States:
        """Return how they are now."""
        files = self._find()
        return look_at(files, list(files))

    def look_again(self) -> bool:
        """Look at those that may have changed; return whether any differs from when it was last looked at."""
        version, files = self._watch.version(), self._find()
        if version != self._version or len(files) != len(self._states):
            found = self._watch_and_look(version)
        elif self._untold:
            found = self._states | look_at(files, self._untold)
        else:
            return False
        has_changed = found != self._states
        self._states = found
        return has_changed

    def note(self, before: States) -> None:
        """Take note that the rules have been read; ``before``: how their files were then, as far as they were known."""
        found = self._watch_and_look(self._watch.version())
        # A nested repository that was met meanwhile adds files of its own. One that has changed is found by a question.
        if before.items() <= found.items():
            self._states = found
        else:
            self._states, self._version = before, -1

    def _watch_and_look(self, version: int) -> States:
        """Watch all of them, then look at them: what happens after that makes another version."""
        files = dict(self._find())
        self._untold = self._watch.watch(files)
        self._version = version
        return look_at(files, files)
