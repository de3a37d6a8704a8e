"""Which definition a use of a name refers to, among all definitions of that name, and with what confidence.

In languages that ``inference`` resolves, the result is either right or unknown. In others, scopes, imports, classes and
the types of receivers are read from the text, and a name alone is never more than a guess.
"""

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from flashgrep.base.languages import FAMILIES
from flashgrep.base.lazy import LazyAttribute
from flashgrep.parts.navigation.resolution.call_filter import (
    EVERYDAY,
    METHODS,
    is_same_family,
)
from flashgrep.parts.navigation.resolution.call_meaning import Meaning
from flashgrep.parts.navigation.resolution.conformance import conforms
from flashgrep.parts.navigation.resolution.csharp_calls import may_be_query
from flashgrep.parts.navigation.resolution.definitions import FindAncestors
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.kotlin_text import is_private
from flashgrep.parts.navigation.resolution.linkage import LINKED, resolve_by_linkage
from flashgrep.parts.navigation.resolution.local_names import (
    has_parameter,
    is_case,
    is_hidden,
    is_label,
    is_other_kind,
    is_within,
)
from flashgrep.parts.navigation.resolution.overloads import (
    OVERLOADED,
    list_accepting,
)
from flashgrep.parts.navigation.resolution.packages import (
    choose_base,
    choose_type,
    is_part_of,
    resolve_by_package,
    resolve_in_modules,
    resolve_written,
)
from flashgrep.parts.navigation.resolution.plain_text import (
    find_module,
    find_real_name,
    resolve_import,
)
from flashgrep.parts.navigation.resolution.receiver_text import (
    DIALECTS,
    is_infix,
    skip_type_arguments,
)
from flashgrep.parts.navigation.resolution.receivers import (
    find_extended_type,
    find_literal,
    infer_type,
)
from flashgrep.parts.navigation.resolution.rust_paths import (
    PROGRAMS,
    RustPaths,
    resolve_in_crate,
)
from flashgrep.parts.navigation.resolution.rust_types import STANDARD
from flashgrep.parts.navigation.resolution.sites import UNKNOWN, Site
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    INCONCLUSIVE,
    POSSIBLE,
    PROVEN,
    SEEN,
    UNLIKELY,
    WEAK,
    Definition,
    Inconclusive,
    Resolution,
    SymbolKey,
)
from flashgrep.parts.navigation.resolution.type_text import (
    match_type,
    read_parameters,
    split_list,
)
from flashgrep.parts.navigation.resolution.written_types import (
    ABOVE,
    WrittenTypes,
    read_extension_receiver,
)
from flashgrep.parts.symbols.parse.describe import receiver
from flashgrep.parts.symbols.parse.imports import PACKAGED
from flashgrep.parts.symbols.parse.lookup import OWN, FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    QUALIFIER,
    QUALIFIER_END,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.parse.scoping import SCOPED
from flashgrep.parts.symbols.symbol_source import imports_of

_EXPLICIT: Final = frozenset({"rust", "php", "lua", "zig"})
"""Languages in which a method is never called by its bare name."""
_OUTSIDE: Final = frozenset({"kotlin", "cpp", "cuda", "objcpp", "lua"})
"""Languages in which a method may be written outside its type, with the type as a qualifier of its name."""
_QUALIFYING: Final = frozenset({"rust", "kotlin"})
"""Languages in which a variant is written behind its type, if no import brings it."""
_IMPORTING: Final = frozenset({"rust"})
"""Languages in which a name from another file must be imported, by name or by a wildcard."""
_TAGGED: Final = frozenset({"struct", "union", "enum"})
_C_TYPES: Final = _TAGGED | {"type"}
_DECLARES: Final = re.compile(rb"[\s*]+[A-Za-z_]")
"""What follows a type's name in a declaration."""
_TAG: Final = re.compile(rb"\b(?:struct|union|enum)\s+\Z")
_NOT_HIDDEN: Final = TYPE_KINDS | {"type", "macro"}
"""Kinds that a local variable does not hide."""
_OF_TYPES: Final = frozenset({"constant", "enumerator", "variable"})
"""Kinds that may be members of a type and are then accessed through it."""
OVERRIDDEN: Final = "overridden"
"""The evidence if a call on a type may run the method of a subtype."""
_SEVERAL: Final = 2
_MOST_RIVALS: Final = 50
"""Most methods of one name whose types are searched for in a file."""
_MOST_FAMILIES: Final = 20
"""Most families of types that are counted: with more, the confidence of each is negligible."""
_BUILTIN_TYPES: Final = frozenset(
    {"str", "int", "dict", "list", "set", "bytes", "float", "bool", "tuple", "string"}
)
_CONSTRUCTED: Final = re.compile(
    rb"\b(_*[A-Z]\w*)(?:<[^<>]*>)?(?:\([^()]*\)|\{[^{}]*\})\)?\s*\.\s*$"
)
_OUTER_THIS: Final = re.compile(rb"([\w$]+)\s*\.\s*this\s*\.\s*\Z")
"""The enclosing instance, in Java and Scala."""
_COMPARED: Final = re.compile(
    rb"\b(?:byte|short|char|int|Byte|Short|Character|Integer|String)\s+\Z"
)
"""The types of constants that a ``case`` of Java may name, besides those of enumerations."""
_BUILT_APART: Final = re.compile(
    rb"(?:(?!src/)[^/]+/){0,20}?(?:tests|benches|examples)/"
)
"""The folders of programs that use a crate of Rust, and that it does not know."""
_ACCESSED: Final = re.compile(rb"\s*\.\s*([A-Za-z_]\w*)")
_STATIC: Final = re.compile(rb"\b(?:static|const)\b")
_OF_MEMBER: Final = re.compile(rb"\s*(?:\?\.|\.|=(?![=>])|==|!=|\[)")
"""What follows a value."""
_SUPER: Final = re.compile(rb"super\([^()]*\)\s*\.\s*$")


@dataclass(frozen=True)
class Use:
    """A place where a name is used."""

    path: bytes
    symbols: FileSymbols
    offset: int

    @LazyAttribute
    def receiver(self) -> str | None:
        """Return the expression the name is accessed on."""
        if _SUPER.search(self.symbols.data, max(0, self.offset - 60), self.offset):
            return "super"
        offset = self.offset
        if self.symbols.language == "java":
            offset = skip_type_arguments(self.symbols, offset)
        word = receiver(self.symbols.data, offset, self.symbols.language)
        if word is None and is_infix(self.symbols, self.offset):
            return ""
        return word

    def types_around(self) -> list[int]:
        """Return the types that enclose the use, innermost first."""
        rows = []
        at = self.symbols.enclosing(self.offset)
        while at >= 0:
            if self.symbols.kind(at) in TYPE_KINDS:
                rows.append(at)
            at = self.symbols.parent(at)
        return rows

    def owners(self) -> list[str]:
        """Return the names of the types the use belongs to, including the receiver's type in Go."""
        around = self.symbols.enclosing(self.offset)
        names = [self.symbols.name(index) for index in self.types_around()]
        while around >= 0 and not names:
            names = [
                part for part in self.symbols.container(around).split(".") if part
            ][::-1]
            around = self.symbols.parent(around)
        return names


