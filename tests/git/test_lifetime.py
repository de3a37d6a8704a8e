"""Revisions asked by many at once, cancelled at any point, with git killed in between, and after a rest."""

import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from flashgrep.base.model import Document
from flashgrep.files.openat import RootFolder
from flashgrep.parts.git import revision
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.git import commit, git
from tests.support.workspace import cancelled_at, opened, put

STATES = ["HEAD", "HEAD~1", "HEAD~2", ":index", "HEAD~2..HEAD"]


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    for number in range(3):
        put(root, {f"{number}{name}.txt": b"word %d\n" % number for name in "abcde"})
        commit(root)
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


async def count(workspace: Workspace, rev: str) -> int:
    view = await workspace.service(REVISIONS).at(rev)
    return len(
        (
            await view.search(
                Question(pattern=Pattern(texts=("word",), mode="literal"), limit=100)
            )
        ).results
    )


EXPECTED = {"HEAD": 15, "HEAD~1": 10, "HEAD~2": 5, ":index": 15, "HEAD~2..HEAD": 10}


def children() -> set[int]:
    """Return the processes of git that this one has started and not ended."""
    mine = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    numbers = [int(number) for file in mine for number in file.read_text().split()]
    return {
        number
        for number in numbers
        if b"cat-file" in Path(f"/proc/{number}/cmdline").read_bytes()
    }


async def test_many_at_once_get_right_answers(workspace: Workspace) -> None:
    found: list[tuple[str, int]] = []

    async def ask(rev: str) -> None:
        found.append((rev, await count(workspace, rev)))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            for rev in STATES:
                tasks.start_soon(ask, rev)
    assert set(found) == set(EXPECTED.items())
    assert len(found) == 8 * len(STATES)


async def test_a_question_cancelled_anywhere_harms_no_other(
    workspace: Workspace,
) -> None:
    number = 1
    while await cancelled_at(number, count(workspace, "HEAD~1")):
        assert await count(workspace, "HEAD") == 15
        number += 1
    assert number > 1
    assert await count(workspace, "HEAD~1") == 10


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds git in /proc")
async def test_git_that_was_killed_is_started_again_and_ended_at_rest(
    workspace: Workspace,
) -> None:
    assert await count(workspace, "HEAD") == 15
    (first,) = children()
    os.kill(first, 9)
    assert await count(workspace, "HEAD~1") == 10
    (second,) = children()
    assert second != first
    assert not workspace.rest(60)
    assert workspace.rest(0)
    assert not children()
    assert await count(workspace, "HEAD~2") == 5


async def test_a_repository_that_is_created_again_is_read_again(
    root: Path, tmp_path: Path, workspace: Workspace
) -> None:
    assert await count(workspace, "HEAD") == 15
    (root / ".git").rename(tmp_path / "old")
    git(root, "init", "-q")
    put(root, {"new.txt": b"word\n"})
    git(root, "add", "new.txt")
    git(root, "commit", "-qm", "anew")
    assert await count(workspace, "HEAD") == 1


async def test_a_work_tree_beside_the_first_has_a_head_and_an_index_of_its_own(
    root: Path, tmp_path: Path, workspace: Workspace
) -> None:
    beside = tmp_path / "beside"
    git(root, "worktree", "add", "-q", str(beside), "HEAD~1")
    put(beside, {"staged.txt": b"word\n"})
    git(beside, "add", "staged.txt")
    async with opened(beside, environ=dict(os.environ)) as other:
        assert await count(other, "HEAD") == 10
        assert await count(other, ":index") == 11
        changed = await other.service(REVISIONS).compare("HEAD", compare_states)
        assert [(file.path, file.status) for file in changed] == [
            (b"staged.txt", "added")
        ]
    assert await count(workspace, "HEAD") == 15


async def test_names_by_sha256(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    put(tmp_path, {"a.txt": b"word\n"})
    name = commit(tmp_path)
    put(tmp_path, {"a.txt": b"word two\n"})
    async with opened(tmp_path, environ=dict(os.environ)) as workspace:
        await workspace.wait_parsed()
        assert await count(workspace, name) == 1
        assert [
            file.status
            for file in await workspace.service(REVISIONS).compare(
                "HEAD", compare_states
            )
        ] == ["modified"]


@pytest.mark.usefixtures("workspace")
async def test_a_work_tree_whose_path_has_line_ends(root: Path, tmp_path: Path) -> None:
    beside = tmp_path / "two\nlines"
    git(root, "worktree", "add", "-q", str(beside), "HEAD~1")
    put(beside, {"in\nner/staged.txt": b"word\n"})
    git(beside, "add", "-A")
    for folder, head, staged in ((beside, 10, 11), (beside / "in\nner", 0, 1)):
        async with opened(folder, environ=dict(os.environ)) as other:
            assert (await count(other, "HEAD"), await count(other, ":index")) == (
                head,
                staged,
            )


async def test_contents_read_by_many_at_once_are_counted_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {f"{at}.txt": b"%d" % at * 100 for at in range(10)})
    commit(root)
    git_here = Git.find(RootFolder(os.fsencode(root)), os.environ)
    repository = Repository.open(git_here)
    files = repository.list_files(repository.resolve("HEAD"))
    monkeypatch.setattr(revision, "KEPT_BYTES", 550)
    blobs = revision.Blobs(repository)
    with closing(repository), ThreadPoolExecutor(8) as threads:
        read = [
            threads.submit(blobs.read, path, file.blob, 1 << 20)
            for _ in range(60)
            for path, file in files.items()
        ]
        assert all(isinstance(future.result(), Document) for future in read)
    with closing(repository):
        known = [
            blobs.read(b"", file.blob, 1 << 20) for file in list(files.values())[:5]
        ]
        again = [
            blobs.read(b"", file.blob, 1 << 20) for file in list(files.values())[:5]
        ]
    assert all(
        one is other for one, other in zip(known, again, strict=True)
    )  # there is room for five
