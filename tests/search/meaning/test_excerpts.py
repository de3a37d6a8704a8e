"""A function that does not fit is shown by whole statements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.search.excerpts import (
    MOST_OF_STATEMENT,
    choose_lines,
    join_statements,
)


def number(code: str) -> dict[int, str]:
    """Return the lines of a text by number."""
    return dict(enumerate(code.split("\n"), 1))


@pytest.mark.parametrize(
    ("code", "statements"),
    [
        ("a()\nb()", [[1], [2]]),
        ("call(\n  one,\n  two,\n)\nnext()", [[1, 2, 3, 4], [5]]),
        ("x = [\n  (1),\n]\ny = ')'\nz", [[1, 2, 3], [4], [5]]),
        ('say(\'(\')\nsay("[\\"(")\nend', [[1], [2], [3]]),
        ("items\n  .map(f)\n  ?.first\nrest", [[1, 2, 3], [4]]),
        ("if (a\n    && b) {\n  go();\n}", [[1, 2], [3], [4]]),
        (")\n)\na", [[1, 2], [3]]),
    ],
)
def test_a_statement_ends_where_its_parentheses_are_closed(
    code: str, statements: list[list[int]]
) -> None:
    joined = join_statements(number(code))
    assert list(map(list, dict.fromkeys(map(tuple, joined.values())))) == statements


def test_no_line_of_a_call_is_shown_without_the_others() -> None:
    calls = "\n".join(f"call(\n  {at},\n  'turn',\n)" for at in range(40))
    lines = number(f"def drive():\n{calls.replace('17,', 'brake,')}")
    chosen = choose_lines(lines, {1}, range(2, 162), [[b"brake"]], 300)
    statements = join_statements(lines)
    assert 71 in chosen
    assert chosen == {1} | {line for at in chosen - {1} for line in statements[at]}
    assert sum(len(lines[line]) + 1 for line in chosen) <= 300


@given(
    st.lists(st.sampled_from(["a(", ")", "b", "  .c", "[", "]", "'('", "brake"])),
    st.integers(0, 120),
)
def test_every_line_is_in_one_statement_and_what_is_chosen_fits(
    code: list[str], size: int
) -> None:
    lines = dict(enumerate(code, 1))
    statements = join_statements(lines)
    assert [*statements] == [*lines]
    for line, statement in statements.items():
        assert line in statement
        assert len(statement) <= MOST_OF_STATEMENT
        assert statement == [*range(statement[0], statement[-1] + 1)]
    chosen = choose_lines(lines, set(), range(1, len(code) + 1), [[b"brake"]], size)
    length = sum(len(lines[line]) + 1 for line in chosen)
    # The best line is shown in any case.
    assert length <= max(size, len("brake") + 1)
    assert ("brake" in code) == any(lines[line] == "brake" for line in chosen)
