"""Resolves imports: from a module name as written to its file, or to outside the project.

Python: packages, relative imports, ``src`` folders. JavaScript and TypeScript: relative paths, ``paths`` of tsconfig,
packages of the same project by their package.json (``exports``, ``imports``). Go: folders below a go.mod.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.symbol_source import SymbolSource

_ENDINGS: Final = (
    "",
    ".ts",
    ".tsx",
    ".d.ts",
    ".mts",
    ".cts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".vue",
    ".svelte",
    ".astro",
)
_INDEXES: Final = (
    "/index.ts",
    "/index.tsx",
    "/index.d.ts",
    "/index.js",
    "/index.jsx",
    "/index.mjs",
    "/index.mts",
)
_WRITTEN: Final = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts",),
    ".cjs": (".cts",),
}
"""TypeScript sources are imported under the names of their compiled output."""
_BUILT: Final = re.compile(r"(?<![^/])(?:dist|lib|build|out|es|esm|cjs|types)(?=/)")
_PYTHON_ROOTS: Final = ("src", "lib", "python")
# An unclosed string or comment runs to the end of the text: retrying after each quote
# would take quadratic time.
_LOOSE_JSON: Final = re.compile(
    r'("(?:\\.|[^"\\])*+(?:"|\Z|\\))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL
)
_TRAILING: Final = re.compile(
    r'("(?:\\.|[^"\\])*+(?:"|\Z|\\))|,(?=\s*+[}\]])', re.DOTALL
)
_MOST_NESTED: Final = 20
"""Most nested conditions in a package's exports, and most tsconfig files that extend others; two or three are usual."""
_GO_MODULE: Final = re.compile(rb"^module\s+(\S+)", re.MULTILINE)


