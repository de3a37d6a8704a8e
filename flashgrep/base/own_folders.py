"""flashgrep's own folders: where a project's index is stored, and folders that no project may be or reach.

A store, the index of all work trees of one repository, is in the user's cache folder, named after what they share,
never below a root. The token is in the state folder.
"""

import contextlib
import hashlib
import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from flashgrep.base.paths import (
    PRIVATE_FOLDER,
    PROJECT_FOLDER,
    check_private,
    make_private,
)
from flashgrep.base.plain_files import read_plain_file

STORES = "stores"
"""Below the cache folder: one folder a store."""
PROJECTS = "projects"
"""Below the state folder: one folder a project, for its writes under way. Below the cache folder: former indexes."""
LIBRARIES = "libraries"
"""Below the cache folder: what is unpacked of libraries. The store that all libraries share is named after it."""
INDEX = "index.db"
OWNER = "owner"
"""The file next to an index with the path, as bytes, of the folder it is named after."""
MOST_CONFIG = 64 * 1024
"""Bytes read of a repository's settings; what git writes about the work tree is at the top."""
MOST_POINTER = 4096
"""Maximum number of bytes of a git file that names a folder: the maximum of a path."""

FORMER_FILE = re.compile(
    r"index\.db(-wal|-shm|-journal|\.damaged)?|vectors-[0-9a-f]{16}\.bin|journal|staged|\.probe-\d+|cookie-\d+-\d+"
)
"""Files that earlier versions kept below a project's root. They may come with the repository, so they are never
opened."""
Identity = tuple[int, int]
"""Device and inode."""
MOST_AGE = 1.0
"""Seconds for which ``includes`` trusts its knowledge of the folders."""
TICK = 0.1
"""Seconds that a modification time may lag after the clock; file systems count in steps of up to 10 ms."""


def make_project_folder(root: str) -> str:
    """Create and return a project's .flashgrep folder, 0700 and ignored by git, for our socket and the user's settings.

    Raises:
        OSError: it cannot be created, or the repository contains a link or a file of this name.

    """
    folder = os.path.join(root, PROJECT_FOLDER)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, PRIVATE_FOLDER)
    # lstat: a repository may contain a link of this name, and chmod and the socket
    # would follow it.
    mode = os.lstat(folder).st_mode
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    if stat.S_IMODE(mode) != PRIVATE_FOLDER:
        os.chmod(folder, PRIVATE_FOLDER)
    with (
        contextlib.suppress(FileExistsError),
        open(
            os.path.join(folder, ".gitignore"), "x", encoding="ascii"
        ) as ignore,  # never through a link
    ):
        ignore.write("*\n")
    return folder


def find_owner(root: bytes) -> bytes:
    """Return the folder that a project's store is named after: git's common directory, else the root; links resolved.

    git is not run. A root joins a repository's store only if that repository lists it as one of its work trees, or
    contains its repository as a submodule: files in a root cannot make it join another store.
    """
    root = os.path.realpath(root)
    link = os.path.join(root, b".git")
    try:
        status = os.lstat(link)
        if stat.S_ISDIR(status.st_mode):
            # Git also accepts a common directory inside; but git itself never creates
            # such a repository.
            if os.path.lexists(os.path.join(link, b"commondir")):
                return root
            return _check_owner(link)
        own = os.path.realpath(os.path.join(root, read_pointer(link, b"gitdir: ")))
        # Only a linked work tree has this file; a submodule's repository does not.
        if not os.path.lexists(os.path.join(own, b"commondir")):
            return _find_superproject(own, root)
        common = os.path.realpath(
            os.path.join(own, read_pointer(os.path.join(own, b"commondir")))
        )
        back = os.path.join(own, read_pointer(os.path.join(own, b"gitdir")))
        # Both directions have to agree: the repository lists the work tree, and the
        # work tree's entry points back here.
        listed = os.path.dirname(own) == os.path.join(common, b"worktrees")
        is_back = (
            os.path.basename(back) == b".git"
            and os.path.realpath(os.path.dirname(back)) == root
        )
        is_ours = listed and is_back and _check_owner(own)
        return _check_owner(common) if is_ours else root
    except (OSError, ValueError):
        return root


