"""What a call is made on, as its text tells."""

import pytest

from flashgrep.ingest.parse.describe import receiver


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
def test_a_receiver_is_told_by_what_stands_before_the_name(code: str, language: str, expected: str | None) -> None:
    assert receiver(code.encode(), code.index("call"), language) == expected
