"""What was served is counted by day, project and method; past transcripts are read on request."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from flashgrep.api.service import ServedAnswer
from flashgrep.parts.gain import discover_command
from flashgrep.parts.gain.counters import (
    DAYS,
    FILE,
    MOST_PROJECTS,
    Counters,
    list_rows,
    read_days,
)
from flashgrep.parts.gain.gain_command import READ_BYTES, RULES, add_up, format_report
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject

DAY = 86_400.0
HOOK_CALLS = 5
"""One at least is served: on a busy machine a hook gives up after a quarter of a second, and the real tool runs."""


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000 * DAY

    def __call__(self) -> float:
        return self.seconds


def test_counters_add_up_over_restarts_and_stay_small(tmp_path: Path) -> None:
    clock = Clock()
    file = tmp_path / FILE
    for _ in range(2):
        counters = Counters(file, clock)
        counters.note_answer(ServedAnswer("query", "p", 0.25, 400))
        counters.note_answer(ServedAnswer("get_symbol", "p", 0.5, 800))
        counters.close()
    rows = list(list_rows(file))
    assert [(row.name, row.calls, row.milliseconds, row.size) for row in rows] == [
        ("get_symbol", 2, 1000, 1600),
        ("query", 2, 500, 800),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    total = add_up(rows)
    assert total.tokens == 600
    assert total.estimate == (2400 + 2 * READ_BYTES) // 4
    report = format_report(rows)
    assert "get_symbol 2, query 2" in report
    assert all(rule in report for rule in RULES)

    counters = Counters(file, clock)
    for number in range(MOST_PROJECTS + 20):
        counters.note_answer(ServedAnswer("query", f"p{number}", 0, 1))
    for _ in range(DAYS + 5):
        clock.seconds += DAY
        counters.note_answer(ServedAnswer("query", "p", 0, 1))
    counters.rest()
    days = read_days(file)
    assert len(days) == DAYS
    assert max(map(len, days.values())) <= MOST_PROJECTS + 1


@pytest.mark.parametrize("text", ["", "[]", '{"d": 1}', '{"d": {"p": {"m": [1]}}}'])
def test_a_damaged_file_counts_from_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / FILE
    file.write_text(text)
    counters = Counters(file)
    counters.note_answer(ServedAnswer("query", "p", 0, 1))
    counters.close()
    assert [row.calls for row in list_rows(file)] == [1]


def test_a_folder_that_is_gone_loses_the_counters_and_nothing_else(
    tmp_path: Path,
) -> None:
    counters = Counters(tmp_path / "gone" / FILE)
    counters.note_answer(ServedAnswer("query", "p", 0, 1))
    counters.close()
    assert not (tmp_path / "gone").exists()


def test_searches_of_a_hook_are_shown_by_project(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    tree = project({f"{number}.txt": f"text {number}\n" for number in range(40)})
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    assert cold_daemon.run("index", str(tree)).returncode == 0
    ours = str(Path(FGREP).with_name("flashgrep"))
    command = ["hook", "grep", "-rn", "text 39", "."]
    for _ in range(HOOK_CALLS):
        done = cold_daemon.run(*command, cwd=tree, program=ours)
        assert done.returncode == 0, done.stderr
    assert cold_daemon.run("gain").returncode == 1
    assert cold_daemon.run("daemon", "stop").returncode == 0
    shown = cold_daemon.run("gain", "--json")
    rows = json.loads(shown.stdout)
    assert [row["name"] for row in rows] == ["hook grep"]
    calls = rows[0]["calls"]
    assert 1 <= calls <= HOOK_CALLS
    assert rows[0]["unread"] >= 30 * calls
    assert f"hook grep {calls}" in cold_daemon.run("gain").stdout


def test_past_searches_of_each_form_are_found(tmp_path: Path) -> None:
    claude = {
        "message": {
            "content": [
                {
                    "type": "tool_use",
                    "name": "Bash",
                    "input": {"command": "grep -rn foo . | head"},
                }
            ]
        }
    }
    words = json.dumps({"command": ["bash", "-lc", "rg foo src"]})
    codex = {"payload": {"type": "function_call", "name": "shell", "arguments": words}}
    file = tmp_path / "a.jsonl"
    newer = {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": "rg bar src"}),
        },
    }
    # What came of a call repeats it, as it was run.
    event = {
        "type": "event_msg",
        "payload": {"item": {"command": ["/bin/bash", "-lc", "rg bar src"]}},
    }
    calls = [claude, codex, newer, event]
    lines = ["not JSON, command", *map(json.dumps, calls)]
    file.write_text("\n".join(lines))
    commands = list(discover_command.list_commands(file))
    assert commands == ["grep -rn foo . | head", "rg foo src", "rg bar src"]
    served: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for command in [*commands, "ls", "grep -rv foo .", "find . -delete"]:
        discover_command.judge(command, served, others)
    assert served.total() == 3
    assert set(others) == {
        "grep: nothing is planned with -v",
        "find: a test or an action that is not planned",
    }


@pytest.mark.slow
def test_discover_lists_what_could_have_been_served(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    line = json.dumps({"input": {"command": "grep -rn foo src"}})
    (folder / "s.jsonl").write_text(f"{line}\n{line}\n")
    done = subprocess.run(
        [FGREP, "discover"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        text=True,
        capture_output=True,
        check=False,
        timeout=BOUND,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1 transcripts, 2 shell commands: 2 searches could be served, 0 not",
        "    2  grep -rn foo src",
    ]
