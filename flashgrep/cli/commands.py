"""The whole command line: all commands by name and sentence, each imported when it is called."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from flashgrep.cli.app import print_version
from flashgrep.cli.strict import StrictCommand

HELP = """Ask one local daemon about code: exact, fresh, honest and fast.

Try: fgrep query 'spin_lock', fgrep symbol Parser, fgrep slice src/main.py 10 40, fgrep index ~/linux.

The daemon starts by itself. Called as fgrep, it is grep -F where the first argument is none of the commands below,
and where one word and flags of grep read a pipe or a file: … | fgrep index filters. flashgrep is never grep: write it
in scripts. Exit status: 0 found, 1 nothing found, 2 error.
"""
LOCAL_COMMANDS = {
    "index": "index_command:index",
    "doctor": "doctor:doctor",
    "install": "host_command:install",
    "serve": "serve_command:serve",
    "uninstall": "uninstall:uninstall",
    "version": "app:print_version",
    "rpc": "commands:rpc",
    "mcp": "commands:mcp",
    "rg": "commands:rg",
    "projects": "index_command:app",
    "daemon": "daemon_commands:app",
    "config": "config_command:app",
}
"""Where the function or the group is of every command that is no method."""
SUMMARIES = "summaries.tsv"
"""Every command with its sentence, generated: the methods and all they stand on cost 0.3 s to import."""


class LazyGroup(TyperGroup):
    """The commands are stand-ins, for the help and for what was meant; the one that is called is loaded."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, the command and the arguments that are left."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and listed else listed, rest


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    app = typer.Typer(
        name="fgrep", cls=LazyGroup, help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )
    app.callback()(_options)
    for name, summary in summaries():
        app.command(name, short_help=summary)(_stand_in)
    try:
        status = app(args=arguments or ["--help"], prog_name="fgrep", standalone_mode=False)
    except typer.TyperException as error:
        context, said = getattr(error, "ctx", None), error.format_message()
        helped = said.startswith("Usage:")  # a group without a command: the message is its whole help
        sys.stderr.write(f"{context.get_usage()}\n" if context and not helped else "")
        sys.stderr.write(f"{said}\n" if helped else f"fgrep: {said}\n")
        return 2
    except typer.Abort:
        return 130
    if not arguments:
        return 2
    return status if isinstance(status, int) else 0


def load_command(name: str) -> Any:
    """Return the command, a typer command or group, of this name; what it stands on is imported."""
    if name not in LOCAL_COMMANDS:
        methods = import_module("flashgrep.cli.methods").method_app(import_module("flashgrep.handlers").REGISTRY)
        return methods.commands[name]
    module, _, attribute = LOCAL_COMMANDS[name].partition(":")
    found = getattr(import_module(f"flashgrep.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return get_group(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=StrictCommand)(found)
    return get_command(single)


def summaries() -> Iterator[tuple[str, str]]:
    """Yield every command and the first sentence of its help, in the order of the help."""
    for line in Path(__file__).with_name(SUMMARIES).read_text("utf-8").splitlines():
        name, _, summary = line.partition("\t")
        yield name, summary


def rpc(path: Annotated[str, typer.Argument(help="The project; default: the current folder's.")] = "") -> NoReturn:
    """Speak JSON-RPC 2.0 over stdin and stdout, one message a line."""
    _refuse(f"rpc {path}")


def mcp(
    project: Annotated[str, typer.Option(help="The project; default: the host's, else the current folder's.")] = "",
) -> NoReturn:
    """Speak the Model Context Protocol over stdin and stdout."""
    _refuse(f"mcp --project {project}" if project else "mcp")


def rg() -> NoReturn:
    """Search as ripgrep does, with ripgrep's flags and output: fgrep rg --help lists them."""
    _refuse("rg")


def _refuse(words: str) -> NoReturn:
    """Refuse what the entry point takes itself: these commands are here for their help."""
    raise typer.BadParameter(f"run it by its entry point: fgrep {words}")


def _stand_in() -> None:
    """Stand for a command in the list."""


def _print_version_and_end(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if asked:
        print_version()
        raise typer.Exit


VersionOption = typer.Option("--version", callback=_print_version_and_end, is_eager=True, help="Print the version.")


def _options(*, version: Annotated[bool, VersionOption] = False) -> None:
    """Take the options that stand before a command; the one there is acts by its callback."""
