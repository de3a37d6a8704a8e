"""`glob`: files by wildcards on their paths, ignored ones too, as the disk has them now."""

import base64
import hashlib
import time
from typing import Annotated, Any, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import InvalidParams
from flashgrep.handlers.covering import Coverage
from flashgrep.ingest.finder import Found, GlobOptions, GlobPage, Key, Window, find, folder_of
from flashgrep.model import show_path
from flashgrep.params import Count, CursorText, Globs, GlobText, NameText, PathText
from flashgrep.registry import RARE, Call, Params, Usage, handler
from flashgrep.search.snapshot import Snapshot
from flashgrep.workspace import Workspace

MOST = 10_000
"""Files in one answer, asked for or not: about 1.5 MB of JSON."""
CHARS_PER_TOKEN = 4


class GlobParams(Params):
    """Which files to find and how to order them."""

    pattern: GlobText = Field(
        "**/*",
        min_length=1,
        description="Wildcards on the whole path from `path` on: `*` and `?` cross `/`, `**/` is any folders or none, "
        "`[abc]`, `[!a]`, `{a,b}`. Used only if `include` is empty.",
    )
    path: PathText | None = Field(None, description="Folder to look in, within the project; its root by default.")
    include: Annotated[Globs, Usage(short="-g")] = Field(default=[], description="Patterns of which one has to match.")
    exclude: Globs = Field(
        default=[],
        description="Patterns of which none may match; a folder that matches is not entered.",
    )
    extensions: list[NameText] = Field(
        default=[], max_length=1000, description="Only files that end so, as rs or .rs, in either case."
    )
    max_depth: Count | None = Field(None, description="Folders to go down; 0: only the files directly in `path`.")
    recursive: Annotated[bool, RARE] = Field(default=True, description="False: as max_depth 0.")
    include_hidden: bool = Field(
        default=False, description="Also files with a part of the path that begins with a dot."
    )
    follow_symlinks: Annotated[bool, RARE] = Field(
        default=False, description="Follow links, as far as they stay in the project."
    )
    case_sensitive: Annotated[bool, RARE] = Field(
        default=True, description="False: patterns take either case of ASCII letters."
    )
    respect_ignore: bool = Field(
        default=False, description="Leave out what .gitignore, .ignore and .flashgrepignore take out."
    )
    sort_by: Literal["path", "name", "modified", "size"] = Field("path", description="What to order by; then the path.")
    sort_order: Annotated[Literal["asc", "desc"], RARE] = Field(
        "asc", description="Ascending or descending; equal ones by path, ascending."
    )
    offset: Annotated[Count, RARE] = Field(0, description="Files to pass over.")
    limit: Annotated[Count | None, Usage(short="-l")] = Field(
        None, ge=1, description=f"Most files to send back; never more than {MOST}."
    )
    cursor: Annotated[CursorText | None, Usage(short="-c")] = Field(
        None, description="`next` of the answer before: go on behind its last file."
    )
    max_tokens: int | None = Field(
        None,
        ge=50,
        le=1_000_000,
        description="Size of the answer, in tokens; bounded by default when there is no limit.",
    )
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class GlobFile(TypedDict):
    """A file: `file_path` from the project's root, `relative_path` from the folder searched, size in bytes."""

    file_path: str
    file_path_bytes: NotRequired[str]
    name: str
    relative_path: str
    size: int
    modified_unix: int


class GlobResult(TypedDict):
    """A page of files in order; `total` counts all that match, `next` and `next_offset` lead on, null at the end."""

    results: list[GlobFile]
    total: int
    returned: int
    next_offset: int | None
    next: str | None
    completed: bool
    options: dict[str, Any]
    coverage: Coverage


@handler("glob", command="glob pattern", title="Find files by pattern")
async def glob(call: Call[Catalogue], params: GlobParams) -> GlobResult:
    """Find files by wildcards on their paths, with filters, order and paging, as the disk has them now.

    Unlike `list_files` it knows nothing of ignore rules unless `respect_ignore` is set.
    """
    started = time.perf_counter()
    _check(params)
    workspace = await call.host.workspace(call, params.project)
    budget = (
        None if params.limit and not params.max_tokens else params.max_tokens or call.host.settings.query.max_tokens
    )

    known = workspace.tree.is_watched and await workspace.refresh()

    def look(snapshot: Snapshot) -> GlobResult:
        under, page = _look(workspace, params, call.deadline, snapshot if known else None)
        return _result(workspace, params, under, page, budget)

    result = await workspace.in_thread(look)
    result["coverage"]["took_ms"] = round((time.perf_counter() - started) * 1000, 3)
    return result


HANDLERS = (glob,)


