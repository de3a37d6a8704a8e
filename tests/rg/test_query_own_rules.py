"""What ``fgrep query`` in a pipe answers where ripgrep alone would answer something else."""

import subprocess
from pathlib import Path

from tests.conftest import FGREP, DaemonAtHand, MakeProject
from tests.support.rg_tree import ripgrep


def ask(daemon: DaemonAtHand, root: Path, *words: str, given: bytes = b"") -> bytes:
    """Return what a query prints into a pipe; ``given``: on its standard input."""
    process = subprocess.run(
        [FGREP, "query", *words],
        cwd=root,
        env=daemon.environ,
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return process.stdout


def test_an_ignore_file_of_ours_counts_in_a_pipe_too(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    files = {"a.txt": "needle\n", "b.txt": "needle\n", ".flashgrepignore": "b.txt\n"}
    root = project(files)
    daemon.run("index", str(root))
    assert ask(daemon, root, "needle") == b"a.txt:1:needle\n"


def test_a_hit_in_a_folder_that_is_named_by_a_glob_is_found(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "other\n", ".gitignore": "out/\n", "out/b.txt": "rare1\n"})
    daemon.run("index", str(root))
    words = ["--no-config", "-n", "--sort=path", "-F", "rare1", "-g", "*"]
    expected = ripgrep(words, root).stdout
    assert expected == b"out/b.txt:1:rare1\n"
    assert ask(daemon, root, "rare1", "-g", "*") == expected


def test_patterns_and_text_may_come_from_standard_input(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "one\ntwo\naXb\n"})
    assert ask(daemon, root, "-f", "-", given=b"two\n") == b"a.txt:2:two\n"
    # The text itself is tried first, and must not use up what is read.
    assert ask(daemon, root, "a.*b", "-", given=b"x\naXb\n") == b"2:aXb\n"


def test_a_basic_expression_means_what_grep_means(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle\n"})
    lines = ["echo $HOME", "a^b", "(x)", "a", "*a", r"\.", ".", "x]y", "[", "a|b"]
    text = "".join(f"{line}\n" for line in lines).encode()
    for pattern in (
        "echo $HOME", "a^b", "^a", "a$", r"\(*a\)", "[a^](x)", r"[\.]", "[]x]", "[[]",
        "a|b", r"a\|b", r"\(a\)$", "*a", r"^\(a\|b\)",
    ):  # fmt: skip
        process = subprocess.run(
            ["grep", "-n", pattern],
            input=text,
            capture_output=True,
            check=False,
            timeout=30,
        )
        reply = ask(daemon, root, "-G", pattern, "-", given=text)
        assert (pattern, reply) == (pattern, process.stdout)
