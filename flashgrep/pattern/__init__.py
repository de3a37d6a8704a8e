"""What to look for: literal or regular expression, its matcher, and the grams a text must hold to match."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Literal, TypeVar

from flashgrep.errors import BadPattern
from flashgrep.pattern.gram_plan import (
    ANYTHING,
    FOLDS,
    GRAM,
    MAX_PARTS,
    NOTHING,
    AllOf,
    AnyOf,
    Gram,
    GramExpr,
    any_of,
    grams_in,
    plan_grams,
)
from flashgrep.pattern.lexer import Flags
from flashgrep.pattern.matcher import LineMatch, Matcher
from flashgrep.pattern.parser import as_line, as_word, literal_texts, parse_texts, within_lines
from flashgrep.pattern.tree import Node

__all__ = [
    "ANYTHING",
    "FOLDS",
    "GRAM",
    "NOTHING",
    "AllOf",
    "AnyOf",
    "Gram",
    "GramExpr",
    "LineMatch",
    "Matcher",
    "Pattern",
]

MAX_TEXT = 64 * 1024  # Characters over all texts; a longer pattern is a mistake, and reading it would hold the loop.
SHORT = 2000  # Characters; what people and agents write by hand is far shorter.
CACHED_LONG = 2
CACHED = 64  # Compiled patterns kept: RE2 takes at most 8 MB for each usual one.

_NAME = re.compile(r"\\b([A-Za-z0-9_]+)\\b")
_ONE_LINE = re.compile(r"[ -~]+")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_FOLDING = re.compile("[\u017f\u212a]")

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A query as a value: it matches where any of its texts does."""

    texts: tuple[str, ...]
    mode: Literal["literal", "regex"] = "regex"
    case: Literal["sensitive", "insensitive", "smart"] = "smart"
    word: bool = False
    line: bool = False
    multiline: bool = False
    dotall: bool = False
    crlf: bool = False

    def __str__(self) -> str:
        marks = [name for name in ("word", "line", "multiline", "dotall", "crlf") if getattr(self, name)]
        return " ".join([self.mode, self.case, *marks, " | ".join(map(repr, self.texts))])

    @property
    def whole_words(self) -> str:
        r"""A text whose identifiers stand whole wherever this matches: with `word`, or of `\bname\b`; may be empty."""
        if len(self.texts) != 1:
            return ""
        if self.mode == "regex":
            found = _NAME.fullmatch(self.texts[0])
            return found[1] if found else self.texts[0] if self.word and _PLAIN.fullmatch(self.texts[0]) else ""
        # The long s and the sign of Kelvin stand for letters of ASCII, and part a word here alone.
        return self.texts[0] if self.word and not _FOLDING.search(self.texts[0]) else ""

    def matcher(self) -> Matcher:
        """Return the compiled pattern, kept for later calls.

        Raises:
            BadPattern: what is wrong and where, as a character offset into its text.
        """
        return _matcher(self)

    def grams(self) -> GramExpr:
        """Return which grams a text must hold for this to match anywhere in it.

        Raises:
            BadPattern: as `matcher`.
        """
        return _grams(self)


class _Cache(Generic[Made]):
    """What is made of patterns; long ones apart and few, for the tree of a text of 64 KiB takes tens of megabytes."""

    def __init__(self, make: Callable[[Pattern], Made]) -> None:
        self.short = lru_cache(maxsize=CACHED)(make)
        self.long = lru_cache(maxsize=CACHED_LONG)(make)

    def __call__(self, pattern: Pattern) -> Made:
        return (self.short if sum(map(len, pattern.texts)) <= SHORT else self.long)(pattern)


@_Cache
def _tree(pattern: Pattern) -> Node:
    if sum(map(len, pattern.texts)) > MAX_TEXT or not pattern.texts:
        raise BadPattern(f"a pattern has 1 to {MAX_TEXT} characters", at=0, construct="")
    insensitive, smart = pattern.case == "insensitive", pattern.case == "smart"
    if pattern.mode == "literal":
        node = literal_texts(pattern.texts, insensitive=insensitive, smart=smart)
    else:
        flags = Flags(insensitive=insensitive, dot_newline=pattern.dotall, crlf=pattern.crlf)
        node = parse_texts(pattern.texts, flags, smart=smart)
    # The order matters: line ends are taken out of classes before -x or -w adds conditions about them.
    if not pattern.multiline:
        node = within_lines(node, crlf=pattern.crlf)
    # -x implies -w's condition, and wins over it as in ripgrep.
    if pattern.line:
        return as_line(node, crlf=pattern.crlf)
    return as_word(node) if pattern.word else node


@_Cache
def _matcher(pattern: Pattern) -> Matcher:
    return Matcher(_tree(pattern), multiline=pattern.multiline, crlf=pattern.crlf)


@_Cache
def _grams(pattern: Pattern) -> GramExpr:
    text = pattern.texts[0] if len(pattern.texts) == 1 else ""
    is_bare = pattern.mode == "literal" and not (pattern.word or pattern.line)
    if is_bare and len(text) <= MAX_PARTS and _ONE_LINE.fullmatch(text):  # most questions: a tenth of the time
        folded = text.lower()
        need = grams_in(folded.encode())
        is_loose = pattern.case == "insensitive" or (pattern.case == "smart" and folded == text)
        return any_of((need, Gram(FOLDS))) if is_loose and ("s" in folded or "k" in folded) else need
    return plan_grams(_tree(pattern), multiline=pattern.multiline)


def forget_patterns() -> None:
    """Drop all compiled patterns."""
    for cache in (_tree, _matcher, _grams):
        cache.short.cache_clear()
        cache.long.cache_clear()
