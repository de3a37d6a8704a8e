"""Files by name: `list_files` lists searched files, `glob` finds files by wildcards."""

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage, milliseconds_since
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import InvalidParams
from flashgrep.base.model import path_to_json, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    Count,
    CursorText,
    Globs,
    GlobText,
    Handler,
    NameText,
    Params,
    PathText,
    Usage,
    handler,
)
from flashgrep.files.finder import FoundFile, Key, Window
from flashgrep.files.globs import GlobOptions, escape_glob
from flashgrep.methods.common import (
    Below,
    Budget,
    Cursor,
    Exclude,
    FileChoice,
    FilePlace,
    Fresh,
    Include,
    InLanguages,
    MaxTokensIfSet,
    Owners,
    ProjectName,
    ProjectNames,
    Rev,
    decode_cursor,
    encode_cursor,
    make_path_filter,
    make_relative,
    view_of,
)
from flashgrep.methods.projects import (
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_projects,
)
from flashgrep.methods.text import Style, format_time
from flashgrep.search.path_search import make_rank_key, search_paths
from flashgrep.search.snapshot import SearchStats

WILD: Final = re.compile(r"[*?]|\{.*\}|\[.+\]")
"""A glob's wildcards."""
RECENT_SECONDS: Final = 86_400
MOST_RECENT: Final = 50
"""Maximum number of files changed within that time that count as recent; more are a checkout, not edits."""
MOST = 10_000
"""Files in one answer, asked for or not: about 1.5 MB of JSON."""
FILE_OVERHEAD, TEXT_OVERHEAD = 24, 1
"""Overhead of a path in characters: in JSON, which has it twice, and in text."""


class ListFilesParams(Params):
    """Which files to list."""

    query: Annotated[PathText | None, Usage(words=True)] = Field(
        None,
        min_length=1,
        description="A glob, or parts of the path in any order, best files first, in fzf's terms: "
        "`net tcp !test .go$`. If no path has them all, the nearest ones.",
    )
    path: Below = None
    include: Include = []
    exclude: Exclude = []
    language: InLanguages = []
    owner: Owners = []
    sort_by: Literal["path", "name", "modified", "size"] = Field(
        "path", description="Other than by path, `query` is a glob."
    )
    sort_order: Annotated[Literal["asc", "desc"], RARE] = Field(
        "asc", description="Ascending or descending; ties by path, ascending."
    )
    max_depth: Annotated[Count | None, RARE] = Field(
        None, description="Folders to descend; 0: only the files directly in `path`."
    )
    include_hidden: bool = Field(default=False, description="Hidden files, too.")
    respect_ignore: bool = Field(default=True, description="false: ignored files, too.")
    limit: Annotated[int, Usage(short="-l")] = Field(
        200, ge=1, le=10_000, description="Most files to return."
    )
    cursor: Cursor = None
    max_tokens: MaxTokensIfSet = None
    fresh: Fresh = True
    rev: Rev = None
    project: ProjectName = None
    projects: ProjectNames = None


class ListedFile(FilePlace):
    """A file; its size in bytes and its time only where the disk was asked: by another key, or hidden or ignored."""

    size: NotRequired[int]
    modified_unix: NotRequired[int]


class ListFilesResult(TypedDict):
    """Files in the order asked for (with a fuzzy filter: nearest first), and `files`, the bare paths.

    `sort_by`: the sort key, unless that is the path.
    """

    results: list[ListedFile]
    files: list[str]
    total: int
    next: str | None
    fuzzy: bool
    coverage: Coverage
    sort_by: NotRequired[str]


def render_paths(result: ListFilesResult, style: Style) -> Iterator[str]:
    """Yield the paths, each with its sort key if that is a size or a time."""
    order = result.get("sort_by", "path")
    yield from (render_file(file, order, style) for file in result["results"])


def render_file(file: Mapping[str, Any], order: str, style: Style) -> str:
    """Return a file's path; for a model with its sort key, if that is a size or a time."""
    text = style.path(file)
    if style.is_person:
        return text
    if order == "size":
        return f"{text} {file['size']}"
    if order == "modified":
        return f"{text} {format_time(file['modified_unix'])}"
    return text


