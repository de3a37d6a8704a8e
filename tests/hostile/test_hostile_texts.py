"""Sources made to cost: no regular expression that reads them tries the same in many ways."""

import subprocess
import sys
from pathlib import Path

import pytest

BOUND = 60
"""Seconds; all texts take one or two."""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "package",
    [
        "flashgrep.files",
        "flashgrep.parts.meaning.search",
        "flashgrep.parts.navigation",
        "flashgrep.parts.navigation.resolution",
        "flashgrep.parts.symbols",
        "flashgrep.parts.symbols.parse",
    ],
)
def test_no_expression_takes_long_on_a_text_made_for_it(package: str) -> None:
    # In a process of its own: nothing ends an expression that is being matched.
    command = [sys.executable, "-m", "tests.support.hostile_texts", package]
    try:
        tried = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=BOUND
        )
    except subprocess.TimeoutExpired as expired:
        tried_last = (expired.stdout or b"").splitlines()[-1]
        pytest.fail(f"takes too long: {tried_last.decode()}")
    slow = [line for line in tried.stdout.splitlines() if line.startswith("slow: ")]
    assert slow == []
    assert tried.stdout.startswith("flashgrep.")
