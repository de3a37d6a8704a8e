"""A project's history from its repository: revisions, commits, and the commit of each line; and folders."""

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project
from flashgrep.base.checkpoint import expiring
from flashgrep.base.errors import InvalidParams, NotFound
from flashgrep.base.model import path_from_json, path_to_json
from flashgrep.base.registry import (
    Call,
    Handler,
    LineNumber,
    Params,
    PathText,
    RevisionText,
    Usage,
    handler,
)
from flashgrep.files.openat import RootFiles, RootFolder
from flashgrep.files.root import outside_root
from flashgrep.methods.common import (
    PATH,
    Cursor,
    Deadline,
    FilePlace,
    Fresh,
    ProjectName,
    ProjectParams,
    Rev,
    decode_cursor,
    encode_cursor,
    open_view,
    resolve_path,
)
from flashgrep.methods.text import Style, format_time
from flashgrep.parts.git import repository as git
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.git.revisions import find_revisions
from flashgrep.search.snapshot import SearchStats

MOST_NAMES: Final = 1_000
MOST_BLAMED: Final = 5_000
"""Maximum number of lines of one answer: git reads the file's whole history for each call, and prints each line."""
SHOWN_NAME: Final = 10
MOST_ENTRIES: Final = 10_000


class RevisionName(TypedDict):
    """A branch or tag; `time` in seconds since 1970."""

    name: str
    kind: str
    commit: str
    time: int


class RevisionsResult(TypedDict):
    """Branches and tags, newest first."""

    results: list[RevisionName]


def render_revisions(result: RevisionsResult, style: Style) -> Iterator[str]:
    """Yield one line for each name, like those of commits."""
    for name in result["results"]:
        commit = name["commit"][:SHOWN_NAME]
        day = format_day(name["time"])
        line = f"{commit} {day} {name['kind']} {name['name']}"
        yield style.text(line)


def format_day(seconds: int) -> str:
    """Return the day of a time in seconds since 1970."""
    return format_time(seconds).partition("T")[0]


@handler(
    "list_revisions", command="revisions", toolset="editors", render=render_revisions
)
async def list_revisions(call: Call[Host], params: ProjectParams) -> RevisionsResult:
    """List the branches and tags of a project's repository, newest first."""
    workspace = await call.host.workspace(call, params.project)
    revisions = find_revisions(workspace, call.session)
    repository = await revisions.ask_repository(
        lambda asked: git.list_names(asked, MOST_NAMES)
    )
    return {
        "results": [
            {
                "name": named_revision.name,
                "kind": named_revision.kind,
                "commit": named_revision.commit,
                "time": named_revision.time,
            }
            for named_revision in repository
        ]
    }


class HistoryParams(Params):
    """Which path, and how many commits to list."""

    path: PathText | None = Field(
        None, description="File or folder; default: the whole project."
    )
    rev: RevisionText = Field("HEAD", description="Revision to start from.")
    limit: Annotated[int, Usage(short="-l")] = Field(
        50, ge=1, le=1_000, description="Most commits to return."
    )
    cursor: Cursor = None
    deadline_ms: Deadline = 20_000
    project: ProjectName = None


class CommitEntry(TypedDict):
    """A commit by its full hash; `time`: when it was authored, in seconds since 1970; `subject`: its first line."""

    commit: str
    parents: list[str]
    time: int
    author: str
    subject: str


class HistoryResult(TypedDict):
    """Commits, the newest first."""

    results: list[CommitEntry]
    next: str | None


def render_history(result: HistoryResult, style: Style) -> Iterator[str]:
    """Yield one line for each commit."""
    for commit in result["results"]:
        yield render_commit(commit, style)


def render_commit(commit: CommitEntry, style: Style) -> str:
    """Return a line that tells of a commit."""
    name = commit["commit"][:SHOWN_NAME]
    day = format_day(commit["time"])
    line = f"{name} {day} {commit['author']}: {commit['subject']}"
    return style.text(line)


