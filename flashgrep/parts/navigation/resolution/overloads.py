"""Which of several methods of one name and type a call runs, by the number of arguments and by literals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import (
    read_parameters as read_parameter_names,
)
from flashgrep.parts.navigation.resolution.type_text import split_list
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import NAME_END

OVERLOADED: Final = frozenset({"java", "csharp"})
"""Languages in which a type may have several methods of one name, told apart by their parameters."""
_INSIDE: Final = rb"[\w\s,.?\[\]&@]*"
_ANGLES: Final = rb"<INSIDE(?:<INSIDE(?:<INSIDE>INSIDE)*>INSIDE)*>".replace(
    b"INSIDE", _INSIDE
)
"""The arguments of a generic type, three deep at most."""
_PIECES: Final = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|(?s:/\*.*?\*/)'
    rb"|(?<!\w)[A-Z]\w*\s*ANGLES(?=[\s(\w{.)\[,])|[()\[\]{},]".replace(
        b"ANGLES", _ANGLES
    )
)
"""Where a list may be divided, and what holds such signs without meaning them."""
_WORD: Final = re.compile(rb"\w+")
_OPENS: Final = re.compile(rb"\s*(?:<[\w\s,.?<>\[\]&]*>\s*)?\(")
_TYPE_BEHIND: Final = re.compile(rb"(?s)\w\s*:\s*(.*?)(?:\s=.*)?\Z")
_BEGINS_LAMBDA: Final = re.compile(rb"\{")
_HOLDS_LAMBDA: Final = re.compile(rb"(?s).*->|(?!(?:String|Int|Long|Boolean|Char)\b)\w")
_BEGINS_STRING: Final = re.compile(rb'"')
_HOLDS_STRING: Final = re.compile(rb"(?:String|CharSequence|Any)\b|[A-Z]\w?\b")
_BEGINS_ARRAY: Final = re.compile(rb"(?:emptyArray|arrayOf)\b")
_HOLDS_ARRAY: Final = re.compile(rb"(?:Array|Any)\b|[A-Z]\w?\b")
_BEGINS_LIST: Final = re.compile(rb"(?:emptyList|listOf)\b")
_HOLDS_LIST: Final = re.compile(rb"(?!(?:Array|String)\b)\w")
_KOTLIN_LITERALS: Final = (
    (_BEGINS_LAMBDA, _HOLDS_LAMBDA),
    (_BEGINS_STRING, _HOLDS_STRING),
    (_BEGINS_ARRAY, _HOLDS_ARRAY),
    (_BEGINS_LIST, _HOLDS_LIST),
)
"""How an argument begins whose type is plain, and the types that may hold it."""
_LAMBDA: Final = re.compile(rb"\s*\{")
_SEVERAL: Final = 2
_MOST_BLANKS: Final = 100
_MOST_TEXT: Final = 5_000
"""Bytes of a list; one that is longer is not read."""
_LITERALS: Final = (
    (re.compile(rb'".*"', re.DOTALL), b"String"),
    (re.compile(rb"'.*'"), b"char"),
    (re.compile(rb"[+-]?\d[\w.]*"), b"number"),
    (re.compile(rb"true|false"), b"boolean"),
)
_NUMBERS: Final = frozenset({b"int", b"long", b"short", b"byte", b"double", b"float"})
_OF_LITERALS: Final = {
    b"String": frozenset({b"String", b"string"}),
    b"char": _NUMBERS | {b"char"},
    b"number": _NUMBERS | {b"char"},
    b"boolean": frozenset({b"boolean", b"bool"}),
}
"""The plain types that may have a literal's value."""
_PLAIN: Final = frozenset[bytes]().union(*_OF_LITERALS.values())
_THIS: Final = re.compile(rb"this\s")
_TYPE: Final = re.compile(
    rb"([\w.]+(?:\[\])*(?:\.\.\.)?)(?:<[^()]*>)?\s+\w+\s*(?:=.*)?\Z"
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The types of a method's parameters, as far as they are plain words, and how many arguments it takes."""

    types: tuple[bytes, ...]
    least: int
    most: int | None
    is_extension: bool = False


def choose_overloads(
    alike: Sequence[Definition], symbols: FileSymbols, end: int
) -> list[Definition]:
    """Return those of several methods that a call may run; ``end``: of its name. All, if it has no arguments to read."""
    return list_accepting(alike, symbols, end) or list(alike)


def list_accepting(
    alike: Sequence[Definition], symbols: FileSymbols, end: int
) -> list[Definition]:
    """Return those of several methods that take a call's arguments; ``end``: of its name. All, if it has none to read."""
    arguments = read_list(symbols.data, end)
    if arguments is None:
        return list(alike)
    # Types that are written behind a name are as many as the method has parameters for.
    count = len(split_list(symbols.data, end))
    accepting = list[Definition]()
    for method in alike:
        parameters = read_parameter_names(method)
        is_for = not count or count == len(parameters)
        if not count and method.language == "csharp" and parameters:
            is_for = _is_inferred(method, parameters)
        if is_for and _accepts(method, arguments):
            accepting.append(method)
    return accepting


def _is_inferred(
    method: Definition,
    names: Sequence[str],
) -> bool:
    """Whether the arguments of a call tell all type parameters of a method."""
    parameters = read_list(
        method.symbols.data, method.symbols.row(method.index)[NAME_END]
    )
    if parameters is None:
        return True
    words = set(_WORD.findall(b" ".join(parameters)))
    return all(name.encode() in words for name in names)


def choose_kotlin_overloads(
    alike: Sequence[Definition],
    symbols: FileSymbols,
    end: int,
) -> list[Definition]:
    """Return those of several functions of Kotlin that a call may run, by its arguments and by literals."""
    if len(alike) < _SEVERAL:
        return list(alike)
    # If none takes them, the arguments were not understood.
    return list_accepting_in_kotlin(alike, symbols, end) or list(alike)


def list_accepting_in_kotlin(
    alike: Sequence[Definition],
    symbols: FileSymbols,
    end: int,
) -> list[Definition]:
    """Return those of several functions of Kotlin that take a call's arguments; ``end``: of its name."""
    arguments = _read_kotlin_list(symbols.data, end) or []
    # A lambda behind the parentheses, or in place of them, is the last argument.
    closing = _find_end(symbols.data, end)
    if _LAMBDA.match(symbols.data, closing):
        arguments.append(b"{")
    accepting = list[Definition]()
    for function in alike:
        if _accepts_in_kotlin(function, arguments):
            accepting.append(function)
    return accepting


def _accepts_in_kotlin(
    function: Definition,
    arguments: list[bytes],
) -> bool:
    """Whether a function of Kotlin may take the arguments of a call."""
    types = read_types(function)
    parameters = read_kotlin_parameters(function)
    if parameters is None:
        return True
    # One with a first value may be left out, wherever it stands.
    required = [parameter for parameter in parameters if b"=" not in parameter]
    is_open = any(parameter.startswith(b"vararg ") for parameter in parameters)
    least = len(required)
    # A list of any length may be empty.
    if is_open:
        least -= 1
    if len(arguments) < least:
        return False
    if is_open:
        return True
    if len(arguments) > len(parameters):
        return False
    for type_, argument in zip(types, arguments, strict=False):
        if argument == b"{":
            # Parameters before the lambda's may be left out.
            return _may_hold_in_kotlin(types[-1], argument)
        if not _may_hold_in_kotlin(type_, argument):
            return False
    return True


def _may_hold_in_kotlin(type_: bytes, argument: bytes) -> bool:
    """Whether a parameter of a type may get an argument, if that is a literal."""
    for begins, holds in _KOTLIN_LITERALS:
        if begins.match(argument):
            return holds.match(type_) is not None
    return True


def read_types(function: Definition) -> list[bytes]:
    """Return the types of the parameters of a function of Kotlin, as they are written."""
    parameters = read_kotlin_parameters(function) or []
    types = list[bytes]()
    for parameter in parameters:
        match = _TYPE_BEHIND.search(parameter)
        # What is not understood may be of any type.
        types.append(match[1].strip() if match else b"")
    return types


def read_kotlin_parameters(function: Definition) -> list[bytes] | None:
    """Return the parameters of a function of Kotlin, as they are written; None: they cannot be read."""
    row = function.symbols.row(function.index)
    return _read_kotlin_list(function.symbols.data, row[NAME_END])


def _read_kotlin_list(data: bytes, start: int) -> list[bytes] | None:
    parts = read_list(data, start)
    # A comma may follow the last.
    if parts and not parts[-1]:
        parts.pop()
    return parts


def _find_end(data: bytes, end: int) -> int:
    """Return the offset behind the list of arguments that follows a name."""
    opened = _OPENS.match(data, end, end + _MOST_TEXT)
    if opened is None:
        return end
    divisions = list(_find_divisions(data, opened.end()))
    # The last division is the parenthesis that closes the list.
    if divisions:
        return divisions[-1] + 1
    return end


def _accepts(method: Definition, arguments: list[bytes]) -> bool:
    parameters = read_parameters(method)
    if parameters is None:
        return True
    if _takes(parameters, arguments):
        return True
    if not parameters.is_extension:
        return False
    # The first is what an extension is called on.
    least = max(0, parameters.least - 1)
    most = None if parameters.most is None else parameters.most - 1
    return _takes(Parameters(parameters.types[1:], least, most), arguments)


def _takes(parameters: Parameters, arguments: list[bytes]) -> bool:
    count = len(arguments)
    if count < parameters.least:
        return False
    if parameters.most is not None and count > parameters.most:
        return False
    return all(
        _may_hold(type_, argument)
        for type_, argument in zip(parameters.types, arguments, strict=False)
    )


def _may_hold(type_: bytes, argument: bytes) -> bool:
    """Whether a parameter of a type may get an argument, if that is a literal and the type a plain one."""
    plain = type_.removesuffix(b"...")
    is_array = plain.endswith(b"[]")
    if plain not in _PLAIN and not is_array:
        return True
    kind = next((kind for form, kind in _LITERALS if form.fullmatch(argument)), None)
    return kind is None or (not is_array and plain in _OF_LITERALS[kind])


def read_parameters(method: Definition) -> Parameters | None:
    """Return a method's parameters; None if they cannot be read."""
    row = method.symbols.row(method.index)
    written = read_list(method.symbols.data, row[NAME_END])
    if written is None:
        return None
    matches = [_TYPE.search(parameter) for parameter in written]
    types = [match[1] if match else b"" for match in matches]
    is_open = any(
        b"..." in parameter or parameter.startswith(b"params ") for parameter in written
    )
    required = [parameter for parameter in written if b"=" not in parameter]
    is_extension = bool(written) and _THIS.match(written[0]) is not None
    if is_open:
        least = max(0, len(required) - 1)
        return Parameters(tuple(types[:-1]), least, None, is_extension)
    return Parameters(tuple(types), len(required), len(written), is_extension)


def read_list(data: bytes, start: int) -> list[bytes] | None:
    """Return what stands between the parentheses behind a name, divided at its commas; None: there are none."""
    opened = _OPENS.match(data, start, start + _MOST_TEXT)
    if opened is None:
        return None
    commas = list(_find_divisions(data, opened.end()))
    if not commas or data[commas[-1] : commas[-1] + 1] == b",":
        return None
    parts = []
    begin = opened.end()
    for at in commas:
        parts.append(data[begin:at].strip())
        begin = at + 1
    return [] if parts == [b""] else parts


def _find_divisions(data: bytes, start: int) -> Iterator[int]:
    """Yield the offsets of the commas of a list, and of the parenthesis that ends it."""
    depth = 0
    for match in _PIECES.finditer(data, start, start + _MOST_TEXT):
        piece = match[0]
        if piece in b"([{":
            depth += 1
        elif piece in b")]}":
            if not depth:
                yield match.start()
                return
            depth -= 1
        elif piece == b"," and not depth:
            yield match.start()
