"""Typed access to the pipes of a process."""

from subprocess import Popen
from typing import IO, AnyStr


def pipes_of(process: Popen[AnyStr]) -> tuple[IO[AnyStr], IO[AnyStr]]:
    """Return a process's stdin and stdout; raise ValueError unless both are pipes."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    return process.stdin, process.stdout
