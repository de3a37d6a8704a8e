"""The type of a member's receiver, by declarations, in languages whose names ``inference`` does not resolve.

``dev->priv.lock`` in C: the function declares ``dev`` as a ``struct device``, whose field ``priv`` has a type with the
field ``lock``. Types are identified by name only.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tree_sitter import Node

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_declaration
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    START,
    TYPE_KINDS,
)

_OBJECTS: Final = ("argument", "object", "value", "operand", "receiver")
"""Fields of nodes that hold the receiver of a member access."""
_MEMBERS: Final = ("field", "name", "method", "property", "attribute")
_CALLED: Final = ("function", "name", "method")
_WORD: Final = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_GENERIC: Final = re.compile(rb"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)")
_NO_TYPE: Final = frozenset(
    {
        b"const",
        b"volatile",
        b"struct",
        b"union",
        b"enum",
        b"static",
        b"mut",
        b"dyn",
        b"final",
    }
)
_TYPE: Final = (
    rb"[\"']?(?:(?:Optional|Type|type|Final|ClassVar|Annotated)\[)?[\"'&*]*(?:'\w+\s+)?(?:mut\s+)?(?:(?:Box|Rc|Arc)<)?"
    rb"(?:(?:dyn|impl)\s+)?((?:[A-Za-z_]\w*(?:\.|::))*[A-Za-z_]\w*)"
)
_NAMED: Final = rb"(?<![\w$.])(?:self\.|this\.|@)?%s"
_PATH: Final = rb"(?:[A-Za-z_]\w*(?:\.|::))*"
_ANNOTATED: Final = _NAMED + rb"\s*:(?![:=])\s*" + _TYPE
_TYPED_FIRST: Final = (
    _NAMED
    + rb"\s*:?=\s*(?:await\s+|new\s+|&|\*)*("
    + _PATH
    + rb"(?:_*[A-Z]\w*))(?:<[^<>\n]*>)?\s*[({]",
    # ``Crane::new()``, ``Crane.new``, PHP's ``new \A\Crane``.
    _NAMED
    + rb"\s*=\s*("
    + _PATH
    + rb"[A-Z]\w*)(?:::<[^<>\n]*>)?(?:\.new\b|::(?:new|default|with_\w+)\s*\()",
    _NAMED + rb"\s*=\s*new\s+\\?(?:\w+\\)*([A-Z]\w*)",
    rb"(?<![\w$.])(?:\w+\.)*([A-Z]\w*)(?:<[^;(){}=\n]{0,200}>)?(?:\[\])?[*&?\s]+%s\b(?=\s*[=;,):])",
    rb"\b(?:unique|shared|weak)_ptr<\s*(?:const\s+)?("
    + _PATH
    + rb"[A-Za-z_]\w*)\s*>[&*]?\s+[&*]?%s\b",
    _NAMED + rb"\s+\*?((?:\w+\.)?[A-Z]\w*)\b(?=\s*[,)])",
)
"""Patterns that show a name's type; the group is the type."""
_MOST_STEPS: Final = 10
"""Most nested members, parentheses and dereferences."""
_MOST_TEXT: Final = 400
"""Bytes before a name that are searched for its type."""

_TYPED_FIRST_IN: Final = frozenset(
    {"java", "csharp", "php", "groovy", "dart", "c", "cpp", "cuda", "objc", "objcpp"}
)
"""Languages that write the type before the name."""
_MOST_BETWEEN: Final = 100
"""Most blanks between a name and the signs around it."""
_MOST_LITERAL: Final = 2_000
"""Bytes before a field's name that are searched for the start of its literal."""
_OPENING = frozenset({b"(", b"[", b"{"})
_CLOSING = frozenset({b")", b"]", b"}"})
_LITERAL_KEYS: Final = {
    "rust": b":,}", "go": b":", **dict.fromkeys(("typescript", "tsx", "javascript", "vue", "svelte"), b":,}="),
}  # fmt: skip
"""What follows a field's name in a literal or a pattern."""
_BINDS: Final = re.compile(rb"\b(?:ref\s+)?(?:mut)?\Z")
_BEFORE_LITERAL: Final = re.compile(
    rb"(?:^|[^\w])([A-Za-z_]\w*)(?:::)?(?:<[^<>{}]*>)?\Z"  # ``Crane {``
    rb"|\(\s*(?:struct\s+|union\s+)?(\w+)\s*(?:\[[^\]]*\])?\s*\)\Z"  # ``(struct crane) {``
    rb"|([A-Za-z_]\w*)[\s*]+\w+\s*=\Z"  # ``struct crane one = {``
)
_EXTENDS_BY_PARAMETER: Final = re.compile(
    r"\(\s*this\s+(?:(?:in|ref)\s+)?(?:\w+\.)*(\w+)"
)
_EXTENDS_BY_HEAD: Final = re.compile(r"\bon\s+(?:\w+\.)?(\w+)")

