"""Running the user's git so that a repository's own settings run nothing.

Only commands that read objects, the index and settings run: ``cat-file``, ``ls-tree``, ``ls-files``, ``merge-base``,
``for-each-ref``, ``rev-parse``, ``config``. What else git would start because a repository says so is turned off by
``_SETTINGS`` and ``_ENVIRON``: file system monitors, hooks, filters and textconv (which these commands do not use),
fetching of objects that are not here, transports, prompts. git itself refuses a repository that belongs to somebody
else, unless the user's settings say otherwise (``safe.directory``).
"""

import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from flashgrep.checkpoint import blocking, stop_if_over
from flashgrep.errors import FlashgrepError, Forbidden, NotFound, Unavailable, clip
from flashgrep.ingest.openat import RootFolder
from flashgrep.paths import find_program

LOOK_SECONDS: Final = 0.1
"""How often whoever waits for git looks whether to wait on."""
SILENT_SECONDS: Final = 20.0
"""git hangs that says nothing for this long: a setting may name a pipe that nobody writes to."""
MOST_OUTPUT: Final = 256 << 20
"""Bytes: a tree of three million files. A tree made to harm may name the same subtree a billion times."""
MOST_MESSAGE: Final = 4_000
"""Bytes of git's messages that are kept."""
_READ: Final = 1 << 18
_PROMISED: Final = re.compile(r"could not fetch ([0-9a-f]{40,64}) from promisor remote")
"""Said in a partial clone of an object that it does not have, and that git was forbidden to fetch."""

_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.askPass=",
    "core.sshCommand=false",
    "credential.helper=",
    "protocol.allow=never",
    "maintenance.auto=false",
    "gc.auto=0",
)
_ENVIRON: Final = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",  # an object's name stands for its content here
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_PASSED_ON: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "SYSTEMROOT", "DEVELOPER_DIR")
"""Where git finds its own programs and the user's settings. Its own variables are left out: they name repositories."""


