"""The libraries that a project uses: how questions about names reach their files, wherever those are on this machine.

A library's file is named by its absolute path, a project's own file by one relative to its root.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from flashgrep.api.searchers import Holds
from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.api.view import Project
from flashgrep.base.model import Document, Skipped
from flashgrep.base.registry import Call

MOST_NAME: Final = 250
MOST_VERSION: Final = 100
"""Characters of a name and of a version that are shown; npm allows names of 214."""


class Library(NamedTuple):
    """A library in one version, with its folder."""

    name: str
    version: str
    folder: bytes

    @property
    def label(self) -> str:
        """The name and version as answers give them and questions may: ``requests@2.31.0``."""
        # A manifest may say anything, and each result repeats it.
        name = self.name[:MOST_NAME]
        version = self.version[:MOST_VERSION]
        if version:
            return f"{name}@{version}"
        return name


class LibraryLookup(Protocol):
    """The libraries of a project as one question sees them."""

    def find_module(self, language: str, path: bytes, module: str) -> bytes | None:
        """Return the file of a module as a file's import names it, a folder with a trailing slash, or None: unknown."""

    def find_definers(
        self, language: str, path: bytes, module: str, name: str
    ) -> list[bytes]:
        """Return the files that may define a name of a module, likeliest first, where languages write it in full."""

    def locate(self, path: bytes) -> bytes | None:
        """Return the path of a library's file, given by an absolute path or one relative to the root; None: it is none."""

    def list_folder(self, folder: bytes) -> list[bytes]:
        """Return the paths of the files in a folder, in order."""

    def read(self, path: bytes) -> Document | Skipped | None:
        """Return a file's text, or why it has none; None: it is gone, or no library's."""

    def find_library(self, path: bytes) -> Library | None:
        """Return the library that has a file."""

    def find_by_name(self, label: str) -> Library | None:
        """Return the library of a name, as ``requests`` or ``requests@2.31``; None: the project uses none."""


class LibraryPlace(NamedTuple):
    """A folder with libraries, opened to be read and searched."""

    project: Project
    holds: Holds | None
    """Whether a file of the folder, by its path in it, is of a library that the project uses; None: all are."""


class UsedLibraries(NamedTuple):
    """All libraries of a project, for one question."""

    places: Sequence[LibraryPlace]
    lookup: LibraryLookup
    """Says which library a file of theirs is of."""


class ProjectLibraries(ProjectService):
    """Finds the libraries of one project."""

    def look_up(self) -> LibraryLookup:
        """Return them for one question; call it in a thread."""
        raise NotImplementedError

    async def open(self, call: Call[Any], label: str) -> Project:
        """Return the folder of a library, by its name or with its version, to be read and searched for a call.

        Raises:
            NotFound: library_not_found, the project uses none of that name, or its source is not there.

        """
        raise NotImplementedError

    async def open_all(self, call: Call[Any]) -> UsedLibraries:
        """Return all libraries that the project's environments and lock files name, to be searched for a call.

        Raises:
            NotFound: library_not_found, there are none.

        """
        raise NotImplementedError


LIBRARIES: Final = ServiceKey[ProjectLibraries]("libraries")
