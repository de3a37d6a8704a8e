"""Running the user's git so that no program configured by a repository is run.

Only commands that read objects, the index and settings are used: ``cat-file``, ``ls-tree``, ``ls-files``, ``rev-list``,
``blame``, ``merge-base``, ``for-each-ref``, ``rev-parse``, ``config``. ``_SETTINGS`` and ``_ENVIRON`` turn off what git
could start because a repository says so: file system monitors, hooks, fetching of missing objects, transports, prompts;
and what it could read: mailmaps, attributes, excludes. git itself rejects a repository that belongs to another user,
unless the user's settings allow it (``safe.directory``).

Each git is bounded in memory, output and time. Pipes and devices in the place of git's files are refused before it
runs. For a connection bound to a project, git is told which repository to read (``files.git_place``) and can open
nothing else (``landlock``).
"""

import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self

from flashgrep.base.checkpoint import blocking, stop_if_over
from flashgrep.base.child_process import PIPE_SECONDS, limit_data, waits_at_pipe
from flashgrep.base.errors import FlashgrepError, Forbidden, NotFound, Unavailable, clip
from flashgrep.base.paths import find_program
from flashgrep.files.git_place import (
    GitPlace,
    check_files,
    check_links,
    check_ref,
    check_refs,
    find_place,
    find_readable,
)
from flashgrep.files.openat import FOLDER, RootFolder
from flashgrep.parts.git.landlock import is_available, start_in_domain

