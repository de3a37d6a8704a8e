"""The daemon's side of a hot command: parse its arguments, call the method, render the answer."""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from flashgrep.cli.methods import Invocation, Said, method_app, parse_line
from flashgrep.cli.render import Shown, Style, render
from flashgrep.cli.rg.command import answer as answer_rg
from flashgrep.cli.rg.plan import Call
from flashgrep.daemon.projects import bind
from flashgrep.errors import FlashgrepError, InvalidParams, NotFound, TooLarge
from flashgrep.handlers import REGISTRY
from flashgrep.rpc.context import RequestContext

PATH_FIELDS = frozenset({"file_path", "path", "src", "dst"})
"""Parameters that name a file; on the command line they are seen from the current folder."""
MOST_ARGUMENTS = 2_000
"""Parsing takes 16 µs an option, in which nobody else is served."""
MOST_RG_ARGUMENTS = 50_000
"""``fgrep rg`` is called with lists of files, by xargs and the like; its own parser takes 1 µs an argument."""


async def run_command(context: RequestContext, params: Any) -> dict[str, Any]:
    """Answer ``$/cli``: ``{argv, cwd, tty, color, width}`` to ``{stdout, stderr, status}``; bytes as latin-1."""
    given = params.get("argv") if isinstance(params, dict) else None
    if isinstance(given, list) and len(given) > (MOST_RG_ARGUMENTS if given[0] == "rg" else MOST_ARGUMENTS):
        raise TooLarge(f"too many arguments: {len(given)}", limit_items=MOST_ARGUMENTS, observed_items=len(given))
    try:
        argv = [_native(argument) for argument in params["argv"]]
        cwd, width = _native(params["cwd"]), int(params.get("width", 80))
        wants = {"color": bool(params.get("color")), "headings": bool(params.get("tty"))}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParams("$/cli: argv, cwd, tty, color and width are required") from None
    if argv[:1] == ["rg"]:
        config = params.get("config")
        call = Call(
            argv=argv[1:],
            cwd=os.fsencode(cwd),
            config=_native(config) if config else None,
            readable_input=bool(params.get("readable_input")),
        )
        return await answer_rg(context, call)
    parsed = parse_line(_group(), argv, width)
    if isinstance(parsed, Said):
        return _answer(Shown(parsed.stdout.encode(), parsed.stderr.encode(errors="replace"), parsed.status))
    try:
        shown = await _call(context, parsed, cwd, wants)
    except FlashgrepError as error:
        shown = Shown(b"", f"fgrep: {_told(error)}\n".encode(errors="replace"), error.exit_status)
    return _answer(shown)


@cache
def _group() -> TyperGroup:
    return method_app(REGISTRY)


async def _call(context: RequestContext, parsed: Invocation, cwd: str, wants: dict[str, bool]) -> Shown:
    try:
        root = await bind(context.call, Path(cwd), parsed.project)
    except NotFound:
        if parsed.method != "stats" or parsed.project:
            raise
        told = await context.call_method("stats", parsed.params)  # of the daemon: there is no project here
        return render(told, Style(**wants, root="", cwd=cwd), as_json=parsed.as_json)
    given = {name: _inside(root, cwd, item) if name in PATH_FIELDS else item for name, item in parsed.params.items()}
    result = await context.call_method(parsed.method, given)
    shown = render(result, Style(**wants, root=str(root), cwd=cwd), as_json=parsed.as_json)
    workspace = await context.call.host.open(str(root))
    if workspace.warned:
        return shown
    workspace.warned = True
    warnings = "".join(f"fgrep: {warning}\n" for warning in workspace.options.settings_warnings)
    return replace(shown, stderr=warnings.encode(errors="replace") + shown.stderr)


def _inside(root: Path, cwd: str, path: Any) -> Any:
    """Return a path as seen from the project's root, if it lies there; else as it was given."""
    if not isinstance(path, str):
        return path
    full = Path(os.path.normpath(Path(cwd, path)))
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else path


def _told(error: FlashgrepError) -> str:
    suggestion = error.data.get("suggestion")
    return f"{error.message}\nfgrep: {suggestion}" if suggestion else error.message


def _native(text: str) -> str:
    return os.fsdecode(text.encode("latin-1"))


def _answer(shown: Shown) -> dict[str, Any]:
    return {
        "stdout": shown.stdout.decode("latin-1"),
        "stderr": shown.stderr.decode("latin-1"),
        "status": shown.status,
    }
