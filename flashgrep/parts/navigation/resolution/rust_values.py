"""The types of values in Rust that a library's types hold: ``Option<Arg>``, ``Vec<Arg>``, ``Arc<Mutex<Arg>>``.

What holds them is followed by a table of the library's methods (``rust_types``); what binds a name to what is held are
``if let Some(arg)``, ``for arg in``, an arm of a ``match`` and the parameter of a closure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flashgrep.parts.navigation.resolution.applied_types import (
    apply,
    find_argument,
    identify,
)
from flashgrep.parts.navigation.resolution.call_meaning import Types
from flashgrep.parts.navigation.resolution.library_types import find_content
from flashgrep.parts.navigation.resolution.overloads import read_list
from flashgrep.parts.navigation.resolution.receiver_text import (
    HELD,
    Step,
    find_block_start,
    find_bracket,
    find_first,
    is_open_at,
    read_expression,
    read_receiver,
)
from flashgrep.parts.navigation.resolution.rust_types import (
    CONTAINERS,
    KEEPS,
    MAPPED,
    MAPS,
    OF_KEYS,
    OF_MAPS,
    PARTS,
    PASSES,
    PASSES_SECOND,
    PASSES_TWICE,
    POINTERS,
    PRELUDE,
    SLICE,
    TAKES_OUT,
    TUPLE,
    WrittenType,
    read_type,
)
from flashgrep.parts.navigation.resolution.sites import (
    OUTSIDE,
    UNKNOWN,
    Container,
    Pair,
    Site,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import (
    FIELDS,
    find_name_end,
    is_type_parameter,
    read_bound,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    NAME,
    NAME_END,
)

_ARROW: Final = re.compile(rb"\s*(?:->|:(?!:))\s*")
_LIBRARY: Final = CONTAINERS | MAPS | POINTERS | {SLICE}
_OWN: Final = frozenset({"Self", "self"})
_ONE: Final = rb"(?:&|ref\s+|mut\s+)*\w+"
_PATTERN: Final = rb"((?:&|ref\s+|mut\s+)*\(\s*%s\s*,\s*%s\s*,?\s*\)|%s)" % (
    _ONE,
    _ONE,
    _ONE,
)
"""A name, or a pair of names."""
_FOR: Final = re.compile(rb"for\s+%s\s+in\Z" % _PATTERN)
_SOME: Final = re.compile(rb"\b(?:Some|Ok)\(\s*%s\s*\)\s*=>?\Z" % _PATTERN)
"""A pattern with what a container holds, in a condition or in an arm of a match."""
_VARIANT: Final = re.compile(
    rb"\b((?:[A-Za-z_]\w*::){0,5}[A-Z]\w*)\(\s*(?:&|ref\s+|mut\s+)*\w+\s*\)\s*=>?\Z"
)
"""A pattern with the value that a variant holds."""
_VISIBLE: Final = re.compile(rb"(?:#\[[^\]]*\]\s*)*pub(?:\([^()]*\))?\s+")
_ARM_END: Final = ord(">")
_CLOSURE: Final = re.compile(rb"[(,]\s*(?:move\s*)?\|\s*%s\s*\|\Z" % _PATTERN)
_CLOSURE_HEAD: Final = re.compile(rb"\(\s*(?:move\s*)?\|[^|\n]{0,100}\|")
_COMPARISON: Final = re.compile(
    rb"[(,](?:\s*move)?\s*\|\s*(?:%s)\s*,\s*(%s)\s*\|\Z" % (_ONE, _ONE)
)
"""A closure with two parameters."""
_WORD: Final = re.compile(rb"(\w+)\Z")
_MATCH: Final = re.compile(rb"\bmatch\s+[&*]*(?:mut\s+)?\Z")
_VALUE_END: Final = re.compile(rb"[{;]|&&|\|\||\belse\b")
_BRACKETS: Final = re.compile(rb"[()\[\]{};]|&&|\|\||\belse\b|=>")
_OPENING: Final = frozenset({b"(", b"["})
_CLOSING: Final = frozenset({b")", b"]"})
_REFERENCE: Final = re.compile(rb"\s*(?:&|\*)*\s*(?:mut\s+)?\Z")
_MOST_VALUE: Final = 500
"""Bytes of a value that a name is bound to."""
_MOST_BEFORE: Final = 200


@dataclass
class RustValues:
    """Finds the types of values for one question."""

    types: Types

    def find_member_type(
        self,
        member: Definition,
        owner: Type,
    ) -> Type:
        """Return the type that a member's or a function's declaration writes; ``owner``: of what has the member."""
        symbols = member.symbols
        arrow = _ARROW.match(symbols.data, find_name_end(member))
        if arrow is None:
            return UNKNOWN
        site = Site(member.path, symbols, symbols.row(member.index)[NAME])
        return self.find_type_at(site, arrow.end(), member, owner)

    def find_type_at(
        self,
        site: Site,
        start: int,
        function: Definition | None,
        owner: Type,
    ) -> Type:
        """Return the type that is written at an offset; ``function``: whose type parameters it may name."""
        written = read_type(site.symbols.data, start)
        if written is None:
            return UNKNOWN
        return self._find_type(site, written, function, owner)

    def _find_type(
        self,
        site: Site,
        written: WrittenType,
        function: Definition | None,
        owner: Type,
    ) -> Type:
        if written.path in _OWN:
            return owner
        if written.path == TUPLE:
            first, second = written.arguments
            return Pair(
                self._find_type(site, first, function, owner),
                self._find_type(site, second, function, owner),
            )
        name = written.path.rpartition("::")[2]
        is_library = name in PRELUDE
        if name in _LIBRARY and not is_library:
            is_library = not self.types.has_type(name)
        if is_library:
            return self._find_container(site, written, function, owner)
        # A field has the type parameters of its type.
        member = function
        if function is not None and function.kind in FIELDS:
            around = function.symbols.parent(function.index)
            function = Definition(function.path, function.symbols, around)
        is_inside = function is not None and function.index >= 0
        if function is not None and member is not None and is_inside:
            if is_type_parameter(function, written.path):
                argument = find_argument(member, written.path, owner)
                if argument is not UNKNOWN:
                    return argument
                return self._find_bound(function, written.path)
        type_ = self.types.find_written(site, written.path)
        if not isinstance(type_, Definition) or not written.arguments:
            return type_
        arguments = list[Type]()
        for argument_written in written.arguments:
            arguments.append(self._find_type(site, argument_written, member, owner))
        return apply(type_, tuple(arguments))

    def _find_container(
        self,
        site: Site,
        written: WrittenType,
        function: Definition | None,
        owner: Type,
    ) -> Type:
        """Return the type of a library that holds another, or the type that a pointer points to."""
        name = written.path.rpartition("::")[2]
        is_map = name in MAPS
        if len(written.arguments) <= is_map:
            return UNKNOWN
        held = self._find_type(site, written.arguments[is_map], function, owner)
        if name in POINTERS:
            return held
        if not is_map:
            return Container(held)
        key = self._find_type(site, written.arguments[0], function, owner)
        return Container(held, key)

    def _find_bound(
        self,
        function: Definition,
        parameter: str,
    ) -> Type:
        """Return the trait of the project that a type parameter must have; UNKNOWN: none, or several."""
        bound = read_bound(function, parameter)
        if bound is None:
            return UNKNOWN
        writing, written = bound
        symbols = writing.symbols
        site = Site(writing.path, symbols, symbols.row(writing.index)[NAME])
        return self.types.find_written(site, written)

    def find_bound_type(
        self,
        site: Site,
        binding: re.Match[bytes],
        name: str,
        depth: int,
    ) -> Type:
        """Return the type of a name that a pattern binds to what a container holds."""
        symbols = site.symbols
        text = symbols.data[max(0, binding.start() - _MOST_BEFORE) : binding.end()]
        end = binding.end()
        loop = _FOR.search(text)
        if loop is not None:
            content = self._find_content_by_value(site, end, depth)
            return _choose_half(content, loop[1], name)
        pattern = _SOME.search(text)
        is_arm = symbols.data[end - 1 : end] == b">" or symbols.data[end] == _ARM_END
        if pattern is not None and is_arm:
            content = self._find_content_by_match(site, end, depth)
            return _choose_half(content, pattern[1], name)
        if pattern is not None:
            content = self._find_content_by_value(site, end, depth)
            return _choose_half(content, pattern[1], name)
        variant = _VARIANT.search(text)
        if variant is not None and self._is_in_scope(site, end, is_arm=is_arm):
            return self._find_payload(variant[1].decode())
        closure = _CLOSURE.search(text)
        if closure is not None:
            start = find_bracket(symbols, end - len(text) + closure.start() + 1)
            content = self._find_content_by_closure(site, start, PASSES, depth)
            return _choose_half(content, closure[1], name)
        comparison = _COMPARISON.search(text)
        if comparison is not None:
            start = find_bracket(symbols, end - len(text) + comparison.start() + 1)
            is_second = re.search(rb"\b%s\Z" % name.encode(), comparison[1])
            methods = PASSES_TWICE | PASSES_SECOND if is_second else PASSES_TWICE
            return self._find_content_by_closure(site, start, methods, depth)
        return UNKNOWN

    def _is_in_scope(
        self,
        site: Site,
        end: int,
        *,
        is_arm: bool,
    ) -> bool:
        """Whether a name is used where the pattern that ends at an offset binds it: in its arm, or in its block."""
        symbols = site.symbols
        if is_arm:
            block = find_block_start(symbols, end)
            is_open = block >= 0 and is_open_at(symbols, block, site.offset)
            return is_open and not _has_next_arm(symbols, end, site.offset)
        opening = _find_value_end(symbols, end)
        is_block = symbols.data[opening : opening + 1] == b"{"
        return opening >= 0 and (
            not is_block or is_open_at(symbols, opening, site.offset)
        )

    def _find_payload(
        self,
        written: str,
    ) -> Type:
        """Return the type of what a variant of the project's holds, if it holds one value."""
        before, _, name = written.rpartition("::")
        owner = before.rpartition("::")[2]
        variants = list[Definition]()
        for definition in self.types.names.definitions(name):
            is_variant = (
                definition.kind == "enumerator" and definition.language == "rust"
            )
            is_named = owner in {"", "Self", definition.owner}
            if is_variant and is_named:
                variants.append(definition)
        # Several enumerations have a variant of the name, or it is a library's.
        if len(variants) != 1:
            return UNKNOWN
        symbols = variants[0].symbols
        at = symbols.row(variants[0].index)[NAME_END]
        if symbols.data[at : at + 1] != b"(":
            return UNKNOWN
        place = Site(variants[0].path, symbols, at)
        return self.find_type_at(place, at + 1, variants[0], UNKNOWN)

    def choose_by_argument(
        self,
        methods: Sequence[Definition],
        site: Site,
        end: int,
    ) -> list[Definition]:
        """Return those of several functions of one name and type that take the first argument of a call.

        Implementations of one trait for several types differ by it; ``end``: of the function's name.
        """
        argument = self._find_argument_type(site, end)
        if argument is UNKNOWN:
            return list(methods)
        fitting = list[Definition]()
        for method in methods:
            parameter = self._find_parameter_type(method)
            if parameter is UNKNOWN or identify(parameter) == identify(argument):
                fitting.append(method)
        return fitting or list(methods)

    def _find_argument_type(
        self,
        site: Site,
        end: int,
    ) -> Type:
        arguments = read_list(site.symbols.data, end)
        # Only the first differs, as traits such as ``From`` have one.
        if not arguments:
            return UNKNOWN
        start = site.symbols.data.find(arguments[0], end)
        step = read_expression(site.symbols, start + len(arguments[0]))
        if step is None or not _is_whole(site.symbols, step, start):
            return UNKNOWN
        return self.types.evaluate(Site(site.path, site.symbols, start), step, 0)

    def _find_parameter_type(self, method: Definition) -> Type:
        symbols = method.symbols
        parameters = read_list(symbols.data, symbols.row(method.index)[NAME_END])
        if not parameters:
            return UNKNOWN
        start = symbols.data.find(parameters[0], symbols.row(method.index)[NAME_END])
        colon = parameters[0].find(b":")
        if colon < 0:
            return UNKNOWN
        site = Site(method.path, symbols, symbols.row(method.index)[NAME])
        owner: Type = UNKNOWN
        around = symbols.parent(method.index)
        if around >= 0:
            owner = self.types.find_written(site, symbols.name(around))
        return self.find_type_at(site, start + colon + 1, method, owner)

    def _find_content_by_value(
        self,
        site: Site,
        start: int,
        depth: int,
    ) -> Type:
        """Return what the value at an offset holds, if its block, or what follows it, is where a name is used."""
        symbols = site.symbols
        end = _find_value_end(symbols, start)
        if end < 0:
            return UNKNOWN
        is_block = symbols.data[end : end + 1] == b"{"
        if is_block and not is_open_at(symbols, end, site.offset):
            return UNKNOWN
        step = read_expression(symbols, end)
        if step is None or not _is_whole(symbols, step, start):
            return UNKNOWN
        return self._find_content(site, step, start, depth)

    def _find_content_by_match(
        self,
        site: Site,
        arm: int,
        depth: int,
    ) -> Type:
        """Return what the value of a match holds, if a name is used in the arm that begins at an offset."""
        symbols = site.symbols
        block = find_block_start(symbols, arm)
        if block < 0 or not is_open_at(symbols, block, site.offset):
            return UNKNOWN
        if _has_next_arm(symbols, arm, site.offset):
            return UNKNOWN
        step = read_expression(symbols, block)
        if step is None:
            return UNKNOWN
        first = find_first(step).offset
        before = symbols.data[max(0, first - _MOST_BEFORE) : first]
        if _MATCH.search(before) is None:
            return UNKNOWN
        return self._find_content(site, step, first, depth)

    def _find_content_by_closure(
        self,
        site: Site,
        opening: int,
        methods: frozenset[str],
        depth: int,
    ) -> Type:
        """Return what a closure gets, if a name is used in the parentheses that begin at an offset."""
        symbols = site.symbols
        if opening < 0 or not is_open_at(symbols, opening, site.offset):
            return UNKNOWN
        method = _WORD.search(symbols.data, max(0, opening - _MOST_BEFORE), opening)
        if method is None or method[1].decode() not in methods:
            return UNKNOWN
        step = read_receiver(symbols, method.start())
        if step is None:
            return UNKNOWN
        return self._find_content(site, step, method.start(), depth)

    def _find_content(
        self,
        site: Site,
        step: Step,
        offset: int,
        depth: int,
    ) -> Type:
        place = Site(site.path, site.symbols, offset)
        value = self.types.evaluate(place, step, depth + 1)
        if not isinstance(value, Container):
            return UNKNOWN
        return find_content(value)

    def _pair(
        self,
        site: Site,
        container: Container,
        step: Step,
        depth: int,
    ) -> Type:
        """Return a container of pairs: of what two containers hold, or of that and its number."""
        symbols = site.symbols
        if step.name == "enumerate":
            return Container(Pair(OUTSIDE, container.held))
        end = step.end - 1
        value = read_expression(symbols, end)
        other: Type = UNKNOWN
        if value is not None and _is_whole(symbols, value, step.offset + len("zip(")):
            place = Site(site.path, symbols, find_first(value).offset)
            other = self.types.evaluate(place, value, depth + 1)
        second = find_content(other) if isinstance(other, Container) else UNKNOWN
        return Container(Pair(container.held, second))

    def _map_content(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return a container of what the closure of a call returns, if that is one expression."""
        symbols = site.symbols
        end = step.end - 1
        head = _CLOSURE_HEAD.match(symbols.data, step.offset + len(step.name), end)
        value = read_expression(symbols, end)
        if head is None or value is None or not _is_whole(symbols, value, head.end()):
            return UNKNOWN
        place = Site(site.path, symbols, find_first(value).offset)
        result = self.types.evaluate(place, value, depth + 1)
        return UNKNOWN if result is UNKNOWN else Container(result)

    def find_tuple_field(
        self,
        type_: Definition,
        place: int,
    ) -> Type:
        """Return the type of a field without a name: ``self.0`` of ``struct Cranes(Vec<Crane>)``."""
        symbols = type_.symbols
        at = symbols.row(type_.index)[NAME_END]
        # What follows the name in parentheses are the fields.
        fields = read_list(symbols.data, at)
        if not fields or place >= len(fields):
            return UNKNOWN
        start = symbols.data.find(fields[place], at)
        visible = _VISIBLE.match(symbols.data, start)
        if visible is not None:
            start = visible.end()
        site = Site(type_.path, symbols, at)
        return self.find_type_at(site, start, type_, type_)

    def follow(
        self,
        site: Site,
        container: Container | Pair,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a member of a library's container, or of a pair."""
        if isinstance(container, Pair):
            parts = {"0": container.first, "1": container.second}
            return parts.get(step.name, UNKNOWN)
        if step.form != "call":
            return UNKNOWN
        if container.key is not None:
            return _follow_map(container, step.name)
        if step.name in {"enumerate", "zip"}:
            return self._pair(site, container, step, depth)
        if step.name in MAPPED:
            return self._map_content(site, step, depth)
        # Whether an option or a vector is iterated over makes no difference here.
        if step.name in TAKES_OUT:
            return container.held
        if step.name in KEEPS:
            return container
        # A chunk is a slice of the same.
        if step.name in PARTS:
            return Container(container)
        # Of an option of an option one layer is left.
        if step.name == "flatten":
            return container.held
        return UNKNOWN


def _choose_half(
    content: Type,
    pattern: bytes,
    name: str,
) -> Type:
    """Return what a name in a pattern gets of what the pattern takes apart."""
    if b"(" not in pattern:
        return content
    if not isinstance(content, Pair):
        return UNKNOWN
    first, _, _ = pattern.partition(b",")
    is_first = re.search(rb"\b%s\Z" % name.encode(), first.rstrip()) is not None
    return content.first if is_first else content.second


def _follow_map(
    container: Container,
    name: str,
) -> Type:
    """Return the type of a member of a map."""
    if name in OF_MAPS:
        return Container(container.held)
    if name in OF_KEYS:
        return Container(container.key or UNKNOWN)
    if name in KEEPS:
        return Container(find_content(container))
    if name == HELD:
        return container.held
    return UNKNOWN


def _find_value_end(symbols: FileSymbols, start: int) -> int:
    """Return where a value ends that a pattern is bound to; -1: too far away."""
    depth = 0
    for match in _BRACKETS.finditer(symbols.data, start, start + _MOST_VALUE):
        sign = match[0]
        if symbols.is_text(match.start()):
            continue
        if not depth and _VALUE_END.fullmatch(sign):
            return match.start()
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        if depth < 0:
            return match.start()
    return -1


def _has_next_arm(
    symbols: FileSymbols,
    start: int,
    end: int,
) -> bool:
    """Whether another arm of a match begins between two offsets."""
    depth = 0
    for match in _BRACKETS.finditer(symbols.data, start, end):
        sign = match[0]
        if sign == b"=>" and not depth:
            return True
        if sign in b"([{":
            depth += 1
        elif sign in b")]}":
            depth -= 1
    return False


def _is_whole(
    symbols: FileSymbols,
    step: Step,
    start: int,
) -> bool:
    """Whether nothing but a reference stands before a chain from an offset on."""
    before = symbols.data[start : find_first(step).offset]
    return _REFERENCE.match(before) is not None
