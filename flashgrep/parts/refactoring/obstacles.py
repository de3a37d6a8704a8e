"""Why a rename would break code: the new name is taken, or the old one is given by a language or a library."""

import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import path_to_text
from flashgrep.parts.navigation.navigation import Navigator, Place
from flashgrep.parts.navigation.resolution.linkage import LINKED, is_static
from flashgrep.parts.navigation.resolution.plain_text import read_base
from flashgrep.parts.navigation.resolution.resolver import Use
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.refactoring.families import FamilySearch
from flashgrep.parts.refactoring.hidden_uses import MEMBERS, is_local
from flashgrep.parts.refactoring.renaming import (
    RenamedUse,
    Renaming,
    place_text,
)
from flashgrep.parts.symbols.name_at_position import find_declaration
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, START, TYPE_KINDS
from flashgrep.parts.symbols.parse.scoping import MODULE, SCOPED

MOST_NAME: Final = 200
MOST_SHOWN: Final = 5
"""Places of one obstacle that are named."""
_C: Final = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
)
_ECMA: Final = (
    "await break case catch class const continue debugger default delete do else enum export extends false finally "
    "for function if import in instanceof new null return super switch this throw true try typeof var void while "
    "with yield let static implements interface package private protected public"
)
_JAVA: Final = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "final finally float for goto if implements import instanceof int interface long native new package private "
    "protected public return short static strictfp super switch synchronized this throw throws transient try void "
    "volatile while true false null"
)
_GO: Final = (
    "break case chan const continue default defer else fallthrough for func go goto if import interface map package "
    "range return select struct switch type var"
)
_RUST: Final = (
    "as break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref "
    "return self Self static struct super trait true type unsafe use where while async await dyn"
)
KEYWORDS: Final = {
    "python": frozenset(keyword.kwlist),
    "java": frozenset(_JAVA.split()),
    "go": frozenset(_GO.split()),
    "rust": frozenset(_RUST.split()),
    **dict.fromkeys(ECMA, frozenset(_ECMA.split())),
    **dict.fromkeys(LINKED, frozenset(_C.split())),
}
_GIVEN: Final = {
    "python": re.compile(r"__\w+__"),
    "go": re.compile(r"main|init"),
    "rust": re.compile(r"main"),
    "java": re.compile(r"main"),
    **dict.fromkeys(LINKED, re.compile(r"main")),
    **dict.fromkeys(ECMA, re.compile(r"constructor")),
}
"""Names that a language, or the program that runs the code, gives a meaning."""
_GO_TEST: Final = re.compile(r"(Test|Benchmark|Example|Fuzz)(?![a-z])\w*")
"""Functions that Go's test program finds by their names."""
_GO_METHODS: Final = frozenset({
    "String", "Error", "Read", "Write", "Close", "Len", "Less", "Swap", "Push", "Pop", "Unwrap", "Is", "As",
    "ServeHTTP", "Scan", "Value", "Seek", "ReadByte", "WriteByte", "ReadFrom", "WriteTo", "ReadAt", "WriteAt",
    "WriteString", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
    "MarshalYAML", "UnmarshalYAML", "Format", "GoString", "Lock", "Unlock", "Done", "Deadline", "Err", "Timeout",
    "Temporary", "Open", "Stat", "Name", "Size", "Mode", "ModTime", "IsDir", "Sys", "RoundTrip", "Accept", "Addr",
    "Network", "Set", "Get", "Header", "WriteHeader", "Flush",
})  # fmt: skip
"""Methods of interfaces of Go's library, which types satisfy without naming them."""
_FREE_OF_NAMES: Final = frozenset(
    {"property_identifier", "field_identifier", "statement_identifier", "label_name"}
)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a rename is refused: in a word, in words, and where."""

    reason: str
    message: str
    places: tuple[str, ...] = ()
    is_certain: bool = True
    """False: the caller may accept it, as uses that only may be meant."""


def check_name(new: str, old: str, language: str) -> None:
    """Check a new name: letters, digits, underscores, and whatever other characters the old name has.

    Raises:
        ValueError: it is no name of the language, a keyword, or the old name.

    """
    # Such as the ``?`` of Ruby or the ``'`` of Haskell.
    signs = set(re.sub(r"\w", "", old))
    extra = re.escape("".join(sorted(signs)))
    if new == old:
        raise ValueError("it has this name already")
    if len(new) > MOST_NAME or not re.fullmatch(rf"(?!\d)[\w{extra}]+", new):
        raise ValueError(
            "no valid name; give the last part alone, as `turn` for `Wheel.turn`"
        )
    if new in KEYWORDS.get(language, ()):
        raise ValueError(f"a word of {language} itself")


class ObstacleSearch:
    """Finds what stands against one rename."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming
        self._navigator: Navigator = renaming.navigator
        self._families = FamilySearch(renaming.navigator)

    def run(
        self, old: str, new: str, family: Sequence[Place], uses: Sequence[RenamedUse]
    ) -> Iterator[Obstacle]:
        """Yield the obstacles; ``uses``: those that would change."""
        first = family[0]
        language = first.symbols.language
        meaning = _GIVEN.get(language)
        is_given = meaning is not None and meaning.fullmatch(old) is not None
        if language == "go":
            test = _GO_TEST.fullmatch(old)
        else:
            test = None
        if test is not None and first.path.endswith(b"_test.go"):
            is_given = _GO_TEST.fullmatch(new) is None
        if is_given and not is_local(first):
            yield Obstacle(
                "given_name", f"{old} has a meaning of its own in {language}"
            )
        yield from self._find_outside(old, family)
        yield from _check_file_name(old, new, family)
        clashes = list(dict.fromkeys(self._find_rivals(new, family, uses)))
        if clashes:
            message = (
                f"{new} is already a name there: {', '.join(clashes[:MOST_SHOWN])}"
            )
            yield Obstacle("name_taken", message, tuple(clashes))

    def _find_outside(self, old: str, family: Sequence[Place]) -> Iterator[Obstacle]:
        """Yield why a method may override one that is not in the project."""
        for place in family:
            if place.index < 0 or place.kind not in {"method", "function"}:
                continue
            definition = Definition(place.path, place.symbols, place.index)
            owner = self._navigator.names.owner_of(definition)
            if owner is None:
                continue
            base = self._find_library_base(definition, owner)
            if base:
                message = f"{place_text(place)} may override {base}.{old} of a library"
                is_certain = place.symbols.language == "java"
                yield Obstacle("library", message, (place_text(place),), is_certain)
                return

    def _find_library_base(self, method: Definition, owner: Definition) -> str:
        """Return the base of a type that is not in the project and may have the method; empty: none."""
        language = method.language
        if language == "go":
            if method.name in _GO_METHODS:
                return "an interface"
            return ""
        if language == "java":
            if self._is_override(method):
                return "a type"
            return ""
        if language not in {"python", "rust", *ECMA}:
            return ""
        waiting = [owner]
        seen = {owner.key}
        while waiting:
            type_ = waiting.pop()
            for base in self._find_library_names(type_):
                if language != "python" or _may_have(base, method.name):
                    return base
            if language in SCOPED:
                above = self._navigator.names.bases(type_)[0]
            else:
                above = []
            for definition in above:
                if definition.key not in seen:
                    seen.add(definition.key)
                    waiting.append(definition)
        return ""

    def _is_override(self, method: Definition) -> bool:
        """Whether a method of Java overrides one that is not in the project."""
        row = method.symbols.row(method.index)
        start = row[START]
        head = method.symbols.data[start : start + MOST_NAME]
        if b"@Override" not in head:
            return False
        return len(self._families.run(method)) == 1

    def _find_library_names(self, type_: Definition) -> Iterator[str]:
        """Yield the names of the bases in a type's head that the project does not define."""
        symbols = type_.symbols
        for offset in symbols.bases(type_.index):
            word = symbols.word_at(offset)
            if type_.language in SCOPED:
                if read_base(symbols, offset) is None:
                    continue
                values = self._navigator.names.resolve(type_.path, word, offset) or ()
                is_known = any(value.definition for value in values)
            else:
                is_known = any(
                    definition.kind in TYPE_KINDS
                    for definition in self._navigator.define(word)
                )
            if not is_known:
                yield word

    def _find_rivals(
        self, new: str, family: Sequence[Place], uses: Sequence[RenamedUse]
    ) -> Iterator[str]:
        """Yield where the new name is taken."""
        first = family[0]
        # A member meets only members, since it is named through its object.
        if first.kind in MEMBERS or _is_member(first):
            yield from self._find_members(new, family)
            return
        offsets: dict[bytes, list[int]] = {}
        for use in uses:
            offsets.setdefault(use.place.path, []).append(use.place.start)
        for path, places in offsets.items():
            symbols = self._navigator.open(path)
            if symbols is not None:
                for offset in self._find_in_file(new, first, path, symbols, places):
                    yield f"{path_to_text(path)}:{symbols.lines.line(offset)}"
        if not is_local(first):
            for definition in self._navigator.define_all(new):
                if _meet(first, definition):
                    yield definition_text(definition)

    def _find_members(self, new: str, family: Sequence[Place]) -> Iterator[str]:
        """Yield the members of this name of the same types, of those above and below."""
        names = self._navigator.names
        alike = self._navigator.define_all(new)
        for owner in filter(None, map(self._find_owner, family)):
            for other in alike:
                checkpoint()
                if self._families.belongs_to(other, owner):
                    yield definition_text(other)
            file = names.scopes_of(owner.path)
            if file is not None:
                scope = file.scope_of(owner.key[1])
            else:
                scope = None
            for binding in scope.names.get(new, []) if scope is not None else []:
                line = owner.symbols.lines.line(binding.offset)
                yield f"{path_to_text(owner.path)}:{line}"

    def _find_owner(self, place: Place) -> Definition | None:
        """Return the type that a member belongs to, also if a method sets it."""
        if place.index >= 0:
            member = Definition(place.path, place.symbols, place.index)
            return self._navigator.names.owner_of(member)
        around = place.symbols.enclosing(place.start)
        while around >= 0 and place.symbols.kind(around) not in TYPE_KINDS:
            around = place.symbols.parent(around)
        if around < 0:
            return None
        return Definition(place.path, place.symbols, around)

    def _find_in_file(
        self,
        new: str,
        target: Place,
        path: bytes,
        symbols: FileSymbols,
        uses: Sequence[int],
    ) -> Iterator[int]:
        """Yield where a file has the new name as one that would meet the renamed one."""
        root = self._renaming.trees.root(path, symbols)
        if is_local(target):
            around = symbols.enclosing(target.start)
        else:
            around = -1
        if around >= 0:
            span = symbols.row(around)
        else:
            span = None
        for offset in symbols.words(new.encode(), fold=False):
            checkpoint()
            index = symbols.index_at(offset)
            if index < 0 and symbols.role(offset) is None:
                continue
            # A local name meets only what is named in its function.
            if span is not None and not span[START] <= offset < span[END]:
                continue
            if root is not None and _is_free(root, offset):
                continue
            if Use(path, symbols, offset).receiver is not None:
                continue
            if index >= 0 and (
                symbols.kind(index) in MEMBERS or symbols.kind(index) == "package"
            ):
                continue
            if not self._is_elsewhere(new, path, symbols, offset, uses):
                yield offset

    def _is_elsewhere(
        self,
        new: str,
        path: bytes,
        symbols: FileSymbols,
        offset: int,
        uses: Sequence[int],
    ) -> bool:
        """Whether the new name there is that of a function in which the renamed one is not used."""
        # Bound in a function without a use of the renamed one, neither hides the other.
        if symbols.language in SCOPED:
            file = self._navigator.names.scopes_of(path)
            for scope in file.around(offset) if file is not None else ():
                if file is None or scope == MODULE:
                    return False
                if new in file.scopes[scope].names:
                    start = file.scopes[scope].start
                    end = file.scopes[scope].end
                    return not any(start <= use < end for use in uses)
            return False
        root = self._renaming.trees.root(path, symbols)
        if root is None or find_declaration(root, symbols, new, offset) is None:
            return False
        outermost = around = symbols.enclosing(offset)
        while around >= 0:
            if symbols.kind(around) in CALLABLE_KINDS:
                outermost = around
            around = symbols.parent(around)
        row = symbols.row(outermost)
        for use in uses:
            if row[START] <= use < row[END]:
                return False
        return True


