"""The tests' language server on its own PATH, and observation of its processes."""

import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import BOUND


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for PATH, with a server for Python."""
    found = tmp_path / "bin"
    found.mkdir()
    install(found)
    return found


def install(folder: Path) -> None:
    """Put the tests' server into a folder, as `pylsp`."""
    script = folder / "pylsp"
    shutil.copy(Path(__file__).parent / "fake_server.py", folder / "pylsp.py")
    script.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "$0.py" "$@"\n'
    )  # the path may contain a space
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (folder / "mode").write_text("good")


def read_log(folder: Path, word: str) -> list[int]:
    """Return the numbers that servers logged after a word: process ids, versions, requests."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ")]


def describe(pid: int, what: str) -> str:
    """Return the system's description of a process; empty if it has ended."""
    done = subprocess.run(
        ["ps", "-o", f"{what}=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def is_running(pid: int) -> bool:
    return describe(pid, "stat")[:1] not in {"", "Z"}


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended; a zombie counts as ended."""
    wait_until(lambda: not is_running(pid))


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds that depends on other processes."""
    ends, event = time.monotonic() + BOUND, threading.Event()
    while not holds():
        assert time.monotonic() < ends, "the condition was never met"
        event.wait(0.01)
