"""Code research: follows calls, uses, implementations and imports hop by hop; each symbol and line counts once.

``research_questions`` parses the question. ``Research.advance`` makes one hop, so that the caller can report progress
or stop between hops. Budgets bound every hop; ``left_out`` counts what they cut.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final, Literal

from flashgrep.base.languages import LANGUAGES
from flashgrep.base.places import SYMBOL_OF_FILE
from flashgrep.index.table import tier_of
from flashgrep.parts.navigation.research.importers import find_importers, find_modules
from flashgrep.parts.navigation.research.research_questions import (
    Kind,
    ResearchQuestion,
    parse_question,
)
from flashgrep.parts.navigation.resolution.call_filter import CallFilter
from flashgrep.parts.navigation.resolution.conformance import (
    find_conforming,
    resolve_conforming,
)
from flashgrep.parts.navigation.resolution.definitions import (
    Ancestors,
    Definitions,
    find_in_bases,
    find_in_modules,
)
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.modules import Modules
from flashgrep.parts.navigation.resolution.plain_text import find_aliases
from flashgrep.parts.navigation.resolution.resolver import OVERRIDDEN, Resolver, Use
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    PROVEN,
    SEEN,
    UNDEFINED,
    Conformance,
    Definition,
    Edge,
    EdgeKind,
    Graph,
    Resolution,
    SymbolKey,
    UncertainUse,
    group_by_name,
    plain_name,
)
from flashgrep.parts.symbols.parse.imports import DEFAULT, may_rename
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role, split_name
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, START, TYPE_KINDS
from flashgrep.parts.symbols.parse.scoping import SCOPED
from flashgrep.parts.symbols.symbol_source import SymbolSource

MOST_NODES: Final = 300
"""Most symbols of a path, or of what is further away than the first hop."""
MOST_DIRECT: Final = 20_000
"""Most symbols in the first hop, about 10 MB: what was asked about is told whole, page by page."""
MOST_FRONTIER: Final = 60
"""Most symbols followed in one hop."""
MOST_FILES: Final = 2_000
"""Most files examined for one name: a name in more is not worth following."""
MOST_ALIASES: Final = 50
"""Most aliases followed for one name."""
LEAST: Final = 0.3
"""Edges with less confidence are counted, not shown."""
FOLLOWED: Final = 0.5
"""Edges with less confidence are shown but not followed."""
PATH_HOPS: Final = 6
USUAL_HOPS: Final = 2
DIRECT: Final = frozenset({"callers", "usages"})
"""Questions that are about one hop, unless more are asked for."""
MOST_VAGUE: Final = 200
_LINES: Final = re.compile(r"(.+):(\d+)(?:-(\d+))?")

_CONSTRUCTORS: Final = frozenset(
    {"__init__", "__new__", "constructor", "initialize", "init"}
)
_RUN_BY_TYPE: Final = frozenset({"__init__", "__new__", "__construct", "constructor"})
"""Constructors that are called by the name of their type."""
_OF_TYPES: Final = frozenset({"call", "implementation"})
_ROLES: Final[dict[str, Role]] = {"call": "call", "base": "implementation"}
_ANY_USE: Final = frozenset({"call", "reference", "implementation", "import"})
_INWARD_ROLES: Final[dict[Kind, frozenset[str]]] = {
    "callers": frozenset({"call"}),
    "path": frozenset({"call"}),
    "implementations": frozenset({"implementation"}),
    "imports": frozenset({"import"}),
    "usages": _ANY_USE,
    "hierarchy": frozenset({"implementation"}),
    "overrides": frozenset(),
    "impact": frozenset({"call", "reference", "implementation"}),
}
"""Questions whose chains lead from what was asked about to its users, and the roles of the uses they follow."""


_OF_CODE: Final = frozenset({"callers", "callees", "overrides", "implementations"})
_BY_NAME: Final = frozenset({
    "callers", "callees", "implementations", "supertypes", "usages", "imports", "definition", "hierarchy",
})  # fmt: skip
"""Questions that can be answered for a name without a definition in the project."""


@dataclass(slots=True)
class FileBudget:
    """How many files a walk may still look at: none after the deadline, and at most ``MOST_FILES`` at a time."""

    deadline: float | None
    complete: bool = True
    """Whether it was enough so far."""
    reason: str = ""
    """Why it was not."""

    def limit(self, paths: Iterable[bytes]) -> Iterator[bytes]:
        """Yield paths while they are within the budget."""
        for number, path in enumerate(paths):
            if number >= MOST_FILES:
                self.reason = f"of the files with a name {MOST_FILES:,} were read"
                self.complete = False
                return
            if self.deadline is not None and time.monotonic() > self.deadline:
                self.reason = "the deadline was reached"
                self.complete = False
                return
            yield path


@dataclass(slots=True)
class Research:
    """One question, its graph so far, and the start of the next hop."""

    query: str
    depth: int | None = None
    """Hops to follow; without it, as many as the kind of question usually needs."""
    deadline: float | None = None
    kind: Kind | None = None
    path: bytes | None = None
    """The file whose lines were asked about (``lines_path``), as the project names it."""
    place: tuple[bytes, str] | None = None
    """The file and the qualified name of the definition that is meant, of several of one name."""
    question: ResearchQuestion = field(init=False)
    graph: Graph = field(default_factory=Graph)
    roots: list[Definition] = field(default_factory=list)
    goals: list[Definition] = field(default_factory=list)
    conformances: list[Conformance] = field(default_factory=list)
    is_reached: bool = False
    """Whether a path was found."""
    hop: int = 0
    left_out: int = 0
    unsure: Counter[str] = field(default_factory=Counter)
    """How many uses are not in the graph because they are only possible, by reason."""
    files_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Files that were declined, counted by reason."""
    vague: list[UncertainUse] = field(default_factory=list)
    """The first uses of those that ``unsure`` counts."""
    _budget: FileBudget = field(init=False)
    _definitions: Definitions = field(init=False)
    _ancestors: Ancestors = field(init=False)
    _names: Names = field(init=False)
    _frontier: list[Definition] = field(default_factory=list)
    _ahead: list[Definition] = field(default_factory=list)
    """For a path: where the next hop from its beginning starts; ``_frontier`` is for the hop from its end."""
    _bases: set[tuple[bytes, int]] = field(default_factory=set)
    _direct: int = 0
    """How many symbols the graph had after the first hop."""

    def __post_init__(self) -> None:
        self.question = parse_question(self.query, self.kind)
        self._budget = FileBudget(self.deadline)

    @property
    def complete(self) -> bool:
        """Whether all files were looked at that may have an answer, and all that was found was followed."""
        return self._budget.complete and not self.left_out

    @property
    def reason(self) -> str:
        """Why the answer is not complete; empty if it is."""
        reasons = [self._budget.reason]
        if self.left_out:
            reasons.append(
                f"{self.left_out} symbols were not followed, the limit of one question"
            )
        return "; ".join(filter(None, reasons))

    @property
    def is_inward(self) -> bool:
        """Whether chains lead from what was asked about to its users."""
        return self.question.kind in _INWARD_ROLES

    @property
    def _lines(self) -> re.Match[str] | None:
        """The file and lines, if the question is the impact of lines."""
        if self.question.kind == "impact":
            return _LINES.fullmatch(self.question.names[0])
        return None

    @property
    def lines_path(self) -> str | None:
        """The file whose lines were asked about, as written in the question."""
        if self._lines is not None:
            return self._lines[1]
        return None

    @property
    def missing_names(self) -> list[str]:
        """The names in the question that have no definition in the project."""
        if self.question.kind in {"unknown", "unused"} or self._lines is not None:
            return []
        ends = (
            (self.goals, self.roots) if self.question.kind == "path" else (self.roots,)
        )
        return [
            name
            for name, definitions in zip(self.question.names, ends, strict=True)
            if not definitions
        ]

    @property
    def hops(self) -> int:
        """The most hops."""
        if self.question.kind == "path":
            return PATH_HOPS
        return self.depth or (1 if self.question.kind in DIRECT else USUAL_HOPS)

    def _is_shown(self, how: Resolution) -> bool:
        """Whether an edge is certain enough to show: guesses only for what was asked about, not for its users."""
        return self._is_followed(how) or (self.hop == 1 and how.confidence >= LEAST)

    def _is_followed(self, how: Resolution) -> bool:
        """Whether an edge is certain enough to follow: a path may also pass through an overridden method."""
        return how.confidence >= FOLLOWED or (
            self.question.kind == "path" and how.how == OVERRIDDEN
        )

    def advance(self, source: SymbolSource) -> bool:
        """Make one hop, after finding the roots in the first call; return whether there is more to follow."""
        kind = self.question.kind
        is_first = not self.hop
        if is_first:
            self._definitions = Definitions(source, never=frozenset({"package"}))
            self.skipped = self._definitions.skipped
            # No method of this object: what refers to its owner stays, with all opened
            # texts, until garbage is sought.
            define = partial(find_all_overloads, self._definitions, self._budget)
            self._ancestors = Ancestors(define)
            # A name's meaning in an opened file holds for all hops.
            self._names = Names(Modules(source), self._definitions.open, define)
            self._find_roots()
        # Opened files are kept, but candidates come from the new state.
        self._definitions.source = source  # each hop sees the project as it is then
        self.hop += 1
        frontier = self._frontier
        self._frontier = []
        for definition in self._ahead:
            self._follow_outward(definition, "call")
        self.left_out += max(0, len(self._frontier) - MOST_FRONTIER)
        self._ahead = self._frontier[:MOST_FRONTIER]
        self._frontier = []
        self.left_out += max(0, len(frontier) - MOST_FRONTIER)
        frontier = frontier[:MOST_FRONTIER]
        follow = self._find_overrides if kind == "overrides" else self._follow_inward
        # In a hierarchy, other subtypes of a base were not asked about.
        if self.is_inward:
            below = [
                current_definition
                for current_definition in frontier
                if current_definition.key not in self._bases
            ]
        else:
            below = []
        for module in [
            current_definition
            for current_definition in below
            if current_definition.index < 0
        ]:
            self._follow_importers(module)
        for name, targets in group_by_name(
            current_definition
            for current_definition in below
            if current_definition.index >= 0
        ).items():
            follow(name, targets)
            self._follow_conforming(name, targets)
        is_both = kind == "hierarchy"
        for definition in frontier:
            if not self.is_inward or (
                is_both and (is_first or definition.key in self._bases)
            ):
                self._follow_outward(
                    definition, "call" if kind == "callees" else "base"
                )
        is_undefined = not self.roots and self.place is None
        if is_first and kind in _BY_NAME and is_undefined:
            self._find_uses_by_name(kind)
        if is_first:
            self._direct = len(self.graph.nodes)
        self.files_read = len(self._definitions.files)
        more = (
            bool(self._frontier or self._ahead)
            and self.hop < self.hops
            and self._budget.complete
        )
        if kind == "path":
            ways = self.graph.find_shortest_paths(self.goals, self.roots)
            self.is_reached = bool(ways)
            more = more and not ways
            if not more:  # everything off the path is irrelevant
                self.graph.keep(ways, [*self.goals, *self.roots])
        return more

    def release_files(self) -> None:
        """Release what is only needed to follow further edges."""
        del self._definitions, self._ancestors, self._names
        self._frontier = []
        self._ahead = []

    def _find_uses_by_name(self, kind: Kind) -> None:
        """Find the uses of a name that is not defined here: for example a library's protocol."""
        name = split_name(self.question.names[0])[1]
        by_name = Resolution(GUESS, "name only")
        for use, role in self._find_uses(name, _INWARD_ROLES.get(kind, _ANY_USE)):
            user = self._user_of(use, role)
            if self._add(user) and role == "implementation":
                self._note_conformance(use, user, name)
            if user.key in self.graph.nodes:
                self.graph.add_edge(_make_edge(use, user, None, role, by_name))

    @property
    def answers(self) -> set[SymbolKey]:
        """The symbols that answer the question; what was asked about is included if an edge leads to it."""
        nodes = self.graph.nodes
        ends = (
            edge.source if self.is_inward else edge.target for edge in self.graph.edges
        )
        if self.question.kind == "hierarchy":
            keys = set()
        else:
            keys = {key for key in ends if key != UNDEFINED}
        return keys | {key for key, node in nodes.items() if node.hop}

    # Roots

    def _find_roots(self) -> None:
        kind = self.question.kind
        names = self.question.names
        if kind == "unknown":
            self.roots = []
        elif (lines := self._lines) is not None:
            path = os.fsencode(lines[1]) if self.path is None else self.path
            self.roots = self._definitions.find_at_lines(
                path, int(lines[2]), int(lines[3] or lines[2])
            )
        elif kind == "path":
            self.goals = self._find_by_name(names[0])
            self.roots = self._find_by_name(names[1])
        else:
            self.roots = self._find_by_name(names[0])
            if kind in _OF_CODE:  # a key of YAML or JSON calls nothing
                self.roots = [
                    root
                    for root in self.roots
                    if LANGUAGES[root.language].nature == "code"
                ]
            if self.place is not None:
                self.roots = [
                    root
                    for root in self.roots
                    if (root.path, root.qualified) == self.place
                ]
            if kind in {
                "implementations",
                "supertypes",
                "hierarchy",
            }:  # a method of the name is not a type
                self.roots = [
                    current_root
                    for current_root in self.roots
                    if current_root.kind not in CALLABLE_KINDS
                ] or self.roots
            if kind == "imports":
                files = self._open(
                    find_modules(self._definitions.source.paths(), names[0])
                )
                self.roots += [Definition(path, symbols, -1) for path, symbols in files]
        for root in self.roots:
            self.graph.add_node(root, 0)
        # There is no path if one of its ends does not exist.
        if kind == "path" and self.goals and self.roots:
            for goal in self.goals:
                self.graph.add_node(goal, 0)
            self._ahead = list(self.goals)
        is_followed = self._ahead if kind == "path" else kind != "definition"
        self._frontier = list(self.roots) if is_followed else []

    def _find_by_name(self, written: str) -> list[Definition]:
        """Return the definitions that a name as written may refer to, perhaps in a file: ``src/a.py:Wheel.turn``."""
        placed = SYMBOL_OF_FILE.fullmatch(written)
        if placed is not None:
            path = os.fsencode(f"/{placed['path']}")
            in_file = list[Definition]()
            for definition in self._find_by_name(placed["symbol"]):
                own_path = b"/" + definition.path
                if path.endswith(own_path) or own_path.endswith(path):
                    in_file.append(definition)
            if in_file:
                return in_file
        qualifiers, name = split_name(written)
        definitions = self._define(name) or self._define(
            name.removeprefix("#")
        )  # a private name of JavaScript
        if not qualifiers:
            # Case is ignored only if nothing matches exactly.
            if not definitions and self.question.kind != "imports":
                definitions = self._define(name, fold=True)
        else:  # by enclosing scopes, or by the file's own name
            ending = "." + ".".join(qualifiers)
            named = list[Definition]()
            for definition in definitions:
                container = definition.symbols.container(definition.index)
                # An extension in a type is named by either.
                scopes = (f".{container}", f".{definition.scope}")
                is_inside = any(scope.endswith(ending) for scope in scopes)
                if is_inside or definition.stem == qualifiers[-1]:
                    named.append(definition)
            if not named:
                named = find_in_modules(definitions, qualifiers)
            if not named:
                find_ancestors = self._ancestors.find
                named = find_in_bases(qualifiers, name, self._names, find_ancestors)
            definitions = named
        return sorted(
            definitions, key=lambda one: (tier_of(one.path), one.path, one.key[1])
        )

    def _define(self, name: str, *, fold: bool = False) -> list[Definition]:
        return find_all_overloads(self._definitions, self._budget, name, fold=fold)

    # One hop

    def _follow_importers(self, module: Definition) -> None:
        """Find the files that import a file."""
        files = self._open(self._definitions.source.candidates(module.stem, fold=False))
        for use, resolution in find_importers(module, files, self._names):
            user = self._user_of(use, "import")
            self._add(user)
            if user.key in self.graph.nodes:
                self.graph.add_edge(_make_edge(use, user, module, "import", resolution))

    def _follow_inward(self, name: str, targets: list[Definition]) -> None:
        """Find the users of definitions with one name."""
        resolver = self._make_resolver(name)
        for use, role in self._find_uses(
            name, _INWARD_ROLES[self.question.kind], targets
        ):
            is_base = role == "implementation"
            is_told = False
            vague = None
            resolve = (
                resolver.base_resolver_of(use) if is_base else resolver.resolver_of(use)
            )
            for target in targets:
                resolution = resolve(target)
                if resolution is None:
                    continue
                if not self._is_shown(resolution):
                    vague = resolution
                    continue
                is_told = True
                user = self._user_of(use, role)
                # The node before the edge: a node over the limit gets no edge.
                is_new = self._add(user)
                if user.key in self.graph.nodes:
                    self.graph.add_edge(_make_edge(use, user, target, role, resolution))
                    if is_base:
                        self._note_conformance(use, user, name)
                # A file's top level has no callers, so there is nothing to follow.
                if is_new and self._is_followed(resolution) and user.index >= 0:
                    self._frontier.append(user)
            if vague is not None and not is_told:
                self._note_possible(use, vague)

        noted = set[tuple[bytes, int]]()
        for target in targets:
            if "call" in _INWARD_ROLES[self.question.kind] and _is_run_by_type(target):
                self._follow_constructions(target, noted)

    def _note_possible(self, use: Use, resolution: Resolution) -> None:
        """Count a use that is only possible."""
        self.unsure[resolution.how] += 1
        if len(self.vague) < MOST_VAGUE:
            line = use.symbols.lines.line(use.offset)
            text = use.symbols.lines.text(line).strip()[:200]
            self.vague.append(UncertainUse(use.path, line, text, resolution))

    def _follow_constructions(
        self,
        target: Definition,
        noted: set[tuple[bytes, int]],
    ) -> None:
        """Find where the type of a constructor is called, or a subtype that has none of its own.

        ``noted``: calls that are counted as possible, of this type or of another with its name.
        """
        owner = self._names.owner_of(target)
        level = [owner] if owner is not None else []
        seen = {type_.key for type_ in level}
        while level:
            below = list[Definition]()
            # Tests define many types of one name: its uses are read once for all.
            for name, types in group_by_name(level).items():
                subtypes = self._read_constructions(name, types, target, noted)
                below += [type_ for type_ in subtypes if type_.key not in seen]
                seen.update(type_.key for type_ in subtypes)
            level = below

    def _read_constructions(
        self,
        name: str,
        types: list[Definition],
        target: Definition,
        noted: set[tuple[bytes, int]],
    ) -> list[Definition]:
        """Find where types of one name are called; return their subtypes that have no constructor of their own."""
        subtypes = dict[SymbolKey, Definition]()
        resolver = self._make_resolver(name)
        for use, role in self._find_uses(name, _OF_TYPES, types):
            if role == "implementation":
                resolve = resolver.base_resolver_of(use)
                is_below = any(resolve(type_) is not None for type_ in types)
                user = self._user_of(use, role)
                if is_below and not _constructs(user):
                    subtypes[user.key] = user
                continue
            resolution = _choose_surest(resolver.resolver_of(use), types)
            if resolution is None:
                continue
            if not self._is_shown(resolution):
                place = use.path, use.offset
                if place not in noted:
                    noted.add(place)
                    self._note_possible(use, resolution)
                continue
            user = self._user_of(use, role)
            is_new = self._add(user)
            if user.key in self.graph.nodes:
                self.graph.add_edge(_make_edge(use, user, target, role, resolution))
            if is_new and self._is_followed(resolution) and user.index >= 0:
                self._frontier.append(user)
        return list(subtypes.values())

    def _follow_conforming(self, name: str, targets: list[Definition]) -> None:
        """Find the types that satisfy an interface without declaring it, if types are asked for."""
        for target in (
            targets if self.question.kind in {"implementations", "hierarchy"} else ()
        ):
            conforming, left_out = find_conforming(self._names, target)
            self.left_out += left_out
            self._budget.complete = self._budget.complete and not left_out
            for definition, how in conforming:
                is_new = self._add(definition)
                if definition.key in self.graph.nodes:
                    use = Use(definition.path, definition.symbols, definition.key[1])
                    self.graph.add_edge(
                        _make_edge(use, definition, target, "implementation", how)
                    )
                    self._note_conformance(use, definition, name)
                if is_new:
                    self._frontier.append(definition)

    def _find_overrides(self, name: str, targets: list[Definition]) -> None:
        """Find the overrides of the targets in subtypes of their types."""
        owned = [
            (current_target, self._names.owner_of(current_target))
            for current_target in targets
        ]
        for rival in self._define(name):
            owner = self._names.owner_of(rival)
            if owner is None:
                continue
            scoped = rival.language in SCOPED
            above = (
                self._names.ancestors(owner)
                if scoped
                else self._ancestors.find(owner.name)
            )
            for target, base in owned:
                if base is None or rival.key == target.key:
                    continue
                sure = (
                    Resolution(PROVEN, "inherited")
                    if scoped
                    else Resolution(SEEN, "bases by name")
                )
                if (base.key if scoped else base.name) not in above:
                    conforming = resolve_conforming(self._names, owner, base)
                    if conforming is None:
                        continue
                    sure = conforming
                self._add(rival)
                if rival.key in self.graph.nodes:
                    use = Use(rival.path, rival.symbols, rival.key[1])
                    self.graph.add_edge(
                        replace(
                            _make_edge(use, rival, target, "call", sure),
                            kind="overrides",
                        )
                    )

    def _follow_outward(self, user: Definition, mark: Literal["call", "base"]) -> None:
        """Find what a definition calls, or its base types."""
        if user.index < 0:
            return
        symbols = user.symbols
        offsets = user.symbols.parsed.marked(mark)
        indexes = [definition.index for definition in find_overloads(user)]
        if mark == "call" and self.hop > 1 and user.kind in TYPE_KINDS:
            # Calling a type runs its constructors, not everything in it.
            inner = (
                at for at in range(symbols.count) if symbols.parent(at) == user.index
            )
            indexes = [
                at
                for at in inner
                if symbols.kind(at) == "constructor"
                or symbols.name(at) in _CONSTRUCTORS
            ]
        rows = [symbols.row(index) for index in indexes]
        inside = [
            offsets[(offsets >= row[START]) & (offsets < row[END])] for row in rows
        ]
        for offset in chain.from_iterable(
            current_offsets.tolist() for current_offsets in inside
        ):
            use = Use(user.path, symbols, offset)
            word = symbols.word_at(offset)
            role = _ROLES[mark]
            if (
                symbols.language in SCOPED
                and (values := self._names.resolve(user.path, word, offset)) is not None
            ):
                for target in (
                    value.definition
                    for value in values
                    if value.definition and not (value.is_instance or value.is_variable)
                ):
                    how = "same file" if target.path == user.path else "import"
                    self._add_target(
                        _make_edge(use, user, target, role, Resolution(PROVEN, how)),
                        target,
                    )
                continue
            resolver = self._make_resolver(word)
            resolve = (
                resolver.base_resolver_of(use)
                if mark == "base"
                else resolver.resolver_of(use)
            )
            candidates = [
                (rival, current_resolution)
                for rival in resolver.rivals
                if (current_resolution := resolve(rival)) is not None
            ]
            if not candidates:
                continue
            # A call has one target; of several definitions the most certain is
            # reported.
            target, resolution = max(candidates, key=lambda pair: pair[1].confidence)
            if not self._is_shown(resolution):
                self.unsure[resolution.how] += 1
                continue
            self._add_target(_make_edge(use, user, target, role, resolution), target)

    def _add_target(self, edge: Edge, target: Definition) -> None:
        if self._add(target) and self._is_followed(edge.resolution):
            self._frontier.append(target)
            if self.question.kind == "hierarchy":
                self._bases.add(target.key)
        if target.key in self.graph.nodes:
            self.graph.add_edge(edge)

    def _find_uses(
        self, name: str, roles: frozenset[str], targets: Sequence[Definition] = ()
    ) -> Iterator[tuple[Use, Role]]:
        """Yield the uses of a name, and of the aliases under which it is imported or exported.

        ``targets``: definitions of the name; calls that can refer to none of them are left out.
        """
        # Names to search for, each in all files or only in the file with the alias.
        waiting: list[tuple[str, bytes | None]] = [(name, None)]
        seen = set(waiting)
        while waiting:
            called, only = waiting.pop()
            if only is not None:
                paths = [only]
            else:
                # Sources first: what is cut, by files or by number, is then of tests.
                paths = sorted(
                    self._definitions.source.candidates(called, fold=False, whole=True),
                    key=tier_of,
                )
            may_mean = CallFilter(called, targets)
            for path, symbols in self._open(paths):
                aliases = self._aliases(path, symbols, called) if only is None else ()
                for alias in aliases:
                    if alias in seen:
                        continue
                    if len(seen) >= MOST_ALIASES:
                        self.left_out += 1
                        continue
                    seen.add(alias)
                    waiting.append(alias)
                if roles == {"call"}:
                    if targets and not may_mean.accepts(path, symbols):
                        continue  # nothing called there needs to be unpacked
                    yield from (
                        (Use(path, symbols, offset), "call")
                        for offset in symbols.calls(called)
                    )
                    continue
                for offset, role in symbols.places(called):
                    if role in roles and symbols.index_at(offset) < 0:
                        yield Use(path, symbols, offset), role

    def _aliases(
        self, path: bytes, symbols: FileSymbols, name: str
    ) -> Iterator[tuple[str, bytes | None]]:
        """Yield a file's aliases for a name, each with the file if the alias is known only there."""
        if symbols.language not in SCOPED:
            yield from (
                (alias, None if is_given_on else path)
                for alias, is_given_on in find_aliases(symbols, name)
            )
            return
        if not may_rename(symbols, name):
            return
        imports = self._names.imports_of(path)
        for local in imports.list_aliases(name):
            yield local, None if symbols.language == "python" else path
        for local in imports.list_exports(name):
            if local != DEFAULT:
                yield local, None
                continue
            stem = Definition(path, symbols, -1).stem
            others = self._budget.limit(
                self._definitions.source.candidates(stem, fold=False)
            )
            for other, local_name, is_given_on in self._names.find_default_names(
                path, others
            ):
                if local_name != name:
                    yield local_name, None if is_given_on else other

    def _make_resolver(self, name: str) -> Resolver:
        return Resolver(self._define(name), self._ancestors.find, self._names)

    def _user_of(self, use: Use, role: Role) -> Definition:
        """Return the symbol that contains a use; for an extension, the extended type if it is defined here."""
        if role == "import":
            return Definition(use.path, use.symbols, -1)
        user = Definition(use.path, use.symbols, use.symbols.enclosing(use.offset))
        if role == "implementation" and user.kind == "extension":
            extended = self._define(plain_name(user.name))
            return next(
                (
                    definition
                    for definition in extended
                    if definition.kind in TYPE_KINDS
                ),
                user,
            )
        return find_overloads(user)[0]

    def _note_conformance(self, use: Use, user: Definition, base: str) -> None:
        around = use.symbols.enclosing(use.offset)
        is_extension = around >= 0 and use.symbols.kind(around) == "extension"
        line = use.symbols.lines.line(use.offset)
        self.conformances.append(
            Conformance(plain_name(user.name), base, use.path, line, is_extension)
        )

    def _add(self, definition: Definition) -> bool:
        is_new = definition.key not in self.graph.nodes
        if is_new and len(self.graph.nodes) >= self._most_nodes:
            self.left_out += 1
            return False
        return self.graph.add_node(definition, self.hop)

    @property
    def _most_nodes(self) -> int:
        """The most symbols that the graph may have after this hop."""
        if self.question.kind == "path":
            return MOST_NODES
        if self.hop <= 1:
            return MOST_DIRECT
        return self._direct + MOST_NODES

    def _open(self, paths: Iterable[bytes]) -> Iterator[tuple[bytes, FileSymbols]]:
        for path in self._budget.limit(paths):
            symbols = self._definitions.open(path)
            if symbols is not None:
                yield path, symbols


