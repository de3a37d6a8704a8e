"""What a repository's settings and files can make git do: run nothing, read nothing elsewhere, not hang, not grow."""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from flashgrep.base.errors import FlashgrepError, Unavailable
from flashgrep.parts.git import program, repository
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.revisions import BOUND_REVISIONS, REVISIONS
from flashgrep.project import Workspace
from tests.support.git import commit, git
from tests.support.workspace import files_with, opened, put

QUICK = 5.0
"""Seconds for all questions together; one hanging git alone would take longer (``SILENT_SECONDS``)."""

OPTIONS = {
    "blame.ignoreRevsFile": "FILE",
    "mailmap.file": "FILE",
    "mailmap.blob": "HEAD:a.txt",
    "core.attributesFile": "FILE",
    "core.excludesFile": "FILE",
    "format.signatureFile": "FILE",
    "commit.template": "FILE",
    "core.askPass": "RUN",
    "core.alternateRefsCommand": "RUN",
    "core.editor": "RUN",
    "core.fsmonitor": "RUN",
    "core.gitProxy": "RUN",
    "core.hooksPath": "HOOKS",
    "core.pager": "RUN",
    "core.sshCommand": "RUN",
    "credential.helper": "!RUN",
    "diff.evil.command": "RUN",
    "diff.evil.textconv": "RUN",
    "diff.external": "RUN",
    "diff.orderFile": "FILE",
    "filter.evil.clean": "RUN",
    "filter.evil.process": "RUN",
    "filter.evil.smudge": "RUN",
    "gpg.program": "RUN",
    "gpg.ssh.program": "RUN",
    "gpg.ssh.allowedSignersFile": "FILE",
    "gpg.ssh.defaultKeyCommand": "RUN",
    "gpg.ssh.revocationFile": "FILE",
    "http.cookieFile": "FILE",
    "http.sslCAInfo": "FILE",
    "interactive.diffFilter": "RUN",
    "log.mailmap": "true",
    "log.showSignature": "true",
    "man.evil.cmd": "RUN",
    "merge.evil.driver": "RUN",
    "notes.displayRef": "refs/*",
    "pager.blame": "RUN",
    "protocol.ext.allow": "always",
    "receive.procReceiveRefs": "refs",
    "remote.origin.promisor": "true",
    "remote.origin.receivepack": "RUN",
    "remote.origin.uploadpack": "RUN",
    "remote.origin.url": "ext::RUN",
    "remote.origin.vcs": "evil",
    "extensions.partialClone": "origin",
    "sequence.editor": "RUN",
    "sendemail.sendmailCmd": "RUN",
    "submodule.recurse": "true",
    "trace2.eventTarget": "TARGET",
    "trace2.normalTarget": "TARGET",
    "trace2.perfTarget": "TARGET",
    "uploadpack.packObjectsHook": "RUN",
    "url.ext::RUN.insteadOf": "https:",
}
"""Options of git-config(1) that name a file, a program or an address. FILE: a pipe that nobody writes to."""


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    put(
        root,
        {
            "a.txt": b"word\n",
            ".gitattributes": b"*.txt filter=evil diff=evil merge=evil\n",
        },
    )
    commit(root)
    put(root, {"a.txt": b"word\nmore\n"})
    commit(root)
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


def list_questions(workspace: Workspace) -> list[Callable[[], Awaitable[object]]]:
    """Return a question of every kind that runs git."""
    names = partial(repository.list_names, most=5)
    commits = partial(
        repository.list_commits, rev="HEAD", path=b"a.txt", skip=0, most=5
    )
    lines = partial(repository.blame, rev="HEAD", path=b"a.txt", lines=(1, 2))
    questions: list[Callable[[], Awaitable[object]]] = []
    for revisions in (workspace.service(REVISIONS), workspace.service(BOUND_REVISIONS)):
        questions += [
            partial(revisions.at, rev)
            for rev in ("HEAD", "HEAD~1", ":index", "HEAD~1..HEAD")
        ]
        questions.append(partial(revisions.compare, "HEAD~1", compare_states))
        questions.append(partial(revisions.ask_repository, names))
        questions.append(partial(revisions.ask_repository, commits))
        questions.append(partial(revisions.ask_repository, lines))
    return questions


