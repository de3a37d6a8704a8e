"""Identifiers counted and cut a batch at a time, against one at a time."""

import gc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.identifiers import (
    count_identifiers,
    find_identifiers,
    find_identifiers_with,
    split_all,
    split_words,
)

TEXTS = st.lists(st.text("aBc_9 (.é", max_size=20), max_size=6)


@given(TEXTS)
def test_each_text_has_its_own_counts(texts: list[str]) -> None:
    data = [text.encode() for text in texts]
    counted = count_identifiers(data)
    found = [Counter[bytes]() for _ in data]
    for text, number, count in zip(
        counted.texts.tolist(),
        counted.numbers.tolist(),
        counted.counts.tolist(),
        strict=True,
    ):
        found[text][counted.identifiers[number]] = count
    assert found == [Counter(find_identifiers(text)) for text in data]


@given(st.text("aBc_9 (.é", max_size=40), st.lists(st.text("abc_9", max_size=3)))
def test_those_with_some_letters_are_found_in_any_case(
    text: str, letters: list[str]
) -> None:
    data = text.encode()
    parts = [part.encode() for part in letters]
    having = {
        identifier
        for identifier in find_identifiers(data)
        if any(part in identifier.lower() for part in parts)
    }
    assert find_identifiers_with(data, parts) - {b""} == having


@given(TEXTS)
def test_all_are_cut_as_each_is(texts: list[str]) -> None:
    identifiers = [
        identifier for text in texts for identifier in find_identifiers(text.encode())
    ]
    words, lengths = split_all(identifiers)
    assert words == [
        word for identifier in identifiers for word in split_words(identifier)
    ]
    assert lengths.tolist() == [
        len(split_words(identifier)) for identifier in identifiers
    ]


@pytest.mark.slow
def test_what_was_counted_is_freed_without_the_garbage_collector() -> None:
    # Indexing processes run it seldom: a circle that held the identifiers of each batch
    # took 3.5 GB on the kernel.
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            count_identifiers([b"alpha beta", b"alpha"])
        assert gc.collect() == 0
    finally:
        gc.enable()
