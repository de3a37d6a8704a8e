"""Generic types of a project with their arguments, as ``Box<Crane>``, and what their type parameters stand for then.

A parameter is known by its place in the list behind the type's name; of Rust's implementations, in the list behind the
name of what they implement for.
"""

from dataclasses import dataclass

from flashgrep.parts.navigation.resolution.sites import (
    UNKNOWN,
    Container,
    Pair,
    Type,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.navigation.resolution.type_text import read_parameters
from flashgrep.parts.symbols.parse.model import TYPE_KINDS


@dataclass(frozen=True, eq=False)
class AppliedType(Definition):
    """A generic type with what its parameters stand for, in order."""

    arguments: tuple[Type, ...] = ()


def apply(
    type_: Definition,
    arguments: tuple[Type, ...],
) -> Definition:
    """Return a type with its arguments, if any of them is known."""
    if all(argument is UNKNOWN for argument in arguments):
        return type_
    return AppliedType(type_.path, type_.symbols, type_.index, arguments)


def identify(type_: Type) -> object:
    """Return what equal types have in common: two objects may stand for one definition."""
    if isinstance(type_, AppliedType):
        arguments = tuple(identify(argument) for argument in type_.arguments)
        return type_.key, arguments
    if isinstance(type_, Definition):
        return type_.key
    if isinstance(type_, Container):
        key = None if type_.key is None else identify(type_.key)
        return identify(type_.held), key
    if isinstance(type_, Pair):
        return identify(type_.first), identify(type_.second)
    return type_


def find_argument(
    member: Definition,
    parameter: str,
    owner: Type,
) -> Type:
    """Return what a type parameter stands for in a member of an applied type; UNKNOWN: it is not the type's."""
    if not isinstance(owner, AppliedType):
        return UNKNOWN
    symbols = member.symbols
    around = symbols.parent(member.index)
    # A member of Rust's is in the implementation, whose own list it names.
    while around >= 0 and symbols.kind(around) not in TYPE_KINDS:
        around = symbols.parent(around)
    if around < 0:
        return UNKNOWN
    parameters = read_parameters(Definition(member.path, symbols, around))
    if parameter not in parameters:
        return UNKNOWN
    place = parameters.index(parameter)
    # A lifetime or a constant is counted in one list and not in the other.
    if place >= len(owner.arguments):
        return UNKNOWN
    return owner.arguments[place]
