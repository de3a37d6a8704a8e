"""Running the user's git so that no program configured by a repository is run.

Only commands that read objects, the index and settings are used: ``cat-file``, ``ls-tree``, ``ls-files``, ``rev-list``,
``blame``, ``merge-base``, ``for-each-ref``, ``rev-parse``, ``config``. ``_SETTINGS`` and ``_ENVIRON`` turn off what git
could start because a repository says so: file system monitors, hooks, fetching of missing objects, transports, prompts.
git itself rejects a repository that belongs to another user, unless the user's settings allow it (``safe.directory``).
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

from flashgrep.base.checkpoint import blocking, stop_if_over
from flashgrep.base.errors import FlashgrepError, Forbidden, NotFound, Unavailable, clip
from flashgrep.base.paths import find_program
from flashgrep.files.openat import RootFolder

LOOK_SECONDS: Final = 0.1
"""How often a call that waits for git checks whether it was cancelled."""
SILENT_SECONDS: Final = 20.0
"""After this long without output git is considered to hang: a setting may name a pipe that has no writer."""
MOST_OUTPUT: Final = 256 << 20
"""Bytes; enough for three million files. A malicious tree may list the same subtree a billion times."""
MOST_MESSAGE: Final = 4_000
"""Bytes of git's error messages that are kept."""
_READ: Final = 1 << 18
_PROMISED: Final = re.compile(r"could not fetch ([0-9a-f]{40,64}) from promisor remote")
"""git's message for a missing object of a partial clone, which git is not allowed to fetch."""

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
    "GIT_NO_REPLACE_OBJECTS": "1",  # we rely on an object id identifying its content
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_PASSED_ON: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "SYSTEMROOT", "DEVELOPER_DIR")
"""What git needs to find its programs and the user's settings. GIT_* variables are left out: they name repositories."""


