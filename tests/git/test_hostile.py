"""Repositories made to harm, broken ones, clones that lack objects: nothing runs, nothing is fetched, errors tell."""

import os
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from flashgrep.base.errors import FlashgrepError, Forbidden, NotFound, Unavailable
from flashgrep.files import scopes
from flashgrep.parts.git import program, repository
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.git import IDENTITY, commit, git
from tests.support.workspace import files_with, opened, put

SETTINGS = {
    "core.fsmonitor": "RUN", "core.hooksPath": "HOOKS", "core.sshCommand": "RUN", "core.askPass": "RUN",
    "core.pager": "RUN", "core.editor": "RUN", "core.gitProxy": "RUN", "core.alternateRefsCommand": "RUN",
    "credential.helper": "!RUN", "alias.cat-file": "!RUN", "alias.ls-tree": "!RUN", "alias.ls-files": "!RUN",
    "alias.blame": "!RUN", "alias.rev-list": "!RUN", "log.showSignature": "true",
    "diff.external": "RUN", "diff.evil.textconv": "RUN", "diff.evil.command": "RUN", "pager.ls-tree": "RUN",
    "filter.evil.clean": "RUN", "filter.evil.smudge": "RUN", "filter.evil.process": "RUN", "filter.evil.required": "1",
    "uploadpack.packObjectsHook": "RUN", "gpg.program": "RUN", "core.untrackedCache": "true",
}  # fmt: skip
"""What git runs for a repository that says so, somewhere."""


async def lines_with(workspace: Workspace, rev: str, text: str) -> int:
    view = await workspace.service(REVISIONS).at(rev)
    answer = await view.search(
        Question(pattern=Pattern(texts=(text,), mode="literal"), limit=1000)
    )
    return len(answer.results)


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


@pytest.mark.parametrize("setting", SETTINGS)
async def test_a_setting_that_names_a_program_runs_nothing(
    root: Path, tmp_path: Path, workspace: Workspace, setting: str
) -> None:
    put(
        root,
        {
            "a.txt": b"word\n",
            "b.txt": b"word\n",
            ".gitattributes": b"*.txt filter=evil diff=evil\n",
        },
    )
    commit(root)
    put(root, {"a.txt": b"word two\n"})
    commit(root)
    put(root, {"a.txt": b"word three\n"})
    run = tmp_path / "run"
    marker, script = run / "marker", run / "run"
    run.mkdir()
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    for hook in (
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "post-checkout",
    ):
        (run / hook).symlink_to(script)
    git(
        root,
        "config",
        setting,
        SETTINGS[setting].replace("RUN", str(script)).replace("HOOKS", str(run)),
    )
    if setting in {
        "core.fsmonitor",
        "filter.evil.clean",
    }:  # the trap is one: everyday git steps into it
        git(root, "diff", check=False)
        assert marker.exists()
        marker.unlink()
    for rev in ("HEAD", "HEAD~1", ":index", "HEAD~1..HEAD", "HEAD~1...HEAD"):
        assert await lines_with(workspace, rev, "word")
    with pytest.raises(NotFound):
        await workspace.service(REVISIONS).at("nosuch")
    for rev in ("HEAD", ":index", "HEAD~1..HEAD", "HEAD..:index"):
        assert (
            await workspace.service(REVISIONS).compare(rev, compare_states)
            or "index" in rev
        )
    for rev in ("HEAD", "HEAD~1"):
        ask = partial(repository.list_commits, rev=rev, path=b"a.txt", skip=0, most=5)
        assert await workspace.service(REVISIONS).ask_repository(ask)
        asked = partial(repository.blame, rev=rev, path=b"a.txt", lines=(1, 5))
        assert await workspace.service(REVISIONS).ask_repository(asked)
    await workspace.service(REVISIONS).ask_repository(
        partial(repository.list_names, most=5)
    )
    assert not marker.exists()


