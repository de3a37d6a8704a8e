r"""The lexer of patterns: characters, flags, and escapes (`\n`, `\u{e9}`, `\p{Greek}`, `\b{start}`)."""

from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from flashgrep.base.errors import BadPattern
from flashgrep.pattern import unicode
from flashgrep.pattern.regex_tree import (
    ANY_BYTE,
    ANY_CHAR,
    ASCII_DIGIT,
    ASCII_SPACE,
    ASCII_WORD,
    Assertion,
    CharSet,
    LookKind,
)

HINT = '(engine "backtracking" supports look-around and back-references)'

_BLANK = (
    " \t\n\v\f\r\x85\u200e\u200f\u2028\u2029"  # Pattern_White_Space: what `(?x)` skips
)
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_LOOKS: dict[str, LookKind] = {
    "b": "word",
    "B": "not_word",
    "<": "word_start",
    ">": "word_end",
    "A": "text_start",
    "z": "text_end",
}
_BOUNDARIES: dict[str, LookKind] = {
    "start": "word_start",
    "end": "word_end",
    "start-half": "half_start",
    "end-half": "half_end",
}
_BOUNDARY_CHARS = frozenset("-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The inline flags: `i m s U x u R`."""

    insensitive: bool = False
    multi_line: bool = True
    dot_newline: bool = False
    swap_greed: bool = False
    verbose: bool = False
    unicode: bool = True
    crlf: bool = False


class Literal(NamedTuple):
    r"""One character; `byte` if it was written as `\x` and two hexadecimal digits."""

    value: int
    byte: bool = False


@dataclass(slots=True)
class Lexer:
    """Reads pattern texts one after the other and notes what they contain; offsets count characters from 0."""

    flags: Flags
    text: str = ""
    pos: int = 0
    names: set[str] = field(default_factory=set)
    any_literal: bool = False
    any_uppercase: bool = False

    def peek(self) -> str:
        """Return the current character, or an empty string at the end."""
        return self.text[self.pos : self.pos + 1]

    def next(self) -> str:
        """Consume one character and return it; an empty string at the end."""
        char = self.peek()
        self.pos += 1
        return char

    def take(self, token: str) -> bool:
        """Consume `token` if the text continues with it; return whether it does."""
        if not self.text.startswith(token, self.pos):
            return False
        self.pos += len(token)
        return True

    def take_until(self, end: str, start: int, problem: str) -> str:
        """Consume the text up to `end`, and `end`, and return the text; if `end` is missing, fail from `start` on."""
        at = self.text.find(end, self.pos)
        if at < 0:
            self.fail(problem, start, len(self.text))
        piece = self.text[self.pos : at]
        self.pos = at + len(end)
        return piece

    def skip_blank(self) -> None:
        """Under `(?x)`, skip white space and comments."""
        while self.flags.verbose and self.peek():
            if self.peek() == "#":
                end = self.text.find("\n", self.pos)
                if end < 0:
                    self.pos = len(self.text)
                else:
                    self.pos = end
            elif self.peek() in _BLANK:
                self.pos += 1
            else:
                return

    def note_literal(self, value: int) -> None:
        """Note a literal character, for smart case."""
        self.any_literal = True
        self.any_uppercase = self.any_uppercase or chr(value).isupper()

    def fail(self, message: str, at: int, end: int | None = None) -> NoReturn:
        """Reject the pattern because of its part from `at` to `end` (default: the current position)."""
        construct = self.text[at : self.pos if end is None else end]
        raise BadPattern(
            f"{message}: {construct!r} at {at}", at=at, construct=construct
        )


def read_escape(lexer: Lexer) -> Literal | CharSet | Assertion:
    """Read an escape; the lexer is at its backslash."""
    start = lexer.pos
    lexer.pos += 1
    char = lexer.next()
    if not char:
        lexer.fail("incomplete escape sequence", start, len(lexer.text))
    if char in _LOOKS:
        if char != "b":
            kind = _LOOKS[char]
        else:
            kind = _read_boundary(lexer)
        return Assertion(kind, ascii=not lexer.flags.unicode)
    if char in _HEX_DIGITS:
        return _read_hex(lexer, char, start)
    if char in "dDsSwW":
        if lexer.flags.unicode:
            members = {"d": unicode.digit, "s": unicode.space, "w": unicode.word}[
                char.lower()
            ]()
        else:
            members = {"d": ASCII_DIGIT, "s": ASCII_SPACE, "w": ASCII_WORD}[
                char.lower()
            ]
        if char.islower():
            return members
        return complement(members, unicode_on=lexer.flags.unicode)
    if char in "pP":
        return _read_property(lexer, start, negated=char == "P")
    # Like Rust, reject escapes without a meaning.
    if not char.isascii() or (char.isalnum() and char not in _CONTROL):
        if char == "K" or char.isdecimal():
            what = (
                "resetting the match start is" if char == "K" else "back-references are"
            )
            lexer.fail(f"{what} not supported {HINT}", start)
        lexer.fail("unrecognized escape sequence", start)
    return Literal(_CONTROL.get(char, ord(char)))


def complement(found: CharSet, *, unicode_on: bool) -> CharSet:
    """Return the complement of `found` among all code points, or among all bytes with Unicode off."""
    return (ANY_CHAR if unicode_on else ANY_BYTE) - found


def _read_boundary(lexer: Lexer) -> LookKind:
    r"""Read `{start}` and the like after `\b`; without such a brace, or before a repetition, it is a plain `\b`."""
    start = lexer.pos
    end = start + 1
    while lexer.text[end : end + 1] in _BOUNDARY_CHARS:
        end += 1
    name = lexer.text[start + 1 : end]
    if lexer.peek() != "{" or not name:
        return "word"
    if lexer.text[end : end + 1] != "}":
        lexer.fail(
            "special word boundary is unclosed or contains an invalid character",
            start,
            end,
        )
    if name not in _BOUNDARIES:
        lexer.fail(
            "unknown word boundary (start, end, start-half or end-half)", start + 1, end
        )
    lexer.pos = end + 1
    return _BOUNDARIES[name]


def _read_hex(lexer: Lexer, kind: str, start: int) -> Literal:
    braces = lexer.take("{")
    if braces:
        digits = lexer.take_until("}", start, "unclosed hexadecimal literal")
    else:
        digits = lexer.text[lexer.pos : lexer.pos + _HEX_DIGITS[kind]]
        lexer.pos += len(digits)
        if len(digits) < _HEX_DIGITS[kind]:
            lexer.fail("incomplete hexadecimal literal", start)
    if not digits or set(digits) - set("0123456789abcdefABCDEF"):
        lexer.fail("invalid hexadecimal digit", start)
    value = int(digits, 16)
    # Neither surrogates nor values above U+10FFFF.
    if value not in ANY_CHAR:
        lexer.fail("hexadecimal literal is not a Unicode scalar value", start)
    return Literal(value, byte=kind == "x" and not braces)


def _read_property(lexer: Lexer, start: int, *, negated: bool) -> CharSet:
    r"""Read what follows `\p`: one letter, `{name}`, `{name=value}`, `{name:value}` or `{name!=value}`."""
    if lexer.take("{"):
        name = lexer.take_until("}", start, "unclosed property")
    else:
        name = lexer.next()
    if not lexer.flags.unicode:
        lexer.fail("Unicode not allowed here", start)
    sign = next((sign for sign in ("!=", ":", "=") if sign in name), "")
    name, _, value = name.partition(sign) if sign else (name, "", None)
    char_set = unicode.find_property(name, value)
    if char_set is None:
        lexer.fail("Unicode property not found", start)
    if lexer.flags.insensitive:
        char_set = unicode.fold(char_set)
    if negated != (sign == "!="):
        return ANY_CHAR - char_set
    return char_set
