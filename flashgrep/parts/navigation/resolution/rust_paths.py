"""What a Rust path refers to: ``crate::a::b``, ``super::x``, names imported by ``use`` and re-exported by ``pub use``.

A module is a file or a part of one. It contains the definitions in it, the names of its ``use`` declarations, and
everything that these import with a wildcard. Macros, build scripts and external crates are not evaluated.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.navigation.resolution.symbol_graph import (
    INCONCLUSIVE,
    PROVEN,
    Definition,
    Inconclusive,
    Resolution,
)
from flashgrep.parts.symbols.parse.imports import ALL, FileImports, Import
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import START
from flashgrep.parts.symbols.symbol_source import imports_of

_MOST_STEPS: Final = 12
"""Most modules and re-exports on the way to a name: they may be circular."""
_MOST_LOOKED: Final = 200
"""Most modules searched for one use: wildcards lead to further wildcards."""
_MOST_BEFORE: Final = 200
"""Most bytes of a path before a name."""
_BEFORE: Final = re.compile(rb"(?<![\w:])((?:r#)?\w+(?:::\w+){0,20})::\Z")
_STANDARD: Final = frozenset({"std", "core", "alloc"})
"""The crates that are never the project's."""
_SECTION: Final = re.compile(rb"(?ms)^\[([^\]\n]+)\][^\n]*\n(.*?)(?=^\[|\Z)")
_TEXT: Final = re.compile(rb"(?m)^\s*([\w-]+)\s*=\s*\"([^\"\n]*)\"")
_DEPENDENCY: Final = re.compile(rb"(?m)^([\w-]+)\s*(?:=|\.)([^\n]*)")
_FOLDER: Final = re.compile(rb"\bpath\s*=\s*\"([^\"\n]*)\"")
_PATH: Final = re.compile(
    rb"#\[\s*path\s*=\s*\"([^\"\n]{1,200})\"\s*\]\s*(?:#\[[^\]\n]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?\Z"
)
"""The attribute before ``mod`` that names the module's file."""


