"""The daemon's side of a method's command: parse its arguments, call the method, render the answer."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashgrep.base.errors import FlashgrepError, InvalidParams, NotFound, TooLarge
from flashgrep.base.path_map import parse_path_map
from flashgrep.base.paths import from_latin1
from flashgrep.base.places import find_places
from flashgrep.base.registry import Registry
from flashgrep.cli.commands import USAGE_ERROR, describe_wrong_use
from flashgrep.cli.daemon_client import advise
from flashgrep.cli.grep_options import WrongOption
from flashgrep.cli.launcher import take_options
from flashgrep.cli.method_commands import (
    NOTHING_FOUND,
    PATH_FIELDS,
    Invocation,
    Output,
    parse_line,
    render,
)
from flashgrep.cli.query_line import QUERY, read_query_line
from flashgrep.cli.shell_pages import SIZES, has_pages, widen
from flashgrep.methods.text import Code, Style
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import RequestContext

READ_CODE = "read_code"
"""The method whose path may name lines, too."""
MOST_DEFINITIONS = 20
"""Of one name, to choose from."""
MOST_ARGUMENTS = 2_000
"""Parsing takes 16 µs an option, during which nobody else is served."""
MOST_RG_ARGUMENTS = 50_000
"""``fgrep rg`` is called with lists of files, by xargs and the like; its own parser takes 1 µs an argument."""


async def run_command(context: RequestContext, params: Any) -> dict[str, Any]:
    """Answer ``$/cli``: ``{argv, cwd, tty, color, width}`` to ``{stdout, stderr, status}``; bytes as latin-1.

    With ``next`` in the answer there is more: the client asks again with this ``cursor``. Of a part's own calls the
    part says what is answered.
    """
    param = None
    if isinstance(params, dict):
        param = params.get("argv")
    if isinstance(param, list) and len(param) > (
        MOST_RG_ARGUMENTS if param[0] == "rg" else MOST_ARGUMENTS
    ):
        raise TooLarge(
            f"too many arguments: {len(param)}",
            limit_items=MOST_ARGUMENTS,
            observed_items=len(param),
        )
    try:
        argv = [from_latin1(argument) for argument in params["argv"]]
        path_map = parse_path_map([from_latin1(params.get("path_map", ""))])
        cwd, width = from_latin1(params["cwd"]), int(params.get("width", 80))
        if path_map is not None:
            cwd = path_map.to_ours(cwd)
        style = Style(
            is_person=True,
            color=bool(params.get("color")),
            headings=bool(params.get("tty")),
            cwd=cwd,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParams(
            "$/cli: argv, cwd, tty, color and width are required"
        ) from None
    catalogue: Catalogue = context.call.host
    for part in catalogue.parts:
        if argv and argv[0] in part.client_calls:
            answer = await part.client_calls[argv[0]](
                context, cwd, {**params, "argv": argv[1:]}
            )
            if answer is not None:
                return answer
    if argv[:1] == [QUERY] and "--help" not in take_options(argv):
        try:
            words, line = read_query_line(catalogue.registry, argv[1:])
        except WrongOption as error:
            message = describe_wrong_use(str(error), [QUERY])
            return _encode(Output(b"", message.encode(errors="replace"), USAGE_ERROR))
        argv = [QUERY, *words]
        if line.everything:
            argv.insert(1, "--all")
        style = replace(
            style,
            color=line.shows_color(default=style.color),
            columns=line.has("column", "vimgrep"),
        )
    output = parse_line(catalogue.registry, argv, width)
    if isinstance(output, Invocation):
        if path_map is not None:
            context.call.session = replace(context.call.session, path_map=path_map)
            projects: Any = output.projects
            output = replace(
                output,
                projects=projects
                if projects == "*"
                else [*map(path_map.to_ours, projects)],
            )
        invocation, style = size_page(catalogue.registry, output, style, params)
        try:
            output = await _call_method(context, invocation, style)
        except FlashgrepError as error:
            message = f"fgrep: {error.message}\n"
            advice = advise(error.to_object()["data"])
            if advice:
                message += f"fgrep: {catalogue.registry.name_commands(advice)}\n"
            output = Output(b"", message.encode(errors="replace"), error.exit_status)
    return _encode(output)


def size_page(
    registry: Registry, invocation: Invocation, style: Style, params: Mapping[str, Any]
) -> tuple[Invocation, Style]:
    """Return a call with the sizes that its reader wants, and the style with the way to get more.

    ``params``: of ``$/cli``; its ``cursor`` is where the previous answer to the same client ended.
    """
    handler = registry.get(invocation.method)
    if invocation.as_json:
        return invocation, style
    may_go_on = has_pages(handler) and not SIZES & invocation.params.keys()
    is_whole = may_go_on and (invocation.everything or not style.headings)
    widened = widen(
        handler,
        invocation.params,
        is_whole=is_whole,
        height=int(params.get("height", 0)),
    )
    if is_whole and "cursor" in params:
        widened["cursor"] = str(params["cursor"])
    if style.color and invocation.method == QUERY:
        # To show in the lines what matched.
        widened["spans"] = True
    return (
        replace(invocation, params=widened, is_whole=is_whole),
        replace(style, offers_all=has_pages(handler)),
    )


def _encode(output: Output) -> dict[str, Any]:
    """Return an output as the client takes it."""
    answer: dict[str, Any] = {
        "stdout": output.stdout.decode("latin-1"),
        "stderr": output.stderr.decode("latin-1"),
        "status": output.status,
    }
    if output.following is not None:
        answer["next"] = output.following
    if output.code:
        answer["code"] = [_encode_code(piece) for piece in output.code]
    return answer


def _encode_code(piece: str) -> dict[str, Any]:
    """Return a line, or a piece of code with its place."""
    encoded: dict[str, Any] = {"text": piece.encode(errors="replace").decode()}
    if isinstance(piece, Code):
        encoded["path"] = piece.path.encode(errors="replace").decode()
        encoded["first"] = piece.first
    return encoded


def _show(
    catalogue: Catalogue, invocation: Invocation, result: Any, style: Style
) -> Output:
    """Render the answer to a call; where everything is wanted, what follows is left to the next one."""
    following = None
    if invocation.is_whole and result.get("next"):
        following = result["next"]
        result = {**result, "next": None}
    output = render(
        result,
        style,
        catalogue.registry.get(invocation.method).render,
        as_json=invocation.as_json,
    )
    return replace(output, following=following)


async def _call_method(
    context: RequestContext, invocation: Invocation, style: Style
) -> Output:
    """Call the method for the command's project, and report once what is wrong with its settings."""
    catalogue: Catalogue = context.call.host
    if invocation.projects == "*" or len(invocation.projects) > 1:
        return await _call_for_several(context, invocation, style)
    try:
        workspace = await catalogue.open(
            find_project(catalogue, style.cwd, *invocation.projects)
        )
    except NotFound:
        if invocation.projects and catalogue.settings.team.url:
            # The team's server may know the name; its projects have no root here that
            # paths could be relative to.
            result = await context.call_method(
                invocation.method,
                {**invocation.params, "project": invocation.projects[0]},
            )
            return _show(catalogue, invocation, result, style)
        if invocation.method != "stats" or invocation.projects:
            raise
        stats = await context.call_method(
            "stats", invocation.params
        )  # of the daemon: there is no project here
        return _show(catalogue, invocation, stats, style)
    root = workspace.path
    context.call.for_person = not invocation.as_json
    # The call is bound, not its connection: commands on one connection run side by
    # side, each in its own folder.
    context.call.session = replace(context.call.session, projects=(str(root),))
    style = replace(style, root=str(root))
    params = {
        name: find_inside(
            root, style.cwd, item, keeps_lines=invocation.method == READ_CODE
        )
        if name in PATH_FIELDS
        else item
        for name, item in invocation.params.items()
    }
    if invocation.name:
        definitions = await find_definitions(context, invocation)
        if len(definitions) != 1:
            return list_definitions(invocation.name, definitions, style)
        place = definitions[0]
        params |= {
            "path": place["file_path"],
            "line": place["line_number"],
            "column": place["column"],
        }
    result = await context.call_method(invocation.method, params)
    output = _show(catalogue, invocation, result, style)
    return _warn([workspace], output)


