"""Files that were changed lately, or are open in the client's editor, come a little ahead in `list_files`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import MakeProject, Wire


def make_old(root: Path) -> None:
    """Set the times of all files to a year ago."""
    then = time.time() - 365 * 86_400
    for path in root.rglob("*.py"):
        os.utime(path, (then, then))


def test_what_was_changed_or_opened_lately_is_a_little_ahead(
    project: MakeProject, connect: Callable[..., Wire]
) -> None:
    root = project(
        {f"{folder}/view.py": f"# {folder}\n" for folder in "abc"}
        | {"view/tables.py": "t\n"}
    )
    make_old(root)
    wire, other = connect(root), connect(root)
    assert wire.call("list_files", query="view")["files"] == [
        "a/view.py",
        "b/view.py",
        "c/view.py",
        "view/tables.py",
    ]
    (root / "b/view.py").write_text("# changed\n")
    (root / "view/tables.py").write_text("changed\n")
    assert wire.call("list_files", query="view")["files"] == [
        "b/view.py",
        "a/view.py",
        "c/view.py",
        "view/tables.py",
    ]
    wire.call("buffers", action="open", path="c/view.py", text="# c\n", version=1)
    assert wire.call("list_files", query="view")["files"][:2] == [
        "b/view.py",
        "c/view.py",
    ]
    assert other.call("list_files", query="view")["files"][:2] == [
        "b/view.py",
        "a/view.py",
    ]
    assert wire.call("list_files")["files"] == [
        "a/view.py",
        "b/view.py",
        "c/view.py",
        "view/tables.py",
    ]


def test_a_checkout_puts_no_file_ahead(
    project: MakeProject, connect: Callable[..., Wire]
) -> None:
    files = {f"{number:02}/view.py": f"# {number}\n" for number in range(60)}
    root = project(files)
    make_old(root)
    wire = connect(root)
    assert wire.call("list_files", query="view", limit=1)["files"] == ["00/view.py"]
    for path in list(files)[5:]:
        (root / path).write_text("# another branch\n")
    assert wire.call("list_files", query="view", limit=1)["files"] == ["00/view.py"]
