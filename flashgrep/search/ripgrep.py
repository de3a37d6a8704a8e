"""Scans by ripgrep: which files may match, and how many lines match in each file of a tree.

A scan may name too many files, never too few: it must name every file that our matcher would match. Patterns are in
ripgrep's own dialect and are passed on as written, unless ripgrep would interpret them differently
(``pattern_flags``). If ripgrep's result for a file is not certain, we read the file.

Given a list of files, ripgrep also searches after a NUL byte, where our texts end, so it finds more than matches. On
its own walk it drops a file with a NUL byte as we do, so its counts equal ours.
"""

import contextlib
import fcntl
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from flashgrep.base.checkpoint import Expired, blocking, stop_if_over
from flashgrep.base.cores import count_cores
from flashgrep.base.paths import bundled_ripgrep, find_ripgrep
from flashgrep.files.openat import RootFolder
from flashgrep.pattern import Pattern

LOOK_SECONDS = 0.1
"""How often a waiting lookup checks whether it was cancelled."""
GATHER_SHARE, GATHER_SECONDS = 0.02, 0.02
"""ripgrep writes file by file, and reading each of 78,000 writes separately would cost as much as the search. After a
read we wait for this share of its running time, at most this long, and no longer than it runs."""
NICE = 5
"""A scan uses all processors, so short answers take precedence."""
MOST_THREADS = 12
"""ripgrep's own default."""
MOST_AT_ONCE = 2
SLOT_SECONDS = 1.0
"""After waiting this long for a slot, a lookup reads the files itself: a hanging ripgrep must not block others."""
PIPE = 1 << 20
"""Bytes that ripgrep can write while we wait: users without privileges get no more, unless the system allows less."""
MOST_NAMES = 1 << 20
"""Bytes of paths given to ripgrep at once; Linux allows 2 MiB of arguments."""
MOST_OUTPUT = 64 << 20
"""Most bytes of names: about a million files."""
MOST_ERRORS = 64 << 10
"""Most bytes of messages; with more, ripgrep's output is not used."""
MOST_TOLD = 16 << 20
"""Most bytes of messages if ripgrep reports what it ignores: 130 per file or folder."""
MOST_PATTERN = 100_000
"""Most bytes; Linux allows 128 KiB per argument."""
TROUBLE = 2
"""ripgrep's exit status if it could not read something, or did not understand its arguments."""

UNKNOWN = -1
"""In place of a number of lines."""

_slots = threading.BoundedSemaphore(MOST_AT_ONCE)
_BASE = (b"--no-config", b"--null", b"--color=never", b"--no-mmap")
_COUNTED = re.compile(rb"\./([^\0]*)\0(\d+)\r?\n")
_TOLD = re.compile(rb"rg: DEBUG\|[^\n]*\n")
_MET_RULES = re.compile(
    rb"rg: DEBUG\|ignore::[^\n ]* "
    rb"(?:opened gitignore file: ([^\n]+)|(?:ignoring|whitelisting) ([^\n]*/\.flashgrepignore): )"
)
_TABLES = re.compile(r"\\[bBdDpPwW<>]|[^\x00-\x7f]")
"""Parts of a pattern that depend on Unicode's tables, whose version may differ in another ripgrep."""


class Ripgrep(NamedTuple):
    """A ripgrep program; ``bundled``: the one whose tables and ignore rules ours were made from."""

    program: str
    bundled: bool
    is_shared: bool = False
    """Whether other clients wait beside: half of the processors are left to them."""


class Counts(NamedTuple):
    """The number of matching lines of files; UNKNOWN: of one that is to be read."""

    of_file: dict[bytes, int]
    of_others: int
    """Of every file that is not among them."""

    def forget(self, paths: Iterable[bytes]) -> None:
        """Let files be read."""
        self.of_file.update(dict.fromkeys(paths, UNKNOWN))


class Output(NamedTuple):
    """ripgrep's output and its exit status; None: the deadline ended it."""

    printed: bytes
    errors: bytes
    status: int | None
    rules_files: tuple[bytes, ...] = ()
    """With ``--debug``: ignore files found on the walk, including ``.flashgrepignore``."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was searched."""
        return self.status in {0, 1} and not self.errors


def ripgrep_of(environ: Mapping[str, str]) -> Ripgrep | None:
    """Return the ripgrep to scan with; None: files are read one after the other instead."""
    program = find_ripgrep(environ)
    if program is None:
        return None
    return Ripgrep(program, program == bundled_ripgrep())


