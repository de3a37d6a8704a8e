"""Registry to commands: a required field is an argument, an optional one an option, the sentence is the help.

Parsing touches nothing: a command's result is an Invocation, which says what to call and how to show it.
"""

import contextlib
import inspect
import io
import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup
from typer.main import get_group

from flashgrep.cli.strict import StrictCommand
from flashgrep.registry import Handler, usage_of

QUERY_HINT = "fgrep: query searches the whole project: narrow it with -g 'src/**', or use fgrep rg PATTERN PATH\n"
"""For those who know grep and rg, which take paths."""
PLAIN = (str, int, float, bool)
USAGE_ERROR = 2


@dataclass(frozen=True, slots=True)
class Invocation:
    """A parsed command: the method, the parameters that were given, and whether to show the raw result."""

    method: str
    params: Mapping[str, Any]
    as_json: bool
    project: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """What parsing ended with instead of an Invocation: a help text or a usage error."""

    stdout: str
    stderr: str
    status: int


def method_app(handlers: Iterable[Handler]) -> TyperGroup:
    """Return a command group with one command for each method."""
    app = typer.Typer(name="fgrep", add_completion=False, rich_markup_mode=None, no_args_is_help=True)
    app.callback()(_group)
    for handler in handlers:
        declare = app.command(handler.command, cls=StrictCommand, help=handler.doc, short_help=handler.summary)
        declare(_command(handler))
    return get_group(app)


def parse_line(group: TyperGroup, argv: list[str], width: int) -> Invocation | Said:
    """Parse a command line; help and mistakes come back as text."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            found = group.main(argv, prog_name="fgrep", standalone_mode=False, terminal_width=width)
    except typer.TyperException as error:
        hint = QUERY_HINT if argv[:1] == ["query"] and "extra argument" in error.format_message() else ""
        return Said("", f"{_usage(error)}fgrep: {error.format_message()}\n{hint}", USAGE_ERROR)
    except (typer.Abort, typer.Exit):
        return Said(out.getvalue(), "", USAGE_ERROR)
    if isinstance(found, Invocation):
        return found
    return Said(out.getvalue(), "", int(found or 0))


def _group() -> None:
    """Search code by the daemon's methods."""


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.get_usage()}\n" if context else ""


def _command(handler: Handler) -> Callable[..., Invocation]:
    def run(**given: Any) -> Invocation:
        as_json, project = given.pop("as_json"), given.pop("project", None)
        params = {name: item for name, item in given.items() if item is not None and item != []}
        for flag, (field, value) in shortcuts.items():
            if params.pop(_shortcut_name(flag)) and params.setdefault(field, value) != value:
                raise typer.BadParameter(f"{flag} and --{field} {params[field]} contradict each other")
        return Invocation(handler.name, params, as_json, project)

    fields = handler.params.model_fields
    shortcuts = {
        flag: (name, value) for name, field in fields.items() for flag, value in usage_of(field).shortcuts.items()
    }
    options = [name for name in fields if name not in handler.arguments and name != "project"]
    needed = _needed(handler.arguments, fields)
    parameters = [_argument(name, fields[name], required=name in needed) for name in handler.arguments]
    parameters += [_option(name, fields[name]) for name in options]
    for flag, (field, value) in sorted(shortcuts.items(), key=lambda item: item[1]):
        parameters += [_own(_shortcut_name(flag), bool, False, flag, help=f"Same as --{field} {value}.")]
    parameters += [_own("project", str | None, None, "--project", "-p", help=PROJECT_HELP)]
    parameters += [_own("as_json", bool, False, "--json", help="Print the raw result as JSON.")]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


PROJECT_HELP = "Project to ask, by name or path; default: the one the current folder lies in."


def _own(name: str, kind: Any, default: Any, *options: str, help: str) -> inspect.Parameter:  # noqa: A002 - typer's word
    annotation = Annotated[kind, typer.Option(*options, help=help)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _needed(arguments: tuple[str, ...], fields: Mapping[str, FieldInfo]) -> set[str]:
    """Return the arguments that must be given: those the method needs, and whatever stands before one of them."""
    required = [at for at, name in enumerate(arguments) if fields[name].is_required()]
    return set(arguments[: required[-1] + 1]) if required else set()


def _shortcut_name(flag: str) -> str:
    return "shortcut_" + flag.strip("-")


def _argument(name: str, field: FieldInfo, *, required: bool) -> inspect.Parameter:
    kind, extra = _typer_type(field)
    extra.pop("metavar", None)  # it would stand in the place of the argument's name
    return _keyword(name, kind, typer.Argument(**extra), required=required)


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, extra = _typer_type(field)
    word = name.replace("_", "-")
    long = f"--{word}/--no-{word}" if kind is bool and field.default is True else f"--{word}"
    names = [long, *filter(None, [usage_of(field).short])]
    return _keyword(name, kind, typer.Option(*names, **extra), required=field.is_required())


def _keyword(name: str, kind: Any, how: Any, *, required: bool) -> inspect.Parameter:
    annotation = Annotated[kind if required else kind | None, how]  # type: ignore[valid-type] # built at run time
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typer_type(field: FieldInfo) -> tuple[Any, dict[str, Any]]:
    kind, parser = _cli_type(field.annotation)
    extra: dict[str, Any] = {"help": _help(field)}
    if parser is not None:
        extra |= {"parser": parser, "metavar": "JSON"}
    elif get_origin(kind) is list:
        extra |= {"metavar": "<str>", "help": f"{extra['help']} May be repeated."}
    return kind, extra


def _help(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={}) if not field.is_required() else None
    shown = not isinstance(default, bool) and default not in (None, "", [], ())
    return f"{field.description or ''}{f' [default: {default}]' if shown else ''}"


def _cli_type(annotation: Any) -> tuple[Any, Callable[[str], Any] | None]:
    """Return what typer understands of a field's type; what has no form on a command line is written as JSON."""
    kind = _without_none(annotation)
    if kind in PLAIN or get_origin(kind) is Literal:
        return kind, None
    if get_origin(kind) in (list, tuple, frozenset, set):
        inner = _without_none(get_args(kind)[0])
        if inner in PLAIN:
            return list[inner], None  # type: ignore[valid-type] # built at run time for typer
        if get_origin(inner) is Literal:
            return list[str], None  # typer has no lists of choices; the method refuses a wrong one and names the right
    union = get_origin(kind) in (Union, types.UnionType)
    return str if union and str in get_args(kind) else _Json, None if union and str in get_args(kind) else _from_json


class _Json:
    """A value written as JSON on the command line."""


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return _without_none(rest[0]) if len(rest) == 1 else Union[tuple(map(_without_none, rest))]  # noqa: UP007 - built at run time
    return annotation


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}") from None
