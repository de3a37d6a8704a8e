"""The commands of CONTRIBUTING.md that show the modules and the way of a call."""

import shutil

import pytest

from tests.conftest import DaemonAtHand
from tests.support.examples import ROOT, find_example

NEEDS = {"scripts/walk": "five seconds of processor time: it indexes the package"}
"""Commands that are not run here, and why."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell")
def test_the_modules_are_shown(daemon: DaemonAtHand) -> None:
    for command in find_example("CONTRIBUTING.md", "scripts/metrics").commands:
        script = command.split()[0]
        assert (ROOT / script).is_file()
        if script not in NEEDS:
            shown = daemon.shell(command, ROOT)
            assert (shown.returncode, shown.stderr) == (0, "")
            assert "catalogue.py" in shown.stdout
