"""Evaluation of expressions and written types, node by node of a syntax tree; one table for three grammars."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from tree_sitter import Node

from flashgrep.parts.navigation.resolution import ecma_library
from flashgrep.parts.navigation.resolution.exports import (
    NOTHING,
    OUTSIDE,
    RETURNED,
    Exports,
    Value,
    Values,
    decorators,
)
from flashgrep.parts.navigation.resolution.plain_text import is_in_static
from flashgrep.parts.navigation.resolution.symbol_graph import Definition, SymbolKey
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, TYPE_KINDS
from flashgrep.parts.symbols.parse.scoping import MODULE, FileScopes

MEMBER_OF: Final = {
    "attribute": ("object", "attribute"),
    "member_expression": ("object", "property"),
    "nested_identifier": ("object", "property"),
    "nested_type_identifier": ("module", "name"),
    "selector_expression": ("operand", "field"),
    "qualified_type": ("package", "name"),
}
"""Member access nodes: their fields for the object and the member."""
_NAMES: Final = (
    "identifier",
    "type_identifier",
    "property_identifier",
    "shorthand_property_identifier",
    "package_identifier",
    "field_identifier",
)
_FIRST: Final = (
    "await",
    "await_expression",
    "parenthesized_expression",
    "non_null_expression",
    "type",
    "type_annotation",
    "pointer_type",
    "readonly_type",
    "parenthesized_type",
    "satisfies_expression",
    "constraint",
    "type_elem",
    "optional_type",
)
"""Nodes with the value of their first part."""
_EITHER: Final = (
    "boolean_operator",
    "binary_expression",
    "union_type",
    "intersection_type",
    "binary_operator",
    "tuple",
)
_LITERALS: Final = (
    "concatenated_string",
    "integer",
    "float",
    "true",
    "false",
    "none",
    "number",
    "template_string",
    "regex",
    "undefined",
    "null",
    "not_operator",
    "predefined_type",
    "literal_type",
    "int_literal",
    "float_literal",
    "interpreted_string_literal",
    "raw_string_literal",
    "rune_literal",
    "nil",
    "func_literal",
    "template_literal_type",
)
_COMPARED_BY: Final = {
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}
"""Methods of Python's comparisons; the others are true or false."""
_NULLS: Final = frozenset({"none", "null", "undefined", "nil"})
PLAIN: Final = _NULLS | {
    "integer",
    "float",
    "true",
    "false",
    "number",
    "int_literal",
    "float_literal",
}
"""Literals that a name has until it gets its value: they say nothing about its type."""
TEXTS: Final = frozenset({"string", "concatenated_string", "template_string"})
_COMPARING: Final = frozenset(
    {"==", "===", "!=", "!==", "<", ">", "<=", ">=", "instanceof", "in"}
)
_TYPED_BY_ARGUMENT: Final = {
    "python": ("cast", "typing.cast", "t.cast"),
    "go": ("new", "make"),
}
"""Functions whose first argument is the type of their result."""
_COLLECTIONS: Final = (
    "list",
    "set",
    "array",
    "list_comprehension",
    "set_comprehension",
    "generator_expression",
    "dictionary",
)
_TRANSPARENT: Final = frozenset(
    {
        "Optional",
        "Union",
        "Annotated",
        "Final",
        "ClassVar",
        "Required",
        "NotRequired",
        "Promise",
        "Awaitable",
        "Readonly",
        "Partial",
        "NonNullable",
        "Awaited",
        "Coroutine",
        "Omit",
        "Pick",
        "Extract",
        "Exclude",
    }
)
"""Generic types that stand for their arguments."""


