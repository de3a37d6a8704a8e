"""Stopping the user's daemon: by asking it, else by signals."""

from contextlib import suppress

from flashgrep.cli.daemon_client import (
    ask_running,
    fail,
    failing_cleanly,
    find_user_paths,
)
from flashgrep.daemon import lifecycle


def stop_daemon() -> bool:
    """Ask the daemon to stop, and send signals if it does not answer; return whether one was running."""
    paths = find_user_paths()
    if lifecycle.find_holder(paths) is None:
        return False
    with failing_cleanly():
        with suppress(OSError):  # it is stuck, or went by itself; signals come next
            ask_running("$/shutdown")
        if not lifecycle.wait_until_free(
            paths, lifecycle.STOP_SECONDS
        ) and not lifecycle.terminate(paths):
            fail(
                f"the daemon (process {lifecycle.find_holder(paths)}) cannot be stopped"
            )
    return True
