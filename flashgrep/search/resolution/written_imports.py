"""What a file's import statements, read as text, say about a name, in languages whose modules are not resolved."""

import re
from collections.abc import Iterator
from typing import Final

from flashgrep.ingest.parse.imports import DOTTED, PACKAGED
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.search.resolution.symbol_graph import GUESS, Definition, Resolution
from flashgrep.search.symbol_source import imports_of

_NAMESPACE: Final = rb"\bnamespace\s+%s\s*=\s*(?:\w+::)*(\w+)\s*;"
_INCLUDING: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp", "ruby", "php", "perl"})
"""Languages in which an included file's name binds nothing: ``server`` may be an object despite ``server.h``."""


def resolve_import(symbols: FileSymbols, target: Definition) -> Resolution | None:
    """Return the evidence that an import brings the target into the file, if one does."""
    word = re.compile(rb"(?<![\w$])" + re.escape(target.name.encode()) + rb"(?![\w$])")
    folder = target.path.rpartition(b"/")[0].rpartition(b"/")[2].decode("utf-8", "replace")
    stem = target.stem.encode()
    for statement in _statements(symbols):
        is_named = word.search(statement) is not None
        if not is_named and stem not in statement:
            continue
        module = set(re.findall(r"[\w$-]+", statement.decode("utf-8", "replace")))
        if is_named:
            return Resolution(0.9 if module & {target.stem, folder} else GUESS, "import")
        if (b"*" in statement or (b"::" not in statement and b"#include" in statement)) and target.stem in module:
            return Resolution(0.85, "import")
    return None


def imported_as(symbols: FileSymbols, name: str) -> set[tuple[str, bool]]:
    """Return the aliases under which a file imports a name, each with whether other files may import the alias."""
    if symbols.language in DOTTED:
        named = (one for some in imports_of(symbols).names.values() for one in some if one.name == name != one.local)
        return {(one.local, False) for one in named}
    renamed = re.escape(name.encode()) + rb"\s+as\s+(\w+)"
    if re.search(renamed, symbols.data) is None:  # takes a tenth of the time of reading all statements
        return set()
    word = re.compile(rb"(?<![\w$])" + renamed)
    found = ((word.search(statement), statement.startswith(b"pub")) for statement in _statements(symbols))
    return {(one[1].decode("utf-8", "replace"), is_public) for one, is_public in found if one} - {(name, False)}


def find_real_name(symbols: FileSymbols, name: str) -> str:
    """Return the original name of a type or namespace if the file uses an alias for it."""
    if symbols.language in PACKAGED and name:
        return next((one.name for one in imports_of(symbols).names.get(name, ()) if one.name), name)
    if symbols.language != "cpp" or not name or b"namespace" not in symbols.data:
        return name
    found = re.search(_NAMESPACE % re.escape(name.encode()), symbols.data)
    return found[1].decode("utf-8", "replace") if found else name


def _statements(symbols: FileSymbols) -> Iterator[bytes]:
    return (symbols.data[start:end] for start, end in symbols.parsed.statements.tolist())


def find_module(symbols: FileSymbols, on: str) -> str:
    """Return the module that an import binds to a word, or an empty string."""
    if not on or symbols.language in _INCLUDING:
        return ""
    word = re.compile(rb"(?<![\w$.])" + re.escape(on.encode()) + rb"(?![\w$])")
    for statement in _statements(symbols):
        if not word.search(statement):
            continue
        alias = re.search(rb"(?<![\w$.:/-])([\w$.:/-]++)[\"']?\s+as\s+" + re.escape(on.encode()) + rb"\b", statement)
        # Rust's ``a::{self as b}``.
        alias = (
            re.search(rb"(?<!\w)(\w++)::\{[^{}]*\bself\s+as\s+" + re.escape(on.encode()) + rb"\b", statement) or alias
        )
        if alias:
            return re.split(r"[.:/]+", alias[1].decode("utf-8", "replace"))[-1]
        if not on[:1].isupper():
            return on
    return ""
