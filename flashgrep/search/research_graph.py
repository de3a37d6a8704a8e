"""What research finds: symbols, the edges between them with their evidence, and the chains they make.

``Resolver`` tells what a use of a name means: by scope, import, class or receiver type, else by name alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from flashgrep.ingest.parse.describe import receiver
from flashgrep.ingest.parse.lookup import OWN, FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, NAME_END, START, TYPE_KINDS
from flashgrep.languages import FAMILIES

EdgeKind = Literal["calls", "uses", "implements", "imports"]
CHAINS: Final = 50
"""Chains shown; a busy function has thousands."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A symbol in its file; ``index`` -1: the file's top level."""

    path: bytes
    symbols: FileSymbols
    index: int

    @property
    def key(self) -> tuple[bytes, int]:
        """What tells a symbol from every other: its file and where its name stands."""
        return self.path, self.symbols.row(self.index)[0] if self.index >= 0 else -1

    @property
    def name(self) -> str:
        """The symbol's own name; the file's for its top level."""
        if self.index < 0:
            return self.path.rpartition(b"/")[2].decode("utf-8", "replace")
        return self.symbols.name(self.index)

    @property
    def qualified(self) -> str:
        """The symbol's name with what it is in."""
        return self.symbols.qualified(self.index) if self.index >= 0 else self.name

    @property
    def kind(self) -> str:
        """The symbol's kind; ``file`` for a top level."""
        return self.symbols.kind(self.index) if self.index >= 0 else "file"

    @property
    def owner(self) -> str:
        """The name of the type or scope right around it, or nothing."""
        return self.symbols.container(self.index).rpartition(".")[2] if self.index >= 0 else ""

    @property
    def language(self) -> str:
        """The file's language."""
        return self.symbols.language

    @property
    def stem(self) -> str:
        """The file's module name: its name without endings, its folder's for a package's own file."""
        folder, _, name = self.path.decode("utf-8", "replace").rpartition("/")
        stem = name.partition(".")[0]
        return folder.rpartition("/")[2] if stem in {"__init__", "index", "mod", "lib"} and folder else stem


@dataclass(frozen=True, slots=True)
class Resolution:
    """How sure it is that a use means a definition (0 to 1), and by what it was told."""

    confidence: float
    how: str


