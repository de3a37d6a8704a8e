"""Lines of files: get_slice and read_code read them, write_code and batch_write_code change them."""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar

from anyio import CancelScope
from anyio.to_thread import run_sync
from pydantic import ConfigDict, Field

from flashgrep.catalogue import Catalogue
from flashgrep.edit.batch import BatchResult, Operation, write_batch
from flashgrep.edit.editor import Project, Projects
from flashgrep.edit.edits import HASH_SHOWN, Edit, LineEdit, Precondition, TextEdit
from flashgrep.edit.read import SliceQuery, SliceResult
from flashgrep.edit.write import Chunk, WriteRequest, WriteResult, stage_chunk, write_file
from flashgrep.errors import Forbidden, InvalidParams, NotFound
from flashgrep.handlers.common import (
    CHARS_PER_TOKEN,
    PATH,
    PATH_BYTES,
    ProjectParams,
    Rev,
    open_view,
    resolve_path,
    tell_near,
)
from flashgrep.handlers.text import Style, for_models, span
from flashgrep.model import path_from_json, path_to_text
from flashgrep.params import ByteCount, Count, FileText, LineNumber, NameText, PathBase64, PathText, SymbolName
from flashgrep.registry import NEEDED, RARE, Call, Handler, Params, Usage, handler
from flashgrep.workspace import View

ResultT = TypeVar("ResultT")
MOST_OPERATIONS = 1000
"""The engine's own bound is a setting of it and lower, and its error names it."""
MOST_TARGETS, LEAST_TOKENS = 50, 50
"""What one call reads at most; the tokens that each of them may have though the others have used up all."""
NO_LINE_END = "[no line end at the end of the file]"
NOTHING_WRITTEN = "[dry run: nothing is written]"
PLACE = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:[-:](?P<last>\d{1,9}))?")


class TargetParams(Params):
    """The file that is read or written."""

    path: Annotated[PathText, NEEDED] = Field("", description=PATH)
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)

    def target(self, shared: str = "") -> bytes:
        """Return the path meant, which may be one that several share, or raise InvalidParams if there is none."""
        path = path_from_json(self.path or shared, self.path_bytes)
        if not path:
            raise InvalidParams("path: needed: which file?", field="path")
        return path


class RangeParams(ProjectParams):
    """What both reading methods take."""

    continuation_start_line: LineNumber | None = Field(
        None, description="Line to go on at, from the last answer's cursor; replaces start_line."
    )
    continuation_start_byte: Annotated[ByteCount | None, RARE] = Field(
        None, description="Byte to go on at inside that line, from the last answer's cursor."
    )
    chunk_index: Annotated[Count, RARE] = Field(0, description="Counted by the caller and echoed.")
    include_hash: Annotated[bool | None, RARE] = Field(
        None, description="Whether to hash the file for a later precondition; default: if it is at most 1 MiB."
    )
    rev: Rev = None


class GetSliceParams(TargetParams, RangeParams):
    """Parameters of get_slice."""

    start_line: LineNumber = Field(description="First line, from 1.")
    end_line: Annotated[LineNumber | None, NEEDED] = Field(
        None, description="Last line, included; past the end means the end."
    )
    max_lines: Annotated[Count | None, RARE] = Field(None, ge=1, description="Most lines, instead of a last one.")


class ReadCodeParams(RangeParams):
    """Parameters of read_code."""

    path: PathText | None = Field(None, description=PATH + " With symbol_name: where it is defined.")
    path_bytes: Annotated[PathBase64 | None, RARE] = Field(None, description=PATH_BYTES)
    symbol_name: SymbolName | None = Field(None, description="Symbol whose definition to read.")
    targets: list[NameText] = Field(
        default=[],
        max_length=MOST_TARGETS,
        description="Several at once, each a path, path:10-60 or a symbol's name.",
    )
    start_line: LineNumber = Field(1, description="First line, from 1.")
    end_line: LineNumber | None = Field(None, description="Last line, included; default: the end of the file.")
    tail: Count | None = Field(None, ge=1, description="Read the last so many lines instead of a range.")
    symbol_context_lines: Annotated[Count, RARE] = Field(
        20, description="Lines shown on either side of the symbol; none by default where the answer is text."
    )
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


