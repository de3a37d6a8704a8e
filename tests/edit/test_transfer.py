"""Files and folders made, copied, moved and removed: whole or not at all, and a dry run changes nothing."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flashgrep.base.errors import (
    Conflict,
    FlashgrepError,
    InvalidParams,
    NotFound,
    TooLarge,
)
from flashgrep.files.editor import Editor, Limits
from flashgrep.parts.edit import files, transfer
from flashgrep.parts.edit.files import ListQuery, WriteOptions, list_folder, stat_entry
from flashgrep.parts.edit.journal import recover
from tests.edit.harness import root_at

ANY = WriteOptions(overwrite=True, parents=True)
PLAN = WriteOptions(overwrite=True, parents=True, dry_run=True)


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "folder/deep/tool").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "folder/deep/tool").chmod(0o755)
    (tmp_path / "folder/link").symlink_to("deep/tool")
    (tmp_path / "file").write_bytes(b"text\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/kept").write_bytes(b"kept\n")
    with root_at(tmp_path) as root:
        yield Editor(root)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every name below a folder but the state's, with its mode and its content."""
    found = {}
    for path in folder.rglob("*"):
        if ".flashgrep" not in path.parts:
            mode = path.lstat().st_mode
            data = (
                os.fsencode(path.readlink())
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else b""
            )
            found[str(path.relative_to(folder))] = (mode, data)
    return found


def copied(
    snap: dict[str, tuple[int, bytes]], top: str
) -> dict[str, tuple[int, bytes]]:
    return {
        name.removeprefix(top): what
        for name, what in snap.items()
        if name == top or name.startswith(top + "/")
    }


def test_a_copied_folder_is_the_same_with_modes_and_links(
    editor: Editor, tmp_path: Path
) -> None:
    done = transfer.copy(editor, b"folder", b"new", WriteOptions(), recursive=True)
    after = snapshot(tmp_path)
    assert copied(after, "new") == copied(after, "folder")
    assert set(done.paths) == {b"new", b"new/deep", b"new/deep/tool", b"new/link"}


def test_a_folder_takes_the_place_of_another_only_when_allowed(
    editor: Editor, tmp_path: Path
) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(Conflict) as caught:
        transfer.copy(editor, b"folder", b"other", WriteOptions(), recursive=True)
    assert caught.value.reason == "destination_exists"
    assert snapshot(tmp_path) == before
    transfer.copy(editor, b"folder", b"other", ANY, recursive=True)
    after = snapshot(tmp_path)
    assert copied(after, "other") == copied(before, "folder")


def test_a_copied_file_keeps_its_mode_and_one_replaced_its_own(
    editor: Editor, tmp_path: Path
) -> None:
    transfer.copy(editor, b"folder/deep/tool", b"tool", WriteOptions(), recursive=False)
    assert stat.S_IMODE((tmp_path / "tool").stat().st_mode) == 0o755
    (tmp_path / "file").chmod(0o640)
    transfer.copy(editor, b"tool", b"file", ANY, recursive=False)
    assert (tmp_path / "file").read_bytes() == b"#!/bin/sh\n"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("target", ["new", "other"])
def test_a_moved_folder_is_all_of_it_elsewhere(
    editor: Editor, tmp_path: Path, target: str
) -> None:
    before = snapshot(tmp_path)
    done = transfer.move(editor, b"folder", target.encode(), ANY)
    after = snapshot(tmp_path)
    assert copied(after, target) == copied(before, "folder")
    assert not copied(after, "folder")
    assert {b"folder/deep/tool", target.encode() + b"/deep/tool"} <= set(done.paths)


def test_a_moved_file_replaces_another_and_a_moved_link_stays_a_link(
    editor: Editor, tmp_path: Path
) -> None:
    transfer.move(editor, b"file", b"other/kept", ANY)
    assert (tmp_path / "other/kept").read_bytes() == b"text\n"
    transfer.move(editor, b"folder/link", b"folder/deep/link", WriteOptions())
    assert (tmp_path / "folder/deep/link").is_symlink()


