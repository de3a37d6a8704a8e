"""Search the collections a connection is bound to: by meaning, by text, by attributes of code."""

import re
import time
from collections.abc import Callable
from typing import Annotated, TypeAlias

import anyio
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import milliseconds_since
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import CollectionRequired
from flashgrep.base.model import path_to_text
from flashgrep.base.registry import Call, GlobText, Handler, LineNumber, Params, handler
from flashgrep.files.globs import PathFilter
from flashgrep.files.wildcard import Dialect, compile_matcher, translate
from flashgrep.methods.common import Budget
from flashgrep.parts.meaning.embed.models import MODELS
from flashgrep.parts.meaning.methods import name_language, require_index
from flashgrep.parts.meaning.questions import open_reranker, search_by_meaning
from flashgrep.parts.meaning.search.current_chunks import (
    FoundChunk,
    find_containing,
    is_exported,
    list_chunks,
)
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion

SNIPPET_OVERHEAD = 260
"""Characters of JSON around a snippet's text."""

TOP_K = Field(10, ge=1, le=100, description="Number of results to return.")
AnyOf: TypeAlias = GlobText | Annotated[list[GlobText], Field(max_length=100)]
NAMES = Dialect(free_star=True, characters=True)


class Payload(Params):
    """Filters; a list means any of its items."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    language: AnyOf | None = Field(None, description="Languages, e.g. typescript.")
    repository: AnyOf | None = Field(None, description="Collections, by name.")
    filePath: AnyOf | None = Field(  # noqa: N815 - as its contract has it
        None, description="Paths or globs below the project's root, as /src/*."
    )
    kind: AnyOf | None = Field(
        None, description="Kinds, e.g. function, class or section."
    )
    name: AnyOf | None = Field(
        None, description="Names of symbols, or globs, e.g. get_*."
    )
    exported: bool | None = Field(None, description="Whether other files can use it.")
    startLine: LineNumber | None = Field(  # noqa: N815 - as above
        None, description="Only code that reaches this line or lies below it."
    )
    endLine: LineNumber | None = Field(  # noqa: N815 - as above
        None, description="Only code that begins at this line or above it."
    )


class SnippetPayload(TypedDict):
    """A snippet of code and its attributes."""

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
    """A result: its score, 0 to 1, and the snippet."""

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

    query: str = Field(
        min_length=1, max_length=2000, description="Natural language search query."
    )
    prompt: str | None = Field(
        None, max_length=2000, description="Context for refining the query."
    )
    top_k: int = TOP_K


class FulltextParams(Params):
    """The text to look for."""

    textQuery: str = Field(  # noqa: N815 - as its contract has it
        min_length=1, max_length=2000, description="Text to search for in code content."
    )
    payload: Payload | None = Field(None, description="Filters to narrow results.")
    top_k: int = TOP_K


class PayloadParams(Params):
    """The filters."""

    payload: Payload = Field(description="Metadata filters to match.")
    top_k: int = TOP_K


@handler("search_code_semantic", title="Semantic vector search", toolset="collections")
async def search_code_semantic(
    call: Call[Host], params: SemanticParams
) -> SnippetsResult:
    """Search the connection's collections for code by what it does, in natural language."""
    views = await _open_collections(call, None)
    gathering = SnippetMerger()
    text = params.query
    if params.prompt:
        refiner = await anyio.to_thread.run_sync(call.host.service(MODELS).refiner)
        text = await anyio.to_thread.run_sync(
            refiner.refine, params.query, params.prompt
        )
    reranker = await open_reranker(call.host)
    question = MeaningQuestion(text=text, limit=params.top_k, reranker=reranker)
    for view in views:
        gathering.take(view.project, await gathering.ask(call, view, question))
    return gathering.result(call, params.top_k)


@handler("search_code_fulltext", title="Full-text search", toolset="collections")
async def search_code_fulltext(
    call: Call[Host], params: FulltextParams
) -> SnippetsResult:
    """Search the connection's collections for code that contains a text exactly, then for code with parts of it."""
    views = await _open_collections(call, params.payload)
    gathering = SnippetMerger()
    gathering.ranked_by = "text"
    keep = await anyio.to_thread.run_sync(make_payload_path_filter, params.payload)
    payload_filter = make_payload_filter(params.payload)
    by_words = MeaningQuestion(
        text=params.textQuery,
        limit=params.top_k,
        semantic_weight=0.0,
        keep=keep,
        wanted=payload_filter,
    )
    # Code with the whole text comes first; if there is room, code with some of its
    # words follows.
    for view in views:
        exact = await view.in_thread(
            lambda snapshot: find_containing(
                snapshot, params.textQuery, params.top_k, keep, payload_filter
            )
        )
        partial: list[FoundChunk] = []
        if len(exact) < params.top_k:
            partial = await gathering.ask(call, view, by_words)
            gathering.ranked_by = "text"
        exact_places = {(piece.path, piece.chunk.start) for piece in exact}
        gathering.take(
            view.project,
            [
                *exact,
                *(
                    found_chunk
                    for found_chunk in partial
                    if (found_chunk.path, found_chunk.chunk.start) not in exact_places
                ),
            ],
        )
    return gathering.result(call, params.top_k)


