"""Replaces the contents of files atomically: a new, durable file next to each one takes its name.

The new file gets the old one's mode, extended attributes and, where we may, its owner. The old file's bytes are never
touched.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from flashgrep.base.errors import FlashgrepError, TooLarge
from flashgrep.files.editor import Editor
from flashgrep.files.openat import FILE, Descriptor
from flashgrep.files.root import Place
from flashgrep.files.system import (
    CREATE,
    digest,
    discard,
    format_path,
    not_a_file,
    read_all,
    temporary_name,
    translate_error,
    translate_errors,
    write_all,
)
from flashgrep.parts.edit.edits import precondition_failed
from flashgrep.parts.edit.journal import Entry, Journal, undo, version

# Time stamps move in ticks of up to 10 ms: a file changed within the tick it was read
# in looks unchanged.
_TICK_NS = 100_000_000
_MOST_COMPARED = (
    256 << 20
)  # bytes; no file that large is edited, so a larger one differs
_BY_EFFECTIVE = os.access in os.supports_effective_ids
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}


Content = bytes | Callable[[int], None]
"""New content of a file: its bytes, or a function that writes them to a descriptor."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was found, or its absence (``status`` None); ``data`` None: it was not read."""

    data: bytes | None = b""
    status: os.stat_result | None = None

    @property
    def hash(self) -> str | None:
        """The hash of the content, None if there was no file or it was not read."""
        if self.status is None or self.data is None:
            return None
        return digest(self.data)


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it was read and its new content; the place stays open, and locked, until all is done."""

    place: Place
    original: Original
    content: Content


class NotCommitted(Exception):
    """Nothing was changed, because of ``cause`` at change ``at``; ``begun``: some files were changed and restored."""

    def __init__(self, at: int, cause: FlashgrepError, *, begun: bool) -> None:
        super().__init__(str(cause))
        self.at = at
        self.cause = cause
        self.begun = begun


def read_original(place: Place, most: int) -> Original:
    """Read the file at a place, to replace it; a missing file is an Original without status."""
    status = place.lstat()
    if status is None:
        return Original()
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(place.path)
    if status.st_size > most:
        text = format_path(place.path)
        raise TooLarge(
            f"file too large to edit: {text}: {status.st_size} bytes, limit {most}",
            file_path=text,
            observed_bytes=status.st_size,
            limit_bytes=most,
            guidance="edit it with a streaming tool such as sed",
        )
    with translate_errors(place.path):
        descriptor = os.open(place.name, FILE, dir_fd=place.folder)
    with Descriptor(descriptor):
        # Of the open file, since the name may have been given to another one since
        # lstat.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file(place.path)
        return Original(read_all(descriptor, status.st_size), status)


def commit_one(editor: Editor, change: Change) -> None:
    """Replace or create one file; if it was changed since it was read, that change wins: Conflict.

    A process killed in between leaves the old or the new content, and nothing else after recovery.
    """
    place = change.place
    original = change.original
    temporary = temporary_name()
    with Journal(editor.root, [Entry(place.path, temporary)]):
        # Before writing anything: a refusal must leave no trace.
        _check_writable(place, original)
        editor.step("write")
        _write_beside(place, temporary, change.content, original)
        try:
            # As late as possible: only rename(2) lies between this and the new name.
            # POSIX has no rename that compares, so a writer from outside who hits these
            # microseconds loses his change; our own calls hold the file's lock.
            editor.step("check")
            _check_same(place, original)
            editor.step("rename")
            _take_name(place, temporary, original)
        except BaseException:
            discard(place.folder, temporary)
            raise
        editor.step("sync")
        place.sync()


def commit_all(editor: Editor, changes: Sequence[Change]) -> None:
    """Replace all files or none.

    Raises:
        NotCommitted: with what was in the way; every file is as it was.

    """
    entries = []
    for change in changes:
        status = change.original.status
        # A new file needs no backup: undo removes it.
        if status is None:
            backup = None
        else:
            backup = temporary_name()
        entries.append(
            Entry(change.place.path, temporary_name(), backup, version(status))
        )
    with Journal(editor.root, entries) as journal:
        try:
            entries = _prepare(editor, changes, entries)
            _sync_folders(changes)  # what is decided must find the files it speaks of
            editor.step("decide")
            journal.commit(entries)
        except BaseException:
            _discard_all(changes, entries)
            raise
        # From here on, recovery completes a killed process's write instead of undoing
        # it.
        _rename_all(editor, changes, entries, journal)
        editor.step("sync")
        _sync_folders(changes)
        editor.step("clean")
        _discard_all(changes, entries)
        editor.step("forget")


def _prepare(
    editor: Editor, changes: Sequence[Change], entries: Sequence[Entry]
) -> list[Entry]:
    """Write every new content and keep every old one under a second name; return the entries with what was written."""
    ready = []
    for at, (change, entry) in enumerate(zip(changes, entries, strict=True)):
        place = change.place
        original = change.original
        try:
            _check_writable(place, original)
            editor.step("write")
            _write_beside(place, entry.temporary, change.content, original)
            editor.step("backup")
            if entry.backup is not None:
                with translate_errors(place.path):
                    try:
                        folder = place.folder
                        os.link(
                            place.name,
                            entry.backup,
                            src_dir_fd=folder,
                            dst_dir_fd=folder,
                            follow_symlinks=False,
                        )
                    except OSError:  # no links here, or the file is another user's: a copy serves as well
                        _write_beside(
                            place, entry.backup, original.data or b"", original
                        )
                    else:
                        # The link names what was there when it was made, which need not
                        # be what was read.
                        if version(place.lstat(entry.backup)) != version(
                            original.status
                        ):
                            raise _conflict(place, original)
            # Recovery tells by it whether a name holds our content; rename(2) changes
            # none of its parts.
            ready.append(replace(entry, after=version(place.lstat(entry.temporary))))
        except FlashgrepError as error:
            raise NotCommitted(at, error, begun=False) from error
    return ready


def _rename_all(
    editor: Editor,
    changes: Sequence[Change],
    entries: Sequence[Entry],
    journal: Journal,
) -> None:
    for at, (change, entry) in enumerate(zip(changes, entries, strict=True)):
        try:
            editor.step("check")
            _check_same(change.place, change.original, is_linked=True)
            editor.step("rename")
            _take_name(change.place, entry.temporary, change.original)
        except FlashgrepError as error:
            try:
                journal.abort()
                editor.step("undo")
                undo(editor.root, entries)
            except (OSError, FlashgrepError):
                journal.keep()
                raise
            # Undone in full. ``begun`` tells the caller whether others may have seen
            # new contents for a moment.
            raise NotCommitted(at, error, begun=at > 0) from error


def _sync_folders(changes: Sequence[Change]) -> None:
    """Flush all folders, each once."""
    for place in {change.place.key()[:2]: change.place for change in changes}.values():
        with translate_errors(place.path):
            place.sync()


def _discard_all(changes: Sequence[Change], entries: Sequence[Entry]) -> None:
    for change, entry in zip(changes, entries, strict=True):
        discard(change.place.folder, entry.temporary)
        discard(change.place.folder, entry.backup)


def _check_writable(place: Place, original: Original) -> None:
    """Refuse a read-only file, which a rename would replace anyway."""
    if original.status is None or os.access(
        place.name, os.W_OK, dir_fd=place.folder, effective_ids=_BY_EFFECTIVE
    ):
        return
    # access(2) does not distinguish these two; the caller should know which.
    is_read_only = os.fstatvfs(place.folder).f_flag & os.ST_RDONLY
    raise translate_error(
        OSError(errno.EROFS if is_read_only else errno.EACCES, ""), place.path
    )


def _write_beside(
    place: Place, name: bytes, content: Content, original: Original
) -> None:
    """Write the content to a temporary file in the same folder, durable and with the original's attributes."""
    with translate_errors(place.path):
        descriptor = os.open(name, CREATE, 0o600, dir_fd=place.folder)
        try:
            if (
                original.status is None
            ):  # as its folder says; the process's umask is a daemon's
                # Never executable; writing by others is left out, whatever the folder
                # allows.
                os.fchmod(descriptor, 0o600 | (os.fstat(place.folder).st_mode & 0o664))
            if isinstance(content, bytes):
                write_all(descriptor, content)
            else:
                content(descriptor)
            if original.status is not None:
                _copy_status(descriptor, place, original.status)
            os.fsync(descriptor)
        except BaseException:
            discard(place.folder, name)
            raise
        finally:
            os.close(descriptor)


