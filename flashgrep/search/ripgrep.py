"""Scans by ripgrep: which files may match, and how many lines match in each file of a tree.

A scan may name a file too many, never one too few: every file that our matcher would match has to be named. Patterns
are ripgrep's own dialect and are handed on as they were written, unless ripgrep would read them in another way
(``pattern_flags``). A file of which ripgrep says nothing certain is read by us.

Files named one by one are searched after a NUL byte, where our texts end: more of them are found than match. On a walk
of its own ripgrep drops a file with a NUL byte as we do, so its counts are ours.
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
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from flashgrep.checkpoint import Expired, blocking, stop_if_over
from flashgrep.ingest.openat import RootFolder
from flashgrep.machine import count_cores
from flashgrep.paths import bundled_ripgrep, find_ripgrep
from flashgrep.pattern import Pattern

LOOK_SECONDS = 0.1
"""How often whoever waits for ripgrep looks whether to wait on."""
GATHER_SHARE, GATHER_SECONDS = 0.02, 0.02
"""ripgrep writes file by file, and reading each of 78,000 writes by itself would cost as much as the search: after a
read we wait for such a share of the time that it has run, and no longer than this."""
NICE = 5
"""A scan takes all processors there are: short answers go first."""
MOST_THREADS = 12
"""As ripgrep's own default has it."""
MOST_AT_ONCE = 2
SLOT_SECONDS = 1.0
"""Whoever gets no ripgrep for this long reads the files itself: one that hangs must not hold up the others."""
PIPE = 1 << 20
"""Bytes that ripgrep can write while we wait so: more than any user is refused, unless the system allows less."""
MOST_NAMES = 1 << 20
"""Bytes of paths given to ripgrep at once; Linux allows 2 MiB of arguments."""
MOST_OUTPUT = 64 << 20
"""Bytes of names: about a million files."""
MOST_ERRORS = 64 << 10
"""Bytes of messages; where there are more, nothing that ripgrep said is used."""
MOST_TOLD = 16 << 20
"""Bytes of messages where ripgrep tells what it ignores: 130 a file or folder."""
MOST_PATTERN = 100_000
"""Bytes; Linux takes 128 KiB an argument."""
TROUBLE = 2
"""ripgrep's exit status where it could not read something, or did not understand its arguments."""

_slots = threading.BoundedSemaphore(MOST_AT_ONCE)
_BASE = (b"--no-config", b"--null", b"--color=never", b"--no-mmap")
_COUNTED = re.compile(rb"\./([^\0]*)\0(\d+)\r?\n")
_TOLD = re.compile(rb"rg: DEBUG\|[^\n]*\n")
_MET_RULES = re.compile(
    rb"rg: DEBUG\|ignore::[^\n ]* "
    rb"(?:opened gitignore file: ([^\n]+)|(?:ignoring|whitelisting) ([^\n]*/\.flashgrepignore): )"
)
_TABLES = re.compile(r"\\[bBdDpPwW<>]|[^\x00-\x7f]")
"""What in a pattern asks for Unicode's tables, of which another ripgrep may have another version."""


class Ripgrep(NamedTuple):
    """A ripgrep; ``bundled``: the one whose tables and ignore rules ours were made from."""

    program: str
    bundled: bool


class Output(NamedTuple):
    """What ripgrep printed, and its exit status; None: its time was over."""

    printed: bytes
    errors: bytes
    status: int | None
    rules_files: tuple[bytes, ...] = ()
    """With ``--debug``: ignore files that a walk met, ``.flashgrepignore`` among them."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was searched."""
        return self.status in {0, 1} and not self.errors


def ripgrep_of(environ: Mapping[str, str]) -> Ripgrep | None:
    """Return the ripgrep to scan with; None: files are read one after the other by ourselves."""
    program = find_ripgrep(environ)
    return None if program is None else Ripgrep(program, program == bundled_ripgrep())


def pattern_flags(ripgrep: Ripgrep, pattern: Pattern) -> list[bytes] | None:
    """Return the arguments that make ripgrep look for what the pattern does; None where it would not.

    A match over several lines ends where our text of a file does, at a NUL byte; ripgrep's text continues there.
    """
    if pattern.multiline and pattern.matcher().crosses_lines:
        return None
    if not ripgrep.bundled and (pattern.word or any(map(_TABLES.search, pattern.texts))):
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
    case = {"sensitive": b"--case-sensitive", "insensitive": b"--ignore-case", "smart": b"--smart-case"}[pattern.case]
    return [case, *(flag for flag, given in flags.items() if given), *(b"--regexp=" + text for text in texts)]


def take_batch(paths: Iterator[bytes], count: int) -> list[bytes]:
    """Return the next paths, ``count`` or as many as go on a command line."""
    batch, room = [], MOST_NAMES
    for path in islice(paths, count):
        batch.append(path)
        room -= len(path) + 11  # "./", the NUL byte and a pointer
        if room < 0:
            break
    return batch


