"""Measures MCP against its bars, with a separate daemon and folder."""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.benchmarks.rows import least, most
from scripts.tools.pipes import pipes_of

CALLS = 1000
PIPELINED = 10_000
INDEX_SECONDS = 300
CHARS_PER_TOKEN = 4.4
"""Measured on such lists with cl100k."""
BARS = {
    "stats_p50_ms": most(2),
    "shim_resident_mb": most(20),
    "tools_list_tokens": most(3500),
    "initialize_warm_ms": most(300),
    "initialize_cold_ms": most(2000),
    "pipelined_calls_per_second": least(2000),
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
FGREP = str(Path(sys.executable).with_name("fgrep"))


class Shim:
    """A process of ``fgrep mcp``, run like a host does."""

    def __init__(self, project: Path, environ: dict[str, str], *options: str) -> None:
        self.process = subprocess.Popen(
            [FGREP, "mcp", "--project", str(project), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )

    def request(self, method: str, **params: object) -> dict[str, Any]:
        """Return the answer to one request."""
        line = (
            json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            ).encode()
            + b"\n"
        )
        given, told = pipes_of(self.process)
        given.write(line)
        given.flush()
        answer: dict[str, Any] = json.loads(told.readline())
        return answer

    def resident_mb(self) -> float:
        """Return the current resident memory, in MB."""
        if sys.platform == "linux":
            status = Path(f"/proc/{self.process.pid}/status").read_text(
                encoding="ascii"
            )
            return int(status.partition("VmRSS:")[2].split()[0]) / 1024
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.process.pid)],
            capture_output=True,
            check=True,
        )
        return int(told.stdout) / 1024

    def close(self) -> None:
        """Stop the process like a host does."""
        self.process.communicate(timeout=10)


def measure(project: Path) -> dict[str, float]:
    """Return all figures, by the names of their bars."""
    with _own_state() as (environ, state):
        found = {"initialize_cold_ms": _initialize(project, environ)}
        found["initialize_warm_ms"] = statistics.median(
            _initialize(project, environ) for _ in range(10)
        )
        for_model = Shim(project, environ)
        for_model.request("initialize", **INITIALIZE)
        listed = for_model.request("tools/list")["result"]
        found["tools_list_tokens"] = (
            len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False))
            / CHARS_PER_TOKEN
        )
        for_model.close()
        shim = Shim(project, environ, "--structured")
        shim.request("initialize", **INITIALIZE)
        _until_indexed(shim)
        found |= _latency(shim)
        found["shim_resident_mb"] = round(shim.resident_mb(), 1)
        shim.close()
        found["pipelined_calls_per_second"] = _pipelined(state, project)
    return {name: round(value, 3) for name, value in found.items()}


@contextmanager
def _own_state() -> Iterator[tuple[dict[str, str], Path]]:
    folder = Path(tempfile.mkdtemp(prefix="fgbench"))
    own = {
        "FLASHGREP_STATE_DIR": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder),
        "FLASHGREP_TCP_PORT": "0",
    }
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FLASHGREP_")
    } | own
    try:
        yield environ, folder / "state"
    finally:
        subprocess.run(
            [FGREP, "daemon", "stop"], env=environ, check=False, capture_output=True
        )
        shutil.rmtree(folder, ignore_errors=True)


def _initialize(project: Path, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    shim = Shim(project, environ)
    shim.request("initialize", **INITIALIZE)
    taken = (time.perf_counter() - started) * 1000
    shim.close()
    return taken


def _until_indexed(shim: Shim) -> None:
    """Wait until the indexer has ended, so that it is not measured."""
    until = time.monotonic() + INDEX_SECONDS
    while time.monotonic() < until:
        told = shim.request("tools/call", name="stats", arguments={})["result"][
            "structuredContent"
        ]
        if told["stage"] in {"ready", "failed"}:
            return
        time.sleep(0.2)


def _latency(shim: Shim) -> dict[str, float]:
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        shim.request("tools/call", name="stats", arguments={})
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return {
        "stats_p50_ms": times[len(times) // 2],
        "stats_p99_ms": times[len(times) * 99 // 100],
    }


def _pipelined(state: Path, project: Path) -> float:
    call = {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": "stats", "arguments": {}},
    }
    lines = b"".join(
        json.dumps({**call, "id": at}).encode() + b"\n" for at in range(PIPELINED)
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(state / "daemon.sock"))
        bind = {
            "jsonrpc": "2.0",
            "id": "bind",
            "method": "$/bind",
            "params": {"project": str(project)},
        }
        connection.sendall(json.dumps(bind).encode() + b"\n")
        connection.recv(65536)
        started = time.perf_counter()
        sending = threading.Thread(target=connection.sendall, args=(lines,))
        sending.start()
        answered = 0
        while answered < PIPELINED:
            answered += connection.recv(1 << 20).count(b"\n")
        taken = time.perf_counter() - started
        sending.join()
    return PIPELINED / taken
