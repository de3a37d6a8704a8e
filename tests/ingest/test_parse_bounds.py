"""Parsing keeps its bounds: any bytes, size, time, minified text; and a crash ends one file only."""

import gc
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Parser

from flashgrep.base.checkpoint import ending
from flashgrep.base.child_process import make_frame
from flashgrep.base.languages import LANGUAGES, language_of
from flashgrep.base.model import Skipped
from flashgrep.parts.symbols.parse import (
    ParsedFile,
    grammar,
    pack,
    parse_symbols,
    unpack,
)
from flashgrep.parts.symbols.parse.isolate import COMMAND, IsolatedParser, Parsed
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from tests.conftest import BOUND
from tests.support.pace import paced

SAMPLES = sorted((Path(__file__).parent / "samples").glob("sample.*"))
PARSED = [row.name for row in LANGUAGES.values() if row.symbols]
FRAGMENTS = [
    b"class A",
    b"def f",
    b"(",
    b")",
    b"{",
    b"}",
    b"\n",
    b'"',
    b"'",
    b"#",
    b"\xff",
    b"fn ",
    b"::",
    b".",
    b"\0",
]


@given(
    st.sampled_from(PARSED),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=8)), max_size=30),
)
@settings(max_examples=80, deadline=None)
def test_any_bytes_parse_to_spans_inside_the_text(
    language: str, pieces: list[bytes]
) -> None:
    data = b" ".join(pieces)
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    symbols = FileSymbols(unpack(pack(parsed)), data)
    for index, (name, name_end, start, end, *_) in enumerate(symbols.rows):
        assert 0 <= start <= name < name_end <= len(data)
        assert name_end <= end or language == "lua"
        assert end <= len(data)
        assert symbols.defined(index).start_line <= symbols.defined(index).end_line
        assert len(symbols.signature(index)) <= 200
        symbols.documentation(index)


@pytest.mark.parametrize("language", PARSED)
def test_names_that_are_no_utf8_are_compared_with_nothing(language: str) -> None:
    data = b"(\xe9)\n(define \xed\xa0\x80 \xff)\n\xe9 = \x80(\xff)\ndef \xe9(): \x80\n"
    assert isinstance(parse_symbols(language, data), ParsedFile)


def test_a_file_over_the_size_is_skipped_with_the_reason() -> None:
    assert parse_symbols("python", b"x = 1\n" * 100, max_bytes=599) == Skipped(
        "too_large", "symbols: over 599 bytes"
    )


def test_minified_text_is_skipped_with_the_reason() -> None:
    assert parse_symbols("javascript", b"a=1;" * 10_000) == Skipped(
        "too_large", "symbols: minified"
    )


def test_a_file_over_its_time_is_skipped_with_the_reason() -> None:
    data = b"int f(void) { return g((1)); }\n" * 50_000
    assert parse_symbols("c", data, seconds=0.001) == Skipped(
        "too_large", "symbols: over 0.001 s to parse"
    )
    parsed = parse_symbols("c", b"int f(void) { return 0; }\n")
    assert isinstance(parsed, ParsedFile)
    assert len(parsed.definitions) == 1


@pytest.mark.slow
def test_time_in_which_others_have_the_processor_is_not_the_files_own() -> None:
    data = b"int f(void) { return g((1)); }\n" * 10_000
    waits = [2.0]

    def wait_for_turn() -> bool:
        return bool(waits) and Event().wait(waits.pop())

    with ending(wait_for_turn):
        assert isinstance(parse_symbols("c", data, seconds=1.5), ParsedFile)
    assert not waits


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, 0.001])
@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("c", b"int f(void) { return g((1)); }\n"),
        ("ruby", b"require 'a'\nattr_reader :b\n"),
        ("bash", b"alias a=b\n"),
    ],
)
def test_of_a_text_that_was_parsed_nothing_stays_in_memory(
    language: str, line: bytes, seconds: float
) -> None:
    data = line * 2_000
    parse_symbols(language, data, seconds=seconds)
    tracemalloc.start()
    try:
        for _ in range(3):
            parse_symbols(language, data, seconds=seconds)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < len(data) / 4
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_many_parses_leave_no_object_behind() -> None:
    data = b"int f(void) { return g(1); }\n"
    parse_symbols("c", data)

    def count() -> int:
        gc.collect()
        return len(gc.get_objects())

    before = count()
    for _ in range(200):
        parse_symbols("c", data)
    assert count() < before + 100


