"""Cuts a file's text into chunks for search by meaning, along the definitions and headings already known of it.

The idea of cutting by syntax with siblings merged is that of cAST (Zhang and others, 2025); here the cuts come from
columns of offsets instead of a tree, so nothing is parsed.
"""

from typing import Final, NamedTuple

import numpy as np

from flashgrep.ingest.chunk_lines import CHARACTER_MASK, CHARACTER_REST, Ints, Units, ranks_of, units_of
from flashgrep.ingest.chunk_names import NAMED_KINDS, Outline
from flashgrep.ingest.chunk_sections import Sections, sections_of
from flashgrep.ingest.chunk_split import pieces_of
from flashgrep.ingest.parse.model import KIND, ParsedFile

MAX_CHUNKS: Final = 4_000
"""Most chunks of a file: about 4 MB of text."""
HEAD: Final = 16_384
"""Bytes taken of a data file or of minified text: its first records show its fields and what it is about."""
DATA_LANGUAGES: Final = frozenset({"json", "jsonl", "csv", "lock", "svg", "xml", "po", "log", "diff", "jupyter"})
"""Languages of data: rows alike by the thousand, of which a vector says nothing that words do not."""
_DENSE_LINE: Final = 1_000
"""Mean bytes a line past which a text is minified."""
_LARGEST: Final = 4_000_000
"""A larger text is data whatever it looks like; symbols are not read of it either."""
_TABLE: Final = 1 << 18
"""A larger text is data too when few of its bytes are letters, or when it is code that hardly defines anything."""
_SPREAD: Final = 1 << 16
"""Bytes a function or a type of such code has on average: registers of a chip, tables of characters, fonts."""
_LETTERS: Final = 0.5
"""Part of a text's bytes that are letters in prose and code; hexadecimal tables have less."""
_BLANKS: Final = bytes(range(0x21))
_ALPHABET: Final = bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1)) + bytes(range(128, 256))


class Chunk(NamedTuple):
    """A part of a file to find by meaning; it begins and ends with a line unless the line is too long."""

    start: int
    end: int
    """Byte offsets; trailing blanks are left out."""
    start_line: int
    end_line: int
    """From 1, inclusive."""
    kind: str
    """The definition's kind, ``section`` or ``block``."""
    name: str
    """The qualified name of the main definition, or a path of headings; may be empty."""
    header: str
    """Signatures of the definitions it is a part of, outermost first, or the headings it is under; may be empty."""


def chunks_of(data: bytes, language: str | None, parsed: ParsedFile | None) -> list[Chunk]:
    """Return a file's chunks in order; they hold every byte of ``data[:considered(…)]`` above 0x20, once."""
    size = considered(data, language, parsed)
    if not data[:size].translate(None, _BLANKS):
        return []
    units = units_of(data, size)
    outline = Outline(data, parsed, size)
    skips = parsed.skips if parsed is not None else np.zeros((0, 2), np.int64)
    ranks = ranks_of(units, language, outline.spans, skips)
    if language == "markdown":
        sections = sections_of(data, units, ranks)
        return [_section(chunk, sections) for chunk in _plain(units, sections.ranks)]
    return [_defined(chunk, outline) for chunk in _plain(units, ranks)]


def considered(data: bytes, language: str | None, parsed: ParsedFile | None) -> int:
    """Return how many of the first bytes are chunked: all but for data, minified text, large dumps and tables."""
    if len(data) <= HEAD:
        return len(data)
    dense = len(data) > min(_LARGEST, _DENSE_LINE * (1 + data.count(b"\n")))
    if dense or language in DATA_LANGUAGES or (len(data) > _TABLE and _is_table(data, parsed)):
        return _character(data, HEAD)
    return len(data)


def _plain(units: Units, ranks: Ints) -> list[Chunk]:
    """Return the chunks without names."""
    first, end = np.array(pieces_of(units, ranks)[:MAX_CHUNKS], np.int64).T
    begins, ends = units.starts[first].tolist(), units.last[end - 1].tolist()
    lines = zip(units.lines[first].tolist(), units.lines[end - 1].tolist(), strict=True)
    rows = zip(begins, ends, lines, strict=True)
    return [Chunk(begin, after, *line, "block", "", "") for begin, after, line in rows if after > begin]


def _section(chunk: Chunk, sections: Sections) -> Chunk:
    name = sections.name(chunk.start, chunk.end)
    return chunk._replace(kind="section", name=name, header=name) if name else chunk


def _defined(chunk: Chunk, outline: Outline) -> Chunk:
    kind, name = outline.name(chunk.start, chunk.end)
    return chunk._replace(kind=kind or "block", name=name, header=outline.header(chunk.start, chunk.end))


def _is_table(data: bytes, parsed: ParsedFile | None) -> bool:
    """Whether less than half of what is written are letters, or code hardly has a definition that does something."""
    written = data[:_TABLE].translate(None, _BLANKS)
    if len(written.translate(None, _ALPHABET)) > (1 - _LETTERS) * len(written):
        return True
    if parsed is None or parsed.grammar != "tree-sitter" or parsed.language == "markdown":
        return False
    return int(np.isin(parsed.definitions[:, KIND], NAMED_KINDS).sum()) * _SPREAD < len(data)


def _character(data: bytes, size: int) -> int:
    """Return where the UTF-8 character at an offset begins."""
    return next((at for at in range(size, size - 4, -1) if data[at] & CHARACTER_MASK != CHARACTER_REST), size)
