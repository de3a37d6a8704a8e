"""Pieces of code that are not ranked: those that have a text, and those of some files in their order."""

from collections.abc import Callable, Iterator, Sequence

from flashgrep.index import chunks as table
from flashgrep.index.chunks import StoredChunk
from flashgrep.ingest.decoding import SHOWN
from flashgrep.model import Document, path_from_json
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question, Search
from flashgrep.search.meaning import Piece, chunked_now
from flashgrep.search.snapshot import Snapshot

MOST_HITS = 2_000
"""Hits of a text that are looked at for pieces."""

Keep = Callable[[bytes], bool] | None
Wanted = Callable[[Piece], bool] | None


def containing(snapshot: Snapshot, text: str, limit: int, keep: Keep, wanted: Wanted) -> list[Piece]:
    """Return pieces that have a text, ASCII case aside where it has no capital; best files first, copies once."""
    pattern = Pattern(texts=(text,), mode="literal", case="smart", multiline="\n" in text)
    question = Question(pattern=pattern, keep=keep, order="relevance", limit=MOST_HITS, max_chars=1 << 30)
    hits: dict[bytes, list[int]] = {}
    for hit in Search(snapshot, question).run().results:
        path = path_from_json(hit["file_path"], hit.get("file_path_bytes"))
        hits.setdefault(path, []).append(hit["start_line"])
    there = (
        piece
        for path, lines in hits.items()
        for piece in pieces_of(snapshot, path)
        if any(piece.chunk.start_line <= line <= piece.chunk.end_line for line in lines)
    )
    return _first(there, limit, wanted)


def listed(snapshot: Snapshot, limit: int, keep: Keep, wanted: Wanted) -> list[Piece]:
    """Return pieces of the files that count, by path and line, copies once."""
    changed = set(snapshot.changed_paths())
    settled = (
        path for path in snapshot.table.paths if path not in snapshot.pending and path not in snapshot.table.skipped
    )
    paths = (path for path in sorted({*settled, *changed}) if keep is None or keep(path))
    return _first((piece for path in paths for piece in pieces_of(snapshot, path)), limit, wanted)


def _first(pieces: Iterator[Piece], limit: int, wanted: Wanted) -> list[Piece]:
    found: dict[str, Piece] = {}
    for piece in pieces:
        if piece.text not in found and (wanted is None or wanted(piece)):
            found[piece.text] = Piece(piece.path, piece.chunk, piece.text, 1.0)
            if len(found) == limit:
                break
    return list(found.values())


def pieces_of(snapshot: Snapshot, path: bytes) -> Iterator[Piece]:
    """Yield a file's pieces as it is now."""
    document = snapshot.read(path)
    if isinstance(document, Document):
        data = document.data
        for chunk in _stored(snapshot, path) or chunked_now(path, data).chunks:
            yield Piece(path, chunk, data[chunk.start : chunk.end].decode("utf-8", SHOWN))


def _stored(snapshot: Snapshot, path: bytes) -> Sequence[StoredChunk]:
    version = snapshot.indexed_version(path)
    if version is None or snapshot.reader is None:
        return ()
    with snapshot.reader.transaction() as connection:
        return table.chunks_of_text(connection, version[0])
