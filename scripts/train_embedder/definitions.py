"""Finds definitions and their documentation with tree-sitter; they are matched by rows, not by tree.

A definition's documentation is the comment that ends on the row above it (skipping attributes and decorators), or
Python's docstring. Its code is its rows without the documentation.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from tree_sitter import Node, Parser, Query, QueryCursor

from flashgrep.parts.symbols.parse.grammar import load_language
from scripts.train_embedder.languages import QUERIES

_BETWEEN: Final = re.compile(r"\s*(?:@|#\[|template\b|export\s*$|\[\w)")
"""Rows allowed between a comment and its definition."""
_LAST_NAME: Final = re.compile(r"~?[A-Za-z_$][\w$]*(?=\W*$)")
_DECLARATOR: Final = re.compile(r"(~?[A-Za-z_]\w*)\s*\(")


class Rows(NamedTuple):
    """Rows of a file, from 0, end excluded."""

    start: int
    end: int


class Definition(NamedTuple):
    """A function, method, class or type."""

    name: str
    rows: Rows
    doc_rows: Rows | None
    doc: str


class Source(NamedTuple):
    """A parsed file."""

    lines: list[str]
    definitions: list[Definition]
    comments: dict[int, Rows]
    """Comments on their own rows, adjacent ones joined, by end row."""


@cache
def _tools(language: str) -> tuple[Parser, Query]:
    grammar = load_language(language)
    return Parser(grammar), Query(grammar, QUERIES[language])


def parse(text: str, language: str) -> Source:
    """Return the definitions and comments of a file."""
    parser, query = _tools(language)
    data = text.encode()
    root = parser.parse(data).root_node
    found = [captures for _, captures in QueryCursor(query).matches(root)]
    lines = text.split("\n")
    comments = _blocks(
        [match["comment"][0] for match in found if "comment" in match], lines
    )
    pairs = [(match["def"][0], match["name"][0]) for match in found if "def" in match]
    return Source(
        lines, [_definition(*pair, lines, comments) for pair in pairs], comments
    )


def text_of(lines: list[str], rows: Rows, without: Rows | None = None) -> str:
    """Return rows of a file, except for those in ``without``."""
    kept = range(rows.start, min(rows.end, len(lines)))
    return "\n".join(
        lines[row]
        for row in kept
        if without is None or not without.start <= row < without.end
    )


def _rows(node: Node) -> Rows:
    end = node.end_point
    return Rows(
        node.start_point.row,
        end.row + (1 if end.column or end.row == node.start_point.row else 0),
    )


def _blocks(nodes: list[Node], lines: list[str]) -> dict[int, Rows]:
    ends: dict[int, Rows] = {}
    for node in sorted(nodes, key=lambda node: node.start_byte):
        rows = _rows(node)
        if lines[rows.start].encode()[: node.start_point.column].strip():
            continue  # after code on its row
        before = ends.pop(rows.start, None)
        ends[rows.end] = Rows(before.start if before else rows.start, rows.end)
    return ends


def _definition(
    node: Node, name: Node, lines: list[str], comments: dict[int, Rows]
) -> Definition:
    rows = _rows(node)
    top = rows.start
    while top > 0 and _BETWEEN.match(lines[top - 1]):
        top -= 1
    doc_rows = _docstring(node) or comments.get(top)
    doc = text_of(lines, doc_rows) if doc_rows else ""
    return Definition(_name(name), Rows(top, rows.end), doc_rows, doc)


def _docstring(node: Node) -> Rows | None:
    body = node.child_by_field_name("body")
    first = (
        body.named_children[0]
        if body is not None and body.type == "block" and body.named_children
        else None
    )
    if (
        first is not None
        and first.type == "expression_statement"
        and first.named_children
    ):
        first = first.named_children[0]
    return _rows(first) if first is not None and first.type == "string" else None


def _name(node: Node) -> str:
    text = (node.text or b"").decode(errors="replace")
    found = _DECLARATOR.search(text) if "(" in text else _LAST_NAME.search(text)
    return found[1 if found.re is _DECLARATOR else 0] if found else ""
