"""Search by meaning: `search_code` in one project, `semantic_search` over several."""

import time
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import NotFound, Unavailable
from flashgrep.handlers.covering import Coverage
from flashgrep.handlers.filtering import path_filter
from flashgrep.handlers.pieces import (
    covering,
    fitting,
    language_of_piece,
    milliseconds_since,
    refuse_unindexed,
    reranker_of,
)
from flashgrep.model import show_path
from flashgrep.params import GlobText, Languages, NameText, PathText
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.meaning import MeaningAnswer, MeaningQuestion, Piece
from flashgrep.workspace import Workspace

ENVELOPE = 220
"""Characters an answer's piece takes beside its text."""


class SearchCodeParams(Params):
    """What to look for, where, and how."""

    query: str = Field(min_length=1, max_length=2000, description="A question in words, or names of code.")
    limit: Annotated[int, Usage(short="-l")] = Field(10, ge=1, le=100, description="Most pieces of code to send back.")
    semantic_weight: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of meaning against words, 0 to 1; by default 0.7 for questions in words, 0.3 for names.",
    )
    file_filter: GlobText | None = Field(
        None, min_length=1, description="Only files that match this glob, as src/auth/**."
    )
    language: Annotated[Languages, Usage(short="-t")] = Field(
        default=[], description="Only files of these languages, as py or rust."
    )
    threshold: float = Field(0.0, ge=0, le=1, description="Least score of a result.")
    max_tokens: int | None = Field(None, ge=50, le=1_000_000, description="Size of the answer, in tokens.")
    fresh: Annotated[bool, RARE] = Field(default=True, description="Take in all that was saved before this call.")
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class CodeFound(TypedDict):
    """A piece of code; `kind` as function, class, section or block; `score` 0 to 1; lines from 1, both inclusive.

    `path`, `startLine` and `endLine` repeat `file_path`, `start_line` and `end_line`.
    """

    content: str
    path: str
    startLine: int
    endLine: int
    score: float
    kind: str
    name: str
    language: str
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int


class SearchCodeResult(TypedDict):
    """Pieces of code, best first; `ranked_by` is `words` until there are vectors, then `words and meaning`."""

    results: list[CodeFound]
    ranked_by: str
    chunks_searched: int
    coverage: Coverage


@handler("search_code", title="Search code by meaning", toolset="research")
async def search_code(call: Call[Catalogue], params: SearchCodeParams) -> SearchCodeResult:
    """Find the functions, classes and sections that answer a question in words, or that fit names of code.

    Use it when you do not know what the code is called; `query` finds text exactly.
    """
    started = time.perf_counter()
    workspace = await call.host.workspace(call, params.project)
    fresh = await workspace.refresh() if params.fresh else False
    await refuse_unindexed(workspace)
    keep = await path_filter(workspace, [params.file_filter] if params.file_filter else [], [], params.language)
    question = MeaningQuestion(
        text=params.query,
        limit=params.limit,
        semantic_weight=params.semantic_weight,
        keep=keep,
        threshold=params.threshold,
        reranker=await reranker_of(call),
    )
    answer = await workspace.by_meaning(question)
    found = [_shown(piece) for piece in answer.results]
    budget = params.max_tokens or call.host.settings.query.max_tokens
    return {
        "results": fitting(found, budget, lambda one: len(one["content"]) + ENVELOPE),
        "ranked_by": answer.ranked_by,
        "chunks_searched": answer.chunks,
        "coverage": covering(workspace, answer, fresh=fresh, started=started),
    }


def _shown(piece: Piece) -> CodeFound:
    path = show_path(piece.path)
    chunk = piece.chunk
    return {
        "content": piece.text,
        "path": path["file_path"],
        "startLine": chunk.start_line,
        "endLine": chunk.end_line,
        "score": piece.score,
        "kind": chunk.kind,
        "name": chunk.name,
        "language": language_of_piece(piece),
        **path,  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
    }


