"""Where a definition is in its file, with what belongs to it, and how a text is put there in its indentation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node

from flashgrep.base.errors import Conflict
from flashgrep.files.columns import Lines
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.parts.navigation.navigation import (
    Navigation,
    Navigator,
    Place,
    place_of,
)
from flashgrep.parts.navigation.references import (
    LEAST,
    ReferenceQuestion,
    ReferenceSearch,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.refactoring.hidden_uses import (
    MOST_USES,
    WRITTEN,
    HiddenUses,
    Trees,
)
from flashgrep.parts.refactoring.renaming import place_text
from flashgrep.parts.symbols.name_at_position import NameAtPosition
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, NAME, START
from flashgrep.parts.symbols.symbol_source import SymbolSource, tree_of

Action = Literal["replace", "insert_before", "insert_after", "delete"]
_WRAPPERS: Final = frozenset(
    {
        "export_statement",
        "expression_statement",
        "lexical_declaration",
        "variable_declaration",
        "type_declaration",
        "const_declaration",
        "var_declaration",
        "field_declaration",
        "declaration",
        "type_definition",
        "template_declaration",
        "ambient_declaration",
        "assignment",
        "local_variable_declaration",
        "const_spec",
        "var_spec",
        "type_alias_declaration",
        "type_spec",
        "static_item",
    }
)
"""Nodes around a definition that are only there for it."""
_DECORATED: Final = "decorated_definition"
_ABOVE: Final = re.compile(
    "comment|attribute_item|decorator|annotation|inner_attribute"
)
"""Kinds of nodes before a definition that belong to it."""
_LEADS: Final = re.compile(r"@|#(?!include|define|if)|//|/\*|--|\[\w|<!--|%")
"""How a text begins that brings its own comment, decorators or attributes."""
_TAIL: Final = re.compile(rb"[ \t]*([;,]?)[ \t\r]*(?:(?:#|//|--|/\*).*)?\Z")
_OPENS: Final = (b"{", b"(", b"[", b":")
_CLOSES: Final = ("}", ")", "]", "end")
MOST_GAP: Final = 2
"""Most blank lines between two definitions."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The lines of a definition, from 1: from its comment and decorators, from itself, to its end."""

    above: int
    first: int
    last: int
    indentation: str
    tail: str = ""
    """A comma or a semicolon behind the definition."""


def find_extent(place: Place) -> Extent:
    """Return the lines of a definition.

    Raises:
        Conflict: it shares its first or last line with other code.

    """
    symbols = place.symbols
    row = symbols.row(place.index)
    own = row[START]
    end = row[END]
    above = own
    root = tree_of(symbols)
    if root is not None:
        node = _find_whole(symbols, root, own, end)
        own = min(own, node.start_byte)
        end = max(end, node.end_byte)
        above = own
        if node.parent is not None and node.parent.type == _DECORATED:
            node = node.parent
            above = node.start_byte
        above = _find_above(symbols, node, above)
    lines = symbols.lines
    first = lines.line(own)
    last = lines.line(max(own, end - 1))
    before = symbols.data[lines.start(first) : own]
    after = symbols.data[end : _end_of(lines, symbols.data, last)]
    tail = _TAIL.match(after)
    if before.strip() or tail is None:
        raise Conflict(
            f"{place_text(place)}: the definition shares a line with other code; use write_code",
            reason="shares_line",
        )
    indentation = before.decode("utf-8", "replace")
    return Extent(lines.line(above), first, last, indentation, tail[1].decode())


def _find_whole(symbols: FileSymbols, root: Node, start: int, end: int) -> Node:
    """Return the node of a definition with the statement around it, if that has no other definition."""
    node = root.descendant_for_byte_range(start, max(start, end - 1)) or root
    while node.parent is not None and node.parent.type in _WRAPPERS:
        around = node.parent
        names = symbols.parsed.definitions[:, NAME]
        inside = (names >= around.start_byte) & (names < around.end_byte)
        is_own = (names >= start) & (names < end)
        if bool((inside & ~is_own).any()):
            break
        node = around
    return node


def _find_above(symbols: FileSymbols, node: Node, start: int) -> int:
    """Return where the comments, decorators and attributes directly above a node begin."""
    data = symbols.data
    previous = node.prev_sibling
    while previous is not None and _ABOVE.search(previous.type):
        # A blank line between ends what belongs to a definition: a comment above it may
        # be about the whole file.
        between = data[previous.end_byte : start]
        line_start = data.rfind(b"\n", 0, previous.start_byte) + 1
        is_alone = not data[line_start : previous.start_byte].strip()
        is_near = between.count(b"\n") <= 1 and not between.strip()
        if not is_alone or not is_near:
            break
        start = previous.start_byte
        previous = previous.prev_sibling
    return start


