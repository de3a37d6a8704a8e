"""The uses of the definition that a name refers to, by path and position, with confidence; and unused definitions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from flashgrep.base.checkpoint import Expired, checkpoint, expiring
from flashgrep.base.languages import LANGUAGES
from flashgrep.index.table import TEST, tier_of
from flashgrep.parts.navigation.navigation import Navigation, Navigator, Place, place_of
from flashgrep.parts.navigation.resolution.conformance import conforms
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.resolver import Use
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    PROVEN,
    Definition,
    Resolution,
    SymbolKey,
)
from flashgrep.parts.symbols.name_at_position import (
    NameAtPosition,
    NoResult,
    find_declaration,
)
from flashgrep.parts.symbols.other_sources import Meaning
from flashgrep.parts.symbols.parse.imports import DEFAULT, ECMA, may_rename
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.parse.scoping import SCOPED
from flashgrep.parts.symbols.symbol_source import SymbolSource

LEAST: Final = 0.3
"""Uses with less confidence are counted, not returned."""
MOST_ALIASES: Final = 50
MOST_DEFINITIONS: Final = 2_000
MOST_USES: Final = 2_000
"""Most occurrences of one name examined; a name with more counts as used."""
_ENTRIES: Final = frozenset(
    {"main", "init", "setup", "teardown", "setUp", "tearDown", "Main", "constructor"}
)
_LINE: Final = 200
_LABEL: Final = re.compile(rb"[\w$]+\s*(?:=(?![=>])|:(?!=))")
"""A name and what follows it where it may be an argument's, a label or a key."""
_JUMP: Final = re.compile(rb"\b(?:break|continue|goto)\s+\Z")
_MOST_JUMP: Final = 20
_LABELLED: Final = frozenset(
    {"label", "labeled_statement", "break_statement", "continue_statement"}
)
_MEMBERS: Final = frozenset({"field", "property", "method", "event"})
_QUOTES: Final = (b"'", b'"', b"`")

