"""Answers as text: what stands on stdout, what is noted on stderr, and with which status."""

import base64
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.cli.method_commands import render
from flashgrep.methods.query import render_query
from flashgrep.methods.reading import render_slice
from flashgrep.methods.text import FOR_MODEL, Style, format_time
from flashgrep.parts.navigation.methods import render_targets
from flashgrep.parts.symbols.methods import render_outline, render_symbols

HIT: dict[str, Any] = {
    "file_path": "a/b.py",
    "start_line": 3,
    "end_line": 3,
    "column": 5,
    "text": "x = 1",
}


def shown(
    result: Any, renderer: Any = render_query, **style: Any
) -> tuple[bytes, bytes, int]:
    found = render(
        result, Style(is_person=True, **{"headings": False, **style}), renderer
    )
    return found.stdout, found.stderr, found.status


def test_a_terminal_gets_one_coloured_heading_for_each_file() -> None:
    other = HIT | {"file_path": "c.py"}
    stdout, _, _ = shown(
        {"results": [HIT, HIT | {"start_line": 9, "end_line": 9}, other]},
        color=True,
        headings=True,
    )
    assert stdout.decode() == (
        "\x1b[35ma/b.py\x1b[0m\n\x1b[32m3\x1b[0m:x = 1\n\x1b[32m9\x1b[0m:x = 1\n"
        "\n\x1b[35mc.py\x1b[0m\n\x1b[32m3\x1b[0m:x = 1\n"
    )


def test_lines_of_a_hit_that_spans_several_are_numbered() -> None:
    stdout, _, _ = shown({"results": [HIT | {"text": "one\ntwo", "end_line": 4}]})
    assert stdout == b"a/b.py:3:one\na/b.py:4:two\n"


def test_what_matched_is_marked_and_the_column_is_shown_on_request() -> None:
    text = "need\x1bl(need)" + "x" * 3
    places = [(1, 5), (8, 12)]
    spans = [
        {"start_line": 3, "end_line": 3, "start_column": first, "end_column": end}
        for first, end in places
    ]
    stdout, _, _ = shown(
        {"results": [HIT | {"text": text, "spans": spans, "cut": True}]},
        color=True,
        headings=True,
        columns=True,
    )
    marked = "\x1b[1;31mneed\x1b[0m"
    assert stdout.decode().splitlines()[1] == (
        f"\x1b[32m3\x1b[0m:5:{marked}\\x1bl({marked})xxx…"
    )


def test_context_is_set_apart_by_dashes() -> None:
    hit = HIT | {"before": ["b1", "b2"], "after": ["a1"]}
    stdout, _, _ = shown({"results": [hit, hit | {"start_line": 8, "end_line": 8}]})
    assert stdout.splitlines() == [
        b"a/b.py-1-b1",
        b"a/b.py-2-b2",
        b"a/b.py:3:x = 1",
        b"a/b.py-4-a1",
        b"--",
        b"a/b.py-6-b1",
        b"a/b.py-7-b2",
        b"a/b.py:8:x = 1",
        b"a/b.py-9-a1",
    ]


