"""Search by meaning: `search_code` in one project, `semantic_search` over several."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, NotRequired

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import NotFound, Unavailable
from flashgrep.handlers.common import (
    BARE,
    Below,
    Budget,
    Coverage,
    Exclude,
    Fresh,
    Include,
    InLanguages,
    MaxTokensIfSet,
    ProjectName,
    ProjectNames,
    coverage_of,
    make_path_filter,
    milliseconds_since,
)
from flashgrep.handlers.projects import Among, Answered, Page, ask_projects
from flashgrep.handlers.text import Style, span
from flashgrep.languages import language_of
from flashgrep.model import path_to_json
from flashgrep.params import NameText
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.chunks import FoundChunk
from flashgrep.search.meaning import MeaningQuestion
from flashgrep.search.snapshot import SearchStats
from flashgrep.vocabulary import VERBATIM
from flashgrep.workspace import Workspace

CHUNK_OVERHEAD, TEXT_OVERHEAD = 220, 40
"""Characters around a chunk's text: of JSON, and of its heading."""


class SearchCodeParams(Params):
    """What to look for, where, and how."""

    query: Annotated[str, Usage(words=True)] = Field(
        min_length=1, max_length=2000, description="A question in words, or names of code."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(10, ge=1, le=100, description="Most pieces of code to send back.")
    semantic_weight: Annotated[float | None, RARE] = Field(
        None,
        ge=0,
        le=1,
        description="Share of meaning against words, 0 to 1; by default 0.7 for questions in words, 0.3 for names.",
    )
    path: Below = None
    include: Include = []
    exclude: Exclude = []
    language: InLanguages = []
    threshold: Annotated[float, RARE] = Field(0.0, ge=0, le=1, description="Least score of a result.")
    max_tokens: MaxTokensIfSet = None
    fresh: Fresh = True
    project: ProjectName = None
    projects: ProjectNames = None


class CodeFound(TypedDict):
    """A piece of code; `kind` as function, class, section or block; `score` 0 to 1; lines from 1, both inclusive.

    `path`, `startLine` and `endLine` repeat `file_path`, `start_line` and `end_line`; `project`: where several were
    asked.
    """

    project: NotRequired[str]
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


def render_chunks(result: SearchCodeResult, style: Style) -> Iterator[str]:
    """Yield each piece's place, kind, name and score, for a model with its text below."""
    for number, piece in enumerate(result["results"]):
        said = f"{piece['kind']} {piece['name']}".rstrip()
        if style.is_person:
            yield f"{style.path(piece)}:{style.line(piece['start_line'])}:{style.text(said)}"
            continue
        yield from [""] if number else []
        yield f"{style.path(piece)}:{span(piece)} {said} ({piece['score']:.2f})"
        yield piece["content"]


@handler("search_code", title="Search code by meaning", toolset="research", render=render_chunks)
async def search_code(call: Call[Catalogue], params: SearchCodeParams) -> SearchCodeResult:
    """Find the functions, classes and sections that answer a question in words, or that fit names of code.

    Use it when you do not know what the code is called; query finds text, get_symbol names.
    """
    return await ask_projects(call, params, _ask, _join)


async def _ask(
    call: Call[Catalogue], params: SearchCodeParams, workspace: Workspace, among: Among
) -> Page[SearchCodeResult]:
    """Answer for one project."""
    started = time.perf_counter()
    fresh = await workspace.refresh() if params.fresh else False
    await refuse_unindexed(workspace)
    question = MeaningQuestion(
        text=params.query,
        limit=params.limit,
        semantic_weight=params.semantic_weight,
        keep=await make_path_filter(
            workspace, params.include, params.exclude, params.language, among.nested, below=params.path
        ),
        threshold=params.threshold,
        reranker=await anyio.to_thread.run_sync(call.host.models.reranker),
    )
    answer = await workspace.search_by_meaning(question)
    budget = Budget(params.max_tokens or call.host.settings.query.max_tokens)

    # An answer by meaning is complete once every chunk could be found in every way.
    unseen = f"{answer.unseen} files wait to be indexed; those with most of the words were looked at"
    coverage = coverage_of(workspace, SearchStats(), fresh=fresh and not answer.unseen, started=started)
    # Complete is an answer for which every chunk could be found in every way.
    coverage["complete"] &= workspace.progress.stage == "ready" and answer.ranked_by == "words and meaning"
    details = (coverage.get("detail"), answer.problem, unseen if answer.unseen else "")
    if any(details):
        coverage["detail"] = "; ".join(filter(None, details))
    result: SearchCodeResult = {
        "results": budget.fit(map(format_chunk, answer.results), partial(count_chars, as_text=call.as_text)),
        "ranked_by": answer.ranked_by,
        "chunks_searched": answer.chunks,
        "coverage": coverage,
    }
    # Scores say how sure an answer is by itself, so those of several projects compare.
    return Page(result, lambda at: -result["results"][at]["score"])


def _join(result: SearchCodeResult, answers: Sequence[Answered[SearchCodeResult]]) -> None:
    """Say what all projects were ranked by."""
    result["ranked_by"] = min((one.result["ranked_by"] for one in answers), key=len)  # words, or words and meaning
    result["chunks_searched"] = sum(one.result["chunks_searched"] for one in answers)


class SemanticSearchParams(Params):
    """What to look for, and in which repository; read as strictly as its specification has it."""

    query: Annotated[str, VERBATIM] = Field(
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
    repository: Annotated[NameText, VERBATIM] | None = Field(
        None, min_length=1, description="Filter results to a specific repository name."
    )


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
    if params.repository is not None:
        try:
            workspaces = [await call.host.workspace(call, params.repository)]
        except NotFound as error:
            known = call.host.list_reachable(call.session)
            message = f"no such repository: {params.repository}"
            raise NotFound(message, reason="repository_not_found", known=known) from error
    elif call.session.projects:
        workspaces = [await call.host.open(project, adopt=False) for project in call.session.projects]
    else:  # as its contract has it, and no default: each result and the metadata name their repository
        workspaces = call.host.list_open() or [await call.host.workspace(call, None)]

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
    reranker = await anyio.to_thread.run_sync(call.host.models.reranker)
    question = MeaningQuestion(text=params.query, limit=params.limit, threshold=params.threshold, reranker=reranker)
    for workspace in workspaces:
        try:
            await workspace.refresh()
            await refuse_unindexed(workspace)
            answer = await workspace.search_by_meaning(question)
        except Unavailable as error:
            if len(workspaces) == 1:
                raise
            metadata["problems"][workspace.name] = error.message
            continue
        metadata["repositories_searched"].append(workspace.name)
        metadata["chunks_searched"] += answer.chunks
        metadata["embedding_time_ms"] = round(metadata["embedding_time_ms"] + answer.embedding_ms, 3)
        if answer.ranked_by == "words":
            metadata["ranked_by"] = "words"
        if answer.problem:
            metadata["problems"][workspace.name] = answer.problem
        found.extend({**format_chunk(piece), "repository": workspace.name} for piece in answer.results)
    # Scores of several repositories compare: they say how sure an answer is by itself.
    found.sort(key=lambda one: -one["score"])
    results = Budget(call.host.settings.query.max_tokens).fit(found[: params.limit], count_chars)
    metadata["total_results"] = len(results)
    metadata["query_time_ms"] = milliseconds_since(started)
    return {"results": results, "metadata": metadata}


HANDLERS: tuple[Handler, ...] = (search_code, semantic_search)


def format_chunk(piece: FoundChunk) -> CodeFound:
    """Return a chunk as both methods show it."""
    path, chunk = path_to_json(piece.path), piece.chunk
    return {
        "content": piece.text,
        "path": path["file_path"],
        "startLine": chunk.start_line,
        "endLine": chunk.end_line,
        "score": piece.score,
        "kind": chunk.kind,
        "name": chunk.name,
        "language": name_language(piece),
        **path,  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
    }


def count_chars(found: CodeFound, *, as_text: bool = False) -> int:
    """Return how much of a budget a chunk takes."""
    return len(found["content"]) + (TEXT_OVERHEAD + len(found["path"]) if as_text else CHUNK_OVERHEAD)


def name_language(piece: FoundChunk) -> str:
    """Return the language of a chunk's file by its name, or ``text``."""
    return language_of(piece.path).name or "text"


async def refuse_unindexed(workspace: Workspace) -> None:
    """Refuse a project of which nothing is indexed yet; asking has started its indexing.

    Raises:
        Unavailable: with the project's path and what to do.

    """
    if workspace.is_bare:
        raise Unavailable(BARE, reason="bare_repository")
    size = await workspace.size()
    if size is None or (not size.chunks and size.files and "chunks" not in workspace.indexing.done):
        raise Unavailable(
            "Index not found: it is being built from now on",
            path=str(workspace.path),
            suggestion="Run index_codebase first: it waits until the index is there; query works without one",
        )
