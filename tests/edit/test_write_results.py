"""What a write tells of itself: every field of its result and every fact of its refusals, counted by hand."""

import base64
import os
from pathlib import Path

import pytest

from flashgrep.base.errors import (
    Conflict,
    InvalidParams,
    InvalidRange,
    NotFound,
    TooLarge,
)
from flashgrep.files.editor import Editor, Limits
from flashgrep.parts.edit import syntax_check
from flashgrep.parts.edit.edits import (
    Edit,
    LineEdit,
    Precondition,
    TextEdit,
)
from flashgrep.parts.edit.syntax_check import SyntaxCheck
from flashgrep.parts.edit.write import WriteRequest, check_size, write_file
from flashgrep.parts.symbols.syntax_errors import find_syntax_errors
from tests.edit.harness import root_at, sha

SIX = b"one\ntwo\nthree\nfour\nfive\nsix\n"
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("edit", "lines", "counts", "after"),
    [
        (LineEdit(3, 5, "x"), (3, 5), (3, 1), b"one\ntwo\nx\nsix\n"),
        (
            LineEdit(2, 2, "x\ny\nz\n"),
            (2, 2),
            (1, 3),
            b"one\nx\ny\nz\nthree\nfour\nfive\nsix\n",
        ),
        (
            LineEdit(4, 3, "x\ny"),
            (4, 3),
            (0, 2),
            b"one\ntwo\nthree\nx\ny\nfour\nfive\nsix\n",
        ),
        (LineEdit(5, 6, ""), (5, 6), (2, 0), b"one\ntwo\nthree\nfour\n"),
        (TextEdit("three\nfour", "x"), (3, 4), (2, 1), b"one\ntwo\nx\nfive\nsix\n"),
        (
            TextEdit("four", "x\ny\nz"),
            (4, 4),
            (1, 3),
            b"one\ntwo\nthree\nx\ny\nz\nfive\nsix\n",
        ),
        (
            TextEdit("e\n", "\n", everywhere=True),
            (1, 5),
            (3, 3),
            b"on\ntwo\nthre\nfour\nfiv\nsix\n",
        ),
        (
            TextEdit("e\n", "E ", everywhere=True),
            (1, 5),
            (3, 0),
            b"onE two\nthreE four\nfivE six\n",
        ),
    ],
)
def test_the_result_counts_lines_before_and_after(
    editor: Editor,
    tmp_path: Path,
    edit: Edit,
    lines: tuple[int, int],
    counts: tuple[int, int],
    after: bytes,
) -> None:
    (tmp_path / "file.txt").write_bytes(SIX)
    result, _ = write_file(editor, WriteRequest(b"file.txt", edit))
    assert (tmp_path / "file.txt").read_bytes() == after
    expected = {
        "ok": True,
        "file_path": "file.txt",
        "start_line": lines[0],
        "end_line": lines[1],
        "replaced_line_count": counts[0],
        "new_line_count": counts[1],
        "file_hash_before": sha(SIX),
        "file_hash_after": sha(after),
        "created": False,
    }
    if isinstance(edit, TextEdit):
        expected["occurrences"] = 3 if edit.everywhere else 1
    assert result == expected


def test_the_result_of_a_new_file(editor: Editor, tmp_path: Path) -> None:
    order = WriteRequest(
        b"new.txt", LineEdit(1, 0, "a\nb\n"), Precondition(absent=True)
    )
    result, _ = write_file(editor, order)
    assert (tmp_path / "new.txt").read_bytes() == b"a\nb\n"
    assert result == {
        "ok": True,
        "file_path": "new.txt",
        "start_line": 1,
        "end_line": 0,
        "replaced_line_count": 0,
        "new_line_count": 2,
        "file_hash_before": None,
        "file_hash_after": sha(b"a\nb\n"),
        "created": True,
    }


def test_an_empty_file_can_be_created_and_one_that_is_as_wanted_stays_untouched(
    editor: Editor, tmp_path: Path
) -> None:
    file = tmp_path / "new.txt"
    write_file(
        editor, WriteRequest(b"new.txt", LineEdit(1, 0, ""), Precondition(absent=True))
    )
    assert file.read_bytes() == b""
    file.write_bytes(b"a\n")
    before = file.stat()
    result, _ = write_file(editor, WriteRequest(b"new.txt", LineEdit(1, 1, "a")))
    assert result["file_hash_before"] == result["file_hash_after"] == sha(b"a\n")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_a_new_file_takes_lines_and_nothing_else(
    editor: Editor, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParams, match="takes a replacement") as caught:
        write_file(
            editor,
            WriteRequest(b"new.txt", TextEdit("a", "b"), Precondition(absent=True)),
        )
    assert caught.value.data["field"] == "old_text"
    assert not (tmp_path / "new.txt").exists()


def test_a_missing_file_is_named(editor: Editor) -> None:
    with pytest.raises(NotFound) as caught:
        write_file(editor, WriteRequest(b"sub/none.txt", LineEdit(1, 1, "x")))
    assert (caught.value.reason, caught.value.data["target_path"]) == (
        "file_not_found",
        "sub/none.txt",
    )


def test_a_name_that_is_not_utf8_comes_whole_beside_what_is_shown(
    editor: Editor, tmp_path: Path
) -> None:
    name = b"caf\xe9.txt"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"a\n")
    result, path = write_file(editor, WriteRequest(name, LineEdit(1, 1, "b")))
    assert path == name
    assert result["file_path"] == "caf\ufffd.txt"
    assert base64.b64decode(result["file_path_bytes"]) == name


