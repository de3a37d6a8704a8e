"""What a call is made on, as its text tells."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.symbols.parse.describe import receiver


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ("call()", "python", None),
        ("one.call()", "python", "one"),
        ("one\n    .call()", "javascript", "one"),
        ("make().call()", "python", ""),
        ("'text'.call()", "python", ""),
        ("`text`.call()", "typescript", ""),
        ("one?.call()", "typescript", "one"),
        ("one!.call()", "typescript", "one"),
        ("one!!.call()", "kotlin", "one"),
        ("one&.call()", "ruby", "one"),
        ("options[:one]&.call()", "ruby", ""),
        ("ready?.call()", "ruby", "ready"),
        ("each { |one| one }.call()", "ruby", ""),
        ("0..call()", "ruby", None),
        ("$one->call()", "php", "one"),
        ("$one?->call()", "php", "one"),
        ("One::call()", "rust", "One"),
        ("One::<u8>::call()", "rust", ""),
        ("List<int>.call()", "csharp", ""),
        ("one > ::call()", "cpp", None),
        ("{ .call = 1 }", "c", None),
        ("one:call()", "lua", "one"),
    ],
)
def test_a_receiver_is_read_from_the_text_before_the_name(
    code: str, language: str, expected: str | None
) -> None:
    assert receiver(code.encode(), code.index("call"), language) == expected


AS_WRITTEN = re.compile(
    rb"(?:(\w+)[!?]?|[)\]}\"'`]!?)\s*(?:\?\.|!!\.|&\.|\?->|\.|->|::)\s*$|(?<=>)(?:\?\.|\.|::)\s*$"
)
"""What a receiver is, without what spares time."""


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "b_1",
                "é",
                ".",
                ":",
                "::",
                "->",
                "?.",
                "!!.",
                "&.",
                "?->",
                ")",
                ">",
                "!",
                " ",
                "\n",
            ]
        )
    )
)
def test_what_spares_time_finds_the_same_receivers(parts: list[str]) -> None:
    before = "".join(parts).encode()[-80:]
    found = AS_WRITTEN.search(before)
    assert receiver(before + b"call", len(before), "c") == (
        None if found is None else (found[1] or b"").decode()
    )


def test_a_receiver_longer_than_what_is_looked_at_is_one() -> None:
    assert receiver(b"x" * 200 + b".call", 201, "c") == "x" * 79
