"""The type that a member is asked of, as declarations tell, in languages whose names nobody resolves.

``dev->priv.lock`` in C: ``dev`` is declared in the function as a ``struct device``, that has a field ``priv`` of some
type, which has ``lock``. Types are told by their names alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tree_sitter import Node

from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, NAME, START, TYPE_KINDS
from flashgrep.search.named import Named, find_declaration
from flashgrep.search.research_graph import Definition

_OBJECTS: Final = ("argument", "object", "value", "operand", "receiver")
"""Fields of nodes: what a member is asked of."""
_MEMBERS: Final = ("field", "name", "method", "property", "attribute")
_CALLED: Final = ("function", "name", "method")
_WORD: Final = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_GENERIC: Final = re.compile(rb"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)")
_NO_TYPE: Final = frozenset({b"const", b"volatile", b"struct", b"union", b"enum", b"static", b"mut", b"dyn", b"final"})
_TYPE: Final = (
    rb"[\"']?(?:(?:Optional|Type|type|Final|ClassVar|Annotated)\[)?[\"'&*]*((?:[A-Za-z_]\w*(?:\.|::))*[A-Za-z_]\w*)"
)
_MOST_STEPS: Final = 10
"""Members of members, parentheses and dereferences."""
_MOST_TEXT: Final = 400
"""Bytes before a name in which its type stands."""

Define = Callable[[str], Sequence[Definition]]


def find_member(named: Named, define: Define) -> list[Definition]:
    """Return the members that a name is, where it is asked of something whose type is told; none: it is not."""
    leaf = named.root.descendant_for_byte_range(named.start, named.start + 1) if named.root is not None else None
    around = leaf.parent if leaf is not None else None
    is_member = around is not None and any(around.child_by_field_name(field) == leaf for field in _MEMBERS)
    asked = _first(around, _OBJECTS) if around is not None and is_member else None
    owner = _type_of(named, asked, define, 0) if asked is not None else ""
    return list(_members_of(owner, named.text, define)) if owner else []


def _type_of(named: Named, node: Node, define: Define, depth: int) -> str:
    """Return the name of an expression's type; empty where it cannot be told."""
    data = named.symbols.data
    if depth > _MOST_STEPS or named.root is None:
        return ""
    if not node.child_count:
        return _type_of_name(named, named.root, node)
    if (written := node.child_by_field_name("type")) is not None:  # a cast
        return _last_word(data[written.start_byte : written.end_byte])
    is_call = node.child_by_field_name("arguments") is not None
    part, asked = _first(node, _CALLED if is_call else _MEMBERS), _first(node, _OBJECTS)
    if part is None or (is_call and part.child_count):  # in parentheses, dereferenced; a call of a member
        inner = part or asked or node.named_child(0)
        return _type_of(named, inner, define, depth + 1) if inner is not None else ""
    name = data[part.start_byte : part.end_byte].decode("utf-8", "replace")
    known: Iterable[Definition] = (one for one in define(name) if one.kind in CALLABLE_KINDS) if is_call else ()
    if asked is not None:
        owner = _type_of(named, asked, define, depth + 1)
        known = _members_of(owner, name, define) if owner else ()
    for one in known:
        row = one.symbols.row(one.index)  # the type is before the name of a field or a function
        if kind := _last_word(one.symbols.data[max(row[START], row[NAME] - _MOST_TEXT) : row[NAME]]):
            return kind
    return ""


def _type_of_name(named: Named, root: Node, node: Node) -> str:
    """Return the type that a local name is declared with; of the object itself, the type around."""
    symbols, text = named.symbols, named.symbols.data[node.start_byte : node.end_byte]
    if text in {b"this", b"self"}:
        around = symbols.enclosing(node.start_byte)
        while around >= 0 and symbols.kind(around) not in TYPE_KINDS:
            around = symbols.parent(around)
        return symbols.name(around) if around >= 0 else ""
    found = find_declaration(root, symbols, text.decode("utf-8", "replace"), node.start_byte)
    written = found[1].child_by_field_name("type") if found is not None else None
    return _last_word(symbols.data[written.start_byte : written.end_byte]) if written is not None else ""


def _first(node: Node, fields: Iterable[str]) -> Node | None:
    """Return the part of a node that the first of these fields has."""
    return next((part for field in fields if (part := node.child_by_field_name(field)) is not None), None)


def _members_of(owner: str, name: str, define: Define) -> Iterator[Definition]:
    """Yield what types of a name have under another one."""
    wanted = name.encode()
    for one in define(owner):
        if one.kind not in TYPE_KINDS | {"type"}:
            continue
        row, symbols = one.symbols.row(one.index), one.symbols
        for offset in symbols.words(wanted, fold=False):
            if offset >= row[END]:
                break
            index = symbols.index_at(offset) if offset >= row[START] else -1
            if index >= 0 and index != one.index:
                yield Definition(one.path, symbols, index)


def _last_word(text: bytes) -> str:
    words = [word for word in _WORD.findall(_GENERIC.sub(b"", text)) if word not in _NO_TYPE]
    return words[-1].decode("utf-8", "replace") if words else ""


def find_declared_type(text: bytes, word: bytes) -> str | None:
    """Return the type a word has in a text by its annotation or by the constructor it was set from."""
    name = rb"(?<![\w$.])(?:self\.|this\.|@)?" + re.escape(word)
    patterns = (
        name + rb"\s*:(?!=)\s*" + _TYPE,
        name + rb"\s*:?=\s*(?:await\s+|new\s+|&|\*)*((?:[A-Za-z_]\w*(?:\.|::))*(?:_*[A-Z]\w*))(?:<[^<>\n]*>)?\s*[({]",
        rb"(?<![\w$.])([A-Z]\w*)(?:<[^<>\n]*>|\[\])?[*&\s]+" + re.escape(word) + rb"\b(?=\s*[=;,)])",
        name + rb"\s+\*?((?:\w+\.)?[A-Z]\w*)\b(?=\s*[,)])",
    )
    for pattern in patterns:
        found = re.findall(pattern, text)
        if found:
            last: bytes = found[-1]
            return re.split(r"\.|::", last.decode("utf-8", "replace"))[-1]
    return None