@dataclass(frozen=True, slots=True)
class Git:
    """The user's git, as it is run in one folder."""

    folder: RootFolder
    program: str
    environ: Mapping[str, str]

    @classmethod
    def find(cls, folder: RootFolder, environ: Mapping[str, str]) -> "Git":
        """Return git as this environment has it; raises Unavailable if there is none."""
        program = find_program("git", environ)
        if program is None:
            raise Unavailable("git is not installed", reason="git_not_found", suggestion="install git to ask revisions")
        return cls(folder, program, {name: environ[name] for name in _PASSED_ON if name in environ} | _ENVIRON)

    def start(self, arguments: Sequence[bytes | str]) -> "subprocess.Popen[bytes]":
        """Start a command of git in the folder.

        Raises:
            Unavailable: no process can be had, or the folder is gone.

        """
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            # By the descriptor, where there is a path for that: another folder may have taken the root's own path.
            by_number = sys.platform == "linux"
            folder = b"/proc/self/fd/%d" % self.folder.descriptor() if by_number else self.folder.path
            return subprocess.Popen(
                [self.program, "--no-pager", *settings, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=folder, env=self.environ, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise Unavailable(f"git cannot be run: {error.strerror}", reason="git_not_found") from error

    def run(self, *arguments: bytes | str) -> bytes:
        """Return what a command of git prints.

        Raises:
            NotFound: repository_not_found, the folder is in no repository.
            Forbidden: repository_of_another_user.
            Unavailable: repository_broken, git failed: it says why; or too much was printed.
            Abandoned, Expired: as ``checkpoint``.

        """
        with blocking(), Answers(self.start(arguments)) as answers:
            answers.end_input()
            printed = answers.read_all()
            if answers.wait():
                raise failure(answers.message())
            return printed


def missing_object(name: str, **data: str) -> Unavailable:
    """Return the error for an object that the clone does not have."""
    return Unavailable(
        f"the clone does not have object {name}",
        reason="object_missing",
        object=name,
        suggestion=f"git fetch origin {name}, or ask a revision that is here; flashgrep fetches nothing",
        **data,
    )


def failure(message: str) -> FlashgrepError:
    """Return the error for what git said on its way out."""
    promised = _PROMISED.search(message)
    if promised is not None:
        return missing_object(promised[1])
    if "not a git repository" in message:
        return NotFound("the project is in no git repository", reason="repository_not_found")
    if "dubious ownership" in message or "safe.bareRepository" in message:
        return Forbidden(
            f"git does not trust the repository: {message}",
            reason="repository_not_trusted",
            suggestion="git config --global --add safe.directory <its folder>, if you trust it",
        )
    return Unavailable(f"git cannot read the repository: {message}", reason="repository_broken")


class Answers:
    """What a command of git prints, read with bounds; nobody waits longer for it than for the question's answer."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        streams = [stream for stream in (process.stdin, process.stdout, process.stderr) if stream is not None]
        self._in, self._out, self._err = streams[0], streams[1].fileno(), streams[2].fileno()
        self._waiting = select.poll()  # select takes no descriptor over 1,023
        for descriptor in (self._out, self._err):
            self._waiting.register(descriptor, select.POLLIN)
        self._held = bytearray()
        self._at = 0
        self._said = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def close(self) -> None:
        """End git, whatever it does."""
        # SIGKILL: a git that hangs on a pipe heeds nothing else.
        self._process.kill()
        with self._process:
            pass

    def end_input(self) -> None:
        """Let git know that no more requests come."""
        self._in.close()

    def ask(self, name: bytes, most: int) -> "Object | None":
        """Return what ``cat-file --batch`` answers about an object; as ``ObjectReader.find``."""
        try:
            self._in.write(name + b"\n")
        except BrokenPipeError:
            raise failure(self.message()) from None
        line = self.read_line()
        if not line:
            raise failure(self.message())
        found, _, rest = line.partition(b" ")
        kind, _, size = rest.partition(b" ")
        if not size.isdigit():  # "missing" or "ambiguous"
            return None
        length = int(size)
        if length > most:
            self.skip(length + 1)
            return Object(found, kind, length, None)
        # With the line end that cat-file puts after each object.
        data = self.read(length + 1)
        if len(data) <= length:
            raise failure(self.message())
        return Object(found, kind, length, data[:-1])

    def read_line(self) -> bytes:
        """Return the next line without its end; empty where git has ended."""
        while (end := self._held.find(b"\n", self._at)) < 0:
            if not self._receive():
                return b""
        line = bytes(self._held[self._at : end])
        self._at = end + 1
        return line

    def read(self, count: int) -> bytes:
        """Return this many bytes, fewer only where git has ended."""
        while len(self._held) - self._at < count and self._receive():
            pass
        data = bytes(self._held[self._at : self._at + count])
        self._at += count
        return data

    def skip(self, count: int) -> None:
        """Pass over this many bytes, which are not kept."""
        while (rest := count - (len(self._held) - self._at)) > 0:
            count = rest
            self._at = len(self._held)
            if not self._receive():
                return
        self._at += count

    def read_all(self) -> bytes:
        """Return all that is printed; raises Unavailable where it is too much."""
        while self._receive():
            if len(self._held) > MOST_OUTPUT:
                raise Unavailable("the revision names more files than a project may have", reason="repository_broken")
        return bytes(self._held)

    def wait(self) -> int:
        """Return the exit status; raises Unavailable where git has said all and does not end."""
        try:
            return self._process.wait(SILENT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Unavailable("git did not end in time", reason="repository_broken") from error

    def message(self) -> str:
        """Return the last line of what git said alongside its answers, and nothing that would move a cursor."""
        while len(self._said) < MOST_MESSAGE and (part := os.read(self._err, MOST_MESSAGE)):
            self._said += part
        lines = [line for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines[-1:]
        return "".join(one if one.isprintable() else " " for one in clip("; ".join(fatal), 400))

    def _receive(self) -> bool:
        """Take in more of what is printed; False at its end."""
        # What has been read goes only now and then, since each time the rest is moved.
        if self._at > _READ:
            del self._held[: self._at]
            self._at = 0
        since = time.monotonic()
        while True:
            # Both are read: git blocks once the pipe of its messages is full.
            for descriptor, _ in self._waiting.poll(1000 * LOOK_SECONDS):
                if descriptor == self._out:
                    part = os.read(self._out, _READ)
                    self._held += part
                    return bool(part)
                if part := os.read(self._err, MOST_MESSAGE):
                    self._said += part[: MOST_MESSAGE - len(self._said)]
                else:
                    self._waiting.unregister(self._err)
            stop_if_over()
            if time.monotonic() - since > SILENT_SECONDS:
                raise Unavailable("git did not answer in time", reason="repository_broken")


class Object(NamedTuple):
    """An object: its name, its kind, its size; no data where that is over what was asked for."""

    name: bytes
    kind: bytes
    size: int
    data: bytes | None


@dataclass(slots=True)
class ObjectReader:
    """Objects by name, from one ``git cat-file --batch`` that stays; safe to use from several threads."""

    git: Git
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answers: Answers | None = None
    _is_closed: bool = False

    def find(self, name: bytes, most: int) -> Object | None:
        """Return an object by any name git knows for it, with its data up to ``most`` bytes; None: there is none.

        An ambiguous name is none, and so is one with a line end: it would be two questions.

        Raises:
            Unavailable, NotFound, Forbidden: as ``Git.run``.
            Abandoned, Expired: as ``checkpoint``.

        """
        if b"\n" in name:
            return None
        with self._lock:
            # Whatever fails leaves half an answer: git is started again then. One that stays may have been ended.
            kept, self._answers = self._answers, None
            for answers in (kept, None):
                asked = answers or Answers(self.git.start(["cat-file", "--batch"]))
                try:
                    found = asked.ask(name, most)
                    break
                except BaseException as error:
                    asked.close()
                    if answers is None or not isinstance(error, FlashgrepError):
                        raise
            # Closed while we asked: whoever closed could not end a git that was in use.
            if self._is_closed:
                asked.close()
            else:
                self._answers = asked
            return found

    def close(self) -> None:
        """End git, or have it ended by whoever it answers just now."""
        self._is_closed = True
        answers, self._answers = self._answers, None
        if answers is not None:
            answers.close()
