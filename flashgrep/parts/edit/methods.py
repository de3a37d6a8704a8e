"""Writing: write_code and batch_write_code change lines of files, or create files."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Annotated, Any, Literal, Protocol, TypeVar

from anyio import CancelScope
from anyio.to_thread import run_sync
from pydantic import ConfigDict, Field

from flashgrep.api.searchers import Searchers
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.base.model import path_from_json, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    Count,
    FileText,
    Handler,
    LineNumber,
    NameText,
    Params,
    PathText,
    Usage,
    handler,
)
from flashgrep.files.editor import Project, Projects
from flashgrep.files.system import HASH_SHOWN
from flashgrep.methods.common import PATH, ProjectParams, find_near, tell_near
from flashgrep.methods.reading import TargetParams
from flashgrep.methods.text import Style, render_details
from flashgrep.parts.edit.batch import (
    BatchResult,
    Operation,
    OperationResult,
    write_batch,
)
from flashgrep.parts.edit.edits import Edit, LineEdit, Precondition, TextEdit
from flashgrep.parts.edit.syntax_check import (
    SyntaxCheck,
    SyntaxReport,
    describe_errors,
)
from flashgrep.parts.edit.write import (
    Chunk,
    WriteRequest,
    WriteResult,
    stage_chunk,
    write_file,
)

ResultT = TypeVar("ResultT")


class Host(Projects, Protocol):
    """Finds projects, and answers what parts know of their texts."""

    @property
    def searchers(self) -> Searchers:
        """The questions that parts answer."""


MOST_OPERATIONS = 1000
"""The engine has a lower limit of its own, a setting, and its error names that."""
MOST_NEAR = 3
"""Most operations on a missing file for which files near it are looked for."""
MOST_HASHES = 50
"""Most files of a batch whose new hashes are shown."""
NOTHING_WRITTEN = "dry run: nothing is written"


class PreconditionParams(Params):
    """What the caller expects of the file; all must hold."""

    expected_file_hash: NameText | None = Field(
        None,
        description="The file's hash from a read: 8 or more digits of its SHA-256.",
    )
    expected_start_line_text: Annotated[FileText | None, RARE] = Field(
        None, description="Text of start_line, without its line end."
    )
    expected_end_line_text: Annotated[FileText | None, RARE] = Field(
        None, description="Text of end_line, without its line end."
    )
    expected_absent: bool | None = Field(
        None, description="true: the file must not exist, and is created."
    )

    def build(self) -> Precondition:
        """Return this in the engine's form."""
        return Precondition(
            self.expected_file_hash,
            self.expected_start_line_text,
            self.expected_end_line_text,
            self.expected_absent,
        )


class EditParams(TargetParams):
    """One change of one file: lines by number, or a text to replace."""

    start_line: LineNumber | None = Field(
        None, description="First line to replace, from 1."
    )
    end_line: Count | None = Field(
        None,
        description="Last line to replace; start_line - 1 inserts before start_line.",
    )
    start_column: Annotated[LineNumber | None, RARE] = Field(
        None,
        description="With end_column: only the characters from it, from 1, in start_line.",
    )
    end_column: Annotated[LineNumber | None, RARE] = Field(
        None, description="To before this one, in end_line."
    )
    replacement: FileText | None = Field(
        None,
        description="New lines; empty deletes. Alone: a new file.",
    )
    old_text: FileText | None = Field(
        None,
        min_length=1,
        description="Instead of lines: a text that occurs once.",
    )
    new_text: FileText | None = Field(None, description="What old_text becomes.")
    replace_all: bool = Field(
        False, description="Replace every occurrence of old_text."
    )
    expected_file_hash: NameText | None = Field(
        None, description="The #hash of a read: nothing is written if the file differs."
    )
    precondition: Annotated[PreconditionParams, RARE] = Field(
        default_factory=PreconditionParams,
        description="What the file is expected to be.",
    )

    def request(self, shared: str = "", *, dry_run: bool = False) -> WriteRequest:
        """Return this in the engine's form, or raise InvalidParams if it is not one change."""
        expected = self.precondition.build()
        if expected.file_hash is None:
            expected = replace(expected, file_hash=self.expected_file_hash)
        if self.makes_file:  # never over an existing file
            expected = replace(expected, absent=True)
        return WriteRequest(self.target(shared), self._edit(), expected, dry_run)

    @property
    def makes_file(self) -> bool:
        """Whether this is the whole text of a new file: it names nothing to replace."""
        return (
            self.replacement is not None
            and self.old_text is None
            and self.start_line is self.end_line is None
        )

    def _edit(self) -> Edit:
        if self.old_text is not None:
            if self.new_text is None:
                raise InvalidParams("new_text: needed with old_text", field="new_text")
            for name in ("start_line", "end_line", "replacement"):
                if getattr(self, name) is not None:
                    raise InvalidParams(f"{name}: not with old_text", field=name)
            return TextEdit(self.old_text, self.new_text, self.replace_all)
        if self.new_text is not None or self.replace_all:
            raise InvalidParams(
                "new_text and replace_all need old_text", field="old_text"
            )
        if self.replacement is None:
            raise InvalidParams(
                "give replacement with start_line and end_line, or old_text and new_text",
                field="replacement",
            )
        if self.makes_file:
            return LineEdit(1, 0, self.replacement)
        if self.start_line is None or self.end_line is None:
            if self.start_line is None:
                missing = "start_line"
            else:
                missing = "end_line"
            raise InvalidParams(f"{missing}: needed with replacement", field=missing)
        return LineEdit(
            self.start_line, self.end_line, self.replacement, self._columns()
        )

    def _columns(self) -> tuple[int, int] | None:
        if self.start_column is None and self.end_column is None:
            return None
        if self.start_column is None or self.end_column is None:
            raise InvalidParams(
                "start_column and end_column: only together", field="end_column"
            )
        return self.start_column, self.end_column