@dataclass(slots=True)
class Node:
    """A symbol of the answer and how many hops it is from what was asked about."""

    definition: Definition
    hop: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One symbol using another: the line that shows it, and how sure it is."""

    source: tuple[bytes, int]
    target: tuple[bytes, int]
    kind: EdgeKind
    path: bytes
    line: int
    text: str
    resolution: Resolution


@dataclass(slots=True)
class Graph:
    """Nodes by key and edges, each once."""

    nodes: dict[tuple[bytes, int], Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def add_node(self, definition: Definition, hop: int) -> bool:
        """Add a symbol unless it is there; return whether it is new."""
        if definition.key in self.nodes:
            return False
        self.nodes[definition.key] = Node(definition, hop)
        return True

    def add_edge(self, edge: Edge) -> bool:
        """Add an edge unless the same line showed it already."""
        key = (edge.source, edge.target, edge.kind, edge.path, edge.line)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.edges.append(edge)
        return True

    def chains(self, roots: list[tuple[bytes, int]], *, inward: bool) -> list[list[tuple[bytes, int]]]:
        """Return paths from each root along its edges to where they end, surest and shortest first."""
        steps: dict[tuple[bytes, int], list[tuple[bytes, int]]] = {}
        for edge in sorted(self.edges, key=lambda edge: -edge.resolution.confidence):
            here, there = (edge.target, edge.source) if inward else (edge.source, edge.target)
            if there not in steps.setdefault(here, []):
                steps[here].append(there)
        found = []
        for root in roots:
            for chain in _walk(steps, [root]):
                found.append(chain)
                if len(found) >= CHAINS:
                    return found
        return found

    def dependencies(self) -> Counter[tuple[bytes, bytes]]:
        """Return how many edges lead from one file to another."""
        return Counter((edge.source[0], edge.target[0]) for edge in self.edges if edge.source[0] != edge.target[0])


def _walk(
    steps: dict[tuple[bytes, int], list[tuple[bytes, int]]], so_far: list[tuple[bytes, int]]
) -> Iterator[list[tuple[bytes, int]]]:
    following = [key for key in steps.get(so_far[-1], []) if key not in so_far]
    if not following and len(so_far) > 1:
        yield so_far
    for key in following:
        yield from _walk(steps, [*so_far, key])


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
            is_method = target.kind in _METHODS and target.owner
            return self._resolve_bare_method(use, target) if is_method else self._resolve_bare(use, target)
        return self._resolve_own(use, target) if on in OWN else self._resolve_on(use, target, on)

    def _resolve_bare(self, use: Use, target: Definition) -> Resolution | None:
        if not _in_scope(use, target) or _is_parameter(use, target.name):
            return None
        if use.path == target.path:
            return Resolution(0.95, "same file")
        if any(rival.path == use.path and rival.kind not in _METHODS for rival in self.rivals if _in_scope(use, rival)):
            return None
        language, folder = use.symbols.language, use.path.rpartition(b"/")[0]
        resolution = _resolve_import(use, target)
        if resolution is None and language in _PACKAGED and target.path.rpartition(b"/")[0] == folder:
            resolution = Resolution(0.9, "same package")
        return resolution or (None if language in _IMPORTING else self._resolve_by_name(target))

    def _resolve_bare_method(self, use: Use, target: Definition) -> Resolution | None:
        if use.symbols.language in _EXPLICIT:
            return None
        if target.owner in use.owners():
            return Resolution(0.95, "same class")
        if target.owner in self._bases_around(use):
            return Resolution(0.9, "inherited")
        if any(rival.kind not in _METHODS for rival in self.rivals):
            return None
        return Resolution(0.4, "name only") if use.owners() else None

    def _resolve_own(self, use: Use, target: Definition) -> Resolution | None:
        mine, is_super = use.owners()[:1], use.receiver == "super"
        if not is_super and any(rival.owner in mine for rival in self.rivals):
            if target.owner in mine:
                return Resolution(0.95, "same class")
        else:
            bases = self._bases_around(use)
            if target.owner and target.owner in bases:
                # Less sure where another definition stands between the type and the base that defines the target.
                between = {rival.owner for rival in self.rivals} & bases - {target.owner}
                is_hidden = any(target.owner in self.ancestors(owner) for owner in between)
                return Resolution(0.4 if is_hidden else 0.9, "inherited")
        # A base may call, on itself, what a type built upon it defines.
        if mine and target.owner and mine[0] in self.ancestors(target.owner) and not is_super:
            return Resolution(0.4, "overridden")
        return None

    def _bases_around(self, use: Use) -> frozenset[str]:
        owners = use.owners()
        return self.ancestors(owners[0]) if owners else frozenset()

    def _resolve_on(self, use: Use, target: Definition, on: str) -> Resolution | None:
        if on and on == target.owner:
            return Resolution(0.95, "qualified")
        module = _find_module(use, on)
        if target.kind in _METHODS:
            return None if module else self._resolve_by_type(use, target, on)
        if on and (on == target.stem or module) and (module or on) in _modules_of(target):
            return Resolution(0.95, "module")
        is_explicit = use.symbols.language in _EXPLICIT
        return Resolution(0.3, "name only") if on and not target.owner and not is_explicit else None

    def _resolve_by_type(self, use: Use, target: Definition, on: str) -> Resolution | None:
        constructed = None if on else _CONSTRUCTED.search(use.symbols.data, max(0, use.offset - 200), use.offset)
        known = constructed[1].decode("utf-8", "replace") if constructed else infer_type(use, on) if on else None
        if known is None or not known[:1].isupper():
            return None if known in _BUILTIN_TYPES else self._resolve_by_name(target)
        if known == target.owner:
            return Resolution(0.9, "receiver type")
        if any(rival.owner == known for rival in self.rivals):
            return None
        if target.owner in self.ancestors(known):
            return Resolution(0.85, "receiver type, inherited")
        if known in self.ancestors(target.owner):
            return Resolution(0.5, "receiver type, overridden")
        return Resolution(0.2, "name only")

    def _resolve_by_name(self, target: Definition) -> Resolution:
        """Return one by the number of definitions it may be; those of one family of types count as one."""
        if target.name in _EVERYDAY and target.kind in _METHODS:
            return Resolution(0.2, "name only")
        alike = [rival for rival in self.rivals if _same_family(rival.language, target.language)]
        owners = {rival.owner for rival in alike}
        families = {min(self.ancestors(one.owner) & owners or {one.owner}) or str(one.path) for one in alike}
        if len(families) <= 1 and target.kind not in _METHODS:
            return Resolution(0.85, "name only")
        return Resolution(_GUESS / max(1, len(families)), "name only")


def _same_family(one: str, other: str) -> bool:
    return FAMILIES.get(one, one) == FAMILIES.get(other, other)


def _in_scope(use: Use, target: Definition) -> bool:
    """Whether a definition inside a function is seen from the place."""
    around = target.symbols.parent(target.index) if target.index >= 0 else -1
    if around < 0 or target.symbols.kind(around) not in CALLABLE_KINDS:
        return True
    row = target.symbols.row(around)
    return use.path == target.path and row[START] <= use.offset < row[END]


def _is_parameter(use: Use, name: str) -> bool:
    """Whether a function around the place has a parameter of the name."""
    around = use.symbols.enclosing(use.offset)
    while around >= 0:
        row = use.symbols.row(around)
        head = use.symbols.data[row[NAME_END] : row[NAME_END] + _HEAD]
        parameters = re.match(rb"\s*(?:<[^<>]*>)?\s*\(((?:[^()]|\([^()]*\))*)\)", head)
        if parameters and re.search(rb"(?:^|[,*&\s])" + re.escape(name.encode()) + rb"\s*(?:[:=,?]|$)", parameters[1]):
            return True
        around = use.symbols.parent(around)
    return False


def _resolve_import(use: Use, target: Definition) -> Resolution | None:
    """Return how an import brings the name into the file, if one does."""
    word = re.compile(rb"(?<![\w$])" + re.escape(target.name.encode()) + rb"(?![\w$])")
    for statement in _statements(use.symbols):
        module = set(re.findall(r"[\w$-]+", statement.decode("utf-8", "replace")))
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


def _modules_of(target: Definition) -> set[str]:
    """Return names the target's module may be imported by: its file's and its folders'."""
    folders = target.path.decode("utf-8", "replace").split("/")[:-1]
    return {target.stem, *folders}


def _find_module(use: Use, on: str) -> str:
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


def infer_type(use: Use, on: str) -> str | None:
    """Return the type a word has by its annotation or the constructor it was set from, as far as the text tells."""
    around = use.symbols.enclosing(use.offset)
    start, end = (use.symbols.row(around)[START], use.offset) if around >= 0 else (0, use.offset)
    found = _find_declared_type(use.symbols.data[start:end], on.encode())
    if found is None:
        for index in use.types_around()[:1]:
            row = use.symbols.row(index)
            found = _find_declared_type(use.symbols.data[row[START] : row[END]], on.encode())
    return found


def _find_declared_type(text: bytes, word: bytes) -> str | None:
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
