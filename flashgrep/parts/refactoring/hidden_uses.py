"""Uses of a definition that are no names for the resolver: keyword arguments, keys, ``__all__``, format strings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tree_sitter import Node

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.navigation.navigation import (
    Navigation,
    Navigator,
    Place,
    place_of,
)
from flashgrep.parts.navigation.references import ReferenceQuestion, ReferenceSearch
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    PROVEN,
    UNLIKELY,
    Definition,
    Resolution,
)
from flashgrep.parts.symbols.name_at_position import NameAtPosition
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, START
from flashgrep.parts.symbols.symbol_source import SymbolSource, tree_of

MOST_USES: Final = 20_000
"""Most uses of one definition that are looked at."""
WRITTEN: Final = Resolution(PROVEN, "written so")
_MAYBE: Final = Resolution(GUESS, "field of an embedded type")
_PASSED: Final = Resolution(UNLIKELY, "argument passed on")
_PASSES: Final = re.compile(rb"\b(?:_?replace|evolve|partial(?:method)?)\(")
_BY_SHAPE: Final = Resolution(UNLIKELY, "key of a type by its shape")
BY_DICTIONARY: Final = Resolution(UNLIKELY, "arguments in a dictionary")
"""Of a dictionary passed as keyword arguments: what keys it has is not known."""
MEMBERS: Final = frozenset({"field", "property", "method"})
_KEYS: Final = frozenset(
    {
        "property_identifier",
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
    }
)
_KEYED: Final = frozenset(
    {
        "pair",
        "pair_pattern",
        "object",
        "object_pattern",
        "object_assignment_pattern",
        "jsx_attribute",
    }
)
"""What has a key in it: literals, patterns, elements of a page."""
_NO_KEY: Final = re.compile(rb"\s*[.;)\]+*&|!]")
"""What is behind a name that is no key."""
_INDEXED: Final = frozenset(
    {"map_type", "slice_type", "array_type", "implicit_length_array_type"}
)
"""Types of Go whose literals have values as keys."""
_ALL: Final = re.compile(rb"^__all__\b[^\n\[(]*[\[(]?", re.MULTILINE)
_CAPTURED: Final = re.compile(rb"\{\w+[:}]")
_PATTERN: Final = "shorthand_property_identifier_pattern"
_REQUIRED: Final = "call_expression"
_CLOSING: Final = {b"[": b"]", b"(": b")"}


@dataclass(slots=True)
class Trees:
    """The syntax trees of the files of one question."""

    _roots: dict[bytes, Node | None] = field(default_factory=dict)

    def root(self, path: bytes, symbols: FileSymbols) -> Node | None:
        """Return the root of a file's tree; None: it cannot be parsed."""
        if path not in self._roots:
            self._roots[path] = tree_of(symbols)
        return self._roots[path]

    def node(self, place: Place) -> Node | None:
        """Return the innermost node at a place."""
        root = self.root(place.path, place.symbols)
        if root is None:
            return None
        return root.descendant_for_byte_range(place.start, place.start + 1)


