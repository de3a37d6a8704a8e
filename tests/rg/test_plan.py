"""What ``fgrep rg`` gives to ripgrep: whatever is planned prints what the call as it was written prints."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.base.paths import WORD_OVERHEAD
from flashgrep.index.table import Mark
from flashgrep.parts.ripgrep.arguments import (
    COVER,
    HARMLESS,
    PATTERN_FLAGS,
    Call,
    flag_table,
)
from flashgrep.parts.ripgrep.plan import MOST_CHANGED, list_doubtful, plan
from tests.rg.project import Project, check
from tests.support.rg_tree import RG, Said, commands, make_tree, ripgrep
from tests.support.workspace import opened, put

PATTERNS = r"""
foo | foo -n | foo -i | -S foo | -S Foo | -s Foo -i | -w foo | -x foo | -F foo | -F f.o | -e foo -e bar | -f patterns
-i ÉTÉ | foo|bar -o --column | (?i)FOO -c | [^a]foo -o | \w+ -o -g utf* | . -o -g latin* | . -c | \s | \S+ -o | foo$
^foo | ^$ | ^ | $ | -o ^ | -c ^$ | -n ^$ | --vimgrep ^ | --json ^$ | -w f | -w oo | -x .* | .{5} -o -g sub/**
-f patterns -e two a.txt | -f /dev/null | -- -foo | -e -foo | foo -- a.txt | -nio FOO | -w $ -m2 -A3 -i
"""
OUTPUT = r"""
-l foo | --files-without-match foo | -c foo | --count-matches foo | -c foo --include-zero | -o foo | -o -b foo
-o -n --column foo | -A1 foo | -B2 foo | -C1 foo -n | -C 3 foo | -C1 -o foo | -A1 -B0 -C5 foo | -C=1 foo | -nC1 foo
-m1 foo | -m2 -n foo | -m1 -A3 foo | -m0 foo | -m0 --json foo | --max-count 3 foo sub | -c -m1 -A1 foo | --vimgrep foo
--vimgrep -o foo | --column foo | --column -n -A1 foo | --heading foo | --heading -n -C1 foo | --no-heading foo
-b foo | -b -c foo | -0 foo | -0 -l foo | -0 -c foo | -0 --heading foo | --trim foo | --trim --color always foo
-I foo | --no-filename foo -n | -H foo a.txt | --with-filename foo a.txt | foo a.txt | foo -n a.txt | -M 10 foo
-M 10 --color always foo | -M 10 -o foo | -M 0 foo | -M 100 -C1 foo | -q foo | -q nothing-at-all | -q --json foo
-q -c foo | -q --files | --no-messages foo nope | -q --files-without-match foo | -q --files-without-match foo a.txt
-l --files-without-match foo | -c -l foo | -p foo | --json -l foo | -l --json foo | --files -l foo | -o -c foo
--include-zero --count-matches foo a.txt | --no-config foo
"""
COLORS = r"""
--color always foo | --color always -n --column foo | --color ansi -n -C1 foo | --color always -o foo
--color always -l foo | --color always -c foo | --color always --heading foo | --color always --vimgrep foo
--color always -r X foo | --color always -U foo\s+ | --color always --files | --color never foo
"""
REPLACEMENTS = r"""
-r X foo | -r X$0Y foo | -r [$1] (f)oo | -r ${x}y (?P<x>fo)o | -o -r <$1> f(o)o | -r X -n --column foo | -r X -C1 foo
--json -r X foo | -r X --vimgrep foo | -U -r X foo\nbar | --crlf -r X foo$
"""
JSON_AND_STATS = r"""
--json foo | --json -C1 bar | --json -o foo | -m1 -C3 --json foo | --json --stats foo | --json -m1 foo a.txt
-N --json foo | --json -m1 foo | --stats foo | --stats -c foo | --stats -l foo | --stats -m1 foo | --stats -q foo
--stats -C2 foo
"""
LINES = r"""
-U foo\nbar | -U foo.*bar | -U --multiline-dotall foo.*bar | -U -n foo\s+ | -U -o -n foo\s+bar | -U -c foo\s
-U --count-matches foo\s | -U -C1 foo\nbar | -U --json foo\nbar | -U --vimgrep foo\s+\w | -U -m2 foo\s
-U -m1 -A2 foo\s | --crlf foo$ | --crlf -x foo | --crlf -o foo$ | --crlf -c foo | --crlf --color always foo
"""
FILES = r"""
-g *.py foo | -g !*.txt foo | -g sub/** foo | -g !sub foo | --iglob *.PY foo | -g *.log foo | -g=*.py foo | -t py foo
-tc foo | -T py foo | -tc -Tc foo | -t all foo | -T all foo | --hidden foo | -. foo | --no-ignore foo
--no-ignore-vcs foo | -u foo | -uu foo | -uuu foo | -uuu -n foo | --sort path foo | --sortr path foo
--sort modified foo | --sortr modified foo | --files | --files -0 | --files --hidden | --files --no-ignore
--files -uuu | --files -g *.c | --files sub | --files sub a.txt nope | --max-depth 1 foo | --max-depth 2 --files
-d 0 foo | -j1 foo | --type-list | --hidden -g !.git foo | --hidden -g .hid/** foo | -uu -g *.txt foo | -uu -t py foo
--sort none foo -g a.txt | foo a.txt b.py | foo link.txt | foo link-to-sub | foo build | foo build/out.txt ignored.log
foo .hid | foo .git | foo nope | foo nope a.txt | foo ./ | foo ./sub/ | foo sub/../sub | foo bom.txt utf16le.txt
foo -g one.c sub/../sub
"""
BINARY = r"""
foo binary.bin | foo binary.bin a.txt | foo binary.bin sub | bar binary.bin -C1 | foo late.bin | foo late.bin -n -C1
foo late.bin late-line.bin a.txt sub | foo sub late.bin late-line.bin binary2.bin | foo -c late.bin binary.bin
foo -l late.bin binary.bin | foo -o late.bin binary.bin | foo --json late.bin binary.bin | foo --stats late.bin sub
foo --json sub late.bin binary.bin | --files-without-match foo binary.bin | -a foo | -a -n foo | -a --json foo
--binary foo | --binary -c foo | --binary -l foo | -a -U foo\s | -g *.bin -C2 --stats foo | nothing$ -B1 late.bin sub
"""

COMMON = r"""
needle | -n needle | -i NEEDLE | -S Needle | -w needle | -F needle( | -e needle -e other_words | needle sub | needle ./
needle sub sub-y | -l needle | -c needle | -o needle | -C3 needle | --vimgrep needle | --heading -n needle | -q needle
-r X needle | needle -g !*.py | needle -T py | needle -d2 | --sortr path needle | -m1 needle | nowhere_at_all
-n needle sub a.txt | foobar | --column --no-heading --color=never --smart-case needle | -0 -l needle | -I needle
-t py needle | -g *.py needle | --hidden needle -g !.git | -z needle | -tpy -Tc needle | --type-add x:*.py -tx needle
--no-filename needle | needle -j1 | -f patterns.txt | --iglob !*.PY needle | needle sub/../sub | --no-messages needle
"""
"""Commands for which files are spared; all others in this file may run as they are."""
UNCHANGED = r"""
needle a.txt | needle a.txt b.py | needle - | -P needle | --pre cat needle | --no-ignore needle
-u needle | -v needle | --json needle | --stats needle | -U needle | -a needle | --binary needle
-L needle | -E utf-16 needle | --files | --files-without-match needle | --type-list
-c --include-zero needle | needle nope | needle .hid | needle build | needle link-to-sub | needle .. | -m0 needle
--nosuch needle | -% needle | -A | -e | -n=3 needle | --hidden=1 needle | fo | . | ( | -T nosuch needle | -g ![ needle
-f nope | -f - needle | --passthru needle | --null-data needle | --no-unicode needle
--debug needle | -h | --version
--max-filesize 1K needle | --one-file-system needle | --type-clear py needle
--type-add x:include:py needle | --engine auto needle | needle  sub | needle sub  a.txt
"""
"""Two spaces are around an empty argument."""
FLAGS = r"""
-n -N -i -S -s -w -x -F -l -c --count-matches -o -A1 -A3 -B1 -B2 -C1 -C2 -g!*.txt -g!sub -g!sub/** -g!/sub/*.c
--iglob=!*.TXT -g!**/er/** -Tpy -Tc -m1 -m2 --vimgrep --sort=path --sortr=path --sort=modified --column -rX
-r[$1] --heading --no-heading --color=always --color=never -q -I -H -0 --trim -M20 -M0 --no-messages
--max-depth=1 -d2 --crlf --no-config -b -p -eneedle -efoo\b --no-ignore --hidden --hidden -g*.txt -gsub/** -tpy -tc -z
"""
DRAWN = r"""
needle Needle needle$ ^needle n(e)e(d)le \bneedle\b needle|foobar need.* (?i)NEEDLE [^a]needle zzz été foo needle\s
"""
PATHS = """
sub | ./ | . | sub/ | sub a.txt | a.txt sub | sub/deep/../deep | sub.x sub-y | a.txt b.py | nope | build | with space
"""


MEMORY = Path("/dev", "shm")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Return a tree without NUL bytes, which would have every call run as it is."""
    root = tmp_path_factory.mktemp("rg")
    make_tree(root)
    for path in [
        path
        for path in root.rglob("*")
        if path.is_file() and b"\0" in path.read_bytes()
    ]:
        path.unlink()
    for name in (
        "a.txt",
        "b.py",
        "sub/one.c",
        "sub/deep/er/five.py",
        "sub-y/four.rs",
        "with space/a b.txt",
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
        (root / "no-match.txt").write_bytes(b"still nothing, but changed\n")
        assert portal.call(workspace.refresh)
        snapshot = workspace.snapshot()
        assert snapshot.pending
        yield Project(root, snapshot, workspace.walker)


@pytest.mark.parametrize("arguments", commands(COMMON), ids=" ".join)
def test_common_commands_spare_files_and_print_the_same(
    project: Project, arguments: list[str]
) -> None:
    assert check(project, arguments, project.root)
    check(project, arguments, project.root / "sub")


@pytest.mark.parametrize("arguments", commands(UNCHANGED), ids=" ".join)
def test_what_the_index_cannot_speak_of_runs_as_it_is(
    project: Project, arguments: list[str]
) -> None:
    assert project.plan(arguments) is None


@pytest.mark.skipif(not MEMORY.is_dir(), reason="no folder in memory")
def test_patterns_in_a_file_in_memory_are_read(project: Project) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder, "patterns")
        file.write_text("needle\n")
        assert project.plan(["-f", str(file)]) is not None
    assert project.plan(["-f", "/dev/null"]) is None


@pytest.mark.slow
def test_every_flag_of_ripgreps_keeps_its_output(project: Project) -> None:
    every = commands(
        PATTERNS, OUTPUT, COLORS, REPLACEMENTS, JSON_AND_STATS, LINES, FILES, BINARY
    )
    planned = [
        arguments for arguments in every if check(project, arguments, project.root)
    ]
    assert len(planned) > 20


@pytest.mark.slow
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    flags=st.lists(st.sampled_from(FLAGS.split()), max_size=5, unique=True),
    pattern=st.sampled_from(DRAWN.split()),
    paths=st.just("") | st.sampled_from(PATHS.strip().split(" | ")),
    below=st.booleans(),
)
def test_drawn_commands_print_what_ripgreps_print(
    *, project: Project, flags: list[str], pattern: str, paths: str, below: bool
) -> None:
    given = ["with space"] if paths == "with space" else paths.split()
    check(
        project,
        [*flags, pattern, *given],
        project.root / "sub" if below else project.root,
    )


async def test_a_candidate_with_a_nul_byte_has_ripgrep_decide(root: Path) -> None:
    (root / "late.txt").write_bytes(b"needle\n" * 20_000 + b"\0 needle\n")
    (root / "text.txt").write_bytes(b"needle\n")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        call = Call(["needle"], os.fsencode(root), None, readable_input=False)
        assert plan(call, workspace.snapshot(), workspace.walker) is None
        (root / "late.txt").unlink()
        assert await workspace.refresh()
        planned = plan(call, workspace.snapshot(), workspace.walker)
        assert planned is not None
        assert planned[-1] == b"text.txt"


async def test_a_candidate_is_read_only_if_it_may_have_a_nul_byte(root: Path) -> None:
    put(root, {"plain.txt": b"a needle\n", "marked.txt": b"\xef\xbb\xbfneedle\n"})
    (root / "wide.txt").write_bytes("needle\n".encode("utf-16"))
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        (root / "new.txt").write_bytes(b"needle\n")
        assert await workspace.refresh()
        doubtful = list_doubtful(workspace.snapshot())
        assert doubtful >= {b"marked.txt", b"new.txt", b"wide.txt"}
        assert b"plain.txt" not in doubtful
        call = Call(["needle"], os.fsencode(root), None, readable_input=False)
        assert plan(call, workspace.snapshot(), workspace.walker) is None
        (root / "wide.txt").unlink()
        assert await workspace.refresh()
        planned = plan(call, workspace.snapshot(), workspace.walker)
        assert planned is not None
        assert planned[-3:] == [b"marked.txt", b"new.txt", b"plain.txt"]


async def test_a_plan_fits_the_room_that_the_client_has(root: Path) -> None:
    put(root, {f"folder/{at}.txt": b"needle\n" for at in range(40)})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        call = Call(["needle"], os.fsencode(root), None, readable_input=False)
        planned = plan(call, workspace.snapshot(), workspace.walker)
        assert planned is not None
        room = sum(len(word) + WORD_OVERHEAD for word in planned)
        for given, is_planned in ((room, True), (room - 1, False)):
            planned = plan(
                replace(call, room=given), workspace.snapshot(), workspace.walker
            )
            assert (planned is not None) == is_planned


async def test_a_file_that_only_we_ignore_is_ripgreps_to_find(root: Path) -> None:
    put(root, {"sub/a.txt": b"needle\n", "sub/b.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        call = Call(["needle"], os.fsencode(root), None, readable_input=False)
        assert plan(call, workspace.snapshot(), workspace.walker) is not None
        (root / "sub" / ".flashgrepignore").write_bytes(b"b.txt\n")
        assert await workspace.refresh()
        assert plan(call, workspace.snapshot(), workspace.walker) is None
        (root / "sub" / ".flashgrepignore").unlink()
        assert await workspace.refresh()
        assert plan(call, workspace.snapshot(), workspace.walker) is not None


async def test_more_candidates_than_pay_have_ripgrep_walk(root: Path) -> None:
    put(
        root,
        {
            f"{at}.{'py' if at % 8 else 'txt'}": b"needle\n" if at % 4 else b"other\n"
            for at in range(400)
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        plans = Project(root, workspace.snapshot(), workspace.walker).plan
        assert plans(["needle"]) is None
        assert plans(["needle", "-g", "*.py"]) is None
        assert plans(["other"]) is not None
        assert plans(["other", "-g", "*.txt"]) is not None
        assert plans(["other", "-g", "1*.py"]) is not None


async def test_a_tree_that_is_being_indexed_is_ripgreps_to_walk(root: Path) -> None:
    """All files that wait were read, to look for NUL bytes: of Linux a second for each call."""
    put(root, {f"new/{at}.txt": b"needle\n" for at in range(MOST_CHANGED + 1)})
    put(root, {f"old/{at}.txt": b"needle\n" for at in range(2 * MOST_CHANGED)})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        snapshot = workspace.snapshot()
        mark = Mark(ours=True, sequence=1, size=7)
        new = [path for path in snapshot.table.paths if path.startswith(b"new/")]
        for waiting, is_planned in ((new, False), (new[1:], True)):
            changed = replace(snapshot, pending=dict.fromkeys(waiting, mark))
            plans = Project(root, changed, workspace.walker).plan
            assert (plans(["absent"]) is not None) == is_planned
            assert plans(["absent", "old"]) is not None


async def test_a_whole_word_leaves_out_files_with_longer_words_alone(
    root: Path,
) -> None:
    put(root, {f"{at}.c": b"int device, devices;\n" for at in range(90)})
    put(root, {f"net/{at}.c": b"int netdev, x%d;\n" % at for at in range(20)})
    put(root, {"word.c": b"int dev;\n", "last.c": b"dev\xff"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        plans = Project(root, workspace.snapshot(), workspace.walker).plan
        assert plans(["dev"]) is None
        for call in ["-w", "dev"], ["-wi", "DEV"], [r"\bdev\b"]:
            planned = plans(call)
            assert planned is not None
            assert {b"last.c", b"word.c", b"net/1.c"} <= {*planned}
            assert b"1.c" not in planned
        # Once words are stored, those that only end alike are ruled out.
        await workspace.wait_embedded()
        planned = Project(root, workspace.snapshot(), workspace.walker).plan(
            ["-w", "dev"]
        )
        assert planned is not None
        assert planned[-2:] == [b"last.c", b"word.c"]
        assert b"net/1.c" not in planned


def test_ripgreps_configuration_file_counts(project: Project, tmp_path: Path) -> None:
    config = tmp_path / "ripgreprc"
    config.write_text("# comment\n--no-filename\n\n--ignore-case\n--glob=!*.py\n")
    planned = project.plan(["--sort=path", "NEEDLE"], config=str(config))
    assert planned is not None
    environ = {**os.environ, "RIPGREP_CONFIG_PATH": str(config)}
    done = subprocess.run(
        [RG, "--sort=path", "NEEDLE"],
        cwd=project.root,
        env=environ,
        capture_output=True,
        check=True,
    )
    assert ripgrep(planned, project.root) == Said(done.stdout, b"", 0)
    config.write_text("--no-ignore\n")
    assert project.plan(["NEEDLE"], config=str(config)) is None
    config.write_text("--no-such-flag\n")
    assert project.plan(["needle"], config=str(config)) is None
    assert project.plan(["needle"], config=str(tmp_path / "none")) is None
    assert (
        project.plan(["needle", "--no-config"], config=str(tmp_path / "none"))
        is not None
    )


def test_files_that_cannot_be_read_have_ripgrep_report_them(project: Project) -> None:
    table = replace(
        project.snapshot.table,
        skipped={**project.snapshot.table.skipped, b"a.txt": "unreadable"},
    )
    call = Call(["needle"], os.fsencode(project.root), None, readable_input=False)
    assert plan(call, replace(project.snapshot, table=table), project.walker) is None


def test_standard_input_is_ripgreps_where_no_path_is_given(project: Project) -> None:
    call = Call(["needle"], os.fsencode(project.root), None, readable_input=True)
    assert plan(call, project.snapshot, project.walker) is None
    assert (
        plan(replace(call, argv=["needle", "./"]), project.snapshot, project.walker)
        is not None
    )


def test_the_flags_that_are_known_are_ripgreps() -> None:
    assert set(flag_table()[0]) >= {*HARMLESS, *COVER, *PATTERN_FLAGS}
