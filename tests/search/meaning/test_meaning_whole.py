"""How similar a whole file is: the sum of its chunks' vectors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.index.chunks import ChunkMap
from flashgrep.parts.meaning.index.vectors import (
    Floats,
    Vectors,
    append,
    new_name,
    quantise,
)
from flashgrep.parts.meaning.search.chunk_index import ChunkState, whole_similarity


def known(folder: Path, sizes: list[int], seed: int) -> tuple[ChunkState, Floats]:
    """Return an index of texts with so many chunks each, numbered from 11, and its vectors."""
    rows = (
        np.random.default_rng(seed).standard_normal((sum(sizes), 24)).astype(np.float32)
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    file = folder / new_name()
    append(file, 0, quantise(rows))
    vectors = Vectors(file, 24)
    vectors.grow(len(rows))
    counts = np.array(sizes, np.int64)
    first = np.cumsum(counts) - counts
    of = ChunkMap.of(first, counts, np.arange(11, 11 + len(sizes)))
    return ChunkState(of, of, vectors, None, ""), rows


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
)
def test_a_text_is_as_similar_as_the_sum_of_its_chunks(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int
) -> None:
    index, rows = known(tmp_path_factory.mktemp("whole"), sizes, seed)
    question = rows[0]
    text_ids = set(range(11, 11 + len(sizes), 2))
    found = whole_similarity(index, question, text_ids | {5, 99})
    assert set(found) == text_ids
    for text_id, value in found.items():
        at = sum(sizes[: text_id - 11])
        total = rows[at : at + sizes[text_id - 11]].sum(axis=0)
        assert abs(value - total @ question / np.linalg.norm(total)) < 0.03
    # Sums are kept; of texts that were not asked for before they are read.
    every = set(range(11, 11 + len(sizes)))
    again = whole_similarity(index, question, every)
    assert set(again) == every
    assert {text_id: again[text_id] for text_id in text_ids} == found


def test_texts_without_vectors_have_no_similarity(tmp_path: Path) -> None:
    index, rows = known(tmp_path, [2], 1)
    assert whole_similarity(index, rows[0], {1, 2}) == {}
    assert whole_similarity(index._replace(vectors=None), rows[0], {11}) == {}


@given(sizes=st.lists(st.integers(0, 4), max_size=12), seed=st.integers(0, 2**32))
def test_rows_are_found_by_text_and_place_in_whatever_order_the_texts_were_embedded(
    sizes: list[int], seed: int
) -> None:
    counts = np.array(sizes, np.int64)
    first = np.cumsum(counts) - counts
    text_ids = np.random.default_rng(seed).permutation(100)[: len(sizes)]
    of = ChunkMap.of(first, counts, text_ids)
    truth = {
        (int(text_id), place): int(row + place)
        for row, count, text_id in zip(first, counts, text_ids, strict=True)
        for place in range(count)
    }
    asked = [(text_id, place) for text_id in range(100) for place in range(5)]
    found = of.numbers(*np.array(asked, np.int64).T)
    assert {
        key: row for key, row in zip(asked, found.tolist(), strict=True) if row >= 0
    } == truth
