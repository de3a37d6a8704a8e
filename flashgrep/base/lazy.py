"""An attribute that is computed at its first use."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

ValueT = TypeVar("ValueT")


class LazyAttribute(Generic[ValueT]):
    """Like functools.cached_property, without its lock.

    Before Python 3.12 all instances of a class share that lock, and it is held while the value is computed: one lookup
    with a large pattern blocked all others. Without it two threads may both compute the value; the last one is kept.
    """

    def __init__(self, compute: Callable[[Any], ValueT]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "LazyAttribute[ValueT]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> ValueT: ...

    def __get__(
        self, instance: object | None, owner: type
    ) -> "LazyAttribute[ValueT] | ValueT":
        if instance is None:
            return self
        # This descriptor has no __set__, so from now on the instance's own attribute is
        # found first.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
