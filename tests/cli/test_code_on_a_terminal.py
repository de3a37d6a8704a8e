"""Code that commands show on a terminal: its line numbers are the file's, and a long one goes through the pager."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from flashgrep.cli.code_page import format_code
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject

COLOR = re.compile(r"\x1b\[[0-9;]*m")
ROW = re.compile(r" *(\d+)  (.*)")
HEIGHT = 20
FUNCTION = '''\
def count_strangers(connections):
    """Count the strangers among connections, so that a crowd is limited."""
    strangers = 0
    for connection in connections:
        if not connection.authenticated:
            strangers += 1
    return strangers
'''
FILLER = "".join(f"    total += {number}\n" for number in range(300))
FILES = {
    "short.py": FUNCTION,
    "long.py": f"def add_everything_up():\n    total = 0\n{FILLER}    return total\n",
    "notes.txt": "limits for strangers\n",
}


def show(
    daemon: DaemonAtHand, root: Path, *arguments: str, **environ: str
) -> list[str]:
    """Run a command on a terminal, and return the lines that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, 100, 0, 0))
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [FGREP, *arguments],
            cwd=root,
            env={**daemon.environ, "TERM": "xterm", "PAGER": "cat", **environ},
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := screen.read(65536):
                seen += piece
        except OSError:  # Linux's way to say that the other end is closed
            pass
        assert process.wait(30) == 0
    return seen.decode().replace("\r\n", "\n").splitlines()


def read_rows(lines: list[str]) -> list[tuple[int, str]]:
    """Return the rows of code among lines, each with its number."""
    rows = []
    for line in lines:
        match = ROW.fullmatch(COLOR.sub("", line))
        if match:
            rows.append((int(match[1]), match[2]))
    return rows


@pytest.mark.parametrize("name", ["short.py", "notes.txt"])
def test_a_file_is_shown_with_numbers_and_colors(
    daemon: DaemonAtHand, project: MakeProject, name: str
) -> None:
    root = project(FILES)
    lines = show(daemon, root, "read", name)
    assert read_rows(lines) == list(enumerate(FILES[name].splitlines(), 1))
    assert any(COLOR.search(line) for line in lines)
    plain = show(daemon, root, "read", name, NO_COLOR="1")
    assert plain == [COLOR.sub("", line) for line in lines]


@pytest.mark.parametrize("text", ["x = 1\n\n", "\n\nx = 1", "x = 1\n", "y\n\n\nx = 1"])
def test_blank_lines_around_it_leave_code_its_colors(text: str) -> None:
    piece = {"text": text, "path": "a.py", "first": 1}
    shown = format_code([piece], in_color=True).decode()
    assert read_rows(shown.splitlines()) == list(enumerate(text.splitlines(), 1))
    assert "x = 1" not in shown


def test_an_empty_file_has_no_line(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project({"empty.py": "", "blank.py": "\n"})
    assert show(daemon, root, "read", "empty.py") == []
    assert read_rows(show(daemon, root, "read", "blank.py")) == [(1, "")]


@pytest.mark.parametrize(
    "arguments", [("slice", "long.py", "100", "110"), ("read", "long.py:100-110")]
)
def test_a_part_has_the_numbers_of_the_file_and_a_pipe_only_its_text(
    daemon: DaemonAtHand, project: MakeProject, arguments: tuple[str, ...]
) -> None:
    root = project(FILES)
    wanted = FILES["long.py"].splitlines()[99:110]
    assert read_rows(show(daemon, root, *arguments)) == list(enumerate(wanted, 100))
    run = subprocess.run(
        [FGREP, *arguments],
        cwd=root,
        env=daemon.environ,
        capture_output=True,
        check=True,
    )
    assert run.stdout.decode().splitlines() == wanted


def test_search_by_meaning_shows_code_and_every_line_is_the_files(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    built = daemon.run("index-codebase", ".", cwd=root)
    assert built.returncode == 0, built.stderr
    lines = show(daemon, root, "search-code", "count strangers, add everything up")
    rows = read_rows(lines)
    assert (1, FUNCTION.splitlines()[0]) in rows, lines
    places = [COLOR.sub("", line) for line in lines if COLOR.sub("", line)[:1] != " "]
    assert any(place.startswith("short.py:1: function count_") for place in places)
    file = ""
    for line in (COLOR.sub("", shown) for shown in lines):
        if (row := ROW.fullmatch(line)) is None:
            file = line.partition(":")[0] if ":" in line else file
        else:
            assert FILES[file].splitlines()[int(row[1]) - 1] == row[2]


def test_of_a_long_function_a_terminal_shows_what_answers(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    steps = [f"    total = total + rate({number})" for number in range(40)]
    answer = "    send_reminder_by_mail(account)"
    text = "\n".join(["def settle(account):", "    total = 0", *steps, answer, *steps])
    root = project({"pay.py": f"{text}\n", **FILES})
    assert daemon.run("index-codebase", ".", cwd=root).returncode == 0
    lines = show(daemon, root, "search-code", "who is sent a reminder by mail")
    rows = read_rows(lines[: lines.index("")])
    assert (43, answer) in rows
    assert (1, "def settle(account):") in rows
    assert len(rows) <= 12


def test_a_shell_gets_lines_by_words_before_there_is_an_index(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    run = subprocess.run(
        [FGREP, "search-code", "strangers limited"],
        cwd=root,
        env=cold_daemon.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "notes.txt:1:limits for strangers\n" in run.stdout
    assert "not found" not in run.stderr


def test_what_is_longer_than_the_terminal_goes_through_the_pager(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    pager = "sed s/^/paged/"
    long = show(daemon, root, "read", "long.py", FLASHGREP_PAGER=pager)
    assert len(long) == len(FILES["long.py"].splitlines())
    assert all(line.startswith("paged") for line in long)
    short = show(daemon, root, "read", "short.py", FLASHGREP_PAGER=pager)
    assert not any(line.startswith("paged") for line in short)


def test_a_pager_that_is_left_early_is_no_error(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    lines = "".join(f"line {number}\n" for number in range(20_000))
    root = project({"big.txt": lines})
    assert show(daemon, root, "read", "big.txt", FLASHGREP_PAGER="head -n 3") != []


PATIENT_PAGER = """\
#!/bin/sh
trap '' INT
read -r first
echo ready
cat > all
read -r more < go
echo "shown $(wc -l < all)"
"""


@pytest.mark.parametrize("command", ["read long.py", "query --all total"])
def test_an_interrupt_is_the_pagers_until_it_ends(
    daemon: DaemonAtHand, project: MakeProject, tmp_path: Path, command: str
) -> None:
    root = project(FILES)
    pager = tmp_path / "pager"
    pager.write_text(PATIENT_PAGER)
    pager.chmod(0o755)
    os.mkfifo(root / "go")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, 100, 0, 0))
    environ = {**daemon.environ, "TERM": "xterm", "FLASHGREP_PAGER": str(pager)}
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [FGREP, *command.split()], cwd=root, env=environ, stdout=theirs
        )
        os.close(theirs)
        seen = b""
        while b"ready" not in seen:
            seen += screen.read(65536)
        process.send_signal(signal.SIGINT)
        go = os.open(root / "go", os.O_RDWR)
        os.write(go, b"\n")
        assert process.wait(BOUND) == 0
        os.close(go)
        assert b"shown 3" in seen + screen.read(65536)
