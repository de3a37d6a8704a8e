"""A language server: its process, and the exchange of protocol messages, with limits, for the threads of lookups.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification. A wait never outlasts its
lookup, so queries are answered without a server that is still loading.
"""

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes

import orjson

from flashgrep.base.checkpoint import stop_if_over
from flashgrep.files.columns import PositionEncoding
from flashgrep.files.openat import RootFolder
from flashgrep.parts.navigation.servers.known import (
    PROTOCOL_NAMES,
    KnownServer,
    choose_environ,
)

MOST_MESSAGE: Final = 16 << 20
"""Bytes of one message."""
MOST_FLOOD: Final = 64 << 20
"""Bytes that a server may print between two responses."""
MOST_MEMORY: Final = 2 << 30
"""Resident bytes of a server and its children. Not by RLIMIT_AS, since Go and Node reserve more than they use."""
MOST_EVENTS: Final = 10_000
"""Changed files reported in one message; if a checkout changes more, the server is restarted."""
HANGS_SECONDS: Final = 120.0
"""A server is stopped after this long without a response; loading a large project usually takes less than a minute."""
LOOK_SECONDS: Final = 0.1
_MOST_HEAD: Final = 4_096
_READ: Final = 1 << 18
_LENGTH: Final = re.compile(rb"(?i)(?:\A|\r\n)content-length: *(\d{1,9}) *(?:\r\n|\Z)")
_NO_METHOD: Final = -32601
_NICE: Final = 5
_SET_SIGNAL: Final = 10
"""Linux's F_SETSIG, which Python defines only since 3.12. Needed since Go programs ignore the default signal, SIGIO."""


class ServerSilent(Exception):
    """A server has not responded in time; it may respond to the next request."""


class ServerBroken(Exception):
    """A server has ended, hangs, or misbehaves; the message says how."""


@dataclass(slots=True)
class _Open:
    """A text that the server has from us: its version and its bytes."""

    version: int
    data: bytes


