"""A daemon with the core and some parts: ``python -m tests.support.daemon_with_parts PART…``; says when it is ready."""

import os
import sys

from flashgrep.cli.run_daemon import run
from flashgrep.parts.built_in import BUILT_IN


def report(message: str) -> None:
    """Say that it is ready."""
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    wanted = {"core", *sys.argv[1:]}
    run(
        os.environ,
        {},
        report,
        lambda: [part for part in BUILT_IN if part.name in wanted],
    )
