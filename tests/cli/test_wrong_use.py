"""Wrong command lines, as people type them: every message names the next step."""

from pathlib import Path

import pytest

from flashgrep.cli.launcher import STDIO, read_commands
from tests.conftest import FGREP, DaemonAtHand, MakeProject
from tests.support.git import commit, git

FLASHGREP = str(Path(FGREP).with_name("flashgrep"))
OWN_MESSAGES = frozenset({"rg", "rpc"})
"""Commands whose options another program parses, or that have none."""


@pytest.fixture(scope="module")
def commands() -> list[str]:
    """Return the commands whose command line is parsed as all others are."""
    names: list[str] = []
    for name, (safety, _, _) in read_commands().items():
        if safety != STDIO and name not in OWN_MESSAGES:
            names.append(name)
    return names


def test_every_command_names_its_help_when_an_option_is_unknown(
    daemon: DaemonAtHand, commands: list[str]
) -> None:
    for name in commands:
        answer = daemon.run(name, "--no-such-option")
        assert (answer.returncode, answer.stdout) == (2, ""), name
        usage, error, *advice = answer.stderr.splitlines()
        assert usage.startswith(f"Usage: fgrep {name} [OPTIONS]")
        assert error.startswith("fgrep: No such option: --no-such-option")
        assert advice[0] == f"fgrep: see fgrep {name} --help"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stats extra", "fgrep: see fgrep stats --help"),
        ("query", "Usage: fgrep query [OPTIONS] PATTERN [PATH]..."),
        ("query x --limit y", "Invalid value for '--limit': "),
        ("query x -t", "fgrep: see fgrep query --help"),
        ("query -P x", "fgrep: make the folder a project with: fgrep index"),
        ("query -p nope x", "fgrep: fgrep projects lists the projects"),
        ("completion", "Missing argument 'kind': bash, zsh, fish, man\n"),
        ("completion tcsh", "'kind': 'tcsh' is not one of 'bash', "),
        ("definition a.py:3", "Missing argument 'column'.\n"),
        ("definition a.py", "fgrep: a place is FILE:LINE:COLUMN, or "),
        ("slice a.py", "fgrep: lines are FILE:FIRST-LAST, "),
        ("projects ad", "Did you mean 'add'?\nfgrep: see fgrep projects --help\n"),
        ("projects remove nope", "fgrep: fgrep projects lists the projects"),
        ("daemon logs -n x", "fgrep: see fgrep daemon logs --help"),
        ("config show nope", "no such folder: nope; fgrep config shows all"),
        ("index /etc/passwd", "a file: /etc/passwd; name its folder"),
        ("index -- --help", "no such folder: --help"),
        ("call qeury", "fgrep: did you mean query?"),
        ("call nonsense", "fgrep: skills/reference.md lists the methods"),
        ("call query {", "fgrep: the parameters are not JSON: "),
        ("discover codex", "name another host: claude-code, gemini, qwen"),
        ("pick", "fgrep query and fgrep files need none"),
        ("--no-such", "fgrep: see fgrep help all"),
    ],
)
def test_an_error_names_the_next_step(
    daemon: DaemonAtHand, tmp_path: Path, line: str, message: str
) -> None:
    answer = daemon.run(*line.split(), cwd=tmp_path, program=FLASHGREP)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_advice_in_a_terminal_names_commands_and_not_methods(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({"src/a.py": "x = 1\n"})
    answer = daemon.run("read", "src", cwd=folder)
    assert "fgrep files lists it" in answer.stderr
    assert "list_files" not in answer.stderr


def test_a_group_by_its_name_alone_shows_what_there_is(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({"a.py": "x = 1\n"})
    assert daemon.run("projects", "add", cwd=folder).returncode == 0
    for group, text in (
        ("projects", str(folder)),
        ("store", str(folder)),
        ("config", "tcp.port"),
        ("daemon", "running"),
        ("model", "built in"),
    ):
        answer = daemon.run(group, cwd=folder)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert text in answer.stdout


def test_what_ripgrep_advises_for_no_files_can_be_done(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({"a.py": "x = 1\n"})
    answer = daemon.run("query", "x", "-g", "nowhere/**", cwd=folder)
    assert answer.returncode == 2
    assert "Running with --debug" in answer.stderr
    answer = daemon.run("query", "x", "-g", "nowhere/**", "--debug", cwd=folder)
    assert "DEBUG" in answer.stderr


def test_a_history_of_what_never_was_is_an_error(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({"a.py": "x = 1\n"})
    git(folder, "add", "a.py")
    commit(folder, "first")
    (folder / "new.py").touch()
    assert daemon.run("history", "new.py", cwd=folder).returncode == 1
    answer = daemon.run("history", "b.py", cwd=folder)
    assert answer.returncode == 2
    assert "no commit of HEAD changed b.py" in answer.stderr
    assert "fgrep files with a part of its name finds it" in answer.stderr


def test_a_history_behind_a_link_does_not_say_what_is_outside(
    daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    folder = project({"a.py": "x = 1\n"})
    git(folder, "add", "a.py")
    commit(folder, "first")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "there").touch()
    (folder / "link").symlink_to(outside)
    answers = [
        daemon.run("history", f"link/{name}", cwd=folder) for name in ("there", "gone")
    ]
    assert [answer.returncode for answer in answers] == [2, 2]