class HiddenUses:
    """Finds such uses of the definitions of one symbol."""

    def __init__(
        self, source: SymbolSource, navigator: Navigator, trees: Trees
    ) -> None:
        self._source = source
        self._navigator = navigator
        self._trees = trees

    def run(self, targets: Sequence[Place], uses: Sequence[Place]) -> Iterator[Place]:
        """Yield them; ``uses``: those that the resolver has found."""
        first = targets[0]
        language = first.symbols.language
        name = first.symbols.data[first.start : first.end]
        if language == "python":
            yield from self._find_keywords(targets, name)
            if first.kind in {"parameter", "field"}:
                yield from self._find_relays(name)
            if first.index >= 0:
                yield from self._find_exports(targets, name)
        elif language == "rust" and first.kind not in {"field", "method"}:
            yield from _find_format_names(first, name)
        elif language == "go":
            if any(use.role == "implementation" for use in uses):
                yield from self._find_fields(name)
            if first.kind == "field":
                yield from self._find_keys(targets, name)
        elif language in ECMA:
            if first.index >= 0:
                yield from self._find_patterns(targets, name)
            if first.kind in MEMBERS:
                yield from self._find_keys(targets, name)

    def _find_keywords(self, targets: Sequence[Place], name: bytes) -> Iterator[Place]:
        """Yield the keyword arguments that name a parameter, or a field of a class without a constructor."""
        # One search finds the uses of one name; a method's overrides share theirs.
        by_name: dict[str, list[Place]] = {}
        for callable_ in self._find_callables(targets):
            text = callable_.symbols.data[callable_.start : callable_.end]
            by_name.setdefault(text.decode("utf-8", "replace"), []).append(callable_)
        for callables in by_name.values():
            yield from self._find_arguments(callables, name)

    def _find_arguments(self, callables: list[Place], name: bytes) -> Iterator[Place]:
        """Yield the keyword arguments of a name in the calls of functions or classes of one name.

        Of a dictionary that is passed as keyword arguments the arguments that it comes from, or the dictionary itself.
        """
        waiting = [callables]
        seen = {(place.path, place.start) for place in callables}
        while waiting:
            for use, call in self._find_calls(waiting.pop()):
                for node in call.named_children:
                    if node.type == "keyword_argument":
                        yield from _name_argument(use, node, name)
                    if node.type != "dictionary_splat":
                        continue
                    passing = _find_passing(use, node)
                    if passing is None:
                        start, end = node.start_byte, node.end_byte
                        yield replace(
                            use,
                            start=start,
                            end=end,
                            resolution=BY_DICTIONARY,
                        )
                    elif (passing.path, passing.start) not in seen:
                        seen.add((passing.path, passing.start))
                        waiting.append([passing])

    def _find_calls(self, callables: list[Place]) -> Iterator[tuple[Place, Node]]:
        """Yield the calls of functions or classes of one name: the name's place, and the arguments."""
        first = callables[0]
        target_name = NameAtPosition(first.path, first.symbols, first.start, first.end)
        # Also of calls that hardly mean it: their arguments would break with it.
        question = ReferenceQuestion(limit=MOST_USES, least=0.0, asks_others=False)
        search = ReferenceSearch(self._source, question, self._navigator)
        for use in search.find_uses(target_name, callables, Navigation()):
            if use.role != "call":
                continue
            call = _find_call(self._trees.node(use))
            if call is not None:
                yield use, call

    def _find_relays(self, name: bytes) -> Iterator[Place]:
        """Yield the keyword arguments of functions that pass them on, as ``dataclasses.replace``: any may be meant."""
        paths = self._source.candidates(name.decode("utf-8", "replace"), fold=False)
        for path, symbols in self._navigator.open_all(paths):
            if symbols.language != "python" or not _PASSES.search(symbols.data):
                continue
            trees = Trees()
            for offset in symbols.words(name, fold=False):
                end = offset + len(name)
                place = Place(path, symbols, offset, end, _PASSED, role="reference")
                node = trees.node(place)
                if node is not None:
                    argument = node.parent
                else:
                    argument = None
                if argument is None or argument.type != "keyword_argument":
                    continue
                arguments = argument.parent
                if arguments is not None:
                    call = arguments.parent
                else:
                    call = None
                if call:
                    function = call.child_by_field_name("function")
                else:
                    function = None
                if argument.start_byte != offset or function is None:
                    continue
                span = (function.start_byte, function.end_byte + 1)
                if _PASSES.search(symbols.data, *span):
                    yield place

    def _find_callables(self, targets: Sequence[Place]) -> list[Place]:
        """Return the functions of parameters, and the classes of fields."""
        callables: dict[tuple[bytes, int], Place] = {}
        names = self._navigator.names
        for target in targets:
            symbols = target.symbols
            at = symbols.enclosing(target.start)
            if at < 0 or target.kind not in {"parameter", "field"}:
                continue
            owner = Definition(target.path, symbols, at)
            callable_ = place_of(owner, WRITTEN)
            # A class that has a constructor of its own takes its parameters, not its
            # fields.
            if target.kind == "field":
                if target.index < 0 or names.member(owner, "__init__"):
                    continue
            elif owner.name == "__init__" and symbols.parent(at) >= 0:
                callables[owner.key] = callable_
                owner = Definition(target.path, symbols, symbols.parent(at))
                callable_ = place_of(owner, WRITTEN)
            callables[owner.key] = callable_
            if callable_.kind == "class":
                for type_ in self._find_subtypes(callable_):
                    callables[type_.path, type_.start] = type_
        return list(callables.values())

    def _find_subtypes(self, type_: Place) -> Iterator[Place]:
        """Yield the classes that are made by the constructor of a base."""
        target_name = NameAtPosition(type_.path, type_.symbols, type_.start, type_.end)
        names = self._navigator.names
        own = names.member(
            Definition(type_.path, type_.symbols, type_.index), "__init__"
        )
        # Compared by the constructor: one that overrides it has parameters of its own.
        keys = {value.definition.key for value in own if value.definition}
        for place in self._navigator.find_implementations(target_name).places:
            definition = Definition(place.path, place.symbols, place.index)
            constructors = names.member(definition, "__init__")
            if keys == {
                value.definition.key for value in constructors if value.definition
            }:
                yield place

    def _find_exports(self, targets: Sequence[Place], name: bytes) -> Iterator[Place]:
        """Yield where ``__all__`` names a definition."""
        keys = {(target.path, target.start) for target in targets}
        text = name.decode("utf-8", "replace")
        quoted = re.compile(rb"(?<=['\"])" + re.escape(name) + rb"(?=['\"])")
        paths = self._source.candidates(text, fold=False)
        for path, symbols in self._navigator.open_all(paths):
            if symbols.language != "python" or b"__all__" not in symbols.data:
                continue
            # The module may list another object of that name.
            values = self._navigator.names.find_in_module(path, text)
            if not any(
                value.definition and value.definition.key in keys for value in values
            ):
                continue
            for listing in _ALL.finditer(symbols.data):
                closing = _CLOSING.get(listing[0][-1:], b"\n")
                end = symbols.data.find(closing, listing.end())
                if end >= 0:
                    stop = end
                else:
                    stop = len(symbols.data)
                for match in quoted.finditer(symbols.data, listing.end(), stop):
                    yield Place(
                        path,
                        symbols,
                        match.start(),
                        match.end(),
                        WRITTEN,
                        role="reference",
                    )

    def _find_fields(self, name: bytes) -> Iterator[Place]:
        """Yield where Go may name the field that an embedded type makes."""
        paths = self._source.candidates(name.decode("utf-8", "replace"), fold=False)
        for path, symbols in self._navigator.open_all(paths):
            data = symbols.data
            # The types of what they are accessed on are not known here, so they only may
            # be meant.
            for offset in symbols.words(name, fold=False):
                end = offset + len(name)
                is_named = (
                    data[offset - 1 : offset] == b"." or data[end : end + 1] == b":"
                )
                if is_named and symbols.language == "go" and symbols.role(offset):
                    yield Place(path, symbols, offset, end, _MAYBE, role="reference")

    def _find_keys(self, targets: Sequence[Place], name: bytes) -> Iterator[Place]:
        """Yield the keys of literals and patterns whose types are not followed here, so that any may be the member."""
        keys = {(target.path, target.start) for target in targets}
        is_ecma = targets[0].symbols.language in ECMA
        text = name.decode("utf-8", "replace")
        paths = self._source.candidates(text, fold=False)
        for path, symbols in self._navigator.open_all(paths):
            if (symbols.language not in ECMA) if is_ecma else symbols.language != "go":
                continue
            trees = Trees()  # of one file: those of all would take gigabytes
            for offset in symbols.words(name, fold=False):
                checkpoint()
                end = offset + len(name)
                is_other = symbols.data.endswith(b".", 0, offset) or _NO_KEY.match(
                    symbols.data, end
                )
                if is_other or (path, offset) in keys:
                    continue
                place = Place(path, symbols, offset, end, _BY_SHAPE, role="reference")
                node = trees.node(place)
                if _is_key(node) if is_ecma else self._is_field_key(place, node, text):
                    yield place

    def _is_field_key(self, place: Place, node: Node | None, name: str) -> bool:
        """Whether a name of Go is a key of a literal in braces, of a type that is not known."""
        if node is not None:
            element = node.parent
        else:
            element = None
        if element is not None:
            keyed = element.parent
        else:
            keyed = None
        if keyed is None or keyed.type != "keyed_element":
            return False
        if keyed.named_child(0) != element or keyed.parent is None:
            return False
        literal = keyed.parent.parent
        if literal is not None:
            type_ = literal.child_by_field_name("type")
        else:
            type_ = None
        if type_ is not None and type_.type in _INDEXED:
            return False
        meaning = self._navigator.names.find_key(place.path, name, place.start)
        return meaning is None or all(
            value.definition is None for value in meaning.members
        )

    def _find_patterns(self, targets: Sequence[Place], name: bytes) -> Iterator[Place]:
        """Yield where a pattern takes the definition out of a module: ``const { name } = module``."""
        keys = {(target.path, target.start) for target in targets}
        text = name.decode("utf-8", "replace")
        paths = self._source.candidates(text, fold=False)
        for path, symbols in self._navigator.open_all(paths):
            if symbols.language not in ECMA:
                continue
            for offset in symbols.words(name, fold=False):
                place = Place(
                    path, symbols, offset, offset + len(name), WRITTEN, role="reference"
                )
                if (path, offset) in keys or symbols.index_at(offset) < 0:
                    continue
                node = self._trees.node(place)
                if (
                    node is not None
                    and node.type == _PATTERN
                    and (keys & self._find_module_names(path, node, text))
                ):
                    yield place

    def _find_module_names(
        self, path: bytes, node: Node, name: str
    ) -> set[tuple[bytes, int]]:
        """Return the definitions that a pattern takes out of the module it is applied to."""
        around: Node | None = node
        while around is not None and around.type != "variable_declarator":
            around = around.parent
        names = self._navigator.names
        file = names.scopes_of(path)
        if around is None or file is None:
            return set()
        definitions = set[tuple[bytes, int]]()
        for value in names.infer(file, around.child_by_field_name("value")):
            if value.module:
                exported = names.export(value.module, name)
            else:
                exported = ()
            definitions.update(
                value.definition.key for value in exported if value.definition
            )
        return definitions