def test_refusals_name_the_file_and_the_place(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(SIX)
    with pytest.raises(InvalidRange) as caught:
        write_file(editor, WriteRequest(b"file.txt", LineEdit(7, 9, "x")))
    assert caught.value.message.startswith("file.txt: lines 7-9: ")
    assert caught.value.data == {
        "start_line": 7,
        "end_line": 9,
        "total_lines": 6,
        "file_path": "file.txt",
    }
    with pytest.raises(Conflict) as missed:
        write_file(editor, WriteRequest(b"file.txt", TextEdit("seven", "x")))
    assert missed.value.message == "file.txt: old_text does not occur"
    assert missed.value.data["file_path"] == "file.txt"
    with pytest.raises(Conflict) as believed:
        write_file(
            editor,
            WriteRequest(
                b"file.txt", LineEdit(1, 1, "x"), Precondition(start_line_text="two")
            ),
        )
    assert believed.value.data["file_path"] == "file.txt"


def test_new_text_is_held_to_its_limit_in_bytes_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(SIX)
    with root_at(tmp_path) as root:
        editor = Editor(root, Limits(write_bytes=8))
        for edit in (LineEdit(1, 1, "ßßßß"), TextEdit("two", "eightfit")):
            write_file(editor, WriteRequest(b"file.txt", edit))
        for over in (LineEdit(1, 1, "ßßßß."), TextEdit("six", "nine fits")):
            with pytest.raises(
                TooLarge, match=r"replacement is 9 bytes, limit 8: file\.txt"
            ) as caught:
                write_file(editor, WriteRequest(b"file.txt", over))
            told = dict(caught.value.data)
            assert "continuation_id" in told.pop("guidance")
            assert told == {
                "operation": "write_code",
                "file_path": "file.txt",
                "observed_bytes": 9,
                "limit_bytes": 8,
            }
        with pytest.raises(TooLarge) as named:
            check_size(
                editor,
                WriteRequest(b"file.txt", LineEdit(1, 1, "nine fits")),
                "batch_write_code",
            )
    assert named.value.data["operation"] == "batch_write_code"
    assert (
        (tmp_path / "file.txt")
        .read_bytes()
        .startswith("ßßßß\neightfit\nthree".encode())
    )


def test_what_was_staged_may_be_longer_than_one_call(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(SIX)
    with root_at(tmp_path) as root:
        editor = Editor(root, Limits(write_bytes=8))
        write_file(
            editor, WriteRequest(b"file.txt", LineEdit(1, 6, "nine fits")), staged=True
        )
    assert (tmp_path / "file.txt").read_bytes() == b"nine fits\n"


def test_a_preview_changes_nothing_and_says_what_would_change(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "file.txt").write_bytes(MARK + SIX)
    result, path = write_file(
        editor, WriteRequest(b"file.txt", LineEdit(1, 1, "eins"), dry_run=True)
    )
    assert (tmp_path / "file.txt").read_bytes() == MARK + SIX
    assert path == b"file.txt"
    assert result["dry_run"] is True
    assert (
        result["diff"]
        == "--- a/file.txt\n+++ b/file.txt\n@@ -1,4 +1,4 @@\n-one\n+eins\n two\n three\n four\n"
    )
    assert result["diff_truncated"] is False
    assert result["file_hash_after"] == sha(MARK + SIX.replace(b"one", b"eins"))
    assert (
        "dry_run"
        not in write_file(editor, WriteRequest(b"file.txt", LineEdit(1, 1, "eins")))[0]
    )


def test_a_preview_of_a_new_file_comes_from_nowhere(
    editor: Editor, tmp_path: Path
) -> None:
    order = WriteRequest(
        b"new.txt", LineEdit(1, 0, "a\n"), Precondition(absent=True), dry_run=True
    )
    result, _ = write_file(editor, order)
    assert result["diff"] == "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+a\n"
    assert not (tmp_path / "new.txt").exists()


def test_a_preview_is_cut_at_the_budget_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(SIX)
    order = WriteRequest(b"file.txt", LineEdit(1, 1, "eins"), dry_run=True)
    whole = "--- a/file.txt\n+++ b/file.txt\n@@ -1,4 +1,4 @@\n-one\n+eins\n two\n three\n four\n"
    with root_at(tmp_path) as root:
        for budget in (len(whole), len(whole) - 1):
            result, _ = write_file(Editor(root, Limits(read_bytes=budget)), order)
            assert (result["diff"], result["diff_truncated"]) == (
                whole[:budget],
                budget < len(whole),
            )


def test_a_check_of_what_was_written_ends_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files are written: an answer after the call's limit said that the call failed."""
    check = SyntaxCheck()
    for at in range(3):
        check.add(b"%d.py" % at, b"a = 1\n", b"a = (\n")
    whole = check.run(find_syntax_errors)
    assert [file["file_path"] for file in whole["unparsed"]] == [
        "0.py",
        "1.py",
        "2.py",
    ]
    assert "unchecked" not in whole
    monkeypatch.setattr(syntax_check, "CHECK_SECONDS", -1.0)
    assert check.run(find_syntax_errors) == {"unchecked": 3}
    lines = [*syntax_check.describe_errors({"unchecked": 3})]
    assert lines == ["[not checked whether they parse: 3 files]"]
