"""The examples of docs/first-steps.md run as they are printed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import BOUND, FGREP, DaemonAtHand

PAGE = Path(__file__).parents[2] / "docs" / "first-steps.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
MARK = "--- printed ---"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell")
def test_every_command_prints_what_the_page_shows(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    printed = "".join(BLOCK.findall(PAGE.read_text("utf-8")))
    commands = re.findall(r"^\$ (.+)$", printed, re.MULTILINE)
    wanted = [part.partition("\n")[2] for part in re.split(r"(?m)^\$ ", printed)[1:]]
    assert len(commands) == len(wanted) > 15
    lines = [f"{command}\necho '{MARK}'" for command in commands]
    programs = os.pathsep.join((str(Path(FGREP).parent), daemon.environ["PATH"]))
    shell = subprocess.run(
        ["bash", "-c", "exec 2>&1\n" + "\n".join(lines)],
        cwd=tmp_path,
        env={**daemon.environ, "PATH": programs},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * BOUND,
        check=False,
    )
    shown = shell.stdout.split(f"{MARK}\n")[:-1]
    for command, output, expected in zip(commands, shown, wanted, strict=True):
        assert (command, output) == (command, expected)
