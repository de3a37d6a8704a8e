"""A text in pieces for ranked search: its chunks, the words of each, and what an embedder is given of it."""

from bisect import bisect_left
from typing import Final

from flashgrep.index.chunks import ChunkedText, StoredChunk
from flashgrep.index.words import Fields
from flashgrep.ingest.chunk import chunks_of
from flashgrep.ingest.parse.model import NAME, NAME_END, ParsedFile
from flashgrep.languages import language_of

MOST_DEFINES: Final = 12
"""Names kept for a chunk; one that defines more is a table, and found by its words."""


def chunked_text(blob: int, path: bytes, data: bytes, parsed: ParsedFile | None) -> ChunkedText:
    """Return a text's chunks; ``parsed``: its symbols where its language has any."""
    language = parsed.language if parsed else language_of(path).name or None
    names = _Names(data, parsed)
    stored: list[StoredChunk] = []
    fields: list[Fields] = []
    for chunk in chunks_of(data, language, parsed):
        defines = names.within(chunk.start, chunk.end)
        stored.append(StoredChunk(*chunk, defines[:MOST_DEFINES]))
        fields.append(Fields(path, " ".join([chunk.name, *defines]).encode(), data[chunk.start : chunk.end]))
    return ChunkedText(blob, stored, fields)


def embedding_text(path: bytes, data: bytes, chunk: StoredChunk) -> str:
    """Return what an embedder is given: the chunk's text below its file, its name and the header of what it is part of.

    The embedded model was trained on code with these around it. Of several files with one text the first names it.
    """
    text = data[chunk.start : chunk.end].decode("utf-8", "replace")
    around = (path.decode("utf-8", "replace"), chunk.name, chunk.header)
    return "\n".join([*filter(None, around), text])


class _Names:
    """Names a text defines, by place."""

    def __init__(self, data: bytes, parsed: ParsedFile | None) -> None:
        spans = sorted(parsed.definitions[:, [NAME, NAME_END]].tolist()) if parsed else []
        self._starts = [start for start, _ in spans]
        self._names = [data[start:end].decode("utf-8", "replace") for start, end in spans]

    def within(self, start: int, end: int) -> list[str]:
        return list(dict.fromkeys(self._names[bisect_left(self._starts, start) : bisect_left(self._starts, end)]))
