"""Who owns which file, as a repository's CODEOWNERS says.

The formats of GitHub and of GitLab: a pattern a line with its owners, of which the last that matches counts; in GitLab's
sections, the last of each section, unless a line with ``!`` in the section takes the file out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.model import path_to_text
from flashgrep.files.rule_sets import open_set, read_glob

PLACES: Final = (
    b".github/CODEOWNERS",
    b"CODEOWNERS",
    b"docs/CODEOWNERS",
    b".gitlab/CODEOWNERS",
)
"""Where the file may be; the first that is there counts."""
MOST_BYTES: Final = 3 * 1024 * 1024
"""Of the file, as GitHub has it."""
MOST_GLOB: Final = 4096
MOST_TOGETHER: Final = 256 * 1024
"""Characters of the patterns in a set: one that needs more than its memory cannot be compiled."""
MOST_MEMORY: Final = 64 * 1024 * 1024
SECTION: Final = re.compile(
    r"\^?\[(?P<name>[^\]]+)\](?:\[\d+\])?(?:\s+(?P<owners>.*))?"
)
COMMENT: Final = re.compile(r"(?:^|\s)#.*")
BLANK: Final = re.compile(r"(?<!\\)\s+")


@dataclass(slots=True)
class _Patterns:
    """Patterns as regular expressions, compiled when they are first needed."""

    regexes: list[str] = field(default_factory=list)
    batches: list[tuple[list[int], Any]] | None = None
    """Sets of patterns, the last first, each after the numbers of its patterns."""

    def find_last(self, path: str) -> int | None:
        """Return the number of the last one that matches."""
        if self.batches is None:
            self.batches = _compile(self.regexes)
        for numbers, batch in self.batches:
            matching = batch.Match(path)
            if matching:
                last: int = max(matching)
                return numbers[last]
        return None


@dataclass(slots=True)
class _Section:
    """Patterns, of which the last that matches a file names its owners."""

    owners: tuple[str, ...] = ()
    """Of patterns that name none."""
    patterns: _Patterns = field(default_factory=_Patterns)
    owners_of: list[tuple[str, ...]] = field(default_factory=list)
    exclusions: _Patterns = field(default_factory=_Patterns)
    """Files that are nobody's here, whatever comes before or after."""

    def add(self, glob: str, owners: tuple[str, ...]) -> None:
        """Add a line with its owners."""
        pattern = _read_pattern(glob)
        if pattern is not None:
            self.patterns.regexes.append(pattern)
            self.owners_of.append(owners or self.owners)

    def exclude(self, glob: str) -> None:
        """Add a line of GitLab that begins with ``!``; ``glob``: the rest."""
        pattern = _read_pattern(glob)
        if pattern is not None:
            self.exclusions.regexes.append(pattern)

    def find_owners(self, path: str) -> tuple[str, ...]:
        """Return the owners of a file."""
        last = self.patterns.find_last(path)
        if last is None or self.exclusions.find_last(path) is not None:
            return ()
        return self.owners_of[last]


def _compile(patterns: Sequence[str]) -> list[tuple[list[int], Any]]:
    """Return the patterns in sets, the last first, each after the numbers of its patterns."""
    batches: list[tuple[list[int], Any]] = []
    room = 0
    for number, pattern in enumerate(patterns):
        if len(pattern) > room:
            batches.append(([], open_set(MOST_MEMORY)))
            room = MOST_TOGETHER
        numbers, batch = batches[-1]
        if batch.Add(pattern) >= 0:
            numbers.append(number)
        room -= len(pattern)
    for _, batch in batches:
        batch.Compile()
    return batches[::-1]


class CodeOwners:
    """The owners that a CODEOWNERS file names, in lower case."""

    def __init__(self, text: str) -> None:
        """Read the file's text; lines that are malformed name nobody, as for GitHub."""
        self._sections = {"": _Section()}
        section = self._sections[""]
        lines = [COMMENT.sub("", line).strip() for line in text.split("\n")]
        # Only GitLab has sections, and exclusions.
        of_gitlab = any(SECTION.fullmatch(line) for line in lines)
        for line in lines:
            if not line:
                continue
            heading = SECTION.fullmatch(line)
            if heading is not None:
                name = heading["name"].strip().lower()
                section = self._sections.setdefault(name, _Section())
                section.owners = _read_owners((heading["owners"] or "").split())
                continue
            glob, *owners = BLANK.split(line)
            if of_gitlab and glob.startswith("!"):
                section.exclude(glob[1:])
            else:
                section.add(glob, _read_owners(owners))

    @property
    def names(self) -> frozenset[str]:
        """All owners that are named."""
        return frozenset(
            owner
            for section in self._sections.values()
            for owners in section.owners_of
            for owner in owners
        )

    def find_owners(self, path: bytes) -> frozenset[str]:
        """Return the owners of a file, by its path relative to the root; none: nobody is named."""
        text = path_to_text(path)
        owners = frozenset[str]()
        for section in self._sections.values():
            if section.owners_of:
                owners |= frozenset(section.find_owners(text))
        return owners


def _read_owners(words: list[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words if "@" in word)


def _read_pattern(glob: str) -> str | None:
    # Neither format has these so, which .gitignore has.
    if glob.startswith("!") or "[" in glob or len(glob) > MOST_GLOB:
        return None
    return read_glob(glob)


MOST_COMPILED: Final = 128 << 10
"""Bytes of a file that stays compiled, and of all: 500 patterns, 20 kB, take 20 ms for every page otherwise. Those of
3,000 patterns, 84 kB, grow to 60 MB, so that they are forgotten when there is nothing to do."""
COMPILED: Final = BoundedCache[bytes, CodeOwners](MOST_COMPILED, MOST_COMPILED)
"""By the text of the file."""
