"""Whether a use of a name means a certain definition: by scope, import, class or receiver type, else by name alone."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flashgrep.ingest.parse.describe import receiver
from flashgrep.ingest.parse.lookup import OWN, FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, NAME_END, START, TYPE_KINDS
from flashgrep.search.research_graph import Definition, Resolution

_FAMILIES: Final = (
    {"javascript", "typescript", "tsx", "vue", "svelte", "astro"},
    {"c", "cpp", "cuda", "objc", "objcpp"},
    {"java", "kotlin", "scala", "groovy"},
    {"ocaml", "ocaml_interface"},
)
_EXPLICIT: Final = frozenset({"python", "javascript", "typescript", "tsx", "go", "rust", "php", "lua", "zig"})
"""Languages in which a method is never called by its bare name."""
_IMPORTING: Final = frozenset({"python", "javascript", "typescript", "tsx", "rust"})
"""Languages in which a name of another file must be imported by name (or by a wildcard)."""
_PACKAGED: Final = frozenset({"go", "java", "kotlin", "scala", "csharp", "swift", "php"})
"""Languages in which files of one folder see each other's names."""
_METHODS: Final = frozenset({"method", "constructor", "field", "property"})
_EVERYDAY: Final = frozenset({
    "acquire", "add", "all", "any", "append", "apply", "begin", "call", "cancel", "clear", "close", "commit",
    "connect", "copy", "count", "create", "cursor", "decode", "delete", "discard", "encode", "end", "endswith",
    "equals", "execute", "exists", "extend", "fetchall", "fetchone", "fileno", "filter", "find", "findall", "first",
    "flush", "format", "get", "group", "hashCode", "index", "init", "insert", "items", "join", "keys", "last",
    "length", "list", "load", "lower", "map", "match", "name", "new", "next", "open", "parse", "pop", "popitem",
    "push", "push_back", "put", "read", "readline", "readlines", "release", "remove", "render", "replace", "reset",
    "result", "rollback", "run", "save", "search", "seek", "send", "set", "setdefault", "size", "sort", "split",
    "start", "startswith", "stop", "strip", "sub", "tell", "then", "toString", "union", "update", "upper", "value",
    "values", "wait", "write", "writelines",
})  # fmt: skip
"""Method names half the world has: by name alone they mean little."""
_GUESS: Final = 0.6
_HEAD: Final = 1_500
"""Bytes after a function's name in which its parameters end."""
_TYPE: Final = (
    rb"[\"']?(?:(?:Optional|Type|type|Final|ClassVar|Annotated)\[)?[\"'&*]*((?:[A-Za-z_]\w*(?:\.|::))*[A-Za-z_]\w*)"
)
_BUILTIN_TYPES: Final = frozenset({"str", "int", "dict", "list", "set", "bytes", "float", "bool", "tuple", "string"})
_CONSTRUCTED: Final = re.compile(rb"\b(_*[A-Z]\w*)(?:<[^<>]*>)?(?:\([^()]*\)|\{[^{}]*\})\)?\s*\.\s*$")
_SUPER: Final = re.compile(rb"super\([^()]*\)\s*\.\s*$")


Ancestors = Callable[[str], frozenset[str]]
"""Returns the names of all types a type builds upon, near and far."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a name is used."""

    path: bytes
    symbols: FileSymbols
    offset: int

    @property
    def receiver(self) -> str | None:
        """What the name is used on."""
        if _SUPER.search(self.symbols.data, max(0, self.offset - 60), self.offset):
            return "super"
        return receiver(self.symbols.data, self.offset, self.symbols.language)

    def types_around(self) -> list[int]:
        """Return the types the place is in, innermost first."""
        found = []
        at = self.symbols.enclosing(self.offset)
        while at >= 0:
            if self.symbols.kind(at) in TYPE_KINDS:
                found.append(at)
            at = self.symbols.parent(at)
        return found

    def owners(self) -> list[str]:
        """Return the names of the types the place belongs to, a receiver's type (Go) among them."""
        around = self.symbols.enclosing(self.offset)
        names = [self.symbols.name(index) for index in self.types_around()]
        while around >= 0 and not names:
            names = [part for part in self.symbols.container(around).split(".") if part][::-1]
            around = self.symbols.parent(around)
        return names


