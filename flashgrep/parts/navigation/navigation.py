"""From a position in a file to its definitions, its uses, its implementations, and what they say.

A local name leads to its declaration. Other names are resolved by ``inference`` if it covers the language. Otherwise
the name alone decides: definitions in the same file come first, then in imported files, then in the same language.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import FAMILIES
from flashgrep.files.columns import SHOWN
from flashgrep.index.table import tier_of
from flashgrep.parts.navigation.resolution.c_library import stands_in
from flashgrep.parts.navigation.resolution.conformance import conforms, find_conforming
from flashgrep.parts.navigation.resolution.definitions import (
    Ancestors,
    Definitions,
    find_in_bases,
)
from flashgrep.parts.navigation.resolution.exports import Values, without_overloads
from flashgrep.parts.navigation.resolution.expressions import MEMBER_OF
from flashgrep.parts.navigation.resolution.full_names import list_full_names
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.modules import Modules
from flashgrep.parts.navigation.resolution.receivers import find_member
from flashgrep.parts.navigation.resolution.resolver import Resolver, Use
from flashgrep.parts.navigation.resolution.symbol_graph import (
    PROVEN,
    Definition,
    Resolution,
)
from flashgrep.parts.symbols.name_at_position import (
    PRIVATE,
    NameAtPosition,
    NoResult,
    find_declaration,
    find_label,
)
from flashgrep.parts.symbols.other_sources import Meaning, SourceOccurrence
from flashgrep.parts.symbols.parse.describe import find_body
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    NAME_END,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.parse.scoping import MODULE, SCOPED
from flashgrep.parts.symbols.symbol_source import SymbolSource
from flashgrep.search.snapshot import SearchStats

MOST_DEFINING: Final = 100
"""Nearest files searched for definitions of one name: if thousands define it, the name alone says nothing."""
MOST_PLACES: Final = 50
"""Most definitions returned for one name: no reader needs more."""
MEMBER: Final = 0.9
"""Confidence of a member whose type is known only by name."""
NAMED_ALIKE: Final = 0.1
"""Confidence of a definition that only its name supports."""
MOST_DOCUMENTATION: Final = 8_000
"""Most bytes of documentation; more is in the file."""
_MOST_PIECES: Final = 100
"""Most line comments and annotations above a definition that count as its documentation."""
_OPENS: Final = re.compile(
    r"^\s*(?://[/!]?|/\*+!?|\*+/|\*|#+[!:]?|--+\s?\|?|;+|%+|<!--|\(\*+|\{-+\s?\|?|\"\"\"|''')[ \t]?"
)
_CLOSES: Final = re.compile(r"\s*(?:\*+/|-->|\*+\)|-\})\s*$")
_ANNOTATIONS: Final = (b"@", b"#[", b"[")
_MEMBERS: Final = frozenset(
    {"method", "field", "property", "enumerator", "constructor"}
)
_IMPORTED_FROM: Final = TYPE_KINDS | {"type", "module", "namespace", "package"}
_SEPARATOR: Final = re.compile(rb"\s*+(?:\.|::|\\)")
"""What is between a package, module or type and what is imported from it."""
_WRITTEN: Final = rb"(?:proc_macro_derive\(|\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)\s+)(%s)\b"
_LEADS: Final = re.compile(rb"[\w\s:]*\Z")
"""Words such as ``export default`` or ``static inline`` before a definition."""


@dataclass(frozen=True, slots=True)
class Place:
    """The definition of a name, or a use of it, in bytes; ``index`` -1: it is not in the table of symbols."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    resolution: Resolution
    index: int = -1
    kind: str = ""
    role: Role = "definition"

    @property
    def span(self) -> tuple[int, int]:
        """The span of the whole definition."""
        if self.index < 0:
            return self.start, self.end
        row = self.symbols.row(self.index)
        return row[START], row[END]


