"""Runs of ripgrep over the consecutive parts of one search: side by side, their output in the order of the parts.

    waiting --start--> running --both pipes at their end--> ended --its turn--> told

What a run prints before its turn is held, within ``MOST_HELD``; then it has to wait. A run whose reader is gone ends by
itself, so none outlives this process for longer than it finds nothing.
"""

import fcntl
import os
import select
import time

from flashgrep.base.cores import count_cores
from flashgrep.cli.launcher import signals

TYPE_CHECKING = False
"""As in ``typing``, whose import takes longer than ours."""
if TYPE_CHECKING:
    from collections.abc import Sequence

RG = b"rg"
CAN_SPLICE = hasattr(os, "splice")
"""Whether bytes can be moved from pipe to pipe: reading and writing 50 MB takes 0.2 s of processor time."""
PIECE_BYTES = 1 << 20
"""Read at once, and as much as a run can print before it is read, where the system allows that."""
SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", 0)
GATHER_SHARE, GATHER_SECONDS = 0.02, 0.004
"""ripgrep writes file by file; after a read more is let come for this share of the time so far, at most this long."""
MOST_HELD = 64 << 20
"""Bytes of output held for all runs together."""
MOST_RUNNING = 12
"""As many as ripgrep has threads."""
TROUBLE = 2
"""ripgrep's status if something went wrong; 0: there are matches, 1: there are none."""
NOTHING_SEARCHED = b"rg: No files were searched, "
"""A part of a tree may have no file for a call; only a whole tree without one is worth a message."""
ENDING = (signals.SIGINT, signals.SIGTERM, getattr(signals, "SIGHUP", signals.SIGTERM))


class Run:
    """One run of ripgrep."""

    def __init__(self, program: str, words: "Sequence[str]") -> None:
        """Start it.

        Raises:
            OSError: the system does not.

        """
        self.output, output_end = os.pipe()
        self.errors, errors_end = os.pipe()
        command = [RG, *(word.encode("latin-1") for word in words)]
        actions = [
            (os.POSIX_SPAWN_DUP2, output_end, 1),
            (os.POSIX_SPAWN_DUP2, errors_end, 2),
        ]
        try:
            self.process = os.posix_spawn(
                program,
                command,
                os.environ,
                file_actions=actions,
                setsigdef=(signals.SIGPIPE,),
            )
        except BaseException:
            os.close(self.output)
            os.close(self.errors)
            raise
        finally:
            os.close(output_end)
            os.close(errors_end)
        enlarge(self.output)
        self.open_ends = {self.output, self.errors}
        self.held = bytearray()
        self.said = bytearray()

    def take(self, descriptor: int) -> None:
        """Take what one of its pipes has, or its end."""
        piece = os.read(descriptor, PIECE_BYTES)
        if not piece:
            self.open_ends.remove(descriptor)
            os.close(descriptor)
        elif descriptor == self.output:
            self.held += piece
        else:
            self.said += piece

    def pass_on(self) -> bool:
        """Have the system move what it has printed to standard output; False: it cannot, or there is no more."""
        if self.held or not CAN_SPLICE:
            return False
        try:
            return os.splice(self.output, 1, PIECE_BYTES) > 0
        except BrokenPipeError:
            raise
        except OSError:  # to a terminal, or to the end of a file
            return False

    def wait(self) -> int:
        """Return its exit status; if a signal ended it, 128 and the signal's number."""
        _, status = os.waitpid(self.process, 0)
        self.process = 0
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return code
        return 128 - code

    def end(self) -> None:
        """Kill it, unless it has ended."""
        for descriptor in self.open_ends:
            os.close(descriptor)
        self.open_ends.clear()
        if self.process:
            os.kill(self.process, signals.SIGKILL)
            self.wait()


