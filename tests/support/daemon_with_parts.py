"""A daemon with the core and some parts: ``python -m tests.support.daemon_with_parts PART…``; says when it is ready."""

import gc
import os
import sys
from importlib import import_module


def report(message: str) -> None:
    """Say that it is ready."""
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    gc.disable()  # while everything is imported, as in a daemon
    built_in = import_module("flashgrep.parts.built_in").BUILT_IN
    run = import_module("flashgrep.cli.run_daemon").run
    gc.enable()
    wanted = {"core", *sys.argv[1:]}
    parts = [part for part in built_in if part.name in wanted]
    run(os.environ, {}, report, lambda: parts)
