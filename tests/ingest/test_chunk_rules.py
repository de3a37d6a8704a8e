"""What a chunk holds: whole definitions with what belongs to them, parts with their header, sections, windows."""

from itertools import pairwise

import pytest

from flashgrep.parts.meaning.chunk_cuts import FULL, HARD
from flashgrep.parts.meaning.chunk_names import HEADER_BYTES
from flashgrep.parts.meaning.chunking import (
    DATA_LANGUAGES,
    HEAD,
    MAX_CHUNKS,
    cut_chunks,
    measure_head,
)
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols


def cut(language: str, text: str) -> list[StoredChunk]:
    parsed = parse_symbols(language, text.encode())
    assert isinstance(parsed, ParsedFile)
    return cut_chunks(text.encode(), language, parsed)


def texts(text: str, chunks: list[StoredChunk]) -> list[str]:
    return [text.encode()[chunk.start : chunk.end].decode() for chunk in chunks]


def method(name: str, size: int) -> str:
    lines = "".join(
        f"        value_{number} = self.compute({number})\n"
        for number in range(size // 38)
    )
    return f"    @logged\n    def {name}(self, first, second):\n{lines}\n"


def test_a_large_class_is_cut_between_methods_and_each_part_has_its_signature() -> None:
    names = ["login", "logout", "renew", "revoke"]
    text = "class Auth(Base):\n" + "".join(method(name, 1_000) for name in names)
    chunks = cut("python", text)
    assert [chunk.name for chunk in chunks] == [
        "Auth",
        "Auth.logout",
        "Auth.renew",
        "Auth.revoke",
    ]
    assert [chunk.header for chunk in chunks] == ["", *["class Auth(Base):"] * 3]
    assert all(part.lstrip().startswith("@logged") for part in texts(text, chunks)[1:])


def test_a_large_function_is_cut_between_statements_at_blank_lines_first() -> None:
    step = (
        "    if ready({0}):\n"
        + "        act({0})\n" * 10
        + "    else:\n        stop()\n\n"
    )
    text = "def work(queue):\n" + "".join(
        step.replace("{0}", str(number)) for number in range(30)
    )
    chunks = cut("python", text)
    assert len(chunks) > 3
    assert {(chunk.kind, chunk.name) for chunk in chunks} == {("function", "work")}
    assert {chunk.header for chunk in chunks[1:]} == {"def work(queue):"}
    assert all(part.startswith("    if ready(") for part in texts(text, chunks)[1:])


def test_parts_of_a_method_have_the_signatures_of_class_and_method() -> None:
    text = "class Auth:\n" + method("login", 4_000)
    last = cut("python", text)[-1]
    assert (last.kind, last.name) == ("method", "Auth.login")
    assert last.header == "class Auth:\ndef login(self, first, second):"
    assert text.encode()[last.start : last.end].startswith(b"        value_")


def test_a_long_signature_is_cut_to_the_bytes_a_header_may_have() -> None:
    arguments = ", ".join(f"argument_é_{number}" for number in range(40))
    text = f"def work({arguments}):\n" + "    step(1, 2, 3)\n" * 300
    headers = {chunk.header for chunk in cut("python", text)[1:]}
    assert len(headers) == 1
    assert HEADER_BYTES - 2 <= len(headers.pop().encode()) <= HEADER_BYTES


def test_a_function_that_holds_no_other_stays_whole_up_to_2000_bytes() -> None:
    body = "    step(1, 2, 3)\n" * 100
    text = f"import os\n\n\ndef first():\n{body}\n\ndef second():\n{body}"
    chunks = cut("python", text)
    assert [chunk.name for chunk in chunks] == ["first", "second"]
    assert all(FULL < chunk.end - chunk.start <= HARD for chunk in chunks)


def test_tiny_functions_are_gathered_and_called_by_the_first() -> None:
    text = "".join(
        f"def number_{number}():\n    return {number}\n\n\n" for number in range(200)
    )
    chunks = cut("python", text)
    sizes = [chunk.end - chunk.start for chunk in chunks]
    assert min(sizes[:-1]) > FULL / 2
    for chunk, part in zip(chunks, texts(text, chunks), strict=True):
        assert part.startswith(f"def {chunk.name}():")


def test_imports_and_constants_are_together_and_apart_from_a_large_class() -> None:
    head = (
        "import os\nimport sys\n\nLIMIT = 1\nOTHER = 2\n"
        + "# What the limit is for, at some length.\n" * 8
    )
    text = (
        head
        + "\n\nclass Auth:\n"
        + "".join(method(name, 700) for name in ("login", "logout", "renew"))
    )
    chunks = cut("python", text)
    assert texts(text, chunks)[0] == head.rstrip()
    assert (chunks[0].kind, chunks[0].name) == ("variable", "LIMIT")
    assert chunks[1].name == "Auth"


def test_the_bracket_that_closes_a_class_is_no_chunk_of_its_own() -> None:
    body = "    int total = compute(1, 2, 3);\n" * 40
    methods = "".join(
        f"  int m{number}() {{\n{body}    return total;\n  }}\n\n"
        for number in range(4)
    )
    text = f"class Auth {{\n{methods}}}\n"
    chunks = cut("java", text)
    assert [chunk.name for chunk in chunks] == ["Auth", "Auth.m1", "Auth.m2", "Auth.m3"]
    assert {chunk.header for chunk in chunks[1:]} == {"class Auth"}


@pytest.mark.parametrize(
    "comment",
    ["// Opens the store.\n// With care.\n", "/* Opens.\n *\n * With care.\n */\n"],
)
def test_a_comment_goes_with_the_function_below_it(comment: str) -> None:
    function = comment + "int open_{0}(void)\n{\n" + "\tstep(1, 2, 3);\n" * 60 + "}\n"
    text = "".join(function.replace("{0}", str(number)) for number in range(5))
    chunks = cut("c", text)
    assert [chunk.name for chunk in chunks] == [f"open_{number}" for number in range(5)]
    assert all(part.startswith(comment) for part in texts(text, chunks))


def test_a_go_method_is_called_by_its_receiver() -> None:
    body = "\ts.step(1, 2, 3)\n" * 80
    text = "package store\n\n" + "".join(
        f"func (s *Store) M{number}() {{\n{body}}}\n\n" for number in range(3)
    )
    assert [chunk.name for chunk in cut("go", text)] == [
        "Store.M0",
        "Store.M1",
        "Store.M2",
    ]


def test_markdown_is_cut_before_headings_and_named_by_their_path() -> None:
    text = "# Guide\n\nIntro.\n\n"
    for name in ("Install", "Use"):
        text += (
            f"## {name}\n\n```sh\n# no heading\n```\n\n"
            + f"Some words about {name}.\n\n" * 50
        )
        text += f"Details\n-------\n\n### Linux\n\n{'Words, more words. ' * 50}\n\n"
    chunks = cut_chunks(text.encode(), "markdown", None)
    assert {chunk.name for chunk in chunks} == {
        "Guide > Install",
        "Guide > Details > Linux",
        "Guide > Use",
    }
    assert all(chunk.header == chunk.name for chunk in chunks)
    firsts = [part.splitlines()[0] for part in texts(text, chunks)]
    assert firsts[0] == "# Guide"
    assert firsts.count("Details") == 2
    assert "```sh" not in firsts


def test_a_text_without_definitions_is_cut_at_blank_lines() -> None:
    lines = "goes on and on.\n" * 20
    text = "".join(f"Paragraph {number}\n{lines}\n" for number in range(20))
    chunks = cut_chunks(text.encode(), None, None)
    assert all(part.startswith("Paragraph") for part in texts(text, chunks))
    assert {(chunk.kind, chunk.name, chunk.header) for chunk in chunks} == {
        ("block", "", "")
    }


def test_a_long_line_is_cut_into_windows_of_one_line() -> None:
    text = "short\n" + "a=1;" * 3_000 + "\nshort\n"
    chunks = cut_chunks(text.encode(), "javascript", None)
    assert all(
        left.end == right.start
        for left, right in pairwise(chunks[:-1])
        if left.start_line == 2
    )
    assert {chunk.start_line for chunk in chunks} == {1, 2}
    assert chunks[-1].end_line == 3


@pytest.mark.parametrize("language", sorted(DATA_LANGUAGES))
def test_of_large_data_only_the_head_is_taken(language: str) -> None:
    row = b'{"id": 1, "name": "one of many rows"}\n'
    assert measure_head(row * 10_000, language, None) == HEAD
    assert measure_head(row * 10, language, None) == len(row) * 10
    assert cut_chunks(row * 10_000, language, None)[-1].end <= HEAD


def test_of_minified_text_and_of_dumps_only_the_head_is_taken() -> None:
    assert measure_head(b"var a=1;" * 10_000, "javascript", None) == HEAD
    assert measure_head(b"0x00, 0xff, 0x17, 0x80,\n" * 20_000, "c", None) == HEAD
    assert (
        measure_head(b"Prose of the longer kind, without end.\n" * 20_000, None, None)
        == 39 * 20_000
    )
    assert (
        measure_head(b"Prose of the longer kind, without end.\n" * 200_000, None, None)
        == HEAD
    )


@pytest.mark.slow
@pytest.mark.parametrize(("functions", "whole"), [(0, False), (2, False), (40, True)])
def test_of_large_code_that_defines_next_to_nothing_only_the_head_is_taken(
    functions: int,
    whole: bool,  # noqa: FBT001 - a case's value
) -> None:
    text = (
        "#define REGISTER_OF_THE_CHIP 1\n" * 10_000
        + "int work(void) { return done; }\n" * functions
    )
    parsed = parse_symbols("c", text.encode())
    assert isinstance(parsed, ParsedFile)
    assert measure_head(text.encode(), "c", parsed) == (len(text) if whole else HEAD)


def test_a_file_has_a_bounded_number_of_chunks() -> None:
    data = (b"w" * 790 + b"\n\n") * 5_000
    assert measure_head(data, None, None) == len(data)
    assert len(cut_chunks(data, None, None)) == MAX_CHUNKS


def test_a_table_of_another_version_of_the_text_only_makes_worse_cuts() -> None:
    text = "class Auth:\n" + method("login", 4_000)
    parsed = parse_symbols("python", text.encode())
    assert isinstance(parsed, ParsedFile)
    short = text.encode()[:2_500]
    assert b"".join(
        short[chunk.start : chunk.end] for chunk in cut_chunks(short, "python", parsed)
    ).count(b"compute") == short.count(b"compute")


def test_statements_without_blank_lines_are_cut_at_the_least_indentation() -> None:
    step = "    if ready(1):\n" + "        act(2)\n" * 40
    text = "def work(queue):\n" + step * 12
    assert all(
        part.startswith("    if ready(")
        for part in texts(text, cut("python", text))[1:]
    )


def test_a_text_in_quotes_is_not_cut_while_there_is_another_place() -> None:
    step = (
        "    run('''\n\n    select a, b, c from d\n\n    where e\n\n''')\n"
        + "    act(2)\n" * 20
    )
    text = "def work(queue):\n" + step * 30
    assert all(part.count("'''") % 2 == 0 for part in texts(text, cut("python", text)))


def test_a_heading_stays_with_its_text_and_a_fence_is_not_cut() -> None:
    fence = "```\n" + "run this\n\n" * 40 + "```\n\n"
    words = "Many words. " * 90 + "\n\n"
    text = "".join(f"# Part {number}\n\n{words}{fence}{words}" for number in range(9))
    parts = texts(text, cut_chunks(text.encode(), "markdown", None))
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert all("words" in part for part in parts if part.startswith("# "))


def test_the_last_method_has_the_signature_of_the_class_that_closes_after_it() -> None:
    body = "    int total = compute(1, 2, 3);\n" * 30
    methods = "".join(f"  int n{number}() {{\n{body}  }}\n\n" for number in range(3))
    text = f"namespace deep {{\nclass Auth {{\n{methods}}};\n}}\n"
    last = cut("cpp", text)[-1]
    assert (last.name, last.header) == ("deep.Auth.n2", "namespace deep\nclass Auth")
