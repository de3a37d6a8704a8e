"""Creates, reads, writes and lists single files and folders."""

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from flashgrep.base.errors import Conflict, InvalidParams, NotFound, TooLarge
from flashgrep.files.editor import Editor
from flashgrep.files.encoding import (
    DecodedText,
    decode,
    encode_lossless,
    encode_strict,
    restore_bad_bytes,
)
from flashgrep.files.openat import Descriptor
from flashgrep.files.root import Place, make_folder
from flashgrep.files.system import (
    encode_path,
    format_path,
    missing,
    not_a_file,
    read_all,
    translate_errors,
)
from flashgrep.parts.edit.replace import Change, Original, commit_one, read_original

FileType = Literal["file", "directory", "symlink", "other"]
_TYPES: dict[int, FileType] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
}
MOST_LISTED = 10_000
SORT_ORDERS = ("asc", "desc")
SORT_KEYS: dict[str, Callable[["FileEntry"], str | int]] = {
    "path": lambda entry: entry["path"],
    "name": lambda entry: entry["path"].rpartition("/")[2],
    "modified": lambda entry: entry["modified_unix"],
    "size": lambda entry: entry["size"],
}


class FileEntry(TypedDict):
    """One name: size in bytes, time in whole seconds; ``readonly``: nobody has the right to write it."""

    path: str
    path_bytes: NotRequired[str]
    file_type: FileType
    size: int
    modified_unix: int
    readonly: bool


class Listing(TypedDict):
    """A part of a folder's entries; ``next_offset`` is null when there is no more."""

    entries: list[FileEntry]
    total: int
    returned: int
    next_offset: int | None
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Which part of a folder to return, in which order."""

    include_hidden: bool = False
    sort_by: str = "path"
    sort_order: str = "asc"
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a caller allows or requests: creating parent folders, overwriting, a dry run."""

    parents: bool = False
    overwrite: bool = False
    dry_run: bool = False


class FileChange(NamedTuple):
    """The resulting entry, and the changed path with links resolved; none in a dry run."""

    entry: FileEntry
    paths: list[bytes]


class FileContent(NamedTuple):
    """A whole file: its text, its bytes and its entry."""

    text: DecodedText
    data: bytes
    entry: FileEntry


def destination_exists(path: bytes) -> Conflict:
    """Return the error for a name that is taken."""
    text = format_path(path)
    message = f"destination exists: {text} (overwrite replaces it)"
    return Conflict(message, reason="destination_exists", target_path=text)


def stat_entry(editor: Editor, path: bytes) -> FileEntry:
    """Return what a path is; a link inside the project is followed.

    Raises:
        NotFound: path_not_found.

    """
    with editor.root.place(path) as place:
        status = place.lstat()
        if status is None:
            raise missing(path, "path")
        return _format_entry(place.path, status)


def list_folder(editor: Editor, path: bytes, query: ListQuery) -> Listing:
    """Return the entries of a folder, links as links.

    Raises:
        NotFound: directory_not_found.
        InvalidParams: not_a_directory, invalid_sort_by, invalid_sort_order.

    """
    for field, value, allowed in (
        ("sort_by", query.sort_by, list(SORT_KEYS)),
        ("sort_order", query.sort_order, list(SORT_ORDERS)),
    ):
        if value not in allowed:
            message = f"{field}: one of {', '.join(allowed)}"
            raise InvalidParams(
                message,
                reason=f"invalid_{field}",
                field=field,
                allowed=allowed,
            )
    entries = []
    descriptor, real = editor.root.open_folder(path)
    with (
        Descriptor(descriptor),
        translate_errors(path, "directory"),
        os.scandir(descriptor) as names,
    ):
        for current_name in names:
            if not query.include_hidden and current_name.name.startswith("."):
                continue
            try:
                status = current_name.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed while we looked
                # scandir has read the names; each is looked at only now.
                continue
            name = os.fsencode(current_name.name)
            if real:  # not the root itself
                name = real + b"/" + name
            entries.append(_format_entry(name, status))
    # Sorting is stable: entries of equal keys stay in the order of their paths,
    # ascending in both orders.
    entries.sort(key=lambda entry: entry["path"])
    entries.sort(key=SORT_KEYS[query.sort_by], reverse=query.sort_order == "desc")
    end = query.offset + min(query.limit or MOST_LISTED, MOST_LISTED)
    page = entries[query.offset : end]
    more = end < len(entries)
    return {
        "entries": page,
        "total": len(entries),
        "returned": len(page),
        "next_offset": end if more else None,
        "completed": not more,
    }


def create(
    editor: Editor, path: bytes, options: WriteOptions, *, folder: bool
) -> FileChange:
    """Make an empty file or a folder; with ``overwrite``, an existing file is emptied and a folder left as it is.

    Raises:
        Conflict: destination_exists.
        NotFound: a folder on the way is missing, and ``parents`` was not set.

    """
    place = _open_target(editor, path, options)
    if place is None:
        return FileChange(_plan_entry(path, 0, folder=folder), [])
    with place, editor.locks.hold([place]):
        status = place.lstat()
        if status is not None:
            _check_kind(path, status, folder=folder)
            if not options.overwrite:
                raise destination_exists(path)
        if options.dry_run:
            return FileChange(_plan_entry(place.path, 0, folder=folder), [])
        if not folder:
            commit_one(editor, Change(place, Original(None, status), b""))
        elif status is None:
            with translate_errors(path):
                make_folder(place.name, place.folder)
                place.sync()
        return _finish(place)


