"""The result of code research: symbols, the edges between them with evidence, and chains of edges."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Literal

from flashgrep.base.lazy import LazyAttribute
from flashgrep.index.table import TEST, tier_of
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import QUALIFIER, QUALIFIER_END

EdgeKind = Literal["calls", "uses", "implements", "imports", "overrides"]
SymbolKey = tuple[bytes, int]
"""Identifies a symbol: its file and the offset of its name; -1 for the file's top level."""
UNDEFINED: Final[SymbolKey] = (b"", -1)
"""The key of a name that the project does not define; it has no node."""
# Confidences by evidence, measured against the uses that compilers and type checkers
# report (scripts/eval_symbols).
PROVEN: Final = 0.95
"""By scopes, imports, types or full names."""
SEEN: Final = 0.9
"""By what the file says, for example the package it is in."""
GUESS: Final = 0.5
"""The highest confidence that a name alone can give."""
POSSIBLE: Final = 0.4
"""A method that a subtype may override, or a name with some evidence for another definition."""
WEAK: Final = 0.2
"""The name of a type's member, without evidence of the type."""
UNLIKELY: Final = 0.15
"""The highest confidence for a function outside any type that is called on a receiver: 5 of 32 were right."""
SURE: Final = 0.6
"""Confidence below which a use is marked "perhaps"."""
CHAINS: Final = 50
"""Most chains returned; a busy function has thousands."""
_TEST_MODULES: Final = frozenset({"tests", "test"})
"""Modules of Rust that hold the tests of the file they are in."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A symbol in its file; ``index`` -1: the file's top level."""

    path: bytes
    symbols: FileSymbols
    index: int

    @LazyAttribute
    def key(self) -> SymbolKey:
        """Return the symbol's key: its file and the offset of its name."""
        return self.path, self.symbols.row(self.index)[0] if self.index >= 0 else -1

    @LazyAttribute
    def package(self) -> str:
        """Return the package or namespace that it is in; a file of PHP may have several, each in braces."""
        outermost = self.index
        while (around := self.symbols.parent(outermost)) >= 0:
            outermost = around
        if self.language == "php" and self.symbols.kind(outermost) == "namespace":
            return self.symbols.qualified(outermost)
        return self.symbols.package

    @LazyAttribute
    def full_name(self) -> str:
        """Return the name with its package; an extension function belongs to the package, not to its type."""
        package = self.package
        row = self.symbols.row(self.index)
        container = self.symbols.container(self.index)
        is_qualified = row[QUALIFIER_END] > row[QUALIFIER]
        is_outermost = self.symbols.parent(self.index) < 0
        if is_qualified and is_outermost and self.language == "kotlin":
            container = ""
        container = container.replace(".Companion", "")
        if f"{container}.".startswith(f"{package}."):
            inside = container
        else:
            inside = f"{package}.{container}".strip(".")
        if inside:
            return f"{inside}.{self.name}"
        return self.name

    @property
    def name(self) -> str:
        """The symbol's own name; for a top level, the file's name."""
        if self.index < 0:
            return self.path.rpartition(b"/")[2].decode("utf-8", "replace")
        return self.symbols.name(self.index)

    @property
    def qualified(self) -> str:
        """The symbol's name, qualified by its container."""
        if self.index >= 0:
            return self.symbols.qualified(self.index)
        return self.name

    @property
    def scope(self) -> str:
        """The qualified name of what is around it, whatever type it extends; empty at top level."""
        if self.index < 0:
            return ""
        around = self.symbols.parent(self.index)
        if around < 0:
            return ""
        return self.symbols.qualified(around)

    @property
    def kind(self) -> str:
        """The symbol's kind; ``file`` for a top level."""
        if self.index >= 0:
            return self.symbols.kind(self.index)
        return "file"

    @LazyAttribute
    def owner(self) -> str:
        """Return the name of the innermost enclosing type or scope, or an empty string."""
        if self.index >= 0:
            return self.symbols.container(self.index).rpartition(".")[2]
        return ""

    @property
    def language(self) -> str:
        """The file's language."""
        return self.symbols.language

    @property
    def is_test(self) -> bool:
        """Whether it belongs to tests: by its file, in Rust also by the module around it."""
        if tier_of(self.path) == TEST:
            return True
        around = self.qualified.split(".")
        return self.language == "rust" and not _TEST_MODULES.isdisjoint(around)

    @property
    def stem(self) -> str:
        """The file's module name: its name without endings, or its folder's name if the file stands for the package."""
        folder, _, name = self.path.decode("utf-8", "replace").rpartition("/")
        stem = name.partition(".")[0]
        if stem in {"__init__", "index", "mod", "lib"} and folder:
            return folder.rpartition("/")[2]
        return stem


def group_by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    """Return definitions grouped by name, so that the uses of a name are searched once for all of them."""
    alike: dict[str, list[Definition]] = {}
    for definition in definitions:
        alike.setdefault(definition.name, []).append(definition)
    return alike


def plain_name(name: str) -> str:
    """Return a type's name without type parameters and qualifiers."""
    return name.partition("<")[0].partition("[")[0].rpartition(".")[2] or name


@dataclass(frozen=True, slots=True)
class Resolution:
    """The confidence (0 to 1) that a use refers to a definition, and the evidence for it."""

    confidence: float
    how: str


class Inconclusive(Enum):
    """A rule neither resolves a use nor rules the definition out; the next rule decides."""

    INCONCLUSIVE = auto()


INCONCLUSIVE: Final = Inconclusive.INCONCLUSIVE


