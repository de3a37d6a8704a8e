"""Which definitions share one name: a method and its overrides, overloads, a type and its constructors, prototypes."""

from typing import Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import FAMILIES
from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.navigation.resolution.linkage import LINKED, is_static
from flashgrep.parts.navigation.resolution.resolver import Use
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.imports import ECMA
from flashgrep.parts.symbols.parse.model import TYPE_KINDS

_NO_NAME: Final = frozenset({"heading", "package"})
_MEMBERS: Final = frozenset({"method", "property", "field", "event", "function"})
"""Kinds that a subtype may override."""


class FamilySearch:
    """Finds the definitions that must be renamed together."""

    def __init__(self, navigator: Navigator) -> None:
        self._navigator = navigator

    def run(self, definition: Definition) -> list[Definition]:
        """Return a definition and all that share its name with it, in no order."""
        languages = _family_of(definition.language)
        alike: list[Definition] = []
        for other in self._navigator.define_all(definition.name):
            if other.kind in _NO_NAME:
                continue
            if _family_of(other.language) == languages:
                alike.append(other)
        # A sibling belongs through the base that both override, so members are added
        # until none brings a further one.
        family = {definition.key: definition}
        waiting = [definition]
        while waiting:
            member = waiting.pop()
            for other in alike:
                checkpoint()
                if other.key in family:
                    continue
                if self._belongs(member, other):
                    family[other.key] = other
                    waiting.append(other)
        return list(family.values())

    def is_related(self, member: Definition, other: Definition) -> bool:
        """Whether two members are of one type, or the type of one is above the type of the other."""
        owner = self._navigator.names.owner_of(member)
        if owner is None:
            return False
        return self.belongs_to(other, owner)

    def belongs_to(self, member: Definition, type_: Definition) -> bool:
        """Whether a definition is a member of a type, or of one above or below it."""
        owner = self._navigator.names.owner_of(member)
        if owner is None or owner.key == type_.key:
            return owner is not None
        return self._is_above(owner, type_) or self._is_above(type_, owner)

    def _is_above(self, base: Definition, type_: Definition) -> bool:
        # An `impl` block has its type's name, and would be taken for the type itself.
        if base.kind == "extension":
            return False
        if type_.kind == "extension":
            # What an extension conforms to is named in its own head.
            symbols = type_.symbols
            names = {symbols.word_at(at) for at in symbols.bases(type_.index)}
            if base.name in names:
                return True
        return self._navigator.is_above(base, type_)

    def _belongs(self, member: Definition, other: Definition) -> bool:
        """Whether two definitions of one name are of one symbol, or one overrides the other."""
        if _is_constructor(member, other) or _is_constructor(other, member):
            return True
        if self._are_of_objects(member, other):
            return False
        if member.owner == other.owner:
            if _is_one_scope(member, other):
                # Overloads, accessors of a property, variants for platforms.
                return _are_both_types(member, other)
            # In C a name without an owner is one for the linker, whatever file it is in.
            if member.language in LINKED and not member.owner:
                return _is_linked(member, other)
        if member.kind not in _MEMBERS or other.kind not in _MEMBERS:
            return False
        return self.is_related(member, other)

    def _are_of_objects(self, member: Definition, other: Definition) -> bool:
        """Whether one is a member of an object of JavaScript, so that the other may be that of another object."""
        if member.language not in ECMA:
            return False
        # ``a.run = function () {}``, ``b.run = function () {}``
        own = Use(member.path, member.symbols, member.key[1]).receiver
        if Use(other.path, other.symbols, other.key[1]).receiver != own:
            return True
        owner_of = self._navigator.names.owner_of
        for definition in (member, other):
            if definition.kind == "method" and owner_of(definition) is None:
                return True
        return False


def _are_both_types(member: Definition, other: Definition) -> bool:
    """Whether both are types, or neither is."""
    is_type = member.kind in TYPE_KINDS
    is_other_type = other.kind in TYPE_KINDS
    return is_type == is_other_type


def _family_of(language: str) -> str:
    return FAMILIES.get(language, language)


def _is_constructor(definition: Definition, type_: Definition) -> bool:
    """Whether one is a constructor of the other, named like it."""
    if definition.kind != "constructor" or type_.kind not in TYPE_KINDS:
        return False
    if definition.path != type_.path:
        return False
    above = definition.symbols.parent(definition.index)
    return above == type_.index


def _is_one_scope(member: Definition, other: Definition) -> bool:
    """Whether both are directly in the same scope of a file, or in Go of a package."""
    if member.path == other.path:
        if member.language == "go" and member.owner:
            return True
        own = member.symbols.parent(member.index)
        return own == other.symbols.parent(other.index)
    if member.language == "go":
        folder, _, _ = member.path.rpartition(b"/")
        other_folder, _, _ = other.path.rpartition(b"/")
        return folder == other_folder
    if member.language == "python":  # a stub beside its module
        stem, _, _ = member.path.rpartition(b".")
        other_stem, _, _ = other.path.rpartition(b".")
        return stem == other_stem and member.owner == other.owner
    return False


def _is_linked(member: Definition, other: Definition) -> bool:
    """Whether two functions or variables of C are one for the linker."""
    if "macro" in {member.kind, other.kind}:
        return False
    if not _are_both_types(member, other):
        return False
    if member.path == other.path:
        return True
    # Types are not linked: two files may each have a type of the name. A forward
    # declaration is of the one definition.
    if not {member.kind, other.kind} <= {"function", "variable", "constant"}:
        return "declaration" in {_role_of(member), _role_of(other)}
    return not is_static(member) and not is_static(other)


def _role_of(definition: Definition) -> str:
    return definition.symbols.defined_role(definition.index)
