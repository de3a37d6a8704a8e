"""A sorted search cut into parts prints what a single one prints, has its status, and ends with its reader."""

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flashgrep.base.paths import bundled_ripgrep
from flashgrep.parts.ripgrep import ordered
from flashgrep.parts.ripgrep.arguments import parse
from flashgrep.parts.ripgrep.ordered import (
    Sample,
    check_cuts,
    count_parts,
    cut_names,
    cut_walk,
    find_folder,
    is_cuttable,
    make_cut,
    sample_folder,
)
from tests.conftest import FGREP, DaemonAtHand
from tests.support.interrupts import allow_signal
from tests.support.rg_tree import BOUND

RG = str(bundled_ripgrep())
NAMES = (
    b"a", b"ab", b"ab-c", b"ab.c", b"ab c", b"abc", b"ab0", b"ab9", b"aBc", b"Z", b"_", b"0", b"z", b"\xff", b"a\xff",
    b"\xc3\xa9", b"ab\xc3\xa9", b"ab\nc", b".ab", b"ab{c", b"[ab]", b"a*", b"!a", b"~", b"drivers", b"driver", b"dr",
)  # fmt: skip
FLAGS = (
    "--line-number", "--count", "--files-with-matches", "--hidden", "--no-filename", "--vimgrep", "--max-depth=2",
    "--glob=a*", "--glob=!ab*", "--glob=*/ab*", "--type=py", "--only-matching", "--null", "--color=always",
    "--invert-match", "--max-count=1", "--ignore-case", "--word-regexp", "--files-without-match",
)  # fmt: skip

names = st.sampled_from(NAMES)
trees = st.lists(
    st.lists(names, min_size=1, max_size=4).map(b"/".join), min_size=1, max_size=30
)


def grow(root: Path, paths: list[bytes]) -> None:
    """Write the files that have room beside each other, and rules that leave some out."""
    for path in paths:
        whole = root / os.fsdecode(path)
        try:
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_bytes(b"needle\nother\n\0"[: 7 + len(path)])
        except OSError:  # a file is where a folder should be, or the reverse
            continue
    (root / ".ignore").write_text("ab9\n/z\n")


def search(root: Path, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [RG, *words],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )


JOINED = "import sys; from flashgrep.cli.joined_runs import join_runs; sys.exit(join_runs(sys.argv[1], eval(sys.argv[2])))"


def join(calls: list[list[str]]) -> list[str]:
    """Return the command that runs these calls as a client does."""
    return [sys.executable, "-c", JOINED, RG, repr(calls)]


@settings(max_examples=60, deadline=None)
@given(
    trees,
    st.lists(names.map(lambda name: [name]) | st.lists(names, max_size=4), max_size=4),
    st.lists(st.sampled_from(FLAGS), max_size=3),
)
@example([b"a"], [[b"a", b"a"]], [])
@example([b"dr", b"drivers/a", b"drivers/z"], [[b"drivers", b"drivers"]], [])
def test_parts_of_a_walk_are_the_walk(
    paths: list[bytes], places: list[list[bytes]], flags: list[str]
) -> None:
    words = ["--no-config", "--sort=path", *flags, "--regexp=needle", "--"]
    assert is_cuttable(parse(words))
    found = {make_cut(b"/".join(place)) for place in places}
    cuts = sorted(cut for cut in found if cut)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        grow(root, paths)
        cuts = check_cuts(cuts, os.fsencode(root))
        whole = search(root, words)
        parts = [search(root, part) for part in cut_walk(words, "", cuts)]
    assert b"".join(part.stdout for part in parts) == whole.stdout


@pytest.mark.parametrize(
    "flag", ["--iglob=A*", "--iglob=!B*", "--glob-case-insensitive", "--follow"]
)
def test_a_call_whose_later_globs_would_undo_a_cut_stays_whole(flag: str) -> None:
    """Each --iglob comes after all --glob, and the last that matches holds."""
    assert not is_cuttable(parse(["--sort=path", flag, "--regexp=needle", "--"]))


def make_tree(root: Path) -> None:
    rng = random.Random(3)
    for at in range(40):
        path = root / f"dir{at % 7}" / f"sub{at % 3}" / f"{at}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = rng.choices(["a needle", "hay", "Needle"], k=2_000)
        path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ordered")
    make_tree(root)
    return root


CUTS = [("dir1", "sub1"), ("dir3",), ("dir5", "sub", "2"), ("e",)]


@pytest.mark.parametrize(
    ("flags", "pattern"),
    [
        ([], "needle"),
        ([], "nowhere"),
        (["--count"], "needle"),
        (["--glob=nothing*"], "needle"),
        (["--type=nosuch"], "needle"),
        ([], "("),
        (["--glob=0.txt"], "needle"),
        (["--glob=0.txt"], "nowhere"),
    ],
)
def test_runs_are_joined_as_one(tree: Path, flags: list[str], pattern: str) -> None:
    words = ["--no-config", "--sort=path", *flags, f"--regexp={pattern}", "--"]
    whole = search(tree, words)
    joined = subprocess.run(
        join(cut_walk(words, "", CUTS)),
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert joined.stdout == whole.stdout
    assert joined.stderr == whole.stderr
    assert joined.returncode == whole.returncode


def test_names_are_cut_into_parts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "count_cores", lambda: 2)
    monkeypatch.setattr(ordered, "LEAST_FILES", 6)
    files = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.txt"))
    words = ["--with-filename", "--sort=path", "--regexp=needle", "--", *files]
    calls = cut_names(words, 4)
    assert len(calls) == count_parts(len(files)) == 6
    joined = subprocess.check_output(join(calls), cwd=tree, timeout=BOUND)
    assert joined == search(tree, words).stdout