class WriteCodeParams(EditParams, ProjectParams):
    """Parameters of write_code."""

    continuation_id: Annotated[NameText | None, RARE] = Field(
        None, description="Name of a write sent in chunks; generated if left out."
    )
    chunk_index: Annotated[Count | None, RARE] = Field(
        None, description="Index of this chunk of replacement, from 0."
    )
    is_final_chunk: Annotated[bool | None, RARE] = Field(
        None, description="true for the last chunk, which performs the write."
    )
    dry_run: bool = Field(
        False, description="Change nothing; return a unified diff of what would change."
    )

    def chunk(self) -> Chunk | None:
        """Return which chunk this is, or None for a write in one call."""
        if (
            self.continuation_id is None
            and self.chunk_index is None
            and self.is_final_chunk is None
        ):
            return None
        index = self.chunk_index or 0
        if self.continuation_id is None and index > 0:
            raise InvalidParams(
                "continuation_id: needed after the first chunk", field="continuation_id"
            )
        return Chunk(
            self.continuation_id or secrets.token_hex(8),
            index,
            bool(self.is_final_chunk),
        )


def render_write(result: WriteResult, style: Style) -> Iterator[str]:
    """Yield what was written and the file's new hash, or in a dry run the diff."""
    if result.get("dry_run"):
        yield from _render_diff(
            result.get("diff", ""), style, is_cut=result.get("diff_truncated", False)
        )
        return
    continuation = result.get("continuation")
    if continuation is not None and continuation["cursor"] is not None:
        cursor = " ".join(
            f"{name}={value}" for name, value in continuation["cursor"].items()
        )
        yield style.note(
            f"received {result.get('received_bytes', 0)} bytes, nothing is written yet; continue with {cursor}"
        )
        return
    places = result.get("occurrences", 1)
    did = (
        "made"
        if result.get("created")
        else f"{places} places changed"
        if places > 1
        else "changed"
    )
    after = result.get("file_hash_after") or ""
    if places > 1 or result.get("created"):
        lines = ""
    else:
        lines = f":{result.get('start_line')}-{result.get('end_line')}"
    count = result.get("new_line_count", 0)
    noun = "line" if count == 1 else "lines"
    state = f"{count} {noun} now #{after[:HASH_SHOWN]}"
    yield f"{style.path({**result})}{lines} {did}, {state}"
    yield from describe_errors(result)


def _is_plain(outcome: OperationResult) -> bool:
    """Return whether an operation was applied and there is no more to say of it."""
    return outcome["status"] == "applied" and not (
        outcome["message"] or outcome.get("data")
    )