def test_a_removed_link_leaves_its_target(editor: Editor, tmp_path: Path) -> None:
    transfer.remove(editor, b"folder/link", recursive=False, force=False, dry_run=False)
    assert not (tmp_path / "folder/link").is_symlink()
    assert (tmp_path / "folder/deep/tool").exists()


def test_a_removed_folder_is_gone_and_reported_path_by_path(
    editor: Editor, tmp_path: Path
) -> None:
    done = transfer.remove(
        editor, b"folder", recursive=True, force=False, dry_run=False
    )
    assert not (tmp_path / "folder").exists()
    assert set(done.paths) == {
        b"folder",
        b"folder/deep",
        b"folder/deep/tool",
        b"folder/link",
    }
    assert transfer.remove(
        editor, b"folder", recursive=False, force=True, dry_run=False
    ).already_missing


def test_writing_keeps_the_encoding_and_adds_in_it(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "wide").write_bytes(b"\xff\xfe" + "é\n".encode("utf-16-le"))
    assert files.write(editor, b"wide", "ü\n", ANY, append=True)[0] == 4
    assert (tmp_path / "wide").read_bytes() == b"\xff\xfe" + "é\nü\n".encode(
        "utf-16-le"
    )
    files.write(editor, b"wide", "new\r\n", ANY)
    assert (tmp_path / "wide").read_bytes() == b"\xff\xfe" + "new\r\n".encode(
        "utf-16-le"
    )
    (tmp_path / "latin").write_bytes(b"\xe9\n")
    files.write(editor, b"latin", "€", ANY)
    assert (tmp_path / "latin").read_bytes() == "€".encode()


def test_making_folders_and_files(editor: Editor, tmp_path: Path) -> None:
    assert (
        files.create(editor, b"a/b/c", WriteOptions(parents=True), folder=True).entry[
            "file_type"
        ]
        == "directory"
    )
    assert files.create(editor, b"a/b/file", WriteOptions(), folder=False).paths == [
        b"a/b/file"
    ]
    files.create(editor, b"file", ANY, folder=False)
    assert (tmp_path / "file").read_bytes() == b""
    files.write(editor, b"x/y/z", "text", WriteOptions(parents=True))
    assert (tmp_path / "x/y/z").read_bytes() == b"text"


@pytest.mark.parametrize(
    ("folder", "file"), [(0o755, 0o644), (0o775, 0o664), (0o777, 0o664), (0o700, 0o600)]
)
def test_what_is_new_has_the_rights_of_its_folder_whatever_the_umask(
    editor: Editor, tmp_path: Path, folder: int, file: int
) -> None:
    (tmp_path / "folder").chmod(folder)
    before = os.umask(0o077)
    try:
        files.write(editor, b"folder/new/file", "text", WriteOptions(parents=True))
        files.create(editor, b"folder/made", WriteOptions(), folder=True)
    finally:
        os.umask(before)
    modes = [
        stat.S_IMODE((tmp_path / "folder" / name).stat().st_mode)
        for name in ("new", "made", "new/file")
    ]
    assert modes == [folder & 0o775, folder & 0o775, file]


