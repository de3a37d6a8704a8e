"""The indexer's worker processes: work spread over them in order, with memory bounded, and done here when one dies."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")


class Workers:
    """A pool of processes that is started when there is much to do, and stopped when a stage has no use for it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    @property
    def running(self) -> bool:
        """Whether processes are there: then little work is worth handing over too."""
        return self._pool is not None

    def stop(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def each(
        self, work: Callable[..., ResultT], calls: Iterable[tuple[Any, ...]], *, spread: bool
    ) -> Iterator[ResultT]:
        """Yield what each call gives, in order; at most one call waits beyond those being worked on.

        ``spread``: by the processes; else here, which spares starting them (0.3 s).
        """
        begun = ((call, self._submit(work, call) if spread else None) for call in calls)
        for call, future in held_back(begun, self._count):
            yield self._result(work, call, future)

    def _submit(self, work: Callable[..., ResultT], call: tuple[Any, ...]) -> Future[ResultT] | None:
        if self._pool is None:
            spawn = get_context("spawn")
            self._pool = ProcessPoolExecutor(self._count, mp_context=spawn, initializer=_end_with_parent)
        try:
            return self._pool.submit(work, *call)
        except BrokenProcessPool:
            return None

    def _result(self, work: Callable[..., ResultT], call: tuple[Any, ...], future: Future[ResultT] | None) -> ResultT:
        """Return what a call gives; one whose worker died (of memory, most likely) is done here."""
        if future is not None:
            try:
                return future.result()
            except BrokenProcessPool:
                self.stop()
        return work(*call)


def held_back(items: Iterable[ItemT], count: int) -> Iterator[ItemT]:
    """Yield items in order, each once ``count`` more have been taken or there are no more."""
    held: deque[ItemT] = deque()
    for item in items:
        held.append(item)
        if len(held) > count:
            yield held.popleft()
    while held:
        yield held.popleft()


def _end_with_parent() -> None:
    """Have this worker end when the indexer is killed: it would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=[parent.sentinel], daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
