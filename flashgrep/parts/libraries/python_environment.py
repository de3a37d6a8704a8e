"""Python's libraries: the packages of the environment next to a file, and the standard library that it was made from.

An environment is a folder with ``pyvenv.cfg`` (venv, virtualenv, uv) or ``conda-meta``. What a ``.pth`` file adds is
not followed: it is a program, and what it names is mostly the project itself.
"""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from flashgrep.api.libraries import Library
from flashgrep.parts.libraries.library_files import (
    LibraryFiles,
    LibraryRoot,
    is_below,
    list_upward,
)

_ENVIRONMENTS: Final = (b".venv", b"venv", b"env", b".conda", b"conda")
_ENDINGS: Final = (b".py", b"/__init__.py", b".pyi", b"/__init__.pyi")
_SYSTEM: Final = (b"/usr", b"/usr/local", b"/opt", b"/nix/store", b"/Library")
_BELOW_HOME: Final = (
    b".local/share/uv",
    b".cache/uv",
    b".pyenv",
    b".virtualenvs",
    b".local/share/virtualenvs",
    b".cache/pypoetry/virtualenvs",
    b".local/share/hatch",
    b".local/share/rtx",
    b".local/share/mise",
    b".asdf",
    b".rye",
    b"miniconda3",
    b"anaconda3",
    b"miniforge3",
    b"mambaforge",
    b"micromamba",
    b".conda",
    b"Library/Caches",
)
"""Folders in which tools keep interpreters, environments and packages."""
_VERSION: Final = re.compile(r"(?m)^version(?:_info)?\s*=\s*(\d+\.\d+)")
_HOME: Final = re.compile(r"(?m)^home[ \t]*=[ \t]*(\S[^\n]*)")
_LIBRARY: Final = re.compile(rb"python3\.\d{1,3}")
_DISTRIBUTION: Final = re.compile(rb"(.+?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info")
STANDARD: Final = "python"
"""The name of the standard library."""


class _Distribution(NamedTuple):
    """What was installed as one, with the folder of its metadata."""

    name: str
    version: str
    metadata: bytes


class _Environment(NamedTuple):
    packages: tuple[bytes, ...]
    standard: tuple[bytes, ...]


