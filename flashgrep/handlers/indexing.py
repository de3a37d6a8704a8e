"""`index_codebase`: make a folder a project and index it now."""

import time
from pathlib import Path
from typing import Annotated, Final, NotRequired

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.config import Embedding, EmbeddingProvider
from flashgrep.embed import available, open_embedder
from flashgrep.embed.providers import HOSTED
from flashgrep.errors import InvalidParams, NotFound, ProviderUnavailable, Unavailable
from flashgrep.index.table import FileTable
from flashgrep.index.tiers import TEST, tier_of
from flashgrep.model import show_path
from flashgrep.params import PathText
from flashgrep.registry import RARE, Call, Handler, Params, handler
from flashgrep.workspace import Workspace

PATH: Final = "Folder of the codebase: an absolute path, or one relative to the connection's own project."
LOOK_SECONDS: Final = 0.1
"""Progress is looked at so often."""
ANSWER_SECONDS: Final = 1.0
"""So long before the call's own deadline the answer is given, complete or not."""
NAME: Final = "index_codebase"


class IndexCodebaseParams(Params):
    """What to index, and how."""

    path: PathText = Field(min_length=1, description=PATH)
    provider: EmbeddingProvider | None = Field(
        None,
        description="Who makes the vectors of this project until the daemon ends; by default who the settings say.",
    )
    include_tests: bool = Field(
        default=False,
        description="Count test files among `files`. They are indexed and searched in any case, ranked after sources.",
    )
    rebuild: bool = Field(default=False, description="Throw the index away and build it anew.")
    deadline_ms: Annotated[int, RARE] = Field(
        100_000, ge=1, le=600_000, description="After so long the answer says how far it is; indexing goes on."
    )


class Incremental(TypedDict):
    """Files by what became of them since this connection last asked, or since the project was opened."""

    added: int
    changed: int
    removed: int
    unchanged: int


class IndexCodebaseResult(TypedDict):
    """What the index holds; `complete` false: time ran out, `stage` says how far it is, and indexing goes on."""

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


@handler(NAME, title="Index a codebase", toolset="research", safety="changes_index")
async def index_codebase(call: Call[Catalogue], params: IndexCodebaseParams) -> IndexCodebaseResult:
    """Index a folder and wait until it is done; called again, only what changed is read.

    Not needed before searching, which is right without an index, only slower; changes are followed by themselves.
    On a connection without a project, further calls go to this one.
    """
    started = time.perf_counter()
    root = root_around(call, folder_named(call, params.path))
    embedding = await _embedding(call, params.provider)
    workspace = await call.host.workspace(call, root)
    call.session.indexed = tuple(dict.fromkeys([*call.session.indexed, str(workspace.path)]))
    if embedding is not None:
        workspace.embed_by(embedding.model_dump_json())
    before = await _before(call, workspace, rebuild=params.rebuild)
    complete = await _indexed(call, workspace, _seconds(call, params))
    if workspace.progress.stage == "failed":
        raise _failed(workspace)
    call.session.notes[NAME][workspace.root] = workspace.tree.table
    size = await workspace.size()
    tests = sum(tier_of(path) == TEST for path in workspace.paths())
    result: IndexCodebaseResult = {
        "project": workspace.name,
        "path": show_path(workspace.root)["file_path"],
        "complete": complete,
        "stage": workspace.progress.stage,
        "files": workspace.tree.count() - (0 if params.include_tests else tests),
        "test_files": tests,
        "files_skipped": workspace.tree.skipped(),
        "chunks": size.chunks if size else 0,
        "lines": size.lines if size else 0,
        "index_size_bytes": size.file_bytes if size else 0,
        "duration_seconds": round(time.perf_counter() - started, 3),
        "rebuilt": params.rebuild,
        "provider": Embedding.model_validate_json(workspace.embedding).provider,
        "incremental": await anyio.to_thread.run_sync(difference, before, workspace.tree.table),
    }
    detail = "; ".join(part for part in (workspace.progress.detail, workspace.progress.problem) if part)
    if detail:
        result["detail"] = detail
    return result


def difference(before: FileTable, after: FileTable) -> Incremental:
    """Count the files that are new, have another text, are gone, or are as they were."""
    texts = dict(zip(before.paths, before.columns[:, 0].tolist(), strict=True))
    was = [texts.pop(path, None) for path in after.paths]
    same = sum(old == new for old, new in zip(was, after.columns[:, 0].tolist(), strict=True))
    added = was.count(None)
    return {"added": added, "changed": len(was) - added - same, "removed": len(texts), "unchanged": same}


