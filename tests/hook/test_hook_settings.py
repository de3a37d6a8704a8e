"""The hook in hosts' settings: added once, beside the hooks of others, and taken out to the byte."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.parts.hosts.hooks import HOOK_PLACES, MARK, is_ours, make_hook, plan_hook
from flashgrep.parts.hosts.host_settings import take_back, write_change
from tests.conftest import BOUND, FGREP

OTHERS = """{
  // mine
  "model": "x",
  "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": []}], "Stop": []}
}
"""


@pytest.mark.parametrize("host", HOOK_PLACES)
def test_a_hook_is_added_once_and_taken_out_whole(tmp_path: Path, host: str) -> None:
    path = tmp_path / "settings" / "hooks.json"
    state = tmp_path / "state"
    change = plan_hook(host, path, "flashgrep")
    write_change(change, state, "hook")
    hooks = json.loads(path.read_text())["hooks"][HOOK_PLACES[host].event]
    assert len(hooks) == 1
    assert f"{MARK}{host}" in str(hooks)
    again = plan_hook(host, path, "flashgrep")
    assert again.before == again.after
    moved = plan_hook(host, path, "/opt/flashgrep")
    write_change(moved, state, "hook")
    assert path.read_text().count(MARK) == 1
    take_back(plan_hook(host, path, None), state)
    assert not path.parent.exists()


def test_groks_hook_has_no_variable_of_the_shell() -> None:
    assert "$" not in json.dumps(make_hook("grok"))


def test_hooks_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OTHERS)
    change = plan_hook("claude-code", path, "flashgrep")
    write_change(change, tmp_path / "state", "hook")
    after = path.read_text()
    assert "// mine" in after
    assert '"matcher": "Edit"' in after
    assert is_ours(after)
    take_back(plan_hook("claude-code", path, None), tmp_path / "state")
    assert path.read_text() == OTHERS


@pytest.mark.parametrize(
    "text", ["[]", '{"hooks": []}', '{"hooks": {"PreToolUse": 1}}']
)
def test_a_file_in_another_form_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InvalidParams):
        plan_hook("claude-code", path, "flashgrep")
    assert path.read_text() == text


@pytest.mark.slow
def test_the_command_adds_a_hook_and_uninstall_takes_it_out(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path / "home")}
    environ["FLASHGREP_STATE_DIR"] = str(tmp_path / "state")
    environ.pop("CODEX_HOME", None)
    project = tmp_path / "project"
    project.mkdir()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [FGREP, *arguments],
            cwd=project,
            env=environ,
            text=True,
            capture_output=True,
            check=True,
            timeout=BOUND,
        )
        return done.stdout

    run("install-hook", "claude-code")
    run("install-hook", "codex", "--global")
    assert is_ours((project / ".claude/settings.json").read_text())
    assert is_ours((tmp_path / "home/.codex/hooks.json").read_text())
    assert "nothing to change" in run("install-hook", "claude-code")
    run("install", "--uninstall")
    assert not (project / ".claude").exists()
    assert not (tmp_path / "home/.codex").exists()