Judge = Callable[[bytes, FileSymbols, int], Resolution | None]
"""Gives the confidence that the name at an offset of a file refers to what is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceQuestion:
    """Selects uses."""

    limit: int
    include_declaration: bool = True
    only_here: bool = False
    """Whether only uses in the same file are wanted."""
    after: tuple[bytes, int] = (b"", -1)
    """The file and offset after which uses are wanted."""
    least: float = LEAST
    """Uses with less confidence are counted, not returned."""
    asks_others: bool = True
    """Whether other sources are asked: they know one definition, not a method together with its overrides."""


class ReferenceSearch:
    """Answers one question."""

    def __init__(
        self,
        source: SymbolSource,
        question: ReferenceQuestion,
        navigator: Navigator | None = None,
    ) -> None:
        self._source = source
        self._question = question
        self._navigator = navigator or Navigator(source)

    def run(self, named: NameAtPosition) -> Navigation:
        """Return the uses of a name's definition, including its own name where it is defined."""
        definitions = self._navigator.find_definitions(named)
        targets = definitions.places
        definitions.places = []
        if any(target.kind == "module" for target in targets):
            definitions.no_result = NoResult(
                "module", "the name refers to a file; ask code_research what imports it"
            )
        elif targets:
            for place in self.find_uses(named, targets, definitions):
                if len(definitions.places) == self._question.limit:
                    definitions.has_more = True
                    break
                definitions.places.append(place)
            if not definitions.places:
                definitions.no_result = NoResult("unused", f"nothing uses {named.text}")
        return definitions

    def find_uses(
        self, named: NameAtPosition, targets: list[Place], found: Navigation
    ) -> Iterator[Place]:
        """Yield the uses of any of the targets, by path and position; those too uncertain are counted."""
        question = self._question
        after = question.after
        defined = {(target.path, target.start): target for target in targets}
        first = targets[0]
        # Prepared once: the judge runs at every occurrence in every candidate.
        judge = self._make_judge(named, targets)
        meaning = None
        if question.asks_others:
            meaning = self._navigator.find_meaning(named, uses=True)
        names = self._choose_names(named, first, meaning)
        paths = sorted(path for path in names if path >= after[0])
        for path, symbols in self._navigator.open_all(paths):
            found.files_read += 1
            from_source = self.find_source_uses(meaning, path, defined)
            # Another source may know uses under different names, so its positions are
            # added to those of the words.
            occurrences = {
                at: name
                for name in names[path]
                for at in symbols.words(name.encode(), fold=False)
            }
            occurrences |= {at: named.text for at, uses in from_source.items() if uses}
            for offset, name in sorted(occurrences.items()):
                checkpoint()
                if (path, offset) <= after:
                    continue
                # A compiler's result for exactly this position overrules the text.
                if offset in from_source:
                    yield from from_source[offset]
                    continue
                index = _index_at(symbols, offset)
                role = _find_role(symbols, offset, index)
                if role is None:
                    continue
                place = defined.get((path, offset))
                if place is not None or index >= 0:
                    if place is None and role == "declaration" and first.index >= 0:
                        guess = Resolution(GUESS, "name only")
                        place = place_of(Definition(path, symbols, index), guess)
                    if place is not None and question.include_declaration:
                        yield place
                    continue
                if self._is_label(path, symbols, offset, first):
                    continue
                resolution = judge(path, symbols, offset)
                if resolution is None:
                    continue
                if resolution.confidence < question.least:
                    found.unsure += 1
                    continue
                end = offset + len(name.encode())
                yield Place(
                    path,
                    symbols,
                    offset,
                    end,
                    resolution,
                    role=role,
                )

    def _choose_names(
        self, named: NameAtPosition, first: Place, meaning: Meaning | None
    ) -> Mapping[bytes, Collection[str]]:
        """Return the files that may use a definition, and under which names."""
        is_local = first.resolution.how == "local"
        # Another source that knows no file of its uses knows that there are none.
        is_unused = meaning is not None and not meaning.files
        if self._question.only_here or is_local or is_unused:
            return {named.path: {named.text}}
        files = () if meaning is None else meaning.files
        return self._find_names(named.text, first, files)

    def _is_label(
        self, path: bytes, symbols: FileSymbols, offset: int, first: Place
    ) -> bool:
        """Whether a name is that of an argument, a label, or a key, which no variable or function is meant by."""
        is_member = first.kind in _MEMBERS
        language = symbols.language
        if language not in SCOPED or not _LABEL.match(symbols.data, offset):
            jumps = _JUMP.search(symbols.data, max(0, offset - _MOST_JUMP), offset)
            if jumps is None or language not in ECMA | {"go"}:
                return False
        scopes = self._navigator.names.scopes_of(path)
        node = scopes.node_at(offset) if scopes is not None else None
        around = node.parent if node is not None else None
        if node is None or around is None:
            return False
        if node.type in {"statement_identifier", "label_name"}:
            return True
        if language == "go" and not is_member:
            return self._is_field(path, symbols, node)
        if around.type == "pair" and node.type == "property_identifier":
            return not is_member
        return around.type == "keyword_argument" and around.start_byte == offset

    def _is_field(self, path: bytes, symbols: FileSymbols, node: Node) -> bool:
        """Whether a name is the key of a field in a literal of Go, and not that of a map."""
        element = node.parent
        keyed = element.parent if element is not None else None
        if keyed is None or keyed.type != "keyed_element" or element != keyed.child(0):
            return False
        value = keyed.parent
        literal = value.parent if value is not None else None
        if literal is None or literal.type != "composite_literal":
            return True  # its type is that of the elements around it
        type_ = literal.child_by_field_name("type")
        if type_ is None or type_.type in {"map_type", "slice_type", "array_type"}:
            return False
        name = type_.child_by_field_name("name") or type_
        at = name.start_byte
        values = self._navigator.names.resolve(path, symbols.word_at(at), at) or ()
        kinds = {value.definition.kind for value in values if value.definition}
        return not kinds or "struct" in kinds

    def find_source_uses(
        self,
        meaning: Meaning | None,
        path: bytes,
        defined: Mapping[tuple[bytes, int], Place],
    ) -> dict[int, list[Place]]:
        """Return another source's uses in a file, by offset; an empty list where a name refers to something else."""
        if meaning is None:
            return {}
        teller = meaning.source
        open_file = self._navigator.open
        how = Resolution(1.0, meaning.source.how)
        known_uses: dict[int, list[Place]] = {
            at: [] for at in teller.find_known(path, open_file)
        }
        for occurrence in (
            teller.find_occurrences(meaning.numbers, path, open_file) or ()
        ):
            use = defined.get((path, occurrence.start)) or Place(
                path,
                occurrence.symbols,
                occurrence.start,
                occurrence.end,
                how,
                role=occurrence.role,
            )
            known_uses[occurrence.start] = (
                [use]
                if self._question.include_declaration or occurrence.role != "definition"
                else []
            )
        return known_uses

    def _make_judge(self, named: NameAtPosition, targets: list[Place]) -> Judge:
        """Return the judge of whether a name refers to one of the targets."""
        first = targets[0]
        navigator = self._navigator
        if first.index < 0 and named.symbols.language in SCOPED:
            return self._make_judge_of_bound(first)
        if first.index < 0:
            return _make_judge_of_local(named, first)
        definitions = [
            Definition(target.path, target.symbols, target.index) for target in targets
        ]
        resolver = navigator.make_resolver(navigator.define(definitions[0].name, named))

        def judge(
            path: bytes,
            symbols: FileSymbols,
            offset: int,
        ) -> Resolution | None:
            use = Use(path, symbols, offset)
            # An import may bind another name.
            if symbols.language in SCOPED and symbols.role(offset) == "import":
                keys = self._find_imports(path, symbols, offset)
                if any(definition.key in keys for definition in definitions):
                    return Resolution(PROVEN, "import")
                return None
            resolve = resolver.resolver_of(use)
            resolutions = [
                resolution
                for target in definitions
                if (resolution := resolve(target)) is not None
            ]
            return max(resolutions, key=lambda one: one.confidence, default=None)

        return judge

    def _make_judge_of_bound(self, first: Place) -> Judge:
        """Return the judge of a name that a scope binds, in a language whose scopes are known."""
        navigator = self._navigator

        def judge(
            path: bytes,
            symbols: FileSymbols,
            offset: int,
        ) -> Resolution | None:
            end = offset + first.end - first.start
            name = NameAtPosition(path, symbols, offset, end)
            # The same name may be bound by several scopes; only one of them is asked about.
            for place in navigator.find_bound(name):
                if (place.path, place.start) == (first.path, first.start):
                    return place.resolution
            return None

        return judge

    def _find_imports(
        self, path: bytes, symbols: FileSymbols, offset: int
    ) -> set[SymbolKey]:
        """Return the keys of the definitions that a name in an import stands for."""
        end = offset + len(symbols.word_at(offset).encode("utf-8", "replace"))
        name = NameAtPosition(path, symbols, offset, end)
        values = self._navigator.resolve(name) or ()
        return {
            value.definition.key for value in values if value.definition is not None
        }

    def _find_names(
        self, name: str, target: Place, known_files: Iterable[bytes]
    ) -> dict[bytes, set[str]]:
        """Return the files that may use a definition, each with the names it may have there.

        ``known_files``: files that use it under any name, according to another source.
        """
        names_by_path: dict[bytes, set[str]] = {path: set() for path in known_files}
        is_scoped = target.symbols.language in SCOPED
        waiting = [
            name,
            *({target.symbols.name(target.index)} if target.index >= 0 else ()),
        ]
        seen = set[str]()
        # An alias may be re-exported under another alias; MOST_ALIASES bounds cycles
        # and long chains.
        while waiting:
            called = waiting.pop()
            if called in seen or len(seen) > MOST_ALIASES:
                continue
            seen.add(called)
            for path in self._source.candidates(called, fold=False):
                checkpoint()
                names_by_path.setdefault(path, set()).add(called)
                for other, local, is_given_on in (
                    self._find_aliases(path, called) if is_scoped else ()
                ):
                    names_by_path.setdefault(other, set()).add(local)
                    waiting += [local] if is_given_on else []
        if target.path.startswith(b"/"):
            # Of a library only the file that defines it: the rest is not the project's.
            names_by_path.setdefault(target.path, set()).add(name)
        return names_by_path

    def _find_aliases(
        self, path: bytes, name: str
    ) -> Iterator[tuple[bytes, str, bool]]:
        """Yield the aliases in a file for a name: the file, the alias, and whether other files may import the alias."""
        symbols = self._navigator.open(path)
        if (
            symbols is None
            or symbols.language not in SCOPED
            or not may_rename(symbols, name)
        ):
            return
        imports = self._navigator.names.imports_of(path)
        for local in imports.list_aliases(name):
            # In Python everything that a module imports can be imported from it.
            yield path, local, symbols.language == "python"
        for local in imports.list_exports(name):
            if local == DEFAULT:
                stem = Definition(path, symbols, -1).stem
                others = self._source.candidates(stem, fold=False) if stem else ()
                yield from self._navigator.names.find_default_names(path, others)
            else:
                yield path, local, True


