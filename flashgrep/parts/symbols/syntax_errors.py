"""What of a text its grammar cannot parse: how many places, and where the first is."""

from typing import Final

from tree_sitter import Node

from flashgrep.api.searchers import SyntaxErrors
from flashgrep.base.languages import LANGUAGES, SCRIPTS, WORDS, language_of
from flashgrep.parts.symbols.parse.embedded import read_scripts
from flashgrep.parts.symbols.parse.grammar import (
    NoGrammar,
    ParseTimeout,
    grammar_of,
    parse_tree,
)
from flashgrep.parts.symbols.parse.macros import BLANKED

MAX_SECONDS: Final = 1.0
MAX_BYTES: Final = 1 << 20
"""Larger texts are not checked: parsing one takes longer than writing it."""


def find_syntax_errors(path: bytes, data: bytes) -> SyntaxErrors | None:
    """Return the errors in a text; None: no grammar can say."""
    language = language_of(path, data)
    source = language.symbols
    if not source or source == WORDS or len(data) > MAX_BYTES:
        return None
    text = data
    if source == SCRIPTS:
        source, text = read_scripts(language.name, data)
    if LANGUAGES[language.name].name in BLANKED:
        text = BLANKED[language.name](text)
    try:
        root = parse_tree(grammar_of(source), text, MAX_SECONDS).root_node
    except (NoGrammar, ParseTimeout):
        return None
    return count_errors(root, data)


def count_errors(root: Node, data: bytes) -> SyntaxErrors:
    """Return how many parts of a tree are errors, and the line of the first."""
    waiting = [root]
    starts: list[int] = []
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            starts.append(node.start_byte)
        elif node.has_error:
            waiting += node.children
    if not starts:
        return SyntaxErrors(0, 0)
    return SyntaxErrors(len(starts), 1 + data.count(b"\n", 0, min(starts)))
