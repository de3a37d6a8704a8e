"""The tree that scripts/syntax prints: in the terms in which a query for symbols is written."""

from pathlib import Path

from tree_sitter import Parser

from flashgrep.parts.symbols.parse.grammar import load_language
from scripts.tools.syntax import choose_grammar, describe_nodes


def test_a_tree_has_the_types_fields_lines_and_names_of_a_query() -> None:
    data = b"x = 1\ndef double(number):\n    return 2\n"
    tree = Parser(load_language("python")).parse(data)
    lines = list(describe_nodes(tree.root_node))
    assert lines[0] == "    1 (module"
    assert "    2   (function_definition" in lines
    assert "    2     name: (identifier 'double'" in lines


def test_the_grammar_is_that_of_the_language_and_may_be_missing() -> None:
    assert choose_grammar(Path("a/b.cu"), b"") == "cpp"
    assert choose_grammar(Path("a/b.nim"), b"") == ""
    assert choose_grammar(Path("a/b.unknown"), b"") == ""
