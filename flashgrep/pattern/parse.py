"""A parser of the Rust regex syntax (what ripgrep's default engine reads) into `nodes`.

Grammar: https://docs.rs/regex/latest/regex/#syntax. Flags are resolved while reading, so the tree has none.
"""

from dataclasses import replace

from flashgrep.pattern import unicode
from flashgrep.pattern.brackets import MAX_DEPTH, read_brackets
from flashgrep.pattern.charset import ANY_BYTE, ANY_CHAR, CharSet
from flashgrep.pattern.cursor import Cursor, Flags
from flashgrep.pattern.escapes import HINT, Written, read_escape
from flashgrep.pattern.nodes import Chars, Concat, Either, Group, Look, LookKind, Node, Octet, Repeat
from flashgrep.scheduler import checkpoint

_FLAG_NAMES = {
    "i": "insensitive",
    "m": "multi_line",
    "s": "dot_newline",
    "U": "swap_greed",
    "u": "unicode",
    "x": "verbose",
    "R": "crlf",
}
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
MAX_COUNT = 2**32 - 1


def parse(cursor: Cursor) -> Node:
    """Read the whole pattern; groups, names and the kinds of literals seen are left in the cursor."""
    node = _alternatives(cursor, 0)
    if cursor.peek():
        cursor.fail("unopened group", cursor.pos, cursor.pos + 1)
    return node


def _alternatives(cursor: Cursor, depth: int) -> Node:
    if depth > MAX_DEPTH:
        cursor.fail("groups nested too deeply", cursor.pos - 1)
    outer = cursor.flags
    parts = [_sequence(cursor, depth)]
    while cursor.take("|"):
        parts.append(_sequence(cursor, depth))
    cursor.flags = outer
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


def _sequence(cursor: Cursor, depth: int) -> Node:
    parts: list[Node] = []
    repeatable = False
    while True:
        cursor.skip_blank()
        char = cursor.peek()
        if char in {"", "|", ")"}:
            return parts[0] if len(parts) == 1 else Concat(tuple(parts))
        if char in {"*", "+", "?", "{"}:
            if not repeatable:
                cursor.fail("repetition operator missing expression", cursor.pos, cursor.pos + 1)
            parts[-1] = _repetition(cursor, parts[-1])
            continue
        node = _atom(cursor, char, depth)
        repeatable = node is not None
        if node is not None:
            parts.append(node)


def _atom(cursor: Cursor, char: str, depth: int) -> Node | None:
    """Read one thing that can be repeated; None for flags, which are no thing."""
    checkpoint()
    at = cursor.pos
    if char == "(":
        return _group(cursor, depth)
    if char == "[":
        return _set(cursor, read_brackets(cursor), at)
    if char == "\\":
        return _escape(cursor, at)
    cursor.pos += 1
    if char == ".":
        return _dot(cursor, at)
    if char in "^$":
        return Look(_line_look(cursor.flags, char))
    return _literal(cursor, Written(ord(char), byte=False), at)


def _line_look(flags: Flags, char: str) -> LookKind:
    if not flags.multi_line:
        return "text_start" if char == "^" else "text_end"
    if flags.crlf:
        return "line_start_crlf" if char == "^" else "line_end_crlf"
    return "line_start" if char == "^" else "line_end"


def _dot(cursor: Cursor, at: int) -> Node:
    left_out = "" if cursor.flags.dot_newline else "\r\n" if cursor.flags.crlf else "\n"
    everything = ANY_CHAR if cursor.flags.unicode else ANY_BYTE
    return _set(cursor, everything - CharSet.chars(left_out), at)


def _set(cursor: Cursor, found: CharSet, at: int) -> Node:
    return Chars(found, at) if cursor.flags.unicode or found.inside_ascii() else Octet(found, at)


def _escape(cursor: Cursor, at: int) -> Node:
    escape = read_escape(cursor)
    if isinstance(escape, Written):
        return _literal(cursor, escape, at)
    return escape if isinstance(escape, Look) else _set(cursor, escape, at)


def _literal(cursor: Cursor, written: Written, at: int) -> Node:
    cursor.saw(chr(written.value))
    found = CharSet(((written.value, written.value),))
    if cursor.flags.unicode:
        return Chars(unicode.folded(found) if cursor.flags.insensitive else found, at)
    if not found.inside_ascii() and written.byte:
        return Octet(found, at)
    if not found.inside_ascii() and cursor.flags.insensitive:
        cursor.fail("Unicode not allowed here", at)
    return Chars(unicode.folded_ascii(found) if cursor.flags.insensitive else found, at)


