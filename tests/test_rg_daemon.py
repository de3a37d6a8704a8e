"""``fgrep rg`` as people run it: the client, the daemon, and output that comes in pieces."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import BOUND, FGREP, DaemonAtHand
from tests.rgtree import TIMES, Said, make_tree, theirs

MANY = 60_000
"""Lines of a file whose matches are several pieces of output."""
COMMANDS = [
    *("foo", "-n foo sub", "--json foo -g *.c", "-c foo", "--files -0", "-l foo ..", "zzz", "foo nope", "--nosuch foo"),
    *(
        "--color always -C1 foo a.txt",
        "-r X$0 foo b.py",
        "--stats foo",
        "-uu -g !.flashgrep foo .hid",
        "foo binary.bin",
    ),
]


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("rg") / "tree"
    root.mkdir()
    make_tree(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    added = daemon.run("index", str(root))
    assert added.returncode == 0, added.stderr
    yield root
    assert daemon.run("projects", "remove", str(root)).returncode == 0


def said(daemon: DaemonAtHand, arguments: list[str], cwd: Path) -> Said:
    done = subprocess.run(
        [FGREP, "rg", *arguments], cwd=cwd, env=daemon.environ, capture_output=True, timeout=BOUND, check=False
    )
    assert b"internal error" not in done.stderr
    return Said(TIMES.sub(b"", done.stdout), done.returncode)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_daemon_answers_as_ripgrep_would(daemon: DaemonAtHand, root: Path, command: str) -> None:
    arguments = command.split()
    assert said(daemon, arguments, root) == theirs(arguments, os.fsencode(root))


def test_a_file_saved_just_now_is_found(daemon: DaemonAtHand, root: Path) -> None:
    (root / "sub" / "new.c").write_bytes(b"int just_saved;\n")
    assert said(daemon, ["-n", "just_saved"], root) == Said(b"sub/new.c:1:int just_saved;\n", 0)
    (root / "sub" / "new.c").unlink()
    assert said(daemon, ["-n", "just_saved"], root) == Said(b"", 1)


def test_a_folder_outside_of_every_project_is_scanned(daemon: DaemonAtHand, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"foo\n")
    assert said(daemon, ["foo"], tmp_path) == Said(b"one.txt:foo\n", 0)
    assert said(daemon, ["foo", str(tmp_path)], Path("/")) == Said(b"%b/one.txt:foo\n" % os.fsencode(tmp_path), 0)


def test_output_of_many_pieces_arrives_whole(daemon: DaemonAtHand, tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"".join(b"%d %b\n" % (number, b"x" * 60) for number in range(MANY)))
    found = said(daemon, ["-n", "x"], tmp_path)
    assert len(found.stdout) > 1 << 22
    assert found == theirs(["-n", "x"], os.fsencode(tmp_path))


def test_a_reader_that_has_enough_ends_the_command_and_harms_nobody(daemon: DaemonAtHand, tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"".join(b"%d %b\n" % (number, b"x" * 60) for number in range(MANY)))
    command = [FGREP, "rg", "x"]
    with subprocess.Popen(command, cwd=tmp_path, env=daemon.environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"big.txt:0 " + b"x" * 60 + b"\n"
        process.stdout.close()
        assert process.wait(BOUND) == 0
    assert said(daemon, ["-c", "x"], tmp_path) == Said(b"big.txt:%d\n" % MANY, 0)


def test_help_lists_the_flags_there_are(daemon: DaemonAtHand, tmp_path: Path) -> None:
    shown = said(daemon, ["--help"], tmp_path)
    assert shown.status == 0
    assert b"-i, --ignore-case\n" in shown.stdout
    assert b"not --pcre2: " in shown.stdout
