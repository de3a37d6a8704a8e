"""The plugin folder: every manifest parses, and what it names is there."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flashgrep import __version__
from flashgrep.parts.hosts.hooks import MARK
from scripts.tools.plugins import PLUGIN, make_skill, write_semantic

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / PLUGIN
MANIFESTS = [
    ".claude-plugin/plugin.json",
    ".codex-plugin/plugin.json",
    ".cursor-plugin/plugin.json",
    "plugin.json",
    "gemini/gemini-extension.json",
]


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"))


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_names_this_version_and_files_that_are_there(name: str) -> None:
    manifest = read(name)
    version = write_semantic(__version__)
    assert (manifest["name"], manifest["version"]) == ("flashgrep", version)
    for member in ("hooks", "mcpServers", "lspServers", "skills"):
        path = manifest.get(member)
        if isinstance(path, str):
            assert (FOLDER / path).exists(), path


def test_every_host_starts_the_same_server() -> None:
    claude = read(".mcp.json")["mcpServers"]["flashgrep"]
    assert claude["alwaysLoad"] is True
    for name in (".mcp.json", "mcp.json", "codex.mcp.json", MANIFESTS[-1]):
        entry = read(name)["mcpServers"]["flashgrep"]
        assert (entry["command"], entry["args"]) == ("flashgrep", ["mcp"])


def test_the_language_server_is_told_which_files_are_whose() -> None:
    server = read(".lsp.json")["flashgrep"]
    extensions = server["extensionToLanguage"]
    assert server["args"] == ["lsp"]
    assert extensions[".py"] == "python"
    assert extensions[".tsx"] == "typescriptreact"
    assert len(extensions) > 80


@pytest.mark.parametrize("host", ["claude-code", "codex", "cursor"])
def test_each_hook_is_a_line_that_a_shell_can_read(host: str) -> None:
    hooks = json.dumps(read(f"hooks/{host}.json"))
    assert f"{MARK}{host} " in hooks
    assert not (FOLDER / "hooks" / "hooks.json").exists()
    line = hooks.split('"command": "')[1].split('", "')[0]
    command = json.loads(f'"{line}"')
    subprocess.run(["/bin/sh", "-n", "-c", command], check=True, timeout=20)


def test_the_skill_has_the_head_of_the_specification() -> None:
    skill = (ROOT / "skills" / "flashgrep" / "SKILL.md").read_text("utf-8")
    head = skill.split("---\n")[1].splitlines()
    assert head[0] == "name: flashgrep"
    assert head[1].startswith("description: ")
    assert {line.partition(":")[0] for line in head if line[0] != " "} == {
        "name",
        "description",
        "license",
        "metadata",
    }
    assert len(head[1]) < 1024
    with pytest.raises(ValueError, match="no head"):
        make_skill("# flashgrep\n")
