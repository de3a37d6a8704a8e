"""Types of a callback's parameters in JavaScript and TypeScript, from the type expected at its position.

Generic type aliases are applied. ``type Item<T> = T extends (infer E)[] ? E : T`` evaluates to the union of both
branches, since ``extends`` is not decided here. An argument matters only if its parameter is the result itself, or a
part of it is inferred.
"""

import re
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from tree_sitter import Node

from flashgrep.parts.navigation.resolution import ecma_library
from flashgrep.parts.navigation.resolution.exports import Value, Values
from flashgrep.parts.navigation.resolution.expressions import (
    Expressions,
    distinct,
    nth,
    parts_of,
)
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.scoping import Binding, FileScopes

_INFER: Final = re.compile(r"\binfer\s+([\w$]+)")
_SEVERAL: Final = frozenset({"parenthesized_type", "union_type", "intersection_type"})

Given = Mapping[str, Callable[[], Values]]
"""The values of type parameters, each evaluated on demand."""
_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression"})
_WRAPPERS: Final = frozenset({
    "type_annotation", "parenthesized_type", "union_type", "intersection_type", "readonly_type", "optional_type",
})  # fmt: skip
_MOST_ALIASES: Final = 8
"""Most names followed from a written type to its function type."""
_MOST_SIGNATURES: Final = 100
"""Most overloads of one function that are examined."""
Typed = tuple[FileScopes, Node]
"""A written type in its file."""


class GenericAliases(Expressions):
    """Evaluates generic aliases in one state of a project."""

    def apply_alias(
        self, alias: Value, file: FileScopes, arguments: Sequence[Node]
    ) -> Values:
        """Return what a generic alias means with its arguments."""
        definition = alias.definition
        if (
            definition is None
            or definition.kind != "type"
            or definition.language not in ECMA
        ):
            return ()
        own, node = self.node_of(definition)
        if node is not None:
            parameters = node.child_by_field_name("type_parameters")
        else:
            parameters = None
        if own is None or node is None or parameters is None:
            return ()
        names = (
            own.text(current_node.child_by_field_name("name") or current_node)
            for current_node in parts_of(parameters)
        )
        given_arguments = {
            name: partial(self.type_of, file, current_node)
            for name, current_node in zip(names, arguments, strict=False)
        }
        return self._evaluate_with(
            own, node.child_by_field_name("value"), given_arguments
        )

    def _evaluate_with(
        self, file: FileScopes, node: Node | None, given: Given
    ) -> Values:
        """Evaluate a type with values for some of its names."""
        if node is None:
            return ()
        if (
            node.type == "type_identifier"
            and (find := given.get(file.text(node))) is not None
        ):
            return find()
        if node.type in _SEVERAL:
            return distinct(
                value
                for part in parts_of(node)
                for value in self._evaluate_with(file, part, given)
            )
        if node.type != "conditional_type":
            return self.type_of(file, node)
        left_node, right, then, other = map(
            node.child_by_field_name, ("left", "right", "consequence", "alternative")
        )
        names = _INFER.findall(file.text(right)) if right is not None else ()
        inferred = {
            name: partial(self._infer_part, file, left_node, right, name, given)
            for name in names
        }
        values = self._evaluate_with(file, then, {**given, **inferred})
        return distinct((*values, *self._evaluate_with(file, other, given)))

    def _infer_part(
        self,
        file: FileScopes,
        left: Node | None,
        right: Node | None,
        name: str,
        given: Given,
    ) -> Values:
        """Return what ``infer NAME`` in the pattern ``right`` stands for, given the compared type ``left``."""
        left = _strip(left)
        right = _strip(right)
        if (
            left is None
            or right is None
            or name not in _INFER.findall(file.text(right))
        ):
            return ()
        if right.type == "infer_type":
            return self._evaluate_with(file, left, given)
        if left.type == "conditional_type":
            branches = map(left.child_by_field_name, ("consequence", "alternative"))
            return distinct(
                value
                for branch in branches
                for value in self._infer_part(file, branch, right, name, given)
            )
        if (
            right.type != "function_type"
        ):  # a collection, or a type that stands for its arguments
            values = self._evaluate_with(file, left, given)
            return distinct(
                inner for value in values for inner in value.elements or (value,)
            )
        node, result = map(right.child_by_field_name, ("parameters", "return_type"))
        if left.type == "function_type":
            pairs = [(left.child_by_field_name("return_type"), result)]
            own = left.child_by_field_name("parameters")
            if own is not None and node is not None:
                typed = (
                    [
                        current_node.child_by_field_name("type")
                        for current_node in parts_of(some)
                    ]
                    for some in (own, node)
                )
                pairs += zip(*typed, strict=False)
            return distinct(
                value
                for pair in pairs
                for value in self._infer_part(file, *pair, name, given)
            )
        is_result = result is not None and name in _INFER.findall(file.text(result))
        if is_result:
            return self.call(self._evaluate_with(file, left, given), 0)
        return ()


def _strip(node: Node | None) -> Node | None:
    """Return a type without parentheses and annotation."""
    while node is not None and node.type in {"parenthesized_type", "type_annotation"}:
        node = nth(node, 0)
    return node


