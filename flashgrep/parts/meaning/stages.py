"""The stages of chunks and vectors, as the store sees them. Imported by every process that reads a store."""

import sqlite3
from collections.abc import Mapping

from flashgrep.index.stage import Stage
from flashgrep.index.table import TextIds
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index.sieve import apply_filters, drop_wordless
from flashgrep.parts.meaning.index.vectors import row_type
from flashgrep.parts.meaning.index.word_impacts import names_of

FEW_TEXTS = 8
"""So few candidates are read as quickly as the index can tell which of them have a word."""


def count_to_chunk(
    connection: sqlite3.Connection, project: int, _embedding: str
) -> int:
    """Return how many parsed texts of a project have no chunks."""
    return table.count_to_chunk(connection, project).texts


def choose_with_words(
    connection: sqlite3.Connection, text_ids: TextIds, text: bytes
) -> TextIds:
    """Return those texts, ascending, that may have each identifier of ``text`` as a word, in any ASCII case."""
    names = names_of(text)
    if not names or not len(text_ids):
        return text_ids
    text_ids = apply_filters(
        connection, text_ids, names
    )  # reading a text that has a filter may take 40 ms
    if len(text_ids) < FEW_TEXTS:
        return text_ids
    return drop_wordless(connection, text_ids, names)


def measure_chunks(connection: sqlite3.Connection, project: int) -> Mapping[str, int]:
    """Return how many chunks a project has."""
    return {"chunks": table.total(connection, project)}


def measure_vectors(connection: sqlite3.Connection, _project: int) -> Mapping[str, int]:
    """Return the size of the store's vectors."""
    sets = table.vector_sets(connection)
    return {
        "vector_bytes": sum(
            vector_set.rows * row_type(vector_set.dims).itemsize for vector_set in sets
        )
    }


STAGES = (
    Stage(
        name="chunks",
        count_left=count_to_chunk,
        with_words=choose_with_words,
        measure=measure_chunks,
        rows="flashgrep.parts.meaning.index.chunks:ROWS",
    ),
    Stage(
        name="vectors",
        count_left=table.count_to_embed_with,
        measure=measure_vectors,
        rows="flashgrep.parts.meaning.index.chunks:VECTOR_ROWS",
    ),
)
