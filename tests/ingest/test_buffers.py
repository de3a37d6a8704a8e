"""Buffers: edits against the same edits of a Python string, in each way to count columns; bounds and refusals."""

import gc
from typing import Any, Final
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import (
    Conflict,
    FlashgrepError,
    InvalidParams,
    InvalidRange,
    NotFound,
    TooLarge,
)
from flashgrep.files import buffers
from flashgrep.files.buffers import Buffers, Edit
from flashgrep.files.columns import PositionEncoding

PATH: Final = b"/p/a.py"
ENCODINGS: Final[list[PositionEncoding]] = ["utf-8", "utf-16", "utf-32"]
CODECS: Final = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
texts = st.text(st.sampled_from("ab\n\r\té€😀\0\u2028"), max_size=30)


def place_of(text: str, at: int, encoding: PositionEncoding) -> tuple[int, int]:
    """Return the line and column of a place between two characters."""
    codec, width = CODECS[encoding]
    before = text[:at]
    return before.count("\n") + 1, len(
        before.rpartition("\n")[2].encode(codec)
    ) // width + 1


@given(st.data(), texts, st.sampled_from(ENCODINGS))
def test_edits_make_the_text_that_they_make_of_a_string(
    data: st.DataObject, text: str, encoding: PositionEncoding
) -> None:
    opened = Buffers(WeakSet())
    opened.open((None, PATH), PATH, text, 0)
    for version in range(1, data.draw(st.integers(1, 4)) + 1):
        edits = []
        for _ in range(data.draw(st.integers(0, 4))):
            new = data.draw(texts)
            if data.draw(st.integers(0, 5)) == 0:
                edits.append(Edit(None, None, new))
                text = new
                continue
            start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
            edits.append(
                Edit(
                    place_of(text, start, encoding), place_of(text, end, encoding), new
                )
            )
            text = text[:start] + new + text[end:]
        buffer = opened.change(PATH, edits, version, version - 1, encoding)
        assert buffer.text().data == text.encode()
        assert (buffer.size, buffer.version) == (len(text.encode()), version)


@given(st.data(), texts, st.sampled_from(ENCODINGS))
def test_a_place_is_in_the_text_or_refused_and_a_refusal_changes_nothing(
    data: st.DataObject, text: str, encoding: PositionEncoding
) -> None:
    opened = Buffers(WeakSet())
    opened.open((None, PATH), PATH, text, 0)
    places = {place_of(text, at, encoding) for at in range(len(text) + 1)}
    place = (
        data.draw(st.integers(1, text.count("\n") + 3)),
        data.draw(st.integers(1, 40)),
    )
    try:
        opened.change(PATH, [Edit(place, place, "x")], 1, 0, encoding)
    except InvalidRange:
        assert place not in places
        assert opened.get(PATH).text().data == text.encode()
        assert (opened.get(PATH).version, opened.get(PATH).is_behind) == (0, True)
    else:
        assert place in places


def test_edits_are_all_made_or_none() -> None:
    opened = Buffers(WeakSet())
    opened.open((None, PATH), PATH, "one\ntwo", 1)
    with pytest.raises(InvalidRange):
        opened.change(
            PATH, [Edit((1, 1), (1, 4), "1"), Edit((3, 1), (3, 1), "x")], 2, 1, "utf-8"
        )
    with pytest.raises(InvalidRange, match="before it starts"):
        opened.change(PATH, [Edit((2, 1), (1, 1), "x")], 2, 1, "utf-8")
    assert opened.get(PATH).text().data == b"one\ntwo"
    assert opened.get(PATH).is_behind
    assert not opened.change(PATH, [Edit((1, 1), (1, 4), "1")], 2, 1, "utf-8").is_behind
    assert [buffer.text().data for buffer in opened.all()] == [b"1\ntwo"]


@pytest.mark.parametrize(
    ("version", "base"), [(1, 1), (1, 0), (0, -1), (3, 2), (9, 8), (5, 5)]
)
def test_versions_follow_one_another(version: int, base: int) -> None:
    opened = Buffers(WeakSet())
    opened.open((None, PATH), PATH, "text", 1)
    with pytest.raises(Conflict) as error:
        opened.change(PATH, [Edit(None, None, "other")], version, base, "utf-8")
    assert (error.value.reason, error.value.data["known_version"]) == (
        "version_mismatch",
        1,
    )
    assert opened.get(PATH).text().data == b"text"


def test_versions_may_skip_where_the_edit_says_what_it_is_made_from() -> None:
    opened = Buffers(WeakSet())
    opened.open((None, PATH), PATH, "text", 1)
    assert opened.change(PATH, [], 9, 1, "utf-8").version == 9