async def _embedding(call: Call[Catalogue], provider: EmbeddingProvider | None) -> Embedding | None:
    """Return the settings by which a provider embeds; None: those in force stay.

    Raises:
        ProviderUnavailable: it does not work here; ``data.available`` names those that would.

    """
    if provider is None:
        return None
    settings = call.host.settings
    if provider in HOSTED and provider != settings.embedding.provider:
        found = await anyio.to_thread.run_sync(available, settings, call.host.environ)
        here = [name for name in found if name not in HOSTED]
        message = f"{provider} would have the code sent to another machine: only the user's own settings can choose it"
        raise ProviderUnavailable(message, available=here, provider=provider)
    usual = Embedding(provider=provider)  # another's model and place are none of its own
    section = settings.embedding if provider == settings.embedding.provider else usual
    asked = settings.model_copy(update={"embedding": section})
    await anyio.to_thread.run_sync(open_embedder, asked, call.host.environ)
    return section


async def _before(call: Call[Catalogue], workspace: Workspace, *, rebuild: bool) -> FileTable:
    """Return the files as this connection last knew them to be indexed."""
    known = call.session.notes.setdefault(NAME, {}).get(workspace.root, workspace.tree.table)
    if rebuild:
        await workspace.rebuild()
        return FileTable()
    return known if isinstance(known, FileTable) else FileTable()


async def _indexed(call: Call[Catalogue], workspace: Workspace, seconds: float) -> bool:
    """Wait until all is indexed, reporting files as they are; False: not within so many seconds."""
    with anyio.move_on_after(seconds) as patience:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report, call, workspace)
            await workspace.wait_embedded()
            tasks.cancel_scope.cancel()
    return not patience.cancelled_caught


async def _report(call: Call[Catalogue], workspace: Workspace) -> None:
    """Report files indexed of all; a report that is no advance is not sent, as the protocol wants it."""
    await workspace.refresh()
    last = -1.0
    while True:
        done, total, message = _advance(workspace)
        if done > last:
            last = done
            call.progress(done, total, message)
        await anyio.sleep(LOOK_SECONDS)


def _advance(workspace: Workspace) -> tuple[float, int, str]:
    """Return how many files' worth of all stages is done, of how many files, and how far the stage of now is."""
    progress, total = workspace.progress, workspace.tree.count()
    left = progress.left.get(progress.stage, sum(mark.ours for mark in workspace.tree.pending.values()))
    reached = total - min(total, left) if left >= 0 else 0
    return round(progress.share() * total, 1), total, f"{progress.stage}: {reached} of {total} files"


def _seconds(call: Call[Catalogue], params: IndexCodebaseParams) -> float:
    wanted = params.deadline_ms / 1000
    return wanted if call.deadline is None else min(wanted, call.deadline - time.monotonic() - ANSWER_SECONDS)


def _failed(workspace: Workspace) -> Unavailable:
    return Unavailable(
        f"indexing failed: {workspace.progress.detail}",
        reason="indexing_failed",
        path=show_path(workspace.root)["file_path"],
        suggestion="see fgrep doctor and fgrep daemon logs; searching goes on without an index",
    )


def folder_named(call: Call[Catalogue], path: str) -> Path:
    """Return the folder a caller names.

    Raises:
        InvalidParams: it is relative, and there is nothing it could be relative to.
        NotFound: it is not there, or no folder.

    """
    given = Path(path)
    try:
        folder = (given if given.is_absolute() else _own_root(call, path) / given).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # nothing there, a name that cannot be, links in a circle
        suggestion = "give the absolute path of a folder that exists"
        raise NotFound(f"no such path: {path}", reason="path_not_found", path=path, suggestion=suggestion) from None
    if not folder.is_dir():
        raise NotFound(f"not a folder: {path}", reason="directory_not_found", path=path)
    return folder


def _own_root(call: Call[Catalogue], path: str) -> Path:
    own = call.session.projects or call.session.indexed
    if len(own) != 1:
        raise InvalidParams(f"path: an absolute path is needed: {path}", field="path")
    return next((info.root for info in call.host.list_projects() if info.name == own[0]), Path(own[0]))


def root_around(call: Call[Catalogue], folder: Path) -> str:
    """Return the root of the project a folder lies in, else the folder, which may become one."""
    known = {info.root for info in call.host.list_projects()}
    return str(next((one for one in (folder, *folder.parents) if one in known), folder))


HANDLERS: tuple[Handler, ...] = (index_codebase,)
