"""What a rename changes: every use of a definition, by confidence, and how each is written."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import Conflict
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.model import path_to_text
from flashgrep.parts.navigation.navigation import (
    Navigation,
    Navigator,
    Place,
    place_of,
)
from flashgrep.parts.navigation.references import (
    LEAST,
    ReferenceQuestion,
    ReferenceSearch,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.refactoring.families import FamilySearch
from flashgrep.parts.refactoring.hidden_uses import (
    BY_DICTIONARY,
    MEMBERS,
    MOST_USES,
    WRITTEN,
    HiddenUses,
    Trees,
    is_required,
)
from flashgrep.parts.symbols.name_at_position import NameAtPosition
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.symbol_source import SymbolSource

SURE: Final = 0.6
"""Least confidence of a use that is renamed unasked."""
MOST_TEXT_FILES: Final = 2_000
"""Most files in which mentions in comments, strings and documents are counted."""
_BOTH: Final = frozenset(
    {
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
        "shorthand_field_initializer",
        "shorthand_field_identifier",
    }
)
"""Nodes in which one word names a member and a variable at once."""


@dataclass(frozen=True, slots=True)
class RenamedUse:
    """A place that changes, and what is written there."""

    place: Place
    text: str


@dataclass(slots=True)
class RenamePlan:
    """What a rename would change, and what only may be meant."""

    old: str
    new: str
    family: list[Place]
    sure: list[RenamedUse] = field(default_factory=list)
    possible: list[RenamedUse] = field(default_factory=list)
    unlikely: list[Place] = field(default_factory=list)
    texts: list[Place] = field(default_factory=list)
    """Mentions in comments, strings and documents."""
    unparsed: Counter[bytes] = field(default_factory=Counter)
    """How often files have the name that no grammar reads: plain texts, minified code."""


class Renaming:
    """Plans one rename."""

    def __init__(self, source: SymbolSource, new: str) -> None:
        self.source = source
        self.navigator = Navigator(source)
        self.trees = Trees()
        self._new = new

    def run(self, named: NameAtPosition) -> RenamePlan:
        """Return what renaming the definition of a name changes; without a family there is no definition."""
        plan = RenamePlan(named.text, self._new, self.find_targets(named))
        if not plan.family:
            return plan
        # Also what is hardly meant: one of these uses may be real, and would break.
        question = ReferenceQuestion(
            limit=MOST_USES, least=0.0, asks_others=len(plan.family) == 1
        )
        search = ReferenceSearch(self.source, question, self.navigator)
        uses = list(self._find_uses(search, named, plan.family))
        hidden = HiddenUses(self.source, self.navigator, self.trees)
        # What the search found itself counts more than a guess about the same place.
        places = {}
        for use in [*hidden.run(plan.family, uses), *uses]:
            places[use.path, use.start] = use
        for _, use in sorted(places.items()):
            self._add(plan, use)
        plan.texts += self._find_texts(plan)
        return plan

    def _find_uses(
        self, search: ReferenceSearch, named: NameAtPosition, family: list[Place]
    ) -> Iterator[Place]:
        # What the table of symbols has is found for all of the family at once.
        if family[0].index >= 0 or len(family) == 1:
            yield from search.find_uses(named, family, Navigation())
            return
        # Each parameter is bound in a function of its own.
        for place in family:
            root = self.trees.root(place.path, place.symbols)
            own = NameAtPosition(
                place.path, place.symbols, place.start, place.end, root
            )
            yield from search.find_uses(own, [place], Navigation())

    def find_targets(self, named: NameAtPosition) -> list[Place]:
        """Return the definitions that share the name; empty: none in the project.

        Raises:
            Conflict: it may be any of several symbols, or its definition is uncertain.

        """
        places = [
            place
            for place in self.navigator.find_definitions(named).places
            if place.kind != "module"
        ]
        if not places:
            return []
        first = places[0]
        family: dict[tuple[bytes, int], Place] = {}
        if first.index < 0:
            for local in [first, *self._find_parameters(named, first)]:
                family.setdefault((local.path, local.start), local)
        else:
            definition = Definition(first.path, first.symbols, first.index)
            for member in FamilySearch(self.navigator).run(definition):
                family[member.key] = place_of(member, first.resolution)
        rivals = [place for place in places if (place.path, place.start) not in family]
        if rivals or first.resolution.confidence < SURE:
            texts = [place_text(place) for place in (first, *rivals)]
            raise Conflict(
                f"{named.text} there may be any of {len(texts)}: {', '.join(texts)}",
                reason="ambiguous",
                places=texts,
            )
        return list(family.values())

    def _find_parameters(self, named: NameAtPosition, place: Place) -> Iterator[Place]:
        """Yield the parameters of this name in the methods that override that of a parameter, or that it overrides."""
        symbols = place.symbols
        around = symbols.enclosing(place.start)
        is_method = around >= 0 and symbols.kind(around) == "method"
        if place.kind != "parameter" or symbols.language != "python" or not is_method:
            return
        method = Definition(place.path, symbols, around)
        # Constructors are not called through a base: their parameters are their own.
        if method.name == "__init__":
            return
        for member in FamilySearch(self.navigator).run(method):
            file = self.navigator.names.scopes_of(member.path)
            if file is not None:
                scope = file.scope_of(member.key[1])
            else:
                scope = None
            if scope is not None:
                bindings = scope.names.get(named.text, [])
            else:
                bindings = []
            for binding in bindings:
                if binding.kind == "parameter":
                    end = binding.offset + place.end - place.start
                    yield Place(
                        member.path,
                        member.symbols,
                        binding.offset,
                        end,
                        place.resolution,
                        kind=place.kind,
                    )

    def _add(self, plan: RenamePlan, use: Place) -> None:
        """Add a use by its confidence, unless it has another name there, such as an alias."""
        if use.resolution == BY_DICTIONARY:
            plan.unlikely.append(use)
            return
        if use.symbols.data[use.start : use.end] != plan.old.encode():
            return
        if use.role == "import" and self._is_module(use):
            return
        keys = {(target.path, target.start) for target in plan.family}
        is_definition = (use.path, use.start) in keys
        is_text = LANGUAGES[use.symbols.language].nature == "prose"
        if is_text and use.resolution.confidence < SURE and not is_definition:
            plan.texts.append(use)  # code in a document
            return
        if use.resolution.confidence < LEAST and not is_definition:
            plan.unlikely.append(use)
            return
        renamed = RenamedUse(use, self._write(plan, use))
        if is_definition or use.resolution.confidence >= SURE:
            plan.sure.append(renamed)
        else:
            plan.possible.append(renamed)

    def _is_module(self, use: Place) -> bool:
        """Whether a name in an import is that of the module, which is often called like what it defines."""
        node = self.trees.node(use)
        if node is not None:
            around = node.parent
        else:
            around = None
        if node is None or around is None:
            return False
        if node.type.startswith("string"):
            return True
        outer = around.parent
        if around.type != "dotted_name" or outer is None:
            return False
        if outer.type in {"import_statement", "relative_import"}:
            return True
        if outer.type == "aliased_import" and outer.parent is not None:
            return outer.parent.type == "import_statement"
        return outer.child_by_field_name("module_name") == around

    def _write(self, plan: RenamePlan, use: Place) -> str:
        """Return what is written at a use: the new name, or both where one word names two things."""
        if use.symbols.language not in ECMA | {"rust"}:
            return plan.new
        node = self.trees.node(use)
        if node is None:
            return plan.new
        around = node.parent
        kinds = {node.type, around.type if around is not None else ""}
        if not kinds & _BOTH:
            return plan.new
        # A pattern that takes the name out of a module binds a variable of its own,
        # which keeps its name; after ``require`` the resolver follows the variable too.
        is_other = use.symbols.index_at(use.start) >= 0
        if is_other and is_required(node):
            return plan.new
        if is_other or plan.family[0].kind in MEMBERS:
            return f"{plan.new}: {plan.old}"
        return f"{plan.old}: {plan.new}"

    def _find_texts(self, plan: RenamePlan) -> Iterator[Place]:
        """Yield where comments, strings and documents have the name as a word."""
        changed = {(use.place.path, use.place.start) for use in plan.sure}
        wanted = plan.old.encode()
        paths = self.source.candidates(plan.old, fold=False, whole=True)
        if plan.family[0].resolution.how == "local":
            paths = [plan.family[0].path]
        whole = re.compile(rb"(?<![\w$])" + re.escape(wanted) + rb"(?![\w$])")
        for path in paths[:MOST_TEXT_FILES]:
            symbols = self.navigator.open(path)
            if symbols is None:
                count = len(whole.findall(self.source.read(path) or b""))
                if count:
                    plan.unparsed[path] = count
                continue
            for offset in symbols.words(wanted, fold=False):
                checkpoint()
                is_code = symbols.index_at(offset) >= 0 or symbols.role(offset)
                if is_code or (path, offset) in changed:
                    continue
                end = offset + len(wanted)
                yield Place(path, symbols, offset, end, WRITTEN, role="reference")


def place_text(place: Place) -> str:
    """Return where a place is, as it is written."""
    return f"{path_to_text(place.path)}:{place.symbols.lines.line(place.start)}"
