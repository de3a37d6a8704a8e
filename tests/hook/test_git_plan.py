"""A ``git grep`` as it is planned prints what git prints: the same lines in the same order."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from flashgrep.parts.hook.git_plan import Git, plan
from tests.hook.project import LOCALES, Project, run
from tests.support.rg_tree import commands, make_tree
from tests.support.workspace import opened, put

GIT = shutil.which("git") or "git"
PLANNED = r"""
-n needle | needle | -n needle -- *.py | -n needle -- sub | -n needle -- sub/ | -n needle sub | -l needle | -c needle
-in NEEDLE | -nw needle | -nF needle( | -nE needle|other_words | -n needle\|other_words | -nP \bneedle\b | -hn needle
-n -e needle -e other_words | -n -e needle --or -e foo | -n -A2 needle | -n -C1 needle -- *.c | --heading --break -n needle
-n --full-name needle | --name-only needle | -lz needle | -n zzzz_not_there | -qn needle | -no needle | -n needle *.py
-n needle -- . | -n needle -- a.txt | -n needle -- sub :!sub/deep | -n needle -- :!*.py | -nI needle | -na needle
--color=always needle | -n -f patterns.txt | -n needle -- build | -n needle -- .hid/inner.txt | -n -2 needle
-n needle -- nope | -np needle | -nW needle -- *.c | --count needle
"""
UNCHANGED = r"""
-nv needle | -L needle | -n needle HEAD | -n needle HEAD -- sub | --cached needle | --untracked needle | -n needle -- :/sub
--no-index needle | needle -n | -n --and -e a -e b | -n needle nope | -n ( -e a ) | -n needle -- ../x | -n needle master
-n needle a.txt b.py sub sub/one.c sub/two.h build .hid late.bin sub
-n needle -- s*/one.c | --max-depth 1 needle | -Oless needle | -n -- needle | -n needle -- :(icase)SUB | --nosuch needle
"""
PATTERNS = r"""
needle Needle need.e needle$ ^needle \<needle\> needle\b other_words foobar zzzz need*le [Nn]eedle needle\|foobar
needle|other_words foo.two nothing needle( .*needle 7 f built hidden ignored just.*saved need\{0,1\}le
"""
FLAGS = r"""
-n -i -w -F -E -P -G -l -o -h -H -c -v -L -A1 -B1 -C1 -q -I -a -z -W -p --heading --break --full-name --column
--color=always --name-only --count --or --untracked --text
"""
PATHS = """
| | | sub | sub/ | -- sub | -- *.py | -- *.txt | -- a.txt sub | -- :!sub | -- sub :!*.c | -- build | -- .hid | -- .
| *.c | -- sub/deep | -- nope | a.txt | -- many/3 | -- *e.py | -- *.log | -- sub* | HEAD | -- b.* build
"""


def run_git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([GIT, *identity, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(GIT, str(tmp_path_factory.mktemp("home")), "")


@contextmanager
def git_project(root: Path) -> Iterator[Project]:
    """Yield a repository with tracked files of all kinds, some of which have changed since it was indexed."""
    make_tree(root)
    shutil.rmtree(root / ".git")
    put(
        root,
        {f"many/{at % 7}/{at}.txt": f"nothing {at}\n".encode() for at in range(300)},
    )
    for name in ("a.txt", "b.py", "sub/one.c", "sub/deep/er/five.py", "late.bin"):
        path = root / name
        path.write_bytes(
            path.read_bytes() + b"\n a needle( in it\nNeedle other_words\n"
        )
    for name in ("build/out.txt", ".hid/inner.txt", "ignored.log", "sub/two.h"):
        (root / name).write_bytes(b"needle other_words\n")
    (root / "patterns.txt").write_bytes(b"needle\nother_words\n")
    (root / "build" / "not_tracked.txt").write_bytes(b"needle\n")
    run_git(root, "init", "-q", "-b", "master")
    run_git(root, "add", "-f", ".")
    run_git(root, "rm", "-q", "--cached", "build/not_tracked.txt")
    run_git(root, "commit", "-qm", "all")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened(root)) as workspace,
    ):
        portal.call(workspace.wait_indexed)
        (root / "sub" / "one.c").write_bytes(b"int foo; /* bar needle */\n")
        (root / "fresh.c").write_bytes(b"needle, untracked\n")
        (root / "sub-y" / "four.rs").unlink()
        assert portal.call(workspace.refresh)
        snapshot = workspace.snapshot()
        assert snapshot.pending
        yield Project(root, snapshot, workspace.walker)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with git_project(tmp_path_factory.mktemp("git")) as made:
        yield made


@pytest.mark.parametrize("arguments", commands(PLANNED), ids=" ".join)
def test_common_searches_are_planned_and_print_the_same(
    project: Project, git: Git, arguments: list[str]
) -> None:
    planner = partial(plan, git=git)
    assert project.check(GIT, planner, ["grep", *arguments], project.root)


@pytest.mark.parametrize("arguments", commands(UNCHANGED), ids=" ".join)
def test_what_is_not_understood_runs_as_it_is(
    project: Project, git: Git, arguments: list[str]
) -> None:
    cwd = os.fsencode(project.root)
    words = ["grep", *arguments]
    assert plan(words, cwd, project.snapshot, project.walker, git) is None


def draw(rng: random.Random) -> list[str]:
    """Return a random command line."""
    flags = rng.sample(FLAGS.split(), rng.choice([0, 1, 1, 2, 3]))
    paths = rng.choice(PATHS.replace("\n", " ").split(" | ")).split()
    return ["grep", *flags, rng.choice(PATTERNS.split()), *paths]


def compare_drawn(project: Project, git: Git, rng: random.Random, calls: int) -> int:
    """Compare random calls with git; return how many were planned."""
    planned = 0
    planner = partial(plan, git=git)
    for _ in range(calls):
        below = rng.choice([project.root, project.root, project.root / "sub"])
        locale = rng.choice(LOCALES)
        planned += project.check(GIT, planner, draw(rng), below, locale)
    return planned


@pytest.mark.slow
def test_drawn_searches_print_what_git_prints(project: Project, git: Git) -> None:
    assert compare_drawn(project, git, random.Random(36), 120) > 40


def test_settings_and_marks_that_change_a_search_leave_it_to_git(
    project: Project, git: Git
) -> None:
    root = project.root
    planner = partial(plan, git=git)
    words = ["grep", "-n", "needle"]
    assert project.check(GIT, planner, words, root)
    for name, value in (
        ("grep.patternType", "perl"),
        ("grep.extendedRegexp", "true"),
        ("submodule.recurse", "true"),
    ):
        run_git(root, "config", name, value)
        assert not project.check(GIT, planner, words, root)
        run_git(root, "config", "--unset", name)
    run_git(root, "update-index", "--assume-unchanged", "b.py")
    assert not project.check(GIT, planner, words, root)
    run_git(root, "update-index", "--no-assume-unchanged", "b.py")
    assert project.check(GIT, planner, words, root)


def test_a_work_tree_elsewhere_is_left_to_git(
    project: Project, git: Git, tmp_path: Path
) -> None:
    name = "many/1/1.txt"
    put(tmp_path, {name: b"a needle in another tree\n"})
    run_git(project.root, "config", "core.worktree", str(tmp_path))
    try:
        expected = run(GIT, ["grep", "needle"], project.root)
        assert expected.stdout.startswith(name.encode())
        planner = partial(plan, git=git)
        assert not project.check(GIT, planner, ["grep", "needle"], project.root)
    finally:
        run_git(project.root, "config", "--unset", "core.worktree")
