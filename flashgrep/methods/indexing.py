"""The index of a project: `index_codebase` builds it, `watch_codebase` follows changes, `stats` reports its state."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep import __version__
from flashgrep.base.config import Embedding, EmbeddingProvider
from flashgrep.base.errors import InvalidParams, NotFound, Unavailable
from flashgrep.base.failures import count_failures
from flashgrep.base.model import path_to_json, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    Params,
    PathText,
    Usage,
    handler,
)
from flashgrep.index.reader import NOTHING_STORED
from flashgrep.index.table import TEST, FileTable, tier_of
from flashgrep.methods.common import FilePlace, ProjectParams
from flashgrep.methods.text import Style, format_time, render_fields
from flashgrep.project import Workspace
from flashgrep.project.catalogue import HOW_TO_GET_A_PROJECT, Catalogue

PATH: Final = (
    "Folder of the codebase: an absolute path, or one relative to the project."
)
LOOK_SECONDS: Final = 0.1
"""Seconds between looks at the progress."""
ANSWER_SECONDS: Final = 1.0
"""Seconds before the call's own deadline at which the answer is given, complete or not."""
NAME: Final = "index_codebase"


class IndexCodebaseParams(Params):
    """What to index, and how."""

    path: PathText = Field(min_length=1, description=PATH)
    provider: Annotated[EmbeddingProvider | None, RARE] = Field(
        None,
        description="Embedding provider; default: as in the settings.",
    )
    include_tests: Annotated[bool, RARE] = Field(
        default=False,
        description="Include test files in `files`; they are indexed in any case.",
    )
    rebuild: bool = Field(default=False, description="Delete the index and rebuild it.")
    deadline_ms: Annotated[int, RARE] = Field(
        45_000,
        ge=1,
        le=600_000,
        description="After this time the answer reports the progress; indexing continues.",
    )


class Incremental(TypedDict):
    """Number of files by their change since this connection last asked, or since the project was opened."""

    added: int
    changed: int
    removed: int
    unchanged: int


class IndexCodebaseResult(TypedDict):
    """What the index holds; `complete` false: time ran out, `stage` says how far it got, and indexing continues."""

    project: str
    path: str
    complete: bool
    stage: str
    files: int
    test_files: int
    files_skipped: dict[str, int]
    chunks: int
    lines: int
    index_size_bytes: int
    duration_seconds: float
    rebuilt: bool
    provider: str
    incremental: Incremental
    detail: NotRequired[str]


def render_index(result: IndexCodebaseResult, style: Style) -> Iterator[str]:
    """Yield what the index holds, and whether it is complete."""
    files = result["files"] + result["test_files"]
    changes = result["incremental"]
    changed = ", ".join(
        f"{changes[name]} {name}"
        for name in ("added", "changed", "removed")
        if changes[name]
    )
    yield (
        f"{result['project']} ({result['path']}): {files:,} files, {result['chunks']:,} chunks, "
        f"{result['stage']}, in {result['duration_seconds']:.1f} s"
        + (f"; {changed}" if changed else "")
    )
    if not result["complete"]:
        yield style.note(
            "not done yet; indexing continues, and answers are right meanwhile"
        )
    if "detail" in result:
        yield style.note(result["detail"])