def _index_at(symbols: FileSymbols, offset: int) -> int:
    """Return the number of the definition whose name is at an offset; below 0: none."""
    index = symbols.index_at(offset)
    if index >= 0 and symbols.kind(index) == "extension":
        return -1  # what it extends is defined elsewhere
    return index


def _find_role(symbols: FileSymbols, offset: int, index: int) -> Role | None:
    """Return the role of a name that the definition ``index`` may have; None: it is in a comment or a string."""
    if index < 0:
        return symbols.role(offset)
    return symbols.defined_role(index)


def _make_judge_of_local(named: NameAtPosition, first: Place) -> Judge:
    """Return the judge of a name that a declaration in its own file binds."""
    root = named.root

    def judge(
        path: bytes,
        symbols: FileSymbols,
        offset: int,
    ) -> Resolution | None:
        # Behind a dot, in a label or in a field's place no variable is meant.
        is_bare = Use(path, symbols, offset).receiver is None
        if root is None or not is_bare or _is_apart(root, offset):
            return None
        declaration = find_declaration(root, symbols, named.text, offset)
        if declaration is None or declaration[0].start_byte != first.start:
            return None
        return first.resolution

    return judge


def _is_apart(root: Node, offset: int) -> bool:
    """Whether a name is that of a field or a label."""
    leaf = root.descendant_for_byte_range(offset, offset + 1)
    if leaf is None:
        return False
    if leaf.type in {"field_identifier", "statement_identifier"}:
        return True
    return leaf.parent is not None and leaf.parent.type in _LABELLED


