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
from flashgrep.base.errors import InvalidParams
from flashgrep.parts.hosts import jsonc
from flashgrep.parts.hosts.host_settings import (
    Change,
    parse,
    plan_entry,
    read_servers,
    take_back,
    write_change,
)
from flashgrep.parts.hosts.hosts import HOSTS, SERVER, Host, locate_folders
from tests.conftest import FGREP

pytestmark = pytest.mark.slow

COMMAND = ["/opt/flashgrep", "mcp"]
JSON_HOSTS = [name for name, host in HOSTS.items() if host.format == "json"]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(
    st.text(max_size=5) | st.sampled_from(["a", "b"]), values, max_size=4
)
layouts = st.sampled_from([None, 1, 2, "\t"])


def set_in(value: dict[str, Any], path: list[str], item: Any) -> dict[str, Any]:
    """Return the slow truth: the same change on the parsed value."""
    name, *rest = path
    inner = value.get(name, {})
    return {**value, name: set_in(inner, rest, item) if rest else item}


@given(
    objects,
    layouts,
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2),
    values,
)
@settings(max_examples=60, deadline=None)
def test_a_member_is_set_and_nothing_else(
    value: dict[str, Any], layout: Any, path: list[str], item: Any
) -> None:
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
def test_what_was_added_can_be_taken_out_again(
    value: dict[str, Any], layout: Any
) -> None:
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
            assert (
                any(sign in text for sign in ("//", "/*", ",")) or not text.strip()
            )  # what JSON itself has not


COMMENTED = """// my settings
{
  "theme": "dark", // as ever
  /* servers */
  "KEY": {
    "other": { "command": "x", },
  },
}
"""


def add(
    host: Host,
    file: Path,
    state: Path,
    command: list[str] = COMMAND,
    *,
    in_project: bool = True,
) -> Change:
    change = plan_entry(host, file, command, in_project=in_project)
    write_change(
        change, state, next(name for name, each in HOSTS.items() if each is host)
    )
    return change


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_comments_order_and_layout_stay(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    file, state = tmp_path / "settings.json", tmp_path / "state"
    text = COMMENTED.replace("KEY", host.key)
    file.write_text(text)
    change = add(host, file, state)
    assert change.after.startswith(text[: text.index("},\n  },") + 1])
    assert change.after.endswith(",\n  },\n}\n")
    assert jsonc.parse(change.after).value[host.key][SERVER] == host.merge_entry(
        None, COMMAND, in_project=True
    )
    again = plan_entry(host, file, COMMAND, in_project=True)
    assert again.before == again.after
    take_back(plan_entry(host, file, None), state)
    assert file.read_text() == text
    assert not list(state.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\nmodel = 'x'\n",
        "mcp_servers = []\nmodel = 'x'\n",
        "a = 1\n\n[[mcp_servers]]\nname = 'b' # b\ntransport = 'http'\n\n[tools]\nc = 2\n",
    ],
)
def test_a_server_in_a_list_is_found_by_its_name(tmp_path: Path, text: str) -> None:
    host = HOSTS["vibe"]
    file, state = tmp_path / "config.toml", tmp_path / "state"
    file.write_text(text)
    add(host, file, state)
    after = tomllib.loads(file.read_text())
    *others, ours = after.pop("mcp_servers")
    assert ours == host.make_entry(COMMAND)
    assert [other["name"] for other in others] == ["b"] * text.count("'b'")
    again = plan_entry(host, file, COMMAND, in_project=True)
    assert again.before == again.after
    moved = plan_entry(host, file, ["/usr/bin/flashgrep", "mcp"], in_project=True)
    assert "/usr/bin/flashgrep" in moved.after
    take_back(plan_entry(host, file, None), state)
    assert file.read_text() == text
    assert not list(state.iterdir())


def test_each_host_gets_its_own_form() -> None:
    made = {
        name: host.merge_entry(None, COMMAND, in_project=True)
        for name, host in HOSTS.items()
    }
    assert made["opencode"] == {"type": "local", "command": COMMAND, "enabled": True}
    assert made["cursor"] == {"command": COMMAND[0], "args": ["mcp"]}
    assert made["claude-code"] == {
        "type": "stdio",
        "command": COMMAND[0],
        "args": ["mcp"],
        "alwaysLoad": True,
    }
    assert made["codex"]["tool_timeout_sec"] == 300
    assert made["vibe"]["tool_timeout_sec"] == 300
    assert made["cline-cli"] == {
        "command": COMMAND[0],
        "args": ["mcp"],
        "timeout": 300,
    }
    assert made["kilo"] == made["opencode"]
    assert made["copilot"] == {
        "type": "local",
        "command": COMMAND[0],
        "args": ["mcp"],
        "tools": ["*"],
    }
    assert made["goose"]["cmd"] == COMMAND[0]
    assert made["vscode"]["args"] == ["mcp", "--project", "${workspaceFolder}"]
    assert HOSTS["vscode"].merge_entry(None, COMMAND, in_project=False)["args"] == [
        "mcp"
    ]


