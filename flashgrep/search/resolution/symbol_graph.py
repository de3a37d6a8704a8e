"""What research finds: symbols, the edges between them with their evidence, and the chains they make."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Literal

from flashgrep.index.table import tier_of
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.lazy import LazyAttribute

EdgeKind = Literal["calls", "uses", "implements", "imports", "overrides"]
SymbolKey = tuple[bytes, int]
"""What tells a symbol from every other: its file and where its name stands; -1: the file's top level."""
UNDEFINED: Final[SymbolKey] = (b"", -1)
"""What a name that the project does not define stands for: no node."""
GUESS: Final = 0.5
"""The most that a name alone is worth."""
CHAINS: Final = 50
"""Chains shown; a busy function has thousands."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A symbol in its file; ``index`` -1: the file's top level."""

    path: bytes
    symbols: FileSymbols
    index: int

    @LazyAttribute
    def key(self) -> SymbolKey:
        """Return what tells a symbol from every other: its file and where its name stands."""
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

    @LazyAttribute
    def owner(self) -> str:
        """Return the name of the type or scope right around it, or nothing."""
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


def group_by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    """Return definitions by name: the uses of a name are looked through once for all of them."""
    alike: dict[str, list[Definition]] = {}
    for one in definitions:
        alike.setdefault(one.name, []).append(one)
    return alike


def plain_name(name: str) -> str:
    """Return a type's name without parameters and what it is in."""
    return name.partition("<")[0].partition("[")[0].rpartition(".")[2] or name


@dataclass(frozen=True, slots=True)
class Resolution:
    """How sure it is that a use means a definition (0 to 1), and by what it was told."""

    confidence: float
    how: str


class Undecided(Enum):
    """A rule neither resolves a use nor rules the definition out: the next rule is asked."""

    UNDECIDED = auto()


UNDECIDED: Final = Undecided.UNDECIDED


@dataclass(slots=True)
class Node:
    """A symbol of the answer and how many hops it is from what was asked about."""

    definition: Definition
    hop: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One symbol using another: the line that shows it, and how sure it is.

    ``target``: ``UNDEFINED`` where it is a name that was asked about and is not defined here.
    """

    source: SymbolKey
    target: SymbolKey
    kind: EdgeKind
    path: bytes
    line: int
    text: str
    resolution: Resolution

    @property
    def ends(self) -> tuple[SymbolKey, ...]:
        """The symbols it leads from and to."""
        return (self.source,) if self.target == UNDEFINED else (self.source, self.target)


@dataclass(frozen=True, slots=True)
class Vague:
    """A use of a name that was asked about, of which nothing tells whose it is."""

    path: bytes
    line: int
    text: str
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class Conformance:
    """A type that implements another, and whether an extension of it says so."""

    type: str
    base: str
    path: bytes
    line: int
    extension: bool


@dataclass(slots=True)
class Graph:
    """Nodes by key and edges, each once."""

    nodes: dict[SymbolKey, Node] = field(default_factory=dict)
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
        # A line that calls something twice is one piece of evidence.
        key = (edge.source, edge.target, edge.kind, edge.path, edge.line)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.edges.append(edge)
        return True

    def in_order(self) -> list[Edge | Node]:
        """Return the edges, those of the nearest symbols and the surest first, then the symbols that have none.

        The order is that of what was found, not of how: pages of an answer go on in it.
        """
        edges = sorted(
            self.edges,
            key=lambda edge: (
                self.nodes[edge.source].hop, -edge.resolution.confidence, edge.path, edge.line, edge.source[1],
                edge.target, edge.kind,
            ),
        )  # fmt: skip
        linked = {key for edge in self.edges for key in edge.ends}
        alone = [node for key, node in self.nodes.items() if key not in linked]
        alone.sort(key=lambda node: (node.hop, tier_of(node.definition.path), node.definition.key))
        return [*edges, *alone]

    def chains(self, roots: list[SymbolKey], *, inward: bool) -> list[list[SymbolKey]]:
        """Return paths from each root along its edges to where they end, surest and shortest first."""
        steps: dict[SymbolKey, list[SymbolKey]] = {}
        # Chains are followed in the order of their steps, so sorting the edges sorts the chains.
        for edge in sorted(self.edges, key=lambda edge: -edge.resolution.confidence):
            if edge.target == UNDEFINED:
                continue
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

    def find_ways(self, starts: Iterable[Definition], ends: Iterable[Definition]) -> list[Edge]:
        """Return the edges of the shortest ways along them from one of the starts to one of the ends."""
        steps, back = dict[SymbolKey, list[SymbolKey]](), dict[SymbolKey, list[SymbolKey]]()
        for edge in self.edges:
            steps.setdefault(edge.source, []).append(edge.target)
            back.setdefault(edge.target, []).append(edge.source)
        before = _measure(steps, {one.key for one in starts})
        behind = _measure(back, {one.key for one in ends})
        shortest = min((before[key] + behind[key] for key in before.keys() & behind.keys()), default=0)
        return [
            edge
            for edge in self.edges
            if edge.source in before
            and edge.target in behind
            and before[edge.source] + 1 + behind[edge.target] == shortest
        ]

    def keep(self, edges: list[Edge], definitions: Iterable[Definition]) -> None:
        """Leave out all other edges, and the symbols that are neither at their ends nor among these."""
        self.edges, keys = edges, {one.key for one in definitions}.union(*(edge.ends for edge in edges))
        self.nodes = {key: node for key, node in self.nodes.items() if key in keys}

    def dependencies(self) -> Counter[tuple[bytes, bytes]]:
        """Return how many edges lead from one file to another."""
        pairs = ((edge.source[0], edge.target[0]) for edge in self.edges if edge.target != UNDEFINED)
        return Counter((here, there) for here, there in pairs if here != there)


def _measure(steps: dict[SymbolKey, list[SymbolKey]], starts: Iterable[SymbolKey]) -> dict[SymbolKey, int]:
    """Return all that steps lead to, with how many it takes."""
    found = dict.fromkeys(starts, 0)
    waiting = deque(found)
    while waiting:
        here = waiting.popleft()
        for key in steps.get(here, ()):
            if key not in found:
                found[key] = found[here] + 1
                waiting.append(key)
    return found


def _walk(steps: dict[SymbolKey, list[SymbolKey]], so_far: list[SymbolKey]) -> Iterator[list[SymbolKey]]:
    # A chain never comes back to where it was: recursion would make it endless.
    following = [key for key in steps.get(so_far[-1], []) if key not in so_far]
    if not following and len(so_far) > 1:
        yield so_far
    for key in following:
        yield from _walk(steps, [*so_far, key])
