"""Blocks of postings, fetched from shards for a whole question and checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flashgrep.damage import Damaged
from flashgrep.index.postings import LAST_KEY, OpenBlock, open_block
from flashgrep.team.reading import ReadingAs
from flashgrep.team.segments import Segment

Spans = Sequence[tuple[int, int]]
"""First and last keys that are looked up."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a segment, in blocks that were fetched."""

    segment: Segment
    blocks: Mapping[tuple[int, int], bytes]

    def find(self, gram: int) -> memoryview:
        """Return the list of a key; empty where no document has it."""
        (key,) = self.segment.block_keys(gram, gram)
        block = self._open(key)
        start, end = block.span(gram)
        return block.payload[start:end]

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        """Yield the lists of the keys from ``first`` to ``last``."""
        return (found for _, found in self.with_keys(first, last))

    def with_keys(self, first: int, last: int) -> Iterator[tuple[int, memoryview]]:
        """Yield the keys from ``first`` to ``last`` that the segment has, each with its list."""
        for key in self.segment.block_keys(first, last):
            block = self._open(key)
            low, high = np.searchsorted(np.frombuffer(block.grams, "<u4"), [first, last + 1])
            for place in range(int(low), int(high)):
                yield block.grams[place], block.payload[block.ends[place - 1] if place else 0 : block.ends[place]]

    def _open(self, key: int) -> OpenBlock:
        """Return a block, checked: by its checksum, and that it covers what its segment says."""
        block = open_block(self.blocks[self.segment.id, key], self.segment.id)
        at = int(np.searchsorted(self.segment.keys, key))
        last = int(self.segment.keys[at + 1]) - 1 if at + 1 < len(self.segment.keys) else LAST_KEY
        if (block.first, block.last) != (key, last):
            raise Damaged("a key is in no block of postings")
        return block


def fetch_lists(read: ReadingAs, repository: int, segments: Sequence[Segment], spans: Spans) -> list[Lists]:
    """Return the lists of keys, of each segment whose shard answers.

    Raises:
        Damaged: a block is not there.

    """
    wanted = {one.id: {key for span in spans for key in one.block_keys(*span)} for one in segments}
    keys = sorted({key for of_segment in wanted.values() for key in of_segment})
    with read() as reading:
        rows = reading.fetch_shards(
            "SELECT segment, key, data FROM flashgrep.block WHERE repository = %s AND {shards} "
            "AND segment = ANY(%s) AND key = ANY(%s)",
            [repository, list(wanted), keys],
            sorted({one.shard for one in segments}),
        )
        missing = set(reading.missing)
    blocks = {(segment, key): data for segment, key, data in rows}
    answering = [one for one in segments if one.shard not in missing]
    for one in answering:
        if any((one.id, key) not in blocks for key in wanted[one.id]):
            raise Damaged("a block of postings is missing")
    return [Lists(one, blocks) for one in answering]
