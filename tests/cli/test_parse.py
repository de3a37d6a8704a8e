"""Command lines to invocations: every method can be called from a shell, with all its parameters."""

from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import Field

from flashgrep.base.registry import Call, Handler, Params, Registry, Usage, handler
from flashgrep.cli.method_commands import Invocation, Output, parse_line
from flashgrep.parts.built_in import REGISTRY


class OddParams(Params):
    """One field of each kind."""

    text: str = Field(description="Text.")
    limit: Annotated[int, Usage(short="-l")] = Field(10, description="Limit.")
    ratio: float | None = Field(None, description="Ratio.")
    mode: Annotated[Literal["smart", "regex"], Usage(short="-m")] = Field(
        "smart", description="Mode."
    )
    kinds: list[Literal["a", "b"]] = Field(default=[], description="Kinds.")
    include: Annotated[list[str], Usage(short="-g")] = Field(
        default=[], description="Globs."
    )
    word: Annotated[bool, Usage(short="-w")] = Field(
        default=False, description="Whole words."
    )
    fresh: bool = Field(default=True, description="Fresh.")
    edits: list[dict[str, int]] = Field(default=[], description="Edits.")
    position: int | str | None = Field(None, description="Where.")
    project: str | None = Field(None, description="Project.")


class OddResult(TypedDict):
    """Nothing."""

    done: bool


@handler("odd_one")
async def odd_one(_call: Call[Any], params: OddParams) -> OddResult:
    """Take everything."""
    return {"done": bool(params)}


METHODS = Registry([odd_one, *REGISTRY])


def parsed(*argv: str) -> Invocation:
    found = parse_line(METHODS, ["odd-one", *argv], 80)
    assert isinstance(found, Invocation), found
    return found


@pytest.mark.parametrize(
    ("argv", "params"),
    [
        (["x"], {"text": "x"}),
        (["--", "--x"], {"text": "--x"}),
        (["x", "-l", "3", "--ratio", "0.5"], {"text": "x", "limit": 3, "ratio": 0.5}),
        (
            ["x", "-m", "regex", "--kinds", "a", "--kinds", "b"],
            {"text": "x", "mode": "regex", "kinds": ["a", "b"]},
        ),
        (["x", "-g", "a", "-g", "b"], {"text": "x", "include": ["a", "b"]}),
        (["x", "-w", "--no-fresh"], {"text": "x", "word": True, "fresh": False}),
        (["x", "--edits", '[{"a": 1}]'], {"text": "x", "edits": [{"a": 1}]}),
        (["x", "--position", "top"], {"text": "x", "position": "top"}),
    ],
)
def test_only_what_is_given_is_passed_on(
    argv: list[str], params: dict[str, Any]
) -> None:
    assert parsed(*argv) == Invocation("odd_one", params, as_json=False, projects=[])


def test_json_and_project_are_the_command_lines_own() -> None:
    assert parsed("x", "--json", "-p", "name") == Invocation(
        "odd_one", {"text": "x"}, as_json=True, projects=["name"]
    )


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "Missing argument 'text'"),
        (["x", "--limit", "many"], "limit"),
        (["x", "--mode", "magic"], "'smart', 'regex'"),
        (["x", "--edits", "["], "not JSON"),
        (["x", "y"], "unexpected extra argument"),
        (["x", "--limt", "1"], "--limit"),
    ],
)
def test_a_wrong_line_is_status_2_with_its_usage(argv: list[str], told: str) -> None:
    found = parse_line(METHODS, ["odd-one", *argv], 80)
    assert isinstance(found, Output)
    assert (found.status, found.stdout) == (2, b"")
    assert told.encode() in found.stderr
    assert found.stderr.startswith(b"Usage: fgrep odd-one")


@pytest.mark.parametrize("declared", list(REGISTRY), ids=lambda declared: declared.name)
def test_every_method_has_a_help_with_its_sentence_and_every_field(
    declared: Handler,
) -> None:
    found = parse_line(METHODS, [declared.command, "--help"], 100)
    assert isinstance(found, Output)
    assert found.status == 0, found.stderr
    words = b" ".join(found.stdout.split()).decode()
    assert " ".join(REGISTRY.name_commands(declared.summary).split()) in words
    missing = [
        name
        for name in declared.params.model_fields
        if name.replace("_", "-") not in words.replace("_", "-")
    ]
    assert not missing


def test_a_help_names_other_methods_as_the_command_line_does() -> None:
    found = parse_line(METHODS, ["query", "--help"], 100)
    assert isinstance(found, Output)
    words = b" ".join(found.stdout.split()).decode()
    assert "fgrep symbol for a name's definition or references" in words
    assert "search_code" not in words
    assert "get_symbol" not in words


