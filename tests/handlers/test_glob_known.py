"""Files found among those that are known are those a walk of the disk finds now, whatever has just happened to it."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.files.finder import GlobPage, find
from flashgrep.files.globs import GlobOptions
from flashgrep.project import Workspace, file_tree
from tests.support.workspace import cancelled_at, opened, put, repository

FOLDERS = ["", "a/", "a/b/", "out/", "out/deep/", "a/out/", ".h/", "kept/"]
NAMES = ["x.py", "y.o", "z.txt", ".hidden", "out"]
FILES = [
    folder + name
    for folder in FOLDERS
    for name in NAMES
    if f"{folder}{name}/" not in FOLDERS
]
ASKED: list[dict[str, Any]] = [
    {},
    {"include": ("*.py", "**/z.*")},
    {"include": ("**/y.o",)},
    {"include": ("a/**/*.[po]*",), "exclude": ("**/b",)},
    {"include": ("out/*", "*{b,deep}/*")},
    {"exclude": ("a/*", "*.txt"), "extensions": ("py", "txt", "o")},
    {"max_depth": 0},
    {"max_depth": 1, "sort_by": "size", "descending": True},
    {"under": b"a", "include": ("b/*", "*.o", "**/out/*")},
    {"under": b"out", "sort_by": "name"},
    {"under": b".h"},
    {"respect_ignore": True},
    {"respect_ignore": True, "under": b"a"},
    {"respect_ignore": True, "under": b".h"},
    {"respect_ignore": True, "include": (".hidden", "**/.h/*")},
    {"include_hidden": True},
    {"case_sensitive": False, "include": ("**/X.PY",)},
]
RULES = [
    "*.o\nout/\n",
    "out\n",
    "",
    "*\n!*.py\n!a/\n",
    "kept/*\n!kept/x.py\n!.h/\n",
    "!*/\n!.hidden\n",
    "!\na/\n",
]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(FILES)),
        st.tuples(st.just("write"), st.sampled_from(FILES)),
        st.tuples(st.just("remove"), st.sampled_from([*FILES, *FOLDERS[1:]])),
        st.tuples(st.just("move"), st.sampled_from(FOLDERS[1:])),
        st.tuples(st.just("rules"), st.sampled_from(RULES)),
    ),
    min_size=1,
    max_size=6,
)


def change(root: Path, action: str, what: str) -> None:
    """Do one step, as far as the tree allows it."""
    target = root / what
    try:
        if action == "rules":
            (root / ".ignore").write_text(what)
        elif action == "write":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(what)
        elif action == "move":
            target.rename(root / "moved")
            (root / "moved").rename(root / "kept/in")
        elif target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()
    except OSError:
        return  # a file where a folder should be, or nothing there


def seen(page: GlobPage) -> tuple[object, ...]:
    return [file[1:] for file in page.files], page.total, page.unreadable, page.complete


async def as_a_walk(workspace: Workspace, root: Path) -> None:
    """Have what is found among the known files equal what a walk finds; the barrier has been passed."""
    snapshot = workspace.snapshot()
    known = workspace.tree.known(snapshot)
    assert known is not None
    for asked in ASKED:
        options = GlobOptions(**asked)
        if (root / os.fsdecode(options.under)).is_dir():
            walked = find(os.fsencode(root), options)
            assert seen(find(os.fsencode(root), options, known=known)) == seen(
                walked
            ), asked
    ours = find(os.fsencode(root), GlobOptions(respect_ignore=True), known=known)
    assert [file.path for file in ours.files] == workspace.paths()
    assert ours.seen == len(ours.files)


async def test_files_that_are_all_ignored_now_are_none() -> None:
    with repository() as root:
        change(root, "write", "y.o")
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            change(root, "rules", "*.o\nout/\n")
            assert await workspace.refresh()
            await as_a_walk(workspace, root)


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=steps, after=steps)
async def test_known_files_are_those_of_a_walk_after_each_change(
    before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    with repository() as root:
        for step in before:
            change(root, *step)
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            for step in after:
                change(root, *step)
                assert await workspace.refresh()
                await as_a_walk(workspace, root)


def a_tree(root: Path) -> None:
    put(root, {path: b"%d" % at for at, path in enumerate(FILES)})
    (root / ".ignore").write_text("*.o\nout/\n")


@pytest.mark.parametrize("number", range(1, 6))
async def test_a_barrier_cancelled_at_any_wait_costs_no_file(
    number: int, root: Path
) -> None:
    a_tree(root)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        change(root, "move", "a/")
        change(root, "rules", "*.py\n")
        put(root, {"new/out/x.py": b"", "new/y.o": b"", "a/x.py": b"again"})
        await cancelled_at(number, workspace.refresh())
        assert await workspace.refresh()
        await as_a_walk(workspace, root)


async def test_where_too_much_is_ignored_the_disk_is_walked(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(file_tree, "MOST_EXCLUDED", 3)

    a_tree(root)
    async with opened(root) as workspace:
        await workspace.refresh()
        assert workspace.tree.known(workspace.snapshot()) is None


async def test_known_folders_are_not_read(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    a_tree(root)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        snapshot = workspace.snapshot()
        known = workspace.tree.known(snapshot)
        read: list[int] = []
        list_one = os.scandir

        def listing(opened: int) -> Any:
            read.append(opened)
            return list_one(opened)

        monkeypatch.setattr(os, "scandir", listing)
        found = find(os.fsencode(root), GlobOptions(include=("**/x.py",)), known=known)
        assert found.total == 7
        assert len(read) == 3  # out, out/deep, a/out: what is ignored is not known
