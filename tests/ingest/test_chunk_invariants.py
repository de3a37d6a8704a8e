"""Chunks of any bytes under any table of definitions: ordered, whole, bounded, and where they say they are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flashgrep.base.languages import language_of
from flashgrep.parts.meaning.chunk_cuts import HARD
from flashgrep.parts.meaning.chunk_names import HEADER_BYTES, Outline
from flashgrep.parts.meaning.chunking import HEAD, MAX_CHUNKS, cut_chunks, measure_head
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import COLUMNS, KINDS

pytestmark = pytest.mark.slow
SAMPLES = sorted((Path(__file__).parent / "samples").glob("sample.*"))
LANGUAGES = [
    None,
    "",
    "python",
    "c",
    "markdown",
    "ruby",
    "rust",
    "json",
    "csharp",
    "no such language",
]
LINES = [
    b"class A:", b"    def f(self):", b"        return 1", b"", b"  ", b"\t", b"}", b"end", b"# title", b"=====",
    b"---", b"```", b"@decorator", b"// comment", "é ü 漢字 🙂".encode(), b"\xff\xfe\x80", b"\0", b"x" * 700,
    b"y = 1 " * 400, "漢".encode() * 900, b" " * 3_000 + b"z", b"w" + b" " * 3_000 + b"z",
]  # fmt: skip
"""Lines that matter to some rule, long ones among them."""
NEAR = st.integers(-5, 3_000)
TEXT = st.builds(
    lambda lines, ending, tail: ending.join(lines) + tail,
    st.lists(st.one_of(st.sampled_from(LINES), st.binary(max_size=40)), max_size=60),
    st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"]),
    st.sampled_from([b"", b"\n", b"\r\n", b"\r"]),
)


def rows_of(
    width: int,
) -> st.SearchStrategy[np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    rows = st.lists(st.lists(NEAR, min_size=width, max_size=width), max_size=12)
    return rows.map(lambda found: np.array(found, np.int64).reshape(-1, width))


TABLES = st.one_of(
    st.none(),
    st.builds(
        ParsedFile,
        language=st.just("python"),
        definitions=rows_of(COLUMNS),
        skips=rows_of(2),
    ),
)


def check(
    data: bytes, language: str | None, parsed: ParsedFile | None
) -> list[StoredChunk]:
    """Hold the chunks of a file against what a slow count says."""
    chunks = cut_chunks(data, language, parsed)
    at = 0
    for chunk in chunks:
        assert at <= chunk.start < chunk.end <= len(data)
        assert not data[at : chunk.start].strip(bytes(range(0x21)))
        assert chunk.end - chunk.start <= HARD
        assert chunk.start_line == data.count(b"\n", 0, chunk.start) + 1
        assert chunk.end_line == data.count(b"\n", 0, chunk.end - 1) + 1
        assert data[chunk.end - 1] > 0x20
        assert chunk.kind in {*KINDS, "section", "block"}
        assert len(chunk.header.encode()) <= HEADER_BYTES or chunk.kind == "section"
        at = chunk.end
    if len(chunks) < MAX_CHUNKS:
        assert not data[at : measure_head(data, language, parsed)].strip(
            bytes(range(0x21))
        )
    assert measure_head(data, language, parsed) == len(data) or measure_head(
        data, language, parsed
    ) in range(HEAD - 3, HEAD + 1)
    return chunks


@given(TEXT, st.sampled_from(LANGUAGES), TABLES)
@settings(max_examples=300, deadline=None)
@example(b"", "python", None)
@example(b"\n\r\n ", "python", None)
@example(b"x", "markdown", None)
@example(b" " * 5_000 + b"x", None, None)
@example(b"x" * 1_990 + b"\r\n" + b"y", None, None)
def test_any_bytes_with_any_table_are_cut_into_all_of_the_text(
    data: bytes, language: str | None, parsed: ParsedFile | None
) -> None:
    chunks = check(data, language, parsed)
    assert chunks == cut_chunks(data, language, parsed)


@given(st.text(max_size=6_000), st.sampled_from([None, "markdown", "json"]))
@settings(max_examples=60, deadline=None)
@example("🙂" * 5_000, None)
@example("🙂" * 20_000, None)
@example("ab" + "漢" * 20_000, "json")
def test_a_text_in_utf_8_is_cut_between_characters(
    text: str, language: str | None
) -> None:
    data = text.encode()
    for chunk in check(data, language, None):
        data[chunk.start : chunk.end].decode()
    data[: measure_head(data, language, None)].decode()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_every_language_is_cut_along_what_its_grammar_knows(
    path: Path, ending: bytes
) -> None:
    sample = path.read_bytes().replace(b"\n", ending)
    data = sample * max(8, HARD // len(sample) + 1)  # too long for one chunk
    language = language_of(path.name.encode(), data).name
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    chunks = check(data, language, parsed)
    assert len(chunks) > 1
    assert any(chunk.name for chunk in chunks)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_names_are_those_of_the_symbols(path: Path) -> None:
    data = path.read_bytes()
    language = language_of(path.name.encode(), data).name
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    symbols = FileSymbols(parsed, data)
    known = {
        (symbols.kind(index), symbols.qualified(index))
        for index in range(len(symbols.rows))
    }
    outline = Outline(data, parsed, len(data))
    found = {outline.name(start, end) for start, end in outline.spans.tolist()}
    assert found <= known | {("", "")}
