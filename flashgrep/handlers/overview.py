"""`list_files` and `stats`: what a project has."""

import os
import time
from functools import partial
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep import __version__
from flashgrep.catalogue import HOW_TO_GET_A_PROJECT, Catalogue
from flashgrep.errors import InvalidParams
from flashgrep.handlers.covering import Coverage, coverage_of
from flashgrep.ingest.globs import PathFilter
from flashgrep.model import show_path
from flashgrep.params import CursorText, Globs, Languages, PathText
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.exact import Answer
from flashgrep.search.near import near_paths
from flashgrep.workspace import Workspace


class ListFilesParams(Params):
    """Which files to list."""

    filter: PathText | None = Field(
        None, min_length=1, description="Part of the path; where none has it, the nearest paths."
    )
    include: Annotated[Globs, Usage(short="-g")] = Field(
        default=[], description="Only files that match one of these globs."
    )
    exclude: Globs = Field(default=[], description="No files that match one of these globs.")
    language: Annotated[Languages, Usage(short="-t")] = Field(
        default=[], description="Only files of these languages, as py or rust."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(200, ge=1, le=10_000, description="Most files to send back.")
    cursor: Annotated[CursorText | None, Usage(short="-c")] = Field(
        None, description="`next` of the answer before, to go on behind it."
    )
    max_tokens: int | None = Field(None, ge=50, le=1_000_000, description="Size of the answer, in tokens.")
    fresh: Annotated[bool, RARE] = Field(default=True, description="Take in all that was saved before this call.")
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class ListedFile(TypedDict):
    """A file."""

    file_path: str
    file_path_bytes: NotRequired[str]


class ListFilesResult(TypedDict):
    """Files in the order of their paths (with a fuzzy filter: nearest first), and `files`, the bare paths."""

    results: list[ListedFile]
    files: list[str]
    total: int
    next: str | None
    fuzzy: bool
    coverage: Coverage


@handler("list_files", title="List files", command="files filter")
async def list_files(call: Call[Catalogue], params: ListFilesParams) -> ListFilesResult:
    """List a project's files: all that are searched, or those whose path has a text or is near to it."""
    started = time.perf_counter()
    workspace = await call.host.workspace(call, params.project)
    fresh = await workspace.refresh() if params.fresh else False
    paths, fuzzy = await workspace.in_turn(partial(_listed, workspace, params))
    start = _start(params.cursor)
    room = (params.max_tokens or call.host.settings.query.max_tokens) * 4
    page: list[bytes] = []
    for path in paths[start : start + params.limit]:
        room -= 2 * len(path) + 24
        if room < 0 and page:
            break
        page.append(path)
    end = start + len(page)
    results: list[Any] = [show_path(path) for path in page]
    return {
        "results": results,
        "files": [item["file_path"] for item in results],
        "total": len(paths),
        "next": str(end) if end < len(paths) else None,
        "fuzzy": fuzzy,
        "coverage": coverage_of(workspace, Answer(), fresh=fresh, started=started),
    }


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal():
        raise InvalidParams("cursor: not one of ours", field="cursor")
    return int(cursor)


def _listed(workspace: Workspace, params: ListFilesParams) -> tuple[list[bytes], bool]:
    filtered = params.include or params.exclude or params.language
    keep = PathFilter(params.include, params.exclude, languages=params.language) if filtered else None
    found = workspace.paths(keep, params.filter or "")
    if found or params.filter is None:
        return found, False
    return near_paths(params.filter, workspace.paths(keep)), True


class StatsParams(Params):
    """Which project."""

    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class StatsResult(TypedDict):
    """The live state of a project and its index; sizes in bytes, times in seconds since 1970.

    Without a project: the daemon's version and process, the projects it knows, and what would help (`message`).
    """

    project: str | None
    version: str
    projects: list[str]
    message: NotRequired[str]
    pid: NotRequired[int]
    root: NotRequired[str]
    total_files: NotRequired[int]
    total_chunks: NotRequired[int]
    total_lines: NotRequired[int]
    index_size_bytes: NotRequired[int]
    gram_bytes: NotRequired[int]
    vector_bytes: NotRequired[int]
    last_update: NotRequired[float | None]
    stage: NotRequired[str]
    stage_since: NotRequired[float]
    stage_detail: NotRequired[str]
    generation: NotRequired[int]
    files_pending: NotRequired[int]
    files_skipped: NotRequired[dict[str, int]]
    indexing: NotRequired[dict[str, Any]]
    problem: NotRequired[str]
    settings_warnings: NotRequired[list[str]]
    watching: NotRequired[bool]
    watch_problem: NotRequired[str]


@handler("stats", title="Index statistics")
async def stats(call: Call[Catalogue], params: StatsParams) -> StatsResult:
    """Return a project's live figures: files, indexed texts, index size, last update, stage and progress."""
    session = call.session
    known = call.host.list_reachable(session)
    if params.project is None and not (session.projects or session.indexed):
        message = f"this connection is bound to no project: {HOW_TO_GET_A_PROJECT}"
        return {"project": None, "version": __version__, "projects": known, "message": message, "pid": os.getpid()}
    workspace = await call.host.workspace(call, params.project)
    size = await workspace.size()
    progress = workspace.progress
    facts = workspace.facts()
    return {
        "project": workspace.name,
        "version": __version__,
        "projects": known,
        "root": str(workspace.path).encode("utf-8", "replace").decode(),
        "total_files": workspace.tree.count(),
        "total_chunks": size.chunks if size else 0,
        "total_lines": size.lines if size else 0,
        "index_size_bytes": size.file_bytes + size.vector_bytes if size else 0,
        "gram_bytes": size.gram_bytes if size else 0,
        "vector_bytes": size.vector_bytes if size else 0,
        "last_update": progress.updated or None,
        "stage": progress.stage,
        "stage_since": progress.since,
        "stage_detail": progress.detail,
        "generation": workspace.generation,
        "files_pending": facts["pending"],
        "files_skipped": workspace.tree.skipped(),
        "indexing": {
            "files_done": progress.files_done,
            "files_total": progress.files_total,
            "bytes_done": progress.bytes_done,
            "bytes_total": progress.bytes_total,
            "texts_left": progress.left,
            "share": round(progress.share(), 4),
            "eta_seconds": progress.eta_seconds(),
        },
        "problem": progress.problem,
        "settings_warnings": list(workspace.options.settings_warnings),
        "watching": facts["watching"],
        "watch_problem": facts["watch_problem"],
    }


HANDLERS: tuple[Handler, ...] = (list_files, stats)