@given(
    st.lists(
        st.sampled_from(
            ["int f(void) {", "}", "/* é漢🙂", "*/", "x = (1", '"', "\n", "#if A"]
        ),
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None)
def test_a_text_lent_in_parts_has_the_tree_of_the_whole(pieces: list[str]) -> None:
    data = " ".join(pieces).encode() * 4
    language = grammar.grammar_of("c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "LENT_BYTES", 7)
        tree = grammar.parse_tree(language, data, BOUND)
    assert str(tree.root_node) == str(Parser(language.language).parse(data).root_node)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [100_000])
@pytest.mark.parametrize("language", ["python", "c", "javascript", "ruby", "haskell"])
def test_deep_nesting_ends_within_the_bounds(language: str, depth: int) -> None:
    found = parse_symbols(language, b"f(\n" * depth + b"1" + b")" * depth, seconds=2)
    assert isinstance(found, ParsedFile | Skipped)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        b'"cell_type": "code", ',
        b'"source": [',
        b'"source":    ',
        b'"',
        b"<%",
        b"<% ",
        b"<script>",
    ],
)
@pytest.mark.parametrize("language", ["jupyter", "erb", "html"])
def test_hosts_of_scripts_that_never_end_take_time_in_proportion(
    language: str, piece: bytes
) -> None:
    started = time.process_time()
    found = parse_symbols(
        language, (piece * 50 + b"\n") * (200_000 // len(piece) // 50), seconds=2
    )
    assert isinstance(found, ParsedFile | Skipped)
    assert time.process_time() - started < paced(
        20
    )  # the square of the length would be ten minutes


def test_entries_of_a_bibliography_that_never_end_take_time_in_proportion() -> None:
    started = time.thread_time()
    assert isinstance(
        parse_symbols("tex", b"\\bibitem[" * 20_000), ParsedFile | Skipped
    )
    assert time.thread_time() - started < paced(
        5
    )  # the square of the length took eleven seconds


@pytest.mark.slow
def test_the_isolated_parser_answers_as_the_parser_does() -> None:
    files = [
        (language_of(path.name.encode()).name, path.read_bytes()) for path in SAMPLES
    ]
    with IsolatedParser() as parser:
        answers = list(parser.parse(files))
    for (language, data), answered in zip(files, answers, strict=True):
        direct = parse_symbols(language, data)
        assert isinstance(direct, ParsedFile)
        assert answered == Parsed(pack(direct), tuple(direct.names(data)))


FRAGILE = """
    import os, sys, time
    from flashgrep.parts.symbols.parse import isolate
    honest = isolate.answer
    def answer(language, data):
        if data == b"crash":
            os.abort()
        while data == b"hang":
            time.sleep(1)
        while data == b"spin":
            pass
        return honest(language, data)
    isolate.answer, isolate.FILE_SECONDS = answer, 2
    isolate.main()
"""


@pytest.fixture
def fragile(tmp_path: Path) -> list[str]:
    script = tmp_path / "fragile.py"
    script.write_text(textwrap.dedent(FRAGILE))
    return [sys.executable, str(script)]


@pytest.mark.slow
def test_a_file_that_crashes_the_worker_is_skipped_and_the_rest_parsed(
    fragile: list[str],
) -> None:
    with IsolatedParser(fragile) as parser:
        texts = (b"a = 1", b"crash", b"b = 2", b"crash", b"c = 3")
        good, bad, *rest = parser.parse([("python", text) for text in texts])
    assert isinstance(good, Parsed)
    assert bad == Skipped("unparsed", "symbols: the grammar crashed (status -6)")
    outcomes = [
        found.names if isinstance(found, Parsed) else found.reason for found in rest
    ]
    assert outcomes == [(b"b",), "unparsed", (b"c",)]


def test_a_file_that_hangs_the_worker_is_skipped_and_the_rest_parsed(
    fragile: list[str],
) -> None:
    with IsolatedParser(fragile, seconds=3) as parser:
        bad, good = parser.parse([("python", b"hang"), ("python", b"a = 1")])
    assert bad == Skipped("unparsed", "symbols: not finished after 3 s")
    assert isinstance(good, Parsed)


@pytest.mark.slow
def test_a_file_that_keeps_the_worker_busy_is_skipped_and_the_rest_parsed(
    fragile: list[str],
) -> None:
    with IsolatedParser(fragile) as parser:
        bad, good = parser.parse([("python", b"spin"), ("python", b"a = 1")])
    assert bad == Skipped(
        "unparsed", "symbols: not finished after 15 s of processor time"
    )
    assert isinstance(good, Parsed)


def test_a_worker_whose_indexer_was_killed_ends_without_a_word() -> None:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        worker.stdout = None
        _, told = worker.communicate(
            make_frame([("python", 5)]) + b"a = 1", timeout=BOUND
        )
    assert (worker.returncode, told) == (1, b"")


@pytest.mark.parametrize(
    ("path", "data", "language"),
    [
        ("a/b.py", b"", "python"),
        ("run", b"#!/usr/bin/env -S python3.11 -u\n", "python"),
        ("run", b"#!/bin/sh\n", "bash"),
        ("x.h", b"int f(void);\n", "c"),
        ("x.h", b"namespace a { class B; }\n", "cpp"),
        ("X.C", b"", "cpp"),
        ("X.PY", b"", "python"),
        ("README", b"words", "readme"),
        (".gitignore", b"", ""),
        ("photo.png", b"", ""),
    ],
)
def test_the_language_is_recognized_by_name_then_by_first_line(
    path: str, data: bytes, language: str
) -> None:
    assert language_of(path.encode(), data).name == language