def _find_superproject(own: bytes, root: bytes) -> bytes:
    """Return the common directory of the outermost repository that holds a submodule's, whose work tree is the root.

    Raises:
        OSError, ValueError: none does, or the submodule has another work tree.

    """
    # From the left: for nested submodules the outermost repository counts.
    for match in re.finditer(rb"/modules/", own):
        outer = own[: match.start()]
        if not os.path.isfile(os.path.join(outer, b"HEAD")):
            continue
        if read_work_tree(own) != root or not _check_owner(own):
            break
        if not os.path.lexists(os.path.join(outer, b"commondir")):
            return _check_owner(outer)
        common = os.path.realpath(
            os.path.join(outer, read_pointer(os.path.join(outer, b"commondir")))
        )
        if os.path.dirname(outer) == os.path.join(
            common, b"worktrees"
        ):  # a submodule of a second work tree
            return _check_owner(common)
        break
    raise ValueError("not a submodule of this repository")


def belongs_to(root: bytes, owner: bytes) -> bool:
    """Return whether a root exists and its store is named after this folder."""
    return os.path.isdir(root) and find_owner(root) == owner


def read_work_tree(own: bytes) -> bytes:
    """Return the work tree that a repository names in its settings, with links resolved.

    Raises:
        OSError, ValueError: it names none, or not as git writes it: a value in quotes.

    """
    core = re.search(
        rb"(?m)^\[core\]\n((?:(?!\[).*\n)*)",
        read_git_file(os.path.join(own, b"config"), MOST_CONFIG),
    )
    path = core and re.search(rb'(?m)^\s*worktree = ([^"\\\0\n]+)$', core[1])
    if not path:
        raise ValueError("no work tree")
    # git writes it relative to the repository's folder.
    return os.path.realpath(os.path.join(own, path[1]))


def read_pointer(file: bytes, prefix: bytes = b"") -> bytes:
    """Return the path in one of git's files.

    Raises:
        OSError: it is not a file, or cannot be read.
        ValueError: it contains something else.

    """
    text = read_git_file(file, MOST_POINTER + 1)
    path = text.removeprefix(prefix).rstrip(b"\r\n")
    if (
        not text.startswith(prefix)
        or not path
        or len(text) > MOST_POINTER
        or b"\0" in path
        or b"\n" in path
    ):
        raise ValueError("not a path")
    return path


def read_git_file(file: bytes, most: int) -> bytes:
    """Return the first bytes of one of git's files; none if it is not a file: never wait for a pipe."""
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode):
            return os.read(number, most)
        return b""
    finally:
        os.close(number)


def _check_owner(folder: bytes) -> bytes:
    """Return a folder if it belongs to this user.

    Raises:
        PermissionError: it does not.

    """
    if os.lstat(folder).st_uid != os.geteuid():
        raise PermissionError("belongs to another user")
    return folder


def _digest(path: bytes) -> str:
    return hashlib.blake2b(path, digest_size=10).hexdigest()


def store_folder(cache: Path, root: bytes, owner: bytes = b"") -> Path:
    """Return the folder of the store that a project belongs to; it need not exist.

    ``owner``: the folder that the store is named after, where it is not the one that the root says.
    """
    return cache / STORES / _digest(owner or find_owner(root))


def library_owner(cache: Path) -> bytes:
    """Return the folder that the store of libraries is named after; it need not exist."""
    return os.fsencode(os.path.realpath(cache / LIBRARIES))


def writes_folder(state: Path, root: bytes) -> Path:
    """Return the folder of the journals of a project's writes; it need not exist."""
    return state / PROJECTS / _digest(os.path.realpath(root))


def check_store(folder: Path) -> None:
    """Refuse a store's folder if others can write to it or to a folder above it in the cache.

    Raises:
        OSError: one does not exist, or others may write to it.

    """
    for path in (folder.parent.parent, folder.parent, folder):
        check_private(str(path))


