"""Exports: follows a name of a module through imports, re-exports, wildcards and aliases to its definition."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from flashgrep.parts.navigation.resolution.modules import Modules
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.imports import (
    ALL,
    DEFAULT,
    ECMA,
    WHOLE,
    FileImports,
    Import,
    may_export,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, START
from flashgrep.parts.symbols.parse.scoping import MODULE, FileScopes
from flashgrep.parts.symbols.symbol_source import imports_of

_MEMBERS: Final = frozenset(
    {"method", "constructor", "field", "property", "enumerator"}
)
_ABOVE: Final = 300
"""Bytes before a function that are searched for its decorators."""
_TESTS: Final = b"\0test"
"""Behind the folder of a package of tests, which may define names that the package beside it has, too."""
_TEST_PACKAGE: Final = re.compile(rb"^package[ \t]+\w+_test\b", re.MULTILINE)
_MOST_HEAD: Final = 4_000
"""Bytes before the name of a package, which follows a licence at most."""
_MOST_DEPTH: Final = 60
"""Most steps from a name to its definition: longer chains are cycles."""
_MOST_STEPS: Final = 3_000
"""Most steps for one use of a name, all branches together (about 50 ms)."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an expression: a definition itself, an instance of one, a module, or (none of these) outside."""

    definition: Definition | None = None
    is_instance: bool = False
    module: bytes | None = None
    """A file, or a folder with a trailing slash."""
    literal: tuple[bytes, int] | None = None
    """An object literal or type: its file and the offset where it begins."""
    is_variable: bool = False
    """Whether it is the value of a local variable, which has a name of its own."""
    results: "Values" = ()
    """The result of calling it, if nothing else is known."""
    elements: "Values" = ()
    """The elements of a collection; the collection itself is outside."""
    is_nothing: bool = False
    """Whether it is what ``None`` or ``null`` stands for, which says nothing about a type."""
    is_returned: bool = False
    """Whether code outside returned it: it may be anything, also an object of ours that was passed there."""
    is_self: bool = False
    """Whether it is what the method around is called on, whose type may be a subtype."""

    @property
    def is_outside(self) -> bool:
        """Whether this project defines neither the value nor a part of it."""
        if self.definition is not None or self.is_nothing:
            return False
        return not (self.module or self.literal or self.results or self.elements)

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies a value."""
        parts = (
            tuple(element.key for element in self.elements),
            tuple(result.key for result in self.results),
        )
        return (
            self.definition.key if self.definition else None,
            self.is_instance,
            self.module,
            self.literal,
            self.is_nothing,
            self.is_returned,
            *parts,
        )


Values = tuple[Value, ...]
"""The possible values of an expression; empty: unknown."""
OUTSIDE: Final = Value()
"""A value that this project does not define."""
RETURNED: Final = Value(is_returned=True)
"""The result of a call of something outside."""
NOTHING: Final = Value(is_nothing=True)
"""``None``, ``null``, ``undefined``, ``nil``."""


class Exports(ABC):
    """Resolves names of modules in one state of a project and caches the results."""

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
        self._packages: dict[tuple[bytes, str, str], list[Definition]] = {}
        self._own_packages: dict[bytes, bytes] = {}
        self._known: dict[tuple[object, ...], Values | None] = {}
        self._open: dict[tuple[object, ...], int] = {}
        """Keys being computed, with their depth."""
        self._cut = _MOST_DEPTH
        """The least depth of a key that was requested again while it was being computed."""
        self._steps = 0

    def imports_of(self, path: bytes) -> FileImports:
        """Return a file's imports and exports."""
        if path not in self._imports:
            symbols = self.open_file(path)
            self._imports[path] = (
                imports_of(symbols) if symbols is not None else FileImports()
            )
        return self._imports[path]

    def top_level(self, path: bytes, name: str) -> list[Definition]:
        """Return a file's top-level definitions of a name; of overloads, only those with a body.

        ``const { name } = require(…)`` is an import, although it has the form of a definition.
        """
        if (
            definitions := self._top.get((path, name))
        ) is not None:  # otherwise each use would scan all the others
            return definitions
        symbols = self.open_file(path)
        found_definitions = []
        if symbols is not None:
            for offset in symbols.words(name.encode(), fold=False):
                index = symbols.index_at(offset)
                if index >= 0:
                    before = symbols.data[symbols.row(index)[START] : offset]
                else:
                    before = b""
                if before.startswith(b"{") and name in self.imports_of(path).names:
                    continue
                # Only top-level definitions can be imported.
                is_outer = (
                    index >= 0
                    and symbols.kind(index) not in _MEMBERS
                    and symbols.parent(index) < 0
                )
                if (
                    is_outer
                    and not symbols.container(index)
                    and self.is_at_top(path, symbols, offset)
                ):
                    found_definitions.append(Definition(path, symbols, index))
        self._top[path, name] = without_overloads(found_definitions)
        return self._top[path, name]

    def is_at_top(self, path: bytes, symbols: FileSymbols, offset: int) -> bool:
        """Whether a definition that no other encloses is at the top level: in JavaScript a callback may hold it."""
        if symbols.language not in ECMA:
            return True
        line = symbols.data.rfind(b"\n", 0, offset) + 1
        before = symbols.data[max(line, offset - _ABOVE) : offset]
        if before.endswith(b"."):  # assigned to a member
            return before.endswith(b"exports.")
        if before[:1].isspace():
            file = self.scopes_of(path)
        else:
            file = None
        return file is None or file.scope_at(offset) == MODULE

    def methods_of(self, name: str) -> dict[tuple[bytes, str], list[Definition]]:
        """Return the members of Go types with a name, by folder and type: there may be thousands."""
        if name not in self._methods:
            methods = self._methods[name] = {}
            for definition in self.definitions(name):
                if definition.language == "go" and definition.owner:
                    package = self.package_of(definition.path, definition.symbols)
                    methods.setdefault((package, definition.owner), []).append(
                        definition
                    )
        return self._methods[name]

    def package_of(self, path: bytes, symbols: FileSymbols) -> bytes:
        """Return what tells the Go package of a file from others."""
        if path not in self._own_packages:
            self._own_packages[path] = _find_package(path, symbols.data)
        return self._own_packages[path]

    def find_module(self, path: bytes, language: str, module: str) -> bytes | None:
        """Return the file or folder of a module, as a file's import names it."""
        return self._modules.find(language, path, module)

    def import_value(self, path: bytes, one: Import) -> Values:
        """Return what an import refers to."""
        if not one.module:  # an export of the file's own
            return self.find_in_module(path, one.name)
        language = self.language_of(path)
        target = self.find_module(path, language, one.module)
        if one.name not in {WHOLE, ALL}:
            if target is not None and (values := self.export(target, one.name)):
                return values
            values = ()
            if language == "python":  # a submodule
                dot = "" if one.module.endswith(".") else "."
                inner = self.find_module(path, language, f"{one.module}{dot}{one.name}")
                if inner is not None:
                    values = (Value(module=inner),)
                else:
                    values = ()
            is_whole = (
                target is not None and target.startswith(b"/") and one.name == DEFAULT
            )
            if is_whole and not values:  # ``export =``, or none but as a whole
                return (Value(module=target),)
            if values or target is not None:
                return values
        if target is None:
            # A missing relative module is unknown; any other is a library.
            if one.module.startswith("."):
                return ()
            return (OUTSIDE,)
        if language in ECMA:
            exports = self.imports_of(target).exports
        else:
            exports = {}
        whole = exports.get(DEFAULT)  # what CommonJS and ``import x = require`` get
        return (
            Value(module=target),
            *(self.import_value(target, whole) if whole is not None else ()),
        )

    def export(self, module: bytes, name: str) -> Values:
        """Return what a module exports under a name."""
        return (
            self.remember(
                ("export", module, name), lambda: self._find_export(module, name)
            )
            or ()
        )

    def _find_export(self, module: bytes, name: str) -> Values:
        if module.endswith(b"/"):  # a Go package: all files of a folder
            if module.startswith(b"/") and module != b"/":
                return tuple(map(Value, self.find_in_package(module[:-1], name, "")))
            folder = module[:-1]
            # Looked up by name, since a package has no list of what its files define.
            alike = [
                definition
                for definition in self.definitions(name)
                if definition.path.rpartition(b"/")[0] == folder.removesuffix(_TESTS)
            ]
            return tuple(
                Value(definition)
                for definition in alike
                if definition.language == "go"
                and self.package_of(definition.path, definition.symbols) == folder
                and not definition.symbols.container(definition.index)
            )
        symbols = self.open_file(module)
        # The text alone rules out most modules; reading exports takes longer.
        if symbols is not None and not may_export(symbols, name):
            return ()
        imports = self.imports_of(module)
        if name in imports.exports:
            values = self.import_value(module, imports.exports[name])
            # A file of declarations may have the name itself in one of its namespaces.
            if symbols is not None and module.startswith(b"/"):
                inner = _find_in_namespaces(module, symbols, name)
                if inner and all(value.module is not None for value in values):
                    values = tuple(map(Value, inner))
            return values
        # A wildcard does not re-export the default.
        if name == DEFAULT:
            return ()
        # What a module of JavaScript imports for itself it does not export.
        is_own = self.language_of(module) in ECMA and name in imports.names
        values = ()
        if not is_own or self.top_level(module, name):
            values = self.find_in_module(module, name)
        if not values:
            for star in imports.export_stars:
                target = self.find_module(module, self.language_of(module), star.module)
                if target is not None and (values := self.export(target, name)):
                    break
        if not values and symbols is not None and module.startswith(b"/"):
            values = tuple(map(Value, _find_in_namespaces(module, symbols, name)))
        return values

    def find_in_package(self, folder: bytes, name: str, owner: str) -> list[Definition]:
        """Return the definitions of a name in a Go package of a library: top-level ones, or members of a type."""
        key = (folder, name, owner)
        if key not in self._packages:
            self._packages[key] = definitions = []
            libraries = self._modules.source.libraries
            for path in libraries.list_folder(folder) if libraries is not None else ():
                if not path.endswith(b".go") or path.endswith(b"_test.go"):
                    continue
                symbols = self._modules.source.open(path, partial(_holds, name))
                if not isinstance(symbols, FileSymbols):
                    continue
                for index in symbols.defining(name):
                    definition = Definition(path, symbols, index)
                    if symbols.container(index) == owner:
                        definitions.append(definition)
        return self._packages[key]

    def find_in_module(self, path: bytes, name: str) -> Values:
        """Return what a name means at a file's top level: a definition or an import."""
        if own := self.top_level(path, name):
            return tuple(Value(definition) for definition in own)
        imports = self.imports_of(path)
        # The last import counts: one in ``try`` is often repeated in ``except``.
        if bound := imports.names.get(name):
            if path.startswith(b"/"):
                # In a library the last one is often compiled, and another its source.
                for import_ in reversed(bound):
                    values = self.import_value(path, import_)
                    if any(not value.is_outside for value in values):
                        return values
            return (
                self.remember(
                    ("import", path, bound[-1]),
                    partial(self.import_value, path, bound[-1]),
                )
                or ()
            )
        for star in imports.stars:
            target = self.find_module(path, self.language_of(path), star.module)
            if target is not None and (exported := self.export(target, name)):
                return exported
        if path.rpartition(b"/")[2].startswith(b"__init__.py"):
            module = b"." + name.encode()
            if (
                inner := self.find_module(
                    path, "python", module.decode("utf-8", "replace")
                )
            ) is not None:
                return (Value(module=inner),)
        return ()

    def language_of(self, path: bytes) -> str:
        """Return a file's language; empty where it has no symbols."""
        symbols = self.open_file(path)
        return symbols.language if symbols is not None else ""

    def remember(
        self, key: tuple[object, ...], find: Callable[[], Values | None]
    ) -> Values | None:
        """Return a cached result or compute it; a cycle gives an unknown result.

        A result that depends on an unfinished outer computation may be incomplete, so it is not cached.
        """
        if key in self._known:
            return self._known[key]
        depth = len(self._open)
        if key in self._open or depth >= _MOST_DEPTH or self._steps >= _MOST_STEPS:
            # A cycle: everything started since then rests on an incomplete result.
            self._cut = min(self._cut, self._open.get(key, 0))
            return None
        self._open[key] = depth
        if depth:
            self._steps = self._steps + 1
        else:
            self._steps = 0
        try:
            value = find()
        finally:
            del self._open[key]
        # No cycle leads to an outer computation, so the result does not depend on the
        # caller.
        if self._cut >= depth:
            self._known[key] = value
            self._cut = _MOST_DEPTH
        return value


