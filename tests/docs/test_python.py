"""The examples of docs/python.md run as they are printed."""

import sys

from tests.conftest import DaemonAtHand, MakeProject
from tests.support.examples import read_examples
from tests.support.git import commit

LOCK = '"""Locks."""\n\ndef spin_lock(lock):\n    return 1\n\n\ndef use():\n    spin_lock(use)\n'


def test_the_examples_of_the_page_run_in_order(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"src/lock.py": LOCK})
    commit(root)
    program = "\n".join(example.text for example in read_examples("docs/python.md"))
    python = ("-W", "error", "-")
    run = daemon.run(*python, program=sys.executable, stdin=program, cwd=root)
    assert not run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "src/lock.py:3: def spin_lock(lock):"
    assert "src/lock.py:7: def use(): [8]" in lines
    assert "+    return 2" in lines
    assert (root / "src/new.py").read_text() == "NEW = 1\n"
