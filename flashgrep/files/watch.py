"""Noticing changes to a tree, by inotify on Linux and watchdog elsewhere: a reader gets everything saved before.

The kernel queues an inotify event during the system call that makes the change. So reading the queue until it is empty
is a barrier: everything that another process finished writing before is known (15 µs; a marker file and its event
through a watching thread take 400 µs). watchdog has no such barrier. There we write a marker file and wait for its
event, as watchman does (its docs call the marker a cookie).
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

from flashgrep.base.own_folders import make_project_folder
from flashgrep.base.paths import PROJECT_FOLDER
from flashgrep.files.openat import Descriptor
from flashgrep.files.outside import Mounts, find_silent_type

ChangeKind = Literal["file", "folder", "folder_gone", "overflow", "root_gone"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

MOST_LINKED = 8192
"""Files with several hard links that are watched one by one; never more than a quarter of the system's limit."""

MOST_NAMES = 64
"""Names kept of one such file; names below the root also have the events of their folders."""

_WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")

READ_BYTES = 1 << 18
"""Bytes read from the queue at once: about 8,000 events."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened at a path relative to the root; ``overflow``: anything may have happened anywhere."""

    kind: ChangeKind
    path: bytes = b""


class Watcher(Protocol):
    """What a workspace needs of any watcher."""

    failed: str
    """Why some changes are missed (a limit, a file system without events), or empty."""

    @property
    def link_problem(self) -> str:
        """Why writes through other hard links of some files are missed, or empty."""

    def add_file(self, path: bytes) -> None:
        """Watch one file with several hard links, since it may be written through a name in an unwatched folder."""

    def add(self, folder: bytes) -> None:
        """Watch one folder, relative to the root; to be called before the folder is read."""

    def drain(self) -> list[Change]:
        """Return what happened since the last call, oldest first, without waiting."""

    def settle(self, timeout: float) -> bool:
        """Wait until ``drain`` can return all that happened before this call; False after ``timeout`` seconds."""

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when ``drain`` has something, or None."""

    def close(self) -> None:
        """Stop watching."""


def watch(root: bytes, *, native: bool = sys.platform == "linux") -> Watcher:
    """Return a watcher of the tree below ``root``; its ``failed`` is set if it cannot see every change."""
    if native:
        watcher: Watcher = Inotify(root)
    else:
        watcher = MarkerWatcher(root)
    silent = find_silent_type(root)
    if silent:
        watcher.failed = _describe_silent(silent)
    return watcher


def _describe_silent(name: str) -> str:
    return f"{name} does not report changes made on other machines or systems"


class Inotify:
    """Linux: one watch per folder, no thread."""

    _MODIFY = 0x2
    _ATTRIB = 0x4
    _CLOSE_WRITE = 0x8
    _MOVED_FROM = 0x40
    _MOVED_TO = 0x80
    _CREATE = 0x100
    _DELETE = 0x200
    _DELETE_SELF = 0x400
    _MOVE_SELF = 0x800
    _UNMOUNT = 0x2000
    _OVERFLOW = 0x4000
    _IGNORED = 0x8000
    _ONLYDIR = 0x1000000
    _DONT_FOLLOW = 0x2000000
    _EXCL_UNLINK = 0x4000000
    _ISDIR = 0x40000000
    # Opens and reads are left out, or our own searches would wake the watcher.
    _MASK = (
        _MODIFY
        | _ATTRIB
        | _CLOSE_WRITE
        | _MOVED_FROM
        | _MOVED_TO
        | _CREATE
        | _DELETE
        | _DELETE_SELF
        | _MOVE_SELF
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
        """Names of the files watched one by one; some may be gone, which costs a stat."""
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
        """Watch one folder; a limit, or a file system without events, is recorded in ``failed``."""
        if self._fd < 0:
            return
        if silent := self._mounts.silent_at(folder):
            self.failed = _describe_silent(silent)
        if folder:
            path = self._root + b"/" + folder
        else:
            path = self._root
        number = self._libc.inotify_add_watch(self._fd, path, self._MASK)
        if number >= 0:
            self._folders[number] = folder
            self._numbers[folder] = number
            return
        problem = ctypes.get_errno()
        if problem not in {
            errno.ENOENT,
            errno.ENOTDIR,
            errno.EACCES,
            errno.ELOOP,
            errno.ENAMETOOLONG,
        }:
            hint = (
                " (raise fs.inotify.max_user_watches)"
                if problem == errno.ENOSPC
                else ""
            )
            self.failed = f"cannot watch: {os.strerror(problem)}{hint}"

    def add_file(self, path: bytes) -> None:
        """Watch a file's inode, which reports writes through any name; a limit is recorded in ``link_problem``."""
        if self._fd < 0:
            return
        if self._most_linked < 0:
            self._most_linked = MOST_LINKED
            with contextlib.suppress(OSError, ValueError):
                self._most_linked = min(MOST_LINKED, int(_WATCH_LIMIT.read_text()) // 4)
        if len(self._linked) < self._most_linked:
            number = self._libc.inotify_add_watch(
                self._fd, self._root + b"/" + path, self._LINKED_MASK
            )
            if number >= 0:
                names = self._linked.setdefault(number, {})
                names.pop(path, None)
                names[path] = None
                if len(names) > MOST_NAMES:
                    del names[next(iter(names))]
                return
            if (
                ctypes.get_errno() != errno.ENOSPC
            ):  # the file is gone, or may not be read
                return
        watched = len(self._linked)
        self.link_problem = f"too many files have several hard links: writes through other names are seen for {watched}"

    def settle(self, timeout: float) -> bool:  # noqa: ARG002 - there is nothing to wait for
        """Return at once: the kernel has queued every event already."""
        return True

    def drain(self) -> list[Change]:
        """Read the queue until it is empty."""
        if self._mounts.has_changed():
            changes = [Change("overflow")]
        else:
            changes = []
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
                    changes += [Change("file", path) for path in self._linked[number]]
                    if mask & self._IGNORED:  # this watch has ended
                        del self._linked[number]
                else:
                    self._take_event(
                        number, mask, data[at : at + size].rstrip(b"\0"), changes
                    )
                at += size
        return changes

    def _take_event(
        self, number: int, mask: int, name: bytes, found: list[Change]
    ) -> None:
        if mask & self._OVERFLOW:
            found.append(Change("overflow"))
            return
        folder = self._folders.get(number)
        if folder is None:
            return
        if folder:
            path = folder + b"/" + name
        else:
            path = name
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
        """Remove the watch of a folder that is gone; if it moved, also those below it, which would report old names.

        A deleted folder was empty, so there is nothing below it to remove.
        """
        if folder in self._numbers:
            watched = [folder]
        else:
            watched = []
        if moved:
            watched += [
                below for below in self._numbers if below.startswith(folder + b"/")
            ]
        for path in watched:
            number = self._numbers.pop(path)
            self._folders.pop(number, None)
            self._libc.inotify_rm_watch(self._fd, number)


class MarkerWatcher(FileSystemEventHandler):
    """Other systems: watchdog's thread, with marker files as a barrier."""

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
        """Record the problem: watchdog only watches folders."""
        name = os.fsdecode(path).encode("utf-8", "replace").decode()
        self.link_problem = f"writes through other hard links of a file are not seen, for example of {name}"

    def close(self) -> None:
        """Stop the watching thread."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def drain(self) -> list[Change]:
        """Return and clear what the thread has collected."""
        with self._lock:
            changes = self._found
            self._found = []
        return changes

    def settle(self, timeout: float) -> bool:
        """Write a marker file to the project's own folder, following no link, and wait for its event."""
        if self.failed:
            return False
        with self._lock:
            self._count += 1
            name = b"cookie-%d-%d" % (os.getpid(), self._count)
            path = os.fsencode(PROJECT_FOLDER) + b"/" + name
            event = self._markers[path] = threading.Event()
        try:
            with Descriptor(
                os.open(make_project_folder(os.fsdecode(self._root)), _FOLDER)
            ) as folder:
                os.close(
                    os.open(
                        name,
                        os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC,
                        0o600,
                        dir_fd=folder,
                    )
                )
                try:
                    return event.wait(timeout)
                finally:
                    os.unlink(name, dir_fd=folder)
        except OSError:
            return False
        finally:
            del self._markers[path]

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Collect one event, on the watching thread."""
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
                has_left = place == event.src_path and event.event_type in {
                    "moved",
                    "deleted",
                }
                if not has_left and event.event_type == "modified":
                    continue
                kind = "folder_gone" if has_left else "folder"
            with self._lock:
                self._found.append(Change(kind, path))