def find_matching(ripgrep: Ripgrep, root: RootFolder, flags: Sequence[bytes], paths: Sequence[bytes]) -> list[bytes]:
    """Return those of the files, in their order, in which a line may match; all of them where ripgrep fails.

    Raises:
        Abandoned, Expired: as ``scheduler.checkpoint``.

    """
    if not paths:  # it would search its standard input
        return []
    arguments = [*flags, b"--files-with-matches", b"--no-ignore", b"--", *(b"./" + path for path in paths)]
    output = run(ripgrep, root, arguments)
    unread = _parse_unread(output, frozenset(paths)) if output else None
    if output is None or unread is None:
        return list(paths)
    found = {name[2:] for name in output.printed.split(b"\0")} | unread
    return [path for path in paths if path in found]


def _parse_unread(output: Output, paths: frozenset[bytes]) -> set[bytes] | None:
    """Return the files that ripgrep could not read; None where something else went wrong."""
    if output.status is None:
        raise Expired
    if output.status not in {0, 1, TROUBLE} or len(output.errors) >= MOST_ERRORS:
        return None
    unread = set()
    for line in output.errors.splitlines():  # rg: ./PATH: what the system said
        path = line.removeprefix(b"rg: ./").rpartition(b": ")[0]
        if path not in paths:
            return None
        unread.add(path)
    return unread if unread or output.status != TROUBLE else None


def walk(ripgrep: Ripgrep, root: RootFolder, flags: Sequence[bytes], max_size: int) -> Output | None:
    """Have ripgrep walk the whole tree; ``flags``: what to look for, and what to print. None: it cannot be had.

    The user's own ignore file is not asked, since git may name another than ripgrep finds: who uses the output leaves
    out what is not ours. With the flag ``--debug`` the output says which rules files were met.
    """
    arguments = [*flags, b"--no-ignore-global", b"--max-filesize=%d" % max_size, b"--", b"."]
    output = run(ripgrep, root, arguments, most_errors=MOST_TOLD)
    if output is None:
        return None
    rules_files = tuple(opened or passed for opened, passed in _MET_RULES.findall(output.errors))
    return output._replace(errors=_TOLD.sub(b"", output.errors), rules_files=rules_files)


def names_in(printed: bytes) -> list[bytes]:
    """Return the paths that ``--files-with-matches`` printed, except for the last one where that was cut."""
    return [name[2:] for name in printed.split(b"\0")[:-1]]


def counts_in(printed: bytes) -> dict[bytes, int]:
    """Return the matching lines of each file, as ``--count`` printed them."""
    return {path: int(count) for path, count in _COUNTED.findall(printed)}


def run(
    ripgrep: Ripgrep, root: RootFolder, arguments: Sequence[bytes], *, most_errors: int = MOST_ERRORS
) -> Output | None:
    """Run ripgrep in the root until it ends, or the question does; None where no process can be had.

    Raises:
        Abandoned: nobody waits for the answer any more; ripgrep is ended.

    """
    threads = min(MOST_THREADS, count_cores())
    # By the descriptor, where there is a path for that: another folder may have taken the root's own path.
    folder = b"/proc/self/fd/%d" % root.descriptor() if sys.platform == "linux" else root.path
    with blocking():
        begun = time.monotonic()
        while not _slots.acquire(timeout=LOOK_SECONDS):
            stop_if_over()
            if time.monotonic() - begun > SLOT_SECONDS:
                return None
        try:
            lifeline, ours = os.pipe()
            try:
                process = subprocess.Popen(
                    [os.fsencode(ripgrep.program), *_BASE, b"--threads=%d" % threads, *arguments],
                    stdin=lifeline, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env={},
                )  # fmt: skip
                with process:
                    try:
                        with contextlib.suppress(OSError):  # it has ended
                            if sys.platform == "linux":
                                # The system ends it with us: it signals SIGIO when the last writer of the pipe is gone.
                                fcntl.fcntl(lifeline, fcntl.F_SETOWN, process.pid)
                                fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
                            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
                        if sys.platform == "linux" and process.stdout is not None:
                            with contextlib.suppress(OSError):
                                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE)
                        return _collect(process, most_errors)
                    finally:
                        process.kill()
            finally:
                os.close(lifeline)
                os.close(ours)
        except OSError:  # no process to be had, arguments too long, the folder is gone
            return None
        finally:
            _slots.release()


def _collect(process: subprocess.Popen[bytes], most_errors: int) -> Output:
    parts = {stream.fileno(): bytearray() for stream in (process.stdout, process.stderr) if stream}
    printed, errors = parts.values()
    waiting = select.poll()  # select takes no descriptor over 1,023
    for descriptor in parts:
        waiting.register(descriptor, select.POLLIN)
    open_ends = len(parts)
    begun = time.monotonic()
    try:
        while open_ends and len(printed) < MOST_OUTPUT and len(errors) < most_errors:
            ready = waiting.poll(1000 * LOOK_SECONDS)
            stop_if_over()
            for descriptor, _ in ready:
                part = os.read(descriptor, 1 << 20)
                parts[descriptor] += part
                if not part:
                    waiting.unregister(descriptor)
                    open_ends -= 1
            if ready:
                time.sleep(min(GATHER_SECONDS, GATHER_SHARE * (time.monotonic() - begun)))
        if open_ends:  # too much
            return Output(bytes(printed), bytes(errors), -1)
        while True:
            try:
                return Output(bytes(printed), bytes(errors), process.wait(LOOK_SECONDS))
            except subprocess.TimeoutExpired:
                stop_if_over()
    except Expired:
        return Output(bytes(printed), bytes(errors), None)
