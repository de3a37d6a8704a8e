"""Cuts texts into chunks for search by meaning, along their known definitions and headings.

The idea of cutting by syntax and merging siblings is that of cAST (Zhang and others, 2025); here the cuts come from
columns of offsets instead of a tree, so nothing is parsed. The indexer and search both use this module: pending files
are cut like indexed ones.
"""

from bisect import bisect_left
from dataclasses import replace
from typing import Final

import numpy as np

from flashgrep.base.languages import LANGUAGES, language_of
from flashgrep.parts.meaning.chunk_cuts import (
    choose_cuts,
    find_units,
    rank_cuts,
)
from flashgrep.parts.meaning.chunk_names import NAMED_KINDS, Outline, find_sections
from flashgrep.parts.meaning.index.chunks import ChunkedText, StoredChunk
from flashgrep.parts.meaning.index.sieve import hold_every_identifier
from flashgrep.parts.meaning.index.word_impacts import Fields
from flashgrep.parts.symbols.parse.embedded import HOSTS
from flashgrep.parts.symbols.parse.model import (
    DECLARES,
    KIND,
    NAME,
    NAME_END,
    ParsedFile,
)
from flashgrep.pattern.unicode import CHARACTER_MASK, CHARACTER_REST

MAX_CHUNKS: Final = 4_000
"""Most chunks of a file: about 4 MB of text."""
HEAD: Final = 16_384
"""Bytes used of a data file or of minified text: its first records show its fields and its subject."""
DATA_LANGUAGES: Final = frozenset(
    {"json", "jsonl", "csv", "lock", "svg", "xml", "po", "log", "diff", "jupyter"}
)
"""Data languages: thousands of similar rows, for which vectors add nothing to words."""
_DENSE_LINE: Final = 1_000
"""Mean bytes per line beyond which a text counts as minified."""
_LARGEST: Final = 4_000_000
"""A larger text always counts as data; its symbols are not read either."""
_TABLE: Final = 1 << 18
"""A larger text also counts as data if few of its bytes are letters, or if it is code that hardly defines anything."""
_SPREAD: Final = 1 << 16
"""Average bytes per function or type in such code: registers of a chip, tables of characters, fonts."""
_LETTERS: Final = 0.5
"""Share of letters in the bytes of prose and code; hexadecimal tables have less."""
_BLANKS: Final = bytes(range(0x21))
_ALPHABET: Final = (
    bytes(range(ord("A"), ord("Z") + 1))
    + bytes(range(ord("a"), ord("z") + 1))
    + bytes(range(128, 256))
)
MOST_DEFINES: Final = 12
"""Most names kept for a chunk; one that defines more is a table, and is found by its words."""


def chunk_text(
    text_id: int, path: bytes, data: bytes, parsed: ParsedFile | None
) -> ChunkedText:
    """Return a text's chunks with the words of each; ``parsed``: its symbols, if its language has any."""
    language = parsed.language if parsed else language_of(path).name or None
    if (
        parsed is not None and language in HOSTS
    ):  # a section is about its text, not what its examples define
        parsed = replace(
            parsed, definitions=parsed.definitions[parsed.definitions[:, DECLARES] == 0]
        )
    spans = sorted(parsed.definitions[:, [NAME, NAME_END]].tolist()) if parsed else []
    starts = [start for start, _ in spans]
    names = [data[start:end].decode("utf-8", "replace") for start, end in spans]
    stored: list[StoredChunk] = []
    fields: list[Fields] = []
    for chunk in cut_chunks(data, language, parsed):
        # Names are sorted by position, so a chunk's names are a slice.
        within = names[
            bisect_left(starts, chunk.start) : bisect_left(starts, chunk.end)
        ]
        defines = list(dict.fromkeys(within))
        stored.append(chunk._replace(defines=defines[:MOST_DEFINES]))
        called = " ".join([chunk.name, *defines]).encode()
        context = f"{chunk.name}\n{chunk.header}".encode()
        fields.append(Fields(path, called, data[chunk.start : chunk.end], context))
    is_whole = hold_every_identifier(
        data, [(stored_chunk.start, stored_chunk.end) for stored_chunk in stored]
    )
    return ChunkedText(text_id, stored, fields, is_whole, path=path)


