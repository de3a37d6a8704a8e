"""The libraries of a project for one question: which tool's rules a file follows, and which library has a file."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, Protocol

import anyio.to_thread

from flashgrep.api.libraries import (
    Library,
    LibraryPlace,
    ProjectLibraries,
    UsedLibraries,
)
from flashgrep.base.errors import NotFound, Unavailable
from flashgrep.base.model import Document, Skipped
from flashgrep.base.own_folders import LIBRARIES as LIBRARIES_FOLDER
from flashgrep.base.registry import Call
from flashgrep.files.globs import PathFilter
from flashgrep.files.subtrees import Subtrees
from flashgrep.parts.libraries.go_modules import GoModules
from flashgrep.parts.libraries.java_sources import JavaSources
from flashgrep.parts.libraries.library_files import LibraryFiles, LibraryRoot
from flashgrep.parts.libraries.library_uses import LIBRARY_USES
from flashgrep.parts.libraries.node_modules import NodeModules
from flashgrep.parts.libraries.python_environment import PythonEnvironment
from flashgrep.parts.libraries.rust_crates import RustCrates
from flashgrep.parts.libraries.system_headers import SystemHeaders
from flashgrep.project import Workspace
from flashgrep.project.project import LibraryFolder

_SCRIPTS: Final = frozenset(
    {"javascript", "typescript", "tsx", "vue", "svelte", "astro"}
)
_LABEL: Final = re.compile(
    r"(?P<name>@?\w[\w./~-]{0,200})(?:@(?P<version>[\w.+!~-]{1,100}))?"
)
_BETWEEN_PARTS: Final = re.compile(r"[.+_!~-]")
_MANIFESTS: Final = (
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "package.json",
    "go.mod",
    "Cargo.lock",
)
"""Files next to which a tool has an environment, or which name what is in its cache."""
_MOST_MANIFESTS: Final = 200
"""Most folders of a project with such files that are looked at, those nearest to the root."""
_OF_JAVA: Final = frozenset({"java", "kotlin", "groovy", "scala"})


class _Tool(Protocol):
    """What keeps libraries for a language's projects."""

    def list_roots(self, folder: bytes) -> Iterator[LibraryRoot]:
        """Yield the folders with the libraries that a folder of the project uses."""


class Lookup:
    """The libraries of a project; nothing is kept between questions, so that nothing can be out of date."""

    def __init__(self, root: bytes, environ: Mapping[str, str], cache: bytes) -> None:
        """``cache``: our own folder, for sources that are packed."""
        home = os.fsencode(environ.get("HOME", "")) or b"/nonexistent"
        self._files = LibraryFiles(root)
        self._python = PythonEnvironment(self._files, home)
        self._node = NodeModules(self._files)
        self._go = GoModules(self._files, home, environ)
        self._rust = RustCrates(self._files, home, environ)
        self._java = JavaSources(self._files, home, cache)
        self._headers = SystemHeaders(self._files)

    def find_module(self, language: str, path: bytes, module: str) -> bytes | None:
        """Return the file of a module as a file's import names it, a folder with a trailing slash, or None: unknown."""
        importer = os.path.join(self._files.root, path)
        if language == "python":
            place = self._python.find_module(importer, module)
        elif language in _SCRIPTS:
            place = self._node.find_module(importer, module)
        elif language == "go":
            place = self._go.find_module(importer, module)
        else:
            place = None
        # Under its resolved name, so that one file is one file whatever path led to it.
        if place is None or place.endswith(b"/"):
            return place
        return self._files.locate(place)

    def find_definers(
        self, language: str, path: bytes, module: str, name: str
    ) -> list[bytes]:
        """Return the files that may define a name of a module, likeliest first, where languages write it in full."""
        importer = os.path.join(self._files.root, path)
        if language == "rust":
            files = self._rust.find_definers(importer, module, name)
        elif language in _OF_JAVA:
            files = self._java.find_definers(module, name)
        elif language in {"c", "cpp"}:
            files = self._headers.find_definers(language, module, name)
        else:
            files = []
        located = map(self._files.locate, files)
        return [file for file in located if file is not None]

    def locate(self, path: bytes) -> bytes | None:
        """Return the path of a library's file, given by an absolute path or one relative to the root; None: it is none."""
        full = os.path.join(self._files.root, path)
        self._discover(full)
        return self._files.locate(full)

    def list_folder(self, folder: bytes) -> list[bytes]:
        """Return the paths of the files in a folder, in order."""
        return [os.path.join(folder, name) for name in self._files.list_names(folder)]

    def read(self, path: bytes) -> Document | Skipped | None:
        """Return a file's text, or why it has none; None: it is gone, or no library's."""
        return self._files.read(path)

    def find_library(self, path: bytes) -> Library | None:
        """Return the library that has a file."""
        return (
            self._node.find_library(path)
            or self._go.find_library(path)
            or self._rust.find_library(path)
            or self._java.find_library(path)
            or self._headers.find_library(path)
            or self._python.find_library(path)
        )

    def list_roots(self, folders: Iterable[bytes]) -> list[LibraryRoot]:
        """Return the folders of the libraries that folders of the project use, each once."""
        chosen: dict[bytes, frozenset[bytes] | None] = {}
        tools: tuple[_Tool, ...] = (self._python, self._node, self._go, self._rust)
        for folder, tool in product(folders, tools):
            for root in tool.list_roots(folder):
                former = chosen.get(root.path, frozenset())
                # Two manifests may lead to one cache, each to a part of it.
                if former is None or root.folders is None:
                    chosen[root.path] = None
                else:
                    chosen[root.path] = former | root.folders
        return [LibraryRoot(path, inner) for path, inner in chosen.items()]

    def find_by_name(self, label: str) -> Library | None:
        """Return the library of a name, as ``requests`` or ``requests@2.31``; None: the project uses none."""
        matched = _LABEL.fullmatch(label)
        if matched is None or ".." in label.split("/"):
            return None
        name = matched["name"]
        version = matched["version"] or ""
        for ecosystem in (self._python, self._node, self._go, self._rust):
            library = ecosystem.find_by_name(name)
            if library is not None and is_version(library.version, version):
                return library
        return None

    def _discover(self, path: bytes) -> None:
        """Let each tool find its folders, by a module that each has, so that a path in one of them is a library's."""
        for above in (path, self._files.root + b"/x"):
            self._python.find_module(above, "os")
            self._node.find_module(above, "node:fs")
            self._go.find_module(above, "x.invalid/x")
        self._go.find_module(path, "fmt")
        self._rust.find_definers(path, "", "std")
        self._java.discover()
        self._headers.discover()


