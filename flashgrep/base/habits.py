"""Arguments as models know them from other tools, translated before a tool is called.

Only what a method's own alternative names cannot express: where one field becomes another with a changed value.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from flashgrep.base.errors import InvalidParams
from flashgrep.base.places import find_places

DIRECTIONS: Final = {
    "callers": "callers",
    "incoming": "callers",
    "in": "callers",
    "up": "callers",
    "callees": "callees",
    "outgoing": "callees",
    "out": "callees",
    "down": "callees",
    "references": "usages",
    "referencing": "usages",
}
"""What other tools call the kinds of code_research."""
HOST_PREFIX: Final = "mcp__flashgrep__"
"""What a host puts before a tool's name."""
AROUND: Final = 10
"""Lines on either side of a single line that get_slice is asked for."""
Arguments = dict[str, Any]


def read_habits(tool: str, arguments: Mapping[str, Any]) -> Arguments:
    """Return a tool's arguments in its own words; those of other tools are unchanged.

    Raises:
        InvalidParams: what is meant has another form here.

    """
    translate = TRANSLATORS.get(tool)
    translated = dict(arguments)
    if translate is not None:
        translate(translated)
    return translated


def _move(arguments: Arguments, names: tuple[str, ...], field: str) -> None:
    """Give a field the value of the first of some names, unless it has one."""
    for name in names:
        if name in arguments and field not in arguments:
            arguments[field] = arguments.pop(name)


def _read_research(arguments: Arguments) -> None:
    _move(arguments, ("symbol", "symbol_name", "name", "name_path"), "query")
    _move(arguments, ("direction",), "kind")
    kind = arguments.get("kind")
    if isinstance(kind, str) and kind in DIRECTIONS:
        arguments["kind"] = DIRECTIONS[kind]


def _read_symbol(arguments: Arguments) -> None:
    """Read Serena's arguments of find_symbol."""
    _move(arguments, ("name_path", "name_path_pattern"), "symbol_name")
    if arguments.pop("substring_matching", False) is True:
        arguments.setdefault("match", "fuzzy")
    # The depth of a tree of symbols, which outline shows: there is nothing to set here.
    if "symbol_name" in arguments:
        arguments.pop("depth", None)


def _read_symbol_edit(arguments: Arguments) -> None:
    """Read the arguments of Serena's edits by symbol."""
    _move(arguments, ("name_path", "symbol"), "symbol_name")
    _move(arguments, ("body", "content", "code", "new_code"), "text")


def _read_rename(arguments: Arguments) -> None:
    _move(arguments, ("name_path", "symbol", "old_name"), "symbol_name")
    _move(arguments, ("to", "name_to"), "new_name")


def _read_changes(arguments: Arguments) -> None:
    # What is given twice is left as it is, and refused: no restriction is lost.
    if "rev" not in arguments:
        _read_revisions(arguments)
    # A file or a folder: the name does not say which, and a glob that matches nothing
    # does no harm.
    path = arguments.get("path")
    if isinstance(path, str) and path and "include" not in arguments:
        del arguments["path"]
        arguments["include"] = [path, f"{path.rstrip('/')}/**"]


def _read_revisions(arguments: Arguments) -> None:
    base = arguments.pop("base", None)
    commit = None
    if base is None:
        commit = arguments.pop("commit", None)
    if commit is not None:
        # What one commit changed is the difference from its first parent.
        arguments["rev"] = f"{commit}~1..{commit}"
    elif base is not None and "head" in arguments:
        arguments["rev"] = f"{base}..{arguments.pop('head')}"
    elif base is not None:
        arguments["rev"] = base


def _read_folders(arguments: Arguments) -> None:
    if "include" in arguments:
        return
    # What is neither stays, and is refused: no restriction is lost.
    folders = arguments.get("target_directories")
    if folders is None:
        folders = []
    if isinstance(folders, str):
        folders = [folders]
    if isinstance(folders, list):
        arguments.pop("target_directories", None)
    if not folders and isinstance(arguments.get("path"), list):
        folders = arguments.pop("path")
    if isinstance(folders, list) and folders:
        globs = [str(folder).rstrip("/") for folder in folders]
        below = [f"{glob}/**" for glob in globs]
        arguments["include"] = [*globs, *below]


def _read_lines(arguments: Arguments) -> None:
    # A single line is a hit, and a hit is read with what is around it.
    line = arguments.get("line")
    if isinstance(line, int) and "start_line" not in arguments:
        del arguments["line"]
        arguments["start_line"] = max(1, line - AROUND)
        arguments.setdefault("end_line", line + AROUND)
    path = arguments.get("path")
    if isinstance(path, str) and "start_line" not in arguments:
        for place in find_places(path):
            arguments.update(
                path=place.path, start_line=place.first, end_line=place.last
            )
            return


def _refuse_patch(arguments: Arguments) -> None:
    # A patch may change several files, of which the tool takes one.
    if "patch" in arguments and "path" not in arguments:
        message = "write_code: patch: give path, old_text and new_text; for several places batch_write_code"
        raise InvalidParams(message, field="patch")


def _read_batch(arguments: Arguments) -> None:
    """Read calls as hosts write them: by other names, or with the arguments beside the method's name."""
    _move(arguments, ("requests", "tool_calls", "invocations", "operations"), "calls")
    calls = arguments.get("calls")
    if isinstance(calls, list):
        arguments["calls"] = [_read_call(call) for call in calls]


def _read_call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    read = dict(call)
    _move(read, ("tool", "tool_name", "name"), "method")
    _move(read, ("args", "params", "parameters", "input"), "arguments")
    method = read.get("method")
    if isinstance(method, str):
        read["method"] = method.removeprefix(HOST_PREFIX)
    if "arguments" not in read:
        others = {name: value for name, value in read.items() if name != "method"}
        read = {name: read[name] for name in read.keys() - others.keys()}
        read["arguments"] = others
    return read


TRANSLATORS: Final[Mapping[str, Callable[[Arguments], None]]] = {
    "batch": _read_batch,
    "changes": _read_changes,
    "code_research": _read_research,
    "edit_symbol": _read_symbol_edit,
    "get_slice": _read_lines,
    "get_symbol": _read_symbol,
    "query": _read_folders,
    "rename_symbol": _read_rename,
    "search_code": _read_folders,
    "write_code": _refuse_patch,
}