def _render_successes(
    applied: Sequence[OperationResult], style: Style
) -> Iterator[str]:
    parts = []
    # The next guarded edit needs the hashes, and reading again would cost a call.
    hashes: dict[str, str] = {}
    for name, group in groupby(applied, key=itemgetter("id")):
        files = list(group)
        digests = [(file["file_hash_after"] or "")[:HASH_SHOWN] for file in files]
        if len(files) == 1:
            parts.append(f"{name} #{digests[0]}")
            continue
        count = sum(file.get("occurrences", 1) for file in files)
        parts.append(f"{name} {count} places in {len(files)} files")
        for file, digest in zip(files, digests, strict=True):
            hashes[style.path({**file})] = digest
    yield f"applied: {', '.join(parts)}"
    if hashes:
        names = _shorten_paths([*hashes], style)
        shown = [
            f"{name} #{digest}"
            for name, digest in zip(names, hashes.values(), strict=True)
        ]
        yield ", ".join(shown[:MOST_HASHES])
    if len(hashes) > MOST_HASHES:
        yield style.note(f"{len(hashes) - MOST_HASHES} more files")


def _shorten_paths(paths: Sequence[str], style: Style) -> list[str]:
    """Return the names of a batch's files, or their paths: the caller, who knows the paths, can tell them apart."""
    counts = Counter(path.rpartition("/")[2] for path in paths)
    names: list[str] = []
    for path in paths:
        name = path.rpartition("/")[2]
        # An odd path is in quotes, or has its bytes behind it.
        is_plain = name[-1:] not in {'"', ")"}
        if counts[name] == 1 and is_plain and not style.is_person:
            names.append(name)
        else:
            names.append(path)
    return names


def render_batch(result: BatchResult, style: Style) -> Iterator[str]:
    """Yield the outcome of each operation, with its file's new hash; in a dry run the diff.

    For one edit of several files, only the number of places changed: the caller named the files.
    """
    applied = list(filter(_is_plain, result["results"]))
    if len(applied) > 1:  # the caller has named their files
        yield from _render_successes(applied, style)
    for outcome in result["results"]:
        if len(applied) > 1 and outcome in applied:
            continue
        if (outcome["status"], outcome["reason_code"]) == ("skipped", "dry_run"):
            continue
        words = [outcome["status"], outcome["reason_code"], outcome["message"]]
        message = " ".join(filter(None, words))
        after = ""
        if outcome["file_hash_after"]:
            after = f" #{outcome['file_hash_after'][:HASH_SHOWN]}"
        yield f"{outcome['id']}: {style.path({**outcome})} {message}{after}"
        details = dict(outcome.get("data", {}))
        details.pop("file_path", None)  # the line above has it
        yield from render_details(message, details)
    yield from describe_errors(result)
    if "diff" in result:
        yield from _render_diff(
            result["diff"], style, is_cut=result.get("diff_truncated", False)
        )


def _render_diff(diff: str, style: Style, *, is_cut: bool) -> Iterator[str]:
    yield style.text(diff.removesuffix("\n")) or "no difference"
    note = NOTHING_WRITTEN
    if is_cut:
        note += "; the difference is cut"
    yield style.note(note)


@handler(
    "write_code",
    command="write-code path",
    title="Write code",
    listing="by_default",
    safety="destructive",
    render=render_write,
)
async def write_code(call: Call[Host], params: WriteCodeParams) -> WriteResult:
    """Replace lines of a file, or a text that occurs once, without touching anything else; or create a file.

    Use batch_write_code for several places. Line ends, encoding and mode stay as they were.
    """
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    request, chunk = params.request(dry_run=params.dry_run), params.chunk()
    path: bytes | None
    check = SyntaxCheck()
    write: Callable[[], tuple[WriteResult, bytes | None]]
    if chunk is None:
        write = partial(write_file, project.editor, request, check=check)
    else:
        write = partial(stage_chunk, project.editor, request, chunk, check)
    try:
        result, path = await to_the_end(write)
    except NotFound as error:
        missing = path_to_text(request.path)
        raise await tell_near(project.current(), error, missing) from None
    if path is not None and not params.dry_run:
        # Before the answer is sent: the caller's next question must see the new text
        # even before its watch event.
        project.note_changes([path])
    await report_new_errors(result, call.host.searchers, check)
    return result


