"""Hosts of the Model Context Protocol: where each keeps its settings, and the form of a server's entry in them."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

SERVER: Final = "flashgrep"
"""The name of our entry."""
SUBCOMMAND: Final = "mcp"
PROJECT_OPTION: Final = "--project"

TOOL_SECONDS: Final = 300
"""For one call, where a host has a short limit of its own: Codex, Cline and Vibe end a call after 60 s."""

Form = Literal[
    "plain",
    "typed",
    "claude",
    "codex",
    "cline",
    "copilot",
    "opencode",
    "goose",
    "vibe",
]
Format = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class Host:
    """One host.

    A path may begin with a folder that differs between users: ``{home}``, ``{config}``, ``{code}`` (VS Code's user
    folder), ``{claude}``, ``{codex}``, ``{copilot}``, ``{desktop}``, ``{vibe}``; see ``locate_folders``.
    """

    title: str
    user_file: str
    """The user's own settings."""
    project_file: str = ""
    """Settings below a project's root; empty: the host has none."""
    key: str = "mcpServers"
    """The member that holds the servers; a dot in it is part of the name."""
    form: Form = "plain"
    format: Format = "json"
    programs: tuple[str, ...] = ()
    folder: str = ""
    """If it exists, the host is used here; by default the folder of the user's settings."""
    is_list: bool = False
    """Whether the servers are a list, and their names a member of each."""
    arguments: tuple[str, ...] = ()
    """Arguments of a project's entry that the host fills in."""
    approval: str = ""
    """What the host requires before it starts a server from a project's settings."""
    hint: str = ""

    def file(self, folders: Mapping[str, Path], project: Path | None) -> Path:
        """Return the settings file of a project, or the user's if none is given."""
        if project is not None and self.project_file:
            return project / self.project_file
        return Path(self.user_file.format_map(folders))

    def is_here(self, folders: Mapping[str, Path]) -> bool:
        """Return whether the host is installed, or has been used by this user."""
        if self.folder:
            folder = Path(self.folder.format_map(folders))
        else:
            folder = self.file(folders, None).parent
        return folder.is_dir() or any(
            shutil.which(program) for program in self.programs
        )

    def make_entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the entry of a server started by a command."""
        program, *arguments = command
        plain = {"command": program, "args": arguments}
        match self.form:
            case "typed":
                return {"type": "stdio", **plain}
            case "claude":
                # Else its tools are deferred: the model sees names, and types grep.
                return {"type": "stdio", **plain, "alwaysLoad": True}
            case "codex":
                return {**plain, "tool_timeout_sec": TOOL_SECONDS}
            case "cline":
                return {**plain, "timeout": TOOL_SECONDS}
            case "copilot":
                return {"type": "local", **plain, "tools": ["*"]}
            case "opencode":
                return {
                    "type": "local",
                    "command": [program, *arguments],
                    "enabled": True,
                }
            case "vibe":
                bounded = {**plain, "tool_timeout_sec": TOOL_SECONDS}
                return {"name": SERVER, "transport": "stdio", **bounded}
            case "goose":
                named = {
                    "name": SERVER,
                    "description": "Search, read and edit code",
                    "enabled": True,
                    "timeout": TOOL_SECONDS,
                }
                return {"type": "stdio", **named, "cmd": program, "args": arguments}
        return plain

    def read_command(self, entry: Mapping[str, Any]) -> list[str]:
        """Return the command of an entry; empty if it has none that is well formed."""
        program = entry.get("cmd" if self.form == "goose" else "command")
        if self.form == "opencode":
            command = program
        else:
            command = [program, *(entry.get("args") or ())]
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            return [*command]
        return []

    def merge_entry(
        self, present: Any, command: Sequence[str], *, in_project: bool
    ) -> dict[str, Any]:
        """Return our entry, keeping what the user added to the existing one: options, environment, other members."""
        if in_project:
            options = list(self.arguments)
        else:
            options = []
        if not isinstance(present, Mapping):
            return self.make_entry([*command, *options])
        words = self.read_command(present)
        # What follows the subcommand was added by the user, e.g. --project PATH.
        if SUBCOMMAND in words:
            added = words[words.index(SUBCOMMAND) + 1 :]
        else:
            added = []
        # The host fills in its variable in a project's entry only; elsewhere it would
        # be taken for a folder's name.
        length = len(self.arguments)
        for start in range(len(added) - length, -1, -1) if length else ():
            if tuple(added[start : start + length]) == self.arguments:
                del added[start : start + length]
        entry = self.make_entry(
            [*command, *([] if PROJECT_OPTION in added else options), *added]
        )
        ours = {
            name: entry[name] for name in ("cmd", "command", "args") if name in entry
        }
        # The user's members win, except for the command: an upgrade may have moved the
        # program.
        return {**entry, **present, **ours}


_VSCODE_STORAGE = "{code}/globalStorage"

HOSTS: Final[Mapping[str, Host]] = {
    "claude-code": Host(
        "Claude Code",
        "{claude}/.claude.json",
        ".mcp.json",
        form="claude",
        programs=("claude",),
        folder="{home}/.claude",
        approval="Claude Code asks before it uses servers of .mcp.json: start `claude` here and approve flashgrep",
    ),
    "claude-desktop": Host(
        "Claude Desktop",
        "{desktop}/claude_desktop_config.json",
        hint='it has no open folder: name the project in a call, or add "--project", "PATH" to args',
    ),
    "codex": Host(
        "Codex",
        "{codex}/config.toml",
        ".codex/config.toml",
        "mcp_servers",
        "codex",
        format="toml",
        programs=("codex",),
        approval="Codex reads a project's settings once the folder is trusted: start `codex` here and trust it",
    ),
    "cursor": Host(
        "Cursor", "{home}/.cursor/mcp.json", ".cursor/mcp.json", programs=("cursor",)
    ),
    "vscode": Host(
        "VS Code",
        "{code}/mcp.json",
        ".vscode/mcp.json",
        "servers",
        "typed",
        programs=("code",),
        arguments=(PROJECT_OPTION, "${workspaceFolder}"),
        approval="VS Code asks whether to trust the server when it first starts it",
    ),
    "zed": Host(
        "Zed",
        "{config}/zed/settings.json",
        ".zed/settings.json",
        "context_servers",
        programs=("zed", "zeditor"),
    ),
    "opencode": Host(
        "OpenCode",
        "{config}/opencode/opencode.json",
        "opencode.json",
        "mcp",
        "opencode",
        programs=("opencode",),
        hint='version 2 has its servers in "mcp": {"servers": {}}, without "enabled": move the entry there',
    ),
    "gemini": Host(
        "Gemini CLI",
        "{home}/.gemini/settings.json",
        ".gemini/settings.json",
        programs=("gemini",),
        approval="Gemini starts a project's servers once the folder is trusted: start `gemini` here and trust it",
    ),
    "windsurf": Host(
        "Windsurf",
        "{home}/.codeium/windsurf/mcp_config.json",
        programs=("windsurf",),
        hint="refresh its list of servers",
    ),
    "cline": Host(
        "Cline",
        f"{_VSCODE_STORAGE}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        form="cline",
        folder=f"{_VSCODE_STORAGE}/saoudrizwan.claude-dev",
    ),
    "cline-cli": Host(
        "Cline CLI",
        "{home}/.cline/data/settings/cline_mcp_settings.json",
        form="cline",
        programs=("cline",),
        folder="{home}/.cline",
    ),
    "roo": Host(
        "Roo Code",
        f"{_VSCODE_STORAGE}/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ".roo/mcp.json",
        folder=f"{_VSCODE_STORAGE}/rooveterinaryinc.roo-cline",
    ),
    "kilo": Host(
        "Kilo Code",
        "{config}/kilo/kilo.jsonc",
        ".kilo/kilo.jsonc",
        "mcp",
        "opencode",
        programs=("kilo",),
    ),
    "kiro": Host(
        "Kiro",
        "{home}/.kiro/settings/mcp.json",
        ".kiro/settings/mcp.json",
        folder="{home}/.kiro",
    ),
    "amp": Host(
        "Amp",
        "{config}/amp/settings.json",
        ".amp/settings.json",
        "amp.mcpServers",
        programs=("amp",),
    ),
    "goose": Host(
        "goose",
        "{config}/goose/config.yaml",
        key="extensions",
        form="goose",
        format="yaml",
        programs=("goose",),
    ),
    "junie": Host(
        "Junie",
        "{home}/.junie/mcp/mcp.json",
        ".junie/mcp/mcp.json",
        programs=("junie",),
        folder="{home}/.junie",
    ),
    "copilot": Host(
        "Copilot CLI",
        "{copilot}/mcp-config.json",
        ".github/mcp.json",
        form="copilot",
        programs=("copilot",),
    ),
    "warp": Host(
        "Warp",
        "{home}/.warp/.mcp.json",
        ".warp/.mcp.json",
        programs=("warp-terminal",),
        approval="Warp starts a project's servers on request: Settings > Agents > MCP servers",
    ),
    "crush": Host(
        "Crush",
        "{config}/crush/crush.json",
        ".crush.json",
        "mcp",
        "typed",
        programs=("crush",),
    ),
    "qwen": Host(
        "Qwen Code",
        "{home}/.qwen/settings.json",
        ".qwen/settings.json",
        programs=("qwen",),
    ),
    "antigravity": Host(
        "Antigravity",
        "{home}/.gemini/antigravity/mcp_config.json",
        programs=("antigravity",),
    ),
    "augment": Host("Augment", "{home}/.augment/settings.json", programs=("auggie",)),
    "continue": Host(
        "Continue",
        "{home}/.continue/mcpServers/flashgrep.json",
        ".continue/mcpServers/flashgrep.json",
        programs=("cn",),
        folder="{home}/.continue",
    ),
    "droid": Host(
        "Factory Droid",
        "{home}/.factory/mcp.json",
        ".factory/mcp.json",
        form="typed",
        programs=("droid",),
    ),
    "grok": Host(
        "Grok",
        "{home}/.grok/config.toml",
        ".grok/config.toml",
        "mcp_servers",
        format="toml",
        programs=("grok",),
    ),
    "kimi": Host("Kimi CLI", "{home}/.kimi/mcp.json", programs=("kimi",)),
    "openhands": Host(
        "OpenHands", "{home}/.openhands/mcp.json", programs=("openhands",)
    ),
    "qoder": Host("Qoder", "{home}/.qoder/mcp.json", programs=("qodercli", "qoder")),
    "vibe": Host(
        "Mistral Vibe",
        "{vibe}/config.toml",
        ".vibe/config.toml",
        "mcp_servers",
        "vibe",
        is_list=True,
        format="toml",
        programs=("vibe",),
        approval="Vibe reads a project's settings once the folder is trusted: start `vibe` here and trust it",
    ),
    "visual-studio": Host(
        "Visual Studio",
        "{home}/.mcp.json",
        ".vs/mcp.json",
        "servers",
        "typed",
        programs=("devenv",),
        folder="{home}/.vs",
    ),
    "zencoder": Host(
        "Zencoder",
        "{code}/settings.json",
        key="zencoder.mcpServers",
        folder="{home}/.zencoder",
    ),
}
"""As documented, or as written by each host, in November 2026."""


def locate_folders(environ: Mapping[str, str], home: Path) -> dict[str, Path]:
    """Return the folders in which hosts keep settings, according to the environment."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin":
        application = home / "Library" / "Application Support"
    else:
        application = config
    return {
        "home": home,
        "config": config,
        "code": application / "Code" / "User",
        "desktop": application / "Claude",
        "claude": Path(environ.get("CLAUDE_CONFIG_DIR") or home),
        "codex": Path(environ.get("CODEX_HOME") or home / ".codex"),
        "vibe": Path(environ.get("VIBE_HOME") or home / ".vibe"),
        "copilot": Path(environ.get("COPILOT_HOME") or home / ".copilot"),
    }


def find_command(*, shared: bool) -> list[str]:
    """Return how a host starts us.

    ``shared``: others use the settings too, so they name the command alone if the PATH here leads to us.
    Otherwise they have the full path, because hosts often have another PATH than terminals.
    """
    beside = Path(sys.argv[0]).with_name("flashgrep")
    found = shutil.which("flashgrep")
    program = found
    if beside.is_absolute() and beside.exists():
        program = str(beside)
    if program is None:
        return [sys.executable, "-m", "flashgrep", SUBCOMMAND]
    # A full path of this machine would not work for others who share the project's
    # settings.
    if shared and found and Path(found).samefile(program):
        program = "flashgrep"
    return [program, SUBCOMMAND]
