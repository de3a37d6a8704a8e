"""``fgrep query`` into a pipe prints what ripgrep prints, line for line, whatever the pattern and the flags."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import FGREP, DaemonAtHand, MakeProject
from tests.support.rg_tree import make_tree, ripgrep, run_to_end

PLAIN = ["foo", "bar", "Foo", "FOO", "line 97", "nowhere_at_all", "été", "int", "one"]
FIXED = ["f.o", "foo(", "bar'", "= 'bar'", "def foo():", "* foo"]
REGEX = ["fo+", "^foo", "foo$", r"\bfoo\b", "[fb]oo|bar", r"\w+ foo", "f.o", "^$", "."]
LOOKING = ["foo(?=bar)", "(?<!bar)foo", r"(o)\1"]
FLAGS = [
    ("-i", "-i"), ("-y", "-i"), ("-w", "-w"), ("-x", "-x"), ("-v", "-v"), ("-l", "-l"), ("-c", "-c"), ("-o", "-o"),
    ("-L", "--files-without-match"), ("-m2", "-m2"), ("-m 1", "-m1"), ("-n", "-n"), ("-N", "-N"), ("-H", "-H"),
    ("-h", "--no-filename"), ("-0", "-0"), ("-Z", "-0"), ("-r", ""), ("-R", ""), ("-rn", "-n"), ("-I", ""), ("-s", "-s"),
    ("-S", "-S"), ("-A1", "-A1"), ("-B 2", "-B2"), ("-C1", "-C1"), ("-2", "-C2"), ("-b", "-b"), ("-a", "-a"),
    ("-q", "-q"), ("--column", "--column"), ("--heading", "--heading"), ("--color=always", "--color=always"),
    ("--color", "--color=always"), ("--hidden", "--hidden"), ("-.", "--hidden"), ("--no-ignore", "--no-ignore"),
    ("-g *.py", "-g *.py"), ("-g !*.txt", "-g !*.txt"), ("-t py", "-t py"), ("-tc", "-tc"), ("-T py", "-T py"),
    ("--include=*.txt", "--glob=*.txt"), ("--exclude=*.txt", "--glob=!*.txt"), ("--exclude-dir=sub", "--glob=!sub/"),
    ("--replace=X$0", "--replace=X$0"), ("--count-matches", "--count-matches"), ("--trim", "--trim"),
    ("--sort=modified", "--sort=modified"), ("-d2", "-d2"), ("-uu", "-uu"), ("--vimgrep", "--vimgrep"),
]  # fmt: skip
"""Flags, and what they are for ripgrep."""
PATHS = [
    "",
    "",
    "",
    "sub",
    "./",
    "a.txt b.py",
    "sub a.txt",
    "sub.x crlf.txt utf16le.txt",
]

flags = st.lists(st.sampled_from(FLAGS), max_size=4)
KINDS = {
    "plain": st.sampled_from([([text], ["--fixed-strings", text]) for text in PLAIN]),
    "fixed": st.sampled_from(
        [(["-F", text], ["--fixed-strings", text]) for text in FIXED]
    ),
    "regex": st.sampled_from([(["-e", text], ["-e", text]) for text in REGEX]),
    "extended": st.sampled_from([(["-E", text], [text]) for text in REGEX]),
    "looking": st.sampled_from([(["-P", text], ["-P", text]) for text in LOOKING]),
    "several": st.lists(st.sampled_from(REGEX), min_size=2, max_size=3).map(
        lambda texts: (repeated := [f"-e{text}" for text in texts], repeated)
    ),
}
"""Patterns as they are given, and for ripgrep."""


@pytest.fixture(scope="module")
def root(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("query") / "tree"
    root.mkdir()
    make_tree(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    added = daemon.run("index", str(root))
    assert added.returncode == 0, added.stderr
    yield root
    daemon.run("projects", "remove", str(root))


def compare(
    daemon: DaemonAtHand,
    root: Path,
    pattern: tuple[list[str], list[str]],
    drawn: list[tuple[str, str]],
    paths: str,
) -> None:
    """Assert that a question and the same one for ripgrep have one answer."""
    ours = [word for flag, _ in drawn for word in flag.split()]
    theirs = [word for _, flag in drawn for word in flag.split()]
    # Each character of a line of 300,000 prints that whole line: a gigabyte.
    assume("--vimgrep" not in ours or not {".", "-e."} & set(pattern[1]))
    if not any(word.startswith("--sort") for word in theirs):
        theirs.append("--sort=path")
    command = [FGREP, "query", *ours, *pattern[0], *paths.split()]
    answer = run_to_end(command, root, daemon.environ)
    expected = ripgrep(
        ["--no-config", "-n", *theirs, *pattern[1], *paths.split()], root
    )
    assert (answer.stdout, answer.status) == (expected.stdout, expected.status)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data(), drawn=flags, paths=st.sampled_from(PATHS))
def test_an_indexed_project_answers_as_ripgrep_line_for_line(
    daemon: DaemonAtHand,
    root: Path,
    kind: str,
    data: st.DataObject,
    drawn: list[tuple[str, str]],
    paths: str,
) -> None:
    compare(daemon, root, data.draw(KINDS[kind]), drawn, paths)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=14)
@given(data=st.data(), drawn=flags, paths=st.sampled_from(PATHS))
def test_a_project_without_an_index_answers_as_ripgrep_line_for_line(
    daemon: DaemonAtHand,
    root: Path,
    kind: str,
    data: st.DataObject,
    drawn: list[tuple[str, str]],
    paths: str,
) -> None:
    # Asked without the command, whose start takes as long as ten questions.
    with closing(daemon.wire("unix")) as control:
        control.ask("$/remove", name=str(root))
    compare(daemon, root, data.draw(KINDS[kind]), drawn, paths)


def test_every_line_goes_into_a_pipe_whole_and_in_path_order(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    long = "x" * 200_000
    root = project(
        {
            **{f"f{at:03}.txt": "needle\n" * 60 for at in range(300)},
            "long.txt": f"needle {long}\n",
        }
    )
    found = daemon.run("query", "needle", cwd=root)
    assert found.returncode == 0
    lines = found.stdout.splitlines()
    assert len(lines) == 300 * 60 + 1
    assert lines[:2] == ["f000.txt:1:needle", "f000.txt:2:needle"]
    assert lines[-1] == f"long.txt:1:needle {long}"
    assert found.stderr == ""


def test_pasted_code_that_is_nowhere_is_not_found(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.c": "int x;\nint y;\n"})
    for text in ("x || y", "zzz || qqq", "a*", "(|)"):
        found = daemon.run("query", text, cwd=root)
        assert (found.returncode, found.stdout) == (1, ""), text


def test_a_text_that_is_there_means_itself_and_else_an_expression_that_is_named(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.c": "a.c = f(x);\nabc\n"})
    itself = daemon.run("query", "a.c", cwd=root)
    assert (itself.stdout, itself.stderr) == ("a.c:1:a.c = f(x);\n", "")
    expression = daemon.run("query", r"^ab.$", cwd=root)
    assert expression.stdout == "a.c:2:abc\n"
    assert expression.returncode == 0
    assert "as a regular expression" in expression.stderr
    neither = daemon.run("query", r"^ab.d$", cwd=root)
    assert (neither.stdout, neither.returncode) == ("", 1)
    assert "as a regular expression" not in neither.stderr


def test_a_basic_expression_of_grep_is_translated(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.c": "f(x)\nfoo\nbar\n{1}\n"})
    for text, lines in (
        (r"foo\|bar", [2, 3]),
        ("f(", [1]),
        (r"fo\{2\}", [2]),
        ("{1}", [4]),
        ("[(]x", [1]),
    ):
        found = daemon.run("query", "-G", text, cwd=root)
        numbers = [int(line.split(":")[1]) for line in found.stdout.splitlines()]
        assert numbers == lines, (text, found.stderr)


def test_what_only_ripgrep_can_answer_is_refused_together_with_a_revision(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.c": "int x;\n"})
    found = daemon.run("query", "-o", "x", "--rev", "HEAD", cwd=root)
    assert (found.returncode, found.stdout) == (2, "")
    assert "--only-matching cannot be had together with --rev" in found.stderr


def test_below_the_root_the_whole_project_is_searched(
    daemon: DaemonAtHand, root: Path
) -> None:
    found = run_to_end([FGREP, "query", "foo"], root / "sub", daemon.environ)
    expected = ripgrep(["-n", "--sort=path", "foo", ".."], root / "sub")
    assert found.stdout == expected.stdout
