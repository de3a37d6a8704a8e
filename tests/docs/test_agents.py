"""The examples for agents run as they are printed: entries, hooks, and what is counted."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.conftest import FGREP, DaemonAtHand, MakeProject
from tests.support.examples import find_example
from tests.support.mcp_clients import INITIALIZE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell"),
]
AGENTS = "docs/agents.md"
PAGES = ["README.md", AGENTS]
BIN = Path(FGREP).parent
SEARCH = {"tool_name": "bash", "tool_input": {"command": "rg -n TODO src | head"}}
TRANSCRIPT = {
    "type": "assistant",
    "message": {
        "content": [
            {"type": "tool_use", "name": "Bash", "input": {"command": "grep -rn x ."}}
        ]
    },
}


@pytest.fixture
def root(daemon: DaemonAtHand, project: MakeProject) -> Path:
    """Return a project of somebody who has Claude Code."""
    Path(daemon.environ["HOME"], ".claude").mkdir(exist_ok=True)
    return project({"src/a.py": "# TODO: all\n"})


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_write_the_entry_that_the_page_prints(
    daemon: DaemonAtHand, root: Path, page: str
) -> None:
    for line in find_example(page, "flashgrep install ").commands:
        ran = daemon.shell(line, root)
        assert ran.returncode == 0, (line, ran.stderr)
        assert ran.stdout, line
    printed = json.loads(find_example(page, '{"mcpServers"').text)["mcpServers"]
    written = json.loads((root / ".mcp.json").read_text())["mcpServers"]
    assert printed["flashgrep"].items() <= written["flashgrep"].items()
    assert "flashgrep" in (root / "AGENTS.md").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_the_entry_that_the_page_prints_starts_a_server(
    daemon: DaemonAtHand, root: Path, page: str
) -> None:
    entry = json.loads(find_example(page, '{"mcpServers"').text)
    server = entry["mcpServers"]["flashgrep"]
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    ran = daemon.run(
        *server["args"],
        program=str(BIN / server["command"]),
        cwd=root,
        stdin=f"{json.dumps(request)}\n",
    )
    answer = json.loads(ran.stdout.splitlines()[0])
    assert answer["result"]["serverInfo"]["name"] == "flashgrep"


def test_the_options_that_the_page_names_are_there(
    daemon: DaemonAtHand, root: Path
) -> None:
    (line,) = [
        line
        for line in find_example(AGENTS, "flashgrep install ").commands
        if "--print" in line
    ]
    command, _, comment = line.partition("#")
    options = [word.strip(",:;") for word in comment.split() if word.startswith("--")]
    assert len(options) == 4
    for option in options:
        ran = daemon.shell(f"{command} {option}", root)
        assert ran.returncode == 0, (option, ran.stderr)


def test_the_hook_is_written_and_says_what_it_would_do(
    daemon: DaemonAtHand, root: Path
) -> None:
    install, explain = find_example(AGENTS, "flashgrep install-hook").commands
    assert daemon.shell(install, root).returncode == 0
    assert "hook claude-code" in (root / ".claude/settings.json").read_text()
    ran = daemon.shell(explain, root)
    assert ran.returncode == 0, ran.stderr
    assert "grep: by flashgrep, where the index proves" in ran.stdout


def test_the_hook_of_mistral_vibe_changes_a_search(
    daemon: DaemonAtHand, root: Path
) -> None:
    (hook,) = tomllib.loads(find_example(AGENTS, "[[hooks]]").text)["hooks"]
    assert hook["match"] == SEARCH["tool_name"]
    assert daemon.run("index", cwd=root).returncode == 0
    payload = root / "payload.json"
    payload.write_text(json.dumps({**SEARCH, "cwd": str(root)}))
    ran = daemon.shell(f"{hook['command']} < {payload.name}", root)
    changed = json.loads(ran.stdout)["hook_specific_output"]["tool_input"]
    assert changed["command"].endswith(" hook rg -n TODO src | head")


def test_what_was_served_and_could_have_been_is_counted(
    daemon: DaemonAtHand, root: Path
) -> None:
    folder = Path(daemon.environ["HOME"], ".claude", "projects", "p")
    folder.mkdir(parents=True)
    transcript = {**TRANSCRIPT, "cwd": str(root)}
    (folder / "1.jsonl").write_text(f"{json.dumps(transcript)}\n")
    gain, discover = find_example(AGENTS, "flashgrep gain").commands
    ran = daemon.shell(discover, root)
    assert ran.returncode == 0, ran.stderr
    assert "1 searches could be served" in ran.stdout
    ran = daemon.shell(gain, root)
    # Whether a model was served before depends on the order of the tests.
    if ran.returncode:
        assert ran.stderr.startswith("nothing has been counted yet; ")
    else:
        assert "grep+read" in ran.stdout
