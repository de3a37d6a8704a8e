"""Texts that their grammar could not read: mended, parsed once more, and that tree taken if less is lost in it.

What people mistake is mended by how the text is laid out (``layout.py``), and in TypeScript a mistake of the grammar's
own: it takes ``<`` at the beginning of a line for more of the line before, and loses the rest of a type whose next
member is a call signature, ``<T>(…): R``. For TypeScript the member has ended, since type arguments never begin a line;
so members that end with their line are ended by a semicolon.
"""

import re
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from tree_sitter import Node, QueryCursor, Tree

from flashgrep.ingest.parse.grammar import DEPTH, MATCH_LIMIT, Grammar, ParseTimeout, grammar_of, parse_tree
from flashgrep.ingest.parse.layout import LAID_OUT, Mender

_LARGE: Final = 1_000
"""Bytes of mistakes; macros that nobody blanks out make fewer, in every fifth file of C++."""
_FEW: Final = 20
"""Lines."""
_REPAIRED: Final = frozenset({"typescript", "tsx"})
"""Grammars whose mistakes are looked at."""
_COMMENT: Final = rb"//[^\n]*+|/\*(?s:.)*?(?:\*/|\Z)"
# What may be the end of a member, then nothing but blanks and comments, then type parameters. A comment by itself is
# met as one, so that no word in it is taken for the end of a member.
_UNENDED: Final = re.compile(
    rb"(?<=[\w$)\]}>\"'`])((?:\s|" + _COMMENT + rb")++)(?<=[ \t])<"
    rb"(?=\s*+(?:const\s++)?[A-Za-z_$][\w$]*+\s*+(?:[,>=]|extends\b))|" + _COMMENT
)

_UNPAIRED: Final = re.compile(rb'^[^"\n]*"(?:[^"\n]*"[^"\n]*")*[^"\n]*\n', re.MULTILINE)
"""A line with a quote that nothing on it ends."""
_DEFINES: Final = re.compile(rb"^[ \t]*(?:def|class|module)[ \t]+\w", re.MULTILINE)
_LOOKED_AT: Final = 100
"""Such lines of a text."""


class Repaired(NamedTuple):
    """A text's tree."""

    tree: Tree
    blanked: Sequence[tuple[int, int]] = ()
    """Lines that were taken for mistakes and that the tree has nothing of."""


def parse_and_repair(
    name: str, grammar: Grammar, data: bytes, seconds: float, spans: Sequence[tuple[int, int]] = ()
) -> Repaired:
    """Parse as ``parse_tree``, once more where a grammar, by its name, has met a mistake that can be mended.

    The second text is as long as the first, so places are the same; its tree counts if less is lost to the mistake.

    Raises:
        ParseTimeout: the bound was reached.

    """
    deadline = time.thread_time() + seconds
    tree = parse_tree(grammar, data, seconds, spans)
    if tree.root_node.has_error and name in _REPAIRED:
        ends = [found.end(1) - 1 for found in _UNENDED.finditer(data) if found[1] and b"\n" in found[1]]
        text = bytearray(data)
        for end in ends:
            text[end] = ord(";")
        if ends:
            other = parse_tree(grammar, bytes(text), seconds, spans)
            if _count_mistakes(other.root_node) < _count_mistakes(tree.root_node):
                tree, data = other, bytes(text)
    if name == "ruby" and not tree.root_node.has_error and not spans:
        return end_string(grammar, data, tree, seconds)
    if not tree.root_node.has_error or name not in LAID_OUT or spans:
        return Repaired(tree)
    # Mending asks the grammar's query, which may compare texts: a tree without its text would end the process.
    if not grammar.reads_text and (whole := grammar_of(name)).reads_text:
        try:
            grammar, tree = whole, parse_tree(whole, data, deadline - time.thread_time())
        except ParseTimeout:
            return Repaired(tree)
    return mend_by_layout(name, grammar, data, tree, deadline)


def end_string(grammar: Grammar, data: bytes, tree: Tree, seconds: float) -> Repaired:
    """Return a Ruby text's tree without the line that begins a string with definitions in it, if there is no error so.

    Strings continue over lines there. One that nobody ended is not an error if the next one's first quote ends it, and
    an odd quote in a comment ends the last: all definitions between are lost to strings.
    """
    for line in islice(_UNPAIRED.finditer(data), _LOOKED_AT):
        at = data.rfind(b'"', line.start(), line.end())
        node = tree.root_node.descendant_for_byte_range(at, at + 1)
        while node is not None and node.type != "string":
            node = node.parent
        if node is None or node.start_byte < line.start() or not _DEFINES.search(data, line.end(), node.end_byte):
            continue
        text = data[: line.start()] + re.sub(rb"[^\r\n]", b" ", line[0]) + data[line.end() :]
        other = parse_tree(grammar, text, seconds)
        return Repaired(tree) if other.root_node.has_error else Repaired(other, [line.span()])
    return Repaired(tree)


def mend_by_layout(name: str, grammar: Grammar, data: bytes, tree: Tree, deadline: float) -> Repaired:
    """Return the tree of a text mended by its layout, or its own, whichever lost less.

    ``deadline``: when to give up, in processor time of this thread.
    """
    if name == "cpp" and _count_mistakes(tree.root_node) < min(_LARGE, len(data) // 4):
        return Repaired(tree)
    mender = Mender(name, grammar, data, deadline)
    try:
        mender.mend(tree.root_node)
        if mender.text == data:
            return Repaired(tree)
        other = parse_tree(grammar, bytes(mender.text), deadline - time.thread_time())
    except ParseTimeout:
        return Repaired(tree)
    taken = sum(end - start for start, end in mender.blanked)
    counts = list[tuple[int, int, int]]()
    for root, lost in ((tree.root_node, 0), (other.root_node, taken)):
        cursor = QueryCursor(grammar.query, match_limit=MATCH_LIMIT)
        cursor.set_max_start_depth(DEPTH)
        definitions = sum(pattern < grammar.definitions for pattern, _ in cursor.matches(root))
        counts.append((-mender.count_strays(root), definitions, -_count_mistakes(root) - lost))
    before, after = counts
    # Definitions count where a lot had to be blanked out. Elsewhere they would speak for the first tree, which has some
    # that are none.
    is_sure = not other.root_node.has_error and len(mender.blanked) <= _FEW
    if before[0] == after[0] and (is_sure or tree.root_node.is_error):
        return Repaired(other, mender.blanked) if after[2] > before[2] else Repaired(tree)
    return Repaired(other, mender.blanked) if after > before else Repaired(tree)


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
