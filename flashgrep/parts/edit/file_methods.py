"""Files and folders of a project: the fs_* methods."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, NotRequired, ParamSpec, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.base.errors import FlashgrepError, InvalidParams
from flashgrep.base.model import path_from_json
from flashgrep.base.registry import (
    RARE,
    Call,
    Count,
    FileText,
    Handler,
    NameText,
    PathBase64,
    PathText,
    Usage,
    handler,
)
from flashgrep.files.editor import Project, Projects
from flashgrep.files.encoding import (
    Encoding,
    LineEnding,
    count_lone,
    detect_line_ending,
)
from flashgrep.files.system import digest, format_path
from flashgrep.methods.common import PATH, PATH_BYTES, ProjectParams
from flashgrep.methods.reading import NO_LINE_END, describe_text
from flashgrep.methods.text import FOR_MODEL, Note, Style, format_time
from flashgrep.parts.edit import files, transfer
from flashgrep.parts.edit.files import (
    FileEntry,
    ListQuery,
    WriteOptions,
    list_folder,
    stat_entry,
)
from flashgrep.parts.edit.methods import NOTHING_WRITTEN, check_may_write, to_the_end

ResultT = TypeVar("ResultT")
RunP = ParamSpec("RunP")
DRY_RUN = "Change nothing; return what would be done."
OVERWRITE = "Replace what is there."
PARENTS = "Create missing parent folders."


class FsParams(ProjectParams):
    """Parameters of every method on one path."""

    path: PathText = Field("", description=PATH)
    path_bytes: PathBase64 | None = Field(None, description=PATH_BYTES)

    def target(self) -> bytes:
        """Return the path; raises InvalidParams if there is none."""
        path = path_from_json(self.path, self.path_bytes)
        if not path:
            raise InvalidParams("path: needed: which file or folder?", field="path")
        return path


class FsCreateParams(FsParams):
    """Parameters of fs_create."""

    dir: bool = Field(False, description="Make a folder instead of a file.")
    parents: bool = Field(False, description=PARENTS)
    overwrite: bool = Field(False, description="Empty an existing file.")
    dry_run: bool = Field(False, description=DRY_RUN)


class FsWriteParams(FsParams):
    """Parameters of fs_write."""

    content: FileText = Field(
        description="The whole new content, or with append the text to add; line ends as given."
    )
    append: bool = Field(False, description="Add to the end.")
    parents: bool = Field(False, description=PARENTS)
    overwrite: bool = Field(True, description=OVERWRITE)
    dry_run: bool = Field(False, description=DRY_RUN)


class FsListParams(FsParams):
    """Parameters of fs_list."""

    path: PathText = Field(".", description=PATH)
    include_hidden: bool = Field(False, description="Include hidden names.")
    sort_by: NameText = Field(
        "path", description="path, name, modified or size; ties by path."
    )
    sort_order: Annotated[NameText, RARE] = Field("asc", description="asc or desc.")
    offset: Annotated[Count, RARE] = Field(0, description="Entries to skip.")
    limit: Annotated[Count | None, Usage(short="-l")] = Field(
        None, ge=1, description="Most entries; default and maximum: 10,000."
    )


class FsPairParams(ProjectParams):
    """Parameters of every method on two paths."""

    src: PathText = Field(description=PATH)
    dst: PathText = Field(description=PATH)
    overwrite: bool = Field(False, description=OVERWRITE)
    dry_run: bool = Field(False, description=DRY_RUN)

    def ends(self) -> tuple[bytes, bytes]:
        """Return both paths."""
        return path_from_json(self.src), path_from_json(self.dst)


class FsCopyParams(FsPairParams):
    """Parameters of fs_copy."""

    recursive: Annotated[bool, RARE] = Field(
        False, description="Copy a folder with its contents."
    )


class FsRemoveParams(FsParams):
    """Parameters of fs_remove."""

    recursive: Annotated[bool, RARE] = Field(
        False, description="Remove a folder with its contents."
    )
    force: bool = Field(False, description="A missing path is not an error.")
    dry_run: bool = Field(False, description=DRY_RUN)


class FsEntryResult(TypedDict):
    """The entry as it is, or in a dry run would be."""

    ok: bool
    operation: str
    entry: FileEntry
    dry_run: NotRequired[bool]
    bytes: NotRequired[int]


class FsReadResult(TypedDict):
    """A whole file: ``content`` encodes back to exactly its bytes; "latin-1" stands for bytes in no encoding we know.

    ``invalid_bytes``: the number of U+FFFD in the content that stand for an invalid byte (in UTF-16, two).
    """

    ok: bool
    operation: str
    entry: FileEntry
    content: str
    encoding: Encoding
    bom: bool
    line_ending: LineEnding
    file_hash: str
    invalid_bytes: NotRequired[int]


class FsListResult(TypedDict):
    """Part of a folder's entries; ``next_offset`` is null at the end."""

    ok: bool
    operation: str
    entries: list[FileEntry]
    total: int
    returned: int
    next_offset: int | None
    completed: bool


