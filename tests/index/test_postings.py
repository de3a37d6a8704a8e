"""The gram index against sets: encoding, decoding, damage, merging, and the law that it never rules out a match."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.damage import Damaged
from flashgrep.index.grams import grams_of, number
from flashgrep.index.postings import (
    LAST_KEY,
    OpenBlock,
    decode,
    decode_pairs,
    encode,
    join,
    open_block,
    pairs_of,
    splice,
)

texts = st.lists(
    st.text(alphabet="abAB \t\n\r\u00e9x\u017f\u212a", max_size=40).map(str.encode),
    max_size=12,
)
numbers = st.lists(st.integers(0, 2**32 - 1), max_size=60, unique=True).map(sorted)


def slow_grams(text: bytes) -> set[int]:
    """Follow the contract's words, one window at a time."""
    found = set()
    for line in (
        text.split(b"\n") if not text.endswith(b"\n") else text[:-1].split(b"\n")
    ):
        whole = bytes(c + 32 if 65 <= c <= 90 else c for c in line) + b"\n"
        windows = (whole[at : at + 4] for at in range(len(whole) - 3))
        found |= {number(window) for window in windows if window.strip(b" \t\r\n")}
    if "\u017f".encode() in text or "\u212a".encode() in text:
        found.add(number(b"\n\n\n\n"))
    return found


@pytest.mark.slow
@given(texts)
def test_grams_are_those_of_the_contract(drawn: list[bytes]) -> None:
    for text in drawn:
        assert grams_of(text).tolist() == sorted(slow_grams(text))


@pytest.mark.parametrize("letters", [1, 2, 40, 256])
def test_grams_of_a_long_text_of_any_bytes_are_those_of_the_contract(
    letters: int,
) -> None:
    drawn = np.random.default_rng(letters).integers(0, letters, 30_000).astype(np.uint8)
    for text in (drawn.tobytes(), (255 - drawn).tobytes(), bytes(30_000)):
        assert grams_of(text).tolist() == sorted(slow_grams(text))


def test_grams_of_a_text_longer_than_one_slice_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"".join(b"line %d of \t \t some text\n" % at for at in range(400))
    # Where a slice ends the line end may be missing behind it, or be the last of it.
    cuts = [text[:size] for size in (*range(250, 264), *range(510, 520), len(text))]
    whole = [grams_of(cut).tolist() for cut in cuts]
    monkeypatch.setattr("flashgrep.index.grams.SLICE", 257)
    assert [grams_of(cut).tolist() for cut in cuts] == whole
    assert [grams_of(cut).tolist() for cut in cuts[:-1]] == [
        sorted(slow_grams(cut)) for cut in cuts[:-1]
    ]


@pytest.mark.slow
@given(st.lists(numbers.map(lambda drawn: np.array(drawn, np.uint32)), max_size=300))
def test_what_is_encoded_is_decoded(
    documents: list[np.ndarray[tuple[int], np.dtype[np.uint32]]],
) -> None:
    pairs = pairs_of(documents)
    blocks = list(encode(pairs, 9))
    back = [decode_pairs(open_block(block.data, 9)) for block in blocks]
    assert np.concatenate(back).tolist() == pairs.tolist()
    covered = [
        (block.first, opened.first, opened.last)
        for block in blocks
        if (opened := open_block(block.data, 9))
    ]
    assert covered[0][0] == 0
    assert covered[-1][2] == 0xFFFFFFFF
    assert all(
        mine[2] + 1 == following[0] == following[1]
        for mine, following in pairwise(covered)
    )


