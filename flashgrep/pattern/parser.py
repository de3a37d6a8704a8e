"""A parser of Rust's regex syntax, as in ripgrep's default engine: from text to tree, including bracketed classes.

Grammar: https://docs.rs/regex/latest/regex/#syntax. Flags are resolved while parsing, so the tree has none. The second
half of the module builds the tree of a whole pattern: several texts, smart case, matches within lines, `-w` and `-x`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import and_, or_, sub, xor

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import BadPattern
from flashgrep.pattern import unicode
from flashgrep.pattern.lexer import HINT, Flags, Lexer, Literal, complement, read_escape
from flashgrep.pattern.regex_tree import (
    ASCII,
    ASCII_DIGIT,
    ASCII_SPACE,
    ASCII_WORD,
    LAST_ASCII,
    LINE_ENDS,
    NEWLINE,
    Alternation,
    Assertion,
    ByteSet,
    Chars,
    CharSet,
    Concat,
    Group,
    LookKind,
    Node,
    Repeat,
    edge,
    map_children,
)

MAX_DEPTH = (
    200  # Deeper nesting is a mistake or an attack; the limit bounds the recursion.
)
MAX_COUNT = 2**32 - 1
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
_COUNTS: dict[str, tuple[int, int | None]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}
_ANCHORS: dict[str, tuple[LookKind, LookKind, LookKind]] = {
    "^": ("text_start", "line_start", "line_start_crlf"),
    "$": ("text_end", "line_end", "line_end_crlf"),
}
_LINE_ANCHORS: dict[LookKind, LookKind] = {
    "text_start": "line_start",
    "text_end": "line_end",
}
_OPERATORS: dict[str, Callable[[CharSet, CharSet], CharSet]] = {
    "&&": and_,
    "--": sub,
    "~~": xor,
}
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


def parse(lexer: Lexer, text: str) -> Node:
    """Parse a whole pattern; the lexer keeps the names of groups and the kinds of literals seen."""
    lexer.text = text
    lexer.pos = 0
    node = _alternatives(lexer, 0)
    if lexer.peek():
        lexer.fail("unopened group", lexer.pos, lexer.pos + 1)
    return node


def _alternatives(lexer: Lexer, depth: int) -> Node:
    """Parse sequences separated by `|` up to a `)` or the end; flags set inside end there."""
    if depth > MAX_DEPTH:
        lexer.fail("groups nested too deeply", lexer.pos - 1)
    # (?i) applies up to the end of the enclosing group.
    outer = lexer.flags
    branches: list[Node] = []
    parts: list[Node] = []
    repeatable = False
    while True:
        lexer.skip_blank()
        char = lexer.peek()
        if char in {"", "|", ")"}:
            branches.append(parts[0] if len(parts) == 1 else Concat(tuple(parts)))
            parts = []
            repeatable = False
            if not lexer.take("|"):
                break
        elif char in {"*", "+", "?", "{"}:
            if not repeatable:
                lexer.fail(
                    "repetition operator missing expression", lexer.pos, lexer.pos + 1
                )
            parts[-1] = _repetition(lexer, parts[-1])
        else:
            node = _atom(lexer, depth)
            repeatable = node is not None
            if node is not None:
                parts.append(node)
    lexer.flags = outer
    if len(branches) == 1:
        return branches[0]
    return Alternation(tuple(branches))


def _atom(lexer: Lexer, depth: int) -> Node | None:
    """Parse one item that can be repeated; None for flags, which cannot."""
    checkpoint()
    # The flags at the start of the item.
    at = lexer.pos
    flags = lexer.flags
    char = lexer.peek()
    if char == "(":
        return _group(lexer, depth)
    if char == "[":
        found: Literal | CharSet | Assertion = _brackets(lexer)
    elif char == "\\":
        found = read_escape(lexer)
    else:
        lexer.pos += 1
        if char == ".":
            if flags.dot_newline:
                left_out = ""
            elif flags.crlf:
                left_out = "\r\n"
            else:
                left_out = "\n"
            found = complement(CharSet.chars(left_out), unicode_on=flags.unicode)
        elif char in _ANCHORS:
            found = Assertion(
                _ANCHORS[char][flags.multi_line + (flags.multi_line and flags.crlf)]
            )
        else:
            found = Literal(ord(char))
    if isinstance(found, Literal):
        return _literal(lexer, found, at)
    if isinstance(found, Assertion):
        return found
    # With (?-u) a class with bytes above 127 matches single bytes, which need not be
    # UTF-8.
    if flags.unicode or found.is_ascii():
        return Chars(found, at)
    return ByteSet(found, at)


def _literal(lexer: Lexer, literal: Literal, at: int) -> Node:
    lexer.note_literal(literal.value)
    char_set = CharSet(((literal.value, literal.value),))
    if lexer.flags.unicode:
        return Chars(
            unicode.fold(char_set) if lexer.flags.insensitive else char_set, at
        )
    if char_set.is_ascii():
        return Chars(
            unicode.fold_ascii(char_set) if lexer.flags.insensitive else char_set, at
        )
    if literal.byte:
        return ByteSet(char_set, at)
    if lexer.flags.insensitive:  # bytes have no case rules beyond ASCII
        lexer.fail("Unicode not allowed here", at)
    return Chars(char_set, at)


def _repetition(lexer: Lexer, node: Node) -> Repeat:
    at = lexer.pos
    operator = lexer.next()
    if operator == "{":
        counts = lexer.take_until("}", at, "unclosed counted repetition")
        first, comma, second = (part.strip() for part in counts.partition(","))
        low = _decimal(lexer, first, at)
        if second:
            high = _decimal(lexer, second, at)
        elif comma:
            high = None
        else:
            high = low
        if high is not None and high < low:
            lexer.fail(
                "invalid repetition count range, the start must be <= the end", at
            )
    else:
        low, high = _COUNTS[operator]
    lazy = lexer.take("?")
    return Repeat(node, low, high, greedy=lazy == lexer.flags.swap_greed)


def _decimal(lexer: Lexer, digits: str, at: int) -> int:
    if not (digits.isascii() and digits.isdecimal()):
        lexer.fail("repetition quantifier expects a valid decimal", at)
    # Cut first: converting a number takes quadratic time.
    if len(digits.lstrip("0")) > len(str(MAX_COUNT)) or int(digits[-20:]) > MAX_COUNT:
        lexer.fail("repetition count too large", at)
    return int(digits[-20:])


def _group(lexer: Lexer, depth: int) -> Node | None:
    """Parse a group; the lexer is at its `(`. None if it only sets flags."""
    start = lexer.pos
    # Not an ordinary syntax error: the hint names the engine that supports it.
    for token in _LOOK_AROUND:
        if lexer.take(token):
            lexer.fail(f"look-around is not supported {HINT}", start)
    outer = lexer.flags
    lexer.pos += 1
    captures = True
    if lexer.take("?P<") or lexer.take("?<"):
        named = lexer.pos
        name = lexer.take_until(">", named, "unclosed capture group name")
        end = lexer.pos - 1
        if not name:
            lexer.fail("empty capture group name", named - 1)
        # Rust's rule: a letter or "_", then letters, digits, "_", ".", "[" and "]".
        plain = name.translate(str.maketrans(".[]", "___"))
        if (
            not (plain[0].isalpha() or (plain[0] == "_" and name[0] == "_"))
            or not plain.replace("_", "a").isalnum()
        ):
            lexer.fail("invalid capture group character", named, end)
        if name in lexer.names:
            lexer.fail("duplicate capture group name", named, end)
        lexer.names.add(name)
    elif lexer.take("?"):
        if _inline_flags(lexer, start):
            return None
        captures = False
    node = _alternatives(lexer, depth + 1)
    lexer.flags = outer
    if not lexer.take(")"):
        lexer.fail("unclosed group", start, start + 1)
    if captures:
        return Group(node)
    return node


def _inline_flags(lexer: Lexer, start: int) -> bool:
    """Parse `i-s:` or `i-s)` and set the flags; True if they end with `)`."""
    seen: set[str] = set()
    value = True
    lexer.skip_blank()
    if lexer.peek() in {")", ""}:
        lexer.fail("repetition operator missing expression", start + 1, start + 2)
    while (char := lexer.next()) not in {":", ")"}:
        at = lexer.pos - 1
        if not char:
            lexer.fail("unclosed group", start, len(lexer.text))
        if char in seen:
            lexer.fail("duplicate flag", at)
        seen.add(char)
        if char == "-":
            value = False
        elif char in _FLAG_NAMES:
            lexer.flags = replace(lexer.flags, **{_FLAG_NAMES[char]: value})
        elif (
            at == start + 2 and char in ">P&R(|#"
        ):  # Perl's and Python's kinds of groups
            kind = "atomic groups are" if char == ">" else "this kind of group is"
            lexer.fail(f"{kind} not supported {HINT}", start)
        else:
            lexer.fail("unrecognized flag", at)
    if lexer.text[lexer.pos - 2] == "-":
        lexer.fail("dangling flag negation operator", lexer.pos - 2, lexer.pos - 1)
    return char == ")"


def _brackets(lexer: Lexer, depth: int = 0) -> CharSet:
    """Parse a class; the lexer is at its `[`. With Unicode off it is a set of bytes.

    Binary operators have the same precedence and associate to the left; adjacent items form a union, which binds
    tighter.
    """
    start = lexer.pos
    if depth > MAX_DEPTH:
        lexer.fail("class nested too deeply", start, start + 1)
    lexer.pos += 1
    lexer.skip_blank()
    negated = lexer.take("^")
    lexer.skip_blank()
    char_set = CharSet()
    combine = or_
    items = CharSet()
    # At the start, any number of `-`, or otherwise one `]`, are literal.
    while lexer.take("-"):
        items = CharSet.chars("-")
        lexer.skip_blank()
    if not items.ranges and lexer.take("]"):
        items = CharSet.chars("]")
    lexer.any_literal = lexer.any_literal or bool(items.ranges)
    while True:
        lexer.skip_blank()
        if not lexer.peek():
            lexer.fail("unclosed character class", start, len(lexer.text))
        operator = _OPERATORS.get(lexer.text[lexer.pos : lexer.pos + 2])
        # Adjacent items are joined first; an operator combines whole unions.
        if operator is None and lexer.peek() != "]":
            items |= _item(lexer, depth)
            continue
        char_set = combine(char_set, _fold(lexer, items))
        if operator is None:
            lexer.pos += 1
            return (
                complement(char_set, unicode_on=lexer.flags.unicode)
                if negated
                else char_set
            )
        lexer.pos += 2
        combine = operator
        items = CharSet()


def _fold(lexer: Lexer, found: CharSet) -> CharSet:
    """Return `found`, with the other cases of its members (Unicode or ASCII) if the flags say so."""
    if not lexer.flags.insensitive:
        return found
    if lexer.flags.unicode:
        return unicode.fold(found)
    return unicode.fold_ascii(found)


def _item(lexer: Lexer, depth: int) -> CharSet:
    """Parse a nested class, a character, a range, or an escape."""
    if lexer.peek() == "[":
        return _posix(lexer) or _brackets(lexer, depth + 1)
    first = _member(lexer)
    at = lexer.pos
    lexer.skip_blank()
    dash = lexer.pos
    is_range = lexer.take("-")
    lexer.skip_blank()
    if not is_range or lexer.peek() in {
        "]",
        "-",
        "",
    }:  # a `-` before these is not a range operator
        lexer.pos = dash
        if isinstance(first, CharSet):
            return first
        return CharSet.of((first, first))
    last = _member(lexer)
    if isinstance(first, CharSet) or isinstance(last, CharSet):
        lexer.fail(
            "invalid range boundary, must be a literal",
            at - 1 if isinstance(first, CharSet) else at + 1,
        )
    if first > last:
        lexer.fail("invalid range, the start must be <= the end", at - 1)
    return CharSet.of((first, last))


def _member(lexer: Lexer) -> CharSet | int:
    """Parse one member: a code point (or byte), or the set that an escape stands for."""
    start = lexer.pos
    if lexer.peek() == "\\":
        found = read_escape(lexer)
    else:
        found = Literal(ord(lexer.next()))
    if isinstance(found, Assertion):
        lexer.fail("invalid escape sequence found in character class", start)
    if isinstance(found, CharSet):
        return found
    lexer.note_literal(found.value)
    if not lexer.flags.unicode and not found.byte and found.value > LAST_ASCII:
        lexer.fail("Unicode not allowed here", start)
    return found.value


def _posix(lexer: Lexer) -> CharSet | None:
    """Parse `[:name:]` or `[:^name:]`; None, without consuming anything, if it is a nested class after all."""
    end = lexer.text.find(":]", lexer.pos + 2)
    if not lexer.text.startswith("[:", lexer.pos) or end < 0:
        return None
    name = lexer.text[lexer.pos + 2 : end]
    char_set = _POSIX.get(name.removeprefix("^"))
    if char_set is None:
        return None
    lexer.pos = end + 2
    char_set = _fold(lexer, char_set)
    if name.startswith("^"):
        return complement(char_set, unicode_on=lexer.flags.unicode)
    return char_set


def parse_texts(texts: tuple[str, ...], flags: Flags, *, smart: bool) -> Node:
    """Parse regular expressions into one tree; smart case considers the literals of all of them."""
    lexer = Lexer(flags)
    nodes = [parse(lexer, text) for text in texts]
    # Only the parser can tell a literal from the letter of an escape, so smart case may
    # need a second pass.
    if smart and lexer.any_literal and not lexer.any_uppercase:
        return parse_texts(texts, replace(flags, insensitive=True), smart=False)
    if len(nodes) == 1:
        return nodes[0]
    return Alternation(tuple(nodes))


def literal_texts(texts: tuple[str, ...], *, insensitive: bool, smart: bool) -> Node:
    """Return the tree of literal texts."""
    cased = any(char.isupper() for text in texts for char in text)
    folds = insensitive or (smart and not cased)
    sets: dict[str, CharSet] = {}
    # Each distinct character once: folding takes microseconds, and a text of 64 KiB has
    # few different characters.
    for char in set().union(*texts):
        checkpoint()
        if folds:
            sets[char] = unicode.fold(CharSet.chars(char))
        else:
            sets[char] = CharSet.chars(char)
    nodes = [
        Concat(tuple(Chars(sets[char], at) for at, char in enumerate(text)))
        for text in texts
    ]
    if len(nodes) == 1:
        return nodes[0]
    return Alternation(tuple(nodes))


def within_lines(node: Node, *, crlf: bool) -> Node:
    r"""Keep every match within a line, as ripgrep does: no class matches a line end, `\A` and `\z` refer to the line.

    Raises:
        BadPattern: for a literal line end, which could never match.
    """
    checkpoint()
    match node:
        case Chars(found, at) | ByteSet(found, at):
            banned = LINE_ENDS if crlf else NEWLINE
            if not any(char in found for char in banned):
                return node
            char_set = found - banned
            if not char_set.ranges:
                construct = (
                    "".join(map(chr, found)).replace("\n", "\\n").replace("\r", "\\r")
                )
                raise BadPattern(
                    f"the literal line end at {at} requires multiline",
                    at=at,
                    construct=construct,
                )
            return replace(node, set=char_set)
        case Assertion(kind, ascii):
            # RE2 and the Pike VM search whole files, where \A would mean the start of
            # the file.
            return Assertion(_LINE_ANCHORS.get(kind, kind), ascii)
        case Alternation(parts) if all(isinstance(part, Chars) for part in parts):
            # `a|b|\n` is treated like a class: its line end is removed, not rejected as
            # in a literal.
            ranges = (
                item
                for part in parts
                if isinstance(part, Chars)
                for item in part.set.ranges
            )
            return within_lines(Chars(CharSet.of(*ranges)), crlf=crlf)
        case _:
            return map_children(node, partial(within_lines, crlf=crlf))


def as_word(node: Node) -> Node:
    """Wrap `node` so that no word character is next to it (`rg -w`)."""
    return _beside(
        Assertion("half_end"),
        _beside(Assertion("half_start"), node, first=True),
        first=False,
    )


def as_line(node: Node, *, crlf: bool) -> Node:
    """Wrap `node` so that it must be the whole line (`rg -x`)."""
    if crlf:
        return Concat((Assertion("line_start_crlf"), node, Assertion("line_end_crlf")))
    return Concat((Assertion("line_start"), node, Assertion("line_end")))


def _beside(look: Assertion, node: Node, *, first: bool) -> Node:
    """Put `look` before (`first`) or after `node`, splitting classes into word and other characters where needed.

    `half_start [-a]` becomes `half_start - | half_start a`, which RE2 can express; the order of alternatives is kept.
    """
    push = partial(_beside, look, first=first)
    found_edge = edge(node, first=first)
    # Only a mixed edge needs it: next to only word characters, or only others, RE2 can
    # express the condition directly.
    if (
        not found_edge.empty
        and (found_edge.chars & ASCII_WORD).ranges
        and not found_edge.chars <= ASCII_WORD
    ):
        match node:
            case Chars(chars) | ByteSet(chars):
                parts = (chars & ASCII_WORD, chars - ASCII_WORD)
                return Alternation(
                    tuple(push(replace(node, set=part)) for part in parts)
                )
            case Concat(parts) if not edge(
                parts[0 if first else -1], first=first
            ).empty:
                return Concat(
                    (push(parts[0]), *parts[1:])
                    if first
                    else (*parts[:-1], push(parts[-1]))
                )
            case Alternation() | Group():
                return map_children(node, push)
            # Unroll one copy, to be next to the condition. If the node may be absent
            # (low 0), that is impossible.
            case Repeat(inner, low, high, greedy) if low:
                rest = Repeat(
                    inner, low - 1, None if high is None else high - 1, greedy
                )
                return Concat((push(inner), rest) if first else (rest, push(inner)))
    return Concat((look, node) if first else (node, look))