def _find_package(path: bytes, data: bytes) -> bytes:
    """Return the folder of a Go file, marked for tests of a package of their own."""
    folder = path.rpartition(b"/")[0]
    if path.endswith(b"_test.go") and _TEST_PACKAGE.search(data, 0, _MOST_HEAD):
        return folder + _TESTS
    return folder


def _holds(name: str, data: bytes) -> bool:
    return name.encode() in data


_NAMESPACES: Final = frozenset({"module", "namespace"})


def _find_in_namespaces(
    path: bytes, symbols: FileSymbols, name: str
) -> list[Definition]:
    """Return the definitions of a name in the namespaces of a file of declarations, as ``declare module "fs"``."""
    definitions: list[Definition] = []
    for index in symbols.defining(name):
        above = symbols.parent(index)
        is_inner = above >= 0
        while above >= 0 and symbols.kind(above) in _NAMESPACES:
            above = symbols.parent(above)
        if is_inner and above < 0:
            definitions.append(Definition(path, symbols, index))
    return without_overloads(definitions)[:1]


_OVERLOADING: Final = frozenset(
    {"java", "kotlin", "scala", "csharp", "cpp", "swift", "groovy", "elixir", "erlang"}
)
"""Languages in which several functions of one name and scope are overloads."""


def find_overloads(definition: Definition) -> list[Definition]:
    """Return the overloads in a definition's scope that count as one function, in order of position."""
    symbols = definition.symbols
    own = definition.index
    if (
        own < 0
        or symbols.kind(own) not in CALLABLE_KINDS
        or definition.language not in _OVERLOADING | {"python"}
    ):
        return [definition]
    parent = symbols.parent(own)
    container = symbols.container(own)
    alike = list[Definition]()
    for index in symbols.defining(definition.name):
        is_beside = symbols.parent(index) == parent
        is_called = is_beside and symbols.kind(index) in CALLABLE_KINDS
        if is_called and (index == own or symbols.container(index) == container):
            alike.append(Definition(definition.path, symbols, index))
    if definition.language != "python":
        return alike
    whole = without_overloads(
        alike
    )  # several complete ones are separate: branches define them
    is_whole = len(whole) == len(alike) or any(
        current_definition.key == definition.key for current_definition in whole
    )
    only_declared = all(
        any(b"overload" in line for line in decorators(current_definition))
        for current_definition in whole
    )
    if is_whole and not only_declared:
        return [definition]
    return whole


def without_overloads(found: list[Definition]) -> list[Definition]:
    """Return definitions of one name in one scope without overload signatures."""
    whole = [
        definition
        for definition in found
        if definition.symbols.defined_role(definition.index) == "definition"
        and not (
            definition.language == "python"
            and any(b"overload" in line for line in decorators(definition))
        )
    ]
    # Stub files contain only overloads.
    return whole or found


def decorators(definition: Definition) -> list[bytes]:
    """Return the decorator lines directly above a Python definition."""
    symbols = definition.symbols
    start = definition.symbols.row(definition.index)[START]
    lines_above: list[bytes] = []
    for line in reversed(
        symbols.data[max(0, start - _ABOVE) : start].rstrip().split(b"\n")
    ):
        if not line.lstrip().startswith(b"@"):
            break
        lines_above.append(line)
    return lines_above
