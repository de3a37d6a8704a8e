"""Learning of changes to a tree: inotify on Linux, watchdog elsewhere; whoever asks gets all that was saved before.

The kernel queues an inotify event inside the system call that makes the change. So reading the queue until it is empty
is a barrier: whatever another process finished writing before is known (measured: 15 µs, where a marker file and its
own event through a watching thread cost 400 µs). watchdog has no such call; there the barrier is a marker file whose
own event is awaited, as watchman does it (its docs call the marker a cookie).
"""

import contextlib
import ctypes
import errno
import os
import struct
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from flashgrep.ingest.openat import Descriptor
from flashgrep.ingest.outside import Mounts, silent_type
from flashgrep.paths import PROJECT_FOLDER, make_project_folder

ChangeKind = Literal["file", "folder", "folder_gone", "overflow", "root_gone"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

MOST_LINKED = 8192
"""Files with other names (hard links) that are watched each, and at most a quarter of what one may watch."""

MOST_NAMES = 64
"""Names of one file that are kept; events of those below the root tell the others."""

_WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")

READ_BYTES = 1 << 18
"""Read from the queue at once: about 8,000 events."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened at a path relative to the root; ``overflow``: anything may have happened anywhere."""

    kind: ChangeKind
    path: bytes = b""


class Watcher(Protocol):
    """What a workspace needs of any way to watch."""

    failed: str
    """Why not all changes are seen (a limit, a file system without events), or empty."""

    @property
    def link_problem(self) -> str:
        """Why writes by other names of some files are not seen, or empty."""

    def add_file(self, path: bytes) -> None:
        """Watch one file that has other names (hard links), by which it may be written where nothing is watched."""

    def add(self, folder: bytes) -> None:
        """Watch one folder, given relative to the root; called before the folder is read."""

    def drain(self) -> list[Change]:
        """Return what happened since the last call, oldest first, without waiting."""

    def settle(self, timeout: float) -> bool:
        """Wait until all that happened before this call will be in ``drain``; False: not within ``timeout`` seconds."""

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when ``drain`` has something, or None."""

    def close(self) -> None:
        """Stop watching."""


def watch(root: bytes, *, native: bool = sys.platform == "linux") -> Watcher:
    """Return a watcher of the tree below ``root``; one that cannot see every change has ``failed`` set."""
    watcher = Inotify(root) if native else Marked(root)
    silent = silent_type(root)
    if silent:
        watcher.failed = _say_silent(silent)
    return watcher


def _say_silent(name: str) -> str:
    return f"changes made elsewhere are not told on {name}"


class Inotify:
    """Linux: one watch a folder, no thread."""

    _MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
    _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
    _DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
    _ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK, _ISDIR = 0x1000000, 0x2000000, 0x4000000, 0x40000000
    # Opens and reads are left out: otherwise searching would wake the watcher.
    _MASK = (
        _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
    ) | (_ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK)
    _LINKED_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _DONT_FOLLOW
    _EVENT = struct.Struct("iIII")

    def __init__(self, root: bytes) -> None:
        self.failed = self.link_problem = ""
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}
        self._linked: dict[int, dict[bytes, None]] = {}
        """The names of files that are watched each; some may be gone, which costs a look."""
        self._most_linked = -1
        self._mounts = Mounts(root)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            self.failed = f"no inotify: {os.strerror(ctypes.get_errno())}"

    def fileno(self) -> int | None:
        """Return the queue's descriptor."""
        return self._fd if self._fd >= 0 else None

    def close(self) -> None:
        """Close the queue; the kernel drops its watches."""
        self._mounts.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def add(self, folder: bytes) -> None:
        """Watch one folder; a limit reached is kept in ``failed``, and so is a file system that tells of nothing."""
        if self._fd < 0:
            return
        if silent := self._mounts.silent_at(folder):
            self.failed = _say_silent(silent)
        path = self._root + b"/" + folder if folder else self._root
        number = self._libc.inotify_add_watch(self._fd, path, self._MASK)
        if number >= 0:
            self._folders[number] = folder
            self._numbers[folder] = number
            return
        problem = ctypes.get_errno()
        if problem not in {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG}:
            hint = " (raise fs.inotify.max_user_watches)" if problem == errno.ENOSPC else ""
            self.failed = f"cannot watch: {os.strerror(problem)}{hint}"

    def add_file(self, path: bytes) -> None:
        """Watch a file by its inode, which tells of writes by any name; a limit reached is kept in ``link_problem``."""
        if self._fd < 0:
            return
        if self._most_linked < 0:
            self._most_linked = MOST_LINKED
            with contextlib.suppress(OSError, ValueError):
                self._most_linked = min(MOST_LINKED, int(_WATCH_LIMIT.read_text()) // 4)
        if len(self._linked) < self._most_linked:
            number = self._libc.inotify_add_watch(self._fd, self._root + b"/" + path, self._LINKED_MASK)
            if number >= 0:
                names = self._linked.setdefault(number, {})
                names.pop(path, None)
                names[path] = None
                if len(names) > MOST_NAMES:
                    del names[next(iter(names))]
                return
            if ctypes.get_errno() != errno.ENOSPC:  # it is gone, or may not be read
                return
        self.link_problem = f"of files with other names (hard links) {len(self._linked)} are watched, not all"

    def settle(self, timeout: float) -> bool:  # noqa: ARG002 - there is nothing to wait for
        """Return at once: the kernel has queued every event already."""
        return True

    def drain(self) -> list[Change]:
        """Read the queue until it is empty."""
        found = [Change("overflow")] if self._mounts.has_changed() else []
        while self._fd >= 0:
            try:
                data = os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                number, mask, _, size = self._EVENT.unpack_from(data, at)
                at += self._EVENT.size
                if number in self._linked:
                    found += [Change("file", path) for path in self._linked[number]]
                    if mask & self._IGNORED:  # this watch has ended
                        del self._linked[number]
                else:
                    self._take_event(number, mask, data[at : at + size].rstrip(b"\0"), found)
                at += size
        return found

    def _take_event(self, number: int, mask: int, name: bytes, found: list[Change]) -> None:
        if mask & self._OVERFLOW:
            found.append(Change("overflow"))
            return
        folder = self._folders.get(number)
        if folder is None:
            return
        path = folder + b"/" + name if folder else name
        if mask & self._IGNORED:  # this watch has ended
            del self._folders[number]
            if self._numbers.get(folder) == number:
                del self._numbers[folder]
        elif mask & (self._DELETE_SELF | self._MOVE_SELF | self._UNMOUNT):
            if not folder:
                found.append(Change("root_gone"))
        elif not mask & self._ISDIR:
            found.append(Change("file", path))
        elif mask & (self._DELETE | self._MOVED_FROM):
            self._end_watches(path, moved=bool(mask & self._MOVED_FROM))
            found.append(Change("folder_gone", path))
        elif mask & (self._CREATE | self._MOVED_TO | self._ATTRIB):
            found.append(Change("folder", path))

    def _end_watches(self, folder: bytes, *, moved: bool) -> None:
        """End the watch of a folder that left, and, if it moved away, all below it: they would tell of the old names.

        A folder that was deleted was empty: whatever had been below it left before.
        """
        ended = [folder] if folder in self._numbers else []
        if moved:
            ended += [below for below in self._numbers if below.startswith(folder + b"/")]
        for path in ended:
            number = self._numbers.pop(path)
            self._folders.pop(number, None)
            self._libc.inotify_rm_watch(self._fd, number)


class Marked(FileSystemEventHandler):
    """Elsewhere: watchdog's thread, and marker files for a barrier."""

    def __init__(self, root: bytes) -> None:
        self.failed = self.link_problem = ""
        self._root = root
        self._found: list[Change] = []
        self._lock = threading.Lock()
        self._markers: dict[bytes, threading.Event] = {}
        self._count = 0
        self._observer = Observer()
        try:
            self._observer.schedule(self, os.fsdecode(root), recursive=True)
            self._observer.start()
        except OSError as problem:
            self.failed = f"cannot watch: {problem}"

    def fileno(self) -> int | None:
        """Return None: there is no descriptor to wait on."""
        return None

    def add(self, folder: bytes) -> None:
        """Do nothing: the whole tree is watched."""

    def add_file(self, path: bytes) -> None:
        """Tell that this is not seen: watchdog watches folders."""
        name = os.fsdecode(path).encode("utf-8", "replace").decode()
        self.link_problem = f"writes by other names (hard links) than those searched are not seen, as of {name}"

    def close(self) -> None:
        """Stop the watching thread."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def drain(self) -> list[Change]:
        """Take what the thread has collected."""
        with self._lock:
            found, self._found = self._found, []
        return found

    def settle(self, timeout: float) -> bool:
        """Drop a marker file into the project's own folder and wait for its own event; never through a link."""
        if self.failed:
            return False
        with self._lock:
            self._count += 1
            name = b"cookie-%d-%d" % (os.getpid(), self._count)
            path = os.fsencode(PROJECT_FOLDER) + b"/" + name
            event = self._markers[path] = threading.Event()
        try:
            with Descriptor(os.open(make_project_folder(os.fsdecode(self._root)), _FOLDER)) as folder:
                os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
                try:
                    return event.wait(timeout)
                finally:
                    os.unlink(name, dir_fd=folder)
        except OSError:
            return False
        finally:
            del self._markers[path]

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Collect one event of the watching thread."""
        if event.event_type in {"opened", "closed_no_write"}:
            return
        for place in (event.src_path, event.dest_path):
            if not place:
                continue
            path = os.path.relpath(os.fsencode(place), self._root)
            if path.startswith(b".flashgrep/"):
                marker = self._markers.get(path)
                if marker is not None:
                    marker.set()
                continue
            kind: ChangeKind = "file"
            if event.is_directory:
                left = place == event.src_path and event.event_type in {"moved", "deleted"}
                if not left and event.event_type == "modified":
                    continue
                kind = "folder_gone" if left else "folder"
            with self._lock:
                self._found.append(Change(kind, path))
