"""Unsaved text: files that a client has open in an editor, with their text there."""

from collections.abc import Iterator
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.host import Host
from flashgrep.base.errors import InvalidParams, Unavailable
from flashgrep.base.model import path_from_json, path_to_json
from flashgrep.base.registry import (
    RARE,
    Call,
    FileText,
    Handler,
    LineNumber,
    Params,
    PathBase64,
    PathText,
    handler,
)
from flashgrep.files.buffers import Buffer, Edit
from flashgrep.methods.common import (
    PATH,
    PATH_BYTES,
    Encoding,
    FilePlace,
    ProjectParams,
    buffers_of,
)
from flashgrep.methods.text import Style

MOST_EDITS = 1_000
"""Most edits of one call; an editor with more cursors sends the whole text."""


class BufferEdit(Params):
    """A range of a text, excluding its end, and its replacement; without a range, the whole text."""

    start_line: LineNumber | None = Field(
        None, description="First line of the range, from 1."
    )
    start_column: LineNumber | None = Field(None, description="Its column, from 1.")
    end_line: LineNumber | None = Field(None, description="Last line of the range.")
    end_column: LineNumber | None = Field(
        None, description="Column just after its last character."
    )
    text: FileText = Field(description="The new text.")

    def build(self) -> Edit:
        """Return this as an Edit; raises InvalidParams if part of a range is missing."""
        places = (self.start_line, self.start_column, self.end_line, self.end_column)
        if all(place is None for place in places):
            return Edit(None, None, self.text)
        start_line, start_column, end_line, end_column = places
        if (
            start_line is None
            or start_column is None
            or end_line is None
            or end_column is None
        ):
            raise InvalidParams(
                "changes: give all four lines and columns of a range, or none",
                field="changes",
            )
        return Edit((start_line, start_column), (end_line, end_column), self.text)


class BuffersParams(ProjectParams):
    """What happened to a file in the editor."""

    action: Literal["open", "change", "close", "list"] = Field(
        description="open: use this text for a file. change: edit it. close: use the disk again. list: all open files."
    )
    path: PathText = Field("", description=PATH)
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    text: FileText | None = Field(None, description="With open: the whole text.")
    version: int | None = Field(
        None,
        ge=-(2**53),
        le=2**53,
        description="With open and change: the editor's version of the resulting text.",
    )
    base_version: int | None = Field(
        None,
        ge=-(2**53),
        le=2**53,
        description="With change: the version before; default: one less than `version`.",
    )
    changes: list[BufferEdit] = Field(
        default=[],
        max_length=MOST_EDITS,
        description="With change: edits, each to the result of the previous one.",
    )
    position_encoding: Encoding = "utf-32"


class BufferEntry(FilePlace):
    """An open file: its version, lines and bytes; `behind`: an edit was refused, open the file again."""

    version: int
    lines: int
    bytes: int
    behind: bool


class BuffersResult(TypedDict):
    """The opened or changed file, or with list all open files, by absolute path."""

    results: list[BufferEntry]


def render_buffers(result: BuffersResult, style: Style) -> Iterator[str]:
    """Yield each file with its version."""
    for file in result["results"]:
        if file["behind"]:
            behind = ", behind"
        else:
            behind = ""
        size = f"{file['lines']} lines"
        yield f"{style.path(file)} version {file['version']}, {size}{behind}"


@handler(
    "buffers",
    title="Unsaved text",
    command="buffers action path",
    toolset="editors",
    render=render_buffers,
)
async def buffers(call: Call[Host], params: BuffersParams) -> BuffersResult:
    """Set unsaved text of files: answers to this connection are as if it were saved, other connections see the disk.

    The texts are kept in memory until the connection ends. Methods on the files themselves (fs_*, write_code, changes)
    use the disk, and ignore rules apply once saved.
    """
    if call.session.wire == "http":
        raise Unavailable(
            "unsaved text belongs to a connection, and HTTP has none",
            reason="connection_required",
            suggestion="use a Unix socket, TCP or stdio",
        )
    opened = buffers_of(call)
    async with opened.lock:  # calls take the lock in the order in which they came
        if params.action == "list":
            return {"results": [_describe(buffer) for buffer in opened.all()]}
        path = path_from_json(params.path, params.path_bytes)
        name = (params.project, path)
        sync = opened.find(name)
        if sync is None or params.action == "open":
            sync = await run_sync(
                call.host.find_file, call.session, params.project, path
            )
        if params.action == "close":
            opened.close(sync)
            return {"results": []}
        if params.version is None:
            raise InvalidParams(
                f"version: needed to {params.action} a file", field="version"
            )
        if params.action == "open":
            if params.text is None:
                raise InvalidParams("text: needed to open a file", field="text")
            return {
                "results": [
                    _describe(opened.open(name, sync, params.text, params.version))
                ]
            }
        edits = [change.build() for change in params.changes]
        # Most editors count by one; a gap would mean a lost edit.
        if params.base_version is None:
            base = params.version - 1
        else:
            base = params.base_version
        return {
            "results": [
                _describe(
                    opened.change(
                        sync, edits, params.version, base, params.position_encoding
                    )
                )
            ]
        }


HANDLERS: tuple[Handler, ...] = (buffers,)


def _describe(buffer: Buffer) -> BufferEntry:
    place = path_to_json(buffer.path)
    return {
        **place,  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "version": buffer.version,
        "lines": len(buffer.lines),
        "bytes": buffer.size,
        "behind": buffer.is_behind,
    }