def _is_member(place: Place) -> bool:
    """Whether a definition is named through its type: a function or constant written in one."""
    if place.index < 0:
        return place.kind == "field"
    above = place.symbols.parent(place.index)
    return (
        above >= 0
        and place.symbols.kind(above) in TYPE_KINDS
        and place.symbols.language != "c"
    )


def _is_free(root: Node, offset: int) -> bool:
    """Whether a word is no name of its own: a member, a label, or an argument's name."""
    node = root.descendant_for_byte_range(offset, offset + 1)
    if node is None or node.type in _FREE_OF_NAMES:
        return True
    around = node.parent
    return (
        around is not None
        and around.type == "keyword_argument"
        and around.start_byte == node.start_byte
    )


def _may_have(base: str, name: str) -> bool:
    """Whether a base of Python that is not in the project may have a method of this name."""
    builtin = getattr(builtins, base, None)
    if isinstance(builtin, type):
        return hasattr(builtin, name)
    return base not in {
        "ABC",
        "Protocol",
        "Generic",
        "NamedTuple",
        "TypedDict",
        "Enum",
        "IntEnum",
        "StrEnum",
    }


def _meet(first: Place, other: Definition) -> bool:
    """Whether two definitions of one name would be in one scope, though in different files."""
    language = first.symbols.language
    if other.language != language or other.path == first.path:
        return False
    is_top = other.symbols.parent(other.index) < 0 and not other.owner
    if not is_top or other.kind in {"package", "module", "heading"}:
        return False
    if language in {"go", "java"}:
        folder = first.path.rpartition(b"/")[0]
        return folder == other.path.rpartition(b"/")[0]
    # A static function of another file is another name.
    if language not in LINKED or "macro" in {first.kind, other.kind}:
        return False
    own = Definition(first.path, first.symbols, first.index)
    if is_static(other):
        return False
    return first.index < 0 or not is_static(own)


def _check_file_name(old: str, new: str, family: Sequence[Place]) -> Iterator[Obstacle]:
    """Yield whether a public type of Java would no longer have its file's name."""
    for place in family:
        stem = (
            place.path.rpartition(b"/")[2]
            .removesuffix(b".java")
            .decode("utf-8", "replace")
        )
        is_type = place.symbols.language == "java" and place.kind in TYPE_KINDS
        if is_type and stem == old and place.symbols.parent(place.index) < 0:
            folder = place.path.rpartition(b"/")[0].decode("utf-8", "replace")
            moved = f"{folder}/{new}.java".removeprefix("/")
            message = f"a public type has its file's name: move the file to {moved} first (fs_move)"
            yield Obstacle("file_name", message, (place_text(place),))


def definition_text(definition: Definition) -> str:
    """Return where a definition is, as it is written."""
    line = definition.symbols.lines.line(definition.key[1])
    return f"{path_to_text(definition.path)}:{line}"