LOOK_SECONDS: Final = 0.1
"""How often a call that waits for git checks whether it was cancelled."""
SILENT_SECONDS: Final = 20.0
"""After this long without output git is considered to hang. One that waits at a pipe is ended sooner, on Linux."""
MOST_SECONDS: Final = 600.0
"""For one command, however much it prints."""
MEMORY_BYTES: Final = 2 << 30
"""Memory that git may allocate (RLIMIT_DATA; Linux only). Packs and their indexes are mapped, not allocated, so
the size of a repository hardly counts."""
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
    "core.alternateRefsCommand=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.gitProxy=",
    "core.pager=cat",
    "core.useReplaceRefs=false",
    "diff.external=",
    "gpg.program=false",
    "log.mailmap=false",
    "log.showSignature=false",
    "mailmap.blob=",
    "mailmap.file=",
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
_SETTINGS_OF_USER: Final = ("HOME", "XDG_CONFIG_HOME")
_NO_SETTINGS_OF_USER: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""They may include files from anywhere, which a confined git cannot open."""


@dataclass(frozen=True, slots=True)
class Git:
    """The user's git, run in one folder."""

    folder: RootFolder
    program: str
    environ: Mapping[str, str]
    is_confined: bool = False
    """Whether git reads only what belongs to the project of the folder: for connections that are bound to it."""

    @classmethod
    def find(
        cls,
        folder: RootFolder,
        environ: Mapping[str, str],
        *,
        is_confined: bool = False,
    ) -> "Git":
        """Return the git found in this environment; raises Unavailable if there is none."""
        program = find_program("git", environ)
        if program is None:
            suggestion = "install git to search revisions"
            raise Unavailable(
                "git is not installed", reason="git_not_found", suggestion=suggestion
            )
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        return cls(folder, program, passed | _ENVIRON, is_confined)

    def start(self, arguments: Sequence[bytes | str]) -> "subprocess.Popen[bytes]":
        """Start a git command in the folder.

        Raises:
            Unavailable: no process can be started, or the folder is gone; repository_broken.
            NotFound, Forbidden: a confined git has no repository here, or none that is the project's own.

        """
        place = find_place(self.folder.path)
        if place is not None:
            check_files(place)
        try:
            if not self.is_confined:
                return self._start(arguments, self.environ)
            if place is None:
                raise failure("not a git repository")
            return self._start_for_project(arguments, place)
        except OSError as error:
            raise Unavailable(
                f"git cannot be run: {error.strerror}", reason="git_not_found"
            ) from error

    def check_name(self, name: str) -> None:
        """Refuse the name of a branch or tag whose file is a pipe or a device; raises Unavailable."""
        place = find_place(self.folder.path)
        if place is not None:
            check_ref(place, name.encode("utf-8", "surrogateescape"))

    def check_names(self) -> None:
        """Refuse to list branches and tags if one is a pipe or a device; raises Unavailable."""
        place = find_place(self.folder.path)
        if place is not None:
            check_refs(place)

    def check_place(self) -> None:
        """Refuse a repository that is no longer the project's own; raises as ``start``."""
        place = find_place(self.folder.path)
        if place is None:
            raise failure("not a git repository")
        self._find_readable(place)

    def _find_readable(self, place: GitPlace) -> list[bytes]:
        """Return what else than the root a confined git may read; raises as ``start``."""
        readable = find_readable(self.folder.path, place)
        if not is_available():
            check_links(self.folder.path, readable, place)
        return readable

    def _start_for_project(
        self, arguments: Sequence[bytes | str], place: GitPlace
    ) -> "subprocess.Popen[bytes]":
        """Start git on one repository; it can open only files of this one, and of the project."""
        readable = self._find_readable(place)
        environ = {
            name: value
            for name, value in self.environ.items()
            if name not in _SETTINGS_OF_USER
        }
        environ |= _NO_SETTINGS_OF_USER
        environ["GIT_DIR"] = os.fsdecode(place.own)
        if place.own != place.top:  # not bare
            environ["GIT_WORK_TREE"] = os.fsdecode(place.top)
        trusted = self._read_trust(place)
        if not is_available():
            return self._start(arguments, environ, trusted)
        with ExitStack() as opened:
            folders = [self.folder.descriptor()]
            for path in readable:
                number = os.open(path, FOLDER)
                opened.callback(os.close, number)
                folders.append(number)
            return start_in_domain(
                lambda: self._start(arguments, environ, trusted), folders, self.program
            )

    def _read_trust(self, place: GitPlace) -> list[str]:
        """Return the user's ``safe.directory`` settings, needed only for a repository of another user."""
        own = os.geteuid()
        if all(Path(os.fsdecode(folder)).stat().st_uid == own for folder in place):
            return []
        settings = []
        for scope in ("--global", "--system"):
            with suppress(FlashgrepError), Output(self._start(["config", scope, "-z", "--get-all", "safe.directory"],
                                                              self.environ)) as output:  # fmt: skip
                output.end_input()
                settings += [
                    f"safe.directory={value}"
                    for value in os.fsdecode(output.read_all()).split("\0")
                    if value
                ]
        return settings

    def _start(
        self,
        arguments: Sequence[bytes | str],
        environ: Mapping[str, str],
        more: Sequence[str] = (),
    ) -> "subprocess.Popen[bytes]":
        settings = [word for setting in (*_SETTINGS, *more) for word in ("-c", setting)]
        # By its descriptor if the platform can, since another folder may have taken the
        # path of the root.
        by_descriptor = sys.platform == "linux"
        if by_descriptor:
            folder = b"/proc/self/fd/%d" % self.folder.descriptor()
        else:
            folder = self.folder.path
        process = subprocess.Popen(
            [self.program, "--no-pager", *settings, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=folder, env=environ, bufsize=0,
        )  # fmt: skip
        limit_data(process.pid, MEMORY_BYTES)
        return process

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
        return NotFound(
            "the project is not in a git repository", reason="repository_not_found"
        )
    if "dubious ownership" in message or "safe.bareRepository" in message:
        return Forbidden(
            f"git does not trust the repository: {message}",
            reason="repository_not_trusted",
            suggestion="git config --global --add safe.directory <its folder>, if you trust it",
        )
    return Unavailable(
        f"git cannot read the repository: {message}", reason="repository_broken"
    )


class Output:
    """The output of a git command, read with limits; waiting for it ends with the call's deadline or cancellation."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        streams = [
            stream
            for stream in (process.stdin, process.stdout, process.stderr)
            if stream is not None
        ]
        self._in = streams[0]
        self._out = streams[1].fileno()
        self._err = streams[2].fileno()
        self._waiting = select.poll()  # select takes no descriptor over 1,023
        for descriptor in (self._out, self._err):
            self._waiting.register(descriptor, select.POLLIN)
        self._held = bytearray()
        self._at = 0
        self._errors = bytearray()
        self._started = time.monotonic()

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
        object_name, _, rest = line.partition(b" ")
        kind, _, size = rest.partition(b" ")
        if not size.isdigit():  # "missing" or "ambiguous"
            return None
        length = int(size)
        if length > most:
            self.skip(length + 1)
            return Object(object_name, kind, length, None)
        # Including the line end that cat-file adds after each object.
        data = self.read(length + 1)
        if len(data) <= length:
            raise failure(self.message())
        return Object(object_name, kind, length, data[:-1])

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
                raise Unavailable(
                    "the revision names more files than a project may have",
                    reason="repository_broken",
                )
            if time.monotonic() - self._started > MOST_SECONDS:
                raise Unavailable("git did not end in time", reason="repository_broken")
        return bytes(self._held)

    def wait(self) -> int:
        """Return the exit status; raises Unavailable if git does not exit after its output has ended."""
        try:
            return self._process.wait(SILENT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(
                "git did not exit in time", reason="repository_broken"
            ) from error

    def message(self) -> str:
        """Return git's fatal errors, or the last line it wrote to stderr, without control characters."""
        while len(self._errors) < MOST_MESSAGE and (
            part := os.read(self._err, MOST_MESSAGE)
        ):
            self._errors += part
        lines = [
            line
            for line in self._errors.decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
        fatal = [line for line in lines if line.startswith("fatal: ")] or lines[-1:]
        return "".join(
            letter if letter.isprintable() else " "
            for letter in clip("; ".join(fatal), 400)
        )

    def _receive(self) -> bool:
        """Receive more output; False at its end."""
        # Consumed bytes are dropped only now and then, since each time the rest is
        # moved.
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
            seconds = time.monotonic() - since
            if seconds > PIPE_SECONDS and waits_at_pipe(self._process.pid):
                raise Unavailable(
                    "git waits at a pipe in the place of a file",
                    reason="repository_broken",
                )
            if seconds > SILENT_SECONDS:
                raise Unavailable(
                    "git did not respond in time", reason="repository_broken"
                )


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
            # A failed request leaves half a response, so git is killed. If the kept git
            # had ended, another is started.
            kept_output = self._output
            self._output = None
            for earlier in (kept_output, None):
                output = earlier or Output(self.git.start(["cat-file", "--batch"]))
                try:
                    object_ = output.request(name, most)
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
            return object_

    def close(self) -> None:
        """End git; if it is in use, the request that uses it ends it."""
        self._is_closed = True
        output = self._output
        self._output = None
        if output is not None:
            output.close()