def _check(params: GlobParams) -> None:
    """Refuse combinations that contradict themselves, before anything is read."""
    if not params.recursive and params.max_depth:
        raise _clash("max_depth", "recursive", "not recursive, so max_depth can only be 0")
    if params.cursor is not None and params.offset:
        raise _clash("offset", "cursor", "a cursor says itself where to go on")
    if params.respect_ignore and params.follow_symlinks:
        raise _clash("follow_symlinks", "respect_ignore", "what ignore rules cover has no links in it")


def _clash(field: str, other: str, problem: str) -> InvalidParams:
    return InvalidParams(f"glob: {field}: {problem}", field=field, incompatible=[field, other], problem=problem)


def _look(
    workspace: Workspace, params: GlobParams, deadline: float | None, snapshot: Snapshot | None
) -> tuple[bytes, GlobPage]:
    """Find the files: by walking, or where there is a ``snapshot`` of the tree as it is now, among those known."""
    root, private = workspace.root, workspace.options.private
    under = folder_of(root, params.path, private) if params.path else b""
    options = GlobOptions(
        include=tuple(params.include or [params.pattern]),
        include_field="include" if params.include else "pattern",
        exclude=tuple(params.exclude),
        extensions=tuple(params.extensions),
        under=under,
        max_depth=params.max_depth if params.recursive else 0,
        include_hidden=params.include_hidden,
        follow_symlinks=params.follow_symlinks,
        case_sensitive=params.case_sensitive,
        respect_ignore=params.respect_ignore,
        private=private,
        sort_by=params.sort_by,
        descending=params.sort_order == "desc",
    )
    after = None if params.cursor is None else _key_of(params.cursor, params)
    window = Window(offset=params.offset, after=after, limit=min(params.limit or MOST, MOST))
    known = workspace.tree.known(snapshot) if snapshot is not None else None
    return under, find(root, options, window, deadline=deadline, known=known)


def _result(workspace: Workspace, params: GlobParams, under: bytes, page: GlobPage, budget: int | None) -> GlobResult:
    results, end = _cut(page, budget)
    last = next((found for found in page.files if found.at == end - 1), None)
    more = end < page.total and page.complete
    return {
        "results": results,
        "total": page.total,
        "returned": len(results),
        "next_offset": end if more else None,
        "next": _cursor(params, last.key) if more and last is not None else None,
        "completed": page.complete and not more,
        "options": _echo(workspace, params, under),
        "coverage": {
            "complete": page.complete,
            "fresh": True,
            "files_searched": page.seen,
            "files_skipped": {"unreadable": page.unreadable} if page.unreadable else {},
            "stage": workspace.progress.stage,
            "generation": workspace.generation,
            "took_ms": 0.0,
        },
    }


def _cut(page: GlobPage, budget: int | None) -> tuple[list[GlobFile], int]:
    """Return the files that fit into ``budget`` tokens, one at least, and the place behind the last of them."""
    room = None if budget is None else budget * CHARS_PER_TOKEN
    results: list[GlobFile] = []
    for found in page.files:
        shown = _file(found)
        if room is not None:
            room -= len(orjson.dumps(shown)) + 1
            if room < 0 and results:
                return results, found.at
        results.append(shown)
    return results, page.end


def _file(found: Found) -> GlobFile:
    shown = show_path(found.path)
    file: GlobFile = {
        "file_path": shown["file_path"],
        "name": show_path(found.path.rpartition(b"/")[2])["file_path"],
        "relative_path": show_path(found.relative_path)["file_path"],
        "size": found.size,
        "modified_unix": found.modified_unix,
    }
    if "file_path_bytes" in shown:
        file["file_path_bytes"] = shown["file_path_bytes"]
    return file


def _echo(workspace: Workspace, params: GlobParams, under: bytes) -> dict[str, Any]:
    root = workspace.root + b"/" + under if under else workspace.root
    return {
        **params.model_dump(exclude={"cursor", "project"}),
        "root": show_path(root)["file_path"],
        "project": workspace.name,
        "includes": params.include or [params.pattern],
        "excludes": params.exclude,
        "max_depth": params.max_depth if params.recursive else 0,
    }


# A cursor carries its whole state: which question it belongs to, and the place of the last file sent in the order.


def _digest(params: GlobParams) -> str:
    asked = params.model_dump_json(exclude={"cursor", "offset", "limit", "max_tokens"})
    return hashlib.blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _cursor(params: GlobParams, key: Key) -> str:
    value = key.value if isinstance(key.value, int) else key.value.hex()
    return base64.urlsafe_b64encode(orjson.dumps([_digest(params), value, key.path.hex()])).decode()


def _key_of(cursor: str, params: GlobParams) -> Key:
    try:
        digest, value, path = orjson.loads(base64.urlsafe_b64decode(cursor))
        key = Key(value if isinstance(value, int) else bytes.fromhex(value), bytes.fromhex(path))
    except (ValueError, TypeError):
        raise InvalidParams("cursor: not one of ours", field="cursor") from None
    if digest != _digest(params):
        raise InvalidParams("cursor: it belongs to another question; pass the same parameters", field="cursor")
    return key
