"""Reading without a daemon: where none can be started, the same answers come by scanning, and say so."""

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import BOUND, DaemonAtHand, MakeProject
from tests.support.mcp_clients import LineTransport, McpClient, shim_wire

NOWHERE = "/proc/flashgrep"
"""A state folder that not even root can make."""
SAID = "answering without the daemon, by scanning\n"


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(
        {
            "a.py": "def needle():\n    return 1\n",
            "b/c.txt": "no needle\n",
            ".gitignore": "*.log\n",
            "x.log": "needle\n",
        }
    )


@pytest.fixture
def nowhere(cold_daemon: DaemonAtHand, tmp_path: Path) -> DaemonAtHand:
    """Return what runs commands whose daemon cannot be started."""
    cold_daemon.environ.update(FLASHGREP_STATE_DIR=NOWHERE, TMPDIR=str(tmp_path))
    return cold_daemon


def test_reading_commands_answer_and_say_how(
    nowhere: DaemonAtHand, root: Path, tmp_path: Path
) -> None:
    expected = {
        (
            "query",
            "needle",
            "--mode",
            "literal",
        ): "a.py:1:def needle():\nb/c.txt:1:no needle\n",
        ("symbol", "needle"): None,
        ("stats",): None,
    }
    for arguments, stdout in expected.items():
        found = nowhere.run(*arguments, cwd=root)
        assert found.returncode == 0, found
        assert found.stderr.endswith(SAID), found
        assert found.stderr.count("\n") == 1
        assert found.stdout == stdout if stdout is not None else found.stdout
    until = time.monotonic() + BOUND
    while list(tmp_path.iterdir()):  # what served them ends a moment after them
        assert time.monotonic() < until
        os.sched_yield()


def test_a_wrong_setting_is_reported_once(
    cold_daemon: DaemonAtHand, root: Path
) -> None:
    cold_daemon.environ.update(FLASHGREP_TCP_PROT="1")
    for arguments in (["query", "needle"], ["index"], ["rpc"]):
        refused = cold_daemon.run(*arguments, cwd=root)
        assert refused.returncode == 2
        assert refused.stderr == (
            "fgrep: environment: unknown setting FLASHGREP_TCP_PROT; did you mean FLASHGREP_TCP_PORT?\n"
        )


def test_what_changes_something_is_refused(nowhere: DaemonAtHand, root: Path) -> None:
    for arguments in (["fs-remove", "a.py"], ["index-codebase"], ["watch-codebase"]):
        refused = nowhere.run(*arguments, cwd=root)
        assert refused.returncode == 2
        assert NOWHERE in refused.stderr
    assert (root / "a.py").exists()


def test_a_host_has_its_tools_for_reading(nowhere: DaemonAtHand, root: Path) -> None:
    with closing(shim_wire(nowhere, "--project", str(root), cwd=root)) as wire:
        client = McpClient(LineTransport(wire), "legacy")
        client.start()
        tools = {tool["name"] for tool in client.request("tools/list")["tools"]}
        assert "query" in tools
        assert "write_code" not in tools
        assert (
            client.call("query", text="needle", mode="literal")["structuredContent"][
                "total"
            ]
            == 2
        )
        (root / "new.py").write_text("needle\n")
        assert (
            client.call("query", text="needle", mode="literal")["structuredContent"][
                "total"
            ]
            == 3
        )


def test_json_rpc_over_stdio_answers_too(nowhere: DaemonAtHand, root: Path) -> None:
    with closing(nowhere.wire("stdio", root)) as wire:
        answer = wire.call("query", text="needle", mode="literal")
        assert answer["total"] == 2
        assert answer["coverage"]["complete"]
        assert (
            answer["coverage"]["stage"] == "failed"
        )  # nothing is indexed, in no folder
        assert (
            wire.call("stats")["stage_detail"] == "nothing is indexed: no daemon runs"
        )
        assert wire.fail("fs_remove", path="a.py")["data"]["reason"] == "read_only"
        assert wire.call("query", text="needle", mode="literal")["total"] == 2


def test_a_list_of_projects_without_end_is_not_copied(
    nowhere: DaemonAtHand, root: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir(0o700)
    (state / "token").mkdir()  # so that no daemon can be started
    (state / "projects.json").symlink_to("/dev/zero")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    nowhere.environ.update(FLASHGREP_STATE_DIR=str(state), TMPDIR=str(temporary))
    found = nowhere.run("query", "needle", cwd=root)
    assert found.stderr.endswith(SAID), found
    assert found.stdout.startswith("a.py:1:")