@dataclass(frozen=True)
class Resolver:
    """Decides which definition of a name (``rivals``) a use refers to; ``ancestors`` returns a type's base types."""

    rivals: Sequence[Definition]
    ancestors: FindAncestors
    names: Names

    def resolve(self, use: Use, target: Definition) -> Resolution | None:
        """Return the confidence that the use refers to the target; None: it refers to something else."""
        return self.resolver_of(use)(target)

    def base_resolver_of(self, use: Use) -> Callable[[Definition], Resolution | None]:
        """Return a function with the confidence that a base class's name refers to a target; bound to one use."""
        return partial(self._resolve_base, use, self._of_bases.resolver_of(use))

    @LazyAttribute
    def _of_bases(self) -> "Resolver":
        """Return the resolver of what a base may be: of definitions that are not called, if there are any."""
        types = [rival for rival in self.rivals if rival.kind not in CALLABLE_KINDS]
        return Resolver(types or self.rivals, self.ancestors, self.names)

    @LazyAttribute
    def keys(self) -> frozenset[SymbolKey]:
        """Return the rivals' keys."""
        return frozenset(rival.key for rival in self.rivals)

    def _resolve_base(
        self,
        use: Use,
        resolve: Callable[[Definition], Resolution | None],
        target: Definition,
    ) -> Resolution | None:
        if target.key not in self._of_bases.keys:
            return None
        resolution = resolve(target)
        # An alias tells what it means.
        is_alias = use.symbols.word_at(use.offset) != target.name
        if resolution is None and is_alias:
            return None
        if (
            use.symbols.language in SCOPED
            or len(self._of_bases.rivals) > 1
            or (resolution is not None and resolution.confidence > SEEN)
        ):
            return resolution
        return Resolution(SEEN, "only definition")

    def may_mean(self, use: Use, target: Definition) -> bool:
        """Whether nothing shows that a use refers to something else."""
        if self.resolve(use, target) is not None:
            return True
        is_scoped = use.symbols.language in SCOPED
        return (
            is_scoped and self.names.resolve(use.path, target.name, use.offset) is None
        )

    def resolver_of(self, use: Use) -> Callable[[Definition], Resolution | None]:
        """Return ``resolve`` bound to one use: what the use refers to is determined once for all targets."""
        on = use.receiver
        language = use.symbols.language
        if language == "csharp":
            return partial(self._narrow(use).resolve_by_text, use)
        if language not in SCOPED:
            return partial(self.resolve_by_text, use)
        # Done once for all targets, since it may parse the file.
        symbols = use.symbols
        word = symbols.word_at(use.offset)
        values = self.names.resolve(use.path, word, use.offset)
        if (
            values is None and on is None and symbols.role(use.offset) == "import"
        ):  # ``export {a} from "./b"``
            passed = [
                export
                for export in imports_of(symbols).exports.values()
                if export.name == word and export.module
            ]
            if passed:
                values = self.names.import_value(use.path, passed[0])
            else:
                values = None
        if values is None and on is not None:
            return self.make_guess(use)
        if values and on is not None and all(value.is_returned for value in values):
            return partial(_resolve_on_result, use)
        if values is None or any(value.is_variable for value in values):
            literal = find_literal(symbols, word, use.offset)
        else:
            literal = None
        definitions = [
            value.definition
            for value in values or ()
            if value.definition and not value.is_instance and not value.is_variable
        ]
        if literal is not None and not definitions:
            return lambda target: (
                self._resolve_in_literal(use, target, *literal)
                if is_same_family(language, target.language)
                and self.names.owner_of(target) is not None
                else None
            )
        keys = {definition.key for definition in definitions}
        owners = [
            self.names.owner_of(definition)
            for definition in definitions
            if definition.kind in METHODS
        ]
        # In Go an embedded type never calls the methods of the type that embeds it,
        # even if they hide its own.
        over = [
            owner
            for owner in owners
            if owner is not None and (owner.language, owner.kind) != ("go", "struct")
        ]
        return lambda target: self.compare(use, target, keys, over)

    def make_guess(self, use: Use) -> Callable[[Definition], Resolution | None]:
        """Return a function that estimates, from measurements, whether a use on an unknown receiver means a target."""
        in_sight: list[Definition] = []
        named_alone: list[SymbolKey] = []
        if (
            use.symbols.word_at(use.offset) not in EVERYDAY
            and len(self.rivals) <= _MOST_RIVALS
        ):
            methods = [
                rival for rival in self.rivals if rival.kind in METHODS and rival.owner
            ]
            words = use.symbols.words
            named = {
                method.owner
                for method in methods
                if next(words(method.owner.encode(), fold=False), -1) >= 0
            }
            named_alone = [
                method.key
                for method in methods
                if method.path == use.path or method.owner in named
            ]
            named = named.union(
                *map(self.ancestors, named)
            )  # a file that mentions a type also sees its base types
            in_sight = [
                method
                for method in methods
                if method.path == use.path or method.owner in named
            ]

        def guess(target: Definition) -> Resolution | None:
            is_private = _has_hash(target.symbols, target.key[1])
            if not is_same_family(
                use.symbols.language, target.language
            ) or is_private != _has_hash(use.symbols, use.offset):
                return None
            if target.kind == "enumerator" and use.receiver == target.owner:
                start = use.symbols.data.rfind(target.owner.encode(), 0, use.offset)
                around = self.names.resolve(use.path, target.owner, start) or ()
                own = Definition(
                    target.path, target.symbols, target.symbols.parent(target.index)
                )
                if any(
                    value.definition is not None and value.definition.key == own.key
                    for value in around
                ):
                    return Resolution(PROVEN, "qualified")
            if target.kind not in METHODS:
                return self._resolve_by_name(target, UNLIKELY)
            by_name = self._resolve_by_name(target)
            # If only one of several is in sight, just 10 of 35 such edges were right, and
            # of the only one there is, in one repository of Python, 4 of 15.
            is_only = by_name.confidence == GUESS and any(
                definition.key == target.key for definition in in_sight
            )
            # Of many overrides in one family the only one that is named: in another, 47
            # of 47 were right, and none of 64 of their base, which the file does not
            # name.
            is_override = named_alone == [target.key] and self._is_one_family(target)
            if is_only or is_override:
                return Resolution(GUESS, "type in sight")
            return by_name

        return guess

    def is_member(self, one: Definition) -> bool:
        """Whether a definition is accessed on an object; includes functions written outside their type."""
        if one.kind in METHODS or one.kind != "function":
            return one.kind in METHODS
        row = one.symbols.row(one.index)
        language = one.language
        before = one.symbols.data[row[QUALIFIER] : row[NAME]]
        if not before or language not in _OUTSIDE:
            return False
        if language == "lua":
            return before.endswith(b":")
        # The qualifier may also be a namespace.
        around = {other.kind for other in self.names.definitions(one.owner)}
        return not around or bool(around & TYPE_KINDS)

    def resolve_by_text(self, use: Use, target: Definition) -> Resolution | None:
        """Resolve from the text alone, in languages that ``inference`` does not cover."""
        resolution = self._resolve_by_text(use, target)
        if resolution is not None and target.language == "rust":
            return self._grade_implementations(use, target, resolution)
        if resolution is None or target.language not in OVERLOADED:
            return resolution
        alike = [rival for rival in self.rivals if _is_overload(rival, target)]
        if target.kind not in CALLABLE_KINDS:
            return resolution
        if len(alike) < _SEVERAL and target.language != "csharp":
            return resolution
        end = use.offset + len(target.name.encode())
        accepting = [
            rival
            for rival in alike
            if list_accepting(_list_family(rival, alike), use.symbols, end)
        ]
        # The library's ``Equals`` and the like take other arguments.
        is_other = not accepting and target.language == "csharp"
        if is_other and use.receiver is None and target.kind == "method":
            return None
        chosen = accepting or alike
        if all(method.key != target.key for method in chosen):
            return None
        if len(chosen) >= _SEVERAL:
            return Resolution(min(GUESS, resolution.confidence), "one of the overloads")
        return resolution

    def _grade_implementations(
        self,
        use: Use,
        target: Definition,
        resolution: Resolution,
    ) -> Resolution | None:
        """Return how sure one of several functions of one name and type is: a trait may be implemented for it often."""
        around = target.symbols.parent(target.index)
        is_implemented = around >= 0 and target.symbols.kind(around) == "extension"
        if not is_implemented or resolution.confidence < SEEN:
            return resolution
        alike = list[Definition]()
        for rival in self.rivals:
            is_method = rival.owner == target.owner and rival.kind in CALLABLE_KINDS
            if (
                is_method
                and rival.language == "rust"
                and self._is_of_one(rival, target)
            ):
                alike.append(rival)
        if len(alike) < _SEVERAL:
            return resolution
        site = Site(use.path, use.symbols, use.offset)
        end = use.offset + len(target.name.encode())
        # ``From`` is often implemented for a dozen types, each with its own argument.
        chosen = self._types.rust.choose_by_argument(alike, site, end)
        if all(method.key != target.key for method in chosen):
            return None
        if len(chosen) == 1:
            return resolution
        return Resolution(1 / len(chosen), "one of the implementations")

    def _is_of_one(
        self,
        rival: Definition,
        target: Definition,
    ) -> bool:
        """Whether two implementations may be of one type of Rust: files that define types of one name define two."""
        paths = set[bytes]()
        for type_ in self._types_of(target.owner):
            if type_.kind != "extension":
                paths.add(type_.path)
        return rival.path == target.path or not {rival.path, target.path} <= paths

    def _resolve_by_text(self, use: Use, target: Definition) -> Resolution | None:
        symbols = use.symbols
        on = use.receiver
        name = target.name
        language = use.symbols.language
        if not is_same_family(language, target.language) or is_other_kind(
            symbols, target.kind, name, use.offset
        ):
            return None
        if self._is_ruled_out(use, target):
            return None
        if language == "elixir":
            return resolve_in_modules(
                use.path, symbols, use.offset, target, self.rivals
            )
        if language in PACKAGED:
            resolved = resolve_written(symbols, use.offset, target, self.rivals)
        else:
            resolved = INCONCLUSIVE
        if language == "rust" and (
            symbols.data.endswith(b"::", 0, use.offset)
            or symbols.role(use.offset) == "import"
        ):
            resolved = resolve_in_crate(
                self._paths_of_rust, (use.path, symbols, use.offset), target
            )
        if resolved is not INCONCLUSIVE:
            return resolved
        # Only of calls it is known what they are called on; others are read by names.
        is_kotlin_call = language == "kotlin" and symbols.role(use.offset) == "call"
        if is_kotlin_call and target.kind == "interface" and self._has_function(target):
            return None
        is_csharp_call = (
            language == "csharp"
            and on is not None
            and symbols.role(use.offset) == "call"
        )
        is_read = is_kotlin_call or is_csharp_call
        if is_read and target.kind in CALLABLE_KINDS - {"constructor"}:
            resolved = self._resolve_call(use, target)
        if resolved is not INCONCLUSIVE:
            return resolved
        if on is not None:
            if on in OWN:
                return self._resolve_own(use, target)
            if language == "csharp" and not on and target.kind in TYPE_KINDS:
                return self._resolve_in_type(use, target)
            return self._resolve_on(use, target, on)
        return self._resolve_bare_name(use, target)

    def _narrow(self, use: Use) -> "Resolver":
        """Return the resolver of those definitions that a language's own rules leave for a use."""
        rivals = [rival for rival in self.rivals if not self._is_ruled_out(use, rival)]
        if len(rivals) == len(self.rivals):
            return self
        keys = frozenset(rival.key for rival in rivals)
        if keys not in self._narrowed:
            self._narrowed[keys] = replace(self, rivals=rivals)
        return self._narrowed[keys]

    @LazyAttribute
    def _narrowed(self) -> dict[frozenset[SymbolKey], "Resolver"]:
        """Return the resolvers of fewer definitions: many uses leave the same."""
        return {}

    def _is_ruled_out(
        self,
        use: Use,
        target: Definition,
    ) -> bool:
        """Whether a language's own rules say that a name means something else."""
        # In C a field is called behind its structure.
        if use.symbols.language == "c" and target.kind == "field":
            return use.receiver is None and use.symbols.role(use.offset) == "call"
        if use.symbols.language == "rust":
            return _is_apart(use, target) and not self._is_beside(use, target)
        if use.symbols.language == "csharp":
            return not self._has_count(use, target) or self._is_value(use, target)
        if use.symbols.language == "kotlin" and use.path != target.path:
            is_top = target.index >= 0 and target.symbols.parent(target.index) < 0
            return is_top and target.language == "kotlin" and is_private(target)
        return False

    def _is_beside(
        self,
        use: Use,
        target: Definition,
    ) -> bool:
        """Whether one program of Rust beside both files has them as modules."""
        folder = target.path.rpartition(b"/")[0]
        if use.path.rpartition(b"/")[0] != folder:
            return False
        stems = (
            target.stem,
            use.path.rpartition(b"/")[2].removesuffix(b".rs").decode(),
        )
        for name in PROGRAMS:
            path = folder + b"/" + name
            if not self.names.includes.source.has(path):
                continue
            symbols = self.names.open_file(path)
            text = b"" if symbols is None else symbols.data
            # The program itself has no module of its own name.
            others = {stem.encode() for stem in stems} - {name.removesuffix(b".rs")}
            if all(b"mod %s;" % stem in text for stem in others):
                return True
        return False

    def _has_count(
        self,
        use: Use,
        target: Definition,
    ) -> bool:
        """Whether a type of C# has as many parameters as arguments are written: others of its name have other numbers."""
        type_: Definition | None = target
        # A construction writes the arguments behind the constructor's name.
        if target.kind == "constructor":
            type_ = self._types.type_of(target)
        if type_ is None or type_.kind not in TYPE_KINDS | {"type"}:
            return True
        end = use.offset + len(target.name.encode())
        count = len(split_list(use.symbols.data, end))
        return len(read_parameters(type_)) == count

    def _is_value(
        self,
        use: Use,
        target: Definition,
    ) -> bool:
        """Whether a name of C# that is a type's is that of a field or property around the use, by what follows it."""
        if target.kind not in TYPE_KINDS or use.receiver is not None:
            return False
        end = use.offset + len(target.name.encode())
        if not _OF_MEMBER.match(use.symbols.data, end):
            return False
        owners = use.owners()
        for rival in self.rivals:
            is_member = rival.kind in {"field", "property"} and rival.owner in owners
            if not is_member:
                continue
            # A member may have its type's name, which then means either.
            written = match_type(rival)
            if written is None or written[1].decode() != target.name:
                return True
            return not self._is_static(use, end, target.name)
        return False

    def _is_static(
        self,
        use: Use,
        end: int,
        owner: str,
    ) -> bool:
        """Whether what follows a name of C# is a member of the type itself, not of a value."""
        accessed = _ACCESSED.match(use.symbols.data, end)
        if accessed is None:
            return False
        for member in self.names.definitions(accessed[1].decode()):
            row = member.symbols.row(member.index)
            head = member.symbols.data[row[START] : row[NAME]]
            is_static = member.kind == "enumerator" or _STATIC.search(head) is not None
            if member.owner == owner and is_static:
                return True
        return False

    def _resolve_call(
        self,
        use: Use,
        target: Definition,
    ) -> Resolution | Inconclusive | None:
        """Resolve a call by the type of its receiver, in Kotlin also by the types that may be ``this``."""
        meaning = self._find_meaning(use, target.name)
        if meaning is None:
            return INCONCLUSIVE
        keys = {definition.key for definition in meaning.definitions}
        is_meant = target.key in keys
        if meaning.is_sure and is_meant:
            return _grade_overloads(meaning)
        if meaning.is_sure:
            return self._resolve_beside(use, target, meaning)
        if not _extends(target):
            return self._judge_member(use, target, meaning)
        if is_meant:
            return self._judge_extension(use, meaning)
        if use.receiver is not None:
            return None
        # The lambda of a library's function may see the members of anything.
        site = Site(use.path, use.symbols, use.offset)
        if self._types.kotlin.is_visible(site, target):
            return Resolution(WEAK, "name only")
        return None

    def _judge_member(
        self,
        use: Use,
        target: Definition,
        meaning: Meaning,
    ) -> Resolution | Inconclusive | None:
        """Resolve a call to a member where something nearer may have its name."""
        is_settled = isinstance(meaning.receiver, Definition) and not meaning.is_hidden
        keys = {definition.key for definition in meaning.definitions}
        # Only what a lambda of a library sees could come before it.
        if is_settled and target.key in keys:
            return Resolution(SEEN, "receiver type")
        if is_settled:
            return self._resolve_beside(use, target, meaning)
        # Names and bases may still tell it.
        if use.receiver is not None:
            return INCONCLUSIVE
        told = self._resolve_bare_name(use, target)
        if told is None and self.is_own_member(target):
            return Resolution(WEAK, "name only")
        return told

    def _has_function(self, target: Definition) -> bool:
        """Whether a function beside an interface makes what is called by its name."""
        for rival in self.rivals:
            if rival.kind == "function" and rival.full_name == target.full_name:
                return True
        return False

    def _find_meaning(
        self,
        use: Use,
        name: str,
    ) -> Meaning | None:
        """Return what a call means; None: a local function."""
        key = use.path, use.offset
        if key in self._meanings:
            return self._meanings[key]
        site = Site(use.path, use.symbols, use.offset)
        kotlin = self._types.kotlin
        meaning = None
        # A local function comes before whatever ``this`` has.
        if use.symbols.language == "csharp":
            type_ = self._types.find_receiver(use.path, use.symbols, use.offset)
            meaning = self._types.csharp.find_on(site, name, type_)
        elif use.receiver is not None:
            type_ = self._types.find_receiver(use.path, use.symbols, use.offset)
            meaning = kotlin.find_on(site, name, type_)
        elif not is_hidden(use.symbols, name, use.offset, is_callable=True):
            meaning = kotlin.find_bare(site, name, 0)
        if meaning is not None:
            meaning = _merge_overloads(meaning)
        self._meanings[key] = meaning
        return meaning

    @LazyAttribute
    def _meanings(self) -> dict[SymbolKey, Meaning | None]:
        """Return the meanings of calls, which are asked about for each target."""
        return {}

    def _resolve_beside(
        self,
        use: Use,
        target: Definition,
        meaning: Meaning,
    ) -> Resolution | Inconclusive | None:
        """Resolve a call that surely means something else, which the target may override."""
        owner = self._types.type_of(target)
        if _extends(target):
            return None
        if not meaning.definitions:
            # It is a free function or a library's, or a member that an import brings.
            is_free = owner is None or _is_brought_by_name(use, target)
            if is_free:
                return INCONCLUSIVE
            return None
        if owner is None:
            return None
        for definition in meaning.definitions:
            base = self._types.type_of(definition)
            if base is not None and self._types.derives(owner, base):
                return Resolution(POSSIBLE, OVERRIDDEN)
        return None

    def _judge_extension(
        self,
        use: Use,
        meaning: Meaning,
    ) -> Resolution:
        """Return how sure an extension is that may be called, on a receiver of unknown type."""
        types = {read_extension_receiver(function) for function in meaning.definitions}
        count = len(types)
        if meaning.is_hidden:
            return Resolution(GUESS / count, "name only")
        # A member of the name may be meant as well, or a library's.
        if any(self.is_own_member(rival) for rival in self.rivals):
            count += 1
        is_csharp = use.symbols.language == "csharp"
        if is_csharp and may_be_query(use.symbols, meaning.definitions[0].name):
            count += 1
        if count == 1:
            return Resolution(SEEN, "only extension")
        return Resolution(GUESS / count, "name only")

    def is_own_member(self, definition: Definition) -> bool:
        """Whether a definition is in the type that it is a member of."""
        is_member = self._types.type_of(definition) is not None
        is_called = definition.kind in CALLABLE_KINDS
        return is_member and is_called and not _extends(definition)

    @LazyAttribute
    def _paths_of_rust(self) -> RustPaths:
        return RustPaths(self.names.open_file, self.names.includes.source.has)

    def _resolve_bare_name(self, use: Use, target: Definition) -> Resolution | None:
        """Resolve a name without a receiver."""
        symbols = use.symbols
        name = target.name
        if target.kind in {"field", "property"}:
            literal = find_literal(symbols, name, use.offset)
        else:
            literal = None
        if literal is not None:
            return self._resolve_in_literal(use, target, *literal)
        # A local name hides everything but types and other local names.
        is_local = target.kind not in _NOT_HIDDEN and is_hidden(
            symbols, name, use.offset, is_callable=target.kind in CALLABLE_KINDS
        )
        is_hidden_here = is_local and not is_within(
            symbols, (use.path, use.offset), target.key
        )
        rivals = self.rivals
        if is_case(symbols, name, use.offset):
            rivals = [rival for rival in rivals if _is_compared(rival)]
            if not _is_compared(target):
                return None
        if not is_hidden_here and is_label(symbols, name, use.offset):
            return Resolution(UNLIKELY, "argument's name")
        if is_hidden_here:
            return None
        if len(rivals) < len(self.rivals):
            return replace(self, rivals=rivals).resolve_member_or_bare(use, target)
        return self.resolve_member_or_bare(use, target)

    def resolve_member_or_bare(self, use: Use, target: Definition) -> Resolution | None:
        """Resolve a name without a receiver that is not local."""
        if self.is_member(target) and target.owner:
            return self._resolve_bare_method(use, target)
        return self._resolve_bare(use, target)

    def _resolve_in_literal(
        self, use: Use, target: Definition, written: str, at: int
    ) -> Resolution | None:
        """Resolve a field named in a literal or a pattern; ``written``: the literal's type, or empty if unknown."""
        if use.symbols.language in SCOPED and written:
            values = self.names.resolve(use.path, written, at)
            types = [
                value.definition
                for value in values or ()
                if value.definition and value.definition.kind in TYPE_KINDS
            ]
            owner = self.names.owner_of(target)
            if types:
                if owner and owner.key in {definition.key for definition in types}:
                    return Resolution(PROVEN, "receiver type")
                return None
            return Resolution(UNLIKELY, "name only")
        if written == "Self":
            known_owner = next(iter(use.owners()), "")
        else:
            known_owner = written
        if known_owner == target.owner:
            return Resolution(SEEN, "receiver type")
        if self._types_of(known_owner):
            return None
        return Resolution(UNLIKELY, "name only")

    def compare(
        self,
        use: Use,
        target: Definition,
        meant: AbstractSet[tuple[bytes, int]],
        owners: Sequence[Definition],
    ) -> Resolution | None:
        """Return how a resolved use relates to a target; ``owners``: the types of the methods it resolves to."""
        if target.key in meant:
            if use.receiver is None:
                how = "same file" if use.path == target.path else "import"
            elif target.kind not in METHODS:
                how = "module"
            elif use.receiver in OWN:
                how = "same class" if target.owner in use.owners() else "inherited"
            else:
                how = "receiver type"
            return Resolution(PROVEN, how)
        # A call on a type may run the method of a subtype, or of a type that conforms
        # to it.
        if owners and target.kind in METHODS and use.receiver not in ABOVE:
            owner = self.names.owner_of(target)
        else:
            owner = None
        if owner is None:
            return None
        above = self.names.ancestors(owner)
        is_over = any(
            current_owner.key in above or conforms(self.names, owner, current_owner)
            for current_owner in owners
        )
        if is_over:
            return Resolution(POSSIBLE, OVERRIDDEN)
        return None

    def _resolve_bare(self, use: Use, target: Definition) -> Resolution | None:
        symbols = use.symbols
        # ``struct``, ``union`` or ``enum`` directly before it.
        is_tag = (
            _TAG.search(symbols.data, max(0, use.offset - 40), use.offset) is not None
        )
        # Or, in C, directly before a declared name, as in ``user *user``.
        after = _DECLARES.match(
            use.symbols.data, use.offset + len(target.name.encode())
        )
        is_type = is_tag or (
            target.kind in _C_TYPES
            and use.symbols.language in LINKED
            and after is not None
        )
        # In C ``struct log`` and ``log`` are different names.
        if symbols.language == "c":
            if is_tag:
                others = _C_TYPES - _TAGGED
            else:
                others = _TAGGED
        else:
            others = frozenset()
        is_local = not is_type and has_parameter(symbols, target.name, use.offset)
        if target.kind in others or is_local or not _in_scope(use, target):
            return None
        resolved: Resolution | Inconclusive | None = INCONCLUSIVE
        is_variant = target.kind == "enumerator" and symbols.language in _QUALIFYING
        if is_variant and not _is_variant_in_scope(use, target):
            return None
        if symbols.language == "rust":
            resolved = resolve_in_crate(
                self._paths_of_rust, (use.path, symbols, use.offset), target
            )
        if resolved is INCONCLUSIVE:
            return self._resolve_in_sight(use, target, others)
        return resolved

    def _resolve_in_sight(
        self, use: Use, target: Definition, others: AbstractSet[str]
    ) -> Resolution | None:
        """Resolve a bare name that is not local; ``others``: kinds that the context rules out."""
        symbols = use.symbols
        word = use.symbols.word_at(use.offset)
        # An alias means what is imported, also beside a definition of that name.
        is_alias = symbols.language in PACKAGED and word != target.name
        if use.path == target.path and not is_alias:
            if self._is_other_nested(use, target):
                return None
            return Resolution(PROVEN, "same file")
        beside = (
            rival
            for rival in self.rivals
            if rival.path == use.path and rival.kind not in METHODS | others
            # The parts of a type of C# are one.
            if target.language != "csharp" or rival.full_name != target.full_name
        )
        if any(_in_scope(use, definition) for definition in beside):
            return None
        language = symbols.language
        folder = use.path.rpartition(b"/")[0]
        if language in LINKED and not target.owner:
            rivals = [rival for rival in self.rivals if rival.kind not in others]
            paths = frozenset(rival.path for rival in rivals)
            find_included = partial(self.names.includes.reach, use.path, paths)
            linked = resolve_by_linkage(target, rivals, find_included)
            # The body of an opaque type is in no file that its users include.
            if linked is INCONCLUSIVE and target.kind in _TAGGED and len(rivals) == 1:
                return Resolution(SEEN, "only definition")
            if linked is INCONCLUSIVE:
                linked = resolve_import(symbols, target) or self._resolve_by_name(
                    target
                )
            return linked
        inherits = bool(target.owner) and any(
            target.owner in self.ancestors(owner) for owner in use.owners()
        )
        resolved = resolve_by_package(
            symbols, word, target, self.rivals, inherits=inherits
        )
        if resolved is not INCONCLUSIVE:
            return resolved
        resolution = resolve_import(use.symbols, target)
        if (
            resolution is None
            and language == "swift"
            and target.path.rpartition(b"/")[0] == folder
        ):
            resolution = Resolution(SEEN, "same package")
        # In languages that require imports, a name without one refers to something
        # else.
        return resolution or (
            None if language in _IMPORTING else self._resolve_by_name(target)
        )

    def _is_other_nested(self, use: Use, target: Definition) -> bool:
        """Whether a name means another type of the same name and file, in which types are nested."""
        if target.kind not in TYPE_KINDS or use.symbols.language not in PACKAGED:
            return False
        # Most files have one type of a name, so nothing is looked up.
        beside = 0
        for rival in self.rivals:
            beside += rival.path == target.path and rival.kind in TYPE_KINDS
        if beside < _SEVERAL or use.symbols.language not in DIALECTS:
            return False
        site = Site(use.path, use.symbols, use.offset)
        type_ = self._types.find_written(site, target.name)
        if not isinstance(type_, Definition) or type_.path != target.path:
            return False
        return type_.key != target.key

    def _resolve_bare_method(self, use: Use, target: Definition) -> Resolution | None:
        if use.symbols.language in _EXPLICIT:
            return None
        # A member of the innermost type hides those of enclosing types.
        for owner in use.owners():
            above = self.ancestors(owner)
            if any(
                rival.owner == owner or rival.owner in above for rival in self.rivals
            ):
                return self._resolve_of(use, target, owner)
        symbols = use.symbols
        word = use.symbols.word_at(use.offset)
        resolved = resolve_by_package(
            symbols, word, target, self.rivals, inherits=False
        )
        if resolved is not INCONCLUSIVE:
            return resolved
        is_free = any(rival.kind not in METHODS for rival in self.rivals)
        if use.owners() and not is_free:
            return Resolution(POSSIBLE, "name only")
        return None

    def _resolve_own(self, use: Use, target: Definition) -> Resolution | None:
        outer = _OUTER_THIS.search(
            use.symbols.data, max(0, use.offset - 200), use.offset
        )
        if outer:
            owner = outer[1].decode("utf-8", "replace")
        else:
            owner = next(iter(use.owners()), "")
        if owner:
            resolution = self._resolve_of(
                use, target, owner, is_super=use.receiver in ABOVE
            )
        else:
            resolution = None
        # A trait's methods run on any type that includes it.
        is_mixed_in = (
            resolution is None
            and owner
            and all(rival.owner != owner for rival in self.rivals)
        )
        if is_mixed_in and any(
            definition.kind in {"trait", "module"}
            for definition in self.names.definitions(owner)
        ):
            return Resolution(UNLIKELY, "name only")
        return resolution

    def _resolve_of(
        self, use: Use, target: Definition, owner: str, *, is_super: bool = False
    ) -> Resolution | None:
        """Return the confidence that the target is a type's member of its name; ``is_super``: an inherited one."""
        if not is_super and any(rival.owner == owner for rival in self.rivals):
            if target.owner == owner:
                if use.path == target.path:
                    return Resolution(PROVEN, "same class")
                # Types of the same name may be the same type; a file that defines the
                # method itself means its own.
                paths = {rival.path for rival in self.rivals if rival.owner == owner}
                sure = 0.8 if len(paths) == 1 else POSSIBLE
                if use.path in paths:
                    return None
                return Resolution(sure, "class of the name")
        elif target.owner and target.owner in (bases := self.ancestors(owner)):
            # Less certain if another definition lies between the type and the base that
            # defines the target.
            between = {rival.owner for rival in self.rivals} & bases - {target.owner}
            is_hidden = any(target.owner in self.ancestors(scope) for scope in between)
            if self._is_apart_from(use, target):
                return None
            is_sure = not is_hidden and self._may_see(use, target)
            return Resolution(SEEN if is_sure else POSSIBLE, "inherited")
        # A base class may call, on itself, a method that a subclass defines.
        if target.owner and owner in self.ancestors(target.owner) and not is_super:
            return Resolution(POSSIBLE, OVERRIDDEN)
        return None

    def _is_apart_from(self, use: Use, target: Definition) -> bool:
        """Whether the type around a use surely derives from another type than the target's, of the same name or not."""
        around = use.types_around()
        owner = self._types.type_of(target)
        if use.symbols.language not in DIALECTS or not around or owner is None:
            return False
        type_ = Definition(use.path, use.symbols, around[0])
        if self._types.derives(type_, owner):
            return False
        return self._types.is_settled(type_)

    def _may_see(self, use: Use, target: Definition) -> bool:
        """Whether, if several types have the target's type name, the class around a use derives from the target's."""
        own = target.symbols.container(target.index)
        around = use.types_around()
        alike = {
            definition.qualified
            for definition in self.names.definitions(target.owner)
            if definition.kind in TYPE_KINDS
        }
        if alike <= {own} or own not in alike or not around:
            return True
        # By the qualifier in the class's head; otherwise by the nearest enclosing
        # scope.
        symbols = use.symbols
        for at in symbols.bases(around[0]):
            if symbols.word_at(at) == target.owner:
                written = receiver(symbols.data, at, symbols.language)
            else:
                written = None
            if written:
                return own.split(".")[-2:-1] == [written]
        here = f"{symbols.qualified(around[0])}."
        return own == max(
            (
                prefix
                for prefix in alike
                if here.startswith(prefix.removesuffix(target.owner))
            ),
            key=len,
            default="",
        )

    def _resolve_on_type(
        self,
        use: Use,
        target: Definition,
        on: str,
    ) -> Resolution | None:
        """Resolve a member behind the name of its type, of which there may be several."""
        type_ = choose_type(use.symbols, on, self._types_of(on))
        if type_ is not None and is_part_of(target, type_):
            return self._judge_qualifier(use, on, type_)
        if type_ is not None:
            return None
        # Each file of Rust may define a type of the name, which it means then.
        if use.symbols.language == "rust" and self._defines(use.path, on):
            if use.path == target.path:
                return Resolution(PROVEN, "qualified")
            if self._defines(target.path, on):
                return None
        written = self._find_qualifier(use, on)
        if written is None:
            alike = sum(rival.owner == on for rival in self.rivals)
            return Resolution(SEEN if alike == 1 else GUESS, "qualified")
        if is_part_of(target, written):
            return Resolution(PROVEN, "qualified")
        return None

    def _resolve_on(self, use: Use, target: Definition, on: str) -> Resolution | None:
        symbols = use.symbols
        is_member = self.is_member(target)
        on = find_real_name(symbols, on)
        if on and on == target.owner:
            return self._resolve_on_type(use, target, on)
        if symbols.language == "rust" and target.kind == "enumerator" and on.islower():
            return None  # of a module, as in fs::File
        is_asked = symbols.data[use.offset - 1 : use.offset] in {b".", b">"}
        if (
            symbols.language in LINKED
            and is_asked
            and not is_member
            and target.kind in _C_TYPES | {"function"}
        ):
            return None  # a field of the same name
        # Where packages are named by imports, a package has no methods.
        is_object = is_member or (
            target.kind in _OF_TYPES and bool(self._types_of(target.owner))
        )
        has_modules = symbols.language not in PACKAGED | _EXPLICIT or not is_member
        if has_modules:
            module = find_module(symbols, on)
        else:
            module = ""
        if (
            module
            and symbols.language in PACKAGED
            and is_hidden(symbols, on, use.offset, is_callable=False)
        ):
            module = ""
        if is_object:
            if module:
                return None
            return self._resolve_by_type(use, target, on)
        folders = target.path.decode("utf-8", "replace").split("/")[:-1]
        if (
            on
            and (on == target.stem or module)
            and (module or on) in {target.stem, *folders}
        ):
            return Resolution(SEEN, "module")
        is_named = on and not target.owner and symbols.language not in _EXPLICIT
        if is_named:
            return Resolution(0.3, "name only")
        return None

    def _defines(self, path: bytes, name: str) -> bool:
        """Whether a file defines a type, rather than only implementing something for it."""
        types = self._types_of(name)
        return any(type_.path == path and type_.kind != "extension" for type_ in types)

    def _find_qualifier(
        self,
        use: Use,
        on: str,
    ) -> Definition | None:
        """Return the type that a word before a member means, where types are nested in others of a file."""
        if use.symbols.language not in {"java", "kotlin"}:
            return None
        # The word stands where the innermost type of its name is meant.
        at = use.symbols.data.rfind(on.encode(), 0, use.offset)
        site = Site(use.path, use.symbols, max(0, at))
        type_ = self._types.find_written(site, on)
        if isinstance(type_, Definition) and type_.path == use.path:
            return type_
        return None

    def _resolve_in_type(
        self,
        use: Use,
        target: Definition,
    ) -> Resolution | None:
        """Resolve a type of C# behind a type with arguments: ``Shop<int>.Order``."""
        owner = self._types.find_receiver(use.path, use.symbols, use.offset)
        around = self._types.type_of(target)
        if not isinstance(owner, Definition) or around is None:
            return self._resolve_by_name(target)
        if self._types.derives(owner, around):
            return Resolution(PROVEN, "qualified")
        return None

    def _judge_qualifier(
        self, use: Use, on: str, type_: Definition
    ) -> Resolution | None:
        """Return how sure a member written behind the name of a type is; in Rust an import may bring another type."""
        symbols = use.symbols
        if symbols.language == "rust":
            at = symbols.data.rfind(on.encode(), 0, use.offset)
            resolved = resolve_in_crate(
                self._paths_of_rust, (use.path, symbols, at), type_
            )
            if resolved is None:
                return None
            is_unknown = not isinstance(resolved, Resolution)
            if is_unknown and on in imports_of(symbols).names:
                return Resolution(GUESS, "qualified")
        return Resolution(PROVEN, "qualified")

    def _types_of(self, name: str) -> Sequence[Definition]:
        """Return the types with this name."""
        if name:
            return [
                definition
                for definition in self.names.definitions(name)
                if definition.kind in TYPE_KINDS
            ]
        return ()

    def _resolve_by_type(
        self, use: Use, target: Definition, on: str
    ) -> Resolution | None:
        settled = self._resolve_by_chain(use, target)
        if settled is not INCONCLUSIVE:
            return settled
        constructed = (
            None
            if on
            else _CONSTRUCTED.search(
                use.symbols.data, max(0, use.offset - 200), use.offset
            )
        )
        written = constructed[1].decode("utf-8", "replace") if constructed else None
        real_name = infer_type(use.symbols, use.offset, on) if on else written
        real_name = find_real_name(use.symbols, real_name) if real_name else real_name
        if real_name is None and on[:1].isupper() and self._types_of(on):
            real_name = on
        if real_name is None and self._is_imported_from_outside(use.symbols, on):
            return None
        if real_name is None or not real_name[:1].isupper():
            return (
                None if real_name in _BUILTIN_TYPES else self._resolve_by_name(target)
            )
        owner = find_extended_type(target) or target.owner
        # With several types of one name it may be unknown which is meant.
        type_ = choose_type(use.symbols, real_name, self._types_of(real_name))
        if real_name == owner:
            is_other = (
                type_ is not None
                and target.owner == real_name
                and not is_part_of(target, type_)
            )
            return (
                None
                if is_other
                else Resolution(GUESS if type_ is None else PROVEN, "receiver type")
            )
        if any(rival.owner == real_name for rival in self.rivals):
            return (
                Resolution(POSSIBLE, OVERRIDDEN)
                if real_name in self.ancestors(owner)
                else None
            )
        if owner in self.ancestors(real_name):
            # Among several bases of the name, one nested beside the type comes first.
            base = (
                None
                if type_ is None
                else choose_base(type_, owner, self._types_of(owner))
            )
            is_told = base is not None and (
                owner != target.owner or is_part_of(target, base)
            )
            return Resolution(SEEN if is_told else WEAK, "receiver type, inherited")
        if real_name in self.ancestors(owner):
            return Resolution(POSSIBLE, OVERRIDDEN)
        return Resolution(WEAK, "name only")

    def _is_imported_from_outside(self, symbols: FileSymbols, on: str) -> bool:
        """Whether an import gives the full name of a receiver that the project does not define."""
        if symbols.language not in PACKAGED or not on[:1].isupper():
            return False
        return on in imports_of(symbols).names and not self.names.definitions(on)

    def _resolve_by_chain(
        self, use: Use, target: Definition
    ) -> Resolution | Inconclusive | None:
        """Resolve by the type that the declarations along the receiver's chain write."""
        owner = self._types.type_of(target)
        row = target.symbols.row(target.index)
        is_extension = bool(
            row[QUALIFIER_END] > row[QUALIFIER] or find_extended_type(target)
        )
        is_alike = is_same_family(use.symbols.language, target.language)
        if owner is None or is_extension or not is_alike:
            return INCONCLUSIVE
        type_ = self._types.find_receiver(use.path, use.symbols, use.offset)
        if type_ is UNKNOWN:
            return INCONCLUSIVE
        if not isinstance(type_, Definition):
            # What is not of the project may still be a base of the target's type, or
            # have a trait of the project.
            is_apart = self._types.is_whole(owner) and not self._is_for_library(target)
            return Resolution(WEAK, "name only") if is_apart else INCONCLUSIVE
        # The type is sure, so any member of it that is not the target rules that out,
        # but where the target overrides it.
        members, is_whole = self._types.members(type_, target.name)
        if any(member.key == target.key for member in members):
            return Resolution(PROVEN, "receiver type")
        if members or self._types.derives(owner, type_):
            is_over = self._types.derives(owner, type_)
            return Resolution(POSSIBLE, OVERRIDDEN) if is_over else None
        return None if is_whole else Resolution(WEAK, "name only")

    def _is_for_library(self, target: Definition) -> bool:
        """Whether a method's trait is implemented for a type of a library, or the method is of such a one."""
        if target.language != "rust":
            return False
        for rival in self.rivals:
            traits = _list_traits(rival)
            is_trait = rival.key == target.key or target.owner in traits
            kinds = {type_.kind for type_ in self._types_of(rival.owner)}
            if is_trait and traits and kinds <= {"extension"}:
                return True
        return False

    @LazyAttribute
    def _types(self) -> WrittenTypes:
        return WrittenTypes(self.names)

    def _resolve_by_name(self, target: Definition, most: float = GUESS) -> Resolution:
        """Return a confidence by how many definitions it may be; a family of types or its constructors count once."""
        if target.name in EVERYDAY and target.kind in METHODS:
            return Resolution(WEAK, "name only")
        if target.language == "rust" and self._is_standard(target):
            return Resolution(WEAK, "name only")
        families = self._list_families(target.language)
        share = most / max(1, len(families))
        if target.kind in METHODS:
            # What all others override is not run by its name alone.
            others = _find_family(families, target) - {_name_owner(target)}
            share /= max(1, len(others))
        return Resolution(share, "name only")

    def _is_one_family(self, target: Definition) -> bool:
        """Whether a base type has the name of all that have it."""
        return len(self._list_families(target.language)) == 1

    def _list_families(self, language: str) -> list[set[str]]:
        """Return the types that have the name, each with those above it; a file stands for what is in no type."""
        family = FAMILIES.get(language, language)
        if family in self._families:
            return self._families[family]
        alike = [
            rival
            for rival in self.rivals
            if is_same_family(rival.language, family) and rival.name != rival.owner
        ]
        owners = {rival.owner for rival in alike}
        families: list[set[str]] = []
        for rival in alike:
            above = self.ancestors(rival.owner) | _list_traits(rival)
            joined = {_name_owner(rival), *(above & owners)}
            apart = []
            for types in families:
                if types.isdisjoint(joined):
                    apart.append(types)
                else:
                    joined |= types
            families = [*apart, joined]
            if len(families) == _MOST_FAMILIES:
                break
        self._families[family] = families
        return families

    def _is_standard(self, target: Definition) -> bool:
        """Whether types of Rust's library have a method of the name: by the name, or by the trait that it implements."""
        if target.kind not in METHODS:
            return False
        # What implements a trait of the library is called on all that does.
        is_foreign = any(not self._types_of(name) for name in _list_traits(target))
        return is_foreign or target.name in STANDARD

    @LazyAttribute
    def _families(self) -> dict[str, list[set[str]]]:
        """Return the families of types that the rivals belong to, by language."""
        return {}


