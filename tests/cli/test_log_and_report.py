"""``fgrep daemon logs`` and ``fgrep doctor --report``: what people read, and what they show to others."""

import json
import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import pytest

from flashgrep.cli.log_command import describe_line
from flashgrep.cli.report import hide_names
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.interrupts import allow_interrupts


def line(event: str, **values: object) -> str:
    stamp = "2026-11-24T10:00:00.5Z"
    return json.dumps({**values, "event": event, "level": "info", "timestamp": stamp})


@pytest.fixture
def log(cold_daemon: DaemonAtHand) -> Path:
    """Return the log of a daemon that has written five lines and ended."""
    log = Path(cold_daemon.paths.log)
    log.parent.mkdir(mode=0o700)
    log.write_text("".join(f"{line(f'event {at}')}\n" for at in range(5)))
    return log


def test_a_pipe_gets_the_last_lines_as_they_are(
    cold_daemon: DaemonAtHand, log: Path
) -> None:
    run = cold_daemon.run("daemon", "logs", "-n", "2")
    assert run.stdout.splitlines() == [line("event 3"), line("event 4")]
    assert run.stderr == f"{log}\n"


def test_a_terminal_gets_words(cold_daemon: DaemonAtHand, log: Path) -> None:
    with log.open("a") as file:
        file.write(
            line("failed", path="a\x1bb", took=3, exception="E:\n  at \x07") + "\n"
        )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [FGREP, "daemon", "logs", "-n", "1"],
        env={**cold_daemon.environ, "TZ": "UTC"},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    assert process.wait(BOUND) == 0
    shown = os.read(ours, 10_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert shown == (
        "Nov 24 10:00:00 info    failed path=a\\x1bb took=3\n    E:\n      at \\x07\n"
    )


def test_what_is_no_line_of_the_log_is_shown_as_it_is() -> None:
    assert describe_line("Fatal Python error\x1b[0m") == "Fatal Python error\\x1b[0m"
    assert describe_line("[1]") == "[1]"


def test_a_followed_log_goes_on_after_it_was_moved_away(
    cold_daemon: DaemonAtHand, log: Path
) -> None:
    allow_interrupts()
    process = subprocess.Popen(
        [FGREP, "daemon", "logs", "-f", "-n", "1"],
        env=cold_daemon.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    output = process.stdout
    assert output is not None

    def read() -> bytes:
        ready, _, _ = select.select([output], [], [], BOUND)
        assert ready
        return output.readline()

    assert read().decode() == f"{line('event 4')}\n"
    with log.open("a") as file:
        file.write(line("half")[:10])
        file.flush()
        file.write(f"{line('half')[10:]}\n")
    assert read().decode() == f"{line('half')}\n"
    with log.open("a") as file:
        file.write(f"{line('before')}\n")
        log.replace(log.with_name("daemon.log.1"))
    log.write_text(f"{line('after')}\n")
    assert read().decode() == f"{line('before')}\n"
    assert read().decode() == f"{line('after')}\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(BOUND) == 130
    output.close()


def test_a_report_names_no_project_no_user_and_no_secret(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "text\n"}, name="secretproject")
    settings = Path(cold_daemon.environ["XDG_CONFIG_HOME"]) / "flashgrep/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[embedding]\nurl = "https://inside.example/v1"\n')
    assert cold_daemon.run("query", "text", cwd=root).returncode == 0
    with Path(cold_daemon.paths.log).open("a") as file:
        file.write(
            line("failed", path=f"{root}/a.txt", other="/srv/elsewhere/x.py") + "\n"
        )
    report = tmp_path / "report.txt"
    run = cold_daemon.run("doctor", "--report", str(report), cwd=root)
    assert f"report: {report}" in run.stdout
    text = report.read_text()
    for private in (
        "secretproject",
        "elsewhere",
        "inside",
        str(tmp_path),
        os.uname()[1],
    ):
        assert private not in text, private
    assert cold_daemon.environ["HOME"] not in text
    assert cold_daemon.paths.state not in text
    assert "<project 1>/a.txt" in text
    assert "<hidden>" in text
    assert '"version"' in text


def test_a_report_that_cannot_be_written_says_so(cold_daemon: DaemonAtHand) -> None:
    run = cold_daemon.run("doctor", "--report", "/no/such/folder/report.txt")
    assert run.returncode == 2
    assert "cannot write the report" in run.stderr


def test_names_inside_words_stay_and_open_folders_too() -> None:
    names = {"/home/ann": "~", "ann": "<user>", "ab": "<project 1>"}
    text = "ann, annotation /home/ann/x /opt/secret/y /proc/1 ab http:<path>"
    assert hide_names(text, names) == (
        "<user>, annotation ~/x <path> /proc/1 ab http:<path>"
    )


def test_devices_are_named_in_a_report_and_files_in_memory_are_not() -> None:
    text = "reads /dev/null and /dev/shm/of-mine/a.py"
    assert hide_names(text, {}) == "reads /dev/null and <path>"
