"""A recursive ``grep`` as it is planned prints what GNU grep prints: the same lines in the same order."""

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from flashgrep.parts.hook.grep_plan import plan
from tests.hook.project import GREP, LOCALES, Project
from tests.support.rg_tree import commands, make_tree
from tests.support.workspace import opened, put

PLANNED = r"""
-rn needle . | -rn needle | -rn needle ./ | -rn needle sub | -rn needle sub/ | -rn needle sub sub-y | -rl needle .
-rn needle a.txt sub | -rni NEEDLE . | -rw needle . | -rwn need . | -rF needle( . | -rn needle( | -rE needle\( .
-rE needle|other_words . | -rn needle\|other_words . | -rno need[a-z]* . | -rn --include=*.py needle .
-rn --include=*.py --include=*.c needle . | -rn --exclude=*.txt needle . | -rn --exclude-dir=sub needle .
-rn --exclude-dir=.git needle . | -rn --exclude-dir=.git --exclude-dir=node needle | -rn -C2 needle . | -A1 -rn needle sub
-rhn needle . | -rn -e needle -e has_been_saved . | -rq needle . | -rl zzzz . | -rn zzzz_not_there . | -rI needle .
-ra needle . | -rn built . | -rn hidden . | -rn ignored . | --recursive --line-number needle . | -rnm1 needle .
-rP need(le) . | -rPn \bneedle\b . | -rP need\w+ . | -rz needle . | -rZl needle . | -r -f patterns.txt . | -rn before .
-rx .*needle.* . | -rn ^.*needle . | -rnE ^\s+a.needle . | -rnE need(le)? . | needle -rn . | -rn needle -- . | -rb needle .
-Rn --exclude-dir=link-* needle . | -Rnl needle sub many | -rRn --exclude-dir=link-* --include=*.txt needle
-Rn --exclude-dir=.* needle sub-y sub | -R -n --exclude-dir=link-* --exclude-dir=.git needle ./ | -Rn needle sub
-rnE (need)le.*\1 . | -rn \(need\)le . | -rn --color=always needle . | -rn nee\{1,2\}dle . | -rnE nee{2}dle . | -rn wide .
"""
NAMED = r"""
-n needle a.txt no-match.txt crlf.txt mixed.txt empty.txt | -l zzzz a.txt b.py sub/one.c | -c needle a.txt | -hn needle a.txt
-n needle ./a.txt ./no-match.txt ./crlf.txt sub/../a.txt | -n needle no-match.txt nope crlf.txt sub late.bin binary.bin
-n needle no-match.txt/ a.txt crlf.txt | -qn needle crlf.txt mixed.txt | -n needle build/out.txt ignored.log crlf.txt
-n needle link.txt crlf.txt mixed.txt | needle a.txt a.txt crlf.txt mixed.txt empty.txt | -n needle fresh.log crlf.txt x
"""
UNCHANGED = r"""
needle a.txt | -rv needle . | -rL needle . | -rc needle . | -Rn needle . | -rn --exclude=sub/* needle . | -rn -e '' .
-rn ( . -P | -rn needle nope | -rn needle link-to-sub | -rn needle .. | -rn e . | -rn needle - | -r --nosuch needle .
-rn \nosuch . | -rE a{1 . | -r -P (?=needle) . | -rn --exclude-dir=./node needle . | -d recurse needle . | -rn -f nope .
-Rn needle sub link-to-sub | -rn needle a.txt | -rn needle link.txt | -rne needle -- a.txt
"""
PATTERNS = r"""
needle Needle need.e needle$ ^needle \<needle\> needle\b other_words foobar zzzz need*le [Nn]eedle needle\|foobar (need)le
needle|other_words été foo.two nothing needle( .*needle saved 7 f built hidden ignored wide just.*saved need\{0,1\}le x*needle
"""
FLAGS = r"""
-n -i -w -x -F -E -P -G -l -o -h -H -c -v -L -m1 -m2 -A1 -B1 -C1 -s -q -I -a -z -Z -b -T -y --color=always -U
--include=*.py --include=*.txt --include=*.[ch] --exclude=*.txt --exclude=a* --exclude-dir=sub --exclude-dir=.git
--exclude-dir=.* --exclude-dir=d* --include=*.log --exclude=*.bin --no-messages --binary-files=text --no-ignore-case
--exclude-dir=build --include=?.py --exclude=é* --null --only-matching --exclude-dir=*
"""
PATHS = """
. | . | ./ | sub | sub/ | sub a.txt | a.txt sub | sub-y sub | build | .hid | .git | | | sub/deep | nope . | link.txt sub
"""

