"""The command line as a shell sees it: what is printed where, with which status, and what goes to grep."""

import contextlib
import json
import os
import shlex
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from flashgrep.base.own_folders import LIBRARIES
from flashgrep.base.paths import bundled_ripgrep
from flashgrep.cli.launcher import read_commands
from flashgrep.parts.built_in import REGISTRY
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.interrupts import allow_interrupts

FLASHGREP = FGREP.removesuffix("fgrep") + "flashgrep"
FILES: dict[str, str | bytes] = {
    "src/app.py": "import os\n\ndef needle(x):\n    return x\n",
    "src/Ünï.txt": "näive needle\n",
    "notes.md": "first\nsecond needle\nthird\n",
}


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(FILES)


def test_hits_are_printed_as_path_line_text(daemon: DaemonAtHand, root: Path) -> None:
    found = daemon.run("query", "needle", "--order", "path", cwd=root)
    assert found.stdout.splitlines() == [
        "notes.md:2:second needle",
        "src/app.py:3:def needle(x):",
        "src/Ünï.txt:1:näive needle",
    ]
    assert (found.returncode, found.stderr) == (0, "")


def test_paths_are_seen_from_the_folder_of_the_caller(
    daemon: DaemonAtHand, root: Path
) -> None:
    found = daemon.run("query", "needle", "--order", "path", cwd=root / "src")
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == [
        "../notes.md",
        "app.py",
        "Ünï.txt",
    ]


def test_alternatives_as_grep_separates_them_are_found(
    daemon: DaemonAtHand, root: Path
) -> None:
    found = daemon.run("query", r"def needle\|second needle", cwd=root)
    assert sorted(found.stdout.splitlines()) == [
        "notes.md:2:second needle",
        "src/app.py:3:def needle(x):",
    ]
    assert found.returncode == 0
    assert "as grep reads it" in found.stderr
    # Only where nothing has the text itself.
    (root / "how.sh").write_text("grep 'needle\\|thread' .\n")
    found = daemon.run("query", r"needle\|thread", cwd=root)
    assert found.stdout == "how.sh:1:grep 'needle\\|thread' .\n"


def test_context_is_printed_as_grep_does(daemon: DaemonAtHand, root: Path) -> None:
    found = daemon.run("query", "second needle", "-C", "1", cwd=root)
    assert (
        found.stdout == "notes.md-1-first\nnotes.md:2:second needle\nnotes.md-3-third\n"
    )


def test_nothing_found_is_status_1_and_says_what_was_searched_on_stderr(
    daemon: DaemonAtHand, root: Path
) -> None:
    daemon.run("index", str(root))
    found = daemon.run("query", "no such text", cwd=root)
    assert (found.returncode, found.stdout) == (1, "")
    assert "nothing found in 3 files" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["query", "(", "--mode", "regex"], "at 0"),
        (["query"], "Missing argument 'PATTERN'"),
        (["query", "x", "--no-such"], "No such option: --no-such"),
        (
            ["query", "x", "--mode", "magic"],
            "is not one of 'smart', 'literal', 'regex'",
        ),
        (["query", "x", "--limit", "0"], "limit"),
        (["query", "x", "--project", "nobody"], "no such project: nobody"),
        (["projects", "remove", "nobody"], "no such project: nobody"),
        (["index", "/no/such/folder"], "no such folder"),
    ],
)
def test_an_error_is_status_2_and_printed_on_stderr_alone(
    daemon: DaemonAtHand, root: Path, arguments: list[str], told: str
) -> None:
    found = daemon.run(*arguments, cwd=root)
    assert (found.returncode, found.stdout) == (2, "")
    assert told in found.stderr
    assert "Traceback" not in found.stderr


def test_a_text_like_the_option_for_help_is_searched_for(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "see fgrep --help\n"})
    said = daemon.run("query", "--json", "-E", "--", "--help", cwd=root)
    assert (said.returncode, said.stderr) == (0, "")
    (hit,) = json.loads(said.stdout)["results"]
    assert hit["text"] == "see fgrep --help"


def test_json_is_the_raw_result(daemon: DaemonAtHand, root: Path) -> None:
    found = json.loads(daemon.run("query", "second", "--json", cwd=root).stdout)
    assert [hit["file_path"] for hit in found["results"]] == ["notes.md"]
    assert found["coverage"]["complete"]


