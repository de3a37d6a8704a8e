"""Chunks of code for answers: cut from current files, found by their text, or listed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flashgrep.base.languages import language_of
from flashgrep.base.model import Document, path_from_json
from flashgrep.files.buffers import UnsavedText
from flashgrep.files.columns import SHOWN
from flashgrep.parts.meaning.chunking import chunk_text
from flashgrep.parts.meaning.index.chunks import CHUNK_ROWS, ChunkedText, StoredChunk
from flashgrep.parts.meaning.search.functions import FoundFunction
from flashgrep.parts.meaning.search.passages import Passage
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.parts.symbols.symbol_source import NOTHING_UNSAVED, parse_file
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question, search
from flashgrep.search.snapshot import Snapshot

MOST_HITS = 2_000
"""Most hits in a text that are examined for chunks."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk in the current version of a file."""

    path: bytes
    chunk: StoredChunk
    text: str
    score: float = 0.0
    """How good an answer it is, 0 to 1."""
    near: float = 0.0
    """Its ranking score relative to the best answer, 0 to 1, ignoring other chunks of its file."""
    passage: Passage | None = None
    """The chunk and the function around it, if requested."""
    functions: Sequence[FoundFunction] = ()
    """The functions in it, with the passage."""


class FoundFile(NamedTuple):
    """One of the best files, with its best functions."""

    path: bytes
    near: float
    """Its ranking score relative to the best file, 0 to 1."""
    functions: Sequence[FoundFunction]
    """Best first."""


Keep = Callable[[bytes], bool] | None
"""Which paths count; None: all."""
Wanted = Callable[[FoundChunk], bool] | None
"""Which chunks count; None: all."""


def find_containing(
    snapshot: Snapshot, text: str, limit: int, keep: Keep, wanted: Wanted
) -> list[FoundChunk]:
    """Return chunks that contain a text, ignoring ASCII case if it has no capital; best files first, without copies."""
    pattern = Pattern(
        texts=(text,),
        mode="literal",
        case="smart",
        multiline="\n" in text,
    )
    question = Question(
        pattern=pattern,
        keep=keep,
        ranking=search_by_relevance,
        limit=MOST_HITS,
        max_chars=1 << 30,
    )
    hits: dict[bytes, list[int]] = {}
    for hit in search(snapshot, question).results:
        path = path_from_json(hit["file_path"], hit.get("file_path_bytes"))
        hits.setdefault(path, []).append(hit["start_line"])
    containing = (
        chunk
        for path, lines in hits.items()
        for chunk in read_chunks(snapshot, path)
        if any(chunk.chunk.start_line <= line <= chunk.chunk.end_line for line in lines)
    )
    return _take_distinct(containing, limit, wanted)


def list_chunks(
    snapshot: Snapshot, limit: int, keep: Keep, wanted: Wanted
) -> list[FoundChunk]:
    """Return chunks of the selected files, by path and line, without copies."""
    files = snapshot.table
    pending = snapshot.pending
    unchanged = (
        path
        for path in files.paths
        if path not in pending and path not in files.skipped
    )
    paths = (
        path
        for path in sorted({*unchanged, *snapshot.changed_paths()})
        if keep is None or keep(path)
    )
    return _take_distinct(
        (chunk for path in paths for chunk in read_chunks(snapshot, path)),
        limit,
        wanted,
    )


def _take_distinct(
    chunks: Iterable[FoundChunk], limit: int, wanted: Wanted
) -> list[FoundChunk]:
    distinct: dict[str, FoundChunk] = {}
    for chunk in chunks:
        if chunk.text not in distinct and (wanted is None or wanted(chunk)):
            distinct[chunk.text] = FoundChunk(
                chunk.path,
                chunk.chunk,
                chunk.text,
                1.0,
            )
            if len(distinct) == limit:
                break
    return list(distinct.values())


def read_chunks(snapshot: Snapshot, path: bytes) -> Iterator[FoundChunk]:
    """Yield the chunks of a file's current version."""
    document = snapshot.read(path)
    if not isinstance(document, Document):
        return
    data = document.data
    chunks = None
    version = snapshot.indexed_version(path)
    if version is not None and snapshot.reader is not None:
        chunks = (
            snapshot.reader.rows(CHUNK_ROWS)
            .chunks_of_texts([version[0]])
            .get(version[0])
        )
    # The index has the chunks of the indexed text, which an unchanged file still has.
    for chunk in chunks or cut_chunks(path, data, snapshot.unsaved).chunks:
        yield FoundChunk(
            path, chunk, data[chunk.start : chunk.end].decode("utf-8", SHOWN)
        )


def cut_chunks(
    path: bytes, data: bytes, unsaved: Mapping[bytes, UnsavedText] = NOTHING_UNSAVED
) -> ChunkedText:
    """Return the chunks of a file whose current text is not stored."""
    symbols = parse_file(path, data, unsaved)
    return chunk_text(
        0, path, data, symbols.parsed if isinstance(symbols, FileSymbols) else None
    )


def is_exported(found: FoundChunk) -> bool:
    """Return whether a chunk defines something for other files."""
    name = found.chunk.name.rpartition(".")[2]
    return bool(name) and language_of(found.path).exports(name, found.text)