class OperationParams(EditParams):
    """One operation of a batch."""

    model_config = ConfigDict(json_schema_extra={"like": "write_code"})
    id: Annotated[NameText | None, RARE] = Field(
        None,
        min_length=1,
        description="The caller's name for this operation, unique in the batch; default: number.",
    )
    path: PathText = Field("", description=PATH)
    paths: list[PathText] = Field(
        default=[],
        max_length=MOST_OPERATIONS,
        description="Instead of path: several files, all changed the same way.",
    )

    def build(self, name: str, shared: str) -> Iterator[Operation]:
        """Yield this for each of its files, or raise InvalidParams when it is not one change."""
        if not self.paths:
            yield Operation(name, self.request(shared))
            return
        if self.path or self.path_bytes:
            raise InvalidParams("give either paths or one path", field="paths")
        request = self.request(self.paths[0])
        for path in dict.fromkeys(self.paths):
            yield Operation(name, replace(request, path=path_from_json(path)))


class BatchWriteCodeParams(ProjectParams):
    """Parameters of batch_write_code."""

    path: Annotated[PathText, RARE] = Field(
        "", description="File of operations that name none."
    )

    operations: list[OperationParams] = Field(
        min_length=1,
        max_length=MOST_OPERATIONS,
        description="The edits, each as for write_code; `paths`: one edit of several files.",
    )
    mode: Annotated[Literal["atomic", "best_effort"], Usage(short="-m", rare=True)] = (
        Field(
            "atomic",
            description="best_effort: every valid edit, the others are reported.",
        )
    )
    dry_run: bool = Field(
        False, description="Check everything, change nothing, return the diff."
    )


@handler(
    "batch_write_code",
    title="Write code in several places",
    listing="by_default",
    safety="destructive",
    render=render_batch,
)
async def batch_write_code(
    call: Call[Host], params: BatchWriteCodeParams
) -> BatchResult:
    """Apply several edits to one or more files, all or none, each checked before anything is written.

    Line numbers refer to the files as they are now.
    """
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    edits = enumerate(params.operations, 1)
    every = chain.from_iterable(
        operation_params.build(operation_params.id or str(at), params.path)
        for at, operation_params in edits
    )
    # `paths` multiplies operations: 1,000 with 1,000 files each would be a million
    # before the engine could refuse.
    operations = list(
        islice(every, MOST_OPERATIONS + 1)
    )  # one too many, which the engine refuses
    check = SyntaxCheck()
    run = partial(
        write_batch,
        project.editor,
        operations,
        params.mode,
        dry_run=params.dry_run,
        check=check,
    )
    result, paths = await to_the_end(run)
    project.note_changes(paths)
    await _tell_near_files(project, result)
    await report_new_errors(result, call.host.searchers, check)
    return result


async def _tell_near_files(project: Project, result: BatchResult) -> None:
    """Add to the first operations on a missing file which files are near it."""
    missing = [
        outcome
        for outcome in result["results"]
        if outcome["reason_code"] == "file_not_found"
    ]
    for outcome in missing[:MOST_NEAR]:
        near = await find_near(project.current(), outcome["file_path"])
        if near:
            outcome.setdefault("data", {})["near"] = near
            outcome["message"] = f"{outcome['message']}; near: {', '.join(near)}"


HANDLERS: tuple[Handler, ...] = (write_code, batch_write_code)


async def report_new_errors(
    result: SyntaxReport, searchers: Searchers, check: SyntaxCheck
) -> None:
    """Add to a result which of the files that were written no longer parse."""
    find_errors = searchers.syntax_errors
    if find_errors is None or not check.written:
        return
    report = await run_sync(check.run, find_errors)
    result.update(report)


async def to_the_end(run: Callable[[], ResultT]) -> ResultT:
    """Run in a thread to completion, even if the call is cancelled: what was written must be marked as changed."""
    with CancelScope(shield=True):
        result = await run_sync(run)
    return result  # noqa: RET504 - returned inside, mypy misses a return: a scope may swallow what is raised


def check_may_write(call: Call[Any], project: Project) -> None:
    """Refuse to write if the project or the connection is read-only."""
    if project.read_only:
        raise Forbidden("the project is read-only", reason="read_only")
    if call.session.may_write:
        return
    if call.session.lacks_token:
        raise Forbidden(
            "writing over TCP needs the token: call auth first", reason="auth_required"
        )
    raise Forbidden("the connection is read-only", reason="read_only")