@pytest.mark.slow
@given(
    st.lists(numbers.map(lambda drawn: np.array(drawn, np.uint32)), max_size=60),
    st.integers(1, 9),
)
def test_slices_of_any_size_give_the_same_pairs(
    documents: list[np.ndarray[tuple[int], np.dtype[np.uint32]]], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flashgrep.index.postings.SLICE_PAIRS", size)
        pairs = pairs_of(documents)
        opened = [open_block(block.data, 9) for block in encode(pairs, 9)]
    assert (
        np.concatenate([decode_pairs(block) for block in opened]).tolist()
        == pairs.tolist()
    )
    assert (opened[0].first, opened[-1].last) == (0, 0xFFFFFFFF)
    assert all(mine.last + 1 == following.first for mine, following in pairwise(opened))


@pytest.mark.slow
@given(
    st.lists(
        st.lists(numbers.map(lambda drawn: np.array(drawn, np.uint32)), max_size=200),
        min_size=1,
        max_size=5,
    ),
    st.lists(
        st.tuples(st.integers(0, 1 << 22), st.integers(1, 1 << 20)),
        min_size=5,
        max_size=5,
    ),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
def test_segments_spliced_are_those_encoded_together(
    parts: list[list[np.ndarray[tuple[int], np.dtype[np.uint32]]]],
    holes: list[tuple[int, int]],
    bounds: tuple[int, int],
) -> None:
    low, high = min(bounds), max(bounds)
    blocks, offsets, expected, offset = [], [], [np.empty(0, np.uint64)], 0
    for number_of_part, (documents, (hole, step)) in enumerate(
        zip(parts, holes, strict=False)
    ):
        pairs = pairs_of(documents)
        # Numbers that no text took, before the first and between all: gaps of any
        # length in bytes.
        low_half = pairs & np.uint64(0xFFFFFFFF)
        pairs += low_half * np.uint64(step - 1) + np.uint64(hole)
        mine = [
            open_block(block.data, number_of_part)
            for block in encode(pairs, number_of_part)
        ]
        blocks += mine
        offsets += [offset] * len(mine)
        expected.append(pairs + np.uint64(offset))
        offset += len(documents) * step + hole
    whole = np.sort(np.concatenate(expected))
    grams = whole >> np.uint64(32)
    opened = [
        open_block(block.data, 9) for block in splice(blocks, offsets, 9, (low, high))
    ]
    spliced = np.concatenate([decode_pairs(block) for block in opened])
    assert spliced.tolist() == whole[(grams >= low) & (grams <= high)].tolist()
    assert (opened[0].first, opened[-1].last) == (low, high)
    assert all(mine.last + 1 == following.first for mine, following in pairwise(opened))


@pytest.mark.slow
@given(
    st.lists(
        st.lists(
            st.tuples(
                numbers.map(lambda drawn: np.unique(np.array(drawn, np.uint32))),
                st.booleans(),
            )
        ),
        min_size=1,
        max_size=4,
    )
)
def test_segments_joined_without_some_documents_are_the_others_encoded(
    parts: list[list[tuple[np.ndarray[tuple[int], np.dtype[np.uint32]], bool]]],
) -> None:
    blocks: list[OpenBlock] = []
    offsets: list[int] = []
    offset = 0
    for number_of_part, part in enumerate(parts):
        mine = encode(pairs_of([document for document, _ in part]), number_of_part)
        blocks += [open_block(block.data, number_of_part) for block in mine]
        offsets += [offset] * (len(blocks) - len(offsets))
        offset += len(part)
    alive = np.array([is_kept for part in parts for _, is_kept in part], bool)
    joined = join(
        blocks, offsets, 9, (0, LAST_KEY), np.where(alive, np.cumsum(alive) - 1, -1)
    )
    expected = encode(
        pairs_of([document for part in parts for document, is_kept in part if is_kept]),
        9,
    )
    assert list(joined) == list(expected)


@given(
    st.lists(st.integers(0, 2**31), min_size=1, max_size=200, unique=True).map(sorted)
)
def test_one_list_comes_back_by_its_gram(documents: list[int]) -> None:
    pairs = np.array([(7 << 32) | document for document in documents], np.uint64)
    (block,) = (open_block(block.data, 1) for block in encode(pairs, 1))
    start, end = block.span(7)
    assert decode(block.payload[start:end]).tolist() == documents
    assert block.span(8) == (0, 0)


@given(st.data())
def test_any_flipped_bit_is_noticed(data: st.DataObject) -> None:
    (block,) = encode(
        pairs_of([grams_of(b"some text to index"), grams_of(b"other text")]), 3
    )
    at = data.draw(st.integers(0, len(block.data) * 8 - 1))
    broken = bytearray(block.data)
    broken[at // 8] ^= 1 << at % 8
    with pytest.raises(Damaged):
        open_block(bytes(broken), 3)


def test_a_block_of_another_segment_is_damage() -> None:
    (block,) = encode(pairs_of([grams_of(b"some text to index")]), 3)
    with pytest.raises(Damaged):
        open_block(block.data, 4)