def make_store(folder: Path, owner: bytes) -> None:
    """Create a store's folder, and record in it the folder it is named after.

    What stands in its place, or a folder to which others may write, is removed: it is a cache.

    Raises:
        OSError: it cannot be created, or others may write to the cache folder.

    """
    # The cache folder may be one that the user names and shares: it is only checked.
    make_private(str(folder.parent.parent))
    for path in (folder.parent, folder):
        if os.path.lexists(path) and not is_private_folder(path):
            logging.getLogger(__name__).warning("made anew: %s", path)
            clear_place(path)
        make_private(str(path))
    note = folder / OWNER
    if note.is_symlink() or not note.is_file() or note.read_bytes() != owner:
        if note.is_dir():
            clear_place(note)
        fresh = (
            folder / f"{OWNER}.{os.getpid()}"
        )  # several processes may do this concurrently
        fresh.write_bytes(owner)
        fresh.replace(note)


def is_private_folder(path: Path) -> bool:
    """Return whether a path is a folder of ours, no link, to which nobody else may write."""
    status = os.lstat(path)
    is_shared = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return (
        stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not is_shared
    )


def clear_place(path: Path) -> None:
    """Remove whatever is at a path in our cache, never what a link there names; another user's folder is renamed.

    Raises:
        OSError: it cannot be removed or renamed.

    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except OSError:
        path.rename(path.with_name(f"{path.name}.{os.getpid()}.damaged"))


def list_stores(cache: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folder of every store with the folder it is named after; None if that is not recorded."""
    with contextlib.suppress(OSError):
        for folder in sorted((cache / STORES).iterdir()):
            try:
                yield folder, Path(os.fsdecode(read_plain_file(folder / OWNER)))
            except OSError:
                yield folder, None


def remove_former(cache: Path) -> list[Path]:
    """Remove indexes of earlier versions, which had one per project, from the cache; return the projects' roots."""
    roots: list[Path] = []
    with contextlib.suppress(OSError):
        for folder in sorted((cache / PROJECTS).iterdir()):
            if not (
                folder / INDEX
            ).is_file():  # the state folder may be the same: these are writes under way
                continue
            with contextlib.suppress(OSError):
                roots.append(Path(os.fsdecode(read_plain_file(folder / "root"))))
            for file in folder.iterdir():
                if file.name == "root" or (
                    FORMER_FILE.fullmatch(file.name) and file.is_file()
                ):
                    file.unlink(missing_ok=True)
            folder.rmdir()
        (cache / PROJECTS).rmdir()
    return roots


def list_former_files(root: Path) -> list[Path]:
    """Return what looks like an earlier version's index below a project's root, without opening anything."""
    folder = root / PROJECT_FOLDER
    if folder.is_symlink():
        return []
    try:
        return sorted(
            path for path in folder.iterdir() if FORMER_FILE.fullmatch(path.name)
        )
    except OSError:
        return []


def is_below(path: bytes, folder: bytes) -> bool:
    """Return whether a path is a folder or inside it, by their names; both absolute, and without links or dots."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


class PrivateFolders:
    """The state, settings and cache folders by device and inode: no link, case or ``..`` gets around that."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._seen: tuple[float, frozenset[Identity]] = (0.0, frozenset())

    def identities(self) -> frozenset[Identity]:
        """Return the folders that exist now: one may be created later, or replaced."""
        found_identities = (identify(folder) for folder in self._folders)
        return frozenset(
            identity for identity in found_identities if identity is not None
        )

    def includes(self, status: os.stat_result) -> bool:
        """Return whether a file with this status, which must be recent, is one of the folders.

        Checking the private folders for every folder of a walk took half of its time. So they are checked once a
        second, and for every folder that has changed since: one created at a private folder's path meanwhile, or
        renamed to it, has.
        """
        if not stat.S_ISDIR(status.st_mode):
            return False
        now = time.time()
        seen, known_identities = self._seen
        if not seen <= now < seen + MOST_AGE or status.st_ctime > seen - TICK:
            known_identities = self.identities()
            self._seen = (now, known_identities)
        return (status.st_dev, status.st_ino) in known_identities

    def contain(self, path: str | bytes) -> bool:
        """Return whether a path is one of the folders, or is inside one."""
        own = self.identities()
        here = os.fsencode(os.path.realpath(path))
        # By identity at each level: a bind mount or another case of the name is still
        # the same folder.
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
    """Return a file's device and inode, following links; None if it is inaccessible."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