@dataclass(frozen=True, slots=True)
class Git:
    """The user's git, run in one folder."""

    folder: RootFolder
    program: str
    environ: Mapping[str, str]

    @classmethod
    def find(cls, folder: RootFolder, environ: Mapping[str, str]) -> "Git":
        """Return the git found in this environment; raises Unavailable if there is none."""
        program = find_program("git", environ)
        if program is None:
            suggestion = "install git to search revisions"
            raise Unavailable("git is not installed", reason="git_not_found", suggestion=suggestion)
        return cls(folder, program, {name: environ[name] for name in _PASSED_ON if name in environ} | _ENVIRON)

    def start(self, arguments: Sequence[bytes | str]) -> "subprocess.Popen[bytes]":
        """Start a git command in the folder.

        Raises:
            Unavailable: no process can be started, or the folder is gone.

        """
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            # By its descriptor if the platform can, since another folder may have taken the path of the root.
            by_descriptor = sys.platform == "linux"
            folder = b"/proc/self/fd/%d" % self.folder.descriptor() if by_descriptor else self.folder.path
            return subprocess.Popen(
                [self.program, "--no-pager", *settings, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=folder, env=self.environ, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise Unavailable(f"git cannot be run: {error.strerror}", reason="git_not_found") from error

    def run(self, *arguments: bytes | str) -> bytes:
        """Return the output of a git command.

        Raises:
            NotFound: repository_not_found, the folder is not in a repository.
            Forbidden: repository_not_trusted.
            Unavailable: object_missing; or repository_broken: git failed, hung, or printed too much.
            Abandoned, Expired: as ``checkpoint``.

        """
        with blocking(), Output(self.start(arguments)) as output:
            output.end_input()
            printed = output.read_all()
            if output.wait():
                raise failure(output.message())
            return printed


def missing_object(name: str, **data: str) -> Unavailable:
    """Return the error for an object that is missing in the clone."""
    return Unavailable(
        f"the clone does not have object {name}",
        reason="object_missing",
        object=name,
        suggestion=f"git fetch origin {name}, or use a revision that is present; flashgrep never fetches",
        **data,
    )


def failure(message: str) -> FlashgrepError:
    """Return the error for git's own error message."""
    promised = _PROMISED.search(message)
    if promised is not None:
        return missing_object(promised[1])
    if "not a git repository" in message:
        return NotFound("the project is not in a git repository", reason="repository_not_found")
    if "dubious ownership" in message or "safe.bareRepository" in message:
        return Forbidden(
            f"git does not trust the repository: {message}",
            reason="repository_not_trusted",
            suggestion="git config --global --add safe.directory <its folder>, if you trust it",
        )
    return Unavailable(f"git cannot read the repository: {message}", reason="repository_broken")


class Output:
    """The output of a git command, read with limits; waiting for it ends with the call's deadline or cancellation."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        streams = [stream for stream in (process.stdin, process.stdout, process.stderr) if stream is not None]
        self._in, self._out, self._err = streams[0], streams[1].fileno(), streams[2].fileno()
        self._waiting = select.poll()  # select takes no descriptor over 1,023
        for descriptor in (self._out, self._err):
            self._waiting.register(descriptor, select.POLLIN)
        self._held = bytearray()
        self._at = 0
        self._errors = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill git."""
        # With SIGKILL, since a git that hangs on a pipe may not react to anything else.
        self._process.kill()
        with self._process:
            pass

    def end_input(self) -> None:
        """Close git's input: there are no more requests."""
        self._in.close()

    def request(self, name: bytes, most: int) -> "Object | None":
        """Request an object from ``cat-file --batch`` and return it; as ``ObjectReader.find``."""
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
        # Including the line end that cat-file adds after each object.
        data = self.read(length + 1)
        if len(data) <= length:
            raise failure(self.message())
        return Object(found, kind, length, data[:-1])

    def read_line(self) -> bytes:
        """Return the next line without its end; empty if git has ended."""
        while (end := self._held.find(b"\n", self._at)) < 0:
            if not self._receive():
                return b""
        line = bytes(self._held[self._at : end])
        self._at = end + 1
        return line

    def read(self, count: int) -> bytes:
        """Return this many bytes; fewer only if git has ended."""
        while len(self._held) - self._at < count and self._receive():
            pass
        data = bytes(self._held[self._at : self._at + count])
        self._at += count
        return data

    def skip(self, count: int) -> None:
        """Skip this many bytes without keeping them."""
        while (rest := count - (len(self._held) - self._at)) > 0:
            count = rest
            self._at = len(self._held)
            if not self._receive():
                return
        self._at += count

    def read_all(self) -> bytes:
        """Return the whole output; raises Unavailable if it is too long."""
        while self._receive():
            if len(self._held) > MOST_OUTPUT:
                raise Unavailable("the revision names more files than a project may have", reason="repository_broken")
        return bytes(self._held)

    def wait(self) -> int:
        """Return the exit status; raises Unavailable if git does not exit after its output has ended."""
        try:
            return self._process.wait(SILENT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Unavailable("git did not exit in time", reason="repository_broken") from error

    def message(self) -> str:
        """Return git's fatal errors, or the last line it wrote to stderr, without control characters."""
        while len(self._errors) < MOST_MESSAGE and (part := os.read(self._err, MOST_MESSAGE)):
            self._errors += part
        lines = [line for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines[-1:]
        return "".join(one if one.isprintable() else " " for one in clip("; ".join(fatal), 400))

    def _receive(self) -> bool:
        """Receive more output; False at its end."""
        # Consumed bytes are dropped only now and then, since each time the rest is moved.
        if self._at > _READ:
            del self._held[: self._at]
            self._at = 0
        since = time.monotonic()
        while True:
            # Read both streams: git blocks once the pipe of stderr is full.
            for descriptor, _ in self._waiting.poll(1000 * LOOK_SECONDS):
                if descriptor == self._out:
                    part = os.read(self._out, _READ)
                    self._held += part
                    return bool(part)
                if part := os.read(self._err, MOST_MESSAGE):
                    self._errors += part[: MOST_MESSAGE - len(self._errors)]
                else:
                    self._waiting.unregister(self._err)
            stop_if_over()
            if time.monotonic() - since > SILENT_SECONDS:
                raise Unavailable("git did not respond in time", reason="repository_broken")


class Object(NamedTuple):
    """A git object: its id, its kind, its size, and its data unless it is over the requested limit."""

    name: bytes
    kind: bytes
    size: int
    data: bytes | None


@dataclass(slots=True)
class ObjectReader:
    """Reads objects by name through one ``git cat-file --batch`` that keeps running; thread-safe."""

    git: Git
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _output: Output | None = None
    _is_closed: bool = False

    def find(self, name: bytes, most: int) -> Object | None:
        """Return an object by any name that git accepts, with its data if at most ``most`` bytes; None if not found.

        An ambiguous name is not found, nor is one with a line end, which would be two requests.

        Raises:
            Unavailable, NotFound, Forbidden: as ``Git.run``.
            Abandoned, Expired: as ``checkpoint``.

        """
        if b"\n" in name:
            return None
        with self._lock:
            # A failed request leaves half a response, so git is killed. If the kept git had ended, another is started.
            kept, self._output = self._output, None
            for earlier in (kept, None):
                output = earlier or Output(self.git.start(["cat-file", "--batch"]))
                try:
                    found = output.request(name, most)
                    break
                except BaseException as error:
                    output.close()
                    if earlier is None or not isinstance(error, FlashgrepError):
                        raise
            # ``close`` was called meanwhile, and could not end a git that was in use.
            if self._is_closed:
                output.close()
            else:
                self._output = output
            return found

    def close(self) -> None:
        """End git; if it is in use, the request that uses it ends it."""
        self._is_closed = True
        output, self._output = self._output, None
        if output is not None:
            output.close()
