"""What a file imports and exports, read from the text of its statements: names, their modules, their aliases.

A module is named as it is written there; ``parts/navigation/resolution/modules.py`` resolves it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from flashgrep.parts.symbols.parse.lookup import FileSymbols

WHOLE, ALL, DEFAULT = "", "*", "default"
"""What may be imported besides single names: the module itself, all of its names, its default export."""
ECMA: Final = frozenset({"javascript", "typescript", "tsx", "vue", "svelte", "astro"})
PACKAGED: Final = frozenset({"java", "kotlin", "groovy", "scala", "csharp", "php"})
"""Languages whose files state their package, and import by full names."""
DOTTED: Final = frozenset({*PACKAGED, "elixir"})
# Sources are untrusted: none of these may take more than a few steps per character.
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_FROM: Final = re.compile(
    r"""\s*(import|export)(?:\s+(?:type\s+|typeof\s+)?|(?=[*{]))(.*?)\bfrom\s*+["']([^"']+)["']""",
    re.DOTALL,
)
_REEXPORTS_ALL: Final = re.compile(rb"\bexport(?:\s+type)?\s*[*/]")
"""``export *``, or a comment that may precede the star."""
_REQUIRED: Final = re.compile(
    r"""(?:(?:const|let|var|import)\s+|,\s*)(\w[\w$]*|\{[^{}]*\})\s*=\s*require\(\s*["']([^"']+)["']\s*\)(?:\.(?P<member>[\w$]+))?"""
)
_LATER: Final = re.compile(
    r"""(?:const|let|var)\s+(\w[\w$]*|\{[^{}]*\})\s*=\s*await\s+import\(\s*["']([^"']+)["']\s*\)(?P<member>)"""
)
# Matched only where the word ``export`` was found: searching a text for these takes 80
# times as long as for the word.
_HERE: Final = r"(?:(?<![\w$.])export%s|(?<![\w$.]module\.)(?<=module\.)exports\s*=\s*)"
_EXPORTED: Final = re.compile(_HERE % r"\s+(?:type\s+)?" + r"\{([^{}]*)\}(?!\s*from\b)")
_DEFAULT: Final = re.compile(
    _HERE % r"(?:\s+default\s+|\s*=\s*)"
    + r"(?:async\s+|abstract\s+)*(?:(?:function\*?|class|interface)\s+)?([A-Za-z_$][\w$]*)"
)
_RENAMED: Final = re.compile(r"(?<![\w$])([\w$]++)\s*+:\s*+([\w$]+)")
_EXPORTS: Final = re.compile(r"(?<![\w$])exports\.([\w$]+)\s*=\s*([A-Za-z_$][\w$]*)")
_ALIASED: Final = re.compile(rb"\s*+(?:as\b|[\\#/])")
_ALIASED_IN_OBJECT: Final = re.compile(rb"\s*+(?:as\b|[\\#/:])")
"""What follows a name that gets an alias, or a comment that may hide this."""
_BEFORE: Final = (
    rb"(?:\bdefault\s+(?:async\s+|abstract\s+)*(?:(?:function\*?|class|interface)\s+)?"
    rb"|\bexports?(?:\.[\w$]+)?\s*=\s*|\)\.%s)\Z"
)
_ALIASES: Final = re.compile(_BEFORE % b"")
_ALIASES_IN_OBJECT: Final = re.compile(_BEFORE % rb"|:\s*")
"""What precedes a name that is exported under an alias, or is a member of a module."""
_MOST_BEFORE: Final = 100
_ENDS_BEFORE: Final = (
    b"default",
    b"async",
    b"abstract",
    b"function",
    b"*",
    b"class",
    b"interface",
    b"=",
    b").",
    b":",
)
"""What ``_ALIASES`` and ``_ALIASES_IN_OBJECT`` may end with."""
_GO_IMPORT: Final = re.compile(r"""(?:(?<![\w.])([\w.]++)\s++)?["`]([^"`]+)["`]""")
_BRACED: Final = re.compile(r"(?:([\w.]+\.)\{([^{}]*)\}|([^,{}]+))(?:,|$|\s*)")
_AS: Final = re.compile(r"\s+as\s+|\s*=>\s*")
_ELIXIR_NAME: Final = re.compile(r"\bas:\s*(\w+)")
_ELIXIR_OPTIONS: Final = re.compile(r"\)?,\s*\w+:.*|[()]")
_USE: Final = re.compile(r"\buse\s")
_TREE: Final = re.compile(r"[{},;]|\Z")
"""What ends a part of a nested import in Rust."""
_PYTHON_COMMENT: Final = re.compile(r"#[^\n]*|\\\n")
_MAJOR_VERSION: Final = re.compile(r"v\d+")


@dataclass(frozen=True, slots=True)
class Import:
    """A local name for something in another module; ``name``: its name there, or ``WHOLE``, ``ALL``, ``DEFAULT``."""

    local: str
    module: str
    name: str
    offset: int


@dataclass(slots=True)
class FileImports:
    """A file's imports by the names they bind, the modules it imports all names of, and its exports."""

    names: dict[str, list[Import]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    exports: dict[str, Import] = field(default_factory=dict)
    """What is exported under an alias, or from another module; ``module`` "" is the file itself."""
    export_stars: list[Import] = field(default_factory=list)

    def add(self, one: Import) -> None:
        """Add an import."""
        if one.name == ALL:
            self.stars.append(one)
        else:
            self.names.setdefault(one.local, []).append(one)

    def list_aliases(self, name: str) -> list[str]:
        """Return the other names under which the file imports a name."""
        return [
            local
            for local, several in self.names.items()
            if local != name and any(import_.name == name for import_ in several)
        ]

    def list_exports(self, name: str) -> list[str]:
        """Return the other names under which the file exports a name, or its own alias for it."""
        aliases = self.list_aliases(name)
        exports = list[str]()
        for local, export in self.exports.items():
            is_own_alias = not export.module and export.name in aliases
            if local != name and (export.name == name or is_own_alias):
                exports.append(local)
        return exports


def _read_go(spec: re.Match[str], start: int) -> Import:
    """Return an import of Go, which is bound to the package's name: as a rule the last part of its path."""
    own_name = spec[1]
    path = spec[2]
    if own_name == ".":
        return Import(own_name, path, ALL, start)
    *outer, last = path.split("/")
    if outer and _MAJOR_VERSION.fullmatch(last):
        last = outer[-1]
    name = own_name or last.partition(".")[0]
    return Import(name, path, WHOLE, start)


def read_imports(symbols: FileSymbols) -> FileImports:
    """Return what a file imports and exports."""
    file_imports = FileImports()
    for start, end in symbols.parsed.statements.tolist():
        text = symbols.data[start:end].decode("utf-8", "replace")
        if symbols.language == "python":
            for import_ in _read_python(text, start):
                file_imports.add(import_)
        elif symbols.language == "go":
            if spec := _GO_IMPORT.search(text):
                file_imports.add(_read_go(spec, start))
        elif symbols.language in DOTTED or symbols.language == "rust":
            is_rust = symbols.language == "rust"
            for import_ in (
                read_rust(text, start)
                if is_rust
                else read_packages(symbols.language, text, start)
            ):
                file_imports.add(import_)
        else:
            _read_ecma(
                _COMMENT.sub("", text) if "//" in text or "/*" in text else text,
                start,
                file_imports,
            )
    if symbols.language in ECMA:
        _read_exports(symbols, file_imports)
    return file_imports


def _read_python(text: str, offset: int) -> Iterator[Import]:
    flat = " ".join(
        _PYTHON_COMMENT.sub(" ", text).replace("(", " ").replace(")", " ").split()
    )
    module = ""
    from_one = flat.startswith("from ")
    if from_one:
        module, _, flat = flat[5:].partition(" import ")
    for part in flat.removeprefix("import ").split(","):
        name, _, local = (piece.strip() for piece in part.partition(" as "))
        if not name:
            continue
        if from_one:
            yield Import(
                local or name, module.strip(), ALL if name == "*" else name, offset
            )
        elif local:
            yield Import(local, name, WHOLE, offset)
        else:  # ``import a.b`` binds a, and loads b
            package = name.partition(".")[0]
            yield Import(package, package, WHOLE, offset)


def read_packages(language: str, text: str, offset: int) -> Iterator[Import]:
    """Yield the imports of a statement that names packages (``a.b.C``), with braces, stars and aliases."""
    # A backslash divides names in PHP.
    pieces = _COMMENT.sub(" ", text).replace("\\", ".").split()
    flat = " ".join(pieces).rstrip("; ")
    keyword, _, matching_text = flat.removeprefix("global ").partition(" ")
    takes_all = (language == "elixir" and keyword == "import") or (
        language == "csharp" and "=" not in matching_text
    )
    for words in ("static ", "function ", "const "):
        matching_text = matching_text.removeprefix(words)
    if language == "elixir":
        if keyword == "require" and "as:" not in matching_text:
            return
        named = _ELIXIR_NAME.search(matching_text)
        matching_text = _ELIXIR_OPTIONS.sub("", matching_text) + (
            f" as {named[1]}" if named else ""
        )
    if language == "csharp" and not takes_all:  # ``using B = A.C``
        local, _, path = matching_text.partition("=")
        matching_text = f"{path} as {local}"
    for before, inside, after in _BRACED.findall(matching_text):
        for part in inside.split(",") if inside else [after]:
            name, _, local = (
                current_part.strip()
                for current_part in _AS.sub(" as ", part).partition(" as ")
            )
            whole = f"{before.strip()}{name}".lstrip(".")
            module, _, last = whole.rpartition(".")
            if takes_all:
                yield Import("", f"{module}.{last}".strip("."), ALL, offset)
            elif last in {"*", "_"}:
                yield Import("", module, ALL, offset)
            elif last:
                yield Import(local or last, module, last, offset)


def read_rust(text: str, offset: int) -> Iterator[Import]:
    """Yield the imports of a ``use`` in Rust: ``use a::{b::{self, C as D}, e::*};``; modules are written ``a::b``."""
    flat = " ".join(_COMMENT.sub(" ", text).split())
    if (keyword := _USE.search(flat)) is None:
        return
    prefixes = [""]
    start = keyword.end()
    for sign in _TREE.finditer(flat, keyword.end()):
        part = flat[start : sign.start()].strip()
        start = sign.end()
        if sign[0] == "{":
            prefixes.append(f"{prefixes[-1]}{part.replace(' ', '')}")
            continue
        path, _, local = (
            current_part.strip() for current_part in part.partition(" as ")
        )
        whole = (
            f"{prefixes[-1]}{path}".replace(" ", "")
            .removeprefix("::")
            .removesuffix("::self")
        )
        module, _, name = whole.rpartition("::")
        if path and name == ALL:
            yield Import("", module, ALL, offset)
        elif path and name:
            yield Import(local or name, module, name, offset)
        if sign[0] == "}" and len(prefixes) > 1:
            prefixes.pop()


def _read_ecma(text: str, offset: int, found: FileImports) -> None:
    if (statement := _FROM.match(text)) is None:
        return
    how, clause, module = statement.groups()
    head, brace, inside = clause.partition("{")
    for name, local in _pairs(inside.partition("}")[0]) if brace else ():
        import_ = Import(local, module, name, offset)
        if how == "export":
            found.exports[local] = import_
        else:
            found.add(import_)
    for part in head.split(","):
        first, _, local = (piece.strip() for piece in part.partition(" as "))
        if first == "*" and how == "export":
            if local:
                found.exports[local] = Import(local, module, WHOLE, offset)
            else:
                found.export_stars.append(Import(local, module, ALL, offset))
        elif first == "*":
            found.add(Import(local, module, WHOLE, offset))
        elif first:
            found.add(Import(first, module, DEFAULT, offset))


def _read_exports(symbols: FileSymbols, found: FileImports) -> None:
    """Read what is not in import statements: exports of the file's own names, and CommonJS."""
    data = symbols.data
    exported = [current_match.start() for current_match in re.finditer(b"export", data)]
    words = [
        word
        for word in ((_REQUIRED, b"require("), (_LATER, b"import("))
        if word[1] in data
    ]
    text = (
        data.decode("latin-1") if exported or words else ""
    )  # keeps byte offsets; names are nearly always ASCII

    def is_code(one: re.Match[str] | None) -> TypeGuard[re.Match[str]]:
        return one is not None and symbols.role(one.start(1)) is not None

    for match in filter(is_code, (_EXPORTED.match(text, at) for at in exported)):
        # ``{a as b}`` of an export, ``{b: a}`` of an object.
        for name, local in _pairs(
            _RENAMED.sub(r"\2 as \1", _COMMENT.sub("", match[1]))
        ):
            found.exports[local] = Import(local, "", name, match.start())
    for match in filter(is_code, (_DEFAULT.match(text, at) for at in exported)):
        found.exports.setdefault(DEFAULT, Import(DEFAULT, "", match[1], match.start()))
    for match in filter(is_code, (_EXPORTS.match(text, at) for at in exported)):
        found.exports.setdefault(
            match[1], Import(match[1], "", match[2], match.start())
        )
    for match in filter(
        is_code,
        (
            current_match
            for pattern, _ in words
            for current_match in pattern.finditer(text)
        ),
    ):
        if match[1].startswith("{"):
            for name, local in _pairs(match[1].strip("{}").replace(":", " as ")):
                found.add(Import(local, match[2], name, match.start()))
        else:
            found.add(
                Import(match[1], match[2], match["member"] or WHOLE, match.start())
            )


def may_rename(symbols: FileSymbols, name: str) -> bool:
    """Return whether a file may have an alias for a name; if it does, ``read_imports`` finds it.

    Hardly any file has one, and checking the text around the name takes a hundredth of the time of reading all imports.
    """
    data = symbols.data
    if symbols.language == "go":
        return False
    is_ecma = symbols.language in ECMA
    size = len(name.encode())
    after = (
        _ALIASED_IN_OBJECT
        if is_ecma and (b"require(" in data or b"import(" in data)
        else _ALIASED
    )
    before = _ALIASES_IN_OBJECT if b"exports" in data else _ALIASES
    # For most words, how the text before them ends is enough; the expression takes ten
    # times as long.
    return any(
        after.match(data, at + size)
        or (
            is_ecma
            and data[max(0, at - _MOST_BEFORE) : at].rstrip().endswith(_ENDS_BEFORE)
            and before.search(data, max(0, at - _MOST_BEFORE), at)
        )
        for at in symbols.words(name.encode(), fold=False)
    )


def may_export(symbols: FileSymbols, name: str) -> bool:
    """Return whether a file may export a name: a barrel re-exports a hundred files, only one of which has the name."""
    if symbols.language not in ECMA or name == DEFAULT or name.encode() in symbols.data:
        return True
    return _REEXPORTS_ALL.search(symbols.data) is not None


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, local name) of ``a, b as c``."""
    for part in text.split(","):
        name, _, local = (
            piece.strip()
            for piece in part.strip().removeprefix("type ").partition(" as ")
        )
        if name:
            yield name, local or name
