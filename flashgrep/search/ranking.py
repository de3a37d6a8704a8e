"""Which hit a reader wants first: definitions, whole words, sources, files named after what is asked."""

import re
from enum import IntEnum
from functools import lru_cache

from flashgrep.index.tiers import tier_of

_DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe"
    r"|extern|inline|virtual|override|open|sealed|data|const)\s+)*"
    r"(?:def|class|struct|interface|trait|enum|union|type|typedef|fn|func|fun|function|module|namespace|package|protocol"
    r"|impl|object|let|var|val|const|macro_rules!|#\s*define|sub|proc|extension|record|contract|defmodule|defp?)\b"
)
_C_FUNCTION = re.compile(r"^[A-Za-z_][\w\s*&:<>,]*\([^;]*$")

_tier_of = lru_cache(maxsize=1024)(tier_of)
"""Hits of one file stand together; its tier costs as much as all the rest of ranking one."""


class Definition(IntEnum):
    """How surely a line defines a name, the best first."""

    DEFINED = 0
    VALUE = 1
    """A variable, a field, a constant: less often what is meant than a function or a type of that name."""
    DECLARED = 2
    """A prototype, an overload, an extension of what is defined elsewhere."""
    OTHER_CASE = 3
    """The name has other capital letters."""
    PERHAPS = 4
    """It looks so, or it is the heading of a text."""
    USED = 5


def rank_key(
    words: tuple[str, ...], path: bytes, line: tuple[str, int, int], parsed: Definition | None = None
) -> tuple[object, ...]:
    """Return what hits are sorted by, best first; ``line``: its text, where the match starts in it, its number.

    ``parsed``: what the file's symbols say of the line. Order: a definition of what was asked; whole word before part
    of a word; tier of the file; a file named after it; then path and line, so that equal hits keep one order for ever.
    """
    text, at, number = line
    word = words[0]
    end = at + len(word)
    whole = not (_is_word(text[at - 1 : at]) and _is_word(word[:1])) and not (
        _is_word(text[end : end + 1]) and _is_word(word[-1:])
    )
    stem = path.rpartition(b"/")[2].partition(b".")[0].lower()
    named = stem == word.lower().encode()
    if parsed is None:
        parsed = Definition.PERHAPS if whole and _defines(text, at, end) else Definition.USED
    return (parsed, not whole, _tier_of(path), not named, path, number)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _defines(text: str, at: int, end: int) -> bool:
    head = text[:at]
    match = _DEFINES.match(text, 0, end)  # what is asked may begin with the keyword itself: "def main"
    if match and at - 2 <= match.end() < end:  # a space, perhaps a pointer's star
        return True
    return bool(head and not head[0].isspace() and _C_FUNCTION.match(text) and "=" not in head and "(" not in head)