def _is_key(node: Node | None) -> bool:
    """Whether a name of JavaScript or TypeScript is a key of a literal or a pattern."""
    if node is not None:
        around = node.parent
    else:
        around = None
    if around is not None and around.type == "method_definition":
        around = around.parent  # in a class it is a definition like others
    if node is None or around is None:
        return False
    return node.type in _KEYS and around.type in _KEYED


def is_required(node: Node) -> bool:
    """Whether a pattern's value is a call, as of ``require``: then its names are those of the module."""
    around: Node | None = node
    while around is not None and around.type != "variable_declarator":
        around = around.parent
    if around is not None:
        value = around.child_by_field_name("value")
    else:
        value = None
    return value is not None and value.type == _REQUIRED


def _find_format_names(target: Place, name: bytes) -> Iterator[Place]:
    """Yield where format strings of Rust name a variable, in the function around it or in its file."""
    symbols = target.symbols
    around = symbols.enclosing(target.start)
    if around >= 0:
        row = symbols.row(around)
    else:
        row = None
    for offset in symbols.words(name, fold=False):
        end = offset + len(name)
        is_captured = _CAPTURED.match(symbols.data, offset - 1, end + 1) is not None
        if not is_captured or symbols.role(offset) is not None:
            continue
        if row is None or row[START] <= offset < row[END]:
            yield Place(target.path, symbols, offset, end, WRITTEN, role="reference")


