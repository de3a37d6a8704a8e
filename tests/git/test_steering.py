"""What a repository's settings and files can make git do: run nothing, read nothing elsewhere, not hang, not grow."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from flashgrep.base.child_process import (
    PIPE_SECONDS,
    ChildEnded,
    run_child,
    waits_at_pipe,
)
from flashgrep.base.errors import FlashgrepError, Unavailable
from flashgrep.files import scopes
from flashgrep.parts.git import program, repository
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.revisions import BOUND_REVISIONS, REVISIONS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.git import commit, git
from tests.support.processes import has_ended
from tests.support.workspace import files_with, opened, put

QUICK = 60.0
"""Seconds for all questions together, on a loaded machine, too; one git that is waited for takes longer (``patient``)."""

OPTIONS = {
    "blame.ignoreRevsFile": "FILE",
    "mailmap.file": "FILE",
    "mailmap.blob": "HEAD:a.txt",
    "core.attributesFile": "FILE",
    "core.excludesFile": "FILE",
    "format.signatureFile": "FILE",
    "commit.template": "FILE",
    "core.notesRef": "FILE",
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
    "fetch.fsck.skipList": "FILE",
    "fsck.skipList": "FILE",
    "filter.evil.clean": "RUN",
    "filter.evil.process": "RUN",
    "filter.evil.smudge": "RUN",
    "gpg.program": "RUN",
    "gpg.ssh.program": "RUN",
    "gpg.ssh.allowedSignersFile": "FILE",
    "gpg.ssh.defaultKeyCommand": "RUN",
    "gpg.ssh.revocationFile": "FILE",
    "http.cookieFile": "FILE",
    "http.proxy": "http://127.0.0.1:9",
    "http.sslCAInfo": "FILE",
    "http.sslCert": "FILE",
    "http.sslKey": "FILE",
    "include.path": "MISSING",
    "includeIf.gitdir:/.path": "MISSING",
    "interactive.diffFilter": "RUN",
    "log.mailmap": "true",
    "log.showSignature": "true",
    "man.evil.cmd": "RUN",
    "merge.evil.driver": "RUN",
    "notes.displayRef": "refs/*",
    "pager.blame": "RUN",
    "protocol.ext.allow": "always",
    "receive.fsck.skipList": "FILE",
    "receive.procReceiveRefs": "refs",
    "remote.origin.proxy": "http://127.0.0.1:9",
    "remote.origin.promisor": "true",
    "remote.origin.receivepack": "RUN",
    "remote.origin.uploadpack": "RUN",
    "remote.origin.url": "ext::RUN",
    "remote.origin.vcs": "evil",
    "extensions.partialClone": "origin",
    "safe.directory": "FILE",
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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait long for a git, so that one that is given up for another reason is told apart from a slow one."""
    monkeypatch.setattr(program, "SILENT_SECONDS", 2 * QUICK)


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
    missing = tmp_path / "missing"
    places = {
        "FILE": pipe, "RUN": script, "HOOKS": hooks, "TARGET": target, "MISSING": missing,
    }  # fmt: skip
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


