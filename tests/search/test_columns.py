"""Columns and spans in every encoding, against Python's own codecs."""

import re

from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.model import Document
from flashgrep.files.columns import (
    SHOWN,
    Columns,
    Lines,
    PositionEncoding,
    find_column,
    measure,
)
from flashgrep.pattern import Pattern
from flashgrep.search.hits import make_hit, put_spans

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
TEXTS = st.text(st.sampled_from("ab \u00e9\u6c34\U0001f600\r\n"), max_size=60)


@given(
    st.text(st.sampled_from("ab\u00e9\u6c34\U0001f600"), max_size=30),
    ENCODINGS,
    st.integers(0, 130),
)
def test_a_column_is_the_place_that_the_codec_tells(
    text: str, encoding: PositionEncoding, units: int
) -> None:
    codec, size = UNITS[encoding]
    ends = [len(text[:count].encode(codec)) // size for count in range(len(text) + 1)]
    found = find_column(text.encode(), units + 1, encoding)
    if units > ends[-1]:
        assert found is None
    else:
        whole = max(count for count, end in enumerate(ends) if end <= units)
        assert found == len(text[:whole].encode())


@given(st.binary(max_size=40), ENCODINGS)
def test_bytes_that_are_no_text_count_as_they_are_shown(
    line: bytes, encoding: PositionEncoding
) -> None:
    line = line.replace(b"\n", b"")
    assert measure(line, "utf-32") == len(line.decode("utf-8", SHOWN))
    for at in range(len(line) + 1):
        if measure(line[:at], "utf-32") + measure(line[at:], "utf-32") == measure(
            line, "utf-32"
        ):
            assert find_column(line, measure(line[:at], encoding) + 1, encoding) == at
    assert find_column(line, measure(line, encoding) + 1, encoding) == len(line)
    assert find_column(line, measure(line, encoding) + 2, encoding) is None


@given(TEXTS, ENCODINGS, st.sampled_from(["a", "b a", "\u00e9", "\U0001f600", "a\n"]))
def test_all_spans_of_a_hit_are_returned(
    text: str, encoding: PositionEncoding, wanted: str
) -> None:
    data, multiline = text.encode(), "\n" in wanted
    document, matcher = (
        Document(data),
        Pattern(texts=(wanted,), mode="literal", multiline=multiline).matcher(),
    )
    columns, told = Columns(Lines(data), encoding), []
    codec, size = UNITS[encoding]
    for match in matcher.lines(data, all_spans=True):
        hit = make_hit({}, document, match)
        put_spans(hit, columns, match, 100)
        told += hit["spans"]
    expected = []
    for found in re.finditer(re.escape(wanted), text):
        ends = []
        for at in found.span():
            line = text[:at].rpartition("\n")[2]
            ends += [text.count("\n", 0, at) + 1, len(line.encode(codec)) // size + 1]
        expected.append(
            dict(
                zip(
                    ("start_line", "start_column", "end_line", "end_column"),
                    ends,
                    strict=True,
                )
            )
        )
    assert told == expected


def test_spans_are_returned_up_to_a_limit() -> None:
    data = b"a" * 50
    (match,) = (
        Pattern(texts=("a",), mode="literal").matcher().lines(data, all_spans=True)
    )
    hit = make_hit({}, Document(data), match)
    assert put_spans(hit, Columns(Lines(data), "utf-16"), match, 20) == 20
    assert hit["spans_left_out"] == 30
    assert put_spans(hit, None, match, 20) == 0
