"""Candidates of one segment against sets: nothing that has all grams is left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from flashgrep.index.evaluate import SEARCHED, evaluate
from flashgrep.index.postings import encode, open_block
from flashgrep.index.segments import SegmentRow
from flashgrep.pattern import AllOf, AnyOf, Gram

DOCUMENTS, FIRST = 5_000, 700


@dataclass(frozen=True)
class Lists:
    """Encoded lists, as a store has them."""

    encoded: Mapping[int, memoryview]

    def find(self, gram: int) -> memoryview:
        return self.encoded.get(gram, memoryview(b""))

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        return (
            data for gram, data in sorted(self.encoded.items()) if first <= gram <= last
        )


def encoded(documents: set[int]) -> memoryview:
    block = open_block(next(encode(np.array(sorted(documents), np.uint64), 1)).data, 1)
    start, end = block.span(0)
    return block.payload[start:end]


@pytest.mark.parametrize("seed", range(8))
def test_texts_proposed_are_those_with_all_grams_and_have_one(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    row, grams = (
        SegmentRow(1, 0, FIRST, FIRST + DOCUMENTS - 1, 0),
        [b"aaaa", b"bbbb", b"bbbc", b"zzzz"],
    )
    for _ in range(12):
        # From one document to all of them, so that both ways of intersecting come up.
        sizes = drawn.choice(
            [1, 2, 40, DOCUMENTS // SEARCHED, DOCUMENTS // 2, DOCUMENTS], len(grams)
        )
        sets = {
            gram: set(drawn.choice(DOCUMENTS, size, False).tolist())
            for gram, size in zip(grams, sizes, strict=True)
        }
        lists = Lists(
            {
                int.from_bytes(gram, "big"): encoded(documents)
                for gram, documents in sets.items()
            }
        )
        every = set.intersection(*sets.values())
        found = evaluate(AllOf(tuple(map(Gram, grams))), row, lists)
        assert found is not None
        assert found.tolist() == sorted(set(found.tolist()))
        proposed = {text_id - FIRST for text_id in found.tolist()}
        assert every <= proposed
        assert any(proposed <= documents for documents in sets.values())
        either = evaluate(AnyOf((Gram(b"bbb"), Gram(b"zzzz"))), row, lists)
        assert either is not None
        assert either.tolist() == sorted(
            FIRST + one for one in sets[b"bbbb"] | sets[b"bbbc"] | sets[b"zzzz"]
        )
