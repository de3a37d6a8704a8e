"""What generic type aliases of TypeScript mean with their arguments.

``type Item<T> = T extends (infer E)[] ? E : T`` is either branch, since nobody decides here what extends what: the
union is told. An argument counts where the name of its parameter is the result itself, or a part of it is inferred.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tree_sitter import Node

from flashgrep.ingest.parse.imports import ECMA
from flashgrep.ingest.parse.scoping import FileScopes
from flashgrep.search.resolution.exports import Value, Values
from flashgrep.search.resolution.expressions import Expressions, distinct, nth, parts_of

_INFER: Final = re.compile(r"\binfer\s+([\w$]+)")
_SEVERAL: Final = frozenset({"parenthesized_type", "union_type", "intersection_type"})

Given = Mapping[str, Callable[[], Values]]
"""What names stand for, each found when it is needed."""


class GenericAliases(Expressions):
    """Evaluates generic aliases in one state of a project."""

    def apply_alias(self, alias: Value, file: FileScopes, arguments: Sequence[Node]) -> Values:
        """Return what a generic alias means with its arguments."""
        definition = alias.definition
        if definition is None or definition.kind != "type" or definition.language not in ECMA:
            return ()
        own, node = self.node_of(definition)
        parameters = node.child_by_field_name("type_parameters") if node is not None else None
        if own is None or node is None or parameters is None:
            return ()
        names = (own.text(one.child_by_field_name("name") or one) for one in parts_of(parameters))
        given = {name: partial(self.type_of, file, one) for name, one in zip(names, arguments, strict=False)}
        return self._evaluate_with(own, node.child_by_field_name("value"), given)

    def _evaluate_with(self, file: FileScopes, node: Node | None, given: Given) -> Values:
        """Evaluate a type in which some names stand for what is given."""
        if node is None:
            return ()
        if node.type == "type_identifier" and (find := given.get(file.text(node))) is not None:
            return find()
        if node.type in _SEVERAL:
            return distinct(value for part in parts_of(node) for value in self._evaluate_with(file, part, given))
        if node.type != "conditional_type":
            return self.type_of(file, node)
        left, right, then, other = map(node.child_by_field_name, ("left", "right", "consequence", "alternative"))
        names = _INFER.findall(file.text(right)) if right is not None else ()
        inferred = {name: partial(self._infer_part, file, left, right, name, given) for name in names}
        values = self._evaluate_with(file, then, {**given, **inferred})
        return distinct((*values, *self._evaluate_with(file, other, given)))

    def _infer_part(self, file: FileScopes, left: Node | None, right: Node | None, name: str, given: Given) -> Values:
        """Return what ``infer NAME`` in a pattern, ``right``, stands for, by the type that is compared with it."""
        left, right = _strip(left), _strip(right)
        if left is None or right is None or name not in _INFER.findall(file.text(right)):
            return ()
        if right.type == "infer_type":
            return self._evaluate_with(file, left, given)
        if left.type == "conditional_type":
            branches = map(left.child_by_field_name, ("consequence", "alternative"))
            return distinct(value for one in branches for value in self._infer_part(file, one, right, name, given))
        if right.type != "function_type":  # a collection, or what stands for its arguments
            values = self._evaluate_with(file, left, given)
            return distinct(inner for one in values for inner in one.elements or (one,))
        taken, result = map(right.child_by_field_name, ("parameters", "return_type"))
        if left.type == "function_type":
            pairs = [(left.child_by_field_name("return_type"), result)]
            own = left.child_by_field_name("parameters")
            if own is not None and taken is not None:
                typed = ([one.child_by_field_name("type") for one in parts_of(some)] for some in (own, taken))
                pairs += zip(*typed, strict=False)
            return distinct(value for one in pairs for value in self._infer_part(file, *one, name, given))
        is_result = result is not None and name in _INFER.findall(file.text(result))
        return self.call(self._evaluate_with(file, left, given), 0) if is_result else ()


def _strip(node: Node | None) -> Node | None:
    """Return a type without what is written around it."""
    while node is not None and node.type in {"parenthesized_type", "type_annotation"}:
        node = nth(node, 0)
    return node
