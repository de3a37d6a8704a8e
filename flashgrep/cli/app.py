"""The whole command line, for the commands that run in their own process, and for the help of all of them."""

import inspect
import platform
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from flashgrep import __version__
from flashgrep.cli import (
    config_command,
    daemon_commands,
    doctor,
    host_command,
    index_command,
    serve_command,
    uninstall,
)
from flashgrep.cli.methods import add_methods
from flashgrep.cli.strict import StrictCommand
from flashgrep.launcher import LOCAL
from flashgrep.registry import Handler

HELP = """Ask one local daemon about code: exact, fresh, honest and fast.

Try: fgrep query 'spin_lock', fgrep symbol Parser, fgrep slice src/main.py 10 40, fgrep index ~/linux.

The daemon starts by itself. Called as fgrep, it is grep -F where the first argument is none of the commands below,
and where one word and flags of grep read a pipe or a file: … | fgrep index filters. flashgrep is never grep: write it
in scripts. Exit status: 0 found, 1 nothing found, 2 error.
"""


def build(methods: Iterable[Handler]) -> typer.Typer:
    """Return the whole command line, with commands for these methods."""
    app = typer.Typer(name="fgrep", help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    app.callback()(_options)
    add_methods(app, methods)
    for name, command in COMMANDS.items():
        app.command(name, cls=StrictCommand, short_help=(inspect.getdoc(command) or "").partition("\n")[0])(command)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    return app


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    if not arguments:
        main(["--help"])
        return 2
    # Methods and all they stand on cost 0.3 s to import: only help of them needs it here.
    mine = arguments[0] in LOCAL - {"--help"}
    app = build(() if mine else import_module("flashgrep.handlers").REGISTRY)
    try:
        status = app(args=arguments, prog_name="fgrep", standalone_mode=False)
    except typer.TyperException as error:
        context, said = getattr(error, "ctx", None), error.format_message()
        helped = said.startswith("Usage:")  # a group without a command: the message is its whole help
        sys.stderr.write(f"{context.get_usage()}\n" if context and not helped else "")
        sys.stderr.write(f"{said}\n" if helped else f"fgrep: {said}\n")
        return 2
    except typer.Abort:
        return 130
    return status if isinstance(status, int) else 0


def _print_version() -> None:
    system = f"{platform.system()} {platform.machine()}"
    typer.echo(f"flashgrep {__version__} ({system}, {platform.python_implementation()} {platform.python_version()})")


def _elsewhere(words: str) -> NoReturn:
    """Never reached from the entry point, which takes these commands itself: they are here for their help."""
    raise typer.BadParameter(f"run it by its entry point: fgrep {words}")


def _print_version_and_end(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if asked:
        _print_version()
        raise typer.Exit


VersionOption = typer.Option("--version", callback=_print_version_and_end, is_eager=True, help="Print the version.")


def _options(*, version: Annotated[bool, VersionOption] = False) -> None:
    """Take the options that stand before a command; the one there is acts by its callback."""


def _version() -> None:
    """Print the version of flashgrep and of the Python it runs on."""
    _print_version()


def _rpc(path: Annotated[str, typer.Argument(help="The project; default: the current folder's.")] = "") -> NoReturn:
    """Speak JSON-RPC 2.0 over stdin and stdout, one message a line."""
    _elsewhere(f"rpc {path}")


def _mcp(
    project: Annotated[str, typer.Option(help="The project; default: the host's, else the current folder's.")] = "",
) -> NoReturn:
    """Speak the Model Context Protocol over stdin and stdout."""
    _elsewhere(f"mcp --project {project}" if project else "mcp")


def _rg() -> NoReturn:
    """Search as ripgrep does, with ripgrep's flags and output: fgrep rg --help lists them."""
    _elsewhere("rg")


COMMANDS: dict[str, Callable[..., None]] = {
    "index": index_command.index,
    "doctor": doctor.doctor,
    "install": host_command.install,
    "serve": serve_command.serve,
    "uninstall": uninstall.uninstall,
    "version": _version,
    "rpc": _rpc,
    "mcp": _mcp,
    "rg": _rg,
}
GROUPS = {"projects": index_command.app, "daemon": daemon_commands.app, "config": config_command.app}
