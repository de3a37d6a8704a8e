"""A separate daemon for benchmarks, its clients, and the resources of its processes."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashgrep.base.paths import Paths
from flashgrep.daemon import lifecycle
from flashgrep.rpc.connect import connect_unix

FGREP = str(Path(sys.executable).with_name("fgrep"))
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Client:
    """A connection with one call at a time."""

    def __init__(self, path: str) -> None:
        self._socket = connect_unix(path, 30)
        self._socket.settimeout(600)
        self._held = b""

    def call(self, method: str, **params: Any) -> Any:
        """Return a result."""
        self.send(method, params)
        answer = json.loads(self.line())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a call."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def line(self) -> bytes:
        """Return the next line."""
        while b"\n" not in self._held:
            piece = self._socket.recv(1 << 16)
            if not piece:
                raise ConnectionError("the daemon closed the connection")
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


@dataclass(slots=True)
class Private:
    """A running daemon with its own state folder, and the measured project."""

    paths: Paths
    environ: dict[str, str]
    pid: int
    root: Path
    socket: str
    peak: dict[str, int] = field(
        default_factory=lambda: {"daemon": 0, "others": 0, "all": 0}
    )
    _sampling: threading.Event = field(default_factory=threading.Event)

    def client(self) -> Client:
        """Connect to the project's own socket."""
        return Client(self.socket)

    def processes(self) -> list[int]:
        """Return the process ids of the daemon and its descendants."""
        return [self.pid, *_descendants(self.pid)]

    def cpu(self) -> float:
        """Return the processor seconds of all its processes, including ended ones."""
        return sum(processor_seconds(pid) for pid in self.processes())

    def resident(self) -> int:
        """Return the resident bytes of all its processes."""
        return sum(resident(pid) for pid in self.processes())

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Record the peak memory while the block runs, sampled twenty times a second."""
        self._sampling.clear()
        thread = threading.Thread(target=self._sample)
        thread.start()
        try:
            yield
        finally:
            self._sampling.set()
            thread.join()

    def _sample(self) -> None:
        while not self._sampling.wait(0.05):
            daemon = resident(self.pid)
            others = sum(resident(pid) for pid in _descendants(self.pid))
            for name, found in (
                ("daemon", daemon),
                ("others", others),
                ("all", daemon + others),
            ):
                self.peak[name] = max(self.peak[name], found)


@contextmanager
def private_daemon(state: Path) -> Iterator[Private]:
    """Start a daemon without projects; stop it at the end."""
    environ = {
        name: os.environ[name]
        for name in ("HOME", "PATH", "LANG", "TMPDIR")
        if name in os.environ
    }
    environ |= {
        "FLASHGREP_STATE_DIR": str(state),
        "XDG_CONFIG_HOME": str(state.with_name("config")),
        "XDG_CACHE_HOME": str(state.with_name("cache")),
        "FLASHGREP_TCP_PORT": "0",
    }
    paths = Paths(str(state))
    subprocess.run(
        [FGREP, "daemon", "start"], env=environ, check=True, stdout=subprocess.DEVNULL
    )
    try:
        pid = lifecycle.find_holder(paths)
        assert pid is not None  # noqa: S101 - it has just said that it runs
        yield Private(paths, environ, pid, state, "")
    finally:
        lifecycle.terminate(paths)


def adopt(daemon: Private, root: Path) -> None:
    """Open a project, which starts indexing."""
    control = Client(daemon.paths.socket)
    opened = control.call(
        "$/open", folder=os.fsencode(root).decode("latin-1"), adopt=True
    )
    control.close()
    daemon.root, daemon.socket = root, opened["socket"]


def wait_until(client: Client, stages: set[str]) -> Any:
    """Wait until indexing is past the stages, and return the figures at that moment."""
    while True:
        found = client.call("stats")
        if found["stage"] == "failed":
            raise RuntimeError(found["stage_detail"])
        if found["stage"] not in stages and not found["files_pending"]:
            return found
        time.sleep(0.05)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                found += [int(child), *_descendants(int(child))]
    return found


def processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and its ended children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def resident(pid: int) -> int:
    """Return the resident bytes of a process; 0 if it has ended."""
    try:
        return (
            int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
            * PAGE
        )
    except OSError:
        return 0


def connect_many(path: str, clients: int) -> list[socket.socket]:
    """Open this many connections."""
    return [connect_unix(path, 30) for _ in range(clients)]
