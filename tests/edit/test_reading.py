"""Reading: any way of cutting a file into answers rebuilds its bytes, within the budgets asked for."""

import hashlib
import os
import re
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import (
    DeadlineExceeded,
    FlashgrepError,
    InvalidParams,
    InvalidRange,
    NotFound,
)
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.read import SliceQuery, SliceResult, read_slice
from tests.edit.harness import root_at

TINY = Limits(whole_bytes=64)
"""Makes every file but the smallest a large one."""


def put(editor: Editor, data: bytes, name: str = "file.txt") -> bytes:
    Path(os.fsdecode(editor.root.path), name).write_bytes(data)
    return name.encode()


def as_shown(data: bytes, encoding: str) -> str:
    """Return bytes as an answer shows them: a U+FFFD for each byte, or unit of UTF-16, that is no text."""
    if not encoding.startswith("utf-16"):
        return re.sub(
            "[\udc80-\udcff]", "\ufffd", data.decode(encoding, "surrogateescape")
        )
    return data.decode(encoding, "replace")


def follow(editor: Editor, path: bytes, ask: SliceQuery) -> list[SliceResult]:
    """Read until completed, going on at each cursor."""
    results = [read_slice(editor, path, ask)]
    while (cursor := results[-1]["continuation"]["cursor"]) is not None:
        onward = SliceQuery(
            start_line=cursor["continuation_start_line"],
            start_byte=cursor.get("continuation_start_byte"),
            end_line=cursor.get("end_line"),
            max_lines=ask.max_lines,
            max_bytes=ask.max_bytes,
            max_tokens=ask.max_tokens,
        )
        results.append(read_slice(editor, path, onward))
    return results


LINE = st.text(st.sampled_from("ab \r\tß€😀\u0a0a\u0d0d"), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(LINE, ENDS), max_size=12).map(
    lambda parts: "".join(a + b for a, b in parts)
)
FILES = st.one_of(
    st.builds(
        lambda text, last, kind: kind[0] + (text + last).encode(kind[1], "replace"),
        TEXTS,
        LINE,
        st.sampled_from(
            [
                (b"", "utf-8"),
                (b"\xef\xbb\xbf", "utf-8"),
                (b"\xff\xfe", "utf-16-le"),
                (b"\xfe\xff", "utf-16-be"),
                (b"", "latin-1"),
            ]
        ),
    ),
    st.binary(max_size=80),
)
BUDGETS = st.one_of(st.none(), st.integers(1, 40))


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(), TINY], ids=["whole", "large"])
def test_any_chunking_covers_the_file_byte_for_byte(
    tmp_path: Path, limits: Limits
) -> None:
    @settings(max_examples=150, deadline=None)
    @given(FILES, BUDGETS, BUDGETS, BUDGETS)
    def check(
        data: bytes, lines: int | None, size: int | None, tokens: int | None
    ) -> None:
        with root_at(tmp_path) as root:
            editor = Editor(root, limits)
            path = put(editor, data)
            results = follow(
                editor,
                path,
                SliceQuery(max_lines=lines, max_bytes=size, max_tokens=tokens),
            )
            encoding = results[0]["encoding"]
            bom = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(
                encoding, b"\xef\xbb\xbf"
            )
            at = len(bom) if results[0]["bom"] and data.startswith(bom) else 0
            assert "".join(each["content"] for each in results) == as_shown(
                data[at:], encoding
            )
            for result in results:
                applied = result["applied_limits"]
                piece = data[at : at + applied["consumed_bytes"]]
                at += len(piece)
                if "\ufffd" not in result["content"]:
                    assert result["content"].encode(encoding) == piece
                elif encoding == "utf-8":
                    bad = len(piece) - len(piece.decode("utf-8", "ignore").encode())
                    assert result.get("invalid_bytes", 0) == bad
                assert lines is None or applied["consumed_lines"] <= lines
                assert tokens is None or applied["consumed_tokens"] <= tokens
                assert size is None or applied["consumed_bytes"] <= max(size, 4)
            assert at == len(data)

    check()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["", "x", "word", "\r"]), max_size=30),
    st.sampled_from(["", "\n"]),
    st.integers(1, 31),
    st.integers(0, 9),
)
def test_a_range_is_what_splitting_at_line_feeds_gives(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    final: str,
    start: int,
    more: int,
) -> None:
    text = "\n".join(lines) + (final if lines else "")
    wanted = text.split("\n") if not text.endswith("\n") else text.split("\n")[:-1]
    wanted = [] if text == "" else wanted
    folder = tmp_path_factory.mktemp("range")
    for limits in (Limits(), Limits(whole_bytes=0)):
        with root_at(folder) as root:
            editor = Editor(root, limits)
            path = put(editor, text.encode())
            if start > max(len(wanted), 1):
                with pytest.raises(InvalidRange):
                    read_slice(
                        editor,
                        path,
                        SliceQuery(start_line=start, end_line=start + more),
                    )
                continue
            result = read_slice(
                editor, path, SliceQuery(start_line=start, end_line=start + more)
            )
            end = min(start + more, len(wanted))
            assert (result["start_line"], result["end_line"], result["truncated"]) == (
                start,
                end,
                False,
            )
            pieces = text.splitlines(keepends=True) if "\r" not in text else None
            if pieces is not None:
                assert result["content"] == "".join(pieces[start - 1 : end])


