"""The query method on a running daemon, over every wire: modes, order, pages, budgets, coverage, errors."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.methods.common import decode_cursor, encode_cursor
from flashgrep.methods.query import QueryParams
from tests.conftest import DaemonAtHand, Wire

FILES: dict[str, str | bytes] = {
    "src/engine.py": "import os\n\nclass Engine:\n    def start(self):\n        return ignite(self)\n",
    "src/ignite.py": "def ignite(engine):\n    return engine.spark\n\n\ndef reignite(engine):\n"
    "    return ignite(engine)\n",
    "tests/test_engine.py": "from src.engine import Engine\n\ndef test_ignite():\n    assert ignite(Engine())\n",
    "vendor/lib/ignite.py": "def ignite():\n    pass\n",
    "docs/guide.md": "# Guide\r\nThe engine must ignite.\r\n\u00e9t\u00e9 ignite\r\n",
    "big/many.txt": "".join(f"line {at} has a needle\n" for at in range(300)),
    "wide.js": "var a=1;" * 4000 + "HAYSTACK" + ";var b=2" * 4000 + "\n",
    "logo.bin": b"\0ignite",
    "build.log": "ignite\n",
    ".gitignore": "*.log\n",
}


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fg", dir="/tmp") as base:
        folder = Path(base) / "car"
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        for name, content in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(
                content.encode() if isinstance(content, str) else content
            )
        yield folder


@pytest.fixture(scope="module", params=["unix", "tcp", "stdio"])
def wire(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[Wire]:
    daemon.add(root)
    connection = daemon.wire(request.param, root)
    connection.call(
        "list_files"
    )  # before that, ripgrep answers, and files without a hit are not counted
    yield connection
    connection.close()


SPARK = "    return engine.spark"


def places(result: Any) -> list[tuple[str, int]]:
    return [(hit["file_path"], hit["start_line"]) for hit in result["results"]]


def test_a_literal_is_found_with_its_place_and_text(wire: Wire) -> None:
    result = wire.call("query", text="engine.spark", mode="literal")
    assert result["results"] == [
        {
            "file_path": "src/ignite.py",
            "start_line": 2,
            "end_line": 2,
            "column": 12,
            "text": SPARK,
        }
    ]
    assert result["total"] == 1
    assert result["next"] is None
    coverage = result["coverage"]
    assert coverage["complete"]
    assert coverage["fresh"]
    assert coverage["files_searched"] == 7
    assert coverage["files_skipped"] in ({}, {"binary": 1})  # known once it was read


def test_characters_and_bytes_are_counted_apart_and_crlf_is_no_text(wire: Wire) -> None:
    (hit,) = wire.call("query", text="t\u00e9 ignite", mode="literal")["results"]
    assert (hit["column"], hit["byte_column"]) == (2, 3)
    assert hit["text"] == "\u00e9t\u00e9 ignite"


def test_smart_puts_definitions_first_then_sources_tests_and_vendored_code(
    wire: Wire,
) -> None:
    found = places(wire.call("query", text="ignite", limit=50))
    assert found[0] == ("src/ignite.py", 1)
    assert found.index(("src/engine.py", 5)) < found.index(("tests/test_engine.py", 3))
    assert found.index(("tests/test_engine.py", 4)) < len(found)
    again = places(wire.call("query", text="ignite", limit=50))
    assert again == found


def test_smart_falls_back_to_a_regex_then_to_words_and_says_so(wire: Wire) -> None:
    regex = wire.call("query", text=r"def \w*ignite\(")
    assert regex["mode"] == "regex"
    assert ("src/ignite.py", 5) in places(regex)
    assert regex["fallback"] == "regex"
    assert "fallback" not in wire.call("query", text=r"def \w*ignite\(", mode="regex")
    assert "fallback" not in wire.call("query", text="ignite(engine)")
    words = wire.call("query", text="ignite engine spark")
    assert (words["mode"], words["fallback"]) == ("words", "words")
    nothing = wire.call("query", text="engin.py")
    assert nothing["results"] == []
    assert nothing["suggestions"][0] == "src/engine.py"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (r"def ignite\|zqzq", "def ignite"),
        (r"ignite(engine)\|zqzq", r"ignite\(engine\)"),
        (r"\(zq\|ig\)nite", "ignite"),
        (r"zqzq\|def [a-z]\+ite", r"def [a-z]+ite"),
        (r"zqzq\|def [\|i]gnite", "def ignite"),
    ],
)
def test_what_nothing_has_is_read_as_grep_reads_it(
    wire: Wire, text: str, same: str
) -> None:
    answer = wire.call("query", text=text, limit=100)
    assert answer["fallback"] == "grep"
    matching = wire.call("query", text=same, mode="regex", limit=100)
    assert sorted(places(answer)) == sorted(places(matching))
    first = wire.call("query", text=text, limit=1)
    second = wire.call("query", text=text, limit=1, cursor=first["next"])
    assert second["fallback"] == "grep"
    assert wire.call("query", text=text, mode="regex")["results"] == []


def test_a_bar_that_is_in_the_text_is_no_alternative(wire: Wire) -> None:
    file = Path(str(wire.root)) / "bars.txt"
    file.write_text("vya\\|vyb\nvya\nvyc|vyd\n")
    try:
        literal = wire.call("query", text=r"vya\|vyb")
        assert (literal["mode"], places(literal)) == ("literal", [("bars.txt", 1)])
        regex = wire.call("query", text=r"vyc\|vyd")
        assert (regex["mode"], places(regex)) == ("regex", [("bars.txt", 3)])
        # It would match everywhere.
        assert wire.call("query", text=r"vyx\|\|vyy")["results"] == []
    finally:
        file.unlink()


@pytest.mark.parametrize(
    "text",
    [
        "zq || qz",
        "zq|",
        "(zq)?",
        "(zq)*",
        "^|zq",
        "(zq){0,3}",
        "(|)",
        "\\b|zq",
        "z?|qz",
        "(?:zq|)(?:qz|)",
        ".*",
        "$",
    ],
)
def test_smart_never_takes_a_text_for_a_regex_that_matches_the_empty_text(
    wire: Wire, text: str
) -> None:
    answer = wire.call("query", text=text)
    assert answer["results"] == []
    assert "fallback" not in answer
    assert wire.call("query", text="zqzqzq", any_of=[text])["results"] == []
    assert wire.call("query", text=text, mode="regex", limit=1)["results"]


def test_the_next_page_of_a_fallback_says_that_it_is_one(wire: Wire) -> None:
    first = wire.call("query", text="has a ne+dle", limit=5)
    assert first["fallback"] == "regex"
    assert (
        wire.call("query", text="has a ne+dle", limit=5, cursor=first["next"])[
            "fallback"
        ]
        == "regex"
    )
    among = wire.call(
        "query", text="has a ne+dle", limit=5, project=None, projects=[wire.root]
    )
    assert among["fallback"] == "regex"


@pytest.mark.parametrize(
    "more",
    [
        {"word": True},
        {"line": True},
        {"case": "sensitive"},
        {"any_of": ["zq"]},
        {"output": "files"},
        {"output": "count"},
    ],
)
def test_lines_with_some_of_the_words_are_no_answer_to_a_narrower_question(
    wire: Wire, more: dict[str, Any]
) -> None:
    assert wire.call("query", text="ignite engine spark")["results"]
    assert wire.call("query", text="ignite engine spark", **more)["results"] == []


def test_further_texts_that_are_no_regex_are_no_error(wire: Wire) -> None:
    assert wire.call("query", text="zq.*qz", any_of=["zq("])["results"] == []


def test_pages_neither_repeat_nor_lose(wire: Wire) -> None:
    for order in ("path", "relevance"):
        asked = {"text": "e", "mode": "literal", "order": order}
        answer = wire.call("query", **asked, limit=1000, max_tokens=100_000)
        whole = answer["results"]
        assert len(whole) == len(set(places(answer))) > 300
        pages: list[dict[str, Any]] = []
        cursor = None
        while True:
            more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            page = wire.call("query", **asked, limit=37, **more)
            pages += page["results"]
            cursor = page["next"]
            if cursor is None:
                break
        assert pages == whole
        among = wire.call(
            "query",
            **asked,
            limit=1000,
            max_tokens=100_000,
            project=None,
            projects=[wire.root],
        )
        assert among["results"] == [{"project": "car", **hit} for hit in whole]


def test_a_budget_cuts_between_hits_and_leaves_a_way_on(wire: Wire) -> None:
    first = wire.call("query", text="needle", mode="literal", limit=300, max_tokens=500)
    assert 5 < len(first["results"]) < 30
    assert first["total"] == 300
    then = wire.call(
        "query",
        text="needle",
        mode="literal",
        limit=300,
        max_tokens=500,
        cursor=first["next"],
    )
    assert then["results"][0]["start_line"] == first["results"][-1]["start_line"] + 1
    assert then["total"] == 300


def test_a_very_long_line_comes_as_a_window_with_its_column(wire: Wire) -> None:
    (hit,) = wire.call("query", text="HAYSTACK", mode="literal")["results"]
    assert hit["column"] == 32_001
    assert hit["cut"]
    assert len(hit["text"]) < 1000
    assert hit["text"][hit["column"] - hit["text_column"] :].startswith("HAYSTACK")


def test_context_lines_stand_around_the_hit(wire: Wire) -> None:
    (hit,) = wire.call("query", text="def start", mode="literal", context=2, after=1)[
        "results"
    ]
    assert hit["before"] == ["", "class Engine:"]
    assert hit["after"] == ["        return ignite(self)"]


def test_a_long_page_is_the_same_whoever_looks_at_its_hits(
    wire: Wire, daemon: DaemonAtHand, root: Path
) -> None:
    """It is JSON already when it leaves the search: copied for one, decoded for another."""
    params = {"text": "needle", "mode": "literal", "limit": 300, "max_tokens": 100_000}
    hits = wire.call("query", **params)["results"]
    assert [hit["start_line"] for hit in hits] == list(range(1, 301))
    calls = [{"method": "query", "arguments": params}]
    with closing(daemon.wire("unix", root)) as control:
        several = control.call("query", **params, projects=[str(root)])["results"]
        (inner,) = control.call("batch", calls=calls, max_tokens=100_000)["results"]
    assert [{**hit, "project": root.name} for hit in hits] == several
    assert inner["result"]["results"] == hits
    budget = ("--limit", "300", "--max-tokens", "100000")
    printed = daemon.run("query", "--json", "-F", *budget, "needle", cwd=root).stdout
    assert json.loads(printed)["results"] == hits


def test_files_and_counts_can_be_asked_for(wire: Wire) -> None:
    files = wire.call("query", text="needle", mode="literal", output="files")
    assert files["results"] == [{"file_path": "big/many.txt"}]
    counts = wire.call("query", text="ignite", mode="literal", output="count")
    assert {hit["file_path"]: hit["count"] for hit in counts["results"]}[
        "src/ignite.py"
    ] == 3
    assert counts["total"] == sum(hit["count"] for hit in counts["results"])


def test_globs_and_languages_narrow(wire: Wire) -> None:
    def files(**narrow: Any) -> set[str]:
        result = wire.call(
            "query", text="ignite", mode="literal", output="files", limit=100, **narrow
        )
        return {hit["file_path"] for hit in result["results"]}

    assert files(include=["src/**"]) == {"src/engine.py", "src/ignite.py"}
    assert files(include=["*.md"]) == {"docs/guide.md"}
    assert files(exclude=["vendor/**", "tests/**"]) == {
        "src/engine.py",
        "src/ignite.py",
        "docs/guide.md",
    }
    assert files(language=["markdown"]) == {"docs/guide.md"}


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"text": "ignite", "word": True}, {1, 6}),
        ({"text": "Ignite", "case": "insensitive"}, {1, 5, 6}),
        ({"text": "Ignite"}, set()),
        ({"text": "    return ignite(engine)", "line": True}, {6}),
        ({"text": "spark", "any_of": ["reignite"]}, {2, 5}),
        ({"text": r"spark\n\n\ndef", "mode": "regex", "multiline": True}, {2}),
        ({"text": "ignite", "use_index": False}, {1, 5, 6}),
    ],
)
def test_how_a_text_is_matched_can_be_chosen(
    wire: Wire, asked: dict[str, Any], lines: set[int]
) -> None:
    result = wire.call(
        "query", **{"mode": "literal", "include": ["src/ignite.py"], **asked}
    )
    assert {line for _, line in places(result)} == lines


def test_a_plan_is_explained(wire: Wire) -> None:
    explained = wire.call("query", text=r"engine\.sp\w+", mode="regex", explain=True)[
        "explained"
    ]
    assert explained["pattern"] == r"regex smart 'engine\\.sp\\w+'"
    assert "'engi'" in explained["grams"]
    assert explained["candidates"] >= explained["files_read"] >= 1


def test_what_was_looked_for_is_explained_where_only_words_are_left(wire: Wire) -> None:
    for text, has_hits in (("ignite engine spark", True), ("zebra quagga", False)):
        result = wire.call("query", text=text, explain=True)
        assert (result["mode"], bool(result["results"])) == ("words", has_hits)
        assert text in result["explained"]["pattern"]


def test_a_deadline_gives_what_was_found_and_says_that_it_is_not_all(
    wire: Wire,
) -> None:
    result = wire.call(
        "query",
        text=r"[a-z]",
        mode="regex",
        limit=10_000,
        deadline_ms=1,
        max_tokens=1_000_000,
    )
    assert result["coverage"]["complete"] is False or result["total"] == len(
        result["results"]
    )


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"text": ""}, "query"),
        ({"text": "a", "limit": 0}, "limit"),
        ({"text": "a", "limit": 10_001}, "limit"),
        ({"text": "a", "mode": "fuzzy"}, "mode"),
        ({"text": "a", "nonsense": 1}, "nonsense"),
        ({"text": "a", "cursor": "???"}, "cursor"),
        ({}, "query"),
    ],
)
def test_bad_parameters_name_the_field(
    wire: Wire, asked: dict[str, Any], field: str
) -> None:
    error = wire.fail("query", **asked)
    assert error["code"] == -32602
    assert error["data"]["field"] == field


def test_a_cursor_of_another_question_is_refused(wire: Wire) -> None:
    cursor = wire.call("query", text="needle", mode="literal", limit=1)["next"]
    error = wire.fail("query", text="ignite", mode="literal", limit=1, cursor=cursor)
    assert error["data"]["field"] == "cursor"


def test_a_bad_pattern_is_named_with_its_place(wire: Wire) -> None:
    error = wire.fail("query", text="(unclosed", mode="regex")
    assert error["code"] == -32602
    assert error["data"]["reason"] == "invalid_pattern"
    look = wire.fail("query", text="a(?=b)", mode="regex")
    assert look["data"]["construct"].startswith("(?=")
    assert look["data"]["at"] == 1


def test_look_around_runs_in_the_backtracking_engine_and_hostile_patterns_end(
    wire: Wire,
) -> None:
    found = wire.call(
        "query",
        text=r"ignite(?=\(engine\):)",
        mode="regex",
        engine="backtracking",
        order="path",
    )
    assert places(found) == [("src/ignite.py", 1), ("src/ignite.py", 5)]
    counted = wire.call(
        "query", text=r"(\w)\1gine", engine="backtracking", output="count"
    )
    assert counted["results"] == []
    error = wire.fail(
        "query",
        text=r"(e|ee|[a-z ]+)+\n\n\n!(?=x)",
        engine="backtracking",
        multiline=True,
        deadline_ms=700,
    )
    assert error["code"] == -32004
    assert error["data"]["reason"] == "deadline_exceeded"


def test_a_file_saved_a_moment_ago_counts(wire: Wire, root: Path) -> None:
    fresh = root / "src" / f"fresh_{wire.name}.py"
    fresh.write_text(f"brand_new_{wire.name} = 1\n")
    assert places(
        wire.call("query", text=f"brand_new_{wire.name}", mode="literal")
    ) == [(f"src/{fresh.name}", 1)]
    fresh.unlink()
    assert (
        wire.call("query", text=f"brand_new_{wire.name}", mode="literal")["total"] == 0
    )


def test_stats_and_listing_are_live(wire: Wire) -> None:
    listed = wire.call("list_files")
    assert listed["total"] == len(listed["files"]) == wire.call("stats")["total_files"]
    assert "build.log" not in listed["files"]
    assert wire.call("list_files", filter="IGNITE")["files"] == [
        "src/ignite.py",
        "vendor/lib/ignite.py",
    ]
    near = wire.call("list_files", filter="ignit3.py")
    assert near["fuzzy"]
    assert near["files"][0] == "src/ignite.py"
    page = wire.call("list_files", limit=2)
    rest = wire.call("list_files", cursor=page["next"])
    assert page["files"] + rest["files"] == listed["files"]
    assert wire.fail("stats", project="nowhere")["data"]["reason"] in {
        "project_not_found",
        "outside_root",
    }


def test_a_file_that_goes_between_two_pages_hides_no_other(
    wire: Wire, root: Path
) -> None:
    gone = root / f"0_{wire.name}.py"
    gone.write_text("x = 1\n")
    page = wire.call("list_files", limit=2)
    gone.unlink()
    rest = wire.call("list_files", cursor=page["next"])
    assert page["files"] + rest["files"] == [
        gone.name,
        *wire.call("list_files")["files"],
    ]


def test_a_cursor_of_a_question_about_names_that_are_no_utf8_goes_on() -> None:
    params = QueryParams(
        query="needle", include=["\udcff*"]
    )  # as a command line carries the byte ff
    assert decode_cursor(params, encode_cursor(params, 7), int) == 7