@given(
    st.lists(st.integers(1, 30), min_size=1, unique=True),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_a_model_sees_each_line_around_the_hits_of_a_file_once(
    places: list[int], before: int, after: int
) -> None:
    lines = {number: f"line {number}" for number in range(1, 31)}
    hits = [
        HIT
        | {"start_line": place, "end_line": place, "text": lines[place]}
        | {"before": [lines[number] for number in range(max(1, place - before), place)]}
        | {
            "after": [
                lines[number] for number in range(place + 1, min(30, place + after) + 1)
            ]
        }
        for place in places
    ]
    near = {
        number
        for number in lines
        if any(place - before <= number <= place + after for place in places)
    }
    order = sorted(near)
    told = [
        f"{number}{':' if number in places else '-'}{lines[number]}" for number in order
    ]
    assert list(render_query(cast("Any", {"results": hits}), FOR_MODEL)) == [
        "a/b.py",
        *told,
    ]


def test_paths_are_printed_in_their_own_bytes_and_from_where_the_reader_stands() -> (
    None
):
    raw = base64.b64encode(b"a/\xff.py").decode()
    stdout, _, _ = shown(
        {"results": [HIT | {"file_path_bytes": raw}]}, root="/r", cwd="/r/a/deep"
    )
    assert stdout == b"../\xff.py:3:x = 1\n"


@pytest.mark.parametrize(
    ("renderer", "item", "line"),
    [
        (render_query, {"file_path": "a.py"}, b"a.py"),
        (render_query, {"file_path": "a.py", "count": 3}, b"a.py:3"),
        (
            render_symbols,
            {
                "file_path": "a.py",
                "start_line": 2,
                "column": 5,
                "role": "call",
                "signature": "f()",
                "symbol_name": "f",
            },
            b"a.py:2:5:call: f()",
        ),
        (
            render_outline,
            {"file_path": "a.py", "symbols": ["1-2 def f():", "4 x"]},
            b"a.py\n  1-2 def f():\n  4 x",
        ),
        (None, {"file_path": "a.py"}, b"a.py"),
        (
            None,
            {"file_path": "a.py", "start_line": 2, "name": "f", "kind": "function"},
            b"a.py:2:function: f",
        ),
        (None, "plain", b"plain"),
        (None, {"other": 1}, b"other: 1"),
    ],
)
def test_items_of_a_list_are_lines(renderer: Any, item: Any, line: bytes) -> None:
    assert shown({"results": [item]}, renderer)[0] == line + b"\n"


def test_an_outline_for_a_model_says_no_more_than_it_needs() -> None:
    symbols = [
        "1-60 class Loom(Base):",
        "  4-9 def weave( self, a: int ) -> int:",
        "  12-20 async def _rest(cls):",
        "    14-15 def self_made(selfish):",
        "  40-45 def __eq__(self, other: object) -> bool:",
        "  48-60 def __init__(self) -> None:",
        "63-64 Loom.prototype.card = function (yarn)",
        "66-67 Loom.prototype.comb = function ()",
        "70 LIMIT",
        "71-90 export function spin (a, b)",
    ]
    outline = {
        "results": [{"file_path": "a", "symbols": symbols}],
        "left_out": 1200,
        "unmapped": {"docs": 12, "web": 3},
    }
    told = list(render_outline(cast("Any", outline), FOR_MODEL))
    assert told == [
        "a",
        "1 class Loom(Base)",
        "  4 weave(a: int ) -> int",
        "  12-20 async _rest()",
        "    14-15 self_made(selfish)",
        "  40 __eq__",
        "  48 __init__()",
        "63 Loom.prototype.card (yarn)",
        "66 .comb ()",
        "70 LIMIT",
        "71-90 export spin (a, b)",
        "[1,200 more left out; outline a part of it, or raise max_tokens]",
        "[files not mapped: docs/ (12), web/ (3); list_files, outline]",
    ]


def test_a_read_is_its_text_with_an_end_of_line() -> None:
    for renderer in (None, render_slice):
        for content, stdout in ((b"a\nb", b"a\nb\n"), (b"a\n", b"a\n"), (b"", b"")):
            text = {"file_path": "a", "start_line": 1, "content": content.decode()}
            assert shown(text, renderer)[0] == stdout


def test_nothing_found_is_status_1_with_what_was_skipped_and_suggested() -> None:
    coverage = {
        "complete": True,
        "files_searched": 7,
        "files_skipped": {"binary": 2, "too_large": 0},
    }
    stdout, stderr, status = shown(
        {"results": [], "coverage": coverage, "suggestions": ["needle"]}
    )
    assert (stdout, status) == (b"", 1)
    assert (
        stderr
        == b"fgrep: nothing found in 7 files (skipped: 2 binary)\nfgrep: did you mean needle?\n"
    )
    _, stderr, _ = shown(
        {"results": [], "coverage": coverage, "summary": "not understood"}
    )
    assert stderr.endswith(b"\nfgrep: not understood\n")


def test_why_nothing_was_found_is_a_note_not_a_result() -> None:
    coverage = {"complete": True, "files_searched": 1, "files_skipped": {}}
    nowhere = {
        "results": [],
        "reason": "no_name",
        "detail": "there is no name at this position",
        "coverage": coverage,
    }
    assert shown(nowhere, render_targets) == (
        b"",
        b"fgrep: there is no name at this position\n",
        1,
    )
    assert [*render_targets(cast("Any", nowhere), FOR_MODEL)] == [
        "[no_name: there is no name at this position]"
    ]
    broken = {
        "results": [],
        "coverage": {
            **coverage,
            "detail": "the pattern is not complete code in python",
        },
    }
    note = b"fgrep: nothing found in 1 file\nfgrep: the pattern is not complete code in python\n"
    assert shown(broken) == (b"", note, 1)


def test_an_answer_cut_by_its_deadline_says_so() -> None:
    _, stderr, status = shown(
        {"results": [HIT], "coverage": {"complete": False, "detail": "after 30 s"}}
    )
    assert (stderr, status) == (b"fgrep: incomplete: after 30 s\n", 0)


def test_more_than_is_shown_is_announced_with_the_way_to_it() -> None:
    assert (
        shown({"results": [HIT], "next": "abc", "total": 9})[1]
        == b"fgrep: 1 of 9 shown; continue with --cursor abc\n"
    )
    # A shell would read $a as a variable.
    assert shown({"results": [HIT], "next": "x,$a", "total": 9})[1].endswith(
        b" --cursor 'x,$a'\n"
    )
    assert shown({"results": [HIT], "next": "abc", "total": None})[1].startswith(
        b"fgrep: there is more;"
    )


def test_hits_by_words_are_not_passed_off_as_hits_of_the_text() -> None:
    _, stderr, status = shown({"results": [HIT], "mode": "words", "fallback": "words"})
    assert b"no line has the text itself" in stderr
    assert status == 1
    _, stderr, status = shown({"results": [HIT], "mode": "regex", "fallback": "regex"})
    assert b"as a regular expression" in stderr
    assert status == 0
    _, stderr, status = shown({"results": [HIT], "mode": "grep", "fallback": "grep"})
    assert b"as grep reads it" in stderr
    assert status == 0
    assert shown({"results": [HIT], "mode": "regex"})[1] == b""


def test_an_answer_without_a_renderer_is_an_outline_of_what_it_has() -> None:
    step = {"keyword": "WHEN", "text": "it\nrains\x1b", "line": 3}
    answer = {
        "valid": False,
        "given": ["a", "b"],
        "empty": [],
        "nothing": None,
        "steps": [step, {"line": 4}],
        "n": 0,
    }
    stdout, stderr, status = shown(answer, None, headings=True)
    assert stdout.decode() == (
        "valid: no\ngiven: a, b\nsteps:\n  - keyword: WHEN\n    text:\n      it\n      rains\\x1b\n    line: 3\n"
        "  - line: 4\nn: 0\n"
    )
    assert (stderr, status) == (b"", 0)


def test_a_time_after_the_year_9999_is_shown_as_a_number() -> None:
    assert format_time(0) == "1970-01-01T00:00:00Z"
    assert format_time(2**60) == "@1152921504606846976"
