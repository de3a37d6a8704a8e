"""The examples for a terminal and for scripts run as they are printed, in a project that has what they name."""

import json
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand
from tests.support.examples import Example, find_example, read_examples
from tests.support.terminal import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell"),
]
NEEDS = {
    "pick": "a terminal; tested with one in tests/pick",
}
"""Commands of the page that are not run here, and why."""
NETCAT = """\
import socket, sys
with socket.create_connection(sys.argv[-2:]) as peer:
    peer.sendall(sys.stdin.buffer.read())
    peer.shutdown(socket.SHUT_WR)
    sys.stdout.write(peer.makefile().read())
"""
"""What ``nc -N`` does, for machines without it."""
WIDTH = 160
"""Columns: no line of the README's is wrapped."""


def run_all(daemon: DaemonAtHand, example: Example, folder: Path) -> str:
    """Run the commands of a block in one shell, without those that install programs; return what they print."""
    lines = [line for line in example.commands if not line.startswith("pip")]
    ran = daemon.shell("set -e\n" + "\n".join(lines), folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def has_netcat() -> bool:
    """Return whether there is a netcat with the option of the page; not every one has it."""
    program = shutil.which("nc")
    if program is None:
        return False
    usage = subprocess.run([program, "-h"], capture_output=True, text=True, check=False)
    return "-N" in usage.stdout + usage.stderr


def test_every_command_of_the_page_for_terminals_finds_what_it_names(
    daemon: DaemonAtHand, linux: Path
) -> None:
    commands = find_example("docs/terminal.md", "fgrep query").commands
    assert len(commands) > 15
    for line in commands:
        if line.split()[1] in NEEDS:
            continue
        ran = daemon.shell(line, linux)
        assert ran.returncode == 0, (line, ran.stderr)
        assert ran.stdout, line


def test_completion_and_the_manual_page_are_put_where_the_page_says(
    daemon: DaemonAtHand, linux: Path
) -> None:
    example = find_example("docs/terminal.md", "mkdir")
    for line in example.commands:
        reader = line.rpartition("|")[2].split()[0]
        if reader == "man" and shutil.which("man") is None:
            continue
        ran = daemon.shell(line, linux)
        assert ran.returncode == 0, (line, ran.stderr)
    home = Path(daemon.environ["HOME"])
    for file in (
        ".local/share/bash-completion/completions/fgrep",
        ".zfunc/_fgrep",
        ".config/fish/completions/fgrep.fish",
    ):
        assert "search-code" in (home / file).read_text()


def test_a_terminal_shows_what_the_readme_shows(
    daemon: DaemonAtHand, linux: Path
) -> None:
    session = find_example("README.md", "$ ").session
    assert len(session) > 3
    terminal = Terminal(linux, daemon.environ_of_shell, WIDTH)
    with closing(terminal):
        for command, output in session:
            shown = terminal.type(command)
            # A terminal counts columns from the line's start, the page from the number's end.
            expected = [line.expandtabs().rstrip() for line in output.splitlines()]
            assert (command, shown.lines) == (command, expected)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_commands_find_what_they_ask_for(
    daemon: DaemonAtHand, linux: Path, page: str
) -> None:
    printed = run_all(daemon, find_example(page, "pipx"), linux)
    assert printed == f"linux  {linux}\nmm/page.c:2:int spin_lock(void)\n"


def test_the_request_of_a_pipe_is_answered(daemon: DaemonAtHand, linux: Path) -> None:
    printed = run_all(daemon, find_example("README.md", "echo"), linux)
    hits = json.loads(printed)["result"]["results"]
    assert [hit["file_path"] for hit in hits] == ["mm/page.c"]


def test_the_request_of_the_page_for_scripts_is_answered(
    daemon: DaemonAtHand, linux: Path, tmp_path: Path
) -> None:
    (example,) = read_examples("docs/scripts.md")
    port = daemon.status()["tcp"]["port"]
    script = example.text.replace("/home/me/src/linux", str(linux))
    script = script.replace("7777", str(port))
    folders = [daemon.environ_of_shell["PATH"]]
    if not has_netcat():
        program = tmp_path / "netcat.py"
        program.write_text(NETCAT)
        # By a shell, since a first line may name no interpreter with a blank in its path.
        words = shlex.join([sys.executable, str(program)])
        netcat = tmp_path / "nc"
        netcat.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        netcat.chmod(0o755)
        folders.insert(0, str(tmp_path))
    answer = daemon.shell(script, linux, PATH=":".join(folders))
    assert answer.returncode == 0, answer.stderr
    hits = json.loads(answer.stdout)["result"]["results"]
    assert [hit["file_path"] for hit in hits] == ["mm/page.c"]