@handler(
    "list_files",
    title="List files",
    command="files query",
    listing="by_default",
    render=render_paths,
)
async def list_files(call: Call[Host], params: ListFilesParams) -> ListFilesResult:
    """Find files: all that are searched, those that match a glob, or whose path contains or resembles some words.

    Use it instead of find, fd and ls.
    """
    if not find_on_disk(params):
        return await ask_projects(call, params, _list_project, _join_list)
    globbed = await glob.run(call, _make_glob(params))
    result: ListFilesResult = {
        "results": globbed["results"],
        "files": [file["file_path"] for file in globbed["results"]],
        "total": globbed["total"],
        "next": globbed["next"],
        "fuzzy": False,
        "coverage": globbed["coverage"],
    }
    if params.sort_by != "path":
        result["sort_by"] = params.sort_by
    if any("project" in file for file in globbed["results"]):
        _join_list(result, ())
    return result


ON_DISK: Final = frozenset(
    {"sort_by", "sort_order", "max_depth", "include_hidden", "respect_ignore"}
)
"""Fields of list_files that the file table cannot answer: the disk is asked, as by glob."""


def find_on_disk(params: ListFilesParams) -> list[str]:
    """Return the fields for which the disk is asked; one that has its default asks nothing."""
    fields = ListFilesParams.model_fields
    return [
        name
        for name in sorted(params.model_fields_set & ON_DISK)
        if getattr(params, name) != fields[name].default
    ]


def _make_glob(params: ListFilesParams) -> "GlobParams":
    """Return the parameters of glob for a list that the disk has to answer.

    Raises:
        InvalidParams: the question has words or languages, which only the file table answers.

    """
    fields = find_on_disk(params)
    if params.language:
        message = f"language: not together with {fields[0]}; use include, e.g. **/*.py"
        raise InvalidParams(message, field="language")
    given_fields = params.model_dump(exclude_unset=True, exclude={"language", "fresh"})
    query = given_fields.pop("query", None)
    if query is not None and WILD.search(query) is None:
        message = f"query: with {fields[0]} it is a glob: **/*{next(iter(query.split()), '')}*"
        raise InvalidParams(message, field="query")
    include = given_fields.pop("include", [])
    if query is not None:
        include = [*include, query]
    return GlobParams(**{**given_fields, "include": include, "limit": params.limit})


async def _list_project(
    call: Call[Host],
    params: ListFilesParams,
    project: Project,
    among: ProjectSelection,
) -> Page[ListFilesResult]:
    """Answer for one project."""
    started = time.perf_counter()
    workspace = await view_of(call, project, params.rev)
    if params.fresh:
        fresh = await workspace.refresh()
    else:
        fresh = False
    # Wildcards mean a glob: fzf's terms have none.
    is_glob = params.query is not None and WILD.search(params.query) is not None
    if is_glob and params.query:
        include = [*params.include, params.query]
    else:
        include = params.include
    keep = await make_path_filter(
        workspace,
        FileChoice(
            include=include,
            exclude=params.exclude,
            languages=params.language,
            without=among.nested,
            below=params.path,
            owners=params.owner,
        ),
    )
    if is_glob:
        text = ""
    else:
        text = params.query or ""

    def find() -> tuple[list[bytes], bool, frozenset[bytes]]:
        if text:
            recent = list_recent(workspace)
        else:
            recent = frozenset[bytes]()
        return *search_paths(text, partial(workspace.paths, keep), recent), recent

    paths, is_fuzzy, recent = await workspace.in_turn(find)
    # Files come and go between pages. By path a page begins after the last file of the
    # one before; the best files first: at a place in the list as it is now.
    start = 0
    if params.cursor is not None and text:
        start = decode_cursor(params, params.cursor, int)
    elif params.cursor is not None:
        start = bisect_right(
            paths,
            decode_cursor(
                params, params.cursor, lambda path: str(path).encode("latin-1")
            ),
        )
    budget = Budget(params.max_tokens or call.host.settings.query.max_tokens)
    # JSON has each path twice, in ``results`` and in ``files``.
    times, around = (1, TEXT_OVERHEAD) if call.as_text else (2, FILE_OVERHEAD)
    page = budget.fit(
        paths[start : start + params.limit], lambda path: times * len(path) + around
    )
    end = start + len(page)
    results: list[Any] = [path_to_json(path) for path in page]
    result: ListFilesResult = {
        "results": results,
        "files": [item["file_path"] for item in results],
        "total": len(paths),
        "next": encode_cursor(params, end if text else page[-1].decode("latin-1"))
        if end < len(paths)
        else None,
        "fuzzy": is_fuzzy,
        "coverage": workspace.coverage(SearchStats(), fresh=fresh, started=started),
    }
    if is_fuzzy:  # their scores are unknown here: the nearest of each project, then the second nearest
        return Page(result, lambda at: start + at, reading=1)
    if params.query is None or is_glob:
        return Page(result)
    # The same measure for each project, so that their pages can be merged.
    worth = make_rank_key(params.query, recent)
    return Page(result, lambda at: worth(page[at]))


