"""Reads files below the folders where libraries are, and no others, whatever links and manifests say."""

import os
import stat
from contextlib import suppress
from typing import Final, NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import Busy
from flashgrep.base.model import Document, Skipped
from flashgrep.files.extract import read_file
from flashgrep.files.openat import RootFiles, RootFolder

MOST_BYTES: Final = 8 << 20
"""A larger source is generated; parsing it would take longer than a jump may."""
MOST_MANIFEST: Final = 16 << 20
"""Most bytes of a lock file or manifest."""
MOST_ENTRIES: Final = 20_000
"""Most entries of a folder that are looked at: an environment has hundreds."""
_GIT: Final = b"/.git/"


class LibraryRoot(NamedTuple):
    """A folder with libraries that a project uses."""

    path: bytes
    folders: frozenset[bytes] | None = None
    """What of it the project uses, relative to it; None: everything."""


class LibraryFiles:
    """The files below trusted folders, for one question.

    A path is resolved first, and must then be below one of the folders; the file is opened from that folder on without
    links, so that one exchanged meanwhile leads nowhere. A file of another user than this one and root is none.
    """

    def __init__(self, root: bytes) -> None:
        self.root = os.path.realpath(root)
        self._trusted: dict[bytes, RootFiles] = {}
        self._located: dict[bytes, bytes | None] = {}
        self._owners = {0, os.getuid()}

    def trust(self, folder: bytes) -> bytes | None:
        """Take a folder as one of libraries, and return its resolved path; None: there is none, or it is of others."""
        real = os.path.realpath(folder)
        if real not in self._trusted:
            # Whoever owns a folder decides what is in it: of another user nothing is read.
            if not self._is_ours(real, stat.S_IFDIR):
                return None
            self._trusted[real] = RootFiles(RootFolder(real))
        return real

    def trust_inside(self, folder: bytes, *others: bytes) -> bytes | None:
        """Take a folder that a project has: it has to be below its root, or below one of some other folders."""
        real = os.path.realpath(folder)
        tops = (self.root, *map(os.path.realpath, others))
        if any(is_below(real, top) for top in tops):
            return self.trust(real)
        return None

    def locate(self, path: bytes) -> bytes | None:
        """Return the resolved path of a regular file below a trusted folder; None: there is none."""
        if path not in self._located:
            checkpoint()
            # Resolved first: what counts is where a link leads, not where it is.
            real = self._resolve(path)
            is_file = real is not None and self._is_ours(real, stat.S_IFREG)
            self._located[path] = real if is_file else None
        return self._located[path]

    def has(self, path: bytes) -> bool:
        """Whether a path is a file of a library."""
        return self.locate(path) is not None

    def is_folder(self, path: bytes) -> bool:
        """Whether a path is a folder below a trusted one."""
        real = self._resolve(path)
        return real is not None and self._is_ours(real, stat.S_IFDIR)

    def list_names(self, folder: bytes) -> list[bytes]:
        """Return the names in a folder below a trusted one, in order; at most so many."""
        checkpoint()
        if not self.is_folder(folder):
            return []
        names: list[bytes] = []
        # A folder that is gone, or may not be listed, has no names for us.
        with suppress(OSError), os.scandir(os.path.realpath(folder)) as entries:
            for entry in entries:
                names.append(os.fsencode(entry.name))
                if len(names) >= MOST_ENTRIES:
                    break
        return sorted(names)

    def read(self, path: bytes, most: int = MOST_BYTES) -> Document | Skipped | None:
        """Return a file's text, or why it has none; None: it is not there, or below no trusted folder."""
        real = self.locate(path)
        if real is None:
            return None
        top = self._find_top(real)
        if top is None:
            return None
        try:
            # No link is followed from the folder on, should one have come since.
            path_below = os.path.relpath(real, top)
            return read_file(self._trusted[top], path_below, most)[1]
        except FileNotFoundError:
            return None

    def read_text(self, path: bytes) -> str:
        """Return the text of a library's manifest; empty if it has none."""
        document = self.read(path, MOST_MANIFEST)
        if isinstance(document, Document):
            return document.data.decode("utf-8", "replace")
        return ""

    def read_own(self, path: bytes) -> str:
        """Return the text of a manifest of the project itself, by its path from the root; empty if it has none."""
        try:
            files = RootFiles(RootFolder(self.root))
            document = read_file(files, path, MOST_MANIFEST)[1]
        except (OSError, Busy):
            return ""
        if isinstance(document, Document):
            return document.data.decode("utf-8", "replace")
        return ""

    def _resolve(self, path: bytes) -> bytes | None:
        """Return where a path leads, if that is below a trusted folder."""
        if b"\0" in path:  # in a manifest anything may be named
            return None
        real = os.path.realpath(path)
        return real if self._find_top(real) is not None else None

    def _find_top(self, real: bytes) -> bytes | None:
        # No library is in git's own folder, which a link in a repository may name.
        if _GIT in real:
            return None
        return next((top for top in self._trusted if is_below(real, top)), None)

    def _is_ours(self, real: bytes, kind: int) -> bool:
        try:
            status = os.lstat(real)
        except (OSError, ValueError):
            return False
        return stat.S_IFMT(status.st_mode) == kind and status.st_uid in self._owners


def is_below(path: bytes, folder: bytes) -> bool:
    """Return whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def list_upward(folder: bytes, top: bytes) -> list[bytes]:
    """Return a folder and those above it up to ``top``, nearest first; none if it is not below that."""
    folders: list[bytes] = []
    while is_below(folder, top):
        folders.append(folder)
        if folder == top:
            break
        folder = os.path.dirname(folder)
    return folders
