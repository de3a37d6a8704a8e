"""On which file systems a tree lies: which of them tell of no changes, and whether another was mounted in it.

No folder hears that something is mounted over it, or taken away. To whoever polls the table of mounts the kernel says
that it has changed, in 1 µs.
"""

import os
import select
from collections.abc import Mapping
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
