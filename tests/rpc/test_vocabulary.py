"""Calls as agents make them from habit: other names, other forms, other flags; what each of them is taken for."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.parts.built_in import REGISTRY
from tests.conftest import DaemonAtHand, MakeProject, Wire

TAKEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # As the grep tools of agents are called.
    ("query", {"pattern": "a"}, {"query": "a"}),
    ("query", {"text": "a"}, {"query": "a"}),
    ("query", {"regex": "a+"}, {"query": "a+", "mode": "regex"}),
    ("query", {"query": "a+", "regex": True}, {"query": "a+", "mode": "regex"}),
    ("query", {"query": "a+", "is_regex": "true"}, {"query": "a+", "mode": "regex"}),
    ("query", {"query": "a", "isRegexp": False}, {"query": "a", "mode": "literal"}),
    (
        "query",
        {"pattern": "a", "glob": "*.py", "-n": True, "-i": True},
        {"query": "a", "include": ["*.py"], "case": "insensitive"},
    ),
    (
        "query",
        {"pattern": "a", "output_mode": "files_with_matches"},
        {"query": "a", "output": "files"},
    ),
    (
        "query",
        {"pattern": "a", "output_mode": "content", "-C": 2},
        {"query": "a", "output": "lines", "context": 2},
    ),
    (
        "query",
        {"pattern": "a", "-B": 1, "-A": "3"},
        {"query": "a", "before": 1, "after": 3},
    ),
    (
        "query",
        {"pattern": "a", "head_limit": 5, "offset": 0},
        {"query": "a", "limit": 5},
    ),
    ("query", {"query": "a", "max_results": "5"}, {"query": "a", "limit": 5}),
    ("query", {"query": "a", "maxResults": 5}, {"query": "a", "limit": 5}),
    ("query", {"query": "a", "type": "py"}, {"query": "a", "language": ["py"]}),
    (
        "query",
        {"query": "a", "caseSensitive": True},
        {"query": "a", "case": "sensitive"},
    ),
    ("query", {"query": "a", "file": "src/a.py"}, {"query": "a", "path": "src/a.py"}),
    # Forms.
    ("query", {"query": "a", "include": "*.py"}, {"query": "a", "include": ["*.py"]}),
    (
        "query",
        {"query": "a", "include": '["*.py", "*.rs"]'},
        {"query": "a", "include": ["*.py", "*.rs"]},
    ),
    ("query", {"query": "a", "include": "[ab]*"}, {"query": "a", "include": ["[ab]*"]}),
    (
        "query",
        {"query": "a", "include": None, "cursor": "null", "path": ""},
        {"query": "a"},
    ),
    ("query", {"query": "null"}, {"query": "null"}),
    ("query", {"query": ["a"]}, {"query": "a"}),
    (
        "query",
        {"query": "a", "projects": "other"},
        {"query": "a", "projects": ["other"]},
    ),
    ("query", {"query": "a", "projects": "*"}, {"query": "a", "projects": "*"}),
    ("query", {"query": 404}, {"query": "404"}),
    ("query", {"query": "a", "mode": "Regex"}, {"query": "a", "mode": "regex"}),
    # Files.
    (
        "glob",
        {"pattern": "**/*.js", "path": "src"},
        {"query": "**/*.js", "path": "src"},
    ),
    (
        "glob",
        {"glob_pattern": "*.js", "sort_by": "mtime"},
        {"query": "*.js", "sort_by": "modified"},
    ),
    (
        "glob",
        {"query": "*.js", "no_ignore": True},
        {"query": "*.js", "respect_ignore": False},
    ),
    ("list_files", {"filter": "conf"}, {"query": "conf"}),
    ("list_files", {"directory": "src"}, {"path": "src"}),
    # Reading.
    (
        "get_slice",
        {"file_path": "a", "start_line": 1, "end_line": 2},
        {"path": "a", "start_line": 1, "end_line": 2},
    ),
    (
        "get_slice",
        {"path": "a", "view_range": [3, 9]},
        {"path": "a", "start_line": 3, "end_line": 9},
    ),
    (
        "get_slice",
        {"path": "a", "lines": "3-9"},
        {"path": "a", "start_line": 3, "end_line": 9},
    ),
    (
        "get_slice",
        {"file": "a", "offset": 3, "limit": 2},
        {"path": "a", "start_line": 3, "max_lines": 2},
    ),
    (
        "read_code",
        {"file_path": "a", "offset": 10, "limit": 20},
        {"path": "a", "start_line": 10, "max_lines": 20},
    ),
    ("read_code", {"symbol": "f"}, {"symbol_name": "f"}),
    (
        "read_code",
        {"path": "a", "symbol_name": None, "start_line": "7"},
        {"path": "a", "start_line": 7},
    ),
    ("get_symbol", {"query": "f"}, {"symbol_name": "f"}),
    (
        "get_symbol",
        {"name": "f", "kind": "function"},
        {"symbol_name": "f", "kind": ["function"]},
    ),
    (
        "search_code",
        {"query": "a", "file_filter": "src/**"},
        {"query": "a", "include": ["src/**"]},
    ),
    ("search_code", {"query": "a", "top_k": 3}, {"query": "a", "limit": 3}),
    # Writing.
    (
        "write_code",
        {"file_path": "a", "old_string": "x", "new_string": "y"},
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    (
        "write_code",
        {"path": "a", "old_str": "x", "new_str": ""},
        {"path": "a", "old_text": "x", "new_text": ""},
    ),
    (
        "write_code",
        {"path": "a", "content": "null\n"},
        {"path": "a", "replacement": "null\n"},
    ),
    (
        "write_code",
        {"path": "a", "precondition": '{"expected_absent": true}'},
        {"path": "a", "precondition": {"expected_absent": True}},
    ),
    (
        "batch_write_code",
        {"edits": '[{"file_path": "a", "old_string": "x", "new_string": "y"}]'},
        {"operations": [{"path": "a", "old_text": "x", "new_text": "y"}]},
    ),
    (
        "batch_write_code",
        {"path": "a", "edits": {"old_text": "x", "new_text": "y"}},
        {"path": "a", "operations": [{"old_text": "x", "new_text": "y"}]},
    ),
    (
        "batch_write_code",
        {
            "edits": [
                {
                    "file_paths": '["a", "b"]',
                    "old_str": "x",
                    "new_str": "y",
                    "replace_all": "true",
                }
            ]
        },
        {
            "operations": [
                {
                    "paths": ["a", "b"],
                    "old_text": "x",
                    "new_text": "y",
                    "replace_all": True,
                }
            ]
        },
    ),
    (
        "write_code",
        {"path": "a", "search": "x", "replace": "y", "explanation": "why"},
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    # Several where one is meant, and what other tools call things.
    ("query", {"queries": ["a", "b"]}, {"query": "a", "any_of": ["b"]}),
    (
        "query",
        {"query": ["a", "b"], "any_of": ["c"]},
        {"query": "a", "any_of": ["b", "c"]},
    ),
    ("query", {"query": "a+", "regexp": True}, {"query": "a+", "mode": "regex"}),
    (
        "query",
        {"query": "a", "include": "*.py,src/**, *.ts"},
        {"query": "a", "include": ["*.py", "src/**", "*.ts"]},
    ),
    (
        "query",
        {"query": "a", "include": "*.{py,ts}"},
        {"query": "a", "include": ["*.{py,ts}"]},
    ),
    (
        "query",
        {"query": "a", "include": "a,b.txt"},
        {"query": "a", "include": ["a,b.txt"]},
    ),
    (
        "query",
        {"query": "a", "paths": ["src"], "cwd": "/p"},
        {"query": "a", "path": "src", "project": "/p"},
    ),
    ("read_code", {"symbol_name": ["f", "g"]}, {"targets": ["f", "g"]}),
    ("read_code", {"path": ["a.py", "b.py"]}, {"targets": ["a.py", "b.py"]}),
    (
        "read_code",
        {
            "targets": [
                {"file": "a.py", "lines": "3-9"},
                {"path": "a.py", "start": 3},
                {"path": "a.py", "symbol": "f"},
            ]
        },
        {"targets": ["a.py:3-9", "a.py:3-3", "a.py:f"]},
    ),
    (
        "read_code",
        {"targets": [{"path": "a.py"}, {"symbol": "f"}]},
        {"targets": ["a.py", "f"]},
    ),
    (
        "read_code",
        {"path": "a.py", "start_line": 3, "end_line": -1},
        {"path": "a.py", "start_line": 3},
    ),
    ("read_code", {"path": "a.py", "should_read_entire_file": True}, {"path": "a.py"}),
    ("get_symbol", {"name": "def turn(self, by):"}, {"symbol_name": "turn"}),
    ("get_symbol", {"name": "class Wheel"}, {"symbol_name": "Wheel"}),
    ("get_symbol", {"name": "class Wheel(Base):"}, {"symbol_name": "Wheel"}),
    (
        "get_symbol",
        {"name": "public class Wheel extends Base {"},
        {"symbol_name": "Wheel"},
    ),
    (
        "get_symbol",
        {"name": "pub(crate) fn turn<T>(by: T) -> bool"},
        {"symbol_name": "turn<T>"},
    ),
    (
        "get_symbol",
        {"name": "func (w *Wheel) Turn(by int) error"},
        {"symbol_name": "Wheel.Turn"},
    ),
    ("get_symbol", {"name": "type Wheel struct {"}, {"symbol_name": "Wheel"}),
    ("get_symbol", {"name": "type of wheel"}, {"symbol_name": "type of wheel"}),
    ("get_symbol", {"name": "classify"}, {"symbol_name": "classify"}),
    (
        "get_symbol",
        {"name": "f", "role": "callers"},
        {"symbol_name": "f", "role": ["call"]},
    ),
    (
        "get_symbol",
        {"name": "f", "role": ["Definitions", "uses"]},
        {"symbol_name": "f", "role": ["definition", "call", "reference"]},
    ),
    (
        "get_symbol",
        {"name": "f", "kind": '["func", "classes"]'},
        {"symbol_name": "f", "kind": ["function", "method", "class"]},
    ),
    (
        "get_symbol",
        {"name": "f", "include_body": True},
        {"symbol_name": "f", "body": True},
    ),
    ("changes", {"patch": True}, {"lines": True}),
    ("changes", {"summary": True}, {"lines": False}),
    ("list_files", {"path": "src", "recursive": True}, {"path": "src"}),
    ("fs_move", {"source": "a", "destination": "b"}, {"src": "a", "dst": "b"}),
]
"""A method, what an agent passes, and what that is the same as. The table in skills/reference.md is of these."""


@pytest.mark.parametrize(
    ("method", "given", "meant"),
    TAKEN,
    ids=[f"{at}-{case[0]}" for at, case in enumerate(TAKEN)],
)
def test_a_call_from_habit_is_taken_for_what_it_means(
    method: str, given: dict[str, Any], meant: dict[str, Any]
) -> None:
    declared = REGISTRY.get(method)
    read = declared.validate(given)
    assert read == declared.params.model_validate(meant)


@pytest.mark.parametrize(
    ("method", "given", "field", "problem"),
    [
        (
            "query",
            {"pattern": "a", "query": "b"},
            "pattern",
            "the same as query, and both are given",
        ),
        ("query", {"query": "a", "inclde": []}, "inclde", "did you mean include?"),
        ("query", {"query": "a", "max_result": 1}, "max_result", "did you mean limit?"),
        ("query", {"query": "a", "offset": 20}, "offset", "no such field"),
        (
            "query",
            {"query": "a", "path": ["a", "b"]},
            "path",
            "it takes one, not 2: make a call for each",
        ),
        (
            "list_files",
            {"recursive": False},
            "recursive",
            "no such field; known are query",
        ),
        (
            "read_code",
            {"targets": [{"path": "a", "colour": 1}]},
            "targets.0",
            "valid string",
        ),
        (
            "get_symbol",
            {"symbol_name": "f", "role": "killers"},
            "role.0",
            "'call' or 'reference'",
        ),
        ("query", {"any_of": True, "text": ["a", "b"]}, "any_of", "it takes a list"),
        ("query", {"text": ["a", "b"], "any_of": True}, "any_of", ""),
        (
            "query",
            {"query": "a", "mode": "fuzzy"},
            "mode",
            "'smart', 'literal' or 'regex'",
        ),
        (
            "read_code",
            {"path": "a", "startline": 3},
            "startline",
            "did you mean start_line?",
        ),
        (
            "batch_write_code",
            {"operations": "rename it"},
            "operations.0",
            "valid dictionary",
        ),
    ],
)
def test_a_question_that_is_not_understood_gets_an_error_with_the_alternatives(
    method: str, given: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(InvalidParams) as refused:
        REGISTRY.get(method).validate(given)
    assert refused.value.data["field"] == field
    assert problem in refused.value.message


@pytest.mark.parametrize("handler", list(REGISTRY), ids=lambda handler: handler.name)
def test_no_name_means_two_fields_and_each_field_is_taken_by_its_own(
    handler: Any,
) -> None:
    fields = handler.params.field_names()
    vocabulary = handler.params._vocabulary
    assert not vocabulary.names.keys() & set(fields)
    assert set(vocabulary.names.values()) <= set(fields)


def test_habits_hold_on_every_wire(
    daemon: DaemonAtHand, connect: Callable[..., Wire], project: MakeProject
) -> None:
    root = project(
        {"src/a.py": "def Needle():\n    return 1\n", "b.py": "1  # needle\n"}
    )
    wire = connect(root)
    found = wire.call(
        "query", pattern="needle", path="src", glob="*.py", head_limit="5"
    )
    assert [hit["file_path"] for hit in found["results"]] == ["src/a.py"]
    read = wire.call("read_code", file=str(root / "src/a.py"), offset=2, limit=1)
    assert read["content"] == "    return 1\n"
    error = wire.fail("read_code", path="src/b.py")
    assert error["data"]["near"][0] == "b.py"
    assert "near: b.py" in error["message"]
    assert daemon.run("index-codebase", ".", cwd=root).returncode == 0
    assert wire.fail("read_code", symbol="Neelde")["data"]["near"] == ["Needle"]
    for place in ("src/a.py", "src", str(root / "src/a.py")):
        assert (
            wire.call("read_code", path=place, symbol="Needle", context=0)["start_line"]
            == 1
        )
    first = wire.call("read_code", path="src", symbol="Needle", context=0, max_lines=1)
    rest = wire.call(
        "read_code", symbol="Needle", context=0, **first["continuation"]["cursor"]
    )
    assert rest["content"] == "    return 1\n"
    assert wire.fail("read_code", path="b.py", symbol="Needle")["message"].endswith(
        "Needle; near: src/a.py:1"
    )
    assert wire.fail("get_slice", start_line=1, end_line=2)["message"].startswith(
        "path: needed"
    )
    assert wire.fail("query", query="needle", path="srcs")["data"]["near"][0] == "src"


def has_hits(answer: Any) -> bool:
    return {hit["file_path"] for hit in answer["result"]["results"]} == {
        "a.py",
        "src/b.py",
    }


def says(text: str) -> Callable[[Any], bool]:
    return lambda answer: text in answer["error"]["message"]


def has_lines(first: int, last: int) -> Callable[[Any], bool]:
    return lambda answer: (
        (answer["result"]["start_line"], answer["result"]["end_line"]) == (first, last)
    )


ROWS: dict[str, Callable[[Any], bool]] = {
    'query {"pattern": "x", "glob": "*.py", "-i": true}': has_hits,
    'query {"query": "a+", "regex": true}': has_hits,
    'query {"regex": "a+"}': has_hits,
    'query {"query": "x", "include": "*.py"}': has_hits,
    'query {"query": "x", "include": "[\\"*.py\\"]"}': has_hits,
    'query {"query": "x", "path": "srcs"}': says(
        "no such file or folder: srcs; near: src"
    ),
    'query {"query": "x", "inclde": []}': says("did you mean include?"),
    'read_code {"file": "a.py", "offset": 10, "limit": 20}': has_lines(10, 29),
    'get_slice {"path": "a.py", "view_range": [3, 9]}': has_lines(3, 9),
    'read_code {"symbol": "needel"}': says("symbol not found: needel; near: needle"),
    'read_code {"path": "a.py", "symbol": "f"}': lambda answer: (
        "return needle" in answer["result"]["content"]
    ),
    'read_code {"path": "a.py:10-20"}': has_lines(10, 20),
    'read_code {"path": "a.py#L10"}': has_lines(10, 10),
    'read_code {"symbol_name": "src/b.py:f"}': lambda answer: (
        answer["result"]["file_path"] == "src/b.py"
    ),
    'read_code {"symbols": ["needle", "a.py:3-4"]}': lambda answer: (
        len(answer["result"]["more"]) == 1
    ),
    'get_symbol {"symbol_name": "def needle(x)", "role": "callers"}': lambda answer: (
        [(hit["file_path"], hit["role"]) for hit in answer["result"]["results"]]
        == [("a.py", "call")]
    ),
    'query {"queries": ["aaa", "pass"], "explanation": "see"}': lambda answer: (
        len(answer["result"]["results"]) == 3
    ),
    'query {"query": "needle", "path": "src/*.py"}': lambda answer: (
        [hit["file_path"] for hit in answer["result"]["results"]] == ["src/b.py"]
    ),
    'write_code {"file_path": "a.py", "old_string": "x", "new_string": "y"}': lambda answer: (
        "result" in answer
    ),
    'write_code {"path": "new.py", "content": "x = 1"}': lambda answer: (
        "result" in answer
    ),
    'write_code {"path": "lib/new/a.py", "content": "x = 1"}': lambda answer: (
        "result" in answer
    ),
    'batch_write_code {"edits": {"path": "a.py", "old": "y", "new": "z"}}': lambda answer: (
        "result" in answer
    ),
    'glob {"pattern": "**/*.js"}': lambda answer: (
        [one["file_path"] for one in answer["result"]["results"]] == ["c.js"]
    ),
}
"""Calls of the table in skills/reference.md, and what each gets."""


def test_each_row_of_the_reference_is_as_it_says(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    lines = "".join(f"line = {number}\n" for number in range(2, 31))
    root = project({
        "a.py": f"x = 0\n{lines}def f():\n    return needle(aaa)\n",
        "src/b.py": "def needle(x):\n    aaa\n\n\ndef f():\n    pass\n",
        "c.js": "",
        "node_modules/d.js": "",
        ".git/x": "",
        ".gitignore": "node_modules\n",
    })  # fmt: skip
    assert daemon.run("index-codebase", ".", cwd=root).returncode == 0
    reference = (Path(__file__).parents[2] / "skills" / "reference.md").read_text()
    table = reference.partition("| call | before | now |\n|---|---|---|\n")[
        2
    ].partition("\n\n")[0]
    told, method = set(), ""
    for row in table.splitlines():
        for called, given in re.findall(r"`([a-z_]* ?)(\{.*?\})`", row.split(" | ")[0]):
            method = called.strip() or method
            told.add(f"{method} {given}")
    assert told == ROWS.keys()
    wire = daemon.wire("unix", root)
    for call, holds in ROWS.items():
        method, _, given = call.partition(" ")
        answer = wire.ask(method, **json.loads(given))
        assert holds(answer), (call, answer)
    wire.fail("write_code", path="new.py", content="x = 2")
    assert (
        (root / "new.py").read_text()
        == (root / "lib" / "new" / "a.py").read_text()
        == "x = 1"
    )
    absolute = wire.call("glob", query=f"{root}/**/b.py")
    assert [one["file_path"] for one in absolute["results"]] == ["src/b.py"]
    found = wire.call(
        "query", query="aaa", include=[f"{root}/src/*"], exclude=[f"{root}/a.py"]
    )
    assert {hit["file_path"] for hit in found["results"]} == {"src/b.py"}
    assert wire.fail("query", query="aaa", path="lib/[id]")["message"].startswith(
        "no such file or folder: lib/[id]"
    )
    assert wire.fail("read_code", path="b.py:3")["message"].startswith(
        "file not found: b.py:3"
    )
    wire.fail("write_code", path="made/a.py", replacement="x", start_line=3, end_line=2)
    assert not (root / "made").exists()
    assert (root / "a.py").read_text().startswith("z = 0\n")
    wire.close()


def test_an_option_of_an_old_name_is_taken_on_the_command_line(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"src/a.py": "needle\n", "b.py": "needle\n"})
    for options in (
        ["--glob", "src/*"],
        ["--file-filter=src/*"],
        ["--path", "src/a.py"],
        ["-g", "src/*"],
    ):
        found = daemon.run("query", "needle", *options, cwd=root)
        assert found.returncode == 0, found.stderr
        assert "src/a.py" in found.stdout
        assert "b.py" not in found.stdout
