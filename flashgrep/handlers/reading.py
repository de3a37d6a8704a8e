"""Reading lines of files: get_slice and read_code."""

import base64
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from flashgrep.edit.editor import Project, Projects
from flashgrep.edit.read import SliceQuery, SliceResult, read_slice
from flashgrep.errors import InvalidParams, NotFound
from flashgrep.params import ByteCount, Count, LineNumber, PathBase64, PathText, SymbolName
from flashgrep.registry import RARE, Call, Handler, Params, handler

PATH = "Path relative to the project's root; an absolute path inside it is accepted."
PATH_BYTES = "The path's bytes in base64, for a name that is not UTF-8; instead of the text."


class ProjectParams(Params):
    """What every method on files takes."""

    project: PathText | None = Field(None, description="Project by name or root; default: the connection's own.")


class RangeParams(ProjectParams):
    """What both reading methods take."""

    file_path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    continuation_start_line: LineNumber | None = Field(
        None, description="Line to go on at, from the last answer's cursor; replaces start_line."
    )
    continuation_start_byte: ByteCount | None = Field(
        None, description="Byte to go on at inside that line, from the last answer's cursor."
    )
    chunk_index: Annotated[Count, RARE] = Field(0, description="Counted by the caller and echoed.")
    include_hash: Annotated[bool | None, RARE] = Field(
        None, description="Whether to hash the file for a later precondition; default: if it is at most 1 MiB."
    )


class GetSliceParams(RangeParams):
    """Parameters of get_slice."""

    file_path: PathText = Field("", description=PATH)
    start_line: LineNumber = Field(description="First line, from 1.")
    end_line: LineNumber = Field(description="Last line, included; past the end means the end.")


class ReadCodeParams(RangeParams):
    """Parameters of read_code."""

    file_path: PathText | None = Field(None, description=PATH + " Either this or symbol_name.")
    symbol_name: SymbolName | None = Field(None, description="Symbol whose definition to read.")
    start_line: LineNumber = Field(1, description="First line, from 1.")
    end_line: LineNumber | None = Field(None, description="Last line, included; default: the end of the file.")
    tail: Count | None = Field(None, ge=1, description="Read the last so many lines instead of a range.")
    symbol_context_lines: Count = Field(20, description="Lines shown on either side of the symbol.")
    max_tokens: Count | None = Field(
        None, ge=1, description="Most tokens (characters / 4); 8,000 when no max_bytes is given either."
    )
    max_bytes: Annotated[ByteCount | None, RARE] = Field(
        None, ge=1, description="Most bytes; 196608 at most, and by default."
    )
    max_lines: Annotated[Count | None, RARE] = Field(None, ge=1, description="Most lines.")
    metadata_level: Annotated[Literal["minimal", "standard"], RARE] = Field(
        "standard", description="standard adds mode, total_lines_available and symbol_name."
    )


def path_of(text: str | None, in_base64: str | None = None) -> bytes:
    """Return the path a caller means, given as text or as base64."""
    if in_base64 is None:
        return (text or "").encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode(in_base64, validate=True)
    except ValueError:  # binascii.Error is one, and so is what a text beyond ASCII gets
        raise InvalidParams("file_path_bytes: not base64", field="file_path_bytes") from None


@handler("get_slice", title="Read lines", command="slice file_path start_line end_line")
async def get_slice(call: Call[Projects], params: GetSliceParams) -> SliceResult:
    """Read the lines of a file from start_line to end_line, exactly as they are, up to 192 KiB.

    When truncated, pass the members of continuation.cursor for the rest. file_hash can be given back to write_code as a
    precondition.
    """
    project = await call.host.workspace(call, params.project)
    query = SliceQuery(
        start_line=params.continuation_start_line or params.start_line,
        end_line=params.end_line,
        start_byte=params.continuation_start_byte,
        chunk_index=params.chunk_index,
        with_hash=params.include_hash,
        deadline=call.deadline,
    )
    path = path_of(params.file_path, params.file_path_bytes)
    return await project.in_turn(partial(read_slice, project.editor, path, query))


@handler("read_code", title="Read code", command="read file_path")
async def read_code(call: Call[Projects], params: ReadCodeParams) -> SliceResult:
    """Read a file, a range of it, its last lines or a symbol's definition, within a budget.

    Whole lines come back exactly as they are; a single line over the budget comes in pieces (cut). When truncated, pass
    the members of continuation.cursor for the rest: all pieces together are the file. file_hash can be given back to
    write_code as a precondition.
    """
    _check_target(params)
    project = await call.host.workspace(call, params.project)
    path, start, end = await _target(project, params)
    standard = params.metadata_level == "standard"
    query = SliceQuery(
        start_line=params.continuation_start_line or start,
        end_line=end,
        start_byte=params.continuation_start_byte,
        tail=None if params.continuation_start_line else params.tail,
        max_lines=params.max_lines,
        max_bytes=params.max_bytes,
        max_tokens=_tokens(project, params),
        chunk_index=params.chunk_index,
        with_hash=params.include_hash,
        with_total=standard,
        deadline=call.deadline,
    )
    result = await project.in_turn(partial(read_slice, project.editor, path, query))
    if standard:
        result["mode"] = "slice" if params.symbol_name is None else "symbol"
        if params.symbol_name is not None:
            result["symbol_name"] = params.symbol_name
    return result


def _check_target(params: ReadCodeParams) -> None:
    named = params.file_path is not None or params.file_path_bytes is not None
    going_on = params.continuation_start_line is not None
    if named == (params.symbol_name is not None) and not (named and going_on):
        raise InvalidParams("give exactly one of file_path and symbol_name", field="file_path")
    if params.tail is not None and (params.end_line is not None or params.start_line != 1):
        raise InvalidParams("give either tail or a range of lines", field="tail")


async def _target(project: Project, params: ReadCodeParams) -> tuple[bytes, int, int | None]:
    if params.file_path is not None or params.symbol_name is None:
        return path_of(params.file_path, params.file_path_bytes), params.start_line, params.end_line
    found = await project.find_definition(params.symbol_name)
    if found is None:
        message = f"symbol not found: {params.symbol_name}"
        raise NotFound(message, reason="symbol_not_found", symbol_name=params.symbol_name)
    path, first, last = found
    return path, max(1, first - params.symbol_context_lines), last + params.symbol_context_lines


def _tokens(project: Project, params: ReadCodeParams) -> int | None:
    if params.max_tokens is None and params.max_bytes is None:
        return project.editor.limits.read_tokens
    return params.max_tokens


HANDLERS: tuple[Handler, ...] = (get_slice, read_code)
