"""Bracketed classes: nesting, `&&`, `--`, `~~`, ranges, escapes and `[:alpha:]`.

Binary operators have one precedence and associate to the left; items beside each other are a union and bind tighter.
"""

from collections.abc import Callable
from operator import and_, or_, sub, xor

from flashgrep.pattern import unicode
from flashgrep.pattern.charset import ANY_BYTE, ASCII, ASCII_DIGIT, ASCII_SPACE, ASCII_WORD, LAST_ASCII, CharSet
from flashgrep.pattern.cursor import Cursor
from flashgrep.pattern.escapes import Written, read_escape
from flashgrep.pattern.nodes import Look

Operator = Callable[[CharSet, CharSet], CharSet]

MAX_DEPTH = 200  # Nesting past it is a mistake or an attack; the limit keeps the recursion shallow.
_OPERATORS: dict[str, Operator] = {"&&": and_, "--": sub, "~~": xor}
_LOWER = CharSet.of((0x61, 0x7A))
_UPPER = CharSet.of((0x41, 0x5A))
_POSIX = {
    "alnum": _LOWER | _UPPER | ASCII_DIGIT,
    "alpha": _LOWER | _UPPER,
    "ascii": ASCII,
    "blank": CharSet.chars("\t "),
    "cntrl": CharSet.of((0, 0x1F), (0x7F, 0x7F)),
    "digit": ASCII_DIGIT,
    "graph": CharSet.of((0x21, 0x7E)),
    "lower": _LOWER,
    "print": CharSet.of((0x20, 0x7E)),
    "punct": CharSet.of((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ASCII_SPACE,
    "upper": _UPPER,
    "word": ASCII_WORD,
    "xdigit": ASCII_DIGIT | CharSet.of((0x41, 0x46), (0x61, 0x66)),
}


def read_brackets(cursor: Cursor, depth: int = 0) -> CharSet:
    """Read the class whose `[` the cursor stands on; with Unicode off it is a set of bytes."""
    start = cursor.pos
    if depth > MAX_DEPTH:
        cursor.fail("class nested too deeply", start, start + 1)
    cursor.pos += 1
    cursor.skip_blank()
    negated = cursor.take("^")
    cursor.skip_blank()
    found = _operands(cursor, start, depth)
    return invert(cursor, found) if negated else found


def fold(cursor: Cursor, found: CharSet) -> CharSet:
    """Return `found` with all its case variants, Unicode or ASCII as the flags have it."""
    return unicode.folded(found) if cursor.flags.unicode else unicode.folded_ascii(found)


def invert(cursor: Cursor, found: CharSet) -> CharSet:
    """Return what `found` leaves of all code points, or of all bytes with Unicode off."""
    return found.inverted() if cursor.flags.unicode else ANY_BYTE - found


def _operands(cursor: Cursor, start: int, depth: int) -> CharSet:
    found = CharSet()
    combine: Operator = or_
    items = _leading(cursor)
    while True:
        cursor.skip_blank()
        if not cursor.peek():
            cursor.fail("unclosed character class", start, len(cursor.text))
        operator = _OPERATORS.get(cursor.peek() + cursor.peek(1))
        if operator is None and cursor.peek() != "]":
            items |= _item(cursor, depth)
            continue
        found = combine(found, fold(cursor, items) if cursor.flags.insensitive else items)
        cursor.pos += 1 if operator is None else 2
        if operator is None:
            return found
        combine, items = operator, CharSet()


def _leading(cursor: Cursor) -> CharSet:
    """Read what is literal at the start of a class: any number of `-`, else one `]`."""
    items = CharSet()
    while cursor.peek() == "-":
        items |= _literal(cursor, "-")
        cursor.pos += 1
        cursor.skip_blank()
    if not items.ranges and cursor.peek() == "]":
        items = _literal(cursor, "]")
        cursor.pos += 1
    return items


def _literal(cursor: Cursor, char: str) -> CharSet:
    cursor.saw(char)
    return CharSet.chars(char)


def _item(cursor: Cursor, depth: int) -> CharSet:
    if cursor.peek() == "[":
        return _posix(cursor) or read_brackets(cursor, depth + 1)
    first = _primitive(cursor)
    at = cursor.pos
    cursor.skip_blank()
    if cursor.peek() != "-" or cursor.peek(1) in {"]", "-", ""} or (cursor.flags.verbose and _closes(cursor)):
        return first if isinstance(first, CharSet) else CharSet.of((first, first))
    cursor.pos += 1
    cursor.skip_blank()
    last = _primitive(cursor)
    if isinstance(first, CharSet) or isinstance(last, CharSet):
        cursor.fail("invalid range boundary, must be a literal", at - 1 if isinstance(first, CharSet) else at + 1)
    if first > last:
        cursor.fail("invalid range, the start must be <= the end", at - 1)
    return CharSet.of((first, last))


def _closes(cursor: Cursor) -> bool:
    """Tell whether only blanks stand between the `-` here and a `]` or another `-`."""
    pos = cursor.pos
    cursor.pos += 1
    cursor.skip_blank()
    found = cursor.peek() in {"]", "-", ""}
    cursor.pos = pos
    return found


def _primitive(cursor: Cursor) -> CharSet | int:
    """Read one member: a code point (or byte), or the set an escape stands for."""
    start = cursor.pos
    if cursor.peek() != "\\":
        char = cursor.next()
        cursor.saw(char)
        if not cursor.flags.unicode and not char.isascii():
            cursor.fail("Unicode not allowed here", start)
        return ord(char)
    escape = read_escape(cursor)
    if isinstance(escape, Look):
        cursor.fail("invalid escape sequence found in character class", start)
    if isinstance(escape, CharSet):
        return escape
    return _escaped(cursor, escape, start)


def _escaped(cursor: Cursor, escape: Written, start: int) -> int:
    cursor.saw(chr(escape.value))
    if not cursor.flags.unicode and not escape.byte and escape.value > LAST_ASCII:
        cursor.fail("Unicode not allowed here", start)
    return escape.value


def _posix(cursor: Cursor) -> CharSet | None:
    """Read `[:name:]` or `[:^name:]`; None (and no step) where it is a nested class after all."""
    end = cursor.text.find(":]", cursor.pos + 2)
    if not cursor.text.startswith("[:", cursor.pos) or end < 0:
        return None
    name = cursor.text[cursor.pos + 2 : end]
    found = _POSIX.get(name.removeprefix("^"))
    if found is None:
        return None
    cursor.pos = end + 2
    if cursor.flags.insensitive:
        found = fold(cursor, found)
    return invert(cursor, found) if name.startswith("^") else found