@handler("history", command="history path", toolset="editors", render=render_history)
async def history(call: Call[Host], params: HistoryParams) -> HistoryResult:
    """List the commits that changed a file or folder, newest first; renames are not followed."""
    workspace = await call.host.workspace(call, params.project)
    if params.cursor is None:
        skip = 0
    else:
        skip = decode_cursor(params, params.cursor, int)
    deadline = time.monotonic() + params.deadline_ms / 1000

    def ask(repository: Repository) -> list[git.Commit]:
        if params.path:
            path = find_inside(workspace, params.path)
        else:
            path = b""
        with expiring(deadline):
            # One more than is shown, to know whether there are more.
            commits = git.list_commits(
                repository, params.rev, path, skip, params.limit + 1
            )
        # A new file has no history yet; what is neither there nor in it is a mistake.
        if path and not commits and not skip and not _is_there(workspace, path):
            raise NotFound(
                f"no commit of {params.rev} changed {params.path}, and it is not there now",
                reason="file_not_found",
                suggestion="list_files with a part of its name finds it",
            )
        return commits

    revisions = find_revisions(workspace, call.session)
    found_repository = await revisions.ask_repository(ask)
    more = len(found_repository) > params.limit
    return {
        "results": [
            format_commit(revision) for revision in found_repository[: params.limit]
        ],
        "next": encode_cursor(params, skip + params.limit) if more else None,
    }


class BlameParams(Params):
    """Lines of a file at a revision."""

    path: PathText = Field(description=PATH)
    rev: RevisionText = Field(
        "HEAD", description="Revision; uncommitted lines have no history."
    )
    start_line: LineNumber = Field(1, description="First line, from 1.")
    end_line: LineNumber | None = Field(
        None, description=f"Last line, inclusive; {MOST_BLAMED} lines at most."
    )
    deadline_ms: Deadline = 20_000
    project: ProjectName = None


class BlamedLines(TypedDict):
    """Consecutive lines from one commit: the first, how many, and the first one's number in that commit."""

    start_line: int
    lines: int
    commit: str
    old_start_line: int


class BlameResult(TypedDict):
    """The commits of lines, in order, and these commits."""

    results: list[BlamedLines]
    commits: list[CommitEntry]


def render_blame(result: BlameResult, style: Style) -> Iterator[str]:
    """Yield each run of lines with its commit."""
    known = {
        current_commit["commit"]: current_commit for current_commit in result["commits"]
    }
    for run in result["results"]:
        commit = known[run["commit"]]
        last = run["start_line"] + run["lines"] - 1
        name = commit["commit"][:SHOWN_NAME]
        source = f"{name} {commit['author']}: {commit['subject']}"
        yield style.text(f"{run['start_line']}-{last} {source}")


@handler("blame", command="blame path", toolset="editors", render=render_blame)
async def blame(call: Call[Host], params: BlameParams) -> BlameResult:
    """Report which commit each line of a file is from, at a revision."""
    workspace = await call.host.workspace(call, params.project)
    most = params.start_line + MOST_BLAMED - 1
    # git's time grows with the lines asked for, so a page is bounded whatever the
    # caller says.
    lines = (params.start_line, min(params.end_line or most, most))
    deadline = time.monotonic() + params.deadline_ms / 1000

    def ask(repository: Repository) -> tuple[list[git.BlameSpan], list[git.Commit]]:
        path = find_inside(workspace, params.path)
        with expiring(deadline):
            return git.blame(repository, params.rev, path, lines)

    revisions = find_revisions(workspace, call.session)
    found, commits = await revisions.ask_repository(ask)
    shown: list[BlamedLines] = [
        {
            "start_line": blame_span.start,
            "lines": blame_span.lines,
            "commit": blame_span.commit,
            "old_start_line": blame_span.old_start,
        }
        for blame_span in sorted(found)
    ]
    return {"results": shown, "commits": [format_commit(commit) for commit in commits]}