async def test_a_partial_clone_names_what_it_lacks_and_fetches_nothing(
    root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q")
    git(source, "config", "uploadpack.allowFilter", "true")
    put(source, {"a.txt": b"word old\n"})
    commit(source)
    put(source, {"a.txt": b"word new\n"})
    commit(source)
    root.rename(tmp_path / "away")
    git(source, "clone", "-q", "--filter=blob:none", f"file://{source}", str(root))
    objects = git(root, "count-objects", "-v")
    blob = git(source, "rev-parse", "HEAD~1:a.txt").decode().strip()
    async with opened(root, environ=dict(os.environ)) as workspace:
        assert await lines_with(workspace, "HEAD", "word") == 1
        with pytest.raises(Unavailable) as missing:
            await lines_with(workspace, "HEAD~1", "word")
        assert missing.value.reason == "object_missing"
        assert missing.value.data["object"] == blob
        assert await lines_with(workspace, "HEAD", "new") == 1
    assert git(root, "count-objects", "-v") == objects


async def test_a_shallow_clone_says_where_its_history_ends(
    root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q")
    for text in (b"one\n", b"two\n", b"three\n"):
        put(source, {"a.txt": text})
        commit(source)
    root.rename(tmp_path / "away")
    git(source, "clone", "-q", "--depth=2", f"file://{source}", str(root))
    async with opened(root, environ=dict(os.environ)) as workspace:
        assert await lines_with(workspace, "HEAD~1", "two") == 1
        with pytest.raises(NotFound) as beyond:
            await lines_with(workspace, "HEAD~2", "one")
        assert "shallow" in beyond.value.message


@pytest.mark.parametrize("what", ["HEAD", "config", "refs", "objects", "blob", "index"])
async def test_a_broken_repository_is_reported_and_the_work_tree_is_searched(
    root: Path, tmp_path: Path, workspace: Workspace, what: str
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    blob = git(root, "rev-parse", "HEAD:a.txt").decode().strip()
    broken = (
        root / ".git" / (f"objects/{blob[:2]}/{blob[2:]}" if what == "blob" else what)
    )
    broken.rename(tmp_path / "broken")
    if what in {"HEAD", "config", "blob", "index"}:
        broken.write_bytes(b"\0nonsense [")
    with pytest.raises(FlashgrepError) as told:
        await lines_with(workspace, ":index" if what == "index" else "HEAD", "word")
    assert told.value.reason in {
        "repository_broken",
        "repository_not_found",
        "object_missing",
        "revision_not_found",
    }
    assert await files_with(workspace, "word") == {b"a.txt"}


async def test_a_folder_without_a_repository_says_so(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": b"word\n"})
    async with opened(tmp_path, environ=dict(os.environ)) as workspace:
        with pytest.raises(NotFound) as none:
            await workspace.service(REVISIONS).at("HEAD")
        assert none.value.reason == "repository_not_found"


async def test_without_git_revisions_are_refused(root: Path) -> None:
    async with opened(root, environ={"PATH": "/nowhere"}) as workspace:
        with pytest.raises(Unavailable) as none:
            await workspace.service(REVISIONS).at("HEAD")
        assert none.value.reason == "git_not_found"


async def test_the_daemons_own_environment_names_no_repository(
    root: Path, tmp_path: Path
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    git(tmp_path, "init", "-q")
    names = {
        "GIT_DIR": str(tmp_path / ".git"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path),
        "GIT_INDEX_FILE": "/dev/null",
    }
    async with opened(root, environ={**os.environ, **IDENTITY, **names}) as workspace:
        assert await lines_with(workspace, "HEAD", "word") == 1
        assert await lines_with(workspace, ":index", "word") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a repository to another user")
async def test_a_repository_of_another_user_is_not_opened(
    root: Path, workspace: Workspace
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    git(root, "config", "safe.directory", "*")
    for folder in (root, root / ".git"):
        os.chown(folder, 4242, 4242)
    with pytest.raises(Forbidden) as refused:
        await lines_with(workspace, "HEAD", "word")
    assert refused.value.reason == "repository_not_trusted"


async def test_a_pipe_that_nobody_writes_to_ends_git_not_the_question(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    os.mkfifo(root / ".git" / "pipe")
    git(root, "config", "include.path", "pipe")
    monkeypatch.setattr(program, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(scopes, "_CONFIG_SECONDS", 0.3)
    with pytest.raises(Unavailable) as hung:
        await lines_with(workspace, "HEAD", "word")
    assert hung.value.reason == "repository_broken"
    assert await files_with(workspace, "word") == {b"a.txt"}


async def test_while_git_waits_at_a_pipe_others_are_answered(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    os.mkfifo(root / ".git" / "pipe")
    git(root, "config", "include.path", "pipe")
    monkeypatch.setattr(scopes, "_CONFIG_SECONDS", 0.3)
    asked: list[threading.Thread] = []

    def note(folder: bytes) -> bytes:
        asked.append(threading.current_thread())
        return find(folder)

    find = scopes.find_global_excludes
    monkeypatch.setattr(scopes, "find_global_excludes", note)
    async with opened(root) as workspace:
        assert await files_with(workspace, "word") == {b"a.txt"}
    assert asked
    assert threading.main_thread() not in asked


async def test_a_tree_that_names_itself_a_billion_times_is_cut(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    tree = git(root, "rev-parse", "HEAD^{tree}").decode().strip()
    for _ in range(8):
        entries = "".join(f"040000 tree {tree}\t{number}\n" for number in range(10))
        tree = git(root, "mktree", given=entries.encode()).decode().strip()
    bomb = git(root, "commit-tree", "-m", "bomb", tree).decode().strip()
    monkeypatch.setattr(program, "MOST_OUTPUT", 1 << 20)
    with pytest.raises(Unavailable) as cut:
        await workspace.service(REVISIONS).at(bomb)
    assert "more files" in cut.value.message
