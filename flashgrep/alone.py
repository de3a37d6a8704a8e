"""Answers without the daemon, for a client that can neither reach nor start it. Standard library only.

A state folder that cannot be written, a full disk or a sandbox must not take reading from anybody: a child process
serves this client alone, by scanning (``cli/run_alone.py``).
"""

import os
import socket
import sys
from collections.abc import Mapping

from flashgrep.reach import READY_SECONDS, ask

MODULE = "flashgrep.cli.run_alone"


def connect_alone(environ: Mapping[str, str], why: OSError) -> socket.socket:
    """Start a process that serves nobody else, say so and why on standard error, and return a connection to it.

    Raises:
        OSError: not even that can be started.

    """
    os.write(2, f"fgrep: {why}; answering without the daemon, by scanning\n".encode(errors="replace"))
    ours, theirs = socket.socketpair()
    with theirs:
        os.set_inheritable(theirs.fileno(), True)
        # -P: the folder the user stands in must not be importable, a repository may hold a json.py.
        command = [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())]
        # What it prints must not come between the lines of a protocol.
        os.posix_spawn(sys.executable, command, environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
    ours.settimeout(READY_SECONDS)
    ask(ours, "$/version", {})
    ours.settimeout(None)
    return ours
