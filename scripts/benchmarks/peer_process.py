"""Runs, samples and stops the processes of a tool, found by a variable that only they have in their environment."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from scripts.benchmarks.private import processor_seconds, resident
from scripts.benchmarks.timing import children_cpu

MIB = 1 << 20
MARK = "FGBENCH_PEER"
SAMPLE_SECONDS = 0.1


class NotAvailable(Exception):
    """The tool cannot be measured; the message says why."""


class Processes:
    """The processes that a tool runs in a folder, including those that it leaves running."""

    def __init__(self, folder: Path, environ: Mapping[str, str], name: str) -> None:
        self._folder = folder
        self._mark = f"{folder}:{name}"
        self._environ = {**environ, MARK: self._mark}
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(
        self, command: Sequence[str], seconds: float = 120.0, worst: int = 1
    ) -> bytes:
        """Run a command and return its output.

        ``worst``: the highest exit status that is no failure; 1 is a search that finds nothing.

        Raises:
            NotAvailable: it fails, or does not end in time.

        """
        name = Path(command[0]).name
        try:
            done = subprocess.run(
                command, cwd=self._folder, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True,
                check=False, timeout=seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotAvailable(f"{name} does not end within {seconds:.0f} s") from None
        except OSError as error:
            raise NotAvailable(f"{name}: {error.strerror}") from None
        if done.returncode > worst and not done.stdout:
            said = (
                done.stderr.decode(errors="replace")
                .strip()
                .replace("\n", " ")
                .replace("|", "/")
            )
            raise NotAvailable(f"{name} fails: {said[:90]}")
        return done.stdout

    def start(self, command: Sequence[str]) -> None:
        """Start a server, which keeps running."""
        server = subprocess.Popen(
            command, cwd=self._folder, env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._servers.append(server)

    def memory(self) -> int:
        """Return the resident bytes of the running processes."""
        return sum(resident(pid) for pid in self.running())

    def cpu(self) -> float:
        """Return the processor seconds of the running processes and of their ended children."""
        return children_cpu() + sum(processor_seconds(pid) for pid in self.running())

    def end(self) -> None:
        """Stop the processes that are still running."""
        for pid in self.running():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for server in self._servers:
            server.wait()

    def running(self) -> Iterator[int]:
        """Yield the ids of the processes that are running."""
        mark = f"{MARK}={self._mark}".encode()
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and mark in (
                    process / "environ"
                ).read_bytes().split(b"\0"):
                    yield int(process.name)

    @contextmanager
    def peak(self) -> Iterator[list[int]]:
        """Sample the memory while the block runs; the last number of the list is the maximum."""
        most, ended = [0], threading.Event()

        def sample() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                most.append(max(most[-1], self.memory()))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield most
        finally:
            ended.set()
            thread.join()