def pattern_flags(ripgrep: Ripgrep, pattern: Pattern) -> list[bytes] | None:
    """Return the arguments that make ripgrep search for a pattern; None if it would find something else.

    A match over several lines ends where our text of a file does, at a NUL byte; ripgrep's text continues there.
    """
    if pattern.multiline and pattern.matcher().crosses_lines:
        return None
    if not ripgrep.bundled and (
        pattern.word or any(map(_TABLES.search, pattern.texts))
    ):
        return None
    try:
        texts = [text.encode() for text in pattern.texts]
    except UnicodeEncodeError:  # half a surrogate pair
        return None
    if sum(map(len, texts)) > MOST_PATTERN or any(b"\0" in text for text in texts):
        return None
    flags = {
        b"--fixed-strings": pattern.mode == "literal",
        b"--line-regexp": pattern.line,
        b"--word-regexp": pattern.word and not pattern.line,
        b"--crlf": pattern.crlf,
    }
    case = {
        "sensitive": b"--case-sensitive",
        "insensitive": b"--ignore-case",
        "smart": b"--smart-case",
    }[pattern.case]
    return [
        case,
        *(flag for flag, is_set in flags.items() if is_set),
        *(b"--regexp=" + text for text in texts),
    ]


def take_batch(paths: Iterator[bytes], count: int) -> list[bytes]:
    """Return the next paths, at most ``count`` and as many as fit on a command line."""
    batch = []
    room = MOST_NAMES
    for path in islice(paths, count):
        batch.append(path)
        room -= len(path) + 11  # "./", the NUL byte and a pointer
        if room < 0:
            break
    return batch


def find_matching(
    ripgrep: Ripgrep, root: RootFolder, flags: Sequence[bytes], paths: Sequence[bytes]
) -> list[bytes]:
    """Return the files in which a line may match, in the given order; all of them if ripgrep fails.

    Raises:
        Abandoned, Expired: as ``base.checkpoint.checkpoint``.

    """
    if not paths:  # ripgrep would search its standard input
        return []
    arguments = [
        *flags,
        b"--files-with-matches",
        b"--no-ignore",
        b"--",
        *(b"./" + path for path in paths),
    ]
    output = run(ripgrep, root, arguments)
    if output:
        unread = find_unread(output, frozenset(paths))
    else:
        unread = None
    if output is None or unread is None:
        return list(paths)
    matching = {name[2:] for name in output.printed.split(b"\0")} | unread
    return [path for path in paths if path in matching]


def find_unread(output: Output, paths: frozenset[bytes]) -> set[bytes] | None:
    """Return the files that ripgrep could not read; None if something else went wrong."""
    if output.status is None:
        raise Expired
    if output.status not in {0, 1, TROUBLE} or len(output.errors) >= MOST_ERRORS:
        return None
    unread = set()
    for line in output.errors.splitlines():  # rg: ./PATH: the system's message
        path = line.removeprefix(b"rg: ./").rpartition(b": ")[0]
        if path not in paths:
            return None
        unread.add(path)
    return unread if unread or output.status != TROUBLE else None


def walk(
    ripgrep: Ripgrep, root: RootFolder, flags: Sequence[bytes], max_size: int
) -> Output | None:
    """Run ripgrep over the whole tree; ``flags``: what to search for and what to print. None: it could not run.

    The user's own ignore file is not used, since git may name another than ripgrep finds: the caller removes files that
    are not ours. With the flag ``--debug`` the output names the ignore files found.
    """
    arguments = [
        *flags,
        b"--no-ignore-global",
        b"--max-filesize=%d" % max_size,
        b"--",
        b".",
    ]
    output = run(ripgrep, root, arguments, most_errors=MOST_TOLD)
    if output is None:
        return None
    rules_files = tuple(
        opened or passed for opened, passed in _MET_RULES.findall(output.errors)
    )
    return output._replace(
        errors=_TOLD.sub(b"", output.errors), rules_files=rules_files
    )


def names_in(printed: bytes) -> list[bytes]:
    """Return the paths that ``--files-with-matches`` printed, without the last one if it was cut."""
    return [name[2:] for name in printed.split(b"\0")[:-1]]


def counts_in(printed: bytes) -> dict[bytes, int]:
    """Return the number of matching lines by file, as ``--count`` printed them."""
    return {path: int(count) for path, count in _COUNTED.findall(printed)}


def run(
    ripgrep: Ripgrep,
    root: RootFolder,
    arguments: Sequence[bytes],
    *,
    most_errors: int = MOST_ERRORS,
    most_printed: int = MOST_OUTPUT,
) -> Output | None:
    """Run ripgrep in the root until it ends or the lookup does; None if no process can be started.

    Raises:
        Abandoned: the lookup was cancelled; ripgrep is killed.

    """
    running = Running.start(ripgrep, root, arguments)
    if running is None:
        return None
    with contextlib.closing(running):
        return running.collect(most_printed, most_errors)


