"""Identifiers are counted and cut for many texts at once as they are one by one."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.identifiers import count_identifiers, find_identifiers, places_of, split_all, split_words

IDENTIFIERS = st.lists(st.text(alphabet="aAbBzZ019_", max_size=12).map(str.encode), max_size=12)
TEXTS = st.lists(st.text(alphabet="aB1_ é.\n", max_size=30).map(str.encode), max_size=6)


@given(IDENTIFIERS)
def test_many_identifiers_are_cut_as_each_by_itself(identifiers: list[bytes]) -> None:
    words, lengths = split_all(identifiers)
    one_by_one = [split_words(identifier) for identifier in identifiers]
    assert words == [word for found in one_by_one for word in found]
    assert lengths.tolist() == [len(found) for found in one_by_one]


def test_capitals_and_digits_begin_words() -> None:
    assert split_words(b"getHTTPResponse_v2") == [b"get", b"http", b"response", b"v", b"2"]
    assert split_words(b"__") == []


@given(TEXTS)
def test_each_text_counts_its_own_identifiers(texts: list[bytes]) -> None:
    counted = count_identifiers(texts)
    assert len(set(counted.identifiers)) == len(counted.identifiers)
    found: list[Counter[bytes]] = [Counter() for _ in texts]
    for text, number, count in zip(
        counted.texts.tolist(), counted.numbers.tolist(), counted.counts.tolist(), strict=True
    ):
        found[text][counted.identifiers[number]] = count
    assert found == [Counter(find_identifiers(text)) for text in texts]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.lists(st.integers(0, len(sizes) - 1), max_size=8))
    )
)
def test_places_of_rows_are_those_of_their_items(drawn: tuple[list[int], list[int]]) -> None:
    sizes, rows = drawn
    flat = [(row, item) for row, size in enumerate(sizes) for item in range(size)]
    places = places_of(np.array(rows, np.int64), np.array(sizes, np.int64))
    assert [flat[place] for place in places.tolist()] == [(row, item) for row in rows for item in range(sizes[row])]
