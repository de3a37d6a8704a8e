"""Serve one client without the daemon: ``python -m flashgrep.cli.run_alone FD``, FD being its connected socket.

Everything is answered by scanning, and nothing is written: no index, no socket, no state but a temporary folder that
goes with the client.
"""

import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio

from flashgrep.catalogue import PROJECTS_FILE
from flashgrep.cli.run_daemon import assemble
from flashgrep.errors import FlashgrepError
from flashgrep.paths import Paths, make_private, state_folder


def main() -> int:
    """Serve until the client hangs up."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the client, whose end is ours
    try:
        with tempfile.TemporaryDirectory(prefix="flashgrep-") as folder:
            _serve(connection, Path(folder))
    except (FlashgrepError, OSError) as error:
        sys.stderr.write(f"fgrep: {error}\n")
        return 2
    return 0


def _serve(connection: socket.socket, folder: Path) -> None:
    with suppress(OSError):  # which projects there are, if that can be told and trusted
        known = state_folder(os.environ)
        make_private(known)
        shutil.copy(Path(known, PROJECTS_FILE), folder)

    daemon = assemble(Paths(str(folder)), os.environ, {"read_only": True})
    anyio.run(daemon.serve_alone, connection)


if __name__ == "__main__":
    sys.exit(main())
