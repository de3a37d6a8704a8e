"""Completion of commands, options and values in shells, and the manual page."""

import os
import re
import resource
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from flashgrep.base.languages import LANGUAGES
from flashgrep.cli.launcher import read_commands
from flashgrep.parts.shells.completion import FILES, FOLDER
from tests.conftest import FGREP, DaemonAtHand
from tests.support.pace import paced

BASH_SECONDS = 0.1
"""Processor time of a shell with ten completions; each may take 10 ms."""


def complete(*words: str) -> list[str]:
    """Return what bash proposes for the last of these words."""
    script = str(FOLDER / FILES["bash"])
    program = (
        f'source {shlex.quote(script)}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1));'
        "_fgrep; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    run = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not run.stderr
    return run.stdout.split()


def test_the_first_word_is_completed_with_every_command() -> None:
    assert set(complete("fgrep", "")) == {*read_commands(), "--help", "--version"}
    assert complete("fgrep", "que") == ["query"]


def test_commands_of_a_group_are_completed() -> None:
    assert {"logs", "restart", "status"} <= set(complete("fgrep", "daemon", ""))
    assert complete("fgrep", "daemon", "logs", "--li") == ["--lines"]


def test_options_are_those_that_the_command_names_in_its_help() -> None:
    run = subprocess.run(
        [FGREP, "symbol", "--help"], capture_output=True, text=True, check=True
    )
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", run.stdout))
    assert "--role" in named
    assert named <= set(complete("fgrep", "symbol", "-"))


def test_letters_of_query_are_those_of_grep() -> None:
    assert {"-l", "-c", "-v", "-o", "-e", "--count", "--heading", "--all"} <= set(
        complete("fgrep", "query", "-")
    )


def test_values_of_choices_are_completed_and_other_words_are_left_to_files() -> None:
    assert complete("fgrep", "query", "x", "--order", "") == ["relevance", "path"]
    assert set(complete("fgrep", "query", "x", "-t", "")) == set(LANGUAGES)
    assert complete("fgrep", "read", "") == []


def test_a_completion_takes_less_than_ten_milliseconds() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(10):
        complete("fgrep", "query", "--a")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    assert user + system < paced(BASH_SECONDS)


@pytest.mark.parametrize(
    ("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]
)
def test_shells_accept_their_file(shell: str, check: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    run = subprocess.run(
        [shell, check, str(FOLDER / FILES[shell])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_well_formed() -> None:
    run = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-K", "utf8", str(FOLDER / FILES["man"])],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert not run.stderr
    assert b"0: found; 1: nothing found; 2: error." in run.stdout


@pytest.mark.parametrize("kind", FILES)
def test_the_command_prints_each_file(kind: str, cold_daemon: DaemonAtHand) -> None:
    printed = cold_daemon.run("completion", kind).stdout
    assert printed == Path(FOLDER / FILES[kind]).read_text("utf-8")
    assert "fgrep" in printed
