"""Writing: any sequence of edits equals the same edits on a list of lines, and nothing else of the file changes."""

import os
import stat
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import (
    Conflict,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    InvalidRange,
    NotFound,
    TooLarge,
)
from flashgrep.files.editor import Editor, Limits
from flashgrep.parts.edit.edits import LineEdit, Precondition, TextEdit
from flashgrep.parts.edit.write import WriteRequest, write_file
from tests.edit.harness import root_at, sha

KINDS = [
    (b"", "utf-8"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"", "latin-1"),
]
ENDS = st.sampled_from(["", "\n"])
WORDS = st.text(st.sampled_from("ab\tß "), max_size=6)


def replace_lines(
    editor: Editor, start: int, end: int, new: str, belief: Precondition | None = None
) -> None:
    write_file(
        editor,
        WriteRequest(b"file.txt", LineEdit(start, end, new), belief or Precondition()),
    )


@dataclass
class Model:
    """The truth: contents of lines, one line end for all, and whether the last one has it."""

    lines: list[str]
    ending: str
    ended: bool

    def text(self) -> str:
        return self.ending.join(self.lines) + (
            self.ending if self.ended and self.lines else ""
        )

    def edit(self, start: int, end: int, new: list[str]) -> None:
        if len(self.lines) == 1 and not self.ended:
            self.ending = "\n"  # nothing is left that says otherwise
        self.lines[start - 1 : end] = new
        if not self.ended and self.lines[-1:] == [
            ""
        ]:  # in bytes, that is the line before with its end
            self.lines.pop()
            self.ended = True


