"""The daemon under attack, the secrets that it must not reveal, and a polite client that must not be affected."""

import json
import random
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import BOUND, DaemonAtHand, Wire, daemon_in, short_folder

POLITE_PAUSE = 0.02
"""The polite client sends fifty queries a second, more than somebody who types."""
FILES = 40


@dataclass(slots=True)
class Outcome:
    """The number of inputs of one kind of attack, and those that did harm."""

    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    polite_ms: list[float] = field(default_factory=list)
    """The polite client's waiting times during the attack."""


@dataclass(slots=True)
class Target:
    """A running daemon, a project with known content, and a folder outside it with a secret."""

    folder: Path
    daemon: DaemonAtHand
    root: Path
    outside: Path
    secret: str
    rng: random.Random
    until: float = 0.0
    begun: bool = False
    port: int = 0
    """The loopback port, once it is known; a restarted daemon uses another."""

    def in_time(self) -> bool:
        """Return whether this kind of attack may continue; the first input is always allowed."""
        begun, self.begun = self.begun, True
        return not begun or time.monotonic() < self.until

    def connect(self, *, control: bool = False) -> Wire:
        """Connect to the project's own socket, or to the user's control socket."""
        return self.daemon.wire("unix", None if control else self.root)

    def pid(self) -> int:
        """Return the daemon's process id."""
        return int(self.daemon.status()["pid"])

    def told_secrets(self, answer: bytes) -> list[str]:
        """Return the secrets in an answer: a text from outside the project, or the token."""
        known = {
            "the text outside the project": self.secret,
            "the token": Path(self.daemon.paths.token).read_text(),
        }
        return [name for name, text in known.items() if text.strip().encode() in answer]

    def outside_state(self) -> list[tuple[str, int, bytes]]:
        """Return every file outside the project with its mode and content; an attack must change none."""
        files = sorted(path for path in self.outside.rglob("*") if path.is_file())
        return [(str(path), path.stat().st_mode, path.read_bytes()) for path in files]

    def failures(self) -> int:
        """Return the number of internal errors in the daemon's log."""
        with suppress(FileNotFoundError):
            log = Path(self.daemon.paths.log).read_bytes()
            return (
                log.count(b"call failed")
                + log.count(b"connection failed")
                + log.count(b"no JSON form")
            )
        return 0

    def fill(self) -> None:
        """Rewrite the project's files, replacing anything with their names."""
        for name in ("src", "doc"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).unlink(missing_ok=True)
        for at in range(FILES):
            path = self.root / ("src" if at % 2 else "doc") / f"file{at}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                f"def function_{at}(value):\n    return needle(value, {at})\n"
            )

    @contextmanager
    def watched(self, outcome: Outcome) -> Iterator[None]:
        """Run the polite client during the block; a wrong or missing answer to it counts as harm."""
        stop = threading.Event()
        thread = threading.Thread(target=self._ask_politely, args=(stop, outcome))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _ask_politely(self, stop: threading.Event, outcome: Outcome) -> None:
        try:
            wire = self.connect()
            while not stop.wait(POLITE_PAUSE):
                begun = time.monotonic()
                answer = wire.ask("query", text="def function_7(", mode="literal")
                outcome.polite_ms.append((time.monotonic() - begun) * 1000)
                found = [
                    hit["file_path"]
                    for hit in answer.get("result", {}).get("results", [])
                ]
                if found != ["src/file7.py"]:
                    outcome.wrong.append(
                        f"the polite client was told {json.dumps(answer)[:300]}"
                    )
            wire.close()
        except (OSError, ValueError, AssertionError) as error:
            outcome.wrong.append(f"the polite client lost its connection: {error!r}")


def harmless(answer: Any) -> bool:
    """Return whether a JSON-RPC answer is a result or a known error."""
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    return bool(error.get("data", {}).get("reason") != "internal_error")


def ask_once(connection: socket.socket, line: bytes) -> bytes:
    """Send a line and return the answer; empty if the connection is closed."""
    connection.settimeout(BOUND)
    held = b""
    with suppress(ConnectionError):
        connection.sendall(line)
        while not held.endswith(b"\n") and (piece := connection.recv(1 << 16)):
            held += piece
    return held


def exchange(connection: socket.socket, sent: bytes, seconds: float = 2.0) -> bytes:
    """Send bytes and return the answer received within the time; the connection may be closed."""
    connection.settimeout(seconds)
    held = b""
    with suppress(OSError):
        connection.sendall(sent)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(1 << 16):
            held += piece
    return held


@contextmanager
def target(seed: int) -> Iterator[Target]:
    """Start a daemon with all its files in a temporary folder."""
    folder = short_folder()
    daemon = daemon_in(folder)
    root, outside = folder / "project", folder / "outside"
    secret = f"secret-{secrets.token_hex(8)}"
    try:
        root.mkdir()
        outside.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (outside / "secret.txt").write_text(f"needle {secret}\n")
        made = Target(folder, daemon, root, outside, secret, random.Random(seed))  # noqa: S311 - makes a case again
        made.fill()
        daemon.start()
        added = daemon.run("projects", "add", str(root))
        if added.returncode:
            raise RuntimeError(added.stderr)
        with closing(made.connect()) as wire:
            wire.call("index_codebase", path=".")
        yield made
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def tcp(made: Target) -> socket.socket:
    """Connect to the loopback port."""
    with suppress(ConnectionError):
        if made.port:
            return socket.create_connection(("127.0.0.1", made.port), BOUND)
    made.port = made.daemon.status()["tcp"]["port"]
    return socket.create_connection(("127.0.0.1", made.port), BOUND)
