"""What is refused says what and where; what is hostile stays linear; what is large stays bounded."""

import time

import pytest

from flashgrep.base.errors import BadPattern
from flashgrep.pattern import Matcher, Pattern
from flashgrep.pattern.lexer import Flags
from flashgrep.pattern.parser import as_word, parse_texts
from tests.support.pace import paced


@pytest.mark.parametrize(
    ("text", "at", "construct", "message"),
    [
        ("ab(?=c)", 2, "(?=", "look-around"),
        ("ab(?<!c)", 2, "(?<!", "look-around"),
        (r"(a)\1", 3, r"\1", "back-reference"),
        (r"a\K", 1, r"\K", "match start"),
        ("x(?>a)", 1, "(?>", "atomic"),
        ("x(?P=n)", 1, "(?P", "group"),
        ("(?#c)", 0, "(?#", "group"),
        ("é(a", 1, "(", "unclosed group"),
        ("a)", 1, ")", "unopened group"),
        ("[ab", 0, "[ab", "unclosed character class"),
        ("a[z-a]", 2, "z-a", "the start must be <= the end"),
        (r"[a-\d]", 3, r"\d", "must be a literal"),
        (r"[\b]", 1, r"\b", "character class"),
        ("*a", 0, "*", "repetition operator"),
        ("a|+", 2, "+", "repetition operator"),
        ("(?i)*", 4, "*", "repetition operator"),
        ("{2}", 0, "{", "repetition operator"),
        ("a{2", 1, "{2", "unclosed counted repetition"),
        ("a{x}", 1, "{x}", "valid decimal"),
        ("a{,3}", 1, "{,3}", "valid decimal"),
        ("a{3,1}", 1, "{3,1}", "the start must be <= the end"),
        ("a{99999999999}", 1, "{99999999999}", "too large"),
        (r"\Z", 0, r"\Z", "unrecognized escape"),
        (r"\é", 0, r"\é", "unrecognized escape"),
        ("\\", 0, "\\", "incomplete escape"),
        (r"\xg1", 0, r"\xg1", "hexadecimal"),
        (r"\u00", 0, r"\u00", "hexadecimal"),
        (r"\x{110000}", 0, r"\x{110000}", "scalar value"),
        (r"\x{d800}", 0, r"\x{d800}", "scalar value"),
        (r"\x{41", 0, r"\x{41", "unclosed"),
        (r"a\p{Foo}", 1, r"\p{Foo}", "property not found"),
        (r"\p{L", 0, r"\p{L", "unclosed property"),
        (r"(?-u)\pL", 5, r"\pL", "Unicode not allowed"),
        ("(?-u)[é]", 6, "é", "Unicode not allowed"),
        ("(?i-u:é)", 6, "é", "Unicode not allowed"),
        ("(?z)", 2, "z", "unrecognized flag"),
        ("(?ii)", 3, "i", "duplicate flag"),
        ("(?i-)", 3, "-", "dangling"),
        ("(?i", 0, "(?i", "unclosed group"),
        ("(?P<1>a)", 4, "1", "capture group character"),
        ("(?P<n>a)(?<n>b)", 11, "n", "duplicate capture group name"),
        ("(?<n", 3, "n", "unclosed capture group name"),
        ("(?<>a)", 2, "<>", "empty capture group name"),
        (r"\b{foo}", 3, "foo", "word boundary"),
        (r"\b{start", 2, "{start", "word boundary"),
        (r"a\nb", 1, "\\n", "multiline"),
        ("a\nb", 1, "\\n", "multiline"),
    ],
)
def test_a_refused_pattern_names_the_construct_and_its_position(
    text: str, at: int, construct: str, message: str
) -> None:
    with pytest.raises(BadPattern) as caught:
        Pattern(texts=(text,)).matcher()
    assert (caught.value.data["at"], caught.value.data["construct"]) == (at, construct)
    assert message in caught.value.message
    assert str(at) in caught.value.message


