"""What a file's name and text may do to the terminal they are shown on: nothing."""

import base64
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from flashgrep.cli.method_commands import render
from flashgrep.methods.query import render_query
from flashgrep.methods.reading import render_slice
from flashgrep.methods.text import Style
from tests.conftest import FGREP, DaemonAtHand, MakeProject

ORDERS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f"
"""Set the title, clear the screen, turn red (by a C1 control), delete."""


def terminal_sees(daemon: DaemonAtHand, root: Path, *arguments: str) -> bytes:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [FGREP, *arguments],
            cwd=root,
            env=daemon.environ,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := screen.read(65536):
                seen += piece
        except OSError:  # Linux's way to say that the other end is closed
            pass
        assert process.wait(30) in {0, 1}
    return seen


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "needle"),
        ("files",),
        ("glob", "*"),
        ("symbol", "needle"),
        ("slice", "a.py", "1", "1"),
    ],
)
def test_no_order_of_a_file_reaches_the_terminal(
    daemon: DaemonAtHand, project: MakeProject, arguments: tuple[str, ...]
) -> None:
    text = f"needle = '{ORDERS}'\n"
    root = project({"a.py": text, "b\x1b]0;owned\x07\n.py": text})
    seen = terminal_sees(daemon, root, *arguments)
    seen = re.sub(rb"\x1b\[[0-9;]*m", b"", seen)
    assert b"\\x1b]0;owned\\x07" in seen
    assert not set(seen) & {0x07, 0x1B, 0x7F}
    assert "\x9b".encode() not in seen


def test_a_pipe_gets_the_bytes_as_they_are(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": f"needle = '{ORDERS}'\r\n"})
    found = subprocess.run(
        [FGREP, "query", "needle"],
        cwd=root,
        env=daemon.environ,
        capture_output=True,
        check=True,
    )
    assert found.stdout == b"a.py:1:needle = '" + ORDERS.encode() + b"'\r\n"


def test_a_name_is_one_line_on_a_terminal_and_text_keeps_its_line_ends() -> None:
    hit = {
        "file_path": "",
        "file_path_bytes": base64.b64encode(b"a\nb\xff").decode(),
        "start_line": 1,
        "column": 1,
    }
    terminal = Style(is_person=True)
    shown = render(
        {"results": [{**hit, "end_line": 1, "text": "x\rhidden"}]},
        terminal,
        render_query,
    )
    assert shown.stdout == b"a\\x0ab\xff\n1:x\\x0dhidden\n"
    slice_read = {"file_path": "a", "start_line": 1, "content": "one\r\ntwo\tthree\n"}
    read = render(slice_read, terminal, render_slice)
    assert read.code == ("one\r\ntwo\tthree\n",)
