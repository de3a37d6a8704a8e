"""Every language's tags query against a sample read and agreed to by a person.

``python tests/ingest/test_parse_golden.py`` writes the golden files anew; read the difference before you keep it.
"""

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashgrep.base.languages import LANGUAGES, SCRIPTS, WORDS, language_of
from flashgrep.parts.symbols.parse import ParsedFile, pack, parse_symbols, unpack
from flashgrep.parts.symbols.parse.grammar import _QUERIES, INHERITS
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import MARKS
from flashgrep.parts.symbols.parse.tags import _CONSTRUCTS
from tests.support.pace import paced

SAMPLES = Path(__file__).parent / "samples"
FILES = sorted(path.name for path in SAMPLES.glob("sample.*"))


def parsed(name: str) -> FileSymbols:
    data = (SAMPLES / name).read_bytes()
    language = language_of(name.encode(), data).name
    found = parse_symbols(language, data)
    assert isinstance(found, ParsedFile)
    return FileSymbols(found, data)


def rendered(name: str) -> str:
    symbols = parsed(name)
    lines = [f"# {symbols.parsed.language}, {symbols.parsed.grammar}"]
    for index in range(len(symbols.rows)):
        found = symbols.defined(index)
        head = f"{found.start_line}-{found.end_line} {found.line}:{found.column} {found.role} {found.kind}"
        text = f"{symbols.signature(index)} | {symbols.documentation(index)}".rstrip(
            " |"
        )
        lines.append(f"{head} {symbols.qualified(index)} | {text}")
    for mark in MARKS:
        words = [
            symbols.word_at(offset) for offset in symbols.parsed.marked(mark).tolist()
        ]
        lines.append(f"{mark}: {' '.join(words)}".rstrip())
    statements = [
        symbols.data[start:end].decode()
        for start, end in symbols.parsed.statements.tolist()
    ]
    return "\n".join(
        [*lines, *(f"statement: {' '.join(text.split())}" for text in statements), ""]
    )


@pytest.mark.parametrize("name", FILES)
def test_a_sample_has_the_symbols_of_its_golden_file(name: str) -> None:
    started = time.thread_time()
    assert rendered(name) == (SAMPLES / "golden" / f"{name}.txt").read_text("utf-8")
    # Reading a query takes 0.1 s, of Objective-C 1.3; one pattern of Swift once took 9.
    assert time.thread_time() - started < paced(4)


@pytest.mark.parametrize("name", FILES)
def test_packing_loses_nothing(name: str) -> None:
    before = parsed(name).parsed
    after = unpack(pack(before))
    assert (after.language, after.grammar) == (before.language, before.grammar)
    for left, right in [
        (before.definitions, after.definitions),
        (before.skips, after.skips),
        (before.statements, after.statements),
        *((before.marked(mark), after.marked(mark)) for mark in MARKS),
    ]:
        assert np.array_equal(left, right)
    bound = [
        None if one.bound is None else one.bound.tolist() for one in (before, after)
    ]
    assert bound[0] == bound[1]
    # As a team's store may have it from before.
    head, _, body = pack(replace(before, bound=None)).partition(b"\n")
    older = unpack(b"1" + head[1:] + b"\n" + body)
    assert older.bound is None
    assert np.array_equal(older.definitions, before.definitions)


def test_every_language_with_a_query_has_a_sample_and_no_query_is_left_over() -> None:
    covered = {
        language_of(name.encode(), (SAMPLES / name).read_bytes()).symbols
        for name in FILES
    }
    used = {row.symbols for row in LANGUAGES.values() if row.symbols} - {WORDS, SCRIPTS}
    assert used <= covered
    queries = {
        Path(entry.name).stem: entry.read_text("utf-8") for entry in _QUERIES.iterdir()
    }
    assert set(queries) == used | {
        base for text in queries.values() for base in INHERITS.findall(text)
    }


def test_every_capture_of_a_query_means_something() -> None:
    known = {
        "name",
        "body",
        "container",
        "skip",
        "quoted",
        "statement",
        "error",
        "attribute",
        *MARKS,
        *_CONSTRUCTS,
    }
    captures = {
        (entry.name, capture)
        for entry in _QUERIES.iterdir()
        for line in entry.read_text("utf-8").splitlines()
        for capture in re.findall(r"@(\w[\w.]*)", re.sub(r'^;.*|"[^"]*"', "", line))
        if not capture.startswith("_")
    }
    assert not {found for found in captures if found[1] not in known}, (
        "of a kind that ingest/parse/model.py lacks"
    )


def write_golden() -> None:
    (SAMPLES / "golden").mkdir(exist_ok=True)
    for name in FILES:
        (SAMPLES / "golden" / f"{name}.txt").write_text(rendered(name), "utf-8")


if __name__ == "__main__":
    write_golden()