@handler("search_code_by_payload", title="Search by metadata", toolset="collections")
async def search_code_by_payload(
    call: Call[Host], params: PayloadParams
) -> SnippetsResult:
    """Return code from the connection's collections by file, language, kind, name or lines, in path order."""
    views = await _open_collections(call, params.payload)
    gathering = SnippetMerger()
    gathering.ranked_by = "path"
    keep = await anyio.to_thread.run_sync(make_payload_path_filter, params.payload)
    payload_filter = make_payload_filter(params.payload)
    for view in views:
        gathering.take(
            view.project,
            await view.in_thread(
                lambda snapshot: list_chunks(
                    snapshot, params.top_k, keep, payload_filter
                )
            ),
        )
    return gathering.result(call, params.top_k)


HANDLERS: tuple[Handler, ...] = (
    search_code_semantic,
    search_code_fulltext,
    search_code_by_payload,
)


class SnippetMerger:
    """Merges snippets of several collections."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.ranked_by = "words and meaning"
        self.problems: dict[str, str] = {}
        self._collections: list[str] = []
        self._pieces: list[tuple[FoundChunk, str]] = []

    async def ask(
        self, call: Call[Host], view: View, question: MeaningQuestion
    ) -> list[FoundChunk]:
        """Return a collection's answer, and note how it was ranked and what was wrong."""
        answer = await search_by_meaning(view, question)
        if answer.ranked_by == "words":
            self.ranked_by = "words"
        if answer.problem:
            self.problems[view.project.name] = answer.problem
        call.progress(len(self.problems), None, view.project.name)
        return answer.results

    def take(self, project: Project, pieces: list[FoundChunk]) -> None:
        """Add one collection's snippets."""
        self._collections.append(project.name)
        self._pieces.extend((piece, project.name) for piece in pieces)

    def result(self, call: Call[Host], top_k: int) -> SnippetsResult:
        """Return all, best first; of chunks with the same text only the first."""
        distinct: dict[str, Snippet] = {}
        for piece, name in sorted(self._pieces, key=lambda item: -item[0].score):
            snippet: Snippet = {
                "score": piece.score,
                "payload": {
                    "content": piece.text,
                    "filePath": path_to_text(piece.path),
                    "language": name_language(piece),
                    "repository": name,
                    "kind": piece.chunk.kind,
                    "name": piece.chunk.name,
                    "startLine": piece.chunk.start_line,
                    "endLine": piece.chunk.end_line,
                    "exported": is_exported(piece),
                },
            }
            # The same file in two collections, such as a fork or a vendored copy, is
            # one answer: the better one.
            distinct.setdefault(piece.text, snippet)
        snippets = list(distinct.values())[:top_k]
        budget = Budget(call.host.settings.query.max_tokens)
        return {
            "results": budget.fit(
                snippets, lambda one: len(one["payload"]["content"]) + SNIPPET_OVERHEAD
            ),
            "collections": self._collections,
            "ranked_by": self.ranked_by,
            "took_ms": milliseconds_since(self.started),
            "problems": self.problems,
        }


async def _open_collections(call: Call[Host], payload: Payload | None) -> list[View]:
    """Return the connection's collections that pass the filters, fresh and indexed.

    Raises:
        CollectionRequired: it is bound to none.
        Unavailable: one of them has no index yet.

    """
    if not call.session.collections:
        raise CollectionRequired(
            "a collection must be specified during client initialization",
            suggestion="start the client with --collection NAME or --collections A,B",
        )
    if payload:
        names = as_list(payload.repository)
    else:
        names = []
    views: list[View] = []
    # A connection with collections is bound to them.
    for project in await call.host.open_bound(call):
        if not names or project.name in names:
            view = project.current()
            await view.refresh()
            await require_index(view)
            views.append(view)
    return views


def as_list(value: str | list[str] | None) -> list[str]:
    """Return the items of a filter; none: it is not given."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    return value


def make_payload_path_filter(payload: Payload | None) -> PathFilter | None:
    """Return the filter of paths; None: every file."""
    if payload is None or (payload.filePath is None and payload.language is None):
        return None
    globs = []
    for glob in as_list(
        payload.filePath
    ):  # relative to the root; a folder means everything below it
        below = glob.removeprefix("./").lstrip("/")
        globs.append(
            f"/{below}**"
            if below.endswith("/")
            else f"/{below}"
            if glob.startswith("/")
            else below
        )
    return PathFilter(globs, [], languages=as_list(payload.language))


def make_payload_filter(payload: Payload | None) -> Callable[[FoundChunk], bool] | None:
    """Return the filter of chunks; None: every chunk."""
    if payload is None:
        return None
    kinds = set(as_list(payload.kind))
    # In RE2 syntax; of a glob's characters only ``*`` and ``?`` are special here.
    escaped = (
        name.replace("\\", r"\\").replace("[", r"\[") for name in as_list(payload.name)
    )
    names = [translate(re.sub(r"\*+", "*", name).encode(), NAMES) for name in escaped]
    if payload.name:
        is_named = compile_matcher(names)
    else:
        is_named = None
    first = payload.startLine or 1
    last = payload.endLine

    def wanted(piece: FoundChunk) -> bool:
        chunk = piece.chunk
        # By its full name, its last part, or anything else the chunk defines: callers
        # know one of them.
        called = {chunk.name, chunk.name.rpartition(".")[2], *chunk.defines}
        return (
            (not kinds or chunk.kind in kinds)
            and (is_named is None or any(is_named(name.encode()) for name in called))
            and (payload.exported is None or is_exported(piece) == payload.exported)
            and chunk.end_line >= first
            and (last is None or chunk.start_line <= last)
        )

    return wanted
