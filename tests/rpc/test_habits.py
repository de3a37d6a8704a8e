"""What models write from the habit of other tools is understood."""

from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.base.habits import read_habits
from flashgrep.parts.built_in import REGISTRY

READ: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "code_research",
        {"symbol": "run", "direction": "incoming"},
        {"query": "run", "kind": "callers"},
    ),
    (
        "code_research",
        {"query": "run", "kind": "references"},
        {"query": "run", "kind": "usages"},
    ),
    (
        "get_symbol",
        {"name_path": "Task/run", "include_body": True, "depth": 1},
        {"symbol_name": "Task/run", "include_body": True},
    ),
    (
        "get_symbol",
        {"name_path_pattern": "run", "substring_matching": True},
        {"symbol_name": "run", "match": "fuzzy"},
    ),
    ("changes", {"commit": "abc"}, {"rev": "abc~1..abc"}),
    (
        "changes",
        {"base": "main", "head": "dev", "path": "src/"},
        {"rev": "main..dev", "include": ["src/", "src/**"]},
    ),
    ("changes", {"base": "main"}, {"rev": "main"}),
    (
        "search_code",
        {"query": "x", "target_directories": ["src"]},
        {"query": "x", "include": ["src", "src/**"]},
    ),
    (
        "query",
        {"query": "x", "target_directories": "src/"},
        {"query": "x", "include": ["src", "src/**"]},
    ),
    (
        "query",
        {"query": "x", "path": ["a", "b/"]},
        {"query": "x", "include": ["a", "b", "a/**", "b/**"]},
    ),
    (
        "get_slice",
        {"path": "task.go", "line": 196},
        {"path": "task.go", "start_line": 186, "end_line": 206},
    ),
    (
        "get_slice",
        {"path": "task.go:30-33"},
        {"path": "task.go", "start_line": 30, "end_line": 33},
    ),
    (
        "batch",
        {
            "tool_calls": [
                {"tool": "mcp__flashgrep__query", "args": {"pattern": "x"}},
                {"name": "read_code", "path": "a.py"},
                {"method": "stats", "arguments": {}},
            ]
        },
        {
            "calls": [
                {"method": "query", "arguments": {"pattern": "x"}},
                {"method": "read_code", "arguments": {"path": "a.py"}},
                {"method": "stats", "arguments": {}},
            ]
        },
    ),
    ("stats", {"x": 1}, {"x": 1}),
]


@pytest.mark.parametrize(("tool", "habit", "own"), READ)
def test_a_habit_becomes_the_tools_own_arguments(
    tool: str, habit: dict[str, Any], own: dict[str, Any]
) -> None:
    before = dict(habit)
    assert read_habits(tool, habit) == own
    assert habit == before
    if tool != "stats":
        REGISTRY.get(tool).validate(own)


def test_a_patch_is_answered_with_the_form_that_is_taken() -> None:
    with pytest.raises(InvalidParams, match="old_text and new_text"):
        read_habits("write_code", {"patch": "*** Begin Patch\n*** End Patch"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query", {"query": "x", "target_directories": ["src"], "include": ["*.py"]}),
        ("query", {"query": "x", "target_directories": {"src": True}}),
        ("changes", {"rev": "v1", "commit": "abc"}),
        ("changes", {"head": "dev"}),
        ("changes", {"path": "src", "include": ["*.py"]}),
    ],
)
def test_what_is_given_twice_is_refused_so_that_no_restriction_is_lost(
    tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParams):
        REGISTRY.get(tool).validate(read_habits(tool, arguments))
