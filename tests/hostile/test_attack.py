"""A short form of scripts/attack: a little of each kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECONDS = 1.0
"""For each kind; setting up a daemon takes longer than that."""
KINDS = ["paths", "doors", "messages", "repositories", "kills"]
"""Races, wrong types and damage have tests of their own; floods tell nothing where others take the processor."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_attack_does_no_harm(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "attacks", "--seconds", str(SECONDS), "--seed", "1", kind],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts")))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = int(done.stdout.splitlines()[-1].split()[0])
    assert tried > 0
