"""flashgrep's own folders: never a project, nor reached through one. The token lies there."""

import os
import stat
import time
from collections.abc import Iterable

Identity = tuple[int, int]
"""Device and inode."""
_MOST_AGE = 1.0
"""Seconds that what is known of the folders serves ``includes``."""
_TICK = 0.1
"""Seconds that a file's time of change may lie behind the clock; file systems count it in steps of up to 10 ms."""


class PrivateFolders:
    """The state, settings and cache folders, known by device and inode: no link, case or ``..`` leads past that."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._seen: tuple[float, frozenset[Identity]] = (0.0, frozenset())

    def identities(self) -> frozenset[Identity]:
        """Return those of the folders that are there now: one may be made later, or replaced."""
        found = (identity_of(folder) for folder in self._folders)
        return frozenset(one for one in found if one is not None)

    def includes(self, status: os.stat_result) -> bool:
        """Return whether a file that was just looked at is one of the folders.

        The folders are looked at anew once a second, and for every folder that changed since: one that was made or
        renamed to a private folder's path meanwhile has.
        """
        if not stat.S_ISDIR(status.st_mode):
            return False
        now = time.time()
        seen, known = self._seen
        if not seen <= now < seen + _MOST_AGE or status.st_ctime > seen - _TICK:
            known = self.identities()
            self._seen = (now, known)
        return (status.st_dev, status.st_ino) in known

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
