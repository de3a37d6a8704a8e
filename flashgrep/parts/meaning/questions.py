"""Questions by meaning and by words to any view: the work tree, unsaved text, a revision, a team's repository."""

import anyio

from flashgrep.api.host import Host
from flashgrep.api.view import View
from flashgrep.files.globs import PathFilter
from flashgrep.parts.meaning.embed.models import MODELS, Reranker
from flashgrep.parts.meaning.search.chunk_index import CHUNKS
from flashgrep.parts.meaning.search.meaning_search import (
    MeaningAnswer,
    MeaningQuestion,
    MeaningSearch,
)
from flashgrep.parts.meaning.search.word_search import search_words, show_best_lines
from flashgrep.search.exact import Answer


async def open_reranker(host: Host) -> Reranker | None:
    """Return the configured reranker, or None; a thread, which reads its files, is needed only if there is one.

    Raises:
        ProviderUnavailable: it is configured but not available.

    """
    models = host.service(MODELS)
    if not models.has_reranker:
        return None
    return await anyio.to_thread.run_sync(models.reranker)


async def search_by_meaning(view: View, question: MeaningQuestion) -> MeaningAnswer:
    """Return the chunks that answer a question best."""
    chunks = view.project.service(CHUNKS)
    answer = await view.in_thread(
        lambda snapshot: MeaningSearch(snapshot, chunks, question).run()
    )
    if answer.damaged:
        view.project.make_vectors_anew()
    return answer


async def find_best_lines(
    view: View, text: str, limit: int, keep: PathFilter | None
) -> Answer:
    """Return the best lines for words: of the best chunks once all texts have chunks."""
    if "chunks" not in view.stages:
        return await view.in_thread(
            lambda snapshot: search_words(snapshot, text, limit, keep), symbols=False
        )
    answer = await search_by_meaning(
        view, MeaningQuestion(text=text, limit=limit, keep=keep)
    )
    return show_best_lines(answer.results, text)
