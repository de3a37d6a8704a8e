"""Names before a value: keyword arguments of Python, keys of Go's composite literals and of JavaScript's objects.

They mean a parameter of what is called, or a field of the type, whatever else has the name where they stand.
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from itertools import chain
from typing import Final

from tree_sitter import Node

from flashgrep.parts.navigation.resolution.callbacks import Callbacks
from flashgrep.parts.navigation.resolution.exports import OUTSIDE, Value, Values
from flashgrep.parts.navigation.resolution.expressions import distinct
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import TYPE_KINDS
from flashgrep.parts.symbols.parse.scoping import FileScopes

_COLON: Final = re.compile(rb"\s*:(?!=)")
_FOLLOWS: Final = {
    "python": re.compile(rb"\s*=(?!=)"),
    "go": _COLON,
    **dict.fromkeys(ECMA, _COLON),
}
"""What is behind a key, by language."""
_BRACES: Final = (b"{", b",")
_LEADS: Final = {
    "python": (b"(", b","),
    "go": _BRACES,
    **dict.fromkeys(ECMA, _BRACES),
}
_MOST_BEFORE: Final = 200
_COMMENT: Final = re.compile(rb"(?://|#)[^\n]*\n\s*\Z")


@dataclass(frozen=True, slots=True)
class KeyMeaning:
    """What a key means: members of a type, or parameters, each a file and an offset; nothing if that is unknown."""

    members: Values = ()
    parameters: tuple[tuple[bytes, int], ...] = ()


class Keys(Callbacks):
    """Resolves keys in one state of a project."""

    @abstractmethod
    def scopes_around(self, path: bytes, offset: int) -> FileScopes | None:
        """Return the scopes around a position."""

    @abstractmethod
    def member(self, owner: Definition, name: str) -> Values:
        """Return a type's member by name."""

    def find_key(self, path: bytes, name: str, offset: int) -> KeyMeaning | None:
        """Return what a key means; None: the name is no key."""
        symbols = self.open_file(path)
        if symbols is None or not _may_be_key(symbols, name, offset):
            return None
        file = self.scopes_around(path, offset)
        node = file.node_at(offset) if file is not None else None
        around = node.parent if node is not None else None
        if file is None or node is None or around is None:
            return None
        if around.type == "keyword_argument":
            if around.child_by_field_name("name") != node:
                return None
            return self._find_argument(file, around, name)
        if around.type == "pair":
            if around.child_by_field_name("key") != node:
                return None
            # Whatever the file imports or binds under that name, a key is none of it.
            expected = self._infer_place(file, around.parent)
            return KeyMeaning(self.members(expected, name))
        element = around.parent
        if element is None or not _is_key_of(element, around):
            return None
        return self._find_field(file, element, name)

    def _find_argument(self, file: FileScopes, argument: Node, name: str) -> KeyMeaning:
        """Return the parameter, or the field of a data class, that a keyword argument sets."""
        if argument.parent is not None:
            call = argument.parent.parent
        else:
            call = None
        if call is None:
            return KeyMeaning()
        members: list[Value] = []
        parameters: list[tuple[bytes, int]] = []
        waiting = list(self.infer(file, call.child_by_field_name("function")))
        for value in waiting:
            definition = value.definition
            if definition is None or value.is_instance:
                continue
            if definition.kind not in TYPE_KINDS:
                parameters += self._find_parameters(definition, name)
                continue
            constructors = self.member(definition, "__init__")
            if any(value.definition is not None for value in constructors):
                waiting += constructors
            else:
                members += self.member(definition, name)
        fields = tuple(value for value in members if value.definition is not None)
        return KeyMeaning(fields, tuple(parameters))

    def _infer_place(self, file: FileScopes, node: Node | None) -> Values:
        """Return the type that is written for the place of an object or a list of JavaScript."""
        around = node.parent if node is not None else None
        if node is None or around is None:
            return ()
        # Within another object or a list it is the type of that one's member or element.
        if around.type == "pair":
            key = around.child_by_field_name("key")
            outer = self._infer_place(file, around.parent)
            if key is None or not outer:
                return ()
            return self.read_member(outer, file.text(key))
        if around.type == "array":
            return self.find_elements(self._infer_place(file, around))
        # A variable, a parameter of what is called, or what a function returns.
        expected = distinct(
            value
            for where, typed in self.find_types_of_place(file, node)
            for value in self.type_of(where, typed)
        )
        if not expected and self._goes_outside(file, around):
            return (OUTSIDE,)
        return expected

    def _goes_outside(self, file: FileScopes, arguments: Node) -> bool:
        """Whether arguments are those of something that the project does not define, and of no type that it names."""
        called = arguments.parent
        if called is None or arguments.type != "arguments":
            return False
        if called.child_by_field_name("type_arguments") is not None:
            return False
        callee = called.child_by_field_name("function")
        callee = callee or called.child_by_field_name("constructor")
        values = self.infer(file, callee)
        return bool(values) and all(value.is_outside for value in values)

    def _find_parameters(
        self, function: Definition, name: str
    ) -> list[tuple[bytes, int]]:
        file = self.scopes_within(function)
        if file is not None:
            scope = file.scope_of(function.key[1])
        else:
            scope = None
        if scope is None:
            return []
        return [
            (function.path, binding.offset)
            for binding in scope.names.get(name, [])
            if binding.kind == "parameter"
        ]

    def _find_field(
        self, file: FileScopes, element: Node, name: str
    ) -> KeyMeaning | None:
        """Return the field that a key of a composite literal sets; None: it may be an expression, as in a map."""
        body = element.parent
        if body is not None:
            literal = body.parent
        else:
            literal = None
        is_inner = literal is not None and literal.type == "literal_element"
        while literal is not None and literal.type in _WITHIN:
            literal = literal.parent
        if literal is None or literal.type != "composite_literal":
            return None
        values = self.type_of(file, literal.child_by_field_name("type"))
        if is_inner:  # ``[]elem{{node: nil}}``
            values = tuple(inner for value in values for inner in value.elements)
        structs = [
            value.definition
            for value in values
            if value.definition is not None and value.definition.kind == "struct"
        ]
        if structs:
            members = [self.member(struct, name) for struct in structs]
            return KeyMeaning(tuple(chain.from_iterable(members)))
        # Of an unknown type the key may be a value, but never a type.
        key = element.start_byte
        meant = self.find_name(file.path, name, key) or ()
        is_type = any(
            value.definition is not None
            and not value.is_instance
            and value.definition.kind in TYPE_KINDS | {"type"}
            for value in meant
        )
        if is_type:
            return KeyMeaning()
        return None


_WITHIN: Final = frozenset({"literal_element", "literal_value", "keyed_element"})


def _is_key_of(element: Node, around: Node) -> bool:
    """Whether what is around a name is the key of an element of Go's composite literals."""
    types = (element.type, around.type)
    is_keyed = types == ("keyed_element", "literal_element")
    return is_keyed and element.named_child(0) == around


def _may_be_key(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether the text around a name is that around a key."""
    follows = _FOLLOWS.get(symbols.language)
    if follows is None:
        return False
    data = symbols.data
    if follows.match(data, offset + len(name.encode())) is None:
        return False
    before = data[max(0, offset - _MOST_BEFORE) : offset]
    before = _COMMENT.sub(b"", before).rstrip()
    return before.endswith(_LEADS[symbols.language])