@settings(max_examples=60, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    ENDS,
    st.sampled_from(KINDS),
    st.lists(
        st.tuples(
            st.integers(0, 9), st.integers(0, 4), st.lists(WORDS, max_size=4), ENDS
        ),
        max_size=5,
    ),
)
def test_any_sequence_of_writes_equals_the_same_on_a_list_of_lines(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ending: str,
    final: str,
    kind: tuple[bytes, str],
    edits: list[tuple[int, int, list[str], str]],
) -> None:
    lines = [
        lines[0] + "ß",
        *lines[1:-1],
        lines[-1] + "x",
    ]  # latin-1 shows as such; no unended empty last line
    model = Model(list(lines), ending, ended=bool(final))
    file = tmp_path_factory.mktemp("model") / "file.txt"
    file.write_bytes(kind[0] + model.text().encode(kind[1]))
    with root_at(file.parent) as root:
        editor = Editor(root)
        for at, length, drawn, closed in edits:
            count = len(model.lines)
            start = min(at, count - 1) + 1
            end = min(start + length - 1, count)
            new = [each + "ß" for each in drawn] or (
                ["ß"] if end - start + 1 == count else []
            )
            replace_lines(editor, start, end, "\n".join(new) + (closed if new else ""))
            model.edit(start, end, new)
            assert file.read_bytes() == kind[0] + model.text().encode(kind[1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "ab", "b\r"]), st.sampled_from(["\n", "\r\n"])
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["", "end", "end\r"]),
    st.data(),
)
def test_in_a_mixed_file_only_the_range_changes(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, str]],
    last: str,
    data: st.DataObject,
) -> None:
    file = tmp_path_factory.mktemp("mixed") / "file.txt"
    whole = [content + end for content, end in pairs] + ([last] if last else [])
    file.write_bytes("".join(whole).encode())
    start = data.draw(st.integers(1, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    with root_at(file.parent) as root:
        replace_lines(Editor(root), start, end, "new")
    after = file.read_bytes()
    before, behind = "".join(whole[: start - 1]).encode(), "".join(whole[end:]).encode()
    assert after.startswith(before)
    assert after.endswith(behind)
    middle = after[len(before) : len(after) - len(behind)]
    assert middle in (
        {b"new"} if end == len(whole) and last else {b"new\n", b"new\r\n"}
    )


def test_a_file_of_carriage_returns_keeps_them(editor: Editor, tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(b"one\rtwo\r")
    write_file(editor, WriteRequest(b"file.txt", TextEdit("two", "2\n3")))
    assert file.read_bytes() == b"one\r2\r3\r"
    replace_lines(editor, 1, 1, "x\ny\n")
    assert file.read_bytes() == b"x\ry\r"


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\nb", LineEdit(2, 2, ""), b"a"),
        (b"a\nb\n", LineEdit(2, 2, ""), b"a\n"),
        (b"a\nb", LineEdit(3, 2, "c"), b"a\nb\nc"),
        (b"a\nb\n", LineEdit(1, 0, "0\n"), b"0\na\nb\n"),
        (b"", LineEdit(1, 0, "first"), b"first\n"),
        (b"a\r\nb\r\n", TextEdit("a\nb", "x\ny\nz"), b"x\r\ny\r\nz\r\n"),
        (b"x x x", TextEdit("x", "yy", everywhere=True), b"yy yy yy"),
        (b"aaa", TextEdit("aa", "b", everywhere=True), b"ba"),
        (b"end", TextEdit("end", "end\n"), b"end\n"),
        (b"x\nabc\r", LineEdit(1, 1, "y"), b"y\nabc\r"),
    ],
)
def test_an_edit_gives(
    editor: Editor,
    tmp_path: Path,
    before: bytes,
    edit: LineEdit | TextEdit,
    after: bytes,
) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(before)
    result, path = write_file(editor, WriteRequest(b"file.txt", edit))
    assert file.read_bytes() == after
    assert path == b"file.txt"
    assert (result["file_hash_before"], result["file_hash_after"]) == (
        sha(before),
        sha(after),
    )


@pytest.mark.parametrize(("old", "count"), [("zz", 0), ("x", 3), ("aa", 2)])
def test_a_text_that_does_not_occur_once_is_refused(
    editor: Editor, tmp_path: Path, old: str, count: int
) -> None:
    (tmp_path / "file.txt").write_bytes(b"x\nx\nx aaa")
    with pytest.raises(Conflict) as caught:
        write_file(editor, WriteRequest(b"file.txt", TextEdit(old, "y")))
    assert caught.value.reason == "precondition_failed"
    assert caught.value.data["conflict"]["mismatches"][0]["occurrences"] == count
    assert (tmp_path / "file.txt").read_bytes() == b"x\nx\nx aaa"


def test_every_mismatch_is_listed(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(b"a\nb\nc\n")
    with pytest.raises(Conflict) as caught:
        replace_lines(editor, 1, 2, "x", Precondition("0" * 64, "z", "c"))
    mismatches = caught.value.data["conflict"]["mismatches"]
    assert [
        (each["field"], each.get("line"), each["actual"]) for each in mismatches
    ] == [
        ("expected_file_hash", None, sha(b"a\nb\nc\n")),
        ("expected_start_line_text", 1, "a"),
        ("expected_end_line_text", 2, "b"),
    ]


def test_preconditions_that_hold_let_the_write_through(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "file.txt").write_bytes(b"a\r\nb\r\n")
    replace_lines(editor, 1, 2, "x", Precondition(sha(b"a\r\nb\r\n"), "a", "b\n"))
    assert (tmp_path / "file.txt").read_bytes() == b"x\r\n"


def test_a_new_file_needs_to_be_expected_absent(editor: Editor, tmp_path: Path) -> None:
    order = WriteRequest(
        b"new.txt", LineEdit(1, 0, "text\r\n"), Precondition(absent=True)
    )
    with pytest.raises(NotFound):
        write_file(editor, WriteRequest(b"new.txt", order.edit))
    assert write_file(editor, order)[0]["created"]
    assert (tmp_path / "new.txt").read_bytes() == b"text\r\n"
    with pytest.raises(Conflict):
        write_file(editor, order)


def test_the_mode_is_kept_and_a_link_stays_a_link(
    editor: Editor, tmp_path: Path
) -> None:
    file = tmp_path / "file.txt"
    (tmp_path / "real").mkdir()
    (tmp_path / "real/target.sh").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "real/target.sh").chmod(0o751)
    file.symlink_to("real/target.sh")
    _, path = write_file(editor, WriteRequest(b"file.txt", LineEdit(2, 1, "true")))
    assert path == b"real/target.sh"
    assert file.is_symlink()
    assert stat.S_IMODE((tmp_path / "real/target.sh").stat().st_mode) == 0o751
    assert file.read_bytes() == b"#!/bin/sh\ntrue\n"


def test_a_hard_link_elsewhere_keeps_its_content(
    editor: Editor, tmp_path: Path
) -> None:
    file, other = tmp_path / "file.txt", tmp_path / "other.txt"
    file.write_bytes(b"a\n")
    other.hardlink_to(file)
    replace_lines(editor, 1, 1, "b")
    assert (file.read_bytes(), other.read_bytes()) == (b"b\n", b"a\n")


@pytest.mark.parametrize(
    ("order", "error", "reason"),
    [
        (WriteRequest(b"file.txt", LineEdit(3, 3, "")), InvalidRange, "invalid_range"),
        (WriteRequest(b"file.txt", LineEdit(3, 1, "")), InvalidRange, "invalid_range"),
        (
            WriteRequest(b"empty.txt", LineEdit(1, 1, "x")),
            InvalidRange,
            "invalid_range",
        ),
        (
            WriteRequest(b"file.txt", LineEdit(1, 1, "x" * 131_073)),
            TooLarge,
            "payload_too_large",
        ),
        (WriteRequest(b"latin.txt", LineEdit(1, 1, "€")), InvalidParams, "encoding"),
        (WriteRequest(b"folder", LineEdit(1, 1, "x")), InvalidParams, "not_a_file"),
        (
            WriteRequest(b".git/config", LineEdit(1, 1, "x")),
            Forbidden,
            "protected_path",
        ),
        (
            WriteRequest(b"sub/.Git/config", LineEdit(1, 1, "x")),
            Forbidden,
            "protected_path",
        ),
        (
            WriteRequest(b".FLASHGREP/x", LineEdit(1, 1, "x")),
            Forbidden,
            "protected_path",
        ),
        (WriteRequest(b"../out.txt", LineEdit(1, 1, "x")), Forbidden, "outside_root"),
        (WriteRequest(b"", LineEdit(1, 1, "x")), InvalidParams, "invalid_params"),
        (WriteRequest(b"a\0b", LineEdit(1, 1, "x")), InvalidParams, "invalid_params"),
    ],
)
def test_a_write_that_cannot_be_is_refused(
    editor: Editor,
    tmp_path: Path,
    order: WriteRequest,
    error: type[FlashgrepError],
    reason: str,
) -> None:
    (tmp_path / "file.txt").write_bytes(b"a\nb\n")
    (tmp_path / "latin.txt").write_bytes(b"\xe9\n")
    (tmp_path / "empty.txt").touch()
    for folder in ("folder", ".git", "sub"):
        (tmp_path / folder).mkdir()
    with pytest.raises(error) as caught:
        write_file(editor, order)
    assert caught.value.reason == reason
    assert (tmp_path / "file.txt").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("step", ["check", "write"])
@pytest.mark.parametrize(
    "how", ["in place", "by rename", "removed", "same size and time"]
)
def test_a_change_between_our_read_and_our_rename_is_refused(
    tmp_path: Path, step: str, how: str
) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(b"one\n")

    def meddle(at: str) -> None:
        if at != step:
            return
        before = file.stat()
        if how == "by rename":
            (tmp_path / "other").write_bytes(b"two\n")
            (tmp_path / "other").replace(file)
        elif how == "removed":
            file.unlink()
        else:
            file.write_bytes(
                b"two\n" if how == "same size and time" else b"two and more\n"
            )
            if how == "same size and time":
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    with root_at(tmp_path) as root:
        with pytest.raises(Conflict) as caught:
            replace_lines(Editor(root, step=meddle), 1, 1, "ours")
        assert caught.value.data["conflict"]["mismatches"][0]["expected"] == sha(
            b"one\n"
        )
    assert not file.exists() or file.read_bytes() != b"ours\n"
    assert {path.name for path in tmp_path.iterdir()} <= {"file.txt", ".flashgrep"}


def test_of_concurrent_writers_exactly_one_wins(editor: Editor, tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(b"start\n")
    believed = sha(b"start\n")
    outcomes: list[str] = []

    def write(number: int) -> None:
        try:
            replace_lines(editor, 1, 1, f"writer {number}", Precondition(believed))
            outcomes.append(f"writer {number}\n")
        except Conflict:
            outcomes.append("conflict")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert outcomes.count("conflict") == 15
    assert file.read_text() in outcomes


def test_no_update_of_concurrent_writers_without_preconditions_is_lost(
    editor: Editor, tmp_path: Path
) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(b"")

    def append(number: int) -> None:
        for _ in range(5):
            replace_lines(editor, 1, 0, f"writer {number}")

    threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(file.read_bytes().splitlines()) == 40


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30),
    ENDS,
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(0, 6),
            st.sampled_from(["", "x", "x\ny\n", "a\nb"]),
        ),
        max_size=1,
    ),
)
def test_git_apply_takes_the_preview_and_gets_what_the_write_gives(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    final: str,
    edits: list[tuple[int, int, str]],
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    file = folder / "file.txt"
    file.write_text("\n".join(lines) + (final if lines else ""))
    count = file.read_bytes().count(b"\n") + (
        not file.read_bytes().endswith(b"\n") if file.read_bytes() else 0
    )
    with root_at(folder) as root:
        editor = Editor(root)
        for at, length, new in edits:
            start = min(at, count) + 1
            edit = LineEdit(start, min(start + length - 1, count), new)
            diff = write_file(editor, WriteRequest(b"file.txt", edit, dry_run=True))[0][
                "diff"
            ]
            before = file.read_bytes()
            write_file(editor, WriteRequest(b"file.txt", edit))
            after = file.read_bytes()
            file.write_bytes(before)
            if diff:
                subprocess.run(
                    ["git", "apply", "-"],
                    input=diff.encode(),
                    cwd=folder,
                    check=True,
                    capture_output=True,
                )
            assert file.read_bytes() == after


def test_an_old_text_that_is_only_spaced_otherwise_is_pointed_to(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "file.txt").write_bytes(b"if x:\n        return  # deep\n")
    with pytest.raises(Conflict) as caught:
        write_file(
            editor, WriteRequest(b"file.txt", TextEdit("\treturn  # deep\n", "pass\n"))
        )
    write_file(editor, WriteRequest(b"file.txt", TextEdit("return  # deep", "pass")))
    assert (tmp_path / "file.txt").read_bytes() == b"if x:\n        pass\n"
    assert caught.value.data["conflict"]["mismatches"][0]["lines"] == [2]


@pytest.mark.slow
def test_a_text_of_many_places_is_replaced_at_once(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "file.txt").write_bytes(b"x x\n" * 100_000)
    result, _ = write_file(
        editor, WriteRequest(b"file.txt", TextEdit("x", "y", everywhere=True))
    )
    assert (result["occurrences"], result["end_line"]) == (200_000, 100_000)
    with pytest.raises(Conflict, match="at least 20 times"):
        write_file(editor, WriteRequest(b"file.txt", TextEdit("y", "x")))


def test_a_root_whose_folder_was_replaced_is_opened_again(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with root_at(tmp_path / "sub") as root:
        (tmp_path / "sub").rename(tmp_path / "former")
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/file.txt").write_bytes(b"old\n")
        replace_lines(Editor(root), 1, 1, "new")
        assert (tmp_path / "sub/file.txt").read_bytes() == b"new\n"
        (tmp_path / "sub").rename(tmp_path / "gone")
        with pytest.raises(NotFound) as caught:
            replace_lines(Editor(root), 1, 1, "new")
        assert caught.value.reason == "directory_not_found"


def test_a_file_over_the_limit_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes(b"x\n" * 100)
    with root_at(tmp_path) as root, pytest.raises(TooLarge) as caught:
        replace_lines(Editor(root, Limits(edit_bytes=100)), 1, 1, "y")
    assert {"observed_bytes", "limit_bytes", "guidance"} <= set(caught.value.data)
