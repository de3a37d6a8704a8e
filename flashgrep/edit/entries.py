"""What stands in a folder, as the file methods tell it."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import as_base64, is_shown_whole, missing, named, shown
from flashgrep.errors import InvalidParams

FileType = Literal["file", "directory", "symlink", "other"]
MOST_LISTED = 10_000
SORT_KEYS = ("path", "name", "modified", "size")
SORT_ORDERS = ("asc", "desc")


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
class ListAsk:
    """Which part of a folder to tell, in which order."""

    include_hidden: bool = False
    sort_by: str = "path"
    sort_order: str = "asc"
    offset: int = 0
    limit: int | None = None


def entry_of(path: bytes, status: os.stat_result) -> FileEntry:
    """Return what a name is."""
    entry = FileEntry(
        path=shown(path),
        file_type=_type_of(status.st_mode),
        size=status.st_size,
        modified_unix=int(status.st_mtime),
        readonly=not status.st_mode & 0o222,
    )
    if not is_shown_whole(path):
        entry["path_bytes"] = as_base64(path)
    return entry


def stat_entry(editor: Editor, path: bytes) -> FileEntry:
    """Return what a path is; a link inside the project is followed.

    Raises:
        NotFound: path_not_found.

    """
    with editor.root.place(path) as place:
        status = place.lstat()
        if status is None:
            raise missing(path, "path")
        return entry_of(place.path, status)


def list_folder(editor: Editor, path: bytes, ask: ListAsk) -> Listing:
    """Return the entries of a folder; links are told as links.

    Raises:
        NotFound: directory_not_found.
        InvalidParams: not_a_directory, invalid_sort_by, invalid_sort_order.

    """
    key = _sort_key(ask)
    descriptor, real = editor.root.open_folder(path)
    try:
        found = _scan(descriptor, real, hidden=ask.include_hidden)
    except OSError as error:
        raise named(error, path, "directory") from error
    finally:
        os.close(descriptor)
    found.sort(key=lambda entry: entry["path"])
    found.sort(key=key, reverse=ask.sort_order == "desc")
    end = ask.offset + min(ask.limit or MOST_LISTED, MOST_LISTED)
    page = found[ask.offset : end]
    more = end < len(found)
    return {
        "entries": page,
        "total": len(found),
        "returned": len(page),
        "next_offset": end if more else None,
        "completed": not more,
    }


def _scan(descriptor: int, folder: bytes, *, hidden: bool) -> list[FileEntry]:
    found = []
    with os.scandir(descriptor) as names:
        for each in names:
            if not hidden and each.name.startswith("."):
                continue
            try:
                status = each.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed while we looked
                continue
            name = os.fsencode(each.name)
            found.append(entry_of(folder + b"/" + name if folder else name, status))
    return found


def _sort_key(ask: ListAsk) -> Callable[[FileEntry], str | int]:
    if ask.sort_by not in SORT_KEYS:
        message = f"sort_by: one of {', '.join(SORT_KEYS)}"
        raise InvalidParams(message, reason="invalid_sort_by", field="sort_by", allowed=list(SORT_KEYS))
    if ask.sort_order not in SORT_ORDERS:
        message = f"sort_order: one of {', '.join(SORT_ORDERS)}"
        raise InvalidParams(message, reason="invalid_sort_order", field="sort_order", allowed=list(SORT_ORDERS))
    return {
        "path": lambda entry: entry["path"],
        "name": lambda entry: entry["path"].rpartition("/")[2],
        "modified": lambda entry: entry["modified_unix"],
        "size": lambda entry: entry["size"],
    }[ask.sort_by]


def _type_of(mode: int) -> FileType:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"