def _end_of(lines: Lines, data: bytes, number: int) -> int:
    end = data.find(b"\n", lines.start(number))
    if end < 0:
        return len(data)
    return end


def plan_edit(place: Place, action: Action, text: str) -> LineEdit:
    """Return the lines that change; ``text``: what is put there."""
    extent = find_extent(place)
    if action == "delete":
        shown = ""
    else:
        shown = indent(text, extent.indentation)
    # What was read without its comment is replaced without it.
    if action == "replace":
        if _LEADS.match(shown.lstrip()):
            first = extent.above
        else:
            first = extent.first
        if extent.tail and not shown.rstrip().endswith(extent.tail):
            shown = shown.rstrip("\n") + extent.tail + "\n"
        return LineEdit(first, extent.last, shown)
    lines = _Lines(place.symbols)
    if action == "delete":
        return _plan_delete(lines, extent)
    gap = _count_gap(lines, extent, shown)
    if action == "insert_before":
        return LineEdit(extent.above, extent.above - 1, shown + "\n" * gap)
    return LineEdit(extent.last + 1, extent.last, "\n" * gap + shown)


class _Lines:
    """The lines of a text, from 1."""

    def __init__(self, symbols: FileSymbols) -> None:
        self._lines = symbols.lines
        self.count = self._lines.line(len(symbols.data))
        if symbols.data.endswith(b"\n"):
            self.count -= 1

    def text(self, number: int) -> bytes:
        """Return a line without the space around it."""
        return self._lines.text(number).strip().encode()

    def count_blank(self, start: int, step: int) -> int:
        """Return how many blank lines there are from a line on, up or down."""
        count = 0
        while 1 <= start + count * step <= self.count:
            if self.text(start + count * step):
                break
            count += 1
        return count


def _count_gap(lines: _Lines, extent: Extent, text: str) -> int:
    """Return how many blank lines are put between a definition and its new neighbour."""
    is_line = extent.above == extent.last and text.count("\n") == 1
    if is_line:
        return 0
    above = lines.count_blank(extent.above - 1, -1)
    below = lines.count_blank(extent.last + 1, 1)
    return min(max(above, below, 1), MOST_GAP)


def _plan_delete(lines: _Lines, extent: Extent) -> LineEdit:
    """Return a definition's lines with the blank lines that are then too many."""
    above = lines.count_blank(extent.above - 1, -1)
    below = lines.count_blank(extent.last + 1, 1)
    first = extent.above
    last = extent.last
    before = first - above - 1
    after = last + below + 1
    is_end = after > lines.count
    if not is_end:
        is_end = lines.text(after).startswith((b"}", b")", b"]"))
    is_start = before < 1 or lines.text(before).endswith(_OPENS)
    # The blank lines of one side go, and those between the neighbours stay.
    if is_end:
        first -= above
    elif is_start:
        last += below
    else:
        last += min(above, below)
    return LineEdit(first, last, "")


def indent(text: str, indentation: str) -> str:
    """Return a text in the indentation of a definition, unless it has that already; it ends with a line end."""
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    first = _margin(lines[0])
    following = [line for line in lines[1:] if line.strip()]
    if first == indentation and first:
        return _join(lines)
    if not first and indentation and following:
        last = following[-1]
        least = min((_margin(line) for line in following), key=len)
        # A body's indentation may be relative or in place; the bracket that closes it
        # stands below its first line.
        if last.strip().startswith(_CLOSES):
            is_placed = _margin(last) == indentation
        else:
            is_placed = least.startswith(indentation) and least != indentation
        if is_placed:  # only the first line was cut out of its place
            return _join([indentation + lines[0], *lines[1:]])
    shifted = []
    for line in lines:
        if not line.strip():
            shifted.append("")
        else:
            shifted.append(indentation + line.removeprefix(first))
    return _join(shifted)


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _join(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def find_outer_uses(source: SymbolSource, place: Place) -> Iterator[Place]:
    """Yield the uses of a definition outside of itself."""
    navigator = Navigator(source)
    own = place_of(Definition(place.path, place.symbols, place.index), WRITTEN)
    name = NameAtPosition(own.path, own.symbols, own.start, own.end)
    question = ReferenceQuestion(
        limit=MOST_USES, include_declaration=False, least=LEAST
    )
    search = ReferenceSearch(source, question, navigator)
    start, end = own.span
    uses = list(search.find_uses(name, [own], Navigation()))
    hidden = HiddenUses(source, navigator, Trees())
    for use in [*uses, *hidden.run([own], uses)]:
        if use.resolution.confidence < LEAST:
            continue
        is_inside = use.path == own.path and start <= use.start < end
        if not is_inside and (use.path, use.start) != (own.path, own.start):
            yield use