@dataclass(frozen=True, slots=True)
class Resolver:
    """Tells what a use means among all definitions of its name (``rivals``), knowing which type builds upon which."""

    rivals: Sequence[Definition]
    ancestors: Ancestors

    def resolve(self, use: Use, target: Definition) -> Resolution | None:
        """Return how sure it is that the use means the target; None: it means something else."""
        if not _same_family(use.symbols.language, target.language):
            return None
        on = use.receiver
        if on is None:
            return self._bare(use, target)
        if on in OWN:
            return self._own(use, target)
        return self._on_something(use, target, on)

    def _bare(self, use: Use, target: Definition) -> Resolution | None:
        if target.kind in _METHODS and target.owner:
            return self._bare_method(use, target)
        if not _in_scope(use, target) or _is_parameter(use, target.name):
            return None
        if use.path == target.path:
            return Resolution(0.95, "same file")
        if any(rival.path == use.path and rival.kind not in _METHODS for rival in self.rivals if _in_scope(use, rival)):
            return None
        return _imported(use, target) or self._unimported(use, target)

    def _unimported(self, use: Use, target: Definition) -> Resolution | None:
        language = use.symbols.language
        if language in _PACKAGED and target.path.rpartition(b"/")[0] == use.path.rpartition(b"/")[0]:
            return Resolution(0.9, "same package")
        return None if language in _IMPORTING else self._by_name(target)

    def _bare_method(self, use: Use, target: Definition) -> Resolution | None:
        if use.symbols.language in _EXPLICIT:
            return None
        if target.owner in use.owners():
            return Resolution(0.95, "same class")
        if target.owner in self._bases(use):
            return Resolution(0.9, "inherited")
        if any(rival.kind not in _METHODS for rival in self.rivals):
            return None
        return Resolution(0.4, "name only") if use.owners() else None

    def _own(self, use: Use, target: Definition) -> Resolution | None:
        mine = use.owners()[:1]
        if use.receiver != "super" and any(rival.owner in mine for rival in self.rivals):
            return Resolution(0.95, "same class") if target.owner in mine else self._overridden(use, target)
        bases = self._bases(use)
        if target.owner and target.owner in bases:
            return Resolution(0.9 if self._nearest(use, target) else 0.4, "inherited")
        return self._overridden(use, target)

    def _overridden(self, use: Use, target: Definition) -> Resolution | None:
        """Return how sure it is that a base calls, on itself, what a type built upon it defines."""
        mine = use.owners()[:1]
        if mine and target.owner and mine[0] in self.ancestors(target.owner) and use.receiver != "super":
            return Resolution(0.4, "overridden")
        return None

    def _nearest(self, use: Use, target: Definition) -> bool:
        """Whether no other definition stands between a type and the base that defines the target."""
        between = {rival.owner for rival in self.rivals} & self._bases(use) - {target.owner}
        return not any(target.owner in self.ancestors(owner) for owner in between)

    def _bases(self, use: Use) -> frozenset[str]:
        owners = use.owners()
        return self.ancestors(owners[0]) if owners else frozenset()

    def _on_something(self, use: Use, target: Definition, on: str) -> Resolution | None:
        if on and on == target.owner:
            return Resolution(0.95, "qualified")
        module = _is_module(use, on)
        if target.kind not in _METHODS:
            return _of_module(use, target, on, module)
        return None if module else self._of_type(use, target, on)

    def _of_type(self, use: Use, target: Definition, on: str) -> Resolution | None:
        known = infer_type(use, on) if on else _constructed(use)
        if known is None or not known[:1].isupper():
            return None if known in _BUILTIN_TYPES else self._by_name(target)
        if known == target.owner:
            return Resolution(0.9, "receiver type")
        if any(rival.owner == known for rival in self.rivals):
            return None
        if target.owner in self.ancestors(known):
            return Resolution(0.85, "receiver type, inherited")
        if known in self.ancestors(target.owner):
            return Resolution(0.5, "receiver type, overridden")
        return Resolution(0.2, "name only")

    def _by_name(self, target: Definition) -> Resolution:
        if target.name in _EVERYDAY and target.kind in _METHODS:
            return Resolution(0.2, "name only")
        share = self._share(target)
        return Resolution(0.85 if share == 1 and target.kind not in _METHODS else _GUESS * share, "name only")

    def _share(self, target: Definition) -> float:
        """Return one by the number of definitions it may be; those of one family of types count as one."""
        alike = [rival for rival in self.rivals if _same_family(rival.language, target.language)]
        owners = {rival.owner for rival in alike}
        families = {min(self.ancestors(one.owner) & owners or {one.owner}) or str(one.path) for one in alike}
        return 1 / max(1, len(families))


def _same_family(one: str, other: str) -> bool:
    return one == other or any(one in family and other in family for family in _FAMILIES)


def _of_module(use: Use, target: Definition, on: str, module: str) -> Resolution | None:
    if on and (on == target.stem or module) and (module or on) in _modules_of(target):
        return Resolution(0.95, "module")
    explicit = use.symbols.language in _EXPLICIT
    return Resolution(0.3, "name only") if on and not target.owner and not explicit else None


def _in_scope(use: Use, target: Definition) -> bool:
    """Whether a definition inside a function is seen from the place."""
    around = target.symbols.parent(target.index) if target.index >= 0 else -1
    if around < 0 or target.symbols.kind(around) not in CALLABLE_KINDS:
        return True
    row = target.symbols.rows[around]
    return use.path == target.path and row[START] <= use.offset < row[END]


