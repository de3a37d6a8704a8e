"""One call instead of several: bodies with symbols, several reads at once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from flashgrep.methods.reading import render_slice
from flashgrep.methods.text import render_text
from tests.conftest import MakeProject, Wire

CODE = "import os\n\n\nclass Loom:\n    def weave(self):\n        return 1\n\n\ndef weave():\n    return 2\n"


@pytest.fixture
def wire(connect: Callable[..., Wire], project: MakeProject) -> Wire:
    long = "def long():\n" + "".join(
        f"    x{number} = {number}\n" for number in range(100)
    )
    use = "from src.loom import weave\nweave()\n"
    return connect(project({"src/loom.py": CODE, "use.py": use, "long.py": long}))


def wait_indexed(wire: Wire) -> None:
    """Wait until similar names can be told."""
    root = wire.call("stats")["root"]
    # This method names a project by its path.
    wire.root = None
    wire.call("index_codebase", path=root)
    wire.root = root


def test_a_symbol_comes_with_its_text(wire: Wire) -> None:
    found = wire.call("get_symbol", name="weave", body=True)
    bodies = {hit.get("container", ""): hit["body"] for hit in found["results"]}
    assert bodies == {
        "Loom": "    def weave(self):\n        return 1",
        "": "def weave():\n    return 2",
    }
    whole = wire.call(
        "get_symbol", name="weave", body=True, role=["definition", "call"]
    )
    assert [hit["role"] for hit in whole["results"]] == [
        "definition",
        "definition",
        "call",
    ]
    assert "body" not in whole["results"][2]


def test_a_body_is_cut_at_a_line_and_says_so(wire: Wire) -> None:
    (hit,) = wire.call("get_symbol", name="Loom", body=True)["results"]
    assert hit["body"].endswith("return 1")
    (hit,) = wire.call("get_symbol", name="long", body=True, max_tokens=50)["results"]
    assert hit["body"].splitlines()[0] == "def long():"
    assert hit["body"].splitlines()[-1] == "… 84 more lines, from 18"


def test_several_places_are_read_at_once(wire: Wire) -> None:
    first = wire.call(
        "read_code", targets=["src/loom.py:4-6", "use.py", "Loom.weave", "use.py:2"]
    )
    read: list[Any] = [first, *first["more"]]
    assert [(one["file_path"], one["start_line"], one["end_line"]) for one in read] == [
        ("src/loom.py", 4, 6), ("use.py", 1, 2), ("src/loom.py", 5, 6), ("use.py", 2, 2),
    ]  # fmt: skip
    assert read[2]["content"] == "    def weave(self):\n        return 1\n"
    assert (
        wire.fail("read_code", targets=["use.py"], path="use.py")["data"]["field"]
        == "targets"
    )


def test_of_several_places_those_that_are_there_are_read_and_the_others_named(
    wire: Wire,
) -> None:
    wait_indexed(wire)
    targets = ["gone/loom.py", "use.py", "weavee", "src", "use.py:99", "Loom"]
    read = wire.call("read_code", targets=targets)
    assert [one["file_path"] for one in (read, *read["more"])] == [
        *("use.py", "src/loom.py")
    ]
    missing = {one["target"]: one["error"] for one in read["missing"]}
    reasons = {target: error["data"]["reason"] for target, error in missing.items()}
    assert reasons == {
        "gone/loom.py": "file_not_found",
        "weavee": "symbol_not_found",
        "src": "not_a_file",
        "use.py:99": "invalid_range",
    }
    assert missing["gone/loom.py"]["data"]["near"][0] == "src/loom.py"
    assert missing["weavee"]["data"]["near"] == ["weave"]
    assert "missing" not in wire.call("read_code", targets=["use.py"])
    error = wire.fail("read_code", targets=["gone.py", "weavee"])
    assert error["data"]["reason"] == "file_not_found"
    assert wire.call("read_code", path="use.py").keys().isdisjoint({"more", "missing"})


def test_of_several_places_none_outside_the_project_is_read(
    connect: Callable[..., Wire], project: MakeProject
) -> None:
    root = project({"use.py": "weave()\n"})
    secret = root.parent / f"{root.name}.secret"
    secret.write_text("a secret\n")
    try:
        (root / "link.py").symlink_to(secret)
        targets = [f"../{secret.name}", "use.py", str(secret), "link.py", ".git/x"]
        read = connect(root).call("read_code", targets=targets)
    finally:
        secret.unlink()
    assert read["content"] == "weave()\n"
    assert read["more"] == []
    assert {one["target"] for one in read["missing"]} == {*targets} - {"use.py"}
    assert "a secret" not in json.dumps(read)


def test_a_model_reads_in_one_line_what_was_missing(wire: Wire) -> None:
    wait_indexed(wire)
    read = wire.call("read_code", targets=["use.py", "gone/loom.py", "weavee"])
    text = render_text(read, render_slice)
    first, second = text.splitlines()[-2:]
    assert first == "[file not found: gone/loom.py; near: src/loom.py]"
    assert second == "[symbol not found: weavee; near: weave]"


def test_a_bare_name_means_the_definition_that_is_in_no_other(wire: Wire) -> None:
    assert (
        wire.call("read_code", symbol_name="weave", symbol_context_lines=0)["content"]
        == "def weave():\n    return 2\n"
    )
    assert (
        wire.call("read_code", symbol_name="Loom.weave", symbol_context_lines=0)[
            "start_line"
        ]
        == 5
    )


@pytest.mark.parametrize("name", ["Loom.prototype.weave", "Loom.weave", "weave"])
def test_a_method_set_on_a_prototype_is_read_by_each_of_its_names(
    connect: Callable[..., Wire], project: MakeProject, name: str
) -> None:
    wire = connect(
        project(
            {
                "loom.js": "function Loom () {}\n\nLoom.prototype.weave = function (yarn) {\n  return yarn\n}\n"
            }
        )
    )
    assert (
        wire.call("read_code", symbol_name=name, symbol_context_lines=0)["start_line"]
        == 3
    )
