"""What git stores in ``.git`` is read by git alone: addresses in its settings may hold a password."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.errors import Forbidden
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.root import Root, is_git_name
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.git import commit, git

WORD = "word-in-an-address"
PATHS = (
    ".git/config", "./.git/config", ".git/./config", "sub/../.git/config", "link/config", "config link",
    "sub/.git/config", "nested/.git", ".git/modules/nested/config", ".git/worktrees/tree/HEAD",
)  # fmt: skip
READABLE = (
    ".gitignore",
    ".gitattributes",
    ".github/workflow.yml",
    "a.git/config",
    "git/config",
)


@pytest.fixture
def root(project: MakeProject, tmp_path: Path) -> Path:
    """Return a project with settings of git in all places where there are some."""
    root = project(dict.fromkeys(READABLE, "text\n") | {"sub/a.txt": "text\n"})
    commit(root)
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(root / "sub", "init", "-q")
    for folder in (root, root / "sub"):
        git(folder, "config", "remote.origin.url", f"https://{WORD}@example.org/")
    (root / ".git" / "modules" / "nested").mkdir(parents=True)
    (root / ".git" / "modules" / "nested" / "config").write_text(WORD)
    (root / "nested").mkdir()
    (root / "nested" / ".git").write_text("gitdir: ../.git/modules/nested\n")
    (root / "link").symlink_to(".git")
    (root / "config link").symlink_to(".git/config")
    return root


@pytest.fixture
def wire(daemon: DaemonAtHand, root: Path, opened: list[Wire]) -> Wire:
    """Return a connection to the project's own socket."""
    daemon.add(root)
    opened.append(daemon.wire("unix", root))
    return opened[-1]


def list_calls(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "read_code", {"file_path": path}
    yield "get_slice", {"file_path": path, "start_line": 1, "end_line": 1}
    yield "fs_read", {"path": path}
    yield "fs_stat", {"path": path}
    yield "fs_copy", {"src": path, "dst": "copied"}


@pytest.mark.parametrize("path", PATHS)
def test_no_call_reads_what_git_stores(wire: Wire, root: Path, path: str) -> None:
    for given in (path, f"{root}/{path}"):
        for method, params in list_calls(given):
            error = wire.fail(method, **params)
            assert (error["code"], error["data"]["reason"]) == (
                -32006,
                "protected_path",
            ), (method, error)
    assert not (root / "copied").exists()


@pytest.mark.parametrize("folder", [".git", "link", "sub/.git", ".git/modules"])
def test_no_call_lists_what_git_stores(wire: Wire, root: Path, folder: str) -> None:
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("fs_list", {"path": folder, "include_hidden": True}),
        ("glob", {"pattern": "**/*", "path": folder, "include_hidden": True}),
        ("list_folder", {"path": folder}),
        ("query", {"text": WORD, "mode": "literal", "path": folder}),
        ("fs_copy", {"src": folder, "dst": "copied", "recursive": True}),
    )
    for method, params in calls:
        assert wire.fail(method, **params)["data"]["reason"] == "protected_path", method
    assert not (root / "copied").exists()


def test_a_walk_enters_no_folder_of_git(wire: Wire) -> None:
    for respects, follows in ((True, False), (False, False), (False, True)):
        options = {
            "include_hidden": True,
            "respect_ignore": respects,
            "follow_symlinks": follows,
        }
        paths = [
            file["file_path"]
            for file in wire.call("glob", pattern="**/*", limit=1000, **options)[
                "results"
            ]
        ]
        assert ".gitignore" in paths
        assert [
            path
            for path in paths
            if ".git" in path.split("/") or path.startswith(("link", "config link"))
        ] == []


@pytest.mark.parametrize("path", READABLE)
def test_files_that_belong_to_the_project_are_read(wire: Wire, path: str) -> None:
    assert wire.call("fs_read", path=path)["content"] == "text\n"
    assert wire.call("fs_stat", path=path)


def test_a_folder_in_which_git_stores_something_is_not_copied(
    wire: Wire, root: Path
) -> None:
    error = wire.fail("fs_copy", src="sub", dst="copied", recursive=True)
    assert error["data"]["reason"] == "protected_path"
    assert WORD not in "".join(
        path.read_text() for path in root.glob("copied/**/config")
    )


@pytest.mark.parametrize(
    "name",
    [b".git", b".GIT", b".Git", b"git~1", b".git ", b".git.", ".g\u200cit".encode()],
)
def test_a_name_that_a_file_system_may_take_for_gits_is_refused(
    tmp_path: Path, name: bytes
) -> None:
    assert is_git_name(name)
    (tmp_path / "root").mkdir()
    editor = Editor(Root(bytes(tmp_path / "root"), bytes(tmp_path / "state")), Limits())
    try:
        with pytest.raises(Forbidden):
            editor.root.open_file(name + b"/config")
    finally:
        editor.close()


@pytest.mark.parametrize(
    "name",
    [b".gitignore", b".github", b".gitattributes", b"git", b"a.git", b".flashgrep"],
)
def test_other_names_are_not_gits(name: bytes) -> None:
    assert not is_git_name(name)
