"""Changing files: write_code and batch_write_code."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from anyio import CancelScope
from anyio.to_thread import run_sync
from pydantic import Field

from flashgrep.edit.batch import BatchResult, Operation, write_batch
from flashgrep.edit.editor import Project, Projects
from flashgrep.edit.edits import Edit, LineEdit, Precondition, TextEdit
from flashgrep.edit.write import Chunk, WriteRequest, WriteResult, stage_chunk, write_file
from flashgrep.errors import Forbidden, InvalidParams
from flashgrep.handlers.reading import PATH, PATH_BYTES, ProjectParams, path_of
from flashgrep.params import Count, FileText, LineNumber, NameText, PathBase64, PathText
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler

ResultT = TypeVar("ResultT")
MOST_OPERATIONS = 1000
"""The engine's own bound is a setting of it and lower, and its error names it."""


class PreconditionParams(Params):
    """What the caller expects of the file; all of it must hold."""

    expected_file_hash: NameText | None = Field(
        None, description="SHA-256 of the file's bytes, as file_hash of a read."
    )
    expected_start_line_text: Annotated[FileText | None, RARE] = Field(
        None, description="Text of start_line, without its line end."
    )
    expected_end_line_text: Annotated[FileText | None, RARE] = Field(
        None, description="Text of end_line, without its line end."
    )
    expected_absent: bool | None = Field(None, description="true: the file must not exist, and is made.")

    def build(self) -> Precondition:
        """Return this as the engine takes it."""
        return Precondition(
            self.expected_file_hash,
            self.expected_start_line_text,
            self.expected_end_line_text,
            self.expected_absent,
        )


class EditParams(Params):
    """One change of one file: lines by number, or a text by itself."""

    file_path: PathText = Field("", description=PATH)
    file_path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    start_line: LineNumber | None = Field(None, description="First line to replace, from 1.")
    end_line: Count | None = Field(
        None, description="Last line to replace, included; start_line - 1 inserts before start_line."
    )
    replacement: FileText | None = Field(
        None, description="New lines; empty deletes. They get the file's line ends and encoding."
    )
    old_text: FileText | None = Field(
        None, min_length=1, description="Instead of lines: text that occurs exactly once."
    )
    new_text: FileText | None = Field(None, description="What old_text becomes.")
    replace_all: bool = Field(False, description="Replace old_text wherever it occurs.")
    precondition: PreconditionParams = Field(
        default_factory=PreconditionParams, description="What the caller believes of the file."
    )

    def request(self, *, dry_run: bool = False) -> WriteRequest:
        """Return this as the engine takes it, or raise InvalidParams when it is not one change."""
        path = path_of(self.file_path, self.file_path_bytes)
        return WriteRequest(path, self._edit(), self.precondition.build(), dry_run)

    def _edit(self) -> Edit:
        if self.old_text is not None:
            return self._text_edit(self.old_text)
        if self.new_text is not None or self.replace_all:
            raise InvalidParams("new_text and replace_all need old_text", field="old_text")
        if self.replacement is None:
            raise InvalidParams(
                "give replacement with start_line and end_line, or old_text and new_text", field="replacement"
            )
        if self.start_line is None and self.end_line is None and self.precondition.expected_absent:
            return LineEdit(1, 0, self.replacement)
        if self.start_line is None or self.end_line is None:
            missing = "start_line" if self.start_line is None else "end_line"
            raise InvalidParams(f"{missing}: needed with replacement", field=missing)
        return LineEdit(self.start_line, self.end_line, self.replacement)

    def _text_edit(self, old: str) -> TextEdit:
        if self.new_text is None:
            raise InvalidParams("new_text: needed with old_text", field="new_text")
        for name in ("start_line", "end_line", "replacement"):
            if getattr(self, name) is not None:
                raise InvalidParams(f"{name}: not with old_text", field=name)
        return TextEdit(old, self.new_text, self.replace_all)


