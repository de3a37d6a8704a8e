"""The pipes of a process that was started with both, typed as there."""

from subprocess import Popen
from typing import IO, AnyStr


def pipes_of(process: Popen[AnyStr]) -> tuple[IO[AnyStr], IO[AnyStr]]:
    """Return a process's standard input and output; ValueError if one is no pipe."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    return process.stdin, process.stdout
