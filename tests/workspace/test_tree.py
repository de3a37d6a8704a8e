"""The table of files and what is pending over it: what events change in it, at a cost that grows with them alone."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.files.openat import RootFolder
from flashgrep.files.walk import Walker
from flashgrep.files.watch import Change, Watcher, watch
from flashgrep.index.table import FileRow, Mark
from flashgrep.project.file_tree import Tree, find_outermost, is_below
from tests.support.pace import paced

pytestmark = pytest.mark.usefixtures("collector_paused")

MANY = 4_000
MOST_SECONDS = 0.5
"""Processor time; to look at each path for each change would take several times as long."""


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    made = watch(bytes(tmp_path), native=True)
    yield made
    made.close()


def make_tree(root: Path, watcher: Watcher) -> Tree:
    folder = RootFolder(bytes(root))
    tree = Tree(folder, Walker(bytes(root), folder=folder), watcher)
    tree.take_sweep(tree.sweep())
    return tree


def test_a_folder_that_went_takes_all_that_is_pending_below_it(
    tmp_path: Path, watcher: Watcher
) -> None:
    for name in ("a/x", "a/b/y", "ab/z", "c/a/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    tree = make_tree(tmp_path, watcher)
    shutil.rmtree(tmp_path / "a")
    tree.take([Change("folder_gone", b"a/b"), Change("folder_gone", b"a")])
    assert {path for path, mark in tree.pending.items() if mark.ours} == {
        b"ab/z",
        b"c/a/x",
    }
    assert tree.count() == 2


def test_what_is_stored_overrules_a_table_sent_before_also_where_the_index_is_rebuilt(
    tmp_path: Path, watcher: Watcher
) -> None:
    (tmp_path / "a").write_text("x")
    tree = make_tree(tmp_path, watcher)
    for generation in (57, 3):
        before = tree.generation
        tree.take_update(
            dict(tree.pending), [FileRow(b"a", 1, "", 1, 2, 3, 4)], [], generation
        )
        assert tree.changed_since(before) == {b"a": Mark(ours=True, sequence=0, size=0)}
        assert tree.changed_since(tree.generation) == {}
        tree.take_sweep(tree.sweep(anew=True))
        assert tree.generation == 0


def test_what_is_there_again_when_its_folder_is_said_to_be_gone_is_a_file_of_the_project(
    tmp_path: Path, watcher: Watcher
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_text("x")
    tree = make_tree(tmp_path, watcher)
    tree.take(
        [Change("file", b"a/x"), Change("folder_gone", b"a"), Change("folder", b"a")]
    )
    assert tree.pending[b"a/x"].ours


def test_many_folders_that_go_at_once_cost_each_pending_path_one_look(
    tmp_path: Path, watcher: Watcher
) -> None:
    tree = make_tree(tmp_path, watcher)
    for at in range(MANY):
        tree.mark(b"%05d/file" % at, ours=True)
    begun = time.process_time()
    tree.take([Change("folder_gone", b"%05d" % at) for at in range(MANY)])
    assert time.process_time() - begun < paced(MOST_SECONDS)
    assert tree.count() == 0


def test_many_folders_that_are_deleted_cost_the_watcher_one_look_each(
    tmp_path: Path, watcher: Watcher
) -> None:
    names = [b"%05d" % at for at in range(MANY)]
    for name in (b"", *names):
        if name:
            (tmp_path / name.decode()).mkdir()
        watcher.add(name)
    watcher.drain()
    for name in names:
        (tmp_path / name.decode()).rmdir()
    begun = time.process_time()
    changes = watcher.drain()
    assert time.process_time() - begun < paced(MOST_SECONDS)
    assert {change.path for change in changes if change.kind == "folder_gone"} == set(
        names
    )


paths = st.lists(
    st.sampled_from([b"a", b"a-", b"a0", b"b"]), min_size=1, max_size=4
).map(b"/".join)


@given(st.lists(paths, max_size=6), paths)
def test_a_path_is_below_a_folder_exactly_if_it_begins_with_one_of_them(
    folders: list[bytes], path: bytes
) -> None:
    assert is_below(path, find_outermost(folders)) == any(
        path.startswith(folder + b"/") for folder in folders
    )