def _is_run_by_type(target: Definition) -> bool:
    """Whether a definition runs where its type is called."""
    return target.name in _RUN_BY_TYPE and bool(target.owner)


def _choose_surest(
    resolve: Callable[[Definition], Resolution | None],
    targets: Iterable[Definition],
) -> Resolution | None:
    """Return the surest of what a use means of several targets; None: it means none of them."""
    resolutions = [resolve(target) for target in targets]
    told = [resolution for resolution in resolutions if resolution is not None]
    return max(told, key=lambda resolution: resolution.confidence, default=None)


def _constructs(type_: Definition) -> bool:
    """Whether a type has a constructor of its own."""
    symbols = type_.symbols
    named = (index for name in _RUN_BY_TYPE for index in symbols.defining(name))
    return any(symbols.parent(index) == type_.index for index in named)


def find_callers(
    source: SymbolSource, path: bytes, qualified: str, deadline: float
) -> Research:
    """Return who calls one definition, as every question for callers finds them; ``qualified``: its name in its file."""
    name = qualified.rpartition(".")[2]
    research = Research(name, 1, deadline, "callers", place=(path, qualified))
    research.advance(source)
    return research


def find_all_overloads(
    definitions: Definitions, budget: FileBudget, name: str, *, fold: bool = False
) -> list[Definition]:
    """Return all definitions of a name, overloads as one; declarations only if there is no definition."""
    # The resolution of one use may ask for the same names as that of the last.
    if not fold and name in definitions.merged:
        return definitions.merged[name]
    merged: dict[SymbolKey, Definition] = {}
    seen = set[SymbolKey]()
    for definition in definitions.find(name, budget.limit, fold=fold):
        if definition.key in seen:
            continue
        overloads = find_overloads(definition)
        merged[overloads[0].key] = overloads[0]
        # A family of dozens is read once; Python's may leave some of them out.
        if definition.language != "python":
            seen.update(overload.key for overload in overloads)
    functions = list(merged.values())
    if not fold:
        definitions.merged[name] = functions
    return functions


def _make_edge(
    use: Use,
    user: Definition,
    target: Definition | None,
    role: Role,
    resolution: Resolution,
) -> Edge:
    kinds: dict[str, EdgeKind] = {
        "call": "calls",
        "implementation": "implements",
        "import": "imports",
    }
    line = use.symbols.lines.line(use.offset)
    text = use.symbols.lines.text(line).strip()[:200]
    key = UNDEFINED if target is None else target.key
    return Edge(
        user.key, key, kinds.get(role, "uses"), use.path, line, text, resolution
    )