def is_version(version: str, named: str) -> bool:
    """Return whether a version is one that was named, perhaps without its last parts: 2.31 is 2.31.0, and not 2.310."""
    named_parts = _BETWEEN_PARTS.split(named.removeprefix("v"))
    parts = _BETWEEN_PARTS.split(version.removeprefix("v"))
    return not named or parts[: len(named_parts)] == named_parts


class Libraries(ProjectLibraries):
    """Finds the libraries of one project."""

    def __init__(self, project: Workspace) -> None:
        options = project.options
        self._project = project
        self._environ = options.environ
        cache = os.path.realpath(os.fsencode(options.cache_dir))
        self._cache = os.path.join(cache, LIBRARIES_FOLDER.encode())

    def look_up(self) -> Lookup:
        """Return them for one question; call it in a thread."""
        return Lookup(self._project.root, self._environ, self._cache)

    async def open(self, call: Call[Any], label: str) -> Workspace:
        """Return the folder of a library, by its name or with its version, to be read and searched for a call."""
        library = await anyio.to_thread.run_sync(self._find, label)
        if library is None:
            raise NotFound(
                f"the project uses no library of this name, or its source is not there: {label}",
                reason="library_not_found",
                library=label,
            )
        root = LibraryRoot(library.folder)
        return await self._visit(call, root, library.label)

    async def open_all(self, call: Call[Any]) -> UsedLibraries:
        """Return the folders of all libraries, to be read and searched for a call."""
        await self._project.refresh()
        lookup, roots = await anyio.to_thread.run_sync(self._list_roots)
        if not roots:
            raise NotFound(
                "the project names no libraries, or none of them is on this machine",
                reason="library_not_found",
            )
        places: list[LibraryPlace] = []
        for root in roots:
            workspace = await self._visit(call, root)
            holds = None
            if root.folders is not None:
                holds = Subtrees(root.folders).holds
            places.append(LibraryPlace(workspace, holds))
        return UsedLibraries(places, lookup)

    async def _visit(
        self, call: Call[Any], root: LibraryRoot, label: str = ""
    ) -> Workspace:
        """Open a folder of libraries for a call, in the store that all projects share."""
        host = self._project.host
        if host is None:
            raise Unavailable("the project was opened alone, without its libraries")
        uses = host.service(LIBRARY_USES)

        def prepare() -> LibraryFolder:
            folders = uses.note(root, self._project.root)
            is_indexed = uses.is_small(root.path, folders)
            return LibraryFolder(label=label, folders=folders, is_indexed=is_indexed)

        folder = await anyio.to_thread.run_sync(prepare)
        return await host.visit_library(Path(os.fsdecode(root.path)), folder, call)

    def _find(self, label: str) -> Library | None:
        library = self.look_up().find_by_name(label)
        if library is None or not library.version:
            return None
        return library._replace(folder=os.path.realpath(library.folder))

    def _list_roots(self) -> tuple[Lookup, list[LibraryRoot]]:
        """Return the folders that the project's environments and lock files lead to, and what found them."""
        manifests = PathFilter([f"**/{name}" for name in _MANIFESTS], [])
        folders = {os.path.dirname(path) for path in self._project.paths(manifests)}
        nearest = sorted(folders, key=lambda folder: (folder.count(b"/"), folder))
        root = self._project.root
        places = [os.path.join(root, folder) for folder in nearest[:_MOST_MANIFESTS]]
        lookup = self.look_up()
        return lookup, lookup.list_roots(dict.fromkeys([root, *places]))
