"""Typer commands: how one is made, and which module holds each command that is not a method, imported on use."""

import difflib
import gc
import re
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperOption
from typer.main import get_command, get_group

from flashgrep.base.program_name import tell
from flashgrep.cli.app import USAGE
from flashgrep.cli.client import find_command
from flashgrep.cli.help_pages import find_page
from flashgrep.cli.launcher import STDIO, read_commands

USAGE_ERROR = 2
INTERRUPTED = 130
FIRST_CHOICE = re.compile(r"\. Choose from:\n\t")
NEXT_CHOICE = re.compile(r",\n\t")
"""How typer lists what a missing argument may be: a line for each."""
MISSING = re.compile(r"(?<=Missing argument )'[\w-]+'")
OF_PYDANTIC = "Value error, "
"""What begins a message of a validator."""
SEE_ALL = "fgrep: see fgrep help all\n"
OF_PARTS = "fgrep: parts of other packages need fgrep daemon restart once, and fgrep doctor checks them"
"""Said of an unknown command where there are such parts."""
SHOWING = ("list", "show", "status")
"""What a group of commands is asked for by its name alone, if it has it."""


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
        tell(describe_unknown(name))
        return USAGE_ERROR
    try:
        if declared[0] == STDIO:
            _refuse(" ".join(arguments))
        command = load_command(name, declared[2])
        gc.freeze()
        gc.enable()
        # Who types "projects" wants to see them; the help is one word away.
        if not rest:
            rest = name_showing(command)
        # In standalone_mode typer would print errors and exit itself; ours begin with
        # "fgrep:".
        status = command.main(rest, prog_name=f"fgrep {name}", standalone_mode=False)
    except typer.TyperException as error:
        tell(describe_error(error, arguments))
        return USAGE_ERROR
    except typer.Abort:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def describe_unknown(name: str) -> str:
    """Return what to say of a first word that is no command."""
    if name.startswith("-"):
        unknown = f"No such option: {name}"
    else:
        unknown = f"No such command {name!r}."
    near = difflib.get_close_matches(name, read_commands(), n=1)
    if near:
        unknown += f" Did you mean {near[0]!r}?"
    lines = [f"{USAGE}fgrep: {unknown}\n"]
    entries = import_module("flashgrep.parts.entries").read_entries()
    packages = [entry.name for entry in entries]
    # Their commands are known from the daemon's table, which it writes when it starts.
    if packages:
        lines.append(f"{OF_PARTS}: {', '.join(packages)}\n")
    return "".join([*lines, SEE_ALL])


def describe_error(error: typer.TyperException, words: Sequence[str]) -> str:
    """Return the usage of the command, what is wrong with the command line, and the way to its help.

    ``words``: those of the command, and what follows.
    """
    message = error.format_message()
    message = FIRST_CHOICE.sub(": ", message)
    message = NEXT_CHOICE.sub(", ", message)
    context = getattr(error, "ctx", None)
    if context is None:
        usage = ""
    else:
        usage = context.get_usage()
    return describe_wrong_use(message.replace(OF_PYDANTIC, ""), words, usage)


def describe_wrong_use(message: str, words: Sequence[str], usage: str = "") -> str:
    """Return what is wrong with a command line, between the usage of its command and the way to its help.

    ``usage``: of a command without a page of help.
    """
    name = words[0]
    # The usage of its help: typer's own names arguments as the code does.
    page = find_page(words)
    if page is not None:
        usage = page.usage
        name = page.name
        # As the usage above writes it.
        message = MISSING.sub(lambda argument: argument[0].upper(), message)
    lines = [f"fgrep: {message}", f"fgrep: see fgrep {name} --help"]
    if usage:
        lines.insert(0, usage)
    return "".join(f"{line}\n" for line in lines)


def name_showing(command: Any) -> list[str]:
    """Return the word by which a group of commands shows what there is; none: it is no group, or nothing to show."""
    names = getattr(command, "commands", {})
    return [name for name in SHOWING if name in names][:1]


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
