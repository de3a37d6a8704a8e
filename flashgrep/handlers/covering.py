"""What an answer covered, for every method that searches."""

import time
from typing import NotRequired

from typing_extensions import TypedDict

from flashgrep.ingest.globs import PathFilter
from flashgrep.search.exact import Answer
from flashgrep.workspace import Workspace

COUNT_UP_TO = 20_000
"""Files that a filter is tried on just to say how many it lets through (about 1 ms)."""

UNLISTED = "the project's files have not all been listed yet"


class Coverage(TypedDict):
    """What an answer covered: never an empty list that hides a time-out.

    `files_searched`: files read, or ruled out by the index (with a filter over a large project, or before its files are
    listed: files read only).
    """

    complete: bool
    fresh: bool
    files_searched: int
    files_skipped: dict[str, int]
    stage: str
    generation: int
    took_ms: float
    detail: NotRequired[str]


def coverage_of(
    workspace: Workspace, answer: Answer, *, fresh: bool, started: float, keep: PathFilter | None = None
) -> Coverage:
    """Return the coverage of an answer; ``started`` on the clock of time.perf_counter().

    Complete is only what was asked of files that a listing vouches for, one that had ended before.
    """
    since = workspace.tree.listed_since
    listed = fresh or (since is not None and since <= started)
    found: Coverage = {
        "complete": answer.complete and listed,
        "fresh": fresh,
        "files_searched": _searched(workspace, answer, keep),
        "files_skipped": workspace.tree.with_unread(answer.skipped),
        "stage": workspace.progress.stage,
        "generation": workspace.generation,
        "took_ms": round((time.perf_counter() - started) * 1000, 3),
    }
    unlisted = "" if listed else UNLISTED
    parts = (unlisted, answer.detail, workspace.freshness.swept_because, workspace.progress.detail, _unused(workspace))
    detail = "; ".join(part for part in parts if part)
    if detail:
        found["detail"] = detail
    return found


def _unused(workspace: Workspace) -> str:
    unused = workspace.walker.unused_rules().encode("utf-8", "replace").decode()
    return f"more files than ignore rules leave: {unused}" if unused else ""


def _searched(workspace: Workspace, answer: Answer, keep: PathFilter | None) -> int:
    tree = workspace.tree
    if not answer.complete or tree.listed_since is None:
        return answer.files_read
    if keep is None:
        return tree.count() - sum(answer.skipped.values())
    if len(tree.table) > COUNT_UP_TO:
        return answer.files_read
    return len(workspace.paths(keep)) - sum(answer.skipped.values())
