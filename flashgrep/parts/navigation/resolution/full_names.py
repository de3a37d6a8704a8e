"""The full names that a name in a file may have by what the file imports, for libraries in languages that write them."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from flashgrep.parts.symbols.name_at_position import NameAtPosition
from flashgrep.parts.symbols.parse.imports import ALL, PACKAGED, FileImports, Import

_BEFORE_RUST: Final = re.compile(rb"(?<![\w:])((?:r#)?\w+(?:::\w+){0,20})::\Z")
_BEFORE_DOT: Final = re.compile(rb"(?<![\w.])([A-Z]\w*)\.\Z")
"""A class, whose member is named."""
_INCLUDE: Final = re.compile(
    rb'(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]{1,200})[>"]'
)
_MOST_BEFORE: Final = 200
"""Most bytes of a path before a name."""
_IMPLICIT: Final = {"java": ("java.lang",), "kotlin": ("kotlin", "java.lang")}
"""Packages whose names need no import."""


def list_full_names(
    named: NameAtPosition, imports: FileImports
) -> Iterator[tuple[str, str]]:
    """Yield the modules that a name may be of, each with the name that it has there; likeliest first."""
    language = named.symbols.language
    if language == "rust":
        yield from _list_rust(named, imports)
    elif language in PACKAGED:
        start = max(0, named.start - _MOST_BEFORE)
        before = _BEFORE_DOT.search(named.symbols.data, start, named.start)
        if before is not None:
            owner = before[1].decode()
            for module, name in _list_by_imports(owner, imports):
                yield f"{module}.{name}", named.text
            return
        yield from _list_by_imports(named.text, imports)
        for package in _IMPLICIT.get(language, ()):
            yield package, named.text
    elif language in {"c", "cpp"}:
        for header in _INCLUDE.findall(named.symbols.data):
            yield header.decode("utf-8", "replace"), named.text


def _list_by_imports(name: str, imports: FileImports) -> Iterator[tuple[str, str]]:
    for import_ in imports.names.get(name, ()):
        yield import_.module, import_.name
    for star in imports.stars:
        yield star.module, name


def _list_rust(
    named: NameAtPosition, imports: FileImports
) -> Iterator[tuple[str, str]]:
    symbols = named.symbols
    name = named.text
    start = max(0, named.start - _MOST_BEFORE)
    before = _BEFORE_RUST.search(symbols.data, start, named.start)
    if symbols.role(named.start) == "import":
        # In braces the path is not before the name; the statement has it.
        several = list(chain(*imports.names.values(), imports.stars))
        around = -1
        for import_ in several:
            if import_.offset <= named.start:
                around = max(around, import_.offset)
        several.sort(key=lambda import_: import_.offset != around)
        for import_ in several:
            segments = import_.module.split("::")
            segments.append(import_.name)
            if name in segments:
                at = segments.index(name)
                yield "::".join(segments[:at]), name
        return
    if before is None:
        yield from _list_by_imports(name, imports)
        yield "", name
        return
    written = before[1].decode("utf-8", "replace")
    first, _, rest = written.partition("::")
    for import_ in imports.names.get(first, ()):
        module = _whole(import_)
        if module and rest:
            module += "::"
        yield module + rest, name
    yield written, name


def _whole(import_: Import) -> str:
    if import_.name == ALL:
        return import_.module
    return f"{import_.module}::{import_.name}".removeprefix("::")