class PythonEnvironment:
    """Finds modules in the nearest environment above a file, for one question."""

    def __init__(self, files: LibraryFiles, home: bytes) -> None:
        self._files = files
        self._tools = tuple(os.path.join(home, folder) for folder in _BELOW_HOME)
        self._environments: dict[bytes, _Environment | None] = {}
        self._system: _Environment | None = None
        self._distributions: dict[bytes, dict[bytes, list[_Distribution]]] = {}

    def find_module(self, path: bytes, module: str) -> bytes | None:
        """Return the file of a module that a file imports."""
        folder = os.path.dirname(path)
        name = module.lstrip(".")
        parts = [part.encode() for part in name.split(".") if part]
        for part in parts:
            if b"/" in part or b"\0" in part:
                return None
        # A relative name stays in its package: one dot is the file's own folder.
        if level := len(module) - len(name):
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._find_file(os.path.join(folder, *parts))
        environment = self._find_environment(folder)
        for top in (*environment.standard[:1], *environment.packages):
            # Stubs come last: a reader wants the code.
            place = os.path.join(top, *parts)
            file = self._find_file(place)
            if file is not None:
                return file
        if not parts:
            return None
        for top in environment.packages:
            stubs = os.path.join(top, parts[0] + b"-stubs", *parts[1:])
            file = self._find_file(stubs)
            if file is not None:
                return file
        return None

    def find_library(self, path: bytes) -> Library | None:
        """Return the distribution that a file is of."""
        for environment in self._list_environments():
            # Packages first: a conda environment has them inside its standard library.
            for top in environment.packages:
                if is_below(path, top) and path != top:
                    return self._find_distribution(top, path)
            for top in environment.standard:
                if is_below(path, top):
                    version = os.path.basename(top).removeprefix(b"python").decode()
                    return Library(STANDARD, version, top)
        return None

    def list_roots(self, folder: bytes) -> Iterator[LibraryRoot]:
        """Yield the packages of the environment in a folder of the project, if there is one."""
        if folder not in self._environments:
            self._environments[folder] = self._read_environment(folder)
        environment = self._environments[folder]
        if environment is not None:
            for top in environment.packages:
                yield LibraryRoot(top)

    def find_by_name(self, name: str) -> Library | None:
        """Return the library of a name: of a distribution, or of one of its packages."""
        for environment in self._list_environments():
            for top in environment.standard[:1]:
                if name == STANDARD:
                    return self.find_library(os.path.join(top, b"os.py"))
            for top in environment.packages:
                place = os.path.join(top, name.encode())
                if self._files.is_folder(place):
                    return self._find_distribution(top, place + b"/")
                for package, several in self._read_distributions(top).items():
                    place = os.path.join(top, package)
                    for distribution in several:
                        is_asked = _normalize(distribution.name) == _normalize(name)
                        if is_asked and self._files.is_folder(place):
                            return Library(*distribution[:2], place)
        return None

    def _find_file(self, place: bytes) -> bytes | None:
        for ending in _ENDINGS:
            if self._files.has(place + ending):
                return place + ending
        return None

    def _find_distribution(self, top: bytes, path: bytes) -> Library:
        inner = path[len(top) :].lstrip(b"/")
        package = inner.partition(b"/")[0]
        stem = package.removesuffix(b".py").removesuffix(b".pyi")
        several = self._read_distributions(top).get(stem, [])
        if len(several) > 1:  # a namespace, in which several have files
            several = [
                distribution
                for distribution in several
                if self._has_file(distribution, inner)
            ]
        name = stem.decode("utf-8", "replace")
        version = ""
        # A namespace itself is of none.
        if len({distribution.name for distribution in several}) == 1:
            name = several[-1].name
            version = several[-1].version
        folder = os.path.join(top, package)
        if self._files.is_folder(folder):
            return Library(name, version, folder)
        return Library(name, version, top)

    def _has_file(self, distribution: _Distribution, inner: bytes) -> bool:
        """Whether a distribution says that a file, by its path in the environment, is its own."""
        record = self._files.read_text(distribution.metadata + b"/RECORD")
        return f"\n{inner.decode('utf-8', 'replace')}," in f"\n{record}"

    def _read_distributions(self, top: bytes) -> dict[bytes, list[_Distribution]]:
        """Return the distributions that have each package."""
        if top in self._distributions:
            return self._distributions[top]
        packages: dict[bytes, list[_Distribution]] = {}
        alike: dict[bytes, list[_Distribution]] = {}
        for entry in self._files.list_names(top):
            match = _DISTRIBUTION.fullmatch(entry)
            if match is None:
                continue
            name, version = (part.decode("utf-8", "replace") for part in match.groups())
            distribution = _Distribution(name, version, os.path.join(top, entry))
            alike[match[1].replace(b"-", b"_")] = [distribution]
            for package in set(self._list_packages(distribution.metadata)):
                packages.setdefault(package, []).append(distribution)
        # One that lists nothing is taken to have the package of its name.
        self._distributions[top] = alike | packages
        return self._distributions[top]

    def _list_packages(self, folder: bytes) -> Iterator[bytes]:
        told = self._files.read_text(folder + b"/top_level.txt")
        if not told:
            # The first part of each path, of which a line of RECORD begins with one.
            record = self._files.read_text(folder + b"/RECORD")
            tops = set[str]()
            for line in record.splitlines():
                path = line.partition(",")[0]
                top = path.partition("/")[0]
                if not top.endswith("-info"):
                    tops.add(top.removesuffix(".py"))
            told = "\n".join(tops)
        for line in told.splitlines():
            package = line.strip()
            if package and not line.startswith((".", "__pycache__")):
                yield package.encode()

    def _list_environments(self) -> Iterator[_Environment]:
        for environment in list(self._environments.values()):
            if environment is not None:
                yield environment
        yield self._find_environment(self._files.root)

    def _find_environment(self, folder: bytes) -> _Environment:
        root = self._files.root
        inside = [
            part for part in list_upward(folder, root) if b"/site-packages" not in part
        ]
        for above in inside or [root]:
            if above not in self._environments:
                self._environments[above] = self._read_environment(above)
            environment = self._environments[above]
            if environment is not None:
                return environment
        if self._system is None:
            self._system = _Environment((), tuple(self._list_system()))
        return self._system

    def _read_environment(self, above: bytes) -> _Environment | None:
        """Return the environment in a folder, if there is one."""
        for name in _ENVIRONMENTS:
            folder = os.path.join(above, name)
            settings = os.path.join(folder, b"pyvenv.cfg")
            has_settings = os.path.isfile(settings)
            is_conda = os.path.isdir(folder + b"/conda-meta")
            # A folder of that name that is none has neither.
            if not has_settings and not is_conda:
                continue
            real = self._files.trust_inside(folder, *self._tools)
            if real is None:
                continue
            packages: list[bytes] = []
            standard: list[bytes] = []
            for library in self._list_libraries(real):
                top = self._files.trust_inside(library + b"/site-packages", real)
                if top is not None:
                    packages.append(top)
                if self._files.has(library + b"/os.py"):
                    standard.append(library)
            text = self._files.read_text(settings)
            for tool in self._tools:
                # uv's files may be links to those in its cache.
                if tool.endswith(b".cache/uv"):
                    self._files.trust(tool)
            standard += self._find_standard(real, text)
            return _Environment(tuple(packages), tuple(standard))
        return None

    def _list_libraries(self, folder: bytes) -> list[bytes]:
        names = self._files.list_names(folder + b"/lib")
        return [
            os.path.join(folder, b"lib", name)
            for name in names
            if _LIBRARY.fullmatch(name)
        ]

    def _find_standard(self, environment: bytes, settings: str) -> Iterator[bytes]:
        """Yield the standard library of the interpreter that an environment names."""
        version = _VERSION.search(settings)
        home = _HOME.search(settings)
        if version is None:
            return
        program = os.path.realpath(environment + b"/bin/python")
        # What `home` says may be a folder of links; the program itself is where it is.
        homes = [os.path.dirname(program)]
        if home is not None:
            homes.insert(0, os.fsencode(home[1].rstrip()))
        name = b"python" + version[1].encode()
        for folder in homes:
            library = os.path.realpath(os.path.join(folder, b"../lib", name))
            if self._is_standard(library):
                yield library
                return

    def _list_system(self) -> Iterator[bytes]:
        for prefix in (b"/usr/local/lib", b"/usr/lib"):
            # Python's newest version, where several are installed: 3.9 comes before 3.12.
            versions: list[bytes] = []
            if os.path.isdir(prefix):
                versions = list(filter(_LIBRARY.fullmatch, os.listdir(prefix)))
            for name in sorted(versions, key=lambda name: (-len(name), name)):
                library = os.path.join(prefix, name)
                if self._is_standard(library):
                    yield library
                    return

    def _is_standard(self, library: bytes) -> bool:
        allowed = any(is_below(library, top) for top in (*_SYSTEM, *self._tools))
        if not allowed or not os.path.isfile(library + b"/os.py"):
            return False
        return self._files.trust(library) is not None


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
