"""What a call in Kotlin means: a member of its receiver's type, or a function that extends the type.

A call without a receiver is one on whatever is ``this`` around it: of lambdas, extensions and classes, innermost first.
Several functions of one name may extend different types; which is meant depends on the type of the receiver, so where
that is not known none of them is told for sure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from flashgrep.parts.navigation.resolution.applied_types import identify
from flashgrep.parts.navigation.resolution.call_meaning import (
    Fit,
    Meaning,
    Types,
    judge_fit,
)
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.kotlin_text import (
    Blocks,
    begins_body,
    is_extension,
    is_private,
    read_alias_receiver,
    read_blocks,
    read_lambda_receiver,
    read_last_parameter,
    read_receiver_bound,
    read_receiver_type,
)
from flashgrep.parts.navigation.resolution.overloads import (
    choose_kotlin_overloads,
    list_accepting_in_kotlin,
    read_types,
)
from flashgrep.parts.navigation.resolution.packages import resolve_by_package
from flashgrep.parts.navigation.resolution.receiver_text import Step, read_expression
from flashgrep.parts.navigation.resolution.sites import (
    OUTSIDE,
    UNKNOWN,
    Site,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import (
    Definition,
    Resolution,
    SymbolKey,
)
from flashgrep.parts.navigation.resolution.type_text import is_type_parameter
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.symbol_source import imports_of

_ON_RECEIVER: Final = frozenset({"apply", "run"})
"""The language's functions whose lambda sees the members of what they are called on."""
_WITH: Final = "with"
_INVOKE: Final = "invoke"
"""The function that a call of a value runs, or of a type's companion."""
_PROPERTY: Final = re.compile(rb"::\w+\s*\Z")
_BLOCK: Final = re.compile(
    rb"(?:\$|->|\b(?:else|try|finally|do|init|get|set)|\b(?:get|set)\s*\(\s*\w*\s*\))\s*\Z"
)
"""What stands before a block that is no lambda."""
_OBJECT: Final = re.compile(rb"\bobject\s*:\s*([A-Za-z_][\w.]*)[^{}]{0,200}\Z")
_TYPE_ARGUMENTS: Final = re.compile(rb"(?<=\w)<[\w\s.,?*<>]{0,200}>\s*\Z")
_IS_VALUE: Final = re.compile(rb"[=(,>]\s*\Z")
"""What stands before a lambda that is no call's last argument."""
_TAKES_LAMBDAS: Final = CALLABLE_KINDS | TYPE_KINDS
"""Kinds of what may be called with a lambda: a type by its constructor."""
_MOST_BEFORE: Final = 300
"""Bytes before a block that are read for what it belongs to."""
_MOST_FUNCTIONS: Final = 20
"""Most functions of one name whose parameters are read for a lambda."""


