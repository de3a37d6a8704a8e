"""Patterns of the rule files beside .gitignore, as pathspec reads them and RE2 matches them.

Those of CODEOWNERS and .gitattributes are written as in .gitignore, with exceptions of each format.
"""

from contextlib import suppress
from typing import Any

import re2
from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern


def read_glob(glob: str) -> str | None:
    """Return a pattern as a regular expression; None: a comment, nothing, or malformed."""
    regex: str | None = None
    with suppress(GitIgnorePatternError):
        regex, _ = GitIgnoreBasicPattern.pattern_to_regex(glob)
    return regex


def open_set(most_memory: int) -> Any:
    """Return an empty set of regular expressions; ``most_memory``: bytes of what it compiles to."""
    options = re2.Options()
    options.max_mem = most_memory
    options.never_capture = True
    options.log_errors = False
    return re2.Set.SearchSet(options)