@handler(
    NAME,
    title="Index a codebase",
    toolset="research",
    listing="without_project",
    safety="changes_index",
    render=render_index,
)
async def index_codebase(
    call: Call[Catalogue], params: IndexCodebaseParams
) -> IndexCodebaseResult:
    """Index a folder and wait until it is done; called again, it reads only what changed.

    Not needed before searching or after changes. On a connection without a project, later calls use this one.
    """
    started = time.perf_counter()
    root = root_around(call, resolve_folder(call, params.path))
    embedding = await _choose_embedding(call, params.provider)
    workspace = await call.host.workspace(call, root)
    if call.host.is_visited(root):
        workspace = await call.host.adopt(Path(root))
    # From now on, calls on this connection that name no project use this one.
    # A folder that was only visited gives way to the first project.
    session = call.session
    projects = [own for own in session.indexed if own not in session.visited]
    session.indexed = tuple(dict.fromkeys([*projects, str(workspace.path)]))
    session.visited = ()
    if embedding is not None:
        workspace.embed_by(embedding.model_dump_json())
    # What this connection last saw indexed: the answer counts changes since then.
    notes = call.session.notes.setdefault(NAME, {})
    before = notes.get(workspace.root, workspace.tree.table)
    if params.rebuild:
        await workspace.rebuild()
        before = FileTable()

    seconds = params.deadline_ms / 1000
    if call.deadline is not None:
        # The call's own deadline would end it with an error, though indexing continues
        # and there is progress to report.
        seconds = min(seconds, call.deadline - time.monotonic() - ANSWER_SECONDS)
    # A timeout ends the waiting, not the indexing.
    with anyio.move_on_after(seconds) as patience:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report, call, workspace)
            await workspace.wait_embedded()
            tasks.cancel_scope.cancel()
    progress = workspace.progress
    # An error, not an answer with zeros: an agent would continue as if there were an
    # index.
    if progress.stage == "failed":
        raise Unavailable(
            f"indexing failed: {progress.detail}",
            reason="indexing_failed",
            path=path_to_text(workspace.root),
            suggestion="see fgrep doctor and fgrep daemon logs; searching works without an index",
        )

    notes[workspace.root] = workspace.tree.table
    size = await workspace.size() or NOTHING_STORED
    tests = sum(tier_of(path) == TEST for path in workspace.paths())
    result: IndexCodebaseResult = {
        "project": workspace.name,
        "path": path_to_text(workspace.root),
        "complete": not patience.cancelled_caught,
        # A pass with nothing to do still names the stages one by one.
        "stage": progress.stage if patience.cancelled_caught else "ready",
        "files": workspace.tree.count() - (0 if params.include_tests else tests),
        "test_files": tests,
        "files_skipped": workspace.tree.count_skips(),
        "chunks": size.chunks,
        "lines": size.lines,
        "index_size_bytes": size.file_bytes,
        "duration_seconds": round(time.perf_counter() - started, 3),
        "rebuilt": params.rebuild,
        "provider": Embedding.model_validate_json(workspace.embedding).provider,
        "incremental": await anyio.to_thread.run_sync(
            difference, before, workspace.tree.table
        ),
    }
    detail = "; ".join(part for part in (progress.detail, progress.problem) if part)
    if detail:
        result["detail"] = detail
    return result


class WatchCodebaseParams(Params):
    """Which folder, and what to do."""

    path: PathText = Field(min_length=1, description=PATH)
    action: Literal["start", "stop", "status"] = Field(
        description="start: watch, the default. stop: each question then scans the whole tree. status: only report."
    )
    limit: Annotated[int, Usage(short="-l", rare=True)] = Field(
        20, ge=0, le=10_000, description="Most files to name; list_files names all."
    )


class WatchCodebaseResult(TypedDict):
    """How a project is watched: `changed` says whether this call changed it, `results` names watched files.

    `state`: watching; stopped; failed (`problem` says why; every question scans the whole tree); closed (not opened
    since the daemon started, or not a project).
    """

    action: str
    project: str | None
    path: str
    state: Literal["watching", "stopped", "failed", "closed"]
    changed: bool
    message: str
    problem: str
    files_watched: int
    files_pending: int
    results: list[FilePlace]
    stage: str
    generation: int


def render_watch(result: WatchCodebaseResult, style: Style) -> Iterator[str]:
    """Yield the state."""
    yield f"{result['path']}: {result['message']}"
    if result["problem"]:
        yield style.note(result["problem"])


@handler(
    "watch_codebase",
    title="Watch a codebase",
    toolset="research",
    safety="changes_index",
    idempotent=True,
    render=render_watch,
)
async def watch_codebase(
    call: Call[Catalogue], params: WatchCodebaseParams
) -> WatchCodebaseResult:
    """Start or stop watching a folder for changes, or report whether it is watched and which files.

    Answers are right either way.
    """
    root = root_around(call, resolve_folder(call, params.path))
    opened = {str(workspace.path) for workspace in call.host.list_open()}
    # Asking about a project opens it, which would start watching it.
    if params.action != "start" and root not in opened:
        return {
            "action": params.action,
            "project": None,
            "path": path_to_text(os.fsencode(root)),
            "state": "closed",
            "changed": False,
            "message": "not watched: nothing has been asked about it, or not lately",
            "problem": "",
            "files_watched": 0,
            "files_pending": 0,
            "results": [],
            "stage": "listing",
            "generation": 0,
        }
    workspace = await call.host.workspace(call, root)
    changed = root not in opened
    if params.action != "status":
        changed |= await workspace.freshness.switch(on=params.action == "start")
    await workspace.refresh()

    def describe() -> WatchCodebaseResult:
        problem = str(workspace.facts()["watch_problem"])
        state: Any = (
            "stopped"
            if workspace.freshness.is_switched_off
            else "failed"
            if problem
            else "watching"
        )
        if state == "watching":
            paths = workspace.paths()
        else:
            paths = []
        named: list[Any] = [path_to_json(path) for path in paths[: params.limit]]
        if changed:
            when = "from now on"
        else:
            when = "as before"
        sweeping = f"{state}, {when}: each question scans the whole tree"
        return {
            "action": params.action,
            "project": workspace.name,
            "path": path_to_text(workspace.root),
            "state": state,
            "changed": changed,
            "message": f"watching {len(paths)} files, {when}"
            if state == "watching"
            else sweeping,
            "problem": problem if state == "failed" else "",
            "files_watched": len(paths),
            "files_pending": len(workspace.tree.pending),
            "results": named,
            "stage": workspace.progress.stage,
            "generation": workspace.generation,
        }

    return await workspace.in_turn(describe)


