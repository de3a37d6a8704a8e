"""Registry to commands: a required field is an argument, an optional one an option, the sentence is the help.

Parsing touches nothing: a command's result is an Invocation, which says what to call and how to show it. An answer is
shown by the lines of the method's renderer, with its notes on stderr.
"""

import contextlib
import inspect
import io
import json
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flashgrep.base.languages import UNKNOWN, language_of
from flashgrep.base.places import find_places
from flashgrep.base.registry import Handler, Registry, Renderer, usage_of
from flashgrep.cli.commands import USAGE_ERROR, describe_error, make_command
from flashgrep.cli.shell_pages import has_pages
from flashgrep.methods.text import (
    Code,
    Note,
    Style,
    escape_controls,
    find_notes,
    format_json,
)

NOTHING_FOUND = 1
PROJECT_HELP = (
    "Project to ask, by name or path; default: the one around the current folder."
)
ALL_PROJECTS = "all_projects"
ALL_HELP = "Print everything on a terminal; into a pipe everything is printed anyway."
PROJECT_FIELDS = frozenset({"project", "projects"})
PLAIN = (str, int, float, bool)
PATH_FIELDS = frozenset({"file_path", "path", "src", "dst"})
"""Parameters that name a file; on the command line they are relative to the current folder."""
FROM_ROOT = re.compile(
    r"relative to the (project's root; an absolute path inside it is accepted|project's root|project)\b"
)
PLACE_ARGUMENTS = ("path", "line", "column")
LINES_ARGUMENTS = ("path", "start_line", "end_line")
TAKING_LINES = frozenset({"blame"})
"""Methods about a file, or about those of its lines that options name."""
TAKING_PLACES = frozenset({"enclosing"})
"""Methods about places of a file, which programs give as JSON."""
PLACE_HINT = "fgrep: a place is FILE:LINE:COLUMN, or FILE LINE COLUMN, or a name that one definition has\n"
NAME_OF_PLACE = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#)[^\W\d][\w$]*)*[?!]?")
LINES_HINT = "fgrep: lines are FILE:FIRST-LAST, FILE FIRST-LAST or FILE FIRST LAST\n"


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int
    following: str | None = None
    """The cursor of what is still to be printed."""
    code: tuple[str, ...] = ()
    """In place of ``stdout`` on a terminal: lines, and pieces of code (``Code``) that the client makes readable."""


def render(
    result: Any,
    style: Style,
    renderer: Renderer | None = None,
    *,
    as_json: bool = False,
) -> Output:
    """Render a result with its method's renderer; the status is 1 if nothing was found, or only something similar."""
    status = NOTHING_FOUND if isinstance(result, dict) and _has_nothing(result) else 0
    if as_json:
        return Output(format_json(result).encode(), b"", status)
    lines: list[str] = []
    notes = ""
    for line in (renderer or _render_any)(result, style):
        if isinstance(line, Note):
            notes += f"fgrep: {line.removeprefix('[').removesuffix(']')}\n"
        else:
            lines.append(line)
    code: tuple[str, ...] = ()
    if style.headings and any(isinstance(line, Code) for line in lines):
        code = tuple(lines)
        lines = []
    text = "\n".join(lines)
    # An empty output has no line to end.
    if text and not text.endswith("\n"):
        text += "\n"
    if isinstance(result, dict):
        notes += "".join(f"fgrep: {note}\n" for note in find_notes(result, style))
    return Output(
        text.encode("utf-8", "surrogateescape"),
        escape_controls(notes).encode(errors="replace"),
        status,
        code=code,
    )


def _has_nothing(result: Mapping[str, Any]) -> bool:
    """Return whether nothing is what was asked for, so that ``if fgrep query …`` tells whether the text is there."""
    return (
        result.get("results") == []
        or result.get("fallback") == "words"
        or bool(result.get("fuzzy"))
    )


def _render_place(item: Mapping[str, Any], style: Style) -> str:
    """Render an item that is in a file: its path, and its line with its name or text."""
    if "start_line" not in item:
        return style.path(item)
    described = str(item.get("name") or item.get("snippet") or "")
    if item.get("kind"):
        described = f"{item['kind']}: {described}"
    return (
        f"{style.path(item)}:{style.line(item['start_line'])}:{style.text(described)}"
    )


