"""The name shared with the classic ``fgrep``: which calls are grep's and which are ours, on every standard input."""

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from flashgrep.cli.app import GROUPS
from flashgrep.cli.help_topics import TOPICS
from flashgrep.cli.launcher import PROTOCOLS, guess_command, is_filter, read_commands
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject

FLASHGREP = FGREP.removesuffix("fgrep") + "flashgrep"
WORDS = sorted(read_commands().keys() - PROTOCOLS)
TEXT = "".join(
    f"{number} {word} {word.upper()}\n" for number, word in enumerate(WORDS, 1)
).encode()


def run(
    daemon: DaemonAtHand, *arguments: str | bytes, program: str = FGREP, **how: object
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return] # ``how`` is stdin or input
        [program, *arguments],
        env=daemon.environ,
        capture_output=True,
        timeout=BOUND,
        check=False,
        **how,
    )


def grep(*arguments: str, **how: object) -> tuple[bytes, int]:
    found = subprocess.run(
        ["grep", "-F", *arguments], capture_output=True, check=False, **how
    )  # type: ignore[call-overload]
    return found.stdout, found.returncode


@contextmanager
def terminal() -> Iterator[int]:
    ours, theirs = pty.openpty()
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def a_socket() -> Iterator[int]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        yield theirs.fileno()


@contextmanager
def nothing() -> Iterator[int]:
    yield subprocess.DEVNULL


def test_every_command_word_filters_a_pipe(cold_daemon: DaemonAtHand) -> None:
    lines = TEXT.splitlines(keepends=True)
    for word in WORDS:
        found = run(cold_daemon, word, input=TEXT)
        assert (found.stdout, found.returncode) == (
            b"".join(line for line in lines if word.encode() in line),
            0,
        )
    assert not Path(cold_daemon.paths.state).exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "-i"],
        ["index", "-c", "-v"],
        ["-i", "query"],
        ["query", "-A", "1"],
        ["query", "-A1", "--color=always"],
        ["stats", "--max-count=1"],
        ["stats", "--max-count", "1", "-n"],
        ["uninstall", "-y"],
        ["uninstall", "-"],
        ["--color=auto", "index"],
        ["--", "index"],
        [""],
        ["", "-c"],
    ],
)
def test_a_word_with_the_flags_of_grep_filters_a_pipe(
    cold_daemon: DaemonAtHand, arguments: list[str]
) -> None:
    found = run(cold_daemon, *arguments, input=TEXT)
    assert (found.stdout, found.returncode) == grep(*arguments, input=TEXT)
    assert not Path(cold_daemon.paths.state).exists()


