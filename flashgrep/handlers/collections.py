"""Search over the collections a connection is bound to: by meaning, by text, by what is known of a piece of code."""

import time
from typing import Any

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import CollectionRequired
from flashgrep.handlers.payload import Payload, payload_filter, payload_path_filter
from flashgrep.handlers.pieces import fitting, language_of_piece, milliseconds_since, refuse_unindexed, reranker_of
from flashgrep.model import show_path
from flashgrep.registry import Call, Handler, Params, handler
from flashgrep.search.exported import is_exported
from flashgrep.search.meaning import MeaningQuestion, Piece
from flashgrep.search.meaning_list import containing, listed
from flashgrep.workspace import Workspace

ENVELOPE = 260
"""Characters an answer's snippet takes beside its text."""

TOP_K = Field(10, ge=1, le=100, description="Number of results to return.")


class SnippetPayload(TypedDict):
    """A snippet of code and what is known of it."""

    content: str
    filePath: str
    language: str
    repository: str
    kind: str
    name: str
    startLine: int
    endLine: int
    exported: bool


class Snippet(TypedDict):
    """A result: how good it is, 0 to 1, and the snippet."""

    score: float
    payload: SnippetPayload


class SnippetsResult(TypedDict):
    """Snippets of all collections, best first, without duplicates; `problems` by collection."""

    results: list[Snippet]
    collections: list[str]
    ranked_by: str
    took_ms: float
    problems: dict[str, str]


class SemanticParams(Params):
    """What to look for."""

    query: str = Field(min_length=1, max_length=2000, description="Natural language search query.")
    prompt: str | None = Field(None, max_length=2000, description="Context for refining the query.")
    top_k: int = TOP_K


class FulltextParams(Params):
    """The text to look for."""

    textQuery: str = Field(min_length=1, max_length=2000, description="Text to search for in code content.")  # noqa: N815 - as its contract has it
    payload: Payload | None = Field(None, description="Filters to narrow results.")
    top_k: int = TOP_K


class PayloadParams(Params):
    """The filters."""

    payload: Payload = Field(description="Metadata filters to match.")
    top_k: int = TOP_K