class Running:
    """A ripgrep at work, in one of the slots; what it prints waits in a pipe until it is collected."""

    def __init__(
        self, process: subprocess.Popen[bytes], lifeline: int, own_end: int
    ) -> None:
        """``lifeline``: the pipe that is its standard input, by which the system ends it with us."""
        self._process = process
        self._lifeline = lifeline
        self._own_end = own_end
        self._is_closed = False

    @classmethod
    def start(
        cls,
        ripgrep: Ripgrep,
        root: RootFolder,
        arguments: Sequence[bytes],
        *,
        waits: bool = True,
    ) -> "Running | None":
        """Start ripgrep in the root; None if no process can be started or, unless it ``waits``, no slot is free.

        Raises:
            Abandoned: the lookup was cancelled.

        """
        running: Running | None = None
        try:
            with blocking():
                if cls._take_slot(waits=waits):
                    running = cls._start(ripgrep, root, arguments)
        except BaseException:
            # The lookup may be cancelled while it waits for its turn, with ripgrep at work.
            if running is not None:
                running.close()
            raise
        return running

    @staticmethod
    def _take_slot(*, waits: bool) -> bool:
        """Take one of the slots, if one is free in time."""
        start = time.monotonic()
        while not _slots.acquire(timeout=LOOK_SECONDS * waits):
            stop_if_over()
            if not waits or time.monotonic() - start > SLOT_SECONDS:
                return False
        return True

    @classmethod
    def _start(
        cls, ripgrep: Ripgrep, root: RootFolder, arguments: Sequence[bytes]
    ) -> "Running | None":
        """Start ripgrep in the slot that was taken."""
        try:
            return cls._start_process(ripgrep, root, arguments)
        except OSError:
            # No process available, arguments too long, or the folder is gone.
            _slots.release()
            return None
        except BaseException:
            _slots.release()
            raise

    @classmethod
    def _start_process(
        cls, ripgrep: Ripgrep, root: RootFolder, arguments: Sequence[bytes]
    ) -> "Running":
        threads = min(MOST_THREADS, count_cores())
        if ripgrep.is_shared:
            threads = max(1, threads // 2)
        # By the descriptor where that has a path: another folder may have taken the root's
        # own path.
        if sys.platform == "linux":
            folder = b"/proc/self/fd/%d" % root.descriptor()
        else:
            folder = root.path
        lifeline, own_end = os.pipe()
        try:
            process = subprocess.Popen(
                [os.fsencode(ripgrep.program), *_BASE, b"--threads=%d" % threads, *arguments],
                stdin=lifeline, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env={},
            )  # fmt: skip
        except BaseException:
            os.close(lifeline)
            os.close(own_end)
            raise
        with contextlib.suppress(OSError):  # it has ended
            if sys.platform == "linux":
                # The system ends it with us, by SIGIO when the last writer of the pipe is
                # gone.
                fcntl.fcntl(lifeline, fcntl.F_SETOWN, process.pid)
                flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
                fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        if sys.platform == "linux" and process.stdout is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE)
        return cls(process, lifeline, own_end)

    def collect(self, most_printed: int, most_errors: int) -> Output | None:
        """Wait until it ends or the lookup does, and return what it printed; None if that cannot be read.

        Raises:
            Abandoned: the lookup was cancelled.

        """
        with blocking(), contextlib.suppress(OSError):
            return _collect(self._process, most_printed, most_errors)
        return None

    def close(self) -> None:
        """End it, and leave its slot to another."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with self._process:
                self._process.kill()
        finally:
            os.close(self._lifeline)
            os.close(self._own_end)
            _slots.release()


def _collect(
    process: subprocess.Popen[bytes], most_printed: int, most_errors: int
) -> Output:
    parts = {
        stream.fileno(): bytearray()
        for stream in (process.stdout, process.stderr)
        if stream
    }
    printed, errors = parts.values()
    waiting = select.poll()  # select accepts no descriptor over 1,023
    ending = select.poll()
    for descriptor in parts:
        waiting.register(descriptor, select.POLLIN)
        ending.register(descriptor, 0)  # that a stream has ended is always reported
    open_ends = len(parts)
    start = time.monotonic()
    try:
        while open_ends and len(printed) < most_printed and len(errors) < most_errors:
            ready = waiting.poll(1000 * LOOK_SECONDS)
            stop_if_over()
            for descriptor, _ in ready:
                part = os.read(descriptor, 1 << 20)
                parts[descriptor] += part
                if not part:
                    waiting.unregister(descriptor)
                    ending.unregister(descriptor)
                    open_ends -= 1
            if ready and open_ends:
                spent = time.monotonic() - start
                ending.poll(1000 * min(GATHER_SECONDS, GATHER_SHARE * spent))
        if open_ends:  # more output than allowed
            return Output(bytes(printed), bytes(errors), -1)
        while True:
            try:
                return Output(bytes(printed), bytes(errors), process.wait(LOOK_SECONDS))
            except subprocess.TimeoutExpired:
                stop_if_over()
    except Expired:
        return Output(bytes(printed), bytes(errors), None)
