"""The type of what a member is accessed on, by declarations that write types: in Java, C#, Kotlin, PHP and Rust.

A chain is followed step by step: a local name, a field or a method has the type that its declaration writes, found as
the file with the declaration would find it. A step that nothing settles makes the whole unknown.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.lazy import LazyAttribute
from flashgrep.parts.navigation.resolution.applied_types import (
    apply,
    find_argument,
    identify,
)
from flashgrep.parts.navigation.resolution.call_meaning import Meaning
from flashgrep.parts.navigation.resolution.csharp_calls import (
    CsharpCalls,
    may_be_query,
    read_extended_type,
)
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.kotlin_calls import KotlinCalls
from flashgrep.parts.navigation.resolution.kotlin_text import (
    is_extension,
    read_alias,
    read_receiver_type,
)
from flashgrep.parts.navigation.resolution.library_types import (
    ARRAY,
    AWAIT,
    ZIPS,
    chooses_type,
    find_factory_type,
    find_library_type,
    find_member,
    find_part,
    is_mapping,
    may_hold,
)
from flashgrep.parts.navigation.resolution.overloads import OVERLOADED, choose_overloads
from flashgrep.parts.navigation.resolution.packages import (
    STRICT,
    choose_base,
    resolve_by_package,
)
from flashgrep.parts.navigation.resolution.passed_values import (
    IMPLICIT,
    PassedValues,
)
from flashgrep.parts.navigation.resolution.plain_text import find_real_name
from flashgrep.parts.navigation.resolution.receiver_text import (
    DIALECTS,
    Step,
    find_first,
    read_expression,
    read_receiver,
)
from flashgrep.parts.navigation.resolution.rust_types import SAME
from flashgrep.parts.navigation.resolution.rust_values import RustValues
from flashgrep.parts.navigation.resolution.sites import (
    OUTSIDE,
    UNKNOWN,
    Container,
    LibraryType,
    Pair,
    Site,
    Type,
    Unsettled,
)
from flashgrep.parts.navigation.resolution.symbol_graph import (
    Definition,
    Resolution,
    SymbolKey,
)
from flashgrep.parts.navigation.resolution.type_text import (
    FIELDS,
    Binding,
    find_binding,
    find_name_end,
    find_statement_end,
    is_type_parameter,
    match_type,
    read_bound,
    read_parameters,
    split_list,
)
from flashgrep.parts.symbols.parse.imports import PACKAGED
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    START,
    TYPE_KINDS,
)

_OWN: Final = frozenset({"this", "self", "$this", "static", "Self"})
ABOVE: Final = frozenset({"super", "parent", "base"})
"""Words for the object itself as one of the type above."""
_OWN_TYPES: Final = frozenset({"self", "static", "$this", "this", "Self"})
_MOST_DEPTH: Final = 40
"""Most declarations that lead from one to the next."""
_MOST_BASES: Final = 100
"""Most types above one that are looked at."""
_OVERLAP: Final = 700
"""Bytes that are searched again for a binding: more than one takes."""
_BEFORE_VALUE: Final = frozenset({"new", "await", "&", "&mut", "clone", "object", ":"})
_RETURNS_RECEIVER: Final = frozenset({"apply", "also"})
"""Kotlin's functions that return what they are called on."""
HOLDING: Final = frozenset({"java", "kotlin", "csharp"})
"""Languages whose libraries' containers are known."""
_VARIADIC: Final = re.compile(rb"\bvararg\s+\w+\Z")
_MOST_NAME: Final = 80
_FREE: Final = frozenset({"rust", "kotlin"})
"""Languages in which a function need not be in a type."""
_EXTENDED: Final = frozenset({"kotlin", "csharp"})
"""Languages in which a function may be written for a type that it is not in."""
_SPLITS: Final = re.compile(r"\.|::|\\")
_ARGUMENT: Final = re.compile(
    rb"(?:\?\s*(?:extends|super)\s+|(?:in|out)\s+)?(\\?[A-Za-z_]\w*(?:(?:\.|::|\\)\w+)*)"
)
"""An argument of a generic type."""