class FsCopyResult(TypedDict):
    """What was copied where."""

    ok: bool
    operation: str
    dry_run: bool
    source: str
    target_path: str


class FsMoveResult(TypedDict):
    """What was moved where."""

    ok: bool
    operation: str
    dry_run: bool
    source_path: str
    target_path: str


class FsRemoveResult(TypedDict):
    """What was removed."""

    ok: bool
    operation: str
    dry_run: bool
    target_path: str
    already_missing: NotRequired[bool]


def render_entry(result: FsEntryResult, style: Style) -> Iterator[str]:
    """Yield the entry on one line."""
    yield describe_entry(result["entry"], style)
    if result.get("dry_run"):
        yield style.note(NOTHING_WRITTEN)


def describe_entry(entry: FileEntry, style: Style) -> str:
    """Return a path with its type, unless it is a file, its size, time and whether it is read-only.

    For a person, the columns precede the path, as in ls.
    """
    path = style.path(
        {"file_path": entry["path"], "file_path_bytes": entry.get("path_bytes")}
    )
    is_file = entry["file_type"] == "file"
    if is_file:
        size = str(entry["size"])
    else:
        size = ""
    time = format_time(entry["modified_unix"])
    if entry["readonly"]:
        readonly = "readonly"
    else:
        readonly = ""
    if style.is_person:
        return f"{size if is_file else entry['file_type']:>10}  {time}  {path}" + (
            readonly and f"  {readonly}"
        )
    return " ".join(
        filter(
            None, [path, "" if is_file else entry["file_type"], size, time, readonly]
        )
    )


def render_file(result: FsReadResult, style: Style) -> Iterator[str]:
    """Yield the text unchanged, for a model below a header, as read_code does."""
    text = style.text(result["content"])
    if style.is_person:
        yield text
        return
    yield f"{FOR_MODEL.path({'file_path': result['entry']['path']})} {describe_text(result)}"
    yield text
    if text and not text.endswith("\n"):
        yield NO_LINE_END


def render_folder(result: FsListResult, style: Style) -> Iterator[str]:
    """Yield the entries, one per line, and how to continue."""
    yield from (describe_entry(entry, style) for entry in result["entries"])
    if not result["entries"] and not style.is_person:
        yield "[no entries]"
    if result["next_offset"] is not None and not style.is_person:
        yield Note(
            f"[{result['returned']} of {result['total']} shown; more: offset={result['next_offset']}]"
        )


def render_tree(
    result: FsCopyResult | FsMoveResult | FsRemoveResult, style: Style
) -> Iterator[str]:
    """Yield what was done to a file or folder."""
    changed: dict[str, Any] = {**result}
    did = {"fs_copy": "copied", "fs_move": "moved", "fs_remove": "removed"}[
        result["operation"]
    ]
    source = changed.get("source") or changed.get("source_path")
    target = style.path({"file_path": changed["target_path"]})
    yield (
        f"{did} {style.path({'file_path': source})} to {target}"
        if source
        else f"{did} {target}"
    )
    if changed.get("already_missing"):
        yield style.note("it was not there")
    if result["dry_run"]:
        yield style.note(NOTHING_WRITTEN)


@handler(
    "fs_create",
    command="fs-create path",
    title="Make a file or folder",
    safety="destructive",
    toolset="fs",
    render=render_entry,
)
async def fs_create(call: Call[Projects], params: FsCreateParams) -> FsEntryResult:
    """Make an empty file, or a folder."""
    project = await _writable(call, params)
    options = WriteOptions(
        parents=params.parents, overwrite=params.overwrite, dry_run=params.dry_run
    )
    done = await _run(
        "fs_create",
        files.create,
        project.editor,
        params.target(),
        options,
        folder=params.dir,
    )
    # At once, not when the watcher reports it: the caller's next question must see it.
    project.note_changes(done.paths)
    return {
        "ok": True,
        "operation": "fs_create",
        "dry_run": params.dry_run,
        "entry": done.entry,
    }


@handler(
    "fs_read",
    command="fs-read path",
    title="Read a whole file",
    toolset="fs",
    render=render_file,
)
async def fs_read(call: Call[Projects], params: FsParams) -> FsReadResult:
    """Read a whole file of up to 192 KiB; read_code reads larger ones in parts."""
    project = await call.host.workspace(call, params.project)
    found = await _run("fs_read", files.read, project.editor, params.target())
    result: FsReadResult = {
        "ok": True,
        "operation": "fs_read",
        "entry": found.entry,
        "content": found.text.text,
        "encoding": found.text.encoding,
        "bom": bool(found.text.bom),
        "line_ending": detect_line_ending(found.text.text),
        "file_hash": digest(found.data),
    }
    # Both are one object if no byte is invalid, so nothing has to be counted.
    if found.text.lossless is not found.text.text:
        result["invalid_bytes"] = count_lone(found.text.lossless)
    return result


