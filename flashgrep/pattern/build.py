"""Builds a pattern's tree: joins texts, resolves case, keeps matches within lines, wraps `-w` and `-x` around."""

from dataclasses import replace
from functools import partial

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import BadPattern
from flashgrep.pattern import unicode
from flashgrep.pattern.charset import ASCII_WORD, LINE_ENDS, NEWLINE, CharSet
from flashgrep.pattern.lexer import Flags, Lexer
from flashgrep.pattern.parser import parse
from flashgrep.pattern.tree import (
    Chars,
    Concat,
    Either,
    Group,
    Look,
    LookKind,
    Node,
    Octet,
    Repeat,
    edge,
    map_children,
)

_LINE_ANCHORS: dict[LookKind, LookKind] = {"text_start": "line_start", "text_end": "line_end"}


def parse_texts(texts: tuple[str, ...], flags: Flags, *, smart: bool) -> Node:
    """Parse regular expressions into one tree; smart case looks at the literals of all of them together."""
    lexer = Lexer(flags)
    nodes = [parse(lexer, text) for text in texts]
    # Only a parser can tell a literal from an escape's letter, so the texts are read, judged and read again.
    if smart and lexer.any_literal and not lexer.any_uppercase:
        return parse_texts(texts, replace(flags, insensitive=True), smart=False)
    return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))


def literal_texts(texts: tuple[str, ...], *, insensitive: bool, smart: bool) -> Node:
    """Return the tree of literal texts."""
    cased = any(char.isupper() for text in texts for char in text)
    loose = insensitive or (smart and not cased)
    sets: dict[str, CharSet] = {}
    # Each character once: folding one takes microseconds, and a text of 64 KiB has few different ones.
    for char in set().union(*texts):
        checkpoint()
        sets[char] = unicode.fold(CharSet.chars(char)) if loose else CharSet.chars(char)
    nodes = [Concat(tuple(Chars(sets[char], at) for at, char in enumerate(text))) for text in texts]
    return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))


def within_lines(node: Node, *, crlf: bool) -> Node:
    r"""Keep every match on one line, as ripgrep does: no class matches a line end, `\A` and `\z` mean the line's.

    Raises:
        BadPattern: a literal line end, which could never match.
    """
    checkpoint()
    match node:
        case Chars(found, at) | Octet(found, at):
            banned = LINE_ENDS if crlf else NEWLINE
            if not any(char in found for char in banned):
                return node
            left = found - banned
            if not left.ranges:
                construct = "".join(map(chr, found)).replace("\n", "\\n").replace("\r", "\\r")
                raise BadPattern(f"a literal line end at {at} needs multiline", at=at, construct=construct)
            return replace(node, set=left)
        case Look(kind, ascii):
            # RE2 and the Pike VM search whole files, so \A would mean the file's beginning.
            return Look(_LINE_ANCHORS.get(kind, kind), ascii)
        case Either(parts) if all(isinstance(part, Chars) for part in parts):
            # `a|b|\n` equals a class, which may lose its line end where a literal may not.
            ranges = (item for part in parts if isinstance(part, Chars) for item in part.set.ranges)
            return within_lines(Chars(CharSet.of(*ranges)), crlf=crlf)
        case _:
            return map_children(node, partial(within_lines, crlf=crlf))


def as_word(node: Node) -> Node:
    """Wrap `node` so that no word character is next to it (`rg -w`)."""
    return _beside(Look("half_end"), _beside(Look("half_start"), node, first=True), first=False)


def as_line(node: Node, *, crlf: bool) -> Node:
    """Wrap `node` so that it must be the whole line (`rg -x`)."""
    if crlf:
        return Concat((Look("line_start_crlf"), node, Look("line_end_crlf")))
    return Concat((Look("line_start"), node, Look("line_end")))


def _beside(look: Look, node: Node, *, first: bool) -> Node:
    """Put `look` before (`first`) or after `node`, next to classes split into word and other characters if that helps.

    `half_start [-a]` becomes `half_start - | half_start a`, which RE2 can say; the order of choices stays the same.
    """
    push = partial(_beside, look, first=first)
    found = edge(node, first=first)
    # Only a mixed edge needs it: alongside word characters alone, or others alone, RE2 can say the condition as it is.
    if not found.empty and (found.chars & ASCII_WORD).ranges and not found.chars <= ASCII_WORD:
        match node:
            case Chars(chars) | Octet(chars):
                parts = (chars & ASCII_WORD, chars - ASCII_WORD)
                return Either(tuple(push(replace(node, set=part)) for part in parts))
            case Concat(parts) if not edge(parts[0 if first else -1], first=first).empty:
                return Concat((push(parts[0]), *parts[1:]) if first else (*parts[:-1], push(parts[-1])))
            case Either() | Group():
                return map_children(node, push)
            # One copy is taken out to be next to the condition. What may be absent (low 0) cannot be.
            case Repeat(inner, low, high, greedy) if low:
                rest = Repeat(inner, low - 1, None if high is None else high - 1, greedy)
                return Concat((push(inner), rest) if first else (rest, push(inner)))
    return Concat((look, node) if first else (node, look))
