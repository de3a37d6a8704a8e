"""From a syntax tree to columns: run the tags queries, nest by intervals, settle kinds by what stands around."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from tree_sitter import Node, Query, QueryCursor

from flashgrep.checkpoint import checkpoint
from flashgrep.ingest.parse.grammar import Grammar, parse_tree
from flashgrep.ingest.parse.model import (
    CALLABLE_KINDS,
    COLUMNS,
    KIND_ID,
    KINDS,
    MARKS,
    TYPE_KINDS,
    Ints,
    ParsedFile,
)

_ANONYMOUS: Final = len(KINDS)
_INLINE: Final = len(KINDS) + 1
"""Scopes without a name, for nesting only: a function's, and a type's."""
_SCOPE_ID: Final = {**KIND_ID, "anonymous": _ANONYMOUS, "inline": _INLINE}
_TYPES: Final = frozenset({KIND_ID[kind] for kind in TYPE_KINDS} | {_INLINE})
_FUNCTIONS: Final = frozenset({KIND_ID[kind] for kind in CALLABLE_KINDS} | {_ANONYMOUS})
_LOCAL: Final = frozenset({KIND_ID["variable"], KIND_ID["constant"]})
_KEEPS_LOCALS: Final = frozenset({"bash"})
_QUALIFIED: Final = re.compile(rb"[^\W\d][\w.:\\]*(?:::|[.\\])(?=\w)")
_WHOLE_NAME: Final = frozenset({KIND_ID["heading"], KIND_ID["package"]})
_MATCH_LIMIT: Final = 1 << 16
"""Matches in progress; a pathological file loses tags instead of taking all memory."""

_DEPTH: Final = 1_000
"""Deeper nodes have no tags: a cursor's cost is quadratic in depth, whatever its callback says."""


@dataclass(slots=True)
class _Row:
    """One definition or nameless scope on its way."""

    start: int
    end: int
    kind: int
    name: int = -1
    name_end: int = -1
    declares: int = 0
    qualifier: int = 0
    qualifier_end: int = 0
    pattern: int = 0


def tags(language: str, grammar: Grammar, data: bytes, seconds: float) -> ParsedFile:
    """Parse a file and return its symbols.

    Raises:
        ParseTimeout: the grammar took longer than ``seconds``.

    """
    root = parse_tree(grammar, data, seconds).root_node
    captures = _cursor(grammar.references).captures(root)
    rows = _settle(language, _rows(grammar, root, data))
    taken = np.array([row.name for row in rows], np.int64)
    return ParsedFile(
        language=language,
        definitions=_table(rows),
        marks={kind: np.setdiff1d(_starts(captures.get(kind, []), data), taken) for kind in MARKS},
        skips=_spans(captures.get("skip", [])),
        statements=_spans(captures.get("statement", [])),
        grammar="tree-sitter",
    )


def _rows(grammar: Grammar, root: Node, data: bytes) -> list[_Row]:
    """Return one row per defined name (the earliest pattern wins) and per nameless scope."""
    named: dict[int, _Row] = {}
    scopes: list[_Row] = []
    for pattern, captured in _cursor(grammar.definitions).matches(root):
        checkpoint()
        row = _row(pattern, captured, data)
        if row is None:
            continue
        if row.name < 0:
            scopes.append(row)
        elif row.name not in named or named[row.name].pattern > pattern:
            named[row.name] = row
    return [*named.values(), *scopes]


def _cursor(query: Query) -> QueryCursor:
    cursor = QueryCursor(query, match_limit=_MATCH_LIMIT)
    cursor.set_max_start_depth(_DEPTH)
    return cursor


def _row(pattern: int, captured: dict[str, list[Node]], data: bytes) -> _Row | None:
    row = _Row(0, 0, -1, pattern=pattern)
    for capture, nodes in captured.items():
        node = nodes[0]
        if capture == "name":
            row.name, row.name_end = node.start_byte, node.end_byte
        elif capture == "container":
            row.qualifier, row.qualifier_end = node.start_byte, node.end_byte
        elif capture[0] != "_":
            row.declares = int(capture.startswith("declaration."))
            row.kind = _SCOPE_ID[capture.removeprefix("declaration.")]
            row.start, row.end = node.start_byte, node.end_byte
            row.end -= data[row.end - 1 : row.end] == b"\n"  # some grammars count the line end in
    if row.name >= 0:
        _trim(row, data)
    return row if row.name < row.name_end or row.kind in {_ANONYMOUS, _INLINE} else None


def _trim(row: _Row, data: bytes) -> None:
    """Reduce a name to its last part, the rest qualifying it; take off what is not name in Ruby, Bash and Markdown."""
    name = data[row.name : row.name_end]
    if row.kind == KIND_ID["heading"]:
        stripped = name.strip(b" \t\r\n#")
    elif name[-1:] == b"=" and name[:-1].isalnum() and data[row.name_end : row.name_end + 1] in b"'\"":
        stripped = name[:-1]  # a shell alias: ``ll='ls -l'``
    else:
        stripped = name.lstrip(b":#")
    row.name += name.find(stripped)
    row.name_end = row.name + len(stripped)
    if row.kind in _WHOLE_NAME or row.qualifier_end or stripped.isalnum():
        return
    if found := _QUALIFIED.match(stripped):
        row.qualifier, row.qualifier_end = row.name, row.name + found.end()
        row.name += found.end()


def _settle(language: str, rows: list[_Row]) -> list[_Row]:
    """Nest the rows; make functions in types methods, variables there fields, and leave out local variables."""
    rows.sort(key=lambda row: (row.start, -row.end, row.kind < _ANONYMOUS, row.name))
    open_scopes: list[_Row] = []
    kept = []
    for row in rows:
        while open_scopes and open_scopes[-1].end <= row.start:
            open_scopes.pop()
        around = next((scope.kind for scope in reversed(open_scopes) if scope.end >= row.end), -1)
        if row.kind in _LOCAL and around in _FUNCTIONS and language not in _KEEPS_LOCALS:
            continue
        row.kind = _kind_within(row.kind, around)
        if row.kind < _ANONYMOUS:
            kept.append(row)
        if row.kind not in _LOCAL:
            open_scopes.append(row)
    return kept


def _kind_within(kind: int, around: int) -> int:
    if around in _TYPES:
        if kind == KIND_ID["function"]:
            return KIND_ID["method"]
        if kind == KIND_ID["variable"]:
            return KIND_ID["field"]
    return kind


def _table(rows: list[_Row]) -> Ints:
    if not rows:
        return np.zeros((0, COLUMNS), np.int64)
    columns = [
        (row.name, row.name_end, row.start, row.end, row.kind, row.declares, row.qualifier, row.qualifier_end)
        for row in rows
    ]
    return np.array(columns, np.int64)


def _starts(nodes: list[Node], data: bytes) -> Ints:
    """Return where the last part of each name begins."""
    if nodes and nodes[0].type == "alias":  # Elixir has ``Shop.Store`` as one node
        starts = [data.rfind(b".", node.start_byte, node.end_byte) + 1 or node.start_byte for node in nodes]
    else:
        starts = [node.start_byte for node in nodes]
    return np.unique(np.array(starts, np.int64))


def _spans(nodes: Iterable[Node]) -> Ints:
    """Return the nodes' spans, sorted, those inside another left out."""
    spans = np.array(sorted({(node.start_byte, -node.end_byte) for node in nodes}), np.int64).reshape(-1, 2)
    spans[:, 1] *= -1
    outer = np.ones(len(spans), np.bool_)
    outer[1:] = spans[1:, 1] > np.maximum.accumulate(spans[:, 1])[:-1]
    return spans[outer]