def list_recent(view: View) -> frozenset[bytes]:
    """Return the files the caller likely has in mind: changed recently, or open in the client's editor."""
    return view.list_recent(
        time.time_ns() - RECENT_SECONDS * 1_000_000_000, MOST_RECENT
    )


def _join_list(
    result: ListFilesResult, _answers: Sequence[ProjectAnswer[ListFilesResult]]
) -> None:
    """List the bare paths, each preceded by its project's name."""
    result["files"] = [
        f"{item['project']}/{item['file_path']}" for item in result["results"]
    ]


class GlobParams(Params):
    """Which files to find and how to order them."""

    query: GlobText = Field(
        "**/*",
        min_length=1,
        description="*.py matches a name at any depth, src/**/*.py a path below `path`; `[!a]`, `{a,b}`. Used only if "
        "`include` is empty.",
    )
    path: PathText | None = Field(
        None, description="Folder to search, within the project; default: its root."
    )
    include: Annotated[Globs, Usage(short="-g")] = Field(
        default=[], description="Patterns, one of which must match."
    )
    exclude: Globs = Field(
        default=[],
        description="Patterns, none of which may match; a matching folder is not entered.",
    )
    extensions: Annotated[list[NameText], RARE] = Field(
        default=[],
        max_length=1000,
        description="Only files with this ending, e.g. rs or .rs, in either case.",
    )
    max_depth: Count | None = Field(
        None, description="Folders to descend; 0: only the files directly in `path`."
    )
    recursive: Annotated[bool, RARE] = Field(
        default=True, description="False: same as max_depth 0."
    )
    include_hidden: bool = Field(
        default=False, description="Include hidden files, and files in hidden folders."
    )
    follow_symlinks: Annotated[bool, RARE] = Field(
        default=False, description="Follow links that stay in the project."
    )
    case_sensitive: Annotated[bool, RARE] = Field(
        default=True, description="False: patterns ignore the case of ASCII letters."
    )
    respect_ignore: bool | None = Field(
        default=None,
        description="False: include what .gitignore excludes; the default with follow_symlinks.",
    )
    sort_by: Literal["path", "name", "modified", "size"] = Field(
        "path", description="Sort key, then the path."
    )
    sort_order: Annotated[Literal["asc", "desc"], RARE] = Field(
        "asc", description="Ascending or descending; ties by path, ascending."
    )
    offset: Annotated[Count, RARE] = Field(0, description="Files to skip.")
    limit: Annotated[Count | None, Usage(short="-l")] = Field(
        None, ge=1, description=f"Most files to return; never more than {MOST}."
    )
    cursor: Annotated[CursorText | None, Usage(short="-c")] = Field(
        None, description="`next` of the previous answer: continue after its last file."
    )
    max_tokens: int | None = Field(
        None,
        ge=50,
        le=1_000_000,
        description="Size of the answer, in tokens; bounded by default if there is no limit.",
    )
    rev: Rev = None
    project: ProjectName = None
    projects: ProjectNames = None


