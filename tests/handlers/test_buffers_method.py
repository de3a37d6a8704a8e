"""Unsaved text over every wire: answers to one connection are as if it were saved, others see the disk."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flashgrep.daemon import lifecycle
from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire

LOOM = "class Loom:\n    def weave(self):\n        return 1\n"
FILES = {
    "loom.py": LOOM,
    "use.py": "from loom import Loom\n\n\ndef run():\n    return Loom().weave()\n",
}


def paths_with(wire: Wire, text: str) -> set[str]:
    """Return the files that have a literal text."""
    return {
        hit["file_path"]
        for hit in wire.call("query", query=text, mode="literal", output="files")[
            "results"
        ]
    }


@pytest.fixture
def root(project: MakeProject) -> Path:
    """Return a project of two files."""
    return project(FILES)


def test_every_answer_is_of_the_text_in_the_editor(
    root: Path, connect: Callable[..., Wire]
) -> None:
    wire, other = connect(root), connect(root)
    opened = wire.call("buffers", action="open", path="loom.py", text=LOOM, version=1)
    assert opened["results"] == [
        {
            "file_path": str(root / "loom.py"),
            "version": 1,
            "lines": 4,
            "bytes": len(LOOM),
            "behind": False,
        }
    ]
    # Half a rename, and a function at the end: `weave` stands at line 2, columns 9 to
    # 14.
    edits = [
        {
            "start_line": 2,
            "start_column": 9,
            "end_line": 2,
            "end_column": 14,
            "text": "braid",
        },
        {
            "start_line": 4,
            "start_column": 1,
            "end_line": 4,
            "end_column": 1,
            "text": "\n\ndef höhe():\n    '''needle'''\n",
        },
    ]
    wire.call(
        "buffers", action="change", path=str(root / "loom.py"), version=2, changes=edits
    )
    new = "def spindle():\n    return 'needle'\n"
    wire.call("buffers", action="open", path="src/new.py", text=new, version=7)

    found = wire.call("query", query="needle", mode="literal")
    assert [(hit["file_path"], hit["start_line"]) for hit in found["results"]] == [
        ("loom.py", 7),
        ("src/new.py", 2),
    ]
    assert (found["coverage"]["unsaved"], found["coverage"]["complete"]) == (2, True)
    assert found["coverage"]["files_searched"] == 3
    assert paths_with(wire, "def weave") == set()
    assert wire.call("list_files")["files"] == ["loom.py", "src/new.py", "use.py"]
    globbed = wire.call("glob", pattern="**/*.py", sort_by="size")["results"]
    assert [file["file_path"] for file in globbed] == [
        "src/new.py",
        "use.py",
        "loom.py",
    ]
    assert globbed[0]["size"] == len(new)
    symbol = wire.call("get_symbol", symbol_name="Loom.braid", role=["definition"])[
        "results"
    ]
    assert [(one["file_path"], one["start_line"]) for one in symbol] == [("loom.py", 2)]
    assert wire.call("get_symbol", symbol_name="höhe")["total"] == 1
    near = wire.call("get_symbol", symbol_name="spindel", match="fuzzy")["results"]
    assert near[0]["symbol_name"] == "spindle"
    assert "braid" in str(wire.call("outline", path="loom.py"))
    assert wire.call("outline", path="src")["results"][0]["symbols"] == [
        "1-2 def spindle():"
    ]
    assert (
        wire.call("get_slice", path="loom.py", start_line=2, end_line=2)["content"]
        == "    def braid(self):\n"
    )
    assert (
        wire.call("read_code", symbol_name="spindle", symbol_context_lines=0)["content"]
        == new
    )
    assert "spindle" in str(wire.call("repo_map"))
    assert wire.call("code_research", query="who calls braid")["results"]
    assert wire.call("list_files", rev=":index")["files"] == []
    defined = wire.call("definition", path="loom.py", line=6, column=6)["results"]
    assert [(one["file_path"], one["range"]["start_line"]) for one in defined] == [
        ("loom.py", 6)
    ]

    assert paths_with(other, "needle") == set()
    assert (
        "unsaved" not in other.call("query", query="needle", mode="literal")["coverage"]
    )
    assert other.call("list_files")["files"] == ["loom.py", "use.py"]
    assert other.call("read_code", path="loom.py")["content"] == LOOM
    assert other.call("buffers", action="list")["results"] == []

    wire.call("buffers", action="close", path="src/new.py")
    wire.call("buffers", action="close", path="loom.py")
    assert paths_with(wire, "def weave") == {"loom.py"}
    assert wire.call("list_files")["files"] == ["loom.py", "use.py"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"include_hidden": True},
        {"respect_ignore": False},
        {"follow_symlinks": True},
    ],
)
def test_glob_finds_a_file_before_it_is_saved(
    root: Path, connect: Callable[..., Wire], more: dict[str, Any]
) -> None:
    (root / ".gitignore").write_text("*.log\nbuilt/\n")
    wire = connect(root)
    wire.call("list_files")
    for path in (
        "new.py",
        "src/deep/new.py",
        ".hidden/new.py",
        "new.log",
        "built/new.py",
        "src/other.txt",
    ):
        wire.call("buffers", action="open", path=path, text="x = 1\n", version=1)
    wire.call("buffers", action="open", path="loom.py", text=LOOM, version=1)
    expected = ["loom.py", "new.py", "src/deep/new.py", "use.py"]
    expected += [".hidden/new.py"] if "include_hidden" in more else []
    expected += ["built/new.py"] if "include_hidden" not in more and more else []
    found = wire.call("glob", pattern="**/*.py", **more)
    assert [file["file_path"] for file in found["results"]] == sorted(expected)
    assert found["total"] == len(expected)
    below = wire.call("glob", pattern="**/*.py", exclude=["src/**"], **more)["results"]
    assert [file["file_path"] for file in below] == sorted(
        {*expected} - {"src/deep/new.py"}
    )
    assert not wire.call("glob", pattern="src/**/*.py", max_depth=1, **more)["results"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"action": "change", "path": "loom.py", "version": 3, "changes": []},
        "version_mismatch",
    ),
    (
        {"action": "change", "path": "loom.py", "version": 1, "changes": []},
        "version_mismatch",
    ),
    (
        {"action": "change", "path": "use.py", "version": 2, "changes": []},
        "buffer_not_open",
    ),
    ({"action": "close", "path": "use.py"}, "buffer_not_open"),
    (
        {"action": "open", "path": "/etc/passwd", "text": "x", "version": 1},
        "outside_root",
    ),
    ({"action": "open", "path": "../x.py", "text": "x", "version": 1}, "outside_root"),
    ({"action": "open", "path": "src", "text": "x", "version": 1}, "not_a_file"),
    ({"action": "open", "path": "x.py", "version": 1}, "invalid_params"),
    ({"action": "open", "path": "x.py", "text": "x"}, "invalid_params"),
]


def test_what_cannot_be_is_refused_by_name(root: Path, daemon: DaemonAtHand) -> None:
    (root / "src").mkdir()
    daemon.add(root)
    wire = daemon.wire("unix", root)
    wire.call("buffers", action="open", path="loom.py", text=LOOM, version=1)
    for params, reason in REFUSED:
        assert wire.fail("buffers", **params)["data"]["reason"] == reason, params
    large = "x" * ((8 << 20) - 400)  # as long as a line of a wire may be
    assert (
        wire.call("buffers", action="open", path="large.py", text=large, version=1)[
            "results"
        ][0]["lines"]
        == 1
    )
    wire.close()


def test_each_question_sees_the_edits_that_were_sent_before_it(
    root: Path, daemon: DaemonAtHand
) -> None:
    daemon.add(root)
    wire, other = daemon.wire("unix", root), daemon.wire("unix", root)
    rounds = 30
    opened = {"action": "open", "path": "src/new.py", "text": "", "version": 0}
    sent: list[dict[str, Any]] = [{"method": "buffers", "params": opened}]
    for number in range(1, rounds + 1):
        edit = {"text": f"needle {number}\n"}
        changed = {
            "action": "change",
            "path": "src/new.py",
            "version": number,
            "changes": [edit],
        }
        sent.append({"method": "buffers", "params": changed})
        sent.append(
            {
                "id": number,
                "method": "query",
                "params": {"query": "needle", "mode": "literal"},
            }
        )
    # Notifications and questions in one burst, with a refused edit at its end.
    sent.append({"method": "buffers", "params": {**changed, "version": rounds + 9}})
    sent.append({"id": rounds + 1, "method": "query", "params": {"query": "needle"}})
    wire.send(
        b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in sent)
    )
    answers = {
        answer["id"]: answer["result"]
        for answer in (wire.receive() for _ in range(rounds + 1))
    }
    for number in range(1, rounds + 1):
        assert [hit["text"] for hit in answers[number]["results"]] == [
            f"needle {number}"
        ]
    assert "open again: src/new.py" in answers[rounds + 1]["coverage"]["detail"]
    assert wire.call("buffers", action="list")["results"][0]["behind"]
    assert paths_with(other, "needle") == set()
    both = wire.call("query", query="needle", mode="literal", projects=[str(root)])
    assert (len(both["results"]), both["coverage"]["unsaved"]) == (1, 1)
    wire.close()
    other.close()


def test_unsaved_text_ends_with_the_daemon_and_is_in_no_file(
    root: Path, cold_daemon: DaemonAtHand
) -> None:
    cold_daemon.environ["FLASHGREP_LOG_LEVEL"] = "debug"
    cold_daemon.start()
    cold_daemon.add(root)
    wire = cold_daemon.wire("unix", root)
    wire.call("index_codebase", path=str(root))
    marker = "zebrafinch"
    text = (
        f"class {marker}:\n    def {marker}_sings(self):\n        return '{marker}'\n"
    )
    wire.call("buffers", action="open", path="loom.py", text=text, version=1)
    wire.call("buffers", action="open", path="src/bird.py", text=text, version=1)
    edits = [
        {
            "start_line": 9,
            "start_column": 1,
            "end_line": 9,
            "end_column": 1,
            "text": marker,
        }
    ]
    assert (
        wire.fail("buffers", action="change", path="loom.py", version=2, changes=edits)[
            "data"
        ]["line"]
        == 9
    )
    for method, params in {
        "query": {"query": "sings"},
        "get_symbol": {"symbol_name": "zebrafinhc", "match": "fuzzy"},
        "search_code": {"query": "what sings"},
        "code_research": {"query": f"who uses {marker}_sings"},
        "read_code": {"path": "src/bird.py"},
        "repo_map": {},
    }.items():
        assert marker in json.dumps(wire.call(method, **params)), method
    wire.call("index_codebase", path=str(root))
    os.kill(cold_daemon.status()["pid"], signal.SIGKILL)
    assert wire.receive_line() == b""
    wire.close()
    assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)
    cold_daemon.add(root)  # the next one
    again = cold_daemon.wire("unix", root)
    assert (
        again.fail("buffers", action="close", path="loom.py")["data"]["reason"]
        == "buffer_not_open"
    )
    assert paths_with(again, marker) == set()
    again.call("buffers", action="open", path="loom.py", text=text, version=5)
    assert paths_with(again, marker) == {"loom.py"}
    again.call("index_codebase", path=str(root))
    again.close()
    cold_daemon.stop()
    files = [
        file
        for folder in (Path(cold_daemon.paths.state).parent, root)
        for file in folder.rglob("*")
    ]
    assert len(files) > 20
    assert not [
        file
        for file in files
        if file.is_file() and marker.encode() in file.read_bytes().lower()
    ]


def test_all_connections_share_what_memory_their_texts_may_take(
    root: Path, daemon: DaemonAtHand
) -> None:
    daemon.add(root)
    text = "\n" * 3_000_000  # many lines, which take more memory than their text
    first, second = daemon.wire("unix", root), daemon.wire("unix", root)
    first.call("buffers", action="open", path="a.py", text=text, version=1)
    refused = first.fail("buffers", action="open", path="b.py", text=text, version=1)
    assert refused["data"]["reason"] == "buffers_of_all_too_large"
    assert "close buffers" in refused["data"]["guidance"]
    assert [
        one["lines"] for one in first.call("buffers", action="list")["results"]
    ] == [3_000_001]
    assert (
        second.fail("buffers", action="open", path="c.py", text=text, version=1)["data"]
        == refused["data"]
    )
    second.call(
        "buffers", action="open", path="c.py", text=LOOM, version=1
    )  # its share is free
    first.close()
    deadline = time.monotonic() + BOUND
    while "error" in second.ask(
        "buffers", action="open", path="c.py", text=text, version=2
    ):
        assert time.monotonic() < deadline, "what ends with a connection is free again"
    second.close()
