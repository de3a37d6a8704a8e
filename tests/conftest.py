"""Shared fixtures: projects on disk, real daemons with their own state folders, and one client for three wires."""

import gc
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, settings

from flashgrep.base.own_folders import INDEX, store_folder
from flashgrep.base.paths import GRAMMARS_VARIABLE, Paths, as_latin1
from flashgrep.daemon import lifecycle
from flashgrep.rpc.connect import connect as connect_daemon
from flashgrep.rpc.connect import send_request, start_daemon
from tests.support.workspace import repository

# The duration of an example depends on the machine's load, so there is no deadline.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

GRAMMARS = Path(__file__).parents[1] / "build" / "grammars"
"""Grammar libraries, unpacked once for all test runs."""
os.environ.setdefault(GRAMMARS_VARIABLE, str(GRAMMARS))

FGREP = str(Path(sys.executable).with_name("fgrep"))
BOUND = 40.0
"""Timeout of waits in seconds; the events take milliseconds."""
SHORT_NAME = 20
"""Characters that the name of the system's folder for temporary files may have."""
WireName = Literal["unix", "tcp", "stdio"]
MakeProject = Callable[..., Path]


@dataclass(slots=True)
class Wire:
    """One connection that speaks JSON-RPC lines; the same for a Unix socket, TCP and a process's stdin and stdout."""

    name: WireName
    connection: socket.socket
    root: str | None = None
    process: subprocess.Popen[bytes] | None = None
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _held: bytes = b""

    def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result; over TCP, which is not bound to a project, the call names it."""
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def fail(self, method: str, **params: Any) -> Any:
        """Call a method that must fail, and return its error."""
        answer = self.ask(method, **params)
        assert "error" in answer, answer
        return answer["error"]

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return the whole response."""
        if (
            self.name == "tcp"
            and self.root
            and "project" not in params
            and not method.startswith(("$/", "auth"))
        ):
            params["project"] = self.root
        self.send(
            {
                "jsonrpc": "2.0",
                "id": next(self._ids),
                "method": method,
                "params": params,
            }
        )
        return self.receive()

    def send(self, message: Any) -> None:
        """Send a message, or raw bytes."""
        self.connection.sendall(
            message
            if isinstance(message, bytes)
            else json.dumps(message).encode() + b"\n"
        )

    def receive(self) -> Any:
        """Return the next message."""
        return json.loads(self.receive_line())

    def receive_line(self) -> bytes:
        """Return the next line; empty at the end."""
        while b"\n" not in self._held:
            piece = self.connection.recv(65536)
            if not piece:
                return b""
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
        if self.process is not None:
            self.process.wait(BOUND)


