"""Messages made to hold the daemon up: whatever one client sends, the others are answered at once."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, Wire, short_folder

MANY = 300_000
HUGE = "x" * 7_000_000
NARROW = 1024 * 1024 - 1000
"""Bytes that fit into a line which does not write."""
MESSAGES: dict[str, tuple[str, Any]] = {
    "a million arguments": (
        "$/cli",
        {"argv": ["query", *(["x"] * 1_000_000)], "cwd": "/", "width": 80},
    ),
    "as many options as fit": (
        "$/cli",
        {"argv": ["query", "x", *(["-g", "x"] * 40_000)], "cwd": "/", "width": 80},
    ),
    "languages": ("query", {"text": "x", "language": ["py"] * 500_000}),
    "operations": (
        "batch_write_code",
        {"operations": [{"id": "a", "file_path": "b"}] * 90_000},
    ),
    "operations as fit": (
        "batch_write_code",
        {"operations": [{"id": "a", "nothing": "b"}] * 30_000},
    ),
    "a long glob": ("query", {"text": "x", "include": [HUGE]}),
    "globs of sets": ("query", {"text": "x", "include": ["[!a]" * 1000] * 250}),
    "unknown parameters": ("query", {"text": "x", **{f"k{n}": 1 for n in range(MANY)}}),
    "unknown parameters as fit": (
        "query",
        {"text": "x", **{f"k{n}": 1 for n in range(90_000)}},
    ),
    "payload": (
        "search_code_by_payload",
        {"payload": {f"k{n}": 1 for n in range(MANY)}},
    ),
    "an address": (
        "resources/read",
        {"uri": "flashgrep://project/file/" + "%41" * (NARROW // 4)},
    ),
    "a long address": ("resources/read", {"uri": "flashgrep://project/file/" + HUGE}),
    "a tool's name": ("tools/call", {"name": HUGE, "arguments": {}}),
    "a prompt's argument": (
        "prompts/get",
        {"name": "trace", "arguments": {"symbol": HUGE}},
    ),
    "empty lists": ("query", [[]] * 2_500_000),
    "empty lists as fit": ("query", {"text": [[]] * 99_000}),
}
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the daemon's processor time is read from /proc"
)


@pytest.fixture(scope="module")
def lines() -> dict[str, bytes]:
    return {
        name: json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ).encode()
        + b"\n"
        for name, (method, params) in MESSAGES.items()
    }


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    folder = short_folder()
    (folder / "a.py").write_text("x = 1\n")
    daemon.add(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def pid(daemon: DaemonAtHand) -> int:
    return int(daemon.status()["pid"])


def processor_seconds(pid: int) -> float:
    """Return the processor time a process has used: unlike the time passed, it does not depend on who else runs."""
    fields = (
        Path(f"/proc/{pid}/stat")
        .read_text(encoding="ascii")
        .rpartition(") ")[2]
        .split()
    )
    return (int(fields[11]) + int(fields[12])) / 100


def slowest_answer(polite: Wire, ended: threading.Event) -> float:
    slowest = 0.0
    while not ended.is_set():
        started = time.monotonic()
        polite.call("stats")
        slowest = max(slowest, time.monotonic() - started)
    return slowest


@pytest.mark.parametrize("name", MESSAGES)
def test_no_message_keeps_others_waiting(
    daemon: DaemonAtHand, root: Path, pid: int, lines: dict[str, bytes], name: str
) -> None:
    where = (
        None if MESSAGES[name][0] == "$/cli" else root
    )  # the control socket alone answers it
    with (
        closing(daemon.wire("unix", root)) as polite,
        closing(daemon.wire("unix", where)) as hostile,
    ):
        hostile.call("stats")
        attempts = []
        for _ in range(3):  # another process may have had the processor in one of them
            used, ended, slowest = processor_seconds(pid), threading.Event(), [0.0]
            pinging = threading.Thread(
                target=lambda s=slowest, e=ended: s.append(slowest_answer(polite, e))
            )
            pinging.start()
            hostile.send(lines[name])
            answer = hostile.receive()
            ended.set()
            pinging.join()
            assert answer["error"]["code"] in {-32602, -32003}, str(answer)[:500]
            assert len(str(answer)) < 50_000
            attempts.append((slowest[-1], processor_seconds(pid) - used))
            if attempts[-1][0] < 0.1:
                break
        assert min(slow for slow, _ in attempts) < 1, attempts
        assert min(used for _, used in attempts) < 0.5, attempts
