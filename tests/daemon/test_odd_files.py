"""Something else in the place of one of our files: nobody waits for it or reads it without end, and the rest works."""

import os
import shutil
from pathlib import Path

import pytest

from flashgrep.base.plain_files import read_plain_file, replace_plain_file
from tests.conftest import DaemonAtHand, MakeProject

KINDS = ("pipe", "endless", "sparse", "no text", "folder", "nowhere")
FILES = (
    "projects.json", "projects.json.new", "daemon.log", "crash.log", "gain.json", "gain.json.new", "commands.tsv",
    "token.new",
)  # fmt: skip
"""Of the state folder; the daemon can do without each."""
NEEDED = ("daemon.lock", "start.lock", "daemon.sock", "token")


def put(path: Path, kind: str) -> None:
    """Put something odd at a path."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "nowhere":
        path.symlink_to("/nowhere/at/all")
    elif kind == "folder":
        path.mkdir()
        (path / "file").touch()
    elif kind == "no text":
        path.write_bytes(b'\xff\0{"projects": [')
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project({"a.txt": "needle\n"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_the_daemon_does_without_files_that_are_none(
    cold_daemon: DaemonAtHand, root: Path, kind: str
) -> None:
    state = Path(cold_daemon.paths.state)
    state.mkdir(mode=0o700, exist_ok=True)
    for name in FILES:
        put(state / name, kind)
    for words in (["index", "."], ["query", "needle"]):
        answer = cold_daemon.run(*words, cwd=root)
        assert answer.returncode == 0, answer
        assert "needle" in answer.stdout or words[0] == "index"
        assert "Traceback" not in answer.stderr
        assert "without the daemon" not in answer.stderr
    for words in (
        ["daemon", "status"], ["doctor"], ["doctor", "--report", str(root / "report")], ["gain"], ["no-such-command"],
        ["uninstall", "--dry-run"],
    ):  # fmt: skip
        answer = cold_daemon.run(*words, cwd=root)
        assert "Traceback" not in answer.stderr, answer
    shown = cold_daemon.run("daemon", "logs", cwd=root)
    assert shown.returncode == 2
    assert f"{state}/daemon.log" in shown.stderr.splitlines()[-1]
    assert cold_daemon.run("daemon", "stop").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "folder"])
@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_and_is_none_is_named_and_the_answer_comes_by_scanning(
    cold_daemon: DaemonAtHand, root: Path, name: str, kind: str
) -> None:
    state = Path(cold_daemon.paths.state)
    state.mkdir(mode=0o700, exist_ok=True)
    put(state / name, kind)
    answer = cold_daemon.run("query", "needle", cwd=root)
    assert answer.stdout == "a.txt:1:needle\n"
    if (name, kind) == ("token", "pipe"):  # the daemon makes another
        return
    assert f"{state}/{name}" in answer.stderr
    assert answer.stderr.endswith("by scanning\n")
    assert cold_daemon.run("daemon", "stop").returncode == 0


@pytest.mark.parametrize("kind", ["pipe", "endless", "sparse", "folder", "nowhere"])
def test_a_file_that_is_none_is_named(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "odd", kind)
    with pytest.raises(OSError, match=f"{tmp_path}/odd"):
        read_plain_file(tmp_path / "odd")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_written_anew_beside_whatever_stands_there(
    tmp_path: Path, kind: str
) -> None:
    for name in ("file", "file.new"):
        put(tmp_path / name, kind)
    if kind == "folder":
        with pytest.raises(OSError, match=f"{tmp_path}/file"):
            replace_plain_file(tmp_path / "file", "text")
        return
    replace_plain_file(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"
    assert not (tmp_path / "file").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
