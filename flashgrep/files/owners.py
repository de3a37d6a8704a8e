"""Who owns which file, as a repository's CODEOWNERS says.

The formats of GitHub and of GitLab: a pattern a line with its owners, of which the last that matches counts; in GitLab's
sections, the last of each section.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from pathspec import PathSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern

from flashgrep.base.model import path_to_text

PLACES: Final = (
    b".github/CODEOWNERS",
    b"CODEOWNERS",
    b"docs/CODEOWNERS",
    b".gitlab/CODEOWNERS",
)
"""Where the file may be; the first that is there counts."""
MOST_BYTES: Final = 3 * 1024 * 1024
"""Of the file, as GitHub has it."""
MOST_PATTERNS: Final = 20_000
SECTION: Final = re.compile(
    r"\^?\[(?P<name>[^\]]+)\](?:\[\d+\])?(?:\s+(?P<owners>.*))?"
)
COMMENT: Final = re.compile(r"(?:^|\s)#.*")
BLANK: Final = re.compile(r"(?<!\\)\s+")


@dataclass(slots=True)
class _Section:
    """Patterns, of which the last that matches a file names its owners."""

    owners: tuple[str, ...] = ()
    """Of patterns that name none."""
    patterns: list[GitIgnoreBasicPattern] = field(default_factory=list)
    owners_of: list[tuple[str, ...]] = field(default_factory=list)
    spec: PathSpec[GitIgnoreBasicPattern] | None = None

    def find_owners(self, path: str) -> tuple[str, ...]:
        """Return the owners of a file."""
        # Compiled on first use: a file with many sections has some that nobody asks for.
        if self.spec is None:
            self.spec = PathSpec(self.patterns, backend="re2")
        index = self.spec.check_file(path).index
        if index is None:
            return ()
        return self.owners_of[index]


class CodeOwners:
    """The owners that a CODEOWNERS file names, in lower case."""

    def __init__(self, text: str) -> None:
        """Read the file's text; lines that are malformed name nobody, as for GitHub."""
        self._sections = {"": _Section()}
        section = self._sections[""]
        for raw_line in text.splitlines()[:MOST_PATTERNS]:
            line = COMMENT.sub("", raw_line).strip()
            if not line:
                continue
            heading = SECTION.fullmatch(line)
            if heading is not None:
                name = heading["name"].strip().lower()
                section = self._sections.setdefault(name, _Section())
                section.owners = _read_owners((heading["owners"] or "").split())
                continue
            glob, *owners = BLANK.split(line)
            pattern = _read_pattern(glob)
            if pattern is not None:
                section.patterns.append(pattern)
                section.owners_of.append(_read_owners(owners) or section.owners)

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
            if section.patterns:
                owners |= frozenset(section.find_owners(text))
        return owners


def _read_owners(words: list[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words if "@" in word)


def _read_pattern(glob: str) -> GitIgnoreBasicPattern | None:
    # Neither format has these, which .gitignore has.
    if glob.startswith("!") or "[" in glob:
        return None
    try:
        pattern = GitIgnoreBasicPattern(glob)
    except GitIgnorePatternError:
        return None
    # A comment, or nothing.
    if pattern.include is None:
        return None
    return pattern
