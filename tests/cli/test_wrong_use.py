"""Wrong command lines, as people type them: every message names the next step."""

import re
import shlex
import shutil
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
        ("stats extra", "flashgrep: see flashgrep stats --help"),
        ("query", "Usage: flashgrep query [OPTIONS] PATTERN [PATH]..."),
        (
            "query -c",
            "Missing argument 'PATTERN'.\nflashgrep: see flashgrep query --help",
        ),
        ("query --replace new", "Missing argument 'PATTERN'.\n"),
        ("query x --limit y", "Invalid value for '--limit': "),
        ("query x -t", "flashgrep: see flashgrep query --help"),
        ("query -P x", "flashgrep: make the folder a project with: flashgrep index"),
        ("query -p nope x", "flashgrep: flashgrep projects lists the projects"),
        ("completion", "Missing argument 'KIND': bash, zsh, fish, man\n"),
        ("completion tcsh", "'kind': 'tcsh' is not one of 'bash', "),
        ("definition a.py:3", "Missing argument 'COLUMN'.\n"),
        ("definition a.py", "flashgrep: a place is FILE:LINE:COLUMN, or "),
        ("slice a.py", "flashgrep: lines are FILE:FIRST-LAST, "),
        (
            "projects ad",
            "Did you mean 'add'?\nflashgrep: see flashgrep projects --help\n",
        ),
        ("projects remove nope", "flashgrep: flashgrep projects lists the projects"),
        ("daemon logs -n x", "flashgrep: see flashgrep daemon logs --help"),
        ("config show nope", "no such folder: nope; flashgrep config shows all"),
        ("index /etc/passwd", "a file: /etc/passwd; name its folder"),
        ("index -- --help", "no such folder: --help"),
        ("call qeury", "flashgrep: did you mean query?"),
        ("call nonsense", "flashgrep: skills/reference.md lists the methods"),
        ("call query {", "flashgrep: the parameters are not JSON: "),
        ("discover codex", "name another host: claude-code, gemini, qwen"),
        ("pick", "flashgrep query and flashgrep files need none"),
        ("--no-such", "flashgrep: see flashgrep help all"),
    ],
)
def test_an_error_names_the_next_step(
    daemon: DaemonAtHand, tmp_path: Path, line: str, message: str
) -> None:
    answer = daemon.run(*line.split(), cwd=tmp_path, program=FLASHGREP)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert message in answer.stderr
    # Its ``fgrep`` may be another program: nothing may tell to type that.
    assert not re.search(r"\bfgrep\b", answer.stderr)


def test_help_names_the_program_as_it_was_called(daemon: DaemonAtHand) -> None:
    for name in ("fgrep", "flashgrep"):
        program = str(Path(FGREP).with_name(name))
        page = daemon.run("query", "--help", program=program).stdout
        assert page.startswith(f"Usage: {name} query [OPTIONS] PATTERN [PATH]...\n")
        assert f"{name} search-code when you only" in " ".join(page.split())
        topic = daemon.run("help", "patterns", program=program).stdout.splitlines()
        assert f"  {name} query TEXT" in "\n".join(topic)
        assert {line.rstrip()[30:] for line in topic[2:4]} == {
            "the text itself. If no line has it and it is a",
            "regular expression, that; stderr says so.",
        }
        overview = daemon.run("--help", program=program).stdout
        assert f"Try: {name} query 'spin_lock', {name} symbol" in overview


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
        assert answer.returncode == 0
        assert "Usage" not in answer.stderr
        assert text in answer.stdout


