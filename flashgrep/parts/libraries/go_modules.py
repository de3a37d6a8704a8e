"""Go's libraries: what ``go.mod`` requires, in ``vendor`` or in the module cache, and the standard library."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from flashgrep.api.libraries import Library
from flashgrep.parts.libraries.library_files import (
    LibraryFiles,
    LibraryRoot,
    is_below,
    list_upward,
)

_REPLACED: Final = "=>"
_AT: Final = b"@"
_ESCAPED: Final = re.compile(r"!([a-z])")
"""A capital in the name of a folder."""
_CAPITAL: Final = re.compile(r"[A-Z]")
_ROOTS: Final = (
    b"/usr/local/go",
    b"/usr/lib/go",
    b"/opt/go",
    b"/usr/lib/golang",
    b"/opt/homebrew/opt/go/libexec",
)
_PAIR: Final = 2
"""A name and a version."""
_LISTED: Final = 3
"""A sign, a name and a version."""
STANDARD: Final = "go"
"""The name of the standard library."""


class GoModules:
    """Finds the packages that files of modules import, for one question."""

    def __init__(
        self, files: LibraryFiles, home: bytes, environ: Mapping[str, str]
    ) -> None:
        self._files = files
        gopath = home + b"/go"
        path, _, _ = environ.get("GOPATH", "").partition(os.pathsep)
        if path.startswith("/"):
            gopath = os.fsencode(path)
        self._cache = gopath + b"/pkg/mod"
        cache = environ.get("GOMODCACHE", "")
        if cache.startswith("/"):
            self._cache = os.fsencode(cache)
        self._goroots = list(_ROOTS)
        goroot = environ.get("GOROOT", "")
        if goroot.startswith("/"):
            self._goroots.insert(0, os.fsencode(goroot))
        self._modules: dict[bytes, dict[str, bytes]] = {}
        self._standard: bytes | None = None

    def find_module(self, path: bytes, module: str) -> bytes | None:
        """Return the folder of a package, with a trailing slash."""
        parts = module.split("/")
        if not module or "\0" in module:
            return None
        if ".." in parts:
            return None
        # Only the standard library has names without a host.
        if "." not in parts[0]:
            return self._find_standard(module)
        for top, modules in self._list_modules(path):
            vendored = os.path.join(top, b"vendor", module.encode())
            if self._files.trust_inside(top + b"/vendor"):
                if self._files.is_folder(vendored):
                    return vendored + b"/"
            # The longest name first: a module may be in the folder of another.
            for size in range(len(parts), 0, -1):
                folder = modules.get("/".join(parts[:size]))
                if folder is None:
                    continue
                inner = [part.encode() for part in parts[size:]]
                place = os.path.join(folder, *inner)
                if self._files.is_folder(place):
                    return place + b"/"
        return None

    def find_library(self, path: bytes) -> Library | None:
        """Return the module in its version that a file is of."""
        standard = self._standard
        if standard is not None and is_below(path, standard):
            root = os.path.dirname(standard)
            text = self._files.read_text(root + b"/VERSION")
            first, _, _ = text.partition("\n")
            version = first.removeprefix("go").strip()
            return Library(STANDARD, version, standard)
        cache = os.path.realpath(self._cache)
        if is_below(path, cache):
            inner = path[len(cache) + 1 :]
            head, _, rest = inner.partition(b"@")
            release, _, _ = rest.partition(b"/")
            folder = os.path.join(cache, head + b"@" + release)
            version = release.decode("utf-8", "replace")
            escaped = head.decode("utf-8", "replace")
            name = _ESCAPED.sub(lambda match: match[1].upper(), escaped)
            return Library(name, version, folder)
        if is_below(path, self._files.root):
            return self._find_in_vendor(path)
        return None

    def list_roots(self, folder: bytes) -> Iterator[LibraryRoot]:
        """Yield the modules that the ``go.mod`` in a folder of the project requires, and its ``vendor``."""
        modules = self._read_modules(folder)
        if not modules:
            return
        vendor = self._files.trust_inside(folder + b"/vendor")
        if vendor is not None:
            yield LibraryRoot(vendor)
        cache = self._files.trust(self._cache)
        if cache is None:
            return
        required: set[bytes] = set()
        for place in modules.values():
            # A hostile name may lead to another module, and no further.
            inner = os.path.relpath(place, self._cache)
            module = os.path.join(cache, inner)
            is_module = _AT in os.path.basename(inner)
            if is_module and self._files.is_folder(module):
                required.add(inner)
        if required:
            yield LibraryRoot(cache, frozenset(required))

    def find_by_name(self, name: str) -> Library | None:
        """Return the library of a module that the project requires."""
        if name == STANDARD and self._find_standard("fmt") is not None:
            return self.find_library((self._standard or b"") + b"/")
        for top, modules in self._list_modules(self._files.root + b"/go.mod"):
            vendor = top + b"/vendor"
            folders = [os.path.join(vendor, name.encode())]
            if name in modules:
                folders.append(modules[name])
            self._files.trust_inside(vendor)
            for folder in filter(self._files.is_folder, folders):
                real = os.path.realpath(folder)
                library = self.find_library(real + b"/")
                if library is None:
                    continue
                if library.name == name:
                    return library
        return None

    def _find_in_vendor(self, path: bytes) -> Library | None:
        """Return the module of a file in the project's ``vendor``, by the list that Go keeps there."""
        root = self._files.root
        place = path[len(root) :]
        above, slash, inner = place.partition(b"/vendor/")
        if not slash:
            return None
        top = root + above + b"/vendor"
        name = version = ""
        for line in self._files.read_text(top + b"/modules.txt").splitlines():
            words = line.split()
            if len(words) < _LISTED or words[0] != "#":
                continue
            module = words[1]
            # The longest name: a module may be in the folder of another.
            if len(module) <= len(name):
                continue
            if is_below(inner, module.encode()):
                name = module
                version = words[2]
        if not name:
            return None
        return Library(name, version, os.path.join(top, name.encode()))

    def _list_modules(self, path: bytes) -> Iterator[tuple[bytes, dict[str, bytes]]]:
        """Yield the nearest modules of the project above a file, with the folders of what each requires."""
        root = self._files.root
        # What a library requires is in the list of the project's own module.
        above = list_upward(os.path.dirname(path), root)
        if not above:
            above = [root]
        for folder in above:
            modules = self._modules.get(folder)
            if modules is None:
                modules = self._read_modules(folder)
                self._modules[folder] = modules
            if modules:
                yield folder, modules

    def _read_modules(self, folder: bytes) -> dict[str, bytes]:
        text = self._files.read_own(
            os.path.relpath(folder + b"/go.mod", self._files.root)
        )
        # Without a cache everything is in ``vendor``.
        self._files.trust(self._cache)
        folders: dict[str, bytes] = {}
        replaced: list[list[str]] = []
        for words in _list_directives(text):
            if _REPLACED in words:
                replaced.append(words)
            elif len(words) == _PAIR:
                name, version = words
                if version.startswith("v") and "." in name:
                    folders[name] = self._place(name, version)
        for words in replaced:
            name = words[0]
            target = words[words.index(_REPLACED) + 1 :]
            if len(target) == _PAIR:
                folders[name] = self._place(*target)
            else:  # a folder: if it is in the project, its own rules find it
                folders.pop(name, None)
        return folders

    def _place(self, name: str, version: str) -> bytes:
        # Capitals are escaped, since some disks do not tell them from small letters.
        folder = f"{name}@{version}"
        escaped = _CAPITAL.sub(lambda match: "!" + match[0].lower(), folder)
        # A version is any text: one with dots must not lead out of the cache.
        place = os.path.join(self._cache, escaped.encode())
        place = os.path.normpath(place)
        if is_below(place, self._cache):
            return place
        return self._cache

    def _find_standard(self, module: str) -> bytes | None:
        if self._standard is None:
            for root in self._goroots:
                if os.path.isfile(root + b"/src/fmt/print.go"):
                    self._standard = self._files.trust(root + b"/src")
                    self._files.trust(root)
                    break
            else:
                return None
        if self._standard is None:
            return None
        for inner in (b"/", b"/vendor/"):
            folder = self._standard + inner + module.encode()
            if self._files.is_folder(folder):
                return folder + b"/"
        return None


def _list_directives(text: str) -> Iterator[list[str]]:
    """Yield the words of each line of ``go.mod``, without what says whether it requires or replaces."""
    # Divided, not matched: a line may be 16 MB long.
    for line in text.splitlines():
        words = line.partition("//")[0].split()
        if words[:1] in (["require"], ["replace"]):
            words = words[1:]
        yield words
