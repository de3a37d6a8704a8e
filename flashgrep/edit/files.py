"""Single files and folders made, read whole and written whole."""

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from flashgrep.edit.bad_bytes import restore
from flashgrep.edit.commit import Change, commit_one
from flashgrep.edit.editor import Editor
from flashgrep.edit.entries import FileEntry, entry_of
from flashgrep.edit.faults import missing, shown, telling
from flashgrep.edit.read import read_all
from flashgrep.edit.replace import Original, read_original
from flashgrep.edit.root import Place, make_folder
from flashgrep.edit.text import Text, decode, encode_kept, encoded
from flashgrep.errors import Conflict, InvalidParams, NotFound, TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What a caller allows: folders on the way to be made, what is there to be replaced, nothing to be done at all."""

    parents: bool = False
    overwrite: bool = False
    dry_run: bool = False


class Done(NamedTuple):
    """What is there now (or would be), and the path that changed, links resolved; none in a dry run."""

    entry: FileEntry
    changed: list[bytes]


def destination_exists(path: bytes) -> Conflict:
    """Return the error for a name that is taken."""
    message = f"destination exists: {shown(path)} (overwrite replaces it)"
    return Conflict(message, reason="destination_exists", target_path=shown(path))


def create(editor: Editor, path: bytes, how: How, *, folder: bool) -> Done:
    """Make an empty file or a folder; with ``overwrite``, an existing file is emptied and a folder left as it is.

    Raises:
        Conflict: destination_exists.
        NotFound: a folder on the way is missing, and ``parents`` was not set.

    """
    place = _open_target(editor, path, how)
    if place is None:
        return Done(_planned(path, 0, folder=folder), [])
    with place, editor.locks.hold([place]):
        status = place.lstat()
        if status is not None:
            _check_kind(path, status, folder=folder)
            if not how.overwrite:
                raise destination_exists(path)
        if how.dry_run:
            return Done(_planned(place.path, 0, folder=folder), [])
        if not folder:
            commit_one(editor, Change(place, Original(None, status), b""))
        elif status is None:
            with telling(path):
                make_folder(place.name, place.folder)
                place.sync()
        return _done(place)


def write(editor: Editor, path: bytes, content: str, how: How, *, append: bool = False) -> tuple[int, Done]:
    """Write a whole file, or add to its end; returns the number of bytes written.

    An existing file keeps its encoding and byte order mark where the content fits; line ends are taken as they are
    given.
    """
    _check_size(editor, path, content)
    place = _open_target(editor, path, how)
    if place is None:
        data = encoded(content, "utf-8")
        return len(data), Done(_planned(path, len(data), folder=False), [])
    with place, editor.locks.hold([place]):
        status = place.lstat()
        if status is not None:
            _check_kind(path, status, folder=False)
            if not (how.overwrite or append):
                raise destination_exists(path)
        original = read_original(place, editor.limits.edit_bytes)
        before = original.data or b""
        added = _encoded(decode(before), content, append=append)
        data = before + added if append else added
        if how.dry_run:
            return len(added), Done(_planned(place.path, len(data), folder=False), [])
        commit_one(editor, Change(place, original, data))
        return len(added), _done(place)


class Content(NamedTuple):
    """A whole file: its text, its bytes and what it is."""

    text: Text
    data: bytes
    entry: FileEntry


def read(editor: Editor, path: bytes) -> Content:
    """Read a whole file.

    Raises:
        TooLarge: it is over the limit of one answer.

    """
    descriptor, status, real = editor.root.open_file(path)
    try:
        most = editor.limits.read_bytes
        if status.st_size > most:
            raise TooLarge(
                f"file is {status.st_size} bytes, limit {most}: {shown(path)}",
                operation="fs_read",
                target_path=shown(path),
                observed_bytes=status.st_size,
                limit_bytes=most,
                guidance="read it in parts with read_code",
            )
        data = read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    return Content(decode(data), data, entry_of(real, status))


def _open_target(editor: Editor, path: bytes, how: How) -> Place | None:
    """Open the place to write; None in a dry run whose folders would be made."""
    with suppress(NotFound):
        return editor.root.place(path, write=True)
    if not how.parents:
        raise missing(os.path.dirname(path) or path, "directory")
    return None if how.dry_run else editor.root.place(path, write=True, parents=True)


def _check_kind(path: bytes, status: os.stat_result, *, folder: bool) -> None:
    if folder == stat.S_ISDIR(status.st_mode):
        if folder or stat.S_ISREG(status.st_mode):
            return
        raise InvalidParams(f"not a regular file: {shown(path)}", reason="not_a_file", target_path=shown(path))
    reason = "not_a_directory" if folder else "target_is_directory"
    problem = "is no directory" if folder else "is a directory"
    raise InvalidParams(f"{problem}: {shown(path)}", reason=reason, target_path=shown(path))


def _check_size(editor: Editor, path: bytes, content: str) -> None:
    observed, most = len(content.encode("utf-8", "surrogatepass")), editor.limits.write_bytes
    if observed > most:
        raise TooLarge(
            f"content is {observed} bytes, limit {most}: {shown(path)}",
            operation="fs_write",
            target_path=shown(path),
            observed_bytes=observed,
            limit_bytes=most,
            guidance="write the first part, then add the others with append",
        )


def _encoded(before: Text, content: str, *, append: bool) -> bytes:
    """Return the bytes of new content, with what a read showed as U+FFFD as it was."""
    if append:
        if before.tail:
            message = f"the file is {before.encoding} and ends inside a character; write it whole"
            raise InvalidParams(message, reason="encoding", encoding=before.encoding)
        return encode_kept(restore(before, len(before.text), len(before.text), content), before.encoding)
    if "\0" in before.text:
        return encoded(content, "utf-8")
    try:
        encoded(content, before.encoding)
    except InvalidParams:  # nothing of the old content stays, so its encoding need not
        return encoded(content, "utf-8")
    return before.encode(restore(before, 0, len(before.text), content))


def _planned(path: bytes, size: int, *, folder: bool) -> FileEntry:
    kind = stat.S_IFDIR if folder else stat.S_IFREG
    now = int(time.time())
    return entry_of(path, os.stat_result((kind | 0o600, 0, 0, 1, 0, 0, size, now, now, now)))


def _done(place: Place) -> Done:
    status = place.lstat()
    if status is None:
        raise missing(place.path)
    return Done(entry_of(place.path, status), [place.path])