def test_a_sample_cuts_into_parts_of_one_weight(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered, "count_cores", lambda: 2)
    monkeypatch.setattr(ordered, "LEAST_FILES", 10)
    sample = sample_folder(os.fsencode(tree))
    assert sample.files == 68  # folders, and what is in them
    cuts = sample.find_cuts()
    assert len(cuts) >= 4
    assert cuts == sorted(cuts)
    words = ["--count", "--sort=path", "--regexp=needle", "--"]
    parts = [search(tree, part) for part in cut_walk(words, "", cuts)]
    lines = [part.stdout.count(b"\n") for part in parts]
    assert sum(lines) == 40
    assert max(lines) <= 16
    assert Sample([], [], 0).find_cuts() == []


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["."], ""),
        (["./"], ""),
        (["sub"], "sub/"),
        (["./sub/deep/"], "sub/deep/"),
        ([".."], None),
        (["/usr"], None),
        (["sub/../x"], None),
        (["a*"], None),
        (["a", "b"], None),
        (["/"], None),
        ([""], None),
    ],
)
def test_one_folder_below_is_cut(paths: list[str], folder: str | None) -> None:
    assert find_folder(paths) == folder


@pytest.mark.parametrize(
    "flags",
    [
        [], ["--sort=modified"], ["--sort=path", "--quiet"], ["--sort=path", "-C1"], ["--sort=path", "--heading"],
        ["--sort=path", "--threads=3"], ["--sort=path", "--stats"], ["--sort=path", "--file=x"],
        ["--sort=path", "--no-messages"], ["--sort=path", "--glob-case-insensitive"], ["--sort=path", "--json"],
    ],
)  # fmt: skip
def test_other_calls_are_left_whole(flags: list[str]) -> None:
    assert not is_cuttable(parse([*flags, "--regexp=x", "--"]))


def test_a_closed_pipe_ends_all_runs(tree: Path) -> None:
    words = ["--sort=path", "--line-number", "--regexp=needle", "--"]
    # Each of its own process group, so that the runs can be counted by it.
    with subprocess.Popen(
        join(cut_walk(words, "", CUTS) * 4),
        cwd=tree,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(b"needle\n")
        process.stdout.close()
        assert process.wait(BOUND) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_all_runs(tree: Path, number: signal.Signals) -> None:
    words = ["--sort=path", "--line-number", "--regexp=needle", "--"]
    allow_signal(number)
    with subprocess.Popen(
        join(cut_walk(words, "", CUTS) * 8),
        cwd=tree,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        # It is at work, and then waits for us to read.
        process.stdout.read(1)
        process.send_signal(number)
        assert process.wait(BOUND) == -number
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


def test_a_run_that_is_killed_ends_the_search(tree: Path, tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *second*) kill -9 $$;; esac\nexec "{RG}" "$@"\n'
    )
    program.chmod(0o755)
    first = ["--sort=path", "--regexp=needle", "dir0"]
    calls = [first, ["--regexp=second"], ["--sort=path", "--regexp=needle", "dir2"]]
    joined = subprocess.run(
        [sys.executable, "-c", JOINED, str(program), repr(calls)],
        cwd=tree,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert joined.returncode == 128 + signal.SIGKILL
    assert joined.stdout == search(tree, first).stdout


@pytest.fixture(scope="module")
def large(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("large") / "tree"
    for at in range(2_400):
        path = root / f"dir{at % 31}" / f"{at}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {at}  # needle 1\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    yield root
    daemon.run("projects", "remove", str(root))


def ask(
    daemon: DaemonAtHand, root: Path, *words: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [FGREP, "query", *words],
        cwd=root,
        env=daemon.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )


def test_query_prints_as_one_search_before_and_after_indexing(
    daemon: DaemonAtHand, large: Path
) -> None:
    questions = (
        ["needle"],
        ["-E", "[0-9] +#"],
        ["-w", "1"],
        ["nowhere_at_all_x", "-i"],
        ["-c", "-E", "x"],
        ["-E", "x", "dir3/"],
    )
    for _ in range(2):
        for question in questions:
            given = [word.replace("-E", "-e") for word in question]
            if given == ["needle"] or "-i" in given or "-w" in given:
                given.insert(0, "--fixed-strings")
            theirs = search(large, ["--line-number", "--sort=path", *given])
            ours = ask(daemon, large, *question)
            assert ours.stdout == theirs.stdout, question
            assert ours.returncode == theirs.returncode, question
        daemon.run("index", str(large), "--wait", "text")
