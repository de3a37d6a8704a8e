"""The commands that run in the client's process: help, version and status at once, others through ``commands``.

Nothing heavy is imported here: these three are called all the time, and importing typer takes longer than they do.
"""

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib import import_module

from flashgrep import __version__
from flashgrep.cli.launcher import read_commands

ERROR = 2
COMMANDS_MODULE = "flashgrep.cli.commands"
DAEMON_CLIENT_MODULE = "flashgrep.cli.daemon_client"
USAGE = "Usage: fgrep [OPTIONS] COMMAND [ARGS]...\n"
HELP = """\
Ask one local daemon about code: exact, fresh, honest and fast.

Try: fgrep query 'spin_lock', fgrep symbol Parser, fgrep slice src/main.py 10 40, fgrep index ~/linux.

The daemon starts by itself. Exit status: 0 found, 1 nothing found, 2 error.

Where fgrep is called as the classic fgrep, it becomes grep -F: if the first word is no command, or if \
one word filters a pipe or a file, as in … | fgrep index. The name flashgrep is never grep: use it in scripts."""
OPTIONS = {
    "--version": "Print the version.",
    "--help": "Show this message and exit.",
    "--help all": "List every command.",
    "--help TOPIC": "Explain patterns, ranking, settings, wires, or coming-from-rg.",
    "COMMAND --help": "Show the options of a command.",
}
GROUPS = {
    "Search": ("query", "search-code", "pick", "rg"),
    "Code": ("symbol", "definition", "callers", "references", "outline"),
    "Files": ("files", "glob", "read"),
    "History": ("changes",),
    "Projects": ("index", "stats", "projects"),
    "Set up": ("install", "web", "daemon", "doctor"),
}
"""The commands for people; programs have the others, too."""
TOPICS_MODULE = "flashgrep.cli.help_topics"
MOST_COLUMNS = 100
"""Longer lines are hard to read."""


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    match arguments:
        case ["version"] | ["--version", *_]:
            print_version()
        case [] | ["--help"] | ["help"]:
            sys.stdout.write(format_help(GROUPS))
            return 0 if arguments else ERROR
        case ["help" | "--help", "all", *_]:
            sys.stdout.write(format_help({"All commands": tuple(read_commands())}))
        case ["help" | "--help", word, *_]:
            topics = import_module(TOPICS_MODULE).TOPICS
            if word not in topics:
                return main([word, "--help"])
            sys.stdout.write(topics[word])
        # Asked by prompts and status bars again and again, so typer is left out.
        case ["daemon", "status", *flags] if set(flags) <= {"--json"}:
            return int(
                import_module(DAEMON_CLIENT_MODULE).show_status(as_json=bool(flags))
            )
        case _:
            return int(import_module(COMMANDS_MODULE).main(arguments))
    return 0


def print_version() -> None:
    """Print the version of flashgrep and of the Python it runs on."""
    system, python = (
        os.uname(),
        sys.version.split()[0],
    )  # the module platform takes 3 ms to import
    name = sys.implementation.name.replace("cpython", "CPython")
    version = (
        f"flashgrep {__version__} ({system.sysname} {system.machine}, {name} {python})"
    )
    sys.stdout.write(f"{version}\n")


def format_help(groups: Mapping[str, Sequence[str]]) -> str:
    """Return the help of the whole command line, laid out as typer does it for one command.

    ``groups``: the commands to list, below the heading of each group.
    """
    try:
        width = min(os.get_terminal_size(1).columns or MOST_COLUMNS, MOST_COLUMNS) - 2
    except OSError:  # no terminal
        width = MOST_COLUMNS - 2
    paragraphs = [
        textwrap.fill(part, width, initial_indent="  ", subsequent_indent="  ")
        for part in HELP.split("\n\n")
    ]
    commands = read_commands()
    tables = [("Options", OPTIONS)]
    for title, names in groups.items():
        tables.append((title, {name: commands[name][1] for name in names}))
    column = max(len(name) for _, rows in tables for name in rows) + 4
    parts = [USAGE, *(f"{paragraph}\n" for paragraph in paragraphs)]
    for title, rows in tables:
        lines = [
            textwrap.fill(
                text,
                max(width, column + 10),
                initial_indent=f"  {name}".ljust(column),
                subsequent_indent=" " * column,
            )
            for name, text in rows.items()
        ]
        parts.append("\n".join([f"{title}:", *lines, ""]))
    return "\n".join(parts)
