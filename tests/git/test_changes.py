"""What `changes` tells: the files that git tells, hunks that make the one text of the other, the symbols they touch."""

import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from flashgrep.base.model import Document
from flashgrep.parts.git.changes import (
    FileChange,
    State,
    compare_states,
    describe_change,
    find_hunks,
)
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.project import Workspace
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.git import commit, diff, diff_revision, git
from tests.support.workspace import opened, put


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


def patch(old: list[bytes], new: list[bytes]) -> tuple[list[bytes], int]:
    """Return the old lines as hunks make them new, and how many lines the hunks touch."""
    made, at, touched = list[bytes](), 0, 0
    for hunk in find_hunks(old, new):
        start = hunk.old_start - (hunk.old_lines > 0)
        made += old[at:start]
        first = hunk.start - (hunk.lines > 0)
        assert len(made) == first
        made += new[first : first + hunk.lines]
        at = start + hunk.old_lines
        touched += hunk.lines + hunk.old_lines
    return made + old[at:], touched


@pytest.mark.parametrize("seed", range(200))
def test_hunks_make_the_one_of_the_other(seed: int) -> None:
    rng = random.Random(seed)
    old = rng.choices([b"a\n", b"b\n", b"c\n", b"d"], k=rng.randint(0, 12))
    new = [line for line in old if rng.random() < 0.8]
    for _ in range(rng.randint(0, 3)):
        new.insert(rng.randint(0, len(new)), rng.choice([b"a\n", b"x\n"]))
    made, touched = patch(old, new)
    assert made == new
    assert touched <= len(old) + len(new)
    assert bool(touched) == (old != new)


def look(old: State, new: State) -> list[FileChange]:
    """Return all changes, each with hunks that lead from the one text to the other."""
    found = [describe_change(old, new, file) for file in compare_states(old, new)]
    for change in found:
        made, _ = patch(*change.sides)
        after = new.snapshot.read(change.file.path)
        if not change.note and change.file.status in {"added", "untracked", "modified"}:
            assert isinstance(after, Document)
            assert b"".join(made) == after.data
    return found


async def told_by_us(workspace: Workspace, rev: str) -> set[tuple[str, str]]:
    assert await workspace.refresh()
    assert await workspace.service(REVISIONS).compare(rev, look) is not None
    return await diff_revision(workspace, rev)


@pytest.mark.parametrize("seed", range(2))
async def test_the_files_are_those_that_git_tells(
    root: Path, workspace: Workspace, seed: int
) -> None:
    rng = random.Random(seed)
    names = ["a.py", "b/c.py", ".hidden/d.txt", "bin", "e.md", "b/f.txt"]

    def change() -> None:
        for name in rng.sample(names, 3):
            if (root / name).exists() and rng.random() < 0.3:
                (root / name).unlink()
            else:
                text = b"".join(
                    rng.choices(
                        [b"one\n", b"two\n", b"def three(): pass\n"],
                        k=rng.randint(0, 6),
                    )
                )
                put(root, {name: text if name != "bin" else b"\0" + text})

    for _ in range(4):
        change()
        commit(root)
    change()
    git(root, "add", "-A")
    change()
    git(root, "add", "-N", ".")  # so that git tells of untracked files, too
    for rev, arguments in {
        "HEAD": ["HEAD"], "HEAD~2": ["HEAD~2"], ":index": [],
        "HEAD~3..HEAD": ["HEAD~3", "HEAD"], "HEAD~1...HEAD": ["HEAD~1", "HEAD"],
    }.items():  # fmt: skip
        told = diff(root, *arguments)
        if rev == ":index":  # git holds what was added with -N for new, we for changed
            told = {
                ("modified" if status == "added" else status, path)
                for status, path in told
            }
        assert await told_by_us(workspace, rev) == told, rev


