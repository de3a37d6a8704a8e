"""A file's content replaced at once: a new file beside it takes its name, whole and durable, or nothing happens.

The new file gets the old one's mode, extended attributes and, where we may, its owner. The old file's bytes are never
touched.
"""

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

from flashgrep.edit.faults import named, not_a_file, shown, telling
from flashgrep.edit.hashing import digest
from flashgrep.edit.precondition import Mismatch, conflict
from flashgrep.edit.read import read_all
from flashgrep.edit.root import Place
from flashgrep.errors import FlashgrepError, TooLarge

TEMPORARY = b".flashgrep-tmp-"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Time stamps move in ticks of up to 10 ms: a file changed within the tick it was read in looks unchanged.
_TICK_NS = 100_000_000
_MOST_COMPARED = 256 << 20  # bytes; no file that large is edited, so a larger one differs


Content = bytes | Callable[[int], None]
"""What a file is to hold: its bytes, or what writes them to a descriptor."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was found, or its absence (``status`` None); ``data`` None: it was not read."""

    data: bytes | None = b""
    status: os.stat_result | None = None

    @property
    def hash(self) -> str | None:
        """The hash of the content, None where there was no file or it was not read."""
        return None if self.status is None or self.data is None else digest(self.data)


def read_original(place: Place, most: int) -> Original:
    """Read the file a place names, to replace it; a missing file is an Original without status."""
    status = place.lstat()
    if status is None:
        return Original()
    if stat.S_ISDIR(status.st_mode) or not stat.S_ISREG(status.st_mode):
        raise not_a_file(place.path)
    if status.st_size > most:
        raise too_large_to_edit(place.path, status.st_size, most)
    try:
        descriptor = os.open(place.name, _READ, dir_fd=place.folder)
    except OSError as error:
        raise named(error, place.path) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file(place.path)
        return Original(read_all(descriptor, status.st_size), status)
    finally:
        os.close(descriptor)


def too_large_to_edit(path: bytes, size: int, most: int) -> TooLarge:
    """Return the error for a file that will not be held in memory."""
    message = f"file too large to edit: {shown(path)}: {size} bytes, limit {most}"
    guidance = "edit it with a tool that streams, such as sed"
    return TooLarge(message, file_path=shown(path), observed_bytes=size, limit_bytes=most, guidance=guidance)


def temporary_name() -> bytes:
    """Return a name for a file on its way; hidden, so that no search shows it."""
    return TEMPORARY + secrets.token_hex(8).encode("ascii")


def check_writable(place: Place, original: Original) -> None:
    """Refuse a file its owner made read-only, which a rename would replace all the same."""
    if original.status is None or os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=_BY_EFFECTIVE):
        return
    if os.fstatvfs(place.folder).f_flag & os.ST_RDONLY:
        raise named(OSError(errno.EROFS, ""), place.path)
    raise named(PermissionError(errno.EACCES, ""), place.path)


def write_beside(place: Place, name: bytes, data: Content, original: Original) -> None:
    """Write the new content to a temporary file in the same folder, durable and dressed as the original."""
    with telling(place.path):
        descriptor = os.open(name, _CREATE, 0o600, dir_fd=place.folder)
        try:
            if original.status is None:  # as its folder says; the process's umask is a daemon's
                os.fchmod(descriptor, 0o600 | (os.fstat(place.folder).st_mode & 0o664))
            if isinstance(data, bytes):
                write_all(descriptor, data)
            else:
                data(descriptor)
            if original.status is not None:
                _dress(descriptor, place, original.status)
            os.fsync(descriptor)
        except BaseException:
            discard(place.folder, name)
            raise
        finally:
            os.close(descriptor)


def check_unchanged(place: Place, original: Original, *, linked: bool = False) -> None:
    """Raise Conflict when the file is not as it was read; ``linked``: our own backup link moved its change time."""
    now = place.lstat()
    before = original.status
    if now is None or before is None:
        same = now is before
    else:
        same = _version(now, linked=linked) == _version(before, linked=linked)
        if same and original.data is not None and time.time_ns() - now.st_mtime_ns < _TICK_NS:
            same = _data_now(place) == original.data
    if not same:
        raise changed(place, original)


def changed(place: Place, original: Original) -> FlashgrepError:
    """Return the conflict of a file that changed under us, with what is there now."""
    data = _data_now(place)
    wrong: Mismatch = {
        "field": "file_hash_when_read",
        "expected": original.hash,
        "actual": None if data is None else digest(data),
    }
    return conflict(place.path, [wrong])


def take_name(place: Place, name: bytes, original: Original) -> None:
    """Give the temporary file its real name; where no file was, none is overwritten."""
    with telling(place.path):
        if original.status is not None:
            os.rename(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            return
        try:
            os.link(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
        except FileExistsError:
            raise changed(place, original) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            check_unchanged(place, original)
            os.rename(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            return
        os.unlink(name, dir_fd=place.folder)


def replace(place: Place, name: bytes, data: Content, original: Original, step: Callable[[str], None]) -> None:
    """Replace (or make) one file by way of a temporary name; whoever changed it since it was read wins: Conflict."""
    check_writable(place, original)
    step("write")
    write_beside(place, name, data, original)
    try:
        step("check")
        check_unchanged(place, original)
        step("rename")
        take_name(place, name, original)
    except BaseException:
        discard(place.folder, name)
        raise
    step("sync")
    place.sync()


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, in as many steps as the system takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def discard(folder: int, name: bytes) -> None:
    """Remove a temporary file or folder, if it is there."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # Linux and macOS, for a folder
        with contextlib.suppress(NotADirectoryError):
            shutil.rmtree(name, dir_fd=folder)


def _dress(descriptor: int, place: Place, status: os.stat_result) -> None:
    """Give the new file the old one's owner, attributes and mode (last: chown clears the set-id bits)."""
    mode = stat.S_IMODE(status.st_mode)
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            mode &= ~(stat.S_ISUID | stat.S_ISGID)  # a set-id file of another owner would be another program
    _copy_attributes(descriptor, place)
    os.fchmod(descriptor, mode)


def _copy_attributes(descriptor: int, place: Place) -> None:
    if not hasattr(os, "listxattr"):  # macOS: the standard library has no call
        return
    with contextlib.suppress(OSError):  # not every file system has attributes, not every attribute may be set
        source = os.open(place.name, _READ, dir_fd=place.folder)
        try:
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(source, name))
        finally:
            os.close(source)


def _version(status: os.stat_result, *, linked: bool) -> tuple[int, ...]:
    changed_at = 0 if linked else status.st_ctime_ns
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, changed_at)


def _data_now(place: Place) -> bytes | None:
    try:
        return read_original(place, _MOST_COMPARED).data if place.lstat() else None
    except FlashgrepError:
        return None


_BY_EFFECTIVE = os.access in os.supports_effective_ids
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
