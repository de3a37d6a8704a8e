"""Rust's libraries: the crates of ``Cargo.lock`` in Cargo's registry, in ``vendor``, and the standard library's source.

A path is followed through the files of modules and through ``pub use``, also into other crates. Macros are not
expanded: what they define is found where its name is written as a definition.
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from flashgrep.api.libraries import Library
from flashgrep.parts.libraries.library_files import (
    LibraryFiles,
    LibraryRoot,
    is_below,
    list_upward,
)
from flashgrep.parts.symbols.parse.imports import ALL, Import, read_rust

_PACKAGE: Final = re.compile(
    r'\[\[package\]\]\s*name = "([\w-]+)"\s*version = "([\w.+-]+)"'
)
_VERSIONED: Final = re.compile(r"(.+?)-(\d+\.\d.*)")
_VERSION: Final = re.compile(r'(?m)^version[ \t]*=[ \t]*"([\w.+-]+)"')
_USE: Final = re.compile(r"(?m)^[ \t]*pub(?:\([^)\n]*\))?\s+use\s[^;]{1,20000};")
_LIBRARY: Final = re.compile(r'(?s)\[lib\][^\[]*?\bpath\s*=\s*"([^"\n]{1,200})"')
_ITEM: Final = (
    r"(?:pub(?:\([^)\n]*\))?\s+)?(?:default |const |async |unsafe |extern \"[^\"\n]*\" |auto )*"
    r"(?:fn|struct|enum|union|trait|type|const|static|macro_rules!|macro)\s+(?:mut )?%s\b"
)
_AT_TOP: Final = r"(?m)^" + _ITEM
_DEFINES: Final = r"(?m)^[ \t]*" + _ITEM
_DERIVE: Final = r"proc_macro_derive\(\s*%s\b"
_PUBLIC: Final = (
    r"(?m)^[ \t]{0,4}(?:pub\s+(?:default |const |async |unsafe |auto )*"
    r"(?:fn|struct|enum|union|trait|type|const|static)|macro_rules!)\s+%s\b"
)
"""As ``_DEFINES``, for what is public; a macro's definitions may be indented."""
_INSIDE: Final = r"(?m)^[ \t]*(?:pub(?:\([^)\n]*\))?\s+)?mod\s+%s\s*\{"
_WORD: Final = re.compile(r"\w+")
_STANDARD: Final = ("std", "core", "alloc", "proc_macro")
_MOST_STEPS: Final = 8
"""Most re-exports on the way to a definition."""
_MOST_LOOKED: Final = 64
"""Most modules that are read on that way: wildcards lead to further ones."""
_MOST_FOUND: Final = 3
"""Files with such a definition after which the search ends."""
_MOST_FILES: Final = 2_000
"""Most files of a crate that are searched for a definition that no path leads to."""


