"""What a search costs by itself, and from how many files on a plan for it costs less.

A plan takes 17 ms of processor time: Python starts, the daemon is asked. Measured on trees of 80 to 4,141 files, programs
without a plan take about as long as these numbers say; below the size that they give, a command runs as it was typed.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from flashgrep.index.table import FileTable
from flashgrep.parts.hook import find_plan, git_plan, grep_arguments
from flashgrep.parts.ripgrep import arguments as ripgrep_arguments
from flashgrep.parts.ripgrep.arguments import Unplannable

FIND_FILES: Final = 9_000
"""GNU find takes 1.8 µs for a file."""
RIPGREP_FILES: Final = 2_400
"""ripgrep takes 7 µs for a file."""
FILE_BYTES: Final = 6_000
"""To open a file takes grep as long as to read so many bytes."""
GREP_BYTES: Final = 16_000_000
"""GNU grep reads 1 MB in 1 ms."""
GREP_LINKS_BYTES: Final = 24_000_000
"""With ``-R`` a plan takes 2 to 4 µs more for each entry: links are looked for."""
GIT_BYTES: Final = 32_000_000
"""git grep reads with several threads."""


class Size(NamedTuple):
    """Indexed files, and the bytes in them."""

    files: int
    size: int

    @property
    def weight(self) -> int:
        """What it takes to read them, in bytes."""
        return self.size + self.files * FILE_BYTES


@dataclass(frozen=True, slots=True)
class SearchedTree:
    """The files of the project in which a line runs."""

    root: str
    folder: str
    """Where the line runs."""
    table: FileTable

    def measure(self, paths: Sequence[str]) -> Size:
        """Return the size of what a command searches; nothing of what is not in the project, for which no plan is made."""
        files = 0
        size = 0
        for path in paths or ["."]:
            place = os.path.join(self.folder, path)
            inside = os.path.relpath(place, self.root)
            if inside == ".":
                inside = ""
            rows = self._find_rows(os.fsencode(inside))
            files += len(rows)
            size += self.table.count_bytes(rows)
        return Size(files, size)

    def _find_rows(self, path: bytes) -> range:
        at = self.table.find(path)
        if at is None:
            return self.table.rows_below(path)
        return range(at, at + 1)


def is_small(name: str, words: Sequence[str | None], tree: SearchedTree) -> bool:
    """Return whether a program searches by itself sooner than a plan is made; ``None``: a word that the shell computes."""
    paths: list[str] = []
    known = [word for word in words if word is not None]
    # What is computed may be a path, so all of the project counts.
    if len(known) == len(words):
        try:
            paths = _FIND_PATHS[name](known)
        except Unplannable:
            return False
    searched = tree.measure(paths)
    if name == "grep" and _follows_links(known):
        return searched.weight < GREP_LINKS_BYTES
    return _IS_SMALL[name](searched)


def _follows_links(words: Sequence[str]) -> bool:
    try:
        return grep_arguments.parse(words).follows_links
    except Unplannable:
        return False


def _find_grep_paths(words: Sequence[str]) -> list[str]:
    arguments = grep_arguments.parse(words)
    # Without -r it gets files from another program.
    if not arguments.is_recursive:
        return []
    return _without_pattern(arguments)


def _find_git_paths(words: Sequence[str]) -> list[str]:
    operands = _without_pattern(git_plan.read_arguments(words))
    return [path for path in operands if not path.startswith(":") and "*" not in path]


def _without_pattern(arguments: grep_arguments.GrepArguments) -> list[str]:
    if arguments.has_pattern_flags:
        return arguments.operands
    return arguments.operands[1:]


def _find_ripgrep_paths(words: Sequence[str]) -> list[str]:
    arguments = ripgrep_arguments.parse(words)
    if {"regexp", "file", "files"}.isdisjoint(flag.name for flag in arguments.flags):
        return arguments.positional[1:]
    return arguments.positional


def _find_starts(words: Sequence[str]) -> list[str]:
    return find_plan.parse(words).starts


_FIND_PATHS: Final[Mapping[str, Callable[[Sequence[str]], list[str]]]] = {
    "find": _find_starts,
    "git": _find_git_paths,
    "grep": _find_grep_paths,
    "rg": _find_ripgrep_paths,
}
_IS_SMALL: Final[Mapping[str, Callable[[Size], bool]]] = {
    "find": lambda searched: searched.files < FIND_FILES,
    "git": lambda searched: searched.weight < GIT_BYTES,
    "grep": lambda searched: searched.weight < GREP_BYTES,
    "rg": lambda searched: searched.files < RIPGREP_FILES,
}
