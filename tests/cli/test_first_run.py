"""The first minutes: ``scripts/start`` as a newcomer sees it, progress drawn on a terminal, and a daemon set free."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from flashgrep.rpc.connect import DETACH
from scripts.tools.first_run import FIRST_QUERIES
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject

CHECKOUT = Path(__file__).parents[2]


def first_run(
    daemon: DaemonAtHand, folder: Path | str, query: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.tools.first_run", str(folder), query]
    return subprocess.run(
        command,
        env=daemon.environ,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=2 * BOUND,
        check=False,
    )


def test_the_first_run_starts_indexes_finds_and_says_where_to_go_on(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def needle():\n    return 1\n"}, name="my project")
    said = first_run(cold_daemon, root, "needle")
    assert said.returncode == 0, said.stderr
    assert "indexed: 1 file," in said.stderr
    assert "listing" not in said.stderr  # how far it is would fill a log
    assert "a.py:1:def needle():" in said.stdout
    titles = [line for line in said.stdout.splitlines() if line.startswith("== ")]
    assert titles == [
        "== The daemon",
        f"== The index of {root}",
        "== fgrep query 'needle'",
        "== Next steps",
    ]
    steps = said.stdout.partition("== Next steps")[2].splitlines()
    paths = (str(root), str(Path(sys.executable).parent))
    for line in steps:
        assert len(line) < 80 or any(path in line for path in paths)
    assert f"cd '{root}'" in said.stdout
    assert cold_daemon.run("projects", "list").stdout == f"my project  {root}\n"


def test_without_a_query_some_are_tried_until_one_is_found(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.bin": b"\0\1\2"})
    said = first_run(cold_daemon, root)
    assert said.returncode == 1  # there is nothing to be found
    tried = [line for line in said.stdout.splitlines() if "query '" in line]
    assert tried == [f"== fgrep query '{text}'" for text in FIRST_QUERIES]
    assert "== Next steps" in said.stdout
    (root / "a.py").write_text("def main(): pass\n")
    again = first_run(cold_daemon, root)
    assert (again.returncode, again.stdout.count("query '")) == (0, 1)


def test_a_first_run_of_no_folder_stops_there(cold_daemon: DaemonAtHand) -> None:
    said = first_run(cold_daemon, "/no/such/folder", "x")
    assert said.returncode == 2
    assert "no such folder: /no/such/folder" in said.stderr
    assert "query" not in said.stdout


def test_on_a_terminal_progress_is_drawn_and_then_gone(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({f"{at}.txt": "some text\n" * 1000 for at in range(40)})
    ours, theirs = pty.openpty()
    environ = cold_daemon.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [FGREP, "index", str(root)], env=environ, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = read_all(ours)
    assert process.communicate(timeout=2 * BOUND)[0] == f"project  {root}\n".encode()
    assert process.returncode == 0
    assert b"indexed: 40 files" in shown
    assert b"\x1b[2K" in shown  # the bar's line was wiped


def test_a_terminal_gets_colours_and_headings_in_its_width(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "needle\n"})
    daemon.run("projects", "add", str(root))
    ours, theirs = pty.openpty()
    environ = daemon.environ | {"TERM": "xterm"}
    process = subprocess.Popen(
        [FGREP, "query", "needle"], env=environ, cwd=root, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = read_all(ours)
    assert process.wait(BOUND) == 0
    assert b"a.py\x1b[0m\r\n" in shown


def read_all(terminal: int) -> bytes:
    """Return what is written to a terminal until its last writer is gone."""
    pieces = []
    try:
        while piece := os.read(terminal, 65536):
            pieces.append(piece)
    except OSError:  # the system's way to say that nobody is left
        pass
    finally:
        os.close(terminal)
    return b"".join(pieces)


DAEMON = """
import os, sys
kept = int(sys.argv[1])
mask = os.umask(0)
held = sorted(int(name) for name in os.listdir("/dev/fd"))
told = [os.getcwd(), oct(mask), os.getppid() != int(sys.argv[2]), kept in held, int(sys.argv[3]) in held]
os.write(kept, repr(told).encode())
"""


def test_what_is_detached_keeps_one_descriptor_and_nothing_else_of_its_caller(
    tmp_path: Path,
) -> None:
    reader, writer = os.pipe()
    stray = os.open(tmp_path, os.O_RDONLY)
    facts = [str(writer), str(os.getpid()), str(stray)]
    command = [
        sys.executable,
        DETACH,
        str(writer),
        sys.executable,
        "-c",
        DAEMON,
        *facts,
    ]
    done = subprocess.run(
        command, cwd=tmp_path, pass_fds=[writer, stray], timeout=2 * BOUND, check=False
    )
    os.close(writer)
    os.close(stray)
    with os.fdopen(reader, "rb") as told:
        assert told.read() == b"['/', '0o77', True, True, False]"
    assert done.returncode == 0
