"""rename_symbol and edit_symbol over every wire of a running daemon: what is written, refused, and said."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import flashgrep
from flashgrep.base.errors import FlashgrepError
from flashgrep.daemon.lifecycle import find_holder
from flashgrep.methods.text import Style
from flashgrep.parts.refactoring.definition_edits import indent
from flashgrep.parts.refactoring.methods import (
    RenameResult,
    render_rename,
    show_new_lines,
)
from tests.conftest import DaemonAtHand, MakeProject, Wire, daemon_in
from tests.support.mcp_clients import McpClient, transport

Connect = Callable[..., Wire]
FILES: dict[str, str | bytes] = {
    "gear.py": (
        "import functools\n\n\nLIMIT = 3\nOTHER = 4\n\n\n# Turns.\n@functools.cache\ndef turn(amount=1):\n"
        '    """Turn."""\n    return amount * LIMIT\n\n\nclass Wheel:\n    size = 1\n\n'
        "    def spin(self):\n        return turn(amount=self.size)\n\n    def stop(self):\n        return 0\n"
    ),
    "use.py": "from gear import Wheel, turn\n\nprint(turn(amount=2), Wheel().spin())\n",
    "wide.py": "# é 😀\r\nfrom gear import turn\r\nprint('é', turn(1))\r\n".encode(),
    "README.md": "Call `turn`.\n",
}  # fmt: skip


@pytest.fixture
def write_to(connect: Connect, daemon: DaemonAtHand) -> Connect:
    """Return a function that connects and may write: over TCP that takes the token."""

    def make(root: Path) -> Wire:
        wire: Wire = connect(root)
        if wire.name == "tcp":
            wire.call("auth", token=Path(daemon.paths.token).read_text().strip())
        return wire

    return make


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Iterator[tuple[Wire, Path]]:
    root = project(FILES)
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as opened:
        yield opened, root


def read(root: Path) -> dict[str, bytes]:
    """Return the files of a project."""
    return {name: (root / name).read_bytes() for name in FILES}


def test_a_symbol_is_renamed_over_every_wire(
    write_to: Connect, project: MakeProject
) -> None:
    root = project(FILES)
    wire = write_to(root)
    before = read(root)
    shown = wire.call("rename_symbol", symbol_name="turn", new_name="go", dry_run=True)
    assert "-    return amount * LIMIT" not in shown["diff"]
    assert "+def go(amount=1):" in shown["diff"]
    assert shown["obstacles"] == []
    assert read(root) == before
    answer = wire.call(
        "rename_symbol",
        symbol_name="gear.turn",
        new_name="go",
        expected_change=shown["change"],
    )
    assert (answer["places"], answer["mention_count"]) == (6, 1)
    assert [file["file_path"] for file in answer["files"]] == [
        "gear.py",
        "use.py",
        "wide.py",
    ]
    assert (root / "use.py").read_text() == (
        "from gear import Wheel, go\n\nprint(go(amount=2), Wheel().spin())\n"
    )
    assert (root / "wide.py").read_bytes() == (
        "# é 😀\r\nfrom gear import go\r\nprint('é', go(1))\r\n".encode()
    )
    found = wire.call("query", text="turn", word=True)["results"]
    assert {hit["file_path"] for hit in found} == {"README.md", "gear.py"}
    place = wire.call("rename_symbol", symbol_name="gear.py:10:8", new_name="much")
    assert place["places"] == 4
    assert "much=2" in (root / "use.py").read_text()


def test_a_definition_is_edited_over_every_wire(
    write_to: Connect, project: MakeProject
) -> None:
    root = project(FILES)
    wire = write_to(root)
    text = "def slow(self):\n    return -1\n"
    answer = wire.call(
        "edit_symbol", symbol_name="Wheel.spin", action="insert_after", text=text
    )
    assert answer["ok"]
    assert "unparsed" not in answer
    wire.call(
        "edit_symbol",
        symbol_name="turn",
        action="insert_before",
        text="def a():\n    pass",
    )
    wire.call(
        "edit_symbol",
        symbol_name="gear.py:turn",
        action="replace",
        text="def turn(amount=2):\n    return amount",
    )
    assert (root / "gear.py").read_text() == (
        "import functools\n\n\nLIMIT = 3\nOTHER = 4\n\n\ndef a():\n    pass\n\n\n# Turns.\n@functools.cache\n"
        "def turn(amount=2):\n    return amount\n\n\nclass Wheel:\n    size = 1\n\n"
        "    def spin(self):\n        return turn(amount=self.size)\n\n    def slow(self):\n        return -1\n\n"
        "    def stop(self):\n        return 0\n"
    )  # fmt: skip
    used = wire.fail("edit_symbol", symbol_name="turn", action="delete")
    assert used["data"]["reason"] == "used"
    assert used["data"]["places"][0].startswith("gear.py:")
    wire.call("edit_symbol", symbol_name="Wheel.stop", action="delete")
    assert (root / "gear.py").read_text().endswith("return -1\n")
    forced = wire.call("edit_symbol", symbol_name="turn", action="delete", force=True)
    assert len(forced["uses"]) == 5
    assert "# Turns.\n" not in (root / "gear.py").read_text()
    broken = wire.call(
        "edit_symbol", symbol_name="a", action="replace", text="def a(:\n    pass"
    )
    assert [file["file_path"] for file in broken["unparsed"]] == ["gear.py"]


def test_every_write_says_what_no_longer_parses(wire: tuple[Wire, Path]) -> None:
    connection, _ = wire
    good = connection.call(
        "write_code", path="use.py", old_text="print(", new_text="repr("
    )
    assert "unparsed" not in good
    edit = {"path": "use.py", "old_text": "repr(", "new_text": "print(("}
    bad = connection.call("write_code", **edit)
    assert bad["unparsed"] == [{"file_path": "use.py", "line": 3}]
    again = {"path": "use.py", "old_text": "turn(amount=2)", "new_text": "turn(2)"}
    assert "unparsed" not in connection.call("write_code", **again)
    batch = connection.call(
        "batch_write_code",
        operations=[
            {"path": "gear.py", "old_text": "class Wheel:", "new_text": "class Wheel("},
            {"path": "README.md", "old_text": "Call", "new_text": "Do"},
        ],
    )
    assert [file["file_path"] for file in batch["unparsed"]] == ["gear.py"]


def test_what_would_break_is_refused_and_nothing_is_written(
    wire: tuple[Wire, Path],
) -> None:
    connection, root = wire
    (root / "more.py").write_text(
        "class Other:\n    def spin(self):\n        pass\n\n\ndef go(thing):\n    thing.spin()\n"
    )
    before = read(root)

    def fail(**asked: Any) -> str:
        error = connection.fail("rename_symbol", **asked)
        assert read(root) == before
        return str(error["data"].get("field") or error["data"].get("reason"))

    assert fail(symbol_name="spin", new_name="go") == "ambiguous"
    assert fail(symbol_name="Wheel.spin", new_name="go") == "possible_uses"
    assert fail(symbol_name="turn", new_name="Wheel") == "name_taken"
    assert fail(symbol_name="turn", new_name="a.b") == "new_name"
    assert fail(symbol_name="functools", new_name="tools") == "symbol_not_found"
    assert fail(symbol_name="gear.py:9:13", new_name="tools") == "outside"
    assert (
        fail(symbol_name="turn", new_name="go", expected_change="0") == "change_differs"
    )
    dry = {"symbol_name": "Wheel.spin", "new_name": "go", "dry_run": True}
    shown = connection.call("rename_symbol", **dry)
    assert [use["file_path"] for use in (*shown["possible"], *shown["unlikely"])] == [
        "more.py"
    ]
    connection.call(
        "rename_symbol", **{**dry, "dry_run": False}, include_possible=False
    )
    assert "thing.spin()" in (root / "more.py").read_text()
    edits = {"symbol_name": "Wheel", "action": "delete", "expected_file_hash": "0" * 64}
    refused = connection.fail("edit_symbol", **edits, force=True)
    assert refused["data"]["reason"] == "precondition_failed"
    missing = connection.fail("edit_symbol", symbol_name="Wheel", action="replace")
    assert missing["data"]["field"] == "text"


def test_two_renames_at_once_leave_one_or_the_other_or_both(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    daemon.add(root)
    answers: dict[str, Any] = {}

    def rename(new: str) -> None:
        with closing(daemon.wire("unix", root)) as own:
            answers[new] = own.ask(
                "rename_symbol", symbol_name="gear.py:10:5", new_name=new
            )

    threads = [threading.Thread(target=rename, args=(new,)) for new in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert any("result" in answer for answer in answers.values())
    text = (root / "use.py").read_text()
    names = {name for name in ("one", "two") if f"{name}(amount" in text}
    assert len(names) == 1
    [name] = names
    assert f"def {name}(" in (root / "gear.py").read_text()
    assert f"import {name}\r" in (root / "wide.py").read_bytes().decode()


@pytest.mark.slow
def test_a_rename_killed_half_way_is_done_or_undone(
    tmp_path: Path, project: MakeProject
) -> None:
    files = {"gear.py": "def turn():\n    return 1\n"}
    files |= {f"use{at}.py": "from gear import turn\nturn()\n" for at in range(60)}
    root = project(dict(files))
    own = daemon_in(tmp_path)
    own.start()
    own.add(root)
    wire = own.wire("unix", root)
    assert wire.call("get_symbol", symbol_name="turn")["total"] == 121
    pid = find_holder(own.paths)
    assert pid is not None

    def rename() -> None:
        with suppress(AssertionError, OSError, ValueError):
            wire.call("rename_symbol", symbol_name="turn", new_name="spin")

    thread = threading.Thread(target=rename)
    thread.start()
    while thread.is_alive() and not any(
        b"spin" in (root / name).read_bytes() for name in files
    ):
        thread.join(0.001)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    thread.join(60)
    wire.close()
    own.start()
    own.add(root)
    with closing(own.wire("unix", root)) as again:  # which opens the project
        again.call("query", text="spin")
    texts = {name: (root / name).read_text() for name in files}
    own.stop()
    renamed = {name: re.sub(r"\bturn\b", "spin", text) for name, text in files.items()}
    assert texts in (files, renamed)


def test_agents_call_it_by_name_and_read_it_as_text(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    daemon.add(root)
    client = McpClient(transport("unix", daemon, root, structured=False), "legacy")
    client.start()
    listed = {tool["name"] for tool in client.request("tools/list")["tools"]}
    assert not listed & {"rename_symbol", "edit_symbol"}
    arguments = {
        "name_path": "Wheel/spin",
        "relative_path": "gear.py",
        "new_name": "go",
    }
    [content] = client.call("rename_symbol", **arguments, dry_run=True)["content"]
    shown = content["text"].splitlines()
    assert shown[:2] == ["gear.py", "18:    def go(self):"]
    assert [line[:2] for line in shown[2:4]] == ["us", "3:"]
    assert shown[-1] == "[dry run: 2 places in 2 files, nothing is written]"
    [content] = client.call("rename_symbol", **arguments)["content"]
    assert content["text"].splitlines()[0] == "spin is now go: 2 places in 2 files"
    [content] = client.call("edit_symbol", symbol="Wheel.stop", action="delete")[
        "content"
    ]
    assert content["text"].startswith("gear.py:")
    client.transport.close()


def test_a_long_rename_is_cut_for_a_model_and_says_so() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,900 @@\n" + "+    turn()\n" * 900
    result: RenameResult = {
        "ok": True,
        "old_name": "spin",
        "new_name": "turn",
        "places": 900,
        "files": [{"file_path": "a.py", "places": 900, "file_hash_after": None}],
        "possible": [],
        "possible_count": 0,
        "includes_possible": False,
        "unlikely": [],
        "unlikely_count": 0,
        "mentions": [],
        "mention_count": 0,
        "dry_run": True,
        "diff": diff * 3,
    }
    shown = [str(line) for line in render_rename(result, Style())]
    assert sum(map(len, shown)) < 25_000
    assert shown[-1] == (
        "[dry run: 900 places in 1 files, nothing is written; the difference is cut]"
    )


def test_new_lines_have_their_numbers() -> None:
    diff = """--- a/a.sql
