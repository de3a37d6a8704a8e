"""Methods for editors over a wire: places in every encoding, what is wrong with them, structured outlines."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire

CODE = (
    "class Loom:\n"
    '    """Weaves.\n\n    Cloth.\n    """\n\n'
    "    def weave(self, yarn: int) -> int:\n"
    "        return yarn\n\n\n"
    "x = '😀é'; made = Loom().weave(1)\n"
)
FILES: dict[str, str | bytes] = {
    "loom.py": CODE,
    "use.py": "from loom import Loom\n\nLoom()\n",
    "latin.c": b"/* \xe9 */ int caf\xe9(void); int add(int n) { return n; }\n",
    "data.bin": b"\x00\x01\x02",
    "plain.txt": "Loom\n",
    "wide.py": "wide = 1; " * 60_000 + "\n",
}


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Iterator[Wire]:
    root = project(FILES)
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as opened:
        yield opened


def test_a_place_is_counted_as_the_client_counts(wire: Wire) -> None:
    for encoding, column in (("utf-8", 22), ("utf-16", 19), ("utf-32", 18)):
        place = {
            "path": "loom.py",
            "line": 11,
            "column": column,
            "position_encoding": encoding,
        }
        found = wire.call("definition", **place)
        assert found["symbol_name"] == "Loom"
        assert found["range"] == {
            "start_line": 11,
            "start_column": column,
            "end_line": 11,
            "end_column": column + 4,
        }
        (one,) = found["results"]
        assert (one["file_path"], one["kind"], one["confidence"]) == (
            "loom.py",
            "class",
            0.95,
        )
        assert one["range"] == {
            "start_line": 1,
            "start_column": 1,
            "end_line": 8,
            "end_column": 20,
        }
        assert one["selection_range"] == {
            "start_line": 1,
            "start_column": 7,
            "end_line": 1,
            "end_column": 11,
        }
        uses = wire.call("references", **place)["results"]
        assert [(use["file_path"], use["selection_range"]["start_column"], use["role"]) for use in uses] == [
            ("loom.py", 7, "definition"), ("loom.py", column, "call"), ("use.py", 18, "import"), ("use.py", 1, "call"),
        ]  # fmt: skip
        said = wire.call("hover", **place)
        assert (said["signature"], said["documentation"]) == (
            "class Loom:",
            "Weaves.\n\nCloth.",
        )


def test_what_is_wrong_with_a_place_is_reported(wire: Wire) -> None:
    def ask(path: str, line: int = 1, column: int = 1) -> Any:
        return wire.call("definition", path=path, line=line, column=column)

    for path, reason in (
        ("data.bin", "binary"),
        ("plain.txt", "no_language"),
        ("wide.py", "too_large"),
    ):
        found = ask(path)
        assert (found["results"], found["symbol_name"], found["reason"]) == (
            [],
            None,
            reason,
        )
    assert ask("latin.c", 1, 29)["symbol_name"] == "add"
    assert ask("loom.py", 11, 6)["reason"] == "text"
    assert ask("loom.py", 12)["reason"] == "blank"
    gone = wire.fail("definition", path="loom.py", line=13, column=1)["data"]
    assert (gone["reason"], gone["lines"]) == ("invalid_range", 12)
    assert (
        wire.fail("hover", path="gone.py", line=1, column=1)["data"]["reason"]
        == "path_not_found"
    )
    assert (
        wire.fail("hover", path="../x.py", line=1, column=1)["data"]["reason"]
        == "outside_root"
    )
    assert (
        wire.fail("hover", path="loom.py", line=0, column=1)["data"]["field"] == "line"
    )


def test_all_spans_of_a_hit_are_returned_in_the_clients_encoding(wire: Wire) -> None:
    for encoding, columns in (
        ("utf-8", [18, 33]),
        ("utf-16", [15, 30]),
        ("utf-32", [14, 29]),
    ):
        asked = {
            "query": "e =|e\\b",
            "mode": "regex",
            "spans": True,
            "position_encoding": encoding,
            "path": "loom.py",
        }
        hit = wire.call("query", **asked)["results"][-1]
        assert (hit["start_line"], hit["column"]) == (11, columns[0])
        assert [span["start_column"] for span in hit["spans"]] == columns
    smart = wire.call("query", query="Loom", spans=True)["results"]
    assert all(len(hit["spans"]) == 1 for hit in smart)


def test_an_outline_is_structured_for_programs(wire: Wire) -> None:
    (file,) = wire.call("outline", path="loom.py", structured=True, everything=True)[
        "results"
    ]
    assert [(one["name"], one["kind"], one["depth"]) for one in file["entries"]] == [
        ("Loom", "class", 0), ("weave", "method", 1), ("x", "variable", 0), ("made", "variable", 0),
    ]  # fmt: skip
    assert file["entries"][1]["signature"] == "def weave(self, yarn: int) -> int:"
    assert file["entries"][1]["range"]["end_line"] == 8
    assert file["entries"][1]["selection_range"] == {
        "start_line": 7, "start_column": 9, "end_line": 7, "end_column": 14,
    }  # fmt: skip
    cut = wire.call("outline", path="loom.py", structured=True, max_tokens=75)
    assert (len(cut["results"][0]["entries"]), cut["left_out"]) == (1, 1)
