"""The language servers of a daemon: started on demand, a few at a time, ended when idle."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from flashgrep.base.checkpoint import blocking, stop_if_over
from flashgrep.files.openat import RootFolder
from flashgrep.parts.navigation.servers.known import KnownServer, find_server
from flashgrep.parts.navigation.servers.language_server import (
    LOOK_SECONDS,
    MOST_MEMORY,
    LanguageServer,
    ServerBroken,
    ServerSilent,
)

MOST_SERVERS: Final = 4
"""How many run at once; to start another, the least recently used one is ended."""
WAIT_SECONDS: Final = 3.0
"""How long a query waits for a server before it is answered without it."""
AGAIN_SECONDS: Final = 300.0
"""How long a server that failed is not started again."""
IDLE_SECONDS: Final = 600.0
"""A server is ended after this long without a request."""
ResultT = TypeVar("ResultT")


class NotAsked(Exception):
    """No server has answered; the message says why, and is empty if the language has no server."""


@dataclass(slots=True)
class _Slot:
    """A server of one project, running or not."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    server: LanguageServer | None = None
    used: float = 0.0
    problem: str = ""
    again: float = 0.0
    """When it may be started again after a problem, by time.monotonic()."""

    def end(self) -> None:
        """End the server if it runs; the caller must hold the lock."""
        server = self.server
        self.server = None
        if server is not None:
            server.close()


class ServerPool:
    """Servers by project and program; thread-safe."""

    def __init__(self, languages: Collection[str], environ: Mapping[str, str]) -> None:
        """``languages``: those enabled in the user's settings."""
        self._languages = frozenset(languages)
        self._environ = environ
        self._slots: dict[tuple[bytes, str], _Slot] = {}
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        """Serialises starts: concurrent ones would not count each other."""
        self._is_closed = False

    def find(self, language: str, root: bytes) -> tuple[KnownServer, str] | None:
        """Return the server for a language, with its program; None if there is none."""
        if language in self._languages:
            return find_server(language, self._environ, root)
        return None

    def ask(
        self,
        root: RootFolder,
        found: tuple[KnownServer, str],
        question: Callable[[LanguageServer, float], ResultT],
    ) -> ResultT:
        """Return the result of ``question``, which is called with the server and the time until which it may wait.

        Raises:
            NotAsked: the server is busy, does not respond, or has failed.
            Abandoned, Expired: the lookup is over.

        """
        known_server, program = found
        # Held only for the dictionary: starting a server, or querying it, takes
        # seconds.
        with self._lock:
            slot = self._slots.setdefault((root.path, known_server.name), _Slot())
        ends = time.monotonic() + WAIT_SECONDS
        problem = ""
        with blocking():
            while not slot.lock.acquire(timeout=LOOK_SECONDS):
                stop_if_over()
                if time.monotonic() > ends:
                    raise NotAsked(f"{known_server.name} is busy")
            try:
                slot.used = time.monotonic()
                result = question(
                    slot.server or self.start(slot, known_server, program, root), ends
                )
            except ServerSilent:
                problem = (
                    f"{known_server.name} did not respond within {WAIT_SECONDS:.0f} s"
                )
            except (ServerBroken, OSError) as error:
                slot.end()
                problem = f"{known_server.name} was stopped: {error}"
                # Not started again for a while, since it would most likely fail again.
                slot.problem = problem
                slot.again = time.monotonic() + AGAIN_SECONDS
            finally:
                slot.used = time.monotonic()
                slot.lock.release()
        if problem:
            raise NotAsked(problem)
        return result

    def start(
        self, slot: _Slot, known: KnownServer, program: str, root: RootFolder
    ) -> LanguageServer:
        """Start a server; if too many run, end the least recently used one first."""
        if time.monotonic() < slot.again:
            raise NotAsked(slot.problem)
        with self._starting:
            with self._lock:
                if self._is_closed:
                    raise NotAsked("the daemon is shutting down")
                others = sorted(
                    (
                        current_slot
                        for current_slot in self._slots.values()
                        if current_slot.server is not None
                    ),
                    key=lambda one: one.used,
                )
            excess = len(others) + 1 - MOST_SERVERS
            for other in others:
                # A server in use is not ended.
                if excess > 0 and other.lock.acquire(blocking=False):
                    other.end()
                    other.lock.release()
                    excess -= 1
            if excess > 0:
                raise NotAsked(f"{MOST_SERVERS} language servers are busy")
            slot.server = server = LanguageServer(known, program, root, self._environ)
        with self._lock:
            is_closed = self._is_closed
        if is_closed:  # meanwhile
            slot.end()
            raise NotAsked("the daemon is shutting down")
        return server

    def rest(self) -> None:
        """End the servers that are idle, and those that have grown too large."""
        for slot in self._take_free(None):
            idle = time.monotonic() - slot.used > IDLE_SECONDS
            if slot.server is not None and (idle or slot.server.memory > MOST_MEMORY):
                slot.end()

    def end_servers(self, root: bytes) -> None:
        """End a project's servers."""
        for slot in self._take_free(root):
            slot.end()

    def close(self) -> None:
        """End all servers, including those in use; their users get ServerBroken."""
        with self._lock:
            self._is_closed = True
        for slot in self._take_free(None):
            slot.end()
        for slot in self._slots.values():
            if (server := slot.server) is not None:
                # Without the slot's lock, which its user holds; the user notices that
                # the server ended, and closes it.
                server.kill()

    def _take_free(self, root: bytes | None) -> Iterator[_Slot]:
        """Yield the slots whose server runs but is not in use, of one project or of all, each one locked."""
        with self._lock:
            slots = [
                slot for key, slot in self._slots.items() if root in {None, key[0]}
            ]
        for slot in slots:
            if slot.server is not None and slot.lock.acquire(blocking=False):
                try:
                    yield slot
                finally:
                    slot.lock.release()
