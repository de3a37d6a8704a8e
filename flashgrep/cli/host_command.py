"""``fgrep install``: make a host of the Model Context Protocol know flashgrep."""

import difflib
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flashgrep.cli.ask import fail
from flashgrep.errors import FlashgrepError
from flashgrep.mcp.hosts import HOSTS, Plan, own_command, plan

HostName = Literal["claude-code", "codex", "cursor", "vscode", "zed", "opencode", "gemini"]


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
    known = HOSTS[host]
    path = known.file(Path.cwd(), Path.home(), everywhere=everywhere)
    try:
        change = plan(known, path, None if uninstall else own_command())
        if not change.changes:
            typer.echo(f"{path}: nothing to change")
        elif dry_run:
            typer.echo(_shown(change))
        else:
            _carry_out(change, host, uninstall=uninstall)
    except FlashgrepError as error:
        fail(error.message)
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def _carry_out(change: Plan, host: str, *, uninstall: bool) -> None:
    backup = change.carry_out()
    typer.echo(f"{change.path}: flashgrep {'removed' if uninstall else 'added'}")
    if backup is not None:
        typer.echo(f"the file as it was: {backup}")
    if not uninstall:
        sys.stderr.write(f"restart {host} to see it\n")


def _shown(change: Plan) -> str:
    lines = difflib.unified_diff(
        change.before.splitlines(keepends=True), change.after.splitlines(keepends=True), str(change.path), "after"
    )
    return "".join(lines).rstrip("\n")