+++ b/a.sql
@@ -3,4 +3,5 @@
 one
--- turn
+-- go
++ go
 two
-three
+four
@@ -20,1 +21,0 @@
-five
--- /dev/null
+++ b/b.sql
@@ -0,0 +1,1 @@
+six"""
    assert list(show_new_lines(diff)) == [
        "a.sql",
        "4:-- go",
        "5:+ go",
        "7:four",
        "b.sql",
        "1:six",
    ]


def test_the_command_line_shows_the_difference_and_writes_it(
    wire: tuple[Wire, Path], daemon: DaemonAtHand
) -> None:
    _, root = wire
    shown = daemon.run("rename", "Wheel.spin", "go", "--dry-run", cwd=root)
    assert shown.returncode == 0
    assert "+    def go(self):" in shown.stdout
    written = daemon.run("rename", "Wheel.spin", "go", cwd=root)
    assert written.stdout.splitlines()[0] == "spin is now go: 2 places in 2 files"
    refused = daemon.run("edit-symbol", "Wheel", "delete", cwd=root)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "uses are left" in refused.stderr


def test_python_renames_together_with_other_edits(
    wire: tuple[Wire, Path], daemon: DaemonAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, root = wire
    for name, value in daemon.environ.items():
        monkeypatch.setenv(name, value)
    with flashgrep.open(root) as code:
        with code.edit() as edits:
            edits.rename("Wheel.spin", "go")
            edits.rename("turn", "rotate")
            edits.replace("README.md", "Call", "Do")
        assert "Wheel().go())" in (root / "use.py").read_text()
        assert "rotate(amount=2)" in (root / "use.py").read_text()
        assert (root / "README.md").read_text() == "Do `turn`.\n"
        before = read(root)
        edits = code.edit()
        edits.replace("README.md", "Do", "Call")
        edits.rename("Wheel", "rotate")
        with pytest.raises(FlashgrepError, match="already a name"):
            edits.preview()
        assert read(root) == before


@pytest.mark.parametrize(
    ("text", "indentation", "expected"),
    [
        ("def a():\n    pass", "    ", "    def a():\n        pass\n"),
        ("    def a():\n        pass\n", "    ", "    def a():\n        pass\n"),
        ("def a():\n        pass\n", "    ", "    def a():\n        pass\n"),
        ("a() {\n  b\n}", "  ", "  a() {\n    b\n  }\n"),
        ("a() {\n    b\n  }", "  ", "  a() {\n    b\n  }\n"),
        ("\n\tx := 1\n\n\ty\n", "", "x := 1\n\ny\n"),
        ("a\r\nb", "\t", "\ta\n\tb\n"),
    ],
)
def test_a_text_gets_the_indentation_of_the_definition(
    text: str, indentation: str, expected: str
) -> None:
    assert indent(text, indentation) == expected
