"""Settings of hosts edited in place: the rest stays to the byte, twice is once, and what was is kept."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep import __version__
from flashgrep.cli import jsonc
from flashgrep.cli.hosts import BACKUP, HOSTS, SERVER, plan_change, write_change
from flashgrep.errors import InvalidParams
from tests.conftest import FGREP

pytestmark = pytest.mark.slow

COMMAND = ["/opt/flashgrep", "mcp"]
JSON_HOSTS = [name for name, host in HOSTS.items() if host.form != "toml"]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5) | st.sampled_from(["a", "b"]), values, max_size=4)
layouts = st.sampled_from([None, 1, 2, "\t"])


def set_in(value: dict[str, Any], path: list[str], item: Any) -> dict[str, Any]:
    """Return the slow truth: the same change on the parsed value."""
    name, *rest = path
    inner = value.get(name, {})
    return {**value, name: set_in(inner, rest, item) if rest else item}


@given(objects, layouts, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2), values)
@settings(max_examples=60, deadline=None)
def test_a_member_is_set_and_nothing_else(value: dict[str, Any], layout: Any, path: list[str], item: Any) -> None:
    text = json.dumps(value, indent=layout)
    if len(path) == 2 and not isinstance(value.get(path[0], {}), dict):
        with pytest.raises(InvalidParams):
            jsonc.set_member(text, path, item)
        return
    after = jsonc.set_member(text, path, item)
    assert json.loads(after) == set_in(value, path, item)
    removed = json.loads(jsonc.remove_member(after, path))
    assert path[-1] not in (removed.get(path[0], {}) if len(path) == 2 else removed)


@given(objects, layouts)
@settings(max_examples=40, deadline=None)
def test_what_was_added_can_be_taken_out_again(value: dict[str, Any], layout: Any) -> None:
    value.pop("key", None)
    text = json.dumps(value, indent=layout)
    after = jsonc.set_member(text, ["key", SERVER], {"command": "x"})
    assert json.loads(jsonc.remove_member(after, ["key", SERVER])) == value


@given(st.text(alphabet='{}[]",:/*\n\\ a1', max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        found = jsonc.parse(text).value
    except InvalidParams:
        with pytest.raises(ValueError):
            json.loads(text or "nothing")
    else:
        try:
            assert found == json.loads(text)
        except json.JSONDecodeError:
            assert any(sign in text for sign in ("//", "/*", ",")) or not text.strip()  # what JSON itself has not


COMMENTED = """// my settings
{
  "theme": "dark", // as ever
  /* servers */
  "KEY": {
    "other": { "command": "x", },
  },
}
"""


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_comments_order_and_layout_stay(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    file = tmp_path / "settings.json"
    text = COMMENTED.replace("KEY", host.key)
    file.write_text(text)
    change = plan_change(host, file, COMMAND)
    added = change.after.replace(text[: text.index("},\n  },") + 1], "")
    assert change.after.startswith(text[: text.index("},\n  },") + 1])
    assert change.after.endswith(",\n  },\n}\n")
    assert SERVER in added
    assert jsonc.parse(change.after).value[host.key][SERVER] == host.entry(COMMAND)
    write_change(change)
    again = plan_change(host, file, COMMAND)
    assert again.before == again.after
    assert (tmp_path / f"settings.json{BACKUP}").read_text() == text
    write_change(plan_change(host, file, None))
    assert jsonc.parse(file.read_text()).value == jsonc.parse(text).value


def test_each_host_gets_its_own_form() -> None:
    assert HOSTS["opencode"].entry(COMMAND) == {"type": "local", "command": COMMAND, "enabled": True}
    assert HOSTS["cursor"].entry(COMMAND) == {"command": COMMAND[0], "args": ["mcp"]}
    assert HOSTS["claude-code"].entry(COMMAND) == {"type": "stdio", "command": COMMAND[0], "args": ["mcp"]}
    assert HOSTS["vscode"].entry(COMMAND)["args"] == ["mcp", "--project", "${workspaceFolder}"]


TOML = '# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.flashgrep-2]\ncommand = "y"\n'


def test_toml_keeps_its_comments_and_other_servers(tmp_path: Path) -> None:
    host, file = HOSTS["codex"], tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(TOML)
    write_change(plan_change(host, file, COMMAND))
    assert file.read_text().startswith(TOML.rstrip())
    assert tomllib.loads(file.read_text())["mcp_servers"][SERVER] == {"command": COMMAND[0], "args": ["mcp"]}
    again = plan_change(host, file, COMMAND)
    assert again.before == again.after
    write_change(plan_change(host, file, ["/new", "mcp"]))
    assert tomllib.loads(file.read_text())["mcp_servers"][SERVER]["command"] == "/new"
    write_change(plan_change(host, file, None))
    assert tomllib.loads(file.read_text()) == tomllib.loads(TOML)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", "{"),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", b"\xff\xfe"),
        ("cursor", "{:1}"),
        ("cursor", "[" * 100_000),
        ("codex", "a = "),
        ("codex", 'mcp_servers = { other = { command = "x" } }'),
        ("codex", 'text = """\n[mcp_servers.flashgrep]\n"""\n'),
    ],
)
def test_a_file_in_another_form_is_left_alone(tmp_path: Path, name: str, text: str | bytes) -> None:
    file = tmp_path / "settings"
    before = text.encode() if isinstance(text, str) else text
    file.write_bytes(before)
    with pytest.raises(InvalidParams, match="is left as it was"):
        write_change(plan_change(HOSTS[name], file, COMMAND))
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("{}")
    real.chmod(0o600)
    link.symlink_to(real)
    write_change(plan_change(HOSTS["cursor"], link, COMMAND))
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert SERVER in real.read_text()


def fgrep(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [FGREP, "install", *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", list(HOSTS))
def test_the_command_edits_the_projects_file_or_the_users(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    (tmp_path / "home").mkdir()
    assert "+" in fgrep(tmp_path, name, "--dry-run").stdout
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    for options, base in [((), tmp_path), (("--global",), tmp_path / "home")]:
        added = fgrep(tmp_path, name, *options)
        assert added.returncode == 0, added.stderr
        file = host.file(tmp_path, tmp_path / "home", everywhere=bool(options))
        assert file.is_relative_to(base)
        text = file.read_text()
        found = tomllib.loads(text) if host.form == "toml" else json.loads(text)
        assert str(Path(sys.executable).with_name("flashgrep")) in json.dumps(found[host.key][SERVER])
        assert "nothing to change" in fgrep(tmp_path, name, *options).stdout
        assert "removed" in fgrep(tmp_path, name, *options, "--uninstall").stdout
        assert SERVER not in file.read_text()


def test_the_registrys_description_fits_the_package() -> None:
    told = json.loads((Path(__file__).parents[2] / "server.json").read_text())
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert told["version"] == told["packages"][0]["version"] == __version__
    assert told["packages"][0]["identifier"] == project["name"]
    assert project["scripts"]["flashgrep"]
    assert len(told["description"]) <= 100
