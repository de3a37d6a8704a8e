"""The methods that take a revision, over every wire and on the command line."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.git import commit, git
from tests.support.workspace import put

OLD = b"import os\n\n\nclass Loom:\n    def weave(self):\n        return os.sep\n\n\ndef needle():\n    return Loom()\n"
NEW = b"def needle():\n    return None\n"


@pytest.fixture
def root(project: MakeProject) -> Path:
    """Return a project with two commits, the first of them tagged, and changes that are in neither."""
    folder = project(
        {
            "src/loom.py": OLD,
            "docs/a.md": "# Weaving\nneedle\n",
            ".ci/run.yml": "needle: 1\n",
        }
    )
    commit(folder)
    git(folder, "tag", "v1")
    put(folder, {"src/loom.py": NEW, "src/extra.py": b"needle = 2\n"})
    (folder / "docs/a.md").unlink()
    commit(folder)
    put(folder, {"src/loom.py": b"now = 1\n"})
    return folder


def test_what_changed_between_two_revisions_begins_with_the_commits(
    root: Path, connect: Callable[..., Wire], daemon: DaemonAtHand
) -> None:
    put(root, {"src/extra.py": b"needle = 3\n"})
    commit(root)
    wire = connect(root)
    names = git(root, "rev-list", "v1..HEAD").decode().split()
    answer = wire.call("changes", rev="v1..HEAD")
    assert [one["commit"] for one in answer["commits"]] == names
    assert len(names) == 2
    (newest,) = wire.call("changes", rev="HEAD~1..HEAD")["commits"]
    assert newest == wire.call("history", limit=1)["results"][0]
    # Not where nothing is committed, nor again on the next page.
    for rev in ("HEAD", "v1", "HEAD..:index", "HEAD..HEAD"):
        assert "commits" not in wire.call("changes", rev=rev)
    first = wire.call("changes", rev="v1..HEAD", limit=1)
    assert "commits" not in wire.call(
        "changes", rev="v1..HEAD", limit=1, cursor=first["next"]
    )
    shown = daemon.run("changes", "HEAD~1..HEAD", cwd=root).stdout
    assert shown.startswith(names[0][:10])
    # Of one file or folder, those that changed it.
    for path, changed_by in (("docs/a.md", names[1:]), ("src/extra.py", names)):
        answer = wire.call("changes", rev="v1..HEAD", path=path)
        assert [one["commit"] for one in answer["commits"]] == changed_by


def test_a_commit_from_which_nothing_differs_is_told_how_to_be_seen_itself(
    root: Path, connect: Callable[..., Wire]
) -> None:
    git(root, "checkout", "--quiet", ".")
    wire = connect(root)
    name = git(root, "rev-parse", "--short", "HEAD").decode().strip()
    detail = wire.call("changes", rev=name)["coverage"]["detail"]
    assert detail == f"no file differs from {name}; {name}~1..{name} is what it changed"
    assert wire.call("changes")["coverage"]["detail"] == "no file differs from HEAD"


def test_every_method_answers_about_a_revision(
    root: Path, connect: Callable[..., Wire]
) -> None:
    wire = connect(root)
    first = git(root, "rev-parse", "v1").decode().strip()

    found = wire.call("query", text="needle", mode="literal", rev="v1", order="path")
    assert [(hit["file_path"], hit["start_line"]) for hit in found["results"]] == [
        (".ci/run.yml", 1), ("docs/a.md", 2), ("src/loom.py", 9),
    ]  # fmt: skip
    coverage = found["coverage"]
    assert (coverage["complete"], coverage["files_searched"], coverage["revision"]) == (
        True,
        3,
        first,
    )
    page = wire.call(
        "query", text="needle", mode="literal", rev="v1", order="path", limit=1
    )
    rest = wire.call(
        "query",
        text="needle",
        mode="literal",
        rev="v1",
        order="path",
        cursor=page["next"],
    )
    assert page["results"] + rest["results"] == found["results"]
    assert wire.call("query", text="weave a loom", rev="v1")["results"]  # by words

    listed = wire.call("list_files", rev="v1")
    assert listed["files"] == [".ci/run.yml", "docs/a.md", "src/loom.py"]
    assert wire.call("list_files", rev="v1..HEAD")["files"] == [
        "src/extra.py",
        "src/loom.py",
    ]
    assert wire.call("list_files", rev="v1", filter="loom")["files"] == ["src/loom.py"]
    matched = wire.call("glob", pattern="*.py", rev="HEAD", sort_by="size")["results"]
    assert [(file["file_path"], file["size"]) for file in matched] == [
        ("src/extra.py", 11),
        ("src/loom.py", len(NEW)),
    ]
    assert [
        file["relative_path"]
        for file in wire.call("glob", path="docs", rev="v1")["results"]
    ] == ["a.md"]
    hidden = wire.call("glob", rev="v1", include_hidden=True, max_depth=1)["results"]
    assert [file["file_path"] for file in hidden] == listed["files"]
    assert (
        wire.fail("glob", path="docs", rev="HEAD")["data"]["reason"]
        == "directory_not_found"
    )

    definition = wire.call("get_symbol", symbol_name="Loom.weave", rev="v1")["results"][
        0
    ]
    assert (definition["file_path"], definition["start_line"]) == ("src/loom.py", 5)
    assert [file["file_path"] for file in wire.call("outline", path="src", rev="HEAD", everything=True)["results"]] == [
        "src/extra.py", "src/loom.py",
    ]  # fmt: skip

    whole = wire.call("read_code", file_path="src/loom.py", rev="v1")
    assert (whole["content"].encode(), whole["file_hash"]) == (
        OLD,
        hashlib.sha256(OLD).hexdigest(),
    )
    assert (
        wire.call("read_code", file_path=str(root / "src/loom.py"), rev=":index")[
            "content"
        ].encode()
        == NEW
    )
    assert (
        "def weave" in wire.call("read_code", symbol_name="weave", rev="v1")["content"]
    )
    lines = wire.call(
        "get_slice", file_path="./src/loom.py", start_line=4, end_line=4, rev="v1"
    )
    assert lines["content"] == "class Loom:\n"
    gone = wire.fail("read_code", file_path="docs/b.md", rev="v1")
    assert (gone["code"], gone["data"]["near"]) == (-32001, ["docs/a.md", "docs"])

    assert (
        wire.fail("query", text="x", rev="-v")["data"]["reason"] == "invalid_revision"
    )
    unknown = wire.fail("query", text="x", rev="v2")
    assert (unknown["code"], unknown["data"]["near"][0]) == (-32001, "v1")
    assert wire.call("query", text="now = 1")["total"] == 1


def test_a_bare_repository_is_asked_about_head(
    root: Path, connect: Callable[..., Wire], daemon: DaemonAtHand
) -> None:
    bare = root.parent / "bare.git"
    git(root, "clone", "-q", "--bare", str(root), str(bare))
    wire = connect(bare)
    found = wire.call("query", query="needle", mode="literal")
    assert {hit["file_path"] for hit in found["results"]} == {
        "src/loom.py",
        "src/extra.py",
        ".ci/run.yml",
    }
    assert (
        found["coverage"]["revision"] == git(root, "rev-parse", "HEAD").decode().strip()
    )
    assert wire.call("list_files")["total"] == 3
    assert wire.call("list_files", rev="v1")["total"] == 3
    assert wire.call("glob", pattern="*.py")["total"] == 2
    assert wire.call("read_code", path="src/loom.py")["content"].encode() == NEW
    assert (
        wire.call("get_symbol", symbol_name="Loom", rev="v1", role=["definition"])[
            "total"
        ]
        == 1
    )
    assert wire.call("changes", rev="v1..HEAD")["total"] == 3
    assert "bare" in wire.fail("changes")["message"]
    assert (
        wire.fail("search_code", query="needle")["data"]["reason"] == "bare_repository"
    )
    assert (
        "bare"
        in wire.call("code_research", query="who calls needle")["coverage"]["detail"]
    )
    written = wire.fail("write_code", path="description", old_text="U", new_text="V")
    assert written["data"]["reason"] in {"read_only", "auth_required"}
    inside = daemon.run("query", "needle", cwd=bare / "objects")
    assert "src/extra.py:1" in inside.stdout
    assert ".ci/run.yml" in daemon.run("files", cwd=bare).stdout


def test_a_broken_repository_is_noted_in_answers_about_the_work_tree(
    root: Path, connect: Callable[..., Wire]
) -> None:
    wire = connect(root)
    assert "git" not in wire.call("query", query="now = 1")["coverage"].get(
        "detail", ""
    )
    config = (root / ".git/config").read_bytes()
    (root / ".git/config").write_bytes(b"[nonsense")
    assert wire.fail("list_files", rev="HEAD")["data"]["reason"] == "repository_broken"
    found = wire.call("query", query="now = 1")
    assert (found["total"], found["coverage"]["complete"]) == (1, True)
    assert "git cannot read the repository" in found["coverage"]["detail"]
    (root / ".git/config").write_bytes(config)
    assert wire.call("list_files", rev="v1")["total"] == 3
    assert "git" not in wire.call("query", query="now = 1")["coverage"].get(
        "detail", ""
    )


def test_the_command_line_takes_a_revision(root: Path, daemon: DaemonAtHand) -> None:
    daemon.add(root)
    found = daemon.run("query", "needle", "--rev", "v1", "-g", "*.py", cwd=root)
    assert found.stdout.startswith("src/loom.py:9:")
    assert (
        json.loads(daemon.run("files", "--rev", "HEAD~1", "--json", cwd=root).stdout)[
            "total"
        ]
        == 3
    )
    assert daemon.run("read", "docs/a.md", "--rev", "v1", cwd=root).stdout.endswith(
        "needle\n"
    )
    failed = daemon.run("query", "needle", "--rev", "v3", cwd=root)
    assert failed.returncode == 2
    assert "no such revision: v3; near: v1" in failed.stderr