class WriteCodeParams(EditParams, ProjectParams):
    """Parameters of write_code."""

    continuation_id: Annotated[NameText | None, RARE] = Field(
        None, description="Name of a write sent in chunks; made up when left out."
    )
    chunk_index: Annotated[Count | None, RARE] = Field(None, description="Which chunk of replacement this is, from 0.")
    is_final_chunk: Annotated[bool | None, RARE] = Field(
        None, description="true with the last chunk, which carries the write out."
    )
    dry_run: bool = Field(False, description="Change nothing, and return what would change as a unified diff.")

    def chunk(self) -> Chunk | None:
        """Return which chunk this is, or None for a write in one call."""
        if self.continuation_id is None and self.chunk_index is None and self.is_final_chunk is None:
            return None
        index = self.chunk_index or 0
        if self.continuation_id is None and index > 0:
            raise InvalidParams("continuation_id: needed after the first chunk", field="continuation_id")
        return Chunk(self.continuation_id or secrets.token_hex(8), index, bool(self.is_final_chunk))


@handler("write_code", command="write-code file_path", title="Write code", safety="destructive")
async def write_code(call: Call[Projects], params: WriteCodeParams) -> WriteResult:
    """Replace lines of a file, or a text that occurs once, without touching anything else; or make a new file.

    The file is replaced at once or not at all. Line ends, encoding, byte order mark, mode and the final line end stay
    as they were; U+FFFD that a read showed for bytes that are no text is written as those bytes. A precondition that
    does not hold refuses the write and shows every mismatch. dry_run returns the diff.
    """
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    request, chunk = params.request(dry_run=params.dry_run), params.chunk()
    path: bytes | None
    if chunk is None:
        result, path = await to_the_end(partial(write_file, project.editor, request))
    else:
        result, path = await to_the_end(partial(stage_chunk, project.editor, request, chunk))
    if path is not None and not params.dry_run:
        project.mark_changed([path])
    return result


class OperationParams(EditParams):
    """One operation of a batch."""

    id: NameText = Field(min_length=1, description="The caller's name for this operation, unique in the batch.")


class BatchWriteCodeParams(ProjectParams):
    """Parameters of batch_write_code."""

    operations: list[OperationParams] = Field(
        min_length=1,
        max_length=MOST_OPERATIONS,
        description="The edits; several may be in one file, all in its original line numbers.",
    )
    mode: Annotated[Literal["atomic", "best_effort"], Usage(short="-m")] = Field(
        "atomic", description="atomic: all or none; best_effort: whatever is valid, the rest is reported."
    )
    dry_run: bool = Field(False, description="Check everything, change nothing, return the diff.")


@handler("batch_write_code", title="Write code in several places", safety="destructive")
async def batch_write_code(call: Call[Projects], params: BatchWriteCodeParams) -> BatchResult:
    """Carry out several edits of one or more files, all or none of them, each checked before anything is written.

    Line numbers are those of the files as they are now, in every operation. The answer has a status and a reason for
    each.
    """
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    operations = [Operation(each.id, each.request()) for each in params.operations]
    run = partial(write_batch, project.editor, operations, params.mode, dry_run=params.dry_run)
    result, paths = await to_the_end(run)
    project.mark_changed(paths)
    return result


async def to_the_end(run: Callable[[], ResultT]) -> ResultT:
    """Run in a thread, even if the call is cancelled meanwhile: what was written must still be marked as changed."""
    with CancelScope(shield=True):
        result = await run_sync(run)
    return result  # noqa: RET504 - returned inside, mypy misses a return: a scope may swallow what is raised


def check_may_write(call: Call[Any], project: Project) -> None:
    """Refuse writing where the project or the connection may not."""
    if project.read_only:
        raise Forbidden("the project is read-only", reason="read_only")
    if call.session.may_write:
        return
    if call.session.lacks_token:
        raise Forbidden("writing over TCP needs the token: call auth first", reason="auth_required")
    raise Forbidden("the connection is read-only", reason="read_only")


HANDLERS: tuple[Handler, ...] = (write_code, batch_write_code)
