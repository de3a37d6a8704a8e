"""``fgrep discover``: the searches in agents' past transcripts that ``flashgrep hook`` could have served."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flashgrep.base.plain_files import read_plain_file
from flashgrep.cli.daemon_client import fail
from flashgrep.parts.hook.rewriting import rewrite
from flashgrep.parts.hosts.hosts import locate_folders

TRANSCRIPTS: Final = {
    "claude-code": "{home}/.claude/projects",
    "codex": "{codex}/sessions",
    "gemini": "{home}/.gemini/tmp",
    "qwen": "{home}/.qwen/tmp",
}
"""Where each host keeps its transcripts, as JSON, a value a line or one a file."""
MOST_FILES: Final = 300
MOST_BYTES: Final = 64 << 20
"""Of one transcript; a longer one is skipped and said to be."""
MOST_SHOWN: Final = 15
SEARCHES: Final = frozenset({"grep", "rg", "find", "ag", "ack", "fd", "git"})
_MEMBERS: Final = ("command", "cmd")
"""Names of members that hold a line of shell."""
_EVENT: Final = "event_msg"
"""The type of Codex's records of what came of a call, which repeat it as it was run."""
_DEEPEST: Final = 12
_SHELL_WORDS: Final = 3
"""Of a call that runs a line: the shell, ``-c`` and the line."""


def discover(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help=", ".join(TRANSCRIPTS))
    ] = "claude-code",
    *,
    show_all: Annotated[
        bool, typer.Option("--all", help="Every search, not only the most frequent.")
    ] = False,
) -> None:
    """Read a host's past transcripts and list the searches of its shell that flashgrep could have served.

    The transcripts are read on this machine, only by this command, and nothing of them is kept.
    """
    if host not in TRANSCRIPTS:
        fail(
            f"unknown host {host!r}; transcripts are known of {', '.join(TRANSCRIPTS)}"
        )
    folders = locate_folders(os.environ, Path.home())
    folder = Path(TRANSCRIPTS[host].format_map(folders))
    files = sorted(folder.rglob("*.json*"), key=_find_age, reverse=True)[:MOST_FILES]
    if not files:
        hosts = ", ".join(other for other in TRANSCRIPTS if other != host)
        fail(f"no transcripts in {folder}; name another host: {hosts}")
    served: Counter[str] = Counter()
    others: Counter[str] = Counter()
    commands = 0
    for file in files:
        for command in list_commands(file):
            commands += 1
            judge(command, served, others)
    typer.echo(
        f"{len(files)} transcripts, {commands} shell commands: "
        f"{served.total()} searches could be served, {others.total()} not"
    )
    most = None if show_all else MOST_SHOWN
    for line, count in served.most_common(most):
        typer.echo(f"{count:5}  {line}")
    for reason, count in others.most_common(most):
        typer.echo(f"{count:5}  not: {reason}")


def judge(command: str, served: Counter[str], others: Counter[str]) -> None:
    """Count the searches of a command: those that flashgrep runs by their line, the others by the reason."""
    rewriting = rewrite(command, "flashgrep")
    for verdict in rewriting.verdicts:
        if verdict.is_served:
            served[" ".join(command.split())[:120]] += 1
        elif verdict.name in SEARCHES:
            others[f"{verdict.name}: {verdict.reason}"] += 1


def list_commands(file: Path) -> Iterator[str]:
    """Yield the shell commands of a transcript; a line that is not JSON is skipped."""
    try:
        text = read_plain_file(file, MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        typer.echo(f"skipped: {error}", err=True)
        return
    # A line ends at a line feed only: texts in JSON may hold other separators.
    if file.suffix == ".jsonl":
        pieces = text.split("\n")
    else:
        pieces = [text]
    for piece in pieces:
        if not _names_command(piece):
            continue
        try:
            value = json.loads(piece)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("type") == _EVENT:
            continue
        yield from _find_commands(value, _DEEPEST)


def _names_command(text: str) -> bool:
    return any(name in text for name in _MEMBERS)


def _find_commands(value: Any, depth: int) -> Iterator[str]:
    """Yield the values of members named ``command`` or ``cmd``: a line, or words of which the last is one for a shell."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _find_commands(item, depth - 1)
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if name in _MEMBERS and isinstance(member, str):
            yield member
        elif name == "command" and _is_shell_call(member):
            yield member[-1]
        elif name == "arguments" and isinstance(member, str):
            if not _names_command(member):
                continue
            try:
                yield from _find_commands(json.loads(member), depth - 1)
            except ValueError:
                continue
        else:
            yield from _find_commands(member, depth - 1)


def _is_shell_call(member: Any) -> bool:
    """Return whether a list of words runs a line by a shell: ``bash -lc LINE``."""
    if not isinstance(member, list) or not all(
        isinstance(word, str) for word in member
    ):
        return False
    return len(member) == _SHELL_WORDS and member[1] in {"-c", "-lc"}


def _find_age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # it is gone
        return 0.0
