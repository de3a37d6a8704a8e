"""What lies below a root is opened from its descriptor: a folder swapped for a link shows nothing from outside."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.model import Document
from flashgrep.files import finder, openat
from flashgrep.files.extract import read_file
from flashgrep.files.globs import GlobOptions
from flashgrep.files.openat import LISTING, RootFiles, RootFolder
from flashgrep.files.walk import Walker
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question
from tests.support.workspace import files_with, opened, put

SECONDS = 3.0
"""How long folders are swapped in the race."""


@pytest.fixture(params=["openat2", "step by step"])
def tree(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a root with a folder, beside a folder outside; without openat2 too."""
    if request.param == "step by step":
        monkeypatch.setattr(openat, "_has_openat2", lambda: False)
    elif not openat._has_openat2():
        pytest.skip("no openat2 here")
    put(
        tmp_path,
        {
            "root/a/b/file.txt": b"inside\n",
            "outside/b/file.txt": b"secret\n",
            "outside/file.txt": b"secret\n",
        },
    )
    return tmp_path / "root"


def swap(folder: Path, target: Path) -> None:
    """Put a link in a folder's place."""
    folder.rename(folder.with_name("was"))
    folder.symlink_to(target)


@pytest.mark.parametrize("at", ["a", "a/b"])
def test_no_file_is_read_through_a_link_in_a_folders_place(tree: Path, at: str) -> None:
    root = RootFolder(bytes(tree))
    assert read_file(RootFiles(root), b"a/b/file.txt", None)[1] == Document(b"inside\n")
    swap(tree / at, tree.parent / "outside")
    files = RootFiles(root)
    for path in (b"a/b/file.txt", b"a/file.txt"):
        with pytest.raises(FileNotFoundError):
            read_file(files, path, None)
        with pytest.raises(FileNotFoundError):
            files.lstat(path)


def test_no_folder_is_listed_through_a_link_in_its_place(tree: Path) -> None:
    walker = Walker(bytes(tree))
    assert [entry.path for entry in walker.walk()] == [b"a/b/file.txt"]
    swapped = False

    def swap_before_it_is_read(folder: bytes) -> None:
        nonlocal swapped
        if folder == b"a" and not swapped:
            swapped = True
            swap(tree / "a", tree.parent / "outside")

    assert b"a/file.txt" not in {
        entry.path for entry in walker.walk(on_directory=swap_before_it_is_read)
    }
    assert swapped
    with pytest.raises(FileNotFoundError):
        RootFolder(bytes(tree)).open(b"a/b", LISTING)


@pytest.mark.parametrize(
    "path", [b"..", b"a/../..", b"a/b/../../..", b"../outside", b"/etc"]
)
def test_no_path_leads_out(tree: Path, path: bytes) -> None:
    with pytest.raises(OSError):
        os.close(RootFolder(bytes(tree)).open(path))


def test_glob_lists_no_folder_through_a_link_in_its_place(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted = finder._Search._enter_folder

    def swap_once_it_is_taken(self: finder._Search, *taken: Any) -> Any:
        inner = admitted(self, *taken)
        if inner is not None and inner.path == b"a":
            swap(tree / "a", tree.parent / "outside")
        return inner

    monkeypatch.setattr(finder._Search, "_enter_folder", swap_once_it_is_taken)
    search = finder._Search(bytes(tree), GlobOptions(include=("**/*.txt",)), None)
    assert list(search.run(None)) == []


def test_another_folder_in_the_roots_place_is_not_the_root(tree: Path) -> None:
    root = RootFolder(bytes(tree))
    root.descriptor()
    sent, again = (pickle.loads(pickle.dumps(root)) for _ in range(2))  # noqa: S301 - our own
    assert sent.identity() == root.identity()
    tree.rename(tree.with_name("away"))
    tree.symlink_to(tree.parent / "outside")
    assert read_file(RootFiles(sent), b"a/b/file.txt", None)[1] == Document(b"inside\n")
    with pytest.raises(FileNotFoundError):
        again.descriptor()


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_nothing_stays_open(tree: Path) -> None:
    before = descriptors()
    files = RootFiles(RootFolder(bytes(tree)))
    read_file(files, b"a/b/file.txt", None)
    assert len(list(Walker(bytes(tree)).walk())) == 1
    del files
    assert descriptors() == before


SWAPPER = """
import os, signal, sys
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
here, aside, link = (os.fsencode(name) for name in sys.argv[1:4])
os.symlink(sys.argv[4], link)
print("ready", flush=True)
while not ended:
    os.rename(here, aside)
    os.rename(link, here)
    os.rename(here, link)
    os.rename(aside, here)
"""


@contextmanager
def swapping(root: Path, folder: str, outside: Path) -> Iterator[None]:
    """Have another process put a link in a folder's place and take it away again, all the time."""
    names = [root / folder, root.parent / "aside", root.parent / "link", outside]
    command = [sys.executable, "-c", SWAPPER, *map(str, names)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.terminate()  # it ends when the folder is back


@pytest.mark.slow
async def test_questions_show_nothing_from_outside_while_folders_are_swapped_for_links(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    put(outside, {f"d/f{at}.txt": b"secret needle\n" for at in range(5)})
    shown = [
        Question(pattern=Pattern(texts=("secret",), mode="literal"), use_index=used)
        for used in (True, False)
    ]

    root = tmp_path / "root"
    put(root, {f"a/d/f{at}.txt": b"open needle\n" for at in range(5)})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        asked, until = 0, time.monotonic() + SECONDS
        with swapping(root, "a", outside):
            while time.monotonic() < until:
                asked += 1
                await workspace.refresh()
                for question in shown:
                    assert (await workspace.search(question)).results == []
        assert asked
        assert len(await files_with(workspace, "open needle")) == 5
        await workspace.wait_indexed()
        assert await files_with(workspace, "secret") == set()
