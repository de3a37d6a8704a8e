"""Files with bytes that are no text: shown with U+FFFD, and every byte that was not to be changed stays as it was."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import Conflict, InvalidParams
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.encoding import decode
from flashgrep.files.read import SliceQuery, read_slice
from flashgrep.parts.edit import files
from flashgrep.parts.edit.batch import Operation, write_batch
from flashgrep.parts.edit.edits import Edit, LineEdit, Precondition, TextEdit
from flashgrep.parts.edit.files import WriteOptions
from flashgrep.parts.edit.write import WriteRequest, write_file
from tests.edit.harness import root_at

ACCENTS = "# déjà été\n".encode()
"""Enough valid characters for a file to be UTF-8 with damage, and not latin-1."""

PARTS = st.sampled_from(
    [
        b"a",
        b" ",
        b"\n",
        b"\r\n",
        "é".encode(),
        "€".encode(),
        b"\xff",
        b"\xe9",
        b"\xe2\x82",
        b"\x80",
    ]
)
WIDE = st.sampled_from(["a", " ", "\n", "é", "😀", "\ud83d", "\ude00"])


def put(editor: Editor, data: bytes) -> Path:
    path = Path(os.fsdecode(editor.root.path), "file.txt")
    path.write_bytes(data)
    return path


def change(editor: Editor, edit: Edit, belief: Precondition | None = None) -> None:
    write_file(editor, WriteRequest(b"file.txt", edit, belief or Precondition()))


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("café\n".encode() + b"bad \xff here\n", "café\nbad \ufffd here\n", "utf-8"),
        (b"\xef\xbb\xbfbad \xff here", "bad \ufffd here", "utf-8"),
        ("é".encode() + b"\xe2\x82", "é\ufffd\ufffd", "utf-8"),
        ("Å".encode() + b"\xff" * 2, "Å\ufffd\ufffd", "utf-8"),
        (b"caf\xe9\n", "café\n", "latin-1"),
        ("é".encode() + b"\xe9" * 3, "Ã©ééé", "latin-1"),
        (b"\xff\xfea\0\0\xd8b\0", "a\ufffdb", "utf-16-le"),
        (b"\xfe\xff\0a\0", "a\ufffd", "utf-16-be"),
    ],
)
def test_one_bad_byte_does_not_change_how_a_file_is_read(
    editor: Editor, data: bytes, text: str, encoding: str
) -> None:
    put(editor, data)
    whole = read_slice(editor, b"file.txt", SliceQuery())
    assert (whole["content"], whole["encoding"]) == (text, encoding)
    large = Editor(editor.root, Limits(whole_bytes=0))
    assert read_slice(large, b"file.txt", SliceQuery())["content"] == text
    assert (
        files.read(editor, b"file.txt").text.text,
        decode(data).encode(decode(data).lossless),
    ) == (text, data)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(PARTS, max_size=30),
    st.lists(PARTS, max_size=30),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_replacing_a_word_leaves_every_other_byte(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[bytes],
    after: list[bytes],
    mark: bytes,
) -> None:
    left, right = mark + b"".join(before), b"".join(after)
    with root_at(tmp_path_factory.mktemp("word")) as root:
        editor = Editor(root)
        path = put(editor, left + b"WORD" + right)
        change(editor, TextEdit("WORD", "other"))
        assert path.read_bytes() == left + b"other" + right
        line = (left.removeprefix(mark)).count(
            b"\n"
        ) + 1  # the same by reading the line and writing it back
        shown = read_slice(
            editor, b"file.txt", SliceQuery(start_line=line, end_line=line)
        )["content"]
        change(editor, LineEdit(line, line, shown.replace("other", "third")))
        assert path.read_bytes() == left + b"third" + right


@settings(max_examples=100, deadline=None)
@given(
    st.lists(WIDE, max_size=20),
    st.lists(WIDE, max_size=20),
    st.sampled_from([b"", b"\0"]),
)
def test_replacing_a_word_of_utf16_leaves_every_other_byte(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    after: list[str],
    odd: bytes,
) -> None:
    left = b"\xff\xfe" + "".join(before).encode("utf-16-le", "surrogatepass")
    right = "".join(after).encode("utf-16-le", "surrogatepass") + odd
    with root_at(tmp_path_factory.mktemp("wide")) as root:
        editor = Editor(root)
        path = put(editor, left + "WORD".encode("utf-16-le") + right)
        change(editor, TextEdit("WORD", "other"))
        assert path.read_bytes() == left + "other".encode("utf-16-le") + right


@pytest.mark.parametrize(
    ("old", "edit", "new"),
    [
        (b"x \xff y\n", TextEdit("x \ufffd y", "x \ufffd z"), b"x \xff z\n"),
        (b"x \xff y\n", LineEdit(2, 2, "\ufffd\n\ufffd"), b"\xff\n\xff\n"),
        (b"x \xff y\n", LineEdit(2, 2, "x y"), b"x y\n"),
        (
            b"a\xe9 b\xea\n",
            LineEdit(2, 2, "b\ufffd a\ufffd"),
            b"b\xea a\xe9\n",
        ),  # moved: told by the words
        (
            b"a\xe9 b\xea\n",
            LineEdit(2, 2, "c\ufffd d\ufffd"),
            b"c\xe9 d\xea\n",
        ),  # renamed: told by their order
        (b"a\xe9 b\xea\n", LineEdit(2, 2, "b\ufffd c\ufffd"), b"b\xea c\xe9\n"),
        (b"a\xe9 b\xea\n", LineEdit(2, 2, "b\ufffd"), b"b\xea\n"),
        (
            b"a\xe9 b\xea\n",
            LineEdit(3, 2, "a\ufffd"),
            b"a\xe9 b\xea\na\xe9\n",
        ),  # inserted: told by the file's words
        (
            b"a\xe9 \xef\xbf\xbd\n",
            LineEdit(2, 2, "\ufffd a\ufffd"),
            b"\xef\xbf\xbd a\xe9\n",
        ),  # one is a true U+FFFD
        (
            b"a\xe9\r\nb\xea\r\n",
            TextEdit("a\ufffd\nb\ufffd", "a\ufffd\n\nb\ufffd"),
            b"a\xe9\r\n\r\nb\xea\r\n",
        ),
    ],
)
def test_bytes_that_were_shown_as_u_fffd_are_written_back(
    editor: Editor, old: bytes, edit: Edit, new: bytes
) -> None:
    path = put(editor, ACCENTS + old)
    change(editor, edit)
    assert path.read_bytes() == ACCENTS + new


@pytest.mark.parametrize(
    "new", ["c\ufffd", "c\ufffd d\ufffd e\ufffd", "\ufffd\ufffd\ufffd", "a\udce9"]
)
def test_an_ambiguous_edit_is_refused_and_nothing_written(
    editor: Editor, new: str
) -> None:
    data = ACCENTS + b"a\xe9 b\xea\n"
    path = put(editor, data)
    for edit in (LineEdit(2, 2, new), TextEdit("a\ufffd b\ufffd", new)):
        with pytest.raises(InvalidParams) as caught:
            change(editor, edit)
        assert caught.value.reason == "encoding"
        assert path.read_bytes() == data


def test_u_fffd_is_a_character_like_others_where_every_byte_is_text(
    editor: Editor,
) -> None:
    path = put(editor, "é \ufffd\n".encode())
    change(editor, LineEdit(1, 1, "\ufffd\ufffd"))
    assert path.read_bytes() == "\ufffd\ufffd\n".encode()
    assert "invalid_bytes" not in read_slice(editor, b"file.txt", SliceQuery())


def test_beliefs_and_differences_are_in_what_was_shown(editor: Editor) -> None:
    path = put(editor, ACCENTS + b"a\xe9\nb\n")
    read = read_slice(editor, b"file.txt", SliceQuery(start_line=2, end_line=2))
    assert (read["content"], read["invalid_bytes"]) == ("a\ufffd\n", 1)
    belief = Precondition(
        file_hash=read["file_hash"], start_line_text="a\ufffd", end_line_text="b"
    )
    order = WriteRequest(
        b"file.txt", LineEdit(2, 3, "a\ufffd\nc"), belief, dry_run=True
    )
    assert write_file(editor, order)[0]["diff"].splitlines()[3:] == [
        " # déjà été",
        " a\ufffd",
        "-b",
        "+c",
    ]
    change(editor, order.edit, belief)
    assert path.read_bytes() == ACCENTS + b"a\xe9\nc\n"
    with pytest.raises(Conflict) as caught:
        change(editor, TextEdit("a\ufffd b", "x"))
    assert caught.value.data["conflict"]["mismatches"][0]["actual"] is None


def test_a_batch_moves_a_line_with_its_bytes(editor: Editor) -> None:
    path = put(editor, ACCENTS + b"a\xe9\nb\xea\nend\n")
    move = [LineEdit(2, 2, ""), LineEdit(4, 3, "a\ufffd\n")]
    operations = [
        Operation(str(at), WriteRequest(b"file.txt", edit))
        for at, edit in enumerate(move)
    ]
    result, _ = write_batch(editor, operations, "atomic")
    assert result["ok"]
    assert path.read_bytes() == ACCENTS + b"b\xea\na\xe9\nend\n"


def test_a_whole_file_written_back_keeps_its_bytes(editor: Editor) -> None:
    how = WriteOptions(overwrite=True)
    path = put(editor, ACCENTS + b"a\xe9 b\xea\n")
    content = files.read(editor, b"file.txt").text.text
    files.write(editor, b"file.txt", content.replace("déjà", "deja"), how)
    assert path.read_bytes() == "# deja été\n".encode() + b"a\xe9 b\xea\n"
    files.write(editor, b"file.txt", "b\ufffd", how, append=True)
    assert path.read_bytes().endswith(b"a\xe9 b\xea\nb\xea")
    path.write_bytes(b"\xff\xfea\0\0")
    with pytest.raises(InvalidParams) as caught:
        files.write(editor, b"file.txt", "b", how, append=True)
    assert caught.value.reason == "encoding"
    assert path.read_bytes() == b"\xff\xfea\0\0"
