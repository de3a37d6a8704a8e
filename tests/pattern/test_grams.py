"""The law of gram planning: whatever matches holds the grams its pattern asks for; and the plans are worth having."""

import re
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import BadPattern
from flashgrep.pattern import (
    ANYTHING,
    GRAM,
    NOTHING,
    AllOf,
    AnyOf,
    Gram,
    GramExpr,
    Pattern,
)
from flashgrep.pattern.gram_plan import FOLDS

FOLD = bytes.maketrans(bytes(range(0x41, 0x5B)), bytes(range(0x61, 0x7B)))


def grams_of(data: bytes) -> set[bytes]:
    r"""Return a document's grams: each line folded and ended by "\n", every window of four bytes but the blank ones."""
    lines = data.translate(FOLD).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    windows = {
        line[at : at + GRAM]
        for line in (text + b"\n" for text in lines)
        for at in range(len(line) - GRAM + 1)
    }
    marks = (
        {FOLDS}
        if "\u017f".encode() in data or "\u212a".encode() in data
        else set[bytes]()
    )
    return {window for window in windows if window.strip(b" \t\r\n")} | marks


def holds(expression: GramExpr, grams: set[bytes]) -> bool:
    """Evaluate an expression over a document's grams."""
    match expression:
        case Gram(value, ends_word=True):
            return any(
                gram.startswith(value) and not re.match(rb"\w", gram[-1:])
                for gram in grams
            )
        case Gram(value):
            return any(gram.startswith(value) for gram in grams)
        case AllOf(parts):
            return all(holds(part, grams) for part in parts)
        case AnyOf(parts):
            return any(holds(part, grams) for part in parts)


words = [
    "foo",
    "spin_lock",
    "Kelvin",
    "task",
    "straße",
    "日本語",
    "été",
    "    ",
    "a b",
    "x",
    "é",
    "\\.",
    "end",
    "ab\tc",
]
atoms = st.sampled_from(words) | st.sampled_from(
    [
        ".",
        r"\w",
        "[ab]",
        "[a-f]x",
        r"\s",
        "$",
        "^",
        r"\b",
        "[^a]",
        r"\n",
        r"\r",
        "(?-u:\\xff)",
        "[é日]k",
        "(?i:ks)",
        "[a&&b]",
    ]
)
patterns = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=5).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("|".join)
        | inner.map("({})".format)
        | st.builds(
            "(?:{}){}".format,
            inner,
            st.sampled_from(["*", "+", "?", "{2}", "{2,3}", "{0,2}", "{3,}"]),
        )
    ),
    max_leaves=12,
)
folds = [
    "\u212aelvin",
    "ta\u017f\u212a",
    "STRASSE",
    "STRAẞE",
    "SPIN_LOCK",
    "ÉTÉ",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "\xff",
]
pieces = st.sampled_from([word.replace("\\", "") for word in words] + folds).map(
    lambda text: b"\xff" if text == "\xff" else text.encode()
)
modes = st.fixed_dictionaries(
    {
        "case": st.sampled_from(["sensitive", "insensitive", "smart"]),
        "mode": st.sampled_from(["regex", "regex", "literal"]),
        "word": st.booleans(),
        "line": st.booleans(),
        "multiline": st.booleans(),
        "crlf": st.booleans(),
    }
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(patterns, min_size=1, max_size=2),
    options=modes,
    data=st.lists(pieces, max_size=12).map(b"".join),
)
@example(texts=["foo"], options={}, data=b"foo")
@example(texts=["   x"], options={}, data=b"    x")
@example(texts=["oo\\n"], options={"multiline": True}, data=b"foo\n")
@example(texts=["foo\\nbar"], options={"multiline": True}, data=b"foo\nbar")
@example(texts=["kelvin"], options={"case": "insensitive"}, data="\u212aELVIN".encode())
@example(texts=["foo"], options={"word": True}, data=b"foo")
@example(texts=["foo"], options={"word": True}, data=b"foo\xff")
@example(texts=["foo"], options={"word": True}, data="foo\u201d".encode())
@example(texts=[r"\bfoo\b"], options={}, data=b"foo_ foo\r\n")
@example(
    texts=["task"],
    options={"word": True, "case": "insensitive"},
    data="ta\u017f\u212a.".encode(),
)
def test_what_matches_holds_the_grams_its_pattern_asks_for(
    texts: list[str], options: dict[str, str], data: bytes
) -> None:
    pattern = Pattern(texts=tuple(texts), **options)  # type: ignore[arg-type] # drawn from the fields' values
    try:
        matches = pattern.matcher().search(data)
    except BadPattern:
        return
    if matches:
        assert holds(pattern.grams(), grams_of(data)), str(pattern.grams())