def test_more_hits_than_the_limit_are_announced_with_a_cursor_that_goes_on(
    daemon: DaemonAtHand, root: Path
) -> None:
    first = daemon.run("query", "needle", "--order", "path", "--limit", "2", cwd=root)
    assert "2 of 3 shown; continue with --cursor " in first.stderr
    cursor = shlex.split(first.stderr)[-1]  # as a shell reads it
    second = daemon.run(
        "query",
        "needle",
        "--order",
        "path",
        "--limit",
        "2",
        "--cursor",
        cursor,
        cwd=root,
    )
    assert second.stdout == "src/Ünï.txt:1:näive needle\n"


def test_files_are_listed_one_a_line(daemon: DaemonAtHand, root: Path) -> None:
    assert daemon.run("files", cwd=root).stdout.splitlines() == [
        "notes.md",
        "src/app.py",
        "src/Ünï.txt",
    ]
    assert daemon.run("files", "notes", cwd=root).stdout == "notes.md\n"


def test_a_file_name_that_is_not_utf8_is_printed_in_its_own_bytes(
    daemon: DaemonAtHand, root: Path
) -> None:
    (root / os.fsdecode(b"b\xff.txt")).write_text("odd one out\n")
    found = subprocess.run(
        [FGREP, "query", "odd one"],
        cwd=root,
        env=daemon.environ,
        capture_output=True,
        check=True,
    )
    assert found.stdout == b"b\xff.txt:1:odd one out\n"


def test_a_folder_outside_any_project_is_not_indexed_by_a_mere_query(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    found = daemon.run("query", "x", cwd=tmp_path)
    assert found.returncode == 2
    assert "make the folder a project with: fgrep index" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_another_project_is_asked_by_name_from_anywhere(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "elsewhere\n"}, name="other")
    assert daemon.run("projects", "add", str(root)).stdout == f"other  {root}\n"
    found = daemon.run("query", "elsewhere", "--project", "other", cwd=Path("/"))
    assert found.stdout.endswith("other/a.txt:1:elsewhere\n")


def test_a_path_means_the_project_it_lies_in(daemon: DaemonAtHand, root: Path) -> None:
    found = daemon.run("query", "second", "--project", "./src/..//src", cwd=root)
    assert found.stdout == "notes.md:2:second needle\n"
    assert "src  " not in daemon.run("projects", "list").stdout


def test_in_read_only_mode_nothing_is_written(
    cold_daemon: DaemonAtHand, root: Path
) -> None:
    cold_daemon.environ["FLASHGREP_READ_ONLY"] = "true"
    edit = [
        "write-code",
        "notes.md",
        "--start-line",
        "1",
        "--end-line",
        "1",
        "--replacement",
        "changed",
    ]
    refused = cold_daemon.run(*edit, cwd=root)
    assert refused.returncode == 2
    assert (root / "notes.md").read_text().startswith("first\n")
    assert cold_daemon.run("query", "second", cwd=root).returncode == 0


def test_index_says_what_it_did_and_then_stats_are_ready(
    daemon: DaemonAtHand, root: Path
) -> None:
    done = daemon.run("index", cwd=root)
    assert done.returncode == 0
    assert "indexed: 3 files" in done.stderr
    assert (
        json.loads(daemon.run("stats", "--json", cwd=root).stdout)["stage"] == "ready"
    )


def test_called_as_flashgrep_an_unknown_command_is_an_error(
    daemon: DaemonAtHand,
) -> None:
    found = subprocess.run(
        [FLASHGREP, "nonsense"],
        env=daemon.environ,
        capture_output=True,
        text=True,
        check=False,
        stdin=-3,
    )
    assert found.returncode == 2
    assert "No such command 'nonsense'" in found.stderr


def test_no_arguments_give_the_help_and_status_2(daemon: DaemonAtHand) -> None:
    found = daemon.run()
    assert found.returncode == 2
    assert "Projects:" in found.stdout


def test_help_needs_no_daemon(cold_daemon: DaemonAtHand) -> None:
    for arguments in (
        ["--help"],
        ["query", "--help"],
        ["daemon", "--help"],
        ["--version"],
    ):
        helped = cold_daemon.run(*arguments)
        assert helped.returncode == 0, helped.stderr
    assert not Path(cold_daemon.paths.state).exists()


