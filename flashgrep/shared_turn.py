"""Lookups of one question about several projects share a turn: threads are switched once, not once per project.

A lookup in a small project takes 0.1 ms, its way to a thread and back several times that.
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

from flashgrep.checkpoint import Abandoned

SHARED_SECONDS = 0.05
"""Processor time of a shared turn, and the time that one lookup may hold up the others. What it has not come to then
has turns of its own: in the daemon, or in a worker."""

Look: TypeAlias = Callable[[], Any]
Begin: TypeAlias = Callable[[], Look]
"""Called on the event loop when the turn has come; what it returns runs in a thread."""
Ended: TypeAlias = "asyncio.Future[tuple[Any] | None]"
"""Its result; None: it needs its own turn."""


class SharedTurn:
    """Collects the lookups that the tasks of one question ask for at the same time; for one event loop."""

    def __init__(self, tasks: TaskGroup) -> None:
        """``tasks``: the question's."""
        self._tasks = tasks
        self._asked: list[tuple[Begin, Ended]] = []

    async def run(self, begin: Begin, run_turn: Callable[[Begin], Awaitable[object]]) -> tuple[Any] | None:
        """Run a lookup alongside others; return its result. None: it has to have a turn of its own.

        ``run_turn`` runs any lookup in a turn.
        """
        loop = asyncio.get_running_loop()
        ended: Ended = loop.create_future()
        self._asked.append((begin, ended))
        if len(self._asked) == 1:  # tasks that were started together ask within one step of the loop
            loop.call_soon(self._tasks.start_soon, self._run_turn, run_turn)
        return await ended

    async def _run_turn(self, run_turn: Callable[[Begin], Awaitable[object]]) -> None:
        # Later requests begin the next batch.
        batch = _Batch(self._asked)
        self._asked = []
        try:
            with batch.scope:
                await run_turn(batch.begin)
        finally:
            batch.release()


class _Batch:
    """The lookups of one turn."""

    def __init__(self, asked: list[tuple[Begin, Ended]]) -> None:
        self.scope = anyio.CancelScope()
        """Cancelled once nobody waits for any of them."""
        self._asked = asked
        self._left: deque[tuple[Look, Ended]] = deque()
        self._outcomes: deque[_Outcome] = deque()
        self._timer: asyncio.TimerHandle | None = None
        for _, ended in asked:
            ended.add_done_callback(self._note_end)

    def begin(self) -> Look:
        """Begin all of them."""
        for begin, ended in self._asked:
            with _Outcome(ended) as outcome:
                self._left.append((begin(), ended))
                continue
            self._outcomes.append(outcome)  # what cannot start fails by itself
        self._watch(-1)
        return self._look

    def _watch(self, ended: int) -> None:
        """Wait no longer for a lookup that holds up the others; ``ended``: how many had ended at the last look."""
        if len(self._outcomes) == ended:
            self.release()
        else:
            self._timer = asyncio.get_running_loop().call_later(SHARED_SECONDS, self._watch, len(self._outcomes))

    def release(self) -> None:
        """Hand out what has ended; have those that have not begun get turns of their own."""
        if self._timer is not None:
            self._timer.cancel()
        while self._outcomes:
            self._outcomes.popleft().settle()
        with suppress(IndexError):  # the thread takes them, too
            while True:
                _, ended = self._left.popleft()
                if not ended.done():
                    ended.set_result(None)

    def _look(self) -> None:
        # Processor time: how long the thread waits for the interpreter's lock says nothing of the lookups.
        until = time.thread_time() + SHARED_SECONDS
        while time.thread_time() < until:
            try:
                look, ended = self._left.popleft()
            except IndexError:  # all have begun, or were released just now
                return
            if not ended.done():  # else it was cancelled
                with _Outcome(ended) as outcome:
                    outcome.result = look()
                self._outcomes.append(outcome)

    def _note_end(self, _: Ended) -> None:
        if all(ended.done() for _, ended in self._asked):
            self.scope.cancel()


class _Outcome:
    """What a lookup has come to; its errors stay here, until they are raised where it is awaited."""

    def __init__(self, ended: Ended) -> None:
        self.result: Any = None
        self._ended = ended
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self._error = error
        return not isinstance(error, Abandoned)  # that is about the turn

    def settle(self) -> None:
        """Tell who waits for it; on the event loop."""
        if self._ended.done():  # cancelled
            return
        if self._error is None:
            self._ended.set_result((self.result,))
        elif isinstance(self._error, StopIteration):  # which no future takes
            self._ended.set_exception(RuntimeError("a look-up raised StopIteration"))
        else:
            self._ended.set_exception(self._error)


SHARED_TURN: ContextVar[SharedTurn | None] = ContextVar("SHARED_TURN", default=None)
"""That of the question which a task is a part of."""
