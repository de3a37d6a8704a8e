"""Exports: a name of a module followed through imports, re-exports, stars and aliases to its definition."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from flashgrep.ingest.parse.imports import ALL, DEFAULT, ECMA, WHOLE, FileImports, Import, may_export
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, START
from flashgrep.ingest.parse.scoping import MODULE, FileScopes
from flashgrep.search.resolution.modules import Modules
from flashgrep.search.resolution.symbol_graph import Definition
from flashgrep.search.symbol_source import imports_of

_MEMBERS: Final = frozenset({"method", "constructor", "field", "property", "enumerator"})
_ABOVE: Final = 300
"""Bytes before a function in which its decorators stand."""
_MOST_DEPTH: Final = 60
"""Most steps from a name to its definition: longer chains are cycles."""
_MOST_STEPS: Final = 3_000
"""Most steps for one use of a name, all branches together (about 50 ms)."""


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression evaluates to: a definition itself, an instance of it, a module, or (none of them) outside."""

    definition: Definition | None = None
    is_instance: bool = False
    module: bytes | None = None
    """A file, or a folder with its slash."""
    literal: tuple[bytes, int] | None = None
    """Where an object is written: its file, and the place where it begins."""
    is_variable: bool = False
    """Whether it is what a local variable holds, which is a name of its own."""
    results: "Values" = ()
    """Its result when called, if that is all that is known."""
    elements: "Values" = ()
    """What a collection has in it; that is itself outside."""

    @property
    def key(self) -> tuple[object, ...]:
        """What tells a value from others."""
        parts = tuple(one.key for one in self.elements), tuple(one.key for one in self.results)
        return self.definition.key if self.definition else None, self.is_instance, self.module, self.literal, *parts


Values = tuple[Value, ...]
"""The possible values of an expression; empty: unknown."""
OUTSIDE: Final = Value()
"""Something that this project does not define."""


class Exports(ABC):
    """Resolves names of modules in one state of a project; what was found is kept."""

    @abstractmethod
    def scopes_of(self, path: bytes) -> FileScopes | None:
        """Return a file's scopes."""

    def __init__(
        self,
        modules: Modules,
        open_file: Callable[[bytes], FileSymbols | None],
        definitions: Callable[[str], Sequence[Definition]],
    ) -> None:
        self.open_file = open_file
        self.definitions = definitions
        self._modules = modules
        self._imports: dict[bytes, FileImports] = {}
        self._top: dict[tuple[bytes, str], list[Definition]] = {}
        self._methods: dict[str, dict[tuple[bytes, str], list[Definition]]] = {}
        self._known: dict[tuple[object, ...], Values | None] = {}
        self._open: dict[tuple[object, ...], int] = {}
        """What is being found, with its depth."""
        self._cut = _MOST_DEPTH
        """The least depth of what was met again while it was being found."""
        self._steps = 0

    def imports_of(self, path: bytes) -> FileImports:
        """Return what a file imports and exports."""
        if path not in self._imports:
            symbols = self.open_file(path)
            self._imports[path] = imports_of(symbols) if symbols is not None else FileImports()
        return self._imports[path]

    def top_level(self, path: bytes, name: str) -> list[Definition]:
        """Return a file's top-level definitions of a name; of overloads only those with a body.

        ``const { name } = require(…)`` brings a name in, though it is there like a definition.
        """
        if (known := self._top.get((path, name))) is not None:  # else each use would look at all the others
            return known
        symbols, found = self.open_file(path), []
        if symbols is not None:
            for offset in symbols.words(name.encode(), fold=False):
                index = symbols.index_at(offset)
                before = symbols.data[symbols.row(index)[START] : offset] if index >= 0 else b""
                if before.startswith(b"{") and name in self.imports_of(path).names:
                    continue
                # Only what is outside of everything can be imported.
                is_outer = index >= 0 and symbols.kind(index) not in _MEMBERS and symbols.parent(index) < 0
                if is_outer and not symbols.container(index) and self.is_at_top(path, symbols, offset):
                    found.append(Definition(path, symbols, index))
        self._top[path, name] = without_overloads(found)
        return self._top[path, name]

    def is_at_top(self, path: bytes, symbols: FileSymbols, offset: int) -> bool:
        """Whether what is defined outside of every definition is its file's: in JavaScript a callback may have it."""
        if symbols.language not in ECMA:
            return True
        line = symbols.data.rfind(b"\n", 0, offset) + 1
        before = symbols.data[max(line, offset - _ABOVE) : offset]
        if before.endswith(b"."):  # set on something
            return before.endswith(b"exports.")
        file = self.scopes_of(path) if before[:1].isspace() else None
        return file is None or file.scope_at(offset) == MODULE

    def methods_of(self, name: str) -> dict[tuple[bytes, str], list[Definition]]:
        """Return what types of Go have under a name, by folder and type: there may be thousands."""
        if name not in self._methods:
            found = self._methods[name] = {}
            for one in self.definitions(name):
                if one.language == "go" and one.owner:
                    found.setdefault((one.path.rpartition(b"/")[0], one.owner), []).append(one)
        return self._methods[name]

    def find_module(self, path: bytes, language: str, module: str) -> bytes | None:
        """Return the file or folder that a module as written in a file leads to."""
        return self._modules.find(language, path, module)

    def import_value(self, path: bytes, one: Import) -> Values:
        """Return what an import brings in."""
        if not one.module:  # an export of the file's own
            return self.find_in_module(path, one.name)
        language = self.language_of(path)
        target = self.find_module(path, language, one.module)
        if one.name not in {WHOLE, ALL}:
            if target is not None and (found := self.export(target, one.name)):
                return found
            found = ()
            if language == "python":  # a module of the package
                dot = "" if one.module.endswith(".") else "."
                inner = self.find_module(path, language, f"{one.module}{dot}{one.name}")
                found = (Value(module=inner),) if inner is not None else ()
            if found or target is not None:
                return found
        if target is None:
            # A missing relative module is unknown; any other is a library.
            return () if one.module.startswith(".") else (OUTSIDE,)
        exports = self.imports_of(target).exports if language in ECMA else {}
        whole = exports.get(DEFAULT)  # what CommonJS and ``import x = require`` get
        return (Value(module=target), *(self.import_value(target, whole) if whole is not None else ()))

    def export(self, module: bytes, name: str) -> Values:
        """Return what a module gives under a name."""
        return self.remember(("export", module, name), lambda: self._find_export(module, name)) or ()

    def _find_export(self, module: bytes, name: str) -> Values:
        if module.endswith(b"/"):  # a Go package: all files of a folder
            folder = module[:-1]
            # By the name, since a package has no list of what its files define.
            alike = [one for one in self.definitions(name) if one.path.rpartition(b"/")[0] == folder]
            return tuple(Value(one) for one in alike if one.language == "go" and not one.symbols.container(one.index))
        symbols = self.open_file(module)
        # The text alone rules out most modules; reading exports takes longer.
        if symbols is not None and not may_export(symbols, name):
            return ()
        imports = self.imports_of(module)
        if name in imports.exports:
            return self.import_value(module, imports.exports[name])
        # No star hands a default on.
        if name == DEFAULT:
            return ()
        found = self.find_in_module(module, name)
        if not found:
            for star in imports.export_stars:
                target = self.find_module(module, self.language_of(module), star.module)
                if target is not None and (found := self.export(target, name)):
                    break
        return found

    def find_in_module(self, path: bytes, name: str) -> Values:
        """Return what a name means at a file's top level: defined there, or imported."""
        if own := self.top_level(path, name):
            return tuple(Value(one) for one in own)
        imports = self.imports_of(path)
        # The last one counts: an import in ``try`` is often made again in ``except``.
        if bound := imports.names.get(name):
            return self.remember(("import", path, bound[-1]), partial(self.import_value, path, bound[-1])) or ()
        for star in imports.stars:
            target = self.find_module(path, self.language_of(path), star.module)
            if target is not None and (found := self.export(target, name)):
                return found
        if path.rpartition(b"/")[2].startswith(b"__init__.py"):
            module = b"." + name.encode()
            if (inner := self.find_module(path, "python", module.decode("utf-8", "replace"))) is not None:
                return (Value(module=inner),)
        return ()

    def language_of(self, path: bytes) -> str:
        """Return a file's language; empty where it has no symbols."""
        symbols = self.open_file(path)
        return symbols.language if symbols is not None else ""

    def remember(self, key: tuple[object, ...], find: Callable[[], Values | None]) -> Values | None:
        """Return a cached result, or compute it; cycles give an unknown result.

        A result computed while an enclosing computation was unfinished may lack its results, so it is not cached.
        """
        if key in self._known:
            return self._known[key]
        depth = len(self._open)
        if key in self._open or depth >= _MOST_DEPTH or self._steps >= _MOST_STEPS:
            # A cycle: everything started since then is based on a guess.
            self._cut = min(self._cut, self._open.get(key, 0))
            return None
        self._open[key] = depth
        self._steps = self._steps + 1 if depth else 0
        try:
            found = find()
        finally:
            del self._open[key]
        # No cycle through an enclosing computation, so the result does not depend on the caller.
        if self._cut >= depth:
            self._known[key] = found
            self._cut = _MOST_DEPTH
        return found