def _render_any(result: Any, style: Style) -> Iterator[str]:
    """Render an answer of a method without a renderer: its files and lines, its text, or its members."""
    if isinstance(result, dict) and isinstance(result.get("results"), list):
        for at, item in enumerate(result["results"]):
            if isinstance(item, dict) and "file_path" in item:
                yield _render_place(item, style)
                continue
            if at and isinstance(item, dict):
                yield ""
            yield from _render_members(item, style)
        return
    texts = (
        (result.get(name) for name in ("content", "text"))
        if isinstance(result, dict)
        else ()
    )
    text = next((text for text in texts if isinstance(text, str)), None)
    if text is None:
        yield from _render_members(result, style)
    else:
        yield style.text(text)


def _render_members(value: Any, style: Style, indent: str = "") -> Iterator[str]:
    """Yield a value as an indented outline, one member a line; empty members are left out."""
    if not isinstance(value, dict):
        yield from (indent + style.text(line) for line in str(value).splitlines())
        return
    for name, member in value.items():
        label = f"{indent}{name.replace('_', ' ')}:"
        if isinstance(member, bool):
            yield f"{label} {'yes' if member else 'no'}"
        elif member in (None, "", [], {}):
            continue
        elif isinstance(member, list) and not any(
            isinstance(item, dict) for item in member
        ):
            yield f"{label} {style.text(', '.join(map(str, member)))}"
        elif isinstance(member, list):
            yield label
            for item in member:
                # The first member follows a dash, the others below it.
                lines = [*_render_members(item, style, indent + "    ")]
                yield f"{indent}  - {lines[0].lstrip()}" if lines else f"{indent}  -"
                yield from lines[1:]
        elif isinstance(member, dict) or "\n" in str(member):
            yield label
            yield from _render_members(member, style, indent + "  ")
        else:
            yield f"{label} {style.text(str(member))}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A parsed command: the method, the parameters that were given, and whether to show the raw result."""

    method: str
    params: Mapping[str, Any]
    as_json: bool
    projects: Sequence[str] | Literal["*"]
    """Projects to ask: none means that of the current folder, ``*`` all known ones."""
    everything: bool = False
    """Whether everything is printed on a terminal, too."""
    name: str = ""
    """A name in the place of a position: that of its only definition is meant."""
    is_whole: bool = False
    """Whether the answer is printed to its end, page after page."""


def parse_line(
    registry: Registry, argv: Sequence[str], width: int
) -> Invocation | Output:
    """Parse a command line; help and errors are returned as text."""
    if not argv or (declared := registry.find_command(argv[0])) is None:
        message = f"fgrep: No such command {argv[0] if argv else ''!r}.\n"
        return Output(b"", message.encode(errors="replace"), USAGE_ERROR)
    command = make_method_command(registry, declared)
    arguments = rename_options(declared, argv[1:])
    name = ""
    if declared.arguments == PLACE_ARGUMENTS and has_name(arguments):
        name = arguments[0]
        arguments = [name, "1", "1", *arguments[1:]]
    elif declared.arguments in {PLACE_ARGUMENTS, LINES_ARGUMENTS}:
        arguments = split_place(declared, arguments)
    elif declared.name in TAKING_LINES:
        arguments = split_lines(arguments)
    elif declared.name in TAKING_PLACES:
        arguments = format_place(arguments)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            result = command.main(
                arguments,
                f"fgrep {argv[0]}",
                standalone_mode=False,
                terminal_width=width,
            )
    except typer.TyperException as error:
        hint = ""
        if declared.arguments == PLACE_ARGUMENTS:
            hint = PLACE_HINT
        elif declared.arguments == LINES_ARGUMENTS:
            hint = LINES_HINT
        message = describe_error(error, argv) + hint
        return Output(b"", message.encode(errors="replace"), USAGE_ERROR)
    if isinstance(result, Invocation):
        return replace(result, name=name)
    return Output(out.getvalue().encode(), b"", int(result or 0))