def test_what_is_not_open_cannot_be_changed_or_closed() -> None:
    opened = Buffers(WeakSet())
    with pytest.raises(NotFound, match="no buffer"):
        opened.change(PATH, [], 1, 0, "utf-8")
    opened.open(("p", b"a.py"), PATH, "", 1)
    assert opened.find(("p", b"a.py")) == PATH
    opened.close(PATH)
    assert opened.find(("p", b"a.py")) is None
    with pytest.raises(NotFound):
        opened.close(PATH)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_pair_is_no_text(text: str) -> None:
    opened = Buffers(WeakSet())
    with pytest.raises(InvalidParams) as error:
        opened.open((None, PATH), PATH, text, 1)
    assert error.value.reason == "not_utf8"
    opened.open((None, PATH), PATH, "", 1)
    with pytest.raises(InvalidParams):
        opened.change(PATH, [Edit((1, 1), (1, 1), text)], 2, 1, "utf-8")


def test_buffers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "MOST_BYTES": 100,
        "MOST_BYTES_TOGETHER": 250,
        "MOST_BUFFERS": 4,
        "MOST_TOUCHED": 300,
    }.items():
        monkeypatch.setattr(buffers, name, value)
    opened = Buffers(WeakSet())

    def refused(run: Any, *args: Any) -> FlashgrepError:
        with pytest.raises(TooLarge) as error:
            run(*args)
        return error.value

    opened.open((None, b"a"), b"/a", "x" * 100, 1)
    assert (
        refused(opened.open, (None, b"b"), b"/b", "é" * 51, 1).data["limit_bytes"]
        == 100
    )
    opened.open((None, b"b"), b"/b", "y" * 100, 1)
    assert (
        refused(opened.open, (None, b"c"), b"/c", "z" * 51, 1).data["limit_bytes"]
        == 250
    )
    opened.open((None, b"b"), b"/b", "y" * 50, 1)  # in the place of the former
    opened.open((None, b"c"), b"/c", "z" * 99, 1)
    assert (
        refused(opened.change, b"/c", [Edit((1, 1), (1, 1), "zz")], 2, 1, "utf-8").data[
            "limit_bytes"
        ]
        == 100
    )
    assert (
        refused(opened.change, b"/b", [Edit((1, 1), (1, 1), "zz")], 2, 1, "utf-8").data[
            "limit_bytes"
        ]
        == 250
    )
    opened.open((None, b"d"), b"/d", "", 1)
    assert refused(opened.open, (None, b"e"), b"/e", "", 1).reason == "too_many_buffers"
    back_and_forth = [Edit((1, 1), (1, 100), ""), Edit((1, 1), (1, 1), "z" * 99)]
    assert (
        refused(opened.change, b"/c", back_and_forth * 3, 2, 1, "utf-8").data[
            "limit_bytes"
        ]
        == 300
    )
    assert opened.get(b"/c").text().data == b"z" * 99


@given(
    st.lists(
        st.tuples(st.sampled_from([b"/a", b"/b"]), st.one_of(st.none(), texts)),
        max_size=12,
    )
)
def test_open_projects_report_what_they_hold(
    steps: list[tuple[bytes, str | None]],
) -> None:
    opened = Buffers(WeakSet())
    for version, (path, text) in enumerate(steps, 1):
        is_open = any(buffer.path == path for buffer in opened.all())
        if text is None and is_open:
            opened.close(path)
        elif text is not None and is_open and version % 2:
            opened.change(
                path,
                [Edit(None, None, text)],
                version,
                opened.get(path).version,
                "utf-8",
            )
        elif text is not None:
            opened.open((None, path), path, text, version)
    assert opened.memory == sum(buffer.memory for buffer in opened.all())


def test_connections_share_a_bound_and_none_is_refused_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffers, "MOST_HELD_BY_ALL", 90_000)
    of_all = WeakSet[Buffers]()
    greedy, other = Buffers(of_all), Buffers(of_all)
    for number in range(4):
        greedy.open((None, b"%d" % number), b"/%d" % number, "x" * 10_000, 1)
    with pytest.raises(TooLarge, match="of all connections") as error:
        greedy.open((None, b"e"), b"/e", "x" * 10_000, 1)
    assert error.value.reason == "buffers_of_all_too_large"
    other.open((None, b"a"), b"/a", "x" * 10_000, 1)  # within its half
    with pytest.raises(TooLarge, match="of all connections"):
        greedy.change(b"/0", [Edit((1, 1), (1, 1), "x")], 2, 1, "utf-8")
    assert greedy.get(b"/0").is_behind
    greedy.open((None, b"0"), b"/0", "x", 2)  # less than before is taken
    del greedy, error  # its connection has ended
    gc.collect()
    for number in range(3):
        other.open((None, b"%d" % number), b"/%d" % number, "x" * 10_000, 1)