@pytest.mark.parametrize("text", ["(?=a)", r"(a)\2", r"\K", "(?>a)"])
def test_what_only_backtracking_can_run_says_so(text: str) -> None:
    with pytest.raises(BadPattern, match='engine "backtracking"'):
        Pattern(texts=(text,)).grams()


@pytest.mark.parametrize(
    "text",
    [
        "(?:a{1000}){100}",
        "(((a{300}){300}){300}){300}",
        "(" * 300 + ")" * 300,
        "[" * 300,
    ],
)
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    started = time.thread_time()
    with pytest.raises(BadPattern):
        Pattern(texts=(text,)).matcher()
    assert time.thread_time() - started < paced(2)


def test_a_pattern_has_at_least_one_text_and_a_bounded_length() -> None:
    for texts in [(), ("a" * 70_000,)]:
        with pytest.raises(BadPattern):
            Pattern(texts=texts).matcher()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(a*)*b", False),
        ("(?:a|a)*b", False),
        ("(x+x+)+y", False),
        ("(?:a?){50}a{50}b", False),
        ("(?:(?:a{10}){10}){10}b", False),
        (r"(?:\b|a)*b", False),
        (r"(\w*a)+$", True),
        (r"\b(?:a+)+\b{end-half}b", False),
    ],
)
def test_hostile_patterns_stay_linear_in_the_text(text: str, *, word: bool) -> None:
    matcher = Pattern(texts=(text,), word=word).matcher()
    matcher.search(b"a" * 100)
    small, large = (
        _seconds(matcher, b"a" * length + "é".encode()) for length in (10_000, 80_000)
    )
    assert large < 40 * max(small, 0.001)


def _seconds(matcher: Matcher, data: bytes) -> float:
    started = time.monotonic()
    matcher.search(data)
    return time.monotonic() - started


def test_a_word_search_that_must_be_confirmed_stays_exact_on_long_lines() -> None:
    line = ("é foo " * 2_000 + "foo\n").encode()
    matcher = Matcher(as_word(parse_texts((r"\w*oo",), Flags(), smart=False)))
    found = next(matcher.lines(line, all_spans=True))
    assert len(found.spans) == 2_001
    assert found.spans[-1] == (len(line) - 4, len(line) - 1)


def test_comments_and_blanks_are_skipped_in_verbose_mode() -> None:
    matcher = Pattern(
        texts=("(?x) f o # a comment with ) and (\n o [ a - c ]",)
    ).matcher()
    assert matcher.search(b"foob")
    assert not matcher.search(b"f o o b")


def test_a_pattern_is_a_value_that_prints_itself() -> None:
    pattern = Pattern(texts=("foo", "b\\w"), word=True)
    assert pattern == Pattern(texts=("foo", "b\\w"), word=True)
    assert str(pattern) == "regex smart word 'foo' | 'b\\\\w'"
    assert pattern.matcher() is Pattern(texts=("foo", "b\\w"), word=True).matcher()


def test_lines_stop_at_the_limit_and_carry_the_first_span() -> None:
    matcher = Pattern(texts=("o+",)).matcher()
    found = list(matcher.lines(b"foo boo\nx\n\nzoo\nno", limit=2))
    assert [tuple(line) for line in found] == [
        (1, 1, 0, 7, ((1, 3),)),
        (4, 4, 11, 14, ((12, 14),)),
    ]
    assert list(matcher.lines(b"foo", limit=0)) == []


@pytest.mark.parametrize(
    "text", [r"(?<=a)b", "(?:a{1000}){1000}", r"\p{age=3.0}", "(" * 201 + ")" * 201]
)
def test_what_the_table_of_differences_calls_refused_is_refused(text: str) -> None:
    with pytest.raises(BadPattern):
        Pattern(texts=(text,)).matcher()


def test_a_backslash_before_a_control_character_means_that_character() -> None:
    matcher = Pattern(texts=("a\\\tb",), case="sensitive").matcher()
    assert matcher.search(b"a\tb")
    assert not matcher.search(b"a\\tb")