class GlobFile(FilePlace):
    """A file: `file_path` from the project's root, `relative_path` from the folder searched, size in bytes."""

    name: str
    relative_path: str
    size: int
    modified_unix: int


class GlobResult(TypedDict):
    """A page of files; `total` counts all that match, `next` and `next_offset` lead to the next page, or are null."""

    results: list[GlobFile]
    total: int
    returned: int
    next_offset: int | None
    next: str | None
    completed: bool
    options: dict[str, Any]
    coverage: Coverage


def render_glob(result: GlobResult, style: Style) -> Iterator[str]:
    """Yield the paths, each with its sort key if that is a size or a time."""
    order = result["options"]["sort_by"]
    yield from (render_file(file, order, style) for file in result["results"])


@handler(
    "glob", command="glob query", title="Find files by pattern", render=render_glob
)
async def glob(call: Call[Host], params: GlobParams) -> GlobResult:
    """Find files by wildcards on their paths, with filters and sorting, as they are on disk now.

    Ignored files are left out, as in `list_files`, unless `respect_ignore` is false.
    """
    # Before anything is read.
    clashes = (
        (
            not params.recursive and params.max_depth,
            "max_depth",
            "recursive",
            "not recursive, so max_depth can only be 0",
        ),
        (
            params.cursor is not None and params.offset,
            "offset",
            "cursor",
            "a cursor already says where to continue",
        ),
        (
            params.projects is not None and params.offset,
            "offset",
            "projects",
            "with several projects, continue with the cursor",
        ),
        (
            params.respect_ignore and params.follow_symlinks,
            "follow_symlinks",
            "respect_ignore",
            "links are not followed where ignore rules apply",
        ),
    )
    for is_given, field, other, problem in clashes:
        if is_given:
            message = f"glob: {field}: {problem}"
            raise InvalidParams(
                message,
                field=field,
                incompatible=[field, other],
                problem=problem,
            )
    return await ask_projects(call, params, _find_in_project, _join_files)


async def _find_in_project(
    call: Call[Host],
    params: GlobParams,
    workspace: Project,
    among: ProjectSelection,
) -> Page[GlobResult]:
    """Answer for one project.

    Raises:
        InvalidParams: ``offset`` would leave out files of each of several projects.

    """
    if params.offset and among.projects > 1:
        message = "glob: offset: with several projects, continue with the cursor"
        raise InvalidParams(message, field="offset")
    started = time.perf_counter()
    view = await view_of(call, workspace, params.rev)
    under = b""
    if params.path:
        under = await view.resolve(params.path, folder=True)
    options = _make_options(view, params, under, among)
    after = None
    if params.cursor is not None:
        after = decode_cursor(params, params.cursor, _read_key)
    window = Window(
        offset=params.offset, after=after, limit=min(params.limit or MOST, MOST)
    )
    page = await view.find_files(options, window, call.deadline)

    files = [_format_file(file) for file in page.files]
    # With a limit and no budget, that many files are returned.
    tokens = params.max_tokens
    if tokens is None and params.limit is None:
        tokens = call.host.settings.query.max_tokens
    if tokens is not None:
        files = Budget(tokens).fit(
            files, _measure_as_text if call.as_text else _measure_as_json
        )
    # Positions count all files found, so that files gone meanwhile do not shift the
    # next page.
    end = page.end
    if len(files) < len(page.files):
        end = page.files[len(files)].at
    has_more = end < page.total and page.complete
    cursor = None
    if has_more and files:
        key = page.files[len(files) - 1].key
        # A path is bytes, which JSON does not hold.
        if isinstance(key.value, int):
            value: int | str = key.value
        else:
            value = key.value.decode("latin-1")
        cursor = encode_cursor(params, value, key.path.decode("latin-1"))
    coverage: Coverage = {
        "complete": page.complete,
        "fresh": True,
        "files_searched": page.seen,
        "files_skipped": {"unreadable": page.unreadable} if page.unreadable else {},
        "stage": workspace.progress.stage,
        "generation": workspace.generation,
        "took_ms": milliseconds_since(started),
    }
    if view.revision_id is not None:
        coverage["revision"] = view.revision_id
    result: GlobResult = {
        "results": files,
        "total": page.total,
        "returned": len(files),
        "next_offset": end if has_more else None,
        "next": cursor,
        "completed": page.complete and not has_more,
        "options": {
            **params.model_dump(exclude={"cursor", "project", "projects"}),
            "root": path_to_text(
                workspace.root + b"/" + under if under else workspace.root
            ),
            "project": workspace.name,
            "includes": params.include or [params.query],
            "excludes": params.exclude,
            "max_depth": options.max_depth,
        },
        "coverage": coverage,
    }
    return Page(result, partial(_rank, params, files))