def test_a_reader_that_goes_away_is_no_error(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"big.txt": "needle and more of it\n" * 5000})
    command = [FGREP, "query", "needle", "--limit", "5000", "--max-tokens", "1000000"]
    reader, writer = os.pipe()
    os.close(reader)
    found = subprocess.run(
        command,
        cwd=root,
        env=daemon.environ,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert b"Traceback" not in found.stderr
    assert found.returncode == 141


def test_an_interrupted_command_ends_quietly(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.start()
    pid = cold_daemon.status()["pid"]
    allow_interrupts()
    os.kill(pid, signal.SIGSTOP)
    try:
        command, nothing = (
            [FGREP, "stats"],
            subprocess.DEVNULL,
        )  # so that the only socket it has is its own
        with subprocess.Popen(
            command,
            stdin=nothing,
            stdout=nothing,
            stderr=subprocess.PIPE,
            env=cold_daemon.environ,
            cwd="/",
        ) as waiting:
            until = time.monotonic() + BOUND
            while not _is_connected(waiting.pid):
                assert time.monotonic() < until
            waiting.send_signal(signal.SIGINT)
            assert waiting.communicate(timeout=BOUND)[1] == b""
    finally:
        os.kill(pid, signal.SIGCONT)
    assert waiting.returncode == -signal.SIGINT


def _is_connected(pid: int) -> bool:
    """Whether the process has a socket open: it has sent its request then, or is about to."""
    with contextlib.suppress(OSError):
        return any(
            os.readlink(link).startswith("socket:")  # noqa: PTH115 - no path
            for link in Path(f"/proc/{pid}/fd").iterdir()
        )
    return False


def test_config_show_tells_the_origin_of_each_value(
    daemon: DaemonAtHand, root: Path
) -> None:
    rows = json.loads(daemon.run("config", "show", "--json", cwd=root).stdout)
    assert rows["tcp.port"] == {"value": 0, "origin": "environment"}
    assert rows["read_only"] == {"value": False, "origin": "default"}


def test_doctor_finds_nothing_wrong_here(daemon: DaemonAtHand, root: Path) -> None:
    daemon.run("index", cwd=root)
    found = daemon.run("doctor", cwd=root)
    assert found.returncode == 0, found.stdout
    assert {line.split()[1] for line in found.stdout.splitlines()} >= {
        "versions",
        "state",
        "daemon",
        "disk",
        "PATH",
        "ripgrep",
    }
    assert f"{bundled_ripgrep()}, ripgrep 15." in found.stdout


def test_doctor_tells_a_wrong_setting(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.environ["FLASHGREP_LOG_LEVEL"] = "loud"
    found = cold_daemon.run("doctor")
    assert found.returncode == 1
    assert "bad   settings" in found.stdout


def test_a_dry_uninstall_lists_and_removes_nothing_and_a_real_one_leaves_nothing(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    config = Path(cold_daemon.environ["XDG_CONFIG_HOME"]) / "flashgrep" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("read_only = true\n")
    cache = str(Path(cold_daemon.paths.state).with_name("cache"))
    cold_daemon.environ["FLASHGREP_CACHE_DIR"] = cache
    cold_daemon.run("index", str(root))
    assert list(Path(cache, "stores").glob("*/index.db"))
    (root / ".flashgrep" / "index.db").write_bytes(b"an earlier version's")
    assert "holds index.db: never read" in cold_daemon.run("doctor").stdout
    for name in (
        "commands.tsv",
        "commands.new",
        "token.new",
    ):  # of parts of other packages, and of killed processes
        (Path(cold_daemon.paths.state) / name).touch()
    libraries = Path(cache, LIBRARIES)
    libraries.mkdir()
    (libraries / "uses.json").touch()
    mine = [str(root / ".flashgrep"), str(config), cache, cold_daemon.paths.state]
    pid = cold_daemon.status()["pid"]
    dry = cold_daemon.run("uninstall", "--dry-run")
    assert [
        line.split()[-1]
        for line in dry.stdout.splitlines()
        if line.startswith("remove")
    ] == mine
    assert all(Path(path).exists() for path in mine)
    done = cold_daemon.run("uninstall", "--yes")
    assert (done.returncode, done.stderr.splitlines()[-1][:6]) == (0, "clean:"), (
        done.stderr
    )
    with contextlib.suppress(
        FileNotFoundError
    ):  # a process that has ended may wait for its parent to take note
        assert Path("/proc", str(pid), "cmdline").read_bytes() == b""
    assert not any(Path(path).exists() for path in [*mine, str(config.parent)])
    assert sorted(path.name for path in root.iterdir()) == [".git", "notes.md", "src"]


def test_every_method_has_its_command_and_the_client_knows_it() -> None:
    known = read_commands()
    summaries = {
        handler: REGISTRY.name_commands(handler.summary) for handler in REGISTRY
    }
    assert all(
        known[handler.command] == (handler.safety, summary, "")
        for handler, summary in summaries.items()
    )


def test_the_entry_points_are_executable() -> None:
    assert all(Path(path).stat().st_mode & stat.S_IXUSR for path in (FGREP, FLASHGREP))