def embedding_text(path: bytes, data: bytes, chunk: StoredChunk) -> str:
    """Return the input for an embedder: the chunk's path, its name and header, then its text.

    The embedded model was trained on code with this context. If several files have this text, the path is the first's.
    """
    text = data[chunk.start : chunk.end].decode("utf-8", "replace")
    around = (path.decode("utf-8", "replace"), chunk.name, chunk.header)
    return "\n".join([*filter(None, around), text])


def cut_chunks(
    data: bytes, language: str | None, parsed: ParsedFile | None
) -> list[StoredChunk]:
    """Return a file's chunks in order, without the names they define.

    They contain every byte of ``data[:measure_head(…)]`` above 0x20 exactly once.
    """
    size = measure_head(data, language, parsed)
    # A text of blanks has no units, and the arrays below would be empty.
    if not data[:size].translate(None, _BLANKS):
        return []
    units = find_units(data, size)
    outline = Outline(data, parsed, size)
    if parsed is not None:
        skips = parsed.skips
    else:
        skips = np.zeros((0, 2), np.int64)
    ranks = rank_cuts(units, language, outline.spans, skips)
    if language == "markdown":
        sections = find_sections(data, units, ranks)
    else:
        sections = None
    cuts = choose_cuts(units, ranks if sections is None else sections.ranks)

    first, end = np.array(cuts[:MAX_CHUNKS], np.int64).T
    begins = units.starts[first].tolist()
    ends = units.last[end - 1].tolist()
    lines = zip(units.lines[first].tolist(), units.lines[end - 1].tolist(), strict=True)
    chunks: list[StoredChunk] = []
    for start, after, (start_line, end_line) in zip(begins, ends, lines, strict=True):
        # A unit cut inside a line may end in blanks only.
        if after <= start:
            continue
        kind = ""
        name = ""
        header = ""
        if sections is None:
            (kind, name), header = (
                outline.name(start, after),
                outline.header(start, after),
            )
        elif title := sections.name(start, after):
            kind = "section"
            name = title
            header = title
        chunks.append(
            StoredChunk(
                start, after, start_line, end_line, kind or "block", name, header
            )
        )
    return chunks


def measure_head(data: bytes, language: str | None, parsed: ParsedFile | None) -> int:
    """Return how many of the first bytes are chunked: all except for data, minified text, large dumps and tables."""
    if len(data) <= HEAD:
        return len(data)
    is_dense = len(data) > min(_LARGEST, _DENSE_LINE * (1 + data.count(b"\n")))
    if (
        is_dense
        or language in DATA_LANGUAGES
        or (len(data) > _TABLE and _is_table(data, parsed))
    ):
        # up to where a character of UTF-8 begins
        return next(
            (
                at
                for at in range(HEAD, HEAD - 4, -1)
                if data[at] & CHARACTER_MASK != CHARACTER_REST
            ),
            HEAD,
        )
    return len(data)


def _is_table(data: bytes, parsed: ParsedFile | None) -> bool:
    """Return whether less than half of the non-blank bytes are letters, or code has hardly any functions or types."""
    written = data[:_TABLE].translate(None, _BLANKS)
    if len(written.translate(None, _ALPHABET)) > (1 - _LETTERS) * len(written):
        return True
    if (
        parsed is None
        or parsed.grammar != "tree-sitter"
        or LANGUAGES[parsed.language].nature != "code"
    ):
        return False
    return int(np.isin(parsed.definitions[:, KIND], NAMED_KINDS).sum()) * _SPREAD < len(
        data
    )