NAMED_SHARE = 0.2
WALKS = (["-r"], ["-r"], ["-r"], ["-R", "--exclude-dir=link-*"], ["-R"])
LISTED = """
a.txt b.py crlf.txt mixed.txt empty.txt newline.txt no-match.txt utf8.txt bom.txt utf16le.txt binary.bin late.bin big.txt
sub/one.c ./sub/two.h sub/deep/er/five.py build/out.txt ignored.log link.txt sub nope many/3/3.txt many/4/4.txt ./tabs.txt
"""


@contextmanager
def grep_project(root: Path) -> Iterator[Project]:
    """Yield a tree with all difficult cases, some of whose files have changed since it was indexed."""
    make_tree(root)
    (root / "sub" / "link.c").symlink_to("../b.py")
    (root / "build" / "back").symlink_to("../build")
    (root / "build" / "gone").symlink_to("nowhere")
    (root / ".hid" / "link").symlink_to("../a.txt")
    put(
        root,
        {f"many/{at % 7}/{at}.txt": f"nothing {at}\n".encode() for at in range(300)},
    )
    for name in (
        "a.txt",
        "b.py",
        "sub/one.c",
        "sub/deep/er/five.py",
        "sub-y/four.rs",
        "with space/a b.txt",
        "build/out.txt",
        ".hid/inner.txt",
        "late.bin",
    ):
        path = root / name
        path.write_bytes(
            path.read_bytes() + b"\n  a needle( in it\nNeedle other_words\n"
        )
    (root / "patterns.txt").write_bytes(b"needle\nother_words\n")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened(root)) as workspace,
    ):
        portal.call(workspace.wait_indexed)
        (root / "sub" / "fresh.c").write_bytes(b"int foo; /* bar needle */\n")
        (root / "fresh.log").write_bytes(b"an ignored needle\n")
        (root / "no-match.txt").write_bytes(b"still nothing, but changed\n")
        shutil.rmtree(root / "sub.x")
        assert portal.call(workspace.refresh)
        snapshot = workspace.snapshot()
        assert snapshot.pending
        yield Project(root, snapshot, workspace.walker)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with grep_project(tmp_path_factory.mktemp("grep")) as made:
        yield made


@pytest.mark.parametrize("arguments", commands(PLANNED), ids=" ".join)
def test_common_searches_are_planned_and_print_the_same(
    project: Project, arguments: list[str]
) -> None:
    assert project.check(GREP, plan, arguments, project.root)


@pytest.mark.parametrize("arguments", commands(NAMED), ids=" ".join)
def test_files_that_are_named_print_the_same(
    project: Project, arguments: list[str]
) -> None:
    project.check(GREP, plan, arguments, project.root)
    absolute = [
        word if word.startswith("-") or word == "needle" else f"{project.root}/{word}"
        for word in arguments
    ]
    project.check(GREP, plan, absolute, project.root)


def test_of_many_files_the_few_are_read_that_may_match(project: Project) -> None:
    names = [f"many/{at % 7}/{at}.txt" for at in range(300)]
    cwd = os.fsencode(project.root)
    words = ["-n", "needle", *names, "a.txt"]
    planned = plan(words, cwd, project.snapshot, project.walker)
    assert planned is not None
    assert planned.words[-1] == b"a.txt"
    assert planned.unread == 300
    assert project.check(GREP, plan, words, project.root)


@pytest.mark.parametrize("arguments", commands(UNCHANGED), ids=" ".join)
def test_what_the_index_cannot_speak_of_runs_as_it_is(
    project: Project, arguments: list[str]
) -> None:
    cwd = os.fsencode(project.root)
    assert plan(arguments, cwd, project.snapshot, project.walker) is None


def draw(rng: random.Random) -> list[str]:
    """Return a random command line."""
    flags = rng.sample(FLAGS.split(), rng.choice([0, 1, 1, 2, 3, 4]))
    paths = rng.choice(PATHS.strip().split(" | ")).split()
    pattern = rng.choice(PATTERNS.split())
    if rng.random() < NAMED_SHARE:
        # As xargs names files.
        return [*flags, pattern, *rng.sample(LISTED.split(), 12), *paths]
    return [*rng.choice(WALKS), *flags, pattern, *paths]


def compare_drawn(project: Project, rng: random.Random, calls: int) -> int:
    """Compare random calls with grep; return how many were planned."""
    planned = 0
    for _ in range(calls):
        below: list[Path] = [project.root, project.root, project.root / "sub"]
        cwd = rng.choice(below)
        locale = rng.choice(LOCALES)
        planned += project.check(GREP, plan, draw(rng), cwd, locale)
    return planned


@pytest.mark.slow
def test_drawn_searches_print_what_grep_prints(project: Project) -> None:
    assert compare_drawn(project, random.Random(36), 150) > 30