@dataclass(slots=True)
class Navigation(SearchStats):
    """The places found, in order, or the reason why there are none."""

    places: list[Place] = field(default_factory=list)
    no_result: NoResult | None = None
    unsure: int = 0
    """Uses that cannot be attributed with enough confidence."""
    has_more: bool = False
    """Whether more places follow the last one."""

    @property
    def is_settled(self) -> bool:
        """Whether a place is certain enough that no library need be asked."""
        return any(place.resolution.confidence >= MEMBER for place in self.places)


class Navigator:
    """Navigates in one state of a project."""

    def __init__(self, source: SymbolSource) -> None:
        self._source = source
        self._definitions = Definitions(source)
        # Of the definitions, not of the navigator: what refers to its owner is freed by
        # a search for garbage only, and holds a folder and all opened texts until then.
        self._ancestors = Ancestors(self._definitions.find_everywhere)
        self._is_cut = False
        self.names = Names(
            Modules(source), self._definitions.open, self._definitions.find_everywhere
        )

    @property
    def skipped(self) -> dict[str, int]:
        """Declined files, counted by reason; later ones are added."""
        return self._definitions.skipped

    def find_definitions(self, named: NameAtPosition) -> Navigation:
        """Return the definitions of a name, most certain first."""
        self._definitions.files[named.path] = named.symbols
        meaning = self.find_meaning(named)
        if meaning is None:
            places = self._find_places(named)
        else:
            places = place_definitions(meaning)
        navigation = Navigation(places=places, skipped=self.skipped)
        if self._source.libraries is not None and not navigation.is_settled:
            navigation.places = self._find_in_libraries(named) or places
        navigation.files_read = len(self._definitions.files)
        navigation.complete = not self._is_cut
        if not navigation.places:
            if named.module:
                navigation.no_result = NoResult(
                    "outside", f"{named.module} is not a module of the project"
                )
            elif self.define(named.text, named):
                navigation.no_result = NoResult(
                    "outside",
                    f"{named.text} here does not refer to a definition in the project",
                )
            elif self._is_cut:
                navigation.no_result = NoResult(
                    "not_reached",
                    f"too many files may define {named.text}; the nearest do not",
                )
            else:
                navigation.no_result = NoResult(
                    "undefined", f"the project does not define {named.text}"
                )
        return navigation

    def find_declarations(self, named: NameAtPosition) -> Navigation:
        """Return the declarations of a name without a body; if there are none, its definitions."""
        definitions = self.find_definitions(named)
        declared = [
            place_of(definition, place.resolution)
            # Only for the most certain definition: declarations of others with the same
            # name would be noise.
            for place in definitions.places[:1]
            if place.index >= 0
            for definition in self._definitions.declared.get(named.text, ())
            if FAMILIES.get(definition.language, definition.language)
            == FAMILIES.get(place.symbols.language, place.symbols.language)
        ]
        definitions.places = declared or definitions.places
        return definitions

    def find_implementations(self, named: NameAtPosition) -> Navigation:
        """Return the types that extend a type, or their overrides of one of its methods."""
        definitions = self.find_definitions(named)
        targets = [
            Definition(place.path, place.symbols, place.index)
            for place in definitions.places
            if place.index >= 0
        ]
        definitions.places = []
        for target in targets:
            checkpoint()
            if target.kind in TYPE_KINDS | {"type"}:
                definitions.places += [
                    place_of(definition, how)
                    for definition, how in self._find_subtypes(target)
                ]
            elif (owner := self.names.owner_of(target)) is not None:
                below = {
                    definition.key: how
                    for definition, how in self._find_subtypes(owner)
                }
                for method in self.define(target.name, named):
                    above = self.names.owner_of(method)
                    if above is not None and above.key in below:
                        definitions.places.append(place_of(method, below[above.key]))
        if targets and not definitions.places:
            definitions.no_result = NoResult(
                "unimplemented", f"{named.text} has no known implementation"
            )
        definitions.files_read = len(self._definitions.files)
        definitions.complete = not self._is_cut
        return definitions

    def _find_subtypes(
        self, target: Definition
    ) -> Iterator[tuple[Definition, Resolution]]:
        """Yield the direct and indirect subtypes of a type."""
        # Breadth first, so near subtypes come before far ones; ``seen`` ends cycles in
        # broken code.
        waiting = [target]
        seen = {target.key}
        while waiting:
            base = waiting.pop(0)
            # A function has no subtypes, so a constructor of the same name is no rival.
            resolver = self.make_resolver(
                [
                    current_definition
                    for current_definition in self.define(base.name)
                    if current_definition.kind not in CALLABLE_KINDS
                ]
            )
            for path in self._source.candidates(base.name, fold=False):
                symbols = self.open(path)
                for offset, role in (
                    symbols.places(base.name) if symbols is not None else ()
                ):
                    checkpoint()
                    if (
                        symbols is None
                        or role != "implementation"
                        or symbols.index_at(offset) >= 0
                    ):
                        continue
                    resolution = resolver.resolve(Use(path, symbols, offset), base)
                    index = symbols.enclosing(offset)
                    definition = Definition(path, symbols, index)
                    if resolution is None or index < 0 or definition.key in seen:
                        continue
                    seen.add(definition.key)
                    waiting.append(definition)
                    yield definition, resolution
            conforming, left_out = find_conforming(self.names, base)
            self._is_cut |= left_out > 0
            for definition, how in conforming:
                if definition.key not in seen:
                    seen.add(definition.key)
                    waiting.append(definition)
                    yield definition, how

    def _find_places(self, named: NameAtPosition) -> list[Place]:
        symbols = named.symbols
        own = named.symbols.index_at(named.start)
        if named.module:
            return self._places_of_module(
                self.names.find_module(named.path, symbols.language, named.module)
            )
        # At a definition the caller is already there; a declaration leads to the
        # definition with a body.
        if own >= 0 and symbols.defined_role(own) != "declaration":
            return [
                place_of(
                    Definition(named.path, symbols, own), Resolution(1.0, "definition")
                )
            ]
        if symbols.language in SCOPED:
            local = self.find_bound(named)
            values = () if local else self.resolve(named)
            if values is not None:
                return local or self._places_of(named, values)
            return self._find_by_name(named)
        label = find_label(named)
        if label is not None:
            return [_local(named, label.start_byte, label.end_byte, "label")]
        members = find_member(named, lambda name: self.define(name, named))
        if members is None:
            return []
        if members:
            return [
                place_of(member, Resolution(MEMBER, "receiver type"))
                for member in members[:MOST_PLACES]
            ]
        return _find_local(named) or self._find_by_name(named)

    def find_meaning(
        self, named: NameAtPosition, *, uses: bool = False
    ) -> Meaning | None:
        """Return what another source says a name refers to, if it knows these texts."""
        other = self._source.imported
        span = (named.start, named.end)
        if other is None:
            return None
        return other.find_meaning(named.path, span, self.open, uses=uses)

    # In languages that ``inference`` covers

    def find_bound(self, named: NameAtPosition) -> list[Place]:
        """Return where a local name (a parameter, a variable) is bound or a field is assigned, in such a language."""
        if named.symbols.language in SCOPED:
            file = self.names.scopes_of(named.path)
        else:
            file = None
        if file is None:
            return []
        name = named.text
        size = named.end - named.start
        symbols = named.symbols
        key = self.names.find_key(named.path, name, named.start)
        if key is not None:
            return [
                place
                for path, offset in key.parameters
                if (place := self._place_parameter(path, offset, size)) is not None
            ]
        node = file.node_at(named.start)
        around = node.parent if node is not None else None
        if around is not None and around.type in MEMBER_OF:
            whole, part = (
                around.child_by_field_name(current_field)
                for current_field in MEMBER_OF[around.type]
            )
            if node is not None and node.type == PRIVATE:
                return []
            if part == node:
                return self._find_fields(self.names.infer(file, whole), name)
        for scope in file.around(named.start):
            imported = self.names.imports_of(named.path).names.get(name, [])
            # An import in this scope hides bindings in enclosing scopes.
            if any(file.scope_at(import_.offset) == scope for import_ in imported):
                return []
            bindings = [
                binding
                for binding in file.names_of(scope).get(name, [])
                if binding.is_seen_at(named.start)
            ]
            if symbols.language == "go" and scope != MODULE:
                # In ``n := n.next`` the second is the one further out.
                bindings = [
                    binding
                    for binding in bindings
                    if binding.offset == named.start or binding.reaches(named.start)
                ]
            if scope != MODULE and all(binding.is_set_only for binding in bindings):
                continue  # it is declared further out
            # In JavaScript and TypeScript a class's members are not in scope inside its
            # methods.
            if bindings and (
                scope == MODULE
                or symbols.language == "python"
                or not file.scopes[scope].is_class
            ):
                # A definition in the table of symbols: the general path gives more
                # about it.
                if any(symbols.index_at(binding.offset) >= 0 for binding in bindings):
                    return []
                first = min(bindings, key=lambda one: one.offset)
                kind = "parameter" if first.kind == "parameter" else "variable"
                return [_local(named, first.offset, first.offset + size, kind)]
        return []

    def _place_parameter(self, path: bytes, start: int, size: int) -> Place | None:
        symbols = self.open(path)
        if symbols is None:
            return None
        how = Resolution(PROVEN, "argument")
        return Place(path, symbols, start, start + size, how, kind="parameter")

    def _find_fields(self, values: Values, name: str) -> list[Place]:
        """Return where methods assign a field of an object that has no definition of its own."""
        for value in values:
            waiting = [value.definition] if value.definition is not None else []
            seen = set()
            while waiting:
                owner = waiting.pop(0)
                file = self.names.scopes_of(owner.path)
                if file is not None and owner.key not in seen:
                    scope = file.scope_of(owner.key[1])
                else:
                    scope = None
                seen.add(owner.key)
                if scope is not None:
                    bindings = scope.names.get(name, [])
                else:
                    bindings = []
                if bindings and all(
                    owner.symbols.index_at(binding.offset) < 0 for binding in bindings
                ):
                    first = min(binding.offset for binding in bindings)
                    end = first + len(name.encode())
                    return [
                        Place(
                            owner.path,
                            owner.symbols,
                            first,
                            end,
                            Resolution(PROVEN, "field"),
                            kind="field",
                        )
                    ]
                if not bindings and scope is not None:
                    waiting += self.names.bases(owner)[0]
        return []

    def resolve(self, named: NameAtPosition) -> Values | None:
        """Return what a name refers to, in such a language; in an import or export, the imported or exported symbol."""
        imports = self.names.imports_of(named.path)
        if named.symbols.role(named.start) == "import":
            known_imports = (
                *(import_ for several in imports.names.values() for import_ in several),
                *imports.exports.values(),
            )
            statements = named.symbols.parsed.statements[:, 0]
            around = statements[
                : statements.searchsorted(named.start, side="right")
            ].max(initial=-1)
            for import_ in known_imports:
                if (
                    named.text in {import_.name, import_.local}
                    and import_.module
                    and import_.offset == around
                ):
                    return self.names.import_value(named.path, import_)
        values = self.names.resolve(named.path, named.text, named.start)
        if not values and (export := imports.exports.get(named.text)) is not None:
            return self.names.import_value(named.path, export)
        return values

    def _places_of(self, named: NameAtPosition, meant: Values) -> list[Place]:
        places = []
        for value in meant:
            if value.module is not None:
                places += self._places_of_module(value.module)
            elif (
                value.definition is not None
                and not value.is_instance
                and not value.is_variable
            ):
                how = "same file" if value.definition.path == named.path else "import"
                places.append(place_of(value.definition, Resolution(PROVEN, how)))
        return places

    def _places_of_module(self, module: bytes | None) -> list[Place]:
        """Return the start of a module; for a Go package, of its first file."""
        if module is not None and module.endswith(b"/"):
            libraries = self._source.libraries
            if libraries is not None and module.startswith(b"/"):
                files = libraries.list_folder(module[:-1])
                files = [file for file in files if not file.endswith(b"_test.go")]
            else:
                files = self._source.candidates("package", fold=False)
            module = next(
                (
                    file
                    for file in files
                    if file.endswith(b".go") and file.rpartition(b"/")[0] == module[:-1]
                ),
                None,
            )
        if module is not None:
            symbols = self.open(module)
        else:
            symbols = None
        if module is None or symbols is None:
            return []
        return [
            Place(module, symbols, 0, 0, Resolution(PROVEN, "module"), kind="module")
        ]

    def _find_in_libraries(self, named: NameAtPosition) -> list[Place]:
        """Return the definitions in libraries of a name whose full name is written, or imported."""
        libraries = self._source.libraries
        if libraries is None:
            return []
        language = named.symbols.language
        imports = self.names.imports_of(named.path)
        for module, name in list_full_names(named, imports):
            for path in libraries.find_definers(language, named.path, module, name):
                symbols = self.open(path)
                if symbols is None:
                    continue
                places = _find_in_module(path, symbols, module, name)
                if places:
                    return places[:MOST_PLACES]
        return []

    # By names

    def _find_by_name(self, named: NameAtPosition) -> list[Place]:
        """Return the definitions of the name, most likely ones first."""
        language = named.symbols.language
        defined = self.define(named.text, named)
        use = Use(named.path, named.symbols, named.start)
        is_member = language in ECMA and use.receiver is not None
        rivals = [
            rival
            for rival in defined
            # The system that the project is built on has what it defines for others.
            if not stands_in(rival) and not (is_member and _is_free(rival))
        ]
        if _has_members(named):
            rivals = [rival for rival in rivals if rival.kind in _IMPORTED_FROM]
        resolve = self.make_resolver(rivals).resolver_of(use)
        resolved = [(rival, resolve(rival)) for rival in rivals]
        if not any(resolution for _, resolution in resolved):
            family = FAMILIES.get(language, language)
            # In C a field is always named behind its structure.
            is_bare = language == "c" and use.receiver is None
            alike = [
                rival
                for rival in rivals
                if FAMILIES.get(rival.language, rival.language) == family
                and not (is_bare and rival.kind == "field")
            ]
            resolved = [
                (definition, Resolution(NAMED_ALIKE, "name only"))
                for definition in alike
            ]
        places = [
            place_of(definition, resolution)
            for definition, resolution in resolved
            if resolution is not None
        ]
        near = _make_nearness(named)
        places.sort(
            key=lambda one: (-one.resolution.confidence, near(one.path), one.start)
        )
        # Guesses beside a certain result would make an editor ask which one is meant.
        places = [
            place
            for place in places
            if 2 * place.resolution.confidence >= places[0].resolution.confidence
        ]
        self._is_cut |= len(places) > MOST_PLACES
        return places[:MOST_PLACES]

    def define(
        self, name: str, named: NameAtPosition | None = None
    ) -> list[Definition]:
        """Return the definitions of a name; declarations only if there is no definition."""

        def choose(paths: list[bytes]) -> list[bytes]:
            if len(paths) <= MOST_DEFINING or named is None:
                return paths
            self._is_cut = True
            return sorted(sorted(paths, key=_make_nearness(named))[:MOST_DEFINING])

        return self._definitions.find(name, choose)

    def define_all(self, name: str) -> list[Definition]:
        """Return the definitions and the declarations of a name, wherever they are."""
        defined = self._definitions.find_everywhere(name)
        declared = self._definitions.declared.get(name, [])
        keys = {definition.key for definition in defined}
        return [*defined, *(one for one in declared if one.key not in keys)]

    def is_above(self, base: Definition, type_: Definition) -> bool:
        """Whether a type is a direct or indirect base of another, or an interface that the other satisfies."""
        if type_.language not in SCOPED:
            return base.name in self._ancestors.find(type_.name)
        if base.key in self.names.ancestors(type_):
            return True
        return conforms(self.names, type_, base)

    def find_in_bases(self, qualifiers: Sequence[str], name: str) -> list[Definition]:
        """Return the inherited members of the type that the qualifiers name."""
        return find_in_bases(qualifiers, name, self.names, self._ancestors.find)

    def make_resolver(self, rivals: Sequence[Definition]) -> Resolver:
        """Return a resolver that decides which of several definitions of a name a use refers to."""
        # C has no base types, and a field's name may have hundreds of owners.
        is_flat = all(rival.language == "c" for rival in rivals)
        return Resolver(
            rivals,
            (lambda _name: frozenset()) if is_flat else self._ancestors.find,
            self.names,
        )

    def open_all(self, paths: Iterable[bytes]) -> Iterator[tuple[bytes, FileSymbols]]:
        """Yield the files that have symbols."""
        for path in paths:
            if (symbols := self.open(path)) is not None:
                yield path, symbols

    def open(self, path: bytes) -> FileSymbols | None:
        """Return a file with its symbols; None if it has none or is gone."""
        return self._definitions.open(path)


