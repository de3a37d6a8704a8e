"""What a call may mean by the type of its receiver, and how the types of a project are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.receiver_text import Step
from flashgrep.parts.navigation.resolution.sites import (
    Container,
    LibraryType,
    Site,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition


class Fit(Enum):
    """Whether a function extends a type."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a call may run, and the type of what it is called on; ``is_sure``: it runs one of these.

    If it surely runs no member and no extension, it has no definitions.
    """

    definitions: tuple[Definition, ...]
    receiver: Type
    is_sure: bool
    is_hidden: bool = False
    """Whether a property of the receiver has the name, whose value may be what is called."""


class Types(Protocol):
    """Finds types by what declarations write."""

    names: Names

    def find_written(self, site: Site, written: str, count: int = 0) -> Type:
        """Return the type that a written name means at a place; ``count``: of its arguments."""
        ...

    def find_generic(
        self,
        site: Site,
        written: str,
        parts: Sequence[bytes],
        member: Definition | None,
        owner: Type,
    ) -> Type:
        """Return the type that a written name means with its arguments; ``member``: whose type parameters it may name."""
        ...

    def find_arguments(
        self,
        site: Site,
        parts: Sequence[bytes],
        member: Definition | None,
        owner: Type,
    ) -> tuple[Type, ...]:
        """Return the types that the arguments of a generic type write."""
        ...

    def find_member(self, site: Site, step: Step, owner: Definition) -> Type:
        """Return the type of a member of a type."""
        ...

    def find_functions(
        self,
        site: Site,
        step: Step,
        owner: Type,
        depth: int,
    ) -> tuple[list[Definition], Type]:
        """Return the functions that a call may run, and the type of what they are called on."""
        ...

    def has_type(self, name: str) -> bool:
        """Whether the project has a type of a name."""
        ...

    def evaluate(self, site: Site, step: Step, depth: int) -> Type:
        """Return the type of an expression."""
        ...

    def members(
        self,
        owner: Definition,
        name: str,
    ) -> tuple[list[Definition], bool]:
        """Return a type's members of a name, and whether all bases are known."""
        ...

    def derives(self, type_: Definition, base: Definition) -> bool:
        """Whether a type is or derives from another."""
        ...

    def is_whole(self, type_: Definition) -> bool:
        """Whether all types above a type are of the project."""
        ...

    def is_settled(self, type_: Definition) -> bool:
        """Whether all types above a type that may be of the project are known."""
        ...


def judge_fit(
    types: Types,
    extended: Type,
    receiver: Type,
) -> Fit:
    """Return whether what extends one type extends a receiver, whose type is known."""
    # Of a library's types only the names are known: equal ones are one type, and of two
    # others either may derive from the other.
    if isinstance(extended, LibraryType | Container) and isinstance(
        receiver, LibraryType | Container
    ):
        return Fit.YES if extended.name == receiver.name else Fit.UNKNOWN
    is_ours = isinstance(extended, Definition)
    if not isinstance(receiver, Definition):
        # A library's type derives from none of the project.
        return Fit.NO if is_ours else Fit.UNKNOWN
    if isinstance(extended, Definition) and types.derives(receiver, extended):
        return Fit.YES
    # What is not known above a type of the project may be what is extended.
    return Fit.NO if types.is_whole(receiver) else Fit.UNKNOWN