async def find_definitions(
    context: RequestContext, invocation: Invocation
) -> list[dict[str, Any]]:
    """Return the definitions of the name that a command was given in the place of a position."""
    answer = await context.call_method(
        "get_symbol",
        {
            "symbol_name": invocation.name,
            "role": ["definition", "declaration"],
            "limit": MOST_DEFINITIONS,
            **{
                name: value
                for name, value in invocation.params.items()
                if name in {"rev", "position_encoding"}
            },
        },
    )
    definitions = [hit for hit in answer["results"] if hit.get("kind") != "heading"]
    bodies = [hit for hit in definitions if hit["role"] == "definition"]
    return bodies or definitions


def list_definitions(
    name: str, definitions: Sequence[dict[str, Any]], style: Style
) -> Output:
    """Return what is said of a name that does not mean one definition: the places to choose from."""
    if not definitions:
        message = f"fgrep: no definition of {name}: fgrep symbol {name} --match fuzzy finds similar names\n"
        return Output(b"", message.encode(errors="replace"), NOTHING_FOUND)
    lines = [
        f"fgrep: {len(definitions)} definitions of {name}; choose one by its place:"
    ]
    for hit in definitions:
        place = f"{style.path(hit)}:{hit['line_number']}:{hit['column']}"
        lines.append(f"{place}: {style.text(hit.get('signature', ''))}")
    text = "".join(f"{line}\n" for line in lines)
    return Output(b"", text.encode("utf-8", "surrogateescape"), USAGE_ERROR)