def _repetition(cursor: Cursor, node: Node) -> Repeat:
    at = cursor.pos
    operator = cursor.next()
    low, high = _counts(cursor, at) if operator == "{" else _COUNTS[operator]
    lazy = cursor.take("?")
    return Repeat(node, low, high, greedy=lazy == cursor.flags.swap_greed)


_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def _counts(cursor: Cursor, at: int) -> tuple[int, int | None]:
    end = cursor.text.find("}", at)
    if end < 0:
        cursor.fail("unclosed counted repetition", at, len(cursor.text))
    first, comma, second = (part.strip() for part in cursor.text[at + 1 : end].partition(","))
    cursor.pos = end + 1
    low = _decimal(cursor, first, at)
    high = _decimal(cursor, second, at) if second else None if comma else low
    if high is not None and high < low:
        cursor.fail("invalid repetition count range, the start must be <= the end", at)
    return low, high


def _decimal(cursor: Cursor, digits: str, at: int) -> int:
    if not (digits.isascii() and digits.isdecimal()):
        cursor.fail("repetition quantifier expects a valid decimal", at)
    if len(digits.lstrip("0")) > len(str(MAX_COUNT)) or int(digits[-20:]) > MAX_COUNT:
        cursor.fail("repetition count too large", at)
    return int(digits[-20:])


def _group(cursor: Cursor, depth: int) -> Node | None:
    start = cursor.pos
    for token in _LOOK_AROUND:
        if cursor.take(token):
            cursor.fail(f"look-around is not supported {HINT}", start)
    outer = cursor.flags
    cursor.pos += 1
    index, name = None, None
    if cursor.take("?P<") or cursor.take("?<"):
        name = _group_name(cursor)
        index = _number(cursor)
    elif cursor.take("?"):
        if _inline_flags(cursor, start):
            return None
    else:
        index = _number(cursor)
    node = _alternatives(cursor, depth + 1)
    cursor.flags = outer
    if not cursor.take(")"):
        cursor.fail("unclosed group", start, start + 1)
    return node if index is None else Group(node, index, name)


def _number(cursor: Cursor) -> int:
    cursor.groups += 1
    return cursor.groups


def _group_name(cursor: Cursor) -> str:
    start = cursor.pos
    end = cursor.text.find(">", start)
    if end < 0:
        cursor.fail("unclosed capture group name", start, len(cursor.text))
    name = cursor.text[start:end]
    cursor.pos = end + 1
    if not name:
        cursor.fail("empty capture group name", start - 1)
    plain = name.translate(str.maketrans(".[]", "___"))
    if not (plain[0].isalpha() or (plain[0] == "_" and name[0] == "_")) or not plain.replace("_", "a").isalnum():
        cursor.fail("invalid capture group character", start, end)
    if name in cursor.names:
        cursor.fail("duplicate capture group name", start, end)
    cursor.names.add(name)
    return name


def _inline_flags(cursor: Cursor, start: int) -> bool:
    """Read `i-s:` or `i-s)` and set the flags; True when they stood alone."""
    seen: set[str] = set()
    value = True
    cursor.skip_blank()
    if cursor.peek() in {")", ""}:
        cursor.fail("repetition operator missing expression", start + 1, start + 2)
    while (char := cursor.next()) not in {":", ")"}:
        at = cursor.pos - 1
        if char in seen:
            cursor.fail("duplicate flag", at)
        seen.add(char)
        if char == "-":
            value = False
        elif char in _FLAG_NAMES:
            cursor.flags = replace(cursor.flags, **{_FLAG_NAMES[char]: value})
        elif not char:
            cursor.fail("unclosed group", start, len(cursor.text))
        else:
            _refuse_flag(cursor, char, start, at)
    if cursor.text[cursor.pos - 2] == "-":
        cursor.fail("dangling flag negation operator", cursor.pos - 2, cursor.pos - 1)
    return char == ")"


def _refuse_flag(cursor: Cursor, char: str, start: int, at: int) -> None:
    if at == start + 2 and char == ">":
        cursor.fail(f"atomic groups are not supported {HINT}", start)
    if at == start + 2 and char in "P&R(|#":
        cursor.fail(f"this kind of group is not supported {HINT}", start)
    cursor.fail("unrecognized flag", at)
