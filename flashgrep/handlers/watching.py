"""`watch_codebase`: follow a folder's changes, or not."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.handlers.indexing import PATH, folder_named, root_around
from flashgrep.model import show_path
from flashgrep.params import PathText
from flashgrep.registry import Call, Handler, Params, Usage, handler
from flashgrep.workspace import Workspace


class WatchCodebaseParams(Params):
    """Which folder, and what to do."""

    path: PathText = Field(min_length=1, description=PATH)
    action: Literal["start", "stop", "status"] = Field(
        description="start: follow changes as they happen, as every project does once it is open. stop: follow none; "
        "each question then looks at the whole tree, and is as right as before. status: change nothing."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        20, ge=0, le=10_000, description="Most files to name; list_files names them all."
    )


class WatchedFile(TypedDict):
    """A file that is watched."""

    file_path: str
    file_path_bytes: NotRequired[str]


class WatchCodebaseResult(TypedDict):
    """How a project is watched: `changed` says whether this call changed that, `results` names files watched.

    `state`: watching; stopped; failed (`problem` says why: every question looks at the whole tree); closed (not asked
    about since the daemon started, or no project at all).
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
    results: list[WatchedFile]
    stage: str
    generation: int


@handler("watch_codebase", title="Watch a codebase", toolset="research", safety="changes_index", idempotent=True)
async def watch_codebase(call: Call[Catalogue], params: WatchCodebaseParams) -> WatchCodebaseResult:
    """Start or stop following a folder's changes, or tell whether they are followed and which files.

    Saying it twice is saying it once. Answers are right either way: stopped, each question looks at the whole tree.
    """
    root = root_around(call, folder_named(call, params.path))
    opened = {str(workspace.path) for workspace in call.host.list_open()}
    if params.action != "start" and root not in opened:
        return _closed(params.action, root)
    workspace = await call.host.workspace(call, root)
    changed = root not in opened
    if params.action != "status":
        changed |= await workspace.freshness.switch(on=params.action == "start")
    await workspace.refresh()
    return await workspace.in_turn(lambda: _told(workspace, params, changed=changed))


def _told(workspace: Workspace, params: WatchCodebaseParams, *, changed: bool) -> WatchCodebaseResult:
    problem = str(workspace.facts()["watch_problem"])
    state: Any = "stopped" if workspace.freshness.is_switched_off else "failed" if problem else "watching"
    paths = workspace.paths() if state == "watching" else []
    named: list[Any] = [show_path(path) for path in paths[: params.limit]]
    return {
        "action": params.action,
        "project": workspace.name,
        "path": str(workspace.path).encode("utf-8", "replace").decode(),
        "state": state,
        "changed": changed,
        "message": _message(state, len(paths), changed=changed),
        "problem": problem if state == "failed" else "",
        "files_watched": len(paths),
        "files_pending": len(workspace.tree.pending),
        "results": named,
        "stage": workspace.progress.stage,
        "generation": workspace.generation,
    }


def _message(state: str, files: int, *, changed: bool) -> str:
    when = "from now on" if changed else "as before"
    if state == "watching":
        return f"watching {files} files, {when}"
    return f"{state}, {when}: each question looks at the whole tree"


def _closed(action: str, root: str) -> WatchCodebaseResult:
    return {
        "action": action,
        "project": None,
        "path": root.encode("utf-8", "replace").decode(),
        "state": "closed",
        "changed": False,
        "message": "not watched: nothing has been asked about it yet",
        "problem": "",
        "files_watched": 0,
        "files_pending": 0,
        "results": [],
        "stage": "listing",
        "generation": 0,
    }


HANDLERS: tuple[Handler, ...] = (watch_codebase,)