@pytest.mark.parametrize("option", OPTIONS)
async def test_an_option_that_names_a_file_or_a_program_has_no_effect(
    root: Path, tmp_path: Path, workspace: Workspace, option: str
) -> None:
    marker, script, pipe = tmp_path / "marker", tmp_path / "run", tmp_path / "pipe"
    target = tmp_path / "target"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    os.mkfifo(pipe)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (hooks / hook).symlink_to(script)
    places = {"FILE": pipe, "RUN": script, "HOOKS": hooks, "TARGET": target}
    value, name = OPTIONS[option], option
    for word, path in places.items():
        value, name = value.replace(word, str(path)), name.replace(word, str(path))
    git(root, "config", name, value)
    started = time.monotonic()
    for question in list_questions(workspace):
        assert await question() is not None
    assert time.monotonic() - started < QUICK
    assert not marker.exists()
    assert not target.exists()


@pytest.mark.parametrize(
    "option",
    ["blame.ignoreRevsFile", "mailmap.file", "core.attributesFile", "include.path"],
)
async def test_an_endless_file_is_not_read(
    root: Path, workspace: Workspace, option: str
) -> None:
    git(root, "config", option, "/dev/zero")
    started = time.monotonic()
    for question in list_questions(workspace):
        try:
            assert await question() is not None
        except Unavailable:
            assert option == "include.path"
    assert time.monotonic() - started < QUICK


PIPES = (
    "HEAD", "index", "config", "packed-refs", "shallow", "commondir", "info/attributes", "info/grafts",
    "objects/info/alternates", "objects/info/commit-graph", "refs/heads/pipe", "../.mailmap",
)  # fmt: skip


@pytest.mark.parametrize("name", PIPES)
async def test_a_pipe_in_the_place_of_a_file_of_gits_costs_no_time(
    root: Path, workspace: Workspace, name: str
) -> None:
    pipe = root / ".git" / name
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    started = time.monotonic()
    questions = list_questions(workspace)
    questions.append(partial(workspace.service(REVISIONS).at, "pipe"))
    refused = 0
    for question in questions:
        try:
            await question()
        except FlashgrepError as error:
            refused += error.reason in {
                "repository_broken",
                "repository_not_found",
                "repository_outside",
            }
    assert refused
    assert time.monotonic() - started < QUICK
    assert await files_with(workspace, "word") == {b"a.txt"}


async def test_a_repository_that_hangs_git_is_remembered_until_it_changes(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / ".git" / "pipe")
    git(root, "config", "include.path", "pipe")
    monkeypatch.setattr(program, "SILENT_SECONDS", 1.2)
    with pytest.raises(Unavailable) as hung:
        await workspace.service(REVISIONS).at("HEAD")
    assert hung.value.reason == "repository_broken"
    started = time.monotonic()
    for _ in range(20):
        with pytest.raises(Unavailable) as again:
            await workspace.service(REVISIONS).at("HEAD")
        assert again.value.reason == "repository_broken"
    assert time.monotonic() - started < 1
    (root / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    assert (await workspace.service(REVISIONS).at("HEAD")).files


async def test_a_git_that_allocates_too_much_is_a_broken_repository(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"large.txt": b"a line of text\n" * (4 << 20)})
    commit(root)
    monkeypatch.setattr(program, "MEMORY_BYTES", 32 << 20)
    with pytest.raises(Unavailable) as large:
        await workspace.service(REVISIONS).ask_repository(
            partial(repository.blame, rev="HEAD", path=b"large.txt", lines=(1, 1))
        )
    assert large.value.reason == "repository_broken"
    assert "memory" in large.value.message.lower()
