"""What each Python of the measuring environment does when it starts: measure, and be killed only after saving."""

import os
import signal
import subprocess
import time

import coverage

SAVE_SECONDS = 2.0
"""Saving takes 10 ms; a process that is stopped or in C code for this long is killed without."""

POLL_SECONDS = 0.005


def begin(config: str, data: str) -> None:
    """Measure by the settings in ``config``, saving in files that begin with ``data``."""
    os.environ.update(COVERAGE_PROCESS_START=config, COVERAGE_FILE=data)
    coverage.process_startup()
    # The product ends its workers by killing them, and what they have run would be lost.
    subprocess.Popen.kill = _ask_and_kill  # type: ignore[method-assign,assignment] # everybody's


def _ask_and_kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    until = time.monotonic() + SAVE_SECONDS
    while not _ended(process.pid) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    process.send_signal(signal.SIGKILL)


def _ended(pid: int) -> bool:
    """Say whether a child ended, leaving its status to whoever waits for it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