def _find_local(named: NameAtPosition) -> list[Place]:
    """Return the local declaration that a bare name refers to, in languages whose scopes no query knows."""
    symbols = named.symbols
    if named.root is None:
        return []
    if Use(named.path, symbols, named.start).receiver is not None:
        return []
    declared = find_declaration(named.root, symbols, named.text, named.start)
    if declared is None:
        return []
    leaf, around = declared
    kind = "parameter" if "parameter" in around.type else "variable"
    return [_local(named, leaf.start_byte, leaf.end_byte, kind)]


def _has_members(named: NameAtPosition) -> bool:
    """Whether a name in an import is followed by what is imported from it."""
    symbols = named.symbols
    if symbols.role(named.start) != "import":
        return False
    return _SEPARATOR.match(symbols.data, named.end) is not None


def _is_free(definition: Definition) -> bool:
    """Whether a function is nobody's member: on an object of unknown type another is called."""
    return definition.kind == "function" and not definition.owner


def _find_in_module(
    path: bytes, symbols: FileSymbols, module: str, name: str
) -> list[Place]:
    """Return what a library's file defines under a full name: a definition, a member of a type, or itself."""
    owner = re.split(r"::|\.", module)[-1]
    definitions: list[Definition] = []
    members: list[Definition] = []
    for index in symbols.defining(name):
        definition = Definition(path, symbols, index)
        if definition.owner == owner:
            members.append(definition)
        elif symbols.kind(index) not in _MEMBERS:
            definitions.append(definition)
    whole = without_overloads(members or definitions)
    if whole:
        return [place_of(one, Resolution(PROVEN, "import")) for one in whole]
    stem, _, ending = path.rpartition(b"/")[2].partition(b".")
    if stem in {b"mod", b"lib"}:
        stem = path.split(b"/")[-2]
    # What a macro defines is no definition of the table, but written as one.
    written = re.search(_WRITTEN % re.escape(name).encode(), symbols.data)
    if ending == b"rs" and written is not None:
        how = Resolution(MEMBER, "import")
        return [Place(path, symbols, *written.span(1), how, kind="function")]
    if stem == name.encode() or b"/src/lib.rs" in path:
        how = Resolution(PROVEN, "module")
        return [Place(path, symbols, 0, 0, how, kind="module")]
    return []


