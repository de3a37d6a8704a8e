"""What a loop, a lambda's parameter or ``out`` gets in Java, Kotlin and C#, and what a lambda returns.

``cranes.forEach(c -> …)`` passes what the library's container holds, ``yard.each(c -> …)`` what the project's method
declares. The call that a lambda belongs to is read backwards from it, as receivers are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from flashgrep.parts.navigation.resolution.applied_types import (
    AppliedType,
    identify,
)
from flashgrep.parts.navigation.resolution.call_meaning import Types
from flashgrep.parts.navigation.resolution.csharp_calls import read_extended_type
from flashgrep.parts.navigation.resolution.kotlin_text import (
    Blocks,
    is_extension,
    read_blocks,
)
from flashgrep.parts.navigation.resolution.library_types import (
    ACTION,
    FUNCTION,
    FUNCTIONS,
    QUOTED,
    SCOPED,
    find_content,
    find_lambda_parameter,
    map_content,
    sets_result,
)
from flashgrep.parts.navigation.resolution.overloads import read_list
from flashgrep.parts.navigation.resolution.receiver_text import (
    Step,
    find_bracket,
    find_first,
    read_callee,
    read_expression,
)
from flashgrep.parts.navigation.resolution.sites import (
    UNKNOWN,
    Container,
    Pair,
    Site,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import (
    read_parameters,
    split_list,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    NAME,
    NAME_END,
    QUALIFIER,
    QUALIFIER_END,
    START,
)

IMPLICIT: Final = "it"
"""The parameter of a lambda of Kotlin that names none."""
_HEAD: Final = re.compile(rb"for(?:each)?\s*\(\s*")
_BRACKETS: Final = re.compile(rb"[()\[\]{}]")
_DIVIDES: Final = re.compile(rb"[()\[\]{},]")
_LOOP: Final = re.compile(rb"\b(?:for|foreach)\s*\(\s*(?:var|val|await)?\s*\Z")
_LOOPED: Final = re.compile(
    rb"(?:var\s+)?(\w+)\s*(?::|\bin\b)|(?:var\s*)?\(\s*(?:var\s+)?(\w+)\s*,\s*(?:var\s+)?(\w+)\s*\)\s*\bin\b"
)
_QUERIED: Final = re.compile(rb"from\s+\w+\s+in\b")
_QUERY_END: Final = re.compile(
    rb"\b(?:where|select|from|join|let|orderby|group)\b|[;)]"
)
_OUT: Final = re.compile(rb"\bout\s+\Z")
_ARROW: Final = re.compile(rb"[^\n{}]{0,200}?(?:->|=>)")
_LIST: Final = re.compile(
    rb"\s*+\(?\s*+((?:\(?[\w:<>?.\s]++,)*+\(?[\w:<>?.\s]*+)\)?\s*+\)?\s*+(?:->|=>)"
)
"""The names of a lambda's parameters. Nothing is tried twice: with blanks that two parts may take, 300 of them took minutes."""
_WORD: Final = re.compile(rb"[A-Za-z_]\w*")
_NAMED: Final = re.compile(rb"(\w+)\s*[:=]\s*\Z")
_MODIFIERS: Final = re.compile(
    rb"(?:(?:this|final|params|in|ref|out|scoped|async|static)\s+|@\w+(?:\([^()]*\))?\s*|\[[^\]]*\]\s*)*"
)
_PATH: Final = re.compile(rb"[A-Za-z_][\w.]*")
_ARGUMENT_MODIFIERS: Final = re.compile(
    rb"(?:\s|\b(?:async|static)\b|\(\s*\w+\s*\))*\Z"
)
_FUNCTION: Final = re.compile(
    rb":\s*+(?:suspend\s++)?\(?\s*+(?:suspend\s++)?(?:[A-Za-z_][\w.]*(?:<[^(){}]{0,200}>)?\??\.)?\("
)
"""The beginning of the parameters of a function's type in Kotlin."""
_LABEL: Final = re.compile(rb"\s*\w+\s*:\s*")
_REFERENCE: Final = re.compile(rb"([A-Za-z_][\w.]*)\s*::\s*(\w+)\s*\Z")
_BEFORE_TAIL: Final = re.compile(rb"(?:\s|\bnew\b|\bawait\b|\breturn\b)*\Z")
_NOT_ABSTRACT: Final = re.compile(rb"\b(?:default|static|private)\b")
_MOST_BEFORE: Final = 300
_MOST_TYPES: Final = 8


