"""Patterns of GNU grep, written as regular expressions of ours that match at least as much.

The index rules a file out only if it lacks grams that every match has, so a pattern may become wider here, never
narrower: anchors and word boundaries are dropped, most brackets and back-references match anything.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Literal, NamedTuple

from flashgrep.parts.ripgrep.arguments import Unplannable

Dialect = Literal["basic", "extended", "fixed", "perl"]

ANY: Final = "(?s:.)"
ANYTHING: Final = "(?s:.*)"
EMPTY: Final = "(?:)"
_LARGEST_REPEAT: Final = 255
"""More is left to grep."""
GREPS_LARGEST_REPEAT: Final = 32_767
"""Above it grep itself refuses."""
MOST_REPEATED: Final = 2_000
MOST_UNROLLED: Final = 10_000
"""Of one repeat, and of a pattern with its repeats unrolled: GNU grep stays below 100 MB. ``a{1,10000}`` takes it 868 MB
and 6 s, ``(a{1,1000}){1,1000}`` more than 6 GB."""
_MOST_NESTED: Final = 40
_INTERVAL: Final = re.compile(r"(\d*)(,?)(\d*)")
_FOLDED: Final = {"i": "[iI\u0131\u0130]", "k": "[kK\u212a]", "s": "[sS\u017f]"}
"""Letters that have more forms than two where case does not count, as GNU grep folds them."""
_GNU_EMPTY: Final = frozenset("<>bB`'")
_GNU_ONE: Final = frozenset("wWsS")
_PERL_EMPTY: Final = frozenset("bBAzZG")
_PERL_ONE: Final = frozenset("wWsSdDhHvVNtnrfe")
_BASIC_SPECIALS: Final = frozenset("+?|(){}")


def widen(text: str, dialect: Dialect, *, ignores_case: bool) -> str:
    """Return a regular expression of ours that matches in every line in which grep's pattern does.

    Raises:
        Unplannable: it is not understood, or grep would reject it.

    """
    if dialect == "fixed":
        return "".join(_literal(char, ignores_case=ignores_case) for char in text)
    return _Reader(text, dialect, ignores_case=ignores_case).read()


def _literal(char: str, *, ignores_case: bool) -> str:
    if not ignores_case:
        return re.escape(char)
    if not char.isascii():
        # Folding beyond ASCII differs between libraries.
        return ANY
    return _FOLDED.get(char.lower(), re.escape(char))


def is_heavy(text: str, dialect: Dialect) -> bool:
    """Return whether a pattern's repeats make GNU grep take memory without measure; PCRE has limits of its own."""
    if dialect in {"fixed", "perl"}:
        return False
    reader = _Reader(text, dialect, ignores_case=False)
    # Of what is not understood up to its end, the beginning counts.
    with suppress(Unplannable, ValueError):
        reader.read()
    # grep says so itself, at once.
    if reader.largest > GREPS_LARGEST_REPEAT:
        return False
    return reader.largest > MOST_REPEATED or reader.weight > MOST_UNROLLED


class _Piece(NamedTuple):
    """A part of a pattern of ours, and how many characters it stands for with its repeats unrolled."""

    text: str
    weight: int = 1


