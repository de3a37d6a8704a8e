"""What a recursive search has to look at below a folder, named one by one and in the order in which it would come.

grep and find know no ignore rules. So beside the files that the index cannot rule out, every entry that our rules take
out is named: hidden and ignored files, and folders that are then searched as a whole. Both programs walk a folder in
the order in which the system lists it; so do we, but only the folders that hold something to name.
"""

import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from flashgrep.base.checkpoint import checkpoint
from flashgrep.files.walk import Walker
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.parts.ripgrep.plan import locate_folder
from flashgrep.search.snapshot import Snapshot

MOST_LISTED: Final = 10_000
"""Entries of a folder: above it the programs sort them by inode."""
MOST_FOLDERS: Final = 2_000
"""Folders listed for the order; each takes about 15 µs."""
MOST_ENTRIES: Final = 3_000
MOST_BYTES: Final = 256 * 1024
"""Of names on one command line; Linux allows 2 MiB with the environment, macOS 1 MiB."""


class Entry(NamedTuple):
    """An entry to be named: its path as the program would print it, and whether it is a folder."""

    path: bytes
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Below:
    """A folder of a search: as it was written, where it is, and its path below the project's root."""

    operand: bytes
    folder: bytes
    inside: bytes

    @property
    def lead(self) -> bytes:
        """What is before the names of its entries, in the project's paths."""
        if not self.inside:
            return b""
        return self.inside + b"/"

    @property
    def prefix(self) -> bytes:
        """What is before the names of its entries, as the program prints them."""
        if not self.operand or self.operand.endswith(b"/"):
            return self.operand
        return self.operand + b"/"


def locate(operand: bytes, cwd: bytes, snapshot: Snapshot, walker: Walker) -> Below:
    """Return a folder of a search.

    Raises:
        Unplannable: it is not a folder whose files the index covers.
        OSError: it is not there.

    """
    if b"//" in operand:
        raise Unplannable
    return Below(operand, *locate_folder(operand, cwd, snapshot, walker))


def check_cover(snapshot: Snapshot, walker: Walker) -> None:
    """Check that what lies in the project is known: every file is covered, or below an entry that is taken out.

    Raises:
        Unplannable: it is not.

    """
    if snapshot.excluded is None or walker.differs_from_ripgrep or walker.unreadable:
        raise Unplannable
    if "unreadable" in snapshot.table.skipped.values():
        raise Unplannable


class Rules(Protocol):
    """Which files and folders a walk comes to, by their paths below the folder that it begins with."""

    def has_file(self, path: bytes) -> bool:
        """Return whether a file is searched."""

    def enters(self, path: bytes) -> bool:
        """Return whether a folder is entered."""


def find_entries(
    below: Below, likely: Iterable[bytes], snapshot: Snapshot, rules: Rules
) -> list[Entry]:
    """Return what has to be named below a folder, in the order of a walk.

    ``likely``: files of the table that may matter, by path from the root.

    Raises:
        Unplannable: it is too much, or its order is not known.

    """
    files = [path for path, mark in snapshot.pending.items() if mark.ours]
    files += [path for path in likely if path not in snapshot.pending]
    walk = _Walk(rules)
    kinds: dict[bytes, bool] = {}
    for path in files:
        checkpoint()
        inner = path.removeprefix(below.lead)
        if path.startswith(below.lead) and walk.comes_to(inner, is_folder=False):
            kinds[inner] = False
    for path, is_folder in (snapshot.excluded or {}).items():
        checkpoint()
        inner = path.removeprefix(below.lead)
        if path.startswith(below.lead) and walk.comes_to(inner, is_folder=is_folder):
            kinds[inner] = is_folder
    if len(kinds) > MOST_ENTRIES:
        raise Unplannable
    order = _order(below.folder, kinds)
    return [Entry(below.prefix + inner, kinds[inner]) for inner in order]


class _Walk:
    """Remembers which folders a walk enters."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._enters: dict[bytes, bool] = {b"": True}

    def comes_to(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether a file is searched, or a folder entered."""
        if not self._enters_all(path.rpartition(b"/")[0]):
            return False
        if is_folder:
            return self._rules.enters(path)
        return self._rules.has_file(path)

    def _enters_all(self, folder: bytes) -> bool:
        """Return whether a folder and each one above it are entered."""
        answer = self._enters.get(folder)
        if answer is None:
            parent = folder.rpartition(b"/")[0]
            answer = self._enters_all(parent) and self._rules.enters(folder)
            self._enters[folder] = answer
        return answer


def _order(folder: bytes, paths: Iterable[bytes]) -> list[bytes]:
    """Return paths in the order of a walk of their folder; what is gone by now is left out.

    Raises:
        Unplannable: there are too many folders, or too much is in one.

    """
    entries = set(paths)
    names_in: dict[bytes, set[bytes]] = {b"": set()}
    """By folder: the names of wanted entries, and of folders that hold some."""
    for path in entries:
        parent, _, name = path.rpartition(b"/")
        while parent not in names_in:
            names_in[parent] = {name}
            parent, _, name = parent.rpartition(b"/")
        names_in[parent].add(name)
    if len(names_in) > MOST_FOLDERS:
        raise Unplannable
    ordered: list[bytes] = []
    waiting = [b""]
    while waiting:
        path = waiting.pop()
        if path in entries:
            ordered.append(path)
        if path in names_in:
            names = _list_names(os.path.join(folder, path), names_in[path])
            waiting += [os.path.join(path, name) for name in reversed(names)]
    return ordered


def _list_names(folder: bytes, wanted: Container[bytes]) -> list[bytes]:
    """Return the wanted names in a folder as it lists them."""
    checkpoint()
    names = os.listdir(folder)
    if len(names) > MOST_LISTED:
        raise Unplannable
    return [name for name in names if name in wanted]


def check_size(entries: Sequence[Entry]) -> None:
    """Check that names fit on a command line.

    Raises:
        Unplannable: they do not, or one would be read as standard input or as a flag.

    """
    if sum(len(entry.path) + 1 for entry in entries) > MOST_BYTES:
        raise Unplannable
    if any(entry.path == b"-" for entry in entries):
        raise Unplannable
