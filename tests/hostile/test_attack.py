"""A short form of scripts/attack: a little of each kind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECONDS = 3.0
"""For all kinds together; setting up a daemon for each takes longer than that."""
KINDS = ["paths", "doors", "messages", "repositories", "kills"]
"""Races, wrong types and damage have tests of their own; floods tell nothing where others take the processor."""


def test_a_short_attack_does_no_harm() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "attacks",
            "--seconds",
            str(SECONDS),
            "--seed",
            "1",
            *KINDS,
        ],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts"))),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = dict(re.findall(r"^(\w+): (\d+) tried", done.stdout, re.MULTILINE))
    assert list(tried) == KINDS
    assert all(int(count) for count in tried.values()), done.stdout
