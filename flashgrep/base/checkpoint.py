"""Cooperative scheduling of lookups: every loop that can take long calls ``checkpoint``.

What a checkpoint does depends on where the lookup runs. In the daemon it waits for the scheduler's next turn. In a
worker process, which runs one lookup at a time, it checks whether the lookup was cancelled. Elsewhere, as in the
indexer and in tests, it does nothing.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

RELEASED = 100
"""Items freed between two checkpoints: in less than a millisecond, if each is a file with its definitions."""
LOOK_SECONDS = 0.01
"""Seconds between a worker process's checks whether its answer is still wanted."""


class Abandoned(Exception):
    """The answer is no longer wanted; raised in the lookup's thread."""


class Expired(Exception):
    """The deadline has passed: return what was found so far."""


class Turn(Protocol):
    """A lookup's right to run, as its checkpoints see it."""

    @property
    def stopped(self) -> bool:
        """Whether the answer is no longer wanted."""

    def give_way(self) -> None:
        """Yield to other lookups if it is their turn."""

    def pause(self) -> None:
        """Let others run until ``resume``."""

    def resume(self) -> None:
        """Wait for the next turn."""


@dataclass(slots=True)
class _OnlyTurn:
    """The only lookup of a process; ``is_over`` says whether its answer is no longer wanted."""

    is_over: Callable[[], bool]
    _look_at: float = 0.0
    """On the clock of time.monotonic(). Checkpoints come every few microseconds, and ``is_over`` is a system call."""

    @property
    def stopped(self) -> bool:
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        return self.is_over()

    def give_way(self) -> None:
        """Continue: there are no other lookups."""

    pause = resume = give_way


CURRENT_TURN: ContextVar[Turn | None] = ContextVar("CURRENT_TURN", default=None)
_DEADLINE: ContextVar[float | None] = ContextVar("_DEADLINE", default=None)


def checkpoint() -> None:
    """Yield to others if they wait and this lookup has used its quantum; costs 0.2 µs otherwise.

    Everything that can take longer than a few milliseconds calls it that often.

    Raises:
        Abandoned: the answer is no longer wanted.
        Expired: the deadline set by ``expiring`` has passed.

    """
    stop_if_over()
    turn = CURRENT_TURN.get()
    if turn is not None:
        turn.give_way()


def release(items: list[Any] | dict[Any, Any]) -> None:
    """Empty a large collection in steps: freeing 90,000 definitions at once holds the interpreter's lock for 20 ms.

    Raises:
        Abandoned, Expired: as ``checkpoint``; what is left is freed at once.

    """
    take = items.popitem if isinstance(items, dict) else items.pop
    while items:
        checkpoint()
        for _ in range(min(RELEASED, len(items))):
            take()


def stop_if_over() -> None:
    """End the lookup if its answer is no longer wanted, without yielding: for waits within ``blocking``.

    Raises:
        Abandoned: the answer is no longer wanted.
        Expired: the deadline set by ``expiring`` has passed.

    """
    turn = CURRENT_TURN.get()
    if turn is not None and turn.stopped:
        raise Abandoned
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() > deadline:
        raise Expired


@contextlib.contextmanager
def ending(is_over: Callable[[], bool]) -> Iterator[None]:
    """Make checkpoints within the block end it once ``is_over`` says so; for a process that runs one lookup."""
    token = CURRENT_TURN.set(_OnlyTurn(is_over))
    try:
        yield
    finally:
        CURRENT_TURN.reset(token)


@contextlib.contextmanager
def expiring(deadline: float | None) -> Iterator[None]:
    """Make checkpoints within the block end it at ``deadline``, on the clock of time.monotonic(); None: never."""
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextlib.contextmanager
def blocking() -> Iterator[None]:
    """Let others run while this lookup waits for another process, a disk or a network.

    Raises:
        Abandoned: the answer is no longer wanted.

    """
    turn = CURRENT_TURN.get()
    if turn is not None:
        turn.pause()
    # No finally: an error usually ends the lookup, which then needs no turn. If it is
    # handled, the next checkpoint waits for one.
    yield
    if turn is not None:
        turn.resume()
