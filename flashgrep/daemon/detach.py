"""Run a command as a daemon: ``python -I -S detach.py KEPT_FD COMMAND…``; a program of its own, standard library only.

The caller starts it in a new session. It forks once, so that the command is nobody's child (a long-lived client would
otherwise collect zombie daemons), leaves the caller's folder and closes the caller's descriptors.
"""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Fork, clean up, and become the command."""
    if os.fork():
        os._exit(0)
    lifeline = int(sys.argv[1])
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - pathlib would double the cost of this program
        if int(name) > 2 and int(name) != lifeline:  # noqa: PLR2004 - beyond stdin, stdout and stderr
            with suppress(
                OSError
            ):  # the descriptor of the listing itself is already closed
                os.close(int(name))
    os.chdir("/")
    os.umask(0o077)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - there is no shell in between on purpose


if __name__ == "__main__":
    main()