_BEHIND_DOT: Final = re.compile(rb"\.\s*\w+\s*\.\s*\Z")
"""A member of something, and what is accessed on it."""

_IS_ACCESS: Final = re.compile(rb"[\w.?!\[]")
"""What follows a word that is accessed, or a part of a longer one."""

Define = Callable[[str], Sequence[Definition]]


def find_member(named: NameAtPosition, define: Define) -> list[Definition] | None:
    """Return the members that a name may refer to, if the type of its receiver is known; empty: no member access.

    None: the type is written, and is none of the project's.
    """
    if named.root is not None:
        leaf = named.root.descendant_for_byte_range(named.start, named.start + 1)
    else:
        leaf = None
    around = leaf.parent if leaf is not None else None
    is_member = around is not None and any(
        around.child_by_field_name(field) == leaf for field in _MEMBERS
    )
    if around is not None and is_member:
        node = _first(around, _OBJECTS)
    else:
        node = None
    if node is not None:
        owner = _type_of(named, node, define, 0)
    else:
        owner = ""
    # In C a written type is one, not a parameter that may stand for the project's.
    if owner and named.symbols.language == "c" and not define(owner):
        return None
    if owner:
        return list(_members_of(owner, named.text, define))
    return []


def _type_of(named: NameAtPosition, node: Node, define: Define, depth: int) -> str:
    """Return the name of an expression's type; empty if unknown."""
    data = named.symbols.data
    if depth > _MOST_STEPS or named.root is None:
        return ""
    if not node.child_count:
        return _type_of_name(named, named.root, node)
    if (written := node.child_by_field_name("type")) is not None:  # a cast
        return _last_word(data[written.start_byte : written.end_byte])
    is_call = node.child_by_field_name("arguments") is not None
    part = _first(node, _CALLED if is_call else _MEMBERS)
    matching_node = _first(node, _OBJECTS)
    if part is None or (
        is_call and part.child_count
    ):  # parentheses, a dereference, or a call of a member
        inner = part or matching_node or node.named_child(0)
        if inner is not None:
            return _type_of(named, inner, define, depth + 1)
        return ""
    name = data[part.start_byte : part.end_byte].decode("utf-8", "replace")
    definitions: Iterable[Definition] = (
        (
            current_definition
            for current_definition in define(name)
            if current_definition.kind in CALLABLE_KINDS
        )
        if is_call
        else ()
    )
    if matching_node is not None:
        owner = _type_of(named, matching_node, define, depth + 1)
        if owner:
            definitions = _members_of(owner, name, define)
        else:
            definitions = ()
    for definition in definitions:
        row = definition.symbols.row(
            definition.index
        )  # the type is before the name of a field or a function
        if kind := _last_word(
            definition.symbols.data[max(row[START], row[NAME] - _MOST_TEXT) : row[NAME]]
        ):
            return kind
    return ""


def _type_of_name(named: NameAtPosition, root: Node, node: Node) -> str:
    """Return the declared type of a local name; for the object itself, the enclosing type."""
    symbols = named.symbols
    text = named.symbols.data[node.start_byte : node.end_byte]
    if text in {b"this", b"self"}:
        around = symbols.enclosing(node.start_byte)
        while around >= 0 and symbols.kind(around) not in TYPE_KINDS:
            around = symbols.parent(around)
        if around >= 0:
            return symbols.name(around)
        return ""
    declaration = find_declaration(
        root, symbols, text.decode("utf-8", "replace"), node.start_byte
    )
    if declaration is not None:
        written = declaration[1].child_by_field_name("type")
    else:
        written = None
    if written is not None:
        return _last_word(symbols.data[written.start_byte : written.end_byte])
    return ""


def _first(node: Node, fields: Iterable[str]) -> Node | None:
    """Return the part of a node in the first of these fields that it has."""
    return next(
        (
            part
            for field in fields
            if (part := node.child_by_field_name(field)) is not None
        ),
        None,
    )


def _members_of(owner: str, name: str, define: Define) -> Iterator[Definition]:
    """Yield the members with a name of all types with another name."""
    word = name.encode()
    for definition in define(owner):
        if definition.kind not in TYPE_KINDS | {"type"}:
            continue
        row = definition.symbols.row(definition.index)
        symbols = definition.symbols
        for offset in symbols.words(word, fold=False):
            if offset >= row[END]:
                break
            if offset >= row[START]:
                index = symbols.index_at(offset)
            else:
                index = -1
            if index >= 0 and index != definition.index:
                yield Definition(definition.path, symbols, index)