class SemanticSearchParams(Params):
    """What to look for, and in which repository."""

    query: str = Field(
        min_length=1, max_length=1000, description="Natural language search query describing what you're looking for."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        10, ge=1, le=50, description="Maximum number of results to return."
    )
    threshold: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Minimum similarity score; 0.7: what one in a hundred unrelated pieces of code reaches.",
    )
    repository: NameText | None = Field(None, min_length=1, description="Filter results to a specific repository name.")


class RepositoryCode(CodeFound):
    """A piece of code and the repository it is in."""

    repository: str


class SearchMetadata(TypedDict):
    """How long it took and where was searched; `problems`: repositories that could not be, and why."""

    total_results: int
    query_time_ms: float
    embedding_time_ms: float
    repositories_searched: list[str]
    chunks_searched: int
    threshold: float
    ranked_by: str
    problems: dict[str, str]


class SemanticSearchResult(TypedDict):
    """Pieces of code of all repositories searched, best first."""

    results: list[RepositoryCode]
    metadata: SearchMetadata


@handler("semantic_search", title="Semantic search", toolset="knowledge")
async def semantic_search(call: Call[Catalogue], params: SemanticSearchParams) -> SemanticSearchResult:
    """Search indexed code repositories using natural language queries.

    Returns relevant code snippets ranked by semantic similarity.
    """
    started = time.perf_counter()
    found: list[RepositoryCode] = []
    metadata: SearchMetadata = {
        "total_results": 0,
        "query_time_ms": 0.0,
        "embedding_time_ms": 0.0,
        "repositories_searched": [],
        "chunks_searched": 0,
        "threshold": params.threshold,
        "ranked_by": "words and meaning",
        "problems": {},
    }
    workspaces = await _repositories(call, params.repository)
    for workspace in workspaces:
        try:
            answer = await _asked(call, workspace, params)
        except Unavailable as error:
            if len(workspaces) == 1:
                raise
            metadata["problems"][workspace.name] = error.message
            continue
        _take(metadata, workspace, answer)
        found.extend({**_shown(piece), "repository": workspace.name} for piece in answer.results)
    found.sort(key=lambda one: -one["score"])
    results = fitting(
        found[: params.limit], call.host.settings.query.max_tokens, lambda one: len(one["content"]) + ENVELOPE
    )
    metadata["total_results"] = len(results)
    metadata["query_time_ms"] = milliseconds_since(started)
    return {"results": results, "metadata": metadata}


async def _repositories(call: Call[Catalogue], named: str | None) -> list[Workspace]:
    """Return the projects to search: the one named, else all that the connection is bound to, else all that are open.

    The last is what its contract says, and no default: each result and the metadata name their repository.
    """
    if named is not None:
        try:
            return [await call.host.workspace(call, named)]
        except NotFound as error:
            known = call.host.list_reachable(call.session)
            raise NotFound(f"no such repository: {named}", reason="repository_not_found", known=known) from error
    if call.session.projects:
        return [await call.host.open(project, adopt=False) for project in call.session.projects]
    return call.host.list_open() or [await call.host.workspace(call, None)]


async def _asked(call: Call[Catalogue], workspace: Workspace, params: SemanticSearchParams) -> MeaningAnswer:
    await workspace.refresh()
    await refuse_unindexed(workspace)
    question = MeaningQuestion(
        text=params.query, limit=params.limit, threshold=params.threshold, reranker=await reranker_of(call)
    )
    return await workspace.by_meaning(question)


def _take(metadata: SearchMetadata, workspace: Workspace, answer: MeaningAnswer) -> None:
    metadata["repositories_searched"].append(workspace.name)
    metadata["chunks_searched"] += answer.chunks
    metadata["embedding_time_ms"] = round(metadata["embedding_time_ms"] + answer.embedding_ms, 3)
    if answer.ranked_by == "words":
        metadata["ranked_by"] = "words"
    if answer.problem:
        metadata["problems"][workspace.name] = answer.problem


HANDLERS: tuple[Handler, ...] = (search_code, semantic_search)
