"""Reading: get_slice reads lines of a file, read_code files and symbols."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from flashgrep.api.host import Host
from flashgrep.api.searchers import Holds
from flashgrep.api.view import View
from flashgrep.base.errors import (
    FlashgrepError,
    Forbidden,
    InvalidParams,
    NotFound,
    TooLarge,
)
from flashgrep.base.languages import language_of
from flashgrep.base.model import Document, path_from_json, path_to_text
from flashgrep.base.places import SYMBOL_OF_FILE, find_places
from flashgrep.base.registry import (
    NEEDED,
    RARE,
    ByteCount,
    Call,
    Count,
    Handler,
    LineNumber,
    NameText,
    Params,
    PathBase64,
    PathText,
    SymbolName,
    handler,
)
from flashgrep.files.globs import PathFilter
from flashgrep.files.read import (
    MissingTarget,
    SliceQuery,
    SliceResult,
    slice_content,
)
from flashgrep.files.system import HASH_SHOWN
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    PATH,
    PATH_BYTES,
    AllLibraries,
    LibraryName,
    ProjectParams,
    Rev,
    current_view,
    locate_in_libraries,
    look_up_libraries,
    open_all_libraries,
    open_view,
    place_in_library,
    resolve_path,
    tell_near,
)
from flashgrep.methods.text import Code, Note, Style, span

MOST_TARGETS, LEAST_TOKENS = 50, 50
"""Most targets of one call, and the tokens each may have even if the others have used up the budget."""
_OF_TARGET = (NotFound, InvalidParams, Forbidden, TooLarge)
"""Errors that are about one target; the others are read all the same."""
MOST_HELD: Final = 30
"""Names of a folder that the error for reading it has."""
NO_LINE_END = "[no line end at the end of the file]"


class TargetParams(Params):
    """The file to read or write."""

    path: Annotated[PathText, NEEDED] = Field("", description=PATH)
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)

    def target(self, shared: str = "") -> bytes:
        """Return the path, which may be one shared by several operations; raises InvalidParams if there is none."""
        path = path_from_json(self.path or shared, self.path_bytes)
        if not path:
            raise InvalidParams("path: needed: which file?", field="path")
        return path


class RangeParams(ProjectParams):
    """Parameters of both reading methods."""

    continuation_start_line: LineNumber | None = Field(
        None,
        description="Line to continue at, from the last answer's cursor; replaces start_line.",
    )
    continuation_start_byte: Annotated[ByteCount | None, RARE] = Field(
        None,
        description="Byte to continue at inside that line, from the last answer's cursor.",
    )
    chunk_index: Annotated[Count, RARE] = Field(
        0, description="Counted by the caller; returned unchanged."
    )
    include_hash: Annotated[bool | None, RARE] = Field(
        None,
        description="Whether to hash the file for a later precondition; default: if it is at most 1 MiB.",
    )
    rev: Rev = None
    library: LibraryName = None


class GetSliceParams(TargetParams, RangeParams):
    """Parameters of get_slice."""

    start_line: LineNumber = Field(description="First line, from 1.")
    end_line: Annotated[LineNumber | None, NEEDED] = Field(
        None, description="Last line, inclusive; past the end means the end."
    )
    max_lines: Annotated[Count | None, RARE] = Field(
        None, ge=1, description="Number of lines, instead of a last one."
    )


class ReadCodeParams(RangeParams):
    """Parameters of read_code."""

    libraries: AllLibraries = False

    path: PathText | None = Field(
        None, description=PATH + " With symbol_name: the file that defines it."
    )
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    symbol_name: SymbolName | None = Field(
        None, description="Symbol whose definition to read."
    )
    targets: list[NameText] = Field(
        default=[],
        max_length=MOST_TARGETS,
        description="Several at once, each a path, path:10-60 or a symbol's name.",
    )
    start_line: LineNumber = Field(1, description="First line, from 1.")
    end_line: LineNumber | None = Field(None, description="Last line, inclusive.")
    tail: Count | None = Field(None, ge=1, description="This many lines from the end.")
    symbol_context_lines: Annotated[Count, RARE] = Field(
        20,
        description="Lines shown on either side of the symbol; default: none if the answer is text.",
    )
    max_tokens: Count | None = Field(
        None,
        ge=1,
        description="Most tokens (characters / 4); default 8,000 without max_bytes.",
    )
    max_bytes: Annotated[ByteCount | None, RARE] = Field(
        None, ge=1, description="Most bytes; default and maximum: 196608."
    )
    max_lines: Annotated[Count | None, RARE] = Field(
        None, ge=1, description="Most lines."
    )
    metadata_level: Annotated[Literal["minimal", "standard"], RARE] = Field(
        "standard",
        description="standard adds mode, total_lines_available and symbol_name.",
    )


def describe_text(result: Mapping[str, Any]) -> str:
    """Return the short hash of a file that was read, and what is unusual about its text."""
    facts = (
        f"#{result['file_hash'][:HASH_SHOWN]}" if result["file_hash"] else "",
        "" if result["encoding"] == "utf-8" else result["encoding"],
        "byte order mark" if result["bom"] else "",
        {"crlf": "CRLF", "mixed": "mixed line ends", "cr": "CR"}.get(
            result["line_ending"], ""
        ),
        f"{result['invalid_bytes']} bytes are not text"
        if result.get("invalid_bytes")
        else "",
    )
    return " ".join(filter(None, facts))


def render_slice(result: SliceResult, style: Style) -> Iterator[str]:
    """Yield the lines exactly as they are, for a model below a header: which lines, and what is unusual about them."""
    text = style.text(result["content"])
    if style.is_person:
        yield Code(text, result["file_path"], result["start_line"])
        return
    if result.get("total_lines_available"):
        count = f"of {result['total_lines_available']}"
    else:
        count = ""
    column = result.get("start_byte_column", 1)
    if column > 1:
        start = f"from byte {column} of the line"
    else:
        start = ""
    yield " ".join(
        filter(
            None,
            [
                f"{style.path(result)}:{span(result)}",
                count,
                describe_text(result),
                start,
            ],
        )
    )
    yield text
    if text and not text.endswith("\n") and not result["truncated"]:
        yield NO_LINE_END
    if "library" in result:
        yield Note(f"[of {result['library']}, a library]")
    if others := result.get("also_defined"):
        yield Note(f"[also defined at {', '.join(others)}]")
    for slice_result in result.get("more", ()):
        yield from render_slice(slice_result, style)
        if slice_result["truncated"]:
            yield Note(f"[continues at line {slice_result['continuation_start_line']}]")
    for missing in result.get("missing", ()):
        yield Note(style.text(f"[{missing['error']['message']}]"))


@handler(
    "get_slice",
    title="Read lines",
    command="slice path start_line end_line",
    render=render_slice,
)
async def get_slice(call: Call[Host], params: GetSliceParams) -> SliceResult:
    """Read the lines of a file from start_line to end_line, exactly as they are, up to 192 KiB.

    Use it around a hit; read_code for a symbol or a whole file.
    """
    if params.end_line is None and params.max_lines is None:
        raise InvalidParams("end_line: needed: up to which line?", field="end_line")
    view = await open_view(call, params)
    query = SliceQuery(
        start_line=params.continuation_start_line or params.start_line,
        end_line=params.end_line,
        max_lines=params.max_lines,
        start_byte=params.continuation_start_byte,
        chunk_index=params.chunk_index,
        with_hash=params.include_hash,
        deadline=call.deadline,
    )
    return await read(view, params.target(), query)


@handler(
    "read_code",
    title="Read code",
    command="read path",
    listing="by_default",
    render=render_slice,
)
async def read_code(call: Call[Host], params: ReadCodeParams) -> SliceResult:
    """Read a file, a range of it (path:10-60), its last lines or a symbol's definition, within a budget.

    Use it instead of cat, head and sed. A longer text comes in parts: pass what the answer names to get the rest.
    """
    if params.libraries:
        return await _read_in_libraries(call, params)
    view = await open_view(call, params)
    if params.targets and (params.path or params.path_bytes or params.symbol_name):
        raise InvalidParams(
            "give either targets, or one path or symbol_name", field="targets"
        )
    if not params.targets:
        return await _read_place(call, view, params)
    await view.refresh()
    return await _read_targets(call, view, params)


async def _read_targets(
    call: Call[Host], view: View, params: ReadCodeParams
) -> SliceResult:
    """Read several targets, the first of which has the others and what was missing; raises if none could be read."""
    max_tokens = params.max_tokens or view.project.editor.limits.read_tokens
    results = list[SliceResult]()
    missing = list[MissingTarget]()
    errors = list[FlashgrepError]()
    # One after the other: they share the budget.
    for target in params.targets:
        tokens = max(max_tokens, LEAST_TOKENS)
        alone = params.model_copy(update={"targets": [], "max_tokens": tokens})
        try:
            result = await _read_target(call, view, alone, target)
        except _OF_TARGET as error:
            errors.append(error)
            missing.append({"target": target, "error": {**error.to_object()}})
            continue
        results.append(result)
        max_tokens -= len(result["content"]) // CHARS_PER_TOKEN
    if not results:
        raise errors[0]
    first = results[0]
    first["more"] = results[1:]
    if missing:
        first["missing"] = missing
    return first


async def _read_target(
    call: Call[Host], view: View, params: ReadCodeParams, target: str
) -> SliceResult:
    """Read one of several targets: a place, a symbol or, if there is none, a path."""
    by_path = params.model_copy(update={"path": target})
    if next(find_places(target), None) is not None:
        return await _read_place(call, view, by_path)
    try:
        await call.host.searchers.definition(view, target, b"", None)
    except NotFound as error:
        try:
            return await _read_place(call, view, by_path)
        except NotFound:
            # The error for a path names similar paths, this one similar names.
            if is_path(target):
                raise
            raise error from None
    by_name = {"symbol_name": target, "symbol_context_lines": 0}
    return await _read_place(call, view, params.model_copy(update=by_name))


def is_path(target: str) -> bool:
    """Return whether a target looks like a path, not like a name of code."""
    return "/" in target or language_of(target.encode()).name != ""


async def _read_in_libraries(call: Call[Host], params: ReadCodeParams) -> SliceResult:
    """Read what a path or a symbol stands for in the libraries of a project; the first that has it is read."""
    libraries = await open_all_libraries(call, params.project, params)
    missing: FlashgrepError | None = None
    for place in libraries.places:
        view = await current_view(call, place.project)
        try:
            result = await _read_place(call, view, params, place.holds)
        except (NotFound, Forbidden) as error:
            # An absolute path is forbidden in every folder but its own.
            missing = missing or error
            continue
        item: Any = result
        root = place.project.root
        await view.in_turn(partial(place_in_library, item, root, libraries.lookup))
        others = result.get("also_defined", [])
        if others:
            lead = path_to_text(root)
            result["also_defined"] = [f"{lead}/{other}" for other in others]
        return result
    if missing is None:
        raise NotFound("the project has no libraries", reason="library_not_found")
    raise missing


async def _read_place(
    call: Call[Host],
    view: View,
    params: ReadCodeParams,
    holds: Holds | None = None,
) -> SliceResult:
    """Read a target; if nothing has that name, try it as a file with lines or with a symbol.

    ``holds``: only files of which it is true are read.
    """
    try:
        return await _read_one(call, view, params, holds)
    except NotFound as error:
        named = params.symbol_name or params.path or ""
        if params.symbol_name and params.path:
            raise
        readings: list[dict[str, Any]] = []
        for place in find_places(named):
            readings.append(
                {"path": place.path, "start_line": place.first, "end_line": place.last}
            )
        if not readings and (match := SYMBOL_OF_FILE.fullmatch(named)):
            readings.append({"path": match["path"], "symbol_name": match["symbol"]})
        for reading in readings:
            try:
                return await _read_one(
                    call,
                    view,
                    params.model_copy(update={"symbol_name": None, **reading}),
                    holds,
                )
            except NotFound:
                continue
        # The first error: it is about the name the caller gave, not our interpretation
        # of it.
        raise error from None


async def _read_one(
    call: Call[Host], view: View, params: ReadCodeParams, holds: Holds | None
) -> SliceResult:
    """Read what one path or symbol stands for."""
    is_named = params.path is not None or params.path_bytes is not None
    if not is_named and params.symbol_name is None:
        raise InvalidParams("path: needed, or symbol_name", field="path")
    if params.tail is not None and (
        params.end_line is not None or params.start_line != 1
    ):
        raise InvalidParams("give either tail or a range of lines", field="tail")
    path = path_from_json(params.path, params.path_bytes)
    others = list[str]()
    start = params.start_line
    end = params.end_line
    # A continuation names the file, so the symbol need not be found again.
    if params.symbol_name is not None and not (
        is_named and params.continuation_start_line
    ):
        await view.refresh()
        if params.path:
            below = await resolve_path(view, params.path)
        else:
            below = path
        path, first, last, others = await call.host.searchers.definition(
            view, params.symbol_name, below, holds
        )
        # A model pays for what it reads, and asked only for the symbol.
        usual = call.as_text and "symbol_context_lines" not in params.model_fields_set
        if usual:
            around = 0
        else:
            around = params.symbol_context_lines
        start = max(1, first - around)
        end = last + around
    # A budget in bytes alone is not narrowed by the default one in tokens.
    max_tokens = params.max_tokens
    if max_tokens is None and params.max_bytes is None:
        max_tokens = view.project.editor.limits.read_tokens
    is_standard = params.metadata_level == "standard"
    query = SliceQuery(
        start_line=params.continuation_start_line or start,
        end_line=end,
        start_byte=params.continuation_start_byte,
        tail=None if params.continuation_start_line else params.tail,
        max_lines=params.max_lines,
        max_bytes=params.max_bytes,
        max_tokens=max_tokens,
        chunk_index=params.chunk_index,
        with_hash=params.include_hash,
        with_total=is_standard,
        deadline=call.deadline,
    )
    if holds is not None:
        inside = await resolve_path(view, path_to_text(path))
        if not holds(inside):
            raise NotFound(
                f"of no library of the project: {path_to_text(path)}",
                reason="library_not_found",
            )
    result = await read(view, path, query)
    if others:
        result["also_defined"] = others
    if is_standard:
        if params.symbol_name is None:
            result["mode"] = "slice"
        else:
            result["mode"] = "symbol"
        if params.symbol_name is not None:
            result["symbol_name"] = params.symbol_name
    return result


async def read(view: View, path: bytes, query: SliceQuery) -> SliceResult:
    """Read lines of a file of the project, or of a library that it uses; if there is none, the error names similar ones."""
    try:
        return await view.read_slice(path, query)
    except Forbidden:
        result = await read_library(view, path, query)
        if result is None:
            raise
        return result
    except NotFound as error:
        raise await tell_near(view, error, path_to_text(path)) from None
    except InvalidParams as error:
        if error.reason == "not_a_file":
            await tell_files(view, error, path)
        raise


async def tell_files(view: View, error: InvalidParams, path: bytes) -> None:
    """Say in the error for what is no file which names a folder holds."""
    try:
        folder = await view.resolve(path_to_text(path), folder=True)
    except FlashgrepError:
        return
    await view.refresh()
    keep = PathFilter((), (), under=folder)
    paths = await view.in_turn(lambda: view.paths(keep))
    # The folders and files right below it.
    start = len(folder) + 1
    if not folder:
        start = 0
    names = sorted({path_to_text(name[start:].partition(b"/")[0]) for name in paths})
    holds = names[:MOST_HELD]
    if len(names) > MOST_HELD:
        holds.append(f"and {len(names) - MOST_HELD} more")
    error.data["holds"] = ", ".join(holds)
    error.data["suggestion"] = "it is a folder: list_files lists it, query searches it"


async def read_library(
    view: View, path: bytes, query: SliceQuery
) -> SliceResult | None:
    """Return lines of a library's file, by its absolute path; None: it is none."""
    libraries = look_up_libraries(view)
    located = await locate_in_libraries(view, libraries, path)
    if libraries is None or located is None:
        return None

    def work() -> SliceResult | None:
        document = libraries.read(located)
        if not isinstance(document, Document):
            return None
        result = slice_content(view.project.editor, located, document.data, query)
        library = libraries.find_library(located)
        if library is not None:
            result["library"] = library.label
        return result

    return await view.in_turn(work)


HANDLERS: tuple[Handler, ...] = (get_slice, read_code)
