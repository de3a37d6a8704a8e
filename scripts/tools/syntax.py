"""Prints the syntax tree of a file: named nodes with their fields, lines, and the text of leaves.

For whoever writes a query for symbols (``flashgrep/parts/symbols/parse/queries``). The grammar is that of the file's
language, or the one that is named, for a language that has none yet.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node, Parser

from flashgrep.base.languages import SCRIPTS, WORDS, language_of
from flashgrep.parts.symbols.parse.grammar import load_language

MOST_TEXT = 60
"""Characters of a leaf's text."""


def describe_nodes(node: Node, field: str = "", depth: int = 0) -> Iterator[str]:
    """Yield a line for a node and each named node below it, in the form of a query's pattern."""
    line = node.start_point.row + 1
    name = f"({node.type}"
    if field:
        name = f"{field}: {name}"
    text = ""
    if node.child_count == 0:
        text = f" {(node.text or b'').decode(errors='replace')[:MOST_TEXT]!r}"
    yield f"{line:>5} {'  ' * depth}{name}{text}"
    for at, child in enumerate(node.children):
        if child.is_named:
            field_of_child = node.field_name_for_child(at) or ""
            yield from describe_nodes(child, field_of_child, depth + 1)


def choose_grammar(path: Path, data: bytes) -> str:
    """Return the grammar of a file's language; empty if it has none."""
    grammar = language_of(os.fsencode(path.name), data).symbols
    if grammar in {SCRIPTS, WORDS}:
        return ""
    return grammar


def main() -> None:
    """Print the tree."""
    parser = argparse.ArgumentParser(
        prog="scripts/syntax", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("grammar", nargs="?", help="default: that of its language")
    given = parser.parse_args()
    data = given.file.read_bytes()
    grammar = given.grammar or choose_grammar(given.file, data)
    if not grammar:
        parser.error("its language has no grammar; name one of semble_grammars")
    tree = Parser(load_language(grammar)).parse(data)
    print("\n".join(describe_nodes(tree.root_node)))


if __name__ == "__main__":
    main()
