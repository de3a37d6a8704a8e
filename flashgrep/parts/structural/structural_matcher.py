"""Matching by syntax in separate processes, a few per question: ast-grep may crash, hang or grow on any text.

If a process ends, the text it was working on is skipped and another process continues with the rest. No wait outlasts
the lookup it serves.
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

import orjson

from flashgrep.base.checkpoint import blocking, checkpoint, stop_if_over
from flashgrep.base.child_process import (
    LOOK_SECONDS,
    ChildEnded,
    ChildPipes,
    end_child,
    make_frame,
)
from flashgrep.base.cores import count_cores
from flashgrep.base.errors import BadPattern, Busy, Unavailable
from flashgrep.base.installation import advise_install
from flashgrep.base.model import Skipped

COMMAND: Final = (
    sys.executable,
    "-P",
    "-m",
    "flashgrep.parts.structural.structural_worker",
)
INSTALL: Final = advise_install("flashgrep[structural]")
STOPPED_SECONDS: Final = 60.0
"""Most seconds without a reply. A process ends itself after some processor time; this covers one that gets none."""
FEW_TEXTS: Final = 200
"""With more texts than this a question starts a second process; starting one costs as much as matching 40 texts."""
_SLOTS: Final = threading.BoundedSemaphore(max(2, count_cores()))
"""Limits processes across all questions: each takes a core, and 50 MB or more."""

KeyT = TypeVar("KeyT")


def is_installed() -> bool:
    """Return whether ast-grep can be imported."""
    return find_spec("ast_grep_py") is not None


class ParsedPattern(NamedTuple):
    """A pattern in one language."""

    problem: str = ""
    """Why it is not a valid pattern."""
    is_broken: bool = False
    """Whether the grammar parses it as an error, so that ast-grep's matches are guesses."""
    literals: tuple[str, ...] = ()
    """Texts that every file with a match contains."""


@dataclass(frozen=True, slots=True)
class Text(Generic[KeyT]):
    """A text to match; ``key`` identifies it to the caller."""

    key: KeyT
    language: str
    """ast-grep's name of the language."""
    data: bytes
    """UTF-8."""
    after: int
    """How many matches to skip."""
    most: int
    """Most matches to describe."""


class StructuralMatcher(Generic[KeyT]):
    """Matches a pattern in processes that end with the ``with`` block; for use by one thread.

    Raises:
        Unavailable: from the constructor, if ast-grep is not installed.
        BadPattern: from the constructor, if the pattern makes ast-grep crash.

    """

    def __init__(
        self, pattern: str, rewrite: str | None, languages: Iterable[str]
    ) -> None:
        if not is_installed():
            raise Unavailable(
                f"search by syntax needs ast-grep, which is not installed in {sys.prefix}, where the daemon is from",
                reason="structural_not_installed",
                suggestion=f"{INSTALL} there, then fgrep daemon restart",
            )
        self._question = make_frame(
            {"pattern": pattern, "rewrite": rewrite, "languages": list(languages)}
        )
        self._processes: list[_Process[KeyT]] = []
        has_slot = False
        try:
            # Waiting for a process slot must not hold the scheduler's turn.
            with blocking():
                while not has_slot:
                    stop_if_over()
                    has_slot = _SLOTS.acquire(timeout=LOOK_SECONDS)
        except (
            BaseException
        ):  # the lookup ended; the slot may have been acquired at that moment
            if has_slot:
                _SLOTS.release()
            raise
        try:
            parsed = self._start().parsed
        except ChildEnded:
            raise BadPattern(
                "pattern: ast-grep cannot read it", at=0, construct=""
            ) from None
        self.parsed = {
            language: ParsedPattern(*fields) for language, fields in parsed.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start(self) -> "_Process[KeyT]":
        """Start another process; the caller has acquired a slot for it."""
        try:
            process = _Process[KeyT](self._question)
        except BaseException:
            # The process did not start, so its slot is free again.
            _SLOTS.release()
            raise
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Kill the processes."""
        for process in self._processes:
            process.close()
            _SLOTS.release()
        self._processes.clear()

    def match(
        self, batches: Iterable[Sequence[Text[KeyT]]]
    ) -> Iterator[tuple[Text[KeyT], dict[str, Any] | Skipped]]:
        """Yield each text with its matches, or the reason why it was skipped, in order.

        Batches are taken from the caller while the processes work.
        """
        idle = list(self._processes)
        busy = deque[_Process[KeyT]]()
        sent = 0
        for batch in batches:
            sent += len(batch)
            # A further process is started only if a slot is free: waiting for one would
            # be slower than continuing with the existing ones.
            if (
                not idle
                and sent > FEW_TEXTS * len(self._processes)
                and _SLOTS.acquire(blocking=False)
            ):
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
    """A process that matches, and its current batch; restarted if a text ends it."""

    def __init__(self, question: bytes) -> None:
        self._question = question
        self._batch = deque[Text[KeyT]]()
        self._popen: subprocess.Popen[bytes]
        self._pipes: ChildPipes
        self.parsed = self._start()

    def _start(self) -> dict[str, Any]:
        self._popen = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Its own session, so that Ctrl-C in the daemon's terminal does not reach
            # it.
            stderr=subprocess.DEVNULL,  # panics are written there
            start_new_session=True,
        )
        self._pipes = ChildPipes(self._popen)
        try:
            self._write(self._question)
            parsed: dict[str, Any] = self._read()
        except BaseException:
            self.close()
            raise
        return parsed

    def close(self) -> None:
        """Kill the process."""
        end_child(self._popen)

    def send(self, batch: Sequence[Text[KeyT]]) -> None:
        """Send a batch to the process."""
        self._batch = deque(batch)
        head = make_frame(
            [(text.language, len(text.data), text.after, text.most) for text in batch]
        )
        with contextlib.suppress(ChildEnded):  # noticed again when the reply is read
            self._write(b"".join([head, *(text.data for text in batch)]))

    def collect(self) -> Iterator[tuple[Text[KeyT], dict[str, Any] | Skipped]]:
        """Yield the matches in each text of the batch."""
        while self._batch:
            checkpoint()
            text = self._batch[0]
            reply = None
            try:
                reply = self._read()
            except ChildEnded:
                self.close()
                try:
                    self._start()
                except ChildEnded:
                    raise Busy("out of resources: ast-grep did not restart") from None
            self._batch.popleft()
            # The text that ended the process is skipped; the rest of the batch is sent
            # again.
            if reply is None:
                self.send(self._batch)
            yield (
                text,
                Skipped("unparsed", "ast-grep crashed or took too long")
                if reply is None
                else reply,
            )

    def _write(self, message: bytes) -> None:
        self._pipes.write(message, time.monotonic() + STOPPED_SECONDS)

    def _read(self) -> Any:
        ends = time.monotonic() + STOPPED_SECONDS
        return orjson.loads(self._pipes.read_message(ends))
