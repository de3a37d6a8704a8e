"""Adjacent words of a question that code has side by side."""

from dataclasses import replace
from pathlib import Path

import pytest

from flashgrep.parts.meaning.search.fusion import RULES, query_words
from flashgrep.parts.meaning.search.word_pairs import WordPairs
from flashgrep.parts.meaning.search.word_search import forms_of
from tests.support.meaning import best, meant

ALL = 0b11111111


def make_pairs(question: str) -> WordPairs:
    """Return the pairs of a question's words."""
    families = {
        word: dict.fromkeys((word, *forms_of(word)), 1.0)
        for word in query_words(question)
    }
    return WordPairs(families)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        (b"def check(retryLimit): ...", 1.0),
        (b"RETRY_LIMIT = 3", 1.0),
        (b"# the retry limit is 3", 1.0),
        (b"retrying-limited", 1.0),
        (b"<a retry-limit>", 1.0),
        (b"limit retry", 0.0),
        (b"retry\nlimit", 0.0),
        (b"retry the limit", 0.0),
        (b"", 0.0),
    ],
)
def test_words_are_side_by_side_in_names_and_prose(text: bytes, share: float) -> None:
    assert make_pairs("what is the retry limit").share(ALL, text) == share


def test_each_pair_counts_alike_and_only_with_both_words() -> None:
    pairs = make_pairs("size of the page cache")
    assert pairs.share(0b111, b"page_cache") == 0.5
    assert pairs.share(0b111, b"size page cache") == 1.0
    # A chunk that is not found by its second word does not have it.
    assert pairs.share(0b001, b"size page cache") == 0.0
    assert not pairs.find_possible(0b101)
    assert make_pairs("cache").share(ALL, b"cache") == 0.0


async def test_of_files_with_the_same_words_that_with_the_phrase_is_first(
    tmp_path: Path,
) -> None:
    apart = b"def %b(pages):\n    # page and then size of the cache\n    return pages\n"
    beside = (
        b"def %b(pages):\n    # and then size of the page cache\n    return pages\n"
    )
    files = {"a.py": apart % b"measure", "b.py": beside % b"measure"}
    question = "what does measure the page cache"
    async with meant(tmp_path, files) as workspace:
        without = replace(RULES, side_by_side=0.0)
        ranked = await best(workspace, question, passages=True, rules=without)
        assert ranked == [b"a.py", b"b.py"]
        ranked = await best(workspace, question, passages=True)
        assert ranked == [b"b.py", b"a.py"]
