"""Unsaved text over every wire: answers to one connection are as if it were saved, others see the disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire

LOOM = "class Loom:\n    def weave(self):\n        return 1\n"
FILES = {"loom.py": LOOM, "use.py": "from loom import Loom\n\n\ndef run():\n    return Loom().weave()\n"}


def paths_with(wire: Wire, text: str) -> set[str]:
    """Return the files that have a literal text."""
    return {hit["file_path"] for hit in wire.call("query", query=text, mode="literal", output="files")["results"]}


@pytest.fixture
def root(project: MakeProject) -> Path:
    """Return a project of two files."""
    return project(FILES)


def test_every_answer_is_of_the_text_in_the_editor(root: Path, connect: Callable[..., Wire]) -> None:
    wire, other = connect(root), connect(root)
    opened = wire.call("buffers", action="open", path="loom.py", text=LOOM, version=1)
    assert opened["results"] == [
        {"file_path": str(root / "loom.py"), "version": 1, "lines": 4, "bytes": len(LOOM), "behind": False}
    ]
    # Half a rename, and a function at the end: `weave` stands at line 2, columns 9 to 14.
    edits = [
        {"start_line": 2, "start_column": 9, "end_line": 2, "end_column": 14, "text": "braid"},
        {
            "start_line": 4,
            "start_column": 1,
            "end_line": 4,
            "end_column": 1,
            "text": "\n\ndef höhe():\n    '''needle'''\n",
        },
    ]
    wire.call("buffers", action="change", path=str(root / "loom.py"), version=2, changes=edits)
    new = "def spindle():\n    return 'needle'\n"
    wire.call("buffers", action="open", path="src/new.py", text=new, version=7)

    found = wire.call("query", query="needle", mode="literal")
    assert [(hit["file_path"], hit["start_line"]) for hit in found["results"]] == [("loom.py", 7), ("src/new.py", 2)]
    assert (found["coverage"]["unsaved"], found["coverage"]["complete"]) == (2, True)
    assert found["coverage"]["files_searched"] == 3
    assert paths_with(wire, "def weave") == set()
    assert wire.call("list_files")["files"] == ["loom.py", "src/new.py", "use.py"]
    globbed = wire.call("glob", pattern="**/*.py", sort_by="size")["results"]
    assert [file["file_path"] for file in globbed] == ["src/new.py", "use.py", "loom.py"]
    assert globbed[0]["size"] == len(new)
    symbol = wire.call("get_symbol", symbol_name="Loom.braid", role=["definition"])["results"]
    assert [(one["file_path"], one["start_line"]) for one in symbol] == [("loom.py", 2)]
    assert wire.call("get_symbol", symbol_name="höhe")["total"] == 1
    near = wire.call("get_symbol", symbol_name="spindel", match="fuzzy")["results"]
    assert near[0]["symbol_name"] == "spindle"
    assert "braid" in str(wire.call("outline", path="loom.py"))
    assert wire.call("outline", path="src")["results"][0]["symbols"] == ["1-2 def spindle():"]
    assert wire.call("get_slice", path="loom.py", start_line=2, end_line=2)["content"] == "    def braid(self):\n"
    assert wire.call("read_code", symbol_name="spindle", symbol_context_lines=0)["content"] == new
    assert "spindle" in str(wire.call("repo_map"))
    assert wire.call("code_research", query="who calls braid")["results"]
    assert wire.call("list_files", rev=":index")["files"] == []
    defined = wire.call("definition", path="loom.py", line=6, column=6)["results"]
    assert [(one["file_path"], one["range"]["start_line"]) for one in defined] == [("loom.py", 6)]

    assert paths_with(other, "needle") == set()
    assert "unsaved" not in other.call("query", query="needle", mode="literal")["coverage"]
    assert other.call("list_files")["files"] == ["loom.py", "use.py"]
    assert other.call("read_code", path="loom.py")["content"] == LOOM
    assert other.call("buffers", action="list")["results"] == []

    wire.call("buffers", action="close", path="src/new.py")
    wire.call("buffers", action="close", path="loom.py")
    assert paths_with(wire, "def weave") == {"loom.py"}
    assert wire.call("list_files")["files"] == ["loom.py", "use.py"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"action": "change", "path": "loom.py", "version": 3, "changes": []}, "version_mismatch"),
    ({"action": "change", "path": "loom.py", "version": 1, "changes": []}, "version_mismatch"),
    ({"action": "change", "path": "use.py", "version": 2, "changes": []}, "buffer_not_open"),
    ({"action": "close", "path": "use.py"}, "buffer_not_open"),
    ({"action": "open", "path": "/etc/passwd", "text": "x", "version": 1}, "outside_root"),
    ({"action": "open", "path": "../x.py", "text": "x", "version": 1}, "outside_root"),
    ({"action": "open", "path": "src", "text": "x", "version": 1}, "not_a_file"),
    ({"action": "open", "path": "big.py", "text": "x" * ((8 << 20) - 400), "version": 1}, ""),
    ({"action": "open", "path": "x.py", "version": 1}, "invalid_params"),
    ({"action": "open", "path": "x.py", "text": "x"}, "invalid_params"),
]


@pytest.mark.parametrize(("params", "reason"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_is_refused_by_name(
    params: dict[str, Any], reason: str, root: Path, daemon: DaemonAtHand
) -> None:
    (root / "src").mkdir()
    daemon.add(root)
    wire = daemon.wire("unix", root)
    wire.call("buffers", action="open", path="loom.py", text=LOOM, version=1)
    answer = wire.ask("buffers", **params)
    assert ("error" in answer) == bool(reason), answer
    if reason:
        assert answer["error"]["data"]["reason"] == reason
    wire.close()
