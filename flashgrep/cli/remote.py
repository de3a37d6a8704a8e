"""The daemon's side of a method's command: parse its arguments, call the method, render the answer."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashgrep.base.errors import FlashgrepError, InvalidParams, NotFound, TooLarge
from flashgrep.base.path_map import parse_path_map
from flashgrep.cli.method_commands import (
    PATH_FIELDS,
    Invocation,
    Output,
    parse_line,
    render,
)
from flashgrep.methods.text import Style
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.connect import from_latin1
from flashgrep.rpc.context import RequestContext

MOST_ARGUMENTS = 2_000
"""Parsing takes 16 µs an option, during which nobody else is served."""
MOST_RG_ARGUMENTS = 50_000
"""``fgrep rg`` is called with lists of files, by xargs and the like; its own parser takes 1 µs an argument."""


async def run_command(context: RequestContext, params: Any) -> dict[str, Any]:
    """Answer ``$/cli``: ``{argv, cwd, tty, color, width}`` to ``{stdout, stderr, status}``; bytes as latin-1."""
    given = params.get("argv") if isinstance(params, dict) else None
    if isinstance(given, list) and len(given) > (
        MOST_RG_ARGUMENTS if given[0] == "rg" else MOST_ARGUMENTS
    ):
        raise TooLarge(
            f"too many arguments: {len(given)}",
            limit_items=MOST_ARGUMENTS,
            observed_items=len(given),
        )
    try:
        argv = [from_latin1(argument) for argument in params["argv"]]
        path_map = parse_path_map([from_latin1(params.get("path_map", ""))])
        cwd, width = from_latin1(params["cwd"]), int(params.get("width", 80))
        cwd = cwd if path_map is None else path_map.to_ours(cwd)
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
            return await part.client_calls[argv[0]](
                context, cwd, {**params, "argv": argv[1:]}
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
        try:
            output = await _call_method(context, output, style)
        except FlashgrepError as error:
            suggestion = error.data.get("suggestion")
            message = f"fgrep: {error.message}\n" + (
                f"fgrep: {suggestion}\n" if suggestion else ""
            )
            output = Output(b"", message.encode(errors="replace"), error.exit_status)
    return {
        "stdout": output.stdout.decode("latin-1"),
        "stderr": output.stderr.decode("latin-1"),
        "status": output.status,
    }


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
            return render(
                result,
                style,
                catalogue.registry.get(invocation.method).render,
                as_json=invocation.as_json,
            )
        if invocation.method != "stats" or invocation.projects:
            raise
        stats = await context.call_method(
            "stats", invocation.params
        )  # of the daemon: there is no project here
        return render(
            stats,
            style,
            catalogue.registry.get("stats").render,
            as_json=invocation.as_json,
        )
    root = workspace.path
    # The call is bound, not its connection: commands on one connection run side by
    # side, each in its own folder.
    context.call.session = replace(context.call.session, projects=(str(root),))
    params = {
        name: find_inside(root, style.cwd, item) if name in PATH_FIELDS else item
        for name, item in invocation.params.items()
    }
    result = await context.call_method(invocation.method, params)
    renderer = catalogue.registry.get(invocation.method).render
    shown = render(
        result, replace(style, root=str(root)), renderer, as_json=invocation.as_json
    )
    return _warn([workspace], shown)


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
    asked = [
        workspace
        for workspace in catalogue.list_open()
        if workspace.name in result["coverage"]["projects"]
    ]
    renderer = catalogue.registry.get(invocation.method).render
    style = replace(style, roots=result["coverage"]["projects"])
    return _warn(asked, render(result, style, renderer, as_json=invocation.as_json))


def _warn(workspaces: Iterable[Workspace], output: Output) -> Output:
    """Add warnings about projects' settings, once for each project."""
    unwarned = [workspace for workspace in workspaces if not workspace.warned]
    for workspace in unwarned:
        workspace.warned = True
    warnings = [
        f"fgrep: {one}\n"
        for workspace in unwarned
        for one in workspace.options.settings_warnings
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


def find_inside(root: Path, cwd: str, path: Any) -> Any:
    """Return a path as seen from the project's root, if it lies there; else as it was given."""
    if not isinstance(path, str):
        return path
    full = Path(os.path.normpath(Path(cwd, path)))
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else path