@dataclass
class WrittenTypes:
    """Finds the types of receivers for one question."""

    names: Names
    _receivers: dict[SymbolKey, Type] = field(default_factory=dict)
    _steps: dict[tuple[bytes, int, int], Type] = field(default_factory=dict)
    """The types of what is settled in chains: most of a long one is the receiver of several names."""
    _searched: dict[tuple[bytes, str, int], tuple[int, Binding | None]] = field(
        default_factory=dict
    )
    """By name and function, up to where its last binding is known."""
    _bases: dict[SymbolKey, tuple[list[Definition], bool]] = field(default_factory=dict)

    _members: dict[str, list[tuple[Definition, object]]] = field(default_factory=dict)
    _divided: dict[str, bool] = field(default_factory=dict)
    """By the name of a type of Rust, whether several files define one each, with all that implements it."""
    _aliases: set[SymbolKey] = field(default_factory=set)
    """Aliases that are being followed: one may name itself."""

    @LazyAttribute
    def kotlin(self) -> KotlinCalls:
        """Return what finds the meaning of calls in Kotlin."""
        return KotlinCalls(self)

    @LazyAttribute
    def csharp(self) -> CsharpCalls:
        """Return what finds the meaning of calls in C#."""
        return CsharpCalls(self)

    @LazyAttribute
    def passed(self) -> PassedValues:
        """Return what finds the types of what lambdas and loops get."""
        return PassedValues(self)

    @LazyAttribute
    def rust(self) -> RustValues:
        """Return what finds the types of values in Rust that a library's types hold."""
        return RustValues(self)

    def has_type(self, name: str) -> bool:
        """Whether the project has a type of a name."""
        return bool(self._types_of(name))

    def find_receiver(
        self,
        path: bytes,
        symbols: FileSymbols,
        offset: int,
    ) -> Type:
        """Return the type that the member at an offset is accessed on."""
        if symbols.language not in DIALECTS:
            return UNKNOWN
        key = (path, offset)
        if key not in self._receivers:
            step = read_receiver(symbols, offset)
            site = Site(path, symbols, offset)
            self._receivers[key] = (
                UNKNOWN if step is None else self.evaluate(site, step, 0)
            )
        return self._receivers[key]

    def members(
        self,
        owner: Definition,
        name: str,
    ) -> tuple[list[Definition], bool]:
        """Return a type's members of a name, else those of its nearest bases; and whether all bases are known."""
        alike = self._list_members(name)
        is_whole = True
        level = [owner]
        seen = {owner.key}
        while level:
            keys = {self._identity(type_) for type_ in level}
            own = [member for member, identity in alike if identity in keys]
            # The nearest level hides those above it.
            if own:
                return own, is_whole
            above = list[Definition]()
            for type_ in level:
                bases, is_known = self.bases(type_)
                is_whole = is_whole and is_known
                above += [base for base in bases if base.key not in seen]
                seen.update(base.key for base in bases)
            if len(seen) < _MOST_BASES:
                level = above
            else:
                level = []
        return [], is_whole

    def _list_members(self, name: str) -> list[tuple[Definition, object]]:
        """Return the members of a name of all types, each with what identifies its type."""
        if name not in self._members:
            members = list[tuple[Definition, object]]()
            for definition in self.names.definitions(name):
                type_ = self.type_of(definition)
                if type_ is not None:
                    members.append((definition, self._identity(type_)))
            self._members[name] = members
        return self._members[name]

    def derives(
        self,
        type_: Definition,
        base: Definition,
    ) -> bool:
        """Whether a type is or derives from another, as far as its bases are known."""
        sought = self._identity(base)
        waiting = [type_]
        seen = {type_.key}
        while waiting and len(seen) < _MOST_BASES:
            current = waiting.pop()
            if self._identity(current) == sought:
                return True
            bases, _ = self.bases(current)
            waiting += [base for base in bases if base.key not in seen]
            seen.update(base.key for base in bases)
        return False

    def is_whole(self, type_: Definition) -> bool:
        """Whether all types above a type are of the project."""
        _, is_whole = self.members(type_, "")
        return is_whole

    def is_settled(self, type_: Definition) -> bool:
        """Whether all types above a type that may be of the project are known."""
        waiting = [type_]
        seen = {type_.key}
        while waiting and len(seen) < _MOST_BASES:
            current = waiting.pop()
            bases, _ = self.bases(current)
            names = {base.name for base in bases}
            for at in current.symbols.bases(current.index):
                word = current.symbols.word_at(at)
                # It is one of several types of the project, and not known which.
                if word not in names and self._types_of(word):
                    return False
            waiting += [base for base in bases if base.key not in seen]
            seen.update(base.key for base in bases)
        return True

    def bases(self, type_: Definition) -> tuple[list[Definition], bool]:
        """Return a type's bases, and whether they are all of the project."""
        if type_.key not in self._bases:
            symbols = type_.symbols
            bases = list[Definition]()
            is_whole = True
            for at in symbols.bases(type_.index):
                word = symbols.word_at(at)
                base = choose_base(type_, word, self._list_written(symbols, at, word))
                if base is None:
                    is_whole = False
                else:
                    bases.append(base)
            self._bases[type_.key] = (bases, is_whole)
        return self._bases[type_.key]

    def type_of(self, member: Definition) -> Definition | None:
        """Return the type that a definition is a member of."""
        if member.index < 0:
            return None
        around = member.symbols.parent(member.index)
        if around < 0 or member.symbols.kind(around) not in TYPE_KINDS:
            return None
        return Definition(member.path, member.symbols, around)

    def _identity(self, type_: Definition) -> object:
        """Return what parts of one type have in common."""
        if type_.language == "rust":
            return self._identify_in_rust(type_)
        # Of C#'s types that share a name each has another number of parameters.
        if type_.language == "csharp":
            return type_.full_name, len(read_parameters(type_))
        return type_.full_name

    def _identify_in_rust(self, type_: Definition) -> object:
        """Return what a type of Rust and its implementations have in common: its name, with several of one its file."""
        name = type_.name
        path = type_.path
        if name not in self._divided:
            types = self._types_of(name)
            defined = {type_.path for type_ in types if type_.kind != "extension"}
            paths = {type_.path for type_ in types}
            # An implementation in another file may be of any of them.
            self._divided[name] = len(defined) > 1 and paths == defined
        if self._divided[name]:
            return name, path
        return name

    def _types_of(self, name: str) -> Sequence[Definition]:
        return [
            definition
            for definition in self.names.definitions(name)
            if definition.kind in TYPE_KINDS or is_delegate(definition)
        ]

    def _list_written(
        self,
        symbols: FileSymbols,
        offset: int,
        word: str,
    ) -> Sequence[Definition]:
        """Return the types that the word at an offset may mean, with the arguments behind it."""
        types = self._types_of(word)
        if symbols.language != "csharp":
            return types
        parts = split_list(symbols.data, offset + len(word.encode()))
        return choose_by_count(types, len(parts))

    def evaluate(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of an expression."""
        key = (site.path, step.offset, step.end)
        if key in self._steps:
            return self._steps[key]
        type_ = self._evaluate_step(site, step, depth)
        # What is unknown may be so for its depth here.
        if type_ is not UNKNOWN:
            self._steps[key] = type_
        return type_

    def _evaluate_step(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        checkpoint()
        if depth > _MOST_DEPTH:
            return UNKNOWN
        if step.form == "cast":
            return self.find_written(site, step.name)
        if step.form == "new":
            return self._find_construction(site, step)
        if step.base is None:
            return self._evaluate_first(site, step, depth)
        owner = self.evaluate(site, step.base, depth + 1)
        if step.form == "reference":
            return self._find_reference(step, owner)
        if isinstance(owner, Container | Pair):
            return self._follow_content(site, step, owner, depth)
        if isinstance(owner, Definition):
            return self._follow(site, step, owner, depth)
        if step.form == "call" and site.symbols.language in _EXTENDED:
            return self._follow_extension(site, step, owner, depth)
        return owner

    def _find_reference(
        self,
        step: Step,
        owner: Type,
    ) -> Type:
        """Return the library's type of what names a member in Kotlin."""
        if not isinstance(owner, Definition):
            return OUTSIDE
        # Only these two have extensions that anybody writes.
        members, _ = self.members(owner, step.name)
        is_function = any(member.kind in CALLABLE_KINDS for member in members)
        return LibraryType("KFunction1" if is_function else "KProperty1")

    def _follow_content(
        self,
        site: Site,
        step: Step,
        owner: Container | Pair,
        depth: int,
    ) -> Type:
        """Return the type of a member of a library's container or pair."""
        if site.symbols.language == "rust":
            return self.rust.follow(site, owner, step, depth)
        if isinstance(owner, Pair):
            return find_part(owner, step.name) or UNKNOWN
        return self._follow_container(site, step, owner, depth)

    def _follow_container(
        self,
        site: Site,
        step: Step,
        owner: Container,
        depth: int,
    ) -> Type:
        """Return the type of a member of a library's container."""
        text = site.symbols.data[step.offset : step.end]
        name = step.name
        # The library's members come first: a project's function of such a name is told
        # apart by its own receiver.
        type_ = find_member(owner, name, text)
        if type_ is not None:
            return type_
        if is_mapping(name) and step.form == "call":
            return self.passed.find_result(site, step, depth)
        if name in ZIPS:
            return self.passed.find_pairs(site, step, owner, depth)
        if chooses_type(name):
            place = Site(site.path, site.symbols, step.offset)
            parts = split_list(text, len(name.encode()))
            types = self.find_arguments(place, parts, None, UNKNOWN)
            return Container(types[0], None, owner.name) if types else UNKNOWN
        if step.form == "call" and site.symbols.language in _EXTENDED:
            return self._follow_extension(site, step, owner, depth)
        # What may be what it holds is unknown; of what holds nothing of the project
        # nothing is.
        if isinstance(owner.held, LibraryType | Unsettled):
            return owner.held
        return UNKNOWN

    def find_member(
        self,
        site: Site,
        step: Step,
        owner: Definition,
    ) -> Type:
        """Return the type of a member of a type."""
        return self._follow(site, step, owner, 0)

    def find_functions(
        self,
        site: Site,
        step: Step,
        owner: Type,
        depth: int,
    ) -> tuple[list[Definition], Type]:
        """Return the functions that a call may run, and the type of what they are called on."""
        functions = list[Definition]()
        receiver = owner
        if step.form == "new":
            functions = self._list_constructors(site, step)
        elif step.base is None:
            around = self._find_around(site)
            for type_ in self._list_around(around) if around is not None else ():
                functions, _ = self.members(type_, step.name)
                receiver = type_
                if functions:
                    break
        elif isinstance(owner, Definition):
            functions, _ = self.members(owner, step.name)
        # A field of a function's type is called by its value.
        functions = [
            function for function in functions if function.kind in CALLABLE_KINDS
        ]
        if not functions and site.symbols.language in _EXTENDED:
            functions, receiver = self._find_extensions(site, step, owner, depth)
        overloads = list[Definition]()
        for function in functions:
            overloads += find_overloads(function)
        return overloads, receiver

    def _find_extensions(
        self,
        site: Site,
        step: Step,
        owner: Type,
        depth: int,
    ) -> tuple[list[Definition], Type]:
        """Return the functions that a call without a member of the name may run, in C# and Kotlin."""
        place = Site(site.path, site.symbols, step.offset)
        if not self.names.definitions(step.name):
            return [], owner
        # An extension is called on something.
        if step.base is None and site.symbols.language == "csharp":
            return [], owner
        if step.base is None:
            meaning = self.kotlin.find_bare(place, step.name, depth + 1)
        elif site.symbols.language == "csharp":
            meaning = self.csharp.find_on(place, step.name, owner)
        else:
            meaning = self.kotlin.find_on(place, step.name, owner)
        functions = list(meaning.definitions)
        if functions or step.base is not None:
            is_settled = meaning.is_sure or len(functions) == 1
            return functions if is_settled else [], meaning.receiver
        return self._list_visible(place, step.name), UNKNOWN

    def _list_visible(
        self,
        site: Site,
        name: str,
    ) -> list[Definition]:
        """Return the free functions of Kotlin that a file sees, and the constructors of types."""
        functions = list[Definition]()
        for definition in self.names.definitions(name):
            is_free = definition.kind in {"function", "constructor"} | TYPE_KINDS
            if is_free and not is_extension(definition):
                functions.append(definition)
        return [
            function for function in functions if _sees(site, name, function, functions)
        ]

    def _list_constructors(
        self,
        site: Site,
        step: Step,
    ) -> list[Definition]:
        """Return the constructors of the type that a construction names."""
        type_ = self.find_written(site, step.name)
        if not isinstance(type_, Definition):
            return []
        constructors = list[Definition]()
        for definition in self.names.definitions(type_.name):
            around = self.type_of(definition)
            if definition.kind == "constructor" and around is not None:
                if self._is_one(around, type_):
                    constructors.append(definition)
        return constructors

    def _evaluate_first(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of the first name of a chain."""
        # What is bound behind it, in arguments of the chain, is something else.
        site = Site(site.path, site.symbols, step.offset)
        around = self._find_around(site)
        is_kotlin = site.symbols.language == "kotlin"
        if step.name in _OWN and is_kotlin:
            return next(self.kotlin.list_receivers(site, depth), UNKNOWN)
        if step.name in _OWN:
            return around or UNKNOWN
        if step.name in ABOVE:
            if around is not None:
                bases = self.bases(around)[0]
            else:
                bases = []
            if len(bases) == 1:
                return bases[0]
            return UNKNOWN
        if step.form == "name":
            local = self._find_local(site, step.name, depth)
            if local is not None:
                return local
        if step.form == "name" and site.symbols.language == "csharp":
            return self._find_name_in_csharp(site, step, depth)
        # In Kotlin a construction looks like a call.
        is_made = step.form == "name" or is_kotlin
        if step.name[:1].isupper() and is_made:
            type_ = self._find_construction(site, step)
            if isinstance(type_, Definition):
                return type_
        if step.form == "call" and site.symbols.language in _FREE:
            return self._follow_free(site, step, depth)
        if around is None:
            return UNKNOWN
        return self._find_member_around(site, step, around, depth)

    def _find_name_in_csharp(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a name of C# that is not local: of a member around, else the type of that name."""
        around = self._find_around(site)
        is_whole = True
        for owner in self._list_around(around) if around is not None else ():
            members, is_known = self.members(owner, step.name)
            if members:
                return self._find_type_of(members, step, site, owner, depth)
            is_whole = is_whole and is_known
        type_ = self._find_construction(site, step)
        # A base outside the project may have a member of the name.
        is_type = is_whole and step.name[:1].isupper()
        if isinstance(type_, Definition) or is_type:
            return type_
        return UNKNOWN

    def _find_construction(
        self,
        site: Site,
        step: Step,
    ) -> Type:
        """Return the type that a construction names, with its arguments."""
        last = _SPLITS.split(step.name)[-1]
        # ``new Box<Crane>(…)``: what the diamond of Java stands for is unknown.
        parts = split_list(site.symbols.data, step.offset + len(last.encode()))
        around = site.symbols.enclosing(step.offset)
        member = None
        if around >= 0:
            member = Definition(site.path, site.symbols, around)
        return self.find_generic(site, step.name, parts, member, UNKNOWN)

    def _find_member_around(
        self,
        site: Site,
        step: Step,
        around: Definition,
        depth: int,
    ) -> Type:
        """Return the type of a member of the types around a place."""
        for owner in self._list_around(around):
            members, is_whole = self.members(owner, step.name)
            if members:
                return self._find_type_of(members, step, site, owner, depth)
            if not is_whole:
                # A base outside the project may have it, and comes before what is around.
                return UNKNOWN
        return UNKNOWN

    def _follow(
        self,
        site: Site,
        step: Step,
        owner: Definition,
        depth: int,
    ) -> Type:
        """Return the type of a member of a type."""
        if step.name.isdigit():
            return self.rust.find_tuple_field(owner, int(step.name))
        members, _ = self.members(owner, step.name)
        if members:
            return self._find_type_of(members, step, site, owner, depth)
        is_rust_call = step.form == "call" and site.symbols.language == "rust"
        if is_rust_call and step.name in SAME:
            return owner
        if step.form == "call" and site.symbols.language in _EXTENDED:
            return self._follow_extension(site, step, owner, depth)
        # What is not read is a variant that a macro or a build writes.
        is_camel = step.name[:1].isupper() and not step.name.isupper()
        if step.form == "name" and is_camel and site.symbols.language == "rust":
            return owner
        if step.form == "name" and step.name[:1].isupper():  # a type in a type
            nested = f"{owner.qualified}.{step.name}"
            for type_ in self._types_of(step.name):
                if type_.qualified == nested and type_.path == owner.path:
                    return type_
        return UNKNOWN

    def _follow_free(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a call that nothing is written before, where functions are free of types."""
        if site.symbols.language == "rust":
            return self._follow_function(site, step, depth)
        return self._follow_bare_call(site, step, depth)

    def _follow_function(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a call in Rust that nothing is written before, if the project has one such function."""
        if self._find_local(site, step.name, depth) is not None:
            return UNKNOWN
        functions = list[Definition]()
        for definition in self.names.definitions(step.name):
            if definition.kind == "function" and definition.language == "rust":
                functions.append(definition)
        if len(functions) != 1:
            return UNKNOWN
        return self.rust.find_member_type(functions[0], UNKNOWN)

    def _follow_bare_call(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type:
        """Return the type of a call in Kotlin that nothing is written before."""
        meaning = self.kotlin.find_bare(site, step.name, depth + 1)
        if meaning.definitions:
            return self._find_type_of_meaning(meaning, step, site, depth)
        made = find_factory_type(step.name)
        if made:
            end = step.offset + len(step.name.encode())
            parts = split_list(site.symbols.data, end)
            return self.find_generic(site, made, parts, None, UNKNOWN)
        functions = list[Definition]()
        for definition in self.names.definitions(step.name):
            if definition.kind == "function" and not is_extension(definition):
                functions.append(definition)
        visible = list[Definition]()
        for function in functions:
            if _sees(site, step.name, function, functions):
                visible.append(function)
        if not visible:
            return UNKNOWN
        return self._find_type_of(visible, step, site, UNKNOWN, depth)

    def _follow_extension(
        self,
        site: Site,
        step: Step,
        owner: Type,
        depth: int,
    ) -> Type:
        """Return the type of a call in Kotlin or C# of a function that extends a type."""
        place = Site(site.path, site.symbols, step.offset)
        if site.symbols.language == "csharp":
            meaning = self.csharp.find_on(place, step.name, owner)
            return self._find_type_of_meaning(meaning, step, site, depth)
        meaning = self.kotlin.find_on(place, step.name, owner)
        if step.name in _RETURNS_RECEIVER and not meaning.definitions:
            return owner
        return self._find_type_of_meaning(meaning, step, site, depth)

    def _find_type_of_meaning(
        self,
        meaning: Meaning,
        step: Step,
        site: Site,
        depth: int,
    ) -> Type:
        # The only function that the file sees is nearly always meant, if the library has
        # none of the name.
        is_only = len(meaning.definitions) == 1
        if site.symbols.language == "csharp" and may_be_query(site.symbols, step.name):
            is_only = False
        if not meaning.is_sure and not is_only:
            return UNKNOWN
        functions = list(meaning.definitions)
        return self._find_type_of(functions, step, site, meaning.receiver, depth)

    def _find_type_of(
        self,
        members: list[Definition],
        step: Step,
        site: Site,
        owner: Type,
        depth: int,
    ) -> Type:
        """Return the type that the declarations of members agree on."""
        is_call = step.form == "call"
        fitting = [
            member for member in members if (member.kind in CALLABLE_KINDS) == is_call
        ]
        if is_call and fitting and fitting[0].language in OVERLOADED:
            # Among the members the first stands for all beside it.
            overloads = list[Definition]()
            for member in fitting:
                overloads += find_overloads(member)
            end = step.offset + len(step.name.encode())
            fitting = choose_overloads(overloads, site.symbols, end)
        # Overloads that are left may all return the same.
        types = [self._find_member_type(member, owner, depth) for member in fitting]
        if not types or any(type_ is UNKNOWN for type_ in types):
            return UNKNOWN
        identities = {identify(type_) for type_ in types}
        if len(identities) == 1:
            return types[0]
        return UNKNOWN

    def _find_member_type(
        self,
        member: Definition,
        owner: Type,
        depth: int,
    ) -> Type:
        """Return the type that a member's declaration writes; ``owner``: of the object that has the member."""
        symbols = member.symbols
        row = symbols.row(member.index)
        site = Site(member.path, symbols, row[NAME])
        if member.kind == "enumerator":
            return self.type_of(member) or UNKNOWN
        if symbols.language == "rust":
            return self.rust.find_member_type(member, owner)
        match = match_type(member)
        if match is None:
            return self._find_initial(member, depth)
        written = match[1].decode()
        is_array = match.lastindex is not None and match.lastindex > 1 and match[2]
        if is_array and symbols.language not in HOLDING:
            return OUTSIDE
        if is_array:
            return self._find_array(site, match, member, owner)
        # It is the type of the object, which may be a subtype of the one that declares it.
        if written in _OWN_TYPES:
            return owner
        if is_type_parameter(member, written):
            if written == read_extension_receiver(member):
                return owner
            return self._find_parameter(member, written, owner)
        arguments = split_list(match.string, match.end(1))
        return self.find_generic(site, written, arguments, member, owner)

    def _find_initial(
        self,
        member: Definition,
        depth: int,
    ) -> Type:
        """Return the type of a field's first value."""
        symbols = member.symbols
        # In Kotlin a function may be an expression.
        is_expression = symbols.language == "kotlin" and member.kind in CALLABLE_KINDS
        if not is_expression and member.kind not in FIELDS:
            return UNKNOWN
        at = find_name_end(member)
        equals = re.compile(rb"\s*=(?![=>])").match(symbols.data, at)
        if equals is None:
            return UNKNOWN
        site = Site(member.path, symbols, symbols.row(member.index)[NAME])
        return self._evaluate_value(site, equals.end(), depth)

    def _evaluate_value(
        self,
        site: Site,
        start: int,
        depth: int,
    ) -> Type:
        """Return the type of the value that begins at an offset and ends with its statement."""
        symbols = site.symbols
        end = find_statement_end(symbols, start)
        step = read_expression(symbols, end)
        if step is None:
            return UNKNOWN
        first = find_first(step)
        between = symbols.data[start : first.offset].decode("utf-8", "replace")
        if not _BEFORE_VALUE.issuperset(between.split()):
            return UNKNOWN
        there = Site(site.path, symbols, start)
        type_ = self.evaluate(there, step, depth + 1)
        if AWAIT in between and isinstance(type_, Container):
            return find_member(type_, AWAIT, b"") or UNKNOWN
        return type_

    def _find_local(
        self,
        site: Site,
        name: str,
        depth: int,
    ) -> Type | None:
        """Return the type of a local name; None: no function around binds it."""
        symbols = site.symbols
        if name == IMPLICIT and symbols.language == "kotlin":
            return self.passed.find_implicit(site, depth)
        around = symbols.enclosing(site.offset)
        while around >= 0:
            # A field's value may be a function.
            if symbols.kind(around) in CALLABLE_KINDS | FIELDS:
                row = symbols.row(around)
                end = min(site.offset, row[END])
                binding = self._find_binding(site, name, row[START], end)
                if binding is not None:
                    return self._type_of_binding(site, *binding, name, depth)
            around = symbols.parent(around)
        is_script = symbols.language == "php" and symbols.enclosing(site.offset) < 0
        if is_script:
            binding = self._find_binding(site, name, 0, site.offset)
        else:
            binding = None
        if binding is None:
            return None
        return self._type_of_binding(site, *binding, name, depth)

    def _find_binding(
        self,
        site: Site,
        name: str,
        start: int,
        end: int,
    ) -> Binding | None:
        """Return the last binding of a name between two offsets, searching only what is new since the last time."""
        key = (site.path, name, start)
        searched, last = self._searched.get(key, (start, None))
        if end < searched:
            return find_binding(site.symbols, name, start, end)
        again = max(start, searched - _OVERLAP)
        recent = find_binding(site.symbols, name, again, end)
        if recent is None or (last is not None and last[1].end() >= recent[1].end()):
            recent = last
        self._searched[key] = (end, recent)
        return recent

    def _type_of_binding(
        self,
        site: Site,
        form: int,
        match: re.Match[bytes],
        name: str,
        depth: int,
    ) -> Type:
        here = Site(site.path, site.symbols, match.start())
        if form == 1:
            return self._evaluate_value(here, match.end(), depth)
        is_rust = site.symbols.language == "rust"
        if form > 1 and is_rust:
            return self.rust.find_bound_type(site, match, name, depth)
        if form > 1 and site.symbols.language in HOLDING:
            return self.passed.find_bound_type(site, match, name, depth)
        if form > 1:
            return UNKNOWN
        written = match[1].decode()
        around = site.symbols.enclosing(match.start())
        if is_rust:
            return self._find_rust_local(here, match, around)
        function = None
        if around >= 0:
            function = Definition(site.path, site.symbols, around)
        if match[2] and site.symbols.language not in HOLDING:
            return OUTSIDE
        if match[2] or _is_variadic(match):
            return self._find_array(here, match, function, UNKNOWN)
        if function is not None:
            if is_type_parameter(function, written):
                return self._find_parameter(function, written, UNKNOWN)
        if written in _OWN_TYPES:
            return self._find_around(here) or UNKNOWN
        arguments = split_list(match.string, match.end(1))
        return self.find_generic(here, written, arguments, function, UNKNOWN)

    def _find_array(
        self,
        site: Site,
        match: re.Match[bytes],
        member: Definition | None,
        owner: Type,
    ) -> Type:
        """Return an array of the type that a declaration writes."""
        parts = split_list(match.string, match.end(1))
        written = match[1].decode()
        part = written.encode()
        if parts:
            part += b"<" + b", ".join(parts) + b">"
        types = self.find_arguments(site, [part], member, owner)
        return Container(types[0], None, ARRAY)

    def _find_parameter(
        self,
        member: Definition,
        parameter: str,
        owner: Type,
    ) -> Type:
        """Return what a type parameter stands for in a member of an object, else what it must be."""
        around = self.type_of(member)
        if around is not None:
            argument = find_argument(member, parameter, self._see_as(owner, around))
            if argument is not UNKNOWN:
                return argument
        bound = read_bound(member, parameter)
        if bound is None or is_type_parameter(member, bound[1]):
            return UNKNOWN
        writing, written = bound
        symbols = writing.symbols
        site = Site(writing.path, symbols, symbols.row(writing.index)[NAME])
        type_ = self.find_written(site, written)
        # Anything may be below a library's type.
        return type_ if isinstance(type_, Definition) else UNKNOWN

    def _see_as(
        self,
        owner: Type,
        base: Definition,
    ) -> Type:
        """Return the type of an object as one above it, with the arguments that declarations write."""
        if not isinstance(owner, Definition):
            return owner
        sought = self._identity(base)
        waiting = [owner]
        seen = {owner.key}
        while waiting and len(seen) < _MOST_BASES:
            current = waiting.pop()
            if self._identity(current) == sought:
                return current
            symbols = current.symbols
            # ``class Yard : Shop<Crane>`` says what Shop's parameter stands for in Yard.
            for at in symbols.bases(current.index):
                word = symbols.word_at(at)
                written = self._list_written(symbols, at, word)
                above = choose_base(current, word, written)
                if above is None or above.key in seen:
                    continue
                seen.add(above.key)
                parts = split_list(symbols.data, at + len(word.encode()))
                site = Site(current.path, symbols, at)
                arguments = self.find_arguments(site, parts, current, current)
                waiting.append(apply(above, arguments))
        return UNKNOWN

    def find_generic(
        self,
        site: Site,
        written: str,
        parts: Sequence[bytes],
        member: Definition | None,
        owner: Type,
    ) -> Type:
        """Return the type that a written name means with its arguments; ``member``: whose type parameters it may name."""
        type_ = self.find_written(site, written, len(parts))
        if not parts:
            return type_
        if isinstance(type_, Definition):
            return apply(type_, self.find_arguments(site, parts, member, owner))
        # Behind another name, as in ``Map.Entry``, a type of the project may have the name
        # too.
        word = _SPLITS.split(written)[-1]
        is_library = type_ is not UNKNOWN or word != written
        if not is_library or not may_hold(word):
            return type_
        arguments = self.find_arguments(site, parts, member, owner)
        return find_library_type(word, arguments) or type_

    def find_arguments(
        self,
        site: Site,
        parts: Sequence[bytes],
        member: Definition | None,
        owner: Type,
    ) -> tuple[Type, ...]:
        """Return the types that the arguments of a generic type write."""
        arguments = list[Type]()
        for part in parts:
            match = _ARGUMENT.match(part)
            if match is None:
                arguments.append(UNKNOWN)
                continue
            written = match[1].decode()
            if member is not None and is_type_parameter(member, written):
                arguments.append(self._find_parameter(member, written, owner))
                continue
            inner = split_list(part, match.end(1))
            argument = self.find_generic(site, written, inner, member, owner)
            if part.rstrip(b"?").endswith(b"]"):
                argument = Container(argument, None, ARRAY)
            arguments.append(argument)
        return tuple(arguments)

    def _find_rust_local(
        self,
        site: Site,
        match: re.Match[bytes],
        around: int,
    ) -> Type:
        """Return the type that is written of a local name of Rust; ``around``: the function."""
        function = None
        if around >= 0:
            function = Definition(site.path, site.symbols, around)
        start = match.start(1)
        # Of a slice or a tuple.
        while site.symbols.data[start - 1 : start] in {b"[", b"("}:
            start -= 1
        owner = self._find_around(site) or UNKNOWN
        return self.rust.find_type_at(site, start, function, owner)

    def _find_around(self, site: Site) -> Definition | None:
        """Return the type that the code at a place is of; of an extension, the type that it extends."""
        type_ = self._find_enclosing_type(site)
        if type_ is None or type_.kind != "extension":
            return type_
        top = Site(site.path, site.symbols, 0)
        extended = self.find_written(top, type_.name)
        if isinstance(extended, Definition):
            return extended
        return None

    def _list_around(self, type_: Definition) -> Iterator[Definition]:
        """Yield a type and those around it, innermost first."""
        at = type_.index
        while at >= 0:
            if type_.symbols.kind(at) in TYPE_KINDS:
                yield Definition(type_.path, type_.symbols, at)
            at = type_.symbols.parent(at)

    def find_written(
        self,
        site: Site,
        written: str,
        count: int = 0,
    ) -> Type:
        """Return the type that a written name means at a place; ``count``: of its arguments."""
        parts = [part for part in _SPLITS.split(written) if part]
        if len(parts) == 1:
            parts = [find_real_name(site.symbols, parts[0])]
        if parts:
            types = self._types_of(parts[-1])
        else:
            types = []
        language = site.symbols.language
        if not types and language == "kotlin" and parts:
            return self._find_alias(site, parts[-1])
        if not types and language == "csharp" and parts:
            return LibraryType(parts[-1])
        if language == "csharp":
            types = choose_by_count(types, count)
        if not types:
            return OUTSIDE
        if len(parts) == 1:
            return self._find_word(site, parts[0], types)
        # The first word may be a type, a package or the end of one.
        ending = f".{'.'.join(parts)}"
        matching = [type_ for type_ in types if f".{type_.full_name}".endswith(ending)]
        return self._choose(site, matching)

    def _find_alias(
        self,
        site: Site,
        word: str,
    ) -> Type:
        """Return the type that an alias of Kotlin names."""
        aliases = list[Definition]()
        for definition in self.names.definitions(word):
            if definition.kind == "type" and definition.language == "kotlin":
                aliases.append(definition)
        visible = [alias for alias in aliases if _sees(site, word, alias, aliases)]
        if not visible:
            return LibraryType(word)
        alias = visible[0]
        if len(visible) > 1 or alias.key in self._aliases:
            return UNKNOWN
        written = read_alias(alias)
        if not written:
            return OUTSIDE
        self._aliases.add(alias.key)
        try:
            return self.find_written(Site(alias.path, alias.symbols, 0), written)
        finally:
            self._aliases.discard(alias.key)

    def _find_word(
        self,
        site: Site,
        word: str,
        types: Sequence[Definition],
    ) -> Type:
        """Return the type that a word means, of those with that name."""
        local = self._find_local_type(site, types)
        if local is not None:
            return local
        around = self._find_enclosing_type(site)
        for owner in self._list_around(around) if around is not None else ():
            is_meant = owner.name == word
            if is_meant and site.symbols.language == "csharp":
                identities = {self._identity(type_) for type_ in types}
                is_meant = self._identity(owner) in identities
            if is_meant:
                return owner
            nested = self._find_type_inside(owner, types)
            if nested is not None:
                return nested
        # Types of a language without packages are told apart by nothing but their
        # number.
        visible = types
        if site.symbols.language in PACKAGED:
            visible = [type_ for type_ in types if _sees(site, word, type_, types)]
        if visible:
            return self._choose(site, visible)
        # Elsewhere an import of the whole project, or a package around, may bring it.
        is_told = site.symbols.language in STRICT
        if is_told:
            return OUTSIDE
        return UNKNOWN

    def _find_local_type(
        self,
        site: Site,
        types: Sequence[Definition],
    ) -> Definition | None:
        """Return the one of several types that a function around a place defines, the innermost first."""
        beside = dict[int, Definition]()
        for type_ in types:
            if type_.path == site.path:
                around = type_.symbols.parent(type_.index)
                beside[around] = type_
        at = site.symbols.enclosing(site.offset)
        while at >= 0:
            if at in beside and site.symbols.kind(at) in CALLABLE_KINDS:
                return beside[at]
            at = site.symbols.parent(at)
        return None

    def _find_enclosing_type(self, site: Site) -> Definition | None:
        symbols = site.symbols
        at = symbols.enclosing(site.offset)
        while at >= 0 and symbols.kind(at) not in TYPE_KINDS:
            at = symbols.parent(at)
        if at >= 0:
            return Definition(site.path, symbols, at)
        return None

    def _find_type_inside(
        self,
        owner: Definition,
        types: Sequence[Definition],
    ) -> Definition | None:
        """Return the one of several types that is a member of another, or of its bases."""
        for above in (owner, *self.bases(owner)[0]):
            for type_ in types:
                around = self.type_of(type_)
                if around is None:
                    continue
                # Of C# the part of a type in another file may have it.
                is_part = type_.path == above.path or type_.language == "csharp"
                if is_part and self._is_one(around, above):
                    return type_
        return None

    def _is_one(
        self,
        type_: Definition,
        other: Definition,
    ) -> bool:
        """Whether two definitions are of one type, which in C# may have parts."""
        if type_.language == "csharp":
            return self._identity(type_) == self._identity(other)
        return type_.key == other.key

    def _choose(
        self,
        site: Site,
        types: Sequence[Definition],
    ) -> Type:
        """Return a type, if all that a name may mean are parts of it."""
        real = [type_ for type_ in types if type_.kind != "extension"] or types
        identities = {self._identity(type_) for type_ in real}
        if site.symbols.language == "rust" and len(real) > 1:
            own = [type_ for type_ in real if type_.path == site.path]
            return own[0] if len(own) == 1 else UNKNOWN
        if len(identities) == 1:
            return real[0]
        return UNKNOWN


def _is_variadic(match: re.Match[bytes]) -> bool:
    """Whether the type of a parameter is that of each of several arguments."""
    start = match.start()
    is_spread = b"..." in match[0]
    return (
        is_spread
        or _VARIADIC.search(match.string, max(0, start - _MOST_NAME), start) is not None
    )


def choose_by_count(
    types: Sequence[Definition],
    count: int,
) -> Sequence[Definition]:
    """Return the types with a number of type parameters, if there are any; else all."""
    return [type_ for type_ in types if len(read_parameters(type_)) == count] or types


def is_delegate(definition: Definition) -> bool:
    """Whether a definition of C# is a type of methods."""
    return definition.kind == "type" and definition.language == "csharp"


def read_extension_receiver(member: Definition) -> str:
    """Return the type that a function extends, as it is written; empty: none."""
    extended = read_extended_type(member)
    if extended is not None:
        return extended[0]
    if is_extension(member):
        return read_receiver_type(member)
    return ""


def _sees(
    site: Site,
    word: str,
    type_: Definition,
    types: Sequence[Definition],
) -> bool:
    """Whether a word may mean a type by the packages and imports of its file."""
    resolved = resolve_by_package(site.symbols, word, type_, types, inherits=False)
    return isinstance(resolved, Resolution)