def write(
    editor: Editor,
    path: bytes,
    content: str,
    options: WriteOptions,
    *,
    append: bool = False,
) -> tuple[int, FileChange]:
    """Write a whole file, or add to its end; returns the number of bytes written.

    An existing file keeps its encoding and byte order mark if the content fits; line ends are taken as they are given.
    """
    observed = len(content.encode("utf-8", "surrogatepass"))
    most = editor.limits.write_bytes
    if observed > most:
        guidance = "write the first part, then add the others with append"
        raise _too_large("fs_write", "content", path, (observed, most), guidance)
    place = _open_target(editor, path, options)
    if place is None:
        data = encode_strict(content, "utf-8")
        return len(data), FileChange(_plan_entry(path, len(data), folder=False), [])
    with place, editor.locks.hold([place]):
        status = place.lstat()
        if status is not None:
            _check_kind(path, status, folder=False)
            if not (options.overwrite or append):
                raise destination_exists(path)
        # An append, too, reads the file and writes it again: a write(2) at its end
        # could be cut short by a crash, and would change the bytes of every hard link.
        original = read_original(place, editor.limits.edit_bytes)
        before = original.data or b""
        added = _encode_content(decode(before), content, append=append)
        if append:
            data = before + added
        else:
            data = added
        if options.dry_run:
            return len(added), FileChange(
                _plan_entry(place.path, len(data), folder=False), []
            )
        commit_one(editor, Change(place, original, data))
        return len(added), _finish(place)


def read(editor: Editor, path: bytes) -> FileContent:
    """Read a whole file.

    Raises:
        TooLarge: it is over the limit of one answer.

    """
    descriptor, status, real = editor.root.open_file(path)
    with Descriptor(descriptor):
        most = editor.limits.read_bytes
        if status.st_size > most:
            raise _too_large(
                "fs_read",
                "file",
                path,
                (status.st_size, most),
                "read it in parts with read_code",
            )
        data = read_all(descriptor, status.st_size)
    return FileContent(decode(data), data, _format_entry(real, status))


def _open_target(editor: Editor, path: bytes, options: WriteOptions) -> Place | None:
    """Open the place to write; None in a dry run whose folders would be made."""
    with suppress(NotFound):
        return editor.root.place(path, write=True)
    if not options.parents:
        raise missing(os.path.dirname(path) or path, "directory")
    if options.dry_run:
        return None
    return editor.root.place(path, write=True, parents=True)


def _check_kind(path: bytes, status: os.stat_result, *, folder: bool) -> None:
    if folder == stat.S_ISDIR(status.st_mode):
        if folder or stat.S_ISREG(status.st_mode):
            return
        raise not_a_file(path)
    if folder:
        problem = "is no directory"
        reason = "not_a_directory"
    else:
        problem = "is a directory"
        reason = "target_is_directory"
    text = format_path(path)
    raise InvalidParams(f"{problem}: {text}", reason=reason, target_path=text)


def _too_large(
    operation: str, what: str, path: bytes, sizes: tuple[int, int], guidance: str
) -> TooLarge:
    text, (observed, most) = format_path(path), sizes
    return TooLarge(
        f"{what} is {observed} bytes, limit {most}: {text}",
        operation=operation,
        target_path=text,
        observed_bytes=observed,
        limit_bytes=most,
        guidance=guidance,
    )


def _encode_content(before: DecodedText, content: str, *, append: bool) -> bytes:
    """Return the bytes of new content; U+FFFD that a read showed for bytes of the old one become these bytes."""
    length = len(before.text)
    if append:
        if before.tail:
            message = f"the file is {before.encoding} and ends inside a character; write it whole"
            raise InvalidParams(message, reason="encoding", encoding=before.encoding)
        return encode_lossless(
            restore_bad_bytes(before, length, length, content), before.encoding
        )
    # A binary file's detected encoding is a guess: new text is not written in it.
    if "\0" in before.text:
        return encode_strict(content, "utf-8")
    try:
        encode_strict(content, before.encoding)
    except (
        InvalidParams
    ):  # nothing of the old content remains, so its encoding need not either
        return encode_strict(content, "utf-8")
    return before.encode(restore_bad_bytes(before, 0, length, content))


def _plan_entry(path: bytes, size: int, *, folder: bool) -> FileEntry:
    """Return the entry of a file that a dry run would make."""
    if folder:
        kind = stat.S_IFDIR
    else:
        kind = stat.S_IFREG
    now = int(time.time())
    return _format_entry(
        path, os.stat_result((kind | 0o600, 0, 0, 1, 0, 0, size, now, now, now))
    )


def _finish(place: Place) -> FileChange:
    status = place.lstat()
    if status is None:
        raise missing(place.path)
    return FileChange(_format_entry(place.path, status), [place.path])


def _format_entry(path: bytes, status: os.stat_result) -> FileEntry:
    entry = FileEntry(
        path=format_path(path),
        file_type=_TYPES.get(stat.S_IFMT(status.st_mode), "other"),
        size=status.st_size,
        modified_unix=int(status.st_mtime),
        readonly=not status.st_mode & 0o222,
    )
    if (in_base64 := encode_path(path)) is not None:
        entry["path_bytes"] = in_base64
    return entry