def place_of(definition: Definition, resolution: Resolution) -> Place:
    """Return the place of a definition."""
    row = definition.symbols.row(definition.index)
    symbols = definition.symbols
    index = definition.index
    role = symbols.defined_role(index)
    kind = symbols.kind(index)
    return Place(
        definition.path,
        symbols,
        row[NAME],
        row[NAME_END],
        resolution,
        index,
        kind,
        role,
    )


def place_definitions(meaning: Meaning) -> list[Place]:
    """Return the places of another source's definitions."""
    return [
        place_occurrence(definition, Resolution(1.0, meaning.source.how))
        for definition in meaning.definitions
    ]


def place_occurrence(occurrence: SourceOccurrence, how: Resolution) -> Place:
    """Return the place of another source's definition."""
    index = occurrence.symbols.index_at(occurrence.start)
    if index >= 0:
        return place_of(Definition(occurrence.path, occurrence.symbols, index), how)
    kind = "variable" if occurrence.start < occurrence.end else "module"
    return Place(
        occurrence.path,
        occurrence.symbols,
        occurrence.start,
        occurrence.end,
        how,
        kind=kind,
    )


def _local(named: NameAtPosition, start: int, end: int, kind: str) -> Place:
    return Place(
        named.path, named.symbols, start, end, Resolution(PROVEN, "local"), kind=kind
    )