TOML = '# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.flashgrep-2]\ncommand = "y"\n'
YAML = "# mine\nGOOSE_MODEL: 'o'   # as ever\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n"


@pytest.mark.parametrize(("name", "text"), [("codex", TOML), ("goose", YAML)])
def test_toml_and_yaml_keep_their_comments_and_other_servers(
    tmp_path: Path, name: str, text: str
) -> None:
    host, file, state = HOSTS[name], tmp_path / ".host" / "config", tmp_path / "state"
    file.parent.mkdir()
    file.write_text(text)
    add(host, file, state)
    assert file.read_text().startswith(text.rstrip())
    assert (
        host.read_command(parse(host.format, file.read_text())[host.key][SERVER])
        == COMMAND
    )
    again = plan_entry(host, file, COMMAND)
    assert again.before == again.after
    add(host, file, state, ["/new", "mcp"])
    assert host.read_command(
        parse(host.format, file.read_text())[host.key][SERVER]
    ) == ["/new", "mcp"]
    take_back(plan_entry(host, file, None), state)
    assert file.read_text() == text


@pytest.mark.parametrize("name", list(HOSTS))
def test_what_a_person_added_stays(tmp_path: Path, name: str) -> None:
    host, file, state = HOSTS[name], tmp_path / "settings", tmp_path / "state"
    add(host, file, state)
    mark, option = (
        ("- mcp", "\n    - --read-only")
        if host.format == "yaml"
        else ('"mcp"', ', "--read-only"')
    )
    head, _, tail = file.read_text().rpartition(mark)
    file.write_text(head + mark + option + tail)
    entry = read_servers(host, parse(host.format, file.read_text()))[SERVER]
    assert "--read-only" in host.read_command(entry)
    file.write_text(_with_member(host, file.read_text(), "note", "mine"))
    add(host, file, state, ["/new", "mcp"])
    entry = read_servers(host, parse(host.format, file.read_text()))[SERVER]
    assert host.read_command(entry) == ["/new", "mcp", *host.arguments, "--read-only"]
    assert entry["note"] == "mine"
    take_back(plan_entry(host, file, None), state)
    assert not file.exists()


def _with_member(host: Host, text: str, name: str, value: str) -> str:
    if host.format == "json":
        return jsonc.set_member(text, (host.key, SERVER, name), value)
    head = next(line for line in text.splitlines() if "flashgrep" in line)
    inner = f'{name} = "{value}"' if host.format == "toml" else f"    {name}: {value}"
    return text.replace(head, f"{head}\n{inner}", 1)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"mcpServers": {}}',
        '{\n\t"a": 1\n}',
        "// nothing\n",
        "\n",
        '{"mcpServers":{"a":{}}}',
    ],
)
def test_a_file_is_given_back_to_the_byte(tmp_path: Path, text: str) -> None:
    file, state = tmp_path / "new" / "settings.json", tmp_path / "state"
    file.parent.mkdir()
    file.write_text(text)
    add(HOSTS["cursor"], file, state)
    add(HOSTS["cursor"], file, state, ["/new", "mcp"])
    take_back(plan_entry(HOSTS["cursor"], file, None), state)
    assert file.read_text() == text


def test_what_was_changed_since_stays(tmp_path: Path) -> None:
    file, state = tmp_path / "settings.json", tmp_path / "state"
    file.write_text('{"mcpServers": {}}')
    add(HOSTS["cursor"], file, state)
    file.write_text(jsonc.set_member(file.read_text(), ("theme",), "dark"))
    take_back(plan_entry(HOSTS["cursor"], file, None), state)
    assert json.loads(file.read_text()) == {"theme": "dark"}


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
        ("codex", "mcp_servers = 3"),
        ("goose", "extensions: [a]"),
        ("goose", "a: [\n"),
        ("goose", "- a\n"),
    ],
)
def test_a_file_in_another_form_is_left_alone(
    tmp_path: Path, name: str, text: str | bytes
) -> None:
    file = tmp_path / "settings"
    before = text.encode() if isinstance(text, str) else text
    file.write_bytes(before)
    with pytest.raises(InvalidParams, match="is left as it was"):
        add(HOSTS[name], file, tmp_path / "state")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("{}")
    real.chmod(0o600)
    link.symlink_to(real)
    add(HOSTS["cursor"], link, tmp_path / "state")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert SERVER in real.read_text()


