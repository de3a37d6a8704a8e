"""Typer commands: how one is made, and which module holds each command that is not a method, imported on use."""

import difflib
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperOption
from typer.main import get_command, get_group

from flashgrep.cli.app import USAGE
from flashgrep.cli.client import find_command
from flashgrep.cli.launcher import STDIO, read_commands

USAGE_ERROR = 2
INTERRUPTED = 130


class StrictCommand(TyperCommand):
    """A command whose options with one value can be given once: ``-p a -p b`` is not a question about b alone.

    Command line parsers silently let the last one win.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            typer.BadParameter: an option with one value is given more than once.

        """
        if args:
            _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(parameters).items():
                if (
                    times > 1
                    and isinstance(option, TyperOption)
                    and not (option.multiple or option.is_flag)
                ):
                    raise typer.BadParameter(
                        f"given {times} times, takes one value", ctx=ctx, param=option
                    )
        return super().parse_args(ctx, args)


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    name, *rest = arguments
    declared = find_command(name)
    if declared is None:
        near = difflib.get_close_matches(name, read_commands(), n=1)
        if name.startswith("-"):
            unknown = f"No such option: {name}"
        else:
            unknown = f"No such command {name!r}."
        sys.stderr.write(
            f"{USAGE}fgrep: {unknown}{f' Did you mean {near[0]!r}?' if near else ''}\n"
        )
        return USAGE_ERROR
    try:
        if declared[0] == STDIO:
            _refuse(" ".join(arguments))
        # In standalone_mode typer would print errors and exit itself; ours begin with
        # "fgrep:".
        status = load_command(name, declared[2]).main(
            rest, prog_name=f"fgrep {name}", standalone_mode=False
        )
    except typer.TyperException as error:
        sys.stderr.write(describe_error(error))
        return USAGE_ERROR
    except typer.Abort:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def describe_error(error: typer.TyperException) -> str:
    """Return the usage of the command, followed by what is wrong with the command line."""
    context = getattr(error, "ctx", None)
    message = error.format_message()
    if message.startswith(
        "Usage:"
    ):  # a group without a command: the message is its whole help
        return f"{message}\n"
    if context:
        return f"{context.get_usage()}\nfgrep: {message}\n"
    return f"fgrep: {message}\n"


def load_command(name: str, target: str) -> Any:
    """Return the typer command or group of this name, importing what it needs; ``target``: as in the table."""
    if not target:
        registry = import_module("flashgrep.parts.built_in").REGISTRY
        if registry.find_command(name) is None:
            registry = import_module("flashgrep.parts.installed").load_registry()
        return import_module("flashgrep.cli.method_commands").make_method_command(
            registry, registry.find_command(name)
        )
    return load_target(name, target)


def load_target(name: str, target: str) -> Any:
    """Return the typer command or group at a ``module:name``."""
    module, _, attribute = target.partition(":")
    function = getattr(import_module(module), attribute)
    if isinstance(function, typer.Typer):
        return get_group(function)
    return make_command(name, function)


def make_command(
    name: str, run: Callable[..., Any], help_text: str | None = None
) -> Any:
    """Return a function as a typer command; its docstring is the help, unless another is given."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=StrictCommand, help=help_text)(run)
    return get_command(app)


# The entry point handles these two itself; they are here for their help text.


def rpc(
    path: Annotated[
        str, typer.Argument(help="The project; default: the current folder's.")
    ] = "",
) -> NoReturn:
    """Speak JSON-RPC 2.0 over stdin and stdout, one message a line."""
    _refuse(f"rpc {path}")


def rg() -> NoReturn:
    """Search as ripgrep does, with ripgrep's flags and output: fgrep rg --help lists them."""
    _refuse("rg")


def _refuse(words: str) -> NoReturn:
    raise typer.BadParameter(f"run it by its entry point: fgrep {words}")
