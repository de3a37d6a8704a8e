"""Which file systems tell of changes made elsewhere, and which do not."""

import os
from pathlib import Path

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


def silent_type(root: bytes, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system ``root`` is on if it tells of no changes, else an empty string."""
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        return ""  # no Linux: watchdog knows its systems
    best, found = b"", ""
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        point = _unescaped(fields.split(b" ")[4])
        if _holds(point, os.path.realpath(root)) and len(point) >= len(best):
            best, found = point, rest.split(b" ")[0].decode("ascii", "replace")
    return found if found.partition(".")[0] in SILENT else ""


def _holds(point: bytes, path: bytes) -> bool:
    return path == point or path.startswith(point.rstrip(b"/") + b"/")


def _unescaped(field: bytes) -> bytes:
    """Read the octal escapes of mountinfo."""
    for code in (b" ", b"\t", b"\n", b"\\"):
        field = field.replace(b"\\%03o" % code[0], code)
    return field
