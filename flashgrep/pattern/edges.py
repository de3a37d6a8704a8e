"""What a match begins and ends with, and word conditions moved next to a character that decides them."""

from typing import NamedTuple

from flashgrep.pattern.charset import ASCII_WORD, CharSet
from flashgrep.pattern.nodes import Chars, Concat, Either, Group, Look, Node, Octet, Repeat


class Edge(NamedTuple):
    """The characters (bytes above 127 included) at one end of a match, and whether the match may be empty."""

    chars: CharSet
    empty: bool


def edge(node: Node, *, first: bool) -> Edge:
    """Return what `node` can begin (`first`) or end with."""
    match node:
        case Chars(found) | Octet(found):
            return Edge(found, empty=False)
        case Look():
            return Edge(CharSet(), empty=True)
        case Either(parts):
            edges = [edge(part, first=first) for part in parts]
            return Edge(_union([each.chars for each in edges]), empty=any(each.empty for each in edges))
        case Concat(parts):
            return edge_of(parts if first else parts[::-1], first=first)
        case Repeat(inner, low):
            once = edge(inner, first=first)
            return Edge(once.chars, empty=low == 0 or once.empty)
        case Group(inner):
            return edge(inner, first=first)


def edge_of(parts: tuple[Node, ...], *, first: bool) -> Edge:
    """Return what the first parts that can take a character begin (or end) with."""
    seen: list[CharSet] = []
    for part in parts:
        found = edge(part, first=first)
        seen.append(found.chars)
        if not found.empty:
            return Edge(_union(seen), empty=False)
    return Edge(_union(seen), empty=True)


def beside(look: Look, node: Node, *, first: bool) -> Node:
    """Put `look` before (or behind) `node`, next to classes split into word and other characters where that helps.

    `half_start [-a]` becomes `half_start - | half_start a`, which RE2 can say; the order of choices stays the same.
    """
    found = edge(node, first=first)
    if found.empty or not _mixed(found.chars):
        return Concat((look, node) if first else (node, look))
    return _pushed(look, node, first=first)


def _pushed(look: Look, node: Node, *, first: bool) -> Node:  # noqa: PLR0911 # one case for each kind of node
    match node:
        case Chars(found, at):
            return _split(look, Chars(found & ASCII_WORD, at), Chars(found - ASCII_WORD, at), first=first)
        case Octet(found, at):
            return _split(look, Octet(found & ASCII_WORD, at), Octet(found - ASCII_WORD, at), first=first)
        case Concat(parts) if parts and not edge(parts[0 if first else -1], first=first).empty:
            if first:
                return Concat((beside(look, parts[0], first=True), *parts[1:]))
            return Concat((*parts[:-1], beside(look, parts[-1], first=False)))
        case Either(parts):
            return Either(tuple(beside(look, part, first=first) for part in parts))
        case Group(inner, index, name):
            return Group(beside(look, inner, first=first), index, name)
        case Repeat(inner, low, high, greedy) if low:
            rest = Repeat(inner, low - 1, None if high is None else high - 1, greedy)
            one = beside(look, inner, first=first)
            return Concat((one, rest) if first else (rest, one))
        case _:
            return Concat((look, node) if first else (node, look))


def _split(look: Look, word: Node, other: Node, *, first: bool) -> Node:
    return Either(tuple(Concat((look, part) if first else (part, look)) for part in (word, other)))


def _mixed(found: CharSet) -> bool:
    return bool((found & ASCII_WORD).ranges) and not found <= ASCII_WORD


def _union(sets: list[CharSet]) -> CharSet:
    return CharSet.of(*(item for found in sets for item in found.ranges))