def find_inside(workspace: Project, path: str) -> bytes:
    """Return a path below the project's root; the file need not exist. Raises Forbidden outside of the root."""
    asked = path_from_json(path)
    if b"\0" in asked:
        raise InvalidParams("path: contains a NUL", field="path")
    path_inside = workspace.editor.root.relative(asked)
    if b".." in path_inside.split(
        b"/"
    ):  # the repository may be larger than the project
        raise outside_root(asked)
    return path_inside


def _is_there(workspace: Project, path: bytes) -> bool:
    """Return whether a path is in the project; what is behind a link is not, wherever it leads."""
    files = RootFiles(RootFolder(os.fsencode(workspace.root)))
    try:
        files.lstat(path)
    except OSError:
        return False
    finally:
        files.close()
    return True


def format_commit(commit: git.Commit) -> CommitEntry:
    """Return a commit in the form of an answer."""
    return {
        "commit": commit.name,
        "parents": [*commit.parents],
        "time": commit.time,
        "author": commit.author,
        "subject": commit.subject,
    }


class FolderParams(Params):
    """A folder of a project."""

    path: PathText | None = Field(
        None, description="Folder, relative to the project's root; default: the root."
    )
    fresh: Fresh = True
    rev: Rev = None
    project: ProjectName = None


class FolderEntry(FilePlace):
    """A file, or a folder with how many `files` are below it."""

    files: NotRequired[int]


class FolderResult(TypedDict):
    """A folder's subfolders, then its files, each by name; `total` counts the files below it."""

    results: list[FolderEntry]
    total: int
    coverage: Coverage


def render_folder(result: FolderResult, style: Style) -> Iterator[str]:
    """Yield each entry, folders with a slash and their number of files."""
    for entry in result["results"]:
        line = style.path(entry)
        if "files" in entry:
            line += f"/ {entry['files']}"
        yield line


@handler("list_folder", command="folder path", toolset="editors", render=render_folder)
async def list_folder(call: Call[Host], params: FolderParams) -> FolderResult:
    """List a folder's searched files: its subfolders with their number of files, then its files."""
    started = time.perf_counter()
    view = await open_view(call, params)
    if params.fresh:
        fresh = await view.refresh()
    else:
        fresh = False
    given = (params.path or "").strip("/")
    if given not in {"", "."}:
        under = await resolve_path(view, given)
    else:
        under = b""

    def look() -> tuple[dict[bytes, int], list[bytes], int]:
        if under:
            prefix = under + b"/"
        else:
            prefix = b""
        paths = view.paths()
        # Paths are sorted, so a folder's files are consecutive.
        first = bisect_left(paths, prefix)
        folders = Counter[bytes]()
        files: list[bytes] = []
        total = 0
        for at in range(first, len(paths)):
            path = paths[at]
            if not path.startswith(prefix):
                break
            total += 1
            name, slash, _ = path[len(prefix) :].partition(b"/")
            if slash:
                folders[prefix + name] += 1
            else:
                files.append(path)
        return folders, files, total

    folders, files, total = await view.in_turn(look)
    entries: list[FolderEntry] = [
        {**path_to_json(path), "files": count}  # type: ignore[typeddict-item]  # file_path, and its bytes if needed
        for path, count in sorted(folders.items())
    ]
    entries += [{**path_to_json(path)} for path in files]  # type: ignore[typeddict-item]  # as above
    stats = SearchStats()
    stats.complete = len(entries) <= MOST_ENTRIES
    coverage = view.coverage(
        stats, fresh=fresh or view.revision_id is not None, started=started
    )
    return {"results": entries[:MOST_ENTRIES], "total": total, "coverage": coverage}


HANDLERS: tuple[Handler, ...] = (list_revisions, history, blame, list_folder)