def _find_call(node: Node | None) -> Node | None:
    """Return the arguments of the call whose function a name ends."""
    while node is not None and node.type != "call":
        if node.type in {"argument_list", "block", "module"}:
            return None
        node = node.parent
    if node is not None:
        return node.child_by_field_name("arguments")
    return None


def _name_argument(use: Place, argument: Node, name: bytes) -> Iterator[Place]:
    """Yield the name of a keyword argument of a call, if it is the one that is asked for."""
    keyword = argument.child_by_field_name("name")
    if keyword is not None:
        start, end = keyword.start_byte, keyword.end_byte
        if use.symbols.data[start:end] == name:
            yield replace(
                use,
                start=start,
                end=end,
                role="reference",
            )


def _find_passing(use: Place, splat: Node) -> Place | None:
    """Return the function that passes on its own keyword arguments, as ``def f(**kw): g(**kw)``; None: it does not."""
    around = splat.parent
    while around is not None and around.type not in {"function_definition", "lambda"}:
        around = around.parent
    if around is None:
        return None
    name = around.child_by_field_name("name")
    parameters = around.child_by_field_name("parameters")
    if name is None or parameters is None:
        return None
    index = use.symbols.index_at(name.start_byte)
    passed = use.symbols.data[splat.start_byte : splat.end_byte]
    own = {
        use.symbols.data[node.start_byte : node.end_byte]
        for node in parameters.named_children
        if node.type == "dictionary_splat_pattern"
    }
    if index < 0 or passed not in own:
        return None
    return place_of(Definition(use.path, use.symbols, index), use.resolution)


def is_local(target: Place) -> bool:
    """Whether a name is seen only inside a function."""
    around = target.symbols.enclosing(target.start)
    if target.index < 0 and target.kind != "field":
        return around >= 0
    return around >= 0 and target.symbols.kind(around) in CALLABLE_KINDS
