"""Small decisions of patterns that larger tests pass over: positions told, overlapping words, memory, line numbers."""

import re

import pytest
from re2 import _re2

from flashgrep.base.errors import BadPattern
from flashgrep.pattern import Pattern
from flashgrep.pattern.matcher import (
    MAX_MEM,
    MOST_LINES,
    Re2Finder,
    RequiredFinder,
    _options,
)


@pytest.mark.parametrize(
    ("text", "at", "construct"),
    [
        ("ab(?)", 3, "?"),
        ("ab(?", 3, "?"),
        ("(?-u)[é]", 6, "é"),
        ("(?-u)x[aé]", 8, "é"),
        (r"(\pL{300}){300}", 0, ""),
    ],
)
def test_what_is_refused_is_pointed_at(text: str, at: int, construct: str) -> None:
    with pytest.raises(BadPattern) as caught:
        Pattern(texts=(text,), mode="regex").matcher()
    assert (caught.value.data["at"], caught.value.data["construct"]) == (at, construct)


def test_a_word_is_found_where_it_overlaps_a_place_that_is_none() -> None:
    matcher = Pattern(texts=("--",), mode="literal", word=True).matcher()
    assert [match.spans for match in matcher.lines(b"x--- y\n")] == [((2, 4),)]
    assert not matcher.search(b"x---y\n")


@pytest.mark.parametrize(
    ("data", "number"), [(b"\nab\n", 2), (b"ab", 1), (b"\n\n\nab", 4)]
)
def test_lines_are_counted_from_the_first(data: bytes, number: int) -> None:
    matcher = Pattern(texts=("a[b]",), mode="regex").matcher()
    assert [match.number for match in matcher.lines(data)] == [number]


@pytest.mark.slow
def test_a_pattern_that_needs_more_memory_than_usual_gets_it() -> None:
    large = b"(?:[a-m][n-z]){1,1000}" * 300
    assert b"too large" in _re2.RE2(large, _options(MAX_MEM)).error()
    assert Re2Finder(large).find(b"- " + b"an" * 300, 0, 602) == (2, 602)
    with pytest.raises(BadPattern, match="cannot be compiled"):
        Re2Finder(b"(")


def test_a_class_that_ignores_case_folds_ascii_alone_where_unicode_is_off() -> None:
    plain = Pattern(texts=("(?i-u:[k])",), mode="regex", case="sensitive").matcher()
    folding = Pattern(texts=("(?i)[k]",), mode="regex", case="sensitive").matcher()
    kelvin = "\u212a\n".encode()
    assert plain.search(b"K\n")
    assert not plain.search(kelvin)
    assert folding.search(kelvin)


@pytest.mark.parametrize(
    "text",
    [
        r"\w+_get\(",
        r"^\s*(?:x|yy) needle\b",
        r"[a-z]+(needle)+;?$",
        r"(?:\w+\.)?needle=\d",
        r"q?needle\d{2}",
    ],
)
def test_only_lines_that_have_the_required_bytes_are_searched(text: str) -> None:
    matcher = Pattern(texts=(text,), mode="regex", case="sensitive").matcher()
    assert isinstance(matcher._finder(b"")[0], RequiredFinder)
    lines = [
        "a_get(",
        "_get(",
        "x needle",
        "  yy needle s",
        "yy needles",
        "needleneedle;",
        "bneedle",
        "b.needle=1",
        "",
    ]
    near = ["needle"] * (MOST_LINES + 1) + ["needle= needle12"]
    for end in ("\n", "\r\n"):
        data = end.join([*lines, *near, *lines]).encode()
        each = [
            number
            for number, line in enumerate(data.split(b"\n"), 1)
            if re.search(text.encode(), line)
        ]
        assert [match.number for match in matcher.lines(data)] == each
        assert matcher.count_lines(data) == len(each)
