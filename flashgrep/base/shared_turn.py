"""Lookups of one query over several projects share a turn, so that threads are switched once, not once per project.

A lookup in a small project takes 0.1 ms, switching to a thread and back several times that.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup

from flashgrep.base.checkpoint import Abandoned

SHARED_SECONDS = 0.05
"""Processor time of a shared turn, and the longest time that one lookup may delay the others. Lookups that have not
started by then get turns of their own, in the daemon or in a worker."""

Look: TypeAlias = Callable[[], Any]
Begin: TypeAlias = Callable[[], Look]
"""Called on the event loop when the turn has come; returns the function to run in a thread."""
Ended: TypeAlias = "asyncio.Future[tuple[Any] | None]"
"""The result of a lookup; None: it needs its own turn."""


class SharedTurn:
    """Collects the lookups that the tasks of one query request at the same time; for one event loop."""

    def __init__(self, tasks: TaskGroup) -> None:
        """``tasks``: of the query."""
        self._tasks = tasks
        self._requested: list[tuple[Begin, Ended]] = []

    async def run(
        self, begin: Begin, run_turn: Callable[[Begin], Awaitable[object]]
    ) -> tuple[Any] | None:
        """Run a lookup in a turn with others and return its result; None if it needs a turn of its own.

        ``run_turn`` runs a function in a turn.
        """
        loop = asyncio.get_running_loop()
        future: Ended = loop.create_future()
        self._requested.append((begin, future))
        if (
            len(self._requested) == 1
        ):  # tasks started together request their lookups within one step of the loop
            loop.call_soon(self._tasks.start_soon, self._run_turn, run_turn)
        return await future

    async def _run_turn(self, run_turn: Callable[[Begin], Awaitable[object]]) -> None:
        # Later requests form the next batch.
        batch = _Batch(self._requested)
        self._requested = []
        try:
            with batch.scope:
                await run_turn(batch.begin)
        finally:
            batch.release()


class _Batch:
    """The lookups of one turn."""

    def __init__(self, requested: list[tuple[Begin, Ended]]) -> None:
        self.scope = anyio.CancelScope()
        """Cancelled once no result is awaited any more."""
        self._requested = requested
        self._left: deque[tuple[Look, Ended]] = deque()
        self._outcomes: deque[_Outcome] = deque()
        self._timer: asyncio.TimerHandle | None = None
        for _, ending in requested:
            ending.add_done_callback(self._note_end)

    def begin(self) -> Look:
        """Begin all lookups; return the function that runs them in the turn's thread."""
        for begin, ending in self._requested:
            with _Outcome(ending) as outcome:
                self._left.append((begin(), ending))
                continue
            self._outcomes.append(
                outcome
            )  # a lookup that cannot begin fails on its own
        self._watch(-1)
        return self._look

    def _watch(self, ended: int) -> None:
        """Stop waiting for a lookup that delays the others; ``ended``: how many had ended at the last check."""
        if len(self._outcomes) == ended:
            self.release()
        else:
            self._timer = asyncio.get_running_loop().call_later(
                SHARED_SECONDS, self._watch, len(self._outcomes)
            )

    def release(self) -> None:
        """Deliver the results of lookups that have ended; those that have not started get turns of their own."""
        if self._timer is not None:
            self._timer.cancel()
        while self._outcomes:
            self._outcomes.popleft().settle()
        with suppress(IndexError):  # the thread takes lookups concurrently
            while True:
                _, ending = self._left.popleft()
                if not ending.done():
                    ending.set_result(None)

    def _look(self) -> None:
        # Processor time, since the time spent waiting for the interpreter's lock says
        # nothing about the lookups.
        until = time.thread_time() + SHARED_SECONDS
        while time.thread_time() < until:
            try:
                look, ending = self._left.popleft()
            except IndexError:  # all have started, or were just released
                return
            if not ending.done():  # otherwise it was cancelled
                with _Outcome(ending) as outcome:
                    outcome.result = look()
                self._outcomes.append(outcome)

    def _note_end(self, _: Ended) -> None:
        if all(ending.done() for _, ending in self._requested):
            self.scope.cancel()


class _Outcome:
    """The outcome of a lookup; an error is kept until it is raised where the lookup is awaited."""

    def __init__(self, ended: Ended) -> None:
        self.result: Any = None
        self._ended = ended
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self._error = error
        return not isinstance(error, Abandoned)  # which concerns the whole turn

    def settle(self) -> None:
        """Deliver the outcome; on the event loop."""
        if self._ended.done():  # cancelled
            return
        if self._error is None:
            self._ended.set_result((self.result,))
        elif isinstance(self._error, StopIteration):  # which a future does not accept
            self._ended.set_exception(RuntimeError("a lookup raised StopIteration"))
        else:
            self._ended.set_exception(self._error)


SHARED_TURN: ContextVar[SharedTurn | None] = ContextVar("SHARED_TURN", default=None)
"""The shared turn of the query that a task belongs to."""