def _last_word(text: bytes) -> str:
    words = [
        word for word in _WORD.findall(_GENERIC.sub(b"", text)) if word not in _NO_TYPE
    ]
    return words[-1].decode("utf-8", "replace") if words else ""


def _keep_declaring(text: bytes, word: bytes) -> bytes:
    """Return the parts of a text in which a word may be declared: most uses of a long text are of its members."""
    parts = list[bytes]()
    end = 0
    at = text.find(word)
    while at >= 0:
        behind = at + len(word)
        if not _IS_ACCESS.match(text, behind):
            start = max(end, at - _MOST_TEXT)
            # What is left out must not join what is kept.
            if start > end:
                parts.append(b";")
            end = min(len(text), max(end, behind + _MOST_TEXT))
            parts.append(text[start:end])
        at = text.find(word, behind)
    return b"".join(parts)


def find_declared_type(
    text: bytes, word: bytes, *, is_typed_first: bool = False
) -> str | None:
    """Return the type of a word by its annotation, or by the constructor whose result is assigned to it.

    ``is_typed_first``: the language writes a type before the name, so a colon after the name means nothing.
    """
    text = _keep_declaring(text, word)
    for pattern in _TYPED_FIRST if is_typed_first else (_ANNOTATED, *_TYPED_FIRST):
        # The ``re`` module caches compiled patterns: one word is searched for in many
        # places.
        if matches := re.findall(pattern.replace(b"%s", re.escape(word)), text):
            last: bytes = matches[-1]
            return re.split(r"\.|::", last.decode("utf-8", "replace"))[-1]
    return None


def find_extended_type(one: Definition) -> str:
    """Return the type that a function extends, by the function's own signature or by the extension around it."""
    symbols = one.symbols
    if one.language == "csharp":
        match = _EXTENDS_BY_PARAMETER.search(symbols.signature(one.index))
    elif one.language == "dart":
        around = symbols.parent(one.index)
        is_extension = around >= 0 and symbols.kind(around) == "extension"
        if is_extension:
            match = _EXTENDS_BY_HEAD.search(symbols.signature(around))
        else:
            match = None
    else:
        match = None
    if match:
        return match[1]
    return ""


def infer_type(symbols: FileSymbols, offset: int, on: str) -> str | None:
    """Return the type of a word by its annotation or the constructor assigned to it, if the text shows it."""
    around = symbols.enclosing(offset)
    language = symbols.language
    word = on.encode()
    word = b"$" + word if language == "php" else word
    is_typed_first = language in _TYPED_FIRST_IN
    start, end = (symbols.row(around)[START], offset) if around >= 0 else (0, offset)
    declared_type = find_declared_type(
        symbols.data[start:end], word, is_typed_first=is_typed_first
    )
    # In Rust a field is written behind what has it: a bare name is none.
    is_bare = language == "rust" and not _BEHIND_DOT.search(
        symbols.data, max(0, offset - _MOST_TEXT), offset
    )
    while declared_type is None and around >= 0 and not is_bare:
        if symbols.kind(around) in TYPE_KINDS:
            row = symbols.row(around)
            return find_declared_type(
                symbols.data[row[START] : row[END]], word, is_typed_first=is_typed_first
            )
        around = symbols.parent(around)
    return declared_type


def find_literal(
    symbols: FileSymbols, name: str, offset: int
) -> tuple[str, int] | None:
    """Return the type of the literal or pattern in braces that has a field at a position, and the offset of that type.

    None: there is no literal (as in ``Crane { size: 1 }``) around the position; "": the type is unknown.
    """
    data = symbols.data
    end = offset + len(name.encode())
    language = symbols.language
    if language in _LITERAL_KEYS:
        before = _BINDS.sub(
            b"", data[max(0, offset - _MOST_BETWEEN) : offset].rstrip()
        ).rstrip()
        follows = data[end : end + _MOST_BETWEEN].lstrip()[:1]
        is_key = (
            before[-1:] in {b"{", b","}
            and follows != b""
            and follows in _LITERAL_KEYS[language]
        )
    else:
        is_key = language in {"c", "cpp"} and data[offset - 1 : offset] == b"."
    depth = 0
    least = max(0, offset - _MOST_LITERAL)
    for at in range(offset - 1, least - 1, -1) if is_key else ():
        byte = data[at : at + 1]
        if byte in _CLOSING:
            depth += 1
        elif byte in _OPENING and depth:
            depth -= 1
        elif byte == b"{":
            start = max(0, at - _MOST_TEXT)
            match = _BEFORE_LITERAL.search(data[start:at].rstrip())
            group = next((number for number in (1, 2, 3) if match and match[number]), 0)
            if match and group:
                return (match[group].decode(), start + match.start(group))
            return ("", at)
        elif byte in _OPENING or (byte == b";" and not depth):
            return None
    return None