def describe_text(result: Mapping[str, Any]) -> str:
    """Return the short hash of a file that was read, and what is odd of its text."""
    facts = (
        f"#{result['file_hash'][:HASH_SHOWN]}" if result["file_hash"] else "",
        "" if result["encoding"] == "utf-8" else result["encoding"],
        "byte order mark" if result["bom"] else "",
        {"crlf": "CRLF", "mixed": "mixed line ends", "cr": "CR"}.get(result["line_ending"], ""),
        f"{result['invalid_bytes']} bytes are no text" if result.get("invalid_bytes") else "",
    )
    return " ".join(filter(None, facts))


def render_slice(result: SliceResult, style: Style) -> Iterator[str]:
    """Yield the lines exactly as they are, for a model below a header: which they are, and what is odd of them."""
    text = style.text(result["content"])
    if style.is_person:
        yield text
        return
    count = f"of {result['total_lines_available']}" if result.get("total_lines_available") else ""
    column = result.get("start_byte_column", 1)
    start = f"from byte {column} of the line" if column > 1 else ""
    yield " ".join(filter(None, [f"{style.path(result)}:{span(result)}", count, describe_text(result), start]))
    yield text
    if text and not text.endswith("\n") and not result["truncated"]:
        yield NO_LINE_END
    if others := result.get("also_defined"):
        yield f"[also defined at {', '.join(others)}]"
    for one in result.get("more", ()):
        yield from render_slice(one, style)
        if one["truncated"]:
            yield f"[goes on at line {one['continuation_start_line']}]"


@handler("get_slice", title="Read lines", command="slice path start_line end_line", render=render_slice)
async def get_slice(call: Call[Catalogue], params: GetSliceParams) -> SliceResult:
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


@handler("read_code", title="Read code", command="read path", render=render_slice)
async def read_code(call: Call[Catalogue], params: ReadCodeParams) -> SliceResult:
    """Read a file, a range of it, its last lines or a symbol's definition, within a budget.

    Use it to read definitions by their names, or a file you need all of; get_slice for lines you know. `targets` reads
    several at once. A longer text comes in pieces: pass what the answer names for the rest.
    """
    view = await open_view(call, params)
    if not params.targets:
        return await _read_one(call, view, params)
    if params.path or params.path_bytes or params.symbol_name:
        raise InvalidParams("targets: give either these or one path or symbol_name", field="targets")
    await view.refresh()
    left = params.max_tokens or view.editor.limits.read_tokens
    found: list[SliceResult] = []
    for target in params.targets:
        asked: dict[str, Any] = {"targets": [], "max_tokens": max(left, LEAST_TOKENS)}
        if place := PLACE.fullmatch(target):
            first = int(place["first"])
            asked |= {"path": place["path"], "start_line": first, "end_line": int(place["last"] or first)}
        else:
            try:
                await view.find_definition(target)
                asked |= {"symbol_name": target, "symbol_context_lines": 0}
            except NotFound:
                asked["path"] = target
        found.append(await _read_one(call, view, params.model_copy(update=asked)))
        left -= len(found[-1]["content"]) // CHARS_PER_TOKEN
    found[0]["more"] = found[1:]
    return found[0]


async def _read_one(call: Call[Catalogue], view: View, params: ReadCodeParams) -> SliceResult:
    """Read what one path or symbol stands for."""
    is_named = params.path is not None or params.path_bytes is not None
    if not is_named and params.symbol_name is None:
        raise InvalidParams("path: needed, or symbol_name", field="path")
    if params.tail is not None and (params.end_line is not None or params.start_line != 1):
        raise InvalidParams("give either tail or a range of lines", field="tail")
    path, others = path_from_json(params.path, params.path_bytes), list[str]()
    start, end = params.start_line, params.end_line
    if params.symbol_name is not None and not (is_named and params.continuation_start_line):
        await view.refresh()
        below = await resolve_path(view, params.path) if params.path else path
        path, first, last, others = await view.find_definition(params.symbol_name, below)
        # A model pays for what it reads, and asked for the symbol.
        usual = call.as_text and "symbol_context_lines" not in params.model_fields_set
        around = 0 if usual else params.symbol_context_lines
        start, end = max(1, first - around), last + around
    # A budget in bytes alone is not narrowed by the usual one in tokens.
    max_tokens = params.max_tokens
    if max_tokens is None and params.max_bytes is None:
        max_tokens = view.editor.limits.read_tokens
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
    result = await read(view, path, query)
    if others:
        result["also_defined"] = others
    if is_standard:
        result["mode"] = "slice" if params.symbol_name is None else "symbol"
        if params.symbol_name is not None:
            result["symbol_name"] = params.symbol_name
    return result


