"""History, blame, names of revisions and folders: what git itself says, and no more than the project's own."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flashgrep.base.errors import FlashgrepError
from flashgrep.methods.text import Style
from flashgrep.parts.git import repository
from flashgrep.parts.git.history_methods import render_revisions
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.project import Workspace
from tests.conftest import DaemonAtHand
from tests.support.git import commit, git
from tests.support.workspace import opened, put

SUBJECTS = ["one", "two: a\x01b", "three <b>“quoted”</b> 'x'", "four" * 200]


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    for at, subject in enumerate(SUBJECTS):
        put(
            root,
            {
                "a.txt": b"".join(
                    b"%d %d\n" % (line, at if line > at else 0) for line in range(6)
                )
            },
        )
        put(root, {f"src/deep/{at}.py": b"x\n", f"src/{at}.py": b"y\n"})
        commit(root, subject)
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


async def test_commits_are_those_of_git_log(root: Path, workspace: Workspace) -> None:
    for path in (b"", b"a.txt", b"src/deep", b"src/2.py", b"none"):
        expected = (
            git(
                root, "log", "--format=%H", "--", *([os.fsdecode(path)] if path else [])
            )
            .decode()
            .split()
        )
        for skip in (0, 1):
            found = await workspace.service(REVISIONS).ask_repository(
                lambda asked, path=path, skip=skip: repository.list_commits(
                    asked, "HEAD", path, skip, 3
                )  # type: ignore[misc]
            )
            assert [one.name for one in found] == expected[skip : skip + 3]
    newest = (
        await workspace.service(REVISIONS).ask_repository(
            lambda asked: repository.list_commits(asked, "HEAD", b"", 0, 4)
        )
    )[0]
    assert newest.subject == SUBJECTS[-1][: repository.MOST_SUBJECT]
    assert newest.author == "a"


async def test_every_line_is_from_the_commit_that_git_blame_says(
    root: Path, workspace: Workspace
) -> None:
    expected = [
        line.split()[0].lstrip("^")
        for line in git(root, "blame", "-l", "a.txt").decode().splitlines()
    ]
    runs, commits = await workspace.service(REVISIONS).ask_repository(
        lambda asked: repository.blame(asked, "HEAD", b"a.txt", (1, 500))
    )
    found = {run.start + at: run.commit for run in runs for at in range(run.lines)}
    assert [found[line] for line in sorted(found)] == [
        next(c.name for c in commits if c.name.startswith(e)) for e in expected
    ]
    assert {one.commit for one in runs} == {one.name for one in commits}


async def test_names_are_branches_and_tags_with_their_commits(
    root: Path, workspace: Workspace
) -> None:
    git(root, "branch", "side/branch", "HEAD~1")
    git(root, "tag", "-a", "-m", "x", "v1", "HEAD~2")
    found = await workspace.service(REVISIONS).ask_repository(
        lambda asked: repository.list_names(asked, 10)
    )
    names = {(one.kind, one.name): one.commit for one in found}
    assert (
        names["branch", "side/branch"]
        == git(root, "rev-parse", "HEAD~1").decode().strip()
    )
    assert names["tag", "v1"] == git(root, "rev-parse", "HEAD~2").decode().strip()


@pytest.mark.parametrize("rev", ["none", "--all", "HEAD..HEAD~1", "-n1", ":/one", ""])
async def test_what_is_no_revision_reaches_no_option_of_git(
    workspace: Workspace, rev: str
) -> None:
    def ask(asked: Repository) -> object:
        return repository.list_commits(asked, rev, b"", 0, 3)

    with pytest.raises(FlashgrepError):
        await workspace.service(REVISIONS).ask_repository(ask)


async def test_a_repository_without_a_commit_is_reported_as_such(
    tmp_path: Path,
) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "-q")
    async with opened(root) as fresh:
        with pytest.raises(FlashgrepError, match="the repository has no commit yet"):
            await fresh.service(REVISIONS).ask_repository(
                lambda asked: repository.list_commits(asked, "HEAD", b"", 0, 3)
            )


def test_methods_answer_for_the_project_alone(daemon: DaemonAtHand, root: Path) -> None:
    put(root, {"outer.txt": b"secret\n"})
    commit(root, "outer secret")
    put(root, {"inner/a.txt": b"one\n", "inner/deep/b.txt": b"two\n"})
    commit(root, "inner")
    inner = root / "inner"
    wire = daemon.wire("unix")
    mine = {"project": str(inner)}
    told = wire.call("history", **mine)
    assert [one["subject"] for one in told["results"]] == ["inner"]
    assert wire.call("blame", **mine, path="a.txt")["commits"][0]["subject"] == "inner"
    for path in ("../outer.txt", "/etc/passwd", "deep/../../outer.txt"):
        assert (
            wire.fail("history", **mine, path=path)["data"]["reason"] == "outside_root"
        ), path
        assert (
            wire.fail("blame", **mine, path=path)["data"]["reason"] == "outside_root"
        ), path
    assert wire.fail("blame", **mine, path="none")["data"]["reason"] == "file_not_found"
    assert (
        wire.fail("blame", **mine, path="a.txt", start_line=50)["data"]["reason"]
        == "file_not_found"
    )
    (inner / "new.txt").write_text("x")
    now = wire.call("list_folder", **mine)
    assert [(one["file_path"], one.get("files")) for one in now["results"]] == [
        ("deep", 1),
        ("a.txt", None),
        ("new.txt", None),
    ]
    then = wire.call("list_folder", **mine, rev="HEAD")
    assert [one["file_path"] for one in then["results"]] == ["deep", "a.txt"]
    assert wire.call("list_folder", **mine, path="deep")["total"] == 1
    assert wire.call("list_revisions", **mine)["results"][0]["kind"] == "branch"
    first = wire.call("history", **mine, limit=1, rev="HEAD")
    assert first["next"] is None
    wire.close()


def test_names_of_revisions_are_printed_on_a_line_each() -> None:
    names = [
        {
            "name": "main\x1b[2J",
            "kind": "branch",
            "commit": "0123456789abcdef" * 2,
            "time": 1_795_460_892,
        }
    ]
    lines = list(render_revisions({"results": names}, Style(is_person=True)))  # type: ignore[typeddict-item]
    assert lines == [r"0123456789 2026-11-23 branch main\x1b[2J"]
