"""Matching by syntax in processes of their own, a few to a question: ast-grep may crash, hang or grow on any text.

A process that ends takes the text with it that it was at; the rest goes to another one. Nothing waits longer than the
lookup it works for.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from flashgrep.checkpoint import blocking, checkpoint, stop_if_over
from flashgrep.child_process import LOOK_SECONDS, ChildEnded, ChildPipes, end_child, make_frame
from flashgrep.errors import BadPattern, Busy, Unavailable
from flashgrep.machine import count_cores
from flashgrep.model import Skipped

COMMAND: Final = (sys.executable, "-m", "flashgrep.search.structural.structural_worker")
INSTALL: Final = "pip install 'flashgrep[structural]'"
STOPPED_SECONDS: Final = 60.0
"""A process ends itself after some seconds of processor time for one text; this is for one that gets none."""
FEW_TEXTS: Final = 200
"""With more texts than these a question takes a second process: starting one costs as much as matching 40 texts."""
_ROOM: Final = threading.BoundedSemaphore(max(2, count_cores()))
"""Processes at once for all questions: each takes a core, and 50 MB or more."""

KeyT = TypeVar("KeyT")


def is_installed() -> bool:
    """Return whether ast-grep can be imported."""
    return find_spec("ast_grep_py") is not None


class Understood(NamedTuple):
    """A pattern in one language."""

    problem: str = ""
    """Why it is not a pattern there."""
    is_broken: bool = False
    """Whether the grammar takes it for an error: what ast-grep finds then is a guess."""
    literals: tuple[str, ...] = ()
    """Texts that are in every file with a match."""


@dataclass(frozen=True, slots=True)
class Text(Generic[KeyT]):
    """A text to be matched; ``key``: the caller's own name for it."""

    key: KeyT
    language: str
    """ast-grep's name of it."""
    data: bytes
    """UTF-8."""
    after: int
    """Matches to be left out."""
    most: int
    """Matches to be described."""


class StructuralMatcher(Generic[KeyT]):
    """A pattern, matched by processes that end with the block; for one thread.

    Raises:
        Unavailable: from the constructor, if ast-grep is not installed.
        BadPattern: from the constructor, if the pattern ends the process that reads it.

    """

    def __init__(self, pattern: str, rewrite: str | None, languages: Iterable[str]) -> None:
        if not is_installed():
            raise Unavailable(
                f"search by syntax needs ast-grep, which is not installed: {INSTALL}, then fgrep daemon restart",
                reason="structural_not_installed",
                suggestion=INSTALL,
            )
        self._question = make_frame({"pattern": pattern, "rewrite": rewrite, "languages": list(languages)})
        self._processes: list[_Process[KeyT]] = []
        has_room = False
        try:
            # Waiting for room must not hold the scheduler's turn.
            with blocking():
                while not has_room:
                    stop_if_over()
                    has_room = _ROOM.acquire(timeout=LOOK_SECONDS)
        except BaseException:  # nobody waits any more, which the end of the wait tells, too
            if has_room:
                _ROOM.release()
            raise
        try:
            found = self._start().understood
        except ChildEnded:
            raise BadPattern("pattern: ast-grep cannot read it", at=0, construct="") from None
        self.understood = {language: Understood(*told) for language, told in found.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start(self) -> "_Process[KeyT]":
        """Start another process, for which there is room."""
        try:
            process = _Process[KeyT](self._question)
        except BaseException:
            # The process did not start, so its room is free again.
            _ROOM.release()
            raise
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Kill the processes."""
        for process in self._processes:
            process.close()
            _ROOM.release()
        self._processes.clear()

    def match(self, batches: Iterable[Sequence[Text[KeyT]]]) -> Iterator[tuple[Text[KeyT], dict[str, Any] | Skipped]]:
        """Yield each text with what was found in it, or why nothing is known, in order.

        Batches are taken from the caller while the processes work.
        """
        idle, busy, sent = list(self._processes), deque[_Process[KeyT]](), 0
        for batch in batches:
            sent += len(batch)
            # A further process only if there is room just now: waiting for it would be slower than continuing with what
            # is there.
            if not idle and sent > FEW_TEXTS * len(self._processes) and _ROOM.acquire(blocking=False):
                idle.append(self._start())
            elif not idle:
                process = busy.popleft()
                yield from process.collect()
                idle.append(process)
            process = idle.pop()
            process.send(batch)
            busy.append(process)
        for process in busy:
            yield from process.collect()


class _Process(Generic[KeyT]):
    """A process that matches, and the batch it works on; started again where a text has ended it."""

    def __init__(self, question: bytes) -> None:
        self._question = question
        self._batch = deque[Text[KeyT]]()
        self._popen: subprocess.Popen[bytes]
        self._pipes: ChildPipes
        self.understood = self._start()

    def _start(self) -> dict[str, Any]:
        self._popen = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A session of its own: Ctrl-C in the daemon's terminal is not for it.
            stderr=subprocess.DEVNULL,  # a panic writes there
            start_new_session=True,
        )
        self._pipes = ChildPipes(self._popen)
        try:
            self._write(self._question)
            understood: dict[str, Any] = self._read()
        except BaseException:
            self.close()
            raise
        return understood

    def close(self) -> None:
        """Kill it."""
        end_child(self._popen)

    def send(self, batch: Sequence[Text[KeyT]]) -> None:
        """Have it work on a batch."""
        self._batch = deque(batch)
        head = make_frame([(text.language, len(text.data), text.after, text.most) for text in batch])
        with contextlib.suppress(ChildEnded):  # found out again when its answer is read
            self._write(b"".join([head, *(text.data for text in batch)]))

    def collect(self) -> Iterator[tuple[Text[KeyT], dict[str, Any] | Skipped]]:
        """Yield what it finds in each text of the batch."""
        while self._batch:
            checkpoint()
            text, found = self._batch[0], None
            try:
                found = self._read()
            except ChildEnded:
                self.close()
                try:
                    self._start()
                except ChildEnded:
                    raise Busy("out of resources: ast-grep does not start again") from None
            self._batch.popleft()
            # The text that ended the process is passed over, and the rest of the batch sent again.
            if found is None:
                self.send(self._batch)
            yield text, Skipped("unparsed", "ast-grep crashed, or took too long") if found is None else found

    def _write(self, message: bytes) -> None:
        self._pipes.write(message, time.monotonic() + STOPPED_SECONDS)

    def _read(self) -> Any:
        return self._pipes.read_frame(time.monotonic() + STOPPED_SECONDS)
