"""Values that a repository's files give to the system: whatever they are, they harm nobody but git's own answers."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import FlashgrepError
from flashgrep.parts.git import repository
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.project import Workspace
from tests.support.git import commit
from tests.support.workspace import files_with, opened, put
from tests.support.workspace import repository as make_repository

SOURCES = {b"a.txt", b"x/b.txt", b"y/c.txt"}
POINTERS = (
    "x/.git",
    ".pointed/commondir",
    ".git/commondir",
    ".git/gitdir",
    ".git/objects/info/alternates",
    ".git/HEAD",
)
LINES = (
    ".gitmodules",
    ".git/shallow",
    ".git/packed-refs",
    ".git/info/exclude",
    ".git/refs/heads/odd",
)
SETTINGS = (
    "core.excludesFile",
    "core.worktree",
    "core.attributesFile",
    "include.path",
    "mailmap.file",
)
VALUES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([
        b"a\0b", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"../..", b"/", b"", b".", b"..", b"/proc/self/mem", b"/dev/null",
        b"n" * 300, b"n" * 5000, b"d/" * 2000, b"x", b".git", b"../.git", b"ref: refs/heads/\0", b"ref: ../../../etc/x",
        b"\n\n", b"~nobody/x", b"%(prefix)/x", b"~", b"[", b"\r\n",
    ]),
)  # fmt: skip


def fill(root: Path, name: str, value: bytes) -> None:
    """Write a value to one of git's files, as git itself would where it has a form."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes({"x/.git": b"gitdir: "}.get(name, b"") + value + b"\n")


def list_ignored(root: Path) -> set[bytes]:
    """Return the sources that git ignores."""
    process = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=root,
        input=b"\n".join(sorted(SOURCES)),
        capture_output=True,
        check=False,
    )
    return set(process.stdout.splitlines())


async def ask_everything(workspace: Workspace) -> None:
    """Ask about revisions in every way; each either answers or says by a named error what is wrong."""
    ask = workspace.service(REVISIONS)
    names = partial(repository.list_names, most=5)
    commits = partial(
        repository.list_commits, rev="HEAD", path=b"a.txt", skip=0, most=5
    )
    lines = partial(repository.blame, rev="HEAD", path=b"a.txt", lines=(1, 1))
    questions: list[Callable[[], Awaitable[object]]] = [
        partial(ask.at, "HEAD"),
        partial(ask.at, ":index"),
        partial(ask.at, "odd"),
        partial(ask.compare, "HEAD", compare_states),
        partial(ask.ask_repository, names),
        partial(ask.ask_repository, commits),
        partial(ask.ask_repository, lines),
    ]
    for question in questions:
        with suppress(FlashgrepError):  # any other failure is one
            await question()


async def check(name: str, value: bytes) -> None:
    with make_repository() as root:
        put(root, {"a.txt": b"word\n", "x/b.txt": b"word\n", "y/c.txt": b"word\n"})
        commit(root)
        if name in SETTINGS:
            section, _, key = name.partition(".")
            with (root / ".git" / "config").open("ab") as config:
                config.write(
                    b"[%s]\n\t%s = %s\n" % (section.encode(), key.encode(), value)
                )
        else:
            put(root, {"y/.git": b"gitdir: ../.pointed\n"})
            fill(root, name, value)
        async with opened(root, environ=dict(os.environ)) as workspace:
            expected = SOURCES
            if name == ".git/info/exclude":
                # Some values are rules, which git says of itself.
                expected = SOURCES - list_ignored(root)
            assert await files_with(workspace, "word") >= expected
            await ask_everything(workspace)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*POINTERS, *LINES, *SETTINGS])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
def test_any_value_in_one_of_gits_files_leaves_the_project_searchable(
    name: str, value: bytes
) -> None:
    asyncio.run(check(name, value))


@pytest.mark.parametrize("value", [b"a\0b", b"\0", b"n" * 5000, b"d/" * 2000 + b"x"])
@pytest.mark.parametrize("name", ["x/.git", "y/.git/commondir"])
async def test_a_pointer_that_is_no_path_leads_nowhere(
    root: Path, name: str, value: bytes
) -> None:
    put(root, {"a.txt": b"word\n", "x/b.txt": b"word\n", "y/c.txt": b"word\n"})
    if name == "y/.git/commondir":
        put(root, {"y/.git": b"gitdir: ../.pointed\n"})
        name = ".pointed/commondir"
    fill(root, name, value)
    async with opened(root) as workspace:
        assert await files_with(workspace, "word") >= SOURCES
