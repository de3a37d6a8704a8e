"""flashgrep's own folders: where a project's index lies, and what is never a project nor reached through one.

An index lies in the user's cache folder, named by the project's root, never below that root. The token lies in the
state folder.
"""

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from flashgrep.paths import PROJECT_FOLDER, check_private, make_private

PROJECTS = "projects"
"""Below the cache folder: one folder a project. Below the state folder: its writes that are under way."""
INDEX = "index.db"
ROOT = "root"
"""The file beside an index that holds the root's path, as bytes."""

FORMER_FILE = re.compile(
    r"index\.db(-wal|-shm|-journal|\.damaged)?|vectors-[0-9a-f]{16}\.bin|journal|staged|\.probe-\d+|cookie-\d+-\d+"
)
"""What earlier versions kept below a project's root. It may have come with the repository, so it is never opened."""
Identity = tuple[int, int]
"""Device and inode."""
MOST_AGE = 1.0
"""Seconds for which ``includes`` trusts what it knows of the folders."""
TICK = 0.1
"""Seconds that a file's time of change may lie behind the clock; file systems count it in steps of up to 10 ms."""


def project_id(root: bytes) -> str:
    """Return the name of a project's folders: a hash of its real path."""
    return hashlib.blake2b(os.path.realpath(root), digest_size=10).hexdigest()


def store_folder(cache: Path, root: bytes) -> Path:
    """Return the folder of a project's index; it need not exist."""
    return cache / PROJECTS / project_id(root)


def check_store(folder: Path) -> None:
    """Refuse an index's folder if others could have put files into it or into a folder above it in the cache.

    Raises:
        OSError: one is not there, or not this user's alone.

    """
    for each in (folder.parent.parent, folder.parent, folder):
        check_private(str(each))


def make_store(folder: Path, root: bytes) -> None:
    """Make the folder of a project's index, and write the project's root into it.

    Raises:
        OSError: it cannot be made, or others may write to it.

    """
    for each in (folder.parent.parent, folder.parent, folder):
        make_private(str(each))
    note = folder / ROOT
    real = os.path.realpath(root)
    if note.is_symlink() or not note.is_file() or note.read_bytes() != real:
        fresh = folder / f"{ROOT}.{os.getpid()}"  # several processes may do this at once
        fresh.write_bytes(real)
        fresh.replace(note)


def list_stores(cache: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folder of every index with its project's root; None where the folder does not say."""
    with contextlib.suppress(OSError):
        for folder in sorted((cache / PROJECTS).iterdir()):
            try:
                yield folder, Path(os.fsdecode((folder / ROOT).read_bytes()))
            except OSError:
                yield folder, None


def list_former_files(root: Path) -> list[Path]:
    """Return what looks like an index of an earlier version below a project's root; files and folders, unopened."""
    folder = root / PROJECT_FOLDER
    if folder.is_symlink():
        return []
    try:
        return sorted(path for path in folder.iterdir() if FORMER_FILE.fullmatch(path.name))
    except OSError:
        return []


class PrivateFolders:
    """The state, settings and cache folders, known by device and inode: no link, case or ``..`` leads past that."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._seen: tuple[float, frozenset[Identity]] = (0.0, frozenset())

    def identities(self) -> frozenset[Identity]:
        """Return those of the folders that are there now: one may be made later, or replaced."""
        found = (identify(folder) for folder in self._folders)
        return frozenset(one for one in found if one is not None)

    def includes(self, status: os.stat_result) -> bool:
        """Return whether a file that was just looked at is one of the folders.

        Looking at the private folders for every folder of a walk took half of its time. So they are looked at once a
        second, and for every folder that has changed since: one that was made at a private folder's path meanwhile, or
        renamed to it, has.
        """
        if not stat.S_ISDIR(status.st_mode):
            return False
        now = time.time()
        seen, known = self._seen
        if not seen <= now < seen + MOST_AGE or status.st_ctime > seen - TICK:
            known = self.identities()
            self._seen = (now, known)
        return (status.st_dev, status.st_ino) in known

    def contain(self, path: str | bytes) -> bool:
        """Return whether a path is one of the folders, or lies within one."""
        own, here = self.identities(), os.fsencode(os.path.realpath(path))
        # By identity at each level: a bind mount or another case of the name is the same folder.
        while own:
            if identify(here) in own:
                return True
            above = os.path.dirname(here)
            if above == here:
                break
            here = above
        return False


NO_FOLDERS = PrivateFolders()


def identify(path: str | bytes) -> Identity | None:
    """Return a file's device and inode, links followed; None where it cannot be seen."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
