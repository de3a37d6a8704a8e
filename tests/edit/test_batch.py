"""Batches: several edits in original line numbers, all or none, whatever fails and whenever the process dies."""

import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import TooLarge
from flashgrep.files.editor import Editor, Limits
from flashgrep.parts.edit.batch import BatchResult, Mode, Operation, write_batch
from flashgrep.parts.edit.edits import LineEdit, Precondition, TextEdit
from flashgrep.parts.edit.journal import recover
from flashgrep.parts.edit.write import WriteRequest
from tests.edit.harness import root_at, state_of


def lines(
    name: str,
    path: str,
    start: int,
    end: int,
    new: str,
    belief: Precondition | None = None,
) -> Operation:
    return Operation(
        name,
        WriteRequest(
            path.encode(), LineEdit(start, end, new), belief or Precondition()
        ),
    )


def run(
    editor: Editor, *operations: Operation, mode: Mode = "atomic", dry_run: bool = False
) -> BatchResult:
    return write_batch(editor, operations, mode, dry_run=dry_run)[0]


def statuses(result: BatchResult) -> list[tuple[str, str | None]]:
    return [(each["status"], each["reason_code"]) for each in result["results"]]


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but the state's own; leftovers would show here."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".flashgrep" not in path.parts
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_edits_of_one_file_are_in_its_original_line_numbers(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n4\n5\n")
    result = run(
        editor,
        lines("late", "a", 4, 5, "four\nfive\nsix"),
        lines("early", "a", 1, 2, ""),
        lines("between", "a", 3, 2, "2.5"),
        Operation("text", WriteRequest(b"a", TextEdit("3", "three"))),
    )
    assert (result["ok"], result["applied_count"]) == (True, 4)
    after = b"2.5\nthree\nfour\nfive\nsix\n"
    assert (tmp_path / "a").read_bytes() == after
    assert {each["file_hash_after"] for each in result["results"]} == {
        hashlib.sha256(after).hexdigest()
    }


RANGES = st.lists(
    st.tuples(
        st.integers(1, 12), st.integers(0, 3), st.sampled_from(["", "x", "x\ny"])
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.sampled_from(["", "\n"]), RANGES)
def test_a_batch_equals_its_edits_from_the_last_to_the_first(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    final: str,
    ranges: list[tuple[int, int, str]],
) -> None:
    folder = tmp_path_factory.mktemp("batch")
    text = "\n".join(f"line {number}" for number in range(1, count + 1)) + final
    taken: set[int] = set()
    chosen: list[tuple[int, int, str]] = []
    for start, more, new in ranges:
        touched = set(range(start, min(start + more, count) + 1))
        if start <= count and not touched & taken:
            taken |= touched
            chosen.append((start, max(touched), new))
    (folder / "one").write_text(text)
    (folder / "all").write_text(text)
    with root_at(folder) as root:
        editor = Editor(root)
        whole = run(
            editor, *(lines(str(at), "all", *edit) for at, edit in enumerate(chosen))
        )
        for edit in sorted(chosen, reverse=True):
            assert run(editor, lines("x", "one", *edit))["ok"]
    assert whole["ok"]
    if not (
        final == "" and count in taken
    ):  # then the order decides which line is last while others follow
        assert (folder / "all").read_bytes() == (folder / "one").read_bytes()


@pytest.mark.parametrize("mode", ["atomic", "best_effort"])
def test_one_edit_of_several_files_has_one_name(
    editor: Editor, tmp_path: Path, mode: Mode
) -> None:
    texts = {"a": b"old, old\n", "b": b"none\n", "c": b"old\n"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    edit = TextEdit("old", "new", everywhere=True)
    everywhere = [
        Operation("rename", WriteRequest(name.encode(), edit)) for name in texts
    ]
    refused = run(editor, *everywhere, mode=mode)
    reasons = {
        each["file_path"]: each["reason_code"]
        for each in refused["results"]
        if each["status"] in {"failed", "conflict"}
    }
    assert [each["id"] for each in refused["results"]] == ["rename"] * 3
    assert list(reasons) == ["b"]
    if mode == "atomic":
        assert content(tmp_path) == texts
        done = run(editor, everywhere[0], everywhere[2])
        assert [each["occurrences"] for each in done["results"]] == [2, 1]
    assert content(tmp_path) == {"a": b"new, new\n", "b": b"none\n", "c": b"new\n"}


def test_everything_wrong_is_reported_and_nothing_written(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n4\n")
    before = content(tmp_path)
    result = run(
        editor,
        lines("fine", "a", 4, 4, "x"),
        lines("fine", "a", 4, 4, "x"),
        lines("range", "a", 9, 9, "x"),
        lines("missing", "b", 1, 1, "x"),
        lines("large", "a", 1, 1, "x" * 131_073),
        lines("hash", "a", 4, 3, "x", Precondition(file_hash="0" * 64)),
        lines("one", "a", 1, 1, "x"),
        lines("same", "a", 1, 1, "y"),
        lines("left", "a", 2, 3, "x"),
        lines("right", "./a", 3, 3, "y"),
        lines("out", "../a", 1, 1, "y"),
    )
    assert statuses(result) == [
        ("skipped", "atomic_aborted_preflight"),
        ("failed", "duplicate_operation_id"),
        ("failed", "invalid_range"),
        ("failed", "file_not_found"),
        ("failed", "payload_too_large"),
        ("conflict", "precondition_failed"),
        ("failed", "duplicate_target"),
        ("failed", "duplicate_target"),
        ("failed", "overlapping_operations"),
        ("failed", "overlapping_operations"),
        ("failed", "outside_root"),
    ]
    counts = [
        result[key]
        for key in ("applied_count", "failed_count", "conflict_count", "skipped_count")
    ]
    assert counts == [0, 9, 1, 1]
    assert not result["ok"]
    assert content(tmp_path) == before


def test_best_effort_applies_what_is_valid(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    result = run(
        editor,
        lines("bad", "a", 5, 5, "x"),
        lines("good", "a", 2, 2, "two"),
        mode="best_effort",
    )
    assert statuses(result) == [("failed", "invalid_range"), ("applied", None)]
    assert (tmp_path / "a").read_bytes() == b"1\ntwo\n"


def test_a_dry_run_shows_the_diff_and_writes_nothing(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    result = run(
        editor,
        lines("edit", "a", 2, 2, "two"),
        lines("make", "new", 1, 0, "n\n", Precondition(absent=True)),
        dry_run=True,
    )
    assert statuses(result) == [("skipped", "dry_run")] * 2
    assert "-2\n+two\n" in result["diff"]
    assert "--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+n\n" in result["diff"]
    assert content(tmp_path) == {"a": b"1\n2\n"}


def test_a_failure_while_applying_gives_back_every_file(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"old\n")
    before, inode = content(tmp_path), (tmp_path / "a").stat().st_ino
    steps = itertools.count()

    def meddle(step: str) -> None:
        if step == "check" and next(steps) == 1:
            (tmp_path / "b").write_bytes(b"somebody else\n")

    with root_at(tmp_path) as root:
        editor = Editor(root, step=meddle)
        make = lines("n", "new", 1, 0, "x", Precondition(absent=True))
        result = run(editor, *(lines(name, name, 1, 1, "new") for name in "abc"), make)
    assert statuses(result) == [
        ("skipped", "atomic_rolled_back"),
        ("conflict", "precondition_failed"),
        ("skipped", "atomic_rolled_back"),
        ("skipped", "atomic_rolled_back"),
    ]
    assert content(tmp_path) == {**before, "b": b"somebody else\n"}
    assert (tmp_path / "a").stat().st_ino == inode
    assert not list((state_of(tmp_path) / "journal").iterdir())


def test_a_batch_of_too_many_operations_is_refused(tmp_path: Path) -> None:
    with root_at(tmp_path) as root, pytest.raises(TooLarge):
        run(
            Editor(root, Limits(batch_operations=1)),
            lines("1", "a", 1, 1, ""),
            lines("2", "a", 1, 1, ""),
        )


VICTIM = """
import os, signal, sys
from flashgrep.parts.edit.batch import Operation, write_batch
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.files.editor import Editor
from flashgrep.parts.edit.edits import Precondition
from flashgrep.files.root import Root
from flashgrep.parts.edit.write import WriteRequest

folder, fatal, left = sys.argv[1], sys.argv[2], int(sys.argv[3])

def step(name):
    global left
    if name == fatal:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

new = [Operation(name, WriteRequest(name.encode(), LineEdit(1, 1, "new"))) for name in ("a", "sub/b", "c")]
new.append(Operation("made", WriteRequest(b"made", LineEdit(1, 0, "new\\n"), Precondition(absent=True))))
write_batch(Editor(Root(os.fsencode(folder), os.fsencode(folder) + b"-state"), step=step), new, "atomic")
"""
POINTS = [
    *(("write", at) for at in range(4)),
    *(("backup", at) for at in range(4)),
    ("decide", 0),
    *(("check", at) for at in range(4)),
    *(("rename", at) for at in range(4)),
    ("sync", 0),
    ("clean", 0),
    ("forget", 0),
]
OLD = {"a": b"old\n", "sub/b": b"old\n", "c": b"old\n"}
NEW = {"a": b"new\n", "sub/b": b"new\n", "c": b"new\n", "made": b"new\n"}


def kill_at(folder: Path, point: str, count: int) -> None:
    (folder / "sub").mkdir()
    for name, data in OLD.items():
        (folder / name).write_bytes(data)
    command = [sys.executable, "-c", VICTIM, str(folder), point, str(count)]
    victim = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert victim.returncode == -signal.SIGKILL, victim.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(("point", "count"), POINTS)
def test_a_batch_killed_anywhere_leaves_all_or_nothing(
    tmp_path: Path, point: str, count: int
) -> None:
    kill_at(tmp_path, point, count)
    with root_at(tmp_path) as root:
        found = recover(root)
        decided = point not in {"write", "backup", "decide"}
        assert [each.outcome for each in found] == [
            "completed" if decided else "nothing"
        ]
        assert content(tmp_path) == (NEW if decided else OLD)
        assert not list((state_of(tmp_path) / "journal").iterdir())
        assert recover(root) == []


SINGLE = """
import os, signal, sys
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.files.editor import Editor
from flashgrep.files.root import Root
from flashgrep.parts.edit.write import WriteRequest, write_file

fatal = sys.argv[2]
step = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == fatal else None
root = os.fsencode(sys.argv[1])
write_file(Editor(Root(root, root + b"-state"), step=step), WriteRequest(b"a", LineEdit(1, 1, "new")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["write", "check", "rename", "sync"])
def test_a_single_write_killed_anywhere_leaves_the_old_or_the_new_and_no_debris(
    tmp_path: Path, point: str
) -> None:
    (tmp_path / "a").write_bytes(b"old\n")
    victim = subprocess.run(
        [sys.executable, "-c", SINGLE, str(tmp_path), point], check=False, timeout=60
    )
    assert victim.returncode == -signal.SIGKILL
    with root_at(tmp_path) as root:
        recover(root)
    assert content(tmp_path) == {"a": b"new\n" if point == "sync" else b"old\n"}


def test_recovery_opens_a_project_whatever_its_journal_holds(tmp_path: Path) -> None:
    with root_at(tmp_path) as root:
        assert recover(root) == []
        assert list(tmp_path.iterdir()) == []
        journal = state_of(tmp_path) / "journal"
        journal.mkdir(parents=True)
        os.mkfifo(journal / "pipe")
        (journal / "folder").mkdir()
        (journal / "link").symlink_to("/etc/passwd")
        recover(root)
        assert Path("/etc/passwd").exists()


def test_recovery_undoes_when_somebody_changed_a_file_meanwhile(tmp_path: Path) -> None:
    kill_at(tmp_path, "rename", 1)
    (tmp_path / "c").write_bytes(b"an editor's\n")
    with root_at(tmp_path) as root:
        assert [each.outcome for each in recover(root)] == ["undone"]
    assert content(tmp_path) == {**OLD, "c": b"an editor's\n"}


def test_recovery_overwrites_nobodys_later_changes(tmp_path: Path) -> None:
    kill_at(tmp_path, "rename", 1)
    (tmp_path / "a").write_bytes(b"changed after us\n")
    (tmp_path / "c").write_bytes(b"changed before us\n")
    with root_at(tmp_path) as root:
        assert [each.outcome for each in recover(root)] == ["kept"]
    assert content(tmp_path) == {
        "a": b"changed after us\n",
        "c": b"changed before us\n",
        "sub/b": b"old\n",
    }


EVIL = [
    {
        "path": "../outside",
        "temporary": ".flashgrep-tmp-1",
        "backup": None,
        "before": None,
        "after": [1, 2, 3],
    },
    {
        "path": "file",
        "temporary": "../outside",
        "backup": "file",
        "before": None,
        "after": [1, 2, 3],
    },
    {
        "path": ".git/config",
        "temporary": ".flashgrep-tmp-1",
        "backup": None,
        "before": None,
        "after": [1, 2, 3],
    },
]
OURS = [
    {
        "path": "file",
        "temporary": ".flashgrep-tmp-1",
        "backup": None,
        "before": None,
        "after": None,
    }
]


def write_journal(folder: Path, state: str, entries: list[dict[str, Any]]) -> Path:
    """Put a journal into a folder, and make a project for it to speak of; return the journal."""
    (folder / "root/.git").mkdir(parents=True)
    (folder / "outside").write_bytes(b"secret")
    (folder / "root/file").write_bytes(b"text")
    (folder / "root/.flashgrep-tmp-1").write_bytes(b"mine")
    journal = folder / state / "journal"
    journal.mkdir(parents=True)
    # Whatever the umask: a folder that others may write is not believed.
    (folder / state).chmod(0o700)
    (journal / "broken").write_text("no journal\n")
    kind = "prepare" if entries == OURS else "commit"
    (journal / "evil").write_text(
        json.dumps({"state": kind, "entries": entries}) + "\n"
    )
    return journal / "evil"


def test_a_journal_that_lies_touches_nothing(tmp_path: Path) -> None:
    write_journal(tmp_path, "root-state", EVIL)
    with root_at(tmp_path / "root") as root:
        assert {each.paths for each in recover(root)} == {()}
    assert (
        (tmp_path / "outside").read_bytes(),
        (tmp_path / "root/file").read_bytes(),
    ) == (b"secret", b"text")


def test_a_journal_that_came_with_the_repository_is_not_opened(tmp_path: Path) -> None:
    journal = write_journal(tmp_path, "root/.flashgrep", OURS)
    with root_at(tmp_path / "root") as root:
        assert recover(root) == []
    assert (journal.exists(), (tmp_path / "root/.flashgrep-tmp-1").read_bytes()) == (
        True,
        b"mine",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_journal_of_somebody_else_is_not_believed(tmp_path: Path) -> None:
    journal = write_journal(tmp_path, "root-state", OURS)
    os.chown(state_of(tmp_path / "root"), 12345, 12345)
    with root_at(tmp_path / "root") as root:
        assert recover(root) == []
    assert (journal.exists(), (tmp_path / "root/.flashgrep-tmp-1").read_bytes()) == (
        True,
        b"mine",
    )


def test_a_living_writers_journal_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old\n")
    seen: list[object] = []
    with root_at(tmp_path) as root:
        editor = Editor(
            root,
            step=lambda step: seen.append(recover(root)) if step == "decide" else None,
        )
        assert run(editor, lines("1", "a", 1, 1, "new"))["ok"]
    assert seen == [[]]
    assert (tmp_path / "a").read_bytes() == b"new\n"
