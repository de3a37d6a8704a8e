"""The examples of docs/first-steps.md run as they are printed."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand
from tests.support.examples import read_examples

MARK = "--- printed ---"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell")
def test_every_command_prints_what_the_page_shows(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    session = [
        step
        for example in read_examples("docs/first-steps.md")
        for step in example.session
    ]
    assert len(session) > 15
    lines = [f"{command}\necho '{MARK}'" for command, _ in session]
    shell = daemon.shell("\n".join(["exec 2>&1", *lines]), tmp_path)
    shown = shell.stdout.split(f"{MARK}\n")[:-1]
    for (command, expected), output in zip(session, shown, strict=True):
        assert (command, output) == (command, expected)
