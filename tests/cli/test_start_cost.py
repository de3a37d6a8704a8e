"""What a command costs before it does anything: processor time, in times of an interpreter that only starts.

A ratio of the least of many turns: neither the machine nor its load changes it much, and a loaded turn is not counted.
"""

import os
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.conftest import FGREP, DaemonAtHand, MakeProject

BARE = (sys.executable, "-I", "-S", "-c", "pass")
LEAST_TURNS = 6
MOST_TURNS = 40


def spend(words: Sequence[str], environ: Mapping[str, str]) -> float:
    """Return the processor time of a program, in seconds; what it prints is thrown away."""
    silent = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    process = os.posix_spawn(words[0], [*words], {**environ}, file_actions=silent)
    _, status, usage = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("--help", 4.5),
        ("query --help", 4.5),
        ("daemon logs --help", 4.5),
        ("query needle", 3.7),
        ("symbol needle", 3.7),
    ],
)
def test_a_command_starts_in_a_few_times_of_a_bare_interpreter(
    daemon: DaemonAtHand,
    project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    most: float,
) -> None:
    root = project({"a.py": "def needle():\n    pass\n"})
    asked = daemon.run("query", "needle", cwd=root)
    assert asked.returncode == 0, asked.stderr
    monkeypatch.chdir(root)
    words = [FGREP, *line.split()]
    command = spend(words, daemon.environ)
    bare = spend(BARE, daemon.environ)
    for turn in range(MOST_TURNS):
        command = min(command, spend(words, daemon.environ))
        bare = min(bare, spend(BARE, daemon.environ))
        if turn >= LEAST_TURNS and command <= most * bare:
            break
    assert command <= most * bare, f"{command * 1000:.1f} ms, {bare * 1000:.1f} bare"
