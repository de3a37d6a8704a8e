"""From a SCIP file and a project's files to what is stored: which documents speak of files as they are now."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from flashgrep.errors import InvalidParams
from flashgrep.index.scip import Source, change, list_sources
from flashgrep.ingest.extract import read_file
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.model import Skipped
from flashgrep.paths import make_private
from flashgrep.scip.decode import Malformed, Metadata, read_index
from flashgrep.scip.place import place_occurrences

MOST_FILE: Final = 4 << 30
MOST_TEXT: Final = 64 << 20
"""Bytes of an index, and of a file that it speaks of."""


def import_index(
    file: Path, root: bytes, folder: Path, below: str | None, tell: Callable[[int], None] = lambda _count: None
) -> Source:
    """Take in what a SCIP file says of a project, and return what was taken.

    ``folder``: the project's part of the state folder. ``below``: the folder of the project that the index was made of;
    None: as the index says, if that lies in the project, else the root. ``tell`` is told of each document's number.

    Raises:
        InvalidParams: it is no SCIP index, or cut short; nothing of it is taken.
        OSError: it cannot be read, or what is taken cannot be written.

    """
    for each in (folder.parent.parent, folder.parent, folder):
        make_private(str(each))
    name, stale, missing, tool = str(file.resolve()), 0, 0, ""
    prefix = b"" if below is None else _prefix(f"{os.fsdecode(root)}/{below}", root)
    with file.open("rb") as opened, change(folder, name) as writer:
        made = os.fstat(opened.fileno())
        if made.st_size > MOST_FILE:
            raise InvalidParams(f"{file}: over {MOST_FILE:,} bytes", field="file")
        writer.forget()
        files = RootFiles(RootFolder(root))
        try:
            for count, one in enumerate(read_index(opened)):
                if isinstance(one, Metadata):
                    tool = one.tool
                    prefix = _prefix(unquote(urlsplit(one.project_root).path), root) if below is None else prefix
                    continue
                tell(count)
                path = prefix + one.path
                data, is_current = read_current(files, path, made.st_mtime_ns) if one.is_inside else (None, False)
                rows = place_occurrences(one, data) if data is not None and is_current else None
                if data is None:
                    missing += 1
                elif rows is None:
                    stale += 1
                else:
                    writer.add(path, data, rows)
        except Malformed as error:
            raise InvalidParams(f"{file}: {error}", field="file") from error
        writer.note(tool, stale, missing)
    return next(one for one in list_sources(folder) if one.file == name)


def forget_index(file: str, folder: Path) -> bool:
    """Drop what an imported file said; return whether there was such a file."""
    if all(one.file != file for one in list_sources(folder)):
        return False
    with change(folder, file) as writer:
        writer.forget()
    return True


def _prefix(made_of: str, root: bytes) -> bytes:
    """Return what stands before an index's paths: the folder that it was made of, seen from the root."""
    found = os.path.relpath(os.path.realpath(os.fsencode(made_of)), os.path.realpath(root)) if made_of else b"."
    return b"" if found == b"." or found.split(b"/")[0] == b".." else found + b"/"


def read_current(files: RootFiles, path: bytes, made_ns: int) -> tuple[bytes | None, bool]:
    """Return a file's text, None where it has none, and whether it has not changed since an index was made."""
    try:
        stat, document = read_file(files, path, MOST_TEXT)
    except OSError:
        return None, False
    return (None, False) if isinstance(document, Skipped) else (document.data, stat.mtime_ns <= made_ns)
