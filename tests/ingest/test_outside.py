"""Rules outside a project: whatever changes them is told, and what is told of nothing costs no look."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.files.outside import (
    MOST_WATCHES,
    READ_BYTES,
    OutsideRules,
    OutsideWatch,
    stat_files,
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere every file is looked at"
)

FILES = (
    "a/.gitignore",
    "a/b/.gitignore",
    "a/b/.git",
    "a/b/.git/info/exclude",
    "home/.config/git/ignore",
)
FOLDERS = (
    "a",
    "a/b",
    "a/b/.git",
    "a/b/.git/info",
    "home",
    "home/.config",
    "home/.config/git",
)


class Place:
    """A folder whose rules change, and what is watched of it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.files = {os.fsencode(top / name): name.endswith(".git") for name in FILES}
        self.watch = OutsideWatch()
        self.rules = OutsideRules(lambda: self.files, self.watch)
        self.rules.note(self.rules.look())
        self.known = stat_files(self.files, self.files)

    def check(self) -> None:
        """Compare what is told with a look at each file."""
        now = stat_files(self.files, self.files)
        assert self.rules.look_again() == (now != self.known)
        self.known = now


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in FOLDERS:
        (tmp_path / name).mkdir()
    return Place(tmp_path)


def is_looking(place: Place, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a question looks at the files."""
    looks: list[object] = []
    stat = os.stat

    def note(path: bytes, **more: Any) -> os.stat_result:
        looks.append(path)
        return stat(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", note)
        assert not place.rules.look_again()
    return bool(looks)


NAMES = st.sampled_from(FILES + FOLDERS + ("other", "a/other", "home/other"))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("write", "add", "mkdir", "remove", "rename", "link", "touch", "nothing")
        ),
        NAMES,
        NAMES,
    ),
    max_size=12,
)


def change(top: Path, step: tuple[str, str, str]) -> None:
    """Do one thing in the folder, if it can be done."""
    kind, name, other = step
    path, target = top / name, top / other
    try:
        if kind == "write":
            path.write_bytes(other.encode())
        elif kind == "add":
            with path.open("ab") as file:
                file.write(b"more\n")
        elif kind == "mkdir":
            path.mkdir(parents=True)
        elif kind == "remove":
            shutil.rmtree(
                path
            ) if path.is_dir() and not path.is_symlink() else path.unlink()
        elif kind == "rename":
            path.rename(target)
        elif kind == "link":
            path.symlink_to(target)
        elif kind == "touch":
            os.utime(path, ns=(1, len(other)))
    except OSError:
        pass


@pytest.fixture(scope="module")
def around() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    yield made
    shutil.rmtree(made)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(before=STEPS, steps=STEPS)
def test_every_change_is_reported(
    around: Path, before: list[tuple[str, str, str]], steps: list[tuple[str, str, str]]
) -> None:
    """The truth is a look at every file. Links and missing folders are among what there is to begin with."""
    with tempfile.TemporaryDirectory(dir=around) as folder:
        for step in before:
            change(Path(folder), step)
        place = Place(Path(folder))
        for step in steps:
            change(place.top, step)
            place.check()


def test_a_link_that_leads_nowhere_may_lead_to_a_file_later(around: Path) -> None:
    top = Path(tempfile.mkdtemp(dir=around))
    (top / "a").mkdir()
    (top / "a/.gitignore").symlink_to(top / "elsewhere")
    place = Place(top)
    place.check()
    (top / "elsewhere").write_bytes(b"*.o\n")
    place.check()


@pytest.mark.parametrize(
    "happens",
    [
        lambda top: (top / "a/.gitignore").write_text("x"),
        lambda top: (top / "home/.config").rename(top / "away"),
        lambda top: (top / "a/b/.git/info/exclude").write_text("x"),
    ],
)
def test_what_happens_is_reported_once(
    place: Place, happens: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_looking(place, monkeypatch)
    happens(place.top)
    place.check()
    (place.top / "home/unrelated").write_text("x")
    assert not is_looking(place, monkeypatch)


def test_what_is_behind_a_link_is_looked_at_each_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.top / "elsewhere").mkdir()
    (place.top / "home/.config/git").rmdir()
    (place.top / "home/.config/git").symlink_to(place.top / "elsewhere")
    place.check()
    assert is_looking(place, monkeypatch)
    (place.top / "elsewhere/ignore").write_text("x")
    place.check()
    (place.top / "elsewhere").rename(place.top / "gone")
    (place.top / "elsewhere").mkdir()
    (place.top / "elsewhere/ignore").write_text("longer")
    place.check()


def test_a_file_that_is_met_later_is_watched(place: Place) -> None:
    place.files[os.fsencode(place.top / "later")] = False
    (place.top / "later").write_text("x")
    place.check()
    (place.top / "later").write_text("longer")
    place.check()


@pytest.mark.slow
def test_a_queue_that_overflows_or_is_long_is_no_loss(place: Place) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for many in (READ_BYTES // 32, limit + 10):
        for at in range(many):
            (place.top / f"home/x{at % 2}").touch()
            (place.top / f"home/x{at % 2}").unlink()
        (place.top / "a/.gitignore").write_text("x" * many)
        place.check()


def test_a_change_while_the_tree_is_read_is_seen_by_the_next_question(
    place: Place,
) -> None:
    before = place.rules.look()
    (place.top / "a/.gitignore").write_text("x")
    place.rules.note(before)
    assert place.rules.look_again()
    assert not place.rules.look_again()


def test_watches_begin_again_where_there_are_too_many(place: Place) -> None:
    many = Place(place.top)
    for at in range(MOST_WATCHES):
        (place.top / f"x{at}").touch()
    second = OutsideRules(
        lambda: {
            os.fsencode(place.top / f"x{at}"): False for at in range(MOST_WATCHES)
        },
        many.watch,
    )
    second.note(second.look())
    many.rules.note(many.rules.look())
    for name in ("a/.gitignore", "a/b/.gitignore"):
        (place.top / name).write_text("x")
        many.known = stat_files(many.files, many.files)
        assert many.rules.look_again()
        assert not many.rules.look_again()
    (place.top / "x7").write_text("x")
    assert second.look_again()


def test_a_mount_over_a_folder_is_reported(place: Place) -> None:
    folder = place.top / "home/.config"
    if subprocess.run(
        ["mount", "-t", "tmpfs", "none", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        (folder / "git").mkdir()
        (folder / "git/ignore").write_text("x")
        place.check()
    finally:
        subprocess.run(["umount", folder], check=True)
    place.check()
