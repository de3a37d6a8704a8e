"""``fgrep install``: where each host of the Model Context Protocol keeps its settings, and our entry in them."""

import difflib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import typer

from flashgrep.cli import jsonc
from flashgrep.cli.daemon_client import fail
from flashgrep.errors import FlashgrepError, InvalidParams

HostName = Literal["claude-code", "codex", "cursor", "vscode", "zed", "opencode", "gemini"]
SERVER: Final = "flashgrep"
"""The name of our entry."""
BACKUP: Final = ".before-flashgrep"


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

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the entry for a server that a command starts, as the host writes it."""
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

    def parse(self, text: str) -> Any:
        """Return what a settings file of the host holds.

        Raises:
            InvalidParams, tomllib.TOMLDecodeError: it is not in the host's form.

        """
        return tomllib.loads(text) if self.form == "toml" else jsonc.parse(text).value


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


def own_command() -> list[str]:
    """Return how a host starts us: by a full path, because hosts often have another PATH than terminals."""
    beside = Path(sys.argv[0]).with_name("flashgrep")
    program = str(beside) if beside.is_absolute() and beside.exists() else shutil.which("flashgrep")
    return [program, "mcp"] if program else [sys.executable, "-m", "flashgrep", "mcp"]


def install(
    host: Annotated[HostName, typer.Argument(help="The host to edit the settings of.", show_default=False)],
    *,
    everywhere: Annotated[
        bool, typer.Option("--global", help="For all projects, in your own settings; default: this folder's.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and make none.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take flashgrep out again.")] = False,
) -> None:
    """Add flashgrep to the settings of a coding agent or an editor, keeping all else in them."""
    path = HOSTS[host].file(Path.cwd(), Path.home(), everywhere=everywhere)
    try:
        change = plan_change(HOSTS[host], path, None if uninstall else own_command())
        if change.before == change.after:
            typer.echo(f"{path}: nothing to change")
            return
        if dry_run:
            before, after = (text.splitlines(keepends=True) for text in (change.before, change.after))
            typer.echo("".join(difflib.unified_diff(before, after, str(path), "after")).rstrip("\n"))
            return
        backup = write_change(change)
    except FlashgrepError as error:
        fail(error.message)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    typer.echo(f"{path}: flashgrep {'removed' if uninstall else 'added'}")
    if backup is not None:
        typer.echo(f"the file as it was: {backup}")
    if not uninstall:
        sys.stderr.write(f"restart {host} to see it\n")


class Change(NamedTuple):
    """A change of one file, thought out and not carried out."""

    path: Path
    before: str
    after: str


def plan_change(host: Host, path: Path, command: Sequence[str] | None) -> Change:
    """Return the change that makes a host know the server that a command starts, or without one forget ours.

    Raises:
        InvalidParams: the file is not in the host's form, or cannot be changed without touching anything else; it is
            left alone.

    """
    try:
        before = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        before = ""
    except UnicodeDecodeError:
        raise InvalidParams(f"{path}: not UTF-8; it is left as it was", path=str(path)) from None
    entry = None if command is None else host.entry(command)
    try:
        value = host.parse(before)
        servers = value.get(host.key) if isinstance(value, dict) else None
        if (servers.get(SERVER) if isinstance(servers, dict) else None) == entry:
            return Change(path, before, before)
        if host.form == "toml":
            after = _edit_toml(before, f"{host.key}.{SERVER}", entry)
        elif entry is None:
            after = jsonc.remove_member(before, (host.key, SERVER))
        else:
            after = jsonc.set_member(before, (host.key, SERVER), entry)
        edited = host.parse(after)
    except (InvalidParams, tomllib.TOMLDecodeError) as error:
        raise InvalidParams(f"{path}: {error}; it is left as it was", path=str(path)) from None
    # Whatever the file looks like, nothing but our entry may be another one afterwards.
    wanted = {name: item for name, item in (servers or {}).items() if name != SERVER}
    wanted |= {SERVER: entry} if entry else {}
    if {**edited, host.key: edited.get(host.key, {})} != {**value, host.key: wanted}:
        why = "cannot be changed safely, add the server by hand; it is left as it was"
        raise InvalidParams(f"{path}: {why}", path=str(path))
    return Change(path, before, after)


def _edit_toml(before: str, table: str, entry: dict[str, Any] | None) -> str:
    """Return the text without a table and those below it, and with a new one at its end."""
    header, ours = re.compile(r"\s*\["), re.compile(rf"\s*\[\s*{re.escape(table)}\s*[.\]]")
    kept: list[str] = []
    dropping = False
    for line in before.splitlines(keepends=True):
        if header.match(line):
            dropping = ours.match(line) is not None
        if not dropping:
            kept.append(line)
    rest = "".join(kept)
    if entry is None:
        return f"{rest.rstrip()}\n" if rest.endswith("\n\n") else rest
    lines = [f"[{table}]", *(f"{name} = {json.dumps(item)}" for name, item in entry.items())]
    return "\n\n".join(part for part in (rest.rstrip("\n"), "\n".join(lines)) if part) + "\n"


def write_change(change: Change) -> Path | None:
    """Write the file, at once or not at all, and return the copy of what it was, if it was."""
    target = change.path.resolve()  # a link into somebody's collection of settings stays one
    backup = None
    if target.exists():
        backup = target.with_name(target.name + BACKUP)
        shutil.copy2(target, backup)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(change.after)
        if backup is not None:
            Path(fresh).chmod(stat.S_IMODE(target.stat().st_mode))
        Path(fresh).replace(target)
    except OSError:
        Path(fresh).unlink(missing_ok=True)
        raise
    return backup


class Entry(NamedTuple):
    """Settings that start us: whose they are, and the folder of the user or the project they lie in or below."""

    host: Host
    folder: Path
    path: Path


def find_entries(folders: Iterable[Path], home: Path) -> Iterator[Entry]:
    """Yield the settings, of these folders and the user's own, that start this very installation.

    An entry that starts another one is not ours to remove: a project may have it for everybody who works on it.
    """
    command = own_command()
    for host in HOSTS.values():
        files = {host.file(folder, home, everywhere=False): folder for folder in folders}
        files[host.file(home, home, everywhere=True)] = home
        for path, folder in sorted(files.items()):
            servers = _read(host, path).get(host.key)
            entry = servers.get(SERVER) if isinstance(servers, Mapping) else None
            if isinstance(entry, Mapping) and entry.get("command") == host.entry(command)["command"]:
                yield Entry(host, folder, path)


def remove_entry(entry: Entry) -> None:
    """Remove our entry and the copy made when it was added; file and folders too, where nothing else is left in them.

    Raises:
        InvalidParams: the file cannot be changed safely; it is left alone.
        OSError: it cannot be written.

    """
    host, folder, path = entry
    target = path.resolve()
    backup = target.with_name(target.name + BACKUP)
    was_there = backup.exists()
    write_change(plan_change(host, path, None))
    backup.unlink()
    if not was_there and not any(_read(host, path).values()):
        target.unlink()
        with suppress(OSError):  # something else lies in it
            for below in takewhile(lambda parent: parent != folder, path.parents):
                below.rmdir()


def _read(host: Host, path: Path) -> Mapping[str, Any]:
    try:
        value = host.parse(path.read_bytes().decode())
    except (OSError, ValueError, InvalidParams):  # nothing there, or nothing that `fgrep install` would have changed
        return {}
    return value if isinstance(value, Mapping) else {}
