"""The methods structural and structural_rewrite on a running daemon: pages, diffs, and what is written when."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.model import Document
from flashgrep.files.system import digest
from flashgrep.methods.text import render_text
from flashgrep.parts.edit.batch import Replacement, edit_lines, plan_rewriting
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.parts.structural.methods import render_structural
from tests.conftest import DaemonAtHand, MakeProject, Wire

FILES: dict[str, str | bytes] = {
    "a.js": "var a = foo(1);\nif (x) {\n  bar(function () {\n    return 1\n  });\n}\n",
    "b.py": b"foo(1); foo(foo(2))\r\ny = 3\r\n# last: \xe9, foo(4)\r\nfoo(5)",
    "c.py": b"x = 1\nfoo('\xe9')\n",
    "bad.py": "s = 'é é é'\n".encode() + b"foo('\xff')\n",
}


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Iterator[tuple[Wire, Path]]:
    root = project(FILES)
    daemon.add(root)
    connection = daemon.wire("unix", root)
    yield connection, root
    connection.close()


def told(result: Any) -> list[tuple[str, int, str]]:
    return [
        (hit["file_path"], hit["start_line"], hit["text"]) for hit in result["results"]
    ]


def test_pages_and_budgets_lose_no_match_and_repeat_none(
    wire: tuple[Wire, Path],
) -> None:
    connection, _ = wire
    whole = connection.call("structural", pattern="foo($A)")
    assert [one[:2] for one in told(whole)] == [
        ("a.js", 1),
        ("b.py", 1),
        ("b.py", 1),
        ("b.py", 1),
        ("b.py", 4),
        ("bad.py", 2),
        ("c.py", 2),
    ]
    assert whole["total"] == len(whole["results"])
    assert whole["results"][0]["metavariables"] == {"A": "1"}
    assert whole["results"][0]["column"] == 9
    assert whole["coverage"]["complete"]
    assert whole["coverage"]["fresh"]
    for asked in ({"limit": 2}, {"max_tokens": 90}):
        paged, cursor = [], None
        while True:
            page = connection.call(
                "structural", pattern="foo($A)", cursor=cursor, **asked
            )
            paged += told(page)
            cursor = page["next"]
            if cursor is None:
                break
        assert paged == told(whole)
    assert told(connection.call("structural", pattern="foo($A)", language=["js"])) == [
        ("a.js", 1, "foo(1)")
    ]
    assert (
        connection.fail("structural", pattern="foo($A)", language=["toml"])["data"][
            "field"
        ]
        == "language"
    )
    assert (
        connection.fail("structural", pattern="a; b(1)", language=["py"])["data"][
            "reason"
        ]
        == "invalid_pattern"
    )
    text = render_text(
        connection.call("structural", pattern="bar($A)"), render_structural
    )
    assert text.splitlines() == [
        "a.js",
        "3:bar(function () {",
        "4:    return 1",
        "5:  })",
    ]


def test_a_rewrite_is_shown_first_and_written_once_it_is_asked_for(
    wire: tuple[Wire, Path],
) -> None:
    connection, root = wire
    before = {name: (root / name).read_bytes() for name in FILES}
    shown = connection.call("structural", pattern="foo($A)", rewrite="qux($A, 0)")
    assert {name: (root / name).read_bytes() for name in FILES} == before
    assert "+var a = qux(1, 0);" in shown["diff"]
    assert shown["coverage"]["files_skipped"] == {"encoding": 1}
    change = shown["change"]
    assert change in render_text(shown, render_structural)
    # Another text by now: nothing is written.
    (root / "a.js").write_text(f"foo(0);\n{FILES['a.js']!s}")
    assert (
        connection.fail("structural_rewrite", change=change)["data"]["reason"]
        == "change_differs"
    )
    assert (root / "b.py").read_bytes() == before["b.py"]
    (root / "a.js").write_bytes(before["a.js"])
    written = connection.call("structural_rewrite", change=change)
    assert written["ok"]
    assert (root / "a.js").read_text().startswith("var a = qux(1, 0);\nif")
    # The outer one of two that overlap is rewritten, line ends and encoding stay, and
    # so does a missing last one.
    crlf = b"qux(1, 0); qux(foo(2), 0)\r\ny = 3\r\n# last: \xe9, foo(4)\r\nqux(5, 0)"
    assert (root / "b.py").read_bytes() == crlf
    assert (root / "c.py").read_bytes() == b"x = 1\nqux('\xe9', 0)\n"
    assert (root / "bad.py").read_bytes() == before["bad.py"]
    assert (
        connection.fail("structural_rewrite", change=change)["data"]["reason"]
        == "change_differs"
    )
    assert (
        connection.fail("structural_rewrite", change="0 {}")["data"]["field"]
        == "change"
    )
    nothing = connection.call("structural", pattern="foo($A, $B, $C)", rewrite="$A")
    assert (nothing["diff"], "change" in nothing) == ("", False)


def test_the_end_of_a_statement_and_its_indentation_stay(
    wire: tuple[Wire, Path],
) -> None:
    connection, _ = wire
    shown = connection.call(
        "structural", pattern="var $A = $B", rewrite="let $A = $B", language=["js"]
    )
    assert "+let a = foo(1);\n" in shown["diff"]
    shown = connection.call(
        "structural", pattern="bar($F)", rewrite="wrap(\n  $F\n)", language=["js"]
    )
    assert (
        shown["results"][0]["replacement"]
        == "wrap(\n    function () {\n      return 1\n    }\n  )"
    )
    shown = connection.call(
        "structural", pattern="$F($$$A)", rewrite="call($F, $$$A)", path="a.js", limit=1
    )
    assert shown["results"][0]["replacement"] == "call(foo, 1)"
    assert shown["total"] == 2


def test_edits_of_lines_replace_just_the_places() -> None:
    text = "ab\ncd\n\nef\n"
    assert edit_lines(
        text, [Replacement(0, 1, "x"), Replacement(1, 2, ""), Replacement(1, 2, "z")]
    ) == [LineEdit(1, 1, "x\n")]
    crlf = text.replace("\n", "\r\n")
    assert edit_lines(crlf, [Replacement(0, 2, ""), Replacement(5, 8, "1\n2\n")]) == [
        LineEdit(1, 1, "\r\n"),
        LineEdit(2, 3, "c1\n2\n\r\n"),
    ]
    wide = Document("é = 1\n".encode(), "utf-16-le")
    marked = Document(b"a\n", "utf-8-sig")
    rewriting = plan_rewriting(
        [
            (b"w", wide, [Replacement(0, 1, "e")]),
            (b"m", marked, [Replacement(0, 1, "b")]),
        ]
    )
    hashes = [
        operation.request.expected.file_hash for operation in rewriting.operations
    ]
    assert rewriting.files == 2
    assert hashes[0] == digest("\ufeffé = 1\n".encode("utf-16-le"))
    assert hashes[1] == digest("\ufeffa\n".encode())