def _name_owner(definition: Definition) -> str:
    """Return the name of the type around a definition, or its file."""
    return definition.owner or str(definition.path)


def _find_family(families: Sequence[set[str]], target: Definition) -> set[str]:
    """Return the types of the family that a definition's type belongs to."""
    owner = _name_owner(target)
    return next((types for types in families if owner in types), {owner})


def _resolve_on_result(use: Use, target: Definition) -> Resolution | None:
    """Resolve a use on what code outside returned: it may be an object of ours, but rarely is."""
    is_alike = is_same_family(use.symbols.language, target.language)
    if target.kind in METHODS and is_alike:
        return Resolution(WEAK, "on a library's result")
    return None


def _is_brought_by_name(
    use: Use,
    target: Definition,
) -> bool:
    """Whether a member may be called without a receiver: by an import, or from beside its object."""
    imports = imports_of(use.symbols)
    is_imported = use.symbols.word_at(use.offset) in imports.names
    around = target.full_name.rpartition(".")[0]
    is_starred = any(star.module == around for star in imports.stars)
    return is_imported or is_starred or use.path == target.path


def _is_overload(
    rival: Definition,
    target: Definition,
) -> bool:
    """Whether a call by name and type may mean either; of C# a type may have parts in several files."""
    if rival.kind not in CALLABLE_KINDS:
        return False
    if target.language == "csharp":
        counts = {_count_parameters_around(method) for method in (rival, target)}
        return rival.full_name == target.full_name and len(counts) == 1
    return (rival.path, rival.owner) == (target.path, target.owner)


