"""The commands in the tables of pages: coming from other tools, and troubleshooting."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from flashgrep.base.paths import bundled_ripgrep
from tests.conftest import DaemonAtHand
from tests.support.examples import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell"),
]
COMMAND = re.compile(r"`((?:fgrep|rg) [^`]+)`")
MEANINGS = {
    "PATTERN": r"'ret\w+'",
    "TEXT": "spin_lock",
    "DIR": "mm",
    "FOLDER": ".",
    "FILE": "~/report.txt",
    "HOST": "codex",
    "QUESTION": "'kill a process'",
    "NAME": "oom_badness",
    "NEW": "lock",
    "ab+c": "spin_+lock",
}
"""What stands for the words in capitals, and for a pattern that nothing has."""
NEEDS = {
    "fgrep pick": "a terminal; tested with one in tests/pick",
    "fgrep daemon logs -f": "an interrupt; tested in tests/cli/test_log_and_report.py",
    "fgrep daemon restart": "a daemon of its own; tested in tests/daemon",
    "fgrep projects remove": "a project to lose; tested in tests/cli",
}
"""Commands that are not run here, and why."""


def read_commands(page: str, column: int) -> list[str]:
    """Return the different commands in a column of a page's tables."""
    commands: list[str] = []
    for line in (ROOT / page).read_text("utf-8").splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if line.startswith("| ") and len(cells) > column:
            commands += COMMAND.findall(cells[column])
    return [*dict.fromkeys(commands)]


def fill_in(command: str) -> str:
    """Return a command with an example in each of its gaps."""
    for word, meaning in MEANINGS.items():
        command = command.replace(word, meaning)
    return command


def is_run(command: str) -> bool:
    return not any(command.startswith(name) for name in NEEDS)


def test_what_one_types_instead_finds_something(
    daemon: DaemonAtHand, linux: Path
) -> None:
    commands = [*filter(is_run, read_commands("docs/coming-from.md", 2))]
    assert len(commands) > 15
    for command in commands:
        ran = daemon.shell(fill_in(command), linux)
        assert (ran.returncode, bool(ran.stdout)) == (0, True), (command, ran.stderr)


def test_it_prints_the_lines_that_ripgrep_prints(
    daemon: DaemonAtHand, linux: Path
) -> None:
    ripgrep = bundled_ripgrep()
    if ripgrep is None:
        pytest.skip("ripgrep is not installed with us")
    text = (ROOT / "docs/coming-from.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `rg ([^`]+)` \| `fgrep (query [^`]+)` \|", text, re.MULTILINE
    )
    compared = [(theirs, ours) for theirs, ours in rows if "--json" not in theirs]
    assert len(compared) > 2
    for theirs, ours in compared:
        line = f"{shlex.quote(ripgrep)} -n --sort path {fill_in(theirs)}"
        found = daemon.shell(line, linux)
        assert found.returncode == 0, (theirs, found.stderr)
        assert daemon.shell(f"fgrep {fill_in(ours)}", linux).stdout == found.stdout


def test_what_to_do_can_be_done(daemon: DaemonAtHand, linux: Path) -> None:
    page = "docs/troubleshooting.md"
    commands = [*filter(is_run, read_commands(page, 3))]
    (last,) = re.findall(r"`(fgrep doctor --report FILE)`", (ROOT / page).read_text())
    assert len(commands) > 10
    for command in [*commands, last]:
        ran = daemon.shell(fill_in(command), linux)
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        assert ran.stdout or "nothing to remove" in ran.stderr, command