class _Reader:
    """Reads one pattern from left to right; each group is a list of alternatives, each a list of pieces."""

    def __init__(self, text: str, dialect: Dialect, *, ignores_case: bool) -> None:
        self._text = text
        self._at = 0
        self._dialect = dialect
        self._ignores_case = ignores_case
        self._groups: list[list[list[_Piece]]] = [[[]]]
        self._times = 1
        self.largest = 0
        """The largest bound of a repeat."""
        self.weight = 0
        """Of the heaviest group so far."""

    def read(self) -> str:
        for token, value in self._tokens():
            self._take(token, value)
        if len(self._groups) != 1:
            raise Unplannable
        if self.largest > _LARGEST_REPEAT:
            self._close_group()
            raise Unplannable
        return self._close_group().text

    def _take(self, token: str, value: str) -> None:
        pieces = self._groups[-1][-1]
        match token:
            case "piece":
                pieces.append(_Piece(value))
            case "repeat":
                if not pieces:
                    raise Unplannable
                repeated = pieces[-1]
                weight = repeated.weight * max(1, self._times)
                pieces[-1] = _Piece(f"(?:{repeated.text}){value}", weight)
                self._times = 1
            case "or":
                self._groups[-1].append([])
            case "open":
                if len(self._groups) > _MOST_NESTED:
                    raise Unplannable
                self._groups.append([[]])
            case "close":
                if len(self._groups) == 1:
                    raise Unplannable
                group = self._close_group()
                self._groups[-1][-1].append(group)

    def _close_group(self) -> _Piece:
        alternatives = self._groups.pop()
        weight = sum(piece.weight for pieces in alternatives for piece in pieces)
        self.weight = max(self.weight, weight)
        texts = ["".join(piece.text for piece in pieces) for pieces in alternatives]
        return _Piece("(?:" + "|".join(texts) + ")", weight)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        while self._at < len(self._text):
            char = self._next()
            if char == "\\":
                yield self._read_escape()
            elif char == "[":
                yield "piece", self._read_bracket()
            elif char == ".":
                yield "piece", ANY
            elif char in "^$":
                # An anchor, or in the middle of a basic pattern the character itself.
                yield "piece", f"{re.escape(char)}?"
            elif char == "*":
                yield self._read_star()
            elif self._dialect == "basic":
                yield "piece", _literal(char, ignores_case=self._ignores_case)
            else:
                yield from self._read_special(char)

    def _next(self) -> str:
        char = self._text[self._at]
        self._at += 1
        return char

    def _follows(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _read_star(self) -> tuple[str, str]:
        if self._groups[-1][-1]:
            self._skip_manner()
            return "repeat", "*"
        # At the beginning of a basic pattern or group it is a star.
        if self._dialect == "basic":
            return "piece", r"\*"
        raise Unplannable

    def _read_special(self, char: str) -> Iterator[tuple[str, str]]:
        """Yield what a character of an extended or a Perl pattern means."""
        match char:
            case "(":
                if self._dialect == "perl" and self._follows("?"):
                    if not self._follows("?:"):
                        raise Unplannable
                    self._at += 2
                elif self._dialect == "perl" and self._follows("*"):
                    raise Unplannable
                yield "open", ""
            case ")":
                yield "close", ""
            case "|":
                yield "or", ""
            case "+" | "?":
                self._skip_manner()
                yield "repeat", char
            case "{":
                begins = self._text[self._at : self._at + 1]
                if not (begins.isdigit() or begins == ","):
                    yield "piece", r"\{"
                else:
                    yield "repeat", self._read_interval("}")
            case _:
                yield "piece", _literal(char, ignores_case=self._ignores_case)

    def _skip_manner(self) -> None:
        """Skip what makes a repeat of a Perl pattern lazy or possessive: it never matches more."""
        if self._dialect == "perl" and (self._follows("?") or self._follows("+")):
            self._at += 1

    def _read_interval(self, end: str) -> str:
        """Return a repeat that allows at least as much: without upper bounds, nested ones stay small."""
        bounds = _INTERVAL.match(self._text, self._at)
        if bounds is None or not self._text.startswith(end, bounds.end()):
            raise Unplannable
        self._at = bounds.end() + len(end)
        self._skip_manner()
        least = int(bounds[1] or 0)
        most = int(bounds[3] or least)
        is_empty = not (bounds[1] or bounds[3])
        if is_empty or (self._dialect == "perl" and not bounds[1]):
            raise Unplannable
        if bounds[2] and most < least:
            raise Unplannable
        self._times = max(least, int(bounds[3] or 0))
        self.largest = max(self.largest, self._times)
        return "+" if least else "*"

    def _read_escape(self) -> tuple[str, str]:
        if self._at == len(self._text):
            raise Unplannable
        char = self._next()
        if self._dialect == "basic" and char in _BASIC_SPECIALS:
            return self._read_basic_special(char)
        if char.isascii() and char.isdigit() and char != "0":
            return "piece", ANYTHING
        if self._dialect == "perl":
            empty = _PERL_EMPTY
            single = _PERL_ONE
        else:
            empty = _GNU_EMPTY
            single = _GNU_ONE
        if char in empty:
            return "piece", EMPTY
        if char in single:
            return "piece", ANY
        if char.isalnum() or not char.isascii():
            raise Unplannable
        return "piece", re.escape(char)

    def _read_basic_special(self, char: str) -> tuple[str, str]:
        match char:
            case "(":
                return "open", ""
            case ")":
                return "close", ""
            case "|":
                return "or", ""
            case "{":
                return "repeat", self._read_interval(r"\}")
            case "}":
                raise Unplannable
            case _:
                return "repeat", char

    def _read_bracket(self) -> str:
        """Return what a bracket expression matches: letters and digits that it lists, or anything."""
        start = self._at
        if self._follows("^"):
            self._at += 1
        # A bracket that comes first is one of the characters.
        if self._follows("]"):
            self._at += 1
        while not self._follows("]"):
            if self._at >= len(self._text):
                raise Unplannable
            if self._follows("[") and self._text[self._at + 1 : self._at + 2] in {
                ":",
                ".",
                "=",
            }:
                closing = self._text[self._at + 1] + "]"
                end = self._text.find(closing, self._at + 2)
                if end < 0:
                    raise Unplannable
                self._at = end + 2
            elif self._follows("\\") and self._dialect == "perl":
                self._at += 2
            else:
                self._at += 1
        listed = self._text[start : self._at]
        self._at += 1
        if listed.isascii() and listed.isalnum():
            alternatives = [
                _literal(char, ignores_case=self._ignores_case) for char in listed
            ]
            return "(?:" + "|".join(alternatives) + ")"
        return ANY