@dataclass(slots=True)
class Node:
    """A symbol of the answer, and its distance in hops from the symbols asked about."""

    definition: Definition
    hop: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One symbol uses another: the line that shows it, and the confidence.

    ``target`` is ``UNDEFINED`` if the name asked about has no definition in the project.
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
        """The symbols at both ends of the edge."""
        if self.target == UNDEFINED:
            return (self.source,)
        return (self.source, self.target)


@dataclass(frozen=True, slots=True)
class UncertainUse:
    """A use of a name asked about that cannot be attributed to any definition."""

    path: bytes
    line: int
    text: str
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class Conformance:
    """A type that implements another, and whether an extension declares it."""

    type: str
    base: str
    path: bytes
    line: int
    extension: bool


@dataclass(slots=True)
class Graph:
    """Nodes by key, and edges without duplicates."""

    nodes: dict[SymbolKey, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def add_node(self, definition: Definition, hop: int) -> bool:
        """Add a symbol if it is new; return whether it was."""
        if definition.key in self.nodes:
            return False
        self.nodes[definition.key] = Node(definition, hop)
        return True

    def add_edge(self, edge: Edge) -> bool:
        """Add an edge unless the same line has already shown it; return whether it was new."""
        # Several calls on one line count as one piece of evidence.
        key = (edge.source, edge.target, edge.kind, edge.path, edge.line)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.edges.append(edge)
        return True

    def in_order(self) -> list[Edge | Node]:
        """Return the edges, nearest symbols first, tests last, sure before others; then the symbols without edges.

        The order depends only on the result, not on the order of discovery, so pages of an answer can continue it.
        """
        edges = sorted(
            self.edges,
            key=lambda edge: (
                self.nodes[edge.source].hop, self.nodes[edge.source].definition.is_test,
                -min(edge.resolution.confidence, SURE), edge.path, edge.line, edge.source[1],
                -edge.resolution.confidence, edge.target, edge.kind,
            ),
        )  # fmt: skip
        linked = {key for edge in self.edges for key in edge.ends}
        alone = [node for key, node in self.nodes.items() if key not in linked]
        alone.sort(
            key=lambda node: (
                node.hop,
                tier_of(node.definition.path),
                node.definition.key,
            )
        )
        return [*edges, *alone]

    def chains(self, roots: list[SymbolKey], *, inward: bool) -> list[list[SymbolKey]]:
        """Return the paths from each root to where its edges end, most certain and shortest first."""
        steps: dict[SymbolKey, list[SymbolKey]] = {}
        # Chains are built in the order of their edges, so sorting the edges sorts the
        # chains.
        for edge in sorted(self.edges, key=lambda edge: -edge.resolution.confidence):
            if edge.target == UNDEFINED:
                continue
            here, there = (
                (edge.target, edge.source) if inward else (edge.source, edge.target)
            )
            if there not in steps.setdefault(here, []):
                steps[here].append(there)
        found_chains = []
        for root in roots:
            for chain in _walk(steps, [root]):
                found_chains.append(chain)
                if len(found_chains) >= CHAINS:
                    return found_chains
        return found_chains

    def find_shortest_paths(
        self, starts: Iterable[Definition], ends: Iterable[Definition]
    ) -> list[Edge]:
        """Return the edges on the shortest paths from any start to any end."""
        steps = dict[SymbolKey, list[SymbolKey]]()
        back = dict[SymbolKey, list[SymbolKey]]()
        for edge in self.edges:
            steps.setdefault(edge.source, []).append(edge.target)
            back.setdefault(edge.target, []).append(edge.source)
        before = _measure(steps, {start.key for start in starts})
        behind = _measure(back, {end.key for end in ends})
        shortest = min(
            (before[key] + behind[key] for key in before.keys() & behind.keys()),
            default=0,
        )
        return [
            edge
            for edge in self.edges
            if edge.source in before
            and edge.target in behind
            and before[edge.source] + 1 + behind[edge.target] == shortest
        ]

    def keep(self, edges: list[Edge], definitions: Iterable[Definition]) -> None:
        """Keep only these edges, and the symbols that are at their ends or among the definitions."""
        self.edges = edges
        keys = {definition.key for definition in definitions}.union(
            *(edge.ends for edge in edges)
        )
        self.nodes = {key: node for key, node in self.nodes.items() if key in keys}

    def dependencies(self) -> Counter[tuple[bytes, bytes]]:
        """Return how many edges lead from one file to another."""
        pairs = (
            (edge.source[0], edge.target[0])
            for edge in self.edges
            if edge.target != UNDEFINED
        )
        return Counter((here, there) for here, there in pairs if here != there)


def _measure(
    steps: dict[SymbolKey, list[SymbolKey]], starts: Iterable[SymbolKey]
) -> dict[SymbolKey, int]:
    """Return every reachable symbol with its distance."""
    distances = dict.fromkeys(starts, 0)
    waiting = deque(distances)
    while waiting:
        here = waiting.popleft()
        for key in steps.get(here, ()):
            if key not in distances:
                distances[key] = distances[here] + 1
                waiting.append(key)
    return distances


def _walk(
    steps: dict[SymbolKey, list[SymbolKey]], so_far: list[SymbolKey]
) -> Iterator[list[SymbolKey]]:
    # A chain never revisits a symbol: recursion would make it endless.
    following = [key for key in steps.get(so_far[-1], []) if key not in so_far]
    if not following and len(so_far) > 1:
        yield so_far
    for key in following:
        yield from _walk(steps, [*so_far, key])