def test_shortcuts_of_grep_stand_for_values() -> None:
    found = parse_line(METHODS, ["query", "x", "-i", "-F"], 80)
    assert isinstance(found, Invocation)
    assert found.params == {"query": "x", "case": "insensitive", "mode": "literal"}


def test_a_slice_takes_its_file_and_lines_in_order() -> None:
    found = parse_line(METHODS, ["slice", "a.py", "3", "9"], 80)
    assert isinstance(found, Invocation)
    assert found.params == {"path": "a.py", "start_line": 3, "end_line": 9}


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (["src/a.py:3:9"], "src/a.py"),
        (["src/a.py:3:9:call: f(x, 1:2:3)", "--json"], "src/a.py"),
        (["src/a.py", "3", "9"], "src/a.py"),
        (["a:1:2", "3", "9"], "a:1:2"),
    ],
)
def test_a_place_is_three_words_or_as_a_hit_begins(argv: list[str], path: str) -> None:
    found = parse_line(METHODS, ["definition", *argv], 80)
    assert isinstance(found, Invocation)
    assert found.params == {"path": path, "line": 3, "column": 9}


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["a.py:3-9"], (3, 9)),
        (["a.py", "3-9"], (3, 9)),
        (["a.py:3"], (3, 3)),
        (["a.py:3:9"], (3, 3)),
        (["a.py:3:9:x = y[1:2]", "--json"], (3, 3)),
        (["a.py#L3-L9"], (3, 9)),
    ],
)
def test_a_slice_takes_its_lines_as_one_word_too(
    argv: list[str], lines: tuple[int, int]
) -> None:
    found = parse_line(METHODS, ["slice", *argv], 80)
    assert isinstance(found, Invocation)
    assert found.params == {
        "path": "a.py",
        "start_line": lines[0],
        "end_line": lines[1],
    }


@pytest.mark.parametrize("argv", [[], ["a.py"], ["a.py:3"], ["--json"]])
def test_half_a_place_is_an_error(argv: list[str]) -> None:
    said = parse_line(METHODS, ["definition", *argv], 80)
    assert isinstance(said, Output)
    assert (said.status, b"Missing argument" in said.stderr) == (2, True)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["x", "-p", "a", "-p", "b"], "--project"),
        (["x", "-p", "a", "--project=a"], "--project"),
        (["x", "-l", "1", "--limit", "2"], "--limit"),
        (["x", "-m", "regex", "-m", "smart"], "--mode"),
    ],
)
def test_an_option_of_one_value_given_twice_is_an_error(
    argv: list[str], told: str
) -> None:
    said = parse_line(METHODS, ["odd-one", *argv], 80)
    assert isinstance(said, Output)
    assert (said.status, said.stdout) == (2, b"")
    assert told.encode() in said.stderr
    assert b"given 2 times" in said.stderr


@pytest.mark.parametrize(
    "argv",
    [["-F", "-e"], ["-i", "-s"], ["-F", "--mode", "regex"], ["-i", "--case", "smart"]],
)
def test_options_that_contradict_each_other_are_an_error(argv: list[str]) -> None:
    said = parse_line(METHODS, ["query", "x", *argv], 80)
    assert isinstance(said, Output)
    assert (said.status, b"contradict" in said.stderr) == (2, True)


def test_an_option_may_be_said_twice_over_where_it_says_the_same() -> None:
    found = parse_line(
        METHODS,
        [
            "query",
            "x",
            "-w",
            "-w",
            "-i",
            "-i",
            "-F",
            "--mode",
            "literal",
            "-g",
            "a",
            "-g",
            "b",
        ],
        80,
    )
    assert isinstance(found, Invocation)
    assert found.params["include"] == ["a", "b"]


@pytest.mark.parametrize(
    ("argv", "params"),
    [
        (
            ["files", "sched", "core", "!test", "-l", "3"],
            {"query": "sched core !test", "limit": 3},
        ),
        (["files"], {}),
        (["files", "sched core"], {"query": "sched core"}),
        (["search-code", "who", "pays", "--", "-x"], {"query": "who pays -x"}),
    ],
)
def test_words_that_are_left_are_one_text(
    argv: list[str], params: dict[str, Any]
) -> None:
    found = parse_line(METHODS, argv, 80)
    assert isinstance(found, Invocation), found
    assert found.params == params


def test_a_help_describes_paths_and_defaults_as_the_command_line_has_them() -> None:
    for argv, wanted in [
        (["slice"], "Path relative to the current folder."),
        (["folder"], "Folder, relative to the current folder; default: the root."),
        (["index-codebase"], "or one relative to the current folder."),
    ]:
        found = parse_line(METHODS, [*argv, "--help"], 100)
        assert isinstance(found, Output)
        assert wanted in " ".join(found.stdout.decode().split())
    found = parse_line(METHODS, ["write-code", "--help"], 100)
    assert isinstance(found, Output)
    assert b"expected_file_hash=None" not in found.stdout
