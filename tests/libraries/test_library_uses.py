"""What is remembered of the uses of libraries, and what follows for their store; and how versions are named."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.own_folders import INDEX, library_owner, store_folder
from flashgrep.files.subtrees import Subtrees
from flashgrep.files.walk import Walker, WalkOptions
from flashgrep.parts.libraries import library_uses
from flashgrep.parts.libraries.library_files import LibraryRoot
from flashgrep.parts.libraries.library_uses import LibraryUses
from flashgrep.parts.libraries.lookup import is_version
from tests.libraries.library_trees import write_tree

DAY = 86_400


@pytest.mark.parametrize(
    ("version", "named", "expected"),
    [
        ("2.3", "2.3", True),
        ("2.31.0", "2.31", True),
        ("2.31.0", "2.3", False),
        ("2.31.0", "2", True),
        ("2.31.0", "", True),
        ("v1.2.0", "1.2", True),
        ("1.2.0", "v1.2.0", True),
        ("1.0.0-beta.2", "1.0.0", True),
        ("1.0", "1.0.0", False),
        ("", "1", False),
    ],
)
def test_a_version_is_named_by_whole_parts(
    version: str, named: str, *, expected: bool
) -> None:
    assert is_version(version, named) is expected


@pytest.fixture
def projects(tmp_path: Path) -> list[bytes]:
    """Return the roots of two projects."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return [bytes(tmp_path / name) for name in ("one", "two")]


def test_what_projects_use_of_a_folder_is_joined_and_survives_a_restart(
    tmp_path: Path, projects: list[bytes]
) -> None:
    one, two = projects
    uses = LibraryUses(tmp_path / "cache")
    assert uses.note(LibraryRoot(b"/c", frozenset([b"a@1"])), one) == frozenset(
        {b"a@1"}
    )
    assert uses.note(LibraryRoot(b"/c", frozenset([b"b@1"])), two) == frozenset(
        {b"a@1", b"b@1"}
    )
    uses = LibraryUses(tmp_path / "cache")
    # A project's later versions take the place of its former ones.
    assert uses.note(LibraryRoot(b"/c", frozenset([b"a@2"])), one) == frozenset(
        {b"a@2", b"b@1"}
    )
    uses.forget_project(two)
    assert uses.note(LibraryRoot(b"/c", frozenset([b"a@2"])), one) == frozenset(
        {b"a@2"}
    )
    Path(os.fsdecode(two)).rmdir()
    assert uses.note(LibraryRoot(b"/d"), one) is None


OTHER_USES = (
    "[]",
    '{"/c": []}',
    '{"/c": {"/": 1}}',
    '{"/c": {"/": [1]}}',
    '{"/c": {"/": ["x", []]}}',
    '{"/c": {"/": [99999, 1]}}',
    '{"/c": {"/": [99999, [1]]}}',
    '{"/c": {"/": [99999, ["\\ud800"]]}}',
)
DAMAGED = [f'{{"format": 1, "uses": {uses}}}' for uses in OTHER_USES]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"a": 1}', '{"a": {"b": [1]}}', "\0", '{"format": 1}', *DAMAGED],
)
def test_a_damaged_list_of_uses_is_begun_anew(
    tmp_path: Path, projects: list[bytes], text: str
) -> None:
    owner = Path(os.fsdecode(library_owner(tmp_path / "cache")))
    write_tree(owner, {"uses.json": text})
    uses = LibraryUses(tmp_path / "cache")
    assert uses.note(LibraryRoot(b"/c", frozenset([b"x"])), projects[0]) == frozenset(
        {b"x"}
    )
    assert uses.find_leftovers() == {}


def test_stored_folders_that_nobody_uses_are_found(
    tmp_path: Path, projects: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    index = store_folder(cache, b"", library_owner(cache)) / INDEX
    write_tree(index.parent, {"index.db": "x" * 1000})
    stored = {b"/asked": 1, b"/long ago": 1, b"/unknown": 1}
    monkeypatch.setattr(library_uses, "list_files", lambda _file: stored)
    uses = LibraryUses(cache)
    long_ago = time.time() - 40 * DAY
    with monkeypatch.context() as past:
        past.setattr(time, "time", lambda: long_ago)
        uses.note(LibraryRoot(b"/long ago"), projects[0])
    with monkeypatch.context() as past:
        past.setattr(time, "time", lambda: long_ago + 20 * DAY)
        uses.note(LibraryRoot(b"/asked before"), projects[0])
    uses.note(LibraryRoot(b"/asked"), projects[0])
    assert uses.find_leftovers() == {index: {b"/long ago", b"/unknown"}}
    # All together are too large: what was asked about longest ago goes as well.
    stored[b"/asked before"] = 1
    monkeypatch.setattr(library_uses, "MOST_STORED", 999)
    expected = {b"/long ago", b"/unknown", b"/asked before"}
    assert uses.find_leftovers() == {index: expected}
    Path(os.fsdecode(projects[0])).rmdir()
    assert uses.find_leftovers() == {index: set(stored)}


def test_a_folder_that_is_too_large_is_not_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path / "c", {"a@1/x": "x" * 600, "b@1/x": "x" * 600})
    uses = LibraryUses(tmp_path / "cache")
    path = bytes(tmp_path / "c")
    monkeypatch.setattr(library_uses, "MOST_INDEXED", 1000)
    assert not uses.is_small(path, None)
    assert uses.is_small(path, frozenset([b"a@1"]))
    assert not uses.is_small(path, frozenset([b"a@1", b"b@1"]))


NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3)


@given(folders=st.lists(NAMES, max_size=3), files=st.lists(NAMES, max_size=8))
def test_a_walk_of_subtrees_finds_what_is_below_them(
    tmp_path_factory: pytest.TempPathFactory,
    folders: list[list[str]],
    files: list[list[str]],
) -> None:
    root = tmp_path_factory.mktemp("root")
    write_tree(root, {"/".join([*parts, "file"]): "" for parts in files})
    chosen = Subtrees("/".join(parts).encode() for parts in folders)
    walker = Walker(bytes(root), WalkOptions(ignore=False, subtrees=chosen))
    found = {entry.path for entry in walker.walk()}
    every = {"/".join([*parts, "file"]).encode() for parts in files}
    expected = {
        path
        for path in every
        if any((path + b"/").startswith(folder + b"/") for folder in chosen.folders)
    }
    assert found == expected
    assert {path for path in every if walker.accepts(path)} == expected


def test_where_nothing_was_asked_nothing_is_written(tmp_path: Path) -> None:
    uses = LibraryUses(tmp_path / "cache")
    assert not uses.find_leftovers()
    assert not (tmp_path / "cache").exists()
