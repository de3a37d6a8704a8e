"""Which of several methods of one name and type a call runs, by the number of arguments and by literals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import NAME_END

OVERLOADED: Final = frozenset({"java", "csharp"})
"""Languages in which a type may have several methods of one name, told apart by their parameters."""
_PIECES: Final = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|(?s:/\*.*?\*/)'
    rb"|(?<!\w)[A-Z]\w*\s*<[\w\s,.?<>\[\]&@]*>(?=[\s(\w{.)\[])|[()\[\]{},]"
)
"""Where a list may be divided, and what holds such signs without meaning them."""
_OPENS: Final = re.compile(rb"\s*(?:<[\w\s,.?<>\[\]&]*>\s*)?\(")
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
_TYPE: Final = re.compile(
    rb"([\w.]+(?:\[\])*(?:\.\.\.)?)(?:<[^()]*>)?\s+\w+\s*(?:=.*)?\Z"
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The types of a method's parameters, as far as they are plain words, and how many arguments it takes."""

    types: tuple[bytes, ...]
    least: int
    most: int | None


def choose_overloads(
    alike: Sequence[Definition], symbols: FileSymbols, end: int
) -> list[Definition]:
    """Return those of several methods that a call may run; ``end``: of its name. All, if it has no arguments to read."""
    arguments = read_list(symbols.data, end)
    if arguments is None:
        return list(alike)
    return [method for method in alike if _accepts(method, arguments)] or list(alike)


def _accepts(method: Definition, arguments: list[bytes]) -> bool:
    parameters = read_parameters(method)
    if parameters is None:
        return True
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
    if is_open:
        return Parameters(tuple(types[:-1]), max(0, len(required) - 1), None)
    return Parameters(tuple(types), len(required), len(written))


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
