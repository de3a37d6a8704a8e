"""A file's scopes and the bindings of its names, read from its syntax tree when a lookup needs them.

``bindings/LANGUAGE.scm`` says where scopes begin and what binds a name: a definition, a parameter, an assignment.
None of this is stored, since only the few files that use a name as a member of something need it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from tree_sitter import Node, Query, QueryCursor, Tree

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import LANGUAGES, SCRIPTS
from flashgrep.parts.symbols.parse.embedded import read_scripts
from flashgrep.parts.symbols.parse.grammar import (
    DEPTH,
    MATCH_LIMIT,
    NoGrammar,
    ParseTimeout,
    grammar_of,
    read_bindings,
)
from flashgrep.parts.symbols.parse.repair import parse_and_repair

SCOPED: Final = frozenset(
    {"python", "javascript", "typescript", "tsx", "vue", "svelte", "astro", "go"}
)
"""Languages whose names are resolved."""
_BINDS: Final = ("definition", "parameter", "field", "name")
_KINDS: Final = ("returned", "yielded", *_BINDS, "function", "class")
"""What a pattern is about: the first of these that it captures."""
_BATCH: Final = 100
"""Matches between two checkpoints, a millisecond."""
_WAYS: Final = ("element", "unpacked", "whole", "many", "annotated")
_OWN: Final = frozenset({"self", "this", "cls"})
_LOOPS: Final = frozenset(
    {"for_statement", "while_statement", "for_in_statement", "do_statement"}
)
_BRANCHES: Final = _LOOPS | {
    "block",
    "module",
    "statement_block",
    "program",
    "source_file",
    "if_statement",
    "try_statement",
    "except_clause",
    "catch_clause",
    "else_clause",
    "elif_clause",
    "case_clause",
    "match_statement",
    "switch_case",
    "switch_default",
    "conditional_expression",
    "ternary_expression",
    "boolean_operator",
    "binary_expression",
    "communication_case",
    "expression_case",
    "default_case",
    "type_case",
    "expression_switch_statement",
    "type_switch_statement",
    "class_body",
    "except_group_clause",
    "finally_clause",
}
"""Nodes whose parts are executed together, or not at all."""
_STATEMENTS: Final = frozenset(
    {
        "assignment",
        "variable_declarator",
        "assignment_expression",
        "short_var_declaration",
        "augmented_assignment",
        "named_expression",
        "var_spec",
        "assignment_statement",
    }
)
_PARAMETERS: Final = frozenset(
    {"default_parameter", "typed_default_parameter", "typed_parameter"}
)
_GO_PARAMETERS: Final = frozenset(
    {"parameter_declaration", "variadic_parameter_declaration"}
)
_GO_HEADS: Final = _GO_PARAMETERS | {"parameter_list"}
_BODIES: Final = frozenset({"block", "module", "function_definition", "lambda"})
_MOST_DEPTH: Final = 20
"""Most nodes around a name in the head of a function that are looked at."""
MAX_SECONDS: Final = 1.0
MODULE: Final = -1
"""The scope around all scopes of a file."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for in a scope, according to one place that binds it."""

    offset: int
    kind: str
    """``definition``, ``parameter``, ``name``, or ``field`` for what is set on ``self``."""
    value: Node | None = None
    type: Node | None = None
    way: str = "value"
    """What the name is bound to: the ``value`` itself, an ``element`` of it, a part ``unpacked`` from it, a member of
    the ``whole``, ``many`` of a type, a member of an ``annotated`` value."""
    member: str = ""
    """The member that the name is bound to."""
    is_generic: bool = False
    """Whether it is the parameter of a type."""
    end: int = 0
    """Where it is seen no more; 0: in all of its scope."""
    start: int = 0
    """Where it is first seen, if that is not where it stands: a parameter of Go in the body alone."""
    place: int = 0
    """A position in its scope, if it stands in another: Go's type switches name the value for all cases."""

    def is_seen_at(self, offset: int) -> bool:
        """Whether a name at an offset in its scope may have this binding: what ``catch`` binds is seen there alone."""
        return not self.end or self.offset <= offset < self.end

    def reaches(self, offset: int) -> bool:
        """Whether a name at an offset may have this binding in Go, where one begins after its statement."""
        if max(self.offset, self.start) > offset != self.offset:
            return False
        if self.value is None:
            return True
        return not self.value.start_byte <= offset < self.value.end_byte

    @property
    def is_set_only(self) -> bool:
        """Whether the place assigns the name without declaring it, in JavaScript."""
        around = (
            self.value.parent
            if self.value is not None and self.kind == "name"
            else None
        )
        return around is not None and around.type == "assignment_expression"


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a function or class, in bytes; ``name``: the offset of that function's or class's name, or -1."""

    start: int
    end: int
    is_class: bool
    name: int
    parent: int
    names: dict[str, list[Binding]] = field(default_factory=dict)
    returned: list[Node] = field(default_factory=list)
    yielded: list[Node] = field(default_factory=list)


class FileScopes:
    """The scopes of one file, outermost first, and its tree."""

    def __init__(self, path: bytes, tree: Tree, query: Query, data: bytes) -> None:
        self.path = path
        self.root = tree.root_node
        self.data = data
        self.scopes: list[Scope] = []
        self.names: dict[str, list[Binding]] = {}
        bound: list[tuple[Node, Binding]] = []
        captured: list[tuple[str, Node]] = []
        spans: list[tuple[int, int, bool, int]] = []
        for kind, nodes in _captures(query, self.root):
            if kind in _BINDS:
                if (
                    kind == "field"
                    and "object" in nodes
                    and self.text(nodes["object"]) not in _OWN
                ):
                    continue
                way = next((way for way in _WAYS if way in nodes), "value")
                written = (
                    nodes.get("type") or nodes.get("many") or nodes.get("annotated")
                )
                member = (
                    self.text(nodes.get("key") or nodes[kind])
                    if way in {"whole", "annotated"}
                    else ""
                )
                value = None
                if written is None:
                    value = nodes.get(way)
                bound.append(
                    (
                        nodes[kind],
                        Binding(
                            nodes[kind].start_byte,
                            kind,
                            value,
                            written,
                            way,
                            member,
                            is_generic="generic" in nodes,
                            end=nodes["within"].end_byte if "within" in nodes else 0,
                            start=_find_body(nodes[kind]) if kind == "parameter" else 0,
                            place=nodes["place"].start_byte if "place" in nodes else 0,
                        ),
                    )
                )
            elif kind in {"returned", "yielded"}:
                captured.append((kind, nodes[kind]))
            else:
                scope = nodes[kind]
                start, name = scope.start_byte, -1
                if "after" in nodes:
                    start, name = nodes["after"].end_byte, nodes["after"].start_byte
                elif "outside" in nodes:
                    start = nodes["outside"].end_byte
                spans.append((start, -scope.end_byte, kind == "class", name))
        self._nest(spans)
        for node, binding in bound:
            at = self.scope_at(binding.place or node.start_byte)
            if binding.is_generic and at != MODULE and self.scopes[at].is_class:
                at = self.scopes[at].parent
            while (
                binding.kind == "field"
                and at != MODULE
                and not self.scopes[at].is_class
            ):
                at = self.scopes[at].parent
            self.names_of(at).setdefault(self.text(node), []).append(binding)
        for way, node in captured:
            # A returned object begins a scope of its own, so look before its beginning.
            if (at := self.scope_at(node.start_byte - 1)) != MODULE:
                (
                    self.scopes[at].returned
                    if way == "returned"
                    else self.scopes[at].yielded
                ).append(node)

    def _nest(self, spans: list[tuple[int, int, bool, int]]) -> None:
        around: list[int] = []
        # Sorted by where they begin, the longer first: scopes still open when another
        # begins are around it.
        for start, minus_end, is_class, name in sorted(spans):
            while around and self.scopes[around[-1]].end <= start:
                around.pop()
            parent = MODULE
            if around:
                parent = around[-1]
            around.append(len(self.scopes))
            self.scopes.append(Scope(start, -minus_end, is_class, name, parent))
        self._starts = [scope.start for scope in self.scopes]

    def at(self, path: bytes, data: bytes) -> "FileScopes":
        """Return the same for another file with the same text."""
        other = copy(self)
        other.path, other.data = path, data
        return other

    def without_text(self) -> "FileScopes":
        """Return a copy without the text, so that caching the scopes of a part does not keep the whole text."""
        return self.at(self.path, b"")

    def text(self, node: Node) -> str:
        """Return a node's text."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def node_at(self, offset: int) -> Node | None:
        """Return the innermost node at an offset."""
        return self.root.descendant_for_byte_range(offset, offset + 1)

    def names_of(self, scope: int) -> dict[str, list[Binding]]:
        """Return what a scope binds."""
        if scope == MODULE:
            return self.names
        return self.scopes[scope].names

    def scope_at(self, offset: int) -> int:
        """Return the innermost scope at an offset, or ``MODULE``."""
        scope = bisect_right(self._starts, offset) - 1
        while scope != MODULE and self.scopes[scope].end <= offset:
            scope = self.scopes[scope].parent
        return scope

    def scope_of(self, offset: int) -> Scope | None:
        """Return the scope of the definition whose name begins at an offset."""
        return next((scope for scope in self.scopes if scope.name == offset), None)

    def scope_from(self, start: int, end: int) -> Scope | None:
        """Return the scope of a function without a name of its own: the first that begins in its span."""
        # Of scopes that begin at one place the outermost is first: the function's own,
        # before those of its parameters, of functions in it and of what it returns.
        at = bisect_left(self._starts, start)
        if at < len(self.scopes) and self.scopes[at].end <= end:
            return self.scopes[at]
        return None

    def reaching(self, bindings: list[Binding], offset: int) -> list[Binding]:
        """Return those of a scope's bindings of one name that may apply at an offset in that scope.

        The last binding that is certain to be executed before the offset hides those before it. It also hides those
        after the offset, unless a loop comes back.
        """
        certain = []
        for binding in bindings:
            branch = word = self.node_at(binding.offset) or self.root
            while branch.parent is not None and branch.type not in _BRANCHES:
                branch = branch.parent
            # Inside the statement that binds a name, the name still has its former
            # binding.
            while word.parent is not None and word.type not in _STATEMENTS:
                word = word.parent
            is_open = (
                binding.kind != "definition"
                and word.type in _STATEMENTS
                and _holds(word, offset)
            )
            if binding.offset < offset and _holds(branch, offset) and not is_open:
                certain.append(binding.offset)
        if not certain:
            return bindings
        last, loop = certain[-1], self.node_at(offset)
        while loop is not None and (loop.type not in _LOOPS or _holds(loop, last)):
            loop = loop.parent
        return [
            current_binding
            for current_binding in bindings
            if last <= current_binding.offset < offset
            or (loop is not None and _holds(loop, current_binding.offset))
        ]

    def _is_given_from_outside(self, offset: int) -> bool:
        """Whether a name is in a default or a type of a parameter of Python, which see no name of the function."""
        node = self.node_at(offset)
        for _ in range(_MOST_DEPTH):
            around = node.parent if node is not None else None
            if node is None or around is None or around.type in _BODIES:
                return False
            if around.type in _PARAMETERS:
                fields = ("value", "type")
                return node in map(around.child_by_field_name, fields)
            node = around
        return False

    def around(self, offset: int) -> Iterator[int]:
        """Yield the scopes in which a name at an offset is looked up, innermost first; a class's only right inside."""
        scope = self.scope_at(offset)
        if (
            scope != MODULE
            and not self.scopes[scope].is_class
            and self._is_given_from_outside(offset)
        ):
            scope = self.scopes[scope].parent
        innermost = scope
        while scope != MODULE:
            if scope == innermost or not self.scopes[scope].is_class:
                yield scope
            scope = self.scopes[scope].parent
        yield MODULE