@given(
    st.text(alphabet="abKkSsz_0 .(é\t", min_size=1, max_size=70),
    st.sampled_from(["sensitive", "insensitive", "smart"]),
)
def test_the_short_way_for_literals_plans_as_the_long_one(
    text: str, case: Literal["sensitive", "insensitive", "smart"]
) -> None:
    pattern = Pattern(texts=(text,), mode="literal", case=case)
    as_regex = Pattern(texts=(re.escape(text),), mode="regex", case=case)
    assert pattern.grams() == as_regex.grams()


@pytest.mark.parametrize("lines", range(1, 4))
def test_every_text_is_found_by_grams_of_its_own_substrings(lines: int) -> None:
    data = "\n".join(
        ["  int été = Spin_Lock(x); ", "日本 \t\tz", "\tend"][:lines]
    ).encode()
    text = data.decode()
    for start in range(len(text)):
        for stop in range(start + 1, len(text) + 1):
            pattern = Pattern(texts=(text[start:stop],), mode="literal", multiline=True)
            assert pattern.matcher().search(data)
            assert holds(pattern.grams(), grams_of(data)), text[start:stop]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("foo", "'foo'…"),
        ("Foo_", "'foo_'"),
        ("foo$", "'foo\\n'"),
        ("fo", "ANYTHING"),
        (".*", "ANYTHING"),
        ("    ", "ANYTHING"),
        ("   x", "'   x'"),
        ("[a&&b]foo", "NOTHING"),
        ("a(bcd|efg)h", "(('abcd' AND 'bcdh') OR ('aefg' AND 'efgh'))"),
        (
            "(foo|bar)+baz",
            "(('bar'… OR 'foo'…) AND (('barb' AND 'arba' AND 'rbaz') OR ('foob' AND 'ooba' AND 'obaz')))",
        ),
        (r"foo\nbar_x", "('foo\\n' AND 'bar_' AND 'ar_x')"),
        (r"devm_\w+_get\(", "('devm' AND 'evm_' AND '_get' AND 'get(')"),
        ("x{3,5}yz", "('xxxy' AND 'xxyz')"),
        ("(?i)skin", r"('skin' OR '\n\n\n\n')"),
        ("é日", "('\\xc3\\xa9\\xe6\\x97' AND '\\xa9\\xe6\\x97\\xa5')"),
    ],
)
def test_plans_read_as_expected(text: str, plan: str) -> None:
    expression = Pattern(
        texts=(text,), case="sensitive", multiline="\\n" in text
    ).grams()
    assert str(expression) == plan


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("dev", r"'dev'\W"),
        ("netdev", r"('netd' AND 'etde' AND 'tdev' AND 'dev'\W)"),
        ("devdev", r"('devd' AND 'evde' AND 'vdev' AND 'dev'\W)"),
        ("fo", "ANYTHING"),
        ("cold", r"('cold' AND 'old'\W)"),
    ],
)
def test_a_whole_word_ends_where_no_letter_follows(text: str, plan: str) -> None:
    for pattern in (
        Pattern(texts=(text,), case="sensitive", word=True),
        Pattern(texts=(text,), mode="literal", case="sensitive", word=True),
        Pattern(texts=(rf"\b{text}\b",), case="sensitive"),
    ):
        assert str(pattern.grams()) == plan


def test_plans_stay_small_and_sound_for_large_patterns() -> None:
    for texts in [
        ("x" + "abcdefghij" * 100,),
        tuple(f"name{number}" for number in range(500)),
        ("(?i)" + "task" * 30,),
    ]:
        expression = Pattern(texts=texts).grams()
        assert _size(expression) <= 64 * 64
        assert holds(expression, grams_of(texts[0].removeprefix("(?i)").encode()))


def _size(expression: GramExpr) -> int:
    return 1 if isinstance(expression, Gram) else sum(map(_size, expression.parts))


def test_grams_never_hold_a_line_end_but_at_their_end() -> None:
    expression = Pattern(texts=("one\\ntwo_\\n\\nthree$",), multiline=True).grams()
    assert isinstance(expression, AllOf)
    values = [part.value for part in expression.parts if isinstance(part, Gram)]
    assert values
    assert all(
        b"\n" not in value[:-1] and (len(value) == GRAM or b"\n" not in value)
        for value in values
    )


def test_the_constants_are_the_empty_expressions() -> None:
    assert str(ANYTHING) == "ANYTHING"
    assert holds(ANYTHING, set())
    assert not holds(NOTHING, {b"some"})
