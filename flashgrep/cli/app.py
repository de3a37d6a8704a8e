"""The commands that run in the client's process: help, version and status at once, others through ``commands``.

Nothing heavy is imported here: these three are called all the time, and importing typer takes longer than they do.
"""

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from flashgrep import __version__
from flashgrep.base.program_name import name_program
from flashgrep.cli.client import read_part_commands
from flashgrep.cli.help_pages import HelpPage, find_page, write_page
from flashgrep.cli.launcher import read_commands, take_options

ERROR = 2
COMMANDS_MODULE = "flashgrep.cli.commands"
DAEMON_CLIENT_MODULE = "flashgrep.cli.daemon_client"
USAGE = "Usage: fgrep [OPTIONS] COMMAND [ARGS]...\n"
HELP = """\
Ask one local daemon about code: exact, fresh, honest and fast.

Try: fgrep query 'spin_lock', fgrep symbol Parser, fgrep read src/main.py:10-40, fgrep index

The daemon starts by itself. Exit status: 0 found, 1 nothing found, 2 error.

Called as the classic fgrep, it becomes grep -F: if the first word is no command, or if one word filters a \
pipe or a file. The name flashgrep is never grep: use it in scripts."""
OPTIONS = {
    "--version": "Print the version.",
    "--help": "Show this message and exit.",
    "help all": "List every command.",
    "help TOPIC": "Explain patterns, ranking, settings, wires, or coming-from-rg.",
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
COLUMN = "  fgrep "
"""How a line of a topic begins whose left column is a command."""
GAP = " " * (1 + len("flash") - len("f"))
"""What the longer name takes of the blanks before the right column."""
TOPICS_MODULE = "flashgrep.cli.help_topics"


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    match arguments:
        case ["version"] | ["--version", *_]:
            print_version()
        case [] | ["--help"] | ["help"]:
            write_page(make_overview(GROUPS))
            return 0 if arguments else ERROR
        case ["help" | "--help", "all", *_]:
            commands = (*read_commands(), *read_part_commands())
            write_page(make_overview({"All commands": commands}))
        case ["help" | "--help", word, *more]:
            topics = import_module(TOPICS_MODULE).TOPICS
            if word not in topics:
                return main([word, *more, "--help"])
            sys.stdout.write(name_in_columns(topics[word]))
        case _ if "--help" in take_options(arguments) and (
            page := find_page(arguments)
        ):
            write_page(page)
        # Asked by prompts and status bars again and again, so typer is left out.
        case ["daemon", "status", *flags] if set(flags) <= {"--json"}:
            return int(
                import_module(DAEMON_CLIENT_MODULE).show_status(as_json=bool(flags))
            )
        case _:
            # Until the command is imported: what imports make stays.
            gc.disable()
            return int(import_module(COMMANDS_MODULE).main(arguments))
    return 0


def name_in_columns(text: str) -> str:
    """Return a text of two columns with commands named as this process was called; the right column stays where it is."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        named = name_program(line)
        if line.startswith(COLUMN) and named != line:
            named = named.replace(GAP, " ", 1)
        lines.append(named)
    return "".join(lines)


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


def make_overview(groups: Mapping[str, Sequence[str]]) -> HelpPage:
    """Return the help of the whole command line; ``groups``: the commands to list, below the heading of each group."""
    commands = read_commands() | read_part_commands()
    page = HelpPage("", USAGE.rstrip())
    page.paragraphs = HELP.split("\n\n")
    page.tables.append(("Options", OPTIONS))
    for title, names in groups.items():
        page.tables.append((title, {name: commands[name][1] for name in names}))
    return page