class StatsResult(TypedDict):
    """The live state of a project and its index; sizes in bytes, times in seconds since 1970.

    `store_projects`: work trees of one repository that share the index; its sizes are for all of them. `shared_texts`
    and `shared_bytes` are stored once for this project and others; `revision_texts` were stored for questions about
    revisions. `failures`: of the daemon's own work, by kind, since it started; its log has the details. `address`: for
    a team's repository, the host and path it is fetched from. Without a project: the daemon's version and process, the
    known projects, and advice (`message`).
    """

    project: str | None
    version: str
    projects: list[str]
    message: NotRequired[str]
    address: NotRequired[str]
    pid: NotRequired[int]
    root: NotRequired[str]
    total_files: NotRequired[int]
    total_chunks: NotRequired[int]
    total_lines: NotRequired[int]
    index_size_bytes: NotRequired[int]
    gram_bytes: NotRequired[int]
    vector_bytes: NotRequired[int]
    store_projects: NotRequired[int]
    shared_texts: NotRequired[int]
    shared_bytes: NotRequired[int]
    revision_texts: NotRequired[int]
    revision_bytes: NotRequired[int]
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
    failures: NotRequired[dict[str, int]]


def _render_without_project(result: StatsResult, style: Style) -> Iterator[str]:
    """Say that this is no project, and which there are."""
    if style.is_person:
        yield "no project here; make the folder one with: fgrep index"
    else:
        yield result["message"]
    if result["projects"]:
        yield f"projects: {', '.join(result['projects'])}"
    else:
        yield "no projects yet"


def render_stats(result: StatsResult, style: Style) -> Iterator[str]:
    """Yield the figures of the index, and its problems."""
    if "message" in result:
        yield from _render_without_project(result, style)
        return
    skipped = ", ".join(
        f"{count} {reason}"
        for reason, count in result.get("files_skipped", {}).items()
        if count
    )
    pending = result.get("files_pending", 0)
    size = result.get("index_size_bytes", 0)
    files = result.get("total_files", 0)
    stage = str(result.get("stage"))
    held = f"{result.get('total_lines', 0):,} lines, {result.get('total_chunks', 0):,} chunks"
    share = result.get("indexing", {}).get("share", 1)
    waiting = "answers are right, only slower and ranked by words"
    if pending:
        waiting = f"{pending} files left; {waiting}"
    problems = (
        result.get("problem"),
        result.get("watch_problem"),
        *result.get("settings_warnings", ()),
    )
    failures = ", ".join(
        f"{kind} ({count})" for kind, count in result.get("failures", {}).items()
    )
    if style.is_person:
        yield from render_fields(
            [
                ("project", f"{result['project']} ({result.get('root')})"),
                ("files", f"{files:,}"),
                ("indexed", held),
                ("skipped", skipped),
                ("index", f"{size:,} bytes, {stage}"),
                (
                    "updated",
                    format_time(updated)
                    if (updated := result.get("last_update"))
                    else "",
                ),
                (
                    "watching",
                    "yes"
                    if result.get("watching")
                    else "no: each question scans the whole tree",
                ),
                ("indexing", f"{share:.0%}, {waiting}" if share < 1 else ""),
                *(("problem", str(problem)) for problem in problems if problem),
                ("failures", failures and f"{failures}; see the daemon's log"),
                ("version", result["version"]),
            ],
            style,
        )
        return
    yield f"{result['project']} ({result.get('root')}), flashgrep {result['version']}"
    yield f"{files:,} files, {held}, index {size:,} bytes, {stage}" + (
        f", skipped: {skipped}" if skipped else ""
    )
    if share < 1:
        yield f"[indexing: {share:.0%}, {waiting}]"
    yield from (f"[{problem}]" for problem in problems if problem)


