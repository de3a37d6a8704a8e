"""TypeScript as its grammar can read it: members of a type that end with their line are ended by a semicolon.

The grammar takes ``<`` at the beginning of a line for more of the line before, and loses the rest of a type whose next
member is a call signature, ``<T>(…): R``. For TypeScript the member has ended: type arguments never begin a line.
"""

import re
from collections.abc import Sequence
from typing import Final

from tree_sitter import Node, Tree

from flashgrep.ingest.parse.grammar import Grammar, parse_tree

_REPAIRED: Final = frozenset({"typescript", "tsx"})
"""Grammars whose mistakes are looked at."""
_COMMENT: Final = rb"//[^\n]*+|/\*(?s:.)*?(?:\*/|\Z)"
# What may be the end of a member, then nothing but blanks and comments, then type parameters. A comment by itself is
# met as one, so that no word in it is taken for the end of a member.
_UNENDED: Final = re.compile(
    rb"(?<=[\w$)\]}>\"'`])((?:\s|" + _COMMENT + rb")++)(?<=[ \t])<"
    rb"(?=\s*+(?:const\s++)?[A-Za-z_$][\w$]*+\s*+(?:[,>=]|extends\b))|" + _COMMENT
)


def parse_and_repair(
    name: str, grammar: Grammar, data: bytes, seconds: float, spans: Sequence[tuple[int, int]] = ()
) -> Tree:
    """Parse as ``parse_tree``, once more where a grammar, by its name, has made a mistake that can be mended.

    The second text is as long as the first, so places are the same; its tree counts if less of it is a mistake.

    Raises:
        ParseTimeout: the bound was reached.

    """
    tree = parse_tree(grammar, data, seconds, spans)
    if name not in _REPAIRED or not tree.root_node.has_error:
        return tree
    ends = [found.end(1) - 1 for found in _UNENDED.finditer(data) if found[1] and b"\n" in found[1]]
    if not ends:
        return tree
    text = bytearray(data)
    for end in ends:
        text[end] = ord(";")
    other = parse_tree(grammar, bytes(text), seconds, spans)
    return other if _count_mistakes(other.root_node) < _count_mistakes(tree.root_node) else tree


def _count_mistakes(root: Node) -> int:
    """Return how many bytes the grammar made no sense of, and how many signs it had to add."""
    waiting, mistaken = [root], 0
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            mistaken += max(1, node.end_byte - node.start_byte)
        elif node.has_error:
            waiting += node.children
    return mistaken
