"""What to look for: literal or regular expression, its matcher, and the grams a text must hold to match."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from flashgrep.errors import BadPattern
from flashgrep.pattern.build import as_line, as_word, literal_texts, parse_texts, within_lines
from flashgrep.pattern.cursor import Flags
from flashgrep.pattern.grams import ANYTHING, GRAM, NOTHING, AllOf, AnyOf, Gram, GramExpr
from flashgrep.pattern.matcher import LineMatch, Matcher
from flashgrep.pattern.nodes import Node
from flashgrep.pattern.plan import plan

__all__ = ["ANYTHING", "GRAM", "NOTHING", "AllOf", "AnyOf", "Gram", "GramExpr", "LineMatch", "Matcher", "Pattern"]

MAX_TEXT = 64 * 1024  # Characters over all texts; a longer pattern is a mistake, and reading it would hold the loop.
SHORT = 2000  # Characters; what people and agents write by hand is far shorter.
CACHED_LONG = 2
CACHED = 64  # Compiled patterns kept: RE2 takes at most 8 MB for each usual one.


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

    def matcher(self) -> Matcher:
        """Return the compiled pattern, kept for later calls.

        Raises:
            BadPattern: what is wrong and where, as a character offset into its text.
        """
        return (_matcher if self.is_short() else _long_matcher)(self)

    def grams(self) -> GramExpr:
        """Return which grams a text must hold for this to match anywhere in it.

        Raises:
            BadPattern: as `matcher`.
        """
        return (_grams if self.is_short() else _long_grams)(self)

    def is_short(self) -> bool:
        """Return whether compiling this takes little enough memory to be kept among many."""
        return sum(map(len, self.texts)) <= SHORT


def _tree_of(pattern: Pattern) -> Node:
    return (_tree if pattern.is_short() else _long_tree)(pattern)


def _make_matcher(pattern: Pattern) -> Matcher:
    return Matcher(_tree_of(pattern), multiline=pattern.multiline, crlf=pattern.crlf)


def _make_grams(pattern: Pattern) -> GramExpr:
    return plan(_tree_of(pattern), multiline=pattern.multiline)


def _make_tree(pattern: Pattern) -> Node:
    if sum(map(len, pattern.texts)) > MAX_TEXT or not pattern.texts:
        raise BadPattern(f"a pattern has 1 to {MAX_TEXT} characters", at=0, construct="")
    node = _parsed(pattern)
    if not pattern.multiline:
        node = within_lines(node, crlf=pattern.crlf)
    if pattern.line:
        return as_line(node, crlf=pattern.crlf)
    return as_word(node) if pattern.word else node


# Long ones apart, and few: the tree of a text of 64 KiB takes tens of megabytes.
_matcher, _long_matcher = lru_cache(maxsize=CACHED)(_make_matcher), lru_cache(maxsize=CACHED_LONG)(_make_matcher)
_grams, _long_grams = lru_cache(maxsize=CACHED)(_make_grams), lru_cache(maxsize=CACHED_LONG)(_make_grams)
_tree, _long_tree = lru_cache(maxsize=CACHED)(_make_tree), lru_cache(maxsize=CACHED_LONG)(_make_tree)


def _parsed(pattern: Pattern) -> Node:
    insensitive, smart = pattern.case == "insensitive", pattern.case == "smart"
    if pattern.mode == "literal":
        return literal_texts(pattern.texts, insensitive=insensitive, smart=smart)
    flags = Flags(insensitive=insensitive, dot_newline=pattern.dotall, crlf=pattern.crlf)
    return parse_texts(pattern.texts, flags, smart=smart)


def forget_patterns() -> None:
    """Let go of all compiled patterns."""
    for compiled in (_matcher, _grams, _tree):
        compiled.cache_clear()