class RustCrates:
    """Finds the files that define what paths name, for one question."""

    def __init__(
        self, files: LibraryFiles, home: bytes, environ: Mapping[str, str]
    ) -> None:
        self._files = files
        cargo = environ.get("CARGO_HOME", "")
        if cargo.startswith("/"):
            self._cargo = os.fsencode(cargo)
        else:
            self._cargo = home + b"/.cargo"
        rustup = environ.get("RUSTUP_HOME", "")
        if rustup.startswith("/"):
            self._rustup = os.fsencode(rustup)
        else:
            self._rustup = home + b"/.rustup"
        self._locked: dict[bytes, dict[str, list[bytes]]] = {}
        self._texts: dict[bytes, str] = {}
        self._registries: list[bytes] | None = None
        self._looked = 0

    def find_definers(self, path: bytes, module: str, name: str) -> list[bytes]:
        """Return the files that may define ``module::name``."""
        segments = [part.removeprefix("r#") for part in module.split("::") if part]
        if not all(map(_WORD.fullmatch, (*segments, name))):
            return []
        if not segments:
            root = self._find_crate(path, name)
            if root is None:
                return []
            return [root]
        root = self._find_crate(path, segments[0])
        if root is None:
            return []
        self._looked = 0
        files = self._follow(root, segments[1:], name, _MOST_STEPS)
        return files or self._search(root, name)

    def find_library(self, path: bytes) -> Library | None:
        """Return the crate that a file is of."""
        for top in (*self._list_registries(), self._files.root + b"/vendor"):
            if is_below(path, top) and path != top:
                name = path[len(top) + 1 :].split(b"/")[0]
                return self._name_crate(os.path.join(top, name))
        for top in self._list_standard():
            if is_below(path, top):
                toolchain = top[len(self._rustup) :].split(b"/")[2]
                return Library("rust", toolchain.decode("utf-8", "replace"), top)
        return None

    def _name_crate(self, folder: bytes) -> Library | None:
        """Return the crate in a folder; None: there is none."""
        name = os.path.basename(folder).decode("utf-8", "replace")
        matched = _VERSIONED.fullmatch(name)
        if matched is not None:
            return Library(matched[1], matched[2], folder)
        # ``cargo vendor`` names most folders by the crate alone.
        manifest = self._files.read_text(folder + b"/Cargo.toml")
        if not manifest:
            return None
        version = _VERSION.search(manifest)
        return Library(name, version[1] if version else "", folder)

    def list_roots(self, folder: bytes) -> Iterator[LibraryRoot]:
        """Yield the crates that the ``Cargo.lock`` in a folder of the project names, and its ``vendor``."""
        locked = self._read_lock(folder)
        if not locked:
            return
        vendor = self._files.trust_inside(folder + b"/vendor")
        if vendor is not None:
            yield LibraryRoot(vendor)
        for registry in self._list_registries():
            crates = set[bytes]()
            for place in chain.from_iterable(locked.values()):
                parent, name = os.path.split(place)
                if parent == registry and self._files.is_folder(place):
                    crates.add(name)
            if crates:
                yield LibraryRoot(registry, frozenset(crates))

    def find_by_name(self, name: str) -> Library | None:
        """Return the crate of a name that the project has locked."""
        root = self._find_crate(
            self._files.root + b"/Cargo.lock", name.replace("-", "_")
        )
        if root is None:
            return None
        return self.find_library(os.path.realpath(root))

    def _find_crate(self, path: bytes, name: str) -> bytes | None:
        """Return the file that is the root of a crate."""
        if name in _STANDARD:
            for top in self._list_standard():
                place = os.path.join(top, name.encode(), b"src/lib.rs")
                if self._files.has(place):
                    return place
            return None
        for above in list_upward(os.path.dirname(path), self._files.root) or [
            self._files.root
        ]:
            if above not in self._locked:
                self._locked[above] = self._read_lock(above)
            for folder in self._locked[above].get(name, ()):
                crate = self._find_root(folder)
                if crate is not None:
                    return crate
        return None

    def _find_root(self, folder: bytes) -> bytes | None:
        if self._files.has(folder + b"/src/lib.rs"):
            return folder + b"/src/lib.rs"
        set_path = _LIBRARY.search(self._files.read_text(folder + b"/Cargo.toml"))
        if set_path is not None:
            place = os.path.normpath(os.path.join(folder, set_path[1].encode()))
            if is_below(place, folder) and self._files.has(place):
                return place
        return None

    def _read_lock(self, above: bytes) -> dict[str, list[bytes]]:
        """Return the folders that a crate's source may be in, by the crate's name in code."""
        lock = os.path.relpath(above + b"/Cargo.lock", self._files.root)
        folders: dict[str, list[bytes]] = {}
        vendor = above + b"/vendor"
        has_vendor = self._files.trust_inside(vendor) is not None
        for name, version in reversed(_PACKAGE.findall(self._files.read_own(lock))):
            # Code writes underscores; later versions come first.
            places = folders.setdefault(name.replace("-", "_"), [])
            label = f"{name}-{version}".encode()
            if has_vendor:
                places += [
                    os.path.join(vendor, label),
                    os.path.join(vendor, name.encode()),
                ]
            places += [os.path.join(top, label) for top in self._list_registries()]
        return folders

    def _list_registries(self) -> list[bytes]:
        if self._registries is None:
            source = self._files.trust(self._cargo + b"/registry/src") or b""
            if source:
                names = self._files.list_names(source)
            else:
                names = []
            self._registries = [os.path.join(source, name) for name in names]
        return self._registries

    def _list_standard(self) -> Iterator[bytes]:
        toolchains = self._rustup + b"/toolchains"
        names: list[bytes] = []
        if os.path.isdir(toolchains):
            names = sorted(os.listdir(toolchains))
        for name in sorted(names, key=lambda name: not name.startswith(b"stable")):
            top = self._files.trust(
                os.path.join(toolchains, name, b"lib/rustlib/src/rust/library")
            )
            if top is not None:
                yield top

    def _read(self, file: bytes) -> str:
        if file not in self._texts:
            self._texts[file] = self._files.read_text(file)
        return self._texts[file]

    def _find_module(
        self, root: bytes, segments: list[str]
    ) -> tuple[bytes, list[str]] | None:
        """Return the file of a module, and what of its path is written in braces inside that file."""
        file = root
        folder = os.path.dirname(root)
        for number, segment in enumerate(segments):
            place = os.path.join(folder, segment.encode())
            inner = None
            for ending in (b"/mod.rs", b".rs"):
                if self._files.has(place + ending):
                    inner = place + ending
            if inner is None:
                text = self._read(file)
                rest = segments[number:]
                if all(_has(text, _INSIDE, part, "mod ") for part in rest):
                    return file, rest
                return None
            file = inner
            folder = place
        return file, []

    def _follow_owner(
        self, root: bytes, segments: list[str], name: str, steps: int
    ) -> list[bytes]:
        """Return the files where a path leads that is of a type, or of a module that is itself re-exported."""
        if not segments:
            return []
        *outer, last = segments
        around = self._find_module(root, outer)
        if around is not None:
            file, _ = around
            if _has(self._read(file), _DEFINES, last):
                return [file]
        return self._follow_uses(root, outer, last, [name], steps)

    def _follow(
        self, root: bytes, segments: list[str], name: str, steps: int
    ) -> list[bytes]:
        """Return the files where a path leads: through modules, then what they re-export."""
        self._looked += 1
        if steps == 0 or self._looked > _MOST_LOOKED:
            return []
        located = self._find_module(root, segments)
        if located is None:
            return self._follow_owner(root, segments, name, steps)
        file, inside = located
        text = self._read(file)
        if not inside and (_has(text, _AT_TOP, name) or _has(text, _DERIVE, name)):
            return [file]
        # A module comes before a macro of its name, which is re-exported: ``std::env``.
        if inside:
            module = None
        else:
            module = self._find_module(root, [*segments, name])
        if module is not None and not module[1]:
            return [module[0]]
        files = self._follow_uses(root, segments, name, [], steps)
        if files:
            return files
        # In a module in braces, or in the braces of a macro.
        if module is not None or _has(text, _DEFINES, name):
            return [file]
        return []

    def _follow_uses(
        self, root: bytes, segments: list[str], name: str, rest: list[str], steps: int
    ) -> list[bytes]:
        """Return where a module's re-exports lead, of ``name`` or of everything; ``rest`` comes after it."""
        located = self._find_module(root, segments)
        if located is None:
            return []
        # A name that is re-exported comes before what a wildcard brings.
        stars: list[Import] = []
        for statement in _USE.finditer(self._read(located[0])):
            for import_ in read_rust(statement[0], 0):
                if import_.name == ALL:
                    stars.append(import_)
                elif import_.local == name:
                    whole = [*import_.module.split("::"), import_.name, *rest]
                    files = self._follow_path(root, segments, whole, steps - 1)
                    if files:
                        return files
        for star in stars:
            whole = [*star.module.split("::"), name, *rest]
            files = self._follow_path(root, segments, whole, steps - 1)
            if files:
                return files
        return []

    def _follow_path(
        self, root: bytes, at: list[str], whole: list[str], steps: int
    ) -> list[bytes]:
        """Return where a path in a ``use`` leads, written in the module ``at``."""
        parts = [part.removeprefix("r#") for part in whole if part]
        here = list(at)
        if parts[0] == "crate":
            return self._follow(root, parts[1:-1], parts[-1], steps)
        is_relative = parts[0] in {"self", "super"}
        while parts[0] in {"self", "super"} and len(parts) > 1:
            if parts.pop(0) == "super":
                here = here[:-1]
        if not is_relative:
            crate = self._find_crate(root, parts[0])
            is_beside = self._find_module(root, [*here, parts[0]]) is not None
            if crate is not None and not is_beside and len(parts) > 1:
                files = self._follow(crate, parts[1:-1], parts[-1], steps)
                # Macros may re-export it there.
                return files or self._search(crate, parts[-1])
        segments = [*here, *parts[:-1]]
        return self._follow(root, segments, parts[-1], steps)

    def _search(self, root: bytes, name: str) -> list[bytes]:
        """Return the files of a crate that define a public name somewhere, those nearest to its root first."""
        waiting = [os.path.dirname(root)]
        count = 0
        defining: list[bytes] = []
        pattern = re.compile(_PUBLIC % name)
        while waiting and count < _MOST_FILES and len(defining) < _MOST_FOUND:
            folder = waiting.pop(0)
            for entry in self._files.list_names(folder):
                place = os.path.join(folder, entry)
                if entry.endswith(b".rs"):
                    count += 1
                    text = self._files.read_text(place)
                    if name in text and pattern.search(text):
                        defining.append(place)
                elif b"." not in entry and self._files.is_folder(place):
                    waiting.append(place)
        return defining


def _has(text: str, pattern: str, name: str, before: str = "") -> bool:
    """Whether a pattern of a name is in a text; the name alone rules out most texts, in a hundredth of the time."""
    # A pattern is not even compiled for most texts.
    if f"{before}{name}" not in text:
        return False
    return re.search(pattern % name, text) is not None
