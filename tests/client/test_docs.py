"""The examples of docs/python.md run as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import BOUND, DaemonAtHand, MakeProject
from tests.support.git import commit

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
LOCK = '"""Locks."""\n\ndef spin_lock(lock):\n    return 1\n\n\ndef use():\n    spin_lock(use)\n'


def test_the_examples_of_the_page_run_in_order(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"src/lock.py": LOCK})
    commit(root)
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=program,
        cwd=root,
        env=daemon.environ,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert not run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "src/lock.py:3: def spin_lock(lock):"
    assert "src/lock.py:7: def use(): [8]" in lines
    assert "+    return 2" in lines
    assert (root / "src/new.py").read_text() == "NEW = 1\n"
