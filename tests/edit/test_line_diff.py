"""The unified diff of two texts."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.parts.edit.line_diff import format_diff

LONG = "".join(f"line {number}\n" for number in range(9_000))
ALIKE = "same\n" * 9_000


def test_a_diff_shows_a_line_that_changed_in_its_place_among_lines_like_the_old_one() -> (
    None
):
    old = "a\nb\n" + "same\n" * 4 + "z\n"
    new = old.replace("same", "new", 1)
    assert (
        format_diff(old, new, "f").splitlines()[2:]
        == ["@@ -1,6 +1,6 @@", " a", " b", "-same", "+new"] + [" same"] * 3
    )


def test_two_changes_at_the_ends_of_a_long_text_are_two_hunks() -> None:
    new = LONG.replace("line 5\n", "first\n").replace("line 8995\n", "last\nmore\n")
    changes = [
        line for line in format_diff(LONG, new, "f").splitlines() if line[0] in "-+@"
    ]
    assert changes[2:] == [
        "@@ -3,7 +3,7 @@",
        "-line 5",
        "+first",
        "@@ -8993,7 +8993,8 @@",
        "-line 8995",
        "+last",
        "+more",
    ]


def test_a_long_text_without_a_line_of_its_own_is_one_replaced_block() -> None:
    """The fallback: comparing such lines takes minutes."""
    new = f"one\n{ALIKE}two\n{ALIKE}"
    diff = format_diff(f"two\n{ALIKE}", new, "f")
    assert diff.count("@@ -") == 1


@settings(max_examples=20, deadline=None)
@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, 8_999),
            st.sampled_from(["", "new\n", "same\nsame\n", "line 4\n"]),
        ),
        max_size=6,
    ),
    moved=st.integers(0, 8_999),
)
def test_a_diff_of_long_texts_gives_the_new_one(
    edits: list[tuple[int, str]], moved: int
) -> None:
    lines = LONG.splitlines(keepends=True)
    for number, text in edits:
        lines[number] = text
    lines.append(lines.pop(moved))
    new = "".join(lines)
    assert apply_diff(LONG, format_diff(LONG, new, "f")) == new


def apply_diff(old: str, diff: str) -> str:
    """Return the new text, where the diff's lines are those of the old one."""
    before = old.splitlines(keepends=True)
    after = list[str]()
    place = 0
    for line in diff.splitlines(keepends=True)[2:]:
        hunk = re.match(r"@@ -(\d+),(\d+) ", line)
        if hunk is not None:
            # An empty range names the line before it.
            start = int(hunk[1]) - (hunk[2] != "0")
            after += before[place:start]
            place = start
        elif line[0] == "+":
            after.append(line[1:])
        else:
            assert before[place] == line[1:]
            after += [line[1:]] * (line[0] == " ")
            place += 1
    return "".join(after + before[place:])
