"""The files of ``plugins/flashgrep`` and ``skills/flashgrep``, made from the package's own declarations.

One folder is a plugin of several hosts, each with its manifest; a host reads none of another's. There is no
``hooks/hooks.json``, which more than one of them would load: each manifest names the hooks of its host. Gemini's
extension has a folder of its own for that reason.
"""

import json
import re
from pathlib import Path
from typing import Any

from flashgrep import __version__
from flashgrep.base.installation import REPOSITORY
from flashgrep.base.languages import LANGUAGES
from flashgrep.mcp.adapter import SUMMARY
from flashgrep.parts.hosts.hooks import HOOK_PLACES, make_hook
from flashgrep.parts.hosts.hosts import HOSTS, SERVER
from flashgrep.parts.navigation.servers.known import PROTOCOL_NAMES

AUTHOR = {"name": "the flashgrep maintainers"}
KEYWORDS = ["search", "grep", "code", "symbols", "references", "mcp", "lsp"]
PLUGIN = Path("plugins") / SERVER
COMMAND = [SERVER, "mcp"]
PRERELEASE = re.compile(r"^(\d+\.\d+\.\d+)(a|b|rc)(\d+)$")
FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


def make_plugin_files(root: Path) -> dict[Path, str]:
    """Return the generated files of plugins and skills, each with its text."""
    skill = make_skill((root / "skills" / "SKILL.md").read_text("utf-8"))
    base = root / PLUGIN
    files: dict[Path, str] = {
        root / "skills" / SERVER / "SKILL.md": skill,
        base / "skills" / SERVER / "SKILL.md": skill,
        base / "gemini" / "skills" / SERVER / "SKILL.md": skill,
    }
    for name, value in _make_manifests().items():
        files[base / name] = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return files


def write_semantic(version: str) -> str:
    """Return a version of Python's as semantic versioning has it: 1.0.0rc1 is 1.0.0-rc.1."""
    return PRERELEASE.sub(r"\1-\2.\3", version)


def make_skill(text: str) -> str:
    """Return the skill with the head that the Agent Skills specification has: other members are below ``metadata``."""
    head = FRONT.match(text)
    if head is None:
        raise ValueError("skills/SKILL.md has no head")
    members = dict(line.split(": ", 1) for line in head[1].splitlines())
    lines = [
        f"name: {members['name']}",
        f"description: {members['description']}",
        "license: Apache-2.0",
        "metadata:",
        f'  version: "{__version__}"',
        f"  author: {members['author']}",
    ]
    return "---\n" + "\n".join(lines) + "\n---\n" + text[head.end() :]


def _make_manifests() -> dict[str, Any]:
    about = {
        "name": SERVER,
        "version": write_semantic(__version__),
        "description": SUMMARY,
        "author": AUTHOR,
        "homepage": REPOSITORY,
        "repository": REPOSITORY,
        "license": "Apache-2.0",
        "keywords": KEYWORDS,
    }
    plain = {"mcpServers": {SERVER: HOSTS["cursor"].make_entry(COMMAND)}}
    manifests: dict[str, Any] = {
        ".claude-plugin/plugin.json": {
            **about,
            "hooks": "./hooks/claude-code.json",
            "mcpServers": "./.mcp.json",
            "lspServers": "./.lsp.json",
        },
        ".claude-plugin/marketplace.json": {
            "name": SERVER,
            "owner": AUTHOR,
            "metadata": {
                "description": SUMMARY,
                "version": write_semantic(__version__),
            },
            "plugins": [{"name": SERVER, "source": "./", "description": SUMMARY}],
        },
        ".mcp.json": {"mcpServers": {SERVER: HOSTS["claude-code"].make_entry(COMMAND)}},
        ".lsp.json": {
            SERVER: {
                "command": SERVER,
                "args": ["lsp"],
                "extensionToLanguage": _find_extensions(),
            }
        },
        ".codex-plugin/plugin.json": {
            **about,
            "skills": "./skills/",
            "mcpServers": "./codex.mcp.json",
            "hooks": "./hooks/codex.json",
            "interface": {
                "displayName": SERVER,
                "shortDescription": "Search, symbols and edits of code",
                "longDescription": SUMMARY,
                "developerName": "flashgrep",
                "category": "Productivity",
            },
        },
        "codex.mcp.json": {"mcpServers": {SERVER: HOSTS["codex"].make_entry(COMMAND)}},
        ".cursor-plugin/plugin.json": {
            **about,
            "displayName": SERVER,
            "skills": "./skills/",
            "mcpServers": "./mcp.json",
            "hooks": "./hooks/cursor.json",
        },
        "plugin.json": {**about, "skills": "./skills/", "mcpServers": "./mcp.json"},
        "mcp.json": plain,
        "gemini/gemini-extension.json": {
            "name": SERVER,
            "version": write_semantic(__version__),
            "description": SUMMARY,
            **plain,
        },
        "gemini/hooks/hooks.json": {"hooks": {"BeforeTool": [make_hook("gemini")]}},
    }
    for host in ("claude-code", "codex", "cursor"):
        place = HOOK_PLACES[host]
        hooks: dict[str, Any] = {"hooks": {place.event: [make_hook(host)]}}
        if place.is_versioned:
            hooks = {"version": 1, **hooks}
        manifests[f"hooks/{host}.json"] = hooks
    return manifests


def _find_extensions() -> dict[str, str]:
    """Return the language of each ending of files whose symbols the language server knows."""
    endings: dict[str, str] = {}
    for language in LANGUAGES.values():
        if not language.symbols or language.nature != "code":
            continue
        for entry in language.files.split():
            if not any(char in entry for char in "=*."):
                name = PROTOCOL_NAMES.get(language.name, language.name)
                endings[f".{entry}"] = name
    return endings