def _make_nearness(named: NameAtPosition) -> Callable[[bytes], tuple[object, ...]]:
    """Return a sort key for files by nearness: the file itself, its imports, its folder, sources."""
    imported = set()
    for start, end in named.symbols.parsed.statements.tolist():
        text = named.symbols.data[start:end]
        imported.update(
            text.replace(b'"', b" ")
            .replace(b"<", b" ")
            .replace(b">", b" ")
            .replace(b"'", b" ")
            .split()
        )
    folders = named.path.split(b"/")[:-1]
    stems = {path_imported.rpartition(b"/")[2] for path_imported in imported}

    def measure(path: bytes) -> tuple[object, ...]:
        is_imported = path.rpartition(b"/")[2] in stems and any(
            path.endswith(b"/" + path_imported) or path == path_imported
            for path_imported in imported
        )
        shared = 0
        for folder, other in zip(folders, path.split(b"/"), strict=False):
            if folder != other:
                break
            shared += 1
        return path != named.path, not is_imported, -shared, tier_of(path), path

    return measure


@dataclass(frozen=True, slots=True)
class Hover:
    """A definition's signature on one line, its documentation, and their language."""

    signature: str
    documentation: str
    language: str


def describe(place: Place) -> Hover:
    """Return the signature and the documentation of a place."""
    symbols = place.symbols
    if place.index >= 0:
        signature = symbols.signature(place.index)
        documentation = read_documentation(symbols, place.index)
    else:
        line = symbols.lines.text(symbols.lines.line(place.start)).strip()
        signature = "" if place.kind == "module" else line[:MOST_DOCUMENTATION]
        documentation = ""
    return Hover(signature, documentation, symbols.language)