class Expressions(Exports):
    """Evaluates expressions and types in one state of a project."""

    @abstractmethod
    def scopes_within(self, definition: Definition) -> FileScopes | None:
        """Return the scopes of a definition."""

    @abstractmethod
    def find_name(self, path: bytes, name: str, offset: int) -> Values | None:
        """Return what a bare name at a position refers to; None if no known binding exists."""

    @abstractmethod
    def is_global(self, path: bytes, name: str) -> bool:
        """Whether a name that nothing binds in a file is an object of JavaScript's hosts."""

    @abstractmethod
    def members(self, values: Values, name: str) -> Values:
        """Return the members of values by name."""

    @abstractmethod
    def read_member(self, values: Values, name: str) -> Values:
        """Return the value of a member: of a property what it returns, even if that is unknown."""

    @abstractmethod
    def dereference(self, values: Values) -> Values:
        """Return values with variables replaced by their values."""

    @abstractmethod
    def bases(self, owner: Definition) -> tuple[list[Definition], bool]:
        """Return the bases of a type, and whether all of them are in the project."""

    @abstractmethod
    def ancestors(self, owner: Definition) -> AbstractSet[SymbolKey]:
        """Return a type with all that it derives from."""

    @abstractmethod
    def apply_alias(
        self, alias: Value, file: FileScopes, arguments: Sequence[Node]
    ) -> Values:
        """Return what a generic alias means with its arguments."""

    # Expressions

    def infer(self, file: FileScopes, node: Node | None) -> Values:
        """Return the values of an expression; empty if unknown."""
        if node is not None:
            how = _INFERRED.get(node.type)
        else:
            how = None
        if node is None or how is None:
            return ()
        # Cached by node: an expression is evaluated for each use of the variable it is
        # assigned to.
        return (
            self.remember(("infer", file.path, node.id), lambda: how(self, file, node))
            or ()
        )

    def infer_name(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a bare name."""
        name = file.text(node)
        values = self.find_name(file.path, name, node.start_byte)
        if values is None and self.is_global(file.path, name):
            return (OUTSIDE,)
        return self.dereference(values or ())

    def infer_member(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a member access."""
        whole, part = (
            node.child_by_field_name(field) for field in MEMBER_OF[node.type]
        )
        if part is not None:
            on = self.infer(file, whole)
            return self.bind_self(self.read_member(on, file.text(part)), on)
        return ()

    def infer_call(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a call."""
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if function is None:
            return ()
        name = file.text(function)
        first = nth(arguments, 0)
        if name == "super":
            return self.infer_super(file, node)
        is_python = self.language_of(file.path) == "python"
        if is_python and name == "type" and first is not None:
            return find_classes(self.infer(file, first))
        if first is not None and name in _TYPED_BY_ARGUMENT.get(
            self.language_of(file.path), ()
        ):
            return self.type_of(file, first)
        if function.type == "member_expression":
            values = self._infer_call_on_list(file, function, first)
            if values:
                return values
        results = self.call(self.infer(file, function), 0)
        if not any(value.is_self for value in results):
            return results
        whole = function
        if function.type in MEMBER_OF:
            field = MEMBER_OF[function.type][0]
            whole = function.child_by_field_name(field) or function
        # What a base's method returns of itself is still an object of this class.
        is_on_super = file.text(whole).partition("(")[0] == "super"
        on = self.infer_this(file, whole) if is_on_super else self.infer(file, whole)
        return self.bind_self(results, on)

    def bind_self(self, values: Values, on: Values) -> Values:
        """Return values with what a method returns of itself replaced by what it is called on, if that is a subtype."""
        if not any(value.is_self for value in values):
            return values
        bound: list[Value] = []
        for value in values:
            definition = value.definition
            if not value.is_self or definition is None:
                bound.append(value)
                continue
            below = [
                replace(receiver, is_instance=value.is_instance)
                for receiver in on
                if receiver.definition is not None
                and definition.key in self.ancestors(receiver.definition)
            ]
            is_still_self = any(
                receiver.is_self
                and receiver.definition is not None
                and receiver.definition.key == definition.key
                for receiver in on
            )
            bound += below or [replace(value, is_self=is_still_self)]
        return distinct(bound)

    def _infer_call_on_list(
        self, file: FileScopes, function: Node, callback: Node | None
    ) -> Values:
        """Evaluate a call of a method that JavaScript's own lists have; nothing if the receiver is none."""
        method, receiver = map(function.child_by_field_name, ("property", "object"))
        name = file.text(method) if method is not None else ""
        if name not in ecma_library.METHODS:
            return ()
        # A class of the project with such a method holds nothing: its own is called.
        elements = self.find_elements(self.infer(file, receiver))
        if not elements or name in ecma_library.TAKING:
            return elements
        if name in ecma_library.MAPPING:
            elements = self.call(self.infer(file, callback), 0)
        return (Value(elements=elements),)

    def infer_new(self, file: FileScopes, node: Node) -> Values:
        """Evaluate ``new X()``; of something outside, ``new Map<string, X>()``, what it holds is known."""
        values = as_instances(self.infer(file, node.child_by_field_name("constructor")))
        arguments = node.child_by_field_name("type_arguments")
        # A class of the project is known better than by its type arguments.
        if arguments is None or any(not value.is_outside for value in values):
            return values
        return (Value(elements=self.type_of(file, nth(arguments, -1))),)

    def infer_this(self, file: FileScopes, node: Node) -> Values:
        """Evaluate ``this``."""
        own = self.class_around(file, node.start_byte)
        if own is None:
            return ()
        is_class = is_in_static(own.symbols, own.index, node.start_byte)
        return (Value(own, is_instance=not is_class, is_self=True),)

    def infer_super(self, file: FileScopes, node: Node) -> Values:
        """Evaluate ``super``: the bases of the enclosing class."""
        own = self.class_around(file, node.start_byte)
        if own is None:
            return ()
        return tuple(Value(base, is_instance=True) for base in self.bases(own)[0]) or (
            OUTSIDE,
        )

    def infer_cast(self, file: FileScopes, node: Node) -> Values:
        """Evaluate an expression with an explicit type: a cast, a composite literal."""
        written = node.child_by_field_name("type") or nth(node, -1)
        if written is None or file.text(node).endswith("as const"):
            return self.infer(file, nth(node, 0))
        # Only its name tells whether ``New[int](3)`` calls a function or makes a value.
        if node.type == "type_conversion_expression":
            functions = self.find_callees(file, node)
            if functions:
                return self.call(functions, 0)
        return self.type_of(file, written)

    def infer_either(self, file: FileScopes, node: Node) -> Values:
        """Evaluate an expression with alternatives; comparisons have none."""
        if operator_of(file, node) in _COMPARING:
            return (OUTSIDE,)
        return either(self.infer(file, part) for part in parts_of(node))

    def infer_comparison(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a comparison in Python: what a class of the project returns for it, unknown on the unknown."""
        left = self.infer(file, nth(node, 0))
        operators = node.children_by_field_name("operators")
        method = None
        if len(operators) == 1:
            method = _COMPARED_BY.get(file.text(operators[0]))
        if method is None or (left and all(value.is_outside for value in left)):
            return (OUTSIDE,)
        objects = tuple(value for value in left if value.is_instance)
        return self.call(self.members(objects, method), 0)

    def infer_condition(self, file: FileScopes, node: Node) -> Values:
        """Evaluate ``a if b else c`` and ``b ? a : c``."""
        parts = parts_of(node)
        # Without the condition, which is first in JavaScript and second in Python.
        if node.type == "ternary_expression":
            branches = parts[1:]
        else:
            branches = [*parts[:1], *parts[2:]]
        return either(self.infer(file, part) for part in branches)

    def infer_element(self, file: FileScopes, node: Node) -> Values:
        """Evaluate an element of a collection; a generic class with its arguments is that class."""
        values = self.infer(file, nth(node, 0))
        index = nth(node, 1)
        if index is not None and index.type == "slice":
            return values
        elements = self.find_elements(values)
        if self.language_of(file.path) == "python" and not elements:
            instances = tuple(value for value in values if value.is_instance)
            items = self.call(self.members(instances, "__getitem__"), 0)
            elements = tuple(value for value in items if not value.is_outside)
        return elements or tuple(
            instance
            for instance in values
            if instance.definition is not None and not instance.is_instance
        )

    def infer_first(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a node that has the value of its first part."""
        return self.infer(file, node.child_by_field_name("operand") or nth(node, 0))

    def infer_unary(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a unary operator: in Go a channel receive, a dereference or an address."""
        operator = operator_of(file, node)
        values = self.infer(file, node.child_by_field_name("operand"))
        if operator == "<-":
            return self.find_elements(values)
        if operator in {"&", "*"}:
            return values
        return (OUTSIDE,)

    def infer_value(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a node with a name or a key before its value."""
        return self.infer(file, node.child_by_field_name("value"))

    def infer_collection(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a collection by its first element."""
        return (Value(elements=self.infer(file, nth(node, 0))),)

    def infer_outside(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a literal or a built-in type; ``any`` may be anything."""
        if node.type in _NULLS or file.text(node) in {"null", "undefined"}:
            return (NOTHING,)
        if file.text(node) in {"any", "unknown"}:
            return ()
        return (OUTSIDE,)

    def infer_function(self, file: FileScopes, node: Node) -> Values:
        """Evaluate an anonymous function: only its result is known."""
        parameter_value = self._result_of(file, node, 0, -1)
        if parameter_value:
            return (Value(results=parameter_value),)
        return ()

    def infer_object(self, file: FileScopes, node: Node) -> Values:
        """Evaluate an object literal or type: its members are the names in it."""
        return (Value(literal=(file.path, node.start_byte)),)

    def find_elements(self, values: Values) -> Values:
        """Return the elements of collections, in Go also of a type that is declared as one."""
        elements: list[Value] = []
        for value in values:
            elements += value.elements
            definition = value.definition
            if definition is not None and definition.kind == "type":
                elements += self._find_declared_elements(definition)
        return distinct(elements)

    def _find_declared_elements(self, definition: Definition) -> Values:
        # An alias was followed to the collection. A type of its own is a value with
        # methods, so what it holds is looked up when an element is asked for.
        file, node = self.node_of(definition)
        if file is None or node is None or node.type != "type_spec":
            return ()
        written = node.child_by_field_name("type")
        found = self.remember(
            ("elements", definition.key),
            lambda: self.find_elements(self.type_of(file, written)),
        )
        return found or ()

    # Calls

    def find_callees(self, file: FileScopes, node: Node) -> Values:
        """Return what a call or, as Go's ``New[int](3)`` is read, a conversion calls; nothing if it is none."""
        if node.type == "call_expression":
            return self.infer(file, node.child_by_field_name("function"))
        written = node.child_by_field_name("type")
        # Without type arguments a call of a function is read as a call.
        if written is None or written.type != "generic_type":
            return ()
        return tuple(
            value
            for value in self.infer(file, nth(written, 0))
            if value.definition is not None and value.definition.kind == "function"
        )

    def call(self, values: Values, position: int) -> Values:
        """Return the result of calling values; of several results (Go), the one at a position."""
        results: list[Value] = []
        for callee in values:
            definition = callee.definition
            if callee.is_nothing:
                continue
            if definition is None:
                results += callee.results or (RETURNED,)
            elif callee.is_instance:
                results += self._call_instance(definition)
            elif definition.kind in TYPE_KINDS | {"type"}:
                results.append(
                    Value(definition, is_instance=True, is_self=callee.is_self)
                )
            elif definition.kind in CALLABLE_KINDS:
                results += self.find_result(definition, position)
        return distinct(results)

    def _call_instance(self, definition: Definition) -> Values:
        """Return the result of calling an object with a call signature or ``__call__``."""
        if definition.language == "python":
            return self.call(
                self.members((Value(definition, is_instance=True),), "__call__"), 0
            )
        file, node = self.node_of(definition)
        if node is not None:
            body = node.child_by_field_name("body")
        else:
            body = None
        if body is not None:
            calls = [
                part for part in body.named_children if part.type == "call_signature"
            ]
        else:
            calls = []
        typed = [part.child_by_field_name("return_type") for part in calls]
        return distinct(
            value
            for node_typed in typed
            if file is not None
            for value in self.type_of(file, node_typed)
        )

    def node_of(self, definition: Definition) -> tuple[FileScopes | None, Node | None]:
        """Return the file of a definition, and the node around its name."""
        file = self.scopes_within(definition)
        if file is not None:
            word = file.node_at(definition.key[1])
        else:
            word = None
        return file, word.parent if word is not None else None

    def find_result(self, function: Definition, position: int) -> Values:
        """Return a function's result: its annotation, otherwise from its return statements."""
        results = (
            self.remember(
                ("returned", function.key, position),
                lambda: self._find_result(function, position),
            )
            or ()
        )
        if function.language == "python" and any(
            b"contextmanager" in line for line in decorators(function)
        ):
            return tuple(
                inner for value in results for inner in value.elements
            )  # the target of ``with``
        return results

    def _find_result(self, function: Definition, position: int) -> Values:
        file, node = self.node_of(function)
        if file is None or node is None:
            return ()
        if node.type in {
            "variable_declarator",
            "public_field_definition",
            "field_definition",
            "pair",
        }:
            node = node.child_by_field_name("value") or node
        return self._result_of(file, node, position, function.key[1])

    def _result_of(
        self, file: FileScopes, node: Node, position: int, name: int
    ) -> Values:
        """Return the result of a function's node; ``name``: the offset of its name, or -1."""
        typed = node.child_by_field_name("return_type") or node.child_by_field_name(
            "result"
        )
        if typed is not None and typed.type == "parameter_list":
            result = nth(typed, position)
            if result is not None:
                return self.type_of(file, result.child_by_field_name("type"))
            return ()
        if typed is not None:
            return self.type_of(file, typed)
        scope = file.scope_of(name) if name >= 0 else None
        if scope is None:
            scope = file.scope_from(node.start_byte, node.end_byte)
        if scope is None or self.language_of(file.path) == "go":
            return ()
        if scope.yielded:
            return (
                Value(
                    elements=distinct(
                        value
                        for current_node in scope.yielded
                        for value in self.infer(file, current_node)
                    )
                ),
            )
        return either(self.infer(file, current_node) for current_node in scope.returned)

    # Types

    def type_of(self, file: FileScopes, node: Node | None) -> Values:
        """Return the value of something declared with a type."""
        if node is not None:
            how = _TYPED.get(node.type)
        else:
            how = None
        if node is None or how is None:
            return ()
        return (
            self.remember(("type", file.path, node.id), lambda: how(self, file, node))
            or ()
        )

    def type_name(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a type's name."""
        if file.text(node) == "Self":
            return self.infer_this(file, node)
        if file.text(node) in {"Any", "any", "typing.Any", "object", "unknown"}:
            return ()
        values = self.infer(file, node)
        if (
            not values
            and node.type in _NAMES
            and self.find_name(file.path, file.text(node), node.start_byte) is None
        ):
            return (OUTSIDE,)
        return as_instances(
            inner for value in values for inner in self._follow_alias(value)
        )

    def type_forward(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a type that is quoted because it is defined later."""
        written = file.text(node).strip("\"' ")
        results: list[Value] = []
        for name in (
            [written.partition("[")[0]] if "[" in written else written.split("|")
        ):
            first, *rest = name.strip().split(".")
            if first.isidentifier():
                values = self.find_name(file.path, first, node.start_byte)
            else:
                values = ()
            values = self.dereference(values or ())
            for part in rest:
                values = self.dereference(self.members(values, part))
            results += values
        return as_instances(value for value in results if value.definition is not None)

    def type_generic(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a generic type with its arguments."""
        head, *arguments = parts_of(node) or [node]
        inners = [
            inner
            for argument in arguments
            for inner in (
                parts_of(argument) if argument.type.startswith("type_") else [argument]
            )
        ]
        name = file.text(head).rpartition(".")[2]
        if name in {"type", "Type"} and inners:
            return tuple(
                Value(value.definition)
                for value in self.type_of(file, inners[0])
                if value.definition
            )
        if name in _TRANSPARENT:
            return distinct(
                value
                for definition in inners
                for value in self.type_of(file, definition)
            )
        if name == "ReturnType" and inners:
            return self.call(self.type_of(file, inners[0]), 0)
        if name == "Callable" and len(inners) > 1:
            return (Value(results=self.type_of(file, inners[-1])),)
        if (
            name in {"Generator", "AsyncGenerator"} and inners
        ):  # the other arguments are the sent and returned types
            inners = inners[:1]
        applied = (
            value
            for current_value in self.infer(file, head)
            for value in self.apply_alias(current_value, file, inners)
        )
        values = distinct(applied) or self.type_of(file, head)
        if not inners or any(
            value.definition is not None or value.results or value.literal
            for value in values
        ):
            return values
        return (Value(elements=self.type_of(file, inners[-1])),)

    def find_index_type(self, file: FileScopes, offset: int) -> Values:
        """Return the type of members that an index signature, ``{ [key: string]: T }``, at a position declares."""
        brace = file.node_at(offset)
        if brace is not None and brace.parent is not None:
            parts = parts_of(brace.parent)
        else:
            parts = []
        typed = [
            part.child_by_field_name("type")
            for part in parts
            if part.type == "index_signature"
        ]
        return distinct(value for node in typed for value in self.type_of(file, node))

    def type_collection(self, file: FileScopes, node: Node) -> Values:
        """Evaluate the type of a list, a map or a channel."""
        element = node.child_by_field_name("element") or node.child_by_field_name(
            "value"
        )
        return (Value(elements=self.type_of(file, element or nth(node, -1))),)

    def type_either(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a union or another type with alternatives."""
        return either(self.type_of(file, part) for part in parts_of(node))

    def type_function(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a function type."""
        written = node.child_by_field_name("return_type") or node.child_by_field_name(
            "result"
        )
        return (Value(results=self.type_of(file, written)),)

    def type_condition(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a conditional type: either branch."""
        parts = (
            node.child_by_field_name("consequence"),
            node.child_by_field_name("alternative"),
        )
        return distinct(value for part in parts for value in self.type_of(file, part))

    def type_first(self, file: FileScopes, node: Node) -> Values:
        """Evaluate a type that stands for its first part."""
        return self.type_of(file, nth(node, 0))

    def _follow_alias(self, value: Value) -> Values:
        """Return what a type alias stands for."""
        definition = value.definition
        if definition is None or definition.kind != "type":
            return (value,)
        file, node = self.node_of(definition)
        # Go: ``type A B`` declares a new type with its own methods.
        if file is None or node is None or node.type == "type_spec":
            return (value,)
        written = node.child_by_field_name("value") or node.child_by_field_name("type")
        return self.type_of(file, written) or (value,)

    def class_of(self, file: FileScopes, scope: int) -> Definition | None:
        """Return the definition a scope belongs to."""
        symbols = self.open_file(file.path)
        name = file.scopes[scope].name
        if symbols is not None and name >= 0:
            index = symbols.index_at(name)
        else:
            index = -1
        if symbols is not None and index >= 0:
            return Definition(file.path, symbols, index)
        return None

    def class_around(self, file: FileScopes, offset: int) -> Definition | None:
        """Return the class around a position."""
        scope = file.scope_at(offset)
        while scope != MODULE and not file.scopes[scope].is_class:
            scope = file.scopes[scope].parent
        if scope != MODULE:
            return self.class_of(file, scope)
        return None


def parts_of(node: Node) -> list[Node]:
    """Return the children of a node without comments, which may occur anywhere."""
    return [part for part in node.named_children if not part.is_extra]


def operator_of(file: FileScopes, node: Node) -> str:
    """Return an expression's operator, or an empty string."""
    operator = node.child_by_field_name("operator")
    if operator is not None:
        return file.text(operator)
    return ""


def nth(node: Node | None, position: int) -> Node | None:
    """Return a part of a node by position; None if it has fewer."""
    if node is not None:
        parts = parts_of(node)
    else:
        parts = []
    if position < len(parts) and parts:
        return parts[position]
    return None


def as_instances(values: Iterable[Value]) -> Values:
    """Return instances of the project's definitions; other values stay as they are."""
    return distinct(
        Value(value.definition, is_instance=True)
        if value.definition is not None
        else value
        for value in values
    )


def find_classes(values: Iterable[Value]) -> Values:
    """Return the classes of objects, unknown for what is outside."""
    return distinct(
        replace(value, is_instance=False) for value in values if value.is_instance
    )


def distinct(values: Iterable[Value]) -> Values:
    """Return values without duplicates."""
    return tuple({value.key: value for value in values}.values())


def either(alternatives: Iterable[Values]) -> Values:
    """Return the values of one of several expressions.

    If one of them is unknown, another that is outside proves nothing about the whole.
    """
    results: list[Value] = []
    is_unknown = False
    for values in alternatives:
        results += values
        is_unknown = is_unknown or not values
    if is_unknown:
        results = [value for value in results if not value.is_outside]
    return distinct(results)


_How = Callable[[Expressions, FileScopes, Node], Values]
_INFERRED: Final[dict[str, _How]] = {
    **dict.fromkeys(_NAMES, Expressions.infer_name),
    **dict.fromkeys(MEMBER_OF, Expressions.infer_member),
    **dict.fromkeys(("call", "call_expression"), Expressions.infer_call),
    "new_expression": Expressions.infer_new,
    "comparison_operator": Expressions.infer_comparison,
    "this": Expressions.infer_this,
    "super": Expressions.infer_super,
    **dict.fromkeys(
        (
            "as_expression",
            "type_assertion_expression",
            "type_conversion_expression",
            "composite_literal",
        ),
        Expressions.infer_cast,
    ),
    **dict.fromkeys(_EITHER, Expressions.infer_either),
    **dict.fromkeys(
        ("conditional_expression", "ternary_expression"), Expressions.infer_condition
    ),
    **dict.fromkeys(
        ("subscript", "subscript_expression", "index_expression"),
        Expressions.infer_element,
    ),
    **dict.fromkeys(
        (*_FIRST, "type_instantiation_expression"), Expressions.infer_first
    ),
    "unary_expression": Expressions.infer_unary,
    **dict.fromkeys(("pair", "named_expression"), Expressions.infer_value),
    **dict.fromkeys(_COLLECTIONS, Expressions.infer_collection),
    "object": Expressions.infer_object,
    **dict.fromkeys(
        ("arrow_function", "function_expression"), Expressions.infer_function
    ),
    **dict.fromkeys((*_LITERALS, "string"), Expressions.infer_outside),
}
_TYPED: Final[dict[str, _How]] = {
    **dict.fromkeys((*_NAMES, *MEMBER_OF), Expressions.type_name),
    "string": Expressions.type_forward,
    "this_type": Expressions.infer_this,
    **dict.fromkeys(("generic_type", "subscript"), Expressions.type_generic),
    **dict.fromkeys(
        (
            "array_type",
            "implicit_length_array_type",
            "slice_type",
            "map_type",
            "channel_type",
        ),
        Expressions.type_collection,
    ),
    **dict.fromkeys(_EITHER, Expressions.type_either),
    **dict.fromkeys(_FIRST, Expressions.type_first),
    "type_query": Expressions.infer_first,
    "conditional_type": Expressions.type_condition,
    "function_type": Expressions.type_function,
    **dict.fromkeys(("object_type", "struct_type"), Expressions.infer_object),
    **dict.fromkeys(_LITERALS, Expressions.infer_outside),
}