def _is_parameter(use: Use, name: str) -> bool:
    """Whether a function around the place has a parameter of the name."""
    around = use.symbols.enclosing(use.offset)
    while around >= 0:
        row = use.symbols.rows[around]
        head = use.symbols.data[row[NAME_END] : row[NAME_END] + _HEAD]
        parameters = re.match(rb"\s*(?:<[^<>]*>)?\s*\(((?:[^()]|\([^()]*\))*)\)", head)
        if parameters and re.search(rb"(?:^|[,*&\s])" + re.escape(name.encode()) + rb"\s*(?:[:=,?]|$)", parameters[1]):
            return True
        around = use.symbols.parent(around)
    return False


# Imports


def _imported(use: Use, target: Definition) -> Resolution | None:
    """Return how an import brings the name into the file, if one does."""
    word = re.compile(rb"(?<![\w$])" + re.escape(target.name.encode()) + rb"(?![\w$])")
    for statement in _statements(use.symbols):
        module = _module_words(statement)
        if word.search(statement):
            if module & _modules_of(target):
                return Resolution(0.95, "import")
            if statement.lstrip().startswith(b"from .") or b"'." in statement or b'".' in statement:
                return Resolution(0.8, "import of the same package")
        elif (b"*" in statement or (b"::" not in statement and b"#include" in statement)) and target.stem in module:
            return Resolution(0.85, "import")
    return None


def imported_as(symbols: FileSymbols, name: str) -> set[str]:
    """Return other names a file gives to what it imports by the name."""
    word = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"\s+as\s+(\w+)")
    found = (word.search(statement) for statement in _statements(symbols))
    return {one[1].decode("utf-8", "replace") for one in found if one} - {name}


def _statements(symbols: FileSymbols) -> Iterator[bytes]:
    return (symbols.data[start:end] for start, end in symbols.parsed.statements.tolist())


def _module_words(statement: bytes) -> set[str]:
    return set(re.findall(r"[\w$-]+", statement.decode("utf-8", "replace")))


def _modules_of(target: Definition) -> set[str]:
    """Return names the target's module may be imported by: its file's and its folders'."""
    folders = target.path.decode("utf-8", "replace").split("/")[:-1]
    return {target.stem, *folders}


def _is_module(use: Use, on: str) -> str:
    """Return the module a word stands for by an import, or nothing."""
    if not on:
        return ""
    word = re.compile(rb"(?<![\w$.])" + re.escape(on.encode()) + rb"(?![\w$])")
    for statement in _statements(use.symbols):
        if not word.search(statement):
            continue
        alias = re.search(rb"([\w$.:/-]+)[\"']?\s+as\s+" + re.escape(on.encode()) + rb"\b", statement)
        if alias:
            return re.split(r"[.:/]+", alias[1].decode("utf-8", "replace"))[-1]
        if not on[:1].isupper():
            return on
    return ""


# Types


def _constructed(use: Use) -> str | None:
    """Return the type in ``Type(…).name``."""
    found = _CONSTRUCTED.search(use.symbols.data, max(0, use.offset - 200), use.offset)
    return found[1].decode("utf-8", "replace") if found else None


def infer_type(use: Use, on: str) -> str | None:
    """Return the type a word has by its annotation or the constructor it was set from, as far as the text tells."""
    around = use.symbols.enclosing(use.offset)
    start, end = (use.symbols.rows[around][2], use.offset) if around >= 0 else (0, use.offset)
    found = _declared(use.symbols.data[start:end], on.encode())
    if found is None:
        for index in use.types_around()[:1]:
            row = use.symbols.rows[index]
            found = _declared(use.symbols.data[row[2] : row[3]], on.encode())
    return found


def _declared(text: bytes, word: bytes) -> str | None:
    name = rb"(?<![\w$.])(?:self\.|this\.|@)?" + re.escape(word)
    patterns = (
        name + rb"\s*:(?!=)\s*" + _TYPE,
        name + rb"\s*:?=\s*(?:await\s+|new\s+|&|\*)*((?:[A-Za-z_]\w*(?:\.|::))*(?:_*[A-Z]\w*))(?:<[^<>\n]*>)?\s*[({]",
        rb"(?<![\w$.])([A-Z]\w*)(?:<[^<>\n]*>|\[\])?[*&\s]+" + re.escape(word) + rb"\b(?=\s*[=;,)])",
        name + rb"\s+\*?((?:\w+\.)?[A-Z]\w*)\b(?=\s*[,)])",
    )
    for pattern in patterns:
        found = re.findall(pattern, text)
        if found:
            last: bytes = found[-1]
            return re.split(r"\.|::", last.decode("utf-8", "replace"))[-1]
    return None