class _Gathering:
    """Snippets of several collections, put together."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.ranked_by = "words and meaning"
        self.problems: dict[str, str] = {}
        self._collections: list[str] = []
        self._pieces: list[tuple[Piece, str]] = []

    def take(self, workspace: Workspace, pieces: list[Piece]) -> None:
        """Take in what one collection has."""
        self._collections.append(workspace.name)
        self._pieces.extend((piece, workspace.name) for piece in pieces)

    def result(self, call: Call[Catalogue], top_k: int) -> SnippetsResult:
        """Return all, best first; of pieces with the same text only the first."""
        distinct: dict[str, Snippet] = {}
        for piece, name in sorted(self._pieces, key=lambda item: -item[0].score):
            distinct.setdefault(piece.text, _snippet(piece, name))
        snippets = list(distinct.values())[:top_k]
        budget = call.host.settings.query.max_tokens
        return {
            "results": fitting(snippets, budget, lambda one: len(one["payload"]["content"]) + ENVELOPE),
            "collections": self._collections,
            "ranked_by": self.ranked_by,
            "took_ms": milliseconds_since(self.started),
            "problems": self.problems,
        }


def _snippet(piece: Piece, repository: str) -> Snippet:
    return {
        "score": piece.score,
        "payload": {
            "content": piece.text,
            "filePath": show_path(piece.path)["file_path"],
            "language": language_of_piece(piece),
            "repository": repository,
            "kind": piece.chunk.kind,
            "name": piece.chunk.name,
            "startLine": piece.chunk.start_line,
            "endLine": piece.chunk.end_line,
            "exported": is_exported(piece),
        },
    }


async def _collections(call: Call[Catalogue], payload: Payload | None) -> list[Workspace]:
    """Return the connection's collections, fresh and indexed, as far as the filters let them in.

    Raises:
        CollectionRequired: it is bound to none.
        Unavailable: one of them has no index yet.

    """
    if not call.session.collections:
        raise CollectionRequired(
            "a collection must be specified during client initialization",
            suggestion="start the client with --collection NAME or --collections A,B",
        )
    wanted = payload.repositories() if payload else []
    found = []
    for name in call.session.collections:
        workspace = await call.host.open(name, adopt=False)
        if not wanted or workspace.name in wanted:
            await workspace.refresh()
            await refuse_unindexed(workspace)
            found.append(workspace)
    return found


async def _by_rank(call: Call[Catalogue], gathering: _Gathering, workspace: Workspace, **asked: Any) -> list[Piece]:
    answer = await workspace.by_meaning(MeaningQuestion(**asked))
    if answer.ranked_by == "words":
        gathering.ranked_by = "words"
    if answer.problem:
        gathering.problems[workspace.name] = answer.problem
    call.progress(len(gathering.problems), None, workspace.name)
    return answer.results


@handler("search_code_semantic", title="Semantic vector search", toolset="collections")
async def search_code_semantic(call: Call[Catalogue], params: SemanticParams) -> SnippetsResult:
    """Search the connection's collections for code by what it does, in natural language."""
    workspaces = await _collections(call, None)
    gathering = _Gathering()
    text = params.query
    if params.prompt:
        refiner = await anyio.to_thread.run_sync(call.host.models.refiner)
        text = await anyio.to_thread.run_sync(refiner.refine, params.query, params.prompt)
    reranker = await reranker_of(call)
    asked = {"text": text, "limit": params.top_k, "reranker": reranker}
    for workspace in workspaces:
        gathering.take(workspace, await _by_rank(call, gathering, workspace, **asked))
    return gathering.result(call, params.top_k)


@handler("search_code_fulltext", title="Full-text search", toolset="collections")
async def search_code_fulltext(call: Call[Catalogue], params: FulltextParams) -> SnippetsResult:
    """Search the connection's collections for code that has a text, exactly; then for code that has parts of it."""
    workspaces = await _collections(call, params.payload)
    gathering = _Gathering()
    gathering.ranked_by = "text"
    keep = await anyio.to_thread.run_sync(payload_path_filter, params.payload)
    wanted = payload_filter(params.payload)
    for workspace in workspaces:
        exact = await workspace.in_thread(
            lambda snapshot: containing(snapshot, params.textQuery, params.top_k, keep, wanted)
        )
        partial: list[Piece] = []
        if len(exact) < params.top_k:
            asked = {"text": params.textQuery, "limit": params.top_k, "semantic_weight": 0.0, "keep": keep}
            partial = await _by_rank(call, gathering, workspace, **asked, wanted=wanted)
            gathering.ranked_by = "text"
        known = {(piece.path, piece.chunk.start) for piece in exact}
        gathering.take(workspace, [*exact, *(one for one in partial if (one.path, one.chunk.start) not in known)])
    return gathering.result(call, params.top_k)


@handler("search_code_by_payload", title="Search by metadata", toolset="collections")
async def search_code_by_payload(call: Call[Catalogue], params: PayloadParams) -> SnippetsResult:
    """Return code of the connection's collections by its file, language, kind, name or lines, in their order."""
    workspaces = await _collections(call, params.payload)
    gathering = _Gathering()
    gathering.ranked_by = "path"
    keep = await anyio.to_thread.run_sync(payload_path_filter, params.payload)
    wanted = payload_filter(params.payload)
    for workspace in workspaces:
        gathering.take(
            workspace, await workspace.in_thread(lambda snapshot: listed(snapshot, params.top_k, keep, wanted))
        )
    return gathering.result(call, params.top_k)


HANDLERS: tuple[Handler, ...] = (search_code_semantic, search_code_fulltext, search_code_by_payload)
