"""The links that ``grep -R`` follows below a folder: a plan names those to files, and stands aside where it cannot tell.

The index knows no links, so the folders are walked, without a look at any file. grep reports a folder that contains
itself by the folders it is in at that moment. So below a folder that is named as a whole a link may lead anywhere inside
it and no further; anywhere else a link to a folder ends the plan.
"""

import os
import stat
from typing import Final, NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.hook.below import Below, Rules
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.search.snapshot import Snapshot

MOST_WALKED: Final = 20_000
"""Entries below a folder, at 2 to 4 µs each; a plan has a quarter of a second."""


class _Folder(NamedTuple):
    """A folder to be walked: its path below the start, and the folder around it that the plan names, if there is one."""

    path: bytes
    named: bytes | None


def find_links(below: Below, snapshot: Snapshot, rules: Rules) -> list[bytes]:
    """Return the links to files that a walk comes to outside of the folders that are named, by path from the root.

    Raises:
        Unplannable: one leads to a folder, to nothing or to a device, or there is too much to walk.
        OSError: a folder cannot be listed.

    """
    excluded = snapshot.excluded or {}
    links: list[bytes] = []
    pending = [_Folder(b"", None)]
    walked = 0
    while pending:
        folder = pending.pop()
        entries = _list(os.path.join(below.folder, folder.path))
        walked += len(entries)
        if walked > MOST_WALKED:
            raise Unplannable
        for entry in entries:
            is_link = entry.is_symlink()
            if not is_link and not entry.is_dir():
                continue
            path = os.path.join(folder.path, entry.name)
            if is_link and folder.named is not None:
                _check_inner(entry, below, folder.named)
            elif is_link and (rules.enters(path) or not entry.is_dir()):
                _check_file(entry)
                links.append(below.lead + path)
            elif not is_link and rules.enters(path):
                named = folder.named
                if named is None and below.lead + path in excluded:
                    named = path
                pending.append(_Folder(path, named))
    return links


def _list(folder: bytes) -> list[os.DirEntry[bytes]]:
    checkpoint()
    with os.scandir(folder) as listing:
        return list(listing)


def _check_file(link: os.DirEntry[bytes]) -> None:
    """Check that a link leads to a file; grep reads a device that is named, and passes one that it meets."""
    if not stat.S_ISREG(os.stat(link.path).st_mode):
        raise Unplannable


def _check_inner(link: os.DirEntry[bytes], below: Below, named: bytes) -> None:
    """Check that a link to a folder stays inside the folder that is named."""
    if not link.is_dir():
        return
    bound = os.path.realpath(os.path.join(below.folder, named))
    target = os.path.realpath(link.path)
    if target != bound and not target.startswith(bound + b"/"):
        raise Unplannable
