"""Texts as the editor changes them, against a slow truth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol.types import (
    Position,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
)

from flashgrep.parts.lsp.texts import Document

TEXT = st.text(st.sampled_from("aé漢😀\u2028\x0c\ud83d \n\r"), max_size=12)
ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def make(text: str) -> Document:
    return Document("/f", "file:///f", 1, text)


def measure(text: str, encoding: str) -> int:
    codec = ENCODINGS[encoding]
    return (
        len(text.encode(codec, "surrogatepass"))
        // {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    )


def find_slowly(text: str, line: int, column: int, encoding: str) -> int:
    """Return the index of a place by trying them one after the other."""
    here, row, start = 0, 0, 0
    while row < line:
        if here == len(text):
            return len(text)
        if text[here] == "\n" or (
            text[here] == "\r" and text[here + 1 : here + 2] != "\n"
        ):
            row, start = row + 1, here + 1
        here += 1
    here = start
    while (
        here < len(text)
        and text[here] not in "\r\n"
        and measure(text[start : here + 1], encoding) <= column
    ):
        here += 1
    return here


@settings(max_examples=60)
@given(TEXT, st.data(), st.sampled_from(sorted(ENCODINGS)))
def test_a_change_is_made_where_the_protocol_says(
    text: str, data: st.DataObject, encoding: str
) -> None:
    document, expected = make(text), text
    for _ in range(data.draw(st.integers(1, 3))):
        places = [
            (data.draw(st.integers(0, 5)), data.draw(st.integers(0, 9)))
            for _ in range(2)
        ]
        new = data.draw(TEXT)
        start, end = sorted(find_slowly(expected, *place, encoding) for place in places)
        change = TextDocumentContentChangePartial(
            Range(*(Position(*place) for place in places)), new
        )
        edits = document.change([change], encoding)
        if document.has_our_lines and "\r" not in expected.replace("\r\n", ""):
            (edit,) = edits
            lines = expected.split("\n")
            for offset, name in ((start, "start"), (end, "end")):
                before = lines[: edit[f"{name}_line"] - 1]
                assert (
                    sum(len(line) + 1 for line in before) + edit[f"{name}_column"] - 1
                    == offset
                )
        expected = expected[:start] + new + expected[end:]
        assert document.text == expected
    assert document.revision > 1


def test_a_whole_text_replaces_the_one_before() -> None:
    document = make("old")
    assert document.change(
        [TextDocumentContentChangeWholeDocument("new")], "utf-16"
    ) == [{"text": "new"}]
    assert document.text == "new"


@pytest.mark.parametrize("text", ["a\rb", "a\r\rb\n"])
def test_a_text_whose_lines_the_daemon_counts_otherwise_is_sent_whole(
    text: str,
) -> None:
    document = make(text)
    change = TextDocumentContentChangePartial(
        Range(Position(1, 0), Position(1, 0)), "x"
    )
    assert document.change([change], "utf-8") == [{"text": document.text}]