class PreconditionParams(Params):
    """What the caller expects of the file; all of it must hold."""

    expected_file_hash: NameText | None = Field(
        None, description="The file's hash as a read tells it: 8 digits or more of its SHA-256."
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


class EditParams(TargetParams):
    """One change of one file: lines by number, or a text by itself."""

    start_line: LineNumber | None = Field(None, description="First line to replace, from 1.")
    end_line: Count | None = Field(
        None, description="Last line to replace, included; start_line - 1 inserts before start_line."
    )
    replacement: FileText | None = Field(
        None, description="New lines; empty deletes. They get the file's line ends and encoding. Alone: a new file."
    )
    old_text: FileText | None = Field(
        None, min_length=1, description="Instead of lines: text that occurs exactly once."
    )
    new_text: FileText | None = Field(None, description="What old_text becomes.")
    replace_all: bool = Field(False, description="Replace old_text wherever it occurs.")
    precondition: PreconditionParams = Field(
        default_factory=PreconditionParams, description="What the caller believes of the file."
    )

    def request(self, shared: str = "", *, dry_run: bool = False) -> WriteRequest:
        """Return this as the engine takes it, or raise InvalidParams when it is not one change."""
        expected = self.precondition.build()
        if self.makes_file:  # never over a file that is there
            expected = replace(expected, absent=True)
        return WriteRequest(self.target(shared), self._edit(), expected, dry_run)

    @property
    def makes_file(self) -> bool:
        """Whether this is the whole text of a new file: there are no lines it could replace."""
        return self.replacement is not None and self.old_text is None and self.start_line is self.end_line is None

    def _edit(self) -> Edit:
        if self.old_text is not None:
            if self.new_text is None:
                raise InvalidParams("new_text: needed with old_text", field="new_text")
            for name in ("start_line", "end_line", "replacement"):
                if getattr(self, name) is not None:
                    raise InvalidParams(f"{name}: not with old_text", field=name)
            return TextEdit(self.old_text, self.new_text, self.replace_all)
        if self.new_text is not None or self.replace_all:
            raise InvalidParams("new_text and replace_all need old_text", field="old_text")
        if self.replacement is None:
            raise InvalidParams(
                "give replacement with start_line and end_line, or old_text and new_text", field="replacement"
            )
        if self.makes_file:
            return LineEdit(1, 0, self.replacement)
        if self.start_line is None or self.end_line is None:
            missing = "start_line" if self.start_line is None else "end_line"
            raise InvalidParams(f"{missing}: needed with replacement", field=missing)
        return LineEdit(self.start_line, self.end_line, self.replacement)


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


def render_write(result: WriteResult) -> Iterator[str]:
    """Yield what was written and the file's new hash, or in a dry run the difference."""
    if result.get("dry_run"):
        yield from _render_diff(result.get("diff", ""), is_cut=result.get("diff_truncated", False))
        return
    continuation = result.get("continuation")
    if continuation is not None and continuation["cursor"] is not None:
        cursor = " ".join(f"{name}={value}" for name, value in continuation["cursor"].items())
        yield f"[received {result.get('received_bytes', 0)} bytes, nothing is written yet; go on with {cursor}]"
        return
    places = result.get("occurrences", 1)
    did = "made" if result.get("created") else f"{places} places changed" if places > 1 else "changed"
    after = result.get("file_hash_after") or ""
    lines = "" if places > 1 else f":{result.get('start_line')}-{result.get('end_line')}"
    yield f"{result['file_path']}{lines} {did}, {result.get('new_line_count', 0)} lines now #{after[:HASH_SHOWN]}"


def render_batch(result: BatchResult) -> Iterator[str]:
    """Yield what became of each operation, with its file's new hash; in a dry run the difference.

    Of one edit of several files it is how many places were changed, as the caller has named the files.
    """
    done = [one for one in result["results"] if one["status"] == "applied" and not (one["message"] or one.get("data"))]
    if len(done) > 1:  # the caller has named their files
        told = []
        for name, same in groupby(done, key=itemgetter("id")):
            files = list(same)
            places = f"{sum(one.get('occurrences', 1) for one in files)} places in {len(files)} files"
            told.append(
                f"{name} {places if len(files) > 1 else '#' + (files[0]['file_hash_after'] or '')[:HASH_SHOWN]}"
            )
        yield f"applied: {', '.join(told)}"
    for one in result["results"]:
        if len(done) > 1 and one in done:
            continue
        if one["status"] == "skipped" and one["reason_code"] == "dry_run":
            continue
        said = " ".join(filter(None, [one["status"], one["reason_code"], one["message"]]))
        after = f" #{one['file_hash_after'][:HASH_SHOWN]}" if one["file_hash_after"] else ""
        yield f"{one['id']}: {one['file_path']} {said}{after}"
        if one.get("data"):
            yield json.dumps(one["data"], ensure_ascii=False)
    if "diff" in result:
        yield from _render_diff(result["diff"], is_cut=result.get("diff_truncated", False))


def _render_diff(diff: str, *, is_cut: bool) -> Iterator[str]:
    yield diff.removesuffix("\n") or "no difference"
    yield f"[dry run: nothing is written{'; the difference is cut' if is_cut else ''}]"


@handler(
    "write_code",
    command="write-code path",
    title="Write code",
    safety="destructive",
    render=for_models(render_write),
)
async def write_code(call: Call[Projects], params: WriteCodeParams) -> WriteResult:
    """Replace lines of a file, or a text that occurs once, without touching anything else; or make a new file.

    Use batch_write_code for several places. Line ends, encoding and mode stay as they were.
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

    model_config = ConfigDict(json_schema_extra={"like": "write_code"})
    id: Annotated[NameText | None, RARE] = Field(
        None, min_length=1, description="The caller's name for this operation, unique in the batch; else its number."
    )
    path: PathText = Field("", description=PATH)
    paths: list[PathText] = Field(
        default=[], max_length=MOST_OPERATIONS, description="Instead of path: several files, each changed in this way."
    )

    def build(self, name: str, shared: str) -> Iterator[Operation]:
        """Yield this for each of its files, or raise InvalidParams when it is not one change."""
        if not self.paths:
            yield Operation(name, self.request(shared))
            return
        if self.path or self.path_bytes:
            raise InvalidParams("paths: give either these or one path", field="paths")
        request = self.request(self.paths[0])
        for path in dict.fromkeys(self.paths):
            yield Operation(name, replace(request, path=path_from_json(path)))


class BatchWriteCodeParams(ProjectParams):
    """Parameters of batch_write_code."""

    path: Annotated[PathText, RARE] = Field("", description="File of the operations that name none.")

    operations: list[OperationParams] = Field(
        min_length=1,
        max_length=MOST_OPERATIONS,
        description="The edits: an id of yours, and arguments of write_code; `paths`: one edit of several files.",
    )
    mode: Annotated[Literal["atomic", "best_effort"], Usage(short="-m")] = Field(
        "atomic", description="atomic: all or none; best_effort: whatever is valid, the rest is reported."
    )
    dry_run: bool = Field(False, description="Check everything, change nothing, return the diff.")


@handler(
    "batch_write_code", title="Write code in several places", safety="destructive", render=for_models(render_batch)
)
async def batch_write_code(call: Call[Projects], params: BatchWriteCodeParams) -> BatchResult:
    """Carry out several edits of one or more files, all or none of them, each checked before anything is written.

    Line numbers are those of the files as they are now.
    """
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    edits = enumerate(params.operations, 1)
    every = chain.from_iterable(each.build(each.id or str(at), params.path) for at, each in edits)
    operations = list(islice(every, MOST_OPERATIONS + 1))  # one too many is refused
    run = partial(write_batch, project.editor, operations, params.mode, dry_run=params.dry_run)
    result, paths = await to_the_end(run)
    project.mark_changed(paths)
    return result


HANDLERS: tuple[Handler, ...] = (get_slice, read_code, write_code, batch_write_code)


async def read(view: View, path: bytes, query: SliceQuery) -> SliceResult:
    """Read lines; where there is no such file, the error names near ones."""
    try:
        return await view.read_slice(path, query)
    except NotFound as error:
        raise await tell_near(view, error, path_to_text(path)) from None


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