def fgrep(
    folder: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], **environ}
    return subprocess.run(
        [FGREP, *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("name", ["claude-code", "codex", "goose", "opencode"])
def test_the_command_edits_the_projects_file_or_the_users(
    tmp_path: Path, name: str
) -> None:
    host, home = HOSTS[name], tmp_path / "home"
    home.mkdir()
    assert "+" in fgrep(tmp_path, "install", name, "--dry-run").stdout
    assert SERVER in fgrep(tmp_path, "install", name, "--print").stdout
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    for options, project in [((), tmp_path), (("--global",), None)]:
        added = fgrep(tmp_path, "install", name, *options)
        assert added.returncode == 0, added.stderr
        assert not host.approval or (host.approval in added.stderr) == (
            project is not None
        )
        file = host.file(locate_folders({}, home), project)
        program = host.read_command(
            parse(host.format, file.read_text())[host.key][SERVER]
        )[0]
        own = str(Path(sys.executable).with_name("flashgrep"))
        assert program == (own if project is None or not host.project_file else program)
        assert program == own or project is not None
        assert "nothing to change" in fgrep(tmp_path, "install", name, *options).stdout
        assert (
            "removed"
            in fgrep(tmp_path, "install", name, *options, "--uninstall").stdout
        )
        assert not file.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_settings_meant_for_git_name_the_command_where_path_leads_to_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    own = str(Path(sys.executable).parent)
    fgrep(tmp_path, "install", "cursor", PATH=f"{own}:/usr/bin:/bin")
    assert (
        json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"][SERVER][
            "command"
        ]
        == "flashgrep"
    )
    fgrep(tmp_path, "install", "cursor", PATH="/usr/bin:/bin")
    assert json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"][
        SERVER
    ]["command"].startswith(own)


def test_hosts_of_this_machine_are_found_where_their_settings_are(
    tmp_path: Path,
) -> None:
    moved = {
        "CLAUDE_CONFIG_DIR": "claude",
        "CODEX_HOME": "codex",
        "XDG_CONFIG_HOME": "config",
        "COPILOT_HOME": "copilot",
    }
    for folder in (
        "home/.claude",
        "home/.cursor",
        "codex",
        "config/opencode",
        "copilot",
        "claude",
    ):
        (tmp_path / folder).mkdir(parents=True)
    environ = {name: str(tmp_path / folder) for name, folder in moved.items()} | {
        "PATH": "/usr/bin:/bin"
    }
    listed = fgrep(tmp_path, "install", **environ)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "claude-code",
        "codex",
        "cursor",
        "opencode",
        "copilot",
    ]
    assert not (tmp_path / "codex" / "config.toml").exists()
    assert fgrep(tmp_path, "install", "all", **environ).returncode == 0
    for file in (
        "claude/.claude.json",
        "codex/config.toml",
        "config/opencode/opencode.json",
        "copilot/mcp-config.json",
    ):
        assert SERVER in (tmp_path / file).read_text()
    assert fgrep(tmp_path, "uninstall", "--yes", **environ).returncode == 0
    left = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert not left


def test_rules_are_added_once_and_taken_out_to_the_byte(tmp_path: Path) -> None:
    home, claude = tmp_path / "home", tmp_path / "CLAUDE.md"
    home.mkdir()
    (tmp_path / ".cursor").mkdir()
    claude.write_text("# Mine\nwithout an end")
    for _ in range(2):
        assert fgrep(tmp_path, "install", "--rules").returncode == 0
    files = [claude, tmp_path / "AGENTS.md", tmp_path / ".cursor/rules/flashgrep.mdc"]
    assert [file.read_text().count("`search_code`") for file in files] == [1, 1, 1]
    assert claude.read_text().startswith("# Mine\nwithout an end\n\n")
    assert fgrep(tmp_path, "uninstall", "--yes").returncode == 0
    assert claude.read_text() == "# Mine\nwithout an end"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".cursor",
        "CLAUDE.md",
        "home",
    ]
    assert not list((tmp_path / ".cursor").iterdir())


def test_rules_whose_end_was_lost_are_left_and_reported_and_the_rest_is_removed(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    claude, mine = tmp_path / "CLAUDE.md", tmp_path / "mine"
    claude.touch()
    mine.touch()
    assert fgrep(tmp_path, "install", "--rules").returncode == 0
    assert fgrep(tmp_path, "install", "cursor").returncode == 0
    assert (tmp_path / "AGENTS.md").stat().st_mode == mine.stat().st_mode
    broken = claude.read_text().replace("<!-- /flashgrep -->", "")
    claude.write_text(broken)
    refused = fgrep(tmp_path, "install", "--rules", "--uninstall")
    assert (refused.returncode, "without" in refused.stderr) == (2, True)
    gone = fgrep(tmp_path, "uninstall", "--yes")
    assert gone.returncode == 2
    assert str(claude) in gone.stderr
    assert claude.read_text() == broken
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "CLAUDE.md",
        "home",
        "mine",
    ]


def test_the_registrys_description_fits_the_package() -> None:
    told = json.loads((Path(__file__).parents[2] / "server.json").read_text())
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    project = settings["project"]
    assert told["version"] == told["packages"][0]["version"] == __version__
    assert told["packages"][0]["identifier"] == project["name"]
    assert "flashgrep" in project["scripts"]
    assert len(told["description"]) <= 100