def test_the_hash_is_of_the_raw_bytes(editor: Editor) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo"
    result = read_slice(editor, put(editor, data), SliceQuery())
    assert result["file_hash"] == hashlib.sha256(data).hexdigest()
    assert (result["bom"], result["encoding"], result["line_ending"]) == (
        True,
        "utf-8",
        "crlf",
    )
    assert result["content"] == "one\r\ntwo"


def test_a_large_file_is_hashed_only_when_asked(editor: Editor) -> None:
    data = b"line\n" * 1_000_000
    path = put(editor, data)
    silent = read_slice(editor, path, SliceQuery(end_line=1))
    assert silent["file_hash"] is None
    assert "include_hash" in silent["notes"][0]
    asked = read_slice(editor, path, SliceQuery(end_line=1, with_hash=True))
    assert asked["file_hash"] == hashlib.sha256(data).hexdigest()


def test_a_full_page_is_not_called_truncated(editor: Editor) -> None:
    path = put(editor, b"a\nb\nc\n")
    assert not read_slice(editor, path, SliceQuery(max_lines=3))["truncated"]
    assert not read_slice(editor, path, SliceQuery(end_line=2))["truncated"]
    cut = read_slice(editor, path, SliceQuery(max_lines=2))
    assert (cut["truncated"], cut["continuation_start_line"]) == (True, 3)


def test_an_empty_file_is_an_answer(editor: Editor) -> None:
    result = read_slice(editor, put(editor, b""), SliceQuery())
    assert (
        result["content"],
        result["start_line"],
        result["end_line"],
        result["truncated"],
    ) == ("", 1, 0, False)


def test_a_line_over_the_budget_comes_in_windows_with_its_columns(
    editor: Editor,
) -> None:
    data = b"head\n" + b"x" * 500_000 + b"\ntail\n"
    path = put(editor, data)
    results = follow(editor, path, SliceQuery(start_line=2))
    assert results[0]["cut"]
    assert (results[0]["start_byte_column"], results[0]["end_byte_column"]) == (
        1,
        196_608,
    )
    assert results[1]["start_byte_column"] == 196_609
    assert "".join(each["content"] for each in results) == data[5:].decode()


def test_the_tail_of_a_large_file_has_its_line_numbers(tmp_path: Path) -> None:
    with root_at(tmp_path) as root:
        editor = Editor(root, TINY)
        path = put(editor, b"".join(b"line %d\n" % number for number in range(1, 5001)))
        result = read_slice(editor, path, SliceQuery(tail=2))
        assert (result["start_line"], result["content"]) == (
            4999,
            "line 4999\nline 5000\n",
        )


def test_a_file_that_changes_is_not_read_by_its_old_index(tmp_path: Path) -> None:
    with root_at(tmp_path) as root:
        editor = Editor(root, TINY)
        path = put(editor, b"aaa\n" * 100)
        old = 1_700_000_000
        os.utime(tmp_path / "file.txt", (old, old))
        assert (
            read_slice(editor, path, SliceQuery(start_line=100))["content"] == "aaa\n"
        )
        put(editor, b"b\nb\n" * 100)
        assert read_slice(editor, path, SliceQuery(start_line=200))["content"] == "b\n"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (SliceQuery(start_line=9), InvalidRange),
        (SliceQuery(start_line=2, end_line=1), InvalidRange),
        (SliceQuery(max_bytes=196_609), InvalidParams),
        (SliceQuery(start_line=2, start_byte=0), InvalidRange),
    ],
)
def test_what_cannot_be_read_is_refused(
    editor: Editor, ask: SliceQuery, error: type[FlashgrepError]
) -> None:
    path = put(editor, b"a\nb\n")
    with pytest.raises(error):
        read_slice(editor, path, ask)


def test_a_missing_file_is_named(editor: Editor) -> None:
    with pytest.raises(NotFound) as caught:
        read_slice(editor, b"src/none.py", SliceQuery())
    assert caught.value.to_object()["data"] == {
        "reason": "file_not_found",
        "target_path": "src/none.py",
        "target_kind": "file",
    }


def test_counting_lines_keeps_to_the_deadline(tmp_path: Path) -> None:
    with root_at(tmp_path) as root:
        editor = Editor(root, TINY)
        path = put(editor, b"line\n" * 100)
        with pytest.raises(DeadlineExceeded):
            read_slice(editor, path, SliceQuery(tail=1, deadline=time.monotonic() - 1))
        assert (
            read_slice(
                editor, path, SliceQuery(tail=1, deadline=time.monotonic() + 60)
            )["start_line"]
            == 100
        )


@pytest.mark.slow
def test_a_slice_of_a_huge_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.truncate(300 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast line\n")
    with root_at(tmp_path) as root:
        editor = Editor(root)
        tracemalloc.start()
        result = read_slice(editor, b"huge.log", SliceQuery(start_line=2))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert result["content"] == "last line\n"
    assert peak < 16 << 20


def test_the_error_for_a_range_past_the_end_has_the_number_of_lines(
    editor: Editor,
) -> None:
    path = put(editor, b"a\nb\n")
    with pytest.raises(
        InvalidRange, match=r"start_line 9 is past the end \(the file has 2 lines\)"
    ):
        read_slice(editor, path, SliceQuery(start_line=9))