def _find_body(name: Node) -> int:
    """Return where the body begins of the function that has a parameter of Go; 0: the name is no such parameter."""
    around = name.parent
    if around is None or around.type not in _GO_PARAMETERS:
        return 0
    while around is not None and around.type in _GO_HEADS:
        around = around.parent
    if around is None:
        return name.end_byte
    body = around.child_by_field_name("body")
    if body is None:
        return name.end_byte
    return body.start_byte


def _holds(node: Node, offset: int) -> bool:
    return bool(node.start_byte <= offset < node.end_byte)


def _captures(query: Query, root: Node) -> Iterator[tuple[str, dict[str, Node]]]:
    """Yield the matches of a query: what each is about, and its nodes by name."""
    kinds = dict[int, str]()  # by pattern, since all of its matches have the same
    cursor = QueryCursor(query, match_limit=MATCH_LIMIT)
    cursor.set_max_start_depth(DEPTH)
    for number, (pattern, captured) in enumerate(cursor.matches(root)):
        if not number % _BATCH:
            checkpoint()
        found_nodes = {name: nodes[0] for name, nodes in captured.items()}
        if pattern not in kinds:
            kinds[pattern] = next(kind for kind in _KINDS if kind in found_nodes)
        yield kinds[pattern], found_nodes


@cache
def _query_of(grammar: str) -> Query:
    return Query(grammar_of(grammar).language, read_bindings(grammar))


def read_scopes(
    path: bytes, language: str, data: bytes, spans: Sequence[tuple[int, int]] = ()
) -> FileScopes | None:
    """Return the scopes of a text in one of the languages ``SCOPED``; None if it cannot be parsed in time.

    ``spans``: the bytes to read, as if there were no others.
    """
    grammar = LANGUAGES[language].symbols
    if grammar == SCRIPTS:
        grammar, data = read_scripts(language, data)
    try:
        # The query for scopes does not compare the text of nodes.
        parsed_by = replace(grammar_of(grammar), reads_text=False)
        tree = parse_and_repair(grammar, parsed_by, data, MAX_SECONDS, spans).tree
        return FileScopes(path, tree, _query_of(grammar), data)
    except (NoGrammar, ParseTimeout):
        return None
