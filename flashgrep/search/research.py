"""Research: what calls, uses, implements or imports what, followed hop by hop, each symbol and each line once.

``advance`` makes one hop, so that the caller can report progress, or stop, between hops. Budgets bound every hop; what
they cut is counted in ``left_out``.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flashgrep.index.table import tier_of
from flashgrep.ingest.parse.lookup import FileSymbols, Role, split_name
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, START, TYPE_KINDS
from flashgrep.model import Skipped
from flashgrep.search.research_graph import Definition, Edge, EdgeKind, Graph, Resolution
from flashgrep.search.research_question import Asked, understand
from flashgrep.search.research_resolve import Resolver, Use, imported_as
from flashgrep.search.symbol_source import SymbolSource

MOST_NODES: Final = 300
MOST_FRONTIER: Final = 60
"""Symbols followed in one hop, the surest first."""
MOST_FILES: Final = 2_000
"""Files looked at for one name: a name in more is no name to follow."""
MOST_SEEDS: Final = 8
LEAST: Final = 0.3
"""Edges less sure than this are counted, not shown."""
FOLLOWED: Final = 0.5
"""Edges less sure than this are shown and not followed."""
_SURE: Final = 0.9
PATH_HOPS: Final = 6
_STEM: Final = 4
_INWARD: Final = frozenset({"callers", "usages", "implementations", "imports", "path", "free"})


@dataclass(frozen=True, slots=True)
class Conformance:
    """A type that implements another, and whether an extension of it says so."""

    type: str
    base: str
    path: bytes
    line: int
    extension: bool


@dataclass(slots=True)
class Research:
    """One question, its graph so far, and where the next hop starts."""

    query: str
    depth: int
    deadline: float | None = None
    asked: Asked = field(init=False)
    graph: Graph = field(default_factory=Graph)
    roots: list[Definition] = field(default_factory=list)
    conformances: list[Conformance] = field(default_factory=list)
    hop: int = 0
    complete: bool = True
    left_out: int = 0
    unsure: int = 0
    goals: list[Definition] = field(default_factory=list)
    _frontier: list[Definition] = field(default_factory=list)
    _bare_names: list[str] = field(default_factory=list)
    _files: dict[bytes, FileSymbols | None] = field(default_factory=dict)
    _known: dict[str, list[Definition]] = field(default_factory=dict)
    _above: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asked = understand(self.query)

    @property
    def inward(self) -> bool:
        """Whether chains are read from what was asked about to those that use it."""
        return self.asked.kind in _INWARD

    @property
    def files_read(self) -> int:
        """How many files were looked at."""
        return len(self._files)

    @property
    def hops(self) -> int:
        """How many hops there may be."""
        return PATH_HOPS if self.asked.kind == "path" else self.depth

    def advance(self, source: SymbolSource) -> bool:
        """Find the roots, then make one hop a call; return whether there is more to follow."""
        if not self.hop:
            self._begin(source)
        self.hop += 1
        frontier, self._frontier = self._frontier, []
        names, self._bare_names = self._bare_names, []
        self._left(max(0, len(frontier) - MOST_FRONTIER))
        for definition in frontier[:MOST_FRONTIER]:
            self._follow(source, definition)
        for name in names:  # what is not defined here: a library's protocol, say
            self._inward_by_name(source, name)
        reached = any(goal.key in self.graph.nodes for goal in self.goals)
        return bool(self._frontier) and self.hop < self.hops and self.complete and not reached

    # Where to begin

    def _begin(self, source: SymbolSource) -> None:
        if self.asked.kind == "free":
            self.roots = self._seeds(source)
        elif self.asked.kind == "path":
            self.goals = self._named(source, self.asked.names[0])
            self.roots = self._named(source, self.asked.names[1])
        else:
            self.roots = self._named(source, self.asked.names[0])
            if not self.roots or self.asked.kind == "imports":
                self._bare_names = [split_name(self.asked.names[0])[1]]
        for root in self.roots:
            self.graph.add_node(root, 0)
        self._frontier = [] if self.asked.kind == "definition" else list(self.roots)

    def _named(self, source: SymbolSource, written: str) -> list[Definition]:
        """Return the definitions a name as written may mean."""
        qualifiers, name = split_name(written)
        found = self._definitions(source, name)
        if not found and not qualifiers and self.asked.kind != "imports":
            found = self._definitions(source, name, fold=True)
        matching = [one for one in found if _ends_with(one, qualifiers)]
        return sorted(
            matching or ([] if qualifiers else found), key=lambda one: (tier_of(one.path), one.path, one.key[1])
        )

    def _definitions(self, source: SymbolSource, name: str, *, fold: bool = False) -> list[Definition]:
        """Return all definitions of a name; declarations only where nothing defines it."""
        key = name.lower() if fold else name
        if key in self._known and not fold:
            return self._known[key]
        paths = source.defining(name, prefix=False)
        found: dict[Role, list[Definition]] = {}
        for path, symbols in self._opened(source, source.candidates(name, fold=fold) if paths is None else paths):
            for offset, role in symbols.places(name, fold=fold):
                index = symbols.index_at(offset)
                if index >= 0 and symbols.kind(index) != "package":
                    found.setdefault(role, []).append(Definition(path, symbols, index))
        chosen = found.get("definition") or found.get("declaration") or []
        if not fold:
            self._known[key] = chosen
        return chosen

    def _seeds(self, source: SymbolSource) -> list[Definition]:
        """Return the definitions whose names have most of the question's words, sources first."""
        stems = [word.lower()[: max(_STEM, len(word) - 3)] for word in self.asked.names]
        scored: dict[tuple[bytes, int], tuple[int, Definition]] = {}
        for word in self.asked.names:
            for one in self._definitions(source, split_name(word)[1]):
                scored[one.key] = (len(stems) + 1, one)
        for stem in stems:
            for path, symbols in self._opened(source, source.candidates(stem, fold=True)):
                for index in range(len(symbols.rows)):
                    one = Definition(path, symbols, index)
                    if stem in symbols.name(index).lower() and one.kind in CALLABLE_KINDS | TYPE_KINDS:
                        shared = sum(other in one.qualified.lower() for other in stems)
                        scored.setdefault(one.key, (shared, one))
        best = sorted(
            scored.values(), key=lambda pair: (-pair[0], tier_of(pair[1].path), len(pair[1].name), pair[1].path)
        )
        return [one for _, one in best[:MOST_SEEDS]]

    # One hop

    def _follow(self, source: SymbolSource, definition: Definition) -> None:
        match self.asked.kind:
            case "callees":
                self._outward(source, definition, "call", "calls")
            case "supertypes":
                self._outward(source, definition, "base", "implements")
            case "implementations":
                self._inward(source, definition, frozenset({"implementation"}))
            case "callers" | "path":
                self._inward(source, definition, frozenset({"call"}))
            case "imports":
                self._inward(source, definition, frozenset({"import"}))
            case "usages":
                self._inward(source, definition, frozenset({"call", "reference", "implementation", "import"}))
            case _:
                self._inward(source, definition, frozenset({"call", "implementation"}))
                if self.hop == 1:
                    self._outward(source, definition, "call", "calls")

    def _inward(self, source: SymbolSource, target: Definition, roles: frozenset[str]) -> None:
        """Find who uses a definition."""
        resolver = self._resolver(source, target.name)
        for use, role in self._uses(source, target.name, roles):
            resolution = _inherits(resolver, use, target) if role == "implementation" else resolver.resolve(use, target)
            if resolution is None or (resolution.confidence < LEAST):
                self.unsure += resolution is not None
            else:
                self._used_by(source, use, target, role, resolution)

    def _inward_by_name(self, source: SymbolSource, name: str) -> None:
        """Find who uses a name that nothing here defines."""
        kinds = {"implementations": {"implementation"}, "callers": {"call"}, "imports": {"import"}}
        roles = kinds.get(self.asked.kind, {"call", "reference", "implementation", "import"})
        for use, role in self._uses(source, name, frozenset(roles)):
            user = self._user(use, role, source)
            if self._add(user):
                self._note(use, user, role, name)

    def _uses(self, source: SymbolSource, name: str, roles: frozenset[str]) -> Iterator[tuple[Use, Role]]:
        for path, symbols in self._opened(source, source.candidates(name, fold=False)):
            for called in (name, *imported_as(symbols, name)):
                for offset, role in symbols.places(called):
                    if role in roles and symbols.index_at(offset) < 0:
                        yield Use(path, symbols, offset), role

    def _resolver(self, source: SymbolSource, name: str) -> Resolver:
        return Resolver(self._definitions(source, name), lambda one: self._ancestors(source, one))

    def _ancestors(self, source: SymbolSource, name: str) -> frozenset[str]:
        """Return the names of all types a type builds upon; kept, for every method asks."""
        if name not in self._above:
            self._above[name] = frozenset()  # a circle ends here
            near = {base for one in self._definitions(source, name) for base in _bases(one)} if name else set()
            self._above[name] = frozenset(near.union(*(self._ancestors(source, base) for base in near)) - {name})
        return self._above[name]

    def _used_by(self, source: SymbolSource, use: Use, target: Definition, role: Role, resolution: Resolution) -> None:
        user = self._user(use, role, source)
        new = self._add(user)
        if user.key in self.graph.nodes:
            self.graph.add_edge(_edge(use, user, target, role, resolution))
            self._note(use, user, role, target.name)
        if new and resolution.confidence >= FOLLOWED and user.index >= 0:
            self._frontier.append(user)

    def _user(self, use: Use, role: Role, source: SymbolSource) -> Definition:
        """Return the symbol a use is in; the type an extension extends, where that is defined here."""
        index = use.symbols.enclosing(use.offset)
        if role == "import":
            return Definition(use.path, use.symbols, -1)
        user = Definition(use.path, use.symbols, index)
        if role == "implementation" and user.kind == "extension":
            extended = self._definitions(source, _plain(user.name))
            return next((one for one in extended if one.kind in TYPE_KINDS), user)
        return user

    def _note(self, use: Use, user: Definition, role: Role, base: str) -> None:
        if role == "implementation":
            around = use.symbols.enclosing(use.offset)
            extension = around >= 0 and use.symbols.kind(around) == "extension"
            line = use.symbols.lines.line(use.offset)
            self.conformances.append(Conformance(_plain(user.name), base, use.path, line, extension))

    def _outward(self, source: SymbolSource, user: Definition, mark: str, kind: EdgeKind) -> None:
        """Find what a definition calls or builds upon."""
        if user.index < 0:
            return
        row = user.symbols.rows[user.index]
        offsets = user.symbols.parsed.marked(mark)
        for offset in offsets[(offsets >= row[2]) & (offsets < row[3])].tolist():
            use = Use(user.path, user.symbols, offset)
            resolver = self._resolver(source, user.symbols.word_at(offset))
            target, resolution = _best(resolver, use, inherits=mark == "base")
            if target is None or resolution is None:
                continue
            if resolution.confidence < LEAST:
                self.unsure += 1
                continue
            if self._add(target) and resolution.confidence >= FOLLOWED:
                self._frontier.append(target)
            if target.key in self.graph.nodes:
                self.graph.add_edge(
                    _edge(use, user, target, "implementation" if kind == "implements" else "call", resolution)
                )

    def _add(self, definition: Definition) -> bool:
        if definition.key not in self.graph.nodes and len(self.graph.nodes) >= MOST_NODES:
            self._left(1)
            return False
        return self.graph.add_node(definition, self.hop)

    def _left(self, count: int) -> None:
        self.left_out += count

    def _opened(self, source: SymbolSource, paths: Iterable[bytes]) -> Iterator[tuple[bytes, FileSymbols]]:
        for number, path in enumerate(paths):
            if number >= MOST_FILES or (self.deadline is not None and time.monotonic() > self.deadline):
                self.complete = False
                return
            if path not in self._files:
                opened = source.open(path)
                self._files[path] = None if isinstance(opened, Skipped) else opened
            symbols = self._files[path]
            if symbols is not None:
                yield path, symbols