@dataclass(frozen=True, slots=True)
class _Module:
    """A file, or a module in braces inside it: ``inside`` is its qualified name, or empty."""

    path: bytes
    inside: str


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What a package's or a workspace's manifest says: its crate, the roots of crates in folders, all dependencies."""

    name: str
    folders: dict[str, bytes]
    dependencies: frozenset[str]


PROGRAMS: Final = (b"tests.rs", b"main.rs", b"mod.rs", b"lib.rs", b"all.rs")
"""Files of tests that often have the others beside them as modules."""


@dataclass(slots=True)
class RustPaths:
    """Follows paths in one state of a project."""

    open_file: Callable[[bytes], FileSymbols | None]
    has: Callable[[bytes], bool]
    _is_open: bool = False
    """Whether some part of the path could not be followed."""
    _looked: int = 0
    _found: dict[tuple[_Module, str], list["Definition | _Module"]] = field(
        default_factory=dict
    )
    _known: dict[tuple[bytes, int], tuple[list["Definition | _Module"], bool]] = field(
        default_factory=dict
    )
    """Results by position, the same for all targets."""
    _busy: set[tuple[_Module, str]] = field(default_factory=set)
    _manifests: dict[bytes, "_Manifest"] = field(default_factory=dict)

    def find_item(
        self, path: bytes, symbols: FileSymbols, offset: int
    ) -> tuple[list["Definition | _Module"], bool]:
        """Return what the name at a position refers to, given the path before it, and whether the path was followed."""
        if (path, offset) not in self._known:
            self._is_open = False
            self._looked = 0
            word = symbols.word_at(offset)
            module = _Module(path, _module_around(symbols, offset))
            before = _BEFORE.search(symbols.data, max(0, offset - _MOST_BEFORE), offset)
            if before:
                written = before[1].decode("utf-8", "replace").split("::")
            else:
                written = []
            ways = [[*written, word]]
            if symbols.role(offset) == "import":
                here = [
                    use
                    for use in self._uses(module)
                    if is_in_statement(symbols, use.offset, offset)
                ]
                paths = [
                    [*import_.module.split("::"), import_.name] for import_ in here
                ]
                ways = [path[: path.index(word) + 1] for path in paths if word in path]
            items = [target for way in ways for target in self._follow(module, way)]
            self._known[path, offset] = items, bool(items) or not self._is_open
        return self._known[path, offset]

    def _follow(
        self, module: _Module, segments: Sequence[str]
    ) -> list[Definition | _Module]:
        first, *rest = [
            current_segment for current_segment in segments if current_segment
        ] or [""]
        items: list[Definition | _Module]
        if first == "crate":
            items = list(self._roots(module))
        elif first in {"self", "super"}:
            if first == "self":
                items = [module]
            else:
                items = list(self._parents(module))
        else:
            # Another crate of the project has the name of its folder.
            items = self._look_up(module, first) or (
                list(self.find_crates(module, first)) if rest else []
            )
            # Before the edition of 2018 paths of imports began at the crate's root: of
            # ``use name;`` nothing is before the name.
            is_path = bool(rest) or segments[0] == ""
            for root in self._roots(module) if is_path and not items else ():
                if root != module:
                    items += self._look_up(root, first)
            if not items and self._is_outside(module, first):
                return []
        for segment in rest:
            modules = [target for target in items if isinstance(target, _Module)]
            items = [
                target
                for current_module in modules
                for target in (
                    self._parents(current_module)
                    if segment == "super"
                    else self._look_up(current_module, segment)
                )
            ]
        self._is_open |= not items
        return items

    def _is_outside(self, module: _Module, first: str) -> bool:
        """Whether a path starts in another's crate, by its name or by what a module imports from there."""
        crates = {first}
        for use in self._uses(module):
            if use.local == first:
                crates.add(use.module.removeprefix("::").partition("::")[0])
        if crates & _STANDARD:
            return True
        return any(self._is_dependency(module, crate) for crate in crates)

    def _is_dependency(self, module: _Module, name: str) -> bool:
        """Whether a manifest above a module names a crate that is not one of the project's folders."""
        for manifest in self._list_manifests(module):
            is_own = name in manifest.folders or name == manifest.name
            if name in manifest.dependencies and not is_own:
                return True
        return False

    def _list_manifests(self, module: _Module) -> Iterator["_Manifest"]:
        """Yield what the manifests above a module say, the package's first, then the workspace's."""
        for beside in _list_upward(module.path.rpartition(b"/")[0]):
            path = beside + b"Cargo.toml"
            if not self.has(path):
                continue
            if path not in self._manifests:
                symbols = self.open_file(path)
                text = b"" if symbols is None else symbols.data
                self._manifests[path] = _read_manifest(beside, text)
            yield self._manifests[path]

    def _look_up(self, module: _Module, name: str) -> list[Definition | _Module]:
        """Return what a name means in a module: its own definitions, or what it imports."""
        checkpoint()
        if (module, name) in self._found:
            return self._found[module, name]
        self._looked += 1
        own = list(self.find_own(module, name))
        is_done = any(
            isinstance(target, Definition) for target in own
        )  # otherwise a function of the name may be imported
        if (
            is_done
            or (module, name) in self._busy
            or len(self._busy) > _MOST_STEPS
            or self._looked > _MOST_LOOKED
        ):
            return own
        self._busy.add((module, name))
        uses = list(self._uses(module))
        named = (use for use in uses if use.local == name and use.name != ALL)
        items = [
            target
            for path_named in named
            for target in self._follow(
                module, [*path_named.module.split("::"), path_named.name]
            )
        ]
        stars = (use for use in uses if use.name == ALL and not items)
        own_items = [
            target
            for star in stars
            for target in self._follow(module, star.module.split("::"))
        ]
        items += [
            matching_target
            for target in own_items
            if isinstance(target, _Module)
            for matching_target in self._look_up(target, name)
        ]
        self._busy.discard((module, name))
        items = [*own, *items]
        if not self._busy:  # inside a cycle the result may be incomplete
            self._found[module, name] = items
        return items

    def find_own(self, module: _Module, name: str) -> Iterator[Definition | _Module]:
        """Yield a module's own definitions of a name."""
        symbols = self.open_file(module.path)
        for index in symbols.defining(name) if symbols is not None else ():
            if (
                symbols is None
                or symbols.kind(index) == "extension"
                or symbols.container(index) != module.inside
            ):
                continue
            if symbols.kind(index) != "module":
                yield Definition(module.path, symbols, index)
            elif symbols.defined_role(index) == "definition":
                yield _Module(module.path, symbols.qualified(index))
            else:
                yield from self.find_file(module, symbols, index)

    def _uses(self, module: _Module) -> Iterator[Import]:
        symbols = self.open_file(module.path)
        if symbols is None:
            imports = FileImports()
        else:
            imports = imports_of(symbols)
        for import_ in chain(imports.stars, *imports.names.values()):
            if (
                symbols is not None
                and _module_around(symbols, import_.offset) == module.inside
            ):
                yield import_

    def find_file(
        self, module: _Module, symbols: FileSymbols, index: int
    ) -> Iterator[_Module]:
        """Yield the file of ``mod name;``."""
        folder, file = posixpath.split(module.path.decode("utf-8", "surrogateescape"))
        start = symbols.row(index)[START]
        if named := _PATH.search(symbols.data, max(0, start - 300), start):
            places = [
                posixpath.normpath(
                    posixpath.join(folder, named[1].decode("utf-8", "replace"))
                )
            ]
        else:
            stem = file.removesuffix(".rs")
            below = posixpath.join(
                folder,
                "" if stem in {"mod", "lib", "main"} else stem,
                *module.inside.split("."),
            )
            name = symbols.name(index)
            # A test file or an example is a crate root, whose modules are beside it.
            places = [
                posixpath.join(around, file_name)
                for around in dict.fromkeys((below, folder))
                for file_name in (f"{name}.rs", f"{name}/mod.rs")
            ]
        paths = (place.encode("utf-8", "surrogateescape") for place in places)
        yield from (
            _Module(path, "") for path in [path for path in paths if self.has(path)][:1]
        )

    def _parents(self, module: _Module) -> Iterator[_Module]:
        """Yield the enclosing module; for a crate's root, two modules if a program and a library share it."""
        if module.inside:
            yield _Module(module.path, module.inside.rpartition(".")[0])
            return
        folder, _, file = module.path.rpartition(b"/")
        if file == b"mod.rs":
            folder = folder.rpartition(b"/")[0]
        for beside in _list_upward(folder):
            near = [
                beside + b"mod.rs",
                *([beside[:-1] + b".rs"] if beside else []),
                beside + b"lib.rs",
                beside + b"main.rs",
            ]
            modules = [
                _Module(path, "")
                for path in near
                if path != module.path and self.has(path)
            ]
            yield from self._choose_declaring(modules, beside, module)
            if modules:
                return

    def _choose_declaring(
        self, modules: list[_Module], beside: bytes, inner: _Module
    ) -> list[_Module]:
        """Return which modules of a folder have another below them: of a program and a library that share it often one."""
        below = inner.path.removeprefix(beside).partition(b"/")[0]
        name = below.removesuffix(b".rs").decode("utf-8", "replace")
        chosen = list[_Module]()
        for module in modules:
            if module == inner or self._declares(module, name):
                chosen.append(module)
        return chosen or modules

    def _declares(self, module: _Module, name: str) -> bool:
        """Whether a file has ``mod name;``: ``mod name { … }`` has no file of its own."""
        symbols = self.open_file(module.path)
        if symbols is None:
            return False
        for index in symbols.defining(name):
            if symbols.defined_role(index) == "declaration":
                return True
        return False

    def _roots(self, module: _Module) -> Iterator[_Module]:
        for beside in _list_upward(module.path.rpartition(b"/")[0]):
            modules = [
                _Module(beside + file_name, "")
                for file_name in (b"lib.rs", b"main.rs")
                if self.has(beside + file_name)
            ]
            yield from self._choose_declaring(modules, beside, module)
            if modules:
                return
        yield self._find_program(module) or _Module(module.path, "")

    def _find_program(self, module: _Module) -> _Module | None:
        """Return the program of a folder of tests that has a module beside it."""
        folder, slash, file = module.path.rpartition(b"/")
        name = file.removesuffix(b".rs").decode("utf-8", "replace")
        for program in PROGRAMS:
            around = _Module(folder + slash + program, "")
            if self.has(around.path) and self._declares(around, name):
                return around
        return None

    def find_crates(self, module: _Module, name: str) -> Iterator[_Module]:
        """Yield the root of a crate by name: the current crate, a folder that a manifest names, or one beside it."""
        for manifest in self._list_manifests(module):
            library = manifest.folders.get(name)
            if library is not None and self.has(library):
                yield _Module(library, "")
                return
        root = (
            next(self._roots(module))
            .path.rpartition(b"/")[0]
            .removesuffix(b"src")
            .rstrip(b"/")
        )
        around = root.rpartition(b"/")[0]
        own = root.rpartition(b"/")[2].decode("utf-8", "replace").replace("-", "_")
        for written in dict.fromkeys((name, name.replace("_", "-"))):
            if own == name:
                folder = root
            else:
                folder = b"/".join(filter(None, (around, written.encode())))
            path = b"/".join(filter(None, (folder, b"src/lib.rs")))
            if self.has(path):
                yield _Module(path, "")