@dataclass(slots=True)
class UnusedSearch:
    """Finds functions, methods and types below a path that nothing in the project refers to.

    ``excluded`` counts, by reason, definitions that may be used in ways that names do not show.
    """

    under: bytes
    deadline: float | None = None
    unused: list[Definition] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    checked: int = 0
    files_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    complete: bool = True

    def run(self, source: SymbolSource) -> None:
        """Examine the definitions, file by file."""
        navigator = Navigator(source)
        self.skipped = navigator.skipped
        try:
            with expiring(
                self.deadline
            ):  # one definition may have thousands of uses, in files that must be parsed
                for definition in self.definitions(source, navigator):
                    checkpoint()
                    if self.checked >= MOST_DEFINITIONS:
                        self.complete = False
                        return
                    reason = explain_possible_use(definition, navigator) or find_use(
                        definition, source, navigator
                    )
                    self.checked += 1
                    if reason is None:
                        self.unused.append(definition)
                    elif reason:
                        self.excluded[reason] += 1
        except Expired:
            self.complete = False

    def definitions(
        self, source: SymbolSource, navigator: Navigator
    ) -> Iterator[Definition]:
        """Yield the definitions to examine; excluded ones are counted."""
        under = self.under.rstrip(b"/")
        for path in source.paths():
            if under and path != under and not path.startswith(under + b"/"):
                continue
            symbols = navigator.open(path)
            if symbols is None or LANGUAGES[symbols.language].nature != "code":
                continue
            self.files_read += 1
            if tier_of(path) >= TEST:
                self.excluded["tests, generated and vendored files"] += symbols.count
                continue
            for index in range(symbols.count):
                is_one = (
                    symbols.kind(index) in CALLABLE_KINDS | TYPE_KINDS
                    and symbols.defined_role(index) == "definition"
                )
                if is_one:
                    yield Definition(path, symbols, index)


