"""Wildcards of the shell as grep and find compare them with names: only what every C library agrees on."""

import re
from functools import lru_cache
from typing import Final

from flashgrep.parts.ripgrep.arguments import Unplannable

_PLAIN_BRACKET: Final = re.compile(rb"\[[A-Za-z0-9_]+\]")


def check_glob(text: str) -> bytes:
    """Return a wildcard that is understood, as bytes.

    Raises:
        Unplannable: it has a slash, an escape, or a bracket of more than letters and digits.

    """
    glob = text.encode(errors="surrogateescape")
    rest = _PLAIN_BRACKET.sub(b"", glob)
    if not glob or any(char in rest for char in (b"/", b"\\", b"[")):
        raise Unplannable
    return glob


@lru_cache(maxsize=256)
def compile_glob(glob: bytes, *, ignores_case: bool = False) -> re.Pattern[bytes]:
    """Return the wildcard as a regular expression for a whole text; ``*`` matches slashes, too."""
    pattern = b""
    at = 0
    while at < len(glob):
        char = glob[at : at + 1]
        bracket = _PLAIN_BRACKET.match(glob, at)
        if bracket:
            pattern += bracket.group()
            at = bracket.end()
            continue
        if char == b"*":
            pattern += b".*"
        elif char == b"?":
            pattern += b"."
        else:
            pattern += re.escape(char)
        at += 1
    flags = re.DOTALL
    if ignores_case:
        flags |= re.IGNORECASE
    return re.compile(pattern, flags)


def matches(glob: bytes, text: bytes, *, ignores_case: bool = False) -> bool:
    """Return whether a wildcard matches a whole text.

    Raises:
        Unplannable: it depends on the locale.

    """
    if not text.isascii() and (b"?" in glob or ignores_case):
        raise Unplannable
    return compile_glob(glob, ignores_case=ignores_case).fullmatch(text) is not None


def has_name(glob: bytes, path: bytes) -> bool:
    """Return whether a wildcard matches the last name of a path."""
    return matches(glob, path.rpartition(b"/")[2])


def has_path(glob: bytes, path: bytes) -> bool:
    """Return whether a wildcard matches a path, or what follows any of its slashes."""
    rest = path
    while True:
        if matches(glob, rest):
            return True
        _, slash, rest = rest.partition(b"/")
        if not slash:
            return False
