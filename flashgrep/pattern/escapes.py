r"""Escapes of the Rust regex syntax: `\n`, `\x41`, `\u{e9}`, `\pL`, `\p{Greek}`, `\w`, `\b{start}` and their kin."""

from typing import NamedTuple, Never

from flashgrep.pattern import unicode
from flashgrep.pattern.charset import ANY_BYTE, ANY_CHAR, ASCII_DIGIT, ASCII_SPACE, ASCII_WORD, CharSet
from flashgrep.pattern.cursor import Cursor
from flashgrep.pattern.nodes import Look, LookKind

HINT = '(engine "backtracking" runs look-around and back-references)'
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
_BRACED: dict[str, LookKind] = {
    "start": "word_start",
    "end": "word_end",
    "start-half": "half_start",
    "end-half": "half_end",
}
_WORD_NAME = frozenset("-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Written(NamedTuple):
    """One escaped character; `byte` if it was written as two hexadecimal digits."""

    value: int
    byte: bool


Escape = Written | CharSet | Look


def read_escape(cursor: Cursor) -> Escape:  # one case for each kind of escape
    """Read the escape at the cursor, which stands on the backslash."""
    start = cursor.pos
    cursor.pos += 1
    char = cursor.next()
    if not char:
        cursor.fail("incomplete escape sequence", start, len(cursor.text))
    if char in _LOOKS:
        return _look(cursor, char)
    if char in _CONTROL:
        return Written(_CONTROL[char], byte=False)
    if char in _HEX_DIGITS:
        return _hex(cursor, char, start)
    if char in "dDsSwW":
        return perl_class(char, unicode_on=cursor.flags.unicode)
    if char in "pP":
        return _property(cursor, start, negated=char == "P")
    if not char.isascii() or char.isalnum():
        _refuse(cursor, char, start)
    return Written(ord(char), byte=False)


def perl_class(char: str, *, unicode_on: bool) -> CharSet:
    r"""Return `\d`, `\s` or `\w`, inverted for the capital letter."""
    if unicode_on:
        found = {"d": unicode.digit, "s": unicode.space, "w": unicode.word}[char.lower()]()
        return found if char.islower() else found.inverted()
    found = {"d": ASCII_DIGIT, "s": ASCII_SPACE, "w": ASCII_WORD}[char.lower()]
    return found if char.islower() else ANY_BYTE - found


def _refuse(cursor: Cursor, char: str, start: int) -> Never:
    if char.isdecimal():
        cursor.fail(f"back-references are not supported {HINT}", start)
    if char == "K":
        cursor.fail(f"resetting the match start is not supported {HINT}", start)
    cursor.fail("unrecognized escape sequence", start)


def _look(cursor: Cursor, char: str) -> Look:
    kind = _LOOKS[char]
    if char == "b" and cursor.peek() == "{":
        kind = _braced_boundary(cursor) or kind
    return Look(kind, ascii=not cursor.flags.unicode)


def _braced_boundary(cursor: Cursor) -> LookKind | None:
    r"""Read `{start}` and its kin; None where the brace begins a repetition of `\b` instead."""
    start = cursor.pos
    end = start + 1
    while cursor.text[end : end + 1] in _WORD_NAME:
        end += 1
    name = cursor.text[start + 1 : end]
    if not name:
        return None
    if cursor.text[end : end + 1] != "}":
        cursor.fail("special word boundary is unclosed or contains an invalid character", start, end)
    if name not in _BRACED:
        cursor.fail("unknown word boundary (start, end, start-half or end-half)", start + 1, end)
    cursor.pos = end + 1
    return _BRACED[name]


def _hex(cursor: Cursor, kind: str, start: int) -> Written:
    if cursor.peek() == "{":
        end = cursor.text.find("}", cursor.pos)
        if end < 0:
            cursor.fail("unclosed hexadecimal literal", start, len(cursor.text))
        digits = cursor.text[cursor.pos + 1 : end]
        cursor.pos = end + 1
    else:
        digits = cursor.text[cursor.pos : cursor.pos + _HEX_DIGITS[kind]]
        cursor.pos += len(digits)
        if len(digits) < _HEX_DIGITS[kind]:
            cursor.fail("incomplete hexadecimal literal", start)
    if not digits or set(digits) - set("0123456789abcdefABCDEF"):
        cursor.fail("invalid hexadecimal digit", start)
    value = int(digits, 16)
    if value not in ANY_CHAR:
        cursor.fail("hexadecimal literal is not a Unicode scalar value", start)
    return Written(value, byte=kind == "x" and cursor.text[start + 2] != "{")


def _property(cursor: Cursor, start: int, *, negated: bool) -> CharSet:
    if cursor.take("{"):
        end = cursor.text.find("}", cursor.pos)
        if end < 0:
            cursor.fail("unclosed property", start, len(cursor.text))
        name = cursor.text[cursor.pos : end]
        cursor.pos = end + 1
    else:
        name = cursor.next()
    if not cursor.flags.unicode:
        cursor.fail("Unicode not allowed here", start)
    name, value, unequal = _split_property(name)
    found = unicode.find(name, value)
    if found is None:
        cursor.fail("Unicode property not found", start)
    if cursor.flags.insensitive:
        found = unicode.folded(found)
    return found.inverted() if negated != unequal else found


def _split_property(text: str) -> tuple[str, str | None, bool]:
    for sign in ("!=", ":", "="):
        if sign in text:
            name, _, value = text.partition(sign)
            return name, value, sign == "!="
    return text, None, False
