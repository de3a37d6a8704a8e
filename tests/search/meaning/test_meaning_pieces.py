"""What is said of a piece of code: whether others can use it, which of its lines to show, what an embedder is given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashgrep.index.table import SOURCE, TEST, tier_of
from flashgrep.parts.meaning.chunking import MOST_DEFINES, embedding_text
from flashgrep.parts.meaning.embed import static
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.meaning.index.word_impacts import (
    Fields,
    choose_for_vectors,
    count_fields,
)
from flashgrep.parts.meaning.search.current_chunks import (
    FoundChunk,
    cut_chunks,
    find_containing,
    is_exported,
)
from flashgrep.parts.meaning.search.word_search import show_best_lines
from tests.support.workspace import opened, put


def piece(path: str, text: str, name: str = "thing", line: int = 1) -> FoundChunk:
    """Return a piece that begins at a line."""
    chunk = StoredChunk(
        0, len(text.encode()), line, line + text.count("\n"), "function", name, ""
    )
    return FoundChunk(path.encode(), chunk, text, 0.5)


@pytest.mark.parametrize(
    ("path", "text", "name", "exported"),
    [
        ("a.py", "def thing(): ...", "thing", True),
        ("a.py", "def _thing(): ...", "_thing", False),
        ("a.py", "def __init__(self): ...", "A.__init__", True),
        ("a.py", "def method(self): ...", "_Hidden.method", True),
        ("a.go", "func Thing() {}", "Thing", True),
        ("a.go", "func thing() {}", "thing", False),
        ("a.go", "func (s *Store) Get() {}", "Store.Get", True),
        ("a.rs", "pub fn thing() {}", "thing", True),
        ("a.rs", "    pub(crate) fn thing() {}", "thing", True),
        ("a.rs", "fn public() {}", "public", False),
        ("a.ts", "export function thing() {}", "thing", True),
        ("a.ts", "function thing() { return exported; }", "thing", False),
        ("a.js", "module.exports = thing", "thing", True),
        ("a.java", "public class Thing {}", "Thing", True),
        ("a.java", "@Override public void run() {}", "run", True),
        ("a.java", "class Thing {}", "Thing", False),
        ("a.kt", "fun thing() {}", "thing", True),
        ("a.kt", "private fun thing() {}", "thing", False),
        ("a.c", "int thing(void) {}", "thing", True),
        ("a.c", "static int thing(void) {}", "thing", False),
        ("a.md", "# Heading", "", False),
    ],
)
def test_code_is_exported_by_the_conventions_of_its_language(
    path: str,
    text: str,
    name: str,
    exported: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert is_exported(piece(path, text, name)) is exported


def test_the_line_with_most_of_the_words_is_shown_for_a_piece() -> None:
    text = (
        "def load(path):\n\n    # read the configuration file\n    return parse(path)\n"
    )
    answer = show_best_lines(
        [piece("src/a.py", text, line=10)], "where is the configuration file read"
    )
    (hit,) = answer.results
    assert (hit["file_path"], hit["start_line"], hit["end_line"]) == (
        "src/a.py",
        12,
        12,
    )
    assert (hit["text"], hit["score"], hit["column"]) == (
        "    # read the configuration file",
        0.5,
        7,
    )
    assert answer.files_read == 1


def test_a_piece_without_any_of_the_words_is_shown_by_its_first_line() -> None:
    sure = replace(piece("a.py", "\n  def load(path):\n    pass", line=4), score=0.9)
    answer = show_best_lines([sure], "xyzzy")
    (hit,) = answer.results
    assert (hit["start_line"], hit["text"], hit["column"]) == (
        5,
        "  def load(path):",
        3,
    )


def test_a_file_that_is_not_stored_is_cut_as_it_would_be_stored() -> None:
    data = b"class Store:\n    def put(self, key):\n        self.rows[key] = 1\n\n    def get(self):\n        return 2\n"
    text = cut_chunks(b"pkg/store.py", data)
    (chunk,) = text.chunks
    assert (chunk.start_line, chunk.end_line, list(chunk.defines)) == (
        1,
        6,
        ["Store", "put", "get"],
    )
    assert text.fields == [
        Fields(b"pkg/store.py", b"Store Store put get", data.rstrip(), b"Store\n")
    ]
    code = data.decode().rstrip()
    assert (
        embedding_text(b"pkg/store.py", data, chunk) == f"pkg/store.py\nStore\n{code}"
    )
    assert (
        embedding_text(b"a.py", data, chunk._replace(name="", header="module x"))
        == f"a.py\nmodule x\n{code}"
    )


def test_of_a_table_of_names_only_the_first_are_kept() -> None:
    data = "".join(f"def f{at}(): pass\n" for at in range(40)).encode()
    text = cut_chunks(b"many.py", data)
    assert all(len(chunk.defines) <= MOST_DEFINES for chunk in text.chunks)
    assert {f"f{at}" for at in range(40)} <= {
        name for fields in text.fields for name in fields.names.decode().split()
    }


def test_a_piece_with_none_of_the_words_is_shown_only_if_it_is_surely_meant() -> None:
    chunk = StoredChunk(0, 9, 1, 1, "block", "", "", [])
    found = [
        FoundChunk(b"a", chunk, "x", 0.75),
        FoundChunk(b"b", chunk, "y", 0.9),
        FoundChunk(b"zebra", chunk, "z", 0.1),
    ]
    hits = show_best_lines(found, "zebra qqqq").results
    assert [hit["file_path"] for hit in hits] == ["b", "zebra"]


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        *(
            (path, SOURCE)
            for path in (
                b"src/contest.py",
                b"latest.go",
                b"src/Latest/a.cs",
                b"src/Test.java",
                b"fastest/a.t.c",
            )
        ),
        *(
            (path, TEST)
            for path in (
                b"ParserTest.java",
                b"Tests/a.swift",
                b"src/slice/test.rs",
                b"base/file_unittest.cc",
            )
        ),
        *(
            (path, TEST)
            for path in (
                b"Acme.Json.Tests/Person.cs",
                b"AcmeUITests/Tap.swift",
                b"t/mojo/dom.t",
            )
        ),
    ],
)
def test_files_and_their_tests_are_distinguished_by_each_languages_conventions(
    path: bytes, tier: int
) -> None:
    assert tier_of(path) == tier


async def test_chunks_that_have_a_text_come_from_the_best_files_first(
    root: Path,
) -> None:
    put(
        root,
        {
            "a/use.py": b"x = launch(1)\n",
            "tests/test_a.py": b"launch(2)\n",
            "z.py": b"def launch(n):\n    pass\n",
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        found = await workspace.in_thread(
            lambda snapshot: find_containing(snapshot, "launch", 10, None, None)
        )
        assert [one.path for one in found] == [b"z.py", b"a/use.py", b"tests/test_a.py"]


def test_vectors_made_with_the_words_of_chunks_are_those_of_their_texts() -> None:
    lines = [
        f"    def read_{name}(self, größe: int) -> HTTPError: return self._{name}v2  # naïve"
        for name in "abcdefgh"
    ]
    texts = {
        b"pkg/caf\xe9/store.py": "\n".join(["class Größe(Store):", *lines * 9]).encode()
        + b"\xff\xfe tail_of_it",
        b"web/all.min.js": b"function f(a){return a.getHTTPResponse_v2(1)};" * 90,
        b"notes.md": b"# Reading\n\nText of it.\n\n## Deeper\n\nMore text.\n" * 40,
        b"blank.py": b" \n",
    }
    model = static.load(static.DATA)
    cut = [(path, data, cut_chunks(path, data)) for path, data in texts.items()]
    fields = [field for _, _, text in cut for field in text.fields]
    told = [
        embedding_text(path, data, chunk)
        for path, data, text in cut
        for chunk in text.chunks
    ]
    assert len(told) > len(texts)
    made = model.embed_identifiers(
        choose_for_vectors(count_fields(fields)), len(fields)
    )
    assert np.array_equal(made, model.embed_code(told))