class JoinedRuns:
    """All runs of one search."""

    def __init__(self, program: str, calls: "Sequence[Sequence[str]]") -> None:
        self._program = program
        self._waiting = [*reversed(calls)]
        self._most = min(count_cores(), MOST_RUNNING)
        """Runs at the same time."""
        self._runs: list[Run] = []
        """Those started whose turn has not ended, in order."""
        self._statuses: set[int] = set()
        self._told: set[bytes] = set()
        self._has_searched = False
        self._began = time.monotonic()
        self._unsearched = b""

    def run(self) -> int:
        """Run all; return the status that ripgrep would have for the whole.

        Raises:
            OSError: a run cannot be started, or nobody reads the output; the others have ended.

        """
        try:
            self._start()
            while self._runs:
                self._wait()
                self._tell()
                self._start()
        finally:
            self.end()
        return self._sum_up()

    def end(self) -> None:
        """Kill all runs."""
        while self._runs:
            self._runs.pop().end()

    def _start(self) -> None:
        while self._waiting and self._has_room():
            if sum(1 for run in self._runs if run.open_ends) >= self._most:
                return
            self._runs.append(Run(self._program, self._waiting.pop()))

    def _has_room(self) -> bool:
        return sum(len(run.held) for run in self._runs) < MOST_HELD

    def _wait(self) -> None:
        """Take what runs print, the first one's and, as long as there is room, that of the others."""
        first = self._runs[0]
        waiting = select.poll()
        # Of an output that nobody reads the system tells without being asked.
        waiting.register(1, 0)
        owners = {}
        for run in self._runs:
            if run is first or self._has_room():
                owners.update(dict.fromkeys(run.open_ends, run))
        for descriptor in owners:
            waiting.register(descriptor, select.POLLIN)
        if not owners:
            return
        for descriptor, event in waiting.poll():
            owner = owners.get(descriptor)
            if owner is not None:
                is_first = owner is first and descriptor == first.output
                if not (is_first and first.pass_on()):
                    owner.take(descriptor)
            elif event & select.POLLERR:
                raise BrokenPipeError
        passed = time.monotonic() - self._began
        time.sleep(min(GATHER_SECONDS, GATHER_SHARE * passed))

    def _tell(self) -> None:
        """Print what the first run has, and go on to the next if it has ended."""
        while self._runs:
            first = self._runs[0]
            write(1, first.held)
            first.held.clear()
            if first.open_ends:
                return
            del self._runs[0]
            self._judge(first.wait(), bytes(first.said))

    def _judge(self, status: int, said: bytes) -> None:
        """Note how a run ended, and print what it says."""
        if status > TROUBLE:  # killed: what follows would be behind a gap
            self._waiting.clear()
            self.end()
        before, is_unsearched, _ = said.partition(NOTHING_SEARCHED)
        if is_unsearched:
            self._unsearched = said[len(before) :]
            if not before:
                status = 1
        else:
            self._has_searched = True
        self._statuses.add(status)
        # What is wrong with the call, every run says.
        if before not in self._told:
            self._told.add(before)
            write(2, before)

    def _sum_up(self) -> int:
        if self._unsearched and not self._has_searched:
            write(2, self._unsearched)
            return TROUBLE
        worst = max(self._statuses)
        if worst >= TROUBLE:
            return worst
        return int(0 not in self._statuses)


def enlarge(pipe: int) -> None:
    """Let a pipe have more in it, unless the user has too many pipes."""
    if not SET_PIPE_SIZE:
        return
    try:
        fcntl.fcntl(pipe, SET_PIPE_SIZE, PIECE_BYTES)
    except OSError:
        return


def write(descriptor: int, text: "bytes | bytearray") -> None:
    """Write all of a text."""
    with memoryview(text) as rest:
        start = 0
        while start < len(rest):
            start += os.write(descriptor, rest[start:])


def join_runs(program: str, calls: "Sequence[Sequence[str]]") -> int:
    """Run ripgrep with each of these words, and return the status as of one run; a signal ends all runs first.

    Raises:
        OSError: ripgrep cannot be run.

    """
    signals.signal(signals.SIGPIPE, signals.SIG_IGN)
    runs = JoinedRuns(program, calls)

    def end(number: int, _: object) -> None:
        runs.end()
        signals.signal(number, signals.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in ENDING:
        if signals.getsignal(number) != signals.SIG_IGN:
            signals.signal(number, end)
    try:
        return runs.run()
    except BrokenPipeError:
        # ripgrep itself ends so, whatever it has found.
        return 0
