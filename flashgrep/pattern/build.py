"""From what was asked to one tree: texts joined, case resolved, the line rule applied, `-w` and `-x` wrapped around."""

from flashgrep.errors import BadPattern
from flashgrep.pattern import unicode
from flashgrep.pattern.charset import LINE_ENDS, NEWLINE, CharSet
from flashgrep.pattern.cursor import Cursor, Flags
from flashgrep.pattern.edges import beside
from flashgrep.pattern.nodes import Chars, Concat, Either, Group, Look, LookKind, Node, Octet, Repeat
from flashgrep.pattern.parse import parse
from flashgrep.scheduler import checkpoint

_LINE_ANCHORS: dict[LookKind, LookKind] = {"text_start": "line_start", "text_end": "line_end"}


def parse_texts(texts: tuple[str, ...], flags: Flags, *, smart: bool) -> Node:
    """Parse regular expressions into one tree; smart case looks at the literals of all of them together."""
    cursors = [Cursor(text, flags) for text in texts]
    nodes = _parse_all(cursors)
    if smart and any(cursor.any_literal for cursor in cursors) and not any(cursor.any_uppercase for cursor in cursors):
        loose = Flags(insensitive=True, dot_newline=flags.dot_newline, crlf=flags.crlf)
        nodes = _parse_all([Cursor(text, loose) for text in texts])
    return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))


def _parse_all(cursors: list[Cursor]) -> list[Node]:
    groups, names = 0, set[str]()
    nodes = []
    for cursor in cursors:
        cursor.groups, cursor.names = groups, names
        nodes.append(parse(cursor))
        groups = cursor.groups
    return nodes


def literal_texts(texts: tuple[str, ...], *, insensitive: bool, smart: bool) -> Node:
    """Return the tree of literal texts."""
    cased = any(char.isupper() for text in texts for char in text)
    loose = insensitive or (smart and not cased and any(texts))
    nodes = [Concat(tuple(_char(char, at, loose=loose) for at, char in enumerate(text))) for text in texts]
    return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))


def _char(char: str, at: int, *, loose: bool) -> Chars:
    found = CharSet.chars(char)
    return Chars(unicode.folded(found) if loose else found, at)


def within_lines(node: Node, *, crlf: bool) -> Node:  # noqa: PLR0911 # one case for each kind of node
    r"""Keep every match on one line, as ripgrep does: no class matches a line end, `\A` and `\z` mean the line's.

    Raises:
        BadPattern: a literal line end, which could never match.
    """
    checkpoint()
    banned = LINE_ENDS if crlf else NEWLINE
    match node:
        case Chars(found, at) | Octet(found, at):
            return _without(node, found, banned, at)
        case Look(kind, ascii):
            return Look(_LINE_ANCHORS.get(kind, kind), ascii)
        case Concat(parts):
            return Concat(tuple(within_lines(part, crlf=crlf) for part in parts))
        case Either(parts):
            merged = _as_class(parts)
            if merged is not None:
                return within_lines(merged, crlf=crlf)
            return Either(tuple(within_lines(part, crlf=crlf) for part in parts))
        case Repeat(inner, low, high, greedy):
            return Repeat(within_lines(inner, crlf=crlf), low, high, greedy)
        case Group(inner, index, name):
            return Group(within_lines(inner, crlf=crlf), index, name)


def _without(node: Chars | Octet, found: CharSet, banned: CharSet, at: int) -> Node:
    if all(char not in found for char in banned):
        return node
    left = found - banned
    if found.ranges and not left.ranges:
        shown = "".join(map(chr, found)).replace("\n", "\\n").replace("\r", "\\r")
        raise BadPattern(f"a literal line end at {at} needs multiline", at=at, construct=shown)
    return Chars(left, at) if isinstance(node, Chars) else Octet(left, at)


def _as_class(parts: tuple[Node, ...]) -> Chars | None:
    r"""Return `a|b|\n` as the class it equals, for a class may lose its line end where a literal may not."""
    found = CharSet()
    for part in parts:
        if not isinstance(part, Chars):
            return None
        found |= part.set
    return Chars(found)


def as_word(node: Node) -> Node:
    """Wrap `node` so that no word character stands beside it (`rg -w`)."""
    return beside(Look("half_end"), beside(Look("half_start"), node, first=True), first=False)


def as_line(node: Node, *, crlf: bool) -> Node:
    """Wrap `node` so that it must be the whole line (`rg -x`)."""
    if crlf:
        return Concat((Look("line_start_crlf"), node, Look("line_end_crlf")))
    return Concat((Look("line_start"), node, Look("line_end")))


def can_match_newline(node: Node) -> bool:
    """Tell whether a match may hold or touch a line end, so that lines cannot be searched one by one."""
    match node:
        case Chars(found) | Octet(found):
            return ord("\n") in found
        case Look(kind):
            return kind.startswith(("line", "text"))
        case Concat(parts) | Either(parts):
            return any(map(can_match_newline, parts))
        case Repeat(inner) | Group(inner):
            return can_match_newline(inner)


def has_crlf_anchor(node: Node) -> bool:
    """Tell whether a condition depends on carriage returns."""
    match node:
        case Look(kind):
            return kind.endswith("crlf")
        case Concat(parts) | Either(parts):
            return any(map(has_crlf_anchor, parts))
        case Repeat(inner) | Group(inner):
            return has_crlf_anchor(inner)
        case _:
            return False


def plain_bytes(node: Node) -> bytes | None:
    """Return the bytes that `node` matches if there is just one such string, and no condition."""
    match node:
        case Chars(found) | Octet(found) if len(found) == 1:
            value = found.ranges[0][0]
            return chr(value).encode() if isinstance(node, Chars) else bytes((value,))
        case Concat(parts):
            found_parts = [plain_bytes(part) for part in parts]
            return None if None in found_parts else b"".join(part for part in found_parts if part is not None)
        case Group(inner):
            return plain_bytes(inner)
        case _:
            return None