def _copy_status(descriptor: int, place: Place, status: os.stat_result) -> None:
    """Copy the old file's owner, attributes and mode to the new one (last: chown clears the set-id bits)."""
    mode = stat.S_IMODE(status.st_mode)
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            mode &= ~(
                stat.S_ISUID | stat.S_ISGID
            )  # a set-id file of another owner would be another program
    if hasattr(os, "listxattr"):  # macOS: the standard library has no call
        # Not every file system has attributes, and not every attribute may be set.
        with (
            contextlib.suppress(OSError),
            Descriptor(os.open(place.name, FILE, dir_fd=place.folder)) as source,
        ):
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(source, name))
    os.fchmod(descriptor, mode)


def _check_same(place: Place, original: Original, *, is_linked: bool = False) -> None:
    """Raise Conflict if the file is not as it was read; ``is_linked``: our own backup link moved its change time."""
    now = place.lstat()
    before = original.status
    if now is None or before is None:
        same = now is before
    else:
        same = os.path.samestat(now, before)
        same = same and version(now) == version(before)
        # A change time that moved without the rest means other rights, or a file put in
        # place with an old time.
        same = same and (is_linked or now.st_ctime_ns == before.st_ctime_ns)
        # The stamps cannot tell two writes within a tick apart, so the bytes are
        # compared.
        if (
            same
            and original.data is not None
            and time.time_ns() - now.st_mtime_ns < _TICK_NS
        ):
            same = _read_now(place) == original.data
    if not same:
        raise _conflict(place, original)


def _conflict(place: Place, original: Original) -> FlashgrepError:
    """Return the error for a file that changed since it was read, with what is there now."""
    data = _read_now(place)
    if data is None:
        actual = None
    else:
        actual = digest(data)
    return precondition_failed(
        place.path,
        [{"field": "file_hash_when_read", "expected": original.hash, "actual": actual}],
    )


def _read_now(place: Place) -> bytes | None:
    try:
        if not place.lstat():
            return None
        return read_original(place, _MOST_COMPARED).data
    except FlashgrepError:
        return None


def _take_name(place: Place, temporary: bytes, original: Original) -> None:
    """Give the temporary file its real name; if there was no file, do not overwrite one."""
    with translate_errors(place.path):
        if original.status is not None:
            place.rename(temporary)
            return
        try:
            # link(2) fails if the name is taken; rename(2) would silently replace it.
            os.link(
                temporary,
                place.name,
                src_dir_fd=place.folder,
                dst_dir_fd=place.folder,
                follow_symlinks=False,
            )
        except FileExistsError:
            raise _conflict(place, original) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _check_same(place, original)
            place.rename(temporary)
        else:
            os.unlink(temporary, dir_fd=place.folder)