@dataclass
class KotlinCalls:
    """Finds what calls mean for one question."""

    types: Types
    _blocks: dict[bytes, Blocks] = field(default_factory=dict)
    _seen: dict[tuple[bytes, int], Type | None] = field(default_factory=dict)
    """Whose members the lambda at an offset sees; None: it is no lambda, or sees only what is around it."""

    def find_on(
        self,
        site: Site,
        name: str,
        receiver: Type,
    ) -> Meaning:
        """Return what a call on a receiver means."""
        has_property = False
        own = list[Definition]()
        if isinstance(receiver, Definition):
            members, _ = self.types.members(receiver, name)
            own = [member for member in members if _is_method(member)]
            # One that takes the arguments comes before what extends the type.
            if own and not self._yields(own, site, name):
                return Meaning(tuple(own), receiver, is_sure=True)
            # Its value may be a function; the arguments decide which is called, and
            # what they are is not always known.
            has_property = any(_is_property(member, site) for member in members)
        # Of what is visible, what surely extends the type comes before what may.
        by_fit: dict[Fit, list[Definition]] = {fit: [] for fit in Fit}
        for extension in self._list_visible(site, name):
            fit = self._judge(extension, receiver)
            by_fit[fit].append(extension)
        fitting = _choose_innermost(by_fit[Fit.YES])
        if fitting and not has_property:
            chosen = self._choose(fitting, site, name)
            return Meaning(tuple(chosen), receiver, is_sure=True)
        # Arguments that are not understood rule out no member.
        if own:
            return Meaning(tuple(own), receiver, is_sure=True)
        possible = tuple(fitting or _choose_innermost(by_fit[Fit.UNKNOWN]))
        return Meaning(possible, receiver, is_sure=False, is_hidden=has_property)

    def _yields(
        self,
        own: Sequence[Definition],
        site: Site,
        name: str,
    ) -> bool:
        """Whether members leave a call to functions that extend a type, since none of them takes its arguments."""
        if next(self._list_visible(site, name), None) is None:
            return False
        methods = list[Definition]()
        for member in own:
            methods += [
                method for method in find_overloads(member) if _is_method(method)
            ]
        end = site.offset + len(name.encode())
        return not list_accepting_in_kotlin(methods, site.symbols, end)

    def find_bare(
        self,
        site: Site,
        name: str,
        depth: int,
    ) -> Meaning:
        """Return what a call without a receiver means, if it is a member's or an extension's."""
        # Whether nothing nearer may have the name, and whether all types are known
        # that may have it at all.
        is_sure = True
        is_whole = True
        possible = dict[SymbolKey, Definition]()
        for receiver in self.list_receivers(site, depth):
            meaning = self.find_on(site, name, receiver)
            if meaning.is_sure:
                return replace(meaning, is_sure=is_sure)
            if meaning.is_hidden:
                return meaning
            if receiver is UNKNOWN or meaning.definitions:
                is_sure = False
            if not isinstance(receiver, Definition):
                # The lambda of a library's function may see the members of anything.
                is_whole = False
            elif not self.types.is_settled(receiver):
                is_whole = False
            for definition in meaning.definitions:
                possible[definition.key] = definition
        if is_sure and is_whole:
            return Meaning((), OUTSIDE, is_sure=True)
        return Meaning(tuple(possible.values()), UNKNOWN, is_sure=False)

    def is_visible(
        self,
        site: Site,
        extension: Definition,
    ) -> bool:
        """Whether a function that extends a type may be called at a place."""
        around = extension.symbols.parent(extension.index)
        if around >= 0:
            owner = Definition(extension.path, extension.symbols, around)
            return self._is_this(site, owner)
        if is_private(extension) and extension.path != site.path:
            return False
        imports = imports_of(site.symbols)
        word = site.symbols.word_at(site.offset)
        for import_ in imports.names.get(word, ()):
            if f"{import_.module}.{import_.name}" == extension.full_name:
                return True
        # An alias names only what is imported by it.
        if word != extension.name:
            return False
        if extension.package == site.symbols.package:
            return True
        # One that is imported by name hides none that extends another type.
        return any(star.module == extension.package for star in imports.stars)

    def _is_this(
        self,
        site: Site,
        owner: Definition,
    ) -> bool:
        """Whether a type, or one below it, is ``this`` around a place."""
        for receiver in self.list_receivers(site, 0):
            if isinstance(receiver, Definition) and self.types.derives(receiver, owner):
                return True
        return False

    def _list_visible(
        self,
        site: Site,
        name: str,
    ) -> Iterator[Definition]:
        """Yield the functions of a name that extend a type and are visible at a place."""
        for definition in self.types.names.definitions(name):
            if is_extension(definition) and self.is_visible(site, definition):
                yield definition

    def _judge(
        self,
        extension: Definition,
        receiver: Type,
    ) -> Fit:
        """Return whether a function extends the type of a receiver."""
        written = read_receiver_bound(extension)
        if written == "Any":
            return Fit.YES
        if receiver is UNKNOWN:
            return Fit.UNKNOWN
        extended = self._find_receiver_type(extension, written)
        return judge_fit(self.types, extended, receiver)

    def _find_receiver_type(
        self,
        extension: Definition,
        written: str,
    ) -> Type:
        row = extension.symbols.row(extension.index)
        site = Site(extension.path, extension.symbols, row[NAME])
        return self.types.find_written(site, written)

    def _choose(
        self,
        extensions: Sequence[Definition],
        site: Site,
        name: str,
    ) -> list[Definition]:
        """Return those of several fitting functions that take a call's arguments and extend the nearest type."""
        end = site.offset + len(name.encode())
        overloads = list[Definition]()
        for extension in extensions:
            overloads += find_overloads(extension)
        taking = choose_kotlin_overloads(overloads, site.symbols, end)
        # Where parameters differ, the arguments decide before the receiver does.
        parameters = {tuple(read_types(function)) for function in taking}
        if len(parameters) > 1:
            return taking
        nearest = list[Definition]()
        for function in taking:
            is_hidden = any(self._is_nearer(other, function) for other in taking)
            if not is_hidden:
                nearest.append(function)
        return nearest

    def _is_nearer(
        self,
        extension: Definition,
        other: Definition,
    ) -> bool:
        """Whether a function extends a type below that of another, or the other extends any type."""
        written = read_receiver_bound(extension)
        type_ = self._find_receiver_type(extension, written)
        if not isinstance(type_, Definition):
            return False
        written = read_receiver_bound(other)
        above = self._find_receiver_type(other, written)
        if not isinstance(above, Definition):
            return True
        if type_.key == above.key:
            return False
        return self.types.derives(type_, above)

    def list_receivers(
        self,
        site: Site,
        depth: int,
    ) -> Iterator[Type]:
        """Yield the types of what is ``this`` around a place, innermost first."""
        symbols = site.symbols
        if site.path not in self._blocks:
            self._blocks[site.path] = read_blocks(symbols)
        blocks = self._blocks[site.path].list_around(site.offset)
        around = symbols.enclosing(site.offset)
        while around >= 0:
            definition = Definition(site.path, symbols, around)
            start = symbols.row(around)[NAME]
            inside = [block for block in blocks if block > start]
            blocks = blocks[len(inside) :]
            # The outermost is the definition's own body, if it has one.
            if inside and begins_body(definition, inside[-1]):
                inside.pop()
            yield from self._list_receivers_of_blocks(site, inside, depth)
            if is_extension(definition):
                written = read_receiver_bound(definition)
                yield self._find_receiver_type(definition, written)
            if definition.kind in TYPE_KINDS:
                yield definition
            around = symbols.parent(around)
        yield from self._list_receivers_of_blocks(site, blocks, depth)

    def _list_receivers_of_blocks(
        self,
        site: Site,
        blocks: Sequence[int],
        depth: int,
    ) -> Iterator[Type]:
        """Yield the types whose members blocks see as their own."""
        for block in blocks:
            receiver = self._find_receiver_of_block(site, block, depth)
            if receiver is not None:
                yield receiver

    def _find_receiver_of_block(
        self,
        site: Site,
        block: int,
        depth: int,
    ) -> Type | None:
        """Return the type whose members a block sees as its own; None: it has no receiver of its own."""
        key = (site.path, block)
        if key not in self._seen:
            # A lambda in its own receiver's chain would ask for itself.
            self._seen[key] = UNKNOWN
            self._seen[key] = self._read_block(site, block, depth)
        return self._seen[key]

    def _read_block(
        self,
        site: Site,
        block: int,
        depth: int,
    ) -> Type | None:
        symbols = site.symbols
        before = symbols.data[max(0, block - _MOST_BEFORE) : block]
        made = _OBJECT.search(before)
        place = Site(site.path, symbols, block)
        if made is not None:
            return self.types.find_written(place, made[1].decode())
        if _BLOCK.search(before):
            return None
        written = read_lambda_receiver(before)
        if written:
            return self.types.find_written(place, written)
        # Type arguments may stand between a function's name and its lambda.
        end = block
        arguments = _TYPE_ARGUMENTS.search(before)
        if arguments is not None:
            end -= len(before) - arguments.start()
        step = read_expression(symbols, end)
        if step is not None and _PROPERTY.search(before):
            return self._find_receiver_of_invoke()
        if step is None and _IS_VALUE.search(before):
            return UNKNOWN
        if step is None:
            return None
        return self._find_receiver_of_lambda(site, step, depth)

    def _find_receiver_of_lambda(
        self,
        site: Site,
        step: Step,
        depth: int,
    ) -> Type | None:
        """Return the type whose members the lambda of a call sees; None: it has no receiver of its own."""
        place = Site(site.path, site.symbols, step.end)
        if step.name == _WITH:
            given = read_expression(site.symbols, step.end - 1)
            if given is None:
                return UNKNOWN
            return self.types.evaluate(place, given, depth + 1)
        functions = list[Definition]()
        for definition in self.types.names.definitions(step.name):
            is_kotlin = definition.language == "kotlin"
            if is_kotlin and definition.kind in _TAKES_LAMBDAS:
                functions.append(definition)
        # A function of the project hides the language's own.
        if functions:
            return self._find_lambda_receiver(site, step, functions, depth)
        # What a library declares is not read: it sees no members of ours by itself.
        if step.name not in _ON_RECEIVER:
            return OUTSIDE
        if step.base is None:
            return None
        return self.types.evaluate(place, step.base, depth + 1)

    def _find_receiver_of_invoke(self) -> Type | None:
        """Return the type whose members a lambda behind a reference sees: ``Crane::rope { }`` calls ``invoke``."""
        functions = list[Definition]()
        for definition in self.types.names.definitions(_INVOKE):
            if is_extension(definition):
                functions.append(definition)
        receivers = dict[object, Type | None]()
        # Which of them is called depends on the property's type, so they must agree.
        for function in functions[:_MOST_FUNCTIONS]:
            type_ = self._find_parameter_receiver(function, UNKNOWN)
            receivers[identify(type_) if type_ is not None else None] = type_
        if len(receivers) != 1:
            return UNKNOWN if receivers else None
        return next(iter(receivers.values()))

    def _list_functions_of(self, function: Definition) -> list[Definition]:
        """Return what a call by a name runs: of a type with such functions ``invoke``, else what has the name."""
        if function.kind not in TYPE_KINDS or read_last_parameter(function) != ("", ""):
            return [function]
        # ``Check { }`` is a call of the companion's ``invoke`` if there is no constructor.
        members, _ = self.types.members(function, _INVOKE)
        functions = list[Definition]()
        for member in members:
            functions += find_overloads(member)
        return functions or [function]

    def _find_lambda_receiver(
        self,
        site: Site,
        step: Step,
        functions: Sequence[Definition],
        depth: int,
    ) -> Type | None:
        """Return the type whose members the lambda of a call sees, if all functions it may run agree."""
        if len(functions) > _MOST_FUNCTIONS:
            return UNKNOWN
        place = Site(site.path, site.symbols, step.offset)
        if step.base is None:
            meaning = self.find_bare(place, step.name, depth + 1)
        else:
            base = self.types.evaluate(place, step.base, depth + 1)
            meaning = self.find_on(place, step.name, base)
        receivers = dict[object, Type | None]()
        chosen = meaning.definitions or _choose_visible(place, step.name, functions)
        for definition in chosen:
            for function in self._list_functions_of(definition):
                receiver = self._find_parameter_receiver(function, meaning.receiver)
                # Two objects may stand for one definition.
                key = None if receiver is None else identify(receiver)
                receivers[key] = receiver
        # An overload that takes no such lambda is not the one that is called.
        if len(receivers) > 1:
            receivers.pop(None, None)
        if len(receivers) > 1:
            return UNKNOWN
        return next(iter(receivers.values()))

    def _find_parameter_receiver(
        self,
        function: Definition,
        receiver: Type,
    ) -> Type | None:
        """Return the type whose members the last lambda that a function takes sees."""
        written, alias = read_last_parameter(function)
        row = function.symbols.row(function.index)
        site = Site(function.path, function.symbols, row[NAME])
        if not written:
            return self._find_alias_receiver(alias)
        if is_extension(function) and written == read_receiver_type(function):
            return receiver
        if is_type_parameter(function, written):
            return UNKNOWN
        return self.types.find_written(site, written)

    def _find_alias_receiver(self, alias: str) -> Type | None:
        """Return the receiver of the functions that an alias names; None: they have none."""
        if not alias:
            return None
        definitions = self.types.names.definitions(alias)
        aliases = [
            definition for definition in definitions if definition.kind == "type"
        ]
        if len(aliases) > 1:
            return UNKNOWN
        for definition in aliases:
            written = read_alias_receiver(definition)
            if written:
                return self._find_receiver_type(definition, written)
        return None


def _choose_visible(
    site: Site,
    name: str,
    functions: Sequence[Definition],
) -> Sequence[Definition]:
    """Return the functions of packages that a file sees by its package and imports; all, if that is unknown."""
    visible = list[Definition]()
    for function in functions:
        told = resolve_by_package(
            site.symbols, name, function, functions, inherits=False
        )
        if isinstance(told, Resolution):
            visible.append(function)
    return visible or functions


def _choose_innermost(extensions: Sequence[Definition]) -> Sequence[Definition]:
    """Return the functions that are inside a type that is ``this``, which come before those of packages; else all."""
    inside = list[Definition]()
    for extension in extensions:
        if extension.symbols.parent(extension.index) >= 0:
            inside.append(extension)
    return inside or extensions


def _is_property(member: Definition, site: Site) -> bool:
    """Whether a member may be a property with a function; its own value is none."""
    row = member.symbols.row(member.index)
    is_within = member.path == site.path and row[START] <= site.offset < row[END]
    return member.kind not in CALLABLE_KINDS and not is_within


def _is_method(member: Definition) -> bool:
    return member.kind in CALLABLE_KINDS and not is_extension(member)