class Callbacks(GenericAliases, ABC):
    """Infers the parameters of callbacks in one state of a project."""

    def infer_parameter(self, file: FileScopes, binding: Binding) -> Values:
        """Return the values of a function's parameter whose type follows from the function's position."""
        if self.language_of(file.path) not in ECMA:
            return ()
        word = file.node_at(binding.offset)
        function = word
        while function is not None and function.type not in _FUNCTIONS:
            function = function.parent
        if word is None or function is None:
            return ()
        at = _find_place(function, word)
        if at < 0:
            return ()
        for where, typed in self.find_types_of_place(file, function):
            for inside, signature in self._find_signatures(where, typed, 0):
                written = _nth_type(signature, at)
                if written is not None and (
                    value_s := self.type_of(inside, written[0])
                ):
                    return value_s
        return self._infer_argument(file, function, at)

    def _infer_argument(self, file: FileScopes, function: Node, at: int) -> Values:
        """Return what a method of JavaScript's own lists and promises passes to a callback."""
        arguments = function.parent
        called = arguments.parent if arguments is not None else None
        if called is None or arguments is None or nth(arguments, 0) != function:
            return ()
        callee = called.child_by_field_name("function")
        if callee is None or callee.type != "member_expression":
            return ()
        method, receiver = map(callee.child_by_field_name, ("property", "object"))
        name = file.text(method) if method is not None else ""
        # What a parameter gets beside an element, such as its index, is not ours.
        if at in ecma_library.PASSED.get(name, ()):
            return self.find_elements(self.infer(file, receiver))
        if name != ecma_library.AWAITS or at:
            return ()
        # A type stands for the promise of it, unless it is a promise of the project.
        held = self.infer(file, receiver)
        own = self.members(held, name)
        if any(value.definition is not None for value in own):
            return ()
        return tuple(value for value in held if value.definition is not None)

    def find_types_of_place(self, file: FileScopes, node: Node) -> Iterator[Typed]:
        """Yield the types that are written for the position of a function or an object."""
        around = node.parent
        if around is None:
            return
        typed = around.child_by_field_name("type")
        if typed is not None and around.type in {
            "variable_declarator",
            "public_field_definition",
        }:
            yield file, typed
        if around.type in {"return_statement", "arrow_function"}:
            returned = _find_return_type(around)
            if returned is not None:
                yield file, returned
            return
        called = around.parent if around.type == "arguments" else None
        if called is not None:
            callee = called.child_by_field_name("function")
        else:
            callee = None
        if called is None or callee is None:
            return
        at = parts_of(around).index(node)
        for value in self.infer(file, callee):
            for where, signature in self.signatures_of(value):
                if (written := _nth_type(signature, at)) is not None:
                    yield from self._find_element(where, *written)

    def signatures_of(self, value: Value) -> Iterator[Typed]:
        """Yield the nodes of the signatures of a callable value."""
        if value.definition is None:
            return
        file, node = self.node_of(value.definition)
        if file is None or node is None:
            return
        if node.type in {"variable_declarator", "public_field_definition", "pair"}:
            node = node.child_by_field_name("value") or node
        if value.is_instance:
            body = node.child_by_field_name("body")
        else:
            body = None
        if body is None:
            signatures = [node]
        else:
            signatures = [
                part for part in parts_of(body) if part.type == "call_signature"
            ]
        yield from ((file, signature) for signature in signatures[:_MOST_SIGNATURES])

    def _find_element(
        self, file: FileScopes, typed: Node, behind: int
    ) -> Iterator[Typed]:
        """Yield the type of one argument; ``behind``: its index in the rest parameter, or -1 if it is not in one."""
        if typed.type == "type_annotation" and parts_of(typed):
            inner = parts_of(typed)[0]
        else:
            inner = typed
        if behind < 0:
            yield file, inner
        elif inner.type == "tuple_type":
            yield from ((file, part) for part in parts_of(inner)[behind : behind + 1])
        elif inner.type == "array_type":
            yield file, parts_of(inner)[0]

    def _find_signatures(
        self, file: FileScopes, typed: Node, depth: int
    ) -> Iterator[Typed]:
        """Yield the function signatures that a written type stands for."""
        if depth > _MOST_ALIASES:
            return
        if typed.type in {"function_type", "call_signature"}:
            yield file, typed
        elif typed.type in _WRAPPERS:
            for part in parts_of(typed):
                yield from self._find_signatures(file, part, depth + 1)
        elif typed.type in {
            "type_identifier",
            "generic_type",
            "nested_type_identifier",
        }:
            if typed.type == "generic_type":
                head = parts_of(typed)[0]
            else:
                head = typed
            for value in self.infer(file, head):
                where, node = (
                    self.node_of(value.definition)
                    if value.definition is not None
                    else (None, None)
                )
                if where is None or node is None:
                    continue
                if (written := node.child_by_field_name("value")) is not None:
                    yield from self._find_signatures(where, written, depth + 1)
                elif (body := node.child_by_field_name("body")) is not None:
                    yield from (
                        (where, part)
                        for part in parts_of(body)
                        if part.type == "call_signature"
                    )


def _find_place(function: Node, word: Node) -> int:
    """Return which parameter of a function expression a word is, or -1."""
    listed = function.child_by_field_name("parameters")
    if listed is None:
        return 0  # of ``one => one.run()``
    for at, part in enumerate(parts_of(listed)):
        if (part.child_by_field_name("pattern") or part) == word:
            return at
    return -1


def _find_return_type(node: Node) -> Node | None:
    """Return the type that the innermost function around a node is written to return."""
    around: Node | None = node
    while around is not None and around.child_by_field_name("parameters") is None:
        around = around.parent
    if around is None:
        return None
    return around.child_by_field_name("return_type")


def _nth_type(signature: Node, at: int) -> tuple[Node, int] | None:
    """Return the type of a parameter, and its index within a rest parameter; -1: not a rest parameter."""
    listed = signature.child_by_field_name("parameters")
    for number, part in enumerate(parts_of(listed) if listed is not None else []):
        pattern = part.child_by_field_name("pattern")
        is_rest = pattern is not None and pattern.type == "rest_pattern"
        if number == at or (is_rest and number <= at):
            typed = part.child_by_field_name("type")
            if typed is None:
                return None
            return (typed, at - number if is_rest else -1)
    return None
