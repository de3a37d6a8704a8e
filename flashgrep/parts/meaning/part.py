"""Search by meaning: chunks of code ranked by words and vectors."""

from flashgrep.api.part import Part
from flashgrep.api.searchers import Searchers
from flashgrep.parts.meaning import methods
from flashgrep.parts.meaning.choice import choose_embedding
from flashgrep.parts.meaning.embed.models import MODELS, Models
from flashgrep.parts.meaning.questions import find_best_lines
from flashgrep.parts.meaning.search.chunk_index import CHUNKS, MeaningIndex
from flashgrep.parts.meaning.stages import STAGES
from flashgrep.project import Workspace


def open_chunks(project: Workspace) -> MeaningIndex:
    """Return the index of a project's chunks."""
    options = project.options
    return MeaningIndex(
        project.index.file.parent, project.root, options.embedding, options.environ
    )


PART = Part(
    name="meaning",
    summary="Search by meaning: chunks of code ranked by words and vectors.",
    requires=("symbols",),
    handlers=(*methods.HANDLERS,),
    searchers=Searchers(words=find_best_lines, embedding=choose_embedding),
    project_services={CHUNKS: open_chunks},
    host_services={MODELS: lambda host: Models(host.settings, host.environ)},
    stages=STAGES,
    indexer_functions={
        "chunks": "flashgrep.parts.meaning.meaning_stages:store_chunks",
        "vectors": "flashgrep.parts.meaning.meaning_stages:store_vectors",
    },
)