def _count_parameters_around(definition: Definition) -> int:
    """Return how many type parameters the type around a definition has."""
    around = definition.symbols.parent(definition.index)
    if around < 0:
        return 0
    owner = Definition(definition.path, definition.symbols, around)
    return len(read_parameters(owner))


def _list_family(
    rival: Definition,
    alike: Sequence[Definition],
) -> list[Definition]:
    """Return the methods that a rival stands for: all of its name beside it, if these are no rivals of their own."""
    family = find_overloads(rival)
    keys = {method.key for method in family}
    if sum(method.key in keys for method in alike) > 1:
        return [rival]
    return family


def _extends(definition: Definition) -> bool:
    """Whether a function is written for a type that it is not in."""
    return bool(read_extension_receiver(definition))


def _merge_overloads(meaning: Meaning) -> Meaning:
    """Return a meaning with the first of the overloads that count as one function."""
    merged = dict[SymbolKey, Definition]()
    for definition in meaning.definitions:
        overload = find_overloads(definition)[0]
        merged[overload.key] = overload
    return replace(meaning, definitions=tuple(merged.values()))


def _grade_overloads(meaning: Meaning) -> Resolution:
    """Return how sure one of the functions is that a call surely runs one of."""
    if len(meaning.definitions) > 1:
        return Resolution(1 / len(meaning.definitions), "one of the overloads")
    return Resolution(PROVEN, "receiver type")