_OVERLOADING: Final = frozenset({"java", "kotlin", "scala", "csharp", "cpp", "swift", "groovy", "elixir", "erlang"})
"""Languages in which functions of one name in one scope are ways to call one thing."""


def find_overloads(definition: Definition) -> list[Definition]:
    """Return the functions of a name in one scope of a file that count as one, in order of place."""
    symbols, own = definition.symbols, definition.index
    if own < 0 or symbols.kind(own) not in CALLABLE_KINDS or definition.language not in _OVERLOADING | {"python"}:
        return [definition]
    alike = [
        Definition(definition.path, symbols, index)
        for index in symbols.defining(definition.name)
        if symbols.parent(index) == symbols.parent(own)
        and symbols.kind(index) in CALLABLE_KINDS
        and symbols.container(index) == symbols.container(own)
    ]
    if definition.language != "python":
        return alike
    whole = without_overloads(alike)  # of several that are whole each is one: branches define them
    is_whole = len(whole) == len(alike) or any(one.key == definition.key for one in whole)
    only_declared = all(any(b"overload" in line for line in decorators(one)) for one in whole)
    return [definition] if is_whole and not only_declared else whole


def without_overloads(found: list[Definition]) -> list[Definition]:
    """Return definitions of one name in one scope without overload signatures."""
    whole = [
        one
        for one in found
        if one.symbols.defined_role(one.index) == "definition"
        and not (one.language == "python" and any(b"overload" in line for line in decorators(one)))
    ]
    # Stubs have overloads alone.
    return whole or found


def decorators(definition: Definition) -> list[bytes]:
    """Return the lines right above a definition of Python that decorate it."""
    symbols, start = definition.symbols, definition.symbols.row(definition.index)[START]
    found: list[bytes] = []
    for line in reversed(symbols.data[max(0, start - _ABOVE) : start].rstrip().split(b"\n")):
        if not line.lstrip().startswith(b"@"):
            break
        found.append(line)
    return found
