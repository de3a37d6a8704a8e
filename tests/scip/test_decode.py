"""SCIP files as compilers write them, and as nobody should."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.navigation.scip.decode import (
    Malformed,
    Metadata,
    ScipDocument,
    read_index,
    read_name,
)
from flashgrep.parts.navigation.scip.importing import place_occurrences
from tests.scip.scip_file import (
    DEFINES,
    IMPORTS,
    document,
    field,
    number,
    spans,
    write_index,
)

SYMBOL = "loom . . . `a.py`/Loom#weave()."


def read(data: bytes) -> list[Metadata | ScipDocument]:
    return list(read_index(io.BytesIO(data)))


def test_what_is_said_is_read(tmp_path: Path) -> None:
    unpacked = field(1, "b.py") + field(
        2, field(1, 3) + field(1, 1) + field(1, 4) + field(2, "local 1")
    )
    later = (
        field(9, "unknown")
        + number(10 << 3 | 5)
        + b"\0\0\0\0"
        + number(11 << 3 | 1)
        + b"\0" * 8
    )
    file = write_index(
        tmp_path / "index.scip",
        [
            document(
                "a.py", [([0, 4, 8], SYMBOL, DEFINES), ([0, 4, 2, 1], "local 0", 0)], 2
            )
            + later,
            unpacked,
        ],
        tmp_path,
    )
    metadata, first, second = read(file.read_bytes())
    assert metadata == Metadata(f"file://{tmp_path}", "loom 1.2")
    assert first == ScipDocument(
        b"a.py",
        "utf-16",
        None,
        [(0, 4, 0, 8), (0, 4, 2, 1)],
        [SYMBOL, "local 0"],
        [DEFINES, 0],
    )
    assert second == ScipDocument(b"b.py", None, None, [(3, 1, 3, 4)], ["local 1"], [0])


def test_ranges_of_newer_indexers_are_read() -> None:
    single = field(2, field(2, SYMBOL) + field(8, field(1, 3) + field(3, 5)))
    multi = field(
        2, field(2, SYMBOL) + field(9, field(2, 4) + field(3, 2) + field(4, 1))
    )
    (found,) = read(field(2, field(1, "a.py") + single + multi))
    assert isinstance(found, ScipDocument)
    assert found.places == [(3, 0, 3, 5), (0, 4, 2, 1)]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (SYMBOL, "weave"),
        ("x . . . `a``b.py`/C#", "C"),
        ("x . . . a/`b``c`.", "b`c"),
        ("x . . . a/f(+1).", "f"),
        ("x . . . a/f().(count)", "count"),
        ("x . . . a/C#[T]", "T"),
        ("x . . . a/MAX!", "MAX"),
        ("local 4", ""),
    ],
)
def test_a_symbol_ends_with_its_name(symbol: str, name: str) -> None:
    assert read_name(symbol) == name


HOSTILE = {
    "no index": b"#!/bin/sh\nrm -rf /\n",
    "a number without an end": b"\xff" * 20,
    "a message longer than all memory": number(2 << 3 | 2) + number(1 << 50),
    "a message cut short": field(2, document("a.py", []))[:-1],
    "a field longer than its message": field(2, number(1 << 3 | 2) + number(99) + b"a"),
    "a group": field(2, number(1 << 3 | 3)),
    "a range of two": field(2, document("a.py", [([1, 2], SYMBOL, 0)])),
    "a range of texts": field(
        2, field(1, "a.py") + field(2, field(2, SYMBOL) + field(8, field(1, "x")))
    ),
    "a negative line": field(2, document("a.py", [([(1 << 64) - 1, 0, 1], SYMBOL, 0)])),
    "a symbol beyond bounds": field(2, document("a.py", [([0, 0, 1], "x" * 9_000, 0)])),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data)


@given(st.data())
def test_no_bytes_do_more_than_be_refused(draw: st.DataObject) -> None:
    whole = field(1, field(3, "file:///x")) + field(
        2, document("a.py", [([0, 4, 8], SYMBOL, 1)] * 3, 1, "text")
    )
    data = bytearray(whole[: draw.draw(st.integers(0, len(whole)))])
    for at, value in draw.draw(
        st.lists(st.tuples(st.integers(0, len(whole)), st.integers(0, 255)), max_size=4)
    ):
        data[at : at + 1] = bytes([value])
    try:
        found = read(bytes(data))
    except Malformed:
        return
    for one in found:
        if isinstance(one, ScipDocument):
            rows = place_occurrences(one, b"def weave(): pass\n")
            assert (
                rows is None or ((rows[:, 0] <= rows[:, 1]) & (rows[:, 1] <= 18)).all()
            )


TEXT = "def weave(yarn):\n    return yarn\n\nweave(1)\n"


def made_of(text: str) -> ScipDocument:
    uses = spans(text, "weave", "x . . . `a.py`/weave().", [DEFINES, 0])
    (found,) = read(
        field(
            2, document("a.py", [*uses, *spans(text, "yarn", "local 0", [DEFINES, 0])])
        )
    )
    assert isinstance(found, ScipDocument)
    return found


@pytest.mark.parametrize(
    "other",
    [
        "\n" + TEXT,
        "#\n" + TEXT,
        TEXT.replace("yarn)", "yarn, n)").replace("def", "async def"),
        TEXT[:20],
        "",
    ],
)
def test_occurrences_do_not_fit_another_text(other: str) -> None:
    assert place_occurrences(made_of(TEXT), TEXT.encode()) is not None
    assert place_occurrences(made_of(TEXT), other.encode()) is None


def test_a_text_that_the_index_has_must_be_the_same() -> None:
    (found,) = read(
        field(
            2, document("a.py", spans(TEXT, "weave", SYMBOL, [DEFINES, 0]), text=TEXT)
        )
    )
    assert isinstance(found, ScipDocument)
    assert place_occurrences(found, TEXT.encode()) is not None
    assert place_occurrences(found, TEXT.encode() + b"\n") is None


@pytest.mark.parametrize(("encoding", "column"), [(1, 15), (2, 12), (3, 11)])
def test_columns_are_counted_as_the_index_says(encoding: int, column: int) -> None:
    text = "s = '😀é'; yarn = 1\n"
    for said in (encoding, 0) if encoding != 1 else (encoding,):
        (found,) = read(
            field(
                2,
                document(
                    "a.py", [([0, column - 1, column + 3], "x . . . yarn.", 1)], said
                ),
            )
        )
        assert isinstance(found, ScipDocument)
        rows = place_occurrences(found, text.encode())
        assert rows is not None
        assert [text.encode()[start:end] for start, end in rows[:, :2].tolist()] == [
            b"yarn"
        ]


def test_an_occurrence_is_narrowed_to_its_name_and_one_of_another_name_left_out() -> (
    None
):
    text = "from a import weave as weave\nbound = weave\nother.post()\n"
    uses = [
        ([0, 14, 28], SYMBOL, IMPORTS),
        ([1, 8, 13], SYMBOL, 0),
        ([2, 6, 10], SYMBOL, 0),
    ]
    (found,) = read(field(2, document("b.py", uses)))
    assert isinstance(found, ScipDocument)
    rows = place_occurrences(found, text.encode())
    assert rows is not None
    assert rows[:, 0].tolist() == [14, text.index("= weave\n") + 2]
