"""Where a project's index lies: in the user's cache folder, named by the project's root, never below it."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from flashgrep.paths import PROJECT_FOLDER, check_private, make_private

PROJECTS = "projects"
"""Below the cache folder: one folder a project. Below the state folder: its writes that are under way."""
INDEX = "index.db"
ROOT = "root"
"""The file beside an index that holds the root's path, as bytes."""

_FORMER = re.compile(
    r"index\.db(-wal|-shm|-journal|\.damaged)?|vectors-[0-9a-f]{16}\.bin|journal|staged|\.probe-\d+|cookie-\d+-\d+"
)
"""What earlier versions kept below a project's root. It may as well have come with the repository: it is not opened."""


def project_id(root: bytes) -> str:
    """Return the name of a project's folders: a hash of its real path."""
    return hashlib.blake2b(os.path.realpath(root), digest_size=10).hexdigest()


def store_folder(cache: Path, root: bytes) -> Path:
    """Return the folder of a project's index; it need not exist."""
    return cache / PROJECTS / project_id(root)


def check_store(folder: Path) -> None:
    """Refuse a folder of an index, or one above it in the cache, that others could have put files into.

    Raises:
        OSError: one is not there, or not this user's alone.

    """
    for each in (folder.parent.parent, folder.parent, folder):
        check_private(str(each))


def make_store(folder: Path, root: bytes) -> None:
    """Make the folder of a project's index, and note in it whose it is.

    Raises:
        OSError: it cannot be made, or others may write to it.

    """
    for each in (folder.parent.parent, folder.parent, folder):
        make_private(str(each))
    note = folder / ROOT
    real = os.path.realpath(root)
    if note.is_symlink() or not note.is_file() or note.read_bytes() != real:
        fresh = folder / f"{ROOT}.{os.getpid()}"
        fresh.write_bytes(real)
        fresh.replace(note)


def stores(cache: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folder of every index, and the root it is of; None where that is not noted."""
    with contextlib.suppress(OSError):
        for folder in sorted((cache / PROJECTS).iterdir()):
            try:
                yield folder, Path(os.fsdecode((folder / ROOT).read_bytes()))
            except OSError:
                yield folder, None


def former_files(root: Path) -> list[Path]:
    """Return what looks like an index of an earlier version below a project's root; files and folders, unopened."""
    folder = root / PROJECT_FOLDER
    if folder.is_symlink():
        return []
    try:
        return sorted(path for path in folder.iterdir() if _FORMER.fullmatch(path.name))
    except OSError:
        return []
