"""The indexer's worker processes: they carry out calls, whose results come in order and with bounded memory.

The indexer itself does the work of a process that dies (most likely out of memory). Calls and results are pickles on a
pipe, which is the worker's stdin. Nothing that the processes share has a name: the standard library's pools have
semaphores in /dev/shm, which stay there if all processes that know them are killed.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, TypeVar

from flashgrep.base.errors import FlashgrepError

PROGRAM = """\
import gc
gc.disable()
from flashgrep.indexer.worker_pool import serve
serve()
"""
"""A worker's start is imports, and there is no garbage in them."""

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")


class WorkerPool:
    """Processes started when there is much to do, and stopped when a stage does not need them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads: ThreadPoolExecutor | None = None
        """As many as processes; each waits for the result of one."""
        self._idle: list[_Worker] = []

    @property
    def is_running(self) -> bool:
        """Whether processes are running: then even little work is worth handing over."""
        return self._threads is not None

    def stop(self) -> None:
        """End the processes, after the calls that they are carrying out."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        while self._idle:
            self._idle.pop().end()

    def map(
        self,
        work: Callable[..., ResultT],
        calls: Iterable[tuple[Any, ...]],
        *,
        spread: bool,
    ) -> Iterator[ResultT]:
        """Yield what each call gives, in order; at most one call waits beyond those being worked on.

        ``spread``: in the processes; else here, which saves starting them (0.3 s).
        """
        calls_begun = (
            (call, self._submit(work, call) if spread else None) for call in calls
        )
        for call, future in hold_back(calls_begun, self._count):
            if future is None:
                yield work(*call)
                continue
            try:
                result = future.result()
            except (EOFError, OSError):
                # The process died, or cannot be started. The next call gets a new one.
                result = work(*call)
            # As the work would have raised it here, so that whoever asked need not know.
            if isinstance(result, FlashgrepError):
                raise result
            yield result

    def _submit(
        self, work: Callable[..., ResultT], call: tuple[Any, ...]
    ) -> Future[ResultT | FlashgrepError]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._count)
        return self._threads.submit(self._run, work, call)

    def _run(
        self, work: Callable[..., ResultT], call: tuple[Any, ...]
    ) -> ResultT | FlashgrepError:
        """Return the result of a call, in a thread, when a process has carried it out."""
        try:
            # Asked for in one step: between a look and a pop another thread may take it.
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        result: ResultT | FlashgrepError = worker.run(work, call)
        self._idle.append(worker)
        return result


class _Worker:
    """One process; for one thread at a time."""

    def __init__(self) -> None:
        self._pipe, end = Pipe()
        with end:
            # Not forked: this process has threads, and a child could inherit a lock that
            # one of them holds.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM], stdin=end.fileno()
            )

    def run(self, work: Callable[..., Any], call: tuple[Any, ...]) -> Any:
        """Return the result of a call, or its error of ours; raises EOFError or OSError, and ends, if there is none."""
        try:
            self._pipe.send((work, call))
            return self._pipe.recv()
        except (EOFError, OSError):
            self.end()
            raise

    def end(self) -> None:
        """Kill the process, which keeps nothing between calls."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()


def hold_back(items: Iterable[ItemT], count: int) -> Iterator[ItemT]:
    """Yield items in order, each once ``count`` more have been taken or there are no more."""
    waiting: deque[ItemT] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) > count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


# In a worker


def serve() -> None:
    """Carry out calls until the indexer ends. An error that is none of ours ends the worker, and meets the indexer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the indexer
    # A batch makes many objects but no cycles: garbage collection took a twelfth of the
    # time.
    gc.freeze()
    gc.enable()
    gc.set_threshold(1_000_000)
    pipe = Connection(0)
    calls = SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]]()
    threading.Thread(target=_receive_calls, args=(pipe, calls), daemon=True).start()
    while True:
        work, call = calls.get()
        try:
            result = work(*call)
        except FlashgrepError as error:
            result = error
        with suppress(OSError):  # the indexer has been killed
            pipe.send(result)
        # Let go of before the next: a batch takes four times its texts.
        del work, call, result


def _receive_calls(
    pipe: "Connection[Any, Any]", calls: "SimpleQueue[tuple[Any, ...]]"
) -> None:
    """Take calls; at the end of the pipe, end this process."""
    try:
        while True:
            calls.put(pipe.recv())
    finally:
        # At once: a normal exit would wait for the work, whose result has no receiver any
        # more.
        os._exit(1)