def _is_apart(use: Use, target: Definition) -> bool:
    """Whether a use in Rust is in another program than the target: each file of ``tests`` is built on its own."""
    folder = _BUILT_APART.match(target.path)
    if folder is None or use.path == target.path:
        return False
    if not use.path.startswith(folder[0]):
        return True
    names = (target.path[folder.end() :], use.path[folder.end() :])
    is_nested = any(b"/" in name for name in names)
    return not is_nested and b"mod " + target.stem.encode() not in use.symbols.data


def _is_variant_in_scope(
    use: Use,
    target: Definition,
) -> bool:
    """Whether a variant may be named without its type: a file imports it, in Kotlin it is also beside it."""
    around = target.symbols.parent(target.index)
    if use.symbols.language == "kotlin" and use.path == target.path and around >= 0:
        row = target.symbols.row(around)
        if row[START] <= use.offset < row[END]:
            return True
    imports = imports_of(use.symbols)
    for import_ in (*imports.stars, *imports.names.get(target.name, [])):
        words = import_.module.replace("::", ".")
        if words.rpartition(".")[2] == target.owner:
            return True
    return False


def _is_compared(target: Definition) -> bool:
    """Whether a ``case`` of Java may name a definition: a constant of an enumeration, a number or a text."""
    name = target.key[1]
    before = target.symbols.data[max(0, name - 40) : name]
    return target.kind == "enumerator" or _COMPARED.search(before) is not None


def _list_traits(method: Definition) -> set[str]:
    """Return what the implementation around a method implements, also for a library's type."""
    symbols = method.symbols
    around = symbols.parent(method.index)
    if around < 0 or symbols.kind(around) != "extension":
        return set()
    return {symbols.word_at(at) for at in symbols.bases(around)}


def _has_hash(symbols: FileSymbols, offset: int) -> bool:
    """Whether a name is a private name of JavaScript."""
    return offset > 0 and symbols.data.startswith(b"#", offset - 1)


def _in_scope(use: Use, target: Definition) -> bool:
    """Whether a definition inside a function is visible from the use."""
    if target.index >= 0:
        around = target.symbols.parent(target.index)
    else:
        around = -1
    if around < 0 or target.symbols.kind(around) not in CALLABLE_KINDS:
        return True
    row = target.symbols.row(around)
    return use.path == target.path and row[START] <= use.offset < row[END]