@handler("stats", title="Index statistics", render=render_stats)
async def stats(call: Call[Catalogue], params: ProjectParams) -> StatsResult:
    """Return a project's current figures: files, indexed texts, index size, last update, stage and progress."""
    session = call.session
    reachable = call.host.list_reachable(session)
    if params.project is None and not (session.projects or session.indexed):
        message = f"this connection is bound to no project: {HOW_TO_GET_A_PROJECT}"
        return {
            "project": None,
            "version": __version__,
            "projects": reachable,
            "message": message,
            "pid": os.getpid(),
        }
    workspace = await call.host.workspace(call, params.project)
    size = await workspace.recent_size() or NOTHING_STORED
    progress = workspace.progress
    facts = workspace.facts()
    return {
        "project": workspace.name,
        "version": __version__,
        "projects": reachable,
        "root": path_to_text(workspace.root),
        "total_files": workspace.tree.count(),
        "total_chunks": size.chunks,
        "total_lines": size.lines,
        "index_size_bytes": size.file_bytes + size.vector_bytes,
        "gram_bytes": size.gram_bytes,
        "vector_bytes": size.vector_bytes,
        "store_projects": size.projects,
        "shared_texts": size.shared_texts,
        "shared_bytes": size.shared_bytes,
        "revision_texts": size.revision_texts,
        "revision_bytes": size.revision_bytes,
        "last_update": progress.updated or None,
        "stage": progress.stage,
        "stage_since": progress.since,
        "stage_detail": progress.detail,
        "generation": workspace.generation,
        "files_pending": facts["pending"],
        "files_skipped": workspace.tree.count_skips(),
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
        "failures": count_failures(),
    }


HANDLERS: tuple[Handler, ...] = (index_codebase, watch_codebase, stats)


def difference(before: FileTable, after: FileTable) -> Incremental:
    """Count the files that are new, changed, gone, or unchanged."""
    texts = dict(zip(before.paths, before.columns[:, 0].tolist(), strict=True))
    # What is left in ``texts`` afterwards was removed.
    was = [texts.pop(path, None) for path in after.paths]
    same = sum(
        old == new for old, new in zip(was, after.columns[:, 0].tolist(), strict=True)
    )
    added = was.count(None)
    return {
        "added": added,
        "changed": len(was) - added - same,
        "removed": len(texts),
        "unchanged": same,
    }


async def _choose_embedding(
    call: Call[Catalogue], provider: EmbeddingProvider | None
) -> Embedding | None:
    """Return the settings for a provider; None: keep the current ones; raises ProviderUnavailable."""
    if provider is None:
        return None
    settings: Embedding = await call.host.searchers.embedding(call.host, provider)
    return settings


async def _report(call: Call[Catalogue], workspace: Workspace) -> None:
    """Report files indexed of all; reports without an advance are not sent, as the protocol requires."""
    await workspace.refresh()
    last = -1.0
    while True:
        progress = workspace.progress
        total = workspace.tree.count()
        # Counted in files over all stages, so that the number grows from one stage to
        # the next.
        done = round(progress.share() * total, 1)
        if done > last:
            last = done
            left = progress.left.get(
                progress.stage,
                sum(mark.ours for mark in workspace.tree.pending.values()),
            )
            if left >= 0:
                reached = total - min(total, left)
            else:
                reached = 0
            call.progress(done, total, f"{progress.stage}: {reached} of {total} files")
        await anyio.sleep(LOOK_SECONDS)


def resolve_folder(call: Call[Catalogue], path: str) -> Path:
    """Return the folder a caller names.

    Raises:
        InvalidParams: it is relative, and there is no project it could be relative to.
        NotFound: it is not there, or no folder.

    """
    given_path = Path(path)
    if not given_path.is_absolute():
        own = call.session.projects or call.session.indexed
        if len(own) != 1:
            raise InvalidParams(
                f"path: an absolute path is needed: {path}", field="path"
            )
        given_path = (
            next(
                (
                    info.root
                    for info in call.host.list_projects()
                    if info.name == own[0]
                ),
                Path(own[0]),
            )
            / given_path
        )
    try:
        folder = given_path.resolve(strict=True)
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # missing, an impossible name, a cycle of links
        suggestion = "give the absolute path of a folder that exists"
        raise NotFound(
            f"no such path: {path}",
            reason="path_not_found",
            path=path,
            suggestion=suggestion,
        ) from None
    if not folder.is_dir():
        raise NotFound(f"not a folder: {path}", reason="directory_not_found", path=path)
    return folder


def root_around(call: Call[Catalogue], folder: Path) -> str:
    """Return the root of the project a folder lies in, else the folder, which may become one."""
    roots = {info.root for info in call.host.list_projects()}
    return str(
        next(
            (
                current_folder
                for current_folder in (folder, *folder.parents)
                if current_folder in roots
            ),
            folder,
        )
    )