def resolve_in_crate(
    paths: RustPaths, place: tuple[bytes, FileSymbols, int], target: Definition
) -> Resolution | Inconclusive | None:
    """Return how a name at a position relates to a target; None: it means another; INCONCLUSIVE: unknown.

    Members of types are always inconclusive.
    """
    path, symbols, offset = place
    around = target.symbols.parent(target.index)
    if around >= 0 and target.symbols.kind(around) != "module":
        return INCONCLUSIVE
    items, is_followed = paths.find_item(path, symbols, offset)
    if any(
        isinstance(current_target, Definition) and current_target.key == target.key
        for current_target in items
    ):
        return Resolution(PROVEN, "same file" if path == target.path else "import")
    return None if is_followed else INCONCLUSIVE


def _read_manifest(beside: bytes, text: bytes) -> _Manifest:
    """Return what a manifest in a folder says."""
    name = ""
    folders = dict[str, bytes]()
    dependencies = set[str]()
    root = b"src/lib.rs"
    for section in _SECTION.finditer(text):
        title = section[1]
        values = {match[1]: match[2] for match in _TEXT.finditer(section[2])}
        if title == b"package":
            name = name or _name_crate(values.get(b"name", b""))
        elif title == b"lib":
            name = _name_crate(values.get(b"name", b"")) or name
            root = values.get(b"path", root)
        # Also those for tests and builds, of one system, and of a workspace.
        elif title.endswith(b"dependencies"):
            for match in _DEPENDENCY.finditer(section[2]):
                crate = _name_crate(match[1])
                dependencies.add(crate)
                path = _FOLDER.search(match[2])
                if path is not None:
                    folders[crate] = _join(beside, path[1] + b"/src/lib.rs")
        elif b"dependencies." in title:
            crate = _name_crate(title.rpartition(b".")[2])
            dependencies.add(crate)
            if b"path" in values:
                folders[crate] = _join(beside, values[b"path"] + b"/src/lib.rs")
    if name:
        folders[name] = _join(beside, root)
    return _Manifest(name, folders, frozenset(dependencies))


def _name_crate(package: bytes) -> str:
    """Return how a path names a package's crate."""
    return package.decode("utf-8", "replace").replace("-", "_")


def _join(beside: bytes, path: bytes) -> bytes:
    return posixpath.normpath(posixpath.join(beside, path))


def _list_upward(folder: bytes) -> Iterator[bytes]:
    """Yield a folder and its parents up to the project's root, each as the prefix of its files' paths."""
    while folder:
        yield folder + b"/"
        folder = folder.rpartition(b"/")[0]
    yield b""


def _module_around(symbols: FileSymbols, offset: int) -> str:
    around = symbols.enclosing(offset)
    while around >= 0 and symbols.kind(around) != "module":
        around = symbols.parent(around)
    if around >= 0:
        return symbols.qualified(around)
    return ""


def is_in_statement(symbols: FileSymbols, start: int, offset: int) -> bool:
    """Whether a position is in the statement that begins at another position."""
    spans = symbols.parsed.statements
    at = int(spans[:, 0].searchsorted(offset, side="right")) - 1
    return at >= 0 and int(spans[at, 0]) == start
