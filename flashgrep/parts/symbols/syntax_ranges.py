"""Ranges of a file's syntax tree, for editors: enclosing nodes and folds. Offsets are in bytes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node

from flashgrep.base.checkpoint import checkpoint

MOST_FOLDS: Final = 10_000
MOST_DEPTH: Final = 300
"""Most enclosing nodes that are examined, of a position or a fold."""
_OPENING: Final = ("{", "[", "(")
_BODY: Final = re.compile(r"block|body|suite|compound|_list$|consequence")
_IMPORT: Final = re.compile(r"import|include|^use_declaration|using_directive")

FoldKind = Literal["region", "comment", "imports"]


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines, from 0, including the last one."""

    start: int
    end: int
    kind: FoldKind


def find_around(root: Node, offset: int) -> list[tuple[int, int]]:
    """Return the ranges of the nodes around an offset, innermost first, each larger than the previous one."""
    spans: list[tuple[int, int]] = []
    node = root.descendant_for_byte_range(offset, offset)
    while node is not None and len(spans) < MOST_DEPTH:
        span = node.start_byte, node.end_byte
        if span[0] < span[1] and span not in spans[-1:]:
            spans.append(span)
        node = node.parent
    return spans


def find_folds(root: Node) -> list[Fold]:
    """Return the foldable ranges: nodes with a body or brackets, and runs of comments and of imports.

    If several begin on one line, the longest is returned.
    """
    longest: dict[int, Fold] = {}
    for fold in _find_folds(root):
        checkpoint()
        fold_before = longest.get(fold.start)
        if fold_before is None or fold_before.end < fold.end:
            longest[fold.start] = fold
        if len(longest) == MOST_FOLDS:
            break
    return sorted(longest.values(), key=lambda fold: fold.start)


def _find_folds(root: Node) -> Iterator[Fold]:
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield from _find_runs(node)
        for child in node.children:
            first = child.start_point.row
            last = _last_row(child)
            if first == last:  # nothing in it spans two lines
                continue
            if depth < MOST_DEPTH:
                waiting.append((child, depth + 1))
            if _is_comment(child):
                yield Fold(first, last, "comment")
            elif child.is_named and (
                not (inner := child.children)  # a text of several lines
                or inner[0].type.startswith(_OPENING)
                or child.type in {"string", "template_string"}
                or any(_BODY.search(current_node.type) for current_node in inner)
            ):
                yield Fold(first, last, "region")


def _find_runs(node: Node) -> Iterator[Fold]:
    """Yield runs of two or more comments, or imports, on consecutive lines."""
    kind: FoldKind = "region"
    first = last = -1
    for child in [*node.children, None]:
        own: FoldKind = "region"
        if child is not None:
            if _is_comment(child):
                own = "comment"
            elif _IMPORT.search(child.type):
                own = "imports"
            else:
                own = "region"
        if child is not None and own == kind and child.start_point.row == last + 1:
            last = _last_row(child)
            continue
        if kind != "region" and last > first:
            yield Fold(first, last, kind)
        if child is not None:
            kind = own
            first = child.start_point.row
            last = _last_row(child)


def _last_row(node: Node) -> int:
    """Return the last line of a node; a line that the node only reaches at column 0 does not count."""
    end = node.end_point
    if end.column == 0 and end.row > node.start_point.row:
        return end.row - 1
    return end.row


def _is_comment(node: Node) -> bool:
    return "comment" in node.type