def test_a_word_filters_a_file_on_standard_input(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    file = tmp_path / "text"
    file.write_bytes(TEXT)
    with file.open() as ours, file.open() as theirs:
        found = run(cold_daemon, "index", stdin=ours)
        assert (found.stdout, found.returncode) == grep("index", stdin=theirs)
    assert not Path(cold_daemon.paths.state).exists()


@pytest.mark.parametrize(
    ("arguments", "filters"),
    [
        (["query"], True),
        (["query", "foo"], False),
        (["query", "-e", "foo"], False),
        (["query", "--json"], False),
        (["stats", "-p", "here"], False),
        (["files", "-g", "*.py"], False),
        (["files", "-l", "5"], False),
        (["query", "--help"], False),
        (["uninstall", "--yes"], False),
        (["daemon", "status"], False),
        (["index", "/dev/stdin"], True),
        (["index", "-m"], True),
        (["index", "-nm2"], True),
    ],
)
def test_two_words_or_a_flag_that_grep_lacks_are_a_command_of_ours(
    arguments: list[str],
    filters: bool,  # noqa: FBT001
) -> None:
    assert is_filter(arguments) is filters


@pytest.mark.parametrize("standard_input", [terminal, a_socket, nothing])
def test_without_a_pipe_or_a_file_a_command_is_a_command(
    cold_daemon: DaemonAtHand, standard_input: Callable[[], AbstractContextManager[int]]
) -> None:
    with standard_input() as descriptor:
        found = run(cold_daemon, "version", stdin=descriptor)
    assert (found.returncode, found.stdout[:10]) == (0, b"flashgrep ")


def test_without_any_standard_input_a_command_is_a_command(
    cold_daemon: DaemonAtHand,
) -> None:
    found = run(cold_daemon, "-c", f"exec '{FGREP}' version <&-", program="/bin/sh")
    assert (found.returncode, found.stdout[:10]) == (0, b"flashgrep ")


def test_two_words_are_ours_on_a_pipe_too(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle\n"})
    found = run(daemon, "query", "needle", "-p", str(root), input=b"")
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"needle" in found.stdout
    aliased = run(
        daemon,
        "--color=auto",
        "query",
        "needle",
        "-p",
        str(root),
        stdin=subprocess.DEVNULL,
    )
    assert aliased.stdout == found.stdout


def test_called_as_flashgrep_nothing_is_grep(cold_daemon: DaemonAtHand) -> None:
    found = run(cold_daemon, "version", program=FLASHGREP, input=TEXT)
    assert (found.returncode, found.stdout[:10]) == (0, b"flashgrep ")
    assert run(cold_daemon, "", program=FLASHGREP, input=TEXT).returncode == 2


def test_what_is_no_command_goes_to_grep_unchanged(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    file = tmp_path / "f.txt"
    file.write_text("a.b\naxb\n")
    name = str(file)
    for arguments in (
        ["a.b", name],
        ["-c", "a.b", name],
        ["-e", "a.b", "-n", name],
        ["zz", name],
        ["", name],
    ):
        found = run(cold_daemon, *arguments)
        assert (found.stdout, found.returncode) == grep(*arguments)


def test_grep_finds_its_signals_and_its_locale_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_bytes(b"\xff needle\n" + b"x" * 99 + b"\n" * 100_000)
    for locale in ({}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}, {"LANG": "C"}):
        environ = {"PATH": os.environ["PATH"], **locale}
        command = ["needle", str(file)]
        ours = subprocess.run(
            [FGREP, *command], env=environ, capture_output=True, check=False
        )
        theirs = subprocess.run(
            ["grep", "-F", *command], env=environ, capture_output=True, check=False
        )
        assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken:
        ended = subprocess.run(
            [FGREP, "", str(file)], stdout=broken, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


def test_it_never_hands_over_to_itself(tmp_path: Path) -> None:
    (tmp_path / "grep").symlink_to(FGREP)
    found = subprocess.run(
        [FGREP, "x"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "no grep on PATH" in found.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("qurey", "query"),
        ("stat", "stats"),
        ("search_cod", "search-code"),
    ],
)
def test_a_mistyped_command_on_a_terminal_is_reported_and_does_not_wait(
    cold_daemon: DaemonAtHand, word: str, meant: str
) -> None:
    with terminal() as descriptor:
        found = run(cold_daemon, word, stdin=descriptor)
    assert (found.returncode, found.stdout) == (2, b"")
    assert f"did you mean: fgrep {meant}\n".encode() in found.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (
            ["research", "who calls x"],
            b"command 'research'; did you mean: fgrep code-research",
        ),
        (["qurey", "x", "--json"], b"command 'qurey'; did you mean: fgrep query"),
        (
            ["help", "qeury"],
            b"command or topic 'qeury'; did you mean: fgrep help query",
        ),
        (["help", "help"], b"command or topic 'help'; did you mean: fgrep help all"),
        (["research"], b""),
        (["stat", "-A", "1"], b""),
        (["spin_lock", "missing.c"], b""),
        (["stat", "missing.c", "f.txt"], b""),
    ],
)
def test_a_mistyped_command_elsewhere_is_reported_only_where_grep_finds_no_file(
    tmp_path: Path, arguments: list[str], meant: bytes
) -> None:
    (tmp_path / "f.txt").write_text("stat\n")
    ours = subprocess.run(
        [FGREP, *arguments], cwd=tmp_path, input=TEXT, capture_output=True, check=False
    )
    theirs = subprocess.run(
        ["grep", "-F", *arguments],
        cwd=tmp_path,
        input=TEXT,
        capture_output=True,
        check=False,
    )
    hint = b"fgrep: no %s\n" % meant if meant else b""
    assert (ours.stdout, ours.stderr, ours.returncode) == (
        theirs.stdout,
        hint + theirs.stderr,
        theirs.returncode,
    )


def list_words(page: bytes) -> list[bytes]:
    """Return the words of a page of help by either name: it says the one that was typed."""
    return page.replace(b"flashgrep", b"fgrep").split()


def test_help_is_a_word_too(cold_daemon: DaemonAtHand) -> None:
    whole, one = (
        run(cold_daemon, "help", *word, program=FLASHGREP) for word in ([], ["rg"])
    )
    page = run(cold_daemon, "--help").stdout
    assert (whole.returncode, list_words(whole.stdout)) == (0, list_words(page))
    assert (one.returncode, b"Usage: flashgrep rg" in one.stdout) == (0, True)


@pytest.mark.parametrize(
    "words", [["help"], ["help", "all"], ["help", "patterns"], ["help", "query"]]
)
def test_help_is_a_word_of_fgrep_where_no_file_is_meant(
    cold_daemon: DaemonAtHand, words: list[str]
) -> None:
    wanted = run(cold_daemon, *words, program=FLASHGREP).stdout
    assert wanted
    with nothing() as descriptor:
        page = run(cold_daemon, *words, stdin=descriptor).stdout
        assert list_words(page) == list_words(wanted)


def test_help_in_a_pipe_or_before_a_file_filters(
    cold_daemon: DaemonAtHand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("query").write_bytes(b"help me\nor not\n")
    found = run(cold_daemon, "help", input=b"no\nhelp yourself\n")
    assert (found.returncode, found.stdout) == (0, b"help yourself\n")
    found = run(cold_daemon, "help", "query")
    assert (found.returncode, found.stdout) == (0, b"help me\n")


def test_the_help_of_a_command_costs_no_more_than_all_of_the_help(
    cold_daemon: DaemonAtHand,
) -> None:
    with nothing() as descriptor:
        for words in (["query"], ["daemon", "logs"], ["doctor"]):
            found = subprocess.run(
                [sys.executable, "-X", "importtime", FLASHGREP, *words, "--help"],
                env=cold_daemon.environ,
                stdin=descriptor,
                capture_output=True,
                text=True,
                check=True,
            )
            assert found.stdout.startswith(f"Usage: flashgrep {' '.join(words)} ")
            assert "typer" not in found.stderr
            assert "pydantic" not in found.stderr


def test_help_lists_twenty_commands_in_six_groups_and_the_others_on_request(
    cold_daemon: DaemonAtHand,
) -> None:
    short = run(cold_daemon, "--help").stdout.decode()
    listed = [name for names in GROUPS.values() for name in names]
    assert len(GROUPS) == 6
    assert len(listed) <= 20
    assert set(listed) <= read_commands().keys()
    assert all(f"\n{title}:\n" in short for title in GROUPS)
    whole = run(cold_daemon, "--help", "all").stdout.decode()
    assert all(f"\n  {name} " in whole for name in read_commands())


def test_help_explains_topics(cold_daemon: DaemonAtHand) -> None:
    for topic, text in TOPICS.items():
        assert run(cold_daemon, "--help", topic).stdout.decode() == text
        assert run(cold_daemon, "help", topic, program=FLASHGREP).returncode == 0
        assert max(map(len, text.splitlines())) <= 80


def test_a_file_or_another_word_on_a_terminal_is_greps(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    file = tmp_path / "f.txt"
    file.write_text("qurey\n")
    with terminal() as descriptor:
        found = run(cold_daemon, "qurey", str(file), stdin=descriptor)
    assert (found.returncode, found.stdout) == (0, b"qurey\n")
    assert (
        guess_command(["spin_lock"])
        == guess_command([""])
        == guess_command(["-i", "qurey"])
        == ""
    )
    assert guess_command(["q" * 1_000_000]) == ""


def test_uninstall_asks_a_terminal_only(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.start()
    refused = run(cold_daemon, "uninstall", program=FLASHGREP, input=b"y\n")
    assert (refused.returncode, b"--yes" in refused.stderr) == (2, True)
    run(cold_daemon, "uninstall", input=b"y\n")
    assert Path(cold_daemon.paths.socket).exists()
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        keyboard.write(b"n\n")
        asked = run(cold_daemon, "uninstall", stdin=theirs)
        os.close(theirs)
    assert asked.returncode == 1
    assert Path(cold_daemon.paths.socket).exists()