class Modules:
    """Finds modules in one state of a project; looks up each file once."""

    def __init__(self, source: SymbolSource) -> None:
        self.source = source
        self._found: dict[tuple[str, str, str], bytes | None] = {}
        self._json: dict[str, Any] = {}
        self._options: dict[str, dict[str, Any]] = {}
        self._packages: dict[str, str] | None = None
        self._go: dict[str, str] | None = None

    def find(self, language: str, path: bytes, module: str) -> bytes | None:
        """Return the file of a module as a file's import names it, a folder with a trailing slash, or None: outside."""
        folder = posixpath.dirname(path.decode("utf-8", "surrogateescape"))
        key = (language, folder, module)
        if key not in self._found and path.startswith(b"/"):
            self._found[key] = self._find_in_libraries(language, path, module)
        if key not in self._found:
            if language == "python":
                found = self._find_python(folder, module)
            elif language not in ECMA:
                found = self._find_go(module)
            elif module.startswith("."):
                place = posixpath.normpath(posixpath.join(folder, module))
                found = self._find_file(place) or self._find_in_package(place, "")
            else:
                # As in TypeScript, mapped paths take precedence over packages.
                found = self._find_by_paths(folder, module) or self._find_package(
                    folder, module
                )
            if found is None:
                self._found[key] = self._find_in_libraries(language, path, module)
            else:
                self._found[key] = found.encode("utf-8", "surrogateescape")
        return self._found[key]

    def _find_in_libraries(
        self, language: str, path: bytes, module: str
    ) -> bytes | None:
        """Return the file of a library's module; a relative name leads to one only from a library's file."""
        libraries = self.source.libraries
        is_own = module.startswith(".") and not path.startswith(b"/")
        if libraries is None or is_own:
            return None
        return libraries.find_module(language, path, module)

    def has(self, path: str) -> bool:
        """Whether the project has a file."""
        return self.source.has(path.encode("utf-8", "surrogateescape"))

    # Python

    def _find_python(self, folder: str, module: str) -> str | None:
        name = module.lstrip(".")
        if level := len(module) - len(name):
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            return self.python_module(
                posixpath.join(folder, *name.split(".")) if name else folder
            )
        above = [folder]
        root = folder
        while root:
            root = posixpath.dirname(root)
            above.append(root)
        # A script sees the modules in its own folder; a file in a package does not see
        # its siblings.
        roots = [
            current_folder
            for current_folder in above
            if not self.has(posixpath.join(current_folder, "__init__.py"))
        ]
        inner = [
            posixpath.join(current_folder, part)
            for current_folder in above
            for part in _PYTHON_ROOTS
        ]
        for root in dict.fromkeys([*roots, *inner]):
            is_root = root in roots or root not in above
            # The nearest root first: a folder of examples may have a module of the same
            # name.
            if is_root and (
                found_module := self.python_module(
                    posixpath.join(root, *name.split("."))
                )
            ):
                return found_module
        return None

    def python_module(self, place: str) -> str | None:
        """Return the file of a module or a package."""
        for ending in (".py", "/__init__.py", ".pyi", "/__init__.pyi"):
            if self.has(place + ending):
                return place + ending
        return None

    # JavaScript and TypeScript

    def _find_file(self, place: str) -> str | None:
        """Return the file for a path that lacks an ending or has the ending of its compiled output."""
        stem, ending = posixpath.splitext(place)
        # Before the path as written: if both exist, the source is wanted.
        for written in _WRITTEN.get(ending, ()):
            if self.has(stem + written):
                return stem + written
        place = "" if place == "." else place
        tried = (place + more for more in (*_ENDINGS, *_INDEXES))
        return next(
            (
                path_tried.lstrip("/")
                for path_tried in tried
                if path_tried and self.has(path_tried.lstrip("/"))
            ),
            None,
        )

    def _find_by_paths(self, folder: str, module: str) -> str | None:
        for at in _upward(folder):
            options = self._compiler_options(
                posixpath.join(at, "tsconfig.json")
            ) or self._compiler_options(posixpath.join(at, "jsconfig.json"))
            base = posixpath.normpath(
                posixpath.join(options.get("at", at), options.get("baseUrl", "."))
            )
            for pattern, targets in options.get("paths", {}).items():
                if (middle := _match(pattern, module)) is not None:
                    for target in targets if isinstance(targets, list) else ():
                        place = posixpath.normpath(
                            posixpath.join(base, str(target).replace("*", middle))
                        )
                        if file := self._find_file(place):
                            return file
            if "baseUrl" in options and (
                file := self._find_file(posixpath.join(base, module))
            ):
                return file
        return None

    def _compiler_options(self, path: str, depth: int = 0) -> dict[str, Any]:
        """Return the module options of a tsconfig; ``at``: the folder they are relative to."""
        if path in self._options:
            return self._options[path]
        self._options[path] = {}  # ends cycles of ``extends``
        config = self._read_json(path)
        options: dict[str, Any] = {}
        extended = config.get("extends", [])
        for current_config in (
            [extended]
            if isinstance(extended, str)
            else extended
            if isinstance(extended, list)
            else []
        ):
            place = posixpath.normpath(
                posixpath.join(posixpath.dirname(path), str(current_config))
            )
            # Settings that come from packages are in node_modules, which is not part of
            # the project.
            if str(current_config).startswith(".") and depth < _MOST_NESTED:
                options |= self._compiler_options(
                    place if place.endswith(".json") else place + ".json", depth + 1
                )
        own = config.get("compilerOptions")
        if not isinstance(own, dict):
            own = {}
        set_here: dict[str, Any] = {}
        if isinstance(own.get("paths"), dict):
            set_here["paths"] = own["paths"]
        if isinstance(own.get("baseUrl"), str):
            set_here["baseUrl"] = own["baseUrl"]
        self._options[path] = (
            options | set_here | ({"at": posixpath.dirname(path)} if set_here else {})
        )
        return self._options[path]

    def _find_package(self, folder: str, module: str) -> str | None:
        if module.startswith("#"):  # names internal to a package
            manifests = (
                (at, self._read_json(posixpath.join(at, "package.json")).get("imports"))
                for at in _upward(folder)
            )
            at, imports = next(
                (manifest for manifest in manifests if manifest[1]), ("", None)
            )
            if isinstance(imports, dict):
                return self._find_export(at, imports, module)
            return None
        parts = module.split("/")
        size = 2 if module.startswith("@") else 1
        at_package = self._package_folders().get("/".join(parts[:size]))
        if at_package is None:
            return None
        rest = "/".join(parts[size:])
        return self._find_in_package(at_package, rest) or self._find_file(
            posixpath.join(at_package, rest or "index")
        )

    def _find_in_package(self, at: str, rest: str) -> str | None:
        """Return the file that the package in a folder has under a name; empty: what it is itself."""
        package = self._read_json(
            posixpath.normpath(posixpath.join(at, "package.json"))
        )
        if not package:
            return None
        exports = package.get("exports")
        export = None
        if exports is not None:
            if isinstance(exports, dict) and any(key[:1] == "." for key in exports):
                keyed = exports
            else:
                keyed = {".": exports}
            export = self._find_export(at, keyed, f"./{rest}" if rest else ".")
        elif not rest:
            named = (
                package.get(key)
                for key in ("source", "types", "typings", "module", "main")
            )
            sources = (
                self._find_source(at, entry)
                for entry in named
                if isinstance(entry, str)
            )
            export = next((source for source in sources if source), None)
        return export or self._find_file(posixpath.join(at, "src", rest or "index"))

    def _package_folders(self) -> dict[str, str]:
        """Return the folders of the project's packages by their names."""
        if self._packages is None:
            self._packages = {}
            for path in self.source.paths():
                if path.rpartition(b"/")[2] == b"package.json":
                    place = path.decode("utf-8", "surrogateescape")
                    name = self._read_json(place).get("name")
                    if isinstance(name, str):
                        # If two packages share a name, the first path wins, so that all
                        # machines agree.
                        self._packages.setdefault(name, posixpath.dirname(place))
        return self._packages

    def _find_export(self, at: str, exports: dict[str, Any], part: str) -> str | None:
        # In Node's order, the most specific first: names before patterns, then the
        # longest.
        for pattern in sorted(exports, key=lambda key: ("*" in key, -len(key))):
            if (middle := _match(pattern, part)) is not None:
                for target in _strings(exports[pattern]):
                    if source := self._find_source(at, target.replace("*", middle)):
                        return source
        return None

    def _find_source(self, at: str, target: str) -> str | None:
        """Return the file that a package names, or its source if the built file does not exist."""
        for fromkey in dict.fromkeys(
            [
                target,
                _BUILT.sub("src", target, count=1),
                _BUILT.sub(".", target, count=1),
            ]
        ):
            place = posixpath.normpath(posixpath.join(at, fromkey))
            stem = re.sub(r"(?:\.d)?\.[cm]?[jt]sx?$", "", place)
            if file := self._find_file(place) or self._find_file(stem):
                return file
        return None

    def _read_json(self, path: str) -> dict[str, Any]:
        """Return a JSON file's object; empty if there is none; comments and trailing commas are allowed."""
        if path not in self._json:
            data = self.source.read(path.encode("utf-8", "surrogateescape"))
            text = _LOOSE_JSON.sub(
                lambda found: found[1] or " ", (data or b"").decode("utf-8", "replace")
            )
            try:
                value = orjson.loads(_TRAILING.sub(lambda found: found[1] or "", text))
            except orjson.JSONDecodeError:
                value = None
            self._json[path] = value if isinstance(value, dict) else {}
        document: dict[str, Any] = self._json[path]
        return document

    # Go

    def _find_go(self, module: str) -> str | None:
        if self._go is None:
            self._go = {}
            for path in self.source.paths():
                if path.endswith(b"go.mod") and (
                    named := _GO_MODULE.search(self.source.read(path) or b"")
                ):
                    place = posixpath.dirname(path.decode("utf-8", "surrogateescape"))
                    self._go.setdefault(
                        named[1].decode("utf-8", "replace").strip('"'), place
                    )
        # The longest name first: a module may contain others.
        for name, place in sorted(self._go.items(), key=lambda one: -len(one[0])):
            if module == name or module.startswith(name + "/"):
                inside = posixpath.join(place, module[len(name) + 1 :]).rstrip("/")
                if inside:
                    return inside + "/"
                return "/"
        return None


def _upward(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, nearest first."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def _match(pattern: str, text: str) -> str | None:
    """Return what the star of a pattern matches; empty if the pattern has no star and equals the text."""
    before, star, after = pattern.partition("*")
    if not star:
        return "" if pattern == text else None
    fits = (
        len(text) >= len(before) + len(after)
        and text.startswith(before)
        and text.endswith(after)
    )
    if fits:
        return text[len(before) : len(text) - len(after)]
    return None


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the paths an export may lead to, under any condition."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and depth < _MOST_NESTED:
        for text in value.values() if isinstance(value, dict) else value:
            yield from _strings(text, depth + 1)