def explain_possible_use(one: Definition, navigator: Navigator) -> str | None:
    """Return why a definition may be used although no name refers to it; None if no reason is known."""
    symbols = one.symbols
    name = one.name
    row = symbols.row(one.index)
    if (
        name in _ENTRIES
        or (name.startswith("__") and name.endswith("__"))
        or name.lower().startswith("test")
    ):
        return "entry points"
    head = symbols.lines.start(symbols.lines.line(row[START]))
    above = (
        symbols.data[max(0, head - _LINE) : head].rstrip().rpartition(b"\n")[2].lstrip()
    )
    if above.startswith((b"@", b"#[", b"[")) or symbols.data[
        head : row[NAME]
    ].lstrip().startswith((b"@", b"#[")):
        return "decorated"
    return explain_visibility(one, navigator)


def _may_override(names: Names, owner: Definition, name: str) -> bool:
    """Return whether a base of a type may have a member of this name."""
    if owner.symbols.language not in SCOPED:
        return any(True for _ in owner.symbols.bases(owner.index))
    bases, is_whole = names.bases(owner)
    return not is_whole or any(names.member(base, name) for base in bases)


def explain_visibility(one: Definition, navigator: Navigator) -> str | None:
    """Return why code outside the project, or a base type, may use a definition; None if no reason is known."""
    symbols = one.symbols
    around = one.symbols.parent(one.index)
    language = LANGUAGES[symbols.language]
    is_python = symbols.language == "python"
    owner = around if around >= 0 and symbols.kind(around) in TYPE_KINDS else -1
    outer = owner if owner >= 0 else one.index
    # Everything in Python can be imported, so definitions that the project itself does
    # not use are reported.
    is_hidden = is_python or b"private" in symbols.signature(one.index).encode()
    if not is_hidden and language.exports(
        symbols.name(outer), symbols.signature(outer)
    ):
        return "exported"
    if owner < 0:
        return None
    own = Definition(one.path, symbols, owner)
    names = navigator.names
    if _may_override(names, own, one.name):
        return "may override a method of a base"
    rivals = (
        names.owner_of(rival)
        for rival in navigator.define(one.name)
        if rival.key != one.key
    )
    is_asked = any(
        rival is not None and conforms(names, own, rival) for rival in rivals
    )
    return "required by an interface" if is_asked else None


def find_use(one: Definition, source: SymbolSource, navigator: Navigator) -> str | None:
    """Return "" if a use exists, the reason why one may exist, or None: nothing uses the definition."""
    name = one.name
    seen = 0
    row = one.symbols.row(one.index)
    resolver = navigator.make_resolver(navigator.define(name))
    quoted = [quote + name.encode() + quote for quote in _QUOTES]
    is_quoted = False
    for path in source.candidates(name, fold=False):
        symbols = navigator.open(path)
        if symbols is None:
            text = source.read(path) or b""
            is_quoted = is_quoted or any(quote in text for quote in quoted)
            continue
        for offset in symbols.words(name.encode(), fold=False):
            checkpoint()
            seen += 1
            if seen > MOST_USES:
                return ""
            # A function that only calls itself is unused.
            if symbols.index_at(offset) >= 0 or (
                path == one.path and row[START] <= offset < row[END]
            ):
                continue
            role = symbols.role(offset)
            if role is None:
                is_quoted = (
                    is_quoted
                    or symbols.data[offset - 1 : offset + len(name.encode()) + 1]
                    in quoted
                )
            elif role == "import" or resolver.may_mean(Use(path, symbols, offset), one):
                return ""
    return "named in a string" if is_quoted else None