def _ends_with(definition: Definition, qualifiers: list[str]) -> bool:
    around = [part for part in definition.symbols.container(definition.index).split(".") if part]
    return not qualifiers or around[-len(qualifiers) :] == qualifiers or [definition.stem] == qualifiers[-1:]


def _plain(name: str) -> str:
    return name.partition("<")[0].partition("[")[0].rpartition(".")[2] or name


def _bases(definition: Definition) -> set[str]:
    """Return the names a type builds upon, as its own text says."""
    if definition.index < 0 or definition.kind not in TYPE_KINDS:
        return set()
    row = definition.symbols.rows[definition.index]
    offsets = definition.symbols.parsed.marked("base")
    inside = offsets[(offsets >= row[START]) & (offsets < row[END])].tolist()
    return {definition.symbols.word_at(at) for at in inside if definition.symbols.enclosing(at) == definition.index}


def _inherits(resolver: Resolver, use: Use, target: Definition) -> Resolution | None:
    """Return how sure it is that a base's name means the target."""
    types = [rival for rival in resolver.rivals if rival.kind not in CALLABLE_KINDS] or resolver.rivals
    if all(rival.key != target.key for rival in types):
        return None
    found = Resolver(types, resolver.ancestors).resolve(use, target)
    if len(types) > 1 or (found is not None and found.confidence > _SURE):
        return found
    return Resolution(_SURE, "only definition")


def _best(resolver: Resolver, use: Use, *, inherits: bool) -> tuple[Definition | None, Resolution | None]:
    best: tuple[Definition | None, Resolution | None] = (None, None)
    for rival in resolver.rivals:
        found = _inherits(resolver, use, rival) if inherits else resolver.resolve(use, rival)
        if found is not None and (best[1] is None or found.confidence > best[1].confidence):
            best = (rival, found)
    return best


def _edge(use: Use, user: Definition, target: Definition, role: Role, resolution: Resolution) -> Edge:
    kinds: dict[str, EdgeKind] = {"call": "calls", "implementation": "implements", "import": "imports"}
    line = use.symbols.lines.line(use.offset)
    text = use.symbols.lines.text(line).strip()[:200]
    return Edge(user.key, target.key, kinds.get(role, "uses"), use.path, line, text, resolution)
