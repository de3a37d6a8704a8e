"""The whole command line, for the commands that run in their own process, and for the help of all of them."""

import os
import platform
import sys
from typing import Annotated, NoReturn

import typer

from flashgrep import __version__
from flashgrep.cli import config_command, daemon_commands, doctor, index_command, uninstall
from flashgrep.cli.methods import add_methods
from flashgrep.handlers import REGISTRY

HELP = """Ask one local daemon about code: exact, fresh, honest and fast.

Examples: fgrep query 'spin_lock' · fgrep symbol Parser · fgrep slice src/main.py 10 40 · fgrep index ~/linux.
The daemon starts by itself. A first argument that is no command below goes to grep -F, as of old, when called as fgrep.
Exit status: 0 found, 1 nothing found, 2 error."""

app = typer.Typer(name="fgrep", help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
add_methods(app, REGISTRY)
app.command("index")(index_command.index)
app.add_typer(index_command.app, name="projects")
app.add_typer(daemon_commands.app, name="daemon")
app.add_typer(config_command.app, name="config")
app.command("doctor")(doctor.doctor)
app.command("uninstall")(uninstall.uninstall)


@app.callback()
def _options(
    *, version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False
) -> None:
    if version:
        _print_version()
        raise typer.Exit


@app.command("version")
def _version() -> None:
    """Print the version of flashgrep and of the Python it runs on."""
    _print_version()


@app.command("rpc")
def _rpc(path: Annotated[str, typer.Argument(help="The project; default: the current folder's.")] = "") -> NoReturn:
    """Speak JSON-RPC 2.0 over stdin and stdout, one message a line, with the daemon."""
    _elsewhere(path)


@app.command("mcp")
def _mcp(path: Annotated[str, typer.Argument(help="The project; default: the current folder's.")] = "") -> NoReturn:
    """Speak the Model Context Protocol over stdin and stdout, as a host starts it."""
    _elsewhere(path)


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    if not arguments:
        _help()
        return 2
    try:
        status = app(args=arguments, prog_name="fgrep", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        sys.stderr.write(f"{context.get_usage()}\n" if context else "")
        sys.stderr.write(f"fgrep: {error.format_message()}\n")
        return 2
    except typer.Abort:
        return 130
    return status if isinstance(status, int) else 0


def _help() -> None:
    app(args=["--help"], prog_name="fgrep", standalone_mode=False)


def _print_version() -> None:
    system = f"{platform.system()} {platform.machine()}"
    typer.echo(f"flashgrep {__version__} ({system}, {platform.python_implementation()} {platform.python_version()})")


def _elsewhere(path: str) -> NoReturn:
    """Never reached from the entry point, which takes these commands itself: they are here for their help."""
    raise typer.BadParameter(f"run it as: {os.path.basename(sys.argv[0])} rpc {path}")  # noqa: PTH119 - a name, no file