def test_reading_whole_says_what_it_read(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa\r\n")
    found = files.read(editor, b"marked")
    assert (found.text.text, found.text.bom, found.data) == (
        "a\r\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbfa\r\n",
    )
    (tmp_path / "large").write_bytes(b"x" * 196_609)
    with pytest.raises(TooLarge) as caught:
        files.read(editor, b"large")
    assert (caught.value.data["observed_bytes"], caught.value.data["limit_bytes"]) == (
        196_609,
        196_608,
    )


def test_a_listing_is_paged_without_gaps_and_sorted_by_what_is_asked(
    editor: Editor, tmp_path: Path
) -> None:
    for size, name in enumerate(["b", "a", ".hidden", "c"]):
        (tmp_path / "other" / name).write_bytes(b"x" * size)
    listing = list_folder(
        editor, b"other", ListQuery(sort_by="size", sort_order="desc", limit=2)
    )
    assert [entry["path"] for entry in listing["entries"]] == ["other/kept", "other/c"]
    assert (listing["total"], listing["next_offset"], listing["completed"]) == (
        4,
        2,
        False,
    )
    rest = list_folder(
        editor,
        b"other",
        ListQuery(sort_by="size", sort_order="desc", limit=2, offset=2),
    )
    assert [entry["path"] for entry in rest["entries"]] == ["other/a", "other/b"]
    assert rest["completed"]
    assert list_folder(editor, b"other", ListQuery(include_hidden=True))["total"] == 5
    assert list_folder(editor, b".", ListQuery(offset=99))["entries"] == []


def test_an_entry_says_what_a_path_is(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "file").chmod(0o444)
    entry = stat_entry(editor, b"file")
    assert (entry["file_type"], entry["size"], entry["readonly"]) == ("file", 5, True)
    assert entry["modified_unix"] == int((tmp_path / "file").stat().st_mtime)
    assert stat_entry(editor, b"folder/link")["path"] == "folder/deep/tool"
    assert stat_entry(editor, b".")["file_type"] == "directory"


REFUSED: list[tuple[str, type[FlashgrepError], str, Callable[[Editor], object]]] = [
    (
        "copy a folder",
        InvalidParams,
        "recursive_required",
        lambda e: transfer.copy(e, b"folder", b"n", ANY, recursive=False),
    ),
    (
        "copy into itself",
        InvalidParams,
        "invalid_params",
        lambda e: transfer.copy(e, b"folder", b"folder/n", ANY, recursive=True),
    ),
    (
        "copy over its parent",
        InvalidParams,
        "invalid_params",
        lambda e: transfer.copy(e, b"folder/deep", b"folder", ANY, recursive=True),
    ),
    (
        "copy over a folder",
        InvalidParams,
        "target_is_directory",
        lambda e: transfer.copy(e, b"file", b"other", ANY, recursive=False),
    ),
    (
        "copy over a file",
        Conflict,
        "destination_exists",
        lambda e: transfer.copy(
            e, b"folder/deep/tool", b"file", WriteOptions(), recursive=False
        ),
    ),
    (
        "copy nothing",
        NotFound,
        "path_not_found",
        lambda e: transfer.copy(e, b"none", b"n", ANY, recursive=True),
    ),
    (
        "move over a file",
        Conflict,
        "destination_exists",
        lambda e: transfer.move(e, b"folder", b"file", WriteOptions()),
    ),
    (
        "move nothing",
        NotFound,
        "path_not_found",
        lambda e: transfer.move(e, b"none", b"n", ANY),
    ),
    (
        "move into itself",
        InvalidParams,
        "invalid_params",
        lambda e: transfer.move(e, b"folder", b"folder/deep/n", ANY),
    ),
    (
        "remove a full folder",
        InvalidParams,
        "recursive_required",
        lambda e: transfer.remove(
            e, b"folder", recursive=False, force=True, dry_run=False
        ),
    ),
    (
        "remove nothing",
        NotFound,
        "path_not_found",
        lambda e: transfer.remove(
            e, b"none", recursive=True, force=False, dry_run=False
        ),
    ),
    (
        "create over",
        Conflict,
        "destination_exists",
        lambda e: files.create(e, b"file", WriteOptions(), folder=False),
    ),
    (
        "create without parents",
        NotFound,
        "directory_not_found",
        lambda e: files.create(e, b"x/y", WriteOptions(), folder=False),
    ),
    (
        "make a folder over a file",
        InvalidParams,
        "not_a_directory",
        lambda e: files.create(e, b"file", ANY, folder=True),
    ),
    (
        "write over",
        Conflict,
        "destination_exists",
        lambda e: files.write(e, b"file", "x", WriteOptions()),
    ),
    (
        "write a folder",
        InvalidParams,
        "target_is_directory",
        lambda e: files.write(e, b"folder", "x", ANY),
    ),
    (
        "write too much",
        TooLarge,
        "payload_too_large",
        lambda e: files.write(e, b"file", "x" * 131_073, ANY),
    ),
    ("read a folder", InvalidParams, "not_a_file", lambda e: files.read(e, b"folder")),
    ("read nothing", NotFound, "file_not_found", lambda e: files.read(e, b"none")),
    ("stat nothing", NotFound, "path_not_found", lambda e: stat_entry(e, b"none")),
    (
        "list nothing",
        NotFound,
        "directory_not_found",
        lambda e: list_folder(e, b"none", ListQuery()),
    ),
    (
        "list a file",
        InvalidParams,
        "not_a_directory",
        lambda e: list_folder(e, b"file", ListQuery()),
    ),
    (
        "sort by what is not",
        InvalidParams,
        "invalid_sort_by",
        lambda e: list_folder(e, b".", ListQuery(sort_by="x")),
    ),
    (
        "sort in no order",
        InvalidParams,
        "invalid_sort_order",
        lambda e: list_folder(e, b".", ListQuery(sort_order="x")),
    ),
]


@pytest.mark.parametrize(
    ("error", "reason", "way"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_what_is_refused_changes_nothing(
    editor: Editor,
    tmp_path: Path,
    error: type[FlashgrepError],
    reason: str,
    way: Callable[[Editor], object],
) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(error) as caught:
        way(editor)
    assert caught.value.reason == reason
    assert snapshot(tmp_path) == before


PLANS: list[Callable[[Editor], object]] = [
    lambda e: transfer.copy(e, b"folder", b"other", PLAN, recursive=True),
    lambda e: transfer.copy(e, b"file", b"other/kept", PLAN, recursive=False),
    lambda e: transfer.move(e, b"folder", b"other", PLAN),
    lambda e: transfer.remove(e, b"folder", recursive=True, force=True, dry_run=True),
    lambda e: files.create(e, b"x/y/z", PLAN, folder=True),
    lambda e: files.create(e, b"file", PLAN, folder=False),
    lambda e: files.write(e, b"x/y/z", "text", PLAN),
    lambda e: files.write(e, b"file", "text", PLAN),
]


@pytest.mark.parametrize("plan", PLANS)
def test_a_dry_run_changes_nothing(
    editor: Editor, tmp_path: Path, plan: Callable[[Editor], object]
) -> None:
    before = snapshot(tmp_path)
    plan(editor)
    assert snapshot(tmp_path) == before


def test_a_tree_over_the_limit_is_refused_before_anything_is_done(
    tmp_path: Path,
) -> None:
    (tmp_path / "many").mkdir()
    for number in range(5):
        (tmp_path / f"many/{number}").touch()
    with root_at(tmp_path) as root, pytest.raises(TooLarge):
        transfer.remove(
            Editor(root, Limits(tree_entries=4)),
            b"many",
            recursive=True,
            force=False,
            dry_run=False,
        )
    assert len(list((tmp_path / "many").iterdir())) == 5


def test_a_file_moved_onto_a_hard_link_of_itself_is_there_once(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "same").hardlink_to(tmp_path / "file")
    transfer.move(editor, b"file", b"same", ANY)
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "same").read_bytes() == b"text\n"


VICTIM = """
import os, signal, sys
from flashgrep.parts.edit import transfer
from flashgrep.files.editor import Editor
from flashgrep.parts.edit.files import WriteOptions
from flashgrep.files.root import Root

folder, what, fatal = sys.argv[1:]

def step(name):
    if name == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

editor = Editor(Root(os.fsencode(folder), os.fsencode(folder) + b"-state"), step=step)
options = WriteOptions(overwrite=True)
if what == "copy":
    transfer.copy(editor, b"folder", b"other", options, recursive=True)
else:
    transfer.move(editor, b"folder", b"other", options)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["copy", "move"])
@pytest.mark.parametrize("point", ["aside", "rename", "clean"])
def test_a_folder_replaced_by_a_process_that_is_killed_is_the_old_or_the_new(
    editor: Editor, tmp_path: Path, what: str, point: str
) -> None:
    before = snapshot(tmp_path)
    victim = subprocess.run(
        [sys.executable, "-c", VICTIM, str(tmp_path), what, point],
        check=False,
        timeout=60,
    )
    assert victim.returncode == -signal.SIGKILL
    recover(editor.root)
    after = snapshot(tmp_path)
    expected = copied(before, "folder" if point == "clean" else "other")
    assert copied(after, "other") == expected
    moved_away = what == "move" and point == "clean"
    assert copied(after, "folder") == ({} if moved_away else copied(before, "folder"))
    assert not [name for name in after if ".flashgrep-tmp-" in name]
