"""What to search for: a literal or regular expression, its matcher, and the grams that a matching text must have."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Literal, TypeVar

from flashgrep.base.errors import BadPattern
from flashgrep.pattern.gram_plan import (
    ANYTHING,
    FOLDS,
    GRAM,
    MAX_PARTS,
    NO_WORD,
    NOTHING,
    AllOf,
    AnyOf,
    Gram,
    GramExpr,
    all_of,
    any_of,
    grams_in,
    plan_grams,
    word_end,
)
from flashgrep.pattern.lexer import Flags
from flashgrep.pattern.matcher import LineMatch, Matcher
from flashgrep.pattern.parser import (
    as_line,
    as_word,
    literal_texts,
    parse_texts,
    within_lines,
)
from flashgrep.pattern.regex_tree import Node, edge

__all__ = [
    "ANYTHING",
    "FOLDS",
    "GRAM",
    "NOTHING",
    "NO_WORD",
    "AllOf",
    "AnyOf",
    "Gram",
    "GramExpr",
    "LineMatch",
    "Matcher",
    "Pattern",
]

MAX_TEXT = (
    64 * 1024
)  # Characters of all texts; a longer pattern is a mistake, and parsing it would block the loop.
SHORT = 2000  # Characters; handwritten patterns are far shorter.
CACHED_LONG = 2
CACHED = 64  # Compiled patterns; RE2 takes at most 8 MB for an ordinary one.

_NAME = re.compile(r"\\b([A-Za-z0-9_]+)\\b")
_ONE_LINE = re.compile(r"[ -~]+")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_FOLDING = re.compile("[\u017f\u212a]")

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A query as a value: it matches wherever one of its texts does."""

    texts: tuple[str, ...]
    mode: Literal["literal", "regex"] = "regex"
    case: Literal["sensitive", "insensitive", "smart"] = "smart"
    word: bool = False
    line: bool = False
    multiline: bool = False
    dotall: bool = False
    crlf: bool = False

    def __str__(self) -> str:
        marks = [
            name
            for name in ("word", "line", "multiline", "dotall", "crlf")
            if getattr(self, name)
        ]
        return " ".join(
            [self.mode, self.case, *marks, " | ".join(map(repr, self.texts))]
        )

    @property
    def whole_words(self) -> str:
        r"""A text whose identifiers are whole words in every match (`word`, or `\bname\b`); empty if there is none."""
        if len(self.texts) != 1:
            return ""
        if self.mode == "regex":
            match = _NAME.fullmatch(self.texts[0])
            if match:
                return match[1]
            if self.word and _PLAIN.fullmatch(self.texts[0]):
                return self.texts[0]
            return ""
        # The long s and the Kelvin sign match ASCII letters, but here they would split
        # an identifier.
        if self.word and not _FOLDING.search(self.texts[0]):
            return self.texts[0]
        return ""

    def matcher(self) -> Matcher:
        """Return the compiled pattern; it is cached.

        Raises:
            BadPattern: with the problem and its character offset in the text.
        """
        return _matcher(self)

    def matches_empty(self) -> bool:
        """Return whether a match may be empty, as for ``x*``, ``^`` or ``a||b``: then nearly every line has one.

        Raises:
            BadPattern: as `matcher`.

        """
        self.matcher()  # compiled too, since the tree alone may be of a pattern that is too large
        return edge(_tree(self), first=True).empty

    def grams(self) -> GramExpr:
        """Return which grams a text must have for the pattern to match anywhere in it; cached.

        Raises:
            BadPattern: as `matcher`.
        """
        return _grams(self)


class _Cache(Generic[Made]):
    """A cache by pattern. Long patterns have a small one of their own: the tree of 64 KiB takes tens of megabytes."""

    def __init__(self, make: Callable[[Pattern], Made]) -> None:
        self.short = lru_cache(maxsize=CACHED)(make)
        self.long = lru_cache(maxsize=CACHED_LONG)(make)

    def __call__(self, pattern: Pattern) -> Made:
        return (self.short if sum(map(len, pattern.texts)) <= SHORT else self.long)(
            pattern
        )


@_Cache
def _tree(pattern: Pattern) -> Node:
    if sum(map(len, pattern.texts)) > MAX_TEXT or not pattern.texts:
        raise BadPattern(
            f"a pattern must have 1 to {MAX_TEXT} characters", at=0, construct=""
        )
    insensitive = pattern.case == "insensitive"
    smart = pattern.case == "smart"
    if pattern.mode == "literal":
        node = literal_texts(pattern.texts, insensitive=insensitive, smart=smart)
    else:
        flags = Flags(
            insensitive=insensitive, dot_newline=pattern.dotall, crlf=pattern.crlf
        )
        node = parse_texts(pattern.texts, flags, smart=smart)
    # The order matters: line ends are removed from classes before -x or -w adds
    # conditions on them.
    if not pattern.multiline:
        node = within_lines(node, crlf=pattern.crlf)
    # -x implies the condition of -w and takes precedence over it, as in ripgrep.
    if pattern.line:
        return as_line(node, crlf=pattern.crlf)
    if pattern.word:
        return as_word(node)
    return node


@_Cache
def _matcher(pattern: Pattern) -> Matcher:
    return Matcher(_tree(pattern), multiline=pattern.multiline, crlf=pattern.crlf)


@_Cache
def _grams(pattern: Pattern) -> GramExpr:
    if len(pattern.texts) == 1:
        text = pattern.texts[0]
    else:
        text = ""
    is_bare = pattern.mode == "literal" and not (pattern.word or pattern.line)
    if (
        is_bare and len(text) <= MAX_PARTS and _ONE_LINE.fullmatch(text)
    ):  # most queries; takes a tenth of the time
        folded = text.lower()
        need = grams_in(folded.encode())
        is_insensitive = pattern.case == "insensitive" or (
            pattern.case == "smart" and folded == text
        )
        if is_insensitive and ("s" in folded or "k" in folded):
            return any_of((need, Gram(FOLDS)))
        return need
    need = plan_grams(_tree(pattern), multiline=pattern.multiline)
    return all_of((need, word_end(pattern.whole_words.encode().lower())))


def forget_patterns() -> None:
    """Drop all compiled patterns."""
    for cache in (_tree, _matcher, _grams):
        cache.short.cache_clear()
        cache.long.cache_clear()