@dataclass(frozen=True, slots=True)
class DaemonAtHand:
    """A daemon's state folder and environment; the test decides whether it runs."""

    paths: Paths
    environ: dict[str, str]
    _serving: list[Wire] = field(default_factory=list)
    """The connections that have it serve HTTP."""

    def index(self, root: Path) -> Path:
        """Return the database of a project's index."""
        return store_folder(Path(self.paths.cache), os.fsencode(root)) / INDEX

    def run(
        self,
        *arguments: str,
        cwd: Path | None = None,
        stdin: str | None = None,
        program: str = FGREP,
        seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``fgrep`` with these arguments, and return its output."""
        return subprocess.run(
            [program, *arguments],
            cwd=cwd,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def shell(
        self, script: str, cwd: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script of bash in which our commands are on PATH, with nothing on standard input."""
        return subprocess.run(
            ["bash", "-c", script],
            cwd=cwd,
            env={**self.environ_of_shell, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * BOUND,
            check=False,
        )

    @property
    def environ_of_shell(self) -> dict[str, str]:
        """The environment of its clients, with our commands first on PATH."""
        folders = (str(Path(FGREP).parent), self.environ["PATH"])
        return {**self.environ, "PATH": os.pathsep.join(folders)}

    def start(self) -> None:
        """Start it, and wait until it listens."""
        start_daemon(self.paths, self.environ)

    def add(self, root: Path) -> None:
        """Make a folder a project; start the daemon if needed."""
        with connect_daemon(self.paths, self.environ) as control:
            answer = send_request(
                control, "$/open", {"folder": as_latin1(str(root)), "adopt": True}
            )
        assert "result" in answer, answer

    def stop(self) -> None:
        """Stop it, if it is running, and its children."""
        while self._serving:
            self._serving.pop().close()
        assert lifecycle.terminate(self.paths)

    def serve_http(self, **asked: Any) -> Any:
        """Have it serve HTTP on any free port until it is stopped; return the answer of ``$/serve``."""
        self._serving.append(self.wire("unix"))
        return self._serving[-1].call("$/serve", port=0, **asked)

    def status(self) -> Any:
        """Return its status."""
        with closing(self.wire("unix")) as control:
            return control.call("$/status")

    def wire(self, name: WireName, root: Path | None = None) -> Wire:
        """Connect; with a root, to the project's own socket."""
        where = str(root) if root else None
        if name == "tcp":
            port = self.status()["tcp"]["port"]
            return Wire(
                name, socket.create_connection(("127.0.0.1", port), BOUND), where
            )
        if name == "unix":
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(BOUND)
            connection.connect(
                str(root / ".flashgrep" / "mcp.sock") if root else self.paths.socket
            )
            return Wire(name, connection, where)
        ours, theirs = socket.socketpair()
        ours.settimeout(BOUND)
        command = [FGREP, "rpc", *([where] if where else [])]
        with theirs:
            process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env=self.environ,
                cwd="/",
            )
        return Wire(name, ours, where, process)


STARTS_PROCESSES = frozenset(
    {
        "daemon",
        "cold_daemon",
        "spare_daemon",
        "connect",
        "indexed_root",
        "at_home",
        "start",
        "shared_daemon",
    }
)
"""Fixtures that start a daemon or an indexer, so that each test takes about a second."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out tests that start a daemon or an indexer, and those marked slow",
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect tests for ``--quick``."""
    if not config.getoption("--quick"):
        return
    slow = {
        item
        for item in items
        if item.get_closest_marker("slow")
        or STARTS_PROCESSES.intersection(getattr(item, "fixturenames", ()))
    }
    config.hook.pytest_deselected(items=list(slow))
    items[:] = [item for item in items if item not in slow]


def pytest_configure() -> None:
    """Search for no garbage until the tests are collected: it took a fifth of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take what imports and the collection made out of the search for garbage: half a million objects that stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def collector_paused() -> Iterator[None]:
    """Search for no garbage during a test that measures time: a search takes up to a second of a long run."""
    gc.disable()
    yield
    gc.enable()


def short_folder() -> Path:
    """Create a folder with a short name, since a socket's path has at most 107 bytes."""
    if len(tempfile.gettempdir()) <= SHORT_NAME:
        return Path(tempfile.mkdtemp(prefix="fg"))
    return Path(tempfile.mkdtemp(prefix="fg", dir="/tmp"))


@pytest.fixture(scope="module")
def _module_folder() -> Iterator[Path]:
    folder = short_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def daemon_in(folder: Path, **settings: str) -> DaemonAtHand:
    """Return a daemon, not started, with its state in ``folder`` and any free TCP port."""
    mine = ("PATH", "LANG", "TMPDIR", GRAMMARS_VARIABLE)
    environ = {name: os.environ[name] for name in mine if name in os.environ}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environ |= {
        "HOME": str(home),
        "FLASHGREP_STATE_DIR": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "FLASHGREP_TCP_PORT": "0",
        **settings,
    }
    return DaemonAtHand(Paths(str(folder / "state")), environ)


@contextmanager
def own_daemon(**settings: str) -> Iterator[DaemonAtHand]:
    """Return a daemon with its own state and settings, not started; it is stopped at the end."""
    folder = short_folder()
    at_hand = daemon_in(folder, **settings)
    try:
        yield at_hand
    finally:
        at_hand.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cold_daemon() -> Iterator[DaemonAtHand]:
    """Return a separate daemon for the test, not started; it is stopped at the end."""
    with own_daemon() as at_hand:
        yield at_hand


@pytest.fixture(scope="module")
def daemon(_module_folder: Path) -> Iterator[DaemonAtHand]:
    """Return a running daemon, shared by a module's tests."""
    at_hand = daemon_in(_module_folder)
    at_hand.start()
    yield at_hand
    at_hand.stop()


@pytest.fixture(scope="module")
def spare_daemon() -> Iterator[DaemonAtHand]:
    """Return another running daemon, for a module's tests that leave it as it was; it starts once instead of for each."""
    with own_daemon() as at_hand:
        at_hand.start()
        yield at_hand


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Return the event loop of async tests, which is the daemon's."""
    return "asyncio"


@pytest.fixture
def indexed_root() -> Iterator[Path]:
    """Return a folder that git and ripgrep treat as a repository."""
    with repository() as folder:
        yield folder


@pytest.fixture
def root(indexed_root: Path) -> Path:
    """Return the folder of a project, which the test opens like the daemon."""
    return indexed_root


@pytest.fixture
def project() -> Iterator[MakeProject]:
    """Return a function that makes a git work tree with the given files (text or bytes) and returns its root."""
    made: list[Path] = []

    def make(
        files: dict[str, str | bytes] | None = None, name: str = "project"
    ) -> Path:
        base = short_folder()
        made.append(base)
        root = base / name
        root.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        for path, content in (files or {}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(
                content.encode() if isinstance(content, str) else content
            )
        return root

    yield make
    for base in made:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(params=["unix", "tcp", "stdio"])
def connect(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, opened: list[Wire]
) -> Callable[..., Wire]:
    """Return a function that connects to the module's daemon, over each of the three wires in turn."""

    def make(root: Path | None = None) -> Wire:
        if root is not None:
            daemon.add(root)
        opened.append(daemon.wire(request.param, root))
        return opened[-1]

    return make


@pytest.fixture
def opened() -> Iterator[list[Wire]]:
    """Wires that a test has opened, closed at its end."""
    wires: list[Wire] = []
    yield wires
    for wire in wires:
        wire.close()
