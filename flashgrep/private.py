"""flashgrep's own folders: never a project, nor reached through one. The token lies there."""

import os
from collections.abc import Iterable

Identity = tuple[int, int]
"""Device and inode."""


class PrivateFolders:
    """The state, settings and cache folders, known by device and inode: no link, case or ``..`` leads past that."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders = tuple(dict.fromkeys(folders))

    def identities(self) -> frozenset[Identity]:
        """Return those of the folders that are there now: one may be made later, or replaced."""
        found = (identity_of(folder) for folder in self._folders)
        return frozenset(one for one in found if one is not None)

    def hold(self, path: str | bytes) -> bool:
        """Return whether a path is one of the folders, or lies within one."""
        own, here = self.identities(), os.fsencode(os.path.realpath(path))
        while own:
            if identity_of(here) in own:
                return True
            above = os.path.dirname(here)
            if above == here:
                break
            here = above
        return False


NO_FOLDERS = PrivateFolders()


def identity_of(path: str | bytes) -> Identity | None:
    """Return what tells a file from every other, links followed; None where there is none to be seen."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
