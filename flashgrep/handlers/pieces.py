"""How pieces of code are shown, and asking for them, for every method that searches by meaning."""

import time
from collections.abc import Callable
from typing import Any

import anyio

from flashgrep.catalogue import Catalogue
from flashgrep.embed.rerank import Reranker
from flashgrep.errors import Unavailable
from flashgrep.handlers.covering import Coverage, coverage_of
from flashgrep.languages import language_of
from flashgrep.registry import Call
from flashgrep.search.exact import Answer
from flashgrep.search.meaning import MeaningAnswer, Piece
from flashgrep.workspace import Workspace

CHARS_PER_TOKEN = 4


async def refuse_unindexed(workspace: Workspace) -> None:
    """Refuse a project of which nothing is indexed yet; asking has started its indexing.

    Raises:
        Unavailable: with the project's path and what to do.

    """
    size = await workspace.size()
    if size is None or (not size.chunks and size.files and "chunks" not in workspace.indexing.done):
        raise Unavailable(
            "Index not found: it is being built from now on",
            path=str(workspace.path),
            suggestion="Run index_codebase first: it waits until the index is there; query works without one",
        )


async def reranker_of(call: Call[Catalogue]) -> Reranker | None:
    """Return the configured reranker; None: the order of search stands."""
    return await anyio.to_thread.run_sync(call.host.models.reranker)


def covering(workspace: Workspace, answer: MeaningAnswer, *, fresh: bool, started: float) -> Coverage:
    """Return the coverage of an answer by meaning; it is complete once every chunk could be found in every way."""
    ready = workspace.progress.stage == "ready" and not answer.unseen
    coverage = coverage_of(workspace, Answer(complete=True), fresh=fresh and not answer.unseen, started=started)
    coverage["complete"] = coverage["complete"] and ready and answer.ranked_by == "words and meaning"
    details = [part for part in (coverage.get("detail", ""), answer.problem) if part]
    if answer.unseen:
        details.append(f"{answer.unseen} files wait to be indexed; those with most of the words were looked at")
    if details:
        coverage["detail"] = "; ".join(details)
    return coverage


def language_of_piece(piece: Piece) -> str:
    """Return the language of a piece's file by its name, or ``text``."""
    return language_of(piece.path).name or "text"


def fitting(pieces: list[Any], max_tokens: int, size: Callable[[Any], int]) -> list[Any]:
    """Return as many pieces as fit into a budget, the first in any case."""
    room = max_tokens * CHARS_PER_TOKEN
    kept: list[Any] = []
    for piece in pieces:
        room -= size(piece)
        if room < 0 and kept:
            break
        kept.append(piece)
    return kept


def milliseconds_since(started: float) -> float:
    """Return the time since ``started`` on the clock of time.perf_counter()."""
    return round((time.perf_counter() - started) * 1000, 3)