@pytest.mark.parametrize("option", ["include.path", "includeIf.gitdir:/.path"])
async def test_settings_that_include_a_pipe_are_given_up_soon(
    root: Path, tmp_path: Path, workspace: Workspace, option: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    git(root, "config", option, str(pipe))
    started = time.monotonic()
    for question in list_questions(workspace):
        with pytest.raises(Unavailable) as waiting:
            await question()
        assert waiting.value.reason == "repository_broken"
    assert time.monotonic() - started < QUICK


def test_the_users_excludes_are_looked_up_in_bounded_time(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scopes, "_CONFIG_SECONDS", 2 * QUICK)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    folder = os.fsencode(root)
    usual = scopes.find_global_excludes(folder)
    for target in (str(pipe), "/dev/zero"):
        git(root, "config", "include.path", target)
        started = time.monotonic()
        assert scopes.find_global_excludes(folder) == usual
        assert time.monotonic() - started < QUICK
        (root / ".git" / "config").write_bytes(b"[core]\n")
    git(root, "config", "core.excludesFile", "a" * 100_000)
    assert scopes.find_global_excludes(folder) == usual


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells")
@pytest.mark.parametrize(
    ("command", "waits"), [(["cat"], True), (["sh", "-c", "x=$(cat)"], False)]
)
def test_a_git_that_waits_for_its_own_child_is_not_ended(
    command: list[str], *, waits: bool
) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        place = Path(f"/proc/{process.pid}/wchan")
        ends = time.monotonic() + QUICK
        while b"pipe_read" not in place.read_bytes() and time.monotonic() < ends:
            os.sched_yield()
        assert waits_at_pipe(process.pid) == waits


@pytest.mark.parametrize(
    "script", ["exec yes", "exec sleep 100", "sleep 100", "head -c 3000000000 /dev/zero | tail"]
)  # fmt: skip
def test_a_git_that_hangs_or_grows_is_ended_with_its_children(
    tmp_path: Path, script: str
) -> None:
    program_file = tmp_path / "git"
    pid = tmp_path / "pid"
    program_file.write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\n{script}\n")  # fmt: skip
    program_file.chmod(0o755)
    for seconds in (0.5, 5, QUICK):
        with suppress(ChildEnded):
            ended = run_child(
                [str(program_file)], seconds=seconds, memory=64 << 20, most=100
            )
            assert len(ended.out) <= 100
        # On a loaded machine it may be ended before it has begun.
        if pid.exists():
            break
    assert has_ended(int(pid.read_text()))


@pytest.mark.parametrize("what", ["object", "pack", "shared index"])
async def test_a_pipe_among_gits_other_files_ends_git_soon(
    root: Path, workspace: Workspace, what: str
) -> None:
    rev = "HEAD"
    if what == "object":
        tree = git(root, "rev-parse", "HEAD^{tree}").decode().strip()
        pipe = root / ".git/objects" / tree[:2] / tree[2:]
    elif what == "pack":
        git(root, "repack", "-a", "-d", "-q")
        (pipe,) = (root / ".git/objects/pack").glob("*.idx")
    else:
        git(root, "update-index", "--split-index")
        (pipe,) = (root / ".git").glob("sharedindex.*")
        rev = ":index"
    pipe.unlink()
    os.mkfifo(pipe)
    started = time.monotonic()
    with pytest.raises(FlashgrepError) as waiting:
        await workspace.service(REVISIONS).at(rev)
    assert waiting.value.reason in {
        "repository_broken",
        "revision_not_found",
        "object_missing",
    }
    assert time.monotonic() - started < QUICK
    assert await files_with(workspace, "word") == {b"a.txt"}


async def test_a_missing_object_is_asked_of_no_promised_address(
    root: Path, workspace: Workspace
) -> None:
    blob = git(root, "rev-parse", "HEAD:a.txt").decode().strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for option, value in (
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", address),
            ("http.proxy", address),
            ("core.gitProxy", "false"),
        ):
            git(root, "config", option, value)
        view = await workspace.service(REVISIONS).at("HEAD")
        with pytest.raises(Unavailable) as missing:
            await view.search(Question(pattern=Pattern(texts=("word",)), limit=5))
        assert missing.value.reason == "object_missing"
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_refs_of_replacement_and_grafts_change_no_revision(
    root: Path, workspace: Workspace
) -> None:
    names = git(root, "rev-parse", "HEAD", "HEAD~1").decode().split()
    blobs = git(root, "rev-parse", "HEAD:a.txt", "HEAD~1:a.txt").decode().split()
    git(root, "update-ref", f"refs/replace/{blobs[0]}", blobs[1])
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/grafts").write_text(f"{names[0]}\n")
    view = await workspace.service(REVISIONS).at("HEAD")
    answer = await view.search(Question(pattern=Pattern(texts=("more",)), limit=5))
    assert len(answer.results) == 1


PIPES = (
    "HEAD", "index", "config", "packed-refs", "shallow", "commondir", "info/attributes", "info/grafts",
    "objects/info/alternates", "objects/info/commit-graph", "refs/heads/pipe", "../.mailmap",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", PIPES)
async def test_a_pipe_or_device_in_the_place_of_a_file_of_gits_costs_no_time(
    root: Path, workspace: Workspace, name: str, kind: str
) -> None:
    pipe = root / ".git" / name
    pipe.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(pipe)
    else:
        pipe.symlink_to("/dev/zero")
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
    times = 20
    for _ in range(times):
        with pytest.raises(Unavailable) as again:
            await workspace.service(REVISIONS).at("HEAD")
        assert again.value.reason == "repository_broken"
    # Each that ran git again would wait.
    assert time.monotonic() - started < times * PIPE_SECONDS / 2
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