@handler(
    "fs_write",
    command="fs-write path content",
    title="Write a whole file",
    safety="destructive",
    toolset="fs",
    render=render_entry,
)
async def fs_write(call: Call[Projects], params: FsWriteParams) -> FsEntryResult:
    """Write a whole file, or add to its end; an existing file keeps its mode, encoding and byte order mark."""
    project = await _writable(call, params)
    options = WriteOptions(
        parents=params.parents, overwrite=params.overwrite, dry_run=params.dry_run
    )
    run = partial(files.write, append=params.append)
    size, done = await _run(
        "fs_write", run, project.editor, params.target(), params.content, options
    )
    project.note_changes(done.paths)
    return {
        "ok": True,
        "operation": "fs_write",
        "dry_run": params.dry_run,
        "bytes": size,
        "entry": done.entry,
    }


@handler(
    "fs_list",
    command="fs-list path",
    title="List a folder",
    toolset="fs",
    render=render_folder,
)
async def fs_list(call: Call[Projects], params: FsListParams) -> FsListResult:
    """List the entries of one folder in a stable order; links are reported as links."""
    project = await call.host.workspace(call, params.project)
    query = ListQuery(
        include_hidden=params.include_hidden,
        sort_by=params.sort_by,
        sort_order=params.sort_order,
        offset=params.offset,
        limit=params.limit,
    )
    found = await _run("fs_list", list_folder, project.editor, params.target(), query)
    return {"ok": True, "operation": "fs_list", **found}


@handler(
    "fs_stat",
    command="fs-stat path",
    title="Look at a path",
    toolset="fs",
    render=render_entry,
)
async def fs_stat(call: Call[Projects], params: FsParams) -> FsEntryResult:
    """Show a path's type, size and modification time."""
    project = await call.host.workspace(call, params.project)
    entry = await _run("fs_stat", stat_entry, project.editor, params.target())
    return {"ok": True, "operation": "fs_stat", "entry": entry}


@handler(
    "fs_copy",
    title="Copy a file or folder",
    safety="destructive",
    toolset="fs",
    render=render_tree,
)
async def fs_copy(call: Call[Projects], params: FsCopyParams) -> FsCopyResult:
    """Copy a file, or with recursive a folder; the copy appears atomically."""
    project = await _writable(call, params)
    options = WriteOptions(overwrite=params.overwrite, dry_run=params.dry_run)
    run = partial(transfer.copy, recursive=params.recursive)
    change = await _run("fs_copy", run, project.editor, *params.ends(), options)
    project.note_changes(change.paths)
    return {
        "ok": True,
        "operation": "fs_copy",
        "dry_run": params.dry_run,
        "source": format_path(change.source),
        "target_path": format_path(change.target),
    }


@handler(
    "fs_move",
    title="Move a file or folder",
    safety="destructive",
    toolset="fs",
    render=render_tree,
)
async def fs_move(call: Call[Projects], params: FsPairParams) -> FsMoveResult:
    """Move or rename a file or a folder."""
    project = await _writable(call, params)
    options = WriteOptions(overwrite=params.overwrite, dry_run=params.dry_run)
    change = await _run(
        "fs_move", transfer.move, project.editor, *params.ends(), options
    )
    project.note_changes(change.paths)
    return {
        "ok": True,
        "operation": "fs_move",
        "dry_run": params.dry_run,
        "source_path": format_path(change.source),
        "target_path": format_path(change.target),
    }


@handler(
    "fs_remove",
    command="fs-remove path",
    title="Remove a file or folder",
    safety="destructive",
    toolset="fs",
    render=render_tree,
)
async def fs_remove(call: Call[Projects], params: FsRemoveParams) -> FsRemoveResult:
    """Remove a file, a link or a folder."""
    project = await _writable(call, params)
    run = partial(
        transfer.remove,
        recursive=params.recursive,
        force=params.force,
        dry_run=params.dry_run,
    )
    change = await _run("fs_remove", run, project.editor, params.target())
    project.note_changes(change.paths)
    result: FsRemoveResult = {
        "ok": True,
        "operation": "fs_remove",
        "dry_run": params.dry_run,
        "target_path": format_path(change.target),
    }
    if change.already_missing:
        result["already_missing"] = True
    return result


async def _writable(call: Call[Projects], params: ProjectParams) -> Project:
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    return project


async def _run(
    operation: str,
    run: Callable[RunP, ResultT],
    *args: RunP.args,
    **kwargs: RunP.kwargs,
) -> ResultT:
    """Run in a thread; every failure names its operation."""
    try:
        return await to_the_end(partial(run, *args, **kwargs))
    except FlashgrepError as error:
        # An agent may have several in flight; errors of a batch already name theirs.
        error.data.setdefault("operation", operation)
        raise


HANDLERS: tuple[Handler, ...] = (
    fs_create,
    fs_read,
    fs_write,
    fs_list,
    fs_stat,
    fs_copy,
    fs_move,
    fs_remove,
)