async def test_a_file_written_in_the_moment_of_the_index_is_looked_at(
    root: Path, workspace: Workspace
) -> None:
    put(root, {"a.txt": b"one\n"})
    commit(root)
    status = (root / "a.txt").stat()
    put(root, {"a.txt": b"two\n"})  # as long
    os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(root / ".git" / "index", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert await told_by_us(workspace, "HEAD") == {("modified", "a.txt")}


BEFORE = """import os


class Cart:
    size = 1

    def add(self, item):
        return item

    def drop(self):
        return 0


def total(cart):
    return cart.add(1)
"""
AFTER = """import os


class Cart:
    size = 2

    def add(self, item):
        return [item]


def total(cart):
    return cart.add(1)


def fresh():
    return Cart()
"""


def test_symbols_hunks_callers_and_pages(
    connect: Callable[..., Wire], project: MakeProject, daemon: DaemonAtHand
) -> None:
    root = project(
        {
            "shop.py": BEFORE,
            "use.py": "from shop import Cart\n\n\ndef run():\n    Cart().add(2)\n",
            "x.md": "x",
        }
    )
    commit(root)
    put(root, {"shop.py": AFTER.encode(), "new.py": b"def extra():\n    pass\n"})
    (root / "x.md").rename(root / "y.md")
    git(root, "add", "-A", "x.md", "y.md")
    wire = connect(root)
    found = wire.call("changes", callers=True, lines=True)
    files = {file["file_path"]: file for file in found["results"]}
    assert {path: file["status"] for path, file in files.items()} == {
        "new.py": "untracked", "shop.py": "modified", "y.md": "renamed",
    }  # fmt: skip
    assert files["y.md"]["old_path"] == "x.md"
    shop = files["shop.py"]
    touched = {symbol["symbol_name"]: symbol["change"] for symbol in shop["symbols"]}
    assert touched == {
        "Cart": "modified",
        "Cart.add": "modified",
        "fresh": "added",
        "Cart.drop": "deleted",
    }
    added = next(
        symbol for symbol in shop["symbols"] if symbol["symbol_name"] == "Cart.add"
    )
    assert {(one["file_path"], one["container"]) for one in added["callers"]} == {
        ("use.py", "run"),
    }
    # ``total`` calls ``add`` on a parameter of which nothing is known.
    assert added["callers_unsure"] == 1
    assert shop["hunks"][0] == {
        "start_line": 5, "lines": 1, "old_start_line": 5, "old_lines": 1, "diff": "-    size = 1\n+    size = 2",
    }  # fmt: skip
    assert (shop["added"], shop["removed"]) == (6, 5)

    pages, cursor = [], None
    while True:
        page = wire.call("changes", limit=1, **({"cursor": cursor} if cursor else {}))
        assert page["total"] == 3
        pages += [file["file_path"] for file in page["results"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert pages == sorted(files)
    small = wire.call("changes", max_tokens=50, include=["shop.py"])["results"][0]
    assert small["left_out"] > 0
    assert wire.call("changes", rev=":index")["total"] == 2
    assert wire.call("changes", rev="HEAD..:index")["results"][0]["status"] == "renamed"
    assert wire.fail("changes", rev="HEAD^{/x}")["data"]["reason"] == "invalid_revision"
    shown = daemon.run("changes", cwd=root)
    assert shown.returncode == 0
    assert "Cart.add" in shown.stdout


def test_callers_are_those_of_the_changed_definition_not_of_its_namesakes(
    connect: Callable[..., Wire], project: MakeProject
) -> None:
    """25 of 54 callers that were named called other definitions of the name."""
    text = "def run():\n    return {}\n\n\ndef main():\n    run()\n"
    test = "import a\n\n\ndef test_run():\n    a.run()\n"
    root = project({"a.py": text.format(1), "b.py": text.format(1), "test_a.py": test})
    commit(root)
    put(root, {"a.py": text.format(2).encode()})
    found = connect(root).call("changes", callers=True)
    (symbol,) = found["results"][0]["symbols"]
    places = [
        (caller["file_path"], caller["line_number"], caller["container"])
        for caller in symbol["callers"]
    ]
    assert places == [("a.py", 6, "main"), ("test_a.py", 5, "test_run")]
    assert symbol["callers_total"] == len(places)
