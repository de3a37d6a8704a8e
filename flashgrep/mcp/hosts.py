"""Hosts of the Model Context Protocol: where each keeps its settings, in which form, and how to add a server."""

import json
import os
import re
import shutil
import stat
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from flashgrep.errors import InvalidParams
from flashgrep.mcp import jsonc

NAME: Final = "flashgrep"
BACKUP: Final = ".before-flashgrep"
Command = Sequence[str]


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its files, below the project and below the user's home, and the key its servers stand under."""

    project_file: str
    user_file: str
    key: str
    form: Literal["plain", "typed", "opencode", "toml"] = "plain"
    arguments: tuple[str, ...] = ()
    """What the host fills in when it starts us for a project."""
    user_file_mac: str = ""

    def entry(self, command: Command) -> dict[str, Any]:
        """Return the server as this host writes it."""
        program, *arguments = [*command, *self.arguments]
        if self.form == "opencode":
            return {"type": "local", "command": [program, *arguments], "enabled": True}
        plain = {"command": program, "args": arguments}
        return {"type": "stdio", **plain} if self.form == "typed" else plain

    def file(self, folder: Path, home: Path, *, everywhere: bool) -> Path:
        """Return the settings file, the project's or the user's own."""
        if not everywhere:
            return folder / self.project_file
        return home / (self.user_file_mac if self.user_file_mac and sys.platform == "darwin" else self.user_file)


HOSTS: Final[Mapping[str, Host]] = {
    "claude-code": Host(".mcp.json", ".claude.json", "mcpServers", "typed"),
    "codex": Host(".codex/config.toml", ".codex/config.toml", "mcp_servers", "toml"),
    "cursor": Host(".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "vscode": Host(
        ".vscode/mcp.json",
        ".config/Code/User/mcp.json",
        "servers",
        "typed",
        ("--project", "${workspaceFolder}"),
        "Library/Application Support/Code/User/mcp.json",
    ),
    "zed": Host(".zed/settings.json", ".config/zed/settings.json", "context_servers"),
    "opencode": Host("opencode.json", ".config/opencode/opencode.json", "mcp", "opencode"),
    "gemini": Host(".gemini/settings.json", ".gemini/settings.json", "mcpServers"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of one file, thought out and not carried out."""

    path: Path
    before: str
    after: str

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after

    def carry_out(self) -> Path | None:
        """Write the file, at once or not at all, and return the copy of what it was, if it was."""
        target = self.path.resolve()  # a link into somebody's collection of settings stays one
        backup = None
        if target.exists():
            backup = target.with_name(target.name + BACKUP)
            shutil.copy2(target, backup)
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(self.after)
            if backup is not None:
                Path(fresh).chmod(stat.S_IMODE(target.stat().st_mode))
            Path(fresh).replace(target)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
            raise
        return backup


def plan(host: Host, path: Path, command: Command | None) -> Plan:
    """Return the change that makes a host know our server, or without a command forget it.

    Raises:
        InvalidParams: the file is not in the host's form; it is left alone.

    """
    before = _read(path)
    change = _in_toml if host.form == "toml" else _in_json
    try:
        return Plan(path, before, change(before, host, None if command is None else host.entry(command)))
    except (InvalidParams, tomllib.TOMLDecodeError) as error:
        raise InvalidParams(f"{path}: {error}; it is left as it was", path=str(path)) from None


def own_command() -> list[str]:
    """Return how a host starts us: by a full path, because hosts often have another PATH than terminals."""
    beside = Path(sys.argv[0]).with_name("flashgrep")
    program = str(beside) if beside.is_absolute() and beside.exists() else shutil.which("flashgrep")
    return [program, "mcp"] if program else [sys.executable, "-m", "flashgrep", "mcp"]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise InvalidParams(f"{path}: not UTF-8; it is left as it was", path=str(path)) from None


def _in_json(before: str, host: Host, entry: dict[str, Any] | None) -> str:
    path = (host.key, NAME)
    if entry is None:
        return jsonc.remove_member(before, path) if before else before
    value = jsonc.parse(before).value
    known = value.get(host.key) if isinstance(value, dict) else None
    if isinstance(known, dict) and known.get(NAME) == entry:
        return before
    after = jsonc.set_member(before, path, entry)
    _check(jsonc.parse(after).value, value, host.key, entry)
    return after


def _in_toml(before: str, host: Host, entry: dict[str, Any] | None) -> str:
    value = tomllib.loads(before)
    if value.get(host.key, {}).get(NAME) == entry:
        return before
    rest = _without_table(before, f"{host.key}.{NAME}")
    after = f"{rest.rstrip()}\n" if rest.endswith("\n\n") else rest
    if entry is not None:
        lines = [f"[{host.key}.{NAME}]", *(f"{key} = {json.dumps(item)}" for key, item in entry.items())]
        after = "\n\n".join(part for part in (rest.rstrip("\n"), "\n".join(lines)) if part) + "\n"
    _check(tomllib.loads(after), value, host.key, entry)
    return after


def _without_table(text: str, name: str) -> str:
    """Return the text without a table and those below it."""
    header = re.compile(r"\s*\[")
    ours = re.compile(rf"\s*\[\s*{re.escape(name)}\s*[.\]]")
    kept: list[str] = []
    dropping = False
    for line in text.splitlines(keepends=True):
        if header.match(line):
            dropping = ours.match(line) is not None
        if not dropping:
            kept.append(line)
    return "".join(kept)


def _check(after: Mapping[str, Any], before: Mapping[str, Any], key: str, entry: dict[str, Any] | None) -> None:
    """Refuse a change that would touch anything else."""
    wanted = {**before, key: {**before.get(key, {})}}
    wanted[key].pop(NAME, None)
    if entry is not None:
        wanted[key][NAME] = entry
    if {**after, key: after.get(key, {})} != wanted:
        raise InvalidParams("cannot be changed safely, add the server by hand")
