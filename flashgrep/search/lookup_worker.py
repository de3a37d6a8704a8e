"""A process that answers lookups for the daemon, which sends it the file table and later changes.

Messages are pickles in frames (``base.frames``) on one socket, which is our stdin; both ends are ours and of the same version.
``LoadProject`` and ``RunLookup`` have one reply each. An empty reply means failure: the daemon then runs the lookup
itself and gets the same error. An empty request cancels the running lookup. The end of the socket ends the lookup and
the process.
"""

import copyreg
import gc
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from flashgrep import __version__
from flashgrep.base.checkpoint import ending
from flashgrep.base.errors import FlashgrepError
from flashgrep.base.failures import FailureLog
from flashgrep.base.frames import frame, receive
from flashgrep.base.machine import release_memory
from flashgrep.files.openat import RootFolder
from flashgrep.index.reader import Identity, Reader
from flashgrep.index.stage import Stage
from flashgrep.index.table import Columns, FileTable, Mark
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question
from flashgrep.search.ripgrep import Ripgrep
from flashgrep.search.snapshot import Snapshot, ask_and_close

log = FailureLog()

MOST_PROJECTS = 4
"""Most loaded projects; the oldest is dropped. A table of 78,000 files takes 13 MB. The daemon counts along."""
EMPTY = frame(b"")
MOST_BYTES = 256 << 20
"""Size limit of messages: an answer with 10,000 hits, or a table of 78,000 files, takes some megabytes."""


class LoadProject(NamedTuple):
    """Load a project, or load it again; the reply is True.

    The table comes from the daemon: reading it from the database and verifying it took longer than starting a process.
    """

    number: int
    """Identifies the project to one daemon."""
    root: RootFolder
    database: str
    identity: Identity
    """Identifies the database that the table comes from."""
    stages: Sequence[Stage]
    """The late stages that parts make."""
    paths: bytes
    """Joined by NUL bytes, which no path contains."""
    columns: Columns
    skipped: Mapping[bytes, str]


class RunLookup(NamedTuple):
    """Run a lookup; the reply is its result.

    ``marks``: paths that were stored after the table was sent, or are pending; they override the loaded table.
    """

    number: int
    look_up: Callable[[Snapshot], Any]
    marks: Mapping[bytes, Mark]
    max_size: int
    ripgrep: Ripgrep | None
    parsed: bool
    parsed_to: int


@dataclass(slots=True)
class _Project:
    root: RootFolder
    reader: Reader
    table: FileTable


class LookupWorker:
    """The loaded projects, and lookups in them."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._projects: dict[int, _Project] = {}
        self._is_over = is_over

    def answer(self, request: LoadProject | RunLookup) -> object:
        """Return the reply."""
        if isinstance(request, LoadProject):
            return self.load(request, make_table(request))
        project = self._projects[request.number]
        snapshot = Snapshot(
            project.root,
            project.table,
            project.reader,
            request.marks,
            request.max_size,
            ripgrep=request.ripgrep,
            parsed=request.parsed,
            parsed_to=request.parsed_to,
        )
        with ending(self._is_over):
            return ask_and_close(request.look_up, snapshot)

    def load(self, request: LoadProject, table: FileTable) -> bool:
        """Load a project with this file table; return True."""
        old = self._projects.pop(request.number, None)
        if old is not None:
            old.reader.close()
        while len(self._projects) >= MOST_PROJECTS:
            self._projects.pop(next(iter(self._projects))).reader.close()
        reader = Reader(Path(request.database), request.root.path, request.stages)
        if reader.identity != request.identity:
            reader.close()
            raise FileNotFoundError("another database replaced it")
        self._projects[request.number] = _Project(request.root, reader, table)
        release_memory()
        return True


def make_table(request: LoadProject) -> FileTable:
    """Return the file table to load."""
    return FileTable(
        request.paths.split(b"\0")[: len(request.columns)],
        request.columns,
        dict(request.skipped),
    )


def _by_fields(value: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Pickle a frozen dataclass in a fifth of the default time."""
    kind = type(value)
    return _from_fields, (kind, *[getattr(value, name) for name in kind.__slots__])


def _from_fields(kind: type[Any], *values: Any) -> Any:
    new_value = object.__new__(kind)
    for name, value in zip(kind.__slots__, values, strict=True):
        object.__setattr__(new_value, name, value)
    return new_value


copyreg.pickle(Question, _by_fields)
copyreg.pickle(Pattern, _by_fields)


def pack(message: object) -> bytes:
    """Return a message as it is sent."""
    return frame(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def serve(
    descriptor: int, given: Callable[[LookupWorker], object] | None = None
) -> None:
    """Answer requests until the socket ends; first run the request ``given``, if any."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    worker = LookupWorker(lambda: bool(waiting.poll(0)))
    message: bytearray | None = bytearray()
    while message is not None:
        if (
            given is not None or message
        ):  # otherwise the lookup to cancel has already ended
            try:
                answer = (
                    worker.answer(pickle.loads(message))  # noqa: S301 - from our own parent
                    if given is None
                    else given(worker)
                )
                reply = pack(answer)
            except FlashgrepError:
                reply = EMPTY  # the daemon asks itself, and tells the client
            except Exception:
                log.exception("a lookup in a worker process")
                reply = EMPTY
            if len(reply) > MOST_BYTES:
                reply = EMPTY
            while reply:
                reply = reply[os.write(descriptor, reply) :]
        given = None
        message = receive(descriptor, MOST_BYTES)


def main() -> None:
    """Serve the process that started us if it has our version."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the daemon, which ends us
    if sys.argv[1:2] == [__version__]:
        gc.freeze()
        gc.enable()
        gc.set_threshold(
            20_000
        )  # lookups create no cycles: 5 % of the time went into looking for some
        numbers = [int(number) for number in sys.argv[2:]]
        if numbers:
            fork_workers(numbers[0], numbers[1:])
        else:
            serve(0)


def fork_workers(table: int, descriptors: list[int]) -> None:
    """Fork a worker for each socket, tell our parent their ids, and wait until all have ended.

    ``table``: the descriptor of a file with the project that each loads first, and reports whether it did. Its table of
    files is prepared once, before forking, and shared.
    """
    # Once it is written; nothing, if the daemon has ended.
    if not os.read(0, 1):
        return
    with os.fdopen(table, "rb") as file:
        request: LoadProject = pickle.load(file)  # noqa: S301 - as above
    load = partial(LookupWorker.load, request=request, table=make_table(request))
    gc.freeze()
    forked = list[int]()
    for descriptor in descriptors:
        try:
            pid = os.fork()
        except (
            OSError
        ):  # no more processes available: the daemon makes do with those started
            break
        if not pid:
            try:
                os.dup2(descriptor, 0)
                for current_descriptor in descriptors:  # otherwise their ends would stay open after the daemon or a worker ends
                    os.close(current_descriptor)
                serve(0, load)
            finally:
                os._exit(0)
        forked.append(pid)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(OSError):  # our parent has ended, and then they do
        os.write(0, b" ".join(b"%d" % pid for pid in forked))
        # Until it has opened descriptors for them, an id must not be reused by another
        # process.
        os.read(0, 1)
    for pid in forked:
        os.waitpid(pid, 0)