def read_documentation(symbols: FileSymbols, index: int) -> str:
    """Return a definition's documentation without comment markers: Python's docstring, elsewhere the comment above."""
    data = symbols.data
    row = symbols.row(index)
    if symbols.language == "python":
        head = row[NAME] + find_body(data[row[NAME] : row[END]], 0)
        skips = symbols.parsed.skips
        at = int(skips[:, 0].searchsorted(head))
        if at == len(skips) or data[head : int(skips[at, 0])].strip(b" \t\r\n:\"'rRuU"):
            return ""
        start, end = skips[at].tolist()
        return inspect.cleandoc(
            data[start : min(end, start + MOST_DOCUMENTATION)].decode("utf-8", SHOWN)
        )
    start, end = _comment_above(symbols, row[START])
    lines = (
        data[start : min(end, start + MOST_DOCUMENTATION)]
        .decode("utf-8", SHOWN)
        .splitlines()
    )
    return inspect.cleandoc(
        "\n".join(_CLOSES.sub("", _OPENS.sub("", line)).rstrip() for line in lines)
    ).strip()


def _comment_above(symbols: FileSymbols, start: int) -> tuple[int, int]:
    """Return the span of the comments directly above a definition, annotations included; empty if there are none."""
    data = symbols.data
    lines = symbols.lines
    skips = symbols.parsed.skips
    line = lines.line(start)
    if not _LEADS.match(data, lines.start(line), start):
        return start, start
    for _ in range(_MOST_PIECES):
        if line > 1 and data[
            lines.start(line - 1) : lines.start(line)
        ].lstrip().startswith(_ANNOTATIONS):
            line -= 1
    first = end = lines.start(line)
    at = int(skips[:, 0].searchsorted(first)) - 1
    while at >= 0 and len(skips) and end - first < MOST_DOCUMENTATION:
        piece_start, piece_end = skips[at].tolist()
        between = data[piece_end:first]
        before = data[data.rfind(b"\n", 0, piece_start) + 1 : piece_start]
        if between.strip() or between.count(b"\n") > 1 or before.strip():
            break
        first = piece_start
        at = at - 1
    return first, end