async def _call_for_several(
    context: RequestContext, invocation: Invocation, style: Style
) -> Output:
    """Call the method for several projects at once; paths are relative to the root of each."""
    catalogue: Catalogue = context.call.host
    projects: Any = invocation.projects
    if projects != "*":
        projects = [find_project(catalogue, style.cwd, named) for named in projects]
    context.call.session = replace(
        context.call.session, projects=() if projects == "*" else tuple(projects)
    )
    result = await context.call_method(
        invocation.method, {**invocation.params, "projects": projects}
    )
    workspaces = [
        workspace
        for workspace in catalogue.list_open()
        if workspace.name in result["coverage"]["projects"]
    ]
    style = replace(style, roots=result["coverage"]["projects"])
    return _warn(workspaces, _show(catalogue, invocation, result, style))


def _warn(workspaces: Iterable[Workspace], output: Output) -> Output:
    """Add warnings about projects' settings, once for each project."""
    warnings = [
        f"fgrep: {warning}\n"
        for workspace in workspaces
        for warning in workspace.take_warnings()
    ]
    return replace(
        output, stderr="".join(warnings).encode(errors="replace") + output.stderr
    )


def find_project(catalogue: Catalogue, cwd: str, named: str | None = None) -> str:
    """Return the project named, by a name or (with a slash, or as dots) by a path in it, else the one around cwd.

    Raises:
        NotFound: the folder lies in no project and no git work tree.

    """
    if named and "/" not in named and named not in {".", ".."}:
        return named
    return str(catalogue.find_enclosing_root(Path(cwd, named or "").resolve()))


def find_inside(root: Path, cwd: str, path: Any, *, keeps_lines: bool = False) -> Any:
    """Return a path as seen from the project's root, if it lies there; else as it was given.

    A hit's place, ``FILE:LINE:COLUMN``, stands for its file where no file has that name, unless the method reads the
    lines of a place (``keeps_lines``).
    """
    if not isinstance(path, str):
        return path
    lines = ""
    if not os.path.lexists(Path(cwd, path)):
        for place in find_places(path):
            if os.path.lexists(Path(cwd, place.path)):
                lines = path.removeprefix(place.path)
                path = place.path
                break
    full = Path(os.path.normpath(Path(cwd, path)))
    if full.is_relative_to(root):
        path = full.relative_to(root).as_posix()
    if keeps_lines:
        return path + lines
    return path
