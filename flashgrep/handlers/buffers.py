"""Unsaved text: the files that a client has open in an editor, as they are there."""

from collections.abc import Iterator
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import InvalidParams, Unavailable
from flashgrep.handlers.common import PATH, PATH_BYTES, Encoding, FilePlace, ProjectParams, buffers_of
from flashgrep.handlers.text import Style
from flashgrep.ingest.buffers import Buffer, Edit
from flashgrep.model import path_from_json, path_to_json
from flashgrep.registry import RARE, Call, FileText, Handler, LineNumber, Params, PathBase64, PathText, handler

MOST_EDITS = 1_000
"""Edits of one call: an editor with so many cursors sends the whole text."""


class BufferEdit(Params):
    """A stretch of a text, from its start to just before its end, and what takes its place; without places: all."""

    start_line: LineNumber | None = Field(None, description="Line where the stretch begins, from 1.")
    start_column: LineNumber | None = Field(None, description="Column there, from 1.")
    end_line: LineNumber | None = Field(None, description="Line where it ends.")
    end_column: LineNumber | None = Field(None, description="Column just behind its last character.")
    text: FileText = Field(description="The new text.")

    def build(self) -> Edit:
        """Return this as buffers take it; raises InvalidParams where a part of a place is missing."""
        places = (self.start_line, self.start_column, self.end_line, self.end_column)
        if all(one is None for one in places):
            return Edit(None, None, self.text)
        start_line, start_column, end_line, end_column = places
        if start_line is None or start_column is None or end_line is None or end_column is None:
            raise InvalidParams("changes: give all four lines and columns of a range, or none", field="changes")
        return Edit((start_line, start_column), (end_line, end_column), self.text)


class BuffersParams(ProjectParams):
    """What became of which file in the editor."""

    action: Literal["open", "change", "close", "list"] = Field(
        description="open: take a file's text. change: edit it. close: the disk counts again. list: all that are open."
    )
    path: PathText = Field("", description=PATH)
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    text: FileText | None = Field(None, description="With open: the whole text.")
    version: int | None = Field(
        None, ge=-(2**53), le=2**53, description="With open and change: the editor's number of the text as it is then."
    )
    base_version: int | None = Field(
        None, ge=-(2**53), le=2**53, description="With change: the number before; by default one less than `version`."
    )
    changes: list[BufferEdit] = Field(
        default=[], max_length=MOST_EDITS, description="With change: edits, each in the text that the one before left."
    )
    position_encoding: Encoding = "utf-32"


class BufferShown(FilePlace):
    """A file that is open: the text's version, lines and bytes; `behind`: an edit was refused, open it again."""

    version: int
    lines: int
    bytes: int
    behind: bool


class BuffersResult(TypedDict):
    """The file that was opened or changed, or with list all that are open, by absolute path."""

    results: list[BufferShown]


def render_buffers(result: BuffersResult, style: Style) -> Iterator[str]:
    """Yield each file with its version."""
    for one in result["results"]:
        yield f"{style.path(one)} version {one['version']}, {one['lines']} lines{', behind' if one['behind'] else ''}"


@handler("buffers", title="Unsaved text", command="buffers action path", toolset="editors", render=render_buffers)
async def buffers(call: Call[Catalogue], params: BuffersParams) -> BuffersResult:
    """Tell how files are in an editor: every answer to this connection is as if they were saved, others see the disk.

    The texts are kept in memory, and gone with the connection. What reads or writes files themselves (fs_*, write_code,
    changes) is about the disk, and ignore rules hold from their save on.
    """
    if call.session.wire == "http":
        raise Unavailable(
            "unsaved text belongs to a connection, and HTTP has none",
            reason="connection_required",
            suggestion="use a Unix socket, TCP or stdio",
        )
    opened = buffers_of(call)
    async with opened.lock:  # held in the order in which calls came
        if params.action == "list":
            return {"results": [_describe(buffer) for buffer in opened.all()]}
        path = path_from_json(params.path, params.path_bytes)
        name = (params.project, path)
        found = opened.find(name)
        if found is None or params.action == "open":
            found = await run_sync(call.host.find_file, call.session, params.project, path)
        if params.action == "close":
            opened.close(found)
            return {"results": []}
        if params.version is None:
            raise InvalidParams(f"version: needed to {params.action} a file", field="version")
        if params.action == "open":
            if params.text is None:
                raise InvalidParams("text: needed to open a file", field="text")
            return {"results": [_describe(opened.open(name, found, params.text, params.version))]}
        edits = [change.build() for change in params.changes]
        # Most editors count by one; a gap would mean an edit that did not arrive.
        base = params.version - 1 if params.base_version is None else params.base_version
        return {"results": [_describe(opened.change(found, edits, params.version, base, params.position_encoding))]}


HANDLERS: tuple[Handler, ...] = (buffers,)


def _describe(buffer: Buffer) -> BufferShown:
    place = path_to_json(buffer.path)
    return {
        **place,  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "version": buffer.version,
        "lines": len(buffer.lines),
        "bytes": buffer.size,
        "behind": buffer.is_behind,
    }
