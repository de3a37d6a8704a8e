"""``flashgrep hook`` as hosts and shells run it: with a daemon and without one."""

import json
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flashgrep.parts.hook.answers import is_gnu
from flashgrep.parts.hook.client import EVERY_PATH
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.hook.project import make_large
from tests.support.pace import paced
from tests.support.rg_tree import Said, make_tree, ripgrep, run_to_end

OURS = str(Path(FGREP).with_name("flashgrep"))
COMMANDS = [
    "-rn foo .",
    "-rl foo",
    "-rn zzzz_none .",
    "-rn ( .",
    "-rc foo .",
    "-rn foo nope .",
    "--nosuch",
    "",
    "-rniE foo|bar sub",
    "-rn --include=*.c foo .",
    "-n foo a.txt",
]


@pytest.fixture(scope="module")
def root(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("hook") / "tree"
    root.mkdir()
    make_tree(root)
    make_large(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    added = daemon.run("index", str(root))
    assert added.returncode == 0, added.stderr
    yield root
    assert daemon.run("projects", "remove", str(root)).returncode == 0


def run_hook(
    daemon: DaemonAtHand, *arguments: str, text: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [OURS, "hook", *arguments],
        input=text,
        text=True,
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**daemon.environ, "PATH": f"{Path(OURS).parent}:{os.environ['PATH']}"},
        timeout=BOUND,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_grep_to_whoever_calls_it(
    daemon: DaemonAtHand, root: Path, command: str
) -> None:
    arguments = command.split()
    ours = run_to_end([OURS, "hook", "grep", *arguments], root, daemon.environ)
    assert ours == run_to_end(["grep", *arguments], root, daemon.environ)


def test_a_program_of_the_system_is_run_by_its_path(
    daemon: DaemonAtHand, root: Path
) -> None:
    program = shutil.which("grep", path=":".join(EVERY_PATH))
    assert program is not None
    for words in ("-rn foo .", "-rn ( . -E", "-rn foo nope", "--nosuch"):
        arguments = words.split()
        typed = run_to_end([program, *arguments], root, daemon.environ)
        ours = run_to_end([OURS, "hook", program, *arguments], root, daemon.environ)
        assert ours == typed


def test_a_file_saved_just_now_is_found(daemon: DaemonAtHand, root: Path) -> None:
    (root / "sub" / "new.c").write_bytes(b"int just_saved;\n")
    command = [OURS, "hook", "grep", "-rn", "just_saved", "."]
    ours = run_to_end(command, root, daemon.environ)
    assert ours == Said(b"./sub/new.c:1:int just_saved;\n", b"", 0)
    (root / "sub" / "new.c").unlink()
    assert run_to_end(command, root, daemon.environ) == Said(b"", b"", 1)


def test_what_ripgrep_leaves_out_is_told_in_one_line(
    daemon: DaemonAtHand, root: Path
) -> None:
    arguments = ["--sort=path", "foo"]
    ours = run_to_end([OURS, "hook", "rg", *arguments], root, daemon.environ)
    theirs = ripgrep(["--no-config", *arguments], root)
    assert (ours.stdout, ours.status) == (theirs.stdout, theirs.status)
    assert ours.stderr.startswith(b"flashgrep: rg did not search ignored or hidden ")
    assert ours.stderr.count(b"\n") == 1
    assert b"build/" in ours.stderr
    named = run_to_end([OURS, "hook", "rg", "foo", "a.txt"], root, daemon.environ)
    assert named.stderr == b""


def test_a_payload_is_answered_with_the_command_that_takes_its_place(
    daemon: DaemonAtHand, root: Path
) -> None:
    payload = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "grep -rn foo . | head -2", "description": "d"},
    }
    done = run_hook(daemon, "claude-code", text=json.dumps(payload), cwd=root)
    assert done.returncode == 0, done.stderr
    updated = json.loads(done.stdout)["hookSpecificOutput"]["updatedInput"]
    assert updated["description"] == "d"
    program, words = updated["command"].split(" hook ")
    assert (shlex.split(program), words) == ([OURS], "grep -rn foo . | head -2")
    # Codex runs commands in a login shell, which has no PATH of ours.
    elsewhere = {**daemon.environ, "PATH": "/usr/bin:/bin", "HOME": str(root)}
    shell = run_to_end(["bash", "-lc", updated["command"]], root, elsewhere)
    typed = run_to_end(["bash", "-lc", "grep -rn foo . | head -2"], root, elsewhere)
    # Whether grep says something before head ends it is a matter of chance.
    assert (shell.stdout, shell.status) == (typed.stdout, 0)
    payload["tool_input"] = {"command": "ls"}
    done = run_hook(daemon, text=json.dumps(payload), cwd=root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_in_a_small_project_a_search_runs_as_it_is_typed(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    small = project({"a.txt": "needle\n"})
    assert daemon.run("index", str(small)).returncode == 0
    for line, is_rewritten in (
        ("grep -rn needle .", False),
        ("git grep needle", False),
        ("find . -name '*.txt' -type f", False),
        ("rg needle 2>/dev/null", False),
        # These tell what they leave out, go somewhere else, or are refused.
        ("rg needle", True),
        ("cd / && grep -rn needle .", True),
        ("grep -rE '(a{1,1000}){1,1000}' .", True),
    ):
        payload = {"tool_name": "Bash", "tool_input": {"command": line}}
        done = run_hook(daemon, text=json.dumps(payload), cwd=small)
        assert bool(done.stdout) == is_rewritten, line
    told = run_hook(daemon, "--explain", "grep -rn needle .", cwd=small).stdout
    assert "as it is, it searches so little" in told


def test_following_links_takes_a_larger_project(
    daemon: DaemonAtHand, root: Path
) -> None:
    planned = run_hook(daemon, "--explain", "grep -rn foo .", cwd=root).stdout
    assert "by flashgrep" in planned
    for line in ("grep -Rn foo .", 'grep -Rn "$WORD" .'):
        told = run_hook(daemon, "--explain", line, cwd=root).stdout
        assert "as it is, it searches so little" in told, line


def test_git_runs_no_program_that_the_repository_names(
    daemon: DaemonAtHand, root: Path, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {started}\n")
    monitor.chmod(0o755)
    environ = {**daemon.environ, "GIT_SSL_CAINFO": "/none", "GIT_AUTHOR_NAME": "a"}
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", str(monitor)], check=True)
    try:
        typed = run_to_end([*git, "grep", "-n", "foo"], root, environ)
        assert started.exists()
        started.unlink()
        ours = run_to_end([OURS, "hook", "git", "grep", "-n", "foo"], root, environ)
        assert (ours.stdout, ours.status) == (typed.stdout, 0)
        assert not started.exists()
    finally:
        subprocess.run([*git, "config", "--unset", "core.fsmonitor"], check=True)
        (root / ".git/index").unlink()


def test_the_rewritten_line_prints_what_the_typed_one_prints(
    daemon: DaemonAtHand, root: Path
) -> None:
    environ = {**daemon.environ, "PATH": f"{Path(OURS).parent}:{os.environ['PATH']}"}
    for line in (
        "grep -rn foo . | head -4",
        "cd sub && grep -rl 'foo' || echo none",
        "for x in foo bar; do grep -rno $x sub* | wc -l; done",
        'A="foo one"; grep -rn "$A" --include=*.{txt,c} .',
    ):
        payload = {"tool_name": "Bash", "tool_input": {"command": line}}
        done = run_hook(daemon, text=json.dumps(payload), cwd=root)
        updated = json.loads(done.stdout)["hookSpecificOutput"]["updatedInput"]
        changed = updated["command"]
        assert changed != line
        bash = ["bash", "-c"]
        ours = run_to_end([*bash, changed], root, environ)
        theirs = run_to_end([*bash, line], root, environ)
        # What grep says of binary files depends on when ``head`` ends.
        assert (ours.stdout, ours.status) == (theirs.stdout, theirs.status), line


def test_an_explanation_says_what_happens_to_each_command(
    daemon: DaemonAtHand, root: Path
) -> None:
    line = "grep -rn foo . | wc -l; grep foo a.txt"
    done = run_hook(daemon, "--explain", line, cwd=root)
    assert done.returncode == 0, done.stderr
    runs, *reasons = done.stdout.splitlines()
    assert runs.endswith(" hook grep -rn foo . | wc -l; grep foo a.txt")
    assert reasons == [
        "  grep: by flashgrep, where the index proves",
        "  wc: as it is, no search",
        "  grep: as it is, it is not recursive",
        "  the host need not ask: the line only reads, below its folder",
    ]


def test_without_a_daemon_everything_runs_as_it_is(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    tree = project({"a.txt": "needle\n"})
    payload = {"tool_name": "Bash", "tool_input": {"command": "grep -r needle ."}}
    done = run_hook(cold_daemon, text=json.dumps(payload), cwd=tree)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run_hook(cold_daemon, "cursor", text=json.dumps(payload), cwd=tree)
    assert (done.returncode, done.stdout) == (0, "{}")
    done = run_hook(cold_daemon, "grep", "-rn", "needle", ".", cwd=tree)
    assert (done.returncode, done.stdout) == (0, "./a.txt:1:needle\n")
    done = run_hook(cold_daemon, "--explain", "ls")
    assert done.returncode == 2
    assert "no daemon runs" in done.stderr
    assert not Path(cold_daemon.paths.state).exists()


@pytest.mark.parametrize("command", [["hook", "grep"], ["hook", "rg"], ["rg"]])
def test_what_the_system_does_not_take_runs_as_it_was_called(
    cold_daemon: DaemonAtHand, project: MakeProject, command: list[str]
) -> None:
    tree = project({"a.txt": "needle\n"})
    Path(cold_daemon.paths.state).mkdir(mode=0o700)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"plan": ["x" * 200_000]}}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(cold_daemon.paths.socket)
        listening.listen()
        listening.settimeout(BOUND)
        with subprocess.Popen(
            [OURS, *command, "-n", "needle", "a.txt"],
            cwd=tree,
            env=cold_daemon.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            connection, _ = listening.accept()
            # After a quarter of a second it no longer waits.
            with connection, suppress(ConnectionError):
                connection.makefile("rb").readline()
                connection.sendall(json.dumps(answer).encode() + b"\n")
            assert process.communicate(timeout=BOUND) == (b"1:needle\n", b"")


def test_a_name_in_other_letters_is_found_by_the_plan(
    daemon: DaemonAtHand, root: Path
) -> None:
    (root / "sub" / "straße.c").write_text("int straßen_foo;\n日本\n")
    for arguments in (
        ["-rni", "straßen_foo", "."],
        ["-rn", "日本", "."],
        ["-rn", "--include=*ß*", "foo", "."],
    ):
        expected = run_to_end(["grep", *arguments], root, daemon.environ)
        command = [OURS, "hook", "grep", *arguments]
        assert run_to_end(command, root, daemon.environ) == expected
        assert expected.status == 0
    (root / "sub" / "straße.c").unlink()


def test_it_is_find_to_whoever_calls_it(daemon: DaemonAtHand, root: Path) -> None:
    for line in (
        ". -type f",
        ". -name *.c -type f",
        "sub -type f -name *.txt -o -type f -name *.c",
        ". -type d",
        "nope -type f",
    ):
        expected = run_to_end(["find", *line.split()], root, daemon.environ)
        command = [OURS, "hook", "find", *line.split()]
        assert run_to_end(command, root, daemon.environ) == expected


def test_it_is_git_to_whoever_calls_it(daemon: DaemonAtHand, root: Path) -> None:
    subprocess.run(["git", "add", "-f", "sub", "a.txt"], cwd=root, check=True)
    environ = {**daemon.environ, "GIT_PAGER": "cat"}
    for line in ("-n foo", "-n foo -- *.c", "-c foo sub", "zzzz", "-n foo HEAD", "log"):
        expected = run_to_end(["git", "grep", *line.split()], root, environ)
        command = [OURS, "hook", "git", "grep", *line.split()]
        assert run_to_end(command, root, environ) == expected
    for more in ({"GIT_DIR": "nope"}, {"GIT_LITERAL_PATHSPECS": "1"}):
        environ = {**daemon.environ, **more}
        expected = run_to_end(["git", "grep", "foo", "--", "*.c"], root, environ)
        command = [OURS, "hook", "git", "grep", "foo", "--", "*.c"]
        assert run_to_end(command, root, environ) == expected


def test_the_tools_of_gnu_are_known() -> None:
    for name in ("grep", "find", "git"):
        program = shutil.which(name)
        assert program is not None
        assert is_gnu(program)
    assert not is_gnu(sys.executable)


HEAVY = ["(a{1,1000}){1,1000}", "((a{1,100}){1,100}){1,100}", "(.{1,500}foo){1,200}"]


@pytest.mark.parametrize("pattern", HEAVY)
def test_a_pattern_that_takes_all_memory_is_refused(
    daemon: DaemonAtHand, root: Path, pattern: str
) -> None:
    payload = {
        "tool_name": "Bash",
        "tool_input": {"command": f"cat a.txt | grep -cE '{pattern}' a.txt"},
    }
    done = run_hook(daemon, text=json.dumps(payload), cwd=root)
    assert "hook grep -cE" in done.stdout
    memory = memory_of(daemon)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in (
        ["hook", "grep", "-rnE", pattern, "."],
        ["hook", "grep", "-E", pattern, "a.txt"],
        ["hook", "git", "grep", "-nE", pattern],
        ["query", "--mode", "regex", pattern],
    ):
        said = run_to_end([OURS, *command], root, daemon.environ)
        assert (said.stdout, said.status) == (b"", 2)
        assert b"repe" in said.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < paced(4 * 0.1)
    assert memory_of(daemon) - memory < 100


def memory_of(daemon: DaemonAtHand) -> int:
    """Return the daemon's MiB of memory."""
    status = json.loads(daemon.run("daemon", "status", "--json").stdout)
    return int(status["memory_bytes"]) >> 20
