"""The share of a question that names and paths have: stems and beginnings."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.search.fusion import BEGINNING, Cover, stem_of

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("encoder", "encoding"),
        ("encode", "encoded"),
        ("cookies", "cookie"),
        ("retries", "retry"),
        ("middlewares", "middleware"),
        ("stopped", "stopping"),
        ("parallelization", "parallel"),
        ("settings", "setting"),
    ],
)
def test_forms_of_one_word_have_one_stem(first: str, second: str) -> None:
    assert stem_of(first) == stem_of(second)


@pytest.mark.parametrize(
    "word", ["ing", "uses", "v2", "http2", "get_all", "ssl", "is", "bring"]
)
def test_what_has_no_ending_stays_or_keeps_three_letters(word: str) -> None:
    assert stem_of(word) == word or len(stem_of(word)) >= 3


def test_the_share_goes_by_the_weight_of_the_words() -> None:
    cover = Cover({"session": 3.0, "expired": 1.0})
    assert cover.share("SessionStore") == 0.75
    assert cover.share("expire_sessions") == 1.0
    assert cover.share("unrelated") == 0.0


def test_an_abbreviation_counts_less_than_the_word() -> None:
    cover = Cover({"configuration": 1.0, "environment": 1.0})
    assert cover.share("config") == pytest.approx(BEGINNING / 2)
    assert cover.share("env_config") == pytest.approx(BEGINNING)
    assert cover.share("en_co") == 0.0


def test_short_words_that_only_begin_alike_are_different_words() -> None:
    assert Cover({"input": 1.0}).share("in") == 0.0
    assert Cover({"map": 1.0}).share("mapping_of_maps") == 1.0
    assert Cover({"set": 1.0}).share("settle") == 0.0


def test_a_word_asked_in_two_forms_counts_once() -> None:
    assert Cover({"encode": 2.0, "encoder": 5.0, "video": 2.0}).share("encoding") == 0.5


SHARES = """
from itertools import combinations
from flashgrep.parts.meaning.search.fusion import Cover
words = ["brake", "engine", "signal", "tender", "wheel", "whistle"]
cover = Cover({word: 1 / (at + 3) for at, word in enumerate(words)})
print([cover.share(" ".join(names)) for names in combinations(words, 4)])
"""


@pytest.mark.slow
def test_names_that_cover_the_same_are_equal_in_every_process() -> None:
    # Python orders sets of words anew in each process, and sums depend on the order.
    shares = set[bytes]()
    for seed in range(4):
        done = subprocess.run(
            [sys.executable, "-c", SHARES],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            check=True,
        )
        shares.add(done.stdout)
    assert len(shares) == 1
    cover = Cover({"brake": 0.1, "signal": 0.2, "wheel": 0.3})
    assert cover.share("brake signal wheel") == cover.share("wheel signal brake")


def test_no_words_are_covered_by_nothing() -> None:
    assert Cover({}).share("anything") == 0.0
    assert Cover({"word": 0.0}).share("word") == 0.0


@given(
    st.dictionaries(WORDS, st.floats(0.01, 20), max_size=6), st.lists(WORDS, max_size=6)
)
def test_a_share_is_between_none_and_all_and_grows_with_the_name(
    words: dict[str, float], names: list[str]
) -> None:
    cover = Cover(words)
    shares = [cover.share(" ".join(names[:size])) for size in range(len(names) + 1)]
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 + 1e-9 for share in shares)
    if words:
        assert cover.share(" ".join(words)) == pytest.approx(1)