def has_name(arguments: Sequence[str]) -> bool:
    """Return whether a command that takes a place is given a name instead: one word, with options at most after it."""
    if not arguments or any(map(str.isdecimal, arguments[1:2])):
        return False
    if NAME_OF_PLACE.fullmatch(arguments[0]) is None:
        return False
    # A file of a language we know: what is missing is the line.
    return language_of(os.fsencode(arguments[0])) is UNKNOWN


def split_place(handler: Handler, arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with a place as one text, as hits begin with, split into file and numbers.

    A file whose name has colons and numbers itself is meant if the numbers are given apart.
    """
    if not arguments or any(map(str.isdecimal, arguments[1:2])):
        return list(arguments)
    takes_lines = handler.arguments == LINES_ARGUMENTS
    place = next(find_places(arguments[0]), None)
    rest = arguments[1:]
    if (
        takes_lines and place is None and rest
    ):  # the lines as a word of their own: FILE 10-20
        place = next(find_places(f"{arguments[0]}:{rest[0]}"), None)
        rest = rest[1:]
    if place is None:
        return list(arguments)
    if takes_lines:
        return [place.path, str(place.first), str(place.last), *rest]
    if place.column is None:
        # What is missing is the column.
        return [place.path, str(place.first), *rest]
    return [place.path, str(place.first), str(place.column), *rest]


def split_lines(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with the lines of a place as options."""
    if not arguments or (place := next(find_places(arguments[0]), None)) is None:
        return list(arguments)
    lines = ["--start-line", str(place.first), "--end-line", str(place.last)]
    return [place.path, *lines, *arguments[1:]]


def format_place(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with a place that has a column as its file and JSON."""
    if not arguments:
        return []
    place = next(find_places(arguments[0]), None)
    if place is None or place.column is None:
        return list(arguments)
    position = {"line": place.first, "column": place.column}
    return [place.path, json.dumps(position), *arguments[1:]]


def rename_options(handler: Handler, arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with alternative option names replaced by ours: ``--glob x`` is ``--include x``."""
    renamed = list(arguments)
    for at, argument in enumerate(arguments):
        if argument == "--":
            break
        option, given, value = argument.partition("=")
        other = (
            handler.params.find_field(option.removeprefix("--"))
            if option.startswith("--")
            else None
        )
        if other is not None and other not in handler.arguments:
            renamed[at] = f"--{other.replace('_', '-')}{given}{value}"
    return renamed


@cache
def make_method_command(registry: Registry, handler: Handler) -> Any:
    """Return the typer command of a method; running it returns an Invocation."""
    shortcuts = {
        flag: (name, value)
        for name, field in handler.params.model_fields.items()
        for flag, value in usage_of(field).shortcuts.items()
    }

    words = {
        name
        for name in handler.arguments
        if usage_of(handler.params.model_fields[name]).words
    }

    def run(**given: Any) -> Invocation:
        as_json = given.pop("as_json")
        everything = given.pop("everything", False)
        named = given.pop("project") or []
        projects: Sequence[str] | Literal["*"] = (
            [named] if isinstance(named, str) else named
        )
        if given.pop(ALL_PROJECTS, False):
            if projects:
                raise typer.BadParameter(
                    "--project and --all-projects contradict each other"
                )
            projects = "*"
        params = {
            name: " ".join(item) if name in words else item
            for name, item in given.items()
            if item is not None and item != []
        }
        for flag, (field, value) in shortcuts.items():
            # -i and --ignore-case may both be given; -i with --case sensitive may not.
            if (
                params.pop(_shortcut_name(flag))
                and params.setdefault(field, value) != value
            ):
                raise typer.BadParameter(
                    f"{flag} and --{field} {params[field]} contradict each other"
                )
        return Invocation(handler.name, params, as_json, projects, everything)

    parameters = [*_field_parameters(registry, handler)]
    for flag, (field, value) in sorted(shortcuts.items(), key=lambda item: item[1]):
        parameters.append(
            _flag(_shortcut_name(flag), flag, f"Same as --{field} {value}.")
        )
    project: Any = Annotated[
        str | None, typer.Option("--project", "-p", help=PROJECT_HELP)
    ]
    if "projects" in handler.params.model_fields:
        repeated = typer.Option(
            "--project", "-p", help=f"{PROJECT_HELP} May be repeated.", metavar="<str>"
        )
        project = Annotated[list[str] | None, repeated]
        parameters.append(
            _flag(ALL_PROJECTS, "--all-projects", "Ask all known projects.")
        )
    parameters.append(
        inspect.Parameter(
            "project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=project
        )
    )
    if has_pages(handler):
        parameters.append(_flag("everything", "--all", ALL_HELP))
    parameters.append(_flag("as_json", "--json", "Print the raw result as JSON."))
    # typer reads these two as if the function had been written with them.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    return make_command(handler.command, run, registry.name_commands(handler.doc))


def _field_parameters(
    registry: Registry, handler: Handler
) -> Iterator[inspect.Parameter]:
    """Yield the arguments and options that stand for the fields of a method's parameters."""
    fields = handler.params.model_fields
    last = max(
        (at for at, name in enumerate(handler.arguments) if fields[name].is_required()),
        default=-1,
    )
    for name in [
        *handler.arguments,
        *(name for name in fields if name not in {*handler.arguments, *PROJECT_FIELDS}),
    ]:
        field = fields[name]
        kind, extra = _find_type(field)
        extra["help"] = registry.name_commands(extra["help"])
        if name in PATH_FIELDS:
            extra["help"] = FROM_ROOT.sub(
                "relative to the current folder", extra["help"]
            )
        if name in handler.arguments:
            # Arguments before a required one are required too.
            required = handler.arguments.index(name) <= last
            extra.pop(
                "metavar", None
            )  # it would be in the place of the argument's name
            if usage_of(field).words:
                kind = list[str]
            how: Any = typer.Argument(**extra)
        else:
            required = field.is_required()
            word = name.replace("_", "-")
            long = f"--{word}"
            # What is on by default, or where that depends, needs a flag to turn it off.
            if kind is bool and field.default is not False:
                long += f"/--no-{word}"
            spellings = [long]
            short = usage_of(field).short
            if short:
                spellings.append(short)
            how = typer.Option(*spellings, **extra)
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else None,
            annotation=Annotated[kind if required else kind | None, how],
        )


def _flag(name: str, option: str, help_text: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(option, help=help_text)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation
    )


def _shortcut_name(flag: str) -> str:
    return "shortcut_" + flag.strip("-")


def _find_type(field: FieldInfo) -> tuple[Any, dict[str, Any]]:
    """Return a field's type as typer takes it, and how it is shown.

    Types without a command line form are written as JSON.
    """
    default = (
        None
        if field.is_required()
        else field.get_default(call_default_factory=True, validated_data={})
    )
    is_told = not isinstance(default, bool | BaseModel) and default not in (
        None,
        "",
        [],
        (),
    )
    described = (
        f"{field.description or ''}{f' [default: {default}]' if is_told else ''}"
    )
    kind = _strip_annotations(field.annotation)
    if kind in PLAIN or get_origin(kind) is Literal:
        return kind, {"help": described}
    if get_origin(kind) in (Union, types.UnionType) and str in get_args(kind):
        return str, {"help": described}
    if get_origin(kind) in (list, tuple, frozenset, set):
        item = _strip_annotations(get_args(kind)[0])
        if (
            get_origin(item) is Literal
        ):  # typer has no lists of choices: the method refuses a wrong one
            item = str
        if item in PLAIN:
            return list[item], {  # type: ignore[valid-type]
                "help": f"{described} May be repeated.",
                "metavar": "<str>",
            }
    return object, {"help": described, "parser": _parse_json, "metavar": "JSON"}


def _strip_annotations(annotation: Any) -> Any:
    """Return a type without its metadata and without None."""
    if get_origin(annotation) is Annotated:
        return _strip_annotations(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [
            _strip_annotations(part)
            for part in get_args(annotation)
            if part is not types.NoneType
        ]
        return Union[tuple(rest)]  # noqa: UP007 - built at run time; of a single type it is that type
    return annotation


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}") from None