class Argument(NamedTuple):
    """A lambda as an argument: its call, and which argument it is, -1: the last; or the name that it is passed by."""

    call: Step
    place: int
    name: str


@dataclass
class PassedValues:
    """Finds the types of values for one question."""

    types: Types
    _blocks: dict[bytes, Blocks] = field(default_factory=dict)

    def find_bound_type(
        self,
        site: Site,
        binding: re.Match[bytes],
        name: str,
        depth: int,
    ) -> Type:
        """Return the type of a name that a loop, a lambda or ``out`` binds."""
        symbols = site.symbols
        data = symbols.data
        start = binding.start()
        before = data[max(0, start - _MOST_BEFORE) : start]
        # ``out var crane``: the call sets it.
        if _OUT.search(before):
            return self._find_set_value(site, start, depth)
        # ``from crane in cranes``: a loop, as far as types go.
        if _QUERIED.match(data, start):
            ending = _QUERY_END.search(data, binding.end())
            end = ending.start() if ending is not None else binding.end()
            return self._find_loop_content(site, binding.end(), end, depth)
        head = _HEAD.match(binding[0])
        begin = start + head.end() if head is not None else start
        looped = _LOOPED.match(data, begin)
        is_loop = head is not None or _LOOP.search(before) is not None
        if looped is not None and is_loop:
            opening = find_bracket(symbols, looped.start())
            closing = _find_closing(symbols, opening)
            content = self._find_loop_content(site, looped.end(), closing, depth)
            # ``for ((name, crane) in cranes)`` takes pairs apart.
            if looped[1] is not None:
                return content
            return _find_half(content, first=looped[2].decode() == name)
        return self._find_parameter(site, start, name, depth)

    def find_implicit(
        self,
        site: Site,
        depth: int,
    ) -> Type | None:
        """Return the type of ``it`` at a place of Kotlin; None: no lambda around has such a parameter."""
        symbols = site.symbols
        if site.path not in self._blocks:
            self._blocks[site.path] = read_blocks(symbols)
        for block in self._blocks[site.path].list_around(site.offset):
            # One that names its parameters has no other.
            if _ARROW.match(symbols.data, block + 1):
                continue
            argument = read_argument(symbols, block)
            if argument is not None:
                return self._find_by_call(site, argument, 0, 1, depth)
        return None

    def find_result(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a call that makes a container of what its lambda returns."""
        symbols = site.symbols
        data = symbols.data
        end = step.end - 1
        start = step.offset + len(step.name.encode())
        reference = _REFERENCE.search(data, start, end)
        if reference is not None:
            type_ = self._find_reference_type(site, reference)
        else:
            type_ = self._find_tail(site, start, end, depth)
        if type_ is UNKNOWN:
            return UNKNOWN
        return map_content(step.name, type_)

    def find_pairs(
        self,
        site: Site,
        step: Step,
        owner: Container,
        depth: int,
    ) -> Type:
        """Return the type of a call that pairs what a container holds with what its argument holds."""
        symbols = site.symbols
        value = read_expression(symbols, step.end - 1)
        start = step.offset + len(step.name) + len("(")
        # Only if the argument is nothing but the chain that ends it.
        second: Type = UNKNOWN
        if value is not None and find_bracket(symbols, step.end - 1) == start - 1:
            place = Site(site.path, symbols, start)
            other = self.types.evaluate(place, value, depth + 1)
            if isinstance(other, Container):
                second = find_content(other)
        return Container(Pair(owner.held, second), None, owner.name)

    def _find_reference_type(
        self,
        site: Site,
        reference: re.Match[bytes],
    ) -> Type:
        """Return the type that a function named as ``Crane::rope`` returns."""
        owner = self.types.find_written(site, reference[1].decode())
        member = reference[2].decode()
        if member == "new" or not isinstance(owner, Definition):
            return owner if member == "new" else UNKNOWN
        call = Step("call", member, reference.start(2), reference.end(2))
        return self.types.find_member(site, call, owner)

    def _find_tail(
        self,
        site: Site,
        start: int,
        end: int,
        depth: int,
    ) -> Type:
        """Return the type of the expression that a lambda ends with."""
        symbols = site.symbols
        step = read_expression(symbols, end)
        arrow = _ARROW.search(symbols.data, start, end)
        if step is None:
            return UNKNOWN
        first = find_first(step)
        begin = start + 1
        if arrow is not None:
            begin = arrow.end()
        # Of several statements the last begins a line.
        line = symbols.data.rfind(b"\n", begin, first.offset)
        brace = symbols.data.rfind(b"{", begin - 1, first.offset)
        begin = max(begin, line + 1, brace + 1)
        is_whole = first.offset >= begin and _BEFORE_TAIL.match(
            symbols.data[begin : first.offset]
        )
        if not is_whole:
            return UNKNOWN
        place = Site(site.path, symbols, first.offset)
        return self.types.evaluate(place, step, depth + 1)

    def _find_set_value(
        self,
        site: Site,
        start: int,
        depth: int,
    ) -> Type:
        """Return the type of what a call of C# sets: ``cranes.TryGetValue(key, out var crane)``."""
        argument = read_argument(site.symbols, start)
        if argument is None or argument.call.base is None:
            return UNKNOWN
        place = Site(site.path, site.symbols, argument.call.offset)
        owner = self.types.evaluate(place, argument.call.base, depth + 1)
        if isinstance(owner, Container) and sets_result(argument.call.name):
            return owner.held
        return UNKNOWN

    def _find_loop_content(
        self,
        site: Site,
        start: int,
        end: int,
        depth: int,
    ) -> Type:
        """Return what a loop over the value between two offsets gets."""
        step = read_expression(site.symbols, end)
        if step is None:
            return UNKNOWN
        first = find_first(step)
        if not _BEFORE_TAIL.match(site.symbols.data[start : first.offset]):
            return UNKNOWN
        place = Site(site.path, site.symbols, first.offset)
        value = self.types.evaluate(place, step, depth + 1)
        if isinstance(value, Container):
            return find_content(value)
        return UNKNOWN

    def _find_parameter(
        self,
        site: Site,
        start: int,
        name: str,
        depth: int,
    ) -> Type:
        """Return the type of a parameter of the lambda that begins at an offset."""
        symbols = site.symbols
        data = symbols.data
        begin = start
        if data[start : start + 1] == b"{":
            begin = start + 1
        head = _LIST.match(data, begin)
        if head is None:
            return UNKNOWN
        argument = read_argument(symbols, start)
        if argument is None:
            return UNKNOWN
        words = [_WORD.search(part) for part in head[1].split(b",")]
        names = [word[0].decode() for word in words if word is not None]
        if name not in names:
            return UNKNOWN
        is_unpacked = b"(" in data[begin : head.start(1) + 1] + head[1]
        # A list of names in parentheses is one parameter in Kotlin, and two elsewhere.
        if is_unpacked and symbols.language == "kotlin":
            whole = self._find_by_call(site, argument, 0, 1, depth)
            return _find_half(whole, first=names.index(name) == 0)
        place = names.index(name)
        return self._find_by_call(site, argument, place, len(names), depth)

    def _find_by_call(
        self,
        site: Site,
        argument: Argument,
        place: int,
        count: int,
        depth: int,
    ) -> Type:
        """Return the type that a call passes to a lambda as one of its parameters."""
        call = argument.call
        there = Site(site.path, site.symbols, call.offset)
        owner: Type = UNKNOWN
        if call.base is not None:
            owner = self.types.evaluate(there, call.base, depth + 1)
        functions, receiver = self.types.find_functions(there, call, owner, depth)
        # The project's own functions come before the library's.
        if not functions and isinstance(owner, Container):
            return find_lambda_parameter(owner, call.name, place, count)
        if not functions and call.name in SCOPED and call.base is not None:
            return owner
        # Overloads that take a function there must agree on what they pass.
        types = dict[object, Type]()
        for function in functions:
            type_ = self._find_by_function(function, argument, place, receiver)
            if type_ is not None:
                types[identify(type_)] = type_
        if len(types) != 1:
            return UNKNOWN
        return next(iter(types.values()))

    def _find_by_function(
        self,
        function: Definition,
        argument: Argument,
        place: int,
        receiver: Type,
    ) -> Type | None:
        """Return the type of a parameter of the function that a function takes; None: it takes none there."""
        symbols = function.symbols
        parameters = read_list(symbols.data, symbols.row(function.index)[NAME_END])
        if not parameters:
            return None
        at = argument.place
        if argument.name:
            word = re.compile(rb"(?<!\w)%s\b" % re.escape(argument.name.encode()))
            named = [bool(word.search(text)) for text in parameters]
            at = named.index(True) if True in named else len(parameters)
        # The object of an extension is its first parameter.
        elif at >= 0 and read_extended_type(function) is not None:
            at += 1
        if at >= len(parameters):
            return None
        text = parameters[at]
        if function.language == "kotlin":
            return self._find_in_function_type(function, text, place, receiver)
        return self._find_in_type(function, text, place, receiver)

    def _find_in_function_type(
        self,
        function: Definition,
        text: bytes,
        place: int,
        receiver: Type,
    ) -> Type | None:
        """Return the type of a parameter by a function's type of Kotlin: ``(Crane) -> Unit``."""
        opened = _FUNCTION.search(text)
        if opened is None:
            return None
        parts = read_list(text, opened.end() - 1)
        if parts is None or place >= len(parts):
            return None
        label = _LABEL.match(parts[place])
        part = parts[place][label.end() :] if label is not None else parts[place]
        return self._find_type(function, part, receiver)

    def _find_in_type(
        self,
        function: Definition,
        text: bytes,
        place: int,
        receiver: Type,
        depth: int = 0,
    ) -> Type | None:
        """Return the type of a parameter by the type that a method writes: ``Action<Crane>``, or one of the project's."""
        modifiers = _MODIFIERS.match(text)
        path = _PATH.match(text, modifiers.end() if modifiers is not None else 0)
        if path is None or depth > _MOST_TYPES:
            return None
        name = path[0].decode().rpartition(".")[2]
        parts = split_list(text, path.end())
        if name == QUOTED and parts:
            return self._find_in_type(function, parts[0], place, receiver, depth + 1)
        # The last argument of a function with a result is the result.
        count = len(parts)
        if name == FUNCTION:
            count -= 1
        is_library = name in FUNCTIONS or name in {ACTION, FUNCTION}
        places: Sequence[int] = FUNCTIONS.get(name, range(count))
        if is_library and not self.types.has_type(name):
            if place >= len(places) or places[place] >= len(parts):
                return None
            return self._find_type(function, parts[places[place]], receiver)
        symbols = function.symbols
        site = Site(function.path, symbols, symbols.row(function.index)[NAME])
        written = path[0].decode()
        type_ = self.types.find_generic(site, written, parts, function, receiver)
        if not isinstance(type_, Definition):
            return None
        return self._find_in_method(type_, place)

    def _find_in_method(
        self,
        type_: Definition,
        place: int,
    ) -> Type | None:
        """Return the type of a parameter of a delegate, or of the only method that an interface leaves open."""
        symbols = type_.symbols
        method = type_
        # An interface may be written as a lambda if it leaves one method open.
        if type_.kind != "type":
            methods = list[Definition]()
            for index in range(symbols.count):
                if symbols.parent(index) != type_.index:
                    continue
                row = symbols.row(index)
                head = symbols.data[row[START] : row[NAME]]
                is_method = symbols.kind(index) in CALLABLE_KINDS
                if is_method and not _NOT_ABSTRACT.search(head):
                    methods.append(Definition(type_.path, symbols, index))
            if len(methods) != 1 or type_.kind != "interface":
                return None
            method = methods[0]
        start = symbols.row(method.index)[NAME_END]
        parameters = read_list(symbols.data, start)
        if not parameters or place >= len(parameters):
            return None
        modifiers = _MODIFIERS.match(parameters[place])
        text = parameters[place]
        if modifiers is not None:
            text = text[modifiers.end() :]
        return self._find_type(method, text, type_)

    def _find_type(
        self,
        member: Definition,
        part: bytes,
        receiver: Type,
    ) -> Type:
        """Return the type that a part of a declaration writes."""
        symbols = member.symbols
        site = Site(member.path, symbols, symbols.row(member.index)[NAME])
        path = _PATH.match(part)
        # What the object says comes before what a bound says.
        if path is not None:
            inferred = _infer(member, path[0], receiver)
            if inferred is not UNKNOWN:
                return inferred
        return self.types.find_arguments(site, [part], member, receiver)[0]


def read_argument(
    symbols: FileSymbols,
    start: int,
) -> Argument | None:
    """Return the call that a lambda at an offset is an argument of; None: it is none, or what is not understood."""
    data = symbols.data
    if symbols.language == "kotlin" and data[start : start + 1] == b"{":
        # The last argument may stand behind the parentheses.
        step = read_expression(symbols, start)
        if step is not None and step.form != "new":
            return Argument(step, -1, "")
    opening = find_bracket(symbols, start)
    if opening < 0 or data[opening : opening + 1] != b"(":
        return None
    parts = _split(symbols, opening + 1, start)
    if parts is None:
        return None
    named = _NAMED.search(parts[-1])
    name = ""
    if named is not None:
        name = named[1].decode()
    elif _ARGUMENT_MODIFIERS.match(parts[-1]) is None and not _OUT.search(parts[-1]):
        return None
    call = read_callee(symbols, opening)
    if call is None:
        return None
    return Argument(call, len(parts) - 1, name)


def _split(
    symbols: FileSymbols,
    start: int,
    end: int,
) -> list[bytes] | None:
    """Return the arguments before an offset, the last cut off there."""
    depth = 0
    begin = start
    parts = list[bytes]()
    for match in _DIVIDES.finditer(symbols.data, start, end):
        if symbols.is_text(match.start()):
            continue
        sign = match[0]
        if sign in b"([{":
            depth += 1
        elif sign in b")]}":
            depth -= 1
        elif not depth:
            parts.append(symbols.data[begin : match.start()])
            begin = match.end()
    if depth:
        return None
    return [*parts, symbols.data[begin:end]]


def _find_closing(
    symbols: FileSymbols,
    opening: int,
) -> int:
    """Return where a bracket is closed."""
    depth = 0
    for match in _BRACKETS.finditer(symbols.data, max(0, opening)):
        if symbols.is_text(match.start()):
            continue
        depth += 1 if match[0] in b"([{" else -1
        if depth <= 0:
            return match.start()
    return len(symbols.data)


def _find_half(
    value: Type,
    *,
    first: bool,
) -> Type:
    if not isinstance(value, Pair):
        return UNKNOWN
    return value.first if first else value.second


def _infer(
    function: Definition,
    parameter: bytes,
    receiver: Type,
) -> Type:
    """Return what a function's own type parameter stands for, by what the function extends."""
    if parameter.decode() not in read_parameters(function):
        return UNKNOWN
    if function.kind == "type" and isinstance(receiver, AppliedType):
        place = read_parameters(function).index(parameter.decode())
        return dict(enumerate(receiver.arguments)).get(place, UNKNOWN)
    symbols = function.symbols
    if is_extension(function):
        row = symbols.row(function.index)
        path = _PATH.match(symbols.data, row[QUALIFIER], row[QUALIFIER_END])
        if path is None:
            return UNKNOWN
        written = path[0].decode()
        parts = split_list(symbols.data, path.end())
    else:
        written, parts = read_extended_type(function) or ("", [])
    # ``fun <T> T.also(block: (T) -> Unit)`` passes the object itself.
    if written.encode() == parameter:
        return receiver
    if parameter not in parts:
        return UNKNOWN
    if isinstance(receiver, AppliedType):
        place = parts.index(parameter)
        return dict(enumerate(receiver.arguments)).get(place, UNKNOWN)
    if isinstance(receiver, Container) and len(parts) == 1:
        return find_content(receiver)
    return UNKNOWN
