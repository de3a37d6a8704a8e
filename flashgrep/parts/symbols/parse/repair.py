"""Texts that their grammar could not fully parse: repaired and parsed again; the new tree is used if it loses less.

Errors in the text are repaired by its layout (``layout.py``). In TypeScript, so is a bug of the grammar: it takes ``<``
at the beginning of a line for a continuation of the line before, and loses the rest of a type whose next member is a
call signature, ``<T>(…): R``. In the language the member has ended, since type arguments never begin a line; so members
that end with their line get a semicolon.
"""

import re
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from tree_sitter import Node, QueryCursor, Tree

from flashgrep.parts.symbols.parse.grammar import (
    DEPTH,
    MATCH_LIMIT,
    Grammar,
    ParseTimeout,
    grammar_of,
    parse_tree,
)
from flashgrep.parts.symbols.parse.layout import LAID_OUT, LayoutRepairer

_LARGE: Final = 1_000
"""Bytes of errors; macros that were not blanked out make fewer, in every fifth file of C++."""
_FEW: Final = 20
"""Lines."""
_REPAIRED: Final = frozenset({"typescript", "tsx"})
"""Grammars with this bug."""
_COMMENT: Final = rb"//[^\n]*+|/\*(?s:.)*?(?:\*/|\Z)"
# A possible end of a member, then only blanks and comments, then type parameters. The
# other alternative consumes comments, so that no word in one is taken for the end of a
# member.
_UNENDED: Final = re.compile(
    rb"(?<=[\w$)\]}>\"'`])((?:\s|" + _COMMENT + rb")++)(?<=[ \t])<"
    rb"(?=\s*+(?:const\s++)?[A-Za-z_$][\w$]*+\s*+(?:[,>=]|extends\b))|" + _COMMENT
)

_UNPAIRED: Final = re.compile(rb'^[^"\n]*"(?:[^"\n]*"[^"\n]*")*[^"\n]*\n', re.MULTILINE)
"""A line with an odd number of quotes."""
_DEFINES: Final = re.compile(rb"^[ \t]*(?:def|class|module)[ \t]+\w", re.MULTILINE)
_MOST_UNPAIRED: Final = 100
"""Such lines that are tried in one text."""


class RepairedTree(NamedTuple):
    """A text's tree."""

    tree: Tree
    blanked: Sequence[tuple[int, int]] = ()
    """Lines that were blanked out as errors, and are missing from the tree."""


def _end_statements(data: bytes) -> bytes:
    """Return a text with a semicolon in place of each line end at which a statement ends without one."""
    text = bytearray(data)
    for match in _UNENDED.finditer(data):
        if match[1] and b"\n" in match[1]:
            text[match.end(1) - 1] = ord(";")
    return bytes(text)


def parse_and_repair(
    name: str,
    grammar: Grammar,
    data: bytes,
    seconds: float,
    spans: Sequence[tuple[int, int]] = (),
) -> RepairedTree:
    """Parse like ``parse_tree``, and again if the grammar, called ``name``, has met an error that can be repaired.

    The repaired text is as long as the first, so offsets are the same; its tree is used if it loses less to errors.

    Raises:
        ParseTimeout: the bound was reached.

    """
    deadline = time.thread_time() + seconds
    tree = parse_tree(grammar, data, seconds, spans)
    if tree.root_node.has_error and name in _REPAIRED:
        text = _end_statements(data)
        if text != data:
            other = parse_tree(grammar, text, seconds, spans)
            if _count_errors(other.root_node) < _count_errors(tree.root_node):
                tree = other
                data = text
    if name == "ruby" and not tree.root_node.has_error and not spans:
        return end_string(grammar, data, tree, seconds)
    if not tree.root_node.has_error or name not in LAID_OUT or spans:
        return RepairedTree(tree)
    # The repair runs the grammar's query, which may compare texts: on a tree without
    # its text, that ends the process.
    if not grammar.reads_text and (whole := grammar_of(name)).reads_text:
        try:
            grammar = whole
            tree = parse_tree(whole, data, deadline - time.thread_time())
        except ParseTimeout:
            return RepairedTree(tree)
    return repair_by_layout(name, grammar, data, tree, deadline)


def end_string(
    grammar: Grammar, data: bytes, tree: Tree, seconds: float
) -> RepairedTree:
    """Return a Ruby text's tree without a line that begins a string with definitions in it, if that makes no error.

    Strings of Ruby continue over lines. An unterminated one is no error if the first quote of the next ends it, and so
    on, until an odd quote in a comment ends the last: all definitions between are lost inside strings.
    """
    for line in islice(_UNPAIRED.finditer(data), _MOST_UNPAIRED):
        at = data.rfind(b'"', line.start(), line.end())
        node = tree.root_node.descendant_for_byte_range(at, at + 1)
        while node is not None and node.type != "string":
            node = node.parent
        if (
            node is None
            or node.start_byte < line.start()
            or not _DEFINES.search(data, line.end(), node.end_byte)
        ):
            continue
        text = (
            data[: line.start()]
            + re.sub(rb"[^\r\n]", b" ", line[0])
            + data[line.end() :]
        )
        other = parse_tree(grammar, text, seconds)
        if other.root_node.has_error:
            return RepairedTree(tree)
        return RepairedTree(other, [line.span()])
    return RepairedTree(tree)


def repair_by_layout(
    name: str, grammar: Grammar, data: bytes, tree: Tree, deadline: float
) -> RepairedTree:
    """Return the tree of a text repaired by its layout, or its own tree, whichever loses less.

    ``deadline``: when to give up, in processor time of this thread.
    """
    if name == "cpp" and _count_errors(tree.root_node) < min(_LARGE, len(data) // 4):
        return RepairedTree(tree)
    repairer = LayoutRepairer(name, grammar, data, deadline)
    try:
        repairer.repair(tree.root_node)
        if repairer.text == data:
            return RepairedTree(tree)
        other = parse_tree(grammar, bytes(repairer.text), deadline - time.thread_time())
    except ParseTimeout:
        return RepairedTree(tree)
    blanked_bytes = sum(end - start for start, end in repairer.blanked)
    counts = list[tuple[int, int, int]]()
    for root, lost in ((tree.root_node, 0), (other.root_node, blanked_bytes)):
        cursor = QueryCursor(grammar.query, match_limit=MATCH_LIMIT)
        cursor.set_max_start_depth(DEPTH)
        definitions = sum(
            pattern < grammar.definitions for pattern, _ in cursor.matches(root)
        )
        counts.append(
            (-repairer.count_strays(root), definitions, -_count_errors(root) - lost)
        )
    before, after = counts
    # The number of definitions counts if a lot had to be blanked out. Otherwise it
    # would favour the first tree, which has some that are not real.
    is_sure = not other.root_node.has_error and len(repairer.blanked) <= _FEW
    if before[0] == after[0] and (is_sure or tree.root_node.is_error):
        if after[2] > before[2]:
            return RepairedTree(other, repairer.blanked)
        return RepairedTree(tree)
    if after > before:
        return RepairedTree(other, repairer.blanked)
    return RepairedTree(tree)


def _count_errors(root: Node) -> int:
    """Return how many bytes the grammar could not parse, plus how many tokens it had to insert."""
    waiting = [root]
    wrong = 0
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            wrong += max(1, node.end_byte - node.start_byte)
        elif node.has_error:
            waiting += node.children
    return wrong
