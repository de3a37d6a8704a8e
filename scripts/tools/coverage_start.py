"""Start-up code of each Python in the measuring environment: it measures, and saves its data before it is killed."""

import os
import signal
import subprocess
import time

import coverage

SAVE_SECONDS = 2.0
"""Time to save, which takes 10 ms; a process that is stopped or busy in C code for longer is killed without saving."""

POLL_SECONDS = 0.005


def begin(config: str, data: str) -> None:
    """Measure with the settings in ``config``, saving to files with the prefix ``data``."""
    os.environ.update(COVERAGE_PROCESS_START=config, COVERAGE_FILE=data)
    coverage.process_startup()
    # The product kills its workers, so their data would be lost.
    subprocess.Popen.kill = _ask_and_kill  # type: ignore[method-assign,assignment] # for all processes


def _ask_and_kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    until = time.monotonic() + SAVE_SECONDS
    while not _ended(process.pid) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    process.send_signal(signal.SIGKILL)


def _ended(pid: int) -> bool:
    """Return whether a child has ended, without reaping it."""
    try:
        return (
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        )
    except ChildProcessError:
        return True
