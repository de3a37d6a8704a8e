"""Finds the importers of a file: follows written module names to files."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from flashgrep.parts.navigation.resolution.call_filter import is_same_family
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.resolver import Use
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    PROVEN,
    Definition,
    Resolution,
)
from flashgrep.parts.symbols.parse.imports import ALL, WHOLE, Import
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.scoping import SCOPED

_PARTS: Final = re.compile(r"[./\\]+|::")
_DOTTED: Final = re.compile(rb"(?:\bimport\s|,)\s*([A-Za-z_]\w*(?:\.\w+)+)", re.ASCII)
"""Dotted module names in Python imports."""


def find_modules(paths: Iterable[bytes], written: str) -> list[bytes]:
    """Return the files that a written module name may refer to, with or without folders and endings."""
    matching_parts = [part for part in _PARTS.split(written) if part]
    if not matching_parts:
        return []
    last = matching_parts[-1].encode("utf-8", "surrogateescape")
    modules = list[bytes]()
    for path in paths:
        if last not in path:
            continue
        folders, _, name = path.decode("utf-8", "surrogateescape").rpartition("/")
        parts = [part for part in _PARTS.split(folders) if part]
        stem, *ending = name.split(".")
        ways = [[*parts, stem], [*parts, stem, *ending]]
        if stem in {"__init__", "index", "mod", "lib"}:
            ways.append(parts)
        if any(way[-len(matching_parts) :] == matching_parts for way in ways):
            modules.append(path)
    return modules


def find_importers(
    module: Definition, files: Iterable[tuple[bytes, FileSymbols]], names: Names
) -> Iterator[tuple[Use, Resolution]]:
    """Yield the imports of a module in files; if the language's modules are not resolved, the name alone decides."""
    for path, symbols in files:
        if path == module.path:
            continue
        find = _follow_imports if symbols.language in SCOPED else _match_name
        for offset, resolution in find(path, symbols, module, names):
            yield Use(path, symbols, offset), resolution


def _list_submodules(
    symbols: FileSymbols, written: Iterable[Import]
) -> Iterator[tuple[int, str]]:
    """Yield the modules that Python's imports may name besides: a name may be a submodule; ``import a.b`` binds ``a``."""
    for import_ in written:
        if import_.name in {WHOLE, ALL}:
            continue
        if import_.module.endswith("."):
            yield import_.offset, f"{import_.module}{import_.name}"
        else:
            yield import_.offset, f"{import_.module}.{import_.name}"
    for start, end in symbols.parsed.statements.tolist():
        for dotted in _DOTTED.findall(symbols.data[start:end]):
            yield start, dotted.decode()


def _follow_imports(
    path: bytes, symbols: FileSymbols, module: Definition, names: Names
) -> Iterator[tuple[int, Resolution]]:
    file_imports = names.imports_of(path)
    seen = set[int]()
    folder = module.path.rpartition(b"/")[0] + b"/"
    written = [
        *(import_ for several in file_imports.names.values() for import_ in several),
        *file_imports.stars,
    ]
    tried = [
        (import_.offset, import_.module)
        for import_ in (
            *written,
            *file_imports.exports.values(),
            *file_imports.export_stars,
        )
    ]
    if symbols.language == "python":
        tried += _list_submodules(symbols, written)
    for offset, current_module in sorted(tried):
        if current_module and offset not in seen:
            found_module = names.find_module(path, symbols.language, current_module)
        else:
            found_module = None
        if found_module is not None and found_module in (module.path, folder):
            seen.add(offset)
            yield offset, Resolution(PROVEN, "import")


def _match_name(
    path: bytes, symbols: FileSymbols, module: Definition, names: Names
) -> Iterator[tuple[int, Resolution]]:
    """Yield the imports of a module by its name; only includes are resolved."""
    if not is_same_family(symbols.language, module.language):
        return
    included = module.path in names.includes.near(path)
    word = re.compile(
        rb"(?<![\w$-])"
        + re.escape(module.stem.encode("utf-8", "surrogateescape"))
        + rb"(?![\w$-])"
    )
    for start, end in symbols.parsed.statements.tolist():
        if word.search(symbols.data, start, end):
            yield (
                start,
                Resolution(PROVEN, "include")
                if included
                else Resolution(GUESS, "name only"),
            )
