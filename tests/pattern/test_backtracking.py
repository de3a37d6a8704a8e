"""The backtracking engine: the same lines where both engines can tell, look-around besides, and an end to runaways."""

import time
from typing import Any

import pytest

from flashgrep.base.errors import BadPattern, DeadlineExceeded
from flashgrep.pattern import Pattern
from flashgrep.pattern.backtracking import Backtracker

TEXT = "foo bar\nfoobar é foo\n\nÉTÉ été\nlast foo".encode() + b" \xff foo\n\nend"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("foo", {}),
        ("foo", {"word": True}),
        ("été", {"case": "insensitive"}),
        ("Foo", {"case": "smart"}),
        (r"o\b", {}),
        ("f.o", {"mode": "literal"}),
        ("o+ ?", {}),
        ("^$", {}),
        ("end", {"line": True}),
        ("r\\nf|\\n\\n", {"multiline": True}),
        ("foo.*last", {"multiline": True, "dotall": True}),
    ],
)
def test_both_engines_find_the_same_lines(text: str, options: dict[str, Any]) -> None:
    pattern = Pattern(texts=(text,), **options)
    with Backtracker(pattern, seconds=20) as backtracker:
        for all_spans in (True, False):
            expected = list(pattern.matcher().lines(TEXT, all_spans=all_spans))
            assert backtracker.lines(TEXT, all_spans=all_spans) == expected
        assert backtracker.search(TEXT) == bool(expected)
        assert backtracker.lines(TEXT, limit=1) == expected[:1]
        assert backtracker.lines(b"") == []


def test_look_around_and_back_references_run() -> None:
    with Backtracker(
        Pattern(texts=(r"(?<=o)bar|(\w)\1(?!\w)",)), seconds=20
    ) as backtracker:
        found = backtracker.lines(b"foobar\nbar\nfoo x\n", all_spans=True)
    assert [(line.number, line.spans) for line in found] == [
        (1, ((3, 6),)),
        (3, ((12, 14),)),
    ]


def test_a_runaway_pattern_ends_at_its_limit() -> None:
    started = time.monotonic()
    backtracker = Backtracker(Pattern(texts=(r"(a*)*\b(?=c)",)), seconds=2)
    with pytest.raises(DeadlineExceeded):
        backtracker.lines(b"a" * 50)
    assert time.monotonic() - started < 10
    assert backtracker._worker.returncode is not None


def test_a_pattern_that_the_engine_refuses_says_where() -> None:
    with pytest.raises(BadPattern) as caught:
        Backtracker(Pattern(texts=("ab(?<=a*)",)), seconds=20)
    assert caught.value.data["at"] >= 0
    with pytest.raises(BadPattern) as caught:
        Backtracker(Pattern(texts=("ab)",)), seconds=20)
    assert caught.value.data["at"] == 2


@pytest.mark.slow
def test_large_texts_pass_in_both_directions() -> None:
    data = b"foo\n" * 100_000
    with Backtracker(Pattern(texts=("fo(?=o)",)), seconds=60) as backtracker:
        assert len(backtracker.lines(data)) == 100_000