class LanguageServer:
    """A running server; for one thread at a time."""

    def __init__(
        self,
        known: KnownServer,
        program: str,
        root: RootFolder,
        environ: Mapping[str, str],
    ) -> None:
        """Start it.

        Raises:
            OSError: the process cannot be started.

        """
        self.known = known
        self._root = root.path
        self.encoding: PositionEncoding = "utf-16"
        self.is_ready = False
        self._held = bytearray()
        self._unsent = bytearray()
        self._received = 0
        self._last_id = 0
        self._answers: dict[int, Any] = {}
        self._asked: set[int] = set()
        """Requests without a response; a response that is no longer awaited is dropped."""
        self._awaited: set[int] = set()
        self._silent_since: float | None = None
        self._open: dict[bytes, _Open] = {}
        self._versions: Mapping[bytes, tuple[int, int]] | None = None
        # The server inherits one end and never uses it; see ``end_group_with_us``.
        lifeline, child_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                [program, *known.command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=root.path, env=choose_environ(known, environ), bufsize=0, start_new_session=True,
                pass_fds=[lifeline],
            )  # fmt: skip
        except BaseException:
            os.close(lifeline)
            os.close(child_end)
            raise
        self._kept = child_end
        with contextlib.suppress(OSError):  # it has ended
            if sys.platform == "linux":
                end_group_with_us(self._process.pid, lifeline)
            # The user's own work takes precedence over a server that loads a project.
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
        os.close(lifeline)
        pipes = [
            pipe.fileno()
            for pipe in (self._process.stdin, self._process.stdout)
            if pipe is not None
        ]
        for descriptor in pipes:
            os.set_blocking(descriptor, False)
        self._in, self._out = pipes
        self._begun = self._send_request("initialize", self.describe_client())

    def describe_client(self) -> dict[str, Any]:
        """Return the parameters of ``initialize``: our few capabilities."""
        return {
            # By this a server may notice that its client has ended.
            "processId": os.getpid(),
            "rootUri": make_uri(self._root, b""),
            "workspaceFolders": [{"uri": make_uri(self._root, b""), "name": "project"}],
            "initializationOptions": dict(self.known.options),
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "textDocument": {
                    "definition": {"linkSupport": False},
                    "references": {},
                },
                "workspace": {
                    "didChangeWatchedFiles": {},
                    "configuration": True,
                    "workspaceFolders": True,
                },
            },
        }

    @property
    def memory(self) -> int:
        """Resident bytes of the server and its children; 0 if unknown."""
        return measure_memory(self._process.pid)

    def kill(self) -> None:
        """Kill the process and its children; a thread that uses it gets ServerBroken."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the server; no other thread may be using it."""
        self.kill()
        os.close(self._kept)
        with self._process:
            pass

    # Requests

    def prepare(
        self,
        texts: Mapping[bytes, tuple[str, bytes]],
        versions: Mapping[bytes, tuple[int, int]],
        ends: float,
    ) -> None:
        """Wait until the server is initialized, then send it the current state of files.

        ``texts``: the files whose text we send, by path, with their languages: those of the query, and unsaved ones.
        Files sent for earlier queries but not in ``texts`` are closed, so the server reads them from disk again.
        ``versions``: of all files in its languages.

        Raises:
            ServerSilent, ServerBroken: as ``ask``.

        """
        if not self.is_ready:
            result = self._wait(self._begun, ends, keep=True)
            if isinstance(result, dict):
                capabilities = result.get("capabilities", {})
            else:
                capabilities = {}
            if isinstance(capabilities, dict):
                encoding = capabilities.get("positionEncoding")
            else:
                encoding = None
            self.encoding = "utf-8" if encoding == "utf-8" else "utf-16"
            self._notify("initialized", {})
            self.is_ready = True
        before = self._versions
        self._versions = versions
        # A server does not watch files itself if the client offers to, so it must be
        # told of every change.
        if before is not None and before != versions:
            kinds = {
                path: 1 if path not in before else 2
                for path, version in versions.items()
                if before.get(path) != version
            }
            kinds |= {path: 3 for path in before if path not in versions}
            if len(kinds) > MOST_EVENTS:
                raise ServerBroken(
                    f"{len(kinds):,} files changed at once, so it is restarted"
                )
            changes = [
                {"uri": make_uri(self._root, path), "type": kind}
                for path, kind in sorted(kinds.items())
            ]
            self._notify("workspace/didChangeWatchedFiles", {"changes": changes})
        for path in [path for path in self._open if path not in texts]:
            del self._open[path]
            self._notify(
                "textDocument/didClose",
                {"textDocument": {"uri": make_uri(self._root, path)}},
            )
        for path, (language, data) in texts.items():
            self.tell_text(path, language, data)

    def tell_text(self, path: bytes, language: str, data: bytes) -> None:
        """Send a file's text to the server unless it has that text."""
        open_text = self._open.get(path)
        text = data.decode("utf-8", "replace")
        document: dict[str, Any] = {"uri": make_uri(self._root, path)}
        if open_text is None:
            # An opened text takes precedence over the file on disk, so unsaved changes
            # are respected.
            document |= {
                "languageId": PROTOCOL_NAMES.get(language, language),
                "version": 1,
                "text": text,
            }
            self._open[path] = _Open(1, data)
            self._notify("textDocument/didOpen", {"textDocument": document})
        elif open_text.data != data:
            open_text.version = open_text.version + 1
            open_text.data = data
            document["version"] = open_text.version
            self._notify(
                "textDocument/didChange",
                {"textDocument": document, "contentChanges": [{"text": text}]},
            )

    def ask(self, method: str, params: dict[str, Any], ends: float) -> Any:
        """Return the result of a request; None if the server responds with an error.

        Raises:
            ServerSilent: there is no response by ``ends``, a time of time.monotonic().
            ServerBroken: it ended, hangs, prints or allocates too much, or violates the protocol.
            Abandoned, Expired: the lookup is over; the request is cancelled.

        """
        return self._wait(self._send_request(method, params), ends)

    # Messages

    def _send_request(self, method: str, params: dict[str, Any]) -> int:
        self._last_id += 1
        self._awaited.add(self._last_id)
        self._asked.add(self._last_id)
        self._send({"id": self._last_id, "method": method, "params": params})
        self._silent_since = self._silent_since or time.monotonic()
        return self._last_id

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        # Buffered until ``exchange``: writing here could block on a server that does
        # not read.
        body = orjson.dumps({"jsonrpc": "2.0", **message})
        self._unsent += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def _wait(self, number: int, ends: float, *, keep: bool = False) -> Any:
        """Return the response to a request; ``keep``: await it again later if it does not arrive now."""
        try:
            while number not in self._answers:
                self.exchange(ends)
                stop_if_over()
            return self._answers.pop(number)
        except BaseException as error:
            if not keep:
                self._awaited.discard(number)
                # Cancel the request, so that the server does not work in vain.
                if not isinstance(error, ServerBroken):
                    self._notify("$/cancelRequest", {"id": number})
                    with contextlib.suppress(
                        OSError
                    ):  # it has ended or does not read: the next request will notice
                        self._write()
            raise

    def exchange(self, ends: float) -> None:
        """Send and receive what is possible, waiting a moment at most."""
        now = time.monotonic()
        waiting = select.poll()  # select takes no descriptor over 1,023
        waiting.register(self._out, select.POLLIN)
        if self._unsent:
            waiting.register(self._in, select.POLLOUT)
        ready = waiting.poll(1000 * max(0.0, min(LOOK_SECONDS, ends - now)))
        if not ready:
            if (
                self._silent_since is not None
                and now - self._silent_since > HANGS_SECONDS
            ):
                raise ServerBroken(f"no response for {HANGS_SECONDS:.0f} s")
            if self.memory > MOST_MEMORY:
                raise ServerBroken(
                    f"it uses more than {MOST_MEMORY >> 20:,} MB of memory"
                )
            if now >= ends:
                raise ServerSilent
        for descriptor, _ in ready:
            try:
                if descriptor == self._in:
                    self._write()
                else:
                    self.receive(os.read(self._out, _READ))
            except BlockingIOError:
                continue
            except OSError as error:
                raise ServerBroken("it ended") from error

    def _write(self) -> None:
        del self._unsent[: os.write(self._in, self._unsent[:_READ])]

    def receive(self, part: bytes) -> None:
        """Process output of the server; raises ServerBroken if it has ended, or prints too much."""
        if not part:
            raise ServerBroken("it ended")
        self._held += part
        self._received += len(part)
        if self._received > MOST_FLOOD:
            raise ServerBroken(
                f"it prints more than {MOST_FLOOD >> 20} MB between two responses"
            )
        self.take_messages()

    def take_messages(self) -> None:
        """Process all complete messages; raises ServerBroken if they violate the protocol."""
        at = 0
        while (end := self._held.find(b"\r\n\r\n", at, at + _MOST_HEAD)) >= 0:
            size = _LENGTH.search(self._held[at:end])
            if size is None or int(size[1]) > MOST_MESSAGE:
                raise ServerBroken(
                    "it violates the protocol, or sends too large a message"
                )
            start = end + 4
            length = int(size[1])
            if len(self._held) < start + length:
                break
            self.take_message(bytes(self._held[start : start + length]))
            at = start + length
        else:
            if len(self._held) - at > _MOST_HEAD:
                raise ServerBroken("it violates the protocol")
        del self._held[:at]

    def take_message(self, body: bytes) -> None:
        """Keep a response, answer a request, ignore a notification."""
        try:
            message = orjson.loads(body)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ServerBroken("it violates the protocol")
        number = message.get("id")
        if "method" in message and number is not None:
            self.answer_request(message)
        elif isinstance(number, int) and number in self._asked:
            self._asked.discard(number)
            # A server that responds to anything is not hanging.
            if self._asked:
                self._silent_since = time.monotonic()
            else:
                self._silent_since = None
            self._received = 0
            if number in self._awaited:
                self._awaited.discard(number)
                self._answers[number] = message.get("result")

    def answer_request(self, message: dict[str, Any]) -> None:
        """Answer a request of the server; refuse everything that would show or change something."""
        reply: dict[str, Any] = {"id": message["id"], "result": None}
        match message["method"]:
            case "workspace/configuration":
                if isinstance(message.get("params"), dict):
                    items = message.get("params", {}).get("items", [])
                else:
                    items = []
                reply["result"] = [None] * len(items) if isinstance(items, list) else []
            case "workspace/workspaceFolders":
                reply["result"] = [
                    {"uri": make_uri(self._root, b""), "name": "project"}
                ]
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/workDoneProgress/create"
            ):
                pass
            case _:
                del reply["result"]
                reply["error"] = {"code": _NO_METHOD, "message": "not supported"}
        self._send(reply)


def end_group_with_us(pid: int, lifeline: int) -> None:
    """Make the kernel kill a process group when we exit: that closes the last writer of a pipe that the group holds."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -pid)
    fcntl.fcntl(lifeline, _SET_SIGNAL, signal.SIGKILL)
    fcntl.fcntl(
        lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC
    )


def make_uri(root: bytes, path: bytes) -> str:
    """Return the URI of a file below a root, with special bytes escaped."""
    return "file://" + quote_from_bytes(root + b"/" + path if path else root)


def measure_memory(pid: int) -> int:
    """Return the resident bytes of a process and its children; 0 if unknown."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf(
            "SC_PAGESIZE"
        )
        children = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
        return own + sum(measure_memory(int(child)) for child in children)
    except (OSError, ValueError, IndexError):
        return 0