def _make_options(
    view: View, params: GlobParams, under: bytes, among: ProjectSelection
) -> GlobOptions:
    """Return what to find, with patterns relative to ``under``, the folder that is searched."""
    exclude = make_relative(view, params.exclude, under)
    # Other projects below the folder have their own answers.
    for folder in among.nested:
        if not under:
            exclude.append("/" + escape_glob(folder))
        elif folder.startswith(under + b"/"):
            exclude.append("/" + escape_glob(folder.removeprefix(under + b"/")))
    respect_ignore = params.respect_ignore
    if respect_ignore is None:
        respect_ignore = not params.follow_symlinks
    return GlobOptions(
        include=tuple(make_relative(view, params.include or [params.query], under)),
        include_field="include" if params.include else "query",
        exclude=tuple(exclude),
        extensions=tuple(params.extensions),
        under=under,
        max_depth=params.max_depth if params.recursive else 0,
        include_hidden=params.include_hidden,
        follow_symlinks=params.follow_symlinks,
        case_sensitive=params.case_sensitive,
        respect_ignore=respect_ignore,
        private=view.project.options.private,
        sort_by=params.sort_by,
        descending=params.sort_order == "desc",
    )


def _format_file(file: FoundFile) -> GlobFile:
    return {
        **path_to_json(file.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "name": path_to_text(file.path.rpartition(b"/")[2]),
        "relative_path": path_to_text(file.relative_path),
        "size": file.size,
        "modified_unix": file.modified_unix,
    }


def _measure_as_text(file: GlobFile) -> int:
    return len(file["file_path"]) + TEXT_OVERHEAD


def _measure_as_json(file: GlobFile) -> int:
    return len(orjson.dumps(file)) + 1


def _rank(params: GlobParams, files: Sequence[GlobFile], at: int) -> Any:
    """Return a file's sort key among those of other projects: if sorted by path, by its project first."""
    file = files[at]
    descending = params.sort_order == "desc"
    match params.sort_by:
        case "name" if descending:
            return [
                *(-ord(character) for character in file["name"]),
                1,
            ]  # a longer name before its prefix
        case "name":
            return file["name"]
        case "modified" | "size":
            value = file["size" if params.sort_by == "size" else "modified_unix"]
            if descending:
                return -value
            return value
    return ()


def _join_files(
    result: GlobResult, answers: Sequence[ProjectAnswer[GlobResult]]
) -> None:
    """Return a line that says whether these were all, and of which projects."""
    result["returned"] = len(result["results"])
    result["next_offset"] = None
    result["completed"] = result["coverage"]["complete"] and result["next"] is None
    options = {
        name: value
        for name, value in result["options"].items()
        if name not in {"root", "project"}
    }
    result["options"] = {**options, "projects": [answer.name for answer in answers]}


HANDLERS: tuple[Handler, ...] = (list_files, glob)


def _read_key(value: int | str, path: str) -> Key:
    return Key(
        value if isinstance(value, int) else value.encode("latin-1"),
        path.encode("latin-1"),
    )