def test_a_project_without_a_file_says_what_is_left_out(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({".gitignore": "a.py\n", "a.py": "x = 1\n"})
    answer = daemon.run("index", cwd=folder)
    assert answer.returncode == 0
    assert answer.stderr.splitlines()[-1] == (
        "fgrep: no file is searched here: ignored and hidden ones are not, unless by fgrep query --no-ignore --hidden"
    )
    answer = daemon.run("query", "--no-ignore", "--hidden", "x =", cwd=folder)
    assert answer.stdout == "a.py:1:x = 1\n"


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


@pytest.mark.parametrize("below", ["", "/state"])
def test_a_state_folder_that_cannot_be_made_is_said_with_its_setting(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path, below: str
) -> None:
    folder = project({"a.py": "x = 1\n"})
    file = tmp_path / "file"
    file.touch()
    cold_daemon.environ["FLASHGREP_STATE_DIR"] = f"{file}{below}"
    said = f"cannot make the folder {file}{below}: "
    for command in ("index", "daemon start", "symbol x", "doctor"):
        answer = cold_daemon.run(*command.split(), cwd=folder)
        output = answer.stdout + answer.stderr
        assert said in output
        assert "FLASHGREP_STATE_DIR names another one" in output
        assert "Errno" not in output


@pytest.mark.parametrize("command", ["query x", "index", "projects add", "rpc", "mcp"])
def test_a_current_folder_that_is_gone_is_said(
    daemon: DaemonAtHand, tmp_path: Path, command: str
) -> None:
    program = shlex.quote(FLASHGREP)
    line = f"mkdir here && cd here && rmdir ../here && {program} {command}"
    answer = daemon.run("-c", line, cwd=tmp_path, stdin="", program="/bin/sh")
    assert answer.returncode == 2
    # The shell that starts a program below a path with a blank has something to say, too.
    said = answer.stderr.splitlines()[-1]
    assert said == "flashgrep: the current folder is gone; cd to another one"


def test_a_project_whose_folder_is_gone_can_be_forgotten(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    folder = project({"a.py": "x = 1\n"}, name="my project")
    assert cold_daemon.run("projects", "add", cwd=folder).returncode == 0
    cold_daemon.stop()
    shutil.rmtree(folder)
    forgetting = "fgrep projects remove 'my project'"
    answer = cold_daemon.run("query", "x", "-p", "my project", cwd=Path("/"))
    assert answer.returncode == 2
    assert answer.stderr == (
        f"fgrep: no such folder: {folder}\nfgrep: {forgetting} forgets the project\n"
    )
    listed = cold_daemon.run("projects", "list")
    assert listed.stdout == f"my project  {folder}\n"
    assert listed.stderr == f"fgrep: {folder} is gone; {forgetting}\n"
    assert "Errno" not in cold_daemon.run("daemon", "status").stdout
    removed = cold_daemon.run("projects", "remove", "my project")
    assert removed.stdout == f"removed {folder}\n"


@pytest.mark.parametrize("command", ["list-specs", "search-specs x"])
def test_without_a_specification_it_is_said_where_they_are_looked_for(
    daemon: DaemonAtHand, project: MakeProject, command: str
) -> None:
    folder = project({"a.py": "x = 1\n"})
    assert daemon.run("index", cwd=folder).returncode == 0
    answer = daemon.run(*command.split(), cwd=folder)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "fgrep: no specification: no file spec.md is below specs, openspec/specs, "
        "openspec/changes/*/specs (setting specs.folders)\n"
    )


def test_a_team_without_its_database_is_told_what_names_it(
    daemon: DaemonAtHand,
) -> None:
    pytest.importorskip("psycopg")
    answer = daemon.run("team", "status", "--database", "host=/nowhere")
    assert (answer.returncode, answer.stdout) == (2, "")
    error, advice = answer.stderr.splitlines()
    assert error.startswith("fgrep: the team's database does not answer: ")
    assert advice.startswith("fgrep: FLASHGREP_TEAM_DATABASE or --database names it")


def test_a_wrong_command_line_ends_alike_where_standard_error_is_closed(
    daemon: DaemonAtHand,
) -> None:
    line = f"{shlex.quote(FLASHGREP)} nosuch 2>&-"
    assert daemon.run("-c", line, program="/bin/sh").returncode == 2
